"""The paths that a diff names: unquoted, stripped, checked, and chosen by include and exclude.

Nothing here touches a file system; a path is refused for what it says. Errors are plain `BadPath` values that the
reader of the diff turns into a `DiffError` with the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

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
    """
    return _pattern(glob).fullmatch(path) is not None


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*{2,}|\*|\?)", glob)
    return re.compile("".join(map(_translated, parts)), re.DOTALL)


def _translated(part: str) -> str:
    match part:
        case "?":
            return "[^/]"
        case "*":
            return "[^/]*"
        case "**/":
            return "(?:.*/)?"
    return ".*" if part.startswith("**") else re.escape(part)
