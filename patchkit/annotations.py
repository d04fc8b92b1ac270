"""What an annotation speaks of: the names of classes in it (PEP 484, PEP 604)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchkit.classes import last_name
from patchkit.syntax import PARSE_ERRORS, parse

_INNER = ("Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired")


def named_by(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The expressions that name a class which a value so annotated may have, each with the annotation of its elements.

    Of ``list[X]`` that is ``list`` with ``X``, of ``dict[K, X]`` ``dict`` with ``X``, of ``X`` itself ``X`` with None.
    """
    match node:
        case ast.Constant(value=str(text)):
            try:
                inner = parse(text.strip()).body
            except PARSE_ERRORS:
                return
            if len(inner) == 1 and isinstance(inner[0], ast.Expr):
                yield from named_by(inner[0].value)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from named_by(left)
            yield from named_by(right)
        case ast.Subscript(value=value, slice=inner_part) if last_name(value) in _INNER:
            for each in inner_part.elts if isinstance(inner_part, ast.Tuple) else [inner_part]:
                yield from named_by(each)
        case ast.Subscript(value=value, slice=held):
            parts = held.elts if isinstance(held, ast.Tuple) else [held]
            element = next((each for each in reversed(parts) if not _is_ellipsis(each)), None)
            yield from ((name, element) for name, _ in named_by(value))
        case ast.Name() | ast.Attribute():
            yield node, None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
