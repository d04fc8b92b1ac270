"""What a draft stands on: the applied patches without which it would not fit."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.decision import Decision
from patchkit.fold import Layer, fold
from patchkit.patchset import PatchId


def find_foundation(decision: Decision, id: PatchId) -> tuple[PatchId, ...]:
    """The fewest of the other patches that ``id`` has to lie on in order to fit, in the order of the fold.

    () where it fits the shipped files, and where it does not fit on top of all of them either.
    """
    own = next((layer for layer in decision.layers if layer.id == id), None)
    if own is None or decision.stacked is None or decision.stacked.blocked.keys() & set(own.paths):
        return ()
    base = decision.stacked.base

    def fits(below: Sequence[Layer]) -> bool:
        return all(outcome.fits for outcome in fold(base, [*below, own]).outcomes.values())

    needed = [layer for layer in decision.layers if layer is not own]
    if fits([]) or not fits(needed):
        return ()
    for layer in reversed(needed):
        fewer = [each for each in needed if each is not layer]
        needed = fewer if fits(fewer) else needed
    return tuple(layer.id for layer in needed)
