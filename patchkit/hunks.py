"""Hunks meet a text: where each fits, what comes out, and why one does not fit.

Everything is byte for byte: no fuzz, no white space ignored. A place is taken only when git apply would take it too,
or when the section heading singles it out; wherever two places have a claim, it is a conflict and not a guess.
All lines are 1-based lines of the text before this patch, so that earlier hunks do not move later ones.

Sources: git-apply(1) and its treatment of the first and last lines; patch(1); git-diff(1) on hunk headings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

from patchkit.model import EntryKind, FileDiff, Hunk, HunkOutcome, HunkResult
from patchkit.places import MAX_PLACES, Text, diagnosed

Layer = tuple[tuple[int, int], ...]

MAX_MISFITS = 100
"""Hunks of one entry: when so many do not fit, those behind them are not tried."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the patches below moved the lines of the pristine text.

    A layer is what one patch did: pairs of a line, as it was before that layer, and the number of lines by which it
    and all below it moved (negative: up).
    """

    layers: tuple[Layer, ...] = ()

    def line(self, stated: int) -> int:
        """Where the pristine line ``stated`` is now."""
        for layer in self.layers:
            stated += sum(delta for line, delta in layer if line <= stated)
        return stated

    def above(self, layer: Layer) -> Shift:
        """The shift for a patch that comes on top of ``layer`` as well."""
        return Shift((*self.layers, layer)) if layer else self


@dataclass(frozen=True, slots=True)
class Placed:
    """What came of applying the hunks of one entry.

    ``data`` is the new text, or None when any hunk conflicts; then all outcomes tell all conflicts. ``layer`` is for
    `Shift.above`; ``dropped_cr`` says that the hunks fit only without the CRs of a patch file with CRLF line ends.
    """

    data: bytes | None
    outcomes: tuple[HunkOutcome, ...]
    layer: Layer = ()
    dropped_cr: bool = False


def apply_hunks(data: bytes, diff: FileDiff, lower: Shift = Shift()) -> Placed:
    """Apply the hunks of ``diff`` to ``data``; to undo them, give ``diff.reversed()``.

    Only the content is done here: a creation expects b"", a deletion must leave b"" or it conflicts. ``lower`` is what
    the patches below did to this file since it was pristine.
    """
    if diff.kind is EntryKind.DELETE and not diff.hunks and data:
        return Placed(None, (_conflict(1, 1, "the file to be deleted should be empty, but has text"),))
    text = Text(data)
    placed = _apply(text, diff.hunks, lower)
    if placed.data is not None or diff.without_cr is None:
        return placed
    without = _apply(text, diff.without_cr, lower)
    if _conflicts(without) < _conflicts(placed):
        return Placed(without.data, without.outcomes, without.layer, dropped_cr=True)
    return placed


def find_upstream(data: bytes, diff: FileDiff) -> tuple[HunkOutcome, ...]:
    """For each hunk, whether what it brings is in ``data`` already: `UPSTREAM`, or `CONFLICT` with the reason.

    Upstream means: the hunk adds a line, its whole new side stands at exactly one place, and these places come in the
    order of the hunks. A created file must be there as a whole.
    """
    text = Text(data)
    outcomes = _find_upstream(text, diff, diff.hunks)
    if diff.without_cr is not None and any(outcome.result is HunkResult.CONFLICT for outcome in outcomes):
        without = _find_upstream(text, diff, diff.without_cr)
        if all(outcome.result is HunkResult.UPSTREAM for outcome in without):
            return without
    return outcomes


def _conflicts(placed: Placed) -> int:
    return sum(outcome.result is HunkResult.CONFLICT for outcome in placed.outcomes)


def _conflict(number: int, line: int, reason: str) -> HunkOutcome:
    return HunkOutcome(number=number, line=line, offset=0, result=HunkResult.CONFLICT, reason=reason)


# ---- forward --------------------------------------------------------------------------------------------------


def _apply(text: Text, hunks: tuple[Hunk, ...], lower: Shift) -> Placed:
    outcomes = _try_all(hunks, _Placing(text, lower).place)
    if any(outcome.result is HunkResult.CONFLICT for outcome in outcomes):
        return Placed(None, outcomes)
    pieces: list[bytes] = []
    end = 0
    layer: list[tuple[int, int]] = []
    for hunk, outcome in zip(hunks, outcomes, strict=True):
        begin = text.offset(outcome.line)
        pieces += [text.data[end:begin], hunk.new]
        end = begin + len(hunk.old)
        if hunk.new_count != hunk.old_count:
            layer.append((outcome.line + hunk.old_count - hunk.trailing, hunk.new_count - hunk.old_count))
    pieces.append(text.data[end:])
    return Placed(b"".join(pieces), outcomes, tuple(layer))


def _try_all(hunks: tuple[Hunk, ...], judge: Callable[[Hunk], HunkOutcome]) -> tuple[HunkOutcome, ...]:
    """What ``judge`` says of each hunk, until `MAX_MISFITS` of them are conflicts."""
    outcomes: list[HunkOutcome] = []
    misfits = 0
    for hunk in hunks:
        outcomes.append(judge(hunk))
        misfits += outcomes[-1].result is HunkResult.CONFLICT
        if misfits == MAX_MISFITS and (left := len(hunks) - len(outcomes)):
            words = f"{outcomes[-1].reason}; the {left} hunks behind it were not tried"
            return (*outcomes[:-1], replace(outcomes[-1], reason=words))
    return tuple(outcomes)


class _NoPlace(Exception):
    """Why a hunk was not placed, in words."""


class _Placing:
    """The hunks of one patch, placed in turn; remembers where the earlier ones went."""

    def __init__(self, text: Text, lower: Shift) -> None:
        self.text = text
        self.lower = lower
        self.floor = 1
        self.drift = 0
        self.last = 0
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.growth = [0]

    def place(self, hunk: Hunk) -> HunkOutcome:
        stated = hunk.old_begin
        try:
            line = self.line_of(hunk)
        except _NoPlace as reason:
            return diagnosed(self.text, _conflict(hunk.number, stated, str(reason)), hunk.old)
        self.begins.append(line)
        self.ends.append(line + hunk.old_count)
        self.growth.append(self.growth[-1] + hunk.new_count - hunk.old_count)
        self.floor, self.last = line + hunk.old_count, hunk.number
        self.drift = line - stated if line not in (stated, self.lower.line(stated)) else 0
        return HunkOutcome(number=hunk.number, line=line, offset=line - stated, result=HunkResult.FITS)

    def line_of(self, hunk: Hunk) -> int:
        if hunk.old_start <= 1 or not hunk.trailing:
            return self.anchored(hunk)
        stated = hunk.old_begin
        shifted = self.lower.line(stated)
        here, below = self.fits(hunk, stated), shifted != stated and self.fits(hunk, shifted)
        if here and below:
            raise _NoPlace(f"fits at line {stated} as stated and at line {shifted} below the other patch")
        return self.checked(hunk, stated) if here else self.searched(hunk)

    def fits(self, hunk: Hunk, line: int) -> bool:
        return line >= self.floor and self.text.has(hunk.old, line)

    def anchored(self, hunk: Hunk) -> int:
        """The only line for a hunk at the beginning, or without context behind its last change: as git apply has it."""
        last = self.text.count - hunk.old_count + 1
        line = 1 if hunk.old_start <= 1 else last
        if self.fits(hunk, line) and (hunk.trailing or line == last):
            return line
        raise _NoPlace(self.why_not_anchored(hunk))

    def why_not_anchored(self, hunk: Hunk) -> str:
        if not hunk.old:
            return "fits only an empty file" if hunk.old_start <= 1 else "fits only behind a newline that ends the file"
        places = self.places(hunk)
        if not places:
            return "no place in the file has these lines"
        where = f"its lines stand at line {places[0]}, but it must "
        if hunk.old_start <= 1 and not hunk.trailing:
            return where + "be the whole file: it begins at line 1 and has no context behind its last change"
        if hunk.old_start <= 1:
            return where + "stand at the beginning of the file, as its header states line 1"
        return where + "stand at the end of the file, as it has no context behind its last change"

    def checked(self, hunk: Hunk, stated: int) -> int:
        """The stated line, where the hunk fits, unless another place has as good a claim."""
        moved = stated + self.drift
        if self.drift and self.fits(hunk, moved):
            raise _NoPlace(f"fits at line {stated} as stated and at line {moved}, moved as hunk {self.last} is")
        if self.stood(stated) != hunk.new_begin and self.nearest(hunk, self.places(hunk)) != stated:
            raise _NoPlace(f"fits at line {stated}, but its header's two line numbers contradict each other")
        return stated

    def searched(self, hunk: Hunk) -> int:
        """The one place elsewhere with a claim; two that point to different places leave none."""
        places = self.places(hunk)
        if len(places) > MAX_PLACES:
            raise _NoPlace(f"more than {MAX_PLACES} places fit")
        claims = self.claims(hunk, places)
        if len(claims) == 1 and min(claims) >= self.floor:
            return claims.pop()
        raise _NoPlace(self.why_not(hunk, places, claims))

    def claims(self, hunk: Hunk, places: list[int]) -> set[int]:
        """The place that alone stands under the section heading; the only one left, or the one moved as the hunk above.

        The latter two must be where git apply would go, too.
        """
        headed = [line for line in places if self.text.stands_under(line, hunk.section)]
        claims = set(headed if len(headed) == 1 else [])
        near = self.nearest(hunk, places)
        only = sum(line >= self.floor for line in places) == 1
        if near is not None and near >= self.floor and (only or near == hunk.old_begin + self.drift):
            claims.add(near)
        return claims

    def why_not(self, hunk: Hunk, places: list[int], claims: set[int]) -> str:
        if not places:
            return "no place in the file has these lines"
        shown = ", ".join(map(str, places[:10])) + (", ..." if len(places) > 10 else "")
        if len(places) == 1:
            return f"fits at line {shown}, but only before hunk {self.last}"
        if len(claims) > 1:
            why = "its section heading and the hunk above point to different ones"
        else:
            why = "its section heading does not tell which" if hunk.section.strip() else "it has no section heading"
        return f"{len(places)} places fit: lines {shown}; {why}"

    def places(self, hunk: Hunk) -> list[int]:
        """All lines where it fits that no earlier hunk has taken."""
        if self.text.exhausted:
            raise _NoPlace("is not searched for: too many hunks of this file are not at the line that they state")
        return [line for line in self.text.places(hunk.old) if not self.taken(line, line + hunk.old_count)]

    def taken(self, begin: int, end: int) -> bool:
        before = bisect_right(self.begins, end - 1)
        return bool(before) and self.ends[before - 1] > begin

    def stood(self, line: int) -> int:
        """Where the line is once the earlier hunks are applied."""
        return line + self.growth[bisect_right(self.begins, line)]

    def nearest(self, hunk: Hunk, places: list[int]) -> int | None:
        """The place that git apply would take: the one nearest to the new side's line; None where two are."""
        distances = sorted((abs(self.stood(line) - hunk.new_begin), line) for line in places)
        if not distances or (len(distances) > 1 and distances[0][0] == distances[1][0]):
            return None
        return distances[0][1]


