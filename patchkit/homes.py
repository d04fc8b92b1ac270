"""Where the text that a diff changes went, when a new version has it in another file.

A file counts as the new home when the diff's hunks fit there or are there already, or when it defines all the names
that the hunks are about and that their old file defines no more. Names come from section headings, from ``def`` and
``class`` lines in the hunks, and from whoever asks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

from patchkit.hunks import apply_hunks, find_upstream
from patchkit.model import FileDiff, Hunk, HunkResult
from patchkit.symbols import module_paths
from patchkit.syntax import PARSE_ERRORS, parse

MOST_CANDIDATES = 24
"""Files that are looked into for one that is missing or changed: each costs a request where the wheel is remote."""

_HEAD = re.compile(rb"[ \t]*(?:@|(?:async[ \t]+)?(?:def|class)[ \t])")
_DEFINITION = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)

Reader = Callable[[str], bytes | None]


def find_home(
    diff: FileDiff, names: Iterable[str], paths: Collection[str], read: Reader, *, everywhere: bool = False
) -> str | None:
    """The path among ``paths`` (all that the new version ships) where the text of ``diff`` is now; None: nobody knows.

    ``names`` are symbols that the change is about, besides those that the diff shows. ``read`` gives a file's bytes;
    it is asked for the likeliest first, and ``everywhere`` for all that may be.
    """
    old = str(diff.old)
    source = read(old)
    gone = find_names(diff, names) - (defined_names(source) if source is not None else frozenset())
    fallback: list[str] = []
    imported = list(_imported_from(old, source, gone)) if source is not None and gone else []
    likely = islice(_candidates(old, imported, paths), MOST_CANDIDATES)
    rest = _siblings(old, paths) if everywhere else []
    for path in dict.fromkeys([*likely, *rest]):
        data = read(path)
        if data is None:
            continue
        if diff.hunks and (apply_hunks(data, diff).data is not None or _is_there(data, diff)):
            return path
        if gone and path.endswith(".py") and gone <= defined_names(data):
            fallback.append(path)
    certain = [path for path in fallback if path in imported]
    return next(iter(certain), fallback[0] if len(fallback) == 1 else None)


def _is_there(data: bytes, diff: FileDiff) -> bool:
    return all(outcome.result is HunkResult.UPSTREAM for outcome in find_upstream(data, diff))


def find_names(diff: FileDiff, names: Iterable[str] = ()) -> frozenset[str]:
    """The functions and classes that a Python file's diff is about, each without what it is defined in."""
    if not str(diff.old).endswith(".py"):
        return frozenset()
    shown = frozenset[str]().union(*map(_names_in, diff.hunks))
    return frozenset(shown | {part for name in names for part in name.split(".") if part})


def _names_in(hunk: Hunk) -> frozenset[str]:
    """What a hunk changes: definitions in its changed lines, else the one around them, or right below (a decorator)."""
    lines = hunk.old.splitlines(keepends=True)
    end = len(lines) - hunk.trailing
    above, changed, below = lines[: hunk.leading], lines[hunk.leading : end], lines[end:]
    own = defined_names(b"".join(changed))
    if own:
        return own
    if below and _HEAD.match(below[0]):
        near = _DEFINITION.findall(b"".join(below))[:1]
    else:
        near = _DEFINITION.findall(b"".join([hunk.section, b"\n", *above]))[-1:]
    return frozenset(name.decode("utf-8", "replace") for name in near)


def defined_names(source: bytes) -> frozenset[str]:
    """The names of all functions and classes in ``source``, however deep, by the lines that begin them."""
    return frozenset(name.decode("utf-8", "replace") for name in _DEFINITION.findall(source))


# ---- where to look --------------------------------------------------------------------------------------------


def _candidates(old: str, imported: Sequence[str], paths: Collection[str]) -> Iterator[str]:
    """The likeliest first: where the old file imports the names from, files of the same name, and what lies near."""
    folder, _, file = old.rpartition("/")
    stem = file.rpartition(".")[0]
    own = _siblings(old, paths)
    same_name = [path for path in own if path.rpartition("/")[2] == file]
    package = [path for path in own if path.startswith(f"{folder}/{stem}/" if folder else f"{stem}/")]
    beside = [path for path in own if path.rpartition("/")[0] == folder]
    likely = [path for path in own if stem in path]
    known = [path for path in imported if path in paths]
    groups = (known, *(sorted(group, key=_depth) for group in (same_name, package, likely, beside)))
    yield from dict.fromkeys(path for group in groups for path in group)


def _siblings(old: str, paths: Collection[str]) -> list[str]:
    """All files with the same ending in the same top-level folder."""
    top = old.partition("/")[0]
    _, dot, ending = old.rpartition("/")[2].rpartition(".")
    return [path for path in paths if path.startswith(f"{top}/") and path.endswith(f"{dot}{ending}") and path != old]


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _imported_from(old: str, source: bytes, names: Collection[str]) -> Iterator[str]:
    """The files that the old file now imports ``names`` from, if it became a mere forwarder."""
    try:
        tree = parse(source)
    except PARSE_ERRORS:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name in ("*", *names) for alias in node.names):
            package = old.split("/")[: -node.level] if node.level else []
            yield from reversed(module_paths(".".join([*package, *filter(None, [node.module])])))
