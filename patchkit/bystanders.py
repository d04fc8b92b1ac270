"""Patches that a command with operands leaves as they are, on the files that it writes anew.

`apply X` and `revert X` never do more than X. Other patches on its files fold from the text that the ledger keeps: on
files that hold them now, and on those that are written anew because the same version was installed again or an edit is
discarded. Whatever an upgrade did to them stays as it is, for their text was not meant for that version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from patchkit.applied import Applied, Ledger, LedgerFile
from patchkit.bases import Facts, holds_ours
from patchkit.candidates import parse, read_kept_diff
from patchkit.errors import ForeignFile, PatchkitError
from patchkit.fold import Layer
from patchkit.installed import Distribution, sha256
from patchkit.model import FileDiff, ForeignPolicy
from patchkit.patchset import PatchId
from patchkit.scene import Scene
from patchkit.survey import gather_noted_facts
from patchkit.wanted import Wanted


def bystanders(ledger: Ledger, wanted: Wanted) -> tuple[Applied, ...]:
    """The applied patches that operands neither name nor drop."""
    named = wanted.named or frozenset()
    return tuple(applied for applied in ledger.applied if applied.id not in named and applied.id not in wanted.dropped)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Which files get their bystanders back: ``owners`` are the distributions installed now.

    ``applying``: patches come, so files with the shipped bytes are written; else only edits that are discarded are.
    """

    owners: Mapping[str, Distribution | None]
    applying: bool
    policy: ForeignPolicy

    def includes(self, facts: Facts, ledger: Ledger) -> bool:
        """Whether the patches that ``ledger`` has in this file go back into it, for the version they were made for."""
        entry = facts.entry
        if entry is None or facts.observed.obstacle:
            return False
        owner = self.owners.get(entry.distribution)
        recorded = {applied.version for applied in ledger.applied if applied.id in entry.patches}
        if owner is None or recorded != {owner.version}:
            return False
        shipped = _is_shipped(facts, entry, owner, ledger)
        match self.policy:
            case ForeignPolicy.DISCARD:
                return self.applying or not shipped
            case ForeignPolicy.REFUSE:
                return self.applying and shipped
            case ForeignPolicy.ACCEPT:
                return False


def _is_shipped(facts: Facts, entry: LedgerFile, owner: Distribution, ledger: Ledger) -> bool:
    """Whether an installer put the shipped file back. A missing file is that only if RECORD lost our row for it too."""
    if facts.content is None:
        noted = next((record for record in ledger.records if record.distribution == owner.name), None)
        return entry.base is None and noted is not None and sha256(owner.record.data) != noted.written.sha256
    return entry.base is not None and sha256(facts.content.data) == entry.base.sha256


def join_bystanders(
    scene: Scene, others: Iterable[Applied], paths: dict[str, str], renewal: Renewal
) -> tuple[dict[PatchId, Layer], tuple[PatchkitError, ...]]:
    """The layers of ``others`` on ``paths`` (path to distribution), which grows where a rename ties it to more.

    The second value holds a problem for each entry that is half there: a rename of which one side was edited.
    """
    whole = _find_whole(scene, renewal)
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


def _find_whole(scene: Scene, renewal: Renewal) -> dict[str, LedgerFile]:
    """The files that hold what was written last, or are to hold it again."""
    facts = gather_noted_facts(scene, {file.path: file.distribution for file in scene.ledger.files}, renewal.owners)
    return {
        fact.path: fact.entry
        for fact in facts.values()
        if fact.entry is not None and (holds_ours(fact) or renewal.includes(fact, scene.ledger))
    }


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
