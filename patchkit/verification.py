"""Verifying what is applied, from the ledger alone: bytes, syntax, checks. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchkit.account import account_for
from patchkit.applied import Applied
from patchkit.assess import is_in_place
from patchkit.bases import Facts, classify, is_as_written
from patchkit.checks import compile_source
from patchkit.decision import decide
from patchkit.errors import ExitCode, PatchkitError
from patchkit.examination import run_python_checks
from patchkit.fold import Tree
from patchkit.installed import FileState
from patchkit.model import CheckOutcome, CheckResult, Notice, PatchState
from patchkit.patchset import PatchId, SymbolCheck
from patchkit.proof import evaluate_symbols
from patchkit.report import FileReport, PatchReport, Report
from patchkit.scene import Scene
from patchkit.site import find_distribution, observe
from patchkit.survey import gather_facts, read_ownership
from patchkit.symbols import module_paths
from patchkit.wanted import matches, want_apply, want_named, want_revert


def verify_applied(scene: Scene, operands: Sequence[str], *, checks: bool) -> Report:
    """The report of ``verify`` on the applied patches that ``operands`` name (all where there are none)."""
    want_revert(scene.catalog, scene.ledger, operands)  # raises for names that nothing knows
    chosen = [
        applied for applied in scene.ledger.applied if not operands or any(matches(x, applied.id) for x in operands)
    ]
    facts = _read_facts(scene, chosen)
    rows = tuple(_verify(scene, applied, facts, checks=checks) for applied in chosen)
    rows += _report_absent(scene, operands, {applied.id for applied in chosen})
    failed = not chosen or any(row.failed for row in rows)
    return Report(
        "verify",
        scene.root,
        scene.environment.python,
        rows,
        notices=(*scene.notices, *_mention_declared(scene, operands)),
        answer=ExitCode.NO if failed else ExitCode.DONE,
        summary="" if chosen else f"nothing is applied on {scene.root}",
    )


def _read_facts(scene: Scene, chosen: Sequence[Applied]) -> dict[str, Facts]:
    """The files as the ledger knows them; RECORD is asked only where one is not as written."""
    files = [file for file in scene.ledger.files if any(applied.id in file.patches for applied in chosen)]
    paths = {path: applied.distribution for applied in chosen for path in applied.paths}
    paths |= {file.path: file.distribution for file in files}
    entries = {file.path: file for file in files}
    observed = observe(scene.root, paths)
    facts = {path: Facts(path, name, "", observed[path], entry=entries.get(path)) for path, name in paths.items()}
    odd = {path: name for path, name in paths.items() if not is_as_written(facts[path])}
    return facts | _explain(scene, odd) if odd else facts


def _explain(scene: Scene, paths: Mapping[str, str]) -> dict[str, Facts]:
    ownership = {}
    for name in set(paths.values()):
        try:
            found = find_distribution(scene.listing, name, scene.environment)
        except PatchkitError:
            continue  # whatever became of the distribution, the files are not what was written
        if found is not None:
            ownership[name] = read_ownership(found, scene.ledger)
    return gather_facts(scene, paths, ownership, ())


def _verify(scene: Scene, applied: Applied, facts: Mapping[str, Facts], *, checks: bool) -> PatchReport:
    files = tuple(_report_file(facts[path]) for path in applied.paths)
    row = PatchReport(
        applied.id, applied.distribution, applied.version, applied.variant, PatchState.APPLIED, files=files
    )
    if not is_in_place(applied, facts):
        wrong = [f"{file.path} is {file.state.value}" for file in files if file.state not in (None, FileState.PATCHED)]
        words = ", ".join(wrong) or "its files hold other patches, and not this one"
        return replace(row, state=PatchState.DRIFTED, message=words, next=f"patchkit apply {applied.id}", failed=True)
    trouble = _compile(scene, applied, facts)
    if trouble:
        return replace(row, message=trouble, next=f"patchkit revert {applied.id}", failed=True)
    outcomes = _run_checks(scene, applied) if checks else ()
    bad = [check for check in outcomes if check.result is CheckResult.FAILED]
    message = f"{bad[0].kind} check {bad[0].name} failed: {bad[0].message}" if bad else ""
    return replace(row, checks=outcomes, message=message, failed=bool(bad))


def _report_file(facts: Facts) -> FileReport:
    return FileReport(facts.path, FileState.PATCHED if is_as_written(facts) else classify(facts))


def _compile(scene: Scene, applied: Applied, facts: Mapping[str, Facts]) -> str:
    for path in applied.paths:
        content = facts[path].content
        if path.endswith(".py") and content is not None:
            words = compile_source(content.data, path, scene.environment)
            if words:
                return f"{path} does not compile: {words}"
    return ""


def _run_checks(scene: Scene, applied: Applied) -> tuple[CheckOutcome, ...]:
    paths = [path for check in applied.checks if isinstance(check, SymbolCheck) for path in module_paths(check.module)]
    tree: Tree = {path: observed.content for path, observed in observe(scene.root, paths).items()}
    return (*evaluate_symbols(applied.checks, tree), *run_python_checks(scene, applied))


def _report_absent(scene: Scene, operands: Sequence[str], found: set[PatchId]) -> tuple[PatchReport, ...]:
    """Patches that were named and are not applied: the answer for them is no."""
    missing = [x for x in operands if not any(matches(x, id) for id in found)]
    if not missing:
        return ()
    decision = decide(scene, want_named(scene.catalog, scene.ledger, missing))
    rows = account_for(decision, {})
    return tuple(replace(row, failed=True, message=row.message or "it is not applied") for row in rows)


def _mention_declared(scene: Scene, operands: Sequence[str]) -> tuple[Notice, ...]:
    """Declared patches that the ledger does not hold. ``verify`` does not judge them: ``status --exit-code`` does."""
    if operands:
        return ()
    wanted = want_apply(scene.catalog, scene.ledger)  # a default whose alternative was named is not waited for
    waiting = sorted(id for id in wanted.reasons if scene.ledger.patch(id) is None)
    if not waiting:
        return ()
    names = ", ".join(map(str, waiting))
    return (Notice("not-applied", f"declared and not applied here: {names} (`patchkit status` says why)"),)
