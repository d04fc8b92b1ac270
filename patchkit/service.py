"""The commands, one function each: read, decide, execute, report. This is the Python API that the command line uses.

Every function returns a `Report`. What stands in the way of a patch is in its ``error``, with the exit code; where
nothing can be said at all (no environment, a broken manifest) a `PatchkitError` is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchkit.account import account_for
from patchkit.catalog import read_set_file
from patchkit.change import (
    DEFAULTS,
    ApplyOptions,
    change,
    find_obstacles,
    propose,
    report_on,
    with_python_checks,
)
from patchkit.decision import Decision, decide, find_renamed
from patchkit.errors import ExitCode, ForeignFile, NoPatchSets, PatchkitError, PatchSetError, raise_all
from patchkit.examination import Progress, no_progress
from patchkit.interruption import disregard
from patchkit.model import Action, CheckResult, ForeignPolicy, Notice, PatchState
from patchkit.patchset import Catalog, Patch, PatchId, PatchSet
from patchkit.report import PatchReport, Report
from patchkit.scene import CatalogNeed, Options, Scene, open_catalog, open_scene, read_steadily, want_leniently
from patchkit.state import needs_sweep
from patchkit.verification import verify_applied
from patchkit.wanted import (
    Wanted,
    check_operands,
    find_patch,
    list_declared,
    matches,
    want_apply,
    want_exactly,
    want_kept,
    want_named,
    want_nothing,
    want_revert,
)

__all__ = [
    "ApplyOptions",
    "ForeignPolicy",
    "Options",
    "Report",
    "apply",
    "check",
    "list_patches",
    "recover",
    "revert",
    "show_patch",
    "status",
    "verify",
]


def list_patches(options: Options) -> Catalog:
    """The patch sets at hand. Raises `PatchSetError`."""
    catalog, _ = open_catalog(options, CatalogNeed.REQUIRED)
    return catalog


def show_patch(catalog: Catalog, name: str) -> tuple[Patch, PatchSet, tuple[tuple[str, str], ...]]:
    """The patch called ``name`` (``SET/PATCH``) with its set and its diffs as (file, text). Raises `UnknownPatch`."""
    check_operands([name])
    found = find_patch(catalog, name)
    patch_set = catalog.set(found.id.set)
    assert patch_set is not None
    files = dict.fromkeys(variant.file for variant in found.variants)
    texts = tuple((file, read_set_file(patch_set.folder, file).decode("utf-8", "backslashreplace")) for file in files)
    return found, patch_set, texts


def check(options: Options, operands: Sequence[str] = ()) -> Report:
    """Would each patch apply to what is installed? The answer is `ExitCode.NO` when one would not. Writes nothing."""
    check_operands(operands)
    return read_steadily(
        lambda: open_scene(options, CatalogNeed.REQUIRED, operands=operands), lambda scene: _check(scene, operands)
    )


def _check(scene: Scene, operands: Sequence[str]) -> Report:
    proposal = propose(scene, _want(scene, operands, "check", exact=False), DEFAULTS, sealed=False)
    raise_all([problem for problem in proposal.problems if problem.exit_code is ExitCode.PATCH_SET])
    rows = tuple(_with_verdict(row) for row in account_for(proposal.decision, with_python_checks(proposal)))
    if proposal.problems:  # all or nothing: no patch alone is the next step
        rows = tuple(row if row.failed else replace(row, next="") for row in rows)
    told = "\n".join(row.message for row in rows)
    problems = (*proposal.problems, *find_obstacles(proposal))
    untold = [problem for problem in problems if not _is_told(problem.message, told)]
    hints = tuple(dict.fromkeys(problem.hint for problem in problems if problem.hint))
    answer = ExitCode.NO if proposal.problems else ExitCode.DONE
    report = report_on("check", proposal.decision, patches=rows, answer=answer, operands=tuple(operands), hints=hints)
    return replace(report, notices=(*report.notices, *(Notice(problem.code, problem.message) for problem in untold)))


def _is_told(message: str, told: str) -> bool:
    """Whether a row says it already; an error puts the patch's name in front."""
    _, _, words = message.partition(": ")
    return message in told or (bool(words) and words in told)


