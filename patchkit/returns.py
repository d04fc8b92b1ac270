"""What calls give back: instances of classes, what functions return, and what is known of calls of others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from patchkit.classes import return_values
from patchkit.hazards import HazardTable
from patchkit.programs import Scope
from patchkit.results import IMPORTING, RESULTS, SAME
from patchkit.values import (
    UNCLEAR,
    Answers,
    ClassValue,
    Foreign,
    Found,
    FunctionValue,
    Instance,
    Record,
    Unclear,
    Value,
    Wrapping,
)


class Known(Protocol):
    """What is known of the other expressions of a program (`Inference`)."""

    table: HazardTable

    def infer(self, node: ast.expr, scope: Scope) -> Answers: ...
    def member(self, base: Value, name: str) -> Answers: ...
    def imported(self, module: str, name: str) -> Answers: ...
    def annotated(self, node: ast.expr, scope: Scope) -> Answers: ...
    def ancestors(self, scope: Scope) -> Iterator[Scope | Foreign]: ...
    def method(self, scope: Scope, name: str) -> Scope | None: ...


class Returns:
    """Answers on calls, from what is ``known`` of everything else."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def result(self, callee: Value, call: ast.Call, scope: Scope) -> Answers:
        """What a call of ``callee``, which stands in ``scope``, gives."""
        match callee:
            case ClassValue(scope=of):
                return (Found(Instance(of)),)
            case FunctionValue(scope=of):
                return self.returned(of)
            case Instance(of=of):
                method = self._known.method(of, "__call__")
                return self.returned(method) if method is not None else ()
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

    def _foreign_result(self, name: str, call: ast.Call, scope: Scope) -> Answers:
        if name in SAME:
            handed = [each for value in call.args[:1] for each in self._known.infer(value, scope)]
            return tuple(self._prepared(each, call) for each in handed if not getattr(each.value, "instance", False))
        if name == "types.SimpleNamespace":
            return (Found(Record(call, scope)),)
        if name in ("getattr", "super", *IMPORTING):
            return self._special(name, call, scope)
        last = name.rpartition(".")[2]
        result = RESULTS.get(name) or (name if last[:1].isupper() else f"{name}()")
        return (Found(Foreign(result, instance=True)),)

    def _special(self, name: str, call: ast.Call, scope: Scope) -> Answers:
        """What ``getattr(x, "name")``, ``super()`` and ``import_module("name")`` give."""
        match call.args:
            case [ast.Constant(value=str(module)), *_] if name in IMPORTING and module[:1] != ".":
                return self._known.imported(module, "") if module else ()
            case [value, ast.Constant(value=str(attribute)), *_] if name == "getattr":
                return tuple(
                    each
                    for base in self._known.infer(value, scope)
                    for each in self._known.member(base.value, attribute)
                )
            case [] if name == "super":
                owner = scope.enclosing_class
                above = (
                    [each for each in self._known.ancestors(owner) if each is not owner] if owner is not None else []
                )
                return tuple(
                    Found(Instance(each) if isinstance(each, Scope) else Foreign(each.name, instance=True))
                    for each in above[:1]
                )
        return ()

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
