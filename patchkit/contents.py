"""What a container holds: the elements of displays, comprehensions and annotated containers, as far as text tells."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patchkit.audited import Confidence
from patchkit.programs import Scope
from patchkit.values import UNCLEAR, Answers, Container, Foreign, Found, Record, Unclear, joined, lowered

Ask = Callable[[ast.expr, Scope], Answers]
"""What an expression in a scope may be."""

TAKING = ("get", "pop", "setdefault", "popleft")
"""Methods that give one element of what they are called on."""

_PASSING = ("list", "tuple", "set", "reversed", "sorted", "iter")


def elements(node: ast.expr, scope: Scope, infer: Ask, annotated: Ask) -> Answers:
    """What an element of the container ``node`` may be, by name only: which one is taken is not known."""
    match node:
        case ast.Call(func=ast.Attribute(attr="values" | "copy", value=inner)):
            return elements(inner, scope, infer, annotated)
        case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _PASSING:
            return elements(inner, scope, infer, annotated)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return joined(elements(each, scope, infer, annotated) for each in (left, right))
    return tuple(found for base in infer(node, scope) for found in _held(base, infer, annotated))


def _held(base: Found, infer: Ask, annotated: Ask) -> Iterator[Found]:
    match base.value:
        case Record(node=ast.Dict(values=values), scope=within):
            yield from _any_of(values, within, infer)
        case Record(node=ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values), scope=within):
            yield from _any_of(values, within, infer)
        case Record(node=ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.DictComp(value=value), scope=within):
            yield from _any_of([value], within, infer)
        case Container(element=element, scope=within):
            yield from lowered(annotated(element, within), Confidence.ATTRIBUTE)
        case Foreign(name="pathlib.Path.parents"):
            yield Found(Foreign("pathlib.Path", instance=True), base.confidence)
        case Unclear():
            yield UNCLEAR


def _any_of(values: list[ast.expr], scope: Scope, infer: Ask) -> Answers:
    return lowered(joined(None if is_nothing(each) else infer(each, scope) for each in values), Confidence.NAME)


def is_nothing(node: ast.expr) -> bool:
    """Whether an expression is ``None``, which nobody calls."""
    return isinstance(node, ast.Constant) and node.value is None
