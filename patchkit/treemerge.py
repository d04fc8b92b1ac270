"""The change that a patch makes, merged into a new version of its files: a `FileMerge` for each file an entry goes to.

Base is what the old version shipped, ours that with the patch, theirs what the new version ships. Entries are merged
one after the other, each into what the one before left: two of them may end in one file. Where code of one file went
to several, each hunk goes where its text is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from patchkit.fold import PLAIN, Tree
from patchkit.hunks import apply_hunks
from patchkit.installed import Content
from patchkit.merge import Merged, Region, Taken, merge
from patchkit.model import EntryKind, FileDiff, Hunk
from patchkit.places import Text

_WORD = re.compile(rb"\w")

Reader = Callable[[str], Content | None]
"""The content of a path in the new version, or None."""

Guide = Callable[[FileDiff], str | None]
"""Where the text of an entry is in the new version, if it is not in its old file."""


@dataclass(frozen=True, slots=True)
class FileMerge:
    """What became of one file. ``path`` is where it is in the new version, ``old`` where the patch had it.

    ``content`` is the merged text (None: no such file); with ``conflicts`` it has markers. ``kept`` counts the changes
    that the patch still makes, ``there`` those that the new version has already, ``gone`` those that only delete what
    the new version does not have: that may be upstream, or the text is elsewhere. ``elsewhere`` are lines of these that
    the merged text has at another place. ``problem`` says what the conflict is about where that is no text that both
    sides changed.
    """

    path: str
    old: str
    content: Content | None
    conflicts: int = 0
    kept: int = 0
    there: int = 0
    problem: str = ""
    gone: int = 0
    elsewhere: tuple[bytes, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.conflicts


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
    def gone(self) -> int:
        return sum(file.gone for file in self.files)


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
    """Merge every entry of a patch that applied to ``sides.base`` and gave ``sides.ours``.

    A file is clean only where all that its entry adds is in the merged tree.
    """
    files: list[FileMerge] = []
    before: dict[str, Content | None] = {}
    after: dict[str, Content | None] = {}
    current = replace(sides, theirs=lambda path: after[path] if path in after else sides.theirs(path))
    for diff in diffs:
        for file in _merge_entry(diff, current):
            files.append(file)
            for path in dict.fromkeys((file.path, file.old)):
                if path == file.path or sides.theirs(path) is not None:
                    before.setdefault(path, sides.theirs(path))
                    after.setdefault(path, before[path])
            after[file.path] = file.content
        if diff.kind is EntryKind.RENAME:
            old = str(diff.old)
            before.setdefault(old, sides.theirs(old))
            after[old] = None
    lost = _find_lost(diffs, files, after, sides)
    for number, file in enumerate(files):
        if file.clean and file.old in lost:
            files[number] = _refuse(replace(file, content=after[file.path]), lost[file.old], sides)
            after[file.path] = files[number].content
    return TreeMerge(tuple(files), before, after)


def _find_lost(
    diffs: Sequence[FileDiff], files: Sequence[FileMerge], after: Tree, sides: Sides
) -> dict[str, list[bytes]]:
    """The lines that an entry adds and that are in none of the merged files, by the entry's old and new path."""
    lost: dict[str, list[bytes]] = {}
    for diff in diffs:
        old, new = str(diff.old or diff.new), str(diff.new or diff.old)
        base, ours = _lines(sides.base.get(old)), _lines(sides.ours.get(new))
        merged: Counter[bytes] = Counter()
        for path in {file.path for file in files if file.old in (old, new)}:
            merged |= _lines(after[path])
        missing = [line for line in ours - base if line not in merged]
        if missing:
            lost |= {old: missing, new: missing}
    return lost


def _lines(content: Content | None) -> Counter[bytes]:
    """Each line with the number of times that it is there; its end is no part of it."""
    return Counter(line.rstrip(b"\r\n") for line in Text(b"" if content is None else content.data).lines)