def _with_verdict(row: PatchReport) -> PatchReport:
    """A patch that fits and whose check fails would be rolled back."""
    if not any(check.result is CheckResult.FAILED for check in row.checks):
        return row
    return replace(row, failed=True, action=Action.NONE, next="")


def apply(
    options: Options, operands: Sequence[str] = (), how: ApplyOptions = DEFAULTS, progress: Progress = no_progress
) -> Report:
    """Bring the environment to the wanted state: all of it, or nothing."""
    check_operands(operands)
    try:
        return change(
            "apply",
            lambda: open_scene(
                options,
                CatalogNeed.REQUIRED,
                operands=operands,
                allow_interrupted=not how.dry_run,
                wait=how.lock_timeout,
            ),
            lambda scene: _want(scene, operands, "apply", exact=how.exact),
            how,
            progress,
        )
    except NoPatchSets as error:
        if operands:
            return _apply_kept(options, operands, how, progress, error)
        if not how.allow_empty:
            raise NoPatchSets(error.message, hint=f"{error.hint} --allow-empty accepts an empty run") from error
        if how.exact and open_scene(options, CatalogNeed.OPTIONAL).ledger.applied:
            raise NoPatchSets(error.message, hint="`patchkit revert --all` takes out what is applied here") from error
        return Report("apply", notices=(Notice(error.code, error.message),), summary="nothing to apply, as allowed")


def _apply_kept(
    options: Options, operands: Sequence[str], how: ApplyOptions, progress: Progress, error: NoPatchSets
) -> Report:
    """Without a patch folder, patches that were applied by these names come back from what the ledger keeps."""
    known = open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True).ledger.applied
    if not all(any(matches(x, applied.id) for applied in known) for x in operands):
        raise error
    return change(
        "apply",
        lambda: open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=not how.dry_run, wait=how.lock_timeout),
        lambda scene: want_kept(scene.ledger, operands),
        how,
        progress,
    )


def _want(scene: Scene, operands: Sequence[str], command: str, *, exact: bool) -> Wanted:
    if operands:
        return want_named(scene.catalog, scene.ledger, operands, command)
    return (want_exactly if exact else want_apply)(scene.catalog, scene.ledger)


def revert(
    options: Options,
    operands: Sequence[str] = (),
    how: ApplyOptions = DEFAULTS,
    progress: Progress = no_progress,
) -> Report:
    """Take patches out: those that ``operands`` name, or all where there are none. Files that held them go back."""
    check_operands(operands)
    return change(
        "revert",
        lambda: open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=not how.dry_run, wait=how.lock_timeout),
        lambda scene: want_revert(scene.catalog, scene.ledger, operands) if operands else want_nothing(scene.ledger),
        replace(how, allow_empty=True),
        progress,
    )


def verify(
    options: Options, operands: Sequence[str] = (), *, checks: bool = True, progress: Progress = no_progress
) -> Report:
    """Are the bytes what the ledger says, do they compile, do the checks pass? Where nothing is applied: no."""
    check_operands(operands)
    return read_steadily(
        lambda: open_scene(options, CatalogNeed.OPTIONAL),
        lambda scene: verify_applied(scene, operands, progress, checks=checks),
    )


def status(options: Options, *, exit_code: bool = False) -> Report:
    """One row a patch. With ``exit_code`` the answer is `ExitCode.NO` unless everything is as wanted."""
    return read_steadily(
        lambda: open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True),
        lambda scene: _status(scene, exit_code=exit_code),
    )


