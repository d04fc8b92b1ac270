"""Patches that a command with operands leaves as they are, on the files that it writes anew.

`apply X` and `revert X` never do more than X. Other patches on its files fold from the text that the ledger keeps, and
only on files that hold them now: what was reinstalled meanwhile stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from patchkit.applied import Applied, Ledger, LedgerFile
from patchkit.bases import Facts, is_as_written
from patchkit.candidates import parse, read_kept_diff
from patchkit.errors import ForeignFile, PatchkitError
from patchkit.fold import Layer
from patchkit.model import FileDiff
from patchkit.patchset import PatchId
from patchkit.scene import Scene
from patchkit.site import observe
from patchkit.wanted import Wanted


def bystanders(ledger: Ledger, wanted: Wanted) -> tuple[Applied, ...]:
    """The applied patches that operands neither name nor drop."""
    named = wanted.named or frozenset()
    return tuple(applied for applied in ledger.applied if applied.id not in named and applied.id not in wanted.dropped)


def join_bystanders(
    scene: Scene, others: Iterable[Applied], paths: dict[str, str]
) -> tuple[dict[PatchId, Layer], tuple[PatchkitError, ...]]:
    """The layers of ``others`` on ``paths`` (path to distribution), which grows where a rename ties it to more.

    The second value holds a problem for each entry that is half there: a rename of which one side was edited.
    """
    whole = _find_whole(scene)
    texts: dict[PatchId, Layer] = {}
    size = -1
    while size < len(paths):
        size = len(paths)
        for applied in others:
            present = {path for path in paths if path in whole and applied.id in whole[path].patches}
            if present and applied.id not in texts:
                diffs = parse(read_kept_diff(scene.root, applied), applied.text, str(applied.id))
                texts[applied.id] = Layer(applied.id, diffs)
            for diff in texts[applied.id].diffs if present else ():
                if present & set(diff.paths):
                    paths.update(dict.fromkeys(diff.paths, applied.distribution))
    layers = {
        id: Layer(id, tuple(d for d in layer.diffs if _holds(d, id, paths, whole))) for id, layer in texts.items()
    }
    return layers, tuple(_find_torn(texts.values(), paths, whole))


def _find_whole(scene: Scene) -> dict[str, LedgerFile]:
    """The files that hold what was written last."""
    files = scene.ledger.files
    observed = observe(scene.root, (file.path for file in files))
    facts = (Facts(file.path, file.distribution, "", observed[file.path], entry=file) for file in files)
    return {fact.path: fact.entry for fact in facts if fact.entry is not None and is_as_written(fact)}


def _holds(diff: FileDiff, id: PatchId, paths: Mapping[str, str], whole: Mapping[str, LedgerFile]) -> bool:
    return all(path in paths and path in whole and id in whole[path].patches for path in diff.paths)


def _find_torn(
    layers: Iterable[Layer], paths: Mapping[str, str], whole: Mapping[str, LedgerFile]
) -> Iterator[PatchkitError]:
    for layer in layers:
        for diff in layer.diffs:
            there = [path for path in diff.paths if path in whole and layer.id in whole[path].patches]
            if there and set(there) & paths.keys() and len(there) < len(diff.paths):
                lost = next(path for path in diff.paths if path not in there)
                yield ForeignFile(
                    f"{layer.id} stays applied, and {lost} is not what patchkit wrote: it was edited or taken away",
                    hint=f"put {lost} back as it was, or take {layer.id} out too",
                )
