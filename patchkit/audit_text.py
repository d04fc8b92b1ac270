"""An audit as lines for people: what is not covered first, how it is reached, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from click import style

from patchkit.audited import (
    DOUBTS,
    Audit,
    Confidence,
    Contradiction,
    Covered,
    Doubt,
    Effect,
    Hazard,
    Import,
    Owner,
    Step,
    Use,
)
from patchkit.patchset import PatchId

SHOWN_IMPORTS = 40
"""Imports that are listed without --verbose; of more there is only the count."""

SHOWN_CHAINS = 2
"""Chains of one callable that are shown without --verbose."""

WIDTH = 100

SHOWN_CALLABLES = 12
"""Callables whose chains are shown without --verbose; where there are more, each has its counts only."""

_EFFECTS = {
    Effect.GRAPH_BREAK: "one graph break",
    Effect.NOT_RECURSIVE: "one graph break, but what it calls is traced",
    Effect.OPERATOR: "an opaque operator",
    Effect.SKIPPED: "not traced",
}
_UNREAD = {
    Doubt.UNPARSED: "a file of the caller cannot be parsed",
    Doubt.MISSING: "the caller uses what is not there",
    Doubt.STRING: "the caller names a module of it in a string, and no statement imports it",
}
_FIRST = ("subprocess", "load-library", "foreign-function", "lock", "file-system")  # the kinds that are told first


def render_wrong(audit: Audit, *, again: str = "") -> Iterator[str]:
    """Only what is wrong, a line a callable, and the next command."""
    for callable, group in groupby(audit.hazards, key=lambda found: found.callable):
        found = list(group)
        yield from _fit(f"not covered: {callable}: {_kinds(found)}", 0)
    for each in audit.contradictions:
        if each.applied:
            yield f"contradiction: {each.callable}: {each.cover.maker} at {each.cover.place}"
    for place in audit.unread:
        yield f"no answer: {place.place}  {place.text} ({place.doubt.value})"
    yield _summary(audit).lstrip()
    following = _next_command(audit)
    if following:
        yield f"next: {style(following + again, bold=True)}"


def render_audit(audit: Audit, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """The lines of an audit. ``again`` are the options that the next command needs to mean the same environment."""
    python = f" (Python {audit.python})" if audit.python is not None else ""
    yield style(f"environment {audit.site_root}{python}", dim=True)
    subjects = ", ".join(f"{each.name} {each.version}" for each in audit.subjects)
    own = [each for each in audit.imports if each.distribution is not None]
    files = _count(len(audit.files), "file")
    yield f"{audit.caller} ({files}): {_count(len(own), 'import')} from {subjects}"
    yield from _render_imports(audit.imports, verbose=verbose)
    yield from _render_hazards(audit.hazards, audit.table, verbose=verbose)
    yield from _render_covered(audit.covered)
    yield from _render_contradictions(audit.contradictions)
    yield from _render_unread(audit)
    yield from _render_unknown(audit, verbose=verbose)
    yield _summary(audit)
    if any(each.doubt is Doubt.OWN for each in audit.unknown):
        of = " ".join(f"--of {each.name}" for each in audit.subjects)
        yield f"not looked into: the rest of {audit.whole}; patchkit audit {audit.whole} {of}{again}"
    following = _next_command(audit)
    if following:
        yield f"next: {style(following + again, bold=True)}"


def _fit(text: str, indent: int) -> list[str]:
    """``text`` in lines of at most `WIDTH` columns, as far as its words allow; what is carried over stands deeper."""
    return wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


# ---- imports --------------------------------------------------------------------------------------------------


def _render_imports(imports: Sequence[Import], *, verbose: bool) -> Iterator[str]:
    if not imports:
        return
    yield ""
    if len(imports) > SHOWN_IMPORTS and not verbose:
        files = len({found.place.path for found in imports})
        yield f"{style('imports', bold=True)}: {len(imports)} in {_count(files, 'file')}; --verbose lists them"
        return
    yield style("imports", bold=True)
    for path, group in groupby(imports, key=lambda found: found.place.path):
        yield f"  {path}"
        rows = list(group)
        width = min(40, max(len(_name(found)) for found in rows))
        for found in rows:
            yield f"  {found.place.line:>5}  {_name(found):<{width}}  {_definition(found)}".rstrip()
            if found.branch:
                yield from _fit(f"under: {' > '.join(found.branch)}", 9)
            if found.distribution is not None:
                yield from _fit(_sites(found), 9)


def _name(found: Import) -> str:
    name = found.name or found.module
    return name if name == found.alias else f"{name} as {found.alias}"


def _definition(found: Import) -> str:
    if found.definition is None:
        return f"of {found.module.partition('.')[0]}, not looked into"
    return str(found.definition.place)


def _sites(found: Import) -> str:
    if not found.sites:
        return "not used in this file"
    calls = [site.place.line for site in found.sites if site.use is Use.CALL and site.function]
    loading = [site.place.line for site in found.sites if site.use is Use.CALL and not site.function]
    others = [site.place.line for site in found.sites if site.use is not Use.CALL]
    parts = ((calls, "called"), (loading, "called at import"), (others, "otherwise used"))
    return "; ".join(f"{word} at {_lines(lines)}" for lines, word in parts if lines)


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:8]))
    return f"{shown} and {len(lines) - 8} more" if len(lines) > 8 else shown


# ---- hazards --------------------------------------------------------------------------------------------------


def _render_hazards(hazards: Sequence[Hazard], table: str, *, verbose: bool) -> Iterator[str]:
    if not hazards:
        return
    yield ""
    yield f"{style('not covered', fg='red', bold=True)}: reached, and in the table of hazards ({table})"
    many = len({hazard.callable for hazard in hazards}) > SHOWN_CALLABLES
    for callable, group in groupby(hazards, key=lambda found: found.callable):
        found = sorted(group, key=_weight)
        yield f"  {style(callable, bold=True)}"
        yield from _fit(_kinds(found), 4)
        yield from _render_sites(found[0].sites)
        one_of_each = list({hazard.kind: hazard for hazard in reversed(found)}.values())[::-1]
        shown = found if verbose else [] if many else one_of_each[:SHOWN_CHAINS]
        for hazard in shown:
            yield from _render_chain(hazard)
        if len(found) > len(shown) and not many:
            yield f"    and {len(found) - len(shown)} more; --verbose shows each with its chain"
        yield from _render_patches(found)
    if many and not verbose:
        yield "  --verbose shows each hazard with its chain; an audit of one module shows the first"


def _render_sites(sites: Sequence[Step]) -> Iterator[str]:
    """The calls in the caller, a line a file."""
    for path, group in groupby(sites, key=lambda step: step.place.path):
        lines = [step.place.line for step in group]
        yield f"    called at {'line' if len(lines) == 1 else 'lines'} {_lines(lines)} of {path}"


def _weight(hazard: Hazard) -> tuple[int, int, int]:
    rank = _FIRST.index(hazard.kind) if hazard.kind in _FIRST else len(_FIRST)
    return (rank, len(hazard.chain), hazard.place.line)


def _kinds(hazards: Iterable[Hazard]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in Counter(hazard.kind for hazard in hazards).items())


def _render_chain(hazard: Hazard) -> Iterator[str]:
    yield f"    {style(hazard.construct, fg='red')}, {hazard.kind} ({hazard.confidence.value}): {hazard.reason}"
    for step in hazard.chain:
        called = hazard.construct if step is hazard.chain[-1] else _short(step.calls)
        sure = "" if step.confidence is Confidence.DIRECT else f" ({step.confidence.value})"
        yield f"      {step.place}"
        yield f"        {_short(step.function) if step.function else 'an import'} -> {called}{sure}"
        if step.branch:
            yield from _fit(f"under: {' > '.join(step.branch)}", 10)


def _short(symbol: str) -> str:
    """A symbol without its module: what a reader finds in the file."""
    parts = symbol.split(".")
    classes = [index for index, part in enumerate(parts) if part[:1].isupper()]
    return ".".join(parts[classes[0] :]) if classes else parts[-1]


def _render_patches(hazards: Sequence[Hazard]) -> Iterator[str]:
    counts = Counter(id for hazard in hazards for id in hazard.patches)
    for id, count in counts.most_common():
        words = "all of them" if count == len(hazards) else f"{count} of {len(hazards)}"
        yield f"    {style(str(id), fg='cyan')}, at hand, would cover {words}"


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
        yield from _fit(_kinds(each.hazard for each in found), 4)
        for words, places in _covers(found).items():
            yield from _fit(
                f"{words}, at {', '.join(places[:3])}{f' and {len(places) - 3} more' * (len(places) > 3)}", 4
            )


def _covers(found: Iterable[Covered]) -> dict[str, list[str]]:
    """What covers a callable's hazards, in words, each with its places."""
    covers: dict[str, dict[str, None]] = {}
    for each in found:
        whose = f"{each.patch}, applied" if each.owner is Owner.PATCH else each.owner.value
        words = f"by {style(whose, fg='green')}: {_EFFECTS[each.cover.effect]}, {each.cover.maker}"
        covers.setdefault(words, {})[str(each.cover.place)] = None
    return {words: list(places) for words, places in covers.items()}


