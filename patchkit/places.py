"""A text by lines: where a run of lines stands in it, under which heading, and what almost fits.

All lines are 1-based and end at LF alone: CR, form feed and the like are ordinary bytes. Work is linear in the text,
and bounded where lines repeat.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from patchkit.model import HunkOutcome

MAX_PLACES = 1000
MAX_SEARCHED = 1 << 30
"""Bytes that are searched in one text for all its hunks together: about two seconds."""
_PLACE_COST = 4096  # a place that is found takes as long as searching so many bytes
_MAX_VOTERS = 200
_MAX_VOTES_EACH = 50

_HEADINGS = (
    re.compile(rb"^([A-Za-z_$][^\n]*)", re.MULTILINE),  # git's default, and GNU diff -p
    re.compile(rb"^[ \t]*((?:class|def|async[ \t]+def)[ \t][^\n]*)", re.MULTILINE),  # git's for Python
)
_CUTS = (80, 40)  # where git and GNU diff cut a heading


class Text:
    """The bytes of a file, indexed on demand."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._searched = 0

    @property
    def exhausted(self) -> bool:
        """Whether it was searched so often that no other run of lines should be looked for."""
        return self._searched > MAX_SEARCHED

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines with their ends; the last one may have none."""
        pieces = self.data.split(b"\n")
        last = pieces.pop()
        return [piece + b"\n" for piece in pieces] + ([last] if last else [])

    @cached_property
    def positions(self) -> dict[bytes, list[int]]:
        """For each line, without white space around it, the indices where it stands."""
        found: dict[bytes, list[int]] = {}
        for index, line in enumerate(self.lines):
            found.setdefault(line.strip(), []).append(index)
        return found

    @cached_property
    def _starts(self) -> list[int]:
        """The offset of each line, and of the one that would come next."""
        lengths = accumulate(map(len, self.data.split(b"\n")), lambda start, length: start + length + 1, initial=0)
        starts = list(lengths)
        del starts[-1]
        return starts if starts[-1] == len(self.data) else [*starts, len(self.data)]

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._starts) - 1

    def offset(self, line: int) -> int:
        return self._starts[line - 1]

    def has(self, side: bytes, line: int) -> bool:
        """Whether ``side`` (whole lines) begins at ``line``.

        Where its last line has no end, or it is empty, it must end the text, and an empty one only a text that ends
        with a line's end.
        """
        if not 1 <= line <= self.count + 1:
            return False
        start = self.offset(line)
        if not side:
            return start == len(self.data) and not self._unended
        return self.data.startswith(side, start) and (side[-1:] == b"\n" or start + len(side) == len(self.data))

    @property
    def _unended(self) -> bool:
        return bool(self.data) and not self.data.endswith(b"\n")

    def places(self, side: bytes) -> list[int]:
        """The lines where ``side`` stands; no more than one over `MAX_PLACES`."""
        if side[-1:] != b"\n":
            line = self.count - side.count(b"\n") if side else self.count + 1
            return [line] if self.has(side, line) else []
        found = [1] if self.data.startswith(side) else []
        behind_line = b"\n" + side
        at = self.data.find(behind_line)
        while at >= 0 and len(found) <= MAX_PLACES:
            found.append(bisect_left(self._starts, at + 1) + 1)
            at = self.data.find(behind_line, at + 1)
        self._searched += (len(self.data) if at < 0 else at) + _PLACE_COST * len(found)
        return found

    @cached_property
    def _headings(self) -> list[tuple[list[int], list[bytes]]]:
        """For each rule, the offsets of all headings and their text."""
        found = [[(match.start(), match[1]) for match in rule.finditer(self.data)] for rule in _HEADINGS]
        return [([start for start, _ in each], [heading for _, heading in each]) for each in found]

    def stands_under(self, line: int, section: bytes) -> bool:
        """Whether the nearest heading above ``line`` is ``section``, by the default rule or that for Python."""
        return bool(section.strip()) and any(
            _is_heading(self._nearest_heading(rule, line), section.rstrip()) for rule in range(len(_HEADINGS))
        )

    def _nearest_heading(self, rule: int, line: int) -> bytes:
        starts, headings = self._headings[rule]
        above = bisect_left(starts, self.offset(line))
        return headings[above - 1] if above else b""


def _is_heading(heading: bytes, section: bytes) -> bool:
    return section == heading.rstrip() or any(section == heading[:cut].rstrip() for cut in _CUTS)


# ---- conflicts, for people ------------------------------------------------------------------------------------


def diagnosed(text: Text, conflict: HunkOutcome, side: bytes) -> HunkOutcome:
    """``conflict`` with the lines of ``side`` that were expected, and those found where most of them stand.

    Where none of them stands anywhere, ``found`` is what is at the stated line.
    """
    wanted = Text(side).lines
    nearest = _nearest(text, wanted, conflict.line)
    begin = max(conflict.line if nearest is None else nearest, 1) - 1
    found = text.lines[begin : begin + len(wanted)]
    return replace(
        conflict,
        reason=conflict.reason + _likeness(wanted, found, nearest),
        expected=_shown(wanted),
        found=_shown(found),
        nearest=nearest,
    )


def _nearest(text: Text, wanted: list[bytes], stated: int) -> int | None:
    """The line where most of the wanted lines stand in their order; of several, the one nearest to ``stated``.

    White space at the ends of lines does not count here. Only the first lines vote, and common ones a few times.
    """
    votes: Counter[int] = Counter()
    for index, line in enumerate(wanted[:_MAX_VOTERS]):
        key = line.strip()
        for place in text.positions.get(key, ())[:_MAX_VOTES_EACH] if key else ():
            if place >= index:
                votes[place - index + 1] += 1
    if not votes:
        return None
    return min(votes, key=lambda line: (-votes[line], abs(line - stated)))


def _likeness(wanted: list[bytes], found: list[bytes], nearest: int | None) -> str:
    if len(wanted) != len(found) or wanted == found:
        return ""
    if [line.rstrip(b"\r\n") for line in wanted] == [line.rstrip(b"\r\n") for line in found]:
        return f"; line {nearest} differs only in line ends"
    if [line.split() for line in wanted] == [line.split() for line in found]:
        return f"; line {nearest} differs only in white space"
    return ""


def _shown(lines: list[bytes]) -> tuple[str, ...]:
    return tuple(line.rstrip(b"\r\n").decode("utf-8", "backslashreplace") for line in lines)
