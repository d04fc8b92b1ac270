"""`edit`, `commit` and `capture`: from a file somebody edits to a patch that is applied, on installed distributions."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import worlds
from patchkit.manifest import read_manifest
from patchkit.patchset import PatchId, PatchSet
from rivals import held
from stages import (
    BLOCKS,
    DATA,
    LINES,
    MOD,
    SHIPPED,
    TOOL,
    Stage,
    edit,
    make_diff,
    make_stage,
    patch,
    put,
    sample_wheel,
    with_line,
)
from test_docs import JSON, key_paths, read_first_words
from worlds import CHECKOUT, Finished, RunPatchkit, UvInstall, Venv, tree, without_bytecode

FIVE = with_line(5, b"line_5 = 5.0\n")
WHOLE = b"".join(LINES)


@pytest.fixture
def stage(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Stage:
    """A stage whose folder is the working directory; ``wheels`` in it has what is installed."""
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    monkeypatch.chdir(stage.folder)
    return stage


def wheels(stage: Stage) -> str:
    return str(stage.folder / "wheels")


def manifest(stage: Stage, name: str = "some-dist") -> PatchSet:
    folder = stage.patches / name
    return read_manifest((folder / "patchset.toml").read_bytes(), folder=str(folder), file="patchset.toml")


def open_work(stage: Stage, *words: str) -> Path:
    """A new work folder of some-dist."""
    return Path(stage.json("edit", "some-dist", *words)["folder"])


def without_state(stage: Stage) -> Any:
    return {path: entry for path, entry in stage.tree().items() if not path.startswith(".patchkit")}


def refused(stage: Stage, *words: str | os.PathLike[str], exit_code: int) -> Any:
    """The error of a command after which nothing has changed."""
    before = stage.tree(), tree(stage.patches)
    error = stage.json(*words, exit_code=exit_code)["error"]
    assert (stage.tree(), tree(stage.patches)) == before
    return error


# ---- edit -----------------------------------------------------------------------------------------------------


def test_edit_copies_what_was_shipped_and_says_where_and_what_comes_next(stage: Stage) -> None:
    before = stage.tree()
    said = stage.run("edit", "Some_Dist", MOD).expect()
    folder = stage.folder / "patchkit-edit" / "some-dist-1.2.3"
    assert f"\n{folder}\n" in said.out
    assert "\nnext: patchkit commit patchkit-edit/some-dist-1.2.3 --set some-dist --patch NAME" in said.out
    assert said.err == ""
    assert (folder / MOD).read_bytes() == SHIPPED[MOD]
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == ["some_dist"]
    assert stage.tree() == before


def test_without_files_all_text_is_copied_and_no_binary_file(stage: Stage, tmp_path: Path) -> None:
    stage.reinstall(sample_wheel(tmp_path / "other", files={**SHIPPED, "some_dist/a.so": b"\x7fELF\0"}))
    said = stage.json("edit", "some-dist")
    assert set(said["files"]) == {path for path, data in SHIPPED.items() if data is not None}


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["some_dist.mod"], [MOD]),
        (["some_dist"], ["some_dist/__init__.py", BLOCKS, DATA, MOD, TOOL]),
        (["some_dist/"], ["some_dist/__init__.py", BLOCKS, DATA, MOD, TOOL]),
        (["./some_dist/mod.py", DATA], [MOD, DATA]),
    ],
)
def test_files_are_named_by_path_folder_or_module(words: list[str], files: list[str], stage: Stage) -> None:
    assert sorted(stage.json("edit", "some-dist", *words)["files"]) == sorted(files)


def test_an_absolute_path_below_the_site_root_names_a_file(stage: Stage) -> None:
    assert stage.json("edit", "some-dist", stage.site / MOD)["files"] == [MOD]


def test_each_work_folder_is_a_new_one_and_none_is_written_over(stage: Stage) -> None:
    first, second = open_work(stage, MOD), open_work(stage, MOD)
    assert (first.name, second.name) == ("some-dist-1.2.3", "some-dist-1.2.3-2")
    before = tree(first)
    assert "not empty" in refused(stage, "edit", "some-dist", "--into", first, exit_code=2)["message"]
    assert tree(first) == before


REFUSED_FILES = {
    "unknown": ("some_dist/mot.py", 2, f"did you mean '{MOD}'"),
    "of nobody": ("zzz", 2, "is simply made in the work folder"),
    "metadata": ("some_dist-1.2.3.dist-info/METADATA", 3, ""),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
def test_a_file_that_cannot_be_edited_is_refused_in_words(case: str, stage: Stage) -> None:
    name, code, hint = REFUSED_FILES[case]
    error = refused(stage, "edit", "some-dist", name, exit_code=code)
    assert name in error["message"] and hint in (error["hint"] or "")
    assert not (stage.folder / "patchkit-edit").exists()


def add_script(stage: Stage) -> Path:
    """A script as installers put it: beside the site root, with a row in RECORD that leads out of it."""
    script = put(stage.folder / "bin" / "some-tool", b"#!/bin/sh\necho tool\n", 0o755)
    row = f"../bin/some-tool,{worlds.record_digest(script.read_bytes())},{script.stat().st_size}\n"
    stage.record.write_text(row + stage.record.read_text("utf-8"), "utf-8")
    return script


@pytest.mark.parametrize("named", [["../bin/some-tool"], [MOD, "../bin/some-tool"]])
def test_a_file_outside_the_site_root_is_no_file_to_edit_and_nothing_is_written_beside_the_work_folder(
    named: list[str], stage: Stage
) -> None:
    script = add_script(stage)
    outside = tree(stage.folder)
    for name in (named, [*named[:-1], str(script)]):
        error = refused(stage, "edit", "some-dist", *name, "--into", "deep/w", exit_code=3)
        assert error["code"] == "unpatchable-file" and "lies outside the site root" in error["message"]
    assert tree(stage.folder) == outside


def test_a_file_outside_the_site_root_that_was_edited_is_refused_for_what_it_is(stage: Stage) -> None:
    add_script(stage).write_bytes(b"#!/bin/sh\necho mine\n")
    error = refused(stage, "edit", "some-dist", "../bin/some-tool", "--find-links", wheels(stage), exit_code=3)
    assert error["code"] == "unpatchable-file" and "wheel" not in error["hint"]


def test_a_distribution_that_is_not_there_is_refused(stage: Stage) -> None:
    assert refused(stage, "edit", "absent", exit_code=4)["code"] == "not-installed"
    assert refused(stage, "edit", "a b", exit_code=2)["code"] == "usage"


def test_a_patched_file_is_copied_as_shipped_or_on_top_with_the_patches(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    stage.run("apply").expect()
    said = stage.json("edit", "some-dist", MOD)
    assert [notice["code"] for notice in said["warnings"]] == ["patched-files"]
    assert (Path(said["folder"]) / MOD).read_bytes() == SHIPPED[MOD]

    folder = open_work(stage, MOD, "--on-top")
    assert (folder / MOD).read_bytes() == stage.read()
    put(folder / MOD, stage.read().replace(b"'five'", b"'cinq'"))
    stage.json("commit", folder, "--set", "own", "--patch", "french")
    assert manifest(stage, "own").patches[0].after == (PatchId("fix", "one"),)
    assert stage.states("apply") == {"fix/one": "applied", "own/french": "applied"}
    assert b"line_5 = 'cinq'\n" in stage.read()


def test_edit_names_the_files_that_are_patched_where_others_are_not(stage: Stage) -> None:
    stage.add("fix", patch("five", edit(5, b"line_5 = 5.0\n")))
    stage.run("apply").expect()
    told = [stage.json("edit", "some-dist", *files)["warnings"][0]["message"] for files in ((MOD, BLOCKS), (MOD,))]
    assert told[0].startswith(f"{MOD} is patched by fix/five, and the copies are as shipped")
    assert told[1].startswith("these files are patched by fix/five, ")


def test_on_top_of_a_patch_that_renames_deletes_and_creates_files_the_copies_are_what_it_left(stage: Stage) -> None:
    new, moved = "some_dist/new.py", "some_dist/stones.py"
    before = {BLOCKS: SHIPPED[BLOCKS], moved: None, DATA: SHIPPED[DATA], new: None}
    after = {BLOCKS: None, moved: SHIPPED[BLOCKS], DATA: None, new: b"new = 1\n"}
    stage.add("fix", patch("one", make_diff(before, after)))
    stage.run("apply").expect()
    left = {"some_dist/__init__.py", MOD, TOOL, new, moved}
    for words in ([], ["some_dist"]):
        work = open_work(stage, *words, "--on-top")
        assert {path.relative_to(work).as_posix() for path in (work / "some_dist").rglob("*")} == left
        assert set(stage.json("edit", "some-dist", *words)["files"]) == set(SHIPPED)
    assert "5 files with fix/one, to be" in stage.run("edit", "some-dist", "--on-top").expect().out
    error = refused(stage, "edit", "some-dist", DATA, "--on-top", exit_code=2)
    assert "one of them deletes or renames it" in error["message"] and "without --on-top" in error["hint"]
    assert "--on-top copies it" in refused(stage, "edit", "some-dist", new, exit_code=2)["hint"]

    put(work / DATA, b"another\n")
    stage.json("commit", work, "--set", "own", "--patch", "again")
    assert manifest(stage, "own").patches[0].after == (PatchId("fix", "one"),)
    stage.run("apply").expect()
    assert stage.read(DATA) == b"another\n"


def test_a_file_that_was_edited_in_place_is_copied_as_its_wheel_has_it(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    said = stage.json("edit", "some-dist", MOD, "--find-links", wheels(stage))
    assert [notice["code"] for notice in said["warnings"]] == ["edited-in-place"]
    assert (Path(said["folder"]) / MOD).read_bytes() == SHIPPED[MOD]
    assert stage.read() == FIVE


def test_an_edit_of_a_patched_file_is_told_by_edit_and_the_patch_alone_is_none(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.run("apply").expect()
    edits = [("edit", "some-dist", MOD), ("edit", "some-dist", MOD, "--on-top")]
    told = [[notice["code"] for notice in stage.json(*words)["warnings"]] for words in edits]
    assert told == [["patched-files"], []]
    stage.write(MOD, FIVE + b"end = 1\n")
    told = [[notice["code"] for notice in stage.json(*words)["warnings"]] for words in edits]
    assert told == [["patched-files", "edited-in-place"], ["edited-in-place"]]


# ---- commit ---------------------------------------------------------------------------------------------------


def test_an_edit_becomes_a_patch_that_makes_the_installed_files_the_edited_ones(stage: Stage) -> None:
    folder = open_work(stage)
    put(folder / MOD, FIVE)
    put(folder / "some_dist/sub/new.py", b"a = 1\n")
    put(folder / "some_dist/sub/run.sh", b"#!/bin/sh\n", 0o755)
    (folder / DATA).unlink()
    (folder / TOOL).chmod(0o755)
    pristine = stage.tree()
    said = stage.json("commit", folder, "--set", "own", "--patch", "all", "--summary", "All of it", "--origin", "us")
    assert {each["path"]: each["edit"] for each in said["edits"]} == {
        MOD: "modified",
        DATA: "deleted",
        TOOL: "modified",
        "some_dist/sub/new.py": "created",
        "some_dist/sub/run.sh": "created",
    }
    [found] = manifest(stage, "own").patches
    assert (found.summary, found.provenance.origin) == ("All of it", "us")
    assert [(variant.versions, variant.file) for variant in found.variants] == [("==1.2.3", "all.1.2.3.patch")]
    assert said["next"].startswith("patchkit apply own/all --site-packages ")
    assert said["patches"][0]["state"] == "pending"
    assert stage.tree() == pristine

    assert stage.states("apply") == {"own/all": "applied"}
    edited = {path: entry for path, entry in tree(folder).items() if not path.startswith(".patchkit-edit")}
    assert {path: entry for path, entry in stage.tree().items() if path.startswith("some_dist/")} == {
        path: entry for path, entry in edited.items() if path != "some_dist"
    }
    stage.run("revert", "--all").expect()
    assert stage.tree() == pristine


def test_the_manifest_keeps_its_comments_and_its_order(stage: Stage) -> None:
    stage.add("own", patch("one", edit(30, b"line_30 = 'x'\n"), versions="==1.2.3"))
    file = stage.patches / "own" / "patchset.toml"
    before = "# why this is here\n" + file.read_text("utf-8").replace("\n[[patch]]", "\n# one\n[[patch]]")
    file.write_text(before, "utf-8")
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    stage.json("commit", folder, "--set", "own", "--patch", "two")
    after = file.read_text("utf-8")
    assert after.startswith(before)
    assert [found.id.patch for found in manifest(stage, "own").patches] == ["one", "two"]


def test_committing_again_replaces_the_diff_and_leaves_the_manifest(stage: Stage) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    first = stage.json("commit", folder, "--patch", "five")
    text = Path(first["manifest"]).read_bytes()
    put(folder / MOD, with_line(7, b"line_7 = 7.0\n"))
    second = stage.json("commit", folder, "--patch", "five")
    assert second["written"] == [first["file"]]
    assert Path(first["manifest"]).read_bytes() == text
    assert b"+line_7 = 7.0\n" in Path(first["file"]).read_bytes()


def test_another_diff_of_that_name_is_replaced_only_when_that_is_asked_for(stage: Stage) -> None:
    first, second = open_work(stage, MOD), open_work(stage, MOD)
    put(first / MOD, FIVE)
    put(second / MOD, with_line(7, b"line_7 = 7.0\n"))
    file = Path(stage.json("commit", first, "--patch", "five")["file"])
    error = refused(stage, "commit", second, "--patch", "five", exit_code=3)
    assert error["code"] == "variant-exists" and str(file) in error["message"] and "--replace" in error["hint"]
    stage.json("commit", second, "--patch", "five", "--replace")
    assert b"+line_7 = 7.0\n" in file.read_bytes()
    assert refused(stage, "commit", first, "--patch", "five", exit_code=3)["code"] == "variant-exists"


def test_what_comes_on_top_of_a_patch_cannot_take_its_place(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n"), versions="==1.2.3"))
    stage.run("apply").expect()
    folder = open_work(stage, "--on-top", MOD)
    put(folder / MOD, (folder / MOD).read_bytes() + b"end = 1\n")
    for words in ([], ["--replace"]):
        error = refused(stage, "commit", folder, "--set", "fix", "--patch", "one", *words, exit_code=3)
        assert error["code"] == "variant-exists" and "fix/one would lose the rest" in error["message"]
    stage.json("commit", folder, "--set", "fix", "--patch", "two")


def test_a_check_that_was_meant_for_older_versions_is_told_to_say_so_by_an_option_that_works(stage: Stage) -> None:
    check = {"kind": "symbol", "module": "some_dist.mod", "has": ["line_5 = 9"]}
    nine = edit(5, b"line_5 = 9\n")
    stage.add("fix", patch("five", nine, versions="==1.0", check=[check]))
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    words = ("commit", folder, "--set", "fix", "--patch", "five")
    error = refused(stage, *words, exit_code=7)
    hint = 'mend the change, or, if the check is for older versions, give it `versions = "<1.2.3"` in the manifest'
    assert error["code"] == "check-failed" and error["hint"] == f"nothing was written; {hint}"
    stage.add("fix", patch("five", nine, versions="==1.0", check=[{**check, "versions": "<1.2.3"}]))
    stage.run(*words).expect()
    stage.add("fix", patch("five", nine, check=[{**check, "has": ["line_6 = 9"]}]))
    for command in ("check", "apply"):
        said = stage.run(command)
        assert "`patchkit apply` and `patchkit post-install` run no checks" in said.out + said.err
    stage.run("apply", "--no-checks").expect()


def test_commits_at_once_into_one_set_all_get_their_entry(stage: Stage) -> None:
    folders = [open_work(stage, MOD) for _ in range(4)]
    for number, folder in enumerate(folders):
        put(folder / MOD, with_line(5 * number + 1, b"changed = 1\n"))
    with ThreadPoolExecutor(4) as pool:
        commits = [
            pool.submit(stage.process, "commit", folder, "--set", "own", "--patch", f"p{number}")
            for number, folder in enumerate(folders)
        ]
    assert [commit.result().expect().exit_code for commit in commits] == [0] * 4
    assert {found.id.patch for found in manifest(stage, "own").patches} == {"p0", "p1", "p2", "p3"}


def test_a_work_folder_inside_the_site_root_is_refused(stage: Stage) -> None:
    (stage.folder / "link").symlink_to(stage.site)
    for folder in (stage.site / "some_dist" / "work", stage.folder / "link" / "work", stage.site):
        assert "is inside" in refused(stage, "edit", "some-dist", MOD, "--into", folder, exit_code=2)["message"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have only UTF-8 names")
@pytest.mark.parametrize("name", [b"a\\b.py", b"\xff.py"])
def test_a_file_whose_name_no_patch_may_hold_is_refused(name: bytes, stage: Stage) -> None:
    folder = open_work(stage, MOD)
    for place in (folder / "some_dist", stage.site / "some_dist"):
        with open(os.path.join(os.fsencode(place), name), "wb") as file:
            file.write(b"x = 1\n")
    error = refused(stage, "commit", folder, "--patch", "five", exit_code=3)
    assert error["code"] == "unpatchable-file" and "no patch may name it" in error["message"]
    words = ("capture", "some-dist", "--find-links", wheels(stage))
    error = refused(stage, *words, exit_code=3)
    assert error["code"] == "unpatchable-file" and "--exclude" in error["hint"]


DAMAGE: list[dict[str, Any]] = [
    {"version": "../1"},
    {"version": 1},
    {"distribution": "a b"},
    {"after": ["a/b/c"]},
    {"folders": None},
    {"files": {MOD: {"sha256": "", "mode": 1e999}}},
    {"files": {"../../outside": {"sha256": "", "mode": 420}}},
    {"files": {"/outside": {"sha256": "", "mode": 420}}},
]


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_notes_that_edit_did_not_write_are_refused(damage: dict[str, Any], stage: Stage) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    file = folder / ".patchkit-edit" / "edit.json"
    notes = json.loads(file.read_bytes())
    if mode := damage.get("files", {}).get(MOD):
        mode["sha256"] = notes["files"][MOD]["sha256"]
    file.write_text(json.dumps(notes | damage), "utf-8")
    assert "is damaged" in refused(stage, "commit", folder, "--patch", "five", exit_code=2)["message"]
    file.write_text("[" * 100_000, "utf-8")
    assert "is damaged" in refused(stage, "commit", folder, "--patch", "five", exit_code=2)["message"]


def test_what_is_said_of_a_patch_that_is_there_is_refused_and_not_forgotten(stage: Stage) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    words = ("commit", folder, "--patch", "five")
    stage.json(*words, "--summary", "Five is a float")
    error = refused(stage, *words, "--summary", "Another", "--bug", "https://bugs.example/5", exit_code=2)
    assert "--summary, --bug would not be written" in error["message"] and "patchset.toml" in error["hint"]
    said = stage.json(*words, "--summary", "Five is a float")  # as it is
    assert (said["written"], said["next"]) == ([], None)
    shown = stage.run(*words).expect()
    assert "nothing to write" in shown.out and "wrote" not in shown.out and "next:" not in shown.out
    assert "line break" in refused(stage, *words, "--summary", "one\ntwo", exit_code=2)["message"]


def test_another_version_of_a_patch_is_one_more_variant(stage: Stage, tmp_path: Path) -> None:
    for version in ("1.2.3", "2.0"):
        stage.reinstall(sample_wheel(tmp_path / "other", version))
        folder = open_work(stage, MOD)
        put(folder / MOD, FIVE)
        stage.json("commit", folder, "--patch", "five")
    [found] = manifest(stage).patches
    assert [(variant.versions, variant.file) for variant in found.variants] == [
        ("==1.2.3", "five.1.2.3.patch"),
        ("==2.0", "five.2.0.patch"),
    ]


def test_a_variant_for_a_wider_range_is_left_alone(stage: Stage) -> None:
    stage.add("some-dist", patch("five", edit(5, b"line_5 = 'x'\n"), versions=">=1,<2"))
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    error = refused(stage, "commit", folder, "--patch", "five", exit_code=3)
    assert error["code"] == "variant-exists" and ">=1,<2 (five.patch)" in error["message"]


@pytest.mark.parametrize("words", [(), ("--replace",)])
def test_a_diff_that_is_for_another_version_too_stays_as_it_is(words: tuple[str, ...], stage: Stage) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    stage.json("commit", folder, "--patch", "five")
    path = stage.patches / "some-dist" / "patchset.toml"
    entry = '\n[[patch.variant]]\nversions = "==3.0"\nfile = "five.1.2.3.patch"   # the same\n'
    path.write_text(path.read_text("utf-8") + entry, "utf-8")
    before = (path.parent / "five.1.2.3.patch").read_bytes()
    put(folder / MOD, with_line(6, b"line_6 = 6.0\n"))
    said = stage.json("commit", folder, "--patch", "five", *words)
    assert Path(said["file"]).name == "five.1.2.3-2.patch" and said["version"] == "1.2.3"
    assert (path.parent / "five.1.2.3.patch").read_bytes() == before and path.read_text("utf-8").endswith(entry)
    assert [(each.versions, each.file) for each in manifest(stage).patches[0].variants] == [
        ("==1.2.3", "five.1.2.3-2.patch"),
        ("==3.0", "five.1.2.3.patch"),
    ]
    stage.run("apply").expect()
    assert b"line_6 = 6.0" in stage.read(MOD)


def test_what_programs_leave_behind_is_left_out_and_listed(stage: Stage) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    for path in (
        "some_dist/mod.py.orig",
        "some_dist/.mod.py.swp",
        "some_dist/__pycache__/mod.pyc",
        ".DS_Store",
        "notes",
    ):
        put(folder / path, b"x\n")
    said = stage.json("commit", folder, "--patch", "five")
    assert [each["path"] for each in said["edits"]] == [MOD]
    left_out = {each["path"]: each["reason"] for each in said["left_out"]}
    assert left_out["some_dist/mod.py.orig"] == "left behind by a program"
    assert left_out["notes"] == "outside the folders of some-dist (some_dist)"
    assert Path(said["file"]).read_bytes().count(b"diff --git") == 1


def spoil_nothing(folder: Path) -> None:
    """Edit nothing."""


def spoil_with_a_link(folder: Path) -> None:
    (folder / MOD).unlink()
    (folder / MOD).symlink_to("tool.py")


def spoil_with_a_binary(folder: Path) -> None:
    put(folder / "some_dist/logo.png", b"\x89PNG\0")


def spoil_with_markers(folder: Path) -> None:
    put(folder / MOD, b"<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n" + WHOLE)


def spoil_by_taking_all(folder: Path) -> None:
    shutil.rmtree(folder / "some_dist")


def spoil_the_copies(folder: Path) -> None:
    put(folder / ".patchkit-edit/before" / MOD, b"another\n")


def spoil_the_notes(folder: Path) -> None:
    put(folder / ".patchkit-edit/edit.json", b"{}")


def spoil_by_a_newer_format(folder: Path) -> None:
    put(folder / ".patchkit-edit/edit.json", b'{"format": 99}')


SPOILED: dict[Callable[[Path], None], tuple[int, str, str]] = {
    spoil_nothing: (1, "no-change", "nothing was edited"),
    spoil_with_a_link: (3, "unpatchable-file", f"{MOD} is a symbolic link to tool.py"),
    spoil_with_a_binary: (3, "unpatchable-file", "some_dist/logo.png is a binary file and was added"),
    spoil_with_markers: (3, "unpatchable-file", "mod.py has conflict markers"),
    spoil_by_taking_all: (3, "unpatchable-file", "does not delete a whole distribution"),
    spoil_the_copies: (2, "usage", "is damaged"),
    spoil_the_notes: (2, "usage", "is damaged"),
    spoil_by_a_newer_format: (2, "usage", "another patchkit (format 99"),
}


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_what_cannot_be_a_patch_is_refused_by_name(spoil: Callable[[Path], None], stage: Stage) -> None:
    code, word, words = SPOILED[spoil]
    folder = open_work(stage)
    spoil(folder)
    error = refused(stage, "commit", folder, "--patch", "p", exit_code=code)
    assert error["code"] == word and words in error["message"]
    assert error["hint"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--patch", "a b"], "--patch 'a b' is not a name"),
        ([], "needs a name"),
        (["--patch", "p", "--set", "other"], "is for other-dist, not for some-dist"),
        (["--patch", "p", "--set", "bare"], "patch files without a patchset.toml"),
        (["--patch", "p", "--set", "full"], "is there already and is not a patch set"),
    ],
)
def test_names_that_do_not_fit_are_usage_errors(words: list[str], said: str, stage: Stage) -> None:
    stage.add("other", patch("p", edit(5, b"5\n")), distribution="other-dist")
    put(stage.patches / "bare==1.0.patch", edit(5, b"5\n"))
    put(stage.patches / "full" / "README", b"words\n")
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    assert said in refused(stage, "commit", folder, *words, exit_code=2)["message"]


def test_the_sets_that_come_with_patchkit_are_not_written_to(stage: Stage, patchkit: RunPatchkit) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    own = tree(CHECKOUT / "patches")
    words = ("commit", folder, "--patch", "p", "--bundled", "--site-packages", stage.site)
    assert "comes with patchkit" in patchkit(*words, cwd=stage.folder).expect(2).err
    patchkit(*words, "--patches", stage.patches, cwd=stage.folder).expect()
    assert (stage.patches / "some-dist").is_dir() and tree(CHECKOUT / "patches") == own


def test_a_folder_that_edit_did_not_make_is_refused(stage: Stage) -> None:
    assert "is not a work folder" in refused(stage, "commit", stage.site, "--patch", "p", exit_code=2)["message"]


def test_a_patch_that_is_in_the_way_of_an_applied_one_is_not_written(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    stage.run("apply").expect()
    said = stage.run("commit", folder, "--set", "own", "--patch", "two").expect(5)
    assert "own/two" in said.err and not (stage.patches / "own").exists()
    assert "hunk 1" in said.out and "wrote" not in said.out


def test_for_another_version_than_the_installed_one_it_is_written_untried_and_said(
    stage: Stage, tmp_path: Path
) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    stage.reinstall(sample_wheel(tmp_path / "other", "2.0"))
    said = stage.json("commit", folder, "--patch", "five")
    assert ([each["code"] for each in said["warnings"]], said["patches"]) == (["not-tried"], [])
    assert manifest(stage).patches[0].variants[0].versions == "==1.2.3"


def test_a_dry_run_of_commit_writes_nothing(stage: Stage) -> None:
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    said = stage.run("commit", folder, "--patch", "five", "--dry-run").expect()
    assert "would write patches/some-dist/five.1.2.3.patch\n" in said.out
    assert list(stage.patches.iterdir()) == []


def test_the_patch_folder_is_made_where_there_is_none(stage: Stage, patchkit: RunPatchkit) -> None:
    stage.patches.rmdir()
    folder = open_work(stage, MOD)
    put(folder / MOD, FIVE)
    words = ("--patch", "five", "--site-packages", stage.site)
    said = patchkit("commit", folder, *words, cwd=stage.folder).expect()
    assert said.out.splitlines()[-1].startswith("next: patchkit apply some-dist/five")
    assert (stage.patches / "some-dist" / "patchset.toml").is_file()


# ---- capture --------------------------------------------------------------------------------------------------


def hack(site: Path) -> None:
    """What somebody does in site-packages."""
    put(site / MOD, FIVE)
    put(site / "some_dist/new.py", b"a = 1\n")
    (site / DATA).unlink()
    put(site / "some_dist/mod.py.orig", WHOLE)


def test_an_edit_in_place_is_captured_and_then_counts_as_applied(stage: Stage) -> None:
    pristine = stage.tree()
    hack(stage.site)
    said = stage.json("capture", "some-dist", "--find-links", wheels(stage))
    assert {each["path"]: each["edit"] for each in said["edits"]} == {
        MOD: "modified",
        DATA: "deleted",
        "some_dist/new.py": "created",
    }
    assert [each["path"] for each in said["left_out"]] == ["some_dist/mod.py.orig"]
    assert [(row["state"], row["action"]) for row in said["patches"]] == [("applied", "adopted")]
    assert said["next"].startswith("patchkit verify --site-packages ")
    assert Path(said["file"]).name == "captured.1.2.3.patch"
    assert stage.read() == FIVE
    assert stage.states() == {"some-dist/captured": "applied"}
    assert set(stage.actions("apply").values()) == {"none"}
    stage.run("verify").expect()
    (stage.site / "some_dist/mod.py.orig").unlink()
    stage.run("revert", "--all").expect()
    assert stage.tree() == pristine
    stage.run("apply").expect()
    assert stage.read() == FIVE and not (stage.site / DATA).exists()


@pytest.mark.parametrize("option", ["--wheel", "--find-links"])
def test_the_shipped_bytes_come_from_the_wheel_that_is_named(option: str, stage: Stage) -> None:
    stage.write(MOD, FIVE)
    [wheel] = Path(wheels(stage)).iterdir()
    stage.json("capture", "some-dist", option, wheel if option == "--wheel" else wheel.parent)
    assert stage.states() == {"some-dist/captured": "applied"}


def test_an_edit_on_top_of_applied_patches_is_a_patch_of_its_own_and_needs_no_wheel(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")), patch("far", edit(30, b"line_30 = 'x'\n")))
    stage.run("apply").expect()
    patched = stage.read()
    stage.write(MOD, patched.replace(b"'five'", b"'cinq'"))
    said = stage.json("capture", "some-dist", "--set", "own", "--patch", "french")
    assert said["patches"][0]["state"] == "applied"
    assert manifest(stage, "own").patches[0].after == (PatchId("fix", "one"), PatchId("fix", "far"))
    assert stage.states() == {"fix/one": "applied", "fix/far": "applied", "own/french": "applied"}
    stage.run("revert", "own").expect()
    assert stage.read() == patched
    stage.run("revert", "--all").expect()
    assert stage.read() == SHIPPED[MOD]


def test_an_edit_of_a_file_that_a_patch_created_is_captured_too(stage: Stage) -> None:
    new = "some_dist/new.py"
    stage.add("fix", patch("one", make_diff({new: None}, {new: b"a = 1\nb = 2\n"})))
    stage.run("apply").expect()
    stage.write(new, b"a = 1\nb = 3\n")
    stage.json("capture", "some-dist", "--set", "own")
    assert stage.states() == {"fix/one": "applied", "own/captured": "applied"}
    stage.run("verify").expect()
    stage.run("revert", "--all").expect()
    assert not (stage.site / new).exists()


def test_where_the_edit_cannot_be_taken_over_the_patch_is_kept_and_the_way_on_is_told(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    with held(stage):
        words = ("--find-links", wheels(stage), "--lock-timeout", "0")
        said = stage.json("capture", "some-dist", *words, exit_code=6)
    assert said["error"]["code"] == "locked" and stage.read() == FIVE
    assert [notice["code"] for notice in said["warnings"]] == ["not-taken-over"]
    stage.run("apply", "some-dist/captured").expect()
    assert stage.states() == {"some-dist/captured": "applied"}


def test_a_second_capture_gets_a_name_of_its_own(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    stage.json("capture", "some-dist", "--find-links", wheels(stage))
    stage.write(MOD, FIVE + b"end = 1\n")
    assert stage.json("capture", "some-dist")["patch"] == "captured-2"
    assert set(stage.states().values()) == {"applied"}


@pytest.mark.parametrize("path", [MOD, BLOCKS])
def test_a_capture_under_the_name_of_an_applied_patch_is_refused_and_loses_nothing(path: str, stage: Stage) -> None:
    words = ("capture", "some-dist", "--set", "own", "--find-links", wheels(stage), "--patch")
    stage.write(MOD, FIVE)
    stage.json(*words, "one")
    stage.write(path, stage.read(path) + b"end = 1\n")
    assert refused(stage, *words, "one", exit_code=3)["code"] == "variant-exists"
    stage.json(*words, "two")
    assert stage.states() == {"own/one": "applied", "own/two": "applied"}


def test_a_capture_does_not_replace_a_diff_that_is_not_applied(stage: Stage) -> None:
    stage.add("own", patch("one", edit(5, b"line_5 = 'five'\n"), versions="==1.2.3", default=False))
    stage.write(MOD, FIVE)
    words = ("capture", "some-dist", "--set", "own", "--find-links", wheels(stage), "--patch", "one")
    assert refused(stage, *words, exit_code=3)["code"] == "variant-exists"


def test_captures_at_once_leave_one_patch(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    with ThreadPoolExecutor(2) as pool:
        words = ("capture", "some-dist", "--find-links", wheels(stage), "--set")
        captures = [pool.submit(stage.process, *words, name) for name in ("one", "two")]
    assert sorted(capture.result().exit_code for capture in captures) == [0, 1]
    assert list(stage.states().values()) == ["applied"]
    stage.run("verify").expect()


def test_where_nothing_differs_the_answer_is_no(stage: Stage) -> None:
    error = refused(stage, "capture", "some-dist", exit_code=1)
    assert error["code"] == "no-change" and str(stage.site) in error["message"]


def test_an_edit_that_is_a_patch_at_hand_is_left_to_apply(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.write(MOD, FIVE)
    error = refused(stage, "capture", "some-dist", exit_code=1)
    assert "the edit is fix/one, put there by hand" in error["message"] and "`patchkit apply`" in error["hint"]
    assert stage.actions("apply") == {"fix/one": "adopted"}


def change_a_binary(stage: Stage) -> None:
    put(stage.site / "some_dist/a.so", b"\x7fELF\0\2")


def make_a_link(stage: Stage) -> None:
    (stage.site / MOD).unlink()
    (stage.site / MOD).symlink_to("tool.py")


def make_a_folder(stage: Stage) -> None:
    (stage.site / MOD).unlink()
    (stage.site / MOD).mkdir()


def add_a_binary(stage: Stage) -> None:
    put(stage.site / "some_dist/cache.bin", b"\0\1")


def take_most(stage: Stage) -> None:
    for path in (MOD, DATA, BLOCKS, TOOL):
        (stage.site / path).unlink()


UNCAPTURED: dict[Callable[[Stage], None], tuple[int, str]] = {
    change_a_binary: (3, "some_dist/a.so is a binary file and was changed"),
    add_a_binary: (3, "some_dist/cache.bin is a binary file and was added"),
    make_a_link: (3, f"{MOD} is a symbolic link to tool.py"),
    make_a_folder: (3, f"{MOD} is neither a file nor a folder"),
    take_most: (4, "4 of 6 files of some-dist 1.2.3 are missing"),
}


@pytest.mark.parametrize("spoil", UNCAPTURED, ids=lambda spoil: spoil.__name__)
def test_what_no_diff_can_carry_is_refused_by_name(
    spoil: Callable[[Stage], None], stage: Stage, tmp_path: Path
) -> None:
    files = {**SHIPPED, "some_dist/a.so": b"\x7fELF\0"}
    stage.reinstall(sample_wheel(tmp_path / "wheels", files=files))
    spoil(stage)
    code, words = UNCAPTURED[spoil]
    error = refused(stage, "capture", "some-dist", "--find-links", wheels(stage), exit_code=code)
    assert words in error["message"]
    assert spoil is not add_a_binary or "--exclude" in error["hint"]


def test_files_may_be_excluded(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    add_a_binary(stage)
    said = stage.json("capture", "some-dist", "--find-links", wheels(stage), "--exclude", "**/*.bin")
    assert said["left_out"] == [{"path": "some_dist/cache.bin", "reason": "excluded"}]
    assert stage.states() == {"some-dist/captured": "applied"}


def test_a_wheel_with_other_bytes_than_record_says_is_not_believed(stage: Stage, tmp_path: Path) -> None:
    stage.write(MOD, FIVE)
    other = sample_wheel(tmp_path / "other", files={**SHIPPED, MOD: b"another build\n"})
    error = refused(stage, "capture", "some-dist", "--find-links", other.parent, exit_code=5)
    assert error["code"] == "no-pristine-bytes" and "other bytes than RECORD says" in error["message"]
    assert refused(stage, "capture", "some-dist", "--wheel", other, exit_code=5)["code"] == "no-pristine-bytes"


def test_in_a_shared_namespace_the_files_of_others_are_not_captured(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = sample_wheel(tmp_path / "wheels", files={"space/mine/a.py": b"a = 1\n"}, name="mine")
    other = sample_wheel(tmp_path / "wheels", files={"space/other/a.py": b"a = 1\n"}, name="other")
    stage = make_stage(tmp_path, make_site, capfd.readouterr, mine, other)
    monkeypatch.chdir(stage.folder)
    for path in ("space/mine/a.py", "space/mine/b/c.py", "space/other/a.py", "space/other/b.py", "space/third/a.py"):
        stage.write(path, b"a = 2\n")
    said = stage.json("capture", "mine", "--find-links", wheels(stage))
    assert [each["path"] for each in said["edits"]] == ["space/mine/a.py", "space/mine/b/c.py"]


def test_a_dry_run_of_capture_writes_nothing(stage: Stage) -> None:
    hack(stage.site)
    before = stage.tree()
    said = stage.run("capture", "some-dist", "--find-links", wheels(stage), "--dry-run").expect()
    assert "would write patches/some-dist/captured.1.2.3.patch\n" in said.out
    assert (stage.tree(), list(stage.patches.iterdir())) == (before, [])


def test_a_broken_patch_folder_stops_capture_before_it_writes(stage: Stage) -> None:
    put(stage.patches / "bad" / "patchset.toml", b"schema = 1\n")
    stage.write(MOD, FIVE)
    assert "bad/patchset.toml" in refused(stage, "capture", "some-dist", exit_code=3)["message"]


# ---- real installers ------------------------------------------------------------------------------------------


@pytest.fixture(params=["pip", "uv"])
def inflection(
    request: pytest.FixtureRequest, tmp_path: Path, make_venv: Callable[..., Venv], uv_install: UvInstall
) -> Venv:
    """A real environment with the real inflection, by pip or uv."""
    venv = make_venv(tmp_path / "venv", with_pip=False)
    wheel = worlds.find_wheel("inflection", "0.5.1")
    if request.param == "pip":
        worlds.pip_install(venv, wheel)
    else:
        uv_install(venv, wheel, link_mode="hardlink")
    return venv


def test_a_real_distribution_goes_from_an_edit_to_a_patch_and_back(
    inflection: Venv, patchkit: RunPatchkit, tmp_path: Path
) -> None:
    def do(*words: str | os.PathLike[str], ends: int = 0) -> Finished:
        return patchkit(*words, env={"VIRTUAL_ENV": str(inflection.root)}).expect(ends)

    def plural(word: str = "software") -> str:
        code = f"import inflection; print(inflection.pluralize({word!r}))"
        return inflection.run("-c", code, cwd=tmp_path).out.strip()

    pristine = without_bytecode(tree(inflection.site_packages))
    module = inflection.site_packages / "inflection" / "__init__.py"
    shipped = module.read_bytes()
    module.unlink()  # as an editor that saves a new file: uv's cache has the old one
    module.write_bytes(shipped.replace(b"'sheep',", b"'sheep', 'software',"))
    folder = os.path.dirname(worlds.find_wheel("inflection", "0.5.1"))
    said = do("capture", "inflection", "--set", "words", "--patch", "software", "--find-links", folder)
    assert "words/software  applied  inflection 0.5.1  software.0.5.1.patch" in said.out
    assert plural() == "software"
    do("verify")
    do("status", "--exit-code")
    do("revert", "--all")
    assert plural() == "softwares" and without_bytecode(tree(inflection.site_packages)) == pristine

    work = tmp_path / "work"
    do("edit", "inflection", "inflection.py", "inflection/__init__.py", "--into", work)
    copy = work / "inflection" / "__init__.py"
    copy.write_bytes(copy.read_bytes().replace(b"'rice',", b"'rice', 'firmware',"))
    said = do("commit", work, "--set", "words", "--patch", "firmware")
    assert "it fits the shipped file, but not together with words/software" in said.err
    do("apply", "words/firmware")
    assert plural("firmware") == "firmware"
    do("revert", "--all")
    assert without_bytecode(tree(inflection.site_packages)) == pristine


def test_with_uvs_symbolic_links_an_edit_is_captured_and_it_is_said_who_else_has_it(
    tmp_path: Path, make_venv: Callable[..., Venv], uv_install: UvInstall, patchkit: RunPatchkit
) -> None:
    venv = make_venv(tmp_path / "venv", with_pip=False)
    wheel = sample_wheel(tmp_path / "wheels")
    uv_install(venv, wheel, link_mode="symlink")
    (tmp_path / "patches").mkdir()

    def do(*words: str | os.PathLike[str], exit_code: int = 0) -> Finished:
        return patchkit(*words, cwd=tmp_path, env={"VIRTUAL_ENV": str(venv.root)}).expect(exit_code)

    mod, data = venv.site_packages / MOD, venv.site_packages / DATA
    mod.write_bytes(FIVE)  # straight into uv's cache
    shipped, target = data.read_bytes(), put(tmp_path / "elsewhere.txt", b"mine\n")
    data.unlink()
    data.symlink_to(target)
    said = do("capture", "some-dist", "--wheel", wheel, exit_code=3)
    assert f"{DATA} is a symbolic link to {target}" in said.err and MOD not in said.err
    data.unlink()
    put(data, shipped)
    said = do("capture", "some-dist", "--wheel", wheel)
    assert f"warning: {MOD} is a link into {mod.resolve().parents[1]}: every environment" in said.err
    do("verify")
    cached = mod.resolve()
    do("revert", "--all")
    assert (mod.read_bytes(), mod.is_symlink(), cached.read_bytes()) == (WHOLE, False, FIVE)


# ---- the documents --------------------------------------------------------------------------------------------

HEAD = {"schema", "command", "ok", "exit_code", "warnings[]", "warnings[].code", "warnings[].message"}


def test_every_key_of_the_documents_is_documented(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    edited = stage.json("edit", "some-dist", MOD, "--find-links", wheels(stage))
    environment = {"environment.site_root", "environment.python"}
    assert key_paths(edited) - HEAD - environment == set(read_first_words(JSON["`edit`"]))
    add_a_binary(stage)
    words = ("--find-links", wheels(stage), "--exclude", "**/*.bin")
    captured = stage.json("capture", "some-dist", *words)
    [heading] = [heading for heading in JSON if heading.startswith("`check`")]
    keys = key_paths(captured) - set(read_first_words(JSON[heading])) - HEAD
    assert {key for key in keys if not key.startswith("patches[]")} == set(
        read_first_words(JSON["`commit`, `capture`, `import`"])
    )


def test_the_documents_are_one_json_document_each(stage: Stage) -> None:
    said = stage.run("commit", "nowhere", "--patch", "p", "--json").expect(2)
    assert json.loads(said.out)["command"] == "commit" and said.err == ""
