"""What a command has to say, as values, and as the JSON document (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patchkit.errors import ExitCode, PatchkitError, Several
from patchkit.installed import FileState
from patchkit.model import Action, CheckOutcome, CheckResult, HunkOutcome, Notice, PatchState
from patchkit.patchset import Catalog, Patch, PatchId, PythonCheck

if TYPE_CHECKING:
    from patchkit.drift import Drift, DriftedFile  # a report of anything else does without these classes

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a patch; ``state`` None: the run did not have to find out."""

    path: str
    state: FileState | None
    hunks: tuple[HunkOutcome, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class PatchReport:
    """One patch: what was found, what was done, and what to do next ("" where nothing is)."""

    id: PatchId
    distribution: str
    installed: str | None
    variant: str | None
    state: PatchState
    action: Action = Action.NONE
    message: str = ""
    files: tuple[FileReport, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    next: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one run of a command says."""

    command: str
    site_root: str | None = None
    python: str | None = None
    patches: tuple[PatchReport, ...] = ()
    notices: tuple[Notice, ...] = ()
    error: PatchkitError | None = None
    answer: ExitCode = ExitCode.DONE
    dry_run: bool = False
    changes: tuple[str, ...] = ()
    wrote: bool = False
    diff: str = ""
    summary: str = ""
    operands: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    drift: tuple[Drift, ...] | None = None

    @property
    def exit_code(self) -> ExitCode:
        return self.answer if self.error is None else self.error.exit_code

    @property
    def skipped_checks(self) -> int:
        return sum(check.result is CheckResult.SKIPPED for patch in self.patches for check in patch.checks)


def to_document(report: Report, *, again: str = "") -> dict[str, Any]:
    """The JSON document of ``report``: stable keys, unknown values null.

    ``again`` are the options that the next command needs to mean the same environment and patches.
    """
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "command": report.command or None,
        "ok": report.exit_code is ExitCode.DONE,
        "exit_code": int(report.exit_code),
        "dry_run": report.dry_run,
        "environment": {"site_root": report.site_root, "python": report.python},
        "patches": [_from_patch(patch, again) for patch in report.patches],
        "skipped_checks": report.skipped_checks,
        "warnings": [{"code": notice.code, "message": notice.message} for notice in report.notices],
    }
    if report.dry_run or report.diff:
        document["changes"] = list(report.changes)
        document["diff"] = report.diff or None
    if report.drift is not None:
        document["drift"] = [row for drift in report.drift for row in _from_drift(drift)]
    if report.error is not None:
        document["error"] = _from_error(report.error)
    return document


def _from_error(error: PatchkitError) -> Mapping[str, object]:
    single = error.first if isinstance(error, Several) else error
    document: dict[str, object] = {"code": single.code, "message": error.message, "hint": error.hint or None}
    if len(error.all()) > 1:
        document["all"] = [
            {"code": each.code, "message": each.message, "hint": each.hint or None} for each in error.all()
        ]
    return document


def _from_patch(patch: PatchReport, again: str) -> Mapping[str, object]:
    return {
        "set": patch.id.set,
        "patch": patch.id.patch,
        "distribution": patch.distribution,
        "installed": patch.installed,
        "variant": patch.variant,
        "state": patch.state.value,
        "action": patch.action.value,
        "message": patch.message or None,
        "files": describe_files(patch.files),
        "checks": describe_checks(patch.checks),
        "next": patch.next + again if patch.next else None,
    }


def describe_files(files: Sequence[FileReport]) -> list[Mapping[str, object]]:
    """The ``files`` of a patch in any document."""
    return [_from_file(file) for file in files]


def describe_checks(checks: Sequence[CheckOutcome]) -> list[Mapping[str, object]]:
    """The ``checks`` of a patch in any document."""
    return [
        {"kind": check.kind, "name": check.name, "result": check.result.value, "message": check.message or None}
        for check in checks
    ]


def _from_file(file: FileReport) -> Mapping[str, object]:
    return {
        "path": file.path,
        "state": None if file.state is None else file.state.value,
        "message": file.message or None,
        "hunks": [
            {
                "number": hunk.number,
                "line": hunk.line,
                "offset": hunk.offset,
                "result": hunk.result.value,
                "reason": hunk.reason or None,
                "expected": list(hunk.expected),
                "found": list(hunk.found),
                "nearest": hunk.nearest,
            }
            for hunk in file.hunks
        ],
    }


# ---- drift ----------------------------------------------------------------------------------------------------


def _from_drift(drift: Drift) -> Iterator[Mapping[str, object]]:
    """One row a file where files show the cause, else one row in which ``path`` is null."""
    from patchkit.drift import Cause

    if drift.cause not in (Cause.REINSTALLED, Cause.EDITED) or not drift.files:
        yield _to_row(drift, None)
    for file in drift.files if drift.cause in (Cause.REINSTALLED, Cause.EDITED) else ():
        yield _to_row(drift, file)


def _to_row(drift: Drift, file: DriftedFile | None) -> Mapping[str, object]:
    return {
        "set": None if drift.id is None else drift.id.set,
        "patch": None if drift.id is None else drift.id.patch,
        "distribution": drift.distribution,
        "cause": drift.cause.value,
        "path": None if file is None else file.path,
        "detail": drift.detail if file is None else f"{file.path} {file.detail}",
        "remedy": drift.remedy or None,
        "state": None if drift.state is None else drift.state.value,
        "recorded": {"version": drift.recorded, "sha256": None if file is None else file.recorded},
        "found": {"version": drift.found, "sha256": None if file is None else file.found},
        "hunks": [
            {
                "number": hunk.number,
                "line": hunk.line,
                "result": hunk.trace.value,
                "expected": list(hunk.expected),
                "found": list(hunk.found),
                "nearest": hunk.nearest,
            }
            for hunk in (() if file is None else file.hunks)
        ],
    }


# ---- list and show --------------------------------------------------------------------------------------------


def to_listing(catalog: Catalog) -> dict[str, Any]:
    """The JSON document of ``list``."""
    return {
        "schema": SCHEMA,
        "command": "list",
        "ok": True,
        "exit_code": 0,
        "folders": list(catalog.folders),
        "sets": [
            {
                "set": found.name,
                "distribution": found.distribution,
                "summary": found.summary or None,
                "folder": found.folder,
                "patches": [_describe_patch(patch) for patch in found.patches],
            }
            for found in catalog.sets
        ],
        "warnings": [],
    }


def to_showing(patch: Patch, diffs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The JSON document of ``show``."""
    return {
        "schema": SCHEMA,
        "command": "show",
        "ok": True,
        "exit_code": 0,
        "set": patch.id.set,
        "distribution": patch.distribution,
        **_describe_patch(patch),
        "diffs": [{"file": file, "text": text} for file, text in diffs],
        "warnings": [],
    }


def _describe_patch(patch: Patch) -> dict[str, Any]:
    source = patch.provenance
    return {
        "patch": patch.id.patch,
        "summary": patch.summary or None,
        "default": patch.default,
        "group": patch.group or None,
        "after": [str(id) for id in patch.after],
        "constraints": [str(constraint) for constraint in patch.constraints],
        "markers": list(patch.markers),
        "shadowed_by": list(patch.shadowed_by),
        "origin": source.origin or None,
        "bug": source.bug or None,
        "forwarded": source.forwarded or None,
        "applied_upstream": source.applied_upstream or None,
        "last_update": source.last_update or None,
        "variants": [{"versions": variant.versions, "file": variant.file} for variant in patch.variants],
        "not_needed": [{"versions": skip.versions, "why": skip.why} for skip in patch.not_needed],
        "checks": [
            {
                "kind": "python" if isinstance(check, PythonCheck) else "symbol",
                "name": check.name,
                "versions": check.versions or None,
            }
            for check in patch.checks
        ],
    }
