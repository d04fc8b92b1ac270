"""The text of a hunk: its header, its counts, its lines, and the marker of a missing newline (diff(1)).

Every line is taken as bytes and ends at LF alone. What does not agree with the header's counts is an error.
"""

from __future__ import annotations

import re
from typing import NoReturn

from patchkit.errors import DiffError, DiffTooLarge, MalformedDiff
from patchkit.model import Hunk

HUNK_HEADER = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: (.*)|(.*))", re.DOTALL)
_MAX_DIGITS = 9
_MARKER = b"\\ No newline at end of file"
_MARKER_LENGTH = 11  # git takes any text behind "\ " that is this long: diff translates it


class Cursor:
    """The lines of a diff without their ends, and how far they were read."""

    def __init__(self, data: bytes, file: str) -> None:
        self.lines = data.split(b"\n")
        self.ends_within_line = bool(self.lines[-1])
        if not self.ends_within_line:
            self.lines.pop()
        self.file = file
        self.at = 0

    @property
    def number(self) -> int:
        """The 1-based number of the next line."""
        return self.at + 1

    def next(self, ahead: int = 0) -> bytes | None:
        """The next line, or one further ahead; None at the end."""
        index = self.at + ahead
        return self.lines[index] if index < len(self.lines) else None

    def starts(self, prefix: bytes, ahead: int = 0) -> bool:
        line = self.next(ahead)
        return line is not None and line.startswith(prefix)

    def take(self) -> bytes:
        """Read one line that belongs to an entry."""
        self.skip(1)
        return self.lines[self.at - 1]

    def skip(self, count: int) -> None:
        """Go on by lines that belong to an entry; a diff that ends within one has lost something."""
        self.at += count
        if self.ends_within_line and self.at == len(self.lines) and not self.lines[-1].startswith(b"\\ "):
            self.fail("the diff ends in the middle of this line", line=self.at, hint="end the file with a newline")

    def fail(
        self,
        problem: str,
        *,
        line: int | None = None,
        error: type[DiffError] = MalformedDiff,
        hint: str | None = None,
    ) -> NoReturn:
        raise error(problem, file=self.file, line=line or self.number, hint=hint)


def read_hunk(cursor: Cursor, number: int) -> tuple[Hunk, bytes]:
    """Read one hunk, and its text with the header, the spaces that editors eat put back: for a second reader.

    Raises:
        MalformedDiff: header, counts and lines do not go together, or nothing changes.
        DiffTooLarge: a number that no file has lines for.
    """
    start = cursor.number
    old_start, old_count, new_start, new_count, section = _read_header(cursor, cursor.take(), start)
    sides = _read_sides(cursor, number, _Sides(old_count, new_count))
    hunk = Hunk(
        number=number,
        source_line=start,
        old_start=old_start,
        old_count=old_count,
        new_start=new_start,
        new_count=new_count,
        section=section,
        old=sides.joined(sides.old, ended=sides.old_ended),
        new=sides.joined(sides.new, ended=sides.new_ended),
        leading=sides.leading,
        trailing=sides.trailing,
        added=sides.added,
        removed=sides.removed,
    )
    return hunk, b"\n".join(map(_canonical, cursor.lines[start - 1 : cursor.at])) + b"\n"


def _canonical(line: bytes) -> bytes:
    """The line as another reader knows it: an eaten space put back, a translated marker in English."""
    return _MARKER if line[:1] == b"\\" else line or b" "


def _read_sides(cursor: Cursor, number: int, sides: _Sides) -> _Sides:
    start = cursor.at
    while not sides.full or cursor.starts(b"\\"):
        if cursor.next() is None:
            cursor.fail(f"hunk {number} is cut off: its header states more lines", line=start)
        if cursor.starts(b"\\"):
            _read_marker(cursor, sides)
            continue
        read = sides.take(cursor.lines, cursor.at)
        if not read:
            cursor.fail(f"hunk {number} has fewer lines than its header states", hint=f"the header is in line {start}")
        cursor.skip(read)
    if not sides.added and not sides.removed:
        cursor.fail(f"hunk {number} changes nothing", line=start)
    return sides


class _Sides:
    """The two sides of a hunk while its lines are read."""

    def __init__(self, old_count: int, new_count: int) -> None:
        self.old: list[bytes] = []
        self.new: list[bytes] = []
        self.old_count = old_count
        self.new_count = new_count
        self.leading = self.trailing = self.added = self.removed = 0
        self.old_ended = self.new_ended = True

    @property
    def full(self) -> bool:
        return len(self.old) == self.old_count and len(self.new) == self.new_count

    def take(self, lines: list[bytes], at: int) -> int:
        """Take lines from index ``at`` until both sides are full or a line does not go on; returns how many."""
        old, new, begin = self.old, self.new, at
        old_left, new_left = self.old_count - len(old), self.new_count - len(new)
        for line in lines[at : at + old_left + new_left]:
            first = line[:1]
            if (first == b" " or not first) and old_left and new_left:
                old.append(line[1:])
                new.append(line[1:])
                old_left -= 1
                new_left -= 1
                self.trailing += 1
            elif first == b"-" and old_left:
                self._count_change()
                self.removed += 1
                old.append(line[1:])
                old_left -= 1
            elif first == b"+" and new_left:
                self._count_change()
                self.added += 1
                new.append(line[1:])
                new_left -= 1
            else:
                break
            at += 1
        return at - begin

    def _count_change(self) -> None:
        if not self.added and not self.removed:
            self.leading = self.trailing
        self.trailing = 0

    @staticmethod
    def joined(lines: list[bytes], *, ended: bool) -> bytes:
        text = b"\n".join(lines)
        return text + b"\n" if lines and ended else text


def _read_marker(cursor: Cursor, sides: _Sides) -> None:
    """Read "\\ No newline at end of file", which must stand behind the last line of the sides it speaks of."""
    before, marker = cursor.lines[cursor.at - 1][:1], cursor.lines[cursor.at]
    on_old, on_new = before != b"+", before != b"-"
    if not marker.startswith(b"\\ ") or len(marker) < _MARKER_LENGTH or before in (b"\\", b"@"):
        cursor.fail("a line that begins with a backslash, but is not `\\ No newline at end of file`")
    if (on_old and len(sides.old) < sides.old_count) or (on_new and len(sides.new) < sides.new_count):
        cursor.fail("`\\ No newline at end of file` is not behind the last line")
    sides.old_ended = sides.old_ended and not on_old
    sides.new_ended = sides.new_ended and not on_new
    cursor.skip(1)


def _read_header(cursor: Cursor, header: bytes, line: int) -> tuple[int, int, int, int, bytes]:
    match = HUNK_HEADER.fullmatch(header)
    if match is None:
        cursor.fail("not a hunk header: expected `@@ -start,count +start,count @@`", line=line)
    if any(len(digits or b"") > _MAX_DIGITS for digits in match.groups()[:4]):
        cursor.fail("the hunk header states a number that no file has lines for", line=line, error=DiffTooLarge)
    old_start, old_count, new_start, new_count = (int(digits or b"1") for digits in match.groups()[:4])
    if (old_start == 0 and old_count) or (new_start == 0 and new_count):
        cursor.fail("the hunk header states lines from line 0", line=line)
    return old_start, old_count, new_start, new_count, match[5] or match[6] or b""