def _refuse(file: FileMerge, lines: Sequence[bytes], sides: Sides) -> FileMerge:
    """The file with the lines that are lost at its end, between markers: a person knows where they belong."""
    words = f"the merged files have no line {lines[0].strip().decode('utf-8', 'replace')!r}, which the patch adds"
    there = Content(b"", PLAIN) if file.content is None else file.content
    whole = Region(Taken.NEITHER, tuple(_ended(line) for line in Text(there.data).lines))
    own = Region(Taken.CONFLICT, tuple(line + b"\n" for line in lines))
    data = Merged((whole, own)).render(sides.ours_name, sides.theirs_name)
    return replace(file, content=Content(data, there.mode), conflicts=1, problem=words)


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _merge_entry(diff: FileDiff, sides: Sides) -> tuple[FileMerge, ...]:
    match diff.kind:
        case EntryKind.CREATE:
            return (_merge_created(str(diff.new), sides),)
        case EntryKind.DELETE:
            return (_merge_deleted(str(diff.old), sides),)
        case EntryKind.RENAME:
            return (_merge_renamed(str(diff.old), str(diff.new), sides),)
        case EntryKind.MODIFY:
            return tuple(_merge_modified(diff, str(diff.old), sides))


def _merge_created(path: str, sides: Sides) -> FileMerge:
    ours, theirs = sides.ours[path], sides.theirs(path)
    assert ours is not None
    if theirs is None:
        return FileMerge(path, path, ours, kept=1)
    nothing = Content(b"", PLAIN)
    if theirs.data == ours.data and not ours.executable:
        return FileMerge(path, path, theirs, there=1)
    return _merge_modes(path, path, nothing, ours, theirs, sides)


def _merge_deleted(path: str, sides: Sides) -> FileMerge:
    base, theirs = sides.base[path], sides.theirs(path)
    if theirs is None:
        return FileMerge(path, path, None, gone=1)
    if base is not None and base.data == theirs.data:
        return FileMerge(path, path, None, kept=1)
    words = "it is to be deleted, and the new version changed it: delete it, or keep what is between the markers"
    return _clash(path, None, theirs, words, sides)


def _merge_renamed(old: str, new: str, sides: Sides) -> FileMerge:
    base, ours = sides.base[old], sides.ours[new]
    there, taken = sides.theirs(old), sides.theirs(new)
    assert base is not None and ours is not None
    if there is not None and taken is None:
        merged = _merge_modes(new, new, base, ours, there, sides)
        return replace(merged, kept=merged.kept + 1)
    if there is None and taken is not None:
        merged = _merge_modes(new, new, base, ours, taken, sides)
        return replace(merged, there=merged.there + 1)
    which = "both exist" if there is not None else "neither exists"
    words = f"{old} is to be renamed to it, and {which} in the new version"
    return _clash(new, ours, taken, words, sides)


def _clash(path: str, ours: Content | None, theirs: Content | None, words: str, sides: Sides) -> FileMerge:
    """A conflict over a whole file: the two texts between markers, an absent one as no lines."""
    own, other = (Text(b"" if content is None else content.data).lines for content in (ours, theirs))
    data = Merged((Region(Taken.CONFLICT, tuple(own), tuple(other)),)).render(sides.ours_name, sides.theirs_name)
    mode = (ours or theirs or Content(b"", PLAIN)).mode
    return FileMerge(path, path, Content(data, mode), conflicts=1, problem=words)


def _merge_modified(diff: FileDiff, path: str, sides: Sides) -> Iterator[FileMerge]:
    base, ours, theirs = sides.base[path], sides.ours[path], sides.theirs(path)
    assert base is not None and ours is not None
    here = None if theirs is None else _merge_modes(path, path, base, ours, theirs, sides)
    if here is not None and here.clean:
        yield here
        return
    parts = _split(diff, base, ours)
    homes = _choose_homes(parts, path, base, sides)
    if len(parts) < 2 or len(set(homes)) < 2:
        yield _follow(diff, path, here, base, ours, sides)
        return
    mode_home = path if theirs is not None else homes[0]
    for home in dict.fromkeys((*([path] if base.executable != ours.executable and theirs is not None else []), *homes)):
        hunks = tuple(part for part, goes in zip(parts, homes, strict=True) if goes == home)
        data = apply_hunks(base.data, replace(diff, hunks=hunks, without_cr=None)).data
        there = sides.theirs(home)
        assert data is not None and there is not None
        side = Content(data, ours.mode if home == mode_home else base.mode)
        yield _merge_modes(home, path, base, side, there, sides)


