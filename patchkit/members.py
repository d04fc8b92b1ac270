"""What the attributes of modules, classes, objects and functions may be, and what else was put in their place."""

from __future__ import annotations

import ast
import collections
import types
from collections.abc import Iterator
from typing import Protocol

from patchkit.audited import Confidence
from patchkit.bindings import Assigned, Binding
from patchkit.classes import Attribute, is_property, own_attributes
from patchkit.lineage import Lineage
from patchkit.programs import Program, Scope
from patchkit.results import BUILTINS, TYPES, has_attribute
from patchkit.substitutions import Substitution, Substitutions
from patchkit.values import (
    UNCLEAR,
    Answers,
    ClassValue,
    Container,
    Foreign,
    Found,
    FunctionValue,
    Instance,
    ModuleValue,
    Record,
    Unclear,
    Value,
    joined,
    lowered,
)

_FUNCTION = frozenset(dir(lambda: None)) | {"cache_clear", "cache_info", "cache_parameters"}
_KINDS = (list, dict, set, tuple, str, types.GeneratorType, types.CoroutineType, collections.deque, collections.Counter)
_CONTAINER = frozenset(name for kind in _KINDS for name in dir(kind))
_MOST = 24  # assignments from outside to one name that are looked at
_SAME = ("__wrapped__", "__call__", "__func__", "func")


class Known(Protocol):
    """What is known of the other expressions of a program (`Inference`)."""

    program: Program
    lineage: Lineage
    substitutions: Substitutions

    def infer(self, node: ast.expr, scope: Scope) -> Answers: ...
    def alternative(self, binding: Binding, holder: Scope) -> Answers | None: ...
    def bound(self, name: str, holder: Scope) -> Iterator[Answers | None]: ...
    def starred(self, name: str, scope: Scope) -> Answers: ...
    def returned(self, scope: Scope) -> Answers: ...


