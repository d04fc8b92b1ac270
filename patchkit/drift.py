"""Drift, as values: what became of patches since they were applied, why, and what to do (docs/reference/drift.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from patchkit.installed import FileState
from patchkit.model import PatchState
from patchkit.patchset import PatchId


@unique
class Cause(Enum):
    """Why an environment is not as it was left, or not as declared: the closed set, the same in all output."""

    REINSTALLED = "reinstalled"
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"
    UNINSTALLED = "uninstalled"
    EDITED = "edited"
    PATCH_CHANGED = "patch-changed"
    PATCH_REMOVED = "patch-removed"
    NOT_APPLIED = "not-applied"
    INTERRUPTED = "interrupted"


@unique
class Trace(Enum):
    """Whether what a hunk brought is still in the file."""

    THERE = "there"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class HunkTrace:
    """One hunk of an applied patch, looked for in the file as it is.

    ``line`` is where its new side begins: the line it was found at, or the one that its header states. ``expected`` are
    the lines of its new side, ``found`` those where most of them stand (``nearest``, 1-based); both for people.
    """

    number: int
    line: int
    trace: Trace
    expected: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    nearest: int | None = None


@dataclass(frozen=True, slots=True)
class DriftedFile:
    """A file that does not hold what was written: digests of both (None: absent), and the texts where they are known.

    ``expected`` is the text that was written, folded anew from what the ledger keeps; None where it cannot be had.
    """

    path: str
    state: FileState
    recorded: str | None
    found: str | None
    detail: str = ""
    hunks: tuple[HunkTrace, ...] = ()
    expected: bytes | None = None
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """One row of the report: a patch, and what happened to it. ``id`` None: it is about the whole site root.

    ``recorded`` and ``found`` are versions of its distribution. ``state`` is what `apply` would find now; ``remedy`` is
    a command.
    """

    id: PatchId | None
    cause: Cause
    detail: str
    remedy: str
    distribution: str | None = None
    recorded: str | None = None
    found: str | None = None
    state: PatchState | None = None
    files: tuple[DriftedFile, ...] = ()
