"""What an audit finds, as values: imports and their sites, hazards with the chain that reaches them, what covers them.

Paths are POSIX: relative to the site root where the file lies in it, else as the caller was named. Lines count from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from patchkit.errors import ExitCode
from patchkit.model import Notice
from patchkit.patchset import PatchId


@unique
class Confidence(Enum):
    """How sure a step of a chain is, strongest first."""

    DIRECT = "direct"  # the name leads to one definition
    ATTRIBUTE = "attribute"  # a member of an object whose class is known
    NAME = "name-only"  # handed on as a value, chosen from a table, or found by the method's name alone


_RANKS = {confidence: rank for rank, confidence in enumerate(Confidence)}


def weakest(*found: Confidence) -> Confidence:
    """The confidence of a chain is that of its weakest step."""
    return max(found, key=_RANKS.__getitem__, default=Confidence.DIRECT)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@unique
class Use(Enum):
    """What the caller does with a name at a site."""

    CALL = "call"
    DECORATOR = "decorator"
    BASE = "base-class"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Site:
    """A use of an imported name. ``function`` is "" for code that runs when the module is imported."""

    place: Place
    function: str
    use: Use
    text: str

    def __lt__(self, other: Site) -> bool:
        return (self.place, self.use.value, self.text) < (other.place, other.use.value, other.text)


@dataclass(frozen=True, slots=True)
class Compile:
    """A place that compiles code as a whole; ``sure`` False: it may, by a value that the text does not tell."""

    site: Site
    sure: bool

    def __lt__(self, other: Compile) -> bool:
        return (not self.sure, self.site) < (not other.sure, other.site)


@unique
class DefinitionKind(Enum):
    FUNCTION = "function"
    CLASS = "class"
    MODULE = "module"
    VALUE = "value"
    STUB = "stub"  # only a .pyi tells of it
    COMPILED = "compiled"  # an extension module has it, whose names are not told


@dataclass(frozen=True, slots=True)
class Definition:
    """Where something is really defined, behind all re-exports."""

    place: Place
    symbol: str
    kind: DefinitionKind


@dataclass(frozen=True, slots=True)
class Import:
    """One name that an import statement binds in the caller.

    ``module`` is the absolute module it is taken from, ``name`` the name there ("" where the module itself is bound),
    ``alias`` what it is called here. ``branch`` are the blocks around it, outermost first. ``distribution`` is None
    where the name comes from elsewhere; such an import is listed if it is the alternative of one that does not.
    """

    place: Place
    module: str
    name: str
    alias: str
    branch: tuple[str, ...]
    distribution: str | None
    definition: Definition | None
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain: at ``place``, in ``function``, ``calls`` is called, inside the blocks ``branch``."""

    place: Place
    function: str
    calls: str
    confidence: Confidence
    branch: tuple[str, ...] = ()


@unique
class Effect(Enum):
    """What the tracer does at a cover."""

    GRAPH_BREAK = "graph-break"  # stops, and goes on behind it: not possible with fullgraph=True
    NOT_RECURSIVE = "graph-break-not-recursive"  # the same, but what the function calls is traced by itself
    OPERATOR = "operator"  # takes it as one opaque operator
    SKIPPED = "skipped"  # never comes here: a condition that holds while it traces

    @property
    def breaks_graph(self) -> bool:
        return self in (Effect.GRAPH_BREAK, Effect.NOT_RECURSIVE)


@dataclass(frozen=True, slots=True)
class Cover:
    """What keeps the tracer from looking further: a function made opaque by ``maker``, or a condition."""

    place: Place
    function: str
    maker: str
    effect: Effect


@unique
class Owner(Enum):
    """Who put a cover there."""

    CALLER = "caller"
    UPSTREAM = "upstream"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class Hazard:
    """A construct that the tracer cannot trace, reached from ``callable`` by ``chain``, whose last step calls it.

    ``patches`` are patches at hand that would cover it, ``sites`` all calls of the caller that lead here: the chain
    begins at one of them.
    """

    callable: str
    kind: str
    construct: str
    reason: str
    chain: tuple[Step, ...]
    patches: tuple[PatchId, ...] = ()
    sites: tuple[Step, ...] = ()

    @property
    def place(self) -> Place:
        return self.chain[-1].place

    @property
    def confidence(self) -> Confidence:
        return weakest(*(step.confidence for step in self.chain))