def _status(scene: Scene, *, exit_code: bool) -> Report:
    try:
        decision = _decide_leniently(scene)
    except PatchSetError as error:  # what is applied cannot be folded here any more; the ledger still tells what it was
        return _status_of_ledger(scene, error, exit_code=exit_code)
    renamed = find_renamed(decision)
    rows = tuple(_mark_undeclared(decision, row, renamed) for row in account_for(decision, {}))
    settled = (PatchState.APPLIED, PatchState.UPSTREAMED, PatchState.NOT_NEEDED)
    passed_over = (PatchState.NOT_APPLICABLE, PatchState.NOT_INSTALLED)
    good = all(row.state in settled + passed_over and not row.failed for row in rows)
    good = good and any(row.state in settled for row in rows)
    notices: tuple[Notice, ...] = ()
    if decision.scene.doubtful:
        good = False  # a typing error in --patches, or a broken patch set: what is declared is not known
    if scene.state.interrupted:
        good = False
        notices = (Notice("interrupted", "a transaction was interrupted here: run `patchkit recover`"),)
    if exit_code and good and (drifted := _mention_drift(scene)):
        good, notices = False, drifted
    report = report_on(
        "status", decision, patches=rows, answer=ExitCode.NO if exit_code and not good else ExitCode.DONE
    )
    problems = (verdict.problem for verdict in decision.verdicts.values())
    hints = dict.fromkeys(problem.hint for problem in problems if isinstance(problem, ForeignFile))
    return replace(report, notices=(*report.notices, *notices), hints=tuple(hints))


def _decide_leniently(scene: Scene) -> Decision:
    """What `apply` would find; a broken patch set is a warning, and what is applied counts alone."""
    lenient, wanted = want_leniently(scene)
    try:
        return decide(lenient, wanted)
    except PatchkitError as error:
        if error.exit_code is not ExitCode.PATCH_SET or not lenient.catalog.sets:
            raise
        told = tuple(Notice(single.code, single.message) for single in error.all())
        return _decide_leniently(replace(lenient, catalog=Catalog(), notices=(*lenient.notices, *told), doubtful=True))


def _status_of_ledger(scene: Scene, error: PatchkitError, *, exit_code: bool) -> Report:
    report = verify_applied(scene, (), no_progress, checks=False)
    told = tuple(Notice(single.code, single.message) for single in error.all())
    answer = ExitCode.NO if exit_code else ExitCode.DONE
    return replace(report, command="status", notices=(*report.notices, *told), answer=answer)


def _mention_drift(scene: Scene) -> tuple[Notice, ...]:
    """What no state tells: `drift` has the last word on whether all is as declared."""
    from patchkit.comparison import find_drift  # it brings all that tells causes, and a plain `status` needs none of it

    names = dict.fromkeys(str(row.id) for row in find_drift(scene) if row.id is not None)
    return (Notice("drifted", f"not as declared: {', '.join(names)} (`patchkit drift` says why)"),) if names else ()


def _mark_undeclared(decision: Decision, row: PatchReport, renamed: Mapping[PatchId, PatchId]) -> PatchReport:
    """Applied by name, or declared once: `apply` keeps it, unless another takes its place; `apply --exact` does not."""
    catalog = decision.scene.catalog
    if row.message or not catalog.sets or row.id in list_declared(catalog):
        return row
    if row.id in renamed:
        return replace(row, message=f"the patch folder calls it {renamed[row.id]} now: `patchkit apply` goes along")
    if row.id in decision.wanted.dropped:
        return replace(row, message="not declared: `patchkit apply` takes it out")
    return replace(row, message="not declared: `patchkit apply --exact` would take it out")


def recover(options: Options, *, lock_timeout: float = 10.0) -> Report:
    """Undo an interrupted transaction, or finish the clean-up of one that was complete."""
    from patchkit.transaction import Recovery, locked
    from patchkit.transaction import recover as recover_transaction

    scene = open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True)
    found = Recovery.NOTHING
    error: PatchkitError | None = None
    if scene.state.interrupted or needs_sweep(scene.root):
        try:
            with locked(scene.root, timeout=lock_timeout) as lock:
                disregard()  # stopping half way would only mean to begin again
                found = recover_transaction(lock)
        except PatchkitError as caught:
            error = caught
    words = {
        Recovery.NOTHING: "nothing to recover",
        Recovery.UNDONE: "undid an interrupted transaction: the files are as they were before it",
        Recovery.FINISHED: "finished the clean-up of a complete transaction",
    }
    return Report(
        "recover",
        scene.root,
        scene.environment.python,
        notices=scene.notices,
        error=error,
        wrote=found is not Recovery.NOTHING,
        summary=words[found] if error is None else "",
    )
