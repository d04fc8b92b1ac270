"""The bases of classes in the order in which attributes are looked for (C3), their subclasses, their metaclasses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from patchkit.programs import Scope
from patchkit.surroundings import Surroundings
from patchkit.values import Answers, ClassValue, Foreign, Unclear

Kin: TypeAlias = Scope | Foreign | Unclear
"""A class here, one of others, or a base of which nothing is known."""


class Lineage:
    """The relations of classes; ``infer`` says what an expression in a scope may be."""

    def __init__(self, infer: Callable[[ast.expr, Scope], Answers], surroundings: Surroundings) -> None:
        self._infer = infer
        self._surroundings = surroundings
        self._bases: dict[Scope, tuple[Kin, ...]] = {}
        self._orders: dict[Scope, tuple[Kin, ...]] = {}

    def bases(self, scope: Scope) -> tuple[Kin, ...]:
        """The bases that a class statement names."""
        if scope in self._bases:
            return self._bases[scope]
        node, around = scope.node, scope.parent
        written = node.bases if isinstance(node, ast.ClassDef) and around is not None else []
        found = tuple(kin for base in written for kin in self._base(base, scope))
        if not any(isinstance(each, Unclear) for each in found):  # else perhaps only not known yet
            self._bases[scope] = found
        return found

    def _base(self, node: ast.expr, scope: Scope) -> list[Kin]:
        around = scope.parent or scope
        found = [each.value for each in self._infer(node, around)]
        if isinstance(node, ast.Subscript) and not found:  # Generic[T]
            found = [each.value for each in self._infer(node.value, around)]
        kin: list[Kin] = [each.scope for each in found if isinstance(each, ClassValue) and each.scope is not scope]
        kin += [each for each in found if isinstance(each, Foreign | Unclear)]
        return kin or [Unclear()]

    def order(self, scope: Scope) -> tuple[Kin, ...]:
        """A class and those it inherits from, in the order in which attributes are looked for."""
        return self._order(scope, ())

    def _order(self, scope: Scope, below: tuple[Scope, ...]) -> tuple[Kin, ...]:
        if scope in self._orders:
            return self._orders[scope]
        bases = [base for base in self.bases(scope) if base not in below and base is not scope]
        rows: list[list[Kin]] = [
            list(self._order(base, (*below, scope))) if isinstance(base, Scope) else [base] for base in bases
        ]
        order = (scope, *_merge([*rows, bases]))
        if not below and scope in self._bases:
            self._orders[scope] = order
        return order

    def inherits(self, scope: Scope, other: Scope) -> bool:
        return any(each is other for each in self.order(scope))

    @cached_property
    def _direct(self) -> dict[Kin, list[Scope]]:
        found: dict[Kin, list[Scope]] = {}
        for scope in self._surroundings.classes:
            for base in self.bases(scope):
                found.setdefault(base, []).append(scope)
        return found

    def prepare(self) -> None:
        """Learn all subclasses, before anything else is asked: a question within a question may get half an answer."""
        assert self._direct is not None

    def descendants(self, kin: Kin) -> tuple[Scope, ...]:
        """All classes that inherit from ``kin``, nearest first."""
        found: dict[Scope, None] = {}
        waiting = list(self._direct.get(kin, ()))
        for each in waiting:
            if each not in found:
                found[each] = None
                waiting += self._direct.get(each, ())
        return tuple(found)

    def siblings(self, scope: Scope) -> tuple[Scope, ...]:
        """The classes that ``super()`` in ``scope`` may come to in a subclass of it that has several bases."""
        found: dict[Scope, None] = {}
        for each in self.descendants(scope):
            order = self.order(each)
            behind = order[order.index(scope) + 1 :] if scope in order else ()
            found |= dict.fromkeys(kin for kin in behind if isinstance(kin, Scope))
        return tuple(found)

    def is_open(self, scope: Scope) -> bool:
        """Whether other classes may count as subclasses of an abstract one: it has a ``register``, which is called."""
        is_abstract = any(isinstance(each, Foreign) and each.name == "abc.ABC" for each in self.order(scope))
        is_abstract = is_abstract or b"ABCMeta" in scope.module.data
        word = f"{scope.name}.register".encode()
        return is_abstract and any(word in module.data for module in self._surroundings.modules)

    def is_made_over(self, scope: Scope) -> bool:
        """Whether a metaclass may put other things into a class than its body has."""
        metaclass = self.metaclass(scope)
        kin = [each for each in self.order(metaclass) if isinstance(each, Scope)] if metaclass is not None else []
        return any(name in each.namespace.names for each in kin for name in ("__prepare__", "__new__"))

    def metaclass(self, scope: Scope) -> Scope | None:
        """The class of a class, if it is one of these."""
        for each in self.order(scope):
            keywords = each.node.keywords if isinstance(each, Scope) and isinstance(each.node, ast.ClassDef) else []
            for keyword in keywords:
                if keyword.arg == "metaclass" and isinstance(each, Scope):
                    for found in self._infer(keyword.value, each.parent or each):
                        if isinstance(found.value, ClassValue):
                            return found.value.scope
        return None


def _merge(rows: Sequence[list[Kin]]) -> list[Kin]:
    """The C3 linearisation of rows; where it has none, the order of their first appearance."""
    merged: list[Kin] = []
    waiting = [list(row) for row in rows if row]
    while waiting:
        heads = [row[0] for row in waiting]
        good = next((head for head in heads if not any(head in row[1:] for row in waiting)), None)
        if good is None:
            return list(dict.fromkeys([*merged, *(each for row in waiting for each in row)]))
        merged.append(good)
        waiting = [rest for row in waiting if (rest := [each for each in row if each != good])]
    return merged