@dataclass(frozen=True, slots=True)
class Covered:
    """A hazard that is reached behind ``cover`` only. ``patch`` is the patch that put it there, if one did."""

    hazard: Hazard
    cover: Cover
    owner: Owner
    patch: PatchId | None = None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A graph break that is reached from the caller, whose distribution compiles with ``fullgraph=True``.

    ``applied`` False: the graph break would come with ``patch``, which is at hand. ``alternative`` is the patch of the
    same group that has none. ``compiles`` are sure ones first.
    """

    callable: str
    cover: Cover
    owner: Owner
    patch: PatchId | None
    applied: bool
    compiles: tuple[Compile, ...]
    alternative: PatchId | None = None

    @property
    def stands(self) -> bool:
        """Whether it is there now: the graph break is applied, and a place surely compiles as a whole."""
        return self.applied and any(each.sure for each in self.compiles)


@unique
class Doubt(Enum):
    """What a static view cannot follow, by kind."""

    DISPATCH = "dynamic-dispatch"
    PARAMETER = "parameter"
    SUBSCRIPT = "subscript"
    RESULT = "call-result"
    GETATTR = "getattr"
    FOREIGN = "foreign-call"
    STRING = "named-in-string"
    UNPARSED = "unparsed"
    MISSING = "missing"
    FALLBACK = "missing-in-try"
    OWN = "own-package"
    INDIRECT = "indirect"
    REPLACED = "replaced"


DOUBTS = {
    Doubt.DISPATCH: "a method of an object whose class is not known",
    Doubt.PARAMETER: "a call of what was handed in as an argument",
    Doubt.SUBSCRIPT: "a call of an element of a container",
    Doubt.RESULT: "a call of what another call returned",
    Doubt.GETATTR: "an attribute whose name is made at run time",
    Doubt.FOREIGN: "a call into another distribution, which is not looked into and not in the table of hazards",
    Doubt.STRING: "a module of the distribution that the caller names in a string: imported at run time, perhaps",
    Doubt.UNPARSED: "a file that cannot be parsed",
    Doubt.MISSING: "a name that is imported or used and is not there",
    Doubt.FALLBACK: "the same inside `try` or behind `hasattr`: the fallback is taken",
    Doubt.OWN: "another module of the caller's own package, which was not asked for",
    Doubt.INDIRECT: "what the caller keeps in, or gets from, another own module in a way that cannot be followed",
    Doubt.REPLACED: "code that replaces what names or classes stand for, in a way that cannot be followed",
}


@dataclass(frozen=True, slots=True)
class Unknown:
    """A place where the static view ends."""

    place: Place
    doubt: Doubt
    function: str
    text: str

    def __lt__(self, other: Unknown) -> bool:
        return (self.place, self.doubt.value, self.text) < (other.place, other.doubt.value, other.text)


@dataclass(frozen=True, slots=True)
class Subject:
    """A distribution that was looked into."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Audit:
    """All that an audit of ``caller`` says. ``files`` are the caller's, ``table`` names the table of hazards.

    ``whole`` names the package that the caller is a part of, "" where it is not a part of one. ``groups`` are the
    patches at hand by the groups of which at most one can be wanted.
    """

    caller: str
    files: tuple[str, ...]
    subjects: tuple[Subject, ...]
    table: str
    imports: tuple[Import, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    covered: tuple[Covered, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    site_root: str | None = None
    python: str | None = None
    notices: tuple[Notice, ...] = ()
    whole: str = ""
    groups: tuple[frozenset[PatchId], ...] = ()

    @property
    def unread(self) -> tuple[Unknown, ...]:
        """Places in the caller that leave no answer: a file that is no Python, a name that the distribution lacks.

        Where nothing is imported by a statement, a module that is named in a string is one too.
        """
        fatal = {Doubt.UNPARSED, Doubt.MISSING} | (set() if self.imports or self.hazards else {Doubt.STRING})
        return tuple(each for each in self.unknown if each.doubt in fatal and each.place.path in self.files)

    @property
    def complete(self) -> bool:
        """Nothing uncovered is left, no applied graph break stands where ``fullgraph=True`` compiles, all is read."""
        contradicting = any(found.stands for found in self.contradictions)
        return not self.hazards and not contradicting and not self.unread

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.DONE if self.complete else ExitCode.NO
