"""Which functions run when an attribute is read, set or deleted: properties, descriptors, ``__getattr__``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, unique

from patchkit.audited import Confidence
from patchkit.bindings import Assigned, Defined
from patchkit.classes import is_property, last_name
from patchkit.inference import Inference
from patchkit.programs import Scope
from patchkit.values import (
    UNCLEAR,
    ClassValue,
    Found,
    FunctionValue,
    Instance,
    ModuleValue,
    lowered,
)


@unique
class Access(Enum):
    """What is done with an attribute."""

    READ = "read"
    SET = "set"
    DELETE = "delete"


_DESCRIPTOR = {Access.READ: "__get__", Access.SET: "__set__", Access.DELETE: "__delete__"}
_ALWAYS = {Access.READ: "__getattribute__", Access.SET: "__setattr__", Access.DELETE: "__delattr__"}
_MAKER = {Access.SET: "setter", Access.DELETE: "deleter"}


class Accessors:
    """What accesses call, as values: functions, and `Unclear` where that is not known."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference

    def of(self, base: Found, name: str, access: Access) -> Iterator[Found]:
        """What is called where ``name`` of ``base`` is read, set or deleted."""
        match base.value:
            case Instance():
                yield from lowered(self._of_object(base.value, name, access), base.confidence)
            case ClassValue(scope=scope):
                yield from lowered(self._of_class(base.value, name, access), base.confidence)
                metaclass = self._inference.lineage.metaclass(scope)
                if metaclass is not None:
                    yield from lowered(self._of_object(Instance(metaclass), name, access), base.confidence)
            case ModuleValue(name=module) if access is Access.READ:
                yield from self._of_module(module, name)

    def by_name(self, name: str, access: Access, made: frozenset[Scope]) -> Iterator[Found]:
        """What may be called where it is not known whose attribute that is. ``made`` are classes of objects that may
        be anywhere: those of others are asked for where they are made."""
        for holder in self._inference.surroundings.holders.get(name, ()):
            yield from lowered(self._bound_in(holder, name, access), Confidence.NAME)
        hook = "__getattr__" if access is Access.READ else _ALWAYS[access]
        for each in (hook, _ALWAYS[access]):
            scopes = [each for each in self._inference.surroundings.methods(each) if each.owner in made]
            yield from (Found(FunctionValue(scope), Confidence.NAME) for scope in scopes)

    def _of_object(self, base: Instance, name: str, access: Access) -> Iterator[Found]:
        inference = self._inference
        for kin in inference.lineage.order(base.of):
            if isinstance(kin, Scope) and name in kin.namespace.names:
                yield from self._bound_in(kin, name, access)
                break
        for kin in () if base.exact else inference.lineage.descendants(base.of):
            yield from lowered(self._bound_in(kin, name, access), Confidence.NAME)
        yield from self._special(base, _ALWAYS[access])
        if access is Access.READ and not inference.members.has_own(base.of, name):
            yield from self._special(base, "__getattr__")

    def _special(self, base: Instance, name: str) -> Iterator[Found]:
        found = self._inference.methods(base, name)
        yield from (each for each in found if isinstance(each.value, FunctionValue))
        yield from (UNCLEAR for each in found if each == UNCLEAR and len(found) > 1)

    def _of_class(self, base: ClassValue, name: str, access: Access) -> Iterator[Found]:
        """Of a class only descriptors are asked, and only where it is read."""
        if access is Access.READ:
            for found in self._inference.methods(base, name):
                if isinstance(found.value, Instance):
                    yield from self._special(found.value, "__get__")

    def _of_module(self, module: str, name: str) -> Iterator[Found]:
        parsed = self._inference.program.module(module)
        names = parsed.scope.namespace.names if parsed is not None else {}
        if name not in names and "__getattr__" in names and not self._inference.program.has(f"{module}.{name}"):
            yield from self._inference.member(ModuleValue(module), "__getattr__")

    def _bound_in(self, scope: Scope, name: str, access: Access) -> Iterator[Found]:
        """What the bindings of a class body call."""
        for binding in scope.namespace.names.get(name, ()):
            match binding:
                case Defined(node=ast.FunctionDef() | ast.AsyncFunctionDef() as node):
                    method = scope.child(node)
                    if _answers(method, access):
                        yield Found(FunctionValue(method), Confidence.ATTRIBUTE)
                    for decorator in node.decorator_list:
                        yield from self._descriptor(decorator, scope, access)
                case Assigned(value=ast.expr() as value):
                    yield from self._descriptor(value, scope, access)
                    if isinstance(value, ast.Call):
                        yield from self._handed(value, scope)

    def _descriptor(self, node: ast.expr, scope: Scope, access: Access) -> Iterator[Found]:
        """The method of a descriptor that ``node`` is, or that a decorator which is a class makes."""
        for found in self._inference.infer(node, scope):
            if isinstance(found.value, ClassValue):
                found = replace(found, value=Instance(found.value.scope, exact=True))
            if isinstance(found.value, Instance):
                yield from lowered(self._special(found.value, _DESCRIPTOR[access]), Confidence.ATTRIBUTE)

    def _handed(self, call: ast.Call, scope: Scope) -> Iterator[Found]:
        """The functions that a call in a class body gets, such as ``property(get, set)``."""
        for node in [*call.args, *(each.value for each in call.keywords)]:
            if isinstance(node, ast.Name | ast.Attribute | ast.Lambda):
                found = self._inference.infer(node, scope)
                yield from lowered((each for each in found if isinstance(each.value, FunctionValue)), Confidence.NAME)


def _answers(method: Scope, access: Access) -> bool:
    """Whether a method is the part of a property that this access calls."""
    if access is Access.READ:
        return is_property(method)
    return any(last_name(each) == _MAKER[access] for each in getattr(method.node, "decorator_list", ()))
