"""One body read: the functions that it calls, by name, by operator or by handing them on, and where that is unknown.

Every call and every operation ends in one of four: a function or class of the program, something of others, an object
of a built-in type, or a gap that is counted.
"""

from __future__ import annotations

import ast
from typing import Protocol

from patchkit.accessors import Access, Accessors
from patchkit.audited import Confidence
from patchkit.bindings import Assigned, Imported, own_expressions
from patchkit.branches import Assumptions, walk
from patchkit.callees import Callees
from patchkit.classes import first_parameter
from patchkit.facts import Facts
from patchkit.hazards import HazardTable
from patchkit.inference import Inference
from patchkit.notes import Notes
from patchkit.operands import Operands
from patchkit.operations import operations
from patchkit.programs import Scope
from patchkit.values import UNCLEAR, ClassValue, Found, Instance, ModuleValue

_CONTEXTS = {ast.Load: Access.READ, ast.Store: Access.SET, ast.Del: Access.DELETE}


class Known(Protocol):
    """What is known of the program's functions (`Calls`)."""

    inference: Inference
    accessors: Accessors
    table: HazardTable

    made_at_import: frozenset[Scope]

    def find_methods(self, name: str, scope: Scope) -> tuple[Scope, ...]: ...


class Body:
    """Reads the body of one function, or of a class that a function makes."""

    def __init__(self, known: Known, scope: Scope) -> None:
        self.known = known
        self.inference = known.inference
        self.scope = scope
        self._notes = Notes(known.inference)
        self._operands = Operands(known, scope, self._notes)
        self._callees = Callees(known, scope, self._notes, self._operands)

    def read(self) -> Facts:
        """What the whole body does."""
        node = self.scope.node
        if isinstance(node, ast.Lambda):
            for expression in ast.walk(node.body):
                if isinstance(expression, ast.expr):
                    self._expression(expression)
        else:
            for placed in walk(node.body, self._assumed()):
                self._notes.branch, self._notes.guard = placed.branch, placed.guard
                self._statement(placed.node)
                for expression in own_expressions(placed.node):
                    self._expression(expression)
        return self._notes.facts()

    def _assumed(self) -> Assumptions:
        """The assumptions whose names mean here what the table means by them."""
        assumed = self.known.table.assumptions
        return assumed.without([name for name in (*assumed.roots, "TYPE_CHECKING") if _is_hidden(name, self.scope)])

    # ---- statements and expressions ---------------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> None:
        for operand, names in operations(node):
            self._operands.operate(operand, names)
        self._callees.kept = self._kept_by(node)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._decorate(node.decorator_list)
            case ast.ClassDef():
                self._decorate(node.decorator_list)
                self._define(node)
            case ast.Raise(exc=exception, cause=cause):
                for each in (exception, cause):
                    self._raise(each)
            case ast.AugAssign(target=ast.Attribute(value=value, attr=name)):
                self._operands.access(value, name, Access.READ, node)
            case ast.ImportFrom(names=aliases):
                for alias in aliases:
                    for binding in self.scope.namespace.names.get(alias.asname or alias.name, ()):
                        if isinstance(binding, Imported) and binding.line == alias.lineno:
                            base = Found(ModuleValue(binding.module))
                            found = self.known.accessors.of(base, binding.name, Access.READ)
                            self._notes.run(found, node, Confidence.DIRECT)
            case ast.Match(subject=subject, cases=cases):
                for pattern in (each for case in cases for each in ast.walk(case.pattern)):
                    if isinstance(pattern, ast.MatchClass):
                        self._operands.operate(pattern.cls, ("__instancecheck__",))
                        for name in pattern.kwd_attrs:
                            self._operands.access(subject, name, Access.READ, node)

    def _kept_by(self, node: ast.stmt) -> ast.expr | None:
        """The call that makes an object of a module which is only ever used by its name."""
        match node:
            case ast.Assign(targets=[ast.Name() as name], value=ast.Call() as call) if self.scope.parent is None:
                made = [each.value for each in self.inference.infer(call, self.scope)]
                uses = self.inference.mutations
                if all(isinstance(each, Instance) and self._keeps_itself(each.of) for each in made):
                    return None if uses.is_handed_on(name, self.scope) else call
        return None

    def _keeps_itself(self, scope: Scope) -> bool:
        """Whether the methods of a class hand their object to nobody."""
        kin = [each for each in self.inference.lineage.order(scope) if isinstance(each, Scope)]
        methods = [(each, first_parameter(each)) for one in kin for each in one.inner if each.owner is one]
        uses = self.inference.mutations
        return not any(name and uses.is_handed_on(ast.Name(name, ast.Load()), each) for each, name in methods)

    def _expression(self, node: ast.expr) -> None:
        for operand, names in operations(node):
            self._operands.operate(operand, names)
        match node:
            case ast.Call():
                self._callees.call(node)
            case ast.Attribute(value=value, attr=name, ctx=context):
                self._operands.access(value, name, _CONTEXTS[type(context)], node)

    def _raise(self, exception: ast.expr | None) -> None:
        for found in self.inference.infer(exception, self.scope) if exception is not None else ():
            if isinstance(found.value, ClassValue) and exception is not None:
                self._callees.construct(found.value, exception, found.confidence)

    def _decorate(self, decorators: list[ast.expr]) -> None:
        """A definition inside of a function calls its decorators when it is come to."""
        for decorator in decorators:
            call = ast.copy_location(ast.Call(decorator, [], []), decorator)
            for found in self.inference.infer(decorator, self.scope) or (UNCLEAR,):
                self._callees.callee(found, call)

    def _define(self, node: ast.ClassDef) -> None:
        """A class statement inside of a function runs the class's body and what bases and metaclass do about it."""
        made = self.scope.child(node)
        self._notes.add(made, node.lineno, Confidence.DIRECT)
        for base in (each for each in self.inference.lineage.order(made)[1:] if isinstance(each, Scope)):
            self._notes.run(self.inference.methods(ClassValue(base), "__init_subclass__"), node, Confidence.ATTRIBUTE)
        metaclass = self.inference.lineage.metaclass(made)
        if metaclass is not None:
            for name in ("__prepare__", "__new__", "__init__"):
                self._notes.run(self.inference.methods(Instance(metaclass), name), node, Confidence.ATTRIBUTE)
        for binding in (each for bound in made.namespace.names.values() for each in bound):
            value = binding.value if isinstance(binding, Assigned) else None
            for found in self.inference.infer(value, made) if value is not None else ():
                if isinstance(found.value, Instance):
                    self._notes.run(self.inference.methods(found.value, "__set_name__"), node, Confidence.ATTRIBUTE)


def _is_hidden(name: str, scope: Scope) -> bool:
    """Whether ``name`` is something else in ``scope`` than the module, or what ``typing`` has under that name."""
    holder: Scope | None = scope
    while holder is not None and name not in holder.namespace.names:
        holder = holder.parent
    for binding in holder.namespace.names[name] if holder is not None else ():
        plain = isinstance(binding, Imported) and (binding.module.partition(".")[0] == name or binding.name == name)
        if not plain:
            return True
    return False
