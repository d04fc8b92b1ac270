"""Functions that are given to another one: ``@f.register`` and ``f.register(int, g)`` (functools.singledispatch)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from patchkit.inference import Inference
from patchkit.programs import Module, Scope
from patchkit.values import FunctionValue, Instance

_Handed: TypeAlias = Scope | list[ast.expr]
"""A function that is decorated, or the arguments of a call."""

_PROPERTY = ("setter", "deleter", "getter")


class Registrations:
    """Which functions another function may call because they were given to it where they are defined."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference

    def of(self, scope: Scope) -> tuple[Scope, ...]:
        """The functions that were given to ``scope``."""
        return tuple(self._found.get(scope, ()))

    @cached_property
    def _found(self) -> dict[Scope, dict[Scope, None]]:
        found: dict[Scope, dict[Scope, None]] = {}
        for module in self._inference.surroundings.modules:
            for asked, handed, scope in module.learn("registrations", _candidates):
                for target in self._targets(asked, scope):
                    for given in self._given(handed, scope):
                        if target is not given:
                            found.setdefault(target, {})[given] = None
        return found

    def _given(self, handed: _Handed, scope: Scope) -> Iterator[Scope]:
        if isinstance(handed, Scope):
            yield handed
        else:
            values = (found.value for each in handed for found in self._inference.infer(each, scope))
            yield from (value.scope for value in values if isinstance(value, FunctionValue))

    def _targets(self, node: ast.expr, scope: Scope) -> Iterator[Scope]:
        if isinstance(node, ast.Attribute) and node.attr not in _PROPERTY:
            for found in self._inference.infer(node.value, scope):
                if isinstance(found.value, FunctionValue):
                    yield found.value.scope
                elif isinstance(found.value, Instance) and node.attr.startswith("register_"):  # a hook of a module
                    run = (each.value for each in self._inference.methods(found.value, "forward"))
                    yield from (each.scope for each in run if isinstance(each, FunctionValue))


def _candidates(module: Module) -> list[tuple[ast.Attribute, _Handed, Scope]]:
    """Attributes that a module decorates a function with, or calls at its left edge, with what they get."""
    found: list[tuple[ast.Attribute, _Handed, Scope]] = []
    for scope in module.scopes:
        for node, _ in scope.nodes:
            match node:
                case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
                    for decorator in decorators:
                        called = decorator.func if isinstance(decorator, ast.Call) else decorator
                        if isinstance(called, ast.Attribute):
                            found.append((called, scope.child(node), scope))
                case ast.Expr(value=ast.Call(func=ast.Attribute() as func, args=args)) if not scope.is_function:
                    found.append((func, args, scope))
    return found
