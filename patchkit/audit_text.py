"""An audit as lines for people: in brief, as a whole with --verbose, or only what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from click import style

from patchkit.audit_brief import render_brief
from patchkit.audit_words import (
    by_callable,
    covers,
    fit,
    helping,
    joined,
    kinds,
    name_of,
    origin_of,
    render_contradictions,
    render_next,
    render_unread,
    short,
    summary,
    what_next,
)
from patchkit.audited import DOUBTS, Audit, Confidence, Covered, Hazard, Import, Step, Use


def render_wrong(audit: Audit, *, again: str = "") -> Iterator[str]:
    """Only what is wrong, a line a callable, and the next command."""
    for callable, found in by_callable(audit.hazards):
        yield from fit(f"not covered: {callable}: {kinds(found)}", 0)
    for each in audit.contradictions:
        if each.stands:
            yield f"contradiction: {each.callable}: {each.cover.maker} at {each.cover.place}"
    for place in audit.unread:
        yield f"no answer: {place.place}  {place.text} ({place.doubt.value})"
    yield summary(audit)
    yield from render_next(audit, again)


def render_audit(audit: Audit, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """The lines of an audit. ``again`` are the options that the next command needs to mean the same environment."""
    python = f" (Python {audit.python})" if audit.python is not None else ""
    yield style(f"environment {audit.site_root}{python}", dim=True)
    subjects = ", ".join(f"{each.name} {each.version}" for each in audit.subjects)
    own = [each for each in audit.imports if each.distribution is not None]
    files = f"{len(audit.files)} file{'s' * (len(audit.files) != 1)}"
    yield f"{audit.caller} ({files}): {len(own)} import{'s' * (len(own) != 1)} from {subjects}"
    yield from _render_whole(audit) if verbose else render_brief(audit)
    yield ""
    yield summary(audit)
    yield from what_next(audit, again)


def _render_whole(audit: Audit) -> Iterator[str]:
    yield from _render_imports(audit.imports)
    yield from _render_hazards(audit.hazards, audit.table)
    yield from _render_covered(audit.covered)
    yield from render_contradictions(audit.contradictions, verbose=True)
    yield from render_unread(audit, len(audit.unread))
    yield from _render_unknown(audit)


# ---- imports --------------------------------------------------------------------------------------------------


def _render_imports(imports: Sequence[Import]) -> Iterator[str]:
    if not imports:
        return
    yield ""
    yield style("imports", bold=True)
    asked = {(found.module, found.name) for found in imports}
    for path, group in groupby(imports, key=lambda found: found.place.path):
        yield f"  {path}"
        rows = list(group)
        width = min(40, max(len(name_of(found)) for found in rows))
        for found in rows:
            yield f"  {found.place.line:>5}  {name_of(found):<{width}}  {origin_of(found)}".rstrip()
            if found.branch:
                yield from fit(f"under: {' > '.join(found.branch)}", 9)
            if found.distribution is not None:
                yield from fit(_sites(found, is_asked_for=_asked_for(found, asked)), 9)


def _asked_for(found: Import, asked: set[tuple[str, str]]) -> bool:
    """Whether another module of the caller takes the name from here."""
    here = found.place.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return any(name == found.alias and f".{here}".endswith(f".{module}") for module, name in asked)


def _sites(found: Import, *, is_asked_for: bool) -> str:
    if not found.sites:
        return "imported, and used by other modules of the caller" if is_asked_for else "imported, and not used here"
    calls = [site.place.line for site in found.sites if site.use is Use.CALL and site.function]
    loading = [site.place.line for site in found.sites if site.use is Use.CALL and not site.function]
    others = [site.place.line for site in found.sites if site.use is not Use.CALL]
    parts = ((calls, "called"), (loading, "called at import"), (others, "otherwise used"))
    return "; ".join(f"{word} at {joined(list(map(str, lines)), 8)}" for lines, word in parts if lines)


# ---- hazards --------------------------------------------------------------------------------------------------


def _render_hazards(hazards: Sequence[Hazard], table: str) -> Iterator[str]:
    if not hazards:
        return
    yield ""
    yield f"{style('not covered', fg='red', bold=True)}: reached, and in the table of hazards ({table})"
    for callable, found in by_callable(hazards):
        yield f"  {style(callable, bold=True)}"
        yield from fit(kinds(found), 4)
        yield from _render_sites(found[0].sites)
        for hazard in found:
            yield from _render_chain(hazard)
        for id, number in helping(found):
            yield f"    {style(str(id), fg='cyan')}, at hand, would cover {number}"


def _render_sites(sites: Sequence[Step]) -> Iterator[str]:
    """The calls in the caller, a line a file."""
    for path, group in groupby(sites, key=lambda step: step.place.path):
        lines = [str(step.place.line) for step in group]
        yield from fit(f"called at {'line' if len(lines) == 1 else 'lines'} {', '.join(lines)} of {path}", 4)


def _render_chain(hazard: Hazard) -> Iterator[str]:
    yield f"    {style(hazard.construct, fg='red')}, {hazard.kind} ({hazard.confidence.value}): {hazard.reason}"
    for step in hazard.chain:
        called = hazard.construct if step is hazard.chain[-1] else short(step.calls)
        sure = "" if step.confidence is Confidence.DIRECT else f" ({step.confidence.value})"
        outside = "code that runs at import" if hazard.sites else "an import"
        yield f"      {step.place}"
        yield f"        {short(step.function) if step.function else outside} -> {called}{sure}"
        if step.branch:
            yield from fit(f"under: {' > '.join(step.branch)}", 10)


# ---- the other parts ------------------------------------------------------------------------------------------


def _render_covered(covered: Sequence[Covered]) -> Iterator[str]:
    if not covered:
        return
    yield ""
    yield style("covered", fg="green", bold=True)
    ordered = sorted(covered, key=lambda found: (found.hazard.callable, str(found.cover.place), found.owner.value))
    for callable, group in groupby(ordered, key=lambda found: found.hazard.callable):
        found = list(group)
        yield f"  {callable}"
        yield from fit(kinds(each.hazard for each in found), 4)
        for words, places in covers(found).items():
            yield from fit(f"{words}, at {joined(places, 3)}", 4)


def _render_unknown(audit: Audit) -> Iterator[str]:
    if not audit.unknown:
        return
    yield ""
    heading = style("not known", fg="yellow", bold=True)
    yield f"{heading}: {len(audit.unknown)} place{'s' * (len(audit.unknown) != 1)} where a static view ends"
    for doubt, number in Counter(each.doubt for each in audit.unknown).most_common():
        yield f"  {number:>5}  {doubt.value:<16}  {DOUBTS[doubt]}"
        for each in audit.unknown:
            if each.doubt is doubt:
                yield f"           {each.place}  {each.text}"
