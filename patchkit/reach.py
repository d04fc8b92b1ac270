"""What is reached from a function: hazards with the shortest chain to each, what covers others, where the view ends.

Two walks, breadth first. The first goes where a tracer goes: not into a function that is opaque, not where a condition
keeps it away. What it meets is uncovered. The second starts behind these covers, and what only it meets is covered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from patchkit.audited import Confidence, Cover, Effect, Place, Step, Unknown
from patchkit.branches import Branch, Guard, told
from patchkit.calls import Calls
from patchkit.facts import Construct, Edge, Facts
from patchkit.opacity import stays_inside
from patchkit.programs import Scope


@dataclass(frozen=True, slots=True)
class Met:
    """A hazard that was met: the construct, and the chain whose last step uses it."""

    construct: str
    chain: tuple[Step, ...]
    cover: Cover | None = None

    @property
    def place(self) -> Place:
        return self.chain[-1].place


@dataclass(slots=True)
class Reach:
    """What is reached from one function. ``covers`` are those that the tracer comes to, with the chain to each."""

    open: list[Met] = field(default_factory=list)
    covered: list[Met] = field(default_factory=list)
    covers: list[tuple[Cover, tuple[Step, ...]]] = field(default_factory=list)
    unknown: set[Unknown] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Link:
    """A function on the way: how it was come to, by the link before."""

    scope: Scope
    before: _Link | None = None
    step: Step | None = None

    def chain(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        link: _Link | None = self
        while link is not None and link.step is not None:
            steps.append(link.step)
            link = link.before
        return tuple(reversed(steps))


def reach(start: Scope, calls: Calls) -> Reach:
    """Everything that a call of ``start`` leads to."""
    found = Reach()
    behind = _walk_traced(start, calls, found)
    _walk_behind(behind, calls, found)
    return found


def _walk_traced(start: Scope, calls: Calls, found: Reach) -> list[tuple[_Link, Cover]]:
    behind: list[tuple[_Link, Cover]] = []
    queue: deque[tuple[_Link, Cover | None]] = deque([(_Link(start), None)])
    seen: set[tuple[Scope, Cover | None]] = {(start, None)}
    while queue:
        link, wrapped = queue.popleft()
        facts = calls.facts(link.scope)
        edges = list(facts.around)
        own = facts.cover or wrapped
        if own is None:
            _meet(link, facts, found)
        else:
            found.covers.append((own, link.chain()))
            behind.append((link, own))
        if own is None or _is_shallow(own):
            edges += facts.edges
        for edge in edges:
            cover = _cover_of(link.scope, edge)
            if cover is not None and not _is_shallow(cover):
                found.covers.append((cover, link.chain()))
                behind.append((_follow(link, edge), cover))
            elif (edge.target, cover) not in seen:
                seen.add((edge.target, cover))
                queue.append((_follow(link, edge), cover))
    return behind


def _is_shallow(cover: Cover) -> bool:
    """Whether only the function itself is kept from the tracer: what it calls is traced, call by call."""
    return cover.effect is Effect.NOT_RECURSIVE


def _meet(link: _Link, facts: Facts, found: Reach) -> None:
    path = link.scope.module.source.path
    for construct in facts.hazards:
        cover = _guarded(link.scope, construct.guard)
        met = _met(link, construct, cover)
        (found.open if cover is None else found.covered).append(met)
    for gap in facts.gaps:
        if gap.guard is None:
            found.unknown.add(Unknown(Place(path, gap.line), gap.doubt, link.scope.symbol, gap.text))


def _walk_behind(behind: list[tuple[_Link, Cover]], calls: Calls, found: Reach) -> None:
    known = {(met.construct, met.place) for met in found.open}
    found.covered = [met for met in found.covered if (met.construct, met.place) not in known]
    known |= {(met.construct, met.place) for met in found.covered}
    seen: set[Scope] = set()
    queue = deque(behind)
    while queue:
        link, cover = queue.popleft()
        if link.scope in seen:
            continue
        seen.add(link.scope)
        facts = calls.facts(link.scope)
        for construct in facts.hazards:
            met = _met(link, construct, cover)
            if (met.construct, met.place) not in known:
                known.add((met.construct, met.place))
                found.covered.append(met)
        queue.extend((_follow(link, edge), cover) for edge in facts.edges if edge.target not in seen)


def _follow(link: _Link, edge: Edge) -> _Link:
    return _Link(edge.target, link, step_of(link.scope, edge.line, edge.target.symbol, edge.confidence, edge.branch))


def step_of(scope: Scope, line: int, calls: str, confidence: Confidence, branch: Branch) -> Step:
    return Step(Place(scope.module.source.path, line), scope.runs_in, calls, confidence, told(branch))


def _met(link: _Link, construct: Construct, cover: Cover | None) -> Met:
    last = step_of(link.scope, construct.line, construct.name, construct.confidence, construct.branch)
    return Met(construct.name, (*link.chain(), last), cover)


def _guarded(scope: Scope, guard: Guard | None) -> Cover | None:
    if guard is None:
        return None
    return Cover(Place(scope.module.source.path, guard.line), scope.symbol, str(guard), Effect.SKIPPED)


def _cover_of(scope: Scope, edge: Edge) -> Cover | None:
    """What keeps a tracer from following a call: a condition, or what was put around the function."""
    if edge.wrapping is not None:
        made = edge.wrapping
        return Cover(Place(made.path, made.line), edge.target.symbol, made.maker, made.effect)
    return _guarded(scope, edge.guard)


def cover_site(scope: Scope, guard: Guard | None, calls: Calls) -> Cover | None:
    """What keeps a tracer from what a line of ``scope`` calls: an opaque function around it, or a condition."""
    covers = covers_around(scope, guard, calls)
    return next((cover for cover in covers if not _is_shallow(cover)), None)


def covers_around(scope: Scope, guard: Guard | None, calls: Calls) -> Iterator[Cover]:
    """All that keeps a tracer from a line of ``scope``, the function's own first; shallow ones too."""
    holder: Scope | None = scope
    while holder is not None:
        cover = calls.facts(holder).cover or calls.operator(holder) if holder.is_function else None
        if cover is not None:
            yield cover
        holder = holder.parent if stays_inside(holder) else None
    condition = _guarded(scope, guard)
    if condition is not None:
        yield condition


def prefix(met: Met, first: Step) -> Met:
    """The same with a step in front."""
    return replace(met, chain=(first, *met.chain))
