"""Which special methods a piece of syntax may call, and of which operand (the Python reference, "Data model")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

Operation: TypeAlias = tuple[ast.expr, tuple[str, ...]]

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_UNARY: dict[type[ast.unaryop], tuple[str, ...]] = {
    ast.USub: ("__neg__",),
    ast.UAdd: ("__pos__",),
    ast.Invert: ("__invert__",),
    ast.Not: ("__bool__", "__len__"),
}
_TRUTH = ("__bool__", "__len__")
_ITERATION = ("__iter__", "__next__", "__getitem__", "__len__", "__length_hint__")
_TEXT = ("__format__", "__str__", "__repr__")
_HASH = ("__hash__", "__eq__")
_MAPPING = ("keys", "__getitem__")
_MATCH = ("__eq__", "__len__", "__getitem__", "__iter__", "__contains__")
_COMPARISONS: dict[type[ast.cmpop], tuple[tuple[str, ...], tuple[str, ...]]] = {  # of the left and the right operand
    ast.Eq: (("__eq__",), ("__eq__",)),
    ast.NotEq: (("__ne__", "__eq__"), ("__ne__", "__eq__")),
    ast.Lt: (("__lt__",), ("__gt__",)),
    ast.LtE: (("__le__",), ("__ge__",)),
    ast.Gt: (("__gt__",), ("__lt__",)),
    ast.GtE: (("__ge__",), ("__le__",)),
    ast.In: (_HASH, ("__contains__", *_ITERATION)),
    ast.NotIn: (_HASH, ("__contains__", *_ITERATION)),
}
_ITEM: dict[type[ast.expr_context], tuple[str, ...]] = {
    ast.Load: ("__getitem__", "__missing__", "__class_getitem__"),
    ast.Store: ("__setitem__",),
    ast.Del: ("__delitem__",),
}

CONSTRUCTION = ("__new__", "__init__", "__post_init__")
NOT_IMPLICIT = frozenset((*CONSTRUCTION, "__call__", "__init_subclass__", "__class_getitem__", "__set_name__"))
"""Special methods that an object's class has and that nothing but a piece of syntax of their own calls."""


def is_implicit(name: str) -> bool:
    """Whether a method of that name may be called without being named: special ones, and hooks as ``_missing_``."""
    special = name.startswith("__") and name.endswith("__")
    hook = len(name) > 2 and name[0] == name[-1] == "_" and name[1] != "_"
    return (special or hook) and name not in NOT_IMPLICIT


def operations(node: ast.AST) -> Iterator[Operation]:
    """The operands of ``node``, a statement or an expression, each with the special methods that it may call."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            name = _BINARY[type(op)]
            yield left, (f"__{name}__", *(_TEXT if isinstance(op, ast.Mod) else ()))
            yield right, (f"__r{name}__", *(_TEXT if isinstance(op, ast.Mod) else ()))
        case ast.AugAssign(target=target, op=op, value=value):
            name = _BINARY[type(op)]
            yield target, (f"__i{name}__", f"__{name}__")
            yield value, (f"__r{name}__",)
        case ast.UnaryOp(op=op, operand=operand):
            yield operand, _UNARY[type(op)]
        case ast.Compare(left=left, ops=ops, comparators=others):
            for first, comparison, second in zip([left, *others], ops, others, strict=False):
                names = _COMPARISONS.get(type(comparison))
                if names is not None:
                    yield first, names[0]
                    yield second, names[1]
        case ast.BoolOp(values=values):
            yield from ((value, _TRUTH) for value in values)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            yield test, _TRUTH
        case ast.Subscript(value=value, slice=index, ctx=context):
            yield value, _ITEM[type(context)]
            yield index, ("__index__", *_HASH)
        case ast.FormattedValue(value=value):
            yield value, _TEXT
        case ast.Await(value=value):
            yield value, ("__await__",)
        case ast.Dict(keys=keys, values=values):
            yield from ((key, _HASH) for key in keys if key is not None)
            yield from ((each, _MAPPING) for key, each in zip(keys, values, strict=True) if key is None)
        case ast.Call(keywords=keywords):
            yield from ((each.value, _MAPPING) for each in keywords if each.arg is None)
        case ast.Set(elts=elements):
            yield from ((each, _HASH) for each in elements)
        case _:
            yield from _iterations(node)


def _iterations(node: ast.AST) -> Iterator[Operation]:
    """What is iterated over, entered or matched."""
    match node:
        case ast.For(iter=iterable) | ast.YieldFrom(value=iterable) | ast.Starred(value=iterable):
            yield iterable, _ITERATION
        case ast.AsyncFor(iter=iterable):
            yield iterable, ("__aiter__", "__anext__")
        case ast.ListComp(generators=each) | ast.SetComp(generators=each) | ast.GeneratorExp(generators=each):
            yield from _comprehended(each)
        case ast.DictComp(generators=each, key=key):
            yield from _comprehended(each)
            yield key, _HASH
        case ast.Assign(targets=targets, value=value):
            if any(isinstance(target, ast.Tuple | ast.List) for target in targets):
                yield value, _ITERATION
        case ast.With(items=items):
            yield from ((item.context_expr, ("__enter__", "__exit__")) for item in items)
        case ast.AsyncWith(items=items):
            yield from ((item.context_expr, ("__aenter__", "__aexit__")) for item in items)
        case ast.Match(subject=subject):
            yield subject, _MATCH


def _comprehended(generators: list[ast.comprehension]) -> Iterator[Operation]:
    for each in generators:
        yield each.iter, ("__aiter__", "__anext__") if each.is_async else _ITERATION
        yield from ((test, _TRUTH) for test in each.ifs)
