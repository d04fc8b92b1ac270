"""What an edit in place stands on, and what in it is not its own: patches that are applied, or put there by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from patchkit.applied import Applied
from patchkit.bases import classify, is_as_written
from patchkit.candidates import parse, read_kept_diff
from patchkit.decision import decide
from patchkit.errors import Conflict, Drifted, OrderCycle, PatchkitError, UnknownPatch, VariantExists, raise_all
from patchkit.fold import Layer, Tree, fold, reverse
from patchkit.installed import Content, FileState
from patchkit.model import EntryKind, FileDiff, Notice
from patchkit.patchset import Catalog, Patch, PatchId, PatchSet
from patchkit.scene import Scene
from patchkit.survey import Ownership, gather_facts, is_record_kept
from patchkit.wanted import list_declared, order_fold, want_apply


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


def require_order(known: Mapping[PatchId, Patch | Applied], id: PatchId, below: Collection[PatchId]) -> None:
    """Raise `VariantExists` where a patch that is there already comes before one of ``below``, which its text lies on.

    ``known`` are the patches at hand and those that are applied.
    """
    if id not in known:
        return
    places = {each: (patch.place, patch.after) for each, patch in known.items()}
    order = order_fold(places)
    late = next((each for each in order[order.index(id) :] if each in below), None)
    if late is None:
        return
    words = f"the edit lies on top of {late}, and {id} comes before that one wherever both are applied"
    name = late.patch if late.set == id.set else late
    ways = "name another patch with --patch"
    with suppress(OrderCycle):
        order_fold({**places, id: (known[id].place, (*known[id].after, late))})
        ways += f'; or write `after = ["{name}"]` into the entry of {id}, and run this again'
    raise VariantExists(words, hint=ways)


def require_at_hand(patch_set: PatchSet | None, id: PatchId, below: Iterable[PatchId]) -> None:
    """Raise `UnknownPatch` where a new patch would come ``after`` one that its own set does not have any more."""
    there = {patch.id for patch in patch_set.patches} if patch_set is not None else set()
    gone = [each for each in below if each.set == id.set and each not in there]
    if gone and id not in there:
        words = f"the edit lies on top of {gone[0]}, which no patch set at hand has any more"
        ways = "put that back, or name the folder that has it with --patches DIR"
        raise UnknownPatch(words, hint=f"{ways}; with --set NAME the edit becomes a patch of another set")


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


# ---- patches at hand, put there by hand -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByHand:
    """The patches at hand that are not applied, as they meet an edit.

    ``whole`` are edited files that are just what such patches make of them; ``layers`` all texts of those that are
    wanted here.
    """

    whole: Mapping[str, tuple[PatchId, ...]] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()


def find_by_hand(scene: Scene, after: Tree) -> ByHand:
    """Which of the patches that a bare ``apply`` would take are in the edited files ``after`` already."""
    try:
        decision = decide(scene, want_apply(scene.catalog, scene.ledger))
    except PatchkitError:
        return ByHand()  # something is wrong with the patch sets at hand, and is told when they are applied
    pending = tuple(layer for layer in decision.layers if scene.ledger.patch(layer.id) is None)
    ids = {layer.id for layer in pending}
    adopted = {path: tuple(id for id in base.adopted if id in ids) for path, base in decision.bases.items()}
    return ByHand({path: found for path in after if (found := adopted.get(path))}, pending)


def refuse_by_hand(by_hand: ByHand, before: Tree, after: Tree) -> None:
    """Raise `Conflict` for each edited file that has what a patch at hand does among other edits.

    A patch of both would be in the way of that one.
    """
    problems: dict[str, Conflict] = {}
    for layer in by_hand.layers:
        for diff in layer.diffs:
            if all(path in after for path in diff.paths) and _comes_out(diff, after) and not _comes_out(diff, before):
                words = (
                    f"{diff.path} has what {layer.id} does among other edits, and a patch of both would be in its way"
                )
                ways = "and keeps the edited bytes, saying where: put these back, and run this again"
                problems.setdefault(
                    diff.path, Conflict(words, hint=f"`patchkit apply {layer.id} --discard-edits` applies it {ways}")
                )
    raise_all([*problems.values()])


def _comes_out(diff: FileDiff, tree: Tree) -> bool:
    return reverse({path: tree.get(path) for path in diff.paths}, Layer(PatchId("", ""), (diff,))) is not None


def mention_undeclared(catalog: Catalog, id: PatchId) -> tuple[Notice, ...]:
    """A warning where a patch that is applied by its capture is not declared, so that it does not stay everywhere."""
    try:
        declared = list_declared(catalog)
    except PatchkitError:
        return ()  # the declaration is wrong, and is told when patches are applied
    if id in declared:
        return ()
    words = f"{id} is not declared, by its manifest or a `deselect`: `patchkit apply --exact` would take the edit out"
    return (Notice("not-declared", words),)


def find_clashes(scene: Scene, files: Iterable[str]) -> tuple[Notice, ...]:
    """A warning for each patch on ``files`` that keeps a bare ``apply`` from going through."""
    try:
        decision = decide(scene, want_apply(scene.catalog, scene.ledger))
    except PatchkitError:
        return ()
    concerned = {layer.id for layer in decision.layers if not set(layer.paths).isdisjoint(files)}
    problems = [verdict.problem for id, verdict in decision.verdicts.items() if id in concerned]
    return tuple(
        Notice("clash", f"a bare `patchkit apply` will refuse: {problem.message}")
        for problem in problems
        if problem is not None
    )
