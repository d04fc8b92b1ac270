"""What holds for every diff that is applied, on random trees and edits, by the whole command and beside git.

Revert after apply is the identity; apply twice is apply once; the fold of several patches is what git makes of them
one after the other, wherever patchkit does not refuse. PATCHKIT_EXAMPLES multiplies the number of examples.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from repositories import read_tree, unpack_wheel
from stages import BLOCK, Stage, make_stage, patch, sample_wheel
from test_differential import Tree, as_lines, bounded, by_git, changes, damaged, edited, git_diff, repetitive, texts

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is the oracle")

TOP, INIT = "some_dist", "some_dist/__init__.py"
PLACE = "x.cu"


@contextmanager
def stage_with(files: Tree, capture: Callable[[], Any]) -> Iterator[Stage]:
    """A stage with ``files``, none of which is Python's: random text does not compile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inside = {f"{TOP}/{renamed(path)}": entry for path, entry in files.items()}
        modes = {path: 0o755 if executable else 0o644 for path, (_, executable) in inside.items()}
        blobs = {path: data for path, (data, _) in inside.items()}
        wheel = sample_wheel(folder / "wheels", files={INIT: b"", **blobs}, modes=modes)
        yield make_stage(folder, unpack_wheel, capture, wheel)


def renamed(path: str) -> str:
    return path.removesuffix(".py") + ".txt" if path.endswith(".py") else path


def as_text_files(tree: Tree) -> Tree:
    return {renamed(path): entry for path, entry in tree.items()}


def look(stage: Stage) -> Tree:
    return {path.removeprefix(f"{TOP}/"): entry for path, entry in read_tree(stage.site).items() if path != INIT}


def variant(file: str) -> list[dict[str, Any]]:
    return [{"versions": ">=1", "file": file, "strip": 2, "directory": TOP}]


def times(stage: Stage) -> dict[str, int]:
    return {path: (stage.site / path).lstat().st_mtime_ns for path in stage.tree()}


@bounded(30)
@given(change=changes(), context=st.integers(1, 4))
def test_revert_after_apply_is_the_identity_and_apply_twice_is_apply_once(
    capfd: pytest.CaptureFixture[str], change: tuple[Tree, Tree], context: int
) -> None:
    before, after = map(as_text_files, change)
    with stage_with(before, capfd.readouterr) as stage, tempfile.TemporaryDirectory() as scratch:
        diff = git_diff(Path(scratch), before, after, f"-U{context}")
        if not diff:
            return
        stage.add("alpha", patch("law", diff, variant=variant("law.patch")))
        shipped = stage.tree()
        assert stage.actions("apply") == {"alpha/law": "applied"}
        assert look(stage) == after == by_git(Path(scratch), before, diff, "-p2")
        applied, when = stage.tree(), times(stage)
        assert stage.actions("apply") == {"alpha/law": "none"}
        assert (stage.tree(), times(stage)) == (applied, when)
        assert stage.states("verify") == {"alpha/law": "applied"}
        stage.run("revert", "--all").expect()
        assert stage.tree() == shipped


def without_headings(diff: bytes) -> bytes:
    """``diff`` with nothing behind the second @@: by that patchkit may decide, and git does not."""
    return re.sub(rb"(?m)^(@@ -\S+ \+\S+ @@).*$", rb"\1", diff)


