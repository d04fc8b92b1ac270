"""Files that were renamed, found as git finds them: one that is gone and one that is new, if they are much alike.

Source: git-diff(1), ``--find-renames`` with its default of 50 per cent, and diffcore's similarity index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from patchkit.fold import Tree
from patchkit.places import Text

LEAST_PERCENT = 50
MOST_PAIRS = 10_000
"""Pairs that are compared by lines; where there are more, only files that stayed the same are found."""


def find_renames(before: Tree, after: Tree) -> dict[str, tuple[str, int]]:
    """For each new path that a file was renamed to: its old path, and how alike the two texts are, in per cent."""
    gone = [path for path in sorted(before) if after.get(path) is None and _data(before, path)]
    new = [path for path in sorted(after) if before.get(path) is None and _data(after, path)]
    found: dict[str, tuple[str, int]] = {}
    taken: set[str] = set()
    for percent, _, old, path in sorted(_pairs(before, after, gone, new), key=lambda pair: (-pair[0], *pair[1:])):
        if old not in taken and path not in found:
            found[path] = (old, percent)
            taken.add(old)
    return found


def _data(tree: Tree, path: str) -> bytes:
    content = tree.get(path)
    return b"" if content is None else content.data


def _pairs(before: Tree, after: Tree, gone: list[str], new: list[str]) -> Iterator[tuple[int, bool, str, str]]:
    """The pairs that are alike enough; of two that are equally so, one that keeps the file's name comes first."""
    many = len(gone) * len(new) > MOST_PAIRS
    lines = {} if many else {path: _count(_data(after, path)) for path in new}
    for old in gone:
        data = _data(before, old)
        own = Counter[bytes]() if many else _count(data)
        for path in new:
            if data == _data(after, path):
                percent = 100
            else:
                percent = 0 if many else _similarity(own, lines[path], max(len(data), len(_data(after, path))))
            if percent >= LEAST_PERCENT:
                yield percent, _name(old) != _name(path), old, path


def _count(data: bytes) -> Counter[bytes]:
    return Counter(Text(data).lines)


def _similarity(old: Counter[bytes], new: Counter[bytes], size: int) -> int:
    """The bytes of the lines that both have, in per cent of the larger file; 100 is kept for equal ones."""
    shared = _size((old & new).elements())
    return min(99, shared * 100 // size)


def _size(lines: Iterable[bytes]) -> int:
    return sum(map(len, lines))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
