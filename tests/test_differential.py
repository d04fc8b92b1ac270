"""The diff engine against real git and GNU diff and patch, on random trees, edits, targets and damage.

PATCHKIT_EXAMPLES multiplies the number of examples (1 where absent).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.diff import read_diff
from patchkit.errors import PatchkitError
from patchkit.hunks import apply_hunks
from patchkit.model import DiffText, EntryKind, FileDiff, HunkResult

Tree = dict[str, tuple[bytes, bool]]

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is the oracle")

FACTOR = float(os.environ.get("PATCHKIT_EXAMPLES", "1"))
GIT = ["git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false"]


def bounded(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=max(1, int(examples * FACTOR)),
        deadline=None,
        derandomize=FACTOR == 1,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# ---- trees ----------------------------------------------------------------------------------------------------

COMMON = [
    b"a\n", b"b\n", b"\n", b"    return 1\n", b"def f(x):\n", b"class C:\n", b"    def g(self):\n", b"}\n", b"a \n",
    b" a\n", b"crlf\r\n", b"\r\n", b"form\x0cfeed\n", b"lone\rcr\n", b"\xff\xfe latin\n", b"\xc2\x85\xe2\x80\xa8\n",
    b"-- \n", b"--- a/x\n", b"+++ b/x\n", b"@@ -1 +1 @@\n", b"\\ No newline at end of file\n", b"diff --git a/x b/x\n",
]  # fmt: skip
PATHS = [
    "a.py",
    "pkg/b.py",
    "pkg/with space.txt",
    "pkg/d\u00e9j\u00e0.py",
    'pkg/quo"te.txt',
    "deep/er/down/c.cu",
    "tab\there",
]

unique_lines = st.integers(0, 10**6).map(lambda number: b"unique %d\n" % number)
lines = st.one_of(st.sampled_from(COMMON), st.sampled_from(COMMON[:8]), unique_lines)
texts = st.tuples(st.lists(lines, max_size=40), st.booleans()).map(lambda pair: as_text(*pair))


def as_text(pieces: list[bytes], ended: bool = True) -> bytes:
    text = b"".join(pieces)
    return text if ended else text.removesuffix(b"\n")


def as_lines(text: bytes) -> list[bytes]:
    pieces = text.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


@st.composite
def edited(draw: st.DrawFn, text: bytes, *, edits: int = 4) -> bytes:
    """``text`` with some runs of lines inserted, replaced, deleted or doubled, and perhaps another last line end."""
    pieces = as_lines(text)
    for _ in range(draw(st.integers(1, edits))):
        at = draw(st.integers(0, len(pieces)))
        until = min(len(pieces), at + draw(st.integers(0, 4)))
        doubled = pieces[at:until] * 2
        pieces[at:until] = draw(st.one_of(st.lists(lines, max_size=4), st.just(doubled)))
    whole = b"".join(pieces)
    if draw(st.integers(0, 5)) == 0:
        whole = whole.removesuffix(b"\n") if whole.endswith(b"\n") else whole + b"\n"
    return whole


BLOCKS = [
    [b"def f(x):\n", b"    a\n", b"    return 1\n", b"\n"],
    [b"    a\n", b"    b\n", b"    return 1\n", b"\n"],
    [b"{\n", b"    a\n", b"}\n"],
    [b"\n"],
]
blocks = st.one_of(st.sampled_from(BLOCKS), unique_lines.map(lambda line: [line]))
repetitive = st.lists(blocks, min_size=6, max_size=25)


@st.composite
def moved(draw: st.DrawFn, pieces: list[list[bytes]]) -> list[list[bytes]]:
    """Blocks with a few blocks put in, taken out, doubled or replaced."""
    pieces = list(pieces)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(pieces)))
        until = min(len(pieces), at + draw(st.integers(0, 3)))
        between = draw(st.one_of(st.lists(blocks, max_size=3), st.just(pieces[at:until] * 2)))
        pieces[at:until] = between
    return pieces


def as_whole(pieces: list[list[bytes]]) -> bytes:
    return b"".join(line for piece in pieces for line in piece)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    paths = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=5))
    return {path: (draw(texts), draw(st.booleans())) for path in paths}


@st.composite
def changes(draw: st.DrawFn) -> tuple[Tree, Tree]:
    """A tree before and after: files modified, created, deleted, renamed, modes changed."""
    before = draw(trees())
    after = dict(before)
    for path in list(before):
        data, executable = before[path]
        match draw(st.integers(0, 5)):
            case 0 | 1 | 2:
                after[path] = draw(edited(data)), executable
            case 3:
                after[path] = data, not executable
            case 4:
                del after[path]
            case 5:
                del after[path]
                after[f"moved/{path}"] = draw(edited(data, edits=1)), draw(st.booleans())
    if draw(st.booleans()):
        after["new/file.py"] = draw(texts), draw(st.booleans())
    return before, after


def write(root: Path, tree: Tree) -> Path:
    root.mkdir(parents=True)
    for path, (data, executable) in tree.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if executable else 0o644)
    return root


def read(root: Path) -> Tree:
    return {
        file.relative_to(root).as_posix(): (file.read_bytes(), bool(file.stat().st_mode & 0o100))
        for file in root.rglob("*")
        if file.is_file()
    }


# ---- the oracles ----------------------------------------------------------------------------------------------


def run(command: list[str], cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(cwd),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(cwd.parent),
    }
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, env=environment, check=False, timeout=60)


def git_diff(base: Path, before: Tree, after: Tree, *options: str) -> bytes:
    """What git writes of the change; its paths are a/old/... and b/new/..., so strip is 2."""
    write(base / "old", before)
    write(base / "new", after)
    done = run([*GIT, "diff", "--no-index", "--no-color", "--no-ext-diff", "-M", *options, "old", "new"], base)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def by_git(base: Path, tree: Tree, diff: bytes, *options: str) -> Tree | str:
    """The tree after git apply, or git's word that it does not apply."""
    root = write(Path(tempfile.mkdtemp(dir=base)) / "tree", tree)
    done = run([*GIT, "apply", "--whitespace=nowarn", *options, "-"], root, diff)
    return read(root) if done.returncode == 0 else done.stderr.decode("utf-8", "replace")


