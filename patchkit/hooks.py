"""What classes of others may call of those that inherit from them: methods that these override, and hooks."""

from __future__ import annotations

import ast
import collections
import collections.abc
from collections.abc import Iterable

from patchkit.audited import Confidence, Doubt
from patchkit.lineage import Lineage
from patchkit.notes import Notes
from patchkit.programs import Scope
from patchkit.results import BUILTINS
from patchkit.values import Foreign

_PLAIN = ("abc.", "typing.", "typing_extensions.", "enum.", "dataclasses.", "contextlib.")
_CALLED_BY_NAME = (  # bases whose own code calls nothing but special methods and what is known by its name (`forward`)
    *("torch.nn.Module", "torch.nn.modules.module.Module", "torch.Tensor", "torch.autograd.Function"),
    *("torch.nn.modules.Module", "torch.overrides.TorchFunctionMode", "threading.local"),
)
_SHOWING = ("__format__", "__str__", "__repr__")


class Hooks:
    """Told to ``notes``: the methods that a base is known to call, by name only; else one doubt for the class."""

    def __init__(self, lineage: Lineage, notes: Notes) -> None:
        self._lineage = lineage
        self._notes = notes

    def call(self, scope: Scope, node: ast.expr, asked: str = "") -> None:
        """Code of the bases of ``scope`` runs on an object of it; ``asked`` is the special method that is called."""
        below = self._lineage.descendants(scope)
        methods = [each for kin in (*self._lineage.order(scope), *below) for each in _methods(kin)]
        for kin in self._lineage.order(scope):
            if not isinstance(kin, Foreign):
                continue
            if kin.name.endswith("nn.Module") and asked in _SHOWING:
                self._add((each for each in methods if each.name == "extra_repr"), node)
            if is_plain(kin.name):
                continue
            known = _collection(kin.name)
            if known is None:
                if not asked and any(not each.name.startswith("__") for each in methods):
                    self._notes.gap(Doubt.DISPATCH, node, kin.name)
            elif not asked or hasattr(known, asked):
                self._add((each for each in methods if hasattr(known, each.name)), node)

    def call_all(self, scope: Scope, node: ast.expr) -> None:
        """A method of a base is called by a name that the class does not have: it may call all that the class has."""
        self._add((each for kin in self._lineage.order(scope) for each in _methods(kin)), node)

    def _add(self, methods: Iterable[Scope], node: ast.expr) -> None:
        for each in methods:
            self._notes.add(each, node.lineno, Confidence.NAME)


def is_plain(name: str) -> bool:
    """Whether the code of a base calls nothing of the classes that inherit from it but special methods."""
    return name in _CALLED_BY_NAME or name.startswith(_PLAIN) or name.partition(".")[0] in BUILTINS


def _collection(name: str) -> type | None:
    """The class that a name of `collections` stands for: their methods are known."""
    space, _, last = name.rpartition(".")
    module = {"collections": collections, "collections.abc": collections.abc, "typing": collections.abc}.get(space)
    kind = getattr(module, last, None)
    return kind if isinstance(kind, type) else None


def _methods(kin: object) -> list[Scope]:
    if not isinstance(kin, Scope):
        return []
    defined = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [each for each in kin.inner if each.owner is kin and isinstance(each.node, defined)]