# ---- upstream -------------------------------------------------------------------------------------------------


def _find_upstream(text: Text, diff: FileDiff, hunks: tuple[Hunk, ...]) -> tuple[HunkOutcome, ...]:
    floor = 1

    def judge(hunk: Hunk) -> HunkOutcome:
        nonlocal floor
        try:
            line = _upstream_line(text, hunk, floor, whole=diff.kind is EntryKind.CREATE)
        except _NoPlace as reason:
            return diagnosed(text, _conflict(hunk.number, hunk.new_begin, str(reason)), hunk.new)
        floor = line + hunk.new_count
        return HunkOutcome(hunk.number, line, line - hunk.new_begin, HunkResult.UPSTREAM)

    return _try_all(hunks, judge)


def _upstream_line(text: Text, hunk: Hunk, floor: int, *, whole: bool) -> int:
    if not hunk.added:
        raise _NoPlace("only deletes lines, so their absence proves nothing")
    if text.exhausted:
        raise _NoPlace("what it brings is not searched for: too many hunks of this file are")
    places = text.places(hunk.new)
    if not places:
        raise _NoPlace("what it brings is not in the file")
    if len(places) > 1:
        raise _NoPlace("what it brings is in the file at more than one place")
    if places[0] < floor:
        raise _NoPlace("what it brings is in the file, but not behind the hunk before it")
    if whole and text.data != hunk.new:
        raise _NoPlace("the file is there with other text")
    return places[0]
