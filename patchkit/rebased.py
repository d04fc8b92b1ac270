"""What became of the patches of a set on a new version, as values and as the JSON document of `rebase`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from patchkit.errors import ExitCode, PatchkitError
from patchkit.fits import Move
from patchkit.model import CheckOutcome, CheckResult, Notice
from patchkit.patchset import PatchId
from patchkit.report import SCHEMA, describe_checks
from patchkit.treemerge import FileMerge


@unique
class Rebase(Enum):
    """The closed set of words for what a patch comes to on a new version."""

    CLEAN = "clean"
    CONFLICT = "conflict"
    UPSTREAMED = "upstreamed"
    PARTLY_UPSTREAMED = "partly-upstreamed"
    NOT_NEEDED = "not-needed"


@unique
class Step(Enum):
    """What was done to the patch set for it."""

    NONE = "none"
    WIDENED = "widened"
    ADDED = "added"
    WORK_FOLDER = "work-folder"


@dataclass(frozen=True, slots=True)
class RebasedPatch:
    """One patch. ``base`` is the release that its change was taken from ("": its diff fits as it is).

    ``variant`` is the diff for the new version and ``versions`` the range that it has now; ``folder`` is the work
    folder of a conflict, ``advice`` the manifest's lines that a person may want to add, ``next`` the command to run.
    ``error`` is what kept it from being looked at to the end; it counts as a conflict then.
    """

    id: PatchId
    result: Rebase
    step: Step = Step.NONE
    base: str = ""
    variant: str | None = None
    versions: str = ""
    files: tuple[FileMerge, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    folder: str = ""
    message: str = ""
    advice: str = ""
    next: str = ""
    error: PatchkitError | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(Move(file.old, file.path) for file in self.files if file.old != file.path)

    @property
    def check_failed(self) -> bool:
        return any(check.result is CheckResult.FAILED for check in self.checks)


@dataclass(frozen=True, slots=True)
class Rebased:
    """The whole run. ``written`` are the files that were written, or would be in a dry run, by absolute path."""

    set: str
    distribution: str
    to: str
    patches: tuple[RebasedPatch, ...]
    written: tuple[str, ...] = ()
    dry_run: bool = False
    notices: tuple[Notice, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """That of the gravest error, 5 with another conflict; 1 where a check fails with the new diff; else 0."""
        conflicts = [patch for patch in self.patches if patch.result is Rebase.CONFLICT]
        if conflicts:
            return min(each.error.exit_code if each.error is not None else ExitCode.CONFLICT for each in conflicts)
        return ExitCode.NO if any(patch.check_failed for patch in self.patches) else ExitCode.DONE


def to_rebased(rebased: Rebased, *, again: str = "") -> dict[str, Any]:
    """The JSON document of ``rebase`` (docs/reference/json.md).

    ``again`` are the options that the next command needs to mean the same environment and patches.
    """
    return {
        "schema": SCHEMA,
        "command": "rebase",
        "ok": rebased.exit_code is ExitCode.DONE,
        "exit_code": int(rebased.exit_code),
        "dry_run": rebased.dry_run,
        "set": rebased.set,
        "distribution": rebased.distribution,
        "to": rebased.to,
        "patches": [_describe(patch, again) for patch in rebased.patches],
        "written": list(rebased.written),
        "warnings": [{"code": notice.code, "message": notice.message} for notice in rebased.notices],
    }


def _describe(patch: RebasedPatch, again: str) -> dict[str, Any]:
    return {
        "patch": patch.id.patch,
        "result": patch.result.value,
        "step": patch.step.value,
        "base": patch.base or None,
        "variant": patch.variant,
        "versions": patch.versions or None,
        "moved": [{"path": move.path, "to": move.home} for move in patch.moves],
        "files": [
            {
                "path": file.path,
                "kept": file.kept,
                "upstream": file.there,
                "conflicts": file.conflicts,
                "message": file.problem or None,
            }
            for file in patch.files
        ],
        "checks": describe_checks(patch.checks),
        "folder": patch.folder or None,
        "message": patch.message or None,
        "advice": patch.advice or None,
        "next": patch.next + again if patch.next else None,
    }
