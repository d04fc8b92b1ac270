"""The words that the lines of an audit share, brief or whole: counts, covers, what it comes to, what is next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from click import style

from patchkit.audited import Audit, Compile, Contradiction, Covered, Doubt, Effect, Hazard, Import, Owner, Step
from patchkit.patchset import PatchId

WIDTH = 100

_EFFECTS = {
    Effect.GRAPH_BREAK: "one graph break",
    Effect.NOT_RECURSIVE: "one graph break, but what it calls is traced",
    Effect.OPERATOR: "an opaque operator",
    Effect.SKIPPED: "not traced",
}
_OWNERS = {Owner.CALLER: "the caller", Owner.UPSTREAM: "upstream"}
_UNREAD = {
    Doubt.UNPARSED: "a file of the caller cannot be parsed",
    Doubt.MISSING: "the caller uses what is not there",
    Doubt.STRING: "the caller names a module of it in a string, and no statement imports it",
}
_FIRST = ("subprocess", "load-library", "foreign-function", "lock", "file-system")  # the kinds that are told first
_COMPILES = 3
"""Places that compile as a whole which are listed without --verbose, and as many that may."""


def fit(text: str, indent: int) -> list[str]:
    """``text`` in lines of at most `WIDTH` columns, as far as its words allow; what is carried over stands deeper."""
    return wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def joined(words: Sequence[str], most: int, what: str = "more") -> str:
    """The first ``most`` of ``words``, and how many there are besides."""
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} {what}"


def name_of(found: Import) -> str:
    name = found.name or found.module
    return name if name == found.alias else f"{name} as {found.alias}"


def origin_of(found: Import) -> str:
    """Where it is defined."""
    if found.definition is None:
        return f"of {found.module.partition('.')[0]}, not looked into"
    return str(found.definition.place)


def short(symbol: str) -> str:
    """A symbol without its module: what a reader finds in the file."""
    parts = symbol.split(".")
    classes = [index for index, part in enumerate(parts) if part.lstrip("_")[:1].isupper()]
    return ".".join(parts[classes[0] :]) if classes else parts[-1]


# ---- hazards --------------------------------------------------------------------------------------------------


def by_callable(hazards: Iterable[Hazard]) -> list[tuple[str, list[Hazard]]]:
    """The hazards of each callable, those that tell most first."""
    groups = groupby(hazards, key=lambda found: found.callable)
    return [(callable, sorted(group, key=_weight)) for callable, group in groups]


def _weight(hazard: Hazard) -> tuple[int, int, int]:
    rank = _FIRST.index(hazard.kind) if hazard.kind in _FIRST else len(_FIRST)
    return (rank, len(hazard.chain), hazard.place.line)


def kinds(hazards: Iterable[Hazard], most: int = 1000) -> str:
    """How many there are of each kind; of all but ``most`` kinds together."""
    counts = Counter(hazard.kind for hazard in hazards)
    words = [f"{kind} {number}" for kind, number in counts.items()]
    others = sum(list(counts.values())[most:])
    return ", ".join(words[:most]) + (f" and {count(others, 'other')}" if others else "")


def called_by(sites: Sequence[Step]) -> Iterator[str]:
    """The calls in the caller, in words: a function, and its lines."""
    for (path, function), group in groupby(sites, key=lambda step: (step.place.path, step.function)):
        lines = joined([str(step.place.line) for step in group], 6)
        yield f"{short(function) if function else 'code that runs at import'}, {path}:{lines}"


def helping(hazards: Sequence[Hazard]) -> list[tuple[PatchId, str]]:
    """The patches at hand that would cover hazards, with how many in words; what covers most first."""
    counts = Counter(id for hazard in hazards for id in hazard.patches)
    return [
        (id, "all of them" if number == len(hazards) else f"{number} of {len(hazards)}")
        for id, number in counts.most_common()
    ]


# ---- covers and contradictions --------------------------------------------------------------------------------


def covers(found: Iterable[Covered]) -> dict[str, list[str]]:
    """What covers a callable's hazards, in words, each with its places."""
    told: dict[str, dict[str, None]] = {}
    for each in found:
        whose = f"{each.patch}, applied" if each.owner is Owner.PATCH else _OWNERS[each.owner]
        words = f"by {style(whose, fg='green')}: {_EFFECTS[each.cover.effect]}, {each.cover.maker}"
        told.setdefault(words, {})[str(each.cover.place)] = None
    return {words: list(places) for words, places in told.items()}


