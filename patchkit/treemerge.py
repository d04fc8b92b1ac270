"""The change that a patch makes, merged into a new version of its files: one `FileMerge` an entry of its diff.

Base is what the old version shipped, ours that with the patch, theirs what the new version ships.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from patchkit.fold import Tree
from patchkit.installed import Content
from patchkit.merge import Merged, Taken, merge
from patchkit.model import EntryKind, FileDiff

Reader = Callable[[str], Content | None]
"""The content of a path in the new version, or None."""

Guide = Callable[[FileDiff], str | None]
"""Where the text of an entry is in the new version, if it is not in its old file."""


@dataclass(frozen=True, slots=True)
class FileMerge:
    """What became of one file. ``path`` is where it is in the new version, ``old`` where the patch had it.

    ``content`` is the merged text (None: no such file); with ``conflicts`` it has markers. ``kept`` counts the changes
    that the patch still makes, ``there`` those that the new version has already. ``problem`` says what no marker can.
    """

    path: str
    old: str
    content: Content | None
    conflicts: int = 0
    kept: int = 0
    there: int = 0
    problem: str = ""

    @property
    def clean(self) -> bool:
        return not (self.conflicts or self.problem)


@dataclass(frozen=True, slots=True)
class TreeMerge:
    """All files of a patch. ``before`` are theirs and ``after`` the merged ones, by path in the new version."""

    files: tuple[FileMerge, ...]
    before: Tree
    after: Tree

    @property
    def clean(self) -> bool:
        return all(file.clean for file in self.files)

    @property
    def kept(self) -> int:
        return sum(file.kept for file in self.files)

    @property
    def there(self) -> int:
        return sum(file.there for file in self.files)

    @property
    def moves(self) -> Mapping[str, str]:
        """Old paths to new ones, of the files that are followed."""
        return {file.old: file.path for file in self.files if file.path != file.old}


@dataclass(frozen=True, slots=True)
class Sides:
    """The three sides, and what the two that change are called in conflict markers."""

    base: Tree
    ours: Tree
    theirs: Reader
    guide: Guide
    ours_name: str
    theirs_name: str


def merge_trees(diffs: Sequence[FileDiff], sides: Sides) -> TreeMerge:
    """Merge every entry of a patch that applied to ``sides.base`` and gave ``sides.ours``."""
    files: list[FileMerge] = []
    before: dict[str, Content | None] = {}
    after: dict[str, Content | None] = {}
    for diff in diffs:
        file = _merge_entry(diff, sides)
        files.append(file)
        before[file.path], after[file.path] = sides.theirs(file.path), file.content
        if diff.kind is EntryKind.RENAME:
            old = str(diff.old)
            before[old] = sides.theirs(old)
            after[old] = None if file.clean else before[old]
    return TreeMerge(tuple(files), before, after)


def _merge_entry(diff: FileDiff, sides: Sides) -> FileMerge:
    match diff.kind:
        case EntryKind.CREATE:
            return _merge_created(str(diff.new), sides)
        case EntryKind.DELETE:
            return _merge_deleted(str(diff.old), sides)
        case EntryKind.RENAME:
            return _merge_renamed(str(diff.old), str(diff.new), sides)
        case EntryKind.MODIFY:
            return _merge_modified(diff, str(diff.old), sides)


def _merge_created(path: str, sides: Sides) -> FileMerge:
    ours, theirs = sides.ours[path], sides.theirs(path)
    assert ours is not None
    if theirs is None:
        return FileMerge(path, path, ours, kept=1)
    if theirs.data == ours.data:
        return FileMerge(path, path, theirs, there=1)
    return _to_file(path, path, merge(b"", ours.data, theirs.data), theirs, sides)


def _merge_deleted(path: str, sides: Sides) -> FileMerge:
    base, theirs = sides.base[path], sides.theirs(path)
    if theirs is None:
        return FileMerge(path, path, None, there=1)
    if base is not None and base.data == theirs.data:
        return FileMerge(path, path, None, kept=1)
    return FileMerge(path, path, theirs, problem="it is to be deleted, and the new version changed it")


def _merge_renamed(old: str, new: str, sides: Sides) -> FileMerge:
    base, ours = sides.base[old], sides.ours[new]
    there, taken = sides.theirs(old), sides.theirs(new)
    assert base is not None and ours is not None
    if there is not None and taken is None:
        merged = _to_file(new, new, merge(base.data, ours.data, there.data), there, sides)
        return FileMerge(new, new, merged.content, merged.conflicts, merged.kept + 1, merged.there)
    if there is None and taken is not None:
        merged = _to_file(new, new, merge(base.data, ours.data, taken.data), taken, sides)
        return FileMerge(new, new, merged.content, merged.conflicts, merged.kept, merged.there + 1)
    words = f"{old} is to be renamed to it, and " + ("both exist" if there is not None else "neither exists")
    return FileMerge(new, new, taken, problem=f"{words} in the new version")


def _merge_modified(diff: FileDiff, path: str, sides: Sides) -> FileMerge:
    base, ours, theirs = sides.base[path], sides.ours[path], sides.theirs(path)
    assert base is not None and ours is not None
    here = None if theirs is None else _merge_modes(path, path, base, ours, theirs, sides)
    if here is not None and here.clean:
        return here
    home = sides.guide(diff)
    moved = None if home is None else sides.theirs(home)
    if home is not None and moved is not None:
        there = _merge_modes(home, path, base, ours, moved, sides)
        if here is None or there.conflicts <= here.conflicts:
            return there
    return here or FileMerge(
        path, path, None, problem="the new version has no such file, and nothing tells where it went"
    )


def _merge_modes(path: str, old: str, base: Content, ours: Content, theirs: Content, sides: Sides) -> FileMerge:
    merged = _to_file(path, old, merge(base.data, ours.data, theirs.data), theirs, sides)
    if base.executable == ours.executable or merged.content is None:
        return merged
    same = theirs.executable == ours.executable
    mode = ours.mode if not same else theirs.mode
    content = Content(merged.content.data, mode)
    return FileMerge(path, old, content, merged.conflicts, merged.kept + (not same), merged.there + same)


def _to_file(path: str, old: str, merged: Merged, theirs: Content, sides: Sides) -> FileMerge:
    data = merged.render(sides.ours_name, sides.theirs_name)
    return FileMerge(
        path,
        old,
        Content(data, theirs.mode),
        conflicts=merged.count(Taken.CONFLICT),
        kept=merged.count(Taken.OURS),
        there=merged.count(Taken.BOTH),
    )
