"""What was applied, as values: the memory of one site root that its ledger keeps (docs/reference/state.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from patchkit.installed import Stamp
from patchkit.model import DiffText
from patchkit.patchset import Check, PatchId, Provenance


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
    """What was applied to one site root. ``settled`` is its seal (`patchkit.settled`): empty where there is none."""

    applied: tuple[Applied, ...] = ()
    files: tuple[LedgerFile, ...] = ()
    records: tuple[LedgerRecord, ...] = ()
    directories: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    settled: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing is applied and nothing is kept: the state folder can go."""
        return not (self.applied or self.files or self.kept)

    def patch(self, id: PatchId) -> Applied | None:
        return next((applied for applied in self.applied if applied.id == id), None)

    def file(self, path: str) -> LedgerFile | None:
        return next((file for file in self.files if file.path == path), None)
