"""Which lines of a text stay when it becomes another: found by those that occur once on each side (patience diff).

After the method that Bram Cohen described; where no line occurs once on both sides, difflib has the word.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise


def align(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """The lines that stay, as pairs of their indices, in order."""
    pairs: list[tuple[int, int]] = []
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        low, high, new_low, new_high = waiting.pop()
        while low < high and new_low < new_high and old[low] == new[new_low]:
            pairs.append((low, new_low))
            low, new_low = low + 1, new_low + 1
        while low < high and new_low < new_high and old[high - 1] == new[new_high - 1]:
            high, new_high = high - 1, new_high - 1
            pairs.append((high, new_high))
        if low == high or new_low == new_high:
            continue
        anchors = _anchors(old, new, (low, high, new_low, new_high))
        if not anchors:
            pairs += _match_repeated(old[low:high], new[new_low:new_high], low, new_low)
            continue
        pairs += anchors
        for (i, j), (k, m) in pairwise([(low - 1, new_low - 1), *anchors, (high, new_high)]):
            waiting.append((i + 1, k, j + 1, m))
    return sorted(pairs)


def _anchors(old: Sequence[bytes], new: Sequence[bytes], box: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """Lines that occur once on each side of the box, those of them that are in the same order on both."""
    low, high, new_low, new_high = box
    places, new_places = _single_places(old, low, high), _single_places(new, new_low, new_high)
    common = [(i, new_places[line]) for line, i in places.items() if line in new_places]
    return _longest_rise(sorted(common))


def _single_places(lines: Sequence[bytes], low: int, high: int) -> dict[bytes, int]:
    places: dict[bytes, int] = {}
    repeated: set[bytes] = set()
    for index in range(low, high):
        line = lines[index]
        if line in places:
            repeated.add(line)
        places[line] = index
    return {line: index for line, index in places.items() if line not in repeated}


def _longest_rise(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of ``pairs`` (sorted by the first) in which the second rises too."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(tails, second)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [second]
        ends[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _match_repeated(old: Sequence[bytes], new: Sequence[bytes], old_at: int, new_at: int) -> Iterator[tuple[int, int]]:
    from difflib import SequenceMatcher

    for block in SequenceMatcher(None, old, new).get_matching_blocks():
        yield from ((old_at + block.a + step, new_at + block.b + step) for step in range(block.size))