def _render_contradictions(found: Sequence[Contradiction]) -> Iterator[str]:
    if not found:
        return
    yield ""
    yield f"{style('contradictions', fg='red', bold=True)}: a graph break, and fullgraph=True in the same distribution"
    for each in found:
        whose = (
            f"{each.patch}, {'applied' if each.applied else 'if it were applied'}" if each.patch else each.owner.value
        )
        yield f"  {each.callable}"
        yield f"    {each.cover.maker} at {each.cover.place} ({whose})"
        for compiled in each.compiles:
            yield f"    {compiled.site.text} at {compiled.site.place}"
        if each.alternative is not None:
            yield f"    {style(str(each.alternative), fg='cyan')} of the same group has no graph break"


def _render_unread(audit: Audit) -> Iterator[str]:
    if not audit.unread:
        return
    yield ""
    yield f"{style('no answer', fg='red', bold=True)}: what the caller does here cannot be told"
    for each in audit.unread:
        yield f"  {each.place}  {each.text} ({each.doubt.value})"


def _render_unknown(audit: Audit, *, verbose: bool) -> Iterator[str]:
    if not audit.unknown:
        return
    yield ""
    ending = "" if verbose else "; --verbose lists them"
    places = _count(len(audit.unknown), "place")
    yield f"{style('not known', fg='yellow', bold=True)}: {places} where a static view ends{ending}"
    for doubt, count in Counter(each.doubt for each in audit.unknown).most_common():
        yield f"  {count:>5}  {doubt.value:<16}  {DOUBTS[doubt]}"
        for each in audit.unknown if verbose else ():
            if each.doubt is doubt:
                yield f"           {each.place}  {each.text}"


