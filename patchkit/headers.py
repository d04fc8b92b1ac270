"""What the header lines of an entry say: which file, which modes, whether a side is absent.

Sources: git-diff(1) on extended headers; diff(1) and the POSIX standard on `---`, `+++` and time stamps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from patchkit.entries import Field, RawEntry
from patchkit.paths import BadQuoting, TooFewComponents, located, stripped, unquote

_NULL = b"/dev/null"
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d+))?(?: ([+-])(\d\d):?(\d\d))?")
_SPACED_STAMP = re.compile(rb" +(?=" + _STAMP.pattern + rb"\Z)")
_MODE = re.compile(rb"[0-7]{6}")
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{6}))?")
_SIMILARITY = re.compile(rb"(\d{1,3})%")
_EMPTY_BLOBS = (
    b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
_BACKUPS = (b".orig", b".old", b".bak", b"~")
_MAX_PREFIXES = 128  # how far a/ and b/ may be from equally long


@dataclass(frozen=True, slots=True)
class Names:
    """The file of an entry: as the diff names it, and where that is (strip and directory done); not yet checked.

    Both sides have a name, also one that is absent; they differ in a rename or copy alone.
    """

    old_name: bytes
    new_name: bytes
    old_path: str
    new_path: str
    old_absent: bool = False
    new_absent: bool = False


def is_empty_blob(prefix: bytes) -> bool:
    """Whether ``prefix`` begins git's hash of an empty file (SHA-1 or SHA-256)."""
    return any(blob.startswith(prefix) for blob in _EMPTY_BLOBS)


def read_names(raw: RawEntry, *, strip: int, directory: str) -> Names | None:
    """The names in an entry, from `rename`, `---` and `+++`, or `diff --git`, in this order of trust.

    None where a path has too few components for ``strip``.

    Raises:
        MalformedDiff: the lines contradict each other, or a quoted path is broken.
    """
    try:
        return _located(_names(raw, strip), strip, directory)
    except BadQuoting as error:
        raw.fail(str(error))
    except TooFewComponents:
        return None


# ---- names ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stated:
    """The names before strip. ``bare`` says that they have no a/ or b/, so that strip counts one less."""

    old: bytes
    new: bytes
    old_absent: bool = False
    new_absent: bool = False
    bare: bool = False


def _located(stated: _Stated, strip: int, directory: str) -> Names:
    strip = max(strip - 1, 0) if stated.bare else strip
    return Names(
        old_name=stated.old,
        new_name=stated.new,
        old_path=located(stated.old, strip=strip, directory=directory),
        new_path=located(stated.new, strip=strip, directory=directory),
        old_absent=stated.old_absent,
        new_absent=stated.new_absent,
    )


def _names(raw: RawEntry, strip: int) -> _Stated:
    if raw.headline is None:
        return _plain_names(raw, strip)
    if raw.field(b"copy from", b"copy to"):
        return _two_names(raw, strip, b"copy from", b"copy to")
    if raw.field(b"rename from", b"rename to"):
        return _two_names(raw, strip, b"rename from", b"rename to")
    if raw.field(b"rename old", b"rename new"):
        return _two_names(raw, strip, b"rename old", b"rename new")
    return _git_names(raw, raw.headline, strip)


def _plain_names(raw: RawEntry, strip: int) -> _Stated:
    """The one file that both lines of a plain diff mean; the time stamp may say that a side is absent."""
    old, old_stamp = _split_stamp(raw.old or b"")
    new, new_stamp = _split_stamp(raw.new or b"")
    old_absent = old == _NULL or (_means_absent(old_stamp) and not any(hunk.old_count for hunk in raw.hunks))
    new_absent = new == _NULL or (_means_absent(new_stamp) and not any(hunk.new_count for hunk in raw.hunks))
    if old_absent and new_absent:
        raw.fail("both sides of the entry are absent")
    if _NULL not in (old, new) and not _mean_one(stripped(old, strip), stripped(new, strip)):
        shown = [name.decode("utf-8", "backslashreplace") for name in (old, new)]
        raw.fail(f"the entry names `{shown[0]}` and `{shown[1]}`; which file is meant?")
    name = old if new == _NULL else new
    return _Stated(name, name, old_absent, new_absent)


def _mean_one(old: bytes, new: bytes) -> bool:
    """Whether the names are the same, or the old one is a backup of the new."""
    return old == new or any(old == new + suffix for suffix in _BACKUPS)


def _two_names(raw: RawEntry, strip: int, from_: bytes, to: bytes) -> _Stated:
    """The names of a rename; of a copy, the new one is the file that the entry is about."""
    old_field, new_field = raw.field(from_), raw.field(to)
    if old_field is None or new_field is None:
        raw.fail(f"the entry states only one of `{from_.decode()}` and `{to.decode()}`")
    old, new = _whole_name(old_field.value), _whole_name(new_field.value)
    if old == new:
        raw.fail("the entry renames a file to its own name", line=new_field.line)
    for header, name in ((raw.old, old), (raw.new, new)):
        if header is not None and stripped(_split_stamp(header)[0], strip) != stripped(name, max(strip - 1, 0)):
            raw.fail("the `---` and `+++` lines do not name the files of the lines above them")
    return _Stated(new if from_ == b"copy from" else old, new, bare=True)


