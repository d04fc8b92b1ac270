"""Whether what makes functions opaque really does: whatever the conditions, and whoever calls them by which name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patchkit.audited import Effect
from patchkit.bindings import Defined
from patchkit.classes import return_values
from patchkit.facts import Maker
from patchkit.hazards import HazardTable
from patchkit.inference import Inference
from patchkit.programs import Scope
from patchkit.syntax import excerpt
from patchkit.values import Foreign, Found, FunctionValue

_RUNNING = frozenset({"map", "filter", "sorted", "min", "max", "sum", "any", "all", "list", "tuple", "next", "reduce"})
"""Functions that call what they are handed and are done with it before they return, or soon after."""


class Opacity:
    """Answers for one program. ``maker`` is what a function comes to, None where it comes to none."""

    def __init__(self, inference: Inference, table: HazardTable, maker: Callable[[Scope], Maker | None]) -> None:
        self._inference = inference
        self._table = table
        self._maker = maker
        self._busy: set[Scope] = set()

    def maker(self, decorator: Scope, *, called: bool) -> Maker | None:
        """The maker that a decorator comes to in every case; ``called``: it is given arguments of its own first.

        One that registers an operator gives back the function, or nothing: that says nothing against it.
        """
        maker = self._maker(decorator)
        if maker is None:
            return None
        given = self._made_by(decorator) if called else [decorator]
        results = [self._is_opaque(value, scope) for scope in given for value in returned(scope)]
        is_plain = not any(results) and maker[1] is Effect.OPERATOR
        return maker if is_plain or (results and all(results)) else None

    def _made_by(self, scope: Scope) -> list[Scope]:
        """The functions that a decorator with arguments gives, that get the function in their turn."""
        values = [found.value for found in self._inference.returned(scope)]
        return [value.scope for value in values if isinstance(value, FunctionValue)]

    def _is_opaque(self, value: ast.expr, scope: Scope) -> bool:
        """Whether an expression that a function returns is opaque, or makes so what it gets in its turn."""
        found = self._inference.infer(value, scope)
        return bool(found) and all(self._is_opaque_value(each) for each in found)

    def _is_opaque_value(self, found: Found) -> bool:
        match found.value:
            case FunctionValue(wrapping=None, scope=scope):
                if scope in self._busy:
                    return True
                self._busy.add(scope)
                try:
                    values = returned(scope)
                    return bool(values) and all(self._is_opaque(each, scope) for each in values)
                finally:
                    self._busy.discard(scope)
            case FunctionValue():
                return True
            case Foreign(name=name):
                return name.removesuffix("()") in self._table.opaque
            case _:
                return False


def returned(scope: Scope) -> list[ast.expr]:
    """The expressions that a function or a lambda gives back."""
    node = scope.node
    if isinstance(node, ast.Lambda):
        return [node.body]
    return return_values(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


def is_fallback(found: Found) -> bool:
    """Whether a function is what a module makes do with where it cannot import another."""
    scope = found.value.scope if isinstance(found.value, FunctionValue) else None
    bound = scope.parent.namespace.names.get(scope.name, ()) if scope is not None and scope.parent is not None else ()
    blocks = [
        block
        for each in bound
        if isinstance(each, Defined) and scope and each.node is scope.node
        for block in each.branch
    ]
    return any(block.word.startswith("except") and "Error" in str(block) for block in blocks)


def stays_inside(inner: Scope) -> bool:
    """Whether a function that stands in another one is called only while that one runs, as far as text tells."""
    holder = inner.parent
    if holder is None or not holder.is_function:
        return True
    uses = list(_uses(inner, holder))
    return all(_is_call(node, around) for node, around in uses)


def _uses(inner: Scope, holder: Scope) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes that stand for ``inner`` in the function around it and in those inside of that."""
    for scope in (holder, *holder.inner):
        for node, around in scope.nodes:
            is_name = isinstance(node, ast.Name) and node.id == inner.name and isinstance(node.ctx, ast.Load)
            if (node is inner.node and isinstance(node, ast.Lambda)) or is_name:
                yield node, around


def _is_call(node: ast.AST, around: ast.AST) -> bool:
    """Whether it is called there, or handed to what calls it at once."""
    if isinstance(around, ast.keyword):
        return around.arg == "key"
    if not isinstance(around, ast.Call):
        return False
    return around.func is node or excerpt(around.func).rpartition(".")[2] in _RUNNING
