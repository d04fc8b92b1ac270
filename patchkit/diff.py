"""What a diff means: its entries as values, or all the reasons why it is refused.

`entries` reads the form, this module the meaning: which file each entry changes and how. The hunks are read twice, by
`entries` and by unidiff, and refused where the two disagree. unidiff gets them as latin-1 text, in which every byte
is one character, and through a `StringIO`, which splits lines at LF alone.

Sources: git-diff(1) "Generating patch text with -p", git-apply(1), diff(1), patch(1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

from patchkit.entries import RawEntry, read_entries
from patchkit.errors import (
    BinaryDiff,
    CopyDiff,
    DiffError,
    DuplicateEntry,
    EmptyDiff,
    MalformedDiff,
    NoContext,
    SubmoduleDiff,
    SymlinkDiff,
    UnsafePath,
    raise_all,
)
from patchkit.headers import Modes, Names, is_empty_blob, read_modes, read_names
from patchkit.model import DiffText, EntryKind, FileDiff, Hunk
from patchkit.paths import LeavesRoot, is_chosen, require_inside

_LONGEST_SHOWN = 300  # characters of a path
_TYPE, _REGULAR = 0o170000, 0o100000
_REFUSED_TYPES: dict[int, tuple[type[DiffError], str]] = {
    0o120000: (SymlinkDiff, "makes, changes or removes a symbolic link"),
    0o160000: (SubmoduleDiff, "changes a submodule"),
}


def read_diff(data: bytes, text: DiffText, *, file: str) -> tuple[FileDiff, ...]:
    """The entries of a diff that ``text`` chooses (strip, directory, include, exclude), in order.

    ``data`` is the whole diff; ``file`` names it in messages. Entries that include and exclude leave out are read
    over whatever they are, but their form must be sound. Linear in the size of ``data``.

    Raises:
        DiffError: one, or `Several` with all of them, each with its line. Every subclass of `DiffError` but
            `NotOwned` may come.
    """
    carriage_returns = ends_in_crlf(data)
    plain = data.replace(b"\r\n", b"\n") if carriage_returns else data
    entries, broken = read_entries(plain, file=file)
    diffs: list[FileDiff] = []
    errors: list[DiffError] = []
    for raw in entries:
        try:
            diff = _read(raw, text)
        except DiffError as error:
            errors.append(error)
            continue
        if diff is not None:
            diffs.append(_with_carriage_returns(diff) if carriage_returns else diff)
    errors += [] if broken is None else [broken]
    errors += [*_duplicates(diffs, file), *_nested(diffs, file)]
    raise_all(errors)
    if not diffs:
        raise EmptyDiff(*_why_empty(data, entries), file=file, line=1)
    return tuple(diffs)


def _why_empty(data: bytes, entries: list[RawEntry]) -> tuple[str]:
    if entries:
        return ("include and exclude leave no file of this diff",)
    return ("no entry of a unified diff was found" if data else "the diff is empty",)


def ends_in_crlf(data: bytes) -> bool:
    """Whether every line, headers too, ends in CRLF."""
    return data.endswith(b"\r\n") and data.count(b"\n") == data.count(b"\r\n")


def _with_carriage_returns(diff: FileDiff) -> FileDiff:
    return replace(diff, hunks=tuple(map(_hunk_with_carriage_returns, diff.hunks)), without_cr=diff.hunks or None)


def _hunk_with_carriage_returns(hunk: Hunk) -> Hunk:
    return replace(hunk, old=_side_with_carriage_returns(hunk.old), new=_side_with_carriage_returns(hunk.new))


def _side_with_carriage_returns(side: bytes) -> bytes:
    unended = side and not side.endswith(b"\n")
    return side.replace(b"\n", b"\r\n") + (b"\r" if unended else b"")


def _nested(diffs: list[FileDiff], file: str) -> Iterator[DiffError]:
    """Paths that would have to be a file and a folder at once."""
    lines = {path: diff.line for diff in diffs for path in diff.paths}
    for path, line in lines.items():
        parents = (path[:end] for end, character in enumerate(path) if character == "/")
        for parent in parents:
            if parent in lines:
                yield MalformedDiff(
                    f"`{parent}` is a file in line {lines[parent]} and a folder here", file=file, line=line
                )


def _duplicates(diffs: list[FileDiff], file: str) -> Iterator[DiffError]:
    lines: dict[str, int] = {}
    for diff in diffs:
        folded = [path.casefold() for path in diff.paths]
        if len(set(folded)) < len(folded):
            yield DuplicateEntry(f"`{diff.path}` differs from its old path only in case", file=file, line=diff.line)
        for path, key in zip(diff.paths, folded, strict=True):
            first = lines.setdefault(key, diff.line)
            if first != diff.line:
                yield DuplicateEntry(f"`{path}` has an entry already, in line {first}", file=file, line=diff.line)


# ---- one entry ------------------------------------------------------------------------------------------------


def _read(raw: RawEntry, text: DiffText) -> FileDiff | None:
    """The entry's meaning, or None where include and exclude leave it out."""
    names = read_names(raw, strip=text.strip, directory=text.directory)
    if names is None and not text.include:  # an include looks below the folder that strip leads to, so it lies outside
        raw.fail(f"a path of this entry has too few components to drop {text.strip}")
    if names is None or not _is_wanted(raw, names, text):
        return None
    modes = read_modes(raw)
    _refuse(raw, modes)
    _require_inside(raw, names)
    kind = _kind(raw, names)
    diff = FileDiff(
        line=raw.line,
        kind=kind,
        old=None if kind is EntryKind.CREATE else names.old_path,
        new=None if kind is EntryKind.DELETE else names.new_path,
        hunks=raw.hunks,
        executable=modes.executable,
        was_executable=modes.was_executable,
    )
    _require_sense(raw, diff, modes)
    _cross_check(raw)
    return diff


