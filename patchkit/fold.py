"""The fold: pristine files and patches in order give the desired files.

    desired = fold(pristine, wanted patches in order)

Everything here is pure: a tree is a mapping from path to content, None where there is no file. A patch that does not
fit leaves the tree as it found it, and the fold goes on, so that all conflicts come in one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, unique

from patchkit.hunks import Shift, apply_hunks, find_upstream
from patchkit.installed import Content
from patchkit.model import EntryKind, FileDiff, HunkOutcome, HunkResult
from patchkit.patchset import PatchId

Tree = Mapping[str, Content | None]

# What git checks out: the bits of a created file do not depend on anyone's umask, so builds are repeatable.
PLAIN = 0o644
EXECUTABLE = 0o755


@dataclass(frozen=True, slots=True)
class Layer:
    """One patch as the fold takes it: its entries, in the order of its diff."""

    id: PatchId
    diffs: tuple[FileDiff, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for diff in self.diffs for path in diff.paths))


@unique
class Misfit(Enum):
    """What keeps a whole entry out."""

    ABSENT = "absent"  # the file to be changed does not exist
    GONE = "gone"  # nor does the one to be deleted, or the one to be renamed is under its new name already
    IN_THE_WAY = "in the way"  # the file to be created exists
    LEFT_OVER = "left over"  # the file to be deleted has more lines than the diff removes
    BLOCKED = "blocked"  # it may not be touched
    UNPROVED = "unproved"  # nothing shows that upstream has it


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """How one entry fared: its hunks, and what kept the whole entry out, with the words for it.

    ``dropped_cr``: it fits only without the CRs that the patch file has at its line ends.
    """

    path: str
    hunks: tuple[HunkOutcome, ...] = ()
    misfit: Misfit | None = None
    problem: str = ""
    dropped_cr: bool = False

    @property
    def fits(self) -> bool:
        return self.misfit is None and all(hunk.result is HunkResult.FITS for hunk in self.hunks)


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """How one patch fared. ``before`` is what its files were just below it."""

    id: PatchId
    files: tuple[FileOutcome, ...]
    before: Tree

    @property
    def fits(self) -> bool:
        return all(file.fits for file in self.files)


@dataclass(frozen=True, slots=True)
class Fold:
    """The desired files, how each patch fared, and which patches are in each file."""

    tree: Tree
    outcomes: Mapping[PatchId, LayerOutcome]
    members: Mapping[str, tuple[PatchId, ...]]

    def below(self, id: PatchId) -> Tree:
        """The tree just below the patch ``id``: without it and without what lies on it."""
        tree = dict(self.tree)
        for other in reversed(list(self.outcomes.values())):
            if other.fits:
                tree.update(other.before)
            if other.id == id:
                break
        return tree


def fold(base: Tree, layers: Iterable[Layer]) -> Fold:
    """Fold ``layers`` onto ``base`` in their order; ``base`` must hold every path that they name."""
    tree = dict(base)
    shifts: dict[str, Shift] = {}
    outcomes: dict[PatchId, LayerOutcome] = {}
    members: dict[str, tuple[PatchId, ...]] = {}
    for layer in layers:
        step = _Step(tree, shifts)
        files = tuple(step.take(diff) for diff in layer.diffs)
        if any(file.dropped_cr for file in files):
            step = _Step(tree, shifts)
            files = tuple(step.take(_without_cr(diff)) for diff in layer.diffs)
        outcome = LayerOutcome(layer.id, files, {path: tree.get(path) for path in layer.paths})
        outcomes[layer.id] = outcome
        if outcome.fits:
            tree.update(step.tree)
            shifts.update(step.shifts)
            members.update({path: (*members.get(path, ()), layer.id) for path in layer.paths})
    return Fold(tree, outcomes, members)


def _without_cr(diff: FileDiff) -> FileDiff:
    """A created file has nothing to compare its CRs with: it follows the entries of its patch that have."""
    created = diff.kind is EntryKind.CREATE and diff.without_cr is not None
    return replace(diff, hunks=diff.without_cr or (), without_cr=None) if created else diff


@dataclass(slots=True)
class _Step:
    """One patch on its way into the tree: what it would write, kept apart until all of it fits."""

    below: Tree
    lower: Mapping[str, Shift]
    tree: dict[str, Content | None] = field(default_factory=dict)
    shifts: dict[str, Shift] = field(default_factory=dict)

    def take(self, diff: FileDiff) -> FileOutcome:
        match diff.kind:
            case EntryKind.CREATE:
                return self._create(diff, str(diff.new))
            case EntryKind.DELETE:
                return self._delete(diff, str(diff.old))
            case EntryKind.MODIFY | EntryKind.RENAME:
                return self._change(diff, str(diff.old), str(diff.new))

    def _create(self, diff: FileDiff, path: str) -> FileOutcome:
        placed = apply_hunks(b"", diff)
        there = self.below.get(path)
        if there is not None:
            which = "this very" if there.data == placed.data else "other"
            words = f"it is to be created, and exists already with {which} content"
            return FileOutcome(path, misfit=Misfit.IN_THE_WAY, problem=words)
        if placed.data is None:
            return FileOutcome(path, placed.outcomes)
        self.tree[path] = Content(placed.data, EXECUTABLE if diff.executable else PLAIN)
        return FileOutcome(path, placed.outcomes)

    def _delete(self, diff: FileDiff, path: str) -> FileOutcome:
        content = self.below.get(path)
        if content is None:
            words = "it is to be deleted, and does not exist (perhaps upstream deleted it)"
            return FileOutcome(path, misfit=Misfit.GONE, problem=words)
        placed = apply_hunks(content.data, diff, self.lower.get(path, Shift()))
        if placed.data is None:
            return FileOutcome(path, placed.outcomes)
        if placed.data:
            words = "it is to be deleted, and has lines that the diff does not remove"
            return FileOutcome(path, placed.outcomes, Misfit.LEFT_OVER, words)
        self.tree[path] = None
        return FileOutcome(path, placed.outcomes, dropped_cr=placed.dropped_cr)

    def _change(self, diff: FileDiff, old: str, new: str) -> FileOutcome:
        content = self.below.get(old)
        if content is None and new != old and self.below.get(new) is not None:
            words = f"{old} is to be renamed to it, and it is there already (perhaps upstream renamed it)"
            return FileOutcome(new, misfit=Misfit.GONE, problem=words)
        if content is None:
            words = "it does not exist" if new == old else f"{old} does not exist"
            return FileOutcome(new, misfit=Misfit.ABSENT, problem=words)
        if new != old and self.below.get(new) is not None:
            words = f"{old} is to be renamed to it, and it exists already"
            return FileOutcome(new, misfit=Misfit.IN_THE_WAY, problem=words)
        shift = self.lower.get(old, Shift())
        placed = apply_hunks(content.data, diff, shift)
        if placed.data is None:
            return FileOutcome(new, placed.outcomes)
        if new != old:
            self.tree[old] = None
        self.tree[new] = Content(placed.data, set_executable(content.mode, diff.executable))
        self.shifts[new] = shift.above(placed.layer)
        return FileOutcome(new, placed.outcomes, dropped_cr=placed.dropped_cr)


def set_executable(mode: int, executable: bool | None) -> int:
    """``mode`` with the executable bit that a diff states: given to all who may read, as a checkout does."""
    if executable is None:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def reverse(tree: Tree, layer: Layer) -> Tree | None:
    """``tree`` with ``layer`` taken out, or None where it does not come out whole."""
    reversed_layer = Layer(layer.id, tuple(diff.reversed() for diff in reversed(layer.diffs)))
    result = fold(tree, [reversed_layer])
    return result.tree if result.outcomes[layer.id].fits else None


def tied_paths(paths: Iterable[str], layers: Iterable[Layer]) -> list[tuple[str, ...]]:
    """``paths`` in groups: those together that a rename ties to each other."""
    leader = {path: path for path in paths}

    def find(path: str) -> str:
        while leader[path] != path:
            path = leader[path]
        return path

    for layer in layers:
        for diff in layer.diffs:
            if all(path in leader for path in diff.paths):
                first, *rest = (find(path) for path in diff.paths)
                leader.update(dict.fromkeys(rest, first))
    groups: dict[str, list[str]] = {}
    for path in leader:
        groups.setdefault(find(path), []).append(path)
    return [tuple(group) for group in groups.values()]


def compare_upstream(base: Tree, layer: Layer) -> tuple[FileOutcome, ...]:
    """For each entry: which of its hunks are in the pristine file already.

    A hunk counts when it adds a line and its whole new side is there at exactly one place; a created file when
    the very content is there. Deletions, renames and changes of mode prove nothing; an executable bit counts as well.
    """
    return tuple(_compare_entry(base, diff) for diff in layer.diffs)


def _compare_entry(base: Tree, diff: FileDiff) -> FileOutcome:
    path = diff.path
    content = base.get(path)
    if diff.kind is EntryKind.CREATE and content is not None:
        placed = apply_hunks(b"", diff)
        if placed.data != content.data:
            return FileOutcome(path, placed.outcomes, Misfit.IN_THE_WAY, "it exists with other content")
        lost = bool(diff.executable) and not content.executable
        return _with_mode(FileOutcome(path, tuple(_as_upstream(hunk) for hunk in placed.outcomes)), lost)
    if diff.kind is EntryKind.MODIFY and content is not None and diff.hunks:
        lost = diff.executable not in (None, content.executable)
        return _with_mode(FileOutcome(path, find_upstream(content.data, diff)), lost)
    if diff.kind is EntryKind.DELETE and content is None:
        words = "it is gone: perhaps upstream deleted it, but an absent file proves nothing"
        return FileOutcome(path, misfit=Misfit.GONE, problem=words)
    return FileOutcome(path, misfit=Misfit.UNPROVED, problem="nothing in it can prove that upstream has it")


def _with_mode(outcome: FileOutcome, lost: bool) -> FileOutcome:
    """A text that is all there is not the whole change where the shipped file has another executable bit."""
    if not lost or any(hunk.result is not HunkResult.UPSTREAM for hunk in outcome.hunks):
        return outcome
    words = "it is shipped with this text, and not with the executable bit that the diff gives it"
    return replace(outcome, misfit=Misfit.UNPROVED, problem=words)


def _as_upstream(hunk: HunkOutcome) -> HunkOutcome:
    return HunkOutcome(hunk.number, hunk.line, hunk.offset, HunkResult.UPSTREAM)


def is_upstream(files: Iterable[FileOutcome]) -> bool:
    """Whether `compare_upstream` proves the whole patch: every entry, every hunk."""
    return all(file.misfit is None and all(hunk.result is HunkResult.UPSTREAM for hunk in file.hunks) for file in files)
