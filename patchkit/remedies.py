"""Patches at hand, tried on what an audit found: what each would cover, and which graph breaks it would bring.

Nothing is applied: each patch is folded onto the installed files as `check` does, and the result is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchkit.audited import Cover
from patchkit.decision import decide
from patchkit.errors import PatchkitError
from patchkit.model import Notice
from patchkit.patchset import Patch, PatchId
from patchkit.programs import Program
from patchkit.scene import Scene
from patchkit.views import HazardKey, Root, Viewer, key_of
from patchkit.wanted import want_named


@dataclass(frozen=True, slots=True)
class Trial:
    """What would be left, by callable, with a patch applied: the open hazards and the graph breaks."""

    patch: Patch
    open: frozenset[HazardKey]
    breaks: dict[str, tuple[Cover, ...]]


def try_patches(
    scene: Scene, viewer: Viewer, program: Program, roots: Sequence[Root]
) -> tuple[list[Trial], list[Notice]]:
    """A trial of each patch at hand for the distributions that is not applied; those that do not fit are told."""
    found: list[Trial] = []
    notices: list[Notice] = []
    patches = list(_at_hand(scene, viewer.subjects))
    for index, patch in enumerate(patches):
        viewer.tick("trying patches", index, len(patches))
        try:
            overlay = _fold(scene, patch.id)
        except PatchkitError as error:
            notices.append(Notice("patch-not-tried", f"{patch.id} was not tried: {error.message}"))
            continue
        if overlay is not None:
            again = viewer.look_again(program.over(overlay), roots)
            open_ = frozenset(key_of(root.callable, met) for root in again for met in root.open)
            breaks = {root.callable: tuple(root.inner_breaks) for root in again}
            found.append(Trial(patch, open_, breaks))
    return found, notices


def _at_hand(scene: Scene, subjects: frozenset[str]) -> Iterator[Patch]:
    """The patches that are not applied."""
    for id, patch in scene.catalog.patches.items():
        if patch.distribution in subjects and scene.ledger.patch(id) is None:
            yield patch


def _fold(scene: Scene, id: PatchId) -> dict[str, bytes | None] | None:
    """The files as they would be with the patch, None where it does not fit or is not for what is installed."""
    decision = decide(scene, want_named(scene.catalog, scene.ledger, [str(id)], "check"))
    verdict = decision.verdicts.get(id)
    if verdict is None or not verdict.fits or decision.stacked is None:
        return None
    tree = decision.stacked.result.tree
    return {path: None if content is None else content.data for path, content in tree.items()}