def _summary(audit: Audit) -> str:
    callables = len({hazard.callable for hazard in audit.hazards})
    applied = sum(found.applied for found in audit.contradictions)
    if audit.complete:
        rest = f", {_count(len(audit.unknown), 'place')} not known" if audit.unknown else ""
        if not audit.imports:
            return f"\nnothing is imported from it{rest or ': there is nothing to cover'}"
        return f"\ncomplete as far as a static view goes: nothing uncovered is left{rest}"
    parts = (
        [f"{_count(len(audit.hazards), 'hazard')} not covered, in {_count(callables, 'callable')}"] if callables else []
    )
    parts += [f"{_count(applied, 'contradiction')}"] if applied else []
    parts += [f"{_UNREAD[doubt]}" for doubt in _UNREAD if any(each.doubt is doubt for each in audit.unread)]
    return "\nnot complete: " + "; ".join(parts)


def _next_command(audit: Audit) -> str:
    """Apply the alternative of a patch that contradicts, else the patches that cover most, one of a group."""
    for found in audit.contradictions:
        if found.applied and found.alternative is not None:
            return f"patchkit apply {found.alternative}"
    contradicting = {found.patch for found in audit.contradictions}
    left = [set(hazard.patches) - contradicting or set(hazard.patches) for hazard in audit.hazards if hazard.patches]
    chosen: list[PatchId] = []
    while left:
        [(id, _)] = Counter(sorted(id for patches in left for id in patches)).most_common(1)
        chosen.append(id)
        left = [patches for patches in left if id not in patches]
    return f"patchkit apply {' '.join(map(str, chosen))}" if chosen else ""
