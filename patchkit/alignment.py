"""Two texts side by side, by lines: which lines correspond, what differs within them, and what is left out.

Bounded: however large or hostile the texts are, the work and the result are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import NamedTuple

from patchkit.escapes import make_legible

CONTEXT = 3
"""Lines that are the same on both sides and are shown around a difference."""
LONGEST = 400
"""Characters that are shown of one line."""
MATCHED = 2000
"""Lines of one side that are matched with those of the other; more are set beside each other in their order."""
PAIRED = 900
"""Pairs of lines that are compared to find which resemble each other."""
ALIKE = 0.4
"""The share of common words from which two lines are one line that was changed."""


@unique
class Kind(Enum):
    """How the two sides of a row differ."""

    SAME = "same"
    CHANGED = "changed"
    MISSING = "missing"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line, fit to be shown; ``differs`` from the other side."""

    text: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one side; ``number`` is 1-based, None where nobody knows it."""

    number: int | None
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Pair:
    """What stands side by side; None: nothing does on that side."""

    kind: Kind
    expected: Line | None
    found: Line | None


@dataclass(frozen=True, slots=True)
class Gap:
    """So many lines, the same on both sides, are left out here."""

    lines: int


Row = Pair | Gap


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two texts side by side; ``cut`` rows behind the last one are not told."""

    rows: tuple[Row, ...]
    cut: int = 0


def split_lines(data: bytes) -> tuple[str, ...]:
    """``data`` by lines without their feeds; as in diff(1), a line says where the last one has none.

    Bytes that are not UTF-8 become surrogates (PEP 383), so that different bytes stay different.
    """
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    return (*lines[:-1], *((lines[-1], "\\ No newline at end of file") if lines[-1] else ()))


def align(
    expected: Sequence[str],
    found: Sequence[str],
    *,
    expected_from: int | None = 1,
    found_from: int | None = 1,
    limit: int,
) -> Alignment:
    """At most ``limit`` rows that show where two runs of lines differ, with `CONTEXT` around.

    ``expected_from`` and ``found_from`` are the numbers of their first lines (None: not known).
    """
    places = tuple(_fold(_match(expected, found)))
    rows = tuple(
        place if isinstance(place, Gap) else _show(place, expected, found, expected_from, found_from)
        for place in places[:limit]
    )
    return Alignment(rows, len(places) - len(rows))


# ---- lines ----------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """The indexes of two lines that stand side by side. ``same``: they are equal. ``alike``: one became the other."""

    expected: int | None
    found: int | None
    same: bool = False
    alike: bool = False


def _match(expected: Sequence[str], found: Sequence[str]) -> Iterator[_Place]:
    """Every line of both sides, once and in order."""
    shorter = min(len(expected), len(found))
    head = next((n for n in range(shorter) if expected[n] != found[n]), shorter)
    tail = next((n for n in range(shorter - head) if expected[-1 - n] != found[-1 - n]), shorter - head)
    yield from (_Place(n, n, same=True) for n in range(head))
    one, other = len(expected) - tail, len(found) - tail
    for same, low, high, below, above in _block(expected[head:one], found[head:other]):
        ours, theirs = range(head + low, head + high), range(head + below, head + above)
        if same:
            yield from (_Place(i, j, same=True) for i, j in zip(ours, theirs, strict=True))
        else:
            yield from _pair_up(ours, theirs, expected, found)
    yield from (_Place(one + n, other + n, same=True) for n in range(tail))


