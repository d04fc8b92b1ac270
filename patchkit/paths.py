"""The paths that a diff names: unquoted, stripped, checked, and chosen by include and exclude.

Nothing here touches a file system; a path is refused for what it says. Errors are plain `BadPath` values that the
reader of the diff turns into a `DiffError` with the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

LONGEST_PATH = 4096
"""Bytes: PATH_MAX of Linux, which no system exceeds."""

_ESCAPES = {
    b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
    b'"': b'"', b"\\": b"\\",
}  # fmt: skip
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_DRIVE = re.compile(rb"[A-Za-z]:")


class BadQuoting(ValueError):
    """A path in quotation marks that is not what git or diff would write."""


class TooFewComponents(ValueError):
    """The path has no components left once those of ``strip`` are dropped."""


class LeavesRoot(ValueError):
    """The path would not name a file below the site root."""


def unquote(text: bytes) -> tuple[bytes, bytes]:
    """Split ``text``, which begins with a C-quoted path, into the path meant and what follows it.

    The quoting is git's (core.quotePath in git-config(1)), which GNU diff shares.

    Raises:
        BadQuoting: no closing quotation mark, or an unknown escape.
    """
    match = _QUOTED.match(text)
    if match is None:
        raise BadQuoting("the path's quotation mark is not closed")
    return _ESCAPE.sub(_unescaped, match[1]), text[match.end() :]


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[1]
    if len(digits) == 3:
        return bytes([int(digits, 8)])
    if digits not in _ESCAPES:
        raise BadQuoting(f"the path has an unknown escape \\{digits.decode('latin-1')}")
    return _ESCAPES[digits]


def stripped(name: bytes, strip: int) -> bytes:
    """``name`` without its first ``strip`` components, as patch -p counts them.

    Raises:
        TooFewComponents: nothing would be left.
    """
    parts = name.split(b"/", strip)
    if len(parts) <= strip or not parts[strip]:
        raise TooFewComponents(f"has too few components to drop {strip}")
    return parts[strip]


def located(name: bytes, *, strip: int, directory: str) -> str:
    """Where ``name``, as the diff states it, lies below the site root; not yet known to be safe.

    Raises:
        TooFewComponents: see `stripped`.
    """
    path = stripped(name, strip).decode("utf-8", "surrogateescape")
    return f"{directory.removesuffix('/')}/{path}" if directory else path


def require_inside(name: bytes, path: str) -> None:
    """Check that ``path``, made from ``name``, stays below the site root whatever the system.

    The whole of ``name`` is checked, also what strip drops: a diff with such a path was not made for a site root.

    Raises:
        LeavesRoot: absolute, `..`, `.`, an empty component, a drive letter, a backslash, NUL, or not UTF-8.
    """
    problem = _unsafe_name(name) or _unsafe_path(path)
    if problem:
        raise LeavesRoot(problem)


def _unsafe_name(name: bytes) -> str:
    if len(name) > LONGEST_PATH:
        return f"is longer than {LONGEST_PATH} bytes"
    if name.startswith(b"/"):
        return "is absolute"
    if b"\\" in name:
        return "has a backslash"
    if b"\0" in name:
        return "has a NUL byte"
    if _DRIVE.match(name):
        return "begins with a drive letter"
    return "goes up with `..`" if b".." in name.split(b"/") else ""


def _unsafe_path(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/"):
        return "is absolute"
    if ".." in parts:
        return "goes up with `..`"
    if "" in parts or "." in parts:
        return "has an empty component or `.`"
    if _DRIVE.match(path.encode("utf-8", "surrogateescape")):
        return "begins with a drive letter"
    if not _is_utf8(path):
        return "is not UTF-8, so RECORD cannot name it"
    return ""


def _is_utf8(path: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in path)


def is_chosen(path: str, *, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether ``path`` is one of the files to take: matched by an include, where there are any, and by no exclude."""
    if include and not any(matches(path, glob) for glob in include):
        return False
    return not any(matches(path, glob) for glob in exclude)


def matches(path: str, glob: str) -> bool:
    """Whether ``glob`` matches the whole of ``path``.

    ``?`` is one character and ``*`` any number of them, neither a ``/``; ``**`` is any number of any characters, and
    ``**/`` may also be nothing. All else stands for itself.

    Every way to match is followed at once, so that no glob takes longer than its length times that of ``path``.
    """
    ends = 1  # bit i: what was read of the glob matches the first i characters of the path
    for part in _parts(glob):
        match part:
            case "*":
                ends = _any_below(ends, path)
            case "**/":
                ends |= _any(ends, path) & _behind_slash(path)
            case _ if part.startswith("**"):
                ends = _any(ends, path)
            case _:
                ends = _one_after_the_other(ends, path, part)
        if not ends:
            return False
    return bool(ends >> len(path))


@lru_cache(maxsize=256)
def _parts(glob: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"(\*\*/|\*{2,}|\*)", glob) if part)


def _any(ends: int, path: str) -> int:
    """All ends from the first one on."""
    return (2 << len(path)) - (ends & -ends)


def _any_below(ends: int, path: str) -> int:
    """All ends that can be come to from one of ``ends`` without passing a slash."""
    found, begin = 0, 0
    for part in path.split("/"):
        within = (2 << begin + len(part)) - (1 << begin)
        if here := ends & within:
            found |= within & -(here & -here)
        begin += len(part) + 1
    return found


def _behind_slash(path: str) -> int:
    return sum(2 << index for index, character in enumerate(path) if character == "/")


def _one_after_the_other(ends: int, path: str, part: str) -> int:
    """The ends behind ``part``, whose characters stand for themselves, but for ``?``."""
    if ends & (ends - 1) == 0:
        at = ends.bit_length() - 1
        found = path[at : at + len(part)]
        return ends << len(part) if len(found) == len(part) and all(map(_is_alike, found, part)) else 0
    places = _places(path)
    for character in part:
        ends = (ends & places.get(character, 0 if character != "?" else ~places.get("/", 0))) << 1
    return ends & (2 << len(path)) - 1


def _is_alike(character: str, meant: str) -> bool:
    return character == meant or (meant == "?" and character != "/")


def _places(path: str) -> dict[str, int]:
    """For each character of the path, the bits of the places where it stands."""
    found: dict[str, int] = {}
    for index, character in enumerate(path):
        found[character] = found.get(character, 0) | 1 << index
    return found
