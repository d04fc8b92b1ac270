"""Patch folders: where they are looked for, what may lie in them, and how everything that is wrong is told at once."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.cli import main
from stages import Stage, edit, make_stage, patch, put, sample_wheel

FIVE = edit(5, b"line_5 = 'five'\n")
NINE = edit(9, b"line_9 = 'nine'\n")
NEEDING = (["list"], ["show", "fix"], ["check"], ["apply"])
MANAGING_WITHOUT = (["verify"], ["status"], ["recover"], ["revert", "--all"])


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", FIVE))
    return stage


def sets_of(stage: Stage, *args: str | os.PathLike[str]) -> list[str]:
    """The names of the sets that ``list`` shows; nothing but ``args`` says where to look."""
    stage.capture()
    assert main(["list", *map(os.fspath, args)]) == 0
    return re.findall(r"^\S+", stage.capture().out, re.MULTILINE)


def refuse(stage: Stage, *args: str) -> str:
    """What the command says when it ends with 3, and writes nothing."""
    before = stage.tree()
    said = stage.run(*args).expect(3)
    assert said.out == "" and "Traceback" not in said.err
    assert stage.tree() == before
    return said.err


# ---- folders --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", NEEDING)
@pytest.mark.parametrize("what", ["missing", "empty", "a file", "without a patch set"])
def test_a_folder_without_patch_sets_is_an_error_that_says_where_was_looked(
    what: str, args: list[str], stage: Stage
) -> None:
    shutil.rmtree(stage.patches)
    if what == "a file":
        stage.patches.write_text("no folder")
    if what in ("empty", "without a patch set"):
        stage.patches.mkdir()
    if what == "without a patch set":
        put(stage.patches / "README.md", b"nothing\n")
        put(stage.patches / "notes" / "more.txt", b"nothing\n")
    said = refuse(stage, *args)
    assert str(stage.patches) in said
    assert "--patches DIR" in said


@pytest.mark.parametrize("args", MANAGING_WITHOUT)
@pytest.mark.parametrize("what", ["missing", "broken", "broken twice"])
def test_commands_that_need_no_patch_folder_warn_and_go_on(what: str, args: list[str], stage: Stage) -> None:
    stage.run("apply").expect(0)
    if what == "missing":
        shutil.rmtree(stage.patches)
    else:
        (stage.patches / "fix" / "patchset.toml").write_text("schema = 1\n" if what == "broken twice" else "=")
    said = stage.run(*args).expect(0)
    assert "warning: " in said.err and str(stage.patches) in said.err
    assert "warning" in stage.run(*args, "--quiet").err
    if args[0] == "revert":
        assert b"five" not in stage.read() and not stage.ledger_file.exists()
    else:
        assert b"five" in stage.read()


def test_an_empty_run_is_accepted_only_when_asked_for(stage: Stage) -> None:
    shutil.rmtree(stage.patches)
    refuse(stage, "apply")
    before = stage.tree()
    said = stage.run("apply", "--allow-empty").expect(0)
    assert str(stage.patches) in said.err
    assert stage.tree() == before


def test_a_broken_set_is_no_empty_run(stage: Stage) -> None:
    (stage.patches / "fix" / "patchset.toml").write_text("=")
    assert "patchset.toml" in refuse(stage, "apply", "--allow-empty")


def test_without_options_the_folder_patches_of_the_current_one_is_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stage.folder)
    assert sets_of(stage) == ["fix"]
    monkeypatch.chdir(stage.patches)
    stage.capture()
    assert main(["list"]) == 3
    assert str(stage.patches / "patches") in stage.capture().err


def test_a_folder_may_be_one_patch_set(stage: Stage) -> None:
    stage.add("other", patch("two", NINE))
    assert sets_of(stage, "--patches", stage.patches / "fix") == ["fix"]
    assert sets_of(stage, "--patches", f"{stage.patches / 'fix'}/") == ["fix"]
    assert sets_of(stage, "--patches", stage.patches / "fix", "--patches", stage.patches / "other") == ["fix", "other"]


def test_a_relative_folder_starts_from_the_current_one(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.patches)
    assert sets_of(stage, "--patches", ".") == ["fix"]
    assert sets_of(stage, "--patches", "fix") == ["fix"]
    monkeypatch.chdir(stage.patches / "fix")
    assert sets_of(stage, "--patches", ".") == ["fix"]


def test_bundled_sets_come_alone_or_beside_others(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    assert sets_of(stage, "--bundled") == ["flashinfer-dynamo"]
    assert sets_of(stage, "--bundled", "--patches", stage.patches) == ["fix", "flashinfer-dynamo"]


# ---- pyproject.toml -------------------------------------------------------------------------------------------


def test_the_nearest_pyproject_names_the_folders_from_where_it_lies(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "pyproject.toml").write_text('[tool.patchkit]\npatches = ["patches", "more"]\n')
    put(stage.folder / "more" / "some-other==1.0.patch", FIVE)
    deep = stage.folder / "src" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert sets_of(stage) == ["fix", "some-other"]
    (stage.folder / "src" / "pyproject.toml").write_text('[tool.patchkit]\npatches = "../patches"\n')
    assert sets_of(stage) == ["fix"]


def test_what_the_command_line_names_is_read_instead(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    (stage.folder / "pyproject.toml").write_text('[tool.patchkit]\npatches = "nowhere"\n')
    monkeypatch.chdir(stage.folder)
    assert sets_of(stage, "--patches", "patches") == ["fix"]
    stage.capture()
    assert main(["list"]) == 3
    assert str(stage.folder / "nowhere") in stage.capture().err


def test_a_pyproject_that_says_nothing_of_patchkit_changes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    monkeypatch.chdir(stage.folder)
    assert sets_of(stage) == ["fix"]


def test_a_pyproject_selects_and_deselects(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.add("fix", patch("one", FIVE), patch("two", NINE, default=False))
    (stage.folder / "pyproject.toml").write_text('[tool.patchkit]\nselect = ["fix/two"]\ndeselect = ["fix/one"]\n')
    monkeypatch.chdir(stage.folder)
    stage.run("apply").expect(0)
    assert b"nine" in stage.read() and b"five" not in stage.read()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.patchkit]\npatch = 'x'\n", "tool.patchkit.patch: unknown key"),
        ("[tool.patchkit]\npatches = 3\n", "tool.patchkit.patches"),
        ("[tool]\npatchkit = 3\n", "tool.patchkit: must be a table"),
        ("[tool.patchkit\n", "is not TOML"),
    ],
)
def test_a_wrong_pyproject_is_told_with_its_path_and_key(
    text: str, words: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "pyproject.toml").write_text(text)
    monkeypatch.chdir(stage.folder)
    said = refuse(stage, "list")
    assert str(stage.folder / "pyproject.toml") in said and words in said


def test_a_selection_of_what_is_not_there_names_the_file_that_says_so(stage: Stage) -> None:
    stage.declare(select=["fix/won", "gone/one"])
    said = refuse(stage, "apply")
    assert f"{stage.patches / 'patchkit.toml'}: select" in said
    assert "'fix/won'" in said and "'gone/one'" in said and "did you mean 'fix/one'?" in said


def test_a_wrong_patchkit_toml_is_told(stage: Stage) -> None:
    (stage.patches / "patchkit.toml").write_text("selct = ['fix']\n")
    said = refuse(stage, "apply")
    assert str(stage.patches / "patchkit.toml") in said and "selct: unknown key" in said


# ---- manifests ------------------------------------------------------------------------------------------------


def test_all_that_is_wrong_in_all_manifests_comes_at_once_with_key_paths(stage: Stage) -> None:
    one = "schema = 1\nname = 'fix'\ndistribution = 'some-dist'\nodd = 1\n[[patch]]\nname = 'a b'\ndefault = 'yes'\n"
    two = "schema = 1\nname = 'elsewhere'\ndistribution = 'some-dist'\n[[patch]]\nname = 'p'\n"
    two += "[[patch.variant]]\nversions = '>=x'\nfile = '../out.patch'\n[[patch.check]]\nkind = 'magic'\n"
    put(stage.patches / "fix" / "patchset.toml", one.encode())
    put(stage.patches / "more" / "patchset.toml", two.encode())
    put(stage.patches / "odd.patch", FIVE)
    put(stage.patches / "patchkit.toml", b"selct = []\n")
    for args in NEEDING:
        said = refuse(stage, *args)
        for words in (
            "fix/patchset.toml: odd: unknown key",
            "fix/patchset.toml: patch[0].name: ",
            "fix/patchset.toml: patch[0].default: ",
            "fix/patchset.toml: patch[0].variant: ",
            "more/patchset.toml: name: ",
            "more/patchset.toml: patch[0].variant[0].versions: ",
            "more/patchset.toml: patch[0].variant[0].file: ",
            "more/patchset.toml: patch[0].check[0].kind: ",
            "odd.patch",
            "patchkit.toml: selct",
        ):
            assert words in said, words


def test_a_folder_with_diffs_and_no_manifest_is_not_passed_over(stage: Stage) -> None:
    put(stage.patches / "forgotten" / "a.patch", FIVE)
    said = refuse(stage, "apply")
    assert f"{stage.patches / 'forgotten'} holds diffs and no patchset.toml" in said


def test_hidden_folders_are_not_patch_sets(stage: Stage) -> None:
    put(stage.patches / ".old" / "a.patch", FIVE)
    assert sets_of(stage, "--patches", stage.patches) == ["fix"]


def test_two_sets_of_one_name_are_refused_with_both_places(stage: Stage) -> None:
    shutil.copytree(stage.patches, stage.folder / "copy")
    said = refuse(stage, "apply", "--patches", str(stage.folder / "copy"))
    assert "2 patch sets are called fix" in said
    assert str(stage.patches / "fix") in said and str(stage.folder / "copy" / "fix") in said


def test_a_file_and_a_folder_of_one_name_are_two_sets_of_one_name(stage: Stage) -> None:
    stage.add("some-dist", patch("one", FIVE))
    put(stage.patches / "some-dist==1.2.3.patch", NINE)
    assert "2 patch sets are called some-dist" in refuse(stage, "apply")


def test_the_same_folder_named_twice_is_one_folder(stage: Stage) -> None:
    assert sets_of(stage, "--patches", stage.patches, "--patches", f"{stage.patches}/") == ["fix"]


def test_every_file_that_a_manifest_names_and_that_is_not_there_is_told(stage: Stage) -> None:
    checks = [{"kind": "python", "file": "checks/no.py"}]
    folder = stage.add("fix", patch("one", FIVE, check=checks), patch("two", NINE), checks={"checks/no.py": b""})
    for file in ("one.patch", "two.patch", "checks/no.py"):
        (folder / file).unlink()
    for args in NEEDING:
        said = refuse(stage, *args)
        for file in ("one.patch", "two.patch", "checks/no.py"):
            assert f"it names {file}, and there is no such file" in said


@pytest.mark.parametrize("file", ["one.patch", "no.py"])
def test_a_file_that_a_link_leads_out_of_the_set_is_refused(file: str, stage: Stage) -> None:
    checks = [{"kind": "python", "file": "no.py"}]
    folder = stage.add("fix", patch("one", FIVE, check=checks), checks={"no.py": b""})
    outside = shutil.move(folder / file, stage.folder / file)
    (folder / file).symlink_to(outside)
    said = refuse(stage, "apply")
    assert f"{folder / file} leads out of its patch set" in said


def test_a_link_inside_the_set_is_followed_and_so_is_the_folder_itself(stage: Stage) -> None:
    folder = stage.patches / "fix"
    (folder / "one.patch").rename(folder / "real.patch")
    (folder / "one.patch").symlink_to("real.patch")
    elsewhere = shutil.move(folder, stage.folder / "elsewhere" / "fix")
    folder.symlink_to(elsewhere, target_is_directory=True)
    stage.run("apply").expect(0)
    assert b"five" in stage.read()


# ---- files without a manifest ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["some-dist==1.2.3", "some-dist@1.2.3", "some-dist+1.2.3", "Some.Dist==1.2.3"])
def test_a_patch_file_needs_no_manifest(name: str, stage: Stage) -> None:
    shutil.rmtree(stage.patches / "fix")
    put(stage.patches / f"{name}.patch", FIVE)
    assert sets_of(stage, "--patches", stage.patches) == ["some-dist"]
    said = stage.run("apply").expect(0)
    assert "some-dist/default" in said.out
    assert b"five" in stage.read()
    stage.run("revert", "some-dist/default").expect(0)


@pytest.mark.parametrize("name", ["some-dist+1.2.3+cu130", "some-dist==1.2.3+cu130", "some-dist==1.2.3"])
def test_a_patch_file_for_a_local_version(
    name: str, tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    stage = make_stage(tmp_path, make_site, capfd.readouterr, sample_wheel(tmp_path / "wheels", "1.2.3+cu130"))
    put(stage.patches / f"{name}.patch", FIVE)
    stage.run("apply").expect(0)
    assert b"five" in stage.read()


def test_a_patch_file_for_another_local_version_is_not_taken(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    stage = make_stage(tmp_path, make_site, capfd.readouterr, sample_wheel(tmp_path / "wheels", "1.2.3+cu130"))
    put(stage.patches / "some-dist+1.2.3+cpu.patch", FIVE)
    assert "some-dist 1.2.3+cu130" in stage.run("apply").expect(4).err


def test_all_files_of_one_distribution_are_one_patch_with_one_variant_each(stage: Stage) -> None:
    shutil.rmtree(stage.patches / "fix")
    put(stage.patches / "some-dist==1.2.2.patch", NINE)
    put(stage.patches / "Some_Dist@1.2.3.patch", FIVE)
    [row] = stage.json("check")["patches"]
    assert (row["set"], row["patch"], row["variant"]) == ("some-dist", "default", "Some_Dist@1.2.3.patch")
    assert "1.2.2" in stage.run("list").out


def test_two_files_for_one_version_are_refused(stage: Stage) -> None:
    put(stage.patches / "some-dist==1.2.3.patch", FIVE)
    put(stage.patches / "some_dist@1.2.3.patch", NINE)
    said = refuse(stage, "apply")
    assert "some-dist==1.2.3.patch" in said and "some_dist@1.2.3.patch" in said and "are both for" in said


@pytest.mark.parametrize("name", ["fix.patch", "some-dist==.patch", "some-dist==banana.patch", "==1.0.patch", ".patch"])
def test_a_patch_file_whose_name_says_nothing_is_not_passed_over(name: str, stage: Stage) -> None:
    put(stage.patches / name, FIVE)
    said = refuse(stage, "apply")
    assert str(stage.patches / name) in said


# ---- what list and show tell ----------------------------------------------------------------------------------


def test_list_shows_sets_patches_and_ranges(stage: Stage) -> None:
    no_need = [{"versions": ">=2", "why": "fixed there"}]
    stage.add(
        "more",
        patch("two", NINE, versions=">=1,<2", summary="Nine in words", group="g", default=False, not_needed=no_need),
        summary="More of it",
    )
    said = stage.run("list").expect(0).out
    for words in ("fix  (some-dist)", "more  (some-dist)  More of it", "[optional, group g] Nine in words"):
        assert words in said
    assert re.search(r"^ +>=1,<2 +two.patch$", said, re.MULTILINE)
    assert re.search(r"^ +>=2 +not needed: fixed there$", said, re.MULTILINE)


def test_show_shows_a_patch_with_its_diff_origin_and_checks(stage: Stage) -> None:
    check = [{"kind": "symbol", "module": "some_dist.mod", "has": "line_5 = 'five'"}]
    stage.add("fix", patch("one", FIVE, origin="https://example.org/1", bug="https://example.org/2", check=check))
    for name in ("fix", "fix/one"):
        said = stage.run("show", name).expect(0).out
        assert FIVE.decode().strip() in said
        assert "https://example.org/1" in said and "https://example.org/2" in said
        assert "symbol check:" in said


def test_show_of_a_set_with_several_patches_asks_for_one(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE), patch("two", NINE))
    said = refuse(stage, "show", "fix")
    assert "fix/one, fix/two" in said
