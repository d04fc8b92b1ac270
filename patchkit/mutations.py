"""What becomes of a display, such as a table of functions, after it is written down: what is added to it, who gets it.

A display that is only read holds what stands in it. Every other use of a name for it is looked at: what is put in where
that is plain, else nobody knows what it holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from patchkit.bindings import Imported
from patchkit.programs import Module, Scope
from patchkit.surroundings import Surroundings
from patchkit.values import Display

_READING = frozenset(
    (
        "get",
        "items",
        "keys",
        "values",
        "copy",
        "index",
        "count",
        "pop",
        "popleft",
        "popitem",
        "remove",
        "clear",
        "sort",
        "reverse",
        "discard",
    )
)
_ADDING = frozenset(("append", "add", "insert", "setdefault", "appendleft"))
_JOINING = frozenset(("extend", "update"))
_LOOKING = frozenset(
    (
        "len",
        "sorted",
        "list",
        "tuple",
        "set",
        "dict",
        "iter",
        "next",
        "enumerate",
        "zip",
        "any",
        "all",
        "sum",
        "min",
        "max",
        "print",
        "str",
        "repr",
        "isinstance",
        "reversed",
        "bool",
        "type",
        "id",
        "range",
        "frozenset",
        "map",
        "filter",
    )
)
_METHODS = frozenset(name for kind in (list, dict, set) for name in dir(kind))


Named: TypeAlias = ast.Name | ast.Attribute | ast.Subscript


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a name or an attribute: what is added there, or that it may be anybody's afterwards (``escapes``).

    ``asked``: one of its attributes is asked for. ``deep``: one of its elements is changed, ``table["x"].add(f)``."""

    node: Named
    scope: Scope
    added: tuple[ast.expr, ...] = ()
    joined: tuple[ast.expr, ...] = ()
    escapes: bool = False
    asked: bool = False
    deep: bool = False


_MOST = 24
"""Where a display is changed in more places than this, it is not looked into what it holds."""


class Mutations:
    """The uses of names in the surroundings, a module's found when it is first asked for."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._attributes: dict[str, list[Use]] = {}
        self._modules: dict[str, list[Module]] = {}

    def of(self, display: ast.Call | Display, home: Scope, asked: ast.expr, scope: Scope) -> list[Use]:
        """What is done to ``display``, which stands in ``home``, under its names and as ``asked`` in ``scope``."""
        names = [(asked, scope), *home.module.learn("bound", _bound).get(id(display), ())]
        found = dict.fromkeys(
            use
            for node, where in names
            for use in self._of_name(_root(node), where)
            if use.deep or not isinstance(node, ast.Subscript)
            if not use.deep or isinstance(node, ast.Subscript)
        )
        changing = [use for use in found if use.added or use.joined or use.escapes]
        return changing if len(changing) <= _MOST else [replace(changing[0], added=(), joined=(), escapes=True)]

    def is_handed_on(self, name: ast.Name, scope: Scope) -> bool:
        """Whether the object that a name of ``scope`` stands for is anybody's: not only asked for what it has."""
        return any(use.escapes and not use.asked and not use.deep for use in self._of_name(name, scope))

    def _of_name(self, node: ast.expr, scope: Scope) -> Iterator[Use]:
        match node:
            case ast.Attribute(attr=name):
                yield from self._everywhere(name)
            case ast.Name(id=name):
                holder = _holder(name, scope)
                if holder is None:
                    return
                if holder.is_class:
                    yield from self._everywhere(name)
                for use in holder.module.learn("uses", _uses).get(name, ()):
                    if isinstance(use.node, ast.Name) and _holder(name, use.scope) is holder:
                        yield use
                if holder is holder.module.scope:
                    yield from self._elsewhere(name, holder.module)

    def _everywhere(self, name: str) -> Iterator[Use]:
        """The uses of an attribute that change it, whatever it is one of."""
        if name not in self._attributes:
            uses = [use for module in self._mentioning(name) for use in module.learn("uses", _uses).get(name, ())]
            changing = (use for use in uses if use.added or use.joined or use.escapes)
            self._attributes[name] = [use for use in changing if isinstance(use.node, ast.Attribute)]
        yield from self._attributes[name]

    def _elsewhere(self, name: str, home: Module) -> Iterator[Use]:
        """The uses of a module's variable in other modules: as its attribute, or by the name it is imported by."""
        yield from self._everywhere(name)
        for module in self._mentioning(name):
            for use in module.learn("uses", _uses).get(name, ()) if module is not home else ():
                holder = _holder(name, use.scope)
                bound = holder.namespace.names[name] if holder is not None else ()
                if isinstance(use.node, ast.Name) and any(isinstance(each, Imported) for each in bound):
                    yield use

    def _mentioning(self, name: str) -> list[Module]:
        if name not in self._modules:
            word = name.encode()
            self._modules[name] = [
                module for module in self._surroundings.modules if not name.isascii() or word in module.data
            ]
        return self._modules[name]


