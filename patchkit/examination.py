"""Examining a decision: what the checks of its patches say, and whether the patched sources compile. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from patchkit.account import Outcomes, action_for
from patchkit.applied import Applied
from patchkit.checks import compile_sources, run_python_check
from patchkit.decision import Decision
from patchkit.errors import AllChecksSkipped, CheckFailed, DamagedState, PatchkitError, raise_all
from patchkit.fold import Tree
from patchkit.installed import Environment
from patchkit.model import Action, CheckOutcome, CheckResult
from patchkit.patchset import PatchId, PythonCheck
from patchkit.proof import evaluate_symbols, find_failures, find_useless
from patchkit.scene import Scene
from patchkit.state import object_path, read_object

Progress = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many are done."""


def no_progress(doing: str, done: int, total: int) -> None:
    """For callers that do not want to be told."""


def examine(
    decision: Decision,
    proved: Outcomes,
    ran: dict[PatchId, tuple[CheckOutcome, ...]],
    progress: Progress,
    *,
    strict: bool,
) -> None:
    """Run the python checks of what a decision changes, once it is in place; ``ran`` takes their outcomes.

    Of a patch that stays as it is these are the checks that the ledger does not have yet.
    ``proved`` are the outcomes of the symbol checks. Raises `CheckFailed` for each check that failed, and with
    ``strict`` `AllChecksSkipped` for each patch that nothing was checked of.
    """
    problems: list[PatchkitError] = []
    due = {id: list_due(decision, id) for id in decision.candidates}
    changed = [id for id in due if due[id] or action_for(decision, id) is not Action.NONE]
    for number, id in enumerate(changed):
        progress("checking", number, len(changed))
        record = replace(decision.candidates[id].record, checks=due[id])
        ran[id] = run_python_checks(decision.scene, record)
        problems += find_failures(record, ran[id])
        both = (*proved.get(id, ()), *ran[id])
        if strict and both and all(check.result is CheckResult.SKIPPED for check in both):
            words = f"{id}: every check was skipped: {both[0].message}"
            problems.append(AllChecksSkipped(words, hint="nothing was changed; leave out --strict to accept that"))
    raise_all(problems)


def list_due(decision: Decision, id: PatchId) -> tuple[PythonCheck, ...]:
    """The python checks of a patch that carrying out ``decision`` runs: all, or where it is applied those that are new.

    A check is new too where its script, its name or what it needs is another than the ledger has.
    """
    verdict = decision.verdicts.get(id)
    if verdict is None or not verdict.fits:
        return ()
    applied = decision.scene.ledger.patch(id)
    stays = applied is not None and action_for(decision, id) is Action.NONE
    known = applied.checks if applied is not None and stays else ()
    checks = decision.candidates[id].record.checks
    return tuple(check for check in checks if isinstance(check, PythonCheck) and check not in known)


def run_python_checks(scene: Scene, record: Applied) -> tuple[CheckOutcome, ...]:
    """The outcomes of the python checks of an applied patch, run from the object store: the very bytes on record."""
    return tuple(
        run_python_check(
            check,
            _find_script(scene, record, check),
            scene.environment,
            scene.root,
            lambda name: scene.version_of(name) is not None,
        )
        for check in record.checks
        if isinstance(check, PythonCheck)
    )


def _find_script(scene: Scene, record: Applied, check: PythonCheck) -> str:
    """The path of a check's script in the object store, its bytes compared with its name before they are run."""
    if read_object(scene.root, check.sha256) is None:
        raise DamagedState(
            f"{record.id}: the script {check.file} is not in the object store of {scene.root}",
            hint=f"with the patch folder at hand: `patchkit revert {record.id}`, then `patchkit apply {record.id}`",
        )
    return object_path(scene.root, check.sha256)


def prove(decision: Decision) -> tuple[dict[PatchId, tuple[CheckOutcome, ...]], list[PatchkitError]]:
    """The symbol checks of every patch that fits, on the fold with it and without it, and what is wrong with them."""
    outcomes: dict[PatchId, tuple[CheckOutcome, ...]] = {}
    problems: list[PatchkitError] = []
    if decision.stacked is None:
        return outcomes, problems
    result = decision.stacked.result
    for id, verdict in decision.verdicts.items():
        if verdict.fits:
            record = decision.candidates[id].record
            outcomes[id] = evaluate_symbols(record.checks, result.tree)
            problems += find_failures(record, outcomes[id]) + find_useless(record, result.below(id))
    return outcomes, problems


def list_waiting(decision: Decision, id: PatchId) -> tuple[CheckOutcome, ...]:
    """The python checks of a patch: they run where it is in place, so none of them does before it is applied."""
    due = list_due(decision, id)
    applied = action_for(decision, id) is Action.NONE and decision.verdicts[id].fits
    why = "`patchkit apply` runs it, for it is new or changed" if applied else "it runs once the patch is applied"
    return tuple(
        CheckOutcome("python", check.name, CheckResult.SKIPPED, why if check in due else "`patchkit verify` runs it")
        for check in decision.candidates[id].record.checks
        if isinstance(check, PythonCheck)
    )


def find_changed(decision: Decision) -> dict[str, bytes]:
    """The Python sources that a decision changes, as they will be."""
    if decision.stacked is None:
        return {}
    result = decision.stacked.result
    return {
        path: after.data
        for path in result.members
        if path.endswith(".py")
        and (after := result.tree[path]) is not None
        and (before := decision.facts[path].content) != after
        and (before is None or before.data != after.data)
    }


def compile_all(decision: Decision) -> list[PatchkitError]:
    """Patched sources that do not compile for the target interpreter, and did as they were shipped."""
    assert decision.stacked is not None
    result, base = decision.stacked.result, decision.stacked.base
    broken = find_uncompilable(find_changed(decision), base, decision.scene.environment)
    return [
        CheckFailed(
            f"{', '.join(map(str, result.members[path]))}: {path} would not compile: {words}",
            hint="nothing was changed; mend the diff",
        )
        for path, words in broken.items()
    ]


def find_uncompilable(sources: Mapping[str, bytes], base: Tree, environment: Environment) -> dict[str, str]:
    """Those of ``sources`` that do not compile for the target interpreter, and did in ``base``, with the reason."""
    broken = compile_sources(sources, environment)
    shipped = {path: content.data for path in broken if (content := base.get(path)) is not None}
    broken_before = compile_sources(shipped, environment)
    return {path: words for path, words in broken.items() if path not in broken_before}


def refuse_uncompilable(before: Tree, after: Tree, environment: Environment) -> list[PatchkitError]:
    """What keeps edited files from being a patch: Python sources that compiled before, and do not now."""
    sources = {
        path: content.data
        for path, content in after.items()
        if path.endswith(".py") and content is not None and content != before.get(path)
    }
    return [
        CheckFailed(f"{path} does not compile: {words}", hint="nothing was written; mend the file")
        for path, words in find_uncompilable(sources, before, environment).items()
    ]
