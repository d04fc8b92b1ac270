"""What an annotation speaks of: the names of classes in it (PEP 484, PEP 604)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchkit.classes import last_name
from patchkit.syntax import PARSE_ERRORS, parse

_INNER = ("Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired")


def named_by(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that name a class which a value so annotated may have; of ``list[X]`` that is ``list``."""
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
        case ast.Subscript(value=value):
            yield from named_by(value)
        case ast.Name() | ast.Attribute():
            yield node
