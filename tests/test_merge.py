"""Three-way merges of lines, with git merge-file as the oracle; and of the files of a patch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.installed import Content
from patchkit.merge import Taken, merge
from patchkit.model import EntryKind, FileDiff
from patchkit.treemerge import FileMerge, Sides, merge_trees
from worlds import Finished

LINES = tuple(b"line %d\n" % number for number in range(12))


def git_merge(git: Callable[..., Finished], folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[int, bytes]:
    """What git makes of the three, and how many conflicts it finds."""
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(data)
    ended = git("merge-file", "-p", "-L", "ours", "-L", "base", "-L", "theirs", "ours", "base", "theirs", cwd=folder)
    assert 0 <= ended.exit_code < 128, ended.err
    return ended.exit_code, ended.out.encode()


def edited(changes: dict[int, bytes], lines: tuple[bytes, ...] = LINES) -> bytes:
    """``lines`` with some of them replaced (b"": removed)."""
    return b"".join(changes.get(number, line) for number, line in enumerate(lines))


CASES = {
    "apart": ({2: b"ours\n"}, {8: b"theirs\n"}),
    "the same": ({2: b"both\n"}, {2: b"both\n"}),
    "one of two is there": ({2: b"both\n", 8: b"ours\n"}, {2: b"both\n"}),
    "the same line": ({2: b"ours\n"}, {2: b"theirs\n"}),
    "neighbours": ({2: b"ours\n"}, {3: b"theirs\n"}),
    "one line between": ({2: b"ours\n"}, {4: b"theirs\n"}),
    "removed and changed": ({5: b""}, {5: b"theirs\n"}),
    "removed by both": ({5: b""}, {5: b""}),
    "inserted at one place": ({4: LINES[4] + b"ours\n"}, {4: LINES[4] + b"theirs\n"}),
    "begins alike": ({4: b"both\nours\nend\n"}, {4: b"both\ntheirs\nend\n"}),
    "at the begin and the end": ({0: b"ours\n" + LINES[0]}, {11: LINES[11] + b"theirs\n"}),
    "no newline at the end": ({11: b"ours"}, {1: b"theirs\n"}),
    "no newline, a conflict": ({11: b"ours"}, {11: b"theirs"}),
    "nothing": ({}, {3: b"theirs\n"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_merge_is_what_git_makes_of_it(name: str, git: Callable[..., Finished], tmp_path: Path) -> None:
    ours, theirs = (edited(changes) for changes in CASES[name])
    conflicts, text = git_merge(git, tmp_path, b"".join(LINES), ours, theirs)
    merged = merge(b"".join(LINES), ours, theirs)
    assert merged.render("ours", "theirs") == text
    assert merged.clean == (conflicts == 0)


def test_lines_that_end_in_crlf_get_markers_that_do(git: Callable[..., Finished], tmp_path: Path) -> None:
    base, ours, theirs = (text.replace(b"\n", b"\r\n") for text in (b"a\nb\nc\n", b"a\nours\nc\n", b"a\ntheirs\nc\n"))
    _, text = git_merge(git, tmp_path, base, ours, theirs)
    assert merge(base, ours, theirs).render("ours", "theirs") == text


edits = st.dictionaries(st.integers(0, 11), st.sampled_from([b"", b"x\n", b"y\n", b"x\ny\n", b"z"]), max_size=4)


@settings(max_examples=60)
@given(ours=edits, theirs=edits)
def test_edits_of_lines_that_occur_once_merge_as_git_merges_them(
    ours: dict[int, bytes],
    theirs: dict[int, bytes],
    git: Callable[..., Finished],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base, own, other = b"".join(LINES), edited(ours), edited(theirs)
    conflicts, text = git_merge(git, tmp_path_factory.mktemp("merge"), base, own, other)
    merged = merge(base, own, other)
    assert merged.clean == (conflicts == 0)
    if merged.clean:
        assert merged.render("ours", "theirs") == text


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_side_that_changed_nothing_or_the_same_gives_way(base: bytes, new: bytes) -> None:
    for merged in (merge(base, new, base), merge(base, base, new), merge(base, new, new)):
        assert merged.clean and merged.render("a", "b") == new


def test_what_was_taken_from_whom_is_counted() -> None:
    ours, theirs = edited({1: b"both\n", 4: b"ours\n"}), edited({1: b"both\n", 8: b"theirs\n"})
    merged = merge(b"".join(LINES), ours, theirs)
    assert [merged.count(taken) for taken in (Taken.OURS, Taken.THEIRS, Taken.BOTH, Taken.CONFLICT)] == [1, 1, 1, 0]


# ---- the files of a patch -------------------------------------------------------------------------------------


def plain(data: bytes) -> Content:
    return Content(data, 0o644)


def merge_one(
    diff: FileDiff,
    base: dict[str, Content | None],
    ours: dict[str, Content | None],
    theirs: dict[str, Content],
    home: str | None = None,
) -> tuple[FileMerge, dict[str, Content | None]]:
    merged = merge_trees([diff], Sides(base, ours, theirs.get, lambda _: home, "ours", "theirs"))
    return merged.files[0], dict(merged.after)


def entry(kind: EntryKind, old: str | None, new: str | None) -> FileDiff:
    return FileDiff(line=1, kind=kind, old=old, new=new)


def test_a_created_file_stays_is_there_or_conflicts() -> None:
    diff, ours = entry(EntryKind.CREATE, None, "a"), {"a": plain(b"new\n")}
    assert merge_one(diff, {"a": None}, ours, {})[0].kept == 1
    assert merge_one(diff, {"a": None}, ours, {"a": plain(b"new\n")})[0].there == 1
    assert merge_one(diff, {"a": None}, ours, {"a": plain(b"other\n")})[0].conflicts == 1


def test_a_deleted_file_is_deleted_again_unless_the_new_version_changed_it() -> None:
    diff, base, ours = entry(EntryKind.DELETE, "a", None), {"a": plain(b"old\n")}, {"a": None}
    file, after = merge_one(diff, base, ours, {"a": plain(b"old\n")})
    assert file.kept == 1 and after == {"a": None}
    file = merge_one(diff, base, ours, {})[0]
    assert (file.there, file.gone) == (0, 1)
    assert "changed it" in merge_one(diff, base, ours, {"a": plain(b"more\n")})[0].problem


def test_a_rename_takes_what_the_new_version_changed_along() -> None:
    diff = entry(EntryKind.RENAME, "a", "b")
    base, ours = {"a": plain(b"1\n2\n3\n")}, {"a": None, "b": plain(b"1\n2\nours\n")}
    file, after = merge_one(diff, base, ours, {"a": plain(b"theirs\n2\n3\n")})
    assert file.clean and after == {"b": plain(b"theirs\n2\nours\n"), "a": None}
    file, after = merge_one(diff, base, ours, {"b": plain(b"1\n2\n3\n")})
    assert file.clean and file.there == 1 and after["b"] == plain(b"1\n2\nours\n")
    assert "neither exists" in merge_one(diff, base, ours, {})[0].problem
    assert "both exist" in merge_one(diff, base, ours, {"a": plain(b""), "b": plain(b"")})[0].problem


def test_an_executable_bit_that_the_patch_sets_stays_set() -> None:
    diff = entry(EntryKind.MODIFY, "a", "a")
    ours = {"a": Content(b"1\n", 0o755)}
    file, after = merge_one(diff, {"a": plain(b"1\n")}, ours, {"a": plain(b"1\n2\n")})
    assert file.kept == 1 and after == {"a": Content(b"1\n2\n", 0o755)}
    assert merge_one(diff, {"a": plain(b"1\n")}, ours, {"a": Content(b"1\n", 0o755)})[0].there == 1


def test_a_file_that_moved_is_followed_and_one_that_is_gone_is_said_to_be() -> None:
    diff, base, ours = entry(EntryKind.MODIFY, "a", "a"), {"a": plain(b"1\n2\n3\n")}, {"a": plain(b"1\nours\n3\n")}
    file, after = merge_one(diff, base, ours, {"b": plain(b"0\n1\n2\n3\n")}, home="b")
    assert file.clean and (file.old, file.path) == ("a", "b") and after == {"b": plain(b"0\n1\nours\n3\n")}
    assert "no such file" in merge_one(diff, base, ours, {"b": plain(b"")})[0].problem