def by_patch(base: Path, tree: Tree, diff: bytes, *options: str) -> Tree | str:
    """The tree after GNU patch without fuzz, or its word that it does not apply."""
    root = write(Path(tempfile.mkdtemp(dir=base)) / "tree", tree)
    command = ["patch", "-F0", "--batch", "--binary", "--no-backup-if-mismatch", *options]
    done = run(command, root, diff)
    return read(root) if done.returncode == 0 else done.stdout.decode("utf-8", "replace")


# ---- the engine -----------------------------------------------------------------------------------------------


class DoesNotFit(Exception):
    pass


def parsed(diff: bytes, *, strip: int) -> tuple[FileDiff, ...]:
    return read_diff(diff, DiffText("", strip=strip), file="test.patch")


def without_sections(diffs: tuple[FileDiff, ...]) -> tuple[FileDiff, ...]:
    """The same with nothing that lets the section heading decide, which git does not do."""
    return tuple(replace(diff, hunks=tuple(replace(hunk, section=b"") for hunk in diff.hunks)) for diff in diffs)


def by_patchkit(tree: Tree, diffs: tuple[FileDiff, ...]) -> Tree:
    after = dict(tree)
    for diff in diffs:
        old = after.pop(diff.old, None) if diff.old is not None else (b"", False)
        if old is None or (diff.new is not None and diff.new in tree and diff.new != diff.old):
            raise DoesNotFit("a file is missing, or there already")
        data = content(old[0], diff)
        if diff.new is not None:
            after[diff.new] = data, old[1] if diff.executable is None else diff.executable
    return after


def content(data: bytes, diff: FileDiff) -> bytes:
    placed = apply_hunks(data, diff)
    if placed.data is None or (diff.kind is EntryKind.DELETE and placed.data):
        raise DoesNotFit("; ".join(o.reason for o in placed.outcomes if o.result is HunkResult.CONFLICT))
    return placed.data


def undone(diffs: tuple[FileDiff, ...]) -> tuple[FileDiff, ...]:
    return tuple(diff.reversed() for diff in reversed(diffs))


# ---- what holds -----------------------------------------------------------------------------------------------


@bounded(150)
@given(change=changes(), context=st.integers(1, 5), options=st.lists(st.sampled_from(["--full-index", "--minimal"])))
def test_a_diff_of_git_applies_and_reverses_to_the_very_trees(
    change: tuple[Tree, Tree], context: int, options: list[str]
) -> None:
    before, after = change
    with tempfile.TemporaryDirectory() as folder:
        diff = git_diff(Path(folder), before, after, f"-U{context}", *options)
        if not diff:
            assert before == after
            return
        diffs = parsed(diff, strip=2)
        assert by_patchkit(before, diffs) == after
        assert by_patchkit(after, undone(diffs)) == before
        assert by_git(Path(folder), before, diff, "-p2") == after


SHARED = ["a.py", "pkg/b.py", "pkg/with space.txt"]


