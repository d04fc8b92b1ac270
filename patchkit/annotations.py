"""What an annotation speaks of: the names of classes in it, and the instances of these (PEP 484, PEP 604)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol, TypeAlias

from patchkit.classes import last_name
from patchkit.lineage import Lineage
from patchkit.programs import Scope
from patchkit.results import TYPING, VAGUE
from patchkit.syntax import PARSE_ERRORS, parse
from patchkit.values import Answers, ClassValue, Container, Foreign, Found, Instance, joined

_MAPPINGS = ("dict", "Dict", "Mapping", "OrderedDict", "defaultdict", "DefaultDict", "ItemsView")
_GENERATORS = ("Generator",)
_PLAIN = ("str", "int", "float", "bool", "bytes", "complex")
_INNER = ("Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired")


Named: TypeAlias = tuple[ast.expr, tuple[ast.expr, ...]]


def named_by(node: ast.expr) -> Iterator[Named]:
    """The expressions that name a class which a value so annotated may have, each with the annotations of its parts.

    Of ``list[X]`` that is ``list`` with ``X``, of ``dict[K, X]`` ``dict`` with both, of ``X`` itself ``X`` with none.
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
            alternatives = inner_part.elts if isinstance(inner_part, ast.Tuple) else [inner_part]
            for each in alternatives[:1] if last_name(value) == "Annotated" else alternatives:
                yield from named_by(each)
        case ast.Subscript(value=value, slice=held):
            parts = tuple(held.elts) if isinstance(held, ast.Tuple) else (held,)
            yield from ((name, parts) for name, _ in named_by(value))
        case ast.Constant(value=None):
            pass
        case _:
            yield node, ()


def _elements(name: str, parts: tuple[ast.expr, ...], scope: Scope, known: Known) -> tuple[ast.expr, ...]:
    """Which of the parts of an annotation speak of an element: of a mapping also the keys, if they are objects of
    classes here; plain values beside others are left out, for they have nothing that could be meant."""
    if name.endswith(_MAPPINGS):
        keys = [
            key for key in parts[:-1] if any(isinstance(each.value, Instance) for each in known.annotated(key, scope))
        ]
        return (*keys, *parts[-1:])
    if name.endswith(_GENERATORS):
        return parts[:1]
    telling = tuple(each for each in parts if not (isinstance(each, ast.Constant) and each.value is ...))
    return tuple(each for each in telling if last_name(each) not in _PLAIN) or telling[:1]


class Known(Protocol):
    """What is known of the other expressions of a program (`Inference`)."""

    lineage: Lineage

    def infer(self, node: ast.expr, scope: Scope) -> Answers: ...
    def annotated(self, node: ast.expr, scope: Scope) -> Answers: ...


def instances(node: ast.expr, scope: Scope, known: Known) -> Answers:
    """The instances that an annotation speaks of: nothing where no part of it says anything."""
    return joined(instances_of(name, parts, scope, known) for name, parts in named_by(node))


def instances_of(node: ast.expr, parts: tuple[ast.expr, ...], scope: Scope, known: Known) -> Answers:
    """The instances of what ``node`` names, with elements as ``parts`` tell."""
    return joined(tuple(_instances(found, parts, scope, known)) for found in known.infer(node, scope))


def _instances(found: Found, parts: tuple[ast.expr, ...], scope: Scope, known: Known) -> Iterator[Found]:
    match found.value:
        case Foreign(name="type" | "typing.Type"):
            yield from _subclasses_of(parts, scope, known)
        case Foreign(instance=True):  # a variable, such as a TypeVar
            pass
        case Foreign(name=name) if parts and name not in VAGUE:
            yield Found(Container(name, _elements(name, parts, scope, known), scope), found.confidence)
        case ClassValue(scope=of) if not _is_protocol(of, known):
            yield Found(Instance(of), found.confidence)
        case Foreign(name=name) if name not in VAGUE and not name.startswith(TYPING):
            yield Found(Foreign(name, instance=True), found.confidence)


def _subclasses_of(parts: tuple[ast.expr, ...], scope: Scope, known: Known) -> Iterator[Found]:
    for part in parts:
        for found in known.infer(part, scope):
            if isinstance(found.value, ClassValue):
                yield replace(found, value=ClassValue(found.value.scope, exact=False))


def _is_protocol(scope: Scope, known: Known) -> bool:
    """Whether any class may be meant that has the same methods (PEP 544)."""
    names = [each.name for each in known.lineage.bases(scope) if isinstance(each, Foreign)]
    return any(name.endswith(".Protocol") for name in names)
