"""What is doubtful in a patch set by itself, without any environment: manifests and parsed diffs in, findings out.

What is wrong outright the loader and the reader of diffs refuse; these are the things that load, and harm later.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique

from patchkit.bounds import refuse_kind
from patchkit.model import EntryKind, FileDiff, Hunk
from patchkit.noise import is_noise
from patchkit.patchset import Patch, PatchId, PatchSet, SymbolCheck
from patchkit.places import Text
from patchkit.symbols import module_paths
from patchkit.syntax import assigned_name, read_pattern, short
from patchkit.versions import common_version, prerelease_gaps

_CALLED = re.compile(r"(?<!\bdef)(?<!\bclass)(?:^|[^\w.])[\w.]*[\w)\]]\Z")
_LONGEST_CALL = 1000
_LONGEST_NAME = 100
"""Characters that are looked through for where a call begins, and for what is called."""


@unique
class Lint(Enum):
    """What `lint` looks for; the word is the code of the finding."""

    NO_CHECK = "no-check"
    NO_ORIGIN = "no-origin"
    UNUSED_FILE = "unused-file"
    AMBIGUOUS_CONTEXT = "ambiguous-context"
    PRERELEASE_GAP = "pre-release-gap"
    NEVER_OWNED = "never-owned"
    SIMILAR_NAMES = "similar-names"
    BARE_KEYWORD = "bare-keyword"
    UNKNOWN_AFTER = "unknown-after"
    NO_PLAIN_FILE = "no-plain-file"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful. ``code`` is a `Lint`'s word, or that of an error; ``line`` 0 is none.

    ``id`` is the patch that it is about, ``hint`` what to do ("" where the message says it).
    """

    code: str
    file: str
    message: str
    line: int = 0
    id: PatchId | None = None
    hint: str = ""


def lint_manifest(patch_set: PatchSet, manifest: str) -> Iterator[Finding]:
    """What its manifest (the file ``manifest``) lacks, and ranges that leave a gap for pre-releases."""
    for patch in patch_set.patches:
        yield from _lint_checks(patch, manifest)
        if patch.variants and not patch.provenance.origin:
            words = "nothing says where it comes from, so nobody can tell when it may go"
            yield _find(Lint.NO_ORIGIN, manifest, words, patch, 'write origin = "..." (DEP-3)')
        rules = [*(variant.versions for variant in patch.variants), *(rule.versions for rule in patch.not_needed)]
        for below, bound in prerelease_gaps(rules):
            words = f'"{below}" ends before {bound}, and the next range begins there: no range holds {bound}rc1'
            hint = f'write "<{bound}.dev0" and ">={bound}.dev0"'
            yield _find(Lint.PRERELEASE_GAP, manifest, words, patch, hint)


def _lint_checks(patch: Patch, manifest: str) -> Iterator[Finding]:
    hint = "write [[patch.check]]: a check says what must be true once it is applied"
    if patch.variants and not patch.checks:
        words = "it has no check: nothing notices when it applies and no longer helps"
        yield _find(Lint.NO_CHECK, manifest, words, patch, hint)
        return
    for variant in patch.variants:
        ranges = [check.versions for check in patch.checks]
        if not any(not versions or common_version(versions, variant.versions) for versions in ranges):
            words = f"none of its checks is meant for the versions of {variant.file} ({variant.versions})"
            yield _find(Lint.NO_CHECK, manifest, words, patch, hint)


def lint_files(files: Iterable[str], used: Iterable[str], folder: str) -> Iterator[Finding]:
    """Files of a patch set that its manifest does not name; documents and hidden files may lie there."""
    known = {*used, "patchset.toml"}
    for file in sorted(files):
        if file not in known and not _is_document(file) and not is_noise(file):
            yield Finding(
                Lint.UNUSED_FILE.value,
                f"{folder}/{file}",
                "the manifest does not name this file, so nothing uses it",
                hint="remove it, or name it in patchset.toml",
            )


def _is_document(file: str) -> bool:
    name = file.rpartition("/")[2].lower()
    hidden = any(part.startswith(".") for part in file.split("/"))
    return (
        hidden or name.endswith((".md", ".rst", ".txt")) or name.startswith(("readme", "license", "notice", "copying"))
    )


def lint_special(places: Iterable[str]) -> Iterator[Finding]:
    """What lies in a patch set and is neither a file nor a folder, or a link to a folder, which nothing follows."""
    for place in places:
        words = "it is no plain file, so nothing reads it, and git or a build context may not carry it"
        yield Finding(Lint.NO_PLAIN_FILE.value, place, words, hint="remove it, or put a file in its place")


def lint_names(sets: Iterable[PatchSet]) -> Iterator[Finding]:
    """Sets whose names differ in case alone: where file systems do not tell cases apart, they are one folder."""
    first: dict[str, PatchSet] = {}
    for each in sets:
        twin = first.setdefault(each.name.casefold(), each)
        if twin is not each:
            words = f"the sets {twin.name} and {each.name} differ in case alone: macOS makes one folder of them"
            yield Finding(Lint.SIMILAR_NAMES.value, each.folder, words, hint="rename one of them")


