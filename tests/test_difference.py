"""Diffs that patchkit makes: git applies them as patchkit does, and both give the edited tree byte for byte."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.difference import changed_paths, is_binary, make_diff, reproduces
from patchkit.errors import PatchkitError, Unpatchable
from patchkit.installed import Content
from patchkit.noise import is_noise
from repositories import apply_with_git, read_tree, write_tree
from stages import LINES
from stages import make_diff as diff_of_git
from worlds import find_wheel

Blobs = Mapping[str, bytes]


def contents(files: Blobs, executable: frozenset[str] = frozenset()) -> dict[str, Content]:
    return {path: Content(data, 0o755 if path in executable else 0o644) for path, data in files.items()}


def by_git(diff: bytes, files: Mapping[str, Content]) -> dict[str, tuple[bytes, bool]]:
    """What the real git makes of ``files`` with ``diff``."""
    root = Path(mkdtemp(prefix="apply-", dir=os.environ["HOME"]))
    blobs = {path: content.data for path, content in files.items()}
    write_tree(root, blobs, {path: content.mode for path, content in files.items()})
    return apply_with_git(root, diff)


def shown(files: Mapping[str, Content]) -> dict[str, tuple[bytes, bool]]:
    return {path: (content.data, content.executable) for path, content in sorted(files.items())}


WHOLE = b"".join(LINES)
CASES: dict[str, tuple[Blobs, Blobs]] = {
    "one line": ({"a.py": WHOLE}, {"a.py": WHOLE.replace(b"= 20\n", b"= 'twenty'\n")}),
    "the first and the last": ({"a": WHOLE}, {"a": b"0\n" + WHOLE[len(LINES[0]) :] + b"end\n"}),
    "two far apart": ({"a": WHOLE}, {"a": WHOLE.replace(b"= 3\n", b"= 33\n").replace(b"= 33\n", b"= 3\n", 1) + b"x\n"}),
    "created": ({}, {"d/a.py": b"a = 1\n"}),
    "created empty": ({}, {"d/__init__.py": b""}),
    "deleted": ({"d/a.py": b"a = 1\n"}, {}),
    "deleted empty": ({"d/a.py": b""}, {}),
    "emptied": ({"a": WHOLE}, {"a": b""}),
    "filled": ({"a": b""}, {"a": WHOLE}),
    "no newline before": ({"a": b"a\nb"}, {"a": b"a\nb\n"}),
    "no newline after": ({"a": b"a\nb\n"}, {"a": b"a\nb"}),
    "no newline on either side": ({"a": b"a\nb"}, {"a": b"c\nb"}),
    "crlf": ({"a": b"a\r\nb\r\nc\r\n"}, {"a": b"a\r\nB\r\nc\r\n"}),
    "crlf to lf": ({"a": b"a\r\nb\r\n"}, {"a": b"a\nb\n"}),
    "a lone cr": ({"a": b"a\rb\nc\n"}, {"a": b"a\rB\nc\n"}),
    "not utf-8": ({"a": b"caf\xe9\nb\n"}, {"a": b"caf\xe9\nB\xff\xfe\n"}),
    "form feed and separators": ({"a": b"a\x0c\x1c\x85\nb\n"}, {"a": b"a\x0c\x1c\x85\nB\xe2\x80\xa8\n"}),
    "lines that look like a diff": ({"a": b"--- a\n+++ b\n@@ -1 +1 @@\n"}, {"a": b"--- a\n+++ c\n@@ -1 +1 @@\n-- x\n"}),
    "spaces in the path": ({"a dir/b c.py": b"1\n"}, {"a dir/b c.py": b"2\n", "a dir/d e.py": b"3\n"}),
    "other letters in the path": ({"\u00e4/\u65e5.py": b"1\n"}, {"\u00e4/\u65e5.py": b"2\n"}),
    "quotes and tabs in the path": ({'a"b\tc.py': b"1\n"}, {'a"b\tc.py': b"2\n"}),
    "a moved block": ({"a": b"".join(LINES[:20])}, {"a": b"".join([*LINES[10:20], *LINES[:10]])}),
    "everything anew": ({"a": WHOLE}, {"a": b"".join(b"new %d\n" % number for number in range(50))}),
    "equal blocks": ({"a": b"x = 1\n\n\n" * 40}, {"a": b"x = 1\n\n\n" * 19 + b"x = 2\n\n\n" + b"x = 1\n\n\n" * 20}),
    "renamed": ({"d/a.py": WHOLE}, {"d/b.py": WHOLE}),
    "renamed and changed": ({"d/a.py": WHOLE}, {"e/a.py": WHOLE.replace(b"= 3\n", b"= 33\n")}),
    "renamed with spaces and letters": ({'a b/"c.py': WHOLE}, {"\u00e4 d\te.py": WHOLE + b"end\n"}),
    "two that changed names": ({"a.py": WHOLE, "b.py": WHOLE * 2}, {"c.py": WHOLE * 2, "d.py": WHOLE}),
    "a new file in the place of a renamed one": ({"a.py": WHOLE}, {"a.py": b"from b import *\n", "b.py": WHOLE}),
    "gone and new, and not alike": ({"a.py": WHOLE}, {"b.py": b"b = 1\n" * 60}),
    "several": ({"a": WHOLE, "b": WHOLE, "c": b"1\n"}, {"a": WHOLE[:-5], "b": WHOLE + b"b\n", "d": b"1\n"}),
}


@pytest.mark.parametrize("case", CASES)
def test_git_makes_the_edited_tree_of_the_diff(case: str) -> None:
    before, after = (contents(files) for files in CASES[case])
    diff = make_diff(before, after)
    assert reproduces(diff, before, after)
    assert by_git(diff, before) == shown(after)


def test_the_executable_bit_is_part_of_a_diff_and_other_bits_are_not() -> None:
    before = contents({"a": b"1\n", "b": b"1\n", "c": b"1\n"}, frozenset("b"))
    after = contents({"a": b"1\n", "b": b"2\n", "c": b"1\n", "new": b""}, frozenset(["a", "new"]))
    assert changed_paths(before, after) == ("a", "b", "new")
    assert by_git(make_diff(before, after), before) == shown(after)
    assert make_diff({"a": Content(b"1\n", 0o644)}, {"a": Content(b"1\n", 0o600)}) == b""


@pytest.mark.parametrize("case", ["the first and the last", "emptied", "filled", "no newline after", "crlf"])
def test_a_simple_diff_is_the_one_that_git_makes_but_for_its_hashes(case: str) -> None:
    before, after = CASES[case]
    of_git = diff_of_git(before, after)
    plain = b"".join(line for line in of_git.splitlines(keepends=True) if not line.startswith(b"index "))
    assert make_diff(contents(before), contents(after)) == plain


@pytest.mark.parametrize(
    "case", ["renamed", "renamed and changed", "two that changed names", "gone and new, and not alike"]
)
def test_a_rename_is_found_where_git_finds_one(case: str) -> None:
    before, after = CASES[case]
    of_git, made = diff_of_git(before, after), make_diff(contents(before), contents(after))
    told = [
        [line for line in diff.splitlines() if line.startswith((b"rename ", b"new ", b"del"))]
        for diff in (of_git, made)
    ]
    assert sorted(told[0]) == sorted(told[1]) and of_git.count(b"similarity index 100%") == made.count(b" index 100%")


def test_a_rename_with_a_mode_has_both() -> None:
    before, after = contents({"a.sh": WHOLE}), contents({"b.sh": WHOLE + b"end\n"}, frozenset({"b.sh"}))
    diff = make_diff(before, after)
    assert by_git(diff, before) == shown(after) and diff.count(b"diff --git") == 1


def test_names_that_differ_in_letter_case_alone_are_refused() -> None:
    with pytest.raises(Unpatchable, match=r"d/Mod\.py and d/mod\.py differ in letter case alone"):
        make_diff(contents({"d/Mod.py": WHOLE}), contents({"d/mod.py": WHOLE}))


def test_a_hunk_gets_as_much_context_as_tells_its_place_and_the_name_of_its_function() -> None:
    block = b"".join(b"    if x:\n        y = %d\n    z()\n\n" % (number // 3) for number in range(9))
    before = b"def one():\n" + block + b"def two():\n" + block
    place = before.rindex(b"y = 1")
    after = before[:place] + b"y = 'one'" + before[place + 5 :]
    diff = make_diff(contents({"a.py": before}), contents({"a.py": after}))
    hunk = diff[diff.index(b"@@") :]
    lines = hunk.splitlines(keepends=True)[1:]
    old = b"".join(line[1:] for line in lines if line[:1] in b" -")
    assert len(lines) > 8 and before.count(old) == 2 and before[before.index(b"def two") :].count(old) == 1
    assert hunk.splitlines()[0].endswith(b"@@ def two():")


def test_binary_files_are_refused_each_by_name() -> None:
    before = contents({"a.so": b"\x7fELF\0\1", "gone.bin": b"\0", "same.bin": b"\0", "text.py": b"1\n"})
    after = contents({"a.so": b"\x7fELF\0\2", "new.png": b"\x89PNG\0", "same.bin": b"\0", "text.py": b"2\n"})
    with pytest.raises(PatchkitError) as raised:
        make_diff(before, after)
    assert [type(error) for error in raised.value.all()] == [Unpatchable] * 3
    for name, verb in (("a.so", "changed"), ("gone.bin", "deleted"), ("new.png", "added")):
        assert any(name in each.message and verb in each.message for each in raised.value.all())


def test_a_binary_file_is_what_git_calls_one() -> None:
    assert is_binary(b"a" * 7999 + b"\0") and not is_binary(b"a" * 8000 + b"\0") and not is_binary(b"\xff\xfe\x01")


# ---- any edit -------------------------------------------------------------------------------------------------

_LINE = st.sampled_from(
    [b"a\n", b"b\n", b"\n", b"    pass\n", b"}\n", b"c\r\n", b"\xff\n", b"-- x\n", b"+++ y\n", b"\\ z\n"]
)
_TEXT = st.builds(
    lambda lines, rest: b"".join(lines) + rest, st.lists(_LINE, max_size=40), st.sampled_from([b"", b"", b"end"])
)


@settings(max_examples=300)
@given(before=_TEXT, after=_TEXT)
def test_whatever_the_edit_the_diff_gives_it_back(before: bytes, after: bytes) -> None:
    old, new = contents({"a.py": before}), contents({"a.py": after})
    diff = make_diff(old, new)
    assert (diff == b"") is (before == after)
    assert not diff or reproduces(diff, old, new)


@settings(max_examples=25)
@given(before=_TEXT, after=_TEXT)
def test_git_agrees_on_any_edit(before: bytes, after: bytes) -> None:
    old, new = contents({"a.py": before}), contents({"a.py": after})
    if diff := make_diff(old, new):
        assert by_git(diff, old) == shown(new)


def test_a_wrong_diff_is_found_out() -> None:
    before, after = contents({"a": WHOLE}), contents({"a": WHOLE.replace(b"= 20\n", b"= 21\n")})
    diff = make_diff(before, after)
    assert not reproduces(diff, before, contents({"a": WHOLE}))
    assert not reproduces(diff, before, {**after, "b": Content(b"", 0o644)})
    assert not reproduces(diff.replace(b"+line_20 = 21", b"+line_20 = 22"), before, after)
    assert not reproduces(b"not a diff", before, after)


def test_the_difference_of_two_releases_of_flashinfer_is_applied_by_git(tmp_path: Path) -> None:
    def code(version: str) -> dict[str, Content]:
        with zipfile.ZipFile(find_wheel("flashinfer-python", version)) as archive:
            names = [name for name in archive.namelist() if name.endswith(".py")]
            return contents({name: archive.read(name) for name in names})

    before, after = code("0.6.3"), code("0.6.4")
    diff = make_diff(before, after)
    assert diff.count(b"\ndiff --git ") > 40
    root = write_tree(tmp_path / "git", {path: content.data for path, content in before.items()})
    assert apply_with_git(root, diff) == shown(after) == read_tree(root)


# ---- noise ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "d/__pycache__/a.cpython-311.pyc", "d/.DS_Store", "d/a.py.orig", "a.rej", "d/a.py~", "d/.a.py.swp", "d/#a.py#",
        "d/.#a.py", ".git/config", "d/.idea/x.xml", ".vscode/settings.json", "d/a.pyc", "d/Thumbs.db", "a.BAK",
    ],
)  # fmt: skip
def test_what_programs_leave_behind_is_noise(path: str) -> None:
    assert is_noise(path)


@pytest.mark.parametrize(
    "path", ["d/a.py", "original.py", "d/rejected.txt", "git/config.py", "d/data.tmpl", "d/.hidden"]
)
def test_what_people_write_is_none(path: str) -> None:
    assert not is_noise(path)
