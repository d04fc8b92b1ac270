"""Where the text of a diff went: what counts as its new home, and what is too little to say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchkit.diff import read_diff
from patchkit.homes import MOST_CANDIDATES, find_home, find_names
from patchkit.installed import sha256
from patchkit.model import DiffText, FileDiff
from shelves import maths
from stages import make_diff

OLD = "some_dist/maths.py"


def entry(path: str = OLD, before: bytes = maths(), after: bytes = maths(two="22")) -> FileDiff:
    data = make_diff({path: before}, {path: after})
    [diff] = read_diff(data, DiffText(sha256(data)), file="a.patch")
    return diff


def home(files: dict[str, bytes], diff: FileDiff | None = None, *names: str) -> str | None:
    return find_home(diff or entry(), names, files.keys(), files.get)


# Text in which nothing of the diff fits, and that defines what it is about.
CHANGED = b"def second(one, other):\n    return one\n"
OTHERS = b"def unrelated():\n    return 1\n"


@pytest.mark.parametrize("data", [maths(head="import os\n"), maths(two="22")], ids=["fits there", "is there already"])
def test_a_file_that_the_hunks_fit_or_that_has_them_is_the_home(data: bytes) -> None:
    assert home({"some_dist/a.py": OTHERS, "some_dist/sub/maths.py": data}) == "some_dist/sub/maths.py"
    assert home({OLD: OTHERS, "some_dist/sums.py": data}) == "some_dist/sums.py"


def test_the_only_file_that_defines_the_names_is_the_home() -> None:
    assert home({"some_dist/sums.py": CHANGED, "some_dist/a.py": OTHERS}, None, "second") == "some_dist/sums.py"
    assert home({OLD: OTHERS, "some_dist/sums.py": CHANGED}, None, "second") == "some_dist/sums.py"


def test_names_that_the_old_file_still_defines_have_not_moved() -> None:
    assert home({OLD: CHANGED, "some_dist/sums.py": CHANGED}, None, "second") is None


def test_of_several_files_that_define_the_names_the_one_that_the_old_file_imports_them_from_is_meant() -> None:
    files = {"some_dist/sums.py": CHANGED, "some_dist/more.py": CHANGED}
    assert home(files, None, "second") is None
    assert home({**files, OLD: b"from .more import second\n"}, None, "second") == "some_dist/more.py"
    assert home({**files, OLD: b"from some_dist.sums import *\n"}, None, "second") == "some_dist/sums.py"
    assert home({**files, OLD: b"from .more import (\n"}, None, "second") is None


def test_the_names_are_those_of_what_changes_and_not_of_its_neighbours() -> None:
    assert find_names(entry()) == {"second"}
    decorated = maths().replace(b"def second", b"@cached\ndef second")
    assert find_names(entry(after=decorated)) == {"second"}
    assert find_names(entry(after=maths().replace(b"def second():", b"def second(one):"))) == {"second"}
    assert find_names(entry(), ["Class.method"]) == {"second", "Class", "method"}


def test_without_any_name_only_the_hunks_tell() -> None:
    bare = replace(entry(), hunks=tuple(replace(hunk, section=b"") for hunk in entry().hunks))
    assert find_names(bare) == frozenset()
    assert home({"some_dist/sub/maths.py": CHANGED}, bare) is None


def test_files_that_are_no_python_move_by_their_hunks_to_files_of_the_same_ending() -> None:
    before, after = b"".join(b"%d\n" % n for n in range(9)), b"".join(b"%d\n" % n for n in (0, 1, 2, 3, 44, 5, 6, 7, 8))
    diff = entry("some_dist/csrc/norm.cu", before, after)
    assert home({"some_dist/data/csrc/norm.cu": before}, diff) == "some_dist/data/csrc/norm.cu"
    assert home({"some_dist/data/csrc/norm.h": before}, diff) is None


def test_another_distributions_folder_and_too_many_files_are_not_searched() -> None:
    assert home({"elsewhere/maths.py": maths()}) is None
    read: list[str] = []

    def count(path: str) -> bytes:
        read.append(path)
        return OTHERS

    paths = [f"some_dist/maths/{number}.py" for number in range(100)]
    assert find_home(entry(), (), paths, count) is None
    assert len([path for path in read if path != OLD]) == MOST_CANDIDATES
