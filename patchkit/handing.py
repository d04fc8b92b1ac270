"""What is handed on in a call: a function may be called by who gets it, an object be asked, a class be made."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patchkit.audited import Confidence, Doubt
from patchkit.classes import is_identity, is_property
from patchkit.hazards import HazardTable
from patchkit.inference import Inference
from patchkit.notes import Notes
from patchkit.operations import CONSTRUCTION
from patchkit.programs import Scope
from patchkit.results import BUILTINS, INERT, PASSING, PROTOCOL, SAME
from patchkit.values import ClassValue, Foreign, Found, FunctionValue, Instance, Record

_KEEPS = ("types.SimpleNamespace", "functools.partial", "functools.wraps", "functools.cache", "functools.lru_cache")
_FORMATTING = frozenset(("str.format", "str.format_map"))
_DEEPEST = 4
_NAME = Confidence.NAME


class Handing:
    """What the calls of one body hand on, told to its ``notes``."""

    def __init__(self, inference: Inference, table: HazardTable, scope: Scope, notes: Notes) -> None:
        self.inference = inference
        self.table = table
        self.scope = scope
        self.notes = notes
        self._unknown = False

    def hand_on(self, node: ast.Call, others: list[str]) -> None:
        """What is an argument may be called by who gets it: a function by anyone, an object or a class by others."""
        if any(name in self.table.opaque or name in INERT for name in others):
            return
        kept = any(name in _KEEPS for name in others)
        values = [*node.args[kept:], *(keyword.value for keyword in node.keywords)]
        if "types.SimpleNamespace" not in others:
            plain = all(name.partition(".")[0] in BUILTINS for name in others)
            asked = ("__call__", "keys") if plain else ("__call__", *PROTOCOL)
            self._unknown = any(not is_known(self.table, name) and not self.table.construct(name) for name in others)
            for value in values:
                self._hand(value, self.scope, node, asked if others else None)
                if _FORMATTING & set(others):
                    self._formatted(value, node)

    def _formatted(self, value: ast.expr, node: ast.expr) -> None:
        """A format string may ask an object for any attribute, properties too."""
        for found in self.inference.infer(value, self.scope):
            kin = self.inference.lineage.order(found.value.of) if isinstance(found.value, Instance) else ()
            for method in (each for one in kin if isinstance(one, Scope) for each in one.inner):
                if method.owner in kin and is_property(method):
                    self.notes.add(method, node.lineno, _NAME)

    def is_accessor(self, call: ast.Call, scope: Scope) -> bool:
        """Whether a call in a class body makes a method or a property of what it gets."""
        made = [each.value for each in self.inference.infer(call.func, scope)]
        return any(isinstance(each, Foreign) and (each.name in SAME or "property" in each.name) for each in made)

    def from_class_body(self, call: ast.Call, scope: Scope, node: ast.expr) -> None:
        for value in [*call.args, *(keyword.value for keyword in call.keywords)]:
            self._hand(value, scope, node, ("__call__",))

    def _hand(
        self, value: ast.expr, scope: Scope, node: ast.expr, asked: tuple[str, ...] | None, depth: int = 0
    ) -> None:
        """``asked`` are the methods that others may ask an object for; None: it does not go to others."""
        if isinstance(value, ast.Starred):
            value = value.value
        for found in self.inference.infer(value, scope) if not isinstance(value, ast.Constant) else ():
            match found.value:
                case FunctionValue(scope=handed, wrapping=wrapping) if not is_identity(handed):
                    self.notes.add(handed, node.lineno, _NAME, wrapping)
                case ClassValue(scope=of) if asked is not None:
                    self._given_away(of, node)
                    self.notes.run(self._made(found.value), node, _NAME)
                    self.notes.implicit(found.value, node)
                    metaclass = self.inference.lineage.metaclass(of)
                    if metaclass is not None:
                        self.notes.implicit(Instance(metaclass), node)
                case Instance(of=of) if asked is not None:
                    self._given_away(of, node)
                    self.notes.implicit(found.value, node)
                    for name in asked:
                        methods = self.inference.methods(found.value, name)
                        self.notes.run(methods, node, _NAME)
                        if name == "__call__" and any(isinstance(each.value, Foreign) for each in methods):
                            self.notes.run(self.inference.member(found.value, "forward"), node, _NAME)
                case Foreign() if asked is not None:
                    self._hand_foreign(found.value, node, asked)
                case Record(node=display, scope=home) if not isinstance(display, ast.Call):
                    if depth == _DEEPEST:
                        self.notes.gap(Doubt.SUBSCRIPT, node)
                    else:
                        for each in _held(display):
                            self._hand(each, home, node, asked, depth + 1)

    def _hand_foreign(self, value: Foreign, node: ast.expr, asked: tuple[str, ...]) -> None:
        """Something of others goes to others: a function may be called, an object be entered or asked."""
        names = [f"{value.name}.{each}" for each in ("__enter__", *asked)] if value.instance else [value.name]
        for construct in filter(None, map(self.table.construct, names)):
            self.notes.use(construct, node.lineno, _NAME)

    def _given_away(self, scope: Scope, node: ast.expr) -> None:
        """In the caller calls of others are not counted; where they get an object of a distribution, they are."""
        if self._unknown and scope.module.source.distribution and not self.scope.module.source.distribution:
            self.notes.gap(Doubt.DISPATCH, node)

    def _made(self, value: ClassValue) -> Iterable[Found]:
        self.notes.made.append(value.scope)
        return [found for name in CONSTRUCTION for found in self.inference.methods(value, name)]


def is_known(table: HazardTable, name: str) -> bool:
    """Whether a call of others needs no word: of builtins, of what is traced, or of what a hazard returned."""
    origin, called, _ = name.partition("()")
    if origin in table.rules:
        return True
    if called and (origin.startswith(PASSING) or origin in BUILTINS):  # what it gives may be what it got
        return False
    owner, _, attribute = name.partition(".")
    if owner in BUILTINS:
        kind = BUILTINS[owner]
        return not attribute or not isinstance(kind, type) or hasattr(kind, attribute.partition(".")[0])
    return name.startswith("function.") or table.knows(origin)


def _held(display: ast.expr) -> Iterable[ast.expr]:
    """The expressions for what a display holds."""
    match display:
        case ast.Dict(keys=keys, values=values):
            return [*values, *(key for key in keys if key is not None)]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.DictComp(value=element):
            return [element]
        case _:
            return []
