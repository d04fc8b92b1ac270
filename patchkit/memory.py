"""What is remembered of applied patches, and what became of the distributions that they patch. Reads only.

All of it comes from the ledger and the object store; what is lost there is left out, not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from patchkit.applied import Applied
from patchkit.bases import Facts
from patchkit.candidates import name_diff, parse, read_kept_diff
from patchkit.causes import describe_file
from patchkit.drift import DriftedFile
from patchkit.errors import AmbiguousDistribution, PatchkitError
from patchkit.fold import Layer
from patchkit.installed import Content, Distribution, sha256
from patchkit.moves import changed_symbols, find_moved
from patchkit.patchset import PatchId
from patchkit.remnants import fold_again, trace_hunks
from patchkit.scene import Scene
from patchkit.site import find_distribution, observe
from patchkit.state import read_object
from patchkit.survey import read_ownership


@dataclass(frozen=True, slots=True)
class Owner:
    """The distribution that was patched, as it is now; ``trouble`` says why there is none to speak of.

    ``ambiguous``: more than one is there, so no RECORD tells what its files should be.
    """

    scene: Scene
    distribution: Distribution | None
    trouble: str = ""
    ambiguous: bool = False

    @classmethod
    def find(cls, scene: Scene, name: str) -> Owner:
        try:
            return cls(scene, find_distribution(scene.listing, name, scene.environment))
        except AmbiguousDistribution as error:
            return cls(scene, None, f"{error.message}; {error.hint}", ambiguous=True)
        except PatchkitError as error:
            return cls(scene, None, error.message)

    @property
    def version(self) -> str | None:
        return None if self.distribution is None else self.distribution.version

    @property
    def record_kept(self) -> bool:
        own = self.distribution
        noted = {record.distribution: record.written.sha256 for record in self.scene.ledger.records}
        return own is not None and noted.get(own.name) == sha256(own.record.data)

    def sources(self) -> dict[str, bytes]:
        """The Python files that its RECORD lists, by path."""
        if self.distribution is None:
            return {}
        rows = read_ownership(self.distribution, self.scene.ledger).rows
        observed = observe(self.scene.root, (path for path in rows if path.endswith(".py")))
        return {path: found.content.data for path, found in observed.items() if found.content is not None}


class Memory:
    """What the object store still knows of the files that drifted; read once, and only what is asked for."""

    def __init__(self, scene: Scene, facts: Mapping[str, Facts]) -> None:
        self.scene = scene
        self.facts = facts
        self.entries = {file.path: file for file in scene.ledger.files}

    def describe(self, applied: Applied, path: str) -> DriftedFile:
        facts, layer = self.facts[path], self.layer(applied)
        content = None if facts.content is None else facts.content.data
        hunks = () if layer is None else trace_hunks(layer, path, content, self.expected.get(path))
        return describe_file(facts, hunks, self.expected.get(path))

    def restorable(self, path: str) -> bool:
        """Whether the shipped bytes are at hand, so that foreign ones can be replaced."""
        entry, facts = self.entries.get(path), self.facts[path]
        return (
            entry is not None and not facts.observed.obstacle and (entry.base is None or self.saved(path) is not None)
        )

    def find_moves(self, applied: Applied, sources: Mapping[str, bytes]) -> dict[str, tuple[str, ...]]:
        """The definitions that ``applied`` changes and that lie in other files of ``sources`` now."""
        layer = self.layer(applied)
        moved: dict[str, tuple[str, ...]] = {}
        for diff in layer.diffs if layer is not None else ():
            base = self.saved(diff.old) if diff.old is not None else None
            if base is not None and diff.old is not None:
                moved |= find_moved(changed_symbols(base.data, diff), diff.old, sources)
        return moved

    def layer(self, applied: Applied) -> Layer | None:
        if applied.id not in self._layers:
            self._layers[applied.id] = _parse_kept(self.scene, applied)
        return self._layers[applied.id]

    def saved(self, path: str) -> Content | None:
        entry = self.entries.get(path)
        if entry is None or entry.base is None:
            return None
        data = _read_object_if_sound(self.scene.root, entry.base.sha256)
        return None if data is None else Content(data, entry.base.mode)

    @cached_property
    def _layers(self) -> dict[PatchId, Layer | None]:
        return {}

    @cached_property
    def expected(self) -> dict[str, bytes]:
        """The texts that were written, by path, as far as the object store proves them."""
        layers = [layer for applied in self.scene.ledger.applied if (layer := self.layer(applied)) is not None]
        saved = {path: self.saved(path) for path in self.entries}
        return fold_again(tuple(self.entries.values()), layers, saved)


def _parse_kept(scene: Scene, applied: Applied) -> Layer | None:
    try:
        diffs = parse(read_kept_diff(scene.root, applied), applied.text, name_diff(scene, applied))
    except PatchkitError:
        return None  # the object is gone or damaged: the row is told without its hunks
    return Layer(applied.id, diffs)


def _read_object_if_sound(root: str, name: str) -> bytes | None:
    try:
        return read_object(root, name)
    except PatchkitError:
        return None
