"""Tables of hazards: what a tracer cannot trace, what keeps it away, what it assumes (docs/reference/hazards.md).

A table is data with a reason for each entry; nothing of it is code. Constructs are dotted names as they are defined:
``subprocess.run``, ``pathlib.Path.exists``, ``open``, and ``ctypes.CDLL()`` for all that its result has. A call that is
reached under any alias is compared by that name.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from patchkit.audited import Effect
from patchkit.branches import Assumptions
from patchkit.errors import raise_all
from patchkit.fields import read_name
from patchkit.manifest import read_toml, require_schema
from patchkit.syntax import read_pattern, trouble
from patchkit.tables import Table

T = TypeVar("T")

MOST_ENTRIES = 1000
"""Tables of one kind that a file may have."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Why a construct is a hazard."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: its name, and its position where it may be handed in without the name."""

    name: str
    position: int | None = None

    def given(self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> ast.expr | None:
        """What is handed in for it, None where nothing is."""
        for keyword in keywords:
            if keyword.arg == self.name:
                return keyword.value
        return args[self.position] if self.position is not None and self.position < len(args) else None


@dataclass(frozen=True, slots=True)
class Whole:
    """A function that compiles others as a whole: always (``argument`` None), or where the argument is true.

    ``by_name``: the argument's name says it all, so that it counts whatever is called with it.
    """

    argument: Argument | None = None
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class HazardTable:
    """A table as it is used. ``methods`` maps the bare name of a method to the construct it is taken for.

    ``traced`` are constructs that the tracer passes, ``traced_spaces`` whole modules of them; ``ordinary`` are names of
    methods that say nothing about the object they are called on. A maker of ``of_argument`` makes the function that it
    gets opaque under every name, a ``registering`` one where it is called as an operator, others what they give back.
    ``recursive`` are the arguments of makers that say whether what the function calls is kept away too. ``wholes`` are
    the functions that compile others as a whole, where a graph break is an error.
    """

    name: str
    rules: Mapping[str, Rule]
    methods: Mapping[str, str] = field(default_factory=dict)
    traced: frozenset[str] = frozenset()
    traced_spaces: tuple[str, ...] = ()
    opaque: Mapping[str, Effect] = field(default_factory=dict)
    of_argument: frozenset[str] = frozenset()
    registering: frozenset[str] = frozenset()
    assumptions: Assumptions = field(default_factory=lambda: Assumptions({}))
    ordinary: frozenset[str] = frozenset()
    recursive: Mapping[str, Argument] = field(default_factory=dict)
    wholes: Mapping[str, Whole] = field(default_factory=dict)

    def effect(self, maker: str, args: Sequence[ast.expr] = (), keywords: Sequence[ast.keyword] = ()) -> Effect:
        """What ``maker`` does to a function when it is handed these arguments; what is not plainly true is false."""
        given = self.recursive[maker].given(args, keywords) if maker in self.recursive else None
        is_whole = given is None or (isinstance(given, ast.Constant) and bool(given.value))
        return self.opaque[maker] if is_whole else Effect.NOT_RECURSIVE

    def construct(self, name: str) -> str:
        """The hazard that a use of ``name`` is, "" where it is none. ``load()`` stands for all that its result has."""
        if name in self.rules:
            return name
        result, called, _ = name.rpartition("()")
        return f"{result}()" if called and f"{result}()" in self.rules else ""

    def knows(self, construct: str) -> bool:
        """Whether the table has a word on ``construct``: a hazard, or what the tracer passes."""
        if construct in self.rules or construct in self.traced:
            return True
        return any(construct.startswith(space) for space in self.traced_spaces)


def read_hazards(data: bytes, *, file: str) -> HazardTable:
    """The table that a TOML document holds. Raises `BadManifest`, several of them as `Several`."""
    top = Table(read_toml(data, file), file)
    require_schema(top)
    name = read_name(top, "name")
    top.text("summary")
    rules: dict[str, Rule] = {}
    methods: dict[str, str] = {}
    for table in top.tables("hazard", most=MOST_ENTRIES):
        _read_hazard(table, rules, methods)
    traced = [name for table in top.tables("traced", most=MOST_ENTRIES) for name in _read_traced(table)]
    opaque: dict[str, Effect] = {}
    places: dict[str, str] = {}
    recursive: dict[str, Argument] = {}
    for table in top.tables("opaque", most=MOST_ENTRIES):
        _read_opaque(table, opaque, places, recursive)
    wholes = {name: whole for table in top.tables("whole", most=MOST_ENTRIES) for name, whole in _read_whole(table)}
    assumed: dict[str, bool] = {}
    for table in top.tables("assumption", most=MOST_ENTRIES):
        for expression, value in _read_assumption(table):
            if assumed.setdefault(expression, value) != value:
                top.note("assumption", f'"{expression}" is taken as true and as false; keep one of them')
    ordinary = frozenset(name for table in top.tables("ordinary", most=MOST_ENTRIES) for name in _read_ordinary(table))
    for construct in traced:
        if construct in rules:
            top.note("traced", f'"{construct}" is also a hazard; keep it in one of them')
    top.finish()
    raise_all(top.problems)
    return HazardTable(
        name,
        rules,
        methods,
        frozenset(traced),
        tuple(construct.removesuffix("*") for construct in traced if construct.endswith(".*")),
        opaque,
        frozenset(maker for maker, place in places.items() if place == "argument"),
        frozenset(maker for maker, place in places.items() if place == "registration"),
        Assumptions(assumed),
        ordinary,
        recursive,
        wholes,
    )


def _read_hazard(table: Table, rules: dict[str, Rule], methods: dict[str, str]) -> None:
    rule = Rule(read_name(table, "kind"), table.text("reason", required=True))
    constructs = table.numbered_texts("constructs")
    if not constructs:
        table.note("constructs", 'names nothing; write dotted names such as ["subprocess.run"]')
    for index, construct in constructs.items():
        place = f"constructs[{index}]"
        if not _is_dotted(construct):
            table.note(place, f'"{construct}" is not a dotted name, such as "pathlib.Path.exists"')
        elif construct in rules:
            table.note(place, f'"{construct}" is in the table already, as {rules[construct].kind}')
        else:
            rules[construct] = rule
    for index, construct in table.numbered_texts("by-name").items():
        if construct in rules:
            methods[construct.rpartition(".")[2]] = construct
        else:
            table.note(f"by-name[{index}]", f'"{construct}" is not among the constructs')
    table.finish()


def _read_traced(table: Table) -> tuple[str, ...]:
    table.text("reason", required=True)
    constructs = table.numbered_texts("constructs")
    for index, construct in constructs.items():
        if not _is_dotted(construct.removesuffix(".*")):
            table.note(f"constructs[{index}]", f'"{construct}" is not a dotted name, nor one with ".*" behind')
    table.finish()
    return tuple(constructs.values())


def _read_opaque(
    table: Table, opaque: dict[str, Effect], places: dict[str, str], recursive: dict[str, Argument]
) -> None:
    table.text("reason", required=True)
    makers = table.texts("makers")
    effect = _read_word(table, "effect", {each.value: each for each in (Effect.GRAPH_BREAK, Effect.OPERATOR)})
    place = _read_word(table, "of", {each: each for each in ("result", "argument", "registration")}, default="result")
    if effect is not None:
        opaque.update(dict.fromkeys(makers, effect))
    places.update(dict.fromkeys(makers, place or ""))
    argument = _read_argument(table, "recursive-")
    if argument is not None:
        recursive.update(dict.fromkeys(makers, argument))
    table.finish()


def _read_argument(table: Table, prefix: str = "") -> Argument | None:
    name = table.text(f"{prefix}argument")
    position = table.integer(f"{prefix}position", default=-1, low=0, high=MOST_ENTRIES)
    if position >= 0 and not name:
        table.note(f"{prefix}position", f'says nothing without "{prefix}argument"')
    return Argument(name, position if position >= 0 else None) if name else None


def _read_whole(table: Table) -> list[tuple[str, Whole]]:
    table.text("reason", required=True)
    callables = table.numbered_texts("callables")
    for index, name in callables.items():
        if not _is_dotted(name):
            table.note(f"callables[{index}]", f'"{name}" is not a dotted name, such as "torch.compile"')
    if not callables:
        table.note("callables", 'names nothing; write dotted names such as ["torch.compile"]')
    whole = Whole(_read_argument(table), table.flag("by-name", default=False))
    if whole.by_name and whole.argument is None:
        table.note("by-name", 'says nothing without "argument"')
    table.finish()
    return [(name, whole) for name in callables.values()]


def _read_word(table: Table, key: str, known: Mapping[str, T], *, default: str = "") -> T | None:
    word = table.text(key, required=not default) or default
    if word and word not in known:
        table.note(key, f'"{word}" is not known; write {" or ".join(known)}')
    return known.get(word)


def _read_assumption(table: Table) -> tuple[tuple[str, bool], ...]:
    table.text("reason", required=True)
    expression = table.text("expression", required=True)
    value = table.flag("value", default=True)
    words = trouble(expression, read_pattern) if expression else ""
    if words:
        table.note("expression", words)
    table.finish()
    return () if words or not expression else ((expression, value),)


def _read_ordinary(table: Table) -> tuple[str, ...]:
    table.text("reason", required=True)
    names = table.numbered_texts("methods")
    for index, name in names.items():
        if not name.isidentifier():
            table.note(f"methods[{index}]", f'"{name}" is not the name of a method, such as "view"')
    table.finish()
    return tuple(names.values())


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.removesuffix("()").split("."))