def lint_order(patches: Iterable[Patch], manifest: str, sets: Collection[str]) -> Iterator[Finding]:
    """Names in ``after`` of sets that nobody has."""
    for patch in patches:
        for other in patch.after:
            if other.set not in sets:
                words = f"it comes after {other}, and there is no set {other.set} at hand"
                hint = "correct the name, or name the folder of that set with --patches DIR too"
                yield _find(Lint.UNKNOWN_AFTER, manifest, words, patch, hint)


# ---- diffs ----------------------------------------------------------------------------------------------------


def lint_diff(diffs: Sequence[FileDiff], patch: Patch, file: str) -> Iterator[Finding]:
    """Hunks whose place their own lines do not tell, and files that no distribution lets a patch touch."""
    for diff in diffs:
        for path in diff.paths:
            if words := refuse_kind(path):
                hint = "leave it out with `exclude`"
                yield Finding(Lint.NEVER_OWNED.value, file, words, diff.line, patch.id, hint)
        for hunk, why in _find_ambiguous(diff):
            hint = "make the diff with more context (diff -U8), and with the function's name (git diff, diff -p)"
            words = f"hunk {hunk.number} of {diff.path} {why}"
            yield Finding(Lint.AMBIGUOUS_CONTEXT.value, file, words, hunk.source_line, patch.id, hint)


def lint_keywords(diffs: Sequence[FileDiff], patch: Patch, manifest: str) -> Iterator[Finding]:
    """Code of symbol checks that reads as an assignment, where the diff has that name as a keyword argument alone."""
    for check in (each for each in patch.checks if isinstance(each, SymbolCheck)):
        paths = module_paths(check.module)
        hunks = [hunk for diff in diffs if set(paths) & set(diff.paths) for hunk in diff.hunks]
        for code in (*check.has, *check.lacks):
            name = assigned_name(read_pattern(code))
            found = (
                {use for hunk in hunks for side in (hunk.old, hunk.new) for use in _uses(name, side)} if name else set()
            )
            if found == {True}:
                words = f"`{short(code)}` is read as an assignment, and the diff has {name} as a keyword argument"
                hint = "write a keyword argument with its call, for it is no code by itself"
                yield _find(Lint.BARE_KEYWORD, manifest, words, patch, hint)


def _uses(name: str, side: bytes) -> Iterator[bool]:
    """For each ``name=`` in a side of a hunk, whether it is an argument of a call that begins there."""
    text = side.decode("utf-8", "replace")
    for found in re.finditer(rf"(?<![\w.]){re.escape(name)}\s*=(?!=)", text):
        yield _is_argument(text[max(found.start() - _LONGEST_CALL, 0) : found.start()])


def _is_argument(before: str) -> bool:
    """Whether text ends inside the parentheses of a call; those of a definition are none."""
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        if before[at] in ")]}":
            depth += 1
        elif before[at] in "([{" and depth:
            depth -= 1
        elif before[at] in "([{":
            return before[at] == "(" and _CALLED.search(before[max(at - _LONGEST_NAME, 0) : at]) is not None
    return False


def _find_ambiguous(diff: FileDiff) -> Iterator[tuple[Hunk, str]]:
    if diff.kind not in (EntryKind.MODIFY, EntryKind.RENAME):
        return
    first: dict[tuple[bytes, bytes], int] = {}
    for hunk in diff.hunks:
        twin = first.setdefault((hunk.old, hunk.section.strip()), hunk.number)
        if twin != hunk.number:
            yield hunk, f"has the same old lines as hunk {twin}: only the line number tells them apart"
        elif not hunk.section.strip() and hunk.old_begin > 1 and hunk.trailing:  # else it has one place at most
            yield from ((hunk, why) for why in _why_ambiguous(Text(hunk.old).lines))


def _why_ambiguous(lines: Sequence[bytes]) -> Iterator[str]:
    if not any(character.isalnum() for line in lines for character in line.decode("utf-8", "replace")):
        yield "has old lines without a word in them, which may stand anywhere"
    elif period := _period(lines):
        yield f"repeats the same {_count(period)}: where there are more of them, it fits at more than one place"


def _count(period: int) -> str:
    return "line" if period == 1 else f"{period} lines"


def _period(lines: Sequence[bytes]) -> int:
    """After how many lines the lines begin again, if they do so at least once whole; 0: they do not."""
    for period in range(1, len(lines) // 2 + 1):
        if lines[period:] == lines[: len(lines) - period]:
            return period
    return 0


def _find(lint: Lint, file: str, words: str, patch: Patch, hint: str) -> Finding:
    return Finding(lint.value, file, words, id=patch.id, hint=hint)
