"""The values that decisions are made of and in: diffs, states and outcomes, the plan of exact writes.

All are frozen; nothing here reads, decides or writes. Patch sets, installed files and the ledger's memory have rooms
of their own: `patchset`, `installed`, `applied`. Paths are POSIX strings relative to the site root, as in RECORD.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, unique

from patchkit.installed import Content, Observed

# ---- diffs (diff(1), git-diff(1)) -----------------------------------------------------------------------------


@unique
class EntryKind(Enum):
    """What an entry of a diff does with its file."""

    MODIFY = "modify"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk, its two sides as bytes.

    ``old`` is context and removed lines, ``new`` context and added lines, each with its line end; a line that
    "\\ No newline at end of file" follows has none. Starts are 1-based lines as stated in the header.
    ``leading`` and ``trailing`` count the context lines before the first and after the last change.
    """

    number: int
    source_line: int
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: bytes
    old: bytes
    new: bytes
    leading: int
    trailing: int
    added: int
    removed: int

    @property
    def old_begin(self) -> int:
        """The line where the old side begins; where it is empty, ``old_start`` names the line before that."""
        return self.old_start if self.old_count else self.old_start + 1

    @property
    def new_begin(self) -> int:
        """The same of the new side."""
        return self.new_start if self.new_count else self.new_start + 1

    def reversed(self) -> Hunk:
        """The hunk that undoes this one."""
        return replace(
            self,
            old_start=self.new_start,
            old_count=self.new_count,
            new_start=self.old_start,
            new_count=self.old_count,
            old=self.new,
            new=self.old,
            added=self.removed,
            removed=self.added,
        )


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One entry of a diff: what happens to one file.

    ``old`` and ``new`` are paths after strip and directory (None: absent on that side). ``executable`` is the
    executable bit that the diff states for the new side, ``was_executable`` for the old; None where it states none.
    ``without_cr`` holds the hunks without CRs when the whole patch file has CRLF line ends: to be tried when
    ``hunks`` do not fit.
    """

    line: int
    kind: EntryKind
    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] = ()
    executable: bool | None = None
    was_executable: bool | None = None
    without_cr: tuple[Hunk, ...] | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths it names: one, or old and new of a rename."""
        return tuple(dict.fromkeys(path for path in (self.old, self.new) if path is not None))

    @property
    def path(self) -> str:
        """The path to speak of: the new one, or the old one of a deletion."""
        return self.paths[-1]

    def reversed(self) -> FileDiff:
        """The entry that undoes this one."""
        kind = {EntryKind.CREATE: EntryKind.DELETE, EntryKind.DELETE: EntryKind.CREATE}.get(self.kind, self.kind)
        return FileDiff(
            line=self.line,
            kind=kind,
            old=self.new,
            new=self.old,
            hunks=tuple(hunk.reversed() for hunk in self.hunks),
            executable=self.was_executable,
            was_executable=self.executable,
            without_cr=None if self.without_cr is None else tuple(hunk.reversed() for hunk in self.without_cr),
        )


@dataclass(frozen=True, slots=True)
class DiffText:
    """The bytes of a diff with all that decides what they mean: equal texts do the same thing."""

    sha256: str
    strip: int = 1
    directory: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@unique
class HunkResult(Enum):
    FITS = "fits"
    CONFLICT = "conflict"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class HunkOutcome:
    """Where a hunk fits, or why it does not.

    ``line`` is the 1-based line where its old side begins in the text that it met (the stated one in a conflict),
    ``offset`` its distance from the stated line. ``reason`` is "" unless it is a conflict; ``expected`` and
    ``found`` are lines without their ends, decoded for people; ``nearest`` is the line of the place that almost fits.
    """

    number: int
    line: int
    offset: int
    result: HunkResult
    reason: str = ""
    expected: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    nearest: int | None = None


# ---- states and outcomes -------------------------------------------------------------------------------------


@unique
class PatchState(Enum):
    """The closed set of states of a patch, the same in all output."""

    APPLIED = "applied"
    PENDING = "pending"
    OUTDATED = "outdated"
    DRIFTED = "drifted"
    CONFLICT = "conflict"
    UPSTREAMED = "upstreamed"
    NOT_NEEDED = "not-needed"
    NO_VARIANT = "no-variant"
    NOT_INSTALLED = "not-installed"
    NOT_APPLICABLE = "not-applicable"


@unique
class Action(Enum):
    """What a command did to a patch (or would do, in a dry run)."""

    APPLIED = "applied"
    UPDATED = "updated"
    ADOPTED = "adopted"
    REVERTED = "reverted"
    NONE = "none"


@unique
class ForeignPolicy(Enum):
    """What the user asked to do with a foreign file."""

    REFUSE = "refuse"
    ACCEPT = "accept-modified"
    DISCARD = "discard-edits"


@unique
class CheckResult(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How a check ended; ``message`` is what it found, or why it was skipped."""

    kind: str
    name: str
    result: CheckResult
    message: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning: nothing failed, but a person should know."""

    code: str
    message: str


# ---- the plan: exact writes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file to be replaced, created or removed. ``before`` is what must be on disk when its turn comes.

    ``record`` is the path of the RECORD of the distribution that it belongs to, "" where that is not installed.
    """

    path: str
    before: Observed
    after: Content | None
    record: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one transaction writes below one site root; nothing else is written.

    ``objects`` are to be in the object store (sha256 to bytes), ``live`` are the objects that stay when it is
    committed, ``live_before`` those that stay when it is undone. ``state_before`` and ``state_after`` are the bytes of
    ledger.json (None: no ledger; after such a commit the state folder is gone). ``drop_directories`` are removed
    once they are empty, deepest first.
    """

    changes: tuple[FileChange, ...]
    objects: Mapping[str, bytes]
    live: frozenset[str]
    live_before: frozenset[str]
    state_before: bytes | None
    state_after: bytes | None
    make_directories: tuple[str, ...] = ()
    drop_directories: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it may touch, besides the state folder's."""
        return (*(change.path for change in self.changes), *self.make_directories, *self.drop_directories)

    @property
    def empty(self) -> bool:
        """Nothing to write: no lock, no file, no directory."""
        return not self.changes and self.state_before == self.state_after
