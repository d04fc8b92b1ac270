"""Which diffs are read, what they are taken to mean, and which are refused, with line and words."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.diff import _cross_check, read_diff
from patchkit.entries import MAX_BYTES, MAX_ENTRIES, MAX_LINES, read_entries
from patchkit.errors import (
    BinaryDiff,
    CopyDiff,
    DiffError,
    DiffTooLarge,
    DuplicateEntry,
    EmptyDiff,
    ExitCode,
    MalformedDiff,
    NoContext,
    Several,
    SubmoduleDiff,
    SymlinkDiff,
    TrailingText,
    UnsafePath,
)
from patchkit.model import DiffText, EntryKind, FileDiff
from patchkit.paths import LONGEST_PATH, matches

HUNK = b"@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
PLAIN = b"--- a/pkg/m.py\n+++ b/pkg/m.py\n" + HUNK
EMPTY_BLOB = b"e69de29"
NO_NEWLINE = b"\\ No newline at end of file\n"


def read(
    data: bytes,
    *,
    strip: int = 1,
    directory: str = "",
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
) -> tuple[FileDiff, ...]:
    text = DiffText("", strip=strip, directory=directory, include=include, exclude=exclude)
    return read_diff(data, text, file="x.patch")


def read_one(data: bytes, **options: object) -> FileDiff:
    (diff,) = read(data, **options)  # type: ignore[arg-type]
    return diff


def refused(data: bytes, error: type[DiffError], *, line: int, says: str, **options: object) -> DiffError:
    with pytest.raises(error) as caught:
        read(data, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code is ExitCode.PATCH_SET
    assert caught.value.line == line, caught.value.message
    assert caught.value.message.startswith(f"x.patch:{line}: ")
    assert says in caught.value.message
    return caught.value


def git(*lines: str, name: str = "pkg/m.py", rest: bytes = b"") -> bytes:
    head = f"diff --git a/{name} b/{name}\n" + "".join(line + "\n" for line in lines)
    return head.encode() + rest


# ---- what is read ---------------------------------------------------------------------------------------------


def test_a_plain_diff_modifies_and_its_hunk_has_both_sides() -> None:
    diff = read_one(b"free text\n\n" + PLAIN)
    assert (diff.kind, diff.old, diff.new, diff.line) == (EntryKind.MODIFY, "pkg/m.py", "pkg/m.py", 3)
    (hunk,) = diff.hunks
    assert (hunk.old, hunk.new) == (b"one\ntwo\nthree\n", b"one\nTWO\nthree\n")
    assert (hunk.number, hunk.source_line, hunk.leading, hunk.trailing, hunk.added, hunk.removed) == (1, 5, 1, 1, 1, 1)
    assert diff.executable is None
    assert diff.was_executable is None
    assert diff.without_cr is None


def test_a_git_diff_with_an_index_line_modifies_and_states_no_mode() -> None:
    diff = read_one(git("index 1234567..89abcde 100755", rest=PLAIN))
    assert diff.kind is EntryKind.MODIFY
    assert diff.executable is None


def test_a_section_heading_is_kept_as_bytes() -> None:
    heading = b"def f(self, \xff\x0c\x85):"
    diff = read_one(PLAIN.replace(b" @@\n", b" @@ " + heading + b"\n"))
    assert diff.hunks[0].section == heading


@pytest.mark.parametrize(
    "data",
    [
        git(
            "new file mode 100755", "index 0000000..1234567", rest=b"--- /dev/null\n+++ b/pkg/m.py\n@@ -0,0 +1 @@\n+x\n"
        ),
        b"--- /dev/null\n+++ b/pkg/m.py\n@@ -0,0 +1 @@\n+x\n",
        b"--- a/pkg/m.py\t1970-01-01 00:00:00.000000000 +0000\n+++ b/pkg/m.py\t2024-05-06 07:08:09.1 +0200\n"
        b"@@ -0,0 +1 @@\n+x\n",
        b"--- a/pkg/m.py\t1969-12-31 19:00:00.000000000 -0500\n+++ b/pkg/m.py\n@@ -0,0 +1 @@\n+x\n",
        b"--- a/pkg/m.py\t(nonexistent)\n+++ b/pkg/m.py\t(working copy)\n@@ -0,0 +1 @@\n+x\n",
        b"--- a/pkg/m.py\t1970-01-01 05:30:00 +0530\n+++ b/pkg/m.py\n@@ -0,0 +1 @@\n+x\n",
    ],
)
def test_an_absent_old_side_creates(data: bytes) -> None:
    diff = read_one(data)
    assert (diff.kind, diff.old, diff.new) == (EntryKind.CREATE, None, "pkg/m.py")
    assert diff.hunks[0].new == b"x\n"
    assert diff.executable is (True if data.startswith(b"diff") else None)


def test_an_empty_file_that_gets_content_is_modified_not_created() -> None:
    diff = read_one(b"--- a/pkg/m.py\t2024-01-01 00:00:00\n+++ b/pkg/m.py\n@@ -0,0 +1 @@\n+x\n")
    assert (diff.kind, diff.old) == (EntryKind.MODIFY, "pkg/m.py")


def test_the_epoch_as_time_stamp_of_a_side_with_lines_means_nothing() -> None:
    stamp = b"\t1970-01-01 00:00:00.000000000 +0000"
    data = b"--- a/pkg/m.py" + stamp + b"\n+++ b/pkg/m.py" + stamp + b"\n" + HUNK
    assert read_one(data).kind is EntryKind.MODIFY


@pytest.mark.parametrize("stamp", [b"1970-01-01 00:00:01 +0000", b"1970-01-01 00:00:00 +0100", b"1970-99-99 00:00:00"])
def test_another_time_stamp_does_not_make_a_side_absent(stamp: bytes) -> None:
    assert read_one(b"--- a/m\t" + stamp + b"\n+++ b/m\n@@ -0,0 +1 @@\n+x\n").kind is EntryKind.MODIFY


def test_an_absent_new_side_deletes() -> None:
    rest = b"--- a/pkg/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    diff = read_one(git("deleted file mode 100755", "index 1234567..0000000", rest=rest))
    assert (diff.kind, diff.old, diff.new) == (EntryKind.DELETE, "pkg/m.py", None)
    assert diff.was_executable is True
    assert read_one(rest).kind is EntryKind.DELETE


def test_an_empty_file_is_created_and_deleted_without_hunks() -> None:
    created = read_one(git("new file mode 100644", f"index 0000000..{EMPTY_BLOB.decode()}"))
    assert (created.kind, created.new, created.hunks, created.executable) == (EntryKind.CREATE, "pkg/m.py", (), False)
    deleted = read_one(git("deleted file mode 100644", f"index {EMPTY_BLOB.decode()}..0000000"))
    assert (deleted.kind, deleted.old, deleted.new) == (EntryKind.DELETE, "pkg/m.py", None)


def test_a_rename_has_two_paths_and_perhaps_hunks() -> None:
    pure = read_one(
        b"diff --git a/pkg/m.py b/pkg/n o.py\nsimilarity index 100%\nrename from pkg/m.py\nrename to pkg/n o.py\n"
    )
    assert (pure.kind, pure.old, pure.new, pure.hunks) == (EntryKind.RENAME, "pkg/m.py", "pkg/n o.py", ())
    edited = read_one(
        b"diff --git a/pkg/m.py b/pkg/n.py\nold mode 100644\nnew mode 100755\nsimilarity index 80%\n"
        b"rename from pkg/m.py\nrename to pkg/n.py\nindex 1234567..89abcde\n--- a/pkg/m.py\n+++ b/pkg/n.py\n" + HUNK
    )
    assert (edited.old, edited.new, edited.executable) == ("pkg/m.py", "pkg/n.py", True)
    assert len(edited.hunks) == 1
    back = edited.reversed()
    assert (back.old, back.new, back.executable) == ("pkg/n.py", "pkg/m.py", False)


@pytest.mark.parametrize(("old", "new", "executable"), [("100644", "100755", True), ("100755", "100644", False)])
def test_a_change_of_the_executable_bit_is_an_entry_of_its_own(old: str, new: str, executable: bool) -> None:
    diff = read_one(git(f"old mode {old}", f"new mode {new}"))
    assert (diff.kind, diff.executable, diff.was_executable) == (EntryKind.MODIFY, executable, not executable)


@pytest.mark.parametrize(
    ("mode", "executable"), [("100664", False), ("100600", False), ("100775", True), ("100700", True)]
)
def test_any_regular_mode_counts_by_the_owners_executable_bit(mode: str, executable: bool) -> None:
    assert read_one(git(f"new file mode {mode}")).executable is executable


def test_several_files_and_hunks_come_in_order() -> None:
    second = b"@@ -10,2 +10,3 @@ def f():\n a\n+b\n c\n"
    diffs = read(PLAIN + second + git("old mode 100644", "new mode 100755", name="pkg/n.py"))
    assert [diff.path for diff in diffs] == ["pkg/m.py", "pkg/n.py"]
    assert [hunk.old_start for hunk in diffs[0].hunks] == [1, 10]
    assert diffs[0].hunks[1].section == b"def f():"


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        (b"-a\n\\ No newline at end of file\n+a\n", b"a", b"a\n"),
        (b"-a\n+a\n\\ No newline at end of file\n", b"a\n", b"a"),
        (b"-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", b"a", b"b"),
        (b"-a\n\\ Kein Zeilenumbruch am Dateiende.\n+b\n\\ No newline at end of file", b"a", b"b"),
    ],
)
def test_a_missing_newline_at_the_end_is_told_for_each_side(body: bytes, old: bytes, new: bytes) -> None:
    (hunk,) = read_one(b"--- a/m\n+++ b/m\n@@ -1 +1 @@\n" + body).hunks
    assert (hunk.old, hunk.new) == (old, new)


def test_a_context_line_without_newline_ends_both_sides() -> None:
    (hunk,) = read_one(b"--- a/m\n+++ b/m\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n").hunks
    assert (hunk.old, hunk.new) == (b"a\nc", b"b\nc")


@pytest.mark.parametrize(
    "line",
    [b"\xef\xbb\xbfbom", b"\xff\xfe", b"form\x0cfeed", b"lone\rcr", b"crlf\r", b"\x85", b"\xe2\x80\xa8", b"x" * 100_000,
     b"\x1c\x1d\x1e", b"\0", b"-- ", b"++ b/x"],
)  # fmt: skip
def test_the_bytes_of_a_line_are_kept_whatever_they_are(line: bytes) -> None:
    (hunk,) = read_one(b"--- a/m\n+++ b/m\n@@ -1,2 +1,2 @@\n-" + line + b"\n+" + line + b"!\n " + line + b"\n").hunks
    assert (hunk.old, hunk.new) == (line + b"\n" + line + b"\n", line + b"!\n" + line + b"\n")


def test_an_empty_context_line_may_have_lost_its_space() -> None:
    (hunk,) = read_one(b"--- a/m\n+++ b/m\n@@ -1,3 +1,3 @@\n\n-two\n+TWO\n\n").hunks
    assert (hunk.old, hunk.leading, hunk.trailing) == (b"\ntwo\n\n", 1, 1)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (b"a/pkg/with space.py\t", b"b/pkg/with space.py\t", "pkg/with space.py"),
        (rb'"a/pkg/d\303\251j\303\240.py"', rb'"b/pkg/d\303\251j\303\240.py"', "pkg/d\u00e9j\u00e0.py"),
        (rb'"a/pkg/\"q\"\tt.py"', rb'"b/pkg/\"q\"\tt.py"', 'pkg/"q"\tt.py'),
        (b"a/pkg/m.py 2024-01-02 03:04:05.678 +0100", b"b/pkg/m.py 2024-01-02 03:04:05.678 +0100", "pkg/m.py"),
        ("a/pkg/\u00e9.py".encode(), "b/pkg/\u00e9.py".encode(), "pkg/\u00e9.py"),
        (b"x/pkg/m.py.orig", b"y/pkg/m.py", "pkg/m.py"),
        (b"x/pkg/m.py~", b"y/pkg/m.py", "pkg/m.py"),
    ],
)
def test_a_path_may_have_spaces_quotes_and_a_time_stamp(old: bytes, new: bytes, path: str) -> None:
    assert read_one(b"--- " + old + b"\n+++ " + new + b"\n" + HUNK).paths == (path,)


@pytest.mark.parametrize(
    "headline",
    [
        b"a/pkg/a b/c d.py b/pkg/a b/c d.py",
        b'"a/pkg/a b/c d.py" "b/pkg/a b/c d.py"',
        b'a/pkg/a b/c d.py "b/pkg/a b/c d.py"',
        b"before/pkg/a b/c d.py b/pkg/a b/c d.py",
    ],
)
def test_the_name_in_a_git_line_is_found_among_spaces(headline: bytes) -> None:
    data = b"diff --git " + headline + b"\nold mode 100644\nnew mode 100755\n"
    assert read_one(data).path == "pkg/a b/c d.py"


def test_strip_counts_components_and_directory_is_put_in_front() -> None:
    assert read_one(b"--- pkg/m.py\n+++ pkg/m.py\n" + HUNK, strip=0).path == "pkg/m.py"
    assert (
        read_one(b"--- a/src/pkg/m.py\n+++ b/src/pkg/m.py\n" + HUNK, strip=2, directory="top/data").path
        == "top/data/pkg/m.py"
    )
    renamed = read_one(
        b"diff --git a/src/m.py b/src/n.py\nsimilarity index 100%\nrename from src/m.py\nrename to src/n.py\n", strip=2
    )
    assert renamed.paths == ("m.py", "n.py")


def test_dev_null_is_never_stripped() -> None:
    assert read_one(b"--- /dev/null\n+++ b/src/pkg/m.py\n@@ -0,0 +1 @@\n+x\n", strip=2, directory="d").paths == (
        "d/pkg/m.py",
    )


# ---- what stands around the entries ---------------------------------------------------------------------------

MAIL = b"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n m.py | 2 +-\n\n"
SIGNATURE = b"-- \n2.39.5\n\n"


def test_mails_of_format_patch_are_read_one_after_the_other() -> None:
    other = PLAIN.replace(b"pkg/m.py", b"pkg/n.py")
    diffs = read(MAIL + PLAIN + SIGNATURE + MAIL + other + SIGNATURE)
    assert [diff.path for diff in diffs] == ["pkg/m.py", "pkg/n.py"]


@pytest.mark.parametrize("end", [SIGNATURE, b"-- \n2.39.5", b"--\n2.39.5\n", b"\n\n", b"-- \n"])
def test_a_signature_or_empty_lines_may_end_the_diff(end: bytes) -> None:
    assert len(read(PLAIN + end)) == 1


def test_lines_that_announce_an_entry_are_read_over() -> None:
    other = PLAIN.replace(b"pkg/m.py", b"pkg/n.py")
    svn = b"Index: pkg/o.py\n" + b"=" * 67 + b"\n" + PLAIN.replace(b"pkg/m.py", b"pkg/o.py")
    data = b"diff -ruN a/pkg/m.py b/pkg/m.py\n" + PLAIN + b"diff -ruN a/pkg/n.py b/pkg/n.py\n" + other + svn
    assert [diff.path for diff in read(data)] == ["pkg/m.py", "pkg/n.py", "pkg/o.py"]


def test_prose_before_the_first_entry_is_free() -> None:
    prose = b"Only in Python 3.12: a bug.\n\nIndex: none\ndiff -u shows it\n====\n-- \n+ - list\nBinary files stay\n"
    assert len(read(prose + PLAIN)) == 1


# ---- include and exclude --------------------------------------------------------------------------------------

BINARY = git(
    "index 1234567..89abcde 100644", name="docs/x.png", rest=b"Binary files a/docs/x.png and b/docs/x.png differ\n"
)
LITERAL = git(
    "new file mode 100644", "index 0000000..1234567", name="docs/y.png",
    rest=b"GIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n",
)  # fmt: skip
SYMLINK = git(
    "new file mode 120000",
    "index 0000000..1234567",
    name="docs/link",
    rest=b"--- /dev/null\n+++ b/docs/link\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n",
)
SUBMODULE = git(
    "index 1234567..89abcde 160000",
    name="third/sub",
    rest=b"--- a/third/sub\n+++ b/third/sub\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
)
COPY = b"diff --git a/docs/a b/docs/b\nsimilarity index 100%\ncopy from docs/a\ncopy to docs/b\n"
OUTSIDE = b"--- a/../docs/m\n+++ b/../docs/m\n" + HUNK
GNU_BINARY = b"Binary files a/docs/z.so and b/docs/z.so differ\n"


@pytest.mark.parametrize("entry", [BINARY, LITERAL, SYMLINK, SUBMODULE, COPY, OUTSIDE, GNU_BINARY])
def test_what_is_left_out_is_not_refused(entry: bytes) -> None:
    for data in (PLAIN + entry, entry + git("index 1234567..89abcde", rest=PLAIN)):
        assert read_one(data, include=("pkg/**",)).path == "pkg/m.py"
        assert read_one(data, exclude=("docs/*", "third/**", "../**")).path == "pkg/m.py"


def test_a_path_too_short_for_strip_is_outside_of_what_is_included() -> None:
    data = b"--- a/README\n+++ b/README\n" + HUNK + b"--- a/src/pkg/m.py\n+++ b/src/pkg/m.py\n" + HUNK
    assert read_one(data, strip=2, include=("pkg/**",)).path == "pkg/m.py"
    refused(data, MalformedDiff, line=1, says="too few components to drop 2", strip=2)


def test_a_rename_is_taken_whole_or_not_at_all() -> None:
    data = b"diff --git a/pkg/m b/docs/m\nsimilarity index 100%\nrename from pkg/m\nrename to docs/m\n"
    refused(data, MalformedDiff, line=1, says="only one path of a rename", include=("pkg/*",))
    assert read_one(data, include=("**",)).paths == ("pkg/m", "docs/m")


def test_nothing_left_is_an_error() -> None:
    refused(PLAIN, EmptyDiff, line=1, says="include and exclude leave no file", include=("other/**",))


# ---- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "line", "says"),
    [
        (b"", EmptyDiff, 1, "empty"),
        (b"just some words\n", EmptyDiff, 1, "no entry"),
        (b"*** a/m\n--- b/m\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n", EmptyDiff, 1, "no entry"),
        (BINARY, BinaryDiff, 3, "binary"),
        (LITERAL, BinaryDiff, 4, "binary"),
        (GNU_BINARY, BinaryDiff, 1, "binary"),
        (SYMLINK, SymlinkDiff, 2, "symbolic link"),
        (git("old mode 100644", "new mode 120000"), SymlinkDiff, 3, "symbolic link"),
        (git("deleted file mode 120000", "index 1234567..0000000"), SymlinkDiff, 2, "symbolic link"),
        (SUBMODULE, SubmoduleDiff, 2, "submodule"),
        (COPY, CopyDiff, 3, "copies"),
        (git("new file mode 040000"), MalformedDiff, 2, "mode 040000"),
        (git("new file mode 100844"), MalformedDiff, 2, "six octal digits"),
        (PLAIN + PLAIN, DuplicateEntry, 7 + 1, "has an entry already, in line 1"),
        (PLAIN + PLAIN.replace(b"m.py", b"M.PY"), DuplicateEntry, 8, "has an entry already"),
        (PLAIN + b"diff --git a/q b/pkg/M.py\nrename from q\nrename to pkg/M.py\n", DuplicateEntry, 8, "already"),
        (b"diff --git a/m b/M\nsimilarity index 100%\nrename from m\nrename to M\n", DuplicateEntry, 1, "only in case"),
        (PLAIN + b"words\n", TrailingText, 8, "belongs to no entry"),
        (PLAIN + SIGNATURE + b"words\n", TrailingText, 8, "behind a mail signature"),
        (PLAIN + b"Only in b: new.py\n", TrailingText, 8, "not in the diff"),
        (b"Only in b: new.py\ndiff -ru a/pkg/m.py b/pkg/m.py\n" + PLAIN, TrailingText, 1, "not in the diff"),
        (PLAIN + b"diff -ruN a/empty b/empty\n", MalformedDiff, 8, "no hunk follows"),
        (b"diff -ruN a/empty b/empty\ndiff -ruN a/pkg/m.py b/pkg/m.py\n" + PLAIN, MalformedDiff, 1, "no hunk follows"),
        (PLAIN + b"Property changes on: pkg/m.py\n", TrailingText, 8, "belongs to no entry"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_with_its_line(
    data: bytes, error: type[DiffError], line: int, says: str
) -> None:
    refused(data, error, line=line, says=says)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (b"/etc/passwd", "is absolute"),
        (b"a//etc/passwd", "is absolute"),
        (b"../m.py", "goes up"),
        (b"a/../../m.py", "goes up"),
        (b"a/pkg/../../m.py", "goes up"),
        (b"a/pkg/./m.py", "empty component or `.`"),
        (b"a/pkg//m.py", "empty component or `.`"),
        (b"a/pkg/", "empty component or `.`"),
        (b"C:/m.py", "drive letter"),
        (b"a/C:/m.py", "drive letter"),
        (b"a/pkg\\m.py", "backslash"),
        (rb'"a/pkg\\m.py"', "backslash"),
        (rb'"a/\056\056/m.py"', "goes up"),
        (rb'"a/m\000.py"', "NUL"),
        (b"a/m\0.py", "NUL"),
        (b"a/\xff.py", "not UTF-8"),
    ],
)
def test_a_path_that_leaves_the_site_root_is_refused(name: bytes, says: str) -> None:
    refused(b"--- " + name + b"\n+++ " + name + b"\n" + HUNK, UnsafePath, line=1, says=says)
    refused(b"--- /dev/null\n+++ " + name + b"\n@@ -0,0 +1 @@\n+x\n", UnsafePath, line=1, says=says)


def test_an_unsafe_path_of_a_rename_or_mode_change_or_directory_is_refused() -> None:
    renamed = b"diff --git a/m b/m\nsimilarity index 100%\nrename from m\nrename to ../m\n"
    refused(renamed, UnsafePath, line=1, says="goes up")
    refused(git("old mode 100644", "new mode 100755", name="../m"), UnsafePath, line=1, says="goes up")
    refused(PLAIN, UnsafePath, line=1, says="goes up", directory="..")
    refused(PLAIN, UnsafePath, line=1, says="is absolute", directory="/etc")


HEADERS = b"--- a/m\n+++ b/m\n"


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        (HEADERS, 3, "no hunk below"),
        (b"--- a/m\n+++ b/m\nwords\n", 3, "no hunk below"),
        (HUNK, 1, "without the file's `---`"),
        (b"+++ b/m\n" + HUNK, 2, "without the file's `---`"),
        (b"--- a/m\n" + HUNK, 2, "without the file's `---`"),
        (HEADERS + b"@@ -1,3 +1,3\n", 3, "not a hunk header"),
        (HEADERS + b"@@ -1,3 @@\n", 3, "not a hunk header"),
        (HEADERS + b"@@ -0,3 +1,3 @@\n a\n-b\n+c\n d\n", 3, "line 0"),
        (HEADERS + b"@@ -1,3 +0,3 @@\n a\n-b\n+c\n d\n", 3, "line 0"),
        (HEADERS + b"@@ -1,4 +1,4 @@\n one\n-two\n+TWO\n three\n", 3, "cut off"),
        (HEADERS + b"@@ -1,4 +1,4 @@\n one\n-two\n+TWO\n three\nwords\n", 8, "fewer lines"),
        (HEADERS + b"@@ -1,2 +1,3 @@\n one\n-two\n+TWO\n three\n", 7, "fewer lines"),
        (HEADERS + HUNK + b"+surplus\n", 8, "more lines"),
        (HEADERS + HUNK + b"-surplus\n", 8, "more lines"),
        (HEADERS + HUNK + b" surplus\n", 8, "more lines"),
        (HEADERS + b"@@ -1,2 +1,2 @@\n a\n b\n", 3, "changes nothing"),
        (HEADERS + b"@@ -1,0 +1,0 @@\n", 3, "changes nothing"),
        (HEADERS + HUNK + b"@@ -3,2 +3,2 @@\n-a\n+b\n c\n", 8, "overlaps hunk 1"),
        (HEADERS + b"@@ -9,2 +9,2 @@\n-a\n+b\n c\n" + HUNK, 7, "stands before it"),
        (HEADERS + b"@@ -1 +1 @@\n-a\n+b\n" + NO_NEWLINE + b"@@ -9,2 +9,2 @@\n-a\n+b\n c\n", 7, "no hunk can follow"),
        (HEADERS + b"@@ -1,2 +1,2 @@\n-a\n+b\n" + NO_NEWLINE + b" c\n", 6, "not behind the last line"),
        (HEADERS + b"@@ -1 +1 @@\n-a\n+b\n" + NO_NEWLINE * 2, 7, "backslash"),
        (HEADERS + b"@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n", 4, "backslash"),
        (HEADERS + b"@@ -1 +1 @@\n-a\n+b\n\\ short\n", 6, "backslash"),
        (HEADERS + b"@@ -1,2 +1,2 @@\n-a\n+b\n c", 6, "in the middle of this line"),
        (HEADERS + b"@@ -1,2 +1,2 @@\n-a\n+b\n\r\n", 6, "fewer lines"),
        (b"--- a/m\n+++ b/n\n" + HUNK, 1, "which file is meant"),
        (b"--- /dev/null\n+++ /dev/null\n" + HUNK, 1, "both sides"),
        (b'--- "a/m\n+++ "b/m\n' + HUNK, 1, "not closed"),
        (b'--- "a/\\q"\n+++ "b/\\q"\n' + HUNK, 1, "unknown escape"),
        (b"--- /dev/null\n+++ b/m\n@@ -1 +1,2 @@\n a\n+b\n", 3, "creates a file, but has old lines"),
        (b"--- a/m\n+++ /dev/null\n@@ -1,2 +1 @@\n a\n-b\n", 3, "deletes a file, but keeps lines"),
        (git("new file mode 100644", rest=PLAIN), 1, "`/dev/null`"),
        (git(rest=b"--- /dev/null\n+++ b/pkg/m.py\n@@ -0,0 +1 @@\n+x\n"), 1, "`/dev/null`"),
        (git("deleted file mode 100644", rest=PLAIN), 1, "`/dev/null`"),
        (git(rest=PLAIN.replace(b"m.py", b"n.py")), 1, "do not name the same file"),
        (git("old mode 100644"), 1, "only one of `old mode` and `new mode`"),
        (git("old mode 100644", "new mode 100644"), 1, "changes nothing or is cut off"),
        (git("old mode 100644", "new mode 100755", "index 1234567..89abcde"), 1, "cut off"),
        (git("new file mode 100644", "index 0000000..1234567"), 1, "cut off"),
        (git("deleted file mode 100644", "index 1234567..0000000"), 1, "cut off"),
        (git("index 1234567..89abcde 100644"), 1, "cut off"),
        (git(), 1, "cut off"),
        (git("index 123..xyz"), 2, "not an index line"),
        (git("new file mode 100644", "new file mode 100755"), 3, "twice"),
        (git("new file mode 100644", "old mode 100644", "new mode 100755"), 1, "more than one of"),
        (git("similarity index 100%"), 2, "a similarity without a rename"),
        (b"diff --git a/m b/n\nrename from m\n", 1, "only one of `rename from` and `rename to`"),
        (b"diff --git a/m b/n\nsimilarity index 100%\nrename to n\n", 1, "only one of"),
        (b"diff --git a/m b/m\nsimilarity index 100%\nrename from m\nrename to m\n", 4, "to its own name"),
        (b"diff --git a/m b/n\nsimilarity index 90%\nrename from m\nrename to n\n", 1, "cut off"),
        (b"diff --git a/m b/n\nrename from m\nrename to n\n--- a/m\n+++ b/o\n" + HUNK, 1, "do not name the files"),
        (b"diff --git a/m b/n\nold mode 100644\nnew mode 100755\n", 1, "names in the `diff --git` line differ"),
        (b"diff --cc m\nindex 1,2..3\n--- a/m\n+++ b/m\n@@@ -1 -1 +1 @@@\n", 1, "combined diff"),
        (b"--- m\n+++ m\n" + HUNK, 1, "too few components"),
        (b"--- \n+++ \n" + HUNK, 1, "too few components"),
    ],
)  # fmt: skip
def test_a_malformed_diff_is_refused_with_its_line(data: bytes, line: int, says: str) -> None:
    refused(data, MalformedDiff, line=line, says=says)


def test_an_insertion_without_context_is_refused_unless_the_file_is_empty() -> None:
    error = refused(HEADERS + b"@@ -5,0 +6,2 @@\n+a\n+b\n", NoContext, line=3, says="no context")
    assert "-U3" in error.hint
    assert read_one(HEADERS + b"@@ -0,0 +1,2 @@\n+a\n+b\n").kind is EntryKind.MODIFY


def test_numbers_and_size_are_bounded() -> None:
    refused(HEADERS + b"@@ -1234567890,1 +1 @@\n", DiffTooLarge, line=3, says="number")
    refused(HEADERS + b"@@ -1," + b"9" * 5000 + b" +1 @@\n", DiffTooLarge, line=3, says="number")
    refused(HEADERS + b"@@ -1,999999999 +1 @@\n-a\n", MalformedDiff, line=3, says="cut off")
    refused(b"\n" * (MAX_BYTES + 1), DiffTooLarge, line=1, says="64 MiB")


def test_lines_and_files_of_a_diff_are_bounded() -> None:
    refused(b"\n" * (MAX_LINES + 1), DiffTooLarge, line=1, says="1,000,000 lines")
    many = b"".join(PLAIN.replace(b"m.py", b"%d.py" % number) for number in range(MAX_ENTRIES + 1))
    refused(many, DiffTooLarge, line=PLAIN.count(b"\n") * MAX_ENTRIES + 1, says="20,000 files")
    refused(PLAIN.replace(b"/pkg/m.py", b"/d" * (LONGEST_PATH // 2)), UnsafePath, line=1, says=f"{LONGEST_PATH} bytes")


REGEX = {"?": "[^/]", "*": "[^/]*", "**": ".*", "**/": "(?:.*/)?"}


@given(st.text("ab/", max_size=8), st.lists(st.sampled_from(["a", "b", "/", "?", "*", "**", "**/"]), max_size=7))
def test_a_glob_matches_what_the_like_regular_expression_matches(path: str, parts: list[str]) -> None:
    glob = "".join(parts)
    pieces = re.split(r"(\*\*/|\*{2,}|\*|\?)", glob)
    regex = "".join(REGEX.get(piece) or (".*" if piece.startswith("**") else re.escape(piece)) for piece in pieces)
    assert matches(path, glob) == bool(re.fullmatch(regex, path, re.DOTALL))


def test_no_glob_takes_long() -> None:
    begun = time.process_time()
    assert not matches("a" * LONGEST_PATH, "*a" * 512 + "b")
    assert matches("a/" * 2000 + "b", "**/a*" * 200 + "**/b")
    assert time.process_time() - begun < 5


def test_all_problems_come_at_once() -> None:
    with pytest.raises(Several) as caught:
        read(BINARY + SYMLINK + PLAIN + PLAIN + b"words\n")
    found = [type(error) for error in caught.value.all()]
    assert found == [BinaryDiff, SymlinkDiff, TrailingText, DuplicateEntry]


@pytest.mark.parametrize("at", range(len(PLAIN)))
def test_a_diff_cut_off_anywhere_is_refused(at: int) -> None:
    with pytest.raises(DiffError):
        read(PLAIN[:at])


# ---- CRLF -----------------------------------------------------------------------------------------------------


def test_a_diff_whose_lines_all_end_in_crlf_has_its_hunks_both_ways() -> None:
    diff = read_one(PLAIN.replace(b"\n", b"\r\n"))
    assert diff.path == "pkg/m.py"
    assert diff.without_cr is not None
    assert diff.hunks[0].old == b"one\r\ntwo\r\nthree\r\n"
    assert diff.without_cr[0].old == b"one\ntwo\nthree\n"
    assert diff.without_cr[0].source_line == diff.hunks[0].source_line == 3


def test_a_diff_of_a_crlf_file_has_its_hunks_one_way() -> None:
    diff = read_one(HEADERS + HUNK.replace(b"one\n", b"one\r\n"))
    assert diff.hunks[0].old == b"one\r\ntwo\nthree\n"
    assert diff.without_cr is None


def test_a_missing_newline_in_a_crlf_diff_leaves_the_cr_as_it_is() -> None:
    data = HEADERS + b"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
    diff = read_one(data.replace(b"\n", b"\r\n"))
    assert diff.without_cr is not None
    assert (diff.hunks[0].old, diff.without_cr[0].old) == (b"a\r", b"a")


# ---- made by real tools ---------------------------------------------------------------------------------------


def test_the_output_of_git_in_a_repository_is_read(tmp_path: Path) -> None:
    def run(*words: str) -> bytes:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.autocrlf=false", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout

    run("init", "-q")
    body = b"".join(b"line %d\n" % number for number in range(40))
    for name, data in {"kept.py": body, "moved.py": body + b"moved\n", "gone.py": b"gone\n", "run.sh": b"#!\n"}.items():
        (tmp_path / name).write_bytes(data)
    run("add", ".")
    run("commit", "-qm", "first")
    (tmp_path / "kept.py").write_bytes(body.replace(b"line 20\n", b"changed\n"))
    (tmp_path / "moved.py").rename(tmp_path / "new name.py")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "empty.py").touch()
    run("add", ".")
    run("commit", "-qm", "second\n\n--- words\n+ words")
    diffs = {diff.path: diff for diff in read(run("format-patch", "-1", "-M", "--stdout"))}
    kinds = {path: diff.kind for path, diff in diffs.items()}
    assert kinds == {
        "kept.py": EntryKind.MODIFY,
        "new name.py": EntryKind.RENAME,
        "gone.py": EntryKind.DELETE,
        "run.sh": EntryKind.MODIFY,
        "empty.py": EntryKind.CREATE,
    }
    assert diffs["run.sh"].executable is True
    assert diffs["new name.py"].old == "moved.py"


@pytest.mark.parametrize("separator", [b"\n", b"\r\n"])
def test_reading_is_linear(separator: bytes) -> None:
    """Eight times the lines must not take anything like 64 times as long."""

    def seconds(entries: int) -> float:
        data = b"".join(PLAIN.replace(b"m.py", b"m%d.py" % number) for number in range(entries))
        start = time.process_time()
        assert len(read(data.replace(b"\n", separator))) == entries
        return time.process_time() - start

    seconds(10)
    assert seconds(4000) < 32 * max(seconds(500), 0.005)


def test_an_entry_that_two_readers_read_differently_is_refused() -> None:
    """No such text is known; here our own reading is falsified."""
    ((raw,), _) = read_entries(PLAIN, file="x.patch")
    _cross_check(raw)
    (hunk,), (body,) = raw.hunks, raw.bodies
    for wrong in (
        replace(raw, hunks=(replace(hunk, old_start=2),)),
        replace(raw, hunks=(replace(hunk, section=b"def f():"),)),
        replace(raw, bodies=(body.replace(b"+TWO", b"-TWO"),)),
        replace(raw, bodies=(body + b"@@ -9 +9 @@\n-a\n+b\n",)),
    ):
        with pytest.raises(MalformedDiff, match="can be read in two ways"):
            _cross_check(wrong)
