"""What a patch brought to a new version is merged from, and what it is merged into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchkit.archives import Release
from patchkit.bench import Bench
from patchkit.decision import Decision, decide
from patchkit.errors import IndexUnreachable, NoRelease, PatchkitError
from patchkit.fold import Tree
from patchkit.model import PatchState
from patchkit.patchset import Patch, PatchId, Variant
from patchkit.redraft import Redraft
from patchkit.tryout import decide_alone, stack_of
from patchkit.versions import variant_for
from patchkit.wanted import want_named


def find_base(bench: Bench, draft: Redraft, patch: Patch, rule: Variant | None) -> tuple[Release, Decision]:
    """The nearest release that the patch fits; with the very diff of ``rule`` where that is what no longer does."""
    others: list[Release] = []
    for release in bench.near():
        variant = variant_for(patch, release.version)
        if not isinstance(variant, Variant):
            continue
        if rule is None or bench.how.base or replace(variant, versions=rule.versions) == rule:
            decision = decide_on(bench, draft, patch, release)
            if decision is not None and decision.verdicts[patch.id].fits:
                return release, decision
        else:
            others.append(release)
    raise _explain_absence(bench, patch, rule, others)


def _explain_absence(bench: Bench, patch: Patch, rule: Variant | None, others: Sequence[Release]) -> NoRelease:
    """Why there is no release to merge from. ``others`` have another diff than the one that is in the way, ``rule``."""
    which = f"release {bench.how.base}" if bench.how.base else "release"
    words = f"{patch.id}: there is no {which} of {bench.target.distribution} with a wheel that its diff fits"
    hint = "a merge needs one: name a folder that has its wheel with --find-links DIR"
    near = list(bench.near())
    if bench.how.base and near and not any(isinstance(variant_for(patch, each.version), Variant) for each in near):
        words = f"{patch.id} has no diff that is meant for {bench.how.base}"
        hint = "name a release that a range of it holds with --from"
    elif rule is not None and others:
        words = f"{patch.id}: {rule.file}, which is for {rule.versions}, fits neither {bench.to} nor another release"
        taken = f"--from {others[0].version} takes the change from there, in place of {rule.file}"
        hint = f"{taken}; or mend that diff by hand"
    return NoRelease(words, hint=hint)


def decide_on(bench: Bench, draft: Redraft, patch: Patch, release: Release) -> Decision | None:
    """The decision on an old release; None where nothing can be said of it, for a wheel is damaged, say."""
    try:
        scene = bench.scene(release, draft, replace(patch, markers=(), constraints=(), shadowed_by=()))
        return decide_alone(scene, scene.catalog.patches[patch.id])
    except PatchkitError as error:
        if isinstance(error, IndexUnreachable):
            raise
        return None


def fold_below(bench: Bench, draft: Redraft, patch: Patch) -> tuple[Tree, list[PatchId]]:
    """The new version's files with the patches that ``patch`` comes after, and those of them that are not in there."""
    scene = bench.scene(bench.target, draft, patch)
    below = [id for id in stack_of(scene.catalog, patch) if id != patch.id]
    if not below:
        return {}, []
    decision = decide(scene, want_named(scene.catalog, scene.ledger, [*map(str, below)], "rebase"))
    fitting = {id for id, verdict in decision.verdicts.items() if verdict.fits}
    tree = decision.stacked.result.tree if decision.stacked is not None else {}
    unneeded = (PatchState.NOT_NEEDED, PatchState.UPSTREAMED)
    settled = {id for id, choice in decision.choices.items() if choice.state in unneeded}
    settled |= {id for id, verdict in decision.verdicts.items() if verdict.state in unneeded} | bench.upstream
    return tree, [id for id in below if id not in fitting | settled]