def _is_wanted(raw: RawEntry, names: Names, text: DiffText) -> bool:
    paths = (names.old_path, names.new_path)
    chosen = {is_chosen(path, include=text.include, exclude=text.exclude) for path in paths}
    if len(chosen) > 1:
        raw.fail(f"include and exclude take only one path of a rename: `{names.old_path}`, `{names.new_path}`")
    return True in chosen


def _refuse(raw: RawEntry, modes: Modes) -> None:
    """Raise for what is sound, but not done here."""
    if copied := raw.field(b"copy from", b"copy to"):
        raw.fail("copies a file; put the copy into the diff as a new file", line=copied.line, error=CopyDiff)
    for mode, line in modes.stated:
        if mode & _TYPE in _REFUSED_TYPES:
            error, problem = _REFUSED_TYPES[mode & _TYPE]
            raw.fail(problem, line=line, error=error)
        if mode & _TYPE != _REGULAR:
            raw.fail(f"mode {mode:06o} is not that of a file", line=line)
    if raw.binary:
        raw.fail("changes a binary file; only text can be patched", line=raw.binary, error=BinaryDiff)


def _require_inside(raw: RawEntry, names: Names) -> None:
    for name, path in ((names.old_name, names.old_path), (names.new_name, names.new_path)):
        try:
            require_inside(name, path)
        except LeavesRoot as error:
            shown = path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}..."
            raw.fail(f"the path {shown!a} {error}", error=UnsafePath)


def _kind(raw: RawEntry, names: Names) -> EntryKind:
    created, deleted = raw.field(b"new file mode"), raw.field(b"deleted file mode")
    renamed = raw.field(b"rename from", b"rename old")
    if sum(stated is not None for stated in (created, deleted, renamed or raw.field(b"old mode"))) > 1:
        raw.fail("the entry states more than one of creation, deletion, and rename or change of mode")
    if created or names.old_absent:
        return EntryKind.CREATE
    if deleted or names.new_absent:
        return EntryKind.DELETE
    return EntryKind.RENAME if renamed else EntryKind.MODIFY


