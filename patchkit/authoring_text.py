"""What the authoring commands say, as lines for people."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from click import style

from patchkit.authored import DraftReport, Edit, WorkReport
from patchkit.escapes import make_legible
from patchkit.linting import LintReport
from patchkit.text import render

SHOWN_FILES = 20
"""Files of a list that are shown without --verbose."""

_COLOURS = {Edit.MODIFIED: "cyan", Edit.CREATED: "green", Edit.DELETED: "red"}


def render_work(work: WorkReport, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """Where the files are that can be edited now, and what to run then."""
    yield from render(work.report)
    files = _number(len(work.files), "file", "files")
    state = f"with {', '.join(map(str, work.below))}" if work.below else "as shipped"
    yield f"{work.distribution} {work.version}, {files} {state}, to be edited in the work folder"
    yield from (f"  {path}" for path in work.files[: None if verbose else SHOWN_FILES])
    if len(work.files) > SHOWN_FILES and not verbose:
        yield f"  ... and {len(work.files) - SHOWN_FILES} more"
    yield work.folder
    yield f"next: {style(work.next + again, bold=True)}"


def render_draft(draft: DraftReport, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """The patch that was made, what is in it, and which files were written."""
    yield from render(replace(draft.report, summary="\n".join(_describe(draft, verbose=verbose))), verbose=verbose)
    if draft.next:
        yield f"next: {style(draft.next + again, bold=True)}"


def _describe(draft: DraftReport, *, verbose: bool) -> Iterator[str]:
    if not draft.report.patches and draft.file is not None:
        yield f"{draft.id}  {draft.distribution} {draft.versions}  {os.path.basename(draft.file)}"
    for path, edit in draft.edits.items():
        yield f"    {style(f'{edit.value:<8}', fg=_COLOURS[edit])}  {path}"
    for path, why in list(draft.left_out.items())[: None if verbose else SHOWN_FILES]:
        yield f"    {style('left out', fg='yellow')}  {path} ({why})"
    if len(draft.left_out) > SHOWN_FILES and not verbose:
        yield f"    ... and {len(draft.left_out) - SHOWN_FILES} more left out"
    verb = "would write" if draft.report.dry_run else "wrote"
    yield from (f"{verb} {os.path.relpath(path)}" for path in draft.written)
    if draft.file is not None and not draft.written and draft.report.error is None:
        yield f"{os.path.relpath(draft.file)} has this diff already: nothing to write"


def render_lint(report: LintReport) -> Iterator[str]:
    """One line a finding, as compilers write them; each hint once."""
    hints: dict[str, str] = {}
    for finding in report.findings:
        name = _legible(os.path.relpath(finding.file)) if finding.file else ""
        where = f"{name}:{finding.line}: " if finding.line else f"{name}: " if name else ""
        about = f"{finding.id}: " if finding.id is not None else ""
        yield f"{where}{style(finding.code, fg='red')}: {about}{_legible(finding.message)}"
        if finding.hint:
            hints.setdefault(finding.hint, finding.code)
    yield from (f"{style('hint', fg='cyan')}: {code}: {hint}" for hint, code in hints.items())
    count = len(report.findings)
    words = "nothing found" if not count else "1 finding" if count == 1 else f"{count} findings"
    yield f"{words} in {_number(report.patches, 'patch', 'patches')} of {_number(report.sets, 'set', 'sets')}"


def _legible(text: str) -> str:
    """``text`` on one line, whatever a file's name has in it."""
    return make_legible(text).replace("\n", "\\n").replace("\t", "\\t")


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
