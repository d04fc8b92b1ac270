"""The domain values: patch sets, diffs, installed files, what the ledger remembers.

All are frozen and hold what was parsed at the door; nothing here reads, decides or writes. Paths are POSIX
strings relative to the site root, as in RECORD. Digests called ``sha256`` are lower-case hex.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, unique


def sha256(data: bytes) -> str:
    """The name of ``data`` in the object store."""
    return hashlib.sha256(data).hexdigest()


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


# ---- patch sets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class PatchId:
    """The name of a patch: ``set/patch``."""

    set: str
    patch: str

    def __str__(self) -> str:
        return f"{self.set}/{self.patch}"


@dataclass(frozen=True, slots=True)
class Variant:
    """The diff of a patch for a range of versions (a PEP 440 specifier)."""

    versions: str
    file: str
    strip: int = 1
    directory: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotNeeded:
    versions: str
    why: str


@dataclass(frozen=True, slots=True)
class SymbolCheck:
    """A static check: what must be true of a symbol's source once the patch is applied.

    ``symbol`` is a dotted name in the module ("" is the whole module). ``starts_with`` is the statement that the
    body starts with, ``has`` and ``lacks`` are expressions, ``decorators`` what decorates it, outermost first.
    """

    module: str
    symbol: str = ""
    starts_with: str = ""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    versions: str = ""

    @property
    def name(self) -> str:
        return f"{self.module}:{self.symbol}" if self.symbol else self.module


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """A script that the target interpreter runs: 0 passed, 77 skipped, else failed.

    ``sha256`` names its bytes in the object store ("" until they were read).
    """

    file: str
    needs: tuple[str, ...] = ()
    timeout: float = 60.0
    versions: str = ""
    sha256: str = ""

    @property
    def name(self) -> str:
        return self.file


Check = SymbolCheck | PythonCheck


@dataclass(frozen=True, slots=True)
class Constraint:
    """Another distribution must be at such a version where it is installed (as pip's constraints)."""

    distribution: str
    versions: str

    def __str__(self) -> str:
        return f"{self.distribution}{self.versions}"


@dataclass(frozen=True, slots=True)
class Provenance:
    """DEP-3's fields: where a patch comes from and when it may go."""

    origin: str = ""
    bug: str = ""
    forwarded: str = ""
    applied_upstream: str = ""
    last_update: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """One named change with a purpose. ``place`` is its position in the manifest, from 0."""

    id: PatchId
    distribution: str
    place: int
    summary: str = ""
    default: bool = True
    group: str = ""
    after: tuple[PatchId, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    markers: tuple[str, ...] = ()
    shadowed_by: tuple[str, ...] = ()
    provenance: Provenance = Provenance()
    variants: tuple[Variant, ...] = ()
    not_needed: tuple[NotNeeded, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchSet:
    """A manifest with its patches. ``folder`` is where variants' and checks' files lie."""

    name: str
    distribution: str
    summary: str
    folder: str
    patches: tuple[Patch, ...]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What ``select`` and ``deselect`` say, with the file that said it ("" where none did)."""

    select: tuple[str, ...] = ()
    deselect: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The patch sets at hand, by name, and what the project declares. ``folders`` are where they were looked for."""

    folders: tuple[str, ...] = ()
    sets: tuple[PatchSet, ...] = ()
    declarations: tuple[Declaration, ...] = ()

    @property
    def patches(self) -> dict[PatchId, Patch]:
        return {patch.id: patch for patch_set in self.sets for patch in patch_set.patches}

    def set(self, name: str) -> PatchSet | None:
        return next((patch_set for patch_set in self.sets if patch_set.name == name), None)


@dataclass(frozen=True, slots=True)
class Project:
    """What ``[tool.patchkit]`` of a pyproject.toml says; ``patches`` are folders, relative to that file."""

    patches: tuple[str, ...] = ()
    declaration: Declaration = Declaration()


# ---- the installed environment --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest as RECORD states it: a hashlib algorithm and the raw value."""

    algorithm: str
    value: bytes

    def matches(self, data: bytes) -> bool:
        """Whether ``data`` has this digest. An algorithm that hashlib lacks matches nothing."""
        try:
            return hashlib.new(self.algorithm, data).digest() == self.value
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One row of RECORD; ``digest`` is None for an unrecorded file, ``field`` its digest field as it stands there."""

    path: str
    digest: Digest | None
    field: str = ""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The installed thing. ``name`` is normalised (PEP 503), ``dist_info`` the folder's name in the site root.

    ``record`` is its RECORD as it is on disk; it is parsed only where a decision needs its rows.
    """

    name: str
    version: str
    dist_info: str
    record: Content

    @property
    def record_path(self) -> str:
        return f"{self.dist_info}/RECORD"


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment asked for. ``roots`` are its site roots in the order of sys.path, ``outside`` those it only sees.

    ``executable`` is the target interpreter (None: only a folder was named), ``python`` its version, ``markers`` its
    PEP 508 values (empty: not asked yet).
    """

    roots: tuple[str, ...]
    outside: tuple[str, ...] = ()
    executable: str | None = None
    python: str | None = None
    markers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file and its permission bits (``stat.S_IMODE``)."""

    data: bytes
    mode: int

    @property
    def executable(self) -> bool:
        return bool(self.mode & 0o100)


@dataclass(frozen=True, slots=True)
class Observed:
    """A path as it is on disk: its content, or absent; ``link`` is where a symbolic link points.

    ``obstacle`` says in words what keeps it from being a plain file (a directory, say); "" where nothing does.
    """

    path: str
    content: Content | None
    link: str | None = None
    obstacle: str = ""


@unique
class FileState(Enum):
    PRISTINE = "pristine"
    PATCHED = "patched"
    FOREIGN = "foreign"
    MISSING = "missing"


# ---- the ledger -----------------------------------------------------------------------------------------------


@unique
class Reason(Enum):
    """Why a patch is applied: it was declared, or named on the command line."""

    DECLARED = "declared"
    NAMED = "named"


@unique
class BaseOrigin(Enum):
    """What makes a base count as pristine: RECORD, first contact, or the user's word."""

    RECORDED = "recorded"
    UNRECORDED = "unrecorded"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A content by digest and mode."""

    sha256: str
    mode: int

    @classmethod
    def of(cls, content: Content) -> Stamp:
        return cls(sha256(content.data), content.mode)

    @property
    def executable(self) -> bool:
        return bool(self.mode & 0o100)


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """What was written to one file: the base it was folded from, the patches in it, the result.

    ``base`` and ``written`` are None where the file is absent on that side. ``recorded`` is the digest field of its
    RECORD row then ("" where there was none).
    """

    path: str
    distribution: str
    base: Stamp | None
    origin: BaseOrigin
    recorded: str
    patches: tuple[PatchId, ...]
    written: Stamp | None


@dataclass(frozen=True, slots=True)
class Applied:
    """A patch as it was applied: enough to verify, report and revert with no patch folder at hand."""

    id: PatchId
    distribution: str
    version: str
    variant: str
    versions: str
    text: DiffText
    place: int
    after: tuple[PatchId, ...]
    group: str
    reason: Reason
    summary: str
    provenance: Provenance
    shadowed_by: tuple[str, ...]
    checks: tuple[Check, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """The RECORD of a patched distribution: its bytes without our rows (``base``) and with them (``written``).

    The two are equal where no patch creates a file. ``written`` tells whether RECORD is still the one that was seen.
    """

    distribution: str
    path: str
    base: Stamp
    written: Stamp
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """Foreign bytes that a user had replaced; they stay in the object store."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was applied to one site root."""

    applied: tuple[Applied, ...] = ()
    files: tuple[LedgerFile, ...] = ()
    records: tuple[LedgerRecord, ...] = ()
    directories: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing is applied and nothing is kept: the state folder can go."""
        return not (self.applied or self.files or self.kept)

    def patch(self, id: PatchId) -> Applied | None:
        return next((applied for applied in self.applied if applied.id == id), None)

    def file(self, path: str) -> LedgerFile | None:
        return next((file for file in self.files if file.path == path), None)


# ---- decisions ------------------------------------------------------------------------------------------------


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
    """One file to be replaced, created or removed. ``before`` is what must be on disk when its turn comes."""

    path: str
    before: Observed
    after: Content | None


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
