"""Drift reports as JUnit XML, for systems that show tests: a test case a patch, failed where it drifted.

The elements and attributes are those that Ant's JUnit task introduced and that Jenkins, GitLab and others read; a
report has no time stamp, so that equal environments give equal files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from xml.etree.ElementTree import Element

from patchkit.drift import Drift
from patchkit.drift_text import tell_versions
from patchkit.elements import make, write_xml
from patchkit.errors import PatchkitError
from patchkit.evidence import FileEvidence, gather, to_diff
from patchkit.model import PatchState
from patchkit.patchset import PatchId
from patchkit.report import PatchReport, Report

SHOWN_LINES = 200
"""Lines of one failure; what is behind them is left out, and said so."""

SUITE = "patchkit drift"
WHOLE = PatchId("patchkit", "environment")
"""The test case of what is about no single patch."""
_IDLE = (PatchState.NOT_INSTALLED, PatchState.NOT_APPLICABLE)


def render_junit(report: Report) -> str:
    """The document: one suite; a case fails by drift, is skipped where the patch is not meant, and errs by an error."""
    cases = list(_list_cases(report))
    counts = {
        "time": "0",
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
    }
    skipped = str(sum(case.find("skipped") is not None for case in cases))
    properties = make("properties", *_list_properties(report))
    warnings = "".join(f"warning: {notice.message}\n" for notice in report.notices)
    said = [make("system-err", warnings)] if warnings else []
    suite = make("testsuite", "\n", properties, *cases, *said, name=SUITE, **counts, skipped=skipped)
    return write_xml(make("testsuites", "\n", suite, name=SUITE, **counts))


def _list_properties(report: Report) -> Iterator[Element]:
    values = {"site_root": report.site_root, "python": report.python, "exit_code": str(int(report.exit_code))}
    return (make("property", name=name, value=value) for name, value in values.items() if value is not None)


def _list_cases(report: Report) -> Iterator[Element]:
    if report.error is not None:
        yield _case(WHOLE, _error(report.error))
        return
    rows: dict[PatchId, list[Drift]] = {}
    for row in report.drift or ():
        rows.setdefault(row.id or WHOLE, []).append(row)
    for id, several in rows.items():
        yield _case(id, _failure(report, several))
    rest = [patch for patch in report.patches if patch.id not in rows]
    for patch in rest:
        yield _case(patch.id, *_skipped(patch))
    if not rows and not rest:  # a suite without a case counts as broken in many systems
        yield _case(WHOLE)


def _case(id: PatchId, *endings: Element) -> Element:
    return make("testcase", *endings, classname=id.set, name=id.patch, time="0")


def _skipped(patch: PatchReport) -> tuple[Element, ...]:
    if patch.state not in _IDLE:
        return ()
    return (make("skipped", message=f"{patch.state.value}: {patch.message}" if patch.message else patch.state.value),)


def _error(error: PatchkitError) -> Element:
    lines = (line for single in error.all() for line in (single.message, f"hint: {single.hint}" if single.hint else ""))
    first = min(error.all(), key=lambda single: single.exit_code)
    text = "\n".join(filter(None, lines))
    return make("error", f"{text}\n", message=f"exit {int(error.exit_code)}: {error.message}", type=first.code)


def _failure(report: Report, rows: Sequence[Drift]) -> Element:
    """One element for all that happened to a patch: the schema has room for one."""
    causes = ", ".join(row.cause.value for row in rows)
    message = "; ".join(f"{row.cause.value}: {row.detail}" for row in rows)
    lines = [line for row in rows for line in _tell(report, row)]
    shown = list(islice(lines, SHOWN_LINES))
    if len(lines) > len(shown):
        shown.append(f"... {len(lines) - len(shown)} more lines: `patchkit drift --verbose` shows them")
    return make("failure", "".join(f"{line}\n" for line in shown), message=message, type=causes)


def _tell(report: Report, row: Drift) -> Iterator[str]:
    yield f"{row.cause.value}: {row.detail}"
    if row.distribution is not None:
        yield f"distribution: {tell_versions(row)}"
    if row.remedy:
        yield f"remedy: {row.remedy}"
    for file in gather(report, row):
        yield from _tell_file(file)


def _tell_file(file: FileEvidence) -> Iterator[str]:
    yield f"{file.path} {file.words}".rstrip()
    yield from (f"  {note}" for note in file.notes)
    for passage in file.passages:
        yield from (f"    {line}" for line in to_diff(passage.alignment))