def _root(node: ast.expr) -> ast.expr:
    """What a subscript is one of, of any depth."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _within(value: ast.expr) -> Iterator[ast.expr]:
    """The displays that stand in a display."""
    inner = [*value.values] if isinstance(value, ast.Dict) else []
    inner = [*value.elts] if isinstance(value, ast.List | ast.Tuple | ast.Set) else inner
    for each in inner:
        if isinstance(each, ast.Dict | ast.List | ast.Tuple | ast.Set):
            yield each
            yield from _within(each)


def _bound(module: Module) -> dict[int, list[tuple[ast.expr, Scope]]]:
    """By the value's node the names and attributes that are bound to it."""
    found: dict[int, list[tuple[ast.expr, Scope]]] = {}
    for scope in module.scopes:
        for node, _ in scope.nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    pass
                case (
                    ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value)
                ):
                    targets = [target]
                case _:
                    continue
            found.setdefault(id(value), []).extend((target, scope) for target in targets)
            for inner in _within(value):
                parts = (ast.Subscript(target, ast.Constant(0), ast.Load()) for target in targets)
                found.setdefault(id(inner), []).extend((part, scope) for part in parts)
    return found


def _uses(module: Module) -> dict[str, list[Use]]:
    """By name the uses of variables and attributes."""
    found: dict[str, list[Use]] = {}
    for scope in module.scopes:
        above: dict[int, ast.AST] = {}
        for node, around in scope.nodes:
            above[id(node)] = around
            if isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                found.setdefault(name, []).append(_use(node, around, above.get(id(around)), scope))
                part: Named = node
                beyond = around
                while isinstance(beyond, ast.Subscript) and beyond.value is part and isinstance(beyond.ctx, ast.Load):
                    part, beyond = beyond, above[id(beyond)]
                if part is not node:
                    use = _use(part, beyond, above.get(id(beyond)), scope)
                    if use.added or use.joined or use.escapes:
                        found[name].append(replace(use, node=node, deep=True))
    return found


def _holder(name: str, scope: Scope) -> Scope | None:
    """The scope that binds ``name`` where ``scope`` speaks of it."""
    holder: Scope | None = scope
    while holder is not None:
        space = holder.namespace
        if name in space.names and name not in space.outer and (not holder.is_class or holder is scope):
            return holder
        holder = holder.parent
    return None


def _use(node: Named, around: ast.AST, above: ast.AST | None, scope: Scope) -> Use:
    """What a use does, by the syntax around it."""
    match around:
        case ast.AugAssign(target=target, value=value) if target is node:
            return Use(node, scope, joined=(value,))
        case ast.Attribute(attr=name) if isinstance(above, ast.Call) and above.func is around:
            return _by_method(node, name, above, scope)
        case ast.Subscript(value=value, ctx=ast.Store()) if value is node:
            put = above.value if isinstance(above, ast.Assign | ast.AnnAssign) and above.value is not None else None
            return Use(node, scope, added=(put,)) if put is not None else Use(node, scope, escapes=True)
        case ast.Call(func=func, args=args) if node in args:
            return Use(node, scope, escapes=not (isinstance(func, ast.Name) and func.id in _LOOKING))
        case _ if isinstance(node.ctx, ast.Store | ast.Del) or _only_reads(node, around):
            return Use(node, scope)
        case _:
            return Use(node, scope, escapes=True, asked=isinstance(around, ast.Attribute))


def _by_method(node: Named, name: str, call: ast.Call, scope: Scope) -> Use:
    if name in _ADDING:
        return Use(node, scope, added=tuple(call.args[-1:]))
    if name in _JOINING:
        return Use(node, scope, added=tuple(each.value for each in call.keywords), joined=tuple(call.args))
    return Use(node, scope, escapes=name not in _READING, asked=True)


def _only_reads(node: ast.AST, around: ast.AST) -> bool:
    match around:
        case ast.Subscript(value=value) | ast.For(iter=value) | ast.comprehension(iter=value) if value is node:
            return True
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if test is node:
            return True
        case ast.Compare() | ast.Starred() | ast.FormattedValue() | ast.UnaryOp() | ast.Expr() | ast.BinOp():
            return True
        case ast.Dict(keys=keys, values=values):
            return any(key is None and value is node for key, value in zip(keys, values, strict=True))
        case ast.Call(func=func):
            return func is node
        case ast.keyword(arg=name):
            return name is None
        case ast.Attribute(attr=name):  # a method that is asked for and kept; else it is something of the same name
            return name not in _METHODS
        case _:
            return False