class Members:
    """Answers on attributes, from what is ``known`` of everything else."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._attributes: dict[Scope, dict[str, list[Attribute]]] = {}

    def member(self, base: Value, name: str) -> Answers:
        """What the attribute ``name`` of ``base`` may be."""
        match base:
            case ModuleValue(name=module):
                return self.replaced(base, name, self._of_module(module, name))
            case ClassValue(scope=scope):
                found = self._of_class(base, name) or self._of_metaclass(scope, name)
                return self.replaced(base, name, lowered(found, Confidence.ATTRIBUTE))
            case Instance(of=scope, exact=exact):
                if name == "__class__":
                    return (Found(ClassValue(scope, exact), Confidence.ATTRIBUTE),)
                return self.replaced(base, name, lowered(self._of_instance(base, name), Confidence.ATTRIBUTE))
            case Foreign(name=owner, instance=instance):
                if instance and owner == "pathlib.Path" and name == "parent":
                    return (Found(base),)
                kind = BUILTINS.get(owner)
                lacks = instance and isinstance(kind, type) and not hasattr(kind, name)
                other = () if lacks else (Found(Foreign(f"{owner}.{name}")),)
                return other if instance else self.replaced(base, name, other)
            case Unclear():
                return (UNCLEAR,)
            case Container(name=owner):
                return (Found(Foreign(f"{owner}.{name}")),) if name in _CONTAINER else ()
            case Record(node=ast.Call(keywords=keywords), scope=scope):
                values = [keyword.value for keyword in keywords if keyword.arg == name]
                found = tuple(each for value in values for each in self._known.infer(value, scope))
                return self.replaced(base, name, lowered(found, Confidence.ATTRIBUTE))
            case Record(node=node):
                return (Found(Foreign(f"{TYPES[type(node)]}.{name}")),)
            case FunctionValue():
                return self.replaced(base, name, self._of_function(base, name))

    def _of_function(self, base: FunctionValue, name: str) -> Answers:
        if name in _SAME:
            return (Found(FunctionValue(base.scope)),)
        return (Found(Foreign(f"function.{name}")),) if name in _FUNCTION and name != "__get__" else ()

    def _of_module(self, module: str, name: str) -> Answers:
        parsed = self._known.program.module(module)
        if parsed is not None:
            if name in parsed.scope.namespace.names:
                answers = joined(self._known.bound(name, parsed.scope))
                if answers:  # none: `from . import name` in a package binds what the import system puts there
                    return answers
            starred = self._known.starred(name, parsed.scope)
            if starred:
                return starred
        inner = f"{module}.{name}"
        return (Found(ModuleValue(inner)),) if self._known.program.has(inner) else ()

    # ---- classes and objects ----------------------------------------------------------------------------------

    def raw(self, base: ClassValue | Instance, name: str) -> Answers:
        """What stands under ``name`` in the class of an object, or in a class, and in its subclasses where it may be
        one of these: a property as the function that it is."""
        scope = base.of if isinstance(base, Instance) else base.scope
        found = self.replaced(base, name, self._inherited(scope, name))
        if base.exact:
            return found
        below = [self._own(each, name) for each in self._known.lineage.descendants(scope)]
        return joined([found or None, *(lowered(each, Confidence.NAME) for each in below if each)])

    def _of_class(self, base: ClassValue, name: str) -> Answers:
        if self._is_enum(base.scope) and isinstance(self._first_binding(base.scope, name), Assigned):
            return (Found(Instance(base.scope, exact=True)),)
        return self.raw(base, name)

    def _of_metaclass(self, scope: Scope, name: str) -> Answers:
        metaclass = self._known.lineage.metaclass(scope)
        return self.raw(Instance(metaclass), name) if metaclass is not None else ()

    def _is_enum(self, scope: Scope) -> bool:
        return any(
            isinstance(each, Foreign) and each.name.startswith("enum.") for each in self._known.lineage.order(scope)
        )

    def members_of(self, scope: Scope) -> Answers:
        """What iterating over a class gives: the members of an enumeration."""
        return (Found(Instance(scope)),) if self._is_enum(scope) else ()

    def _values_of(self, scope: Scope) -> Answers:
        """What the members of an enumeration are bound to."""
        bound = [each for bindings in scope.namespace.names.values() for each in bindings]
        return joined(self._known.alternative(each, scope) for each in bound if isinstance(each, Assigned))

    def _first_binding(self, scope: Scope, name: str) -> Binding | None:
        bound = scope.namespace.names.get(name)
        return bound[0] if bound else None

    def _of_instance(self, base: Instance, name: str) -> Answers:
        if name in ("value", "_value_") and self._is_enum(base.of) and not self._first_binding(base.of, name):
            return self._values_of(base.of)
        kin = [base.of] if base.exact else [base.of, *self._known.lineage.descendants(base.of)]
        own = [
            found
            for below in kin
            for each in (self._known.lineage.order(below) if below is base.of else (below,))
            if isinstance(each, Scope)
            for found in self._set_on_self(each, name)
        ]
        return joined([self._read(self.raw(base, name)) or None, *own])

    def above(self, scope: Scope, name: str) -> Answers:
        """What ``super().name`` is in a method of ``scope``: that of a base, or of what comes behind in a subclass."""
        own = self._read(self._inherited(scope, name, above=True))
        siblings = [self._read(self._own(each, name)) for each in self._known.lineage.siblings(scope)]
        found = lowered(own, Confidence.ATTRIBUTE)
        return joined([found or None, *(lowered(each, Confidence.NAME) for each in siblings if each)])

    def _inherited(self, scope: Scope, name: str, *, above: bool = False) -> Answers:
        """What the first class that has the attribute has; where one before it is unknown, that may be anything."""
        foreign: list[Found] = []
        unknown = False
        for each in self._known.lineage.order(scope)[above:]:
            if isinstance(each, Scope):
                found = self._own(each, name)
                if found:
                    return (*found, UNCLEAR) if unknown else found
            elif isinstance(each, Foreign):
                foreign += [Found(Foreign(f"{each.name}.{name}"))] if has_attribute(each.name, name) else []
            else:
                unknown = True
        return (UNCLEAR,) if unknown else tuple(foreign[:1])

    def _own(self, scope: Scope, name: str) -> Answers:
        if name not in scope.namespace.names or _is_deleted(scope, name):
            return ()
        found = joined(self._known.alternative(binding, scope) for binding in scope.namespace.names[name])
        return joined([found, ()]) if self._known.lineage.is_made_over(scope) else found

    def borrowing(self, method: Scope, owner: Scope) -> Iterator[Answers]:
        """What else the first argument of a method may be: objects that it is handed over the class, objects of classes
        that take the method over."""
        infer, inherits = self._known.infer, self._known.lineage.inherits
        for each in self._known.substitutions.borrowed.get(method.name, ()):
            lenders = [found.value for found in infer(each.base, each.scope)]
            if any(isinstance(lender, ClassValue) and inherits(lender.scope, owner) for lender in lenders):
                taker = (Found(ClassValue(each.scope)),) if each.taker is None else infer(each.taker, each.scope)
                kinds = [found.value.scope if isinstance(found.value, ClassValue) else found.value for found in taker]
                made = [Instance(kind) if isinstance(kind, Scope) else kind for kind in kinds]
                yield tuple(Found(value, Confidence.NAME) for value in made)

    def _read(self, found: Answers) -> Answers:
        """What an instance shows: of a property its result."""
        shown: list[Answers | None] = []
        for each in found:
            value = each.value
            if isinstance(value, FunctionValue) and is_property(value.scope):
                shown.append(self._known.returned(value.scope))
            elif isinstance(value, Instance) and self.raw(value, "__get__"):
                shown.append(())
            else:
                shown.append((each,))
        return joined(shown)

    def _set_on_self(self, scope: Scope, name: str) -> Iterator[Answers | None]:
        if scope not in self._attributes:
            self._attributes[scope] = own_attributes(scope)
        for method, value, annotation in self._attributes[scope].get(name, ()):
            yield self._known.alternative(Assigned(value, annotation, 0, ()), method)

    def has_own(self, scope: Scope, name: str) -> bool:
        """Whether a class here binds ``name`` for an object, in its body or in one of its methods."""
        kin = [each for each in self._known.lineage.order(scope) if isinstance(each, Scope)]
        return any(name in each.namespace.names or any(self._set_on_self(each, name)) for each in kin)

    # ---- changes from outside ---------------------------------------------------------------------------------

    def replaced(self, base: Value, name: str, found: Answers) -> Answers:
        """``found``, and what code puts in its place."""
        changes = self._known.substitutions.named.get(name)
        if not changes:
            return found
        if len(changes) > _MOST:
            return joined([found or None, (UNCLEAR,)]) if found else ()
        put = [lowered(self._put(each), Confidence.NAME) or (UNCLEAR,) for each in changes if self._is_of(each, base)]
        return joined([found or None, *put]) if put else found

    def _put(self, change: Substitution) -> Answers:
        if change.value is None:
            return ()
        if isinstance(change.value, ast.Constant):
            return (Found(Foreign(type(change.value.value).__name__, instance=True)),)
        return self._known.infer(change.value, change.scope)

    def _is_of(self, change: Substitution, base: Value) -> bool:
        owners = [each.value for each in self._known.infer(change.base, change.scope)]
        return any(isinstance(owner, Unclear) or self._may_be(owner, base) for owner in owners) or not owners

    def _may_be(self, owner: Value, base: Value) -> bool:
        match owner, base:
            case ClassValue(scope=one), (ClassValue(scope=other) | Instance(of=other)):
                return self._are_kin(one, other)
            case Instance(of=one), Instance(of=other):
                return self._are_kin(one, other)
            case FunctionValue(scope=one), FunctionValue(scope=other):
                return one is other
            case _:
                return owner == base

    def _are_kin(self, one: Scope, other: Scope) -> bool:
        return self._known.lineage.inherits(one, other) or self._known.lineage.inherits(other, one)


def _is_deleted(scope: Scope, name: str) -> bool:
    """Whether the body of a class takes a name away again."""
    body = getattr(scope.node, "body", ())
    deleted = (target for node in body if isinstance(node, ast.Delete) for target in node.targets)
    return any(isinstance(target, ast.Name) and target.id == name for target in deleted)