def _block(expected: Sequence[str], found: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Blocks that are equal or not, as index ranges on both sides."""
    if not (expected and found) or max(len(expected), len(found)) > MATCHED:
        if expected or found:
            yield False, 0, len(expected), 0, len(found)
        return
    from difflib import SequenceMatcher

    for tag, *bounds in SequenceMatcher(None, expected, found).get_opcodes():
        low, high, below, above = bounds
        yield tag == "equal", low, high, below, above


def _pair_up(ours: range, theirs: range, expected: Sequence[str], found: Sequence[str]) -> Iterator[_Place]:
    """Lines of two blocks that differ: those that resemble each other side by side, the others in their order."""
    i, j = ours.start, theirs.start
    for left, right in (*_find_alike(ours, theirs, expected, found), (ours.stop, theirs.stop)):
        while i < left or j < right:
            yield _Place(i if i < left else None, j if j < right else None)
            i, j = min(i + 1, left), min(j + 1, right)
        if left < ours.stop:
            yield _Place(left, right, alike=True)
        i, j = left + 1, right + 1


def _find_alike(ours: range, theirs: range, expected: Sequence[str], found: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of lines, in order on both sides, whose resemblance is greatest in sum."""
    if len(ours) * len(theirs) > PAIRED:
        return []
    words = [
        [Counter(_WORD.findall(text[:LONGEST])) for text in side]
        for side in (expected[ours.start : ours.stop], found[theirs.start : theirs.stop])
    ]
    best = [[0.0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    likeness = [[_compare(one, other) for other in words[1]] for one in words[0]]
    for i in reversed(range(len(ours))):
        for j in reversed(range(len(theirs))):
            paired = best[i + 1][j + 1] + likeness[i][j] if likeness[i][j] >= ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    pairs, i, j = [], 0, 0
    while i < len(ours) and j < len(theirs):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((ours[i], theirs[j]))
            i, j = i + 1, j + 1
    return pairs


_WORD = re.compile(r"\w+|[^\w\s]")


def _compare(one: Counter[str], other: Counter[str]) -> float:
    """The share of words that two lines have in common, from 0 to 1."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


def _fold(places: Iterator[_Place]) -> Iterator[_Place | Gap]:
    """Leave out equal lines that are far from any difference; one alone is shown, as the word for it is no shorter."""
    run: list[_Place] = []
    seen = False
    for place in places:
        if place.same:
            run.append(place)
            continue
        yield from _fold_run(run, CONTEXT if seen else 0, CONTEXT)
        run, seen = [], True
        yield place
    yield from _fold_run(run, CONTEXT if seen else 0, 0)


def _fold_run(run: Sequence[_Place], before: int, after: int) -> Iterator[_Place | Gap]:
    hidden = len(run) - before - after
    if hidden < 2:
        yield from run
        return
    yield from run[:before]
    yield Gap(hidden)
    yield from run[len(run) - after :]


# ---- within a line --------------------------------------------------------------------------------------------


def _show(
    place: _Place,
    expected: Sequence[str],
    found: Sequence[str],
    expected_from: int | None,
    found_from: int | None,
) -> Pair:
    ours = None if place.expected is None else expected[place.expected]
    theirs = None if place.found is None else found[place.found]
    left, right = _mark(ours, theirs, place)
    return Pair(
        Kind.SAME if place.same else Kind.EXTRA if ours is None else Kind.MISSING if theirs is None else Kind.CHANGED,
        None if place.expected is None else Line(_number(expected_from, place.expected), left),
        None if place.found is None else Line(_number(found_from, place.found), right),
    )


def _number(first: int | None, index: int) -> int | None:
    return None if first is None else first + index


def _mark(ours: str | None, theirs: str | None, place: _Place) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The spans of both sides."""
    one, other = ours or "", theirs or ""
    start = _find_start(one, other) if place.alike else 0
    clipped = [_clip(text, start) for text in (one, other)]
    if place.alike:
        marked = _mark_words(clipped[0][1], clipped[1][1])
    else:
        marked = [_mark_whole(text, differs=not place.same) for _, text, _ in clipped]
    left, right = (
        (*_left_out(before), *spans, *_left_out(behind))
        for (before, _, behind), spans in zip(clipped, marked, strict=True)
    )
    return left, right


def _mark_whole(text: str, *, differs: bool) -> tuple[Span, ...]:
    """A line of its own; its indentation is not what people look for."""
    words = text.lstrip(" \t")
    indent = text[: len(text) - len(words)] if words and differs else ""
    spans = (Span(indent, differs=False), Span(make_legible(text[len(indent) :]), differs))
    return tuple(span for span in spans if span.text)


def _find_start(one: str, other: str) -> int:
    """From where on two lines are worth showing; where one is too long, shortly before they differ."""
    if max(len(one), len(other)) <= LONGEST:
        return 0
    shorter = min(len(one), len(other))
    differs = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    return max(0, differs - LONGEST // 10)


def _clip(text: str, start: int) -> tuple[int, str, int]:
    """The part of ``text`` that is shown, with how many characters before and behind it are not."""
    shown = text[start : start + LONGEST]
    return min(start, len(text)), shown, len(text) - len(shown) - min(start, len(text))


def _left_out(characters: int) -> tuple[Span, ...]:
    return (Span(f"[... {characters} characters ...]", differs=False),) if characters else ()


def _mark_words(one: str, other: str) -> list[tuple[Span, ...]]:
    """The spans of two lines of which one became the other, by words."""
    from difflib import SequenceMatcher

    ours, theirs = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (one, other))
    sides: list[list[Span]] = [[], []]
    for tag, low, high, below, above in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for side, words in zip(sides, (ours[low:high], theirs[below:above]), strict=True):
            if words:
                side.append(Span(make_legible("".join(words)), tag != "equal"))
    return [tuple(side) for side in sides]
