"""The text of a diff, cut into entries: every line is accounted for, none is skipped in silence.

This is the reader of the form alone (diff(1), git-diff(1), git-format-patch(1)); what an entry means, and whether it
is wanted, `diff` decides. A line that fits nowhere is an error with its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from patchkit.errors import DiffError, DiffTooLarge, MalformedDiff, TrailingText
from patchkit.hunktext import HUNK_HEADER, Cursor, read_hunk
from patchkit.model import Hunk

MAX_BYTES = 64 * 1024 * 1024
MAX_LINES = 1_000_000
MAX_ENTRIES = 20_000

_SPLIT = "split it into several patches, or leave out what no wheel has"
_BINARY = re.compile(rb"Binary files (.+) and (.+) differ|Binary file (.+) has changed", re.DOTALL)
_BINARY_BLOCK = re.compile(rb"(?:literal|delta) \d+")
_MAIL = re.compile(rb"From \S+ .*\d:\d\d")
_BASE = re.compile(rb"(?:base-commit|prerequisite-patch-id): (?:[0-9a-f]{40}|[0-9a-f]{64})")
_ONLY_IN = re.compile(rb"Only in .+: .")
_FIELD = re.compile(
    rb"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to|rename old|rename new"
    rb"|similarity index|dissimilarity index|index) (.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Field:
    """An extended header line of a git entry: its line number and what follows the keyword."""

    line: int
    value: bytes


@dataclass(frozen=True, slots=True)
class RawEntry:
    """One entry as it is written.

    ``headline`` is what follows `diff --git` (None in a plain unified diff), ``old`` and ``new`` what follows `---`
    and `+++` (None where the entry has no such lines), ``binary`` the line that says that the file is binary.
    ``bodies`` are the texts of the hunks, headers too, with the spaces that editors eat put back: for a second reader.
    """

    file: str
    line: int
    headline: bytes | None = None
    fields: Mapping[bytes, Field] = field(default_factory=dict)
    old: bytes | None = None
    new: bytes | None = None
    binary: int | None = None
    hunks: tuple[Hunk, ...] = ()
    bodies: tuple[bytes, ...] = ()

    def field(self, *keywords: bytes) -> Field | None:
        """The first of these extended headers that the entry has."""
        return next((self.fields[keyword] for keyword in keywords if keyword in self.fields), None)

    def fail(self, problem: str, *, line: int | None = None, error: type[DiffError] = MalformedDiff) -> NoReturn:
        """Raise an error that names the place: ``line``, or where the entry begins."""
        raise error(problem, file=self.file, line=line or self.line)


def read_entries(data: bytes, *, file: str) -> tuple[list[RawEntry], DiffError | None]:
    """The entries of a diff, and the error that ended the reading (None where all of it was read).

    ``data`` has LF line ends (a CR before one belongs to the line). Text before the first entry is free, and so is
    that between the mails of git-format-patch; elsewhere between entries only what announces the next one may stand.
    """
    entries: list[RawEntry] = []
    try:
        if len(data) > MAX_BYTES:
            raise DiffTooLarge(f"the diff is over {MAX_BYTES // 1024**2} MiB", file=file, line=1)
        if data.count(b"\n") > MAX_LINES:
            raise DiffTooLarge(f"the diff has over {MAX_LINES:,} lines", file=file, line=1, hint=_SPLIT)
        _read_all(Cursor(data, file), entries)
    except DiffError as error:
        return entries, error
    return entries, None


def _read_all(cursor: Cursor, entries: list[RawEntry]) -> None:
    free = True
    announced: int | None = None
    while (line := cursor.next()) is not None:
        entry = _read_entry(cursor, line)
        if entry is not None:
            if len(entries) == MAX_ENTRIES:
                words = f"the diff names over {MAX_ENTRIES:,} files"
                cursor.fail(words, line=entry.line, error=DiffTooLarge, hint=_SPLIT)
            entries.append(entry)
            free, announced = False, None
        elif _announces(line):
            announced = _announcement(cursor, announced)
        elif _is_filler(line):
            cursor.at += 1
        elif free:
            _require_free(cursor, line)
            announced = None
            cursor.at += 1
        else:
            free = _read_between(cursor, line, after=entries[-1])
    if announced is not None:
        _nothing_follows(cursor, announced)


def _read_entry(cursor: Cursor, line: bytes) -> RawEntry | None:
    """Read the entry that begins with ``line``; None where none does."""
    if line.startswith(b"diff --git "):
        return _read_git(cursor)
    if line.startswith(b"--- ") and cursor.starts(b"+++ ", 1):
        start = cursor.number
        return _read_text(cursor, RawEntry(cursor.file, start))
    if line.startswith(b"Binary file") and (match := _BINARY.fullmatch(line)):
        start = cursor.number
        cursor.take()
        return RawEntry(cursor.file, start, old=match[1] or match[3], new=match[2] or match[3], binary=start)
    if line.startswith((b"diff --cc ", b"diff --combined ", b"@@@ -")):
        cursor.fail("a combined diff of a merge cannot be applied", hint="diff against one parent")
    if HUNK_HEADER.fullmatch(line):
        cursor.fail("a hunk without the file's `---` and `+++` lines before it")
    return None


def _announces(line: bytes) -> bool:
    """Whether diff -r or svn says with this line which file comes next."""
    return line.startswith((b"diff -", b"Index: "))


def _is_filler(line: bytes) -> bool:
    return not line.strip(b" \t\r\f") or (line.startswith(b"===") and not line.strip(b"="))


def _announcement(cursor: Cursor, before: int | None) -> int:
    """Read an announcing line. Two of a kind in a row: the first file's change is not in the diff."""
    line = cursor.lines[cursor.at]
    if before is not None and cursor.lines[before - 1][:5] == line[:5]:
        _nothing_follows(cursor, before)
    cursor.at += 1
    return cursor.at


