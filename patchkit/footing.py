"""What an edit in place stands on: the applied patches below it, as far as they are really there. Reads only."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.applied import Applied
from patchkit.bases import classify, is_as_written
from patchkit.candidates import parse, read_kept_diff
from patchkit.errors import Drifted, raise_all
from patchkit.fold import Layer, Tree, fold
from patchkit.installed import Content, FileState
from patchkit.model import EntryKind, FileDiff, Notice
from patchkit.patchset import PatchId
from patchkit.scene import Scene
from patchkit.survey import Ownership, gather_facts, is_record_kept


def find_undone(scene: Scene, own: Ownership) -> frozenset[str]:
    """The files of a distribution that patches were written to, and that are as its RECORD has them again.

    That is what an installation of the same version leaves. A file that a patch created, and that is gone, is one of
    them only where RECORD has lost its row too: otherwise somebody deleted it.
    """
    name = own.distribution.name
    paths = {file.path: name for file in scene.ledger.files if file.distribution == name}
    kept = is_record_kept(scene.ledger, own.distribution)
    return frozenset(
        path
        for path, facts in gather_facts(scene, paths, {name: own}, ()).items()
        if not is_as_written(facts) and classify(facts) is FileState.PRISTINE and not (kept and facts.content is None)
    )


def require_footing(scene: Scene, below: Sequence[Applied], undone: frozenset[str], before: Tree, after: Tree) -> None:
    """Raise `Drifted` for each patch of ``below`` that is not in its files any more, so that no edit is on top of it.

    Its other files are ``undone``; or in an edited file (``after``) the text that it looks for is back, which was not
    there in ``before``: a patch of such an edit would take it out.
    """
    found = {applied.id: _find_lack(scene, applied, undone, before, after) for applied in below}
    lack = "which counts as applied: was the distribution installed anew since?"
    again = "puts it back and keeps the edited bytes, saying where: make the edit anew, on top of it"
    raise_all(
        [
            Drifted(
                f"{path} is without what {id} does, {lack}",
                hint=f"`patchkit apply {id} --discard-edits` {again}; `patchkit drift` says more",
            )
            for id, path in found.items()
            if path
        ]
    )


def mention_undone(scene: Scene, undone: frozenset[str]) -> tuple[Notice, ...]:
    """A warning for each patch that is not in some file any more."""
    lacking = {applied.id: sorted(undone.intersection(applied.paths)) for applied in scene.ledger.applied}
    return tuple(
        Notice("drifted", f"{id} is not in {paths[0]} any more, which is as shipped: `patchkit drift` says why")
        for id, paths in lacking.items()
        if paths
    )


def _find_lack(scene: Scene, applied: Applied, undone: frozenset[str], before: Tree, after: Tree) -> str:
    """A file without what a patch does to it; "" where there is none."""
    lacking = [path for path in applied.paths if path in undone]
    if not lacking:
        diffs = parse(read_kept_diff(scene.root, applied), applied.text, f"{applied.id} (as applied)")
        lacking = [diff.path for diff in diffs if _is_taken_out(diff, before.get(diff.path), after.get(diff.path))]
    return lacking[0] if lacking else ""


def _is_taken_out(diff: FileDiff, before: Content | None, after: Content | None) -> bool:
    """Whether an entry could be made again in ``after``, and not in ``before``, which has it."""
    if diff.kind is not EntryKind.MODIFY or before is None or after is None:
        return False
    return _fits(diff, after) and not _fits(diff, before) and not _fits(diff.reversed(), after)


def _fits(diff: FileDiff, content: Content) -> bool:
    layer = Layer(PatchId("", ""), (diff,))
    return fold({diff.path: content}, [layer]).outcomes[layer.id].fits
