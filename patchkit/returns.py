"""What calls give back: instances of classes, what functions return, and what is known of calls of others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from patchkit.audited import Confidence
from patchkit.bindings import FunctionNode
from patchkit.classes import is_nothing, return_values
from patchkit.hazards import HazardTable
from patchkit.lineage import Lineage
from patchkit.programs import Scope
from patchkit.results import BUILTINS, CHOOSING, COPYING, FLUENT, IMPORTING, RESULTS, SAME
from patchkit.values import (
    UNCLEAR,
    Answers,
    ClassValue,
    Container,
    Foreign,
    Found,
    FunctionValue,
    Instance,
    Record,
    Unclear,
    Value,
    Wrapping,
    joined,
    lowered,
)

_MANAGERS = ("Iterator", "Iterable", "ContextManager")  # what a context manager made of a generator is annotated as


class Known(Protocol):
    """What is known of the other expressions of a program (`Inference`)."""

    table: HazardTable
    lineage: Lineage

    def infer(self, node: ast.expr, scope: Scope) -> Answers: ...
    def elements(self, container: ast.expr, scope: Scope) -> Answers: ...
    def member(self, base: Value, name: str) -> Answers: ...
    def imported(self, module: str, name: str) -> Answers: ...
    def annotated(self, node: ast.expr, scope: Scope) -> Answers: ...
    def methods(self, base: ClassValue | Instance, name: str) -> Answers: ...


class Returns:
    """Answers on calls, from what is ``known`` of everything else."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def result(self, callee: Value, call: ast.Call, scope: Scope) -> Answers:
        """What a call of ``callee``, which stands in ``scope``, gives."""
        match callee:
            case ClassValue(scope=of, exact=exact):
                return (Found(Instance(of, exact)), *self._made_otherwise(of))
            case FunctionValue(scope=of):
                return self.returned(of)
            case Instance():
                return joined(self._method_result(each) for each in self._known.methods(callee, "__call__"))
            case Foreign(name=name) as maker if name in self._known.table.opaque:
                return self._opaque_result(maker, call, scope)
            case Foreign(name=name):
                return self._foreign_result(name, call, scope)
            case Unclear():
                return (UNCLEAR,)
            case _:
                return ()

    def _opaque_result(self, maker: Foreign, call: ast.Call, scope: Scope) -> Answers:
        """The functions that are handed to ``maker``, opaque; without arguments, what makes the next function so."""
        effect = maker.effect or self._known.table.effect(maker.name, call.args, call.keywords)
        handed = [each for value in call.args for each in self._known.infer(value, scope)]
        wrapping = Wrapping(maker.name, effect, scope.module.source.path, call.lineno)
        return tuple(
            replace(each, value=FunctionValue(each.value.scope, wrapping))
            for each in handed
            if isinstance(each.value, FunctionValue)
        ) or (Found(Foreign(f"{maker.name}()", instance=True) if call.args else replace(maker, effect=effect)),)

    def _prepared(self, found: Found, call: ast.Call) -> Found:
        """What ``partial`` gives: a maker remembers the arguments that decide about its effect."""
        match found.value:
            case Foreign(name=name, effect=None) as maker if name in self._known.table.opaque:
                effect = self._known.table.effect(name, call.args[1:], call.keywords)
                return replace(found, value=replace(maker, effect=effect))
            case _:
                return found

    def _method_result(self, found: Found) -> Answers:
        return self.returned(found.value.scope) if isinstance(found.value, FunctionValue) else ()

    def _made_otherwise(self, scope: Scope) -> Answers:
        """What a class gives whose metaclass, or whose ``__new__``, may give something else."""
        metaclass = self._known.lineage.metaclass(scope)
        makers = self._known.methods(Instance(metaclass), "__call__") if metaclass is not None else ()
        makers = (*makers, *self._known.methods(ClassValue(scope), "__new__"))
        return (UNCLEAR,) if any(isinstance(each.value, FunctionValue) for each in makers) else ()

    def _foreign_result(self, name: str, call: ast.Call, scope: Scope) -> Answers:
        if name in SAME:
            handed = [each for value in call.args[:1] for each in self._known.infer(value, scope)]
            return tuple(self._prepared(each, call) for each in handed if not getattr(each.value, "instance", False))
        if name == "types.SimpleNamespace":
            return (Found(Record(call, scope)),)
        if name in ("getattr", "super", "type", *IMPORTING):
            return self._special(name, call, scope)
        if name in CHOOSING or name in COPYING:
            return self._chosen(name, call, scope)
        if name in BUILTINS and name not in RESULTS and name != "open":
            return ()  # it may give what it got
        last = name.rpartition(".")[2]
        if last in FLUENT and isinstance(call.func, ast.Attribute):
            ours = [each for each in self._known.infer(call.func.value, scope) if isinstance(each.value, Instance)]
            if ours:
                return tuple(ours)
        if name == "object.__new__" and call.args:
            classes = [each.value for each in self._known.infer(call.args[0], scope)]
            return tuple(Found(Instance(each.scope, each.exact)) for each in classes if isinstance(each, ClassValue))
        result = RESULTS.get(name) or (name if last[:1].isupper() else f"{name}()")
        return (Found(Foreign(result, instance=True)),)

    def _chosen(self, name: str, call: ast.Call, scope: Scope) -> Answers:
        """What gives an element of its argument, or one of them, or a copy."""
        if name in COPYING:
            given = call.args[-1:] if name == "typing.cast" else call.args[:1]
            return joined(self._known.infer(each, scope) for each in given)
        found = [self._known.elements(each, scope) for each in call.args[:1]] if len(call.args) == 1 else []
        if name == "next":
            found = [self._known.elements(each, scope) for each in call.args[:1]]
        rest = call.args[len(found) :]
        return joined([*found, *(None if is_nothing(each) else self._known.infer(each, scope) for each in rest)])

    def _special(self, name: str, call: ast.Call, scope: Scope) -> Answers:
        """What ``getattr(x, "name")``, ``super()`` and ``import_module("name")`` give."""
        match call.args:
            case [ast.Constant(value=str(module)), *_] if name in IMPORTING and module[:1] != ".":
                return self._known.imported(module, "") if module else ()
            case [value, ast.Constant(value=str(attribute)), *default] if name == "getattr":
                found = [self._known.member(base.value, attribute) for base in self._known.infer(value, scope)]
                others = [None if is_nothing(each) else self._known.infer(each, scope) for each in default]
                return joined([*(found or [()]), *others])
            case [value] if name == "type":
                found_types = [each.value for each in self._known.infer(value, scope)]
                return tuple(
                    Found(ClassValue(each.of, each.exact)) for each in found_types if isinstance(each, Instance)
                )
            case [] | [_, _] if name == "super":
                return tuple(found for each in self.supers(call, scope) for found in self._above(each))
        return ()

    def supers(self, call: ast.Call, scope: Scope) -> tuple[Scope, ...]:
        """The classes behind which ``super()`` or ``super(C, self)`` looks."""
        if not call.args:
            return (scope.enclosing_class,) if scope.enclosing_class is not None else ()
        found = [each.value for each in self._known.infer(call.args[0], scope)]
        return tuple(each.scope for each in found if isinstance(each, ClassValue))

    def _above(self, owner: Scope) -> Iterator[Found]:
        """What ``super()`` stands for: the next class (its attributes are looked for by `Members.above`)."""
        for each in (*self._known.lineage.order(owner)[1:2], *self._known.lineage.siblings(owner)):
            match each:
                case Scope():
                    yield Found(Instance(each, exact=True))
                case Foreign(name=name):
                    yield Found(Foreign(name, instance=True))
                case Unclear():
                    yield UNCLEAR

    # ---- operations, contexts, decorators ---------------------------------------------------------------------

    def shown(self, node: ast.expr, scope: Scope, *names: str) -> Answers:
        """What an object gives by the first of its special methods; what has none here, as it is."""
        given: list[Answers | None] = []
        for each in self._known.infer(node, scope):
            owner = each.value if isinstance(each.value, Instance) else None
            methods = [found for name in names if owner is not None for found in self._known.methods(owner, name)]
            scopes = [found.value.scope for found in methods if isinstance(found.value, FunctionValue)]
            given += [self.returned(method) for method in scopes] or [(each,)]
        return joined(given)

    def awaited(self, node: ast.expr, scope: Scope) -> Answers:
        """What ``await`` gives: what the coroutine returns, or what the ``__await__`` of an object does."""
        found = self._known.infer(node, scope)
        shown = self.shown(node, scope, "__await__")
        return found if shown == found else joined([found, shown])

    def entered(self, context: ast.expr, holder: Scope) -> Answers:
        """What ``with context as name`` binds: what ``__enter__`` gives; of others the object itself."""
        shown: list[Answers | None] = []
        for each in self.shown(context, holder, "__enter__", "__aenter__"):
            if isinstance(each.value, Container):
                held = each.value.elements[:1] if each.value.name.endswith(_MANAGERS) else ()
                shown += [self._known.annotated(part, each.value.scope) for part in held] or [()]
            else:
                shown.append((each,))
        return joined(shown)

    def put_in_place(self, decorators: Sequence[ast.expr], holder: Scope) -> Iterator[Answers]:
        """What the decorators of a class put in its place; those of others are taken to give it back."""
        for found in (each for node in decorators for each in self._known.infer(node, holder)):
            match found.value:
                case FunctionValue(scope=scope):
                    yield from self._given_back(scope)
                case ClassValue(scope=scope):
                    yield (Found(Instance(scope, exact=True), Confidence.NAME),)
                case Instance():
                    for method in self._known.methods(found.value, "__call__"):
                        if isinstance(method.value, FunctionValue):
                            yield from self._given_back(method.value.scope)

    def _given_back(self, scope: Scope) -> Iterator[Answers]:
        """What a decorator returns, but for what it gets."""
        node = scope.node
        values = [node.body] if isinstance(node, ast.Lambda) else []
        values = return_values(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else values
        given = [*node.args.posonlyargs, *node.args.args] if isinstance(node, FunctionNode) else []
        own = {each.arg for each in given}
        for value in values:
            found = self._known.infer(value, scope)
            ours = [each for each in found if not isinstance(each.value, Foreign)]
            if not (isinstance(value, ast.Name) and value.id in own) and (ours or not found):
                yield lowered(ours, Confidence.NAME)

    def returned(self, scope: Scope) -> Answers:
        """What a function gives back, by its annotation, else by its ``return`` statements."""
        node = scope.node
        if isinstance(node, ast.Lambda):
            return self._known.infer(node.body, scope)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return ()
        if node.returns is not None:
            found = self._known.annotated(node.returns, scope.parent or scope)
            if found:
                return found
        return tuple(dict.fromkeys(found for value in return_values(node) for found in self._known.infer(value, scope)))