def _nothing_follows(cursor: Cursor, line: int) -> NoReturn:
    cursor.fail(
        "names a file, but no hunk follows; the change is not in the diff",
        line=line,
        hint="diff says nothing more of an empty file: use git diff",
    )


def _require_free(cursor: Cursor, line: bytes) -> None:
    """Refuse diff -r's word for a file that is not in the diff, which free text is not."""
    following = cursor.next(1)
    if _ONLY_IN.match(line) and (following is None or following.startswith((b"Only in ", b"diff -", b"--- "))):
        _refuse_only_in(cursor)


def _refuse_only_in(cursor: Cursor) -> NoReturn:
    cursor.fail("names a file that is not in the diff", error=TrailingText, hint="make the diff with diff -ruN")


def _read_between(cursor: Cursor, line: bytes, *, after: RawEntry) -> bool:
    """Read what stands between entries and is no announcement; True where free text follows: the next mail's."""
    if _MAIL.match(line):
        return True
    if line in (b"-- ", b"--"):
        return _read_signature(cursor)
    if _BASE.fullmatch(line):
        return _read_base(cursor)
    if _ONLY_IN.match(line):
        _refuse_only_in(cursor)
    if after.hunks and line.startswith((b" ", b"+", b"-", b"\\")):
        cursor.fail(f"hunk {after.hunks[-1].number} has more lines than its header states")
    cursor.fail("text that belongs to no entry", error=TrailingText, hint="remove it, or put it before the first entry")


def _read_base(cursor: Cursor) -> bool:
    """Read what `git format-patch --base` says of the commits below, which ends the mail but for its signature."""
    start = cursor.number
    while (line := cursor.next()) is not None and (_BASE.fullmatch(line) or not line.strip()):
        cursor.at += 1
    if line in (b"-- ", b"--"):
        return _read_signature(cursor)
    if line is None or _MAIL.match(line):
        return True
    cursor.fail("text behind the base of a mail", line=start, error=TrailingText)


def _read_signature(cursor: Cursor) -> bool:
    """Read a mail's signature: one line (git's version) and empty ones, then the end or the next mail."""
    start = cursor.number
    cursor.at += 1
    if cursor.next():
        cursor.at += 1
    while (line := cursor.next()) is not None and not line.strip():
        cursor.at += 1
    if line is None or _MAIL.match(line):
        return True
    cursor.fail("text behind a mail signature", line=start, error=TrailingText)


# ---- entries --------------------------------------------------------------------------------------------------


def _read_git(cursor: Cursor) -> RawEntry:
    start = cursor.number
    headline = cursor.take().removeprefix(b"diff --git ")
    entry = RawEntry(cursor.file, start, headline=headline, fields=_read_fields(cursor))
    line = cursor.next() or b""
    if line.startswith(b"--- "):
        return _read_text(cursor, entry)
    if line.startswith(b"GIT binary patch") or _BINARY.fullmatch(line):
        return _read_binary(cursor, entry)
    return entry


def _read_fields(cursor: Cursor) -> dict[bytes, Field]:
    fields: dict[bytes, Field] = {}
    while (match := _FIELD.fullmatch(cursor.next() or b"")) is not None:
        if match[1] in fields:
            cursor.fail(f"the entry states `{match[1].decode()}` twice")
        fields[match[1]] = Field(cursor.number, match[2])
        cursor.take()
    return fields


def _read_binary(cursor: Cursor, entry: RawEntry) -> RawEntry:
    start = cursor.number
    cursor.take()
    while _BINARY_BLOCK.fullmatch(cursor.next() or b""):
        while cursor.next():
            cursor.take()
        if cursor.next() is not None:
            cursor.take()
    return replace(entry, binary=start)


def _read_text(cursor: Cursor, entry: RawEntry) -> RawEntry:
    """Read `---`, `+++` and the hunks below them."""
    old = cursor.take().removeprefix(b"--- ")
    if not cursor.starts(b"+++ "):
        cursor.fail("the `---` line has no `+++` line below it")
    new = cursor.take().removeprefix(b"+++ ")
    if not cursor.starts(b"@@ -"):
        cursor.fail("the file's `---` and `+++` lines have no hunk below them")
    hunks: list[Hunk] = []
    bodies: list[bytes] = []
    while cursor.starts(b"@@ -"):
        hunk, body = read_hunk(cursor, len(hunks) + 1)
        if hunks:
            _require_order(cursor, hunks[-1], hunk)
        hunks.append(hunk)
        bodies.append(body)
    return replace(entry, old=old, new=new, hunks=tuple(hunks), bodies=tuple(bodies))


def _require_order(cursor: Cursor, before: Hunk, hunk: Hunk) -> None:
    if hunk.old_begin < before.old_begin + before.old_count or hunk.new_begin < before.new_begin + before.new_count:
        cursor.fail(f"hunk {hunk.number} overlaps hunk {before.number} or stands before it", line=hunk.source_line)
    if any(side and not side.endswith(b"\n") for side in (before.old, before.new)):
        cursor.fail(f"hunk {before.number} ends the file, so no hunk can follow", line=hunk.source_line)
