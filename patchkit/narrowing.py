"""What ``isinstance`` says of the expressions of a function: the classes that they are asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.bindings import own_expressions
from patchkit.programs import Scope


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The classes that an expression was asked for; in the lines from ``first`` to ``last`` it is one of these, for it
    was asked by ``assert`` there."""

    kinds: tuple[ast.expr, ...]
    first: int = 0
    last: int = 0

    def is_sure(self, line: int) -> bool:
        return self.first <= line <= self.last


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
    for block in _blocks(node.body):
        for statement in block:
            asserted = statement.test if isinstance(statement, ast.Assert) else None
            for expression in own_expressions(statement):
                match expression:
                    case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() | ast.Attribute() as subject, kind]):
                        lines = (statement.lineno, _end(block)) if expression is asserted else ()
                        found.setdefault(text_of(subject), []).append(Narrowing(tuple(_classes(kind)), *lines))
    return found


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The blocks of one scope: what follows an ``assert`` in its block holds what that says."""
    yield body
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
            below = [getattr(each, name, None) for each in inner for name in ("body", "orelse", "finalbody")]
            for block in below:
                yield from _blocks(block) if isinstance(block, list) else ()


def _end(block: list[ast.stmt]) -> int:
    return block[-1].end_lineno or block[-1].lineno


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
