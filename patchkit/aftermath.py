"""What a command did to the patches: drift before it and after it, and the way back to what was wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patchkit.applied import Applied
from patchkit.change import DEFAULTS
from patchkit.child import run_command
from patchkit.comparison import compare
from patchkit.drift import Cause, Drift
from patchkit.errors import ExitCode, PatchkitError
from patchkit.examination import Progress
from patchkit.model import Notice
from patchkit.report import Report
from patchkit.scene import CatalogNeed, Options, open_catalog, open_scene
from patchkit.service import apply, revert, verify

REAPPLY = replace(DEFAULTS, allow_empty=True)
"""Where the command uninstalled everything that is patched, nothing is left to apply; that is no failure."""


@dataclass(frozen=True, slots=True)
class _Before:
    """What there was before the command ran; ``place`` is an open descriptor of the site root's folder, if any.

    It is held open meanwhile: the inode of a folder that is gone may be given to the next one.
    """

    drift: tuple[Drift, ...] = ()
    applied: tuple[Applied, ...] = ()
    place: int | None = None

    def is_here(self, root: str) -> bool:
        """Whether the site root at ``root`` is the very folder of before, or there was none."""
        return self.place is None or os.path.samestat(os.fstat(self.place), os.stat(root))

    def close(self) -> None:
        if self.place is not None:
            os.close(self.place)


@dataclass(frozen=True, slots=True)
class Aftermath:
    """The exit code of a command, the report of the drift that it caused, and what had drifted before it ran."""

    code: int
    report: Report
    older: tuple[Drift, ...] = ()

    @property
    def everything(self) -> tuple[Drift, ...]:
        return (*(self.report.drift or ()), *self.older)


def follow(options: Options, command: Sequence[str], *, again: str = "", output_to_error: bool = False) -> Aftermath:
    """Run ``command``, and tell what it caused from what had drifted before.

    An environment that is not there yet, or is made anew, is no error: what was applied in the old one and is not in
    the new one is `Cause.NOT_APPLIED`. Where the command failed and left nothing that can be read, the report has the
    error. Raises `UsageError` where the command cannot be started, and where it succeeded what `compare` raises.
    """
    before = _look(options)
    try:
        code = run_command(command, output_to_error=output_to_error)
        return _follow(options, before, code, again)
    finally:
        before.close()


def _follow(options: Options, before: _Before, code: int, again: str) -> Aftermath:
    try:
        return _compare(options, before, code, again)
    except PatchkitError as error:
        if not code:
            raise
        return Aftermath(code, Report("run", error=error))


def _compare(options: Options, before: _Before, code: int, again: str) -> Aftermath:
    after = compare(options, again=again)
    old = {_key(row) for row in before.drift}
    caused = tuple(row for row in after.drift or () if _key(row) not in old)
    rows = (*caused, *_find_lost(options, before, caused, again))
    older = tuple(row for row in after.drift or () if _key(row) in old)
    notices = (*after.notices, *_mention(after, rows, older, again))
    answer = ExitCode.NO if rows else ExitCode.DONE
    summary = "" if rows else "no patch drifted"
    report = replace(after, command="run", drift=rows, answer=answer, notices=notices, summary=summary)
    return Aftermath(code, report, older)


def _mention(after: Report, rows: Sequence[Drift], older: Sequence[Drift], again: str) -> Iterator[Notice]:
    if older:
        yield Notice("older-drift", f"{len(older)} more had drifted before: `patchkit drift{again}`")
    if not rows and not older and not after.patches:
        yield Notice("nothing-here", f"nothing is declared or applied on {after.site_root}, so nothing could drift")


def _look(options: Options) -> _Before:
    """Nothing where there is no environment yet, or none that can be read."""
    try:
        report = compare(options)
        scene = open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True)
        return _Before(report.drift or (), scene.ledger.applied, os.open(scene.root, os.O_RDONLY))
    except (PatchkitError, OSError):
        return _Before()


def _key(row: Drift) -> tuple[object, ...]:
    return row.id, row.cause, row.found, tuple((file.path, file.found) for file in row.files)


def _find_lost(options: Options, before: _Before, caused: Sequence[Drift], again: str) -> list[Drift]:
    """What was applied in an environment that is another folder now, so that its ledger went with it."""
    scene = open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True)
    if before.is_here(scene.root):
        return []
    told = {row.id for row in caused}
    return [
        Drift(
            each.id,
            Cause.NOT_APPLIED,
            "it was applied before the command ran, and the environment was made anew",
            f"patchkit apply {each.id}{again}" + ("" if scene.catalog.sets else " --patches DIR"),
            each.distribution,
            each.version,
            scene.version_of(each.distribution),
        )
        for each in before.applied
        if scene.ledger.patch(each.id) is None and each.id not in told
    ]


# ---- back to what was wanted ----------------------------------------------------------------------------------


def reapply(options: Options, found: Aftermath, progress: Progress) -> Report:
    """Bring back all that ``found`` says has drifted, and verify it. Raises what `apply` and `verify` raise.

    With a patch folder at hand that is the declared list and all that was applied; without one, what the ledger keeps.
    Patches whose distribution was uninstalled are taken off the ledger.
    """
    rows = [row for row in found.everything if row.id is not None]
    gone = [str(row.id) for row in rows if row.cause is Cause.UNINSTALLED]
    lost = [str(row.id) for row in rows if row.cause is not Cause.UNINSTALLED]
    catalog, _ = open_catalog(options, CatalogNeed.OPTIONAL)
    reports = []
    if catalog.sets:
        reports.append(apply(options, (), REAPPLY, progress))
        lost = [id for id in lost if id not in _list_applied(options)] if reports[-1].error is None else []
    if lost:
        reports.append(apply(options, lost, REAPPLY, progress))
    if gone and all(each.error is None for each in reports):
        reports.append(revert(options, gone, REAPPLY, progress))
    failed = next((each for each in reports if each.exit_code is not ExitCode.DONE), None)
    if failed is not None:
        return failed
    if not _list_applied(options):
        return replace(reports[-1], summary="no patch is left to apply here")
    return verify(options, progress=progress)


def _list_applied(options: Options) -> set[str]:
    ledger = open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True).ledger
    return {str(applied.id) for applied in ledger.applied}
