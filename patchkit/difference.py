"""The difference of two trees as a diff in git's form (git-diff(1)), proved by applying it.

A diff that is returned was read back with our own reader, applied to the one tree, and gave the other byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from patchkit.errors import Bug, PatchkitError, Unpatchable, raise_all
from patchkit.fold import Layer, Tree, fold, reverse
from patchkit.installed import Content, is_same, sha256
from patchkit.model import DiffText
from patchkit.patchset import PatchId
from patchkit.paths import LeavesRoot, require_inside
from patchkit.patience import align
from patchkit.places import Text
from patchkit.renames import find_renames

CONTEXTS = (3, 5, 8, 12, 20, 40)
"""Lines of context around a change: the first number with which every hunk has one place only, if any does."""

_LEAVE_OUT = "move it away; `patchkit capture` has --exclude to leave it out"
_SNIFFED = 8000  # bytes in which git looks for a NUL before it calls a file binary
_HEADING_BYTES = 80
_HEADING = re.compile(rb"[A-Za-z_$]")
_PYTHON_HEADING = re.compile(rb"[ \t]*(?:class|def|async[ \t]+def)[ \t]")
_TRIAL = PatchId("difference", "trial")
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def is_binary(data: bytes) -> bool:
    """Whether git would call the content binary: a NUL among its first 8000 bytes."""
    return b"\0" in data[:_SNIFFED]


def changed_paths(before: Tree, after: Tree) -> tuple[str, ...]:
    """The paths whose bytes or executable bit differ; a path that a tree lacks is absent there."""
    return tuple(path for path in sorted({*before, *after}) if not is_same(before.get(path), after.get(path)))


def make_diff(before: Tree, after: Tree) -> bytes:
    """The diff that leads from ``before`` to ``after``; b"" where they are the same. A renamed file is told as one.

    Raises `Unpatchable` for every binary file that differs, by name, and for names that differ in letter case alone;
    `Bug` where no diff gives ``after`` back.
    """
    paths = changed_paths(before, after)
    if not paths:
        return b""
    raise_all([error for path in paths if (error := _refuse(path, before.get(path), after.get(path))) is not None])
    raise_all(list(_refuse_twins(paths)))
    renames = find_renames(before, after)
    for headings in (True, False):
        diff = b"".join(_entries(paths, before, after, renames, headings=headings))
        if reproduces(diff, before, after):
            return diff
    raise Bug(f"no diff of {', '.join(paths)} gives the edited files back when it is applied")


def reproduces(diff: bytes, before: Tree, after: Tree) -> bool:
    """Whether ``diff``, read and applied by patchkit's own rules, turns ``before`` into exactly ``after``, and back."""
    from patchkit.diff import read_diff  # brings unidiff with it

    try:
        layer = Layer(_TRIAL, read_diff(diff, DiffText(sha256(diff)), file="the new diff"))
    except PatchkitError:
        return False
    base = {path: before.get(path) for path in (*layer.paths, *before)}
    folded = fold(base, [layer])
    if not folded.outcomes[_TRIAL].fits or changed_paths(folded.tree, after):
        return False
    back = reverse(folded.tree, layer)
    return back is not None and not changed_paths(back, base)


def _refuse(path: str, before: Content | None, after: Content | None) -> Unpatchable | None:
    try:
        require_inside(path.encode("utf-8", "surrogateescape"), path)
    except LeavesRoot as error:
        return Unpatchable(f"{path!a} {error}: no patch may name it", hint=_LEAVE_OUT)
    sides = [content for content in (before, after) if content is not None]
    if any(is_binary(content.data) for content in sides) and len({content.data for content in sides}) > 1:
        return Unpatchable(f"{path} is a binary file and was changed; only text can be patched")
    if len(sides) == 1 and is_binary(sides[0].data):
        verb = "added" if before is None else "deleted"
        hint = _LEAVE_OUT if before is None else "put it back"
        return Unpatchable(f"{path} is a binary file and was {verb}; only text can be patched", hint=hint)
    return None


def _refuse_twins(paths: Sequence[str]) -> Iterator[Unpatchable]:
    """On some file systems such names are one file, so no diff may have both."""
    seen: dict[str, str] = {}
    for path in paths:
        twin = seen.setdefault(path.casefold(), path)
        if twin != path:
            words = f"{twin} and {path} differ in letter case alone: on some systems they are one file"
            yield Unpatchable(words, hint="give the new file another name")


# ---- one entry ------------------------------------------------------------------------------------------------


def _entries(
    paths: Sequence[str], before: Tree, after: Tree, renames: Mapping[str, tuple[str, int]], *, headings: bool
) -> Iterator[bytes]:
    """The entries in the order of their new paths; a renamed file has one, under its new name."""
    moved = {old for old, _ in renames.values()}
    for path in paths:
        if path in renames:
            old, percent = renames[path]
            notes = [f"similarity index {percent}%", f"rename from {quote_path(old)}", f"rename to {quote_path(path)}"]
            yield _entry((old, path), before.get(old), after.get(path), notes, headings=headings)
        elif path not in moved:
            yield _entry((path, path), before.get(path), after.get(path), [], headings=headings)


