"""The drift report as lines for people: a row a patch, what was found below it, and the command that mends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from click import style

from patchkit.alignment import LONGEST
from patchkit.columns import WIDTH, Cell, lay_out, wrap
from patchkit.drift import Cause, Drift, DriftedFile, HunkTrace, Trace
from patchkit.escapes import make_legible
from patchkit.report import PatchReport, Report

SHOWN_LINES = 12
"""Lines of a hunk that are shown without --verbose."""

_COLOURS = {
    Cause.REINSTALLED: "yellow",
    Cause.UPGRADED: "yellow",
    Cause.DOWNGRADED: "yellow",
    Cause.UNINSTALLED: "red",
    Cause.EDITED: "red",
    Cause.PATCH_CHANGED: "cyan",
    Cause.PATCH_REMOVED: "cyan",
    Cause.NOT_APPLIED: "red",
    Cause.INTERRUPTED: "red",
}


def render_drift(report: Report, *, verbose: bool = False) -> Iterator[str]:
    """The lines of a drift report for standard output."""
    if report.site_root is not None:
        python = f" (Python {report.python})" if report.python is not None else ""
        yield style(f"environment {report.site_root}{python}", dim=True)
    rows = report.drift or ()
    cells = [(Cell(name_row(row)), _paint(row.cause), Cell(tell_versions(row))) for row in rows]
    for row, lines in zip(rows, lay_out(cells), strict=True):
        yield from lines
        yield from _render_details(row, verbose=verbose)
        yield from (line for patch in report.patches if patch.id == row.id for line in _render_forecast(row, patch))
        if row.remedy:
            yield f"    remedy: {style(row.remedy, bold=True)}"
    yield report.summary or summarise(report)


def _paint(cause: Cause) -> Cell:
    return Cell(cause.value, style(cause.value, fg=_COLOURS[cause]))


def tell_headline(report: Report) -> str:
    """One line for the whole report, also where there is an error."""
    if report.error is not None:
        return f"drift cannot be told: {report.error.message.splitlines()[0]}"
    return report.summary or summarise(report)


def summarise(report: Report) -> str:
    """One line: how many rows, by cause; or that there is none."""
    if report.drift:
        counts = Counter(row.cause.value for row in report.drift)
        return "drift: " + ", ".join(f"{count} {cause}" for cause, count in counts.items())
    if not report.patches:
        return "no drift: nothing is declared or applied here"
    states = Counter(row.state.value for row in report.patches)
    return "no drift: " + ", ".join(f"{count} {state}" for state, count in states.items())


def name_row(row: Drift) -> str:
    """The patch that a row is about; a row without one is about the whole site root."""
    return "(all)" if row.id is None else str(row.id)


def tell_versions(row: Drift) -> str:
    """The distribution with the version that was patched and the one that is there now."""
    if row.distribution is None:
        return ""
    if row.recorded is None or row.recorded == row.found:
        return f"{row.distribution} {row.found or ''}".rstrip()
    unknown = "?" if row.cause in (Cause.REINSTALLED, Cause.EDITED) else "none"
    return f"{row.distribution} {row.recorded} -> {row.found or unknown}"


def _render_details(row: Drift, *, verbose: bool) -> Iterator[str]:
    yield from _wrap(row.detail.splitlines(), 4)
    told = row.cause in (Cause.REINSTALLED, Cause.EDITED)
    for file in row.files if verbose or told else ():
        yield from _wrap([f"{file.path} {file.detail}"], 4)
        yield from (line for hunk in file.hunks for line in _render_hunk(row, file, hunk, verbose=verbose))


def _render_forecast(row: Drift, patch: PatchReport) -> Iterator[str]:
    """What of the patch does not fit the version that is installed now, hunk by hunk."""
    told = (Cause.UPGRADED, Cause.DOWNGRADED, Cause.NOT_APPLIED, Cause.PATCH_CHANGED)
    if row.cause not in told or not patch.failed:
        return
    for file in patch.files:
        if file.hunks or file.message:
            yield from _wrap([f"{file.path}{': ' if file.message else ''}{file.message}"], 4)
        for hunk in file.hunks:
            because = f": {hunk.reason}" if hunk.reason else ""
            yield from _wrap([f"hunk {hunk.number} (line {hunk.line}) {hunk.result.value}{because}"], 6)


def _render_hunk(row: Drift, file: DriftedFile, hunk: HunkTrace, *, verbose: bool) -> Iterator[str]:
    near = f" near line {hunk.nearest}" if hunk.nearest else ""
    yield f"      hunk {hunk.number} (line {hunk.line}) {hunk.trace.value}{near if hunk.trace is Trace.GONE else ''}"
    edited = row.cause is Cause.EDITED and hunk.trace is Trace.GONE and bool(hunk.found)
    if verbose or (edited and len(hunk.expected) <= SHOWN_LINES):
        longest = LONGEST if verbose else WIDTH - len("        expected | ")
        yield from _indent("expected", hunk.expected, longest)
        yield from _indent("found   ", hunk.found, longest)


def _indent(word: str, lines: Sequence[str], longest: int) -> Iterator[str]:
    shown = (make_legible(line[: longest + 1]) for line in lines)
    cut = (line if len(line) <= longest else f"{line[: longest - 4]} ..." for line in shown)
    return (f"        {word} | {line}" for line in cut)


def _wrap(lines: Iterable[str], indent: int) -> Iterator[str]:
    return (piece for line in lines for piece in wrap(line, " " * indent))
