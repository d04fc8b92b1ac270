"""A new version is out: what becomes of the patches, what is written, and that nothing else is touched."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.cli import main
from patchkit.manifest import read_manifest
from patchkit.patchset import Patch
from patchkit.rebased import Rebase, Step
from patchkit.versions import common_version, contains, is_just, range_for, widened
from shelves import FILLER, MATHS, NAMES, Shelf, maths
from stages import git_apply, make_diff, patch, put
from test_docs import COMMANDS, JSON, key_paths, read_first_words
from test_docs import _without_parents as without_parents
from worlds import CHECKOUT, Finished, find_wheel, tree

MIDDLE = make_diff({MATHS: maths()}, {MATHS: maths(two="22")})
BOTH = make_diff({MATHS: maths()}, {MATHS: maths(one="11", three="33")})
OTHER = maths().replace(
    b"    value = 18\n    value = 19\n    return 2", b"    value = 17\n    value = 19\n    return 2"
)
SUMS = "some_dist/sums.py"


def function(name: str, value: str | None = None) -> bytes:
    """One function of `maths`, or one like them."""
    numbers = dict(zip(NAMES, "123", strict=True))
    return f"def {name}():\n{FILLER}    return {value or numbers.get(name, 4)}\n\n\n".encode()


@pytest.fixture
def shelf(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Shelf(tmp_path, capfd.readouterr)


def only(document: Any) -> Any:
    [row] = document["patches"]
    return row


def manifest(shelf: Shelf) -> tuple[Patch, ...]:
    """The patches in the manifest of the set ``fix``."""
    folder = shelf.patches / "fix"
    return read_manifest((folder / "patchset.toml").read_bytes(), folder=str(folder), file="patchset.toml").patches


def ranges(shelf: Shelf) -> list[tuple[str, str]]:
    [found] = manifest(shelf)
    return [(variant.versions, variant.file) for variant in found.variants]


def fares(shelf: Shelf, version: str) -> str:
    """What coverage says of one release afterwards."""
    return shelf.results("fix", "--versions", f"=={version}")[version]


BODY = ("options = {{}}", "pool = make(", "    limit=1,", "    expiry=2,", "    retries=3,", "    pause=0,", ")")
LIKE = "\n    ".join(("def {name}():", *BODY)) + "\n"


def alike(*, first: str = "", version: int = 1) -> bytes:
    """Two functions that look alike below their first lines; from version 2 on the first has a line more."""
    texts = [LIKE.format(name="one"), "    # far from it\n" * 8, LIKE.format(name="two")]
    texts[0] = texts[0].replace("expiry=2,", f"expiry=2,{first}")
    if version > 1:
        texts[0] = texts[0].replace("        pause", "        size=4,\n        pause")
    return ("# more\n" * (version - 1) + "".join(texts)).encode()


# ---- the same diff fits ---------------------------------------------------------------------------------------


def test_where_the_same_diff_fits_its_range_is_widened_and_nothing_else_changes(shelf: Shelf) -> None:
    for number, version in enumerate(("1.0", "1.1rc1", "1.1", "1.2")):
        shelf.release(version, {MATHS: maths(head="# more\n" * number)})
    shelf.add("fix", patch("middle", MIDDLE, versions=">=1.0,<=1.0"))
    path = shelf.patches / "fix" / "patchset.toml"
    text = path.read_text("utf-8").replace("\nversions", "\n# tried on all of them\nversions")
    path.write_text(text, "utf-8")
    before = tree(shelf.patches)
    document = shelf.json("rebase", "fix", "--to", "1.2")
    row = only(document)
    assert (row["result"], row["step"], row["versions"], row["base"]) == ("clean", "widened", ">=1.0,<=1.2", None)
    assert document["written"] == [str(path)]
    assert path.read_text("utf-8") == text.replace(">=1.0,<=1.0", ">=1.0,<=1.2")
    assert {name for name, entry in tree(shelf.patches).items() if before.get(name) != entry} == {"fix/patchset.toml"}
    again = shelf.json("rebase", "fix/middle", "--to", "1.2")
    assert (only(again)["step"], again["written"]) == ("none", [])


@pytest.mark.parametrize(
    ("between", "why"),
    [({MATHS: maths(two="20")}, "it does not fit 1.1"), (None, "1.1 lies between, and is a source distribution only")],
)
def test_a_range_is_not_widened_over_a_release_that_was_not_tried_or_does_not_fit(
    shelf: Shelf, between: Any, why: str
) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.2", {MATHS: maths()})
    if between is None:
        put(shelf.wheels / "some_dist-1.1.tar.gz", b"")
    else:
        shelf.release("1.1", between)
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.2"))
    assert (row["result"], row["step"]) == ("clean", "added") and why in row["message"]
    assert ranges(shelf) == [("==1.0", "middle.patch"), ("==1.2", "middle.patch")]


@pytest.mark.parametrize("versions", ["==1.0", ">=1.0"])
def test_a_diff_that_fits_only_where_another_function_looks_alike_is_merged(shelf: Shelf, versions: str) -> None:
    shelf.release("1.0", {MATHS: alike()})
    shelf.release("2.0", {MATHS: alike(version=2)})
    diff = make_diff({MATHS: alike()}, {MATHS: alike(first="  # longer")})
    shelf.add("fix", patch("longer", diff, versions=versions))
    assert fares(shelf, "2.0") == ("offset" if versions == ">=1.0" else "no-variant")
    row = only(shelf.json("rebase", "fix", "--to", "2.0"))
    assert (row["result"], row["step"]) == ("clean", "added"), row
    assert "at another place than the merge puts it" in row["message"]
    made = (shelf.patches / "fix" / row["variant"]).read_bytes()
    assert git_apply(made, {MATHS: alike(version=2)}) == {MATHS: alike(first="  # longer", version=2)}


def test_a_range_is_not_widened_over_a_release_where_the_diff_lands_elsewhere(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: alike()})
    shelf.release("2.0", {MATHS: alike(version=2)})
    shelf.release("3.0", {MATHS: alike()})
    diff = make_diff({MATHS: alike()}, {MATHS: alike(first="  # longer")})
    shelf.add("fix", patch("longer", diff, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "3.0"))
    assert (row["step"], row["versions"]) == ("added", "==3.0"), row
    assert "in 2.0, which lies between, it fits at another place" in row["message"]


def test_a_range_is_not_widened_into_another_one(shelf: Shelf) -> None:
    for version in ("1.0", "1.1", "1.2"):
        shelf.release(version, {MATHS: maths()})
    skip = {"versions": "==1.1", "why": "one release had another way"}
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0", not_needed=[skip]))
    only(shelf.json("rebase", "fix", "--to", "1.2"))
    assert ranges(shelf) == [("==1.0", "middle.patch"), ("==1.2", "middle.patch")]


@pytest.mark.parametrize(
    ("text", "version", "wider"),
    [
        (">=0.4.dev0,<=0.7.4", "0.7.5", ">=0.4.dev0,<=0.7.5"),
        ("==0.6.3", "0.6.4", ">=0.6.3,<=0.6.4"),
        ("==0.6.3", "0.6.1", ">=0.6.1,<=0.6.3"),
        (">=1,<2.dev0", "2.1rc1", ">=1,<=2.1rc1"),
        ("==1.2.*", "1.3", ">=1.2.dev0,<=1.3"),
        ("~=1.4.2", "1.5", ">=1.4.2,<=1.5"),
        (">=1,!=1.2,<=1.4", "1.5", ">=1,!=1.2,<=1.5"),
        ("==1.0+cu1", "1.1+cu1", ">=1.0,<=1.1"),
        (">=1", "0.9", ">=0.9"),
        (">=1,!=1.5", "1.5", None),
    ],
)
def test_a_range_gives_way_on_the_side_of_the_new_version(text: str, version: str, wider: str | None) -> None:
    assert widened(text, version) == wider
    assert wider is None or contains(wider, version)


# ---- merges ---------------------------------------------------------------------------------------------------


def test_a_change_beside_another_one_is_merged_into_a_new_variant_as_git_merges_it(
    shelf: Shelf, git: Callable[..., Finished]
) -> None:
    shelf.release("1.0", {MATHS: maths()})
    new = maths().replace(
        b"    value = 18\n    value = 19\n    return 2", b"    value = 180\n    value = 19\n    return 2"
    )
    shelf.release("1.1", {MATHS: new})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    assert shelf.results("fix", "--versions", "==1.1") == {"1.1": "no-variant"}
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["step"], row["base"]) == ("clean", "added", "1.0")
    assert (row["variant"], row["versions"]) == ("middle.1.1.patch", "==1.1")
    for name, data in (("base", maths()), ("ours", maths(two="22")), ("theirs", new)):
        put(shelf.folder / "git" / name, data)
    expected = git("merge-file", "-p", "ours", "base", "theirs", cwd=shelf.folder / "git").expect().out.encode()
    diff = (shelf.patches / "fix" / "middle.1.1.patch").read_bytes()
    assert git_apply(diff, {MATHS: new})[MATHS] == expected
    assert ranges(shelf) == [("==1.0", "middle.patch"), ("==1.1", "middle.1.1.patch")]
    assert fares(shelf, "1.1") == fares(shelf, "1.0") == "fits"


def test_a_range_that_claims_the_new_version_gives_it_up(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    shelf.release("1.2", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE, versions=">=1"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["versions"]) == ("clean", "==1.1")
    assert ranges(shelf) == [(">=1,!=1.1", "middle.patch"), ("==1.1", "middle.1.1.patch")]
    assert {fares(shelf, version) for version in ("1.0", "1.1", "1.2")} == {"fits"}


def test_a_variant_of_just_the_new_version_gets_a_new_text(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    two = [{"versions": "==1.0", "file": "middle.patch"}, {"versions": "==1.1", "file": "wrong.patch"}]
    table = patch("middle", MIDDLE, variant=two)
    table["FILES"]["wrong.patch"] = MIDDLE
    shelf.add("fix", table)
    row = only(shelf.json("rebase", "fix", "--to", "1.1", "--from", "1.0"))
    assert (row["result"], row["variant"]) == ("clean", "wrong.patch")
    assert ranges(shelf) == [("==1.0", "middle.patch"), ("==1.1", "wrong.patch")] and fares(shelf, "1.1") == "fits"


def test_what_upstream_has_is_said_and_nothing_is_written(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="22")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    before = tree(shelf.patches)
    document = shelf.json("rebase", "fix", "--to", "1.1")
    row = only(document)
    assert (row["result"], row["step"], document["written"]) == ("upstreamed", "none", [])
    assert row["advice"] == '[[patch.not-needed]]\nversions = "==1.1"\nwhy = "upstream in 1.1"'
    assert tree(shelf.patches) == before
    assert "it can be retired" in shelf.run("rebase", "fix", "--to", "1.1").expect().out


def test_what_upstream_has_beside_other_changes_is_found_by_the_merge(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER.replace(b"    value = 19\n    return 2", b"    value = 19\n    return 22")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["base"]) == ("upstreamed", "1.0") and row["files"][0]["upstream"] == 1


def test_of_a_patch_that_is_partly_upstream_the_rest_is_offered(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(one="11")})
    shelf.add("fix", patch("both", BOTH, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["step"], row["message"]) == ("partly-upstreamed", "added", "1 of 2 changes are upstream")
    rest = (shelf.patches / "fix" / "both.1.1.patch").read_bytes()
    assert added_lines(rest) == [b"+    return 33"]
    assert git_apply(rest, {MATHS: maths(one="11")})[MATHS] == maths(one="11", three="33")
    assert fares(shelf, "1.1") == "fits"


def test_a_conflict_leaves_a_work_folder_and_commit_goes_on_from_there(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    before = tree(shelf.patches)
    document = shelf.json("rebase", "fix", "--to", "1.1", exit_code=5)
    row = only(document)
    assert (row["result"], row["step"], document["written"]) == ("conflict", "work-folder", [])
    assert tree(shelf.patches) == before
    edited = Path(row["folder"]) / MATHS
    text = edited.read_text("utf-8")
    assert "<<<<<<< fix/middle\n    return 22\n=======\n    return 20\n>>>>>>> some-dist 1.1\n" in text
    command = f"patchkit commit {Path(row['folder']).relative_to(shelf.folder)}"
    assert row["next"] == f"{command} --patches {shelf.patches}"

    refused = shelf.run("commit", row["folder"], "--json", wheels=False).expect(3).json()
    assert "conflict markers" in refused["error"]["message"]
    edited.write_bytes(maths(two="222"))
    shelf.run("commit", row["folder"], wheels=False).expect()
    assert ranges(shelf)[0] == ("==1.0", "middle.patch") and ranges(shelf)[1][0] == "==1.1"
    diff = (shelf.patches / "fix" / ranges(shelf)[1][1]).read_bytes()
    assert git_apply(diff, {MATHS: maths(two="20")})[MATHS] == maths(two="222")
    assert fares(shelf, "1.1") == "fits"


@pytest.mark.parametrize("versions", [">=1", "==1.1"])
def test_commit_takes_the_version_out_of_the_range_that_did_not_fit_it(shelf: Shelf, versions: str) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    own = [{"versions": versions, "file": "middle.patch"}]
    other = [{"versions": "==1.0", "file": "old.patch"}] if versions == "==1.1" else []
    table = patch("middle", MIDDLE, variant=[*own, *other])
    table["FILES"]["old.patch"] = MIDDLE
    shelf.add("fix", table)
    row = only(shelf.json("rebase", "fix", "--to", "1.1", "--from", "1.0", exit_code=5))
    (Path(row["folder"]) / MATHS).write_bytes(maths(two="222"))
    shelf.run("commit", row["folder"], wheels=False).expect()
    assert fares(shelf, "1.0") == fares(shelf, "1.1") == "fits"
    assert (">=1,!=1.1", "middle.patch") in ranges(shelf) or ranges(shelf)[0] == ("==1.1", "middle.patch")


@pytest.mark.parametrize(
    ("versions", "version", "just"),
    [
        ("==1.0", "1.0", True),
        ("==1.0", "1.0.0", True),
        ("===1.0", "1.0", True),
        ("==1.0,!=1.0+cu128", "1.0", True),
        ("==1.0", "1.0+cu128", False),
        ("==1.*", "1.0", False),
        (">=1.0,<=1.0", "1.0", False),
    ],
)
def test_a_range_is_for_just_one_version_however_that_is_spelled(versions: str, version: str, just: bool) -> None:
    assert is_just(versions, version) is just


@pytest.mark.parametrize(
    "others", [["==1.0+cu128"], ["==1.0+cu128", "==1.0+cu130"], [f"==1.0+a{n}" for n in range(9)], ["==2"]]
)
def test_the_range_of_one_version_leaves_out_local_versions_that_others_hold(others: list[str]) -> None:
    versions = range_for("1.0", others)
    assert contains(versions, "1.0") and is_just(versions, "1.0")
    assert not any(common_version(versions, other) for other in others)


def test_a_version_with_a_local_part_and_one_without_have_a_range_each(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: OTHER})
    shelf.release("1.0+cu128", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0+cu128"))
    assert only(shelf.json("rebase", "fix", "--to", "1.0"))["result"] == "clean"
    assert ranges(shelf) == [("==1.0+cu128", "middle.patch"), ("==1.0,!=1.0+cu128", "middle.1.0.patch")]
    assert fares(shelf, "1.0") == "fits"


def test_a_range_of_the_version_in_another_spelling_is_the_range_of_the_version(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("2.0.0", {MATHS: maths(two="20")})
    own = [{"versions": "==1.0", "file": "middle.patch"}, {"versions": "==2.0", "file": "two.patch"}]
    table = patch("middle", MIDDLE, variant=own)
    table["FILES"]["two.patch"] = BOTH
    shelf.add("fix", table)
    row = only(shelf.json("rebase", "fix", "--to", "2.0", "--from", "1.0"))
    assert row["result"] == "clean" and "its range holds this version already" in row["message"]
    (shelf.patches / "fix" / "two.patch").write_bytes(MIDDLE)
    row = only(shelf.json("rebase", "fix", "--to", "2.0", "--from", "1.0", exit_code=5))
    (Path(row["folder"]) / MATHS).write_bytes(maths(two="222"))
    shelf.run("commit", row["folder"], wheels=False).expect()
    assert ranges(shelf) == [("==1.0", "middle.patch"), ("==2.0", "two.patch")] and fares(shelf, "2.0.0") == "fits"


def test_a_range_that_was_written_since_keeps_its_version_unless_that_is_asked_for(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    path = shelf.patches / "fix" / "patchset.toml"
    entry = '\n[[patch.variant]]\nversions = "==1.1.*"   # mine\nfile = "mine.patch"\n'
    path.write_text(path.read_text("utf-8") + entry, "utf-8")
    (path.parent / "mine.patch").write_bytes(make_diff({MATHS: maths(two="20")}, {MATHS: maths(two="7")}))
    (Path(row["folder"]) / MATHS).write_bytes(maths(two="222"))
    before = tree(shelf.patches)
    error = shelf.json("commit", row["folder"], exit_code=3, wheels=False)["error"]
    assert error["code"] == "variant-exists" and "==1.1.* (mine.patch)" in error["message"]
    assert "--replace" in error["hint"] and tree(shelf.patches) == before
    shelf.run("commit", row["folder"], "--replace", wheels=False).expect()
    assert ("==1.1.*,!=1.1", "mine.patch") in ranges(shelf) and fares(shelf, "1.1") == "fits"


KERNEL = "some_dist/kernel.cu"
HEADED = b"Rows\n====\n\nColumns\n=======\n"


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_the_line_between_two_sides_is_a_conflict_too_in_what_is_no_python(shelf: Shelf, ends: bytes) -> None:
    def text(two: str, more: bytes = b"") -> bytes:
        return (maths(two=two) + HEADED + more).replace(b"\n", ends)

    shelf.release("1.0", {KERNEL: text("2")})
    shelf.release("1.1", {KERNEL: text("20")})
    own = b"Matrix A\n=======\n"
    shelf.add("fix", patch("middle", make_diff({KERNEL: text("2")}, {KERNEL: text("22", own)}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    edited = Path(row["folder"]) / KERNEL
    lines = edited.read_bytes().splitlines(keepends=True)
    edited.write_bytes(b"".join(line for line in lines if line[:7] not in (b"<<<<<<<", b">>>>>>>")))
    before = tree(shelf.patches)
    error = shelf.json("commit", row["folder"], exit_code=3, wheels=False)["error"]
    assert "conflict markers" in error["message"] and KERNEL in error["message"] and tree(shelf.patches) == before
    edited.write_bytes(text("222", own))
    shelf.run("commit", row["folder"], wheels=False).expect()
    assert fares(shelf, "1.1") == "fits"


def test_what_is_left_of_a_conflict_is_tried_on_the_wheel_before_it_is_written(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20"), SUMS: function("fourth")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    (Path(row["folder"]) / MATHS).write_bytes(maths(two="222"))
    put(Path(row["folder"]) / SUMS, function("fourth", "44"))  # the work folder does not have it, the release does
    before = tree(shelf.patches)
    error = shelf.json("commit", row["folder"], exit_code=5, wheels=False)["error"]
    assert error["code"] == "conflict" and SUMS in error["message"] and tree(shelf.patches) == before
    (Path(row["folder"]) / SUMS).unlink()
    said = shelf.json("commit", row["folder"], wheels=False)
    assert said["warnings"] == []
    command = "patchkit coverage fix/middle --versions ==1.1 --find-links wheels"
    assert said["next"] == f"{command} --patches {shelf.patches}"
    again = shelf.json("commit", row["folder"], wheels=False)
    assert (again["written"], again["next"]) == ([], None)


def test_a_conflict_that_is_resolved_to_what_the_new_version_ships_is_upstreamed(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    (Path(row["folder"]) / MATHS).write_bytes(maths(two="20"))
    error = shelf.json("commit", row["folder"], exit_code=1, wheels=False)["error"]
    assert "fix/middle: upstreamed" in error["message"]
    assert '[[patch.not-needed]]\nversions = "==1.1"' in error["hint"]


def test_a_work_folder_knows_its_patch_folder_wherever_it_is_committed_from(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    folder = Path(only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))["folder"])
    (folder / MATHS).write_bytes(maths(two="222"))
    monkeypatch.chdir(folder)
    shelf.capture()
    assert main(["commit", ".", "--patches", "patches"]) == 2 and "is in the work folder" in shelf.capture()[1]
    assert main(["commit", "."]) == 0
    assert not (folder / "patches").exists() and ranges(shelf)[1] == ("==1.1", "middle.1.1.patch")


def test_lines_that_are_gone_prove_nothing_to_rebase_either(shelf: Shelf) -> None:
    less = maths().replace(b"    value = 19\n    return 2\n", b"    return 2\n")
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: less})
    shelf.add("fix", patch("less", make_diff({MATHS: maths()}, {MATHS: less}), versions="==1.0"))
    cell = shelf.json("coverage", "fix", "--versions", "==1.1")["releases"][0]["patches"][0]
    document = shelf.json("rebase", "fix", "--to", "1.1", exit_code=5)
    row = only(document)
    assert (cell["would"], row["result"], row["step"], document["written"]) == ("conflict", "conflict", "none", [])
    assert "perhaps upstream" in row["message"] and "[[patch.not-needed]]" in row["advice"]
    assert "if it is upstream" in shelf.run("rebase", "fix", "--to", "1.1").expect(5).out


CALLS = b"def one(x):\n    a = 1\n    danger(x)\n    b = 2\n    c = 3\n    return a\n\n\ndef two(x):\n    return 7\n"
SAFE = CALLS.replace(b"    danger(x)\n", b"").replace(b"    c = 3\n", b"    c = 3\n    safe(x)\n")
"""One hunk: a call goes and another one comes."""


def test_lines_that_a_hunk_takes_away_and_that_went_elsewhere_wait_for_a_person(shelf: Shelf) -> None:
    moved = CALLS.replace(b"    danger(x)\n", b"").replace(
        b"    return 7", b"    if x:\n        danger(x)\n    return 7"
    )
    shelf.release("1.0", {MATHS: CALLS})
    shelf.release("1.1", {MATHS: moved})
    shelf.add("fix", patch("safe", make_diff({MATHS: CALLS}, {MATHS: SAFE}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert (row["result"], row["step"]) == ("conflict", "work-folder")
    assert "it takes away 'danger(x)', which 1.1 does not have there, but at another place" in row["message"]
    edited = Path(row["folder"]) / MATHS
    assert b"safe(x)" in edited.read_bytes()
    edited.write_bytes(edited.read_bytes().replace(b"        danger(x)\n", b"        pass\n"))
    shelf.run("commit", row["folder"]).expect()
    assert fares(shelf, "1.1") == "fits"


def test_lines_that_a_hunk_takes_away_and_that_are_gone_are_told(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: CALLS})
    shelf.release("1.1", {MATHS: CALLS.replace(b"    danger(x)\n", b"") + b"more = 1\n"})
    shelf.add("fix", patch("safe", make_diff({MATHS: CALLS}, {MATHS: SAFE}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["step"]) == ("clean", "added")
    assert row["message"] == "1 of its changes only took away what 1.1 does not have there"


def test_a_rest_that_merges_beside_lines_that_are_gone_waits_for_a_person(shelf: Shelf) -> None:
    less = maths().replace(b"    value = 19\n    return 1\n", b"    return 1\n")
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: less})
    ours = less.replace(b"return 3", b"return 33")
    shelf.add("fix", patch("both", make_diff({MATHS: maths()}, {MATHS: ours}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert row["step"] == "work-folder" and "perhaps upstream" in row["message"]
    shelf.run("commit", row["folder"]).expect()
    assert added_lines((shelf.patches / "fix" / "both.1.1.patch").read_bytes()) == [b"+    return 33"]


def test_a_change_is_not_upstream_where_the_check_of_the_patch_says_no(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER.replace(b"    value = 19\n    return 2", b"    value = 19\n    return 22")})
    check = {"kind": "symbol", "module": "some_dist.maths", "symbol": "second", "has": ["value == 1"]}
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0", check=[check]))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert (row["result"], row["step"]) == ("conflict", "none") and "but the check" in row["message"]


def test_a_release_that_is_named_gives_the_text_that_was_made_for_it(shelf: Shelf) -> None:
    for version, head in (("1.0", ""), ("1.1", "# more\n"), ("1.2", "# more\n# still\n")):
        shelf.release(version, {MATHS: maths(head=head)})
    later = make_diff({MATHS: maths()}, {MATHS: maths(three="33")})
    two = [{"versions": "==1.0", "file": "both.patch"}, {"versions": "==1.1", "file": "later.patch"}]
    table = patch("both", BOTH, variant=two)
    table["FILES"] |= {"both.patch": BOTH, "later.patch": later}
    shelf.add("fix", table)
    row = only(shelf.json("rebase", "fix", "--to", "1.2", "--from", "1.0"))
    assert (row["result"], row["variant"]) == ("clean", "both.patch")
    again = only(shelf.json("rebase", "fix", "--to", "1.2", "--from", "1.1"))
    assert "nothing was taken from 1.1" in again["message"]
    for version in ("1.15", "1.3"):
        shelf.release(version, {MATHS: OTHER})
    error = shelf.json("rebase", "fix", "--to", "1.3", "--from", "1.15", exit_code=4)["error"]
    assert "no diff that is meant for" in error["message"]


def test_one_conflict_does_not_keep_the_others_back(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    first = make_diff({MATHS: maths()}, {MATHS: maths(one="11")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"), patch("one", first, versions="==1.0"))
    document = shelf.json("rebase", "fix", "--to", "1.1", exit_code=5)
    assert [(row["patch"], row["result"]) for row in document["patches"]] == [("middle", "conflict"), ("one", "clean")]
    assert [each.variants[0].versions for each in manifest(shelf)] == ["==1.0", ">=1.0,<=1.1"]


def test_a_file_that_moved_is_followed_and_it_is_said(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    forwarder = b"from some_dist.sums import first, second, third\n"
    shelf.release("1.1", {MATHS: forwarder, "some_dist/sums.py": maths(one="10", head="import os\n\n\n")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    assert f"{MATHS} is some_dist/sums.py now" in shelf.run("rebase", "fix", "--to", "1.1", "--dry-run").expect().out
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert row["result"] == "clean" and row["moved"] == [{"path": MATHS, "to": "some_dist/sums.py"}]
    assert fares(shelf, "1.1") == "fits"


def test_code_of_two_files_that_went_into_one_takes_both_changes_along(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths(), SUMS: function("fourth")})
    shelf.release("1.1", {MATHS: maths(head="import os\n\n\n") + function("fourth")})
    both = make_diff(
        {MATHS: maths(), SUMS: function("fourth")}, {MATHS: maths(two="22"), SUMS: function("fourth", "44")}
    )
    shelf.add("fix", patch("both", both, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert row["result"] == "clean" and row["moved"] == [{"path": SUMS, "to": MATHS}]
    diff = (shelf.patches / "fix" / row["variant"]).read_bytes()
    assert added_lines(diff) == [b"+    return 22", b"+    return 44"] and fares(shelf, "1.1") == "fits"


def test_of_a_file_of_which_one_function_moved_each_hunk_goes_where_its_text_is(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    rest = maths(head="import os\n\n\n").replace(function("third"), b"")
    shelf.release("1.1", {MATHS: rest, SUMS: b"import sys\n\n\n" + function("third")})
    shelf.add("fix", patch("both", BOTH, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert row["result"] == "clean" and row["moved"] == [{"path": MATHS, "to": SUMS}]
    diff = (shelf.patches / "fix" / row["variant"]).read_bytes()
    new = git_apply(diff, {MATHS: rest, SUMS: b"import sys\n\n\n" + function("third")})
    assert new == {
        MATHS: rest.replace(b"return 1\n", b"return 11\n"),
        SUMS: b"import sys\n\n\n" + function("third", "33"),
    }
    assert fares(shelf, "1.1") == "fits"


def test_the_work_folder_of_a_conflict_has_every_file_that_the_hunks_went_to(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    rest = maths(one="10").replace(function("third"), b"")
    shelf.release("1.1", {MATHS: rest, SUMS: function("third")})
    shelf.add("fix", patch("both", BOTH, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    folder = Path(row["folder"])
    assert b"<<<<<<< " in (folder / MATHS).read_bytes() and (folder / SUMS).read_bytes() == function("third", "33")
    (folder / MATHS).write_bytes(rest.replace(b"return 10\n", b"return 11\n"))
    shelf.run("commit", row["folder"]).expect()
    assert fares(shelf, "1.1") == "fits"


def test_what_a_diff_without_headings_is_about_is_read_from_the_old_release(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    moved = OTHER.replace(b"def first", b"def another").replace(b"def third", b"def one_more")
    shelf.release(
        "1.1", {MATHS: b"", "some_dist/sums.py": moved, "some_dist/more.py": b"def unrelated():\n    return 2\n"}
    )
    bare = MIDDLE.replace(MIDDLE[MIDDLE.index(b" @@ ") + 3 : MIDDLE.index(b"\n", MIDDLE.index(b" @@ ") + 3)], b"")
    shelf.add("fix", patch("middle", bare, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert row["result"] == "clean" and row["moved"] == [{"path": MATHS, "to": "some_dist/sums.py"}]


def test_a_file_that_is_gone_waits_in_the_work_folder_to_be_left_out(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths(), SUMS: function("fourth")})
    shelf.release("1.1", {MATHS: OTHER, "some_dist/new.py": b"a = 1\n"})
    old = {MATHS: maths(), SUMS: function("fourth")}
    both = make_diff(old, {MATHS: maths(two="22"), SUMS: function("fourth", "44")})
    shelf.add("fix", patch("both", both, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert (row["result"], row["step"]) == ("conflict", "work-folder")
    assert f"{SUMS}: the new version has no such file" in row["message"]
    left = Path(row["folder"]) / SUMS
    assert left.read_bytes().startswith(b"<<<<<<< fix/both\ndef fourth")
    assert "conflict markers" in shelf.json("commit", row["folder"], exit_code=3)["error"]["message"]
    left.unlink()
    shelf.run("commit", row["folder"]).expect()
    assert added_lines((shelf.patches / "fix" / "both.1.1.patch").read_bytes()) == [b"+    return 22"]


def test_a_work_folder_has_the_renames_deletions_modes_and_new_files_of_the_patch(shelf: Shelf) -> None:
    tool, run, old, gone = (f"some_dist/{name}" for name in ("tool.py", "run.py", "old.py", "gone.py"))
    shelf.release("1.0", {MATHS: maths(), tool: maths(), old: maths(one="5"), gone: function("fourth")})
    new = {MATHS: maths(two="20"), tool: OTHER, old: maths(one="6"), gone: function("fourth")}
    shelf.release("1.1", new)
    after = {MATHS: maths(two="22"), run: maths(three="33"), SUMS: b"a = 1\n"}
    before = {MATHS: maths(), tool: maths(), old: maths(one="5"), gone: function("fourth")}
    shelf.add("fix", patch("all", make_diff(before, after, {run: 0o755, SUMS: 0o755}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert f"{old}: it is to be deleted, and the new version changed it" in row["message"]
    folder = Path(row["folder"])
    assert not (folder / tool).exists() and not (folder / gone).exists()
    assert "20" not in (folder / run).read_text("utf-8") and (folder / run).stat().st_mode & 0o100
    (folder / MATHS).write_bytes(maths(two="22"))
    assert f"{old} has conflict markers" in shelf.json("commit", row["folder"], exit_code=3)["error"]["message"]
    (folder / old).unlink()
    shelf.run("commit", row["folder"]).expect()
    diff = (shelf.patches / "fix" / "all.1.1.patch").read_bytes()
    assert b"\nrename from some_dist/tool.py\nrename to some_dist/run.py\n" in diff
    assert diff.count(b"new mode 100755") == 1 and b"new file mode 100755" in diff
    merged = OTHER.replace(b"return 3\n", b"return 33\n")
    assert git_apply(diff, new) == {MATHS: maths(two="22"), run: merged, SUMS: b"a = 1\n"}
    assert fares(shelf, "1.1") == "fits"


def test_a_mode_beside_a_rename_is_the_one_of_the_patch(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    shelf.add(
        "fix", patch("move", make_diff({MATHS: maths()}, {SUMS: maths(two="22")}, {SUMS: 0o755}), versions="==1.0")
    )
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["step"]) == ("clean", "added")
    diff = (shelf.patches / "fix" / row["variant"]).read_bytes()
    assert b"old mode 100644\nnew mode 100755\nsimilarity index" in diff and b"rename from some_dist/maths.py" in diff
    assert git_apply(diff, {MATHS: OTHER}) == {SUMS: OTHER.replace(b"return 2\n", b"return 22\n")}


def test_a_file_that_has_to_go_and_was_changed_may_be_all_that_a_work_folder_has(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    shelf.add("fix", patch("less", make_diff({MATHS: maths()}, {}), versions="==1.0"))
    folder = Path(only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))["folder"])
    (folder / MATHS).unlink()
    shelf.run("commit", folder).expect()
    assert git_apply((shelf.patches / "fix" / "less.1.1.patch").read_bytes(), {MATHS: OTHER}) == {}


def test_a_name_that_is_taken_or_lost_in_the_new_version_is_a_conflict_with_both_texts(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(), SUMS: b"a = 1\n"})
    shelf.release("1.2", {"some_dist/new.py": b"a = 1\n"})
    shelf.add("fix", patch("move", make_diff({MATHS: maths()}, {SUMS: maths()}), versions="==1.0"))
    taken = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert "both exist in the new version" in taken["message"]
    text = (Path(taken["folder"]) / SUMS).read_bytes()
    assert text == b"<<<<<<< fix/move\n" + maths() + b"=======\na = 1\n>>>>>>> some-dist 1.1\n"
    assert not (Path(taken["folder"]) / MATHS).exists()
    lost = only(shelf.json("rebase", "fix", "--to", "1.2", exit_code=5))
    assert "neither exists in the new version" in lost["message"]
    assert (Path(lost["folder"]) / SUMS).read_bytes().endswith(b"=======\n>>>>>>> some-dist 1.2\n")


def test_a_merge_that_does_not_compile_waits_for_a_person(shelf: Shelf) -> None:
    body = b"        pass\n        pass\n"
    old = maths().replace(b"def second():\n", b"def second():\n    if True:\n" + body)
    ours = old.replace(body, body + b"    else:\n        pass\n")
    theirs = old.replace(b"    if True:\n", b"    with open('a'):\n")
    shelf.release("1.0", {MATHS: old})
    shelf.release("1.1", {MATHS: theirs})
    shelf.add("fix", patch("else", make_diff({MATHS: old}, {MATHS: ours}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    assert row["step"] == "work-folder" and f"as it was merged, {MATHS} does not compile: " in row["message"]
    assert shelf.json("commit", row["folder"], exit_code=7)["error"]["code"] == "check-failed"
    (Path(row["folder"]) / MATHS).write_bytes(theirs.replace(body, body + b"    value = 1\n"))
    shelf.run("commit", row["folder"]).expect()
    assert fares(shelf, "1.1") == "fits"


def test_a_created_file_that_is_shipped_without_its_executable_bit_is_not_all_upstream(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(), SUMS: b"a = 1\n"})
    shelf.release("1.2", {MATHS: maths(), SUMS: b"a = 1\n"}, modes={SUMS: 0o755})
    shelf.add("fix", patch("new", make_diff({}, {SUMS: b"a = 1\n"}, {SUMS: 0o755}), versions="==1.0"))
    assert only(shelf.json("rebase", "fix", "--to", "1.2"))["result"] == "upstreamed"
    cell = shelf.json("coverage", "fix", "--versions", "==1.1")["releases"][0]["patches"][0]
    assert (cell["result"], cell["would"]) == ("no-variant", "conflict")
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["step"]) == ("partly-upstreamed", "added")
    diff = (shelf.patches / "fix" / row["variant"]).read_bytes()
    assert b"old mode 100644\nnew mode 100755\n" in diff and b"@@" not in diff


def test_patches_on_top_of_each_other_are_brought_along_together(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    above = make_diff({MATHS: maths(two="22")}, {MATHS: maths(two="222")})
    below = patch("below", MIDDLE, versions="==1.0")
    shelf.add("fix", patch("above", above, versions="==1.0", after=["below"]), below)
    document = shelf.json("rebase", "fix", "--to", "1.1")
    assert [row["result"] for row in document["patches"]] == ["clean", "clean"]
    said = shelf.json("coverage", "fix", "--versions", "==1.1")
    assert [cell["result"] for cell in said["releases"][0]["patches"]] == ["fits", "fits"]


def test_what_a_patch_on_top_was_made_without_is_said(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER.replace(b"return 1", b"return 10")})
    first = make_diff({MATHS: maths()}, {MATHS: maths(one="11")})
    above = make_diff({MATHS: maths(one="11")}, {MATHS: maths(one="11", two="22")})
    shelf.add("fix", patch("below", first, versions="==1.0"), patch("above", above, versions="==1.0", after=["below"]))
    document = shelf.json("rebase", "fix", "--to", "1.1", exit_code=5)
    below, top = document["patches"]
    assert (below["result"], top["result"]) == ("conflict", "clean")
    assert "made without fix/below" in top["message"]


def test_a_conflict_on_top_of_another_patch_is_tried_on_top_of_it(shelf: Shelf, make_site: Callable[..., Path]) -> None:
    shelf.release("1.0", {MATHS: maths()})
    wheel = shelf.release("1.1", {MATHS: maths(three="30")})
    above = make_diff({MATHS: maths(two="22")}, {MATHS: maths(two="222", three="33")})
    below = patch("below", MIDDLE, versions="==1.0")
    shelf.add("fix", below, patch("above", above, versions="==1.0", after=["below"]))
    _, top = shelf.json("rebase", "fix", "--to", "1.1", exit_code=5)["patches"]
    (Path(top["folder"]) / MATHS).write_bytes(maths(two="222", three="33"))
    site = make_site(shelf.folder / "site", wheel)
    said = shelf.json("commit", top["folder"], "--site-packages", str(site), wheels=False)
    assert said["next"].startswith("patchkit apply fix/below fix/above ")
    shelf.run("apply", "fix/below", "fix/above", "--site-packages", str(site), wheels=False).expect()
    assert (site / MATHS).read_bytes() == maths(two="222", three="33")


def test_a_patch_that_is_upstream_is_not_said_to_be_missing_below_another(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER.replace(b"return 2", b"return 22")})
    above = make_diff({MATHS: maths(two="22")}, {MATHS: maths(two="222")})
    below = patch("below", MIDDLE, versions="==1.0")
    shelf.add("fix", below, patch("above", above, versions="==1.0", after=["below"]))
    first, top = shelf.json("rebase", "fix", "--to", "1.1")["patches"]
    assert (first["result"], top["result"], top["message"]) == ("upstreamed", "clean", None)


def test_what_was_written_for_the_version_since_is_not_lost_to_a_second_commit(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    edited = Path(row["folder"]) / MATHS
    for value in ("222", "2222"):  # what it became itself is its own to replace
        edited.write_bytes(maths(two=value))
        shelf.run("commit", row["folder"]).expect()
    mine = make_diff({MATHS: maths(two="20")}, {MATHS: maths(two="7")})
    diff = shelf.patches / "fix" / "middle.1.1.patch"
    diff.write_bytes(mine)
    edited.write_bytes(maths(two="8"))
    error = shelf.json("commit", row["folder"], exit_code=3)["error"]
    assert error["code"] == "variant-exists" and "--replace" in error["hint"] and diff.read_bytes() == mine
    shelf.run("commit", row["folder"], "--replace").expect()
    assert added_lines(diff.read_bytes()) == [b"+    return 8"]


def test_a_version_that_was_said_to_need_no_patch_since_is_not_given_one(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=5))
    (Path(row["folder"]) / MATHS).write_bytes(maths(two="222"))
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0", not_needed=[{"versions": "==1.1", "why": "no use"}]))
    error = shelf.json("commit", row["folder"], exit_code=3)["error"]
    assert error["code"] == "variant-exists" and "no use" in error["message"]


def test_two_that_write_wait_for_each_other(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    monkeypatch.setattr("patchkit.outputs.POLL_SECONDS", 0)
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr("patchkit.outputs.time.monotonic", lambda: next(clock))
    other = os.open(shelf.patches, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert shelf.json("rebase", "fix", "--to", "1.1", exit_code=6)["error"]["code"] == "locked"
        shelf.run("rebase", "fix", "--to", "1.1", "--dry-run").expect()
    finally:
        os.close(other)
    assert ranges(shelf) == [("==1.0", "middle.patch")]


def test_a_damaged_wheel_between_is_passed_over(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    put(shelf.wheels / "some_dist-1.1-py3-none-any.whl", b"no zip file")
    shelf.release("1.2", {MATHS: OTHER})
    shelf.release("1.3", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE, versions="<=1.1"))
    row = only(shelf.json("rebase", "fix", "--to", "1.2"))
    assert (row["result"], row["base"]) == ("clean", "1.0")
    row = only(shelf.json("rebase", "fix", "--to", "1.3"))
    assert (row["result"], row["step"]) == ("clean", "added") and "does not fit 1.2" not in row["message"]


def test_created_files_and_new_modes_go_along(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    new = {MATHS: maths(two="22"), "some_dist/new.py": b"a = 1\n"}
    shelf.add("fix", patch("new", make_diff({MATHS: maths()}, new, {MATHS: 0o755}), versions="==1.0"))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert row["result"] == "clean" and [file["kept"] for file in row["files"]] == [2, 1]
    diff = (shelf.patches / "fix" / "new.1.1.patch").read_bytes()
    assert b"new mode 100755" in diff and git_apply(diff, {MATHS: OTHER})["some_dist/new.py"] == b"a = 1\n"


def test_a_set_without_a_manifest_gets_a_file_for_the_new_version(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths()})
    shelf.release("1.2", {MATHS: OTHER})
    put(shelf.patches / "some-dist==1.0.patch", MIDDLE)
    for version in ("1.1", "1.2"):
        row = only(shelf.json("rebase", "some-dist", "--to", version))
        assert (row["result"], row["variant"]) == ("clean", f"some-dist=={version}.patch")
    assert (shelf.patches / "some-dist==1.1.patch").read_bytes() == MIDDLE
    document = shelf.json("coverage", "some-dist")
    assert {release["patches"][0]["result"] for release in document["releases"]} == {"fits"}


def test_every_key_of_the_document_is_documented(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {"some_dist/sums.py": OTHER})
    shelf.release("1.2", {MATHS: maths(two="20")})
    check = {"kind": "symbol", "module": "some_dist.sums", "symbol": "second", "has": ["22"], "versions": ">=1.1"}
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0", check=[check]))
    documents = [shelf.json("rebase", "fix", "--to", "1.1"), shelf.json("rebase", "fix", "--to", "1.2", exit_code=5)]
    for document in documents:
        only(document)["checks"] = []  # as in `check`
    shared = {"schema", "command", "ok", "exit_code", "warnings[]"}
    found = without_parents(path for document in documents for path in key_paths(document))
    assert found == shared | set(read_first_words(JSON["`rebase`"]))


def test_the_words_in_the_table_of_results_are_those_of_the_program() -> None:
    words = {word for word in read_first_words(COMMANDS["`rebase`"]) if not word.startswith("--")}
    assert words == {result.value for result in Rebase}
    assert all(f"`{step.value}`" in JSON["`rebase`"] for step in Step)


# ---- what else may be said ------------------------------------------------------------------------------------


def test_a_version_that_needs_no_patch_is_left_alone(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths()})
    skip = {"versions": ">=1.1", "why": "another way now"}
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0", not_needed=[skip]))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert row["result"] == "not-needed" and "another way now" in row["message"]


def test_a_check_that_fails_with_the_new_diff_is_told(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: b"", "some_dist/sums.py": maths()})
    check = {"kind": "symbol", "module": "some_dist.maths", "symbol": "second", "has": ["22"]}
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0", check=[check]))
    row = only(shelf.json("rebase", "fix", "--to", "1.1", exit_code=1))
    assert (row["result"], row["checks"][0]["result"]) == ("clean", "failed")
    assert "second is not defined" in row["checks"][0]["message"]
    assert "a check fails and may name the old module" in row["message"]
    assert "end before 1.1, and add one for the new module" in row["message"]


def test_a_dry_run_writes_nothing(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    shelf.release("1.2", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    before = tree(shelf.patches)
    said = shelf.run("rebase", "fix", "--to", "1.1", "--dry-run").expect()
    assert "would write:" in said.out and "middle.1.1.patch" in said.out
    assert only(shelf.json("rebase", "fix", "--to", "1.2", "--dry-run", exit_code=5))["step"] == "work-folder"
    assert tree(shelf.patches) == before and not (shelf.folder / "patchkit-edit").exists()


def test_the_text_says_what_was_done_and_what_comes_next(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    said = shelf.run("rebase", "fix", "--to", "1.1", "--color", "never").expect()
    assert said.out.splitlines() == [
        "some-dist 1.1",
        "fix/middle  clean  new entry",
        "    middle.1.1.patch is for ==1.1",
        "    merged from 1.0",
        "wrote:",
        f"  {shelf.patches}/fix/middle.1.1.patch",
        f"  {shelf.patches}/fix/patchset.toml",
        f"next: patchkit coverage fix/middle --versions ==1.1 --patches {shelf.patches} --find-links {shelf.wheels}",
    ]


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (("fix", "--to", "1.3"), 4, "no-release"),
        (("fix", "--to", "newest"), 2, "usage"),
        (("fix",), 2, "usage"),
        (("absent", "--to", "1.1"), 3, "unknown-patch"),
        (("fix", "--to", "1.2"), 4, "no-wheel"),
        (("fix", "--to", "1.1", "--from", "0.9"), 4, "no-release"),
    ],
)
def test_what_cannot_be_done_changes_nothing(shelf: Shelf, words: tuple[str, ...], exit_code: int, code: str) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    put(shelf.wheels / "some_dist-1.2.tar.gz", b"")
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    before = tree(shelf.patches)
    error = shelf.json("rebase", *words, exit_code=exit_code)["error"]
    assert error["code"] == code and error["hint"]
    assert tree(shelf.patches) == before and not (shelf.folder / "patchkit-edit").exists()


def test_the_sets_that_come_with_patchkit_are_not_written_to(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE))
    error = shelf.json("rebase", "flashinfer-dynamo", "--to", "0.7.4", "--bundled", exit_code=2)["error"]
    assert "comes with patchkit" in error["message"] and "mkdir -p patches && cp -r" in error["hint"]
    words = ("rebase", "flashinfer-dynamo", "--to", "0.7.4", "--bundled", "--dry-run")
    assert shelf.json(*words, exit_code=4)["error"]["code"] == "no-release"  # of flashinfer-python there is none here


def test_without_a_release_to_merge_from_there_is_a_hint(shelf: Shelf) -> None:
    shelf.release("1.1", {MATHS: OTHER})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    error = shelf.json("rebase", "fix", "--to", "1.1", exit_code=4)["error"]
    assert error["code"] == "no-release" and "--find-links" in error["hint"]


def test_a_variant_that_does_not_fit_its_version_is_made_anew_where_another_has_its_diff(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    variants = [{"versions": f"=={version}", "file": "middle.patch"} for version in ("1.0", "1.1")]
    shelf.add("fix", patch("middle", MIDDLE, variant=variants))
    row = only(shelf.json("rebase", "fix", "--to", "1.1"))
    assert (row["result"], row["step"], row["base"]) == ("clean", "added", "1.0")
    assert ranges(shelf) == [("==1.0", "middle.patch"), ("==1.1", "middle.1.1.patch")]
    assert fares(shelf, "1.0") == fares(shelf, "1.1") == "fits"


def test_a_diff_of_its_own_that_fits_nothing_is_replaced_only_where_that_is_asked_for(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    own = make_diff({MATHS: maths(two="9")}, {MATHS: maths(two="22")})
    table = patch("middle", MIDDLE, variant=[{"versions": "==1.0", "file": "middle.patch"}])
    table["variant"].append({"versions": "==1.1", "file": "own.patch"})
    table["FILES"]["own.patch"] = own
    shelf.add("fix", table)
    error = shelf.json("rebase", "fix", "--to", "1.1", exit_code=4)["error"]
    assert "own.patch, which is for ==1.1, fits neither 1.1 nor another release" in error["message"]
    assert "--from 1.0 takes the change from there" in error["hint"]
    assert only(shelf.json("rebase", "fix", "--to", "1.1", "--from", "1.0"))["result"] == "clean"
    assert fares(shelf, "1.1") == "fits"


def test_a_patch_without_a_release_to_merge_from_does_not_keep_the_others_back(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    lost = make_diff({MATHS: maths(one="9")}, {MATHS: maths(one="99")})
    shelf.add("fix", patch("lost", lost, versions="==0.9"), patch("middle", MIDDLE, versions="==1.0"))
    document = shelf.json("rebase", "fix", "--to", "1.1", exit_code=4)
    first, second = document["patches"]
    assert (first["result"], first["step"], second["result"], second["step"]) == ("conflict", "none", "clean", "added")
    assert "there is no release" in first["message"] and "--find-links" in first["message"]
    assert len(document["written"]) == 2 and manifest(shelf)[1].variants[-1].versions == "==1.1"
    said = shelf.run("rebase", "fix", "--to", "1.1", "--dry-run").expect(4)
    assert "fix/lost    conflict" in said.out and "there is no release" in said.out


def test_a_stacked_patch_does_not_conflict_for_want_of_the_one_below(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: OTHER})
    upper = make_diff({MATHS: maths(two="22")}, {MATHS: maths(two="222")})
    both = patch("lower", MIDDLE, versions="==1.0"), patch("upper", upper, versions="==1.0", after=["lower"])
    shelf.add("fix", *both)
    row = only(shelf.json("rebase", "fix/upper", "--to", "1.1", exit_code=5))
    assert (row["result"], row["step"], row["folder"]) == ("conflict", "none", None)
    assert "it comes after fix/lower, which has no diff that fits 1.1 yet" in row["message"]
    assert row["next"].startswith("patchkit rebase fix --to 1.1")
    assert [each["result"] for each in shelf.json("rebase", "fix", "--to", "1.1")["patches"]] == ["clean", "clean"]


def test_what_lies_on_a_conflict_waits_until_that_is_resolved(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    upper = make_diff({MATHS: maths(two="22")}, {MATHS: maths(two="222")})
    both = patch("lower", MIDDLE, versions="==1.0"), patch("upper", upper, versions="==1.0", after=["lower"])
    shelf.add("fix", *both)
    lower, upper_row = shelf.json("rebase", "fix", "--to", "1.1", exit_code=5)["patches"]
    assert (lower["step"], upper_row["step"]) == ("work-folder", "none") and "fix/lower" in upper_row["message"]
    (Path(lower["folder"]) / MATHS).write_bytes(maths(two="22"))
    shelf.run("commit", lower["folder"], wheels=False).expect()
    document = shelf.json("rebase", "fix", "--to", "1.1")
    assert [each["result"] for each in document["patches"]] == ["clean", "clean"]
    shelf.json("coverage", "fix", "--versions", "==1.1")


# ---- FlashInfer -----------------------------------------------------------------------------------------------

DISABLE = "fp4-quantize-compiler-disable"


def test_flashinfer_moved_its_quantisation_and_the_patch_goes_along(shelf: Shelf) -> None:
    """0.6.7 moved fp4_quantization.py into a folder, and changed it on the way."""
    shelf.wheels.mkdir()
    for version in ("0.6.6", "0.6.7"):
        wheel = find_wheel("flashinfer-python", version)
        (shelf.wheels / wheel.name).symlink_to(wheel)
    diff = (CHECKOUT / "patches" / "flashinfer-dynamo" / f"{DISABLE}.0.6.0.patch").read_bytes()
    shelf.add("fix", patch(DISABLE, diff, versions="==0.6.6"), distribution="flashinfer-python")
    home = {"path": "flashinfer/fp4_quantization.py", "to": "flashinfer/quantization/fp4_quantization.py"}
    before = shelf.json("coverage", "fix", "--versions", "==0.6.7")["releases"][0]["patches"][0]
    assert (before["result"], before["would"], before["moved"]) == ("no-variant", "moved", [home])
    row = only(shelf.json("rebase", "fix", "--to", "0.6.7"))
    assert (row["result"], row["base"], row["moved"]) == ("clean", "0.6.6", [home])
    assert fares(shelf, "0.6.7") == "fits"
    own = (CHECKOUT / "patches" / "flashinfer-dynamo" / f"{DISABLE}.0.6.7.patch").read_bytes()
    made = (shelf.patches / "fix" / row["variant"]).read_bytes()
    assert added_lines(made) == added_lines(own)


def added_lines(diff: bytes) -> list[bytes]:
    return [line for line in diff.splitlines() if line.startswith(b"+") and not line.startswith(b"+++")]
