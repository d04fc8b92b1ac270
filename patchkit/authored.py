"""What the authoring commands have to say, as values, and as the JSON document (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from patchkit.errors import ExitCode
from patchkit.fold import Tree
from patchkit.lints import Finding
from patchkit.patchset import PatchId
from patchkit.report import SCHEMA, Report, to_document


@unique
class Edit(Enum):
    """What a diff does to a file."""

    MODIFIED = "modified"
    CREATED = "created"
    DELETED = "deleted"


def name_edits(before: Tree, after: Tree, paths: tuple[str, ...]) -> dict[str, Edit]:
    """What happens to each of ``paths``, which differ."""
    return {path: _name(before.get(path) is None, after.get(path) is None) for path in paths}


def _name(absent_before: bool, absent_after: bool) -> Edit:
    if absent_before:
        return Edit.CREATED
    return Edit.DELETED if absent_after else Edit.MODIFIED


@dataclass(frozen=True, slots=True)
class WorkReport:
    """What `edit` did: the files of a distribution in a work folder. ``next`` is the command to run next.

    ``below`` are the patches that are in the copies.
    """

    report: Report
    distribution: str
    version: str
    folder: str
    files: tuple[str, ...]
    next: str
    below: tuple[PatchId, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftReport:
    """What `commit`, `capture` and `import` made of a patch.

    ``versions``, ``file`` and ``manifest`` are None where nothing had to be made. ``written`` are the files that were
    written (or would be, in a dry run); ``left_out`` are paths that are no part of the patch, with the reason.
    """

    report: Report
    id: PatchId
    distribution: str
    version: str
    versions: str | None = None
    file: str | None = None
    manifest: str | None = None
    origin: str = ""
    edits: Mapping[str, Edit] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    next: str = ""


def to_work_document(work: WorkReport, *, again: str = "") -> dict[str, Any]:
    """The JSON document of `edit`. ``again`` are the options that the next command needs to mean the same."""
    return {
        **_head(work.report),
        "distribution": work.distribution,
        "version": work.version,
        "folder": work.folder,
        "files": list(work.files),
        "next": work.next + again,
    }


def to_draft_document(draft: DraftReport, *, again: str = "") -> dict[str, Any]:
    """The JSON document of `commit`, `capture` and `import`: that of `check`, and what was made.

    ``again`` are the options that the next command needs to mean the same.
    """
    return {
        **to_document(draft.report, again=again),
        "set": draft.id.set,
        "patch": draft.id.patch,
        "distribution": draft.distribution,
        "version": draft.version,
        "versions": draft.versions,
        "file": draft.file,
        "manifest": draft.manifest,
        "origin": draft.origin or None,
        "edits": [{"path": path, "edit": edit.value} for path, edit in draft.edits.items()],
        "left_out": [{"path": path, "reason": why} for path, why in draft.left_out.items()],
        "written": list(draft.written),
        "next": draft.next + again if draft.next else None,
    }


def to_lint_document(found: Sequence[Finding], exit_code: ExitCode) -> dict[str, Any]:
    """The JSON document of `lint`."""
    return {
        "schema": SCHEMA,
        "command": "lint",
        "ok": exit_code is ExitCode.DONE,
        "exit_code": int(exit_code),
        "findings": [
            {
                "code": finding.code,
                "file": finding.file or None,
                "line": finding.line or None,
                "set": finding.id.set if finding.id is not None else None,
                "patch": finding.id.patch if finding.id is not None else None,
                "message": finding.message,
                "hint": finding.hint or None,
            }
            for finding in found
        ],
        "warnings": [],
    }


def _head(report: Report) -> dict[str, Any]:
    """The keys that every document begins with, and its warnings."""
    document = to_document(report)
    return {key: document[key] for key in ("schema", "command", "ok", "exit_code", "environment", "warnings")}
