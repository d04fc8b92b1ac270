"""Verifying what is applied, from the ledger alone: bytes, syntax, checks. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from patchkit.account import account_for
from patchkit.applied import Applied
from patchkit.assess import is_in_place
from patchkit.bases import Facts, classify, holds_ours, is_as_written
from patchkit.checks import compile_sources
from patchkit.decision import decide
from patchkit.errors import ExitCode, PatchkitError
from patchkit.examination import Progress, run_python_checks
from patchkit.fold import Tree
from patchkit.installed import Distribution, FileState
from patchkit.model import CheckOutcome, CheckResult, Notice, PatchState
from patchkit.patchset import PatchId, SymbolCheck
from patchkit.proof import evaluate_symbols
from patchkit.report import FileReport, PatchReport, Report
from patchkit.scene import Scene
from patchkit.site import find_distribution, observe
from patchkit.state import read_object
from patchkit.survey import gather_noted_facts
from patchkit.symbols import module_paths
from patchkit.wanted import check_known, matches, want_apply, want_named


def verify_applied(scene: Scene, operands: Sequence[str], progress: Progress, *, checks: bool) -> Report:
    """The report of ``verify`` on the applied patches that ``operands`` name (all where there are none)."""
    check_known(scene.catalog, scene.ledger, operands, "verify")
    chosen = [
        applied for applied in scene.ledger.applied if not operands or any(matches(x, applied.id) for x in operands)
    ]
    facts = read_applied_facts(scene, chosen)
    broken = _compile(scene, facts)
    verified: list[PatchReport] = []
    for number, applied in enumerate(chosen):
        progress("verifying", number, len(chosen))
        verified.append(_verify(scene, applied, facts, broken, checks=checks))
    rows = tuple(verified)
    rows += _report_absent(scene, operands, {applied.id for applied in chosen})
    unknown = [x for x in operands if not any(matches(x, row.id) for row in rows)]
    failed = not rows or unknown or any(row.failed for row in rows)
    nothing = (
        f"{', '.join(unknown)} is not applied on {scene.root}" if unknown else f"nothing is applied on {scene.root}"
    )
    return Report(
        "verify",
        scene.root,
        scene.environment.python,
        rows,
        notices=(*scene.notices, *_mention_declared(scene, operands)),
        answer=ExitCode.NO if failed else ExitCode.DONE,
        operands=tuple(operands),
        summary=nothing if unknown or not chosen else "",
    )


def read_applied_facts(scene: Scene, chosen: Sequence[Applied]) -> dict[str, Facts]:
    """The files as the ledger knows them; RECORD is asked only where it changed, or a file is not as written."""
    files = [file for file in scene.ledger.files if any(applied.id in file.patches for applied in chosen)]
    paths = {path: applied.distribution for applied in chosen for path in applied.paths}
    paths |= {file.path: file.distribution for file in files}
    return gather_noted_facts(scene, paths, find_owners(scene, set(paths.values())))


def find_owners(scene: Scene, names: Iterable[str]) -> dict[str, Distribution | None]:
    """The distributions of ``names``, None for one that is not installed; those that are in doubt are left out."""
    found: dict[str, Distribution | None] = {}
    for name in names:
        with suppress(PatchkitError):
            found[name] = find_distribution(scene.listing, name, scene.environment)
    return found


def find_owner(scene: Scene, name: str) -> Distribution | None:
    """The distribution called ``name``; None also where it is in doubt, or not what can be patched."""
    try:
        return find_distribution(scene.listing, name, scene.environment)
    except PatchkitError:
        return None  # whatever became of the distribution, the files are not what was written


def _verify(
    scene: Scene, applied: Applied, facts: Mapping[str, Facts], broken: Mapping[str, str], *, checks: bool
) -> PatchReport:
    files = tuple(_report_file(facts[path]) for path in applied.paths)
    row = PatchReport(
        applied.id, applied.distribution, applied.version, applied.variant, PatchState.APPLIED, files=files
    )
    if not is_in_place(applied, facts) or _is_gone(scene, applied.distribution):
        return _report_drift(scene, applied, row, facts)
    trouble = next((path for path in applied.paths if path in broken), None)
    if trouble is not None:
        words = f"{trouble} does not compile: {broken[trouble]}"
        return replace(row, message=words, next=f"patchkit revert {applied.id}", failed=True)
    outcomes = _run_checks(scene, applied) if checks else ()
    bad = [check for check in outcomes if check.result is CheckResult.FAILED]
    message = f"{bad[0].kind} check {bad[0].name} failed: {bad[0].message}" if bad else ""
    return replace(row, checks=outcomes, message=message, failed=bool(bad))


def _is_gone(scene: Scene, name: str) -> bool:
    """Whether a distribution is not installed, and not merely in doubt."""
    return name not in scene.listing.folders and find_owners(scene, [name]) == {name: None}


def _report_drift(scene: Scene, applied: Applied, row: PatchReport, facts: Mapping[str, Facts]) -> PatchReport:
    """The bytes are not there: what became of the distribution, or of each file, and what brings them back."""
    owner = find_owner(scene, applied.distribution)
    if owner is None:
        words = f"{applied.distribution} is not installed now; it was patched as {applied.version}"
        again = f"patchkit revert {applied.id}"
        return replace(row, installed=None, state=PatchState.DRIFTED, message=words, next=again, failed=True)
    wrong = [f"{file.path} is {file.state.value}" for file in row.files if file.state not in (None, FileState.PATCHED)]
    words = ", ".join(wrong) or _tell_odd(applied, facts)
    foreign = any(file.state in (FileState.FOREIGN, FileState.MISSING) for file in row.files)
    again = f"patchkit check {applied.id}" if foreign else f"patchkit apply {applied.id}"
    if owner.version != applied.version:
        words = f"{owner.name} {owner.version} is installed now; it was patched as {applied.version}"
        again = "patchkit drift"  # it tries the patch on that version, which the ledger alone cannot
    return replace(row, installed=owner.version, state=PatchState.DRIFTED, message=words, next=again, failed=True)


def _tell_odd(applied: Applied, facts: Mapping[str, Facts]) -> str:
    """Every file has the bytes that were written, and yet the patch is not in place."""
    modes = [path for path in applied.paths if not is_as_written(facts[path])]
    return f"{modes[0]} has another executable bit" if modes else "its files hold other patches, and not this one"


def _report_file(facts: Facts) -> FileReport:
    if holds_ours(facts):
        return FileReport(facts.path, FileState.PATCHED)
    gone = facts.content is None and facts.entry is not None and facts.entry.written is not None
    return FileReport(facts.path, FileState.MISSING if gone else classify(facts))


def _compile(scene: Scene, facts: Mapping[str, Facts]) -> dict[str, str]:
    """The patched sources that do not compile, and did as they were shipped, with the reason."""
    sources = {
        path: fact.content.data
        for path, fact in facts.items()
        if path.endswith(".py") and fact.content is not None and holds_ours(fact)
    }
    broken = compile_sources(sources, scene.environment)
    bases = {path: entry.base for path in broken if (entry := facts[path].entry) is not None}
    shipped = {
        path: data
        for path, base in bases.items()
        if base is not None and (data := read_object(scene.root, base.sha256)) is not None
    }
    broken_before = compile_sources(shipped, scene.environment)
    return {path: words for path, words in broken.items() if path not in broken_before}


def _run_checks(scene: Scene, applied: Applied) -> tuple[CheckOutcome, ...]:
    paths = [path for check in applied.checks if isinstance(check, SymbolCheck) for path in module_paths(check.module)]
    tree: Tree = {path: observed.content for path, observed in observe(scene.root, paths).items()}
    return (*evaluate_symbols(applied.checks, tree), *run_python_checks(scene, applied))


def _report_absent(scene: Scene, operands: Sequence[str], found: set[PatchId]) -> tuple[PatchReport, ...]:
    """Patches that were named and are not applied: the answer for them is no."""
    missing = [x for x in operands if not any(matches(x, id) for id in found)]
    if not missing or not scene.catalog.sets:
        return ()
    decision = decide(scene, want_named(scene.catalog, scene.ledger, missing, "verify"))
    rows = account_for(decision, {})
    return tuple(replace(row, failed=True, message=row.message or "it is not applied") for row in rows)


def _mention_declared(scene: Scene, operands: Sequence[str]) -> tuple[Notice, ...]:
    """Declared patches that the ledger does not hold. ``verify`` does not judge them: ``status --exit-code`` does."""
    if operands:
        return ()
    try:
        wanted = want_apply(scene.catalog, scene.ledger)  # a default whose alternative was named is not waited for
    except PatchkitError as error:
        return tuple(Notice(single.code, single.message) for single in error.all())
    waiting = sorted(id for id in wanted.reasons if scene.ledger.patch(id) is None)
    if not waiting:
        return ()
    names = ", ".join(map(str, waiting))
    return (Notice("not-applied", f"declared and not applied here: {names} (`patchkit status` says why)"),)
