"""Variants out of range: a patch without one for the installed version is tried all the same, to say what would fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchkit.bases import Facts, find_bases
from patchkit.bounds import check_targets
from patchkit.candidates import ParsedTrial, parse_trials
from patchkit.choices import Choice
from patchkit.fold import FileOutcome, Tree, compare_upstream, fold, is_upstream
from patchkit.model import ForeignPolicy, PatchState
from patchkit.patchset import PatchId, Variant
from patchkit.scene import Scene
from patchkit.survey import Ownership, bounds_of, gather_facts
from patchkit.wanted import order_fold


@dataclass(frozen=True, slots=True)
class Trial:
    """A variant whose range does not hold the installed version: would it fit, or is its text there already?

    ``files`` say how its entries fared.
    """

    variant: Variant
    fits: bool
    upstream: bool
    files: tuple[FileOutcome, ...] = ()


def try_all(
    scene: Scene, choices: Mapping[PatchId, Choice], ownership: Mapping[str, Ownership], folded: Tree
) -> dict[PatchId, tuple[Trial, ...]]:
    """Each variant of a patch without one for the installed version, on the shipped files and on what fits there.

    ``folded`` are the files with the wanted patches that have a variant. A patch that is made for the text of another
    is tried on top of that one too.
    """
    tried = {id: parse_trials(scene, choice) for id, choice in choices.items() if choice.state is PatchState.NO_VARIANT}
    paths = {
        path: choices[id].distribution
        for id, several in tried.items()
        for trial in several
        if trial.layer is not None
        for path in trial.layer.paths
    }
    facts = gather_facts(scene, paths, ownership, ())
    bases = find_bases(facts, (), ForeignPolicy.REFUSE)
    base = {path: entry.content for path, entry in bases.items()}
    below: Tree = {**base, **{path: content for path, content in folded.items() if path in base}}
    found: dict[PatchId, tuple[Trial, ...]] = {}
    patches = {id: patch for id in tried if (patch := choices[id].patch or choices[id].applied) is not None}
    for id in order_fold({id: (patch.place, patch.after) for id, patch in patches.items()}):
        own = ownership.get(choices[id].distribution)
        found[id] = tuple(
            _try(trial, base, below) if own is not None and _may_touch(trial, own, facts) else _refused(trial)
            for trial in tried[id]
        )
        fitting = next((parsed.layer for parsed, trial in zip(tried[id], found[id], strict=True) if trial.fits), None)
        below = fold(below, [fitting]).tree if fitting is not None else below
    return {id: found.get(id, ()) for id in tried}


def _may_touch(trial: ParsedTrial, own: Ownership, facts: Mapping[str, Facts]) -> bool:
    """Whether the distribution owns the files that a variant names, so that it would not be refused."""
    if trial.layer is None:
        return False
    created = {path for diff in trial.layer.diffs for path in diff.paths if path == diff.new}
    bounds = bounds_of(own, created, facts)
    return not check_targets(trial.layer.diffs, bounds, file=trial.variant.file)


def _refused(trial: ParsedTrial) -> Trial:
    return Trial(trial.variant, fits=False, upstream=False)


def _try(trial: ParsedTrial, base: Tree, below: Tree) -> Trial:
    if trial.layer is None:
        return _refused(trial)
    id = trial.layer.id
    alone, stacked = (fold(tree, [trial.layer]).outcomes[id] for tree in (base, below))
    fits = alone.fits or stacked.fits
    upstream = not fits and is_upstream(compare_upstream(base, trial.layer))
    return Trial(trial.variant, fits, upstream, stacked.files)
