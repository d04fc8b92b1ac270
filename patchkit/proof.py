"""Symbol checks on trees of files: what they say with a patch, and that they fail without it."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.applied import Applied
from patchkit.errors import CheckFailed, PatchkitError, UselessCheck
from patchkit.fold import Tree
from patchkit.model import CheckOutcome, CheckResult
from patchkit.patchset import Check, SymbolCheck
from patchkit.symbols import evaluate, module_paths


def evaluate_symbol(check: SymbolCheck, tree: Tree) -> CheckOutcome:
    """What ``check`` says of the files in ``tree``; a module that is not there is a failure."""
    for path in module_paths(check.module):
        content = tree.get(path)
        if content is not None:
            verdict = evaluate(check, content.data, path=path)
            result = CheckResult.PASSED if verdict.passed else CheckResult.FAILED
            return CheckOutcome("symbol", check.name, result, verdict.message)
    paths = " or ".join(module_paths(check.module))
    return CheckOutcome("symbol", check.name, CheckResult.FAILED, f"there is no {paths}")


def evaluate_symbols(checks: Sequence[Check], tree: Tree) -> tuple[CheckOutcome, ...]:
    """The outcomes of those of ``checks`` that are static."""
    return tuple(evaluate_symbol(check, tree) for check in checks if isinstance(check, SymbolCheck))


def find_failures(record: Applied, outcomes: Sequence[CheckOutcome]) -> list[PatchkitError]:
    """An error for each check of a patch that failed."""
    return [
        CheckFailed(
            f"{record.id}: {outcome.kind} check {outcome.name} failed: {outcome.message}",
            hint="nothing was changed; with --no-checks, `patchkit apply` and `patchkit post-install` run no checks",
        )
        for outcome in outcomes
        if outcome.result is CheckResult.FAILED
    ]


def find_useless(record: Applied, below: Tree) -> list[PatchkitError]:
    """An error for each symbol check that passes without the patch: it cannot fail, so it proves nothing."""
    return [
        UselessCheck(
            f"{record.id}: symbol check {check.name} passes without the patch too, so it proves nothing",
            hint="let it name what only the patched source has",
        )
        for check in record.checks
        if isinstance(check, SymbolCheck) and evaluate_symbol(check, below).result is CheckResult.PASSED
    ]