@st.composite
def stacks(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """A text, and two or three changes as pairs of what they are made from and what they make of it.

    Each is made on top of the one before it, or from the text itself, as if it were alone.
    """
    base = b"".join(line for piece in draw(repetitive) for line in piece) if draw(st.booleans()) else draw(texts)
    made, top = [], base
    for _ in range(draw(st.integers(2, 3))):
        start = top if draw(st.integers(0, 2)) else base
        result = draw(edited(start, edits=2))
        made.append((start, result))
        top = result if start == top else top
    return base, made


@bounded(60)
@given(stack=stacks(), context=st.integers(1, 3), gone=st.integers(0, 2))
def test_the_fold_of_several_patches_is_what_git_makes_of_them_one_after_the_other(
    capfd: pytest.CaptureFixture[str], stack: tuple[bytes, list[tuple[bytes, bytes]]], context: int, gone: int
) -> None:
    base, made = stack
    pristine: Tree = {PLACE: (base, False)}
    with stage_with(pristine, capfd.readouterr) as stage, tempfile.TemporaryDirectory() as scratch:
        diffs: list[bytes] = []
        for number, (old, new) in enumerate(made):
            folder = Path(scratch, str(number))
            folder.mkdir()
            diffs.append(
                without_headings(git_diff(folder, {PLACE: (old, False)}, {PLACE: (new, False)}, f"-U{context}"))
            )
        named = [(f"p{number}", diff) for number, diff in enumerate(diffs) if diff]
        if not named:
            return
        stage.add("alpha", *(patch(name, diff, variant=variant(f"{name}.patch")) for name, diff in named))
        shipped = stage.tree()
        said = stage.run("apply", "--json")
        if said.exit_code == 5:
            event("refused")
            assert stage.tree() == shipped
            return
        event("applied")
        said.expect()
        if any(ends_unended(diff) for _, diff in named):
            event("git may glue lines")
        else:
            assert look(stage) == one_after_the_other(Path(scratch), pristine, [diff for _, diff in named])
        assert set(stage.actions("apply").values()) == {"none"}
        take_one_out(stage, Path(scratch), pristine, named, gone % len(named))
        stage.run("revert", "--all").expect()
        assert stage.tree() == shipped


def take_one_out(stage: Stage, scratch: Path, pristine: Tree, named: list[tuple[str, bytes]], gone: int) -> None:
    """Revert one of the patches: what is left is the fold of the others, or nothing was done."""
    before = stage.tree()
    said = stage.run("revert", f"alpha/{named[gone][0]}", "--json")
    if said.exit_code == 5:
        event("needed by another")
        assert stage.tree() == before
        return
    said.expect()
    rest = [diff for number, (_, diff) in enumerate(named) if number != gone]
    if not any(map(ends_unended, rest)):
        assert look(stage) == one_after_the_other(scratch, pristine, rest)


def ends_unended(diff: bytes) -> bool:
    """Whether git may take a last line without a newline for one in the middle, and glue the next line to it."""
    return any(marker.startswith(b"\\ ") and line[:1] != b"+" for line, marker in pairwise(as_lines(diff)))


def one_after_the_other(scratch: Path, tree: Tree, diffs: list[bytes]) -> Tree | str:
    for diff in diffs:
        done = by_git(scratch, tree, diff, "-p2")
        if isinstance(done, str):
            return done
        tree = done
    return tree


@bounded(60)
@given(data=st.data(), change=changes())
def test_a_damaged_diff_is_refused_or_does_what_git_makes_of_it(
    capfd: pytest.CaptureFixture[str], data: st.DataObject, change: tuple[Tree, Tree]
) -> None:
    before, after = map(as_text_files, change)
    with stage_with(before, capfd.readouterr) as stage, tempfile.TemporaryDirectory() as scratch:
        diff = without_headings(data.draw(damaged(git_diff(Path(scratch), before, after))))
        stage.add("alpha", patch("law", diff, variant=variant("law.patch")))
        shipped = stage.tree()
        said = stage.run("apply")
        event(f"exit {said.exit_code}")
        assert said.exit_code in (0, 3, 5), said
        if said.exit_code:
            assert stage.tree() == shipped
            assert "error: " in said.err and "Traceback" not in said.err
            return
        assert look(stage) == by_git(Path(scratch), before, diff, "-p2"), diff
        stage.run("revert", "--all").expect()
        assert stage.tree() == shipped


# ---- stricter than git, case by case ---------------------------------------------------------------------------

FOUR = b"import sys\n\n" + b"".join(BLOCK) * 4
TOP_LINES = b"import sys\n" + b"new = 0\n" * len(BLOCK) + b"\n" + b"".join(BLOCK) * 4


def in_block(number: int, text: bytes) -> bytes:
    """``text`` (`FOUR`, or with lines put in above) with a line put into one of its four blocks."""
    lines = text.splitlines(keepends=True)
    at = len(lines) - len(BLOCK) * (5 - number) + 4
    return b"".join([*lines[:at], b"put in = 1\n", *lines[at:]])


def diff_between(scratch: Path, old: bytes, new: bytes) -> bytes:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    return without_headings(git_diff(folder, {PLACE: (old, False)}, {PLACE: (new, False)}))


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("made_from", ["what was shipped", "the patch below"])
def test_where_git_goes_by_the_line_number_alone_among_equal_blocks_patchkit_refuses(
    made_from: str, number: int, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pristine: Tree = {PLACE: (FOUR, False)}
    start = FOUR if made_from == "what was shipped" else TOP_LINES
    lower, upper = diff_between(tmp_path, FOUR, TOP_LINES), diff_between(tmp_path, start, in_block(number, start))
    by_oracle = one_after_the_other(tmp_path, pristine, [lower, upper])
    assert by_oracle != one_after_the_other(tmp_path, pristine, [lower]) and not isinstance(by_oracle, str)
    with stage_with(pristine, capfd.readouterr) as stage:
        for name, diff in (("lower", lower), ("upper", upper)):
            stage.add("alpha-" + name, patch(name, diff, variant=variant(f"{name}.patch")))
        before = stage.tree()
        said = stage.json("apply", exit_code=5)
        assert "alpha-upper/upper" in said["error"]["message"]
        assert "as stated and at line" in said["error"]["message"]
        assert stage.tree() == before