@bounded(100)
@given(data=st.data(), context=st.integers(1, 5))
def test_a_diff_of_gnu_diff_applies_and_reverses_as_patch_does(data: st.DataObject, context: int) -> None:
    before: Tree = {path: (data.draw(texts), False) for path in SHARED}
    after: Tree = {path: (data.draw(edited(text)), False) for path, (text, _) in before.items()}
    before["pkg/gone.py"] = data.draw(texts.filter(bool)), False
    after["pkg/new.py"] = data.draw(texts.filter(bool)), False
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        write(base / "old", before)
        write(base / "new", after)
        diff = run(["diff", "-ruN", f"-U{context}", "--text", "old", "new"], base).stdout
        diffs = parsed(diff, strip=1)
        assert by_patchkit(before, diffs) == after
        assert by_patchkit(after, undone(diffs)) == before
        if all(text for text, _ in (before | after).values()):
            assert by_patch(base, before, diff, "-p1") == after
            assert by_patch(base, after, diff, "-p1", "-R") == before
        else:
            assert by_git(base, before, diff, "-p1") == after


STRICTER = ("places fit", "as stated and at line", "but only before hunk", "contradict")


@bounded(250)
@given(data=st.data(), context=st.integers(1, 4), reverse=st.booleans())
def test_on_a_changed_target_git_gives_the_same_bytes_or_the_engine_says_why_not(
    data: st.DataObject, context: int, reverse: bool
) -> None:
    if data.draw(st.booleans()):
        old = data.draw(repetitive)
        new = data.draw(moved(old))
        before, after, met = as_whole(old), as_whole(new), as_whole(data.draw(moved(new if reverse else old)))
    else:
        before = data.draw(texts)
        after = data.draw(edited(before))
        met = data.draw(edited(after if reverse else before))
    target: Tree = {"x.py": (met, False)}
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        diff = git_diff(base, {"x.py": (before, False)}, {"x.py": (after, False)}, f"-U{context}")
        if not diff:
            return
        diffs = without_sections(parsed(diff, strip=2))
        by_oracle = by_git(base, target, diff, "-p2", *(["-R"] if reverse else []))
        try:
            ours: Tree | str = by_patchkit(target, undone(diffs) if reverse else diffs)
        except DoesNotFit as error:
            ours = str(error)
        if ends_unended(diffs, reverse=reverse):
            return  # git may take such a last line for one in the middle, and glue the next line to it
        if isinstance(ours, str) and not isinstance(by_oracle, str):
            assert any(words in ours for words in STRICTER), (diff, target, ours)
        else:
            assert isinstance(ours, str) or ours == by_oracle, (diff, target)


def ends_unended(diffs: tuple[FileDiff, ...], *, reverse: bool) -> bool:
    """Whether a hunk is to be found by a last line without a newline."""
    sides = [hunk.new if reverse else hunk.old for diff in diffs for hunk in diff.hunks]
    return any(side and not side.endswith(b"\n") for side in sides)


@st.composite
def damaged(draw: st.DrawFn, diff: bytes) -> bytes:
    pieces = as_lines(diff)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, max(len(pieces) - 1, 0)))
        line = pieces[at] if pieces else b""
        match draw(st.integers(0, 8)):
            case 0:
                del pieces[at : at + 1]
            case 1:
                pieces.insert(at, line)
            case 2:
                pieces[at : at + 1] = [draw(lines)]
            case 3:
                pieces.insert(at, draw(st.sampled_from([b"+", b"-", b" ", b""])) + draw(lines))
            case 4:
                place = draw(st.integers(0, len(line)))
                pieces[at : at + 1] = [line[:place] + line[place + 1 :]]
            case 5:
                pieces = as_lines(diff[: draw(st.integers(0, len(diff)))])
            case 6:
                headers = [n for n, text in enumerate(pieces) if text.startswith(b"@@ -")]
                if headers:
                    number = draw(st.sampled_from(headers))
                    pieces[number] = changed_number(pieces[number], draw(st.integers(0, 3)), draw(st.integers(-2, 3)))
            case 7:
                other = draw(st.integers(0, max(len(pieces) - 1, 0)))
                if pieces:
                    pieces[at], pieces[other] = pieces[other], pieces[at]
            case 8:
                place = draw(st.integers(0, len(line)))
                pieces[at : at + 1] = [line[:place] + draw(st.binary(max_size=2)) + line[place:]]
    return b"".join(pieces)


def changed_number(header: bytes, which: int, by: int) -> bytes:
    parts = header.replace(b",", b" ").split(b" ")
    spots = [n for n, part in enumerate(parts) if part.lstrip(b"+-").isdigit()]
    if which >= len(spots):
        return header
    number = parts[spots[which]].lstrip(b"+-")
    return header.replace(number, b"%d" % max(0, int(number) + by), 1)


@bounded(300)
@given(data=st.data(), change=changes())
def test_damage_ends_in_an_error_or_in_what_git_makes_of_it(data: st.DataObject, change: tuple[Tree, Tree]) -> None:
    before, after = change
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        diff = data.draw(damaged(git_diff(base, before, after)))
        try:
            diffs = without_sections(parsed(diff, strip=2))
            ours = by_patchkit(before, diffs)
        except (PatchkitError, DoesNotFit):
            return
        assert ours == by_git(base, before, diff, "-p2"), diff
