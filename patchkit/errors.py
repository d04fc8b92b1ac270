"""Everything that can go wrong, by class: a code, an exit code, a hint.

The exit codes are one closed set, the same for every command. An error says what happened and where in its
message, and what to do next in its hint; the command line prints both and leaves with the exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a process ends with (docs/reference/exit-codes.md)."""

    DONE = 0
    NO = 1
    USAGE = 2
    PATCH_SET = 3
    ENVIRONMENT = 4
    CONFLICT = 5
    LOCKED = 6
    ROLLED_BACK = 7
    INTERRUPTED = 8
    BUG = 70
    CTRL_C = 130


class PatchkitError(Exception):
    """Root of all errors that patchkit raises on purpose.

    ``code`` is a stable kebab-case word for machines, ``hint`` the next thing to do ("" where there is none).
    """

    code: ClassVar[str] = "error"
    exit_code: ExitCode = ExitCode.BUG
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    def all(self) -> tuple[PatchkitError, ...]:
        """The single errors in this one: itself, or the members of `Several`."""
        return (self,)


class Several(PatchkitError):
    """More than one problem, all shown at once; the lowest exit code counts."""

    code = "several-problems"

    def __init__(self, errors: Sequence[PatchkitError]) -> None:
        flat = tuple(single for error in errors for single in error.all())
        first = min(flat, key=lambda error: error.exit_code)
        super().__init__("\n".join(error.message for error in flat), hint=first.hint)
        self.errors = flat
        self.first = first
        self.exit_code = first.exit_code

    def all(self) -> tuple[PatchkitError, ...]:
        return self.errors


def raise_all(errors: Sequence[PatchkitError]) -> None:
    """Raise nothing, the one error, or `Several`."""
    match errors:
        case []:
            return
        case [error]:
            raise error
        case _:
            raise Several(errors)


class Bug(PatchkitError):
    """An invariant of patchkit itself does not hold."""

    code = "bug"
    default_hint = "please report this, with the output of the same command under --verbose"


class UsageError(PatchkitError):
    """The command line is wrong."""

    code = "usage"
    exit_code = ExitCode.USAGE


class WrongBill(UsageError):
    """What is to be merged into is no bill of materials that our patches could go into."""

    code = "wrong-bill"
    default_hint = "name a CycloneDX bill of this environment, in JSON"


class Aborted(PatchkitError):
    """Ctrl-C, SIGTERM or SIGHUP came; what was under way was undone."""

    code = "aborted"
    exit_code = ExitCode.CTRL_C


# ---- 1: the answer is no --------------------------------------------------------------------------------------


class NoChange(PatchkitError):
    """Nothing was edited, so there is nothing to make a patch of."""

    code = "no-change"
    exit_code = ExitCode.NO


# ---- 3: the patch set or a diff is wrong ----------------------------------------------------------------------


class PatchSetError(PatchkitError):
    """Family: something in the patch folder is wrong."""

    code = "patch-set"
    exit_code = ExitCode.PATCH_SET


class NoPatchSets(PatchSetError):
    code = "no-patch-sets"
    default_hint = "name the folder with --patches DIR; in an image build, is it copied into this layer?"


class UnknownPatch(PatchSetError):
    code = "unknown-patch"
    default_hint = "`patchkit list` shows the patch sets at hand"


class BadManifest(PatchSetError):
    code = "bad-manifest"


class DuplicateSet(PatchSetError):
    code = "duplicate-set"


class OrderCycle(PatchSetError):
    code = "order-cycle"


class GroupClash(PatchSetError):
    code = "group-clash"


class UselessCheck(PatchSetError):
    """A symbol check that passes without the patch: it cannot fail, so it proves nothing."""

    code = "useless-check"


class DiffError(PatchSetError):
    """Family: a diff is malformed, or asks for something that is refused. Carries the place."""

    code = "bad-diff"

    def __init__(self, problem: str, *, file: str, line: int, hint: str | None = None) -> None:
        super().__init__(f"{file}:{line}: {problem}", hint=hint)
        self.file = file
        self.line = line


class MalformedDiff(DiffError):
    code = "malformed-diff"


class TrailingText(DiffError):
    code = "text-outside-entry"


class EmptyDiff(DiffError):
    code = "empty-diff"


class DiffTooLarge(DiffError):
    code = "diff-too-large"


class BinaryDiff(DiffError):
    code = "binary-diff"


class SymlinkDiff(DiffError):
    code = "symlink-diff"


class SubmoduleDiff(DiffError):
    code = "submodule-diff"


class CopyDiff(DiffError):
    code = "copy-diff"


class UnsafePath(DiffError):
    code = "unsafe-path"


class DuplicateEntry(DiffError):
    code = "duplicate-entry"
    default_hint = "use the diff of the whole change: one entry a file"


class NoContext(DiffError):
    code = "no-context"
    default_hint = "make the diff with context (diff -U3, git diff)"


class NotOwned(DiffError):
    """The target is not a file that the distribution owns by its own RECORD."""

    code = "not-owned"


