"""What a row of a drift report rests on: by file, what was found, and the passages where expected and found differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patchkit.alignment import Alignment, Gap, Kind, Line, Pair, Row, align, split_lines
from patchkit.drift import Cause, Drift, DriftedFile, HunkTrace, Trace
from patchkit.model import HunkOutcome, HunkResult
from patchkit.report import FileReport, Report

SHOWN_ROWS = 400
"""Rows that are shown of one passage."""

BY_FILE = (Cause.REINSTALLED, Cause.EDITED)
"""The causes that are seen in the files as they are; for the others it counts what `apply` would find."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Expected and found lines side by side; ``words`` say where and why."""

    words: str
    alignment: Alignment


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """What there is to say of one file: ``words``, a ``note`` a hunk, and passages where there is a text to show."""

    path: str
    words: str
    notes: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()


def gather(report: Report, row: Drift) -> tuple[FileEvidence, ...]:
    """The evidence for ``row`` of ``report``.

    For files that were edited or put back it is what was written beside what is there. Otherwise it is what the hunks
    of the patch expect beside what they meet in the version that is installed now.
    """
    if row.cause in BY_FILE:
        shared = Counter(file.path for other in report.drift or () for file in other.files)
        return tuple(_from_drifted(file, shared=shared[file.path] > 1) for file in row.files)
    foretold = [file for patch in report.patches if patch.id == row.id for file in patch.files]
    if any(file.hunks or file.message for file in foretold):
        return tuple(_from_foretold(file) for file in foretold)
    return tuple(_from_drifted(file) for file in row.files if file.hunks and row.cause is not Cause.UNINSTALLED)


# ---- files that are there -------------------------------------------------------------------------------------


def _from_drifted(file: DriftedFile, *, shared: bool = False) -> FileEvidence:
    notes = tuple(_say_trace(hunk) for hunk in file.hunks)
    if file.expected is not None and file.content is not None:
        notes += ("other patches drifted in this file too; it is shown whole",) if shared else ()
        whole = align(split_lines(file.expected), split_lines(file.content), limit=SHOWN_ROWS)
        differs = file.expected != file.content
        return FileEvidence(file.path, file.detail, notes, (Passage("", whole),) if differs else ())
    gone = (hunk for hunk in file.hunks if hunk.trace is Trace.GONE)
    return FileEvidence(file.path, file.detail, notes, tuple(_from_trace(hunk) for hunk in gone))


def _say_trace(hunk: HunkTrace) -> str:
    near = f", most of it near line {hunk.nearest}" if hunk.trace is Trace.GONE and hunk.nearest else ""
    return f"hunk {hunk.number} (line {hunk.line}) {'is still there' if hunk.trace is Trace.THERE else 'is gone'}{near}"


def _from_trace(hunk: HunkTrace) -> Passage:
    return Passage(f"hunk {hunk.number}", _align_hunk(hunk.expected, hunk.found, hunk.line, hunk.nearest))


# ---- what `apply` would find ----------------------------------------------------------------------------------


def _from_foretold(file: FileReport) -> FileEvidence:
    conflicts = (hunk for hunk in file.hunks if hunk.result is HunkResult.CONFLICT)
    return FileEvidence(
        file.path,
        file.message,
        tuple(_say_outcome(hunk) for hunk in file.hunks),
        tuple(
            Passage(f"hunk {hunk.number}", _align_hunk(hunk.expected, hunk.found, hunk.line, hunk.nearest))
            for hunk in conflicts
            if hunk.expected or hunk.found
        ),
    )


def _say_outcome(hunk: HunkOutcome) -> str:
    offset = f", offset {hunk.offset:+d}" if hunk.offset else ""
    words = {HunkResult.FITS: "fits", HunkResult.UPSTREAM: "is upstream", HunkResult.CONFLICT: "does not fit"}
    because = f": {hunk.reason}" if hunk.reason else ""
    return f"hunk {hunk.number} (line {hunk.line}{offset}) {words[hunk.result]}{because}"


def _align_hunk(expected: Sequence[str], found: Sequence[str], line: int, nearest: int | None) -> Alignment:
    at = nearest if nearest is not None else line
    whole = align(expected, found, expected_from=line, found_from=at, limit=SHOWN_ROWS)
    return replace(whole, rows=_leave_out_unseen(whole.rows))


def _leave_out_unseen(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows without the last ones that are missing only because what was looked at ends too early for them.

    As many lines are looked at as the hunk has: each extra one pushes one of the others out of sight.
    """
    extra = sum(isinstance(row, Pair) and row.kind is Kind.EXTRA for row in rows)
    while extra and rows and isinstance(rows[-1], Pair) and rows[-1].kind is Kind.MISSING:
        rows, extra = rows[:-1], extra - 1
    return rows


# ---- as a diff ------------------------------------------------------------------------------------------------


def to_diff(alignment: Alignment) -> Iterator[str]:
    """The rows as lines in the manner of diff(1): "-" was expected and is not there, "+" is there instead."""
    extra: list[str] = []
    for row in alignment.rows:
        if extra and not _is_changed(row):
            yield from extra
            extra = []
        if isinstance(row, Gap):
            yield f"@@ {row.lines} lines that are the same @@"
            continue
        if row.kind is Kind.SAME:
            yield f" {_text(row.expected)}"
        elif row.expected is not None:
            yield f"-{_text(row.expected)}"
        if row.kind is not Kind.SAME and row.found is not None:
            extra.append(f"+{_text(row.found)}")
    yield from extra
    if alignment.cut:
        yield f"@@ {alignment.cut} more lines @@"


def _is_changed(row: Row) -> bool:
    return not isinstance(row, Gap) and row.kind is not Kind.SAME


def _text(line: Line | None) -> str:
    return "" if line is None else line.text