def render_contradictions(found: Sequence[Contradiction], *, verbose: bool) -> Iterator[str]:
    """Each graph break once, with the callables that lead to it; then the places that allow none."""
    if not found:
        return
    yield ""
    where = "is" if any(each.sure for each in found[0].compiles) else "may be"
    heading = "contradictions" if any(each.applied for each in found) else "contradictions that a patch would bring"
    yield f"{style(heading, fg='red', bold=True)}: a graph break, and code that {where} compiled as a whole"
    groups: dict[tuple[str, str, PatchId | None], list[Contradiction]] = {}
    for each in found:
        groups.setdefault((str(each.cover.place), each.cover.maker, each.patch), []).append(each)
    for group in groups.values():
        yield from _render_break(group, verbose=verbose)
    yield "  compiled as a whole, where a graph break is an error:"
    compiles = list(dict.fromkeys(compiled for each in found for compiled in each.compiles))
    yield from _render_compiles([each for each in compiles if each.sure], "", verbose=verbose)
    yield from _render_compiles([each for each in compiles if not each.sure], "perhaps ", verbose=verbose)


def _render_break(group: Sequence[Contradiction], *, verbose: bool) -> Iterator[str]:
    first = group[0]
    whose = f"of {_OWNERS[first.owner]}" if first.owner in _OWNERS else ""
    if first.patch is not None:
        whose = f"{first.patch}, {'applied' if first.applied else 'if it were applied'}"
    yield from fit(f"{first.cover.maker} at {first.cover.place} ({whose})", 2)
    names = [short(each.callable) for each in group]
    yield from fit(f"reached by {joined(names, len(names) if verbose else 6)}", 4)
    alternatives = dict.fromkeys(each.alternative for each in group if each.alternative is not None)
    for alternative in alternatives:
        yield f"    {style(str(alternative), fg='cyan')} of the same group has no graph break"


def _render_compiles(compiles: Sequence[Compile], word: str, *, verbose: bool) -> Iterator[str]:
    shown = compiles if verbose else compiles[:_COMPILES]
    for each in shown:
        yield f"    {word}{each.site.text} at {each.site.place}"
    if len(compiles) > len(shown):
        yield f"    {word}{len(compiles) - len(shown)} more; --verbose lists them"


# ---- what it comes to -----------------------------------------------------------------------------------------


def render_unread(audit: Audit, most: int) -> Iterator[str]:
    """Places in the caller that leave no answer, at most so many."""
    if not audit.unread:
        return
    yield ""
    yield f"{style('no answer', fg='red', bold=True)}: what the caller does here cannot be told"
    for each in audit.unread[:most]:
        yield f"  {each.place}  {each.text} ({each.doubt.value})"
    if len(audit.unread) > most:
        yield f"  {len(audit.unread) - most} more; --verbose lists them"


def summary(audit: Audit) -> str:
    """The answer, in one sentence."""
    callables = len({hazard.callable for hazard in audit.hazards})
    standing = sum(found.stands for found in audit.contradictions)
    if audit.complete:
        rest = f", {count(len(audit.unknown), 'place')} not known" if audit.unknown else ""
        if not audit.imports:
            return f"nothing is imported from it{rest or ': there is nothing to cover'}"
        return f"complete as far as a static view goes: nothing uncovered is left{rest}"
    parts = (
        [f"{count(len(audit.hazards), 'hazard')} not covered, in {count(callables, 'callable')}"] if callables else []
    )
    parts += [f"{count(standing, 'contradiction')}"] if standing else []
    parts += [f"{_UNREAD[doubt]}" for doubt in _UNREAD if any(each.doubt is doubt for each in audit.unread)]
    return "not complete: " + "; ".join(parts)


def what_next(audit: Audit, again: str) -> Iterator[str]:
    """What to do: the command, and what is left behind it."""
    if any(each.doubt is Doubt.OWN for each in audit.unknown):
        of = " ".join(f"--of {each.name}" for each in audit.subjects)
        yield f"not looked into: the rest of {audit.whole}; patchkit audit {audit.whole} {of}{again}"
    left = {hazard.callable for hazard in audit.hazards if not hazard.patches}
    if left:
        names = joined(sorted(map(short, left)), 2)
        yield from fit(
            f"no patch at hand covers all of {names}; where compiled code calls it, wrap the call in an operator "
            "(torch.library.custom_op), else leave it",
            0,
        )
    yield from render_next(audit, again)


def render_next(audit: Audit, again: str) -> Iterator[str]:
    """The line with the next command, where there is one."""
    following = next_command(audit)
    if following:
        yield f"next: {style(following + again, bold=True)}"


def next_command(audit: Audit) -> str:
    """Apply the alternative of a patch that contradicts, else the patches that cover most, one of a group."""
    for found in audit.contradictions:
        if found.stands and found.alternative is not None:
            return f"patchkit apply {found.alternative}"
    contradicting = {found.patch for found in audit.contradictions}
    left = [set(hazard.patches) - contradicting or set(hazard.patches) for hazard in audit.hazards if hazard.patches]
    chosen: list[PatchId] = []
    while left:
        [(id, _)] = Counter(sorted(id for patches in left for id in patches)).most_common(1)
        chosen.append(id)
        rivals = {other for group in audit.groups if id in group for other in group}
        left = [patches - rivals for patches in left if id not in patches and not patches <= rivals]
    return f"patchkit apply {' '.join(map(str, chosen))}" if chosen else ""
