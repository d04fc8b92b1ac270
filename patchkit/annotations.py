"""What an annotation speaks of: the names of classes in it, and the instances of these (PEP 484, PEP 604)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from patchkit.classes import last_name
from patchkit.lineage import Lineage
from patchkit.programs import Scope
from patchkit.results import TYPING, VAGUE
from patchkit.syntax import PARSE_ERRORS, parse
from patchkit.values import Answers, ClassValue, Container, Foreign, Found, Instance

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


class Known(Protocol):
    """What is known of the other expressions of a program (`Inference`)."""

    lineage: Lineage

    def infer(self, node: ast.expr, scope: Scope) -> Answers: ...


def instances(node: ast.expr, scope: Scope, known: Known) -> Answers:
    """The instances that an annotation speaks of; those that say nothing are left out."""
    return tuple(found for name, held in named_by(node) for found in instances_of(name, held, scope, known))


def instances_of(node: ast.expr, held: ast.expr | None, scope: Scope, known: Known) -> Iterator[Found]:
    """The instances of what ``node`` names, with elements as ``held`` tells."""
    for found in known.infer(node, scope):
        match found.value:
            case Foreign(name="type" | "typing.Type"):
                yield from _subclasses_of(held, scope, known) if held is not None else ()
            case Foreign(instance=True):  # a variable, such as a TypeVar
                pass
            case Foreign(name=name) if held is not None and name not in VAGUE:
                yield Found(Container(name, held, scope), found.confidence)
            case ClassValue(scope=of) if not _is_protocol(of, known):
                yield Found(Instance(of), found.confidence)
            case Foreign(name=name) if name not in VAGUE and not name.startswith(TYPING):
                yield Found(Foreign(name, instance=True), found.confidence)


def _subclasses_of(node: ast.expr, scope: Scope, known: Known) -> Iterator[Found]:
    for found in known.infer(node, scope):
        if isinstance(found.value, ClassValue):
            yield replace(found, value=ClassValue(found.value.scope, exact=False))


def _is_protocol(scope: Scope, known: Known) -> bool:
    """Whether any class may be meant that has the same methods (PEP 544)."""
    names = [each.name for each in known.lineage.bases(scope) if isinstance(each, Foreign)]
    return any(name.endswith(".Protocol") for name in names)
