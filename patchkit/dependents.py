"""Patches that lie on another one: those that no longer fit once it is taken out. Reads only."""

from __future__ import annotations

from patchkit.decision import decide
from patchkit.errors import PatchkitError
from patchkit.patchset import PatchId
from patchkit.scene import Scene
from patchkit.wanted import want_revert


def find_dependents(scene: Scene, id: PatchId) -> tuple[PatchId, ...]:
    """The applied patches that ``revert`` must take out together with ``id``, sorted; those on these are among them.

    Nothing where that cannot be told, because the ledger's texts or the distribution cannot be read.
    """
    leaving = {id}
    try:
        while stranded := _find_stranded(scene, leaving):
            leaving |= stranded
    except PatchkitError:
        return ()
    return tuple(sorted(leaving - {id}))


def _find_stranded(scene: Scene, leaving: set[PatchId]) -> set[PatchId]:
    shared = [file.patches for file in scene.ledger.files if leaving & set(file.patches)]
    if all(set(patches) <= leaving for patches in shared):
        return set()  # nothing else is in these files, and no diff need be parsed to know it
    decision = decide(scene, want_revert(scene.catalog, scene.ledger, sorted(map(str, leaving))))
    outcomes = decision.stacked.result.outcomes if decision.stacked is not None else {}
    return {id for id, outcome in outcomes.items() if not outcome.fits} - leaving
