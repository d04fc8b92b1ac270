"""What a container holds: the elements of displays, comprehensions and annotated containers, as far as text tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from patchkit.audited import Confidence
from patchkit.classes import is_nothing
from patchkit.members import Members
from patchkit.mutations import Mutations
from patchkit.programs import Scope
from patchkit.values import (
    UNCLEAR,
    Answers,
    ClassValue,
    Container,
    Display,
    Foreign,
    Found,
    Record,
    Unclear,
    joined,
    lowered,
)


class Known(Protocol):
    """What is known of the other expressions of a program (`Inference`)."""

    members: Members
    mutations: Mutations

    def infer(self, node: ast.expr, scope: Scope) -> Answers: ...
    def elements(self, container: ast.expr, scope: Scope) -> Answers: ...
    def annotated(self, node: ast.expr, scope: Scope) -> Answers: ...


TAKING = ("get", "pop", "setdefault", "popleft")
"""Methods that give one element of what they are called on."""

_PASSING = ("list", "tuple", "set", "reversed", "sorted", "iter")


def elements(node: ast.expr, scope: Scope, known: Known) -> Answers:
    """What an element of the container ``node`` may be, by name only: which one is taken is not known."""
    match node:
        case ast.Call(func=ast.Attribute(attr="values" | "copy", value=inner)):
            return known.elements(inner, scope)
        case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _PASSING:
            return known.elements(inner, scope)
        case ast.BinOp(left=left, op=ast.Add() | ast.BitOr(), right=right):
            return joined(known.elements(each, scope) for each in (left, right))
    return joined(tuple(_held(base, node, scope, known)) for base in known.infer(node, scope))


def _held(base: Found, asked: ast.expr, scope: Scope, known: Known) -> Iterator[Found]:
    match base.value:
        case Record(node=node, scope=within):
            yield from lowered(joined(_contents(node, within, asked, scope, known)), Confidence.NAME)
        case Container(elements=held, scope=within):
            yield from lowered(joined(known.annotated(each, within) for each in held), Confidence.ATTRIBUTE)
        case Foreign(name="pathlib.Path.parents"):
            yield Found(Foreign("pathlib.Path", instance=True), base.confidence)
        case ClassValue(scope=of):
            yield from known.members.members_of(of)
        case Unclear():
            yield UNCLEAR


def _contents(
    node: ast.Call | Display, home: Scope, asked: ast.expr, scope: Scope, known: Known
) -> Iterator[Answers | None]:
    """What was put into a display: what stands in it, and what is added to it afterwards."""
    yield from _written(node, home, known)
    for use in known.mutations.of(node, home, asked, scope):
        yield from (None if is_nothing(each) else known.infer(each, use.scope) for each in use.added)
        yield from (known.elements(each, use.scope) for each in use.joined)
        if use.escapes:
            yield (UNCLEAR,)


def _written(node: ast.Call | Display, scope: Scope, known: Known) -> Iterator[Answers | None]:
    match node:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                yield known.elements(value, scope) if key is None else _one(value, scope, known)
            yield from (_one(key, scope, known) for key in keys if key is not None and _may_be_called(key))
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
            for value in values:
                if isinstance(value, ast.Starred):
                    yield known.elements(value.value, scope)
                else:
                    yield _one(value, scope, known)
        case ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.DictComp(value=value):
            yield _one(value, scope, known)


def _one(node: ast.expr, scope: Scope, known: Known) -> Answers | None:
    return None if is_nothing(node) else known.infer(node, scope)


def _may_be_called(key: ast.expr) -> bool:
    """Whether a key of a table is more than a word: a loop over the table gives its keys."""
    return isinstance(key, ast.Name | ast.Attribute | ast.Lambda | ast.Call)
