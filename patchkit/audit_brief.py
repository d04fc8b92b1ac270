"""An audit in brief, for people: what is not covered, who calls it, what would cover it; about a screen of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from click import style

from patchkit.audit_words import (
    by_callable,
    called_by,
    count,
    covers,
    fit,
    helping,
    joined,
    name_of,
    render_contradictions,
    render_unread,
    short,
)
from patchkit.audited import Audit, Covered, Hazard, Import, Step
from patchkit.patchset import PatchId

WITH_EXAMPLE = 2
"""Callables that are shown with the way to one hazard, while there are no more than these."""

WITH_CALLS = 6
"""Callables that are shown with their calls and patches; of more there is a line each."""

NO_CALL = "imported; the caller calls it nowhere that is seen"

MOST = 16
"""Callables that are shown at all."""


def render_brief(audit: Audit) -> Iterator[str]:
    """The parts of an audit that a person needs first; what is left out is counted."""
    yield from _render_hazards(audit)
    yield from render_contradictions(audit.contradictions, verbose=False)
    yield from _render_covered(audit.covered)
    yield from render_unread(audit, WITH_CALLS)
    yield ""
    yield from _render_imports(audit.imports)
    yield from _render_unknown(audit)


# ---- hazards --------------------------------------------------------------------------------------------------


def _render_hazards(audit: Audit) -> Iterator[str]:
    groups = by_callable(audit.hazards)
    if not groups:
        return
    yield ""
    leads = "callable leads" if len(groups) == 1 else "callables lead"
    words = f"{len(groups)} {leads} to what the tracer cannot trace (table {audit.table})"
    yield f"{style('not covered', fg='red', bold=True)}: {words}"
    breaking = {found.patch for found in audit.contradictions}
    if len(groups) > WITH_CALLS:
        yield from _render_rows(groups)
    else:
        for callable, found in groups:
            first = sum(hazard.kind == found[0].kind for hazard in found)
            among = f", {first} of them {found[0].kind}" if first < len(found) else f" ({found[0].kind})"
            yield from fit(f"{callable}: {count(len(found), 'hazard')}{among}", 2)
            yield from _render_calls(found[0].sites)
            if len(groups) <= WITH_EXAMPLE:
                yield from _render_example(found[0])
            if any(hazard.patches for hazard in audit.hazards):
                yield from _render_help(found, breaking, 3 if len(groups) <= WITH_EXAMPLE else 1)
    yield "  --verbose shows each hazard with its chain, file and line of every step"


def _render_rows(groups: Sequence[tuple[str, list[Hazard]]]) -> Iterator[str]:
    """A row a callable: those with most hazards first."""
    ordered = sorted(groups, key=lambda group: -len(group[1]))
    shown = ordered[:MOST]
    paths = {site.place.path for _, found in groups for site in found[0].sites}
    if len(paths) == 1:
        yield f"  hazards of each, and the lines of {paths.pop()} that call it:"
        rows = [(short(callable), str(len(found)), _lines(found[0].sites)) for callable, found in shown]
    else:
        yield "  hazards of each, and the calls of it:"
        rows = [(short(callable), str(len(found)), _first_call(found[0].sites)) for callable, found in shown]
    names, numbers = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, number, call in rows:
        yield f"  {name:<{names}}  {number:>{numbers}}  {call}"
    if len(ordered) > MOST:
        yield f"  and {count(len(ordered) - MOST, 'more callable')}"


def _first_call(sites: Sequence[Step]) -> str:
    return joined([str(step.place) for step in sites], 1) or NO_CALL


def _lines(sites: Sequence[Step]) -> str:
    return joined([str(step.place.line) for step in sites], 6) or NO_CALL


def _render_calls(sites: Sequence[Step]) -> Iterator[str]:
    calls = list(called_by(sites))
    for words in calls[:2]:
        yield from fit(f"called by {words}", 4)
    if len(calls) > 2:
        yield f"    and by {count(len(calls) - 2, 'more function')}"
    if not calls:
        yield f"    {NO_CALL}"


def _render_example(hazard: Hazard) -> Iterator[str]:
    names = [short(step.function) for step in hazard.chain if step.function]
    yield from fit(f"such as {hazard.construct} at {hazard.place}:", 4)
    yield from fit(" -> ".join([*names, hazard.construct]), 6)


def _render_help(found: Sequence[Hazard], breaking: set[PatchId | None], most: int) -> Iterator[str]:
    patches = helping(found)
    for id, number in patches[:most]:
        note = ", by a graph break" if id in breaking else ""
        more = f"; {len(patches) - most} more a part" if len(patches) > most and id == patches[most - 1][0] else ""
        yield f"    {style(str(id), fg='cyan')}, at hand, would cover {number}{note}{more}"
    if not patches:
        yield "    no patch at hand would cover any"


# ---- the other parts ------------------------------------------------------------------------------------------


def _render_covered(covered: Sequence[Covered]) -> Iterator[str]:
    if not covered:
        return
    yield ""
    ordered = sorted(covered, key=lambda found: found.hazard.callable)
    groups = [(callable, list(each)) for callable, each in groupby(ordered, key=lambda found: found.hazard.callable)]
    words = f"{count(len(covered), 'hazard')}, behind {count(len(groups), 'callable')}"
    yield f"{style('covered', fg='green', bold=True)}: {words}"
    for callable, found in groups[:WITH_CALLS]:
        by = [f"{words}, at {joined(places, 1)}" for words, places in covers(found).items()]
        yield from fit(f"{callable}: {joined(by, 1, 'more covers')}", 2)
    if len(groups) > WITH_CALLS:
        yield f"  and {count(len(groups) - WITH_CALLS, 'more callable')}"


def _render_imports(imports: Sequence[Import]) -> Iterator[str]:
    if not imports:
        return
    names = {name_of(found) for found in imports if found.distribution is not None}
    files = len({found.place.path for found in imports})
    ending = f" in {count(files, 'file')}" if files > 1 else ""
    words = f"{count(len(names), 'name')}{ending}; --verbose shows where each is defined and used"
    yield f"{style('imports', bold=True)}: {words}"


def _render_unknown(audit: Audit) -> Iterator[str]:
    if not audit.unknown:
        return
    places = count(len(audit.unknown), "place")
    counts = Counter(each.doubt.value for each in audit.unknown).most_common()
    words = joined([f"{kind} {number}" for kind, number in counts], 5, "more kinds")
    heading = style("not known", fg="yellow", bold=True)
    yield from fit(f"{heading}: {places} where a static view ends ({words}); --verbose lists and explains them", 0)