class Unpatchable(PatchSetError):
    """A file was changed in a way that no diff can carry: a binary file, a symbolic link."""

    code = "unpatchable-file"
    default_hint = "put the file back as it was shipped; only text files can be patched"


class VariantExists(PatchSetError):
    """The patch has a diff already for the version in question, and it is not this one's to replace."""

    code = "variant-exists"


class NoMatchingFile(PatchSetError):
    """No entry of an upstream diff is about a file that the distribution has."""

    code = "no-matching-file"


# ---- 4: the environment is not the one meant ------------------------------------------------------------------


class EnvironmentMismatch(PatchkitError):
    """Family: the environment is not the one meant."""

    code = "environment"
    exit_code = ExitCode.ENVIRONMENT


class NoEnvironment(EnvironmentMismatch):
    code = "no-environment"
    default_hint = "name one with --python PATH or --site-packages DIR"


class UnsupportedSystem(EnvironmentMismatch):
    code = "unsupported-system"


class NotInstalled(EnvironmentMismatch):
    code = "not-installed"


class NothingApplicable(EnvironmentMismatch):
    code = "nothing-applicable"
    default_hint = "is this the environment you mean? name it with --python PATH or --site-packages DIR"


class RequiredSet(EnvironmentMismatch):
    """What `post-install --require` names would not be applied."""

    code = "required-set"
    default_hint = "`patchkit status` says why; leave out --require if this environment can do without"


class NoVariant(EnvironmentMismatch):
    code = "no-variant"


class ConstraintFails(EnvironmentMismatch):
    code = "constraint"


class AmbiguousDistribution(EnvironmentMismatch):
    code = "ambiguous-distribution"


class SeveralSiteRoots(EnvironmentMismatch):
    code = "several-site-roots"
    default_hint = "name one with --site-packages DIR"


class EditableInstall(EnvironmentMismatch):
    code = "editable-install"


class NoRecord(EnvironmentMismatch):
    code = "no-record"


class OutsideEnvironment(EnvironmentMismatch):
    code = "outside-environment"


class NotReadable(EnvironmentMismatch):
    code = "not-readable"
    default_hint = "run as a user who may read it"


class NotWritable(EnvironmentMismatch):
    code = "not-writable"


class NewerFormat(EnvironmentMismatch):
    code = "newer-format"
    default_hint = "use the patchkit that wrote it, or a newer one"


class WrongWheel(EnvironmentMismatch):
    code = "wrong-wheel"


class BadExport(EnvironmentMismatch):
    """A golden file that cannot be read, or is none."""

    code = "bad-export"
    default_hint = "`patchkit export --output FILE` writes one"


class Drifted(EnvironmentMismatch):
    """What the ledger has as applied is not there, so it cannot be vouched for."""

    code = "drifted"
    default_hint = "`patchkit drift` says what happened, and what to do"


class AllChecksSkipped(EnvironmentMismatch):
    code = "all-checks-skipped"


class MissingExtra(EnvironmentMismatch):
    """What a command needs is in an extra that is not installed with patchkit."""

    code = "missing-extra"


class NoRelease(EnvironmentMismatch):
    """The index, or the folder that was named, has no such release."""

    code = "no-release"


class NoWheel(EnvironmentMismatch):
    """A release has no wheel that tells what it installs."""

    code = "no-wheel"


class IndexUnreachable(EnvironmentMismatch):
    """The index does not answer, or not with what was asked for."""

    code = "index-unreachable"
    default_hint = (
        "is the network there, and the index that pip or uv is configured for? --find-links DIR needs neither"
    )


# ---- 5 to 8 ---------------------------------------------------------------------------------------------------


class Conflict(PatchkitError):
    """A patch does not fit, or a file holds somebody's edit; nothing was written."""

    code = "conflict"
    exit_code = ExitCode.CONFLICT


class ForeignFile(Conflict):
    code = "foreign-file"


class NoPristineBytes(Conflict):
    code = "no-pristine-bytes"


class Locked(PatchkitError):
    code = "locked"
    exit_code = ExitCode.LOCKED
    default_hint = "wait for the other patchkit to end, or give --lock-timeout SECONDS"


class InProgress(PatchkitError):
    code = "in-progress"
    exit_code = ExitCode.LOCKED
    default_hint = "another patchkit is writing here; try again when it has ended"


class RolledBack(PatchkitError):
    """Something failed half way and all of it was undone: nothing changed."""

    code = "rolled-back"
    exit_code = ExitCode.ROLLED_BACK


class CheckFailed(RolledBack):
    code = "check-failed"


class Interrupted(PatchkitError):
    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED
    default_hint = "run `patchkit recover`"


class NotRolledBack(Interrupted):
    """The undo met bytes that are not ours; the journal and every backup are kept."""

    code = "not-rolled-back"


class DamagedState(Interrupted):
    """The ledger or the journal cannot be read, or an object is not what its name says."""

    code = "damaged-state"
    default_hint = ""
