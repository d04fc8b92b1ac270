"""What operations call: special methods of their operands, and what is behind attributes.

Where the class of an operand is not known, it may be any class of which an object was made while modules were imported;
objects of others are asked for what they have where they are made.
"""

from __future__ import annotations

import ast
from typing import Protocol

from patchkit.accessors import Access, Accessors
from patchkit.audited import Confidence, Doubt
from patchkit.bindings import Parameter
from patchkit.hazards import HazardTable
from patchkit.hooks import Hooks
from patchkit.inference import Inference
from patchkit.notes import Notes
from patchkit.programs import Scope
from patchkit.results import BUILTINS, HOLDING
from patchkit.values import ClassValue, Container, Foreign, Found, Instance, Record, Unclear

_PARTS = frozenset(("__iter__", "__getitem__", "__bool__"))
"""What asks a list or a table for its elements, or whether it has any, and calls nothing of these."""
_OF_CLASS = frozenset(("__class_getitem__", "__subclasshook__"))
_GENERATED = frozenset(("__eq__", "__hash__", "__repr__", "__lt__", "__le__", "__gt__", "__ge__"))
_MANAGED = frozenset(("__enter__", "__aenter__"))
_ENTERED = frozenset(("__enter__", "__aenter__", "__iter__", "__aiter__"))


class Known(Protocol):
    """What is known of the program's functions (`Calls`)."""

    inference: Inference
    accessors: Accessors
    table: HazardTable

    made_at_import: frozenset[Scope]


class Operands:
    """Operations of one body, told to its ``notes``."""

    def __init__(self, known: Known, scope: Scope, notes: Notes) -> None:
        self._known = known
        self._inference = known.inference
        self._scope = scope
        self._notes = notes
        self._hooks = Hooks(known.inference.lineage, notes)

    def operate(self, operand: ast.expr, names: tuple[str, ...]) -> None:
        """An operation on ``operand``, which calls the first of the special methods that it has."""
        found = self._inference.infer(operand, self._scope)
        for each in found:
            self._special(each, operand, names)
        if not found or any(isinstance(each.value, Unclear) for each in found):
            self._any(operand, names)
            if _MANAGED & set(names):
                self._notes.gap(Doubt.DISPATCH, operand)

    def _any(self, operand: ast.expr, names: tuple[str, ...]) -> None:
        """The operand may be any object that was made at import."""
        for scope in (scope for name in names for scope in self._inference.surroundings.methods(name)):
            if scope.owner in self._known.made_at_import:
                self._notes.add(scope, operand.lineno, Confidence.NAME)

    def _special(self, found: Found, operand: ast.expr, names: tuple[str, ...]) -> None:
        match found.value:
            case Instance(of=of):
                generated = _GENERATED & set(names) and isinstance(of.node, ast.ClassDef) and of.node.decorator_list
                if generated and not any(self._inference.methods(found.value, name) for name in names):
                    self._any(operand, names)  # of a data class, which asks its fields
                for name in names:
                    methods = self._inference.methods(found.value, name)
                    self._notes.run(methods, operand, Confidence.ATTRIBUTE)
                    if any(isinstance(each.value, Foreign) for each in methods):
                        self._hooks.call(found.value.of, operand, name)
            case ClassValue(scope=scope):
                metaclass = self._inference.lineage.metaclass(scope)
                for name in _OF_CLASS & set(names):
                    self._notes.run(self._inference.methods(found.value, name), operand, Confidence.ATTRIBUTE)
                if metaclass is not None:
                    self._special(Found(Instance(metaclass)), operand, names)
            case Foreign(name=owner) | Container(name=owner):
                for heir in self._inference.lineage.descendants(Foreign(owner)):
                    for name in names:
                        self._notes.run(self._inference.methods(Instance(heir), name), operand, Confidence.NAME)
                self._of_others(found, owner, operand, names)
            case Record() if not _PARTS & set(names):
                for each in self._inference.elements(operand, self._scope):
                    if isinstance(each.value, Instance):
                        self._notes.implicit(each.value, operand)
                    elif isinstance(each.value, Record):
                        self._any(operand, names)

    def _of_others(self, found: Found, owner: str, operand: ast.expr, names: tuple[str, ...]) -> None:
        """An object of others, which was made before: a hazard, or nothing is known of what it does."""
        table = self._known.table
        uses = [each for name in names if (each := table.construct(f"{owner}.{name}"))]
        for construct in uses if not isinstance(operand, ast.Call) else ():
            self._notes.use(construct, operand.lineno, found.confidence)
        made = owner.partition("()")[0]
        known = table.knows(owner) or owner.partition(".")[0] in BUILTINS
        doubtful = isinstance(found.value, Foreign) and (made in table.rules or made in HOLDING or not known)
        if not uses and doubtful and _ENTERED & set(names) and self.is_from_outside(operand):
            self._notes.gap(Doubt.FOREIGN, operand, owner)

    def is_from_outside(self, node: ast.expr) -> bool:
        """Whether an object was made before this body runs: it is no call, nor a name that is bound here."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        bound = self._scope.namespace.names.get(node.id, ()) if isinstance(node, ast.Name) else None
        return bound is not None and all(isinstance(each, Parameter) for each in bound)

    def access(self, value: ast.expr, name: str, access: Access, node: ast.expr | ast.stmt) -> None:
        """An attribute is read, set or deleted."""
        bases = self._inference.infer(value, self._scope)
        for base in bases:
            self._notes.run(self._known.accessors.of(base, name, access), node, Confidence.ATTRIBUTE)
        if not bases or any(isinstance(base.value, Unclear) for base in bases):
            found = self._known.accessors.by_name(name, access, self._known.made_at_import)
            self._notes.run(found, node, Confidence.NAME)
