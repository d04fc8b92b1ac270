"""How the patches of a set fare on the releases of their distribution, as values and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from patchkit.errors import ExitCode
from patchkit.model import CheckOutcome, CheckResult, HunkResult, Notice
from patchkit.patchset import PatchId
from patchkit.report import SCHEMA, FileReport, describe_checks, describe_files


@unique
class Fit(Enum):
    """The closed set of words for what a patch comes to on a release."""

    FITS = "fits"
    OFFSET = "offset"
    CONFLICT = "conflict"
    UPSTREAMED = "upstreamed"
    MOVED = "moved"
    NO_VARIANT = "no-variant"
    NOT_NEEDED = "not-needed"
    NO_WHEEL = "no-wheel"


@dataclass(frozen=True, slots=True)
class Move:
    """The text that a diff changes in ``path`` is in ``home`` by now."""

    path: str
    home: str


@dataclass(frozen=True, slots=True)
class Cell:
    """What one patch comes to on one release.

    ``would`` says of a release that no range holds what the variant that comes nearest, ``variant``, would come to.
    """

    id: PatchId
    result: Fit
    variant: str | None = None
    would: Fit | None = None
    moves: tuple[Move, ...] = ()
    message: str = ""
    files: tuple[FileReport, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()

    @property
    def in_range(self) -> bool:
        """Whether the manifest has a word for this release."""
        return self.result not in (Fit.NO_VARIANT, Fit.NO_WHEEL)

    @property
    def failed(self) -> bool:
        """Whether the manifest claims this release, and it does not hold."""
        broken = any(check.result is CheckResult.FAILED for check in self.checks)
        return self.result in (Fit.CONFLICT, Fit.MOVED) or (self.in_range and broken)


@dataclass(frozen=True, slots=True)
class Column:
    """One release, with a cell for each patch. ``wheel`` is the file that was read (None: there is none)."""

    version: str
    wheel: str | None
    yanked: bool
    cells: tuple[Cell, ...]

    @property
    def read(self) -> bool:
        """Whether anything is known of what the release ships."""
        return not all(cell.result is Fit.NO_WHEEL for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The whole table. ``received`` are the bytes of wheels that came over the wire."""

    set: str
    distribution: str
    patches: tuple[PatchId, ...]
    columns: tuple[Column, ...]
    received: int = 0
    notices: tuple[Notice, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """`ExitCode.NO` where a release inside a declared range does not fit, or none could be looked into."""
        failed = not any(column.read for column in self.columns) or any(
            cell.failed for column in self.columns for cell in column.cells
        )
        return ExitCode.NO if failed else ExitCode.DONE

    def cells_of(self, id: PatchId) -> list[tuple[Column, Cell]]:
        """The cells of one patch, from the oldest release on."""
        return [(column, cell) for column in self.columns for cell in column.cells if cell.id == id]


def fit_of(files: Sequence[FileReport]) -> Fit:
    """The word for a patch that fits: exactly, or with an offset."""
    shifted = any(hunk.offset for file in files for hunk in file.hunks if hunk.result is HunkResult.FITS)
    return Fit.OFFSET if shifted else Fit.FITS


def to_coverage(coverage: Coverage) -> dict[str, Any]:
    """The JSON document of ``coverage`` (docs/reference/json.md)."""
    return {
        "schema": SCHEMA,
        "command": "coverage",
        "ok": coverage.exit_code is ExitCode.DONE,
        "exit_code": int(coverage.exit_code),
        "set": coverage.set,
        "distribution": coverage.distribution,
        "releases": [
            {
                "version": column.version,
                "wheel": column.wheel,
                "yanked": column.yanked,
                "patches": [_describe(cell) for cell in column.cells],
            }
            for column in coverage.columns
        ],
        "received_bytes": coverage.received,
        "warnings": [{"code": notice.code, "message": notice.message} for notice in coverage.notices],
    }


def _describe(cell: Cell) -> dict[str, Any]:
    return {
        "patch": cell.id.patch,
        "result": cell.result.value,
        "in_range": cell.in_range,
        "ok": not cell.failed,
        "variant": cell.variant,
        "would": None if cell.would is None else cell.would.value,
        "moved": [{"path": move.path, "to": move.home} for move in cell.moves],
        "message": cell.message or None,
        "files": describe_files(cell.files),
        "checks": describe_checks(cell.checks),
    }
