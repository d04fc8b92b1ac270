"""What ``isinstance`` says of the expressions of a function: the classes that they are asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.bindings import own_expressions
from patchkit.branches import walk
from patchkit.programs import Scope


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A class that an expression was asked for; ``sure``: by ``assert``, so that it is nothing else."""

    of: ast.expr
    sure: bool


class Narrowings:
    """The narrowings of functions, each looked for once."""

    def __init__(self) -> None:
        self._found: dict[Scope, dict[str, list[Narrowing]]] = {}

    def of(self, node: ast.expr, scope: Scope) -> list[Narrowing]:
        """What the expression ``node`` is asked for in the function ``scope``."""
        if scope not in self._found:
            self._found[scope] = find_narrowings(scope)
        return self._found[scope].get(text_of(node), []) if self._found[scope] else []


def find_narrowings(scope: Scope) -> dict[str, list[Narrowing]]:
    """All of them in a function, by the text of the expression."""
    found: dict[str, list[Narrowing]] = {}
    node = scope.node
    if b"isinstance(" not in scope.module.data or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return found
    for placed in walk(node.body):
        asserted = placed.node.test if isinstance(placed.node, ast.Assert) else None
        for expression in own_expressions(placed.node):
            match expression:
                case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() | ast.Attribute() as subject, kind]):
                    for each in _classes(kind):
                        found.setdefault(text_of(subject), []).append(Narrowing(each, expression is asserted))
    return found


def _classes(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Tuple(elts=elements):
            yield from elements
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _classes(left)
            yield from _classes(right)
        case _:
            yield node


def text_of(node: ast.expr) -> str:
    """A dotted name as text, "" for what is none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