def _require_sense(raw: RawEntry, diff: FileDiff, modes: Modes) -> None:
    """Check that headers and hunks of an entry of this kind go together."""
    match diff.kind:
        case EntryKind.CREATE:
            _require_one_side(raw, [hunk.old_count for hunk in diff.hunks], "creates a file, but has old lines")
        case EntryKind.DELETE:
            _require_one_side(raw, [hunk.new_count for hunk in diff.hunks], "deletes a file, but keeps lines")
        case EntryKind.MODIFY | EntryKind.RENAME:
            _require_context(raw)
    if not diff.hunks and not _is_whole(diff, modes):
        raw.fail("the entry has no hunks, so it changes nothing or is cut off")


def _require_one_side(raw: RawEntry, other_counts: list[int], problem: str) -> None:
    if any(other_counts) or len(other_counts) > 1:
        raw.fail(problem, line=raw.hunks[0].source_line)


def _require_context(raw: RawEntry) -> None:
    for hunk in raw.hunks:
        if not hunk.old_count and hunk.old_start:
            problem = f"hunk {hunk.number} only adds lines and has no context to place them by"
            raw.fail(problem, line=hunk.source_line, error=NoContext)


def _is_whole(diff: FileDiff, modes: Modes) -> bool:
    """Whether an entry without hunks is whole: nothing says that text changes, and something else does."""
    match diff.kind:
        case EntryKind.CREATE:
            return modes.new_blob is None or is_empty_blob(modes.new_blob)
        case EntryKind.DELETE:
            return modes.old_blob is None or is_empty_blob(modes.old_blob)
        case EntryKind.RENAME:
            return modes.similarity in (None, 100) and modes.old_blob == modes.new_blob
        case EntryKind.MODIFY:
            return modes.old_blob == modes.new_blob and diff.executable != diff.was_executable


# ---- the second reader ----------------------------------------------------------------------------------------

_AT_ONCE = 500  # hunks: unidiff needs a kilobyte a line
_Reading = tuple[int, int, int, int, str, str, str]


def _cross_check(raw: RawEntry) -> None:
    """Read the hunks with unidiff and compare: starts, counts, section, and both sides."""
    for start in range(0, len(raw.hunks), _AT_ONCE):
        batch = slice(start, start + _AT_ONCE)
        if _read_by_unidiff(b"".join(raw.bodies[batch]).decode("latin-1")) != _as_read_here(raw.hunks[batch]):
            raw.fail("the hunks of this entry can be read in two ways")


def _as_read_here(hunks: tuple[Hunk, ...]) -> list[_Reading]:
    return [
        (
            hunk.old_start,
            hunk.old_count,
            hunk.new_start,
            hunk.new_count,
            hunk.section.decode("latin-1"),
            hunk.old.decode("latin-1"),
            hunk.new.decode("latin-1"),
        )
        for hunk in hunks
    ]


def _read_by_unidiff(text: str) -> list[_Reading]:
    """The hunks as unidiff reads them; empty where it refuses them."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        files = PatchSet(StringIO("--- a\n+++ b\n" + text))
    except UnidiffParseError:
        return []
    return [
        (
            hunk.source_start,
            hunk.source_length,
            hunk.target_start,
            hunk.target_length,
            hunk.section_header,
            *_sides([line.line_type for line in hunk], [line.value for line in hunk]),
        )
        for patched in files
        for hunk in patched
    ]


def _sides(types: list[str], values: list[str]) -> tuple[str, str]:
    """The old and new side of a hunk; the line before a `\\` has no newline."""
    at = -1
    for _ in range(types.count("\\")):
        at = types.index("\\", at + 1)
        values[at - 1] = values[at - 1].removesuffix("\n")
    lines = list(zip(types, values, strict=True))
    return "".join([text for kind, text in lines if kind in " -"]), "".join(
        [text for kind, text in lines if kind in " +"]
    )