def _follow(diff: FileDiff, path: str, here: FileMerge | None, base: Content, ours: Content, sides: Sides) -> FileMerge:
    """The whole entry in the one file where its text is now."""
    home = sides.guide(diff)
    moved = None if home is None else sides.theirs(home)
    if home is not None and moved is not None:
        there = _merge_modes(home, path, base, ours, moved, sides)
        if here is None or there.conflicts <= here.conflicts:
            return there
    words = "the new version has no such file, and nothing tells where it went: delete it here to leave its change out"
    return here or _clash(path, ours, None, words, sides)


def _split(diff: FileDiff, base: Content, ours: Content) -> tuple[Hunk, ...]:
    """The hunks of an entry, each with the line of ``base`` where it was placed; none where that is not sure."""
    placed = apply_hunks(base.data, diff)
    if placed.data != ours.data or placed.dropped_cr:
        return ()
    return tuple(
        replace(hunk, old_start=hunk.old_start + outcome.line - hunk.old_begin)
        for hunk, outcome in zip(diff.hunks, placed.outcomes, strict=True)
    )


def _choose_homes(parts: Sequence[Hunk], path: str, base: Content, sides: Sides) -> list[str]:
    """For each hunk the file that it merges into best: its old one, or where its text is now; [] for want of one."""
    homes: list[str] = []
    for hunk in parts:
        alone = FileDiff(hunk.source_line, EntryKind.MODIFY, path, path, (hunk,))
        data = apply_hunks(base.data, alone).data
        if data is None:
            return []
        here = _count_conflicts(base, data, sides.theirs(path))
        home = sides.guide(alone) if here != 0 else None
        there = None if home is None else _count_conflicts(base, data, sides.theirs(home))
        if home is not None and there is not None and (here is None or there <= here):
            homes.append(home)
        elif here is not None:
            homes.append(path)
        else:
            return []
    return homes


def _count_conflicts(base: Content, ours: bytes, theirs: Content | None) -> int | None:
    return None if theirs is None else merge(base.data, ours, theirs.data).count(Taken.CONFLICT)


def _merge_modes(path: str, old: str, base: Content, ours: Content, theirs: Content, sides: Sides) -> FileMerge:
    merged = _to_file(path, old, merge(base.data, ours.data, theirs.data), theirs, sides)
    merged = replace(merged, elsewhere=_find_elsewhere(merged.elsewhere, ours, merged.content))
    if base.executable == ours.executable or merged.content is None:
        return merged
    same = theirs.executable == ours.executable
    mode = ours.mode if not same else theirs.mode
    content = Content(merged.content.data, mode)
    return replace(merged, content=content, kept=merged.kept + (not same), there=merged.there + same)


def _to_file(path: str, old: str, merged: Merged, theirs: Content, sides: Sides) -> FileMerge:
    data = merged.render(sides.ours_name, sides.theirs_name)
    return FileMerge(
        path,
        old,
        Content(data, theirs.mode),
        conflicts=merged.count(Taken.CONFLICT),
        kept=merged.count(Taken.OURS),
        there=merged.count(Taken.BOTH),
        gone=merged.count(Taken.GONE),
        elsewhere=tuple(line for region in merged.regions if region.taken is Taken.GONE for line in region.other),
    )


def _find_elsewhere(gone: Sequence[bytes], ours: Content, merged: Content | None) -> tuple[bytes, ...]:
    """Which lines that both sides took away the merged text has oftener than ours: indented otherwise, perhaps."""
    own, there = (Counter(line.strip() for line in _lines(content).elements()) for content in (ours, merged))
    words = dict.fromkeys(line.strip() for line in gone)
    return tuple(line for line in words if _WORD.search(line) and there[line] > own[line])