def _entry(
    paths: tuple[str, str], before: Content | None, after: Content | None, notes: Sequence[str], *, headings: bool
) -> bytes:
    names = [quote_path(f"{side}/{path}") for side, path in zip("ab", paths, strict=True)]
    lines = [f"diff --git {names[0]} {names[1]}", *_modes(before, after), *notes]
    old, new = (Text(content.data if content is not None else b"") for content in (before, after))
    hunks = _hunks(paths[1], old, new, headings=headings)
    if hunks:
        lines += [f"--- {_tabbed(names[0]) if before else '/dev/null'}"]
        lines += [f"+++ {_tabbed(names[1]) if after else '/dev/null'}"]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape") + b"".join(hunks)


def _modes(before: Content | None, after: Content | None) -> list[str]:
    modes = [None if content is None else _mode(content) for content in (before, after)]
    match modes:
        case [None, new]:
            return [f"new file mode {new}"]
        case [old, None]:
            return [f"deleted file mode {old}"]
        case [old, new] if old != new:
            return [f"old mode {old}", f"new mode {new}"]
        case _:
            return []


def _mode(content: Content) -> str:
    return "100755" if content.executable else "100644"


def _tabbed(name: str) -> str:
    """git's way to say where a name with spaces ends."""
    return f"{name}\t" if " " in name else name


def quote_path(name: str) -> str:
    """A path as git prints it under core.quotePath: in C's notation where it has bytes that need it."""
    data = name.encode("utf-8", "surrogateescape")
    quoted = "".join(_escaped(byte) for byte in data)
    return name if quoted == name else f'"{quoted}"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return f"\\{_ESCAPES[byte]}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


# ---- hunks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Edit:
    """Lines ``old_begin`` up to ``old_end`` (0-based) become those from ``new_begin`` up to ``new_end``."""

    old_begin: int
    old_end: int
    new_begin: int
    new_end: int


def _hunks(path: str, old: Text, new: Text, *, headings: bool) -> list[bytes]:
    python = path.endswith((".py", ".pyi"))
    rule = None if not headings else _PYTHON_HEADING if python else _HEADING
    edits = _find_edits(old.lines, new.lines)
    groups = _group(edits, CONTEXTS[0])
    for context in CONTEXTS:
        wider = _group(edits, context)
        if all(_is_single(old, group, context, rule) for group in wider):
            groups = wider
            break
    else:
        context = CONTEXTS[0]
    return [_hunk(old.lines, new.lines, group, context, rule) for group in groups]


def _group(edits: Sequence[_Edit], context: int) -> list[list[_Edit]]:
    """Edits whose contexts meet share a hunk."""
    groups: list[list[_Edit]] = [[edit] for edit in edits[:1]]
    for before, edit in pairwise(edits):
        if edit.old_begin - before.old_end <= 2 * context:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups


def _span(group: Sequence[_Edit], context: int, count: int) -> tuple[int, int]:
    return max(group[0].old_begin - context, 0), min(group[-1].old_end + context, count)


def _is_single(old: Text, group: Sequence[_Edit], context: int, rule: re.Pattern[bytes] | None) -> bool:
    """Whether the old side stands at one place only, by itself or under its heading; or is the whole file."""
    begin, end = _span(group, context, old.count)
    places = old.places(b"".join(old.lines[begin:end]))
    if len(places) == 1 or (begin, end) == (0, old.count):
        return True
    heading = _heading(old.lines, begin, rule) if rule is not None else b""
    return sum(old.stands_under(place, heading) for place in places) == 1


def _hunk(
    old: Sequence[bytes], new: Sequence[bytes], group: Sequence[_Edit], context: int, rule: re.Pattern[bytes] | None
) -> bytes:
    begin, end = _span(group, context, len(old))
    new_begin = group[0].new_begin - (group[0].old_begin - begin)
    new_end = group[-1].new_end + (end - group[-1].old_end)
    ranges = f"@@ -{_range(begin, end)} +{_range(new_begin, new_end)} @@".encode()
    body: list[bytes] = []
    at = begin
    for edit in group:
        body += [b" " + line for line in old[at : edit.old_begin]]
        body += [b"-" + line for line in old[edit.old_begin : edit.old_end]]
        body += [b"+" + line for line in new[edit.new_begin : edit.new_end]]
        at = edit.old_end
    body += [b" " + line for line in old[at:end]]
    heading = _heading(old, begin, rule) if rule is not None else b""
    return b"".join([ranges, b" " + heading if heading else b"", b"\n", *map(_ended, body)])


def _range(begin: int, end: int) -> str:
    """A hunk header's range: a single line states no count, and no lines at all name the line above."""
    count = end - begin
    start = begin + 1 if count else begin
    return f"{start}" if count == 1 else f"{start},{count}"


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"


def _heading(lines: Sequence[bytes], begin: int, rule: re.Pattern[bytes]) -> bytes:
    """The nearest line above that opens a section, as git cuts it."""
    found = next((line for line in reversed(lines[:begin]) if rule.match(line)), b"")
    return found.strip()[:_HEADING_BYTES].rstrip()


def _find_edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[_Edit]:
    """What differs, in order. Lines that stay are found by those that occur once on each side (patience diff)."""
    pairs = [*align(old, new), (len(old), len(new))]
    edits: list[_Edit] = []
    i = j = 0
    for stays, becomes in pairs:
        if (stays, becomes) != (i, j):
            edits.append(_Edit(i, stays, j, becomes))
        i, j = stays + 1, becomes + 1
    return edits