def _git_names(raw: RawEntry, headline: bytes, strip: int) -> _Stated:
    """The one file that `diff --git` and, where they are there, `---` and `+++` name."""
    head = _name_of_both(headline, strip)
    old_absent, new_absent = b"new file mode" in raw.fields, b"deleted file mode" in raw.fields
    if raw.old is None or raw.new is None:
        if head is None:
            stripped(headline.rpartition(b" ")[2], strip)
            raw.fail("the two names in the `diff --git` line differ, and no `rename` lines follow")
        return _Stated(head, head, old_absent, new_absent)
    old, new = _split_stamp(raw.old)[0], _split_stamp(raw.new)[0]
    if (old == _NULL) != old_absent or (new == _NULL) != new_absent:
        raw.fail("`/dev/null` and a `new file mode` or `deleted file mode` line go together; one is missing")
    name = old if new_absent else new
    if {stripped(each, strip) for each in (old, new, name) if each != _NULL} != {head and stripped(head, strip)}:
        raw.fail(f"the `diff --git`, `---` and `+++` lines do not name the same file with strip {strip}")
    return _Stated(name, name, old_absent, new_absent)


def _split_stamp(text: bytes) -> tuple[bytes, bytes]:
    """A `---` or `+++` line's name and time stamp (b"" where there is none)."""
    if text.startswith(b'"'):
        name, rest = unquote(text)
        return name, rest.strip()
    name, tab, stamp = text.partition(b"\t")
    if not tab and (match := _SPACED_STAMP.search(text)):
        return text[: match.start()], text[match.end() :]
    return name, stamp.strip()


def _whole_name(text: bytes) -> bytes:
    if not text.startswith(b'"'):
        return text
    name, rest = unquote(text)
    if rest:
        raise BadQuoting("text behind the path's closing quotation mark")
    return name


def _means_absent(stamp: bytes) -> bool:
    """Whether a side of this stamp may be absent: svn says so, GNU diff -N gives 1970-01-01 00:00 UTC, in any zone."""
    if stamp in (b"(nonexistent)", b"(revision 0)"):
        return True
    match = _STAMP.fullmatch(stamp)
    if match is None or (match[2] or b"").strip(b"0"):
        return False
    try:
        moment = datetime.strptime(match[1].decode(), "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return False
    east = timedelta(hours=int(match[4] or 0), minutes=int(match[5] or 0))
    return moment == datetime(1970, 1, 1) + (-east if match[3] == b"-" else east)


def _name_of_both(headline: bytes, strip: int) -> bytes | None:
    """The second name in a `diff --git` line where both are the same but for prefixes; None where they differ.

    Unquoted names may have spaces, so the line is cut where the names agree.
    """
    for old, new in _cuts(headline):
        try:
            if stripped(old, strip) == stripped(new, strip):
                return new
        except TooFewComponents:
            continue
    return None


def _cuts(headline: bytes) -> Iterator[tuple[bytes, bytes]]:
    if headline.startswith(b'"'):
        old, rest = unquote(headline)
        yield old, _whole_name(rest.removeprefix(b" "))
    elif headline.endswith(b'"') and b' "' in headline:
        at = headline.index(b' "')
        yield headline[:at], _whole_name(headline[at + 1 :])
    else:
        middle = len(headline) // 2
        near = range(max(middle - _MAX_PREFIXES, 0), min(middle + _MAX_PREFIXES, len(headline)))
        for at in sorted(near, key=lambda place: abs(place - middle)):
            if headline[at : at + 1] == b" ":
                yield headline[:at], headline[at + 1 :]


# ---- modes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Modes:
    """What the extended headers say of modes and blobs; None where they say nothing.

    ``stated`` are all modes with their lines. The mode in an `index` line is that of both sides: it tells a symbolic
    link, but states no change, so it is neither ``executable`` nor ``was_executable``.
    """

    stated: tuple[tuple[int, int], ...]
    executable: bool | None
    was_executable: bool | None
    old_blob: bytes | None
    new_blob: bytes | None
    similarity: int | None


def read_modes(raw: RawEntry) -> Modes:
    """The modes of an entry.

    Raises:
        MalformedDiff: a line is not of its form, or one of a pair is missing.
    """
    if (b"old mode" in raw.fields) != (b"new mode" in raw.fields):
        raw.fail("the entry states only one of `old mode` and `new mode`")
    old = _read_mode(raw, raw.field(b"old mode", b"deleted file mode"))
    new = _read_mode(raw, raw.field(b"new mode", b"new file mode"))
    old_blob, new_blob, both = _read_index(raw)
    return Modes(
        stated=tuple(mode for mode in (old, new, both) if mode is not None),
        executable=None if new is None else bool(new[0] & 0o100),
        was_executable=None if old is None else bool(old[0] & 0o100),
        old_blob=old_blob,
        new_blob=new_blob,
        similarity=_read_similarity(raw),
    )


def _read_mode(raw: RawEntry, field: Field | None) -> tuple[int, int] | None:
    if field is None:
        return None
    if not _MODE.fullmatch(field.value):
        raw.fail("not a mode: expected six octal digits", line=field.line)
    return int(field.value, 8), field.line


def _read_index(raw: RawEntry) -> tuple[bytes | None, bytes | None, tuple[int, int] | None]:
    field = raw.field(b"index")
    if field is None:
        return None, None, None
    match = _INDEX.fullmatch(field.value)
    if match is None:
        raw.fail("not an index line: expected `index hash..hash mode`", line=field.line)
    return match[1], match[2], None if match[3] is None else (int(match[3], 8), field.line)


def _read_similarity(raw: RawEntry) -> int | None:
    field = raw.field(b"similarity index")
    if field is None:
        return None
    match = _SIMILARITY.fullmatch(field.value)
    if match is None or not any(keyword.startswith((b"rename", b"copy")) for keyword in raw.fields):
        raw.fail("a similarity without a rename, or not a percentage", line=field.line)
    return int(match[1])
