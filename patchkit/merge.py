"""Merging two changes of one text by lines (diff3(1)), as `git merge-file` does it.

Between lines that all three texts share lie regions; a region that one side left as it was takes the other's lines, one
that both made the same takes these, and any other is a conflict. Lines that both sides of a conflict begin or end with
are taken out of it, as git does by default (its level "zealous").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique

from patchkit.patience import align
from patchkit.places import Text

MARKER = b"<<<<<<< "
_SEPARATOR, _END = b"=======", b">>>>>>> "


@unique
class Taken(Enum):
    """Whose lines a region of the merged text has."""

    NEITHER = "neither changed it"
    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both made the same of it"
    GONE = "both took it away"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of the merged text; in a conflict, ``lines`` are ours and ``other`` are theirs.

    Where both took lines away, ``other`` are these.
    """

    taken: Taken
    lines: tuple[bytes, ...]
    other: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged text by its regions, in order."""

    regions: tuple[Region, ...]

    def count(self, taken: Taken) -> int:
        return sum(region.taken is taken for region in self.regions)

    @property
    def clean(self) -> bool:
        return not self.count(Taken.CONFLICT)

    def render(self, ours: str, theirs: str) -> bytes:
        """The text, with a conflict between markers that carry the names of the two sides."""
        return b"".join(_render(region, ours, theirs) for region in self.regions)


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """What comes of ``base`` when both the change to ``ours`` and that to ``theirs`` are made."""
    texts = Text(base).lines, Text(ours).lines, Text(theirs).lines
    return Merged(
        tuple(region for region in _regions(*texts) if region.lines or region.other or region.taken is Taken.OURS)
    )


def _regions(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> Iterator[Region]:
    in_ours, in_theirs = dict(align(base, ours)), dict(align(base, theirs))
    begin = (0, 0, 0)
    stable = [place for place in range(len(base)) if place in in_ours and place in in_theirs]
    for place in stable:
        here = (place, in_ours[place], in_theirs[place])
        yield from _between(base, ours, theirs, begin, here)
        yield Region(Taken.NEITHER, (base[place],))
        begin = (here[0] + 1, here[1] + 1, here[2] + 1)
    yield from _between(base, ours, theirs, begin, (len(base), len(ours), len(theirs)))


def _between(
    base: Sequence[bytes],
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    begin: tuple[int, int, int],
    end: tuple[int, int, int],
) -> Iterator[Region]:
    """The regions between two lines that stay."""
    old, own, other = (tuple(text[low:high]) for text, low, high in zip((base, ours, theirs), begin, end, strict=True))
    if own == other:
        taken = Taken.NEITHER if own == old else Taken.BOTH if own else Taken.GONE
        yield Region(taken, own, old if taken is Taken.GONE else ())
    elif own == old:
        yield Region(Taken.THEIRS, other)
    elif other == old:
        yield Region(Taken.OURS, own)
    else:
        yield from _refine(own, other)


def _refine(own: tuple[bytes, ...], other: tuple[bytes, ...]) -> Iterator[Region]:
    """A conflict without the lines that both sides begin or end with."""
    head = 0
    while head < min(len(own), len(other)) and own[head] == other[head]:
        head += 1
    tail = 0
    while tail < min(len(own), len(other)) - head and own[-1 - tail] == other[-1 - tail]:
        tail += 1
    yield Region(Taken.BOTH, own[:head])
    yield Region(Taken.CONFLICT, own[head : len(own) - tail], other[head : len(other) - tail])
    yield Region(Taken.BOTH, own[len(own) - tail :])


def _render(region: Region, ours: str, theirs: str) -> bytes:
    if region.taken is not Taken.CONFLICT:
        return b"".join(region.lines)
    end = b"\r\n" if any(line.endswith(b"\r\n") for line in (*region.lines, *region.other)) else b"\n"
    sides = [b"".join(_ended(line, end) for line in lines) for lines in (region.lines, region.other)]
    return b"".join([MARKER, ours.encode(), end, sides[0], _SEPARATOR, end, sides[1], _END, theirs.encode(), end])


def _ended(line: bytes, end: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + end
