"""What keeps a merge from proving that a new version has a change, by the rule that `check` goes by; and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.bench import Bench
from patchkit.difference import changed_paths
from patchkit.examination import refuse_uncompilable
from patchkit.installed import Environment
from patchkit.model import CheckResult, FileDiff
from patchkit.patchset import Patch, SymbolCheck
from patchkit.proof import evaluate_symbols
from patchkit.rebased import RebasedPatch
from patchkit.symbols import module_paths
from patchkit.treemerge import TreeMerge
from patchkit.versions import contains


def find_doubt(bench: Bench, patch: Patch, diffs: Sequence[FileDiff], merged: TreeMerge) -> str:
    """What keeps a merge from proving that the new version has a change, as `check` sees it; "" where nothing does.

    Lines that are gone prove nothing: they may be elsewhere. Where all is there, the symbol checks must say so; what is
    left to the patch must compile, if the new version's files do.
    """
    deleting = {
        path for diff in diffs for path in diff.paths if not diff.hunks or not all(hunk.added for hunk in diff.hunks)
    }
    gone = [file for file in merged.files if file.gone and file.old in deleting]
    if gone:
        words = "it only deletes" if sum(file.gone for file in gone) == 1 else "hunks only delete"
        return f"{gone[0].old}: {words} what {bench.to} does not have there: perhaps upstream, which no absence proves"
    moved = [file for file in merged.files if file.elsewhere]
    if moved:
        line = moved[0].elsewhere[0].decode("utf-8", "replace")
        return f"{moved[0].path}: it takes away {line!r}, which {bench.to} does not have there, but at another place"
    if not merged.clean:
        return ""
    if changed_paths(merged.before, merged.after):
        broken = refuse_uncompilable(merged.before, merged.after, Environment(roots=()))
        return f"as it was merged, {broken[0].message}" if broken else ""
    checks = [
        check
        for check in patch.checks
        if isinstance(check, SymbolCheck) and (not check.versions or contains(check.versions, bench.to))
    ]
    target = bench.pristine(bench.target)
    target.supply([path for check in checks for path in module_paths(check.module)])
    tree = {path: target.read(path) for check in checks for path in module_paths(check.module)}
    failed = [each for each in evaluate_symbols(checks, tree) if each.result is CheckResult.FAILED]
    words = f"all changes are upstream, but the check {failed[0].name} fails there: " if failed else ""
    return words + failed[0].message if failed else ""


def explain_checks(row: RebasedPatch, to: str) -> list[str]:
    """The cure for a check that speaks of a module whose code is in another one by now."""
    if not (row.check_failed and row.moves):
        return []
    moves = ", ".join(f"{move.path} is {move.home} now" for move in row.moves)
    words = f"a check fails and may name the old module ({moves}): give it `versions` that end before"
    return [f"{words} {to}, and add one for the new module"]
