"""Functions that are given to another one: ``@f.register`` and ``f.register(int, g)`` (functools.singledispatch)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from patchkit.bindings import nodes_of
from patchkit.inference import Inference
from patchkit.programs import Scope
from patchkit.values import FunctionValue

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
            for scope in module.scopes:
                for target, given in self._in_scope(scope):
                    if target is not given:
                        found.setdefault(target, {})[given] = None
        return found

    def _in_scope(self, scope: Scope) -> Iterator[tuple[Scope, Scope]]:
        for node, _ in nodes_of(scope.node):
            match node:
                case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
                    for decorator in decorators:
                        called = decorator.func if isinstance(decorator, ast.Call) else decorator
                        yield from ((target, scope.child(node)) for target in self._targets(called, scope))
                case ast.Expr(value=ast.Call(func=ast.Attribute() as func, args=args)):
                    for target in self._targets(func, scope) if not scope.is_function else ():
                        for given in (found.value for each in args for found in self._inference.infer(each, scope)):
                            if isinstance(given, FunctionValue):
                                yield target, given.scope

    def _targets(self, node: ast.expr, scope: Scope) -> Iterator[Scope]:
        if isinstance(node, ast.Attribute) and node.attr not in _PROPERTY:
            for found in self._inference.infer(node.value, scope):
                if isinstance(found.value, FunctionValue):
                    yield found.value.scope
