"""What `capture` sees beside changed lines, and what it does not take: modes, stray files, rows that RECORD lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    sample_wheel,
    with_line,
)
from test_authoring import FIVE, WHOLE, add_script, manifest, wheels
from worlds import UvInstall, Venv, tree

SCRIPT = "some_dist/script.py"
NEW = "some_dist/new.py"


@pytest.fixture
def stage(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Stage:
    """A stage whose folder is the working directory; one shipped file is executable."""
    wheel = sample_wheel(tmp_path / "wheels", files=SHIPPED | {SCRIPT: b"script = 1\n"}, modes={SCRIPT: 0o755})
    stage = make_stage(tmp_path, make_site, capfd.readouterr, wheel)
    monkeypatch.chdir(stage.folder)
    return stage


def mode(stage: Stage, path: str) -> int:
    return (stage.site / path).stat().st_mode & 0o777


def capture(stage: Stage, *words: str, exit_code: int = 0) -> Any:
    return stage.json("capture", "some-dist", "--find-links", wheels(stage), *words, exit_code=exit_code)


def refused(stage: Stage, *words: str, exit_code: int) -> Any:
    """The error of a capture after which nothing has changed."""
    before = stage.tree(), tree(stage.patches)
    said = capture(stage, *words, exit_code=exit_code)
    assert (stage.tree(), tree(stage.patches)) == before
    return said["error"]


# ---- modes ----------------------------------------------------------------------------------------------------


def test_an_executable_bit_alone_is_captured_where_the_wheel_tells_what_was_shipped(stage: Stage) -> None:
    pristine = stage.tree()
    (stage.site / TOOL).chmod(0o755)
    (stage.site / SCRIPT).chmod(0o644)
    said = capture(stage)
    assert {each["path"]: each["edit"] for each in said["edits"]} == {TOOL: "modified", SCRIPT: "modified"}
    diff = Path(said["file"]).read_bytes()
    assert b"old mode 100644\nnew mode 100755\n" in diff and b"old mode 100755\nnew mode 100644\n" in diff
    assert stage.states() == {"some-dist/captured": "applied"}
    stage.run("verify").expect()
    stage.run("revert", "--all").expect()
    assert stage.tree() == pristine
    stage.run("apply").expect()
    assert (mode(stage, TOOL), mode(stage, SCRIPT)) == (0o755, 0o644)


def test_a_mode_beside_changed_lines_is_captured_and_reverted_with_them(stage: Stage) -> None:
    pristine = stage.tree()
    stage.write(MOD, FIVE)
    (stage.site / MOD).chmod(0o755)
    assert b"new mode 100755" in Path(capture(stage)["file"]).read_bytes()
    stage.run("revert", "--all").expect()
    assert stage.tree() == pristine


def test_a_mode_on_top_of_an_applied_patch_is_captured_from_the_ledger(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.run("apply").expect()
    (stage.site / MOD).chmod(0o755)
    said = stage.json("capture", "some-dist", "--set", "own")
    assert b"@@" not in Path(said["file"]).read_bytes()
    stage.run("revert", "own").expect()
    assert (mode(stage, MOD), stage.read()) == (0o644, FIVE)


def test_without_a_wheel_it_is_said_that_modes_were_not_compared(stage: Stage) -> None:
    (stage.site / TOOL).chmod(0o755)
    error = stage.json("capture", "some-dist", exit_code=1)["error"]
    assert error["code"] == "no-change" and "executable bits are compared where --wheel FILE" in error["hint"]


def test_an_installer_that_gives_no_file_an_executable_bit_took_none_away(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    scripts = {"some_dist/one.sh": b"one\n", "some_dist/two.sh": b"two\n"}
    wheel = sample_wheel(tmp_path / "wheels", files=SHIPPED | scripts, modes=dict.fromkeys(scripts, 0o755))
    stage = make_stage(tmp_path, make_site, capfd.readouterr, wheel)
    for path in scripts:
        (stage.site / path).chmod(0o644)
    stage.write(MOD, FIVE)
    assert [each["path"] for each in capture(stage)["edits"]] == [MOD]


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_real_installers_give_the_modes_that_the_wheel_tells(
    installer: str,
    tmp_path: Path,
    make_venv: Callable[..., Venv],
    pip_install: Callable[..., Any],
    uv_install: UvInstall,
    capfd: pytest.CaptureFixture[str],
) -> None:
    wheel = sample_wheel(tmp_path / "wheels", files=SHIPPED | {SCRIPT: b"script = 1\n"}, modes={SCRIPT: 0o755})
    venv = make_venv(tmp_path / "venv", with_pip=False)
    if installer == "pip":
        pip_install(venv, wheel)
    else:
        uv_install(venv, wheel)
    (tmp_path / "patches").mkdir()
    stage = Stage(tmp_path, venv.site_packages, tmp_path / "patches", lambda: tmp_path, capfd.readouterr)
    assert refused(stage, exit_code=1)["code"] == "no-change"


def test_a_wheel_of_the_one_distribution_serves_where_another_is_patched_too(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sample_wheel(tmp_path / "other", files={"other/a.py": b"a = 1\n"}, name="other")
    stage = make_stage(tmp_path, make_site, capfd.readouterr, sample_wheel(tmp_path / "wheels"), other)
    monkeypatch.chdir(stage.folder)
    stage.add(
        "theirs", patch("a", make_diff({"other/a.py": b"a = 1\n"}, {"other/a.py": b"a = 2\n"})), distribution="other"
    )
    stage.run("apply").expect()
    (stage.site / MOD).chmod(0o755)
    [wheel] = (tmp_path / "wheels").iterdir()
    stage.json("capture", "some-dist", "--wheel", wheel)
    assert stage.states() == {"some-dist/captured": "applied", "theirs/a": "applied"}
    stage.write(MOD, FIVE)
    stage.run("apply", "--discard-edits", "--wheel", wheel).expect()
    assert (stage.read(), mode(stage, MOD)) == (WHOLE, 0o755)


def test_a_file_that_was_renamed_in_place_is_captured_as_a_rename(stage: Stage) -> None:
    pristine = stage.tree()
    (stage.site / BLOCKS).rename(stage.site / "some_dist/stones.py")
    stage.write("some_dist/stones.py", stage.read("some_dist/stones.py") + b"end = 1\n")
    said = capture(stage)
    diff = Path(said["file"]).read_bytes()
    assert b"rename from some_dist/blocks.py\nrename to some_dist/stones.py\n" in diff and diff.count(b"\n+") == 2
    assert {each["path"]: each["edit"] for each in said["edits"]} == {
        BLOCKS: "deleted",
        "some_dist/stones.py": "created",
    }
    stage.run("verify").expect()
    stage.run("revert", "--all").expect()
    assert stage.tree() == pristine
    stage.run("apply").expect()
    assert not (stage.site / BLOCKS).exists() and stage.states() == {"some-dist/captured": "applied"}


# ---- after the same version was installed anew ----------------------------------------------------------------


def installed_anew(stage: Stage) -> None:
    """fix/one was applied, and an installer put back what was shipped."""
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n") + make_diff({NEW: None}, {NEW: b"new = 1\n"})))
    stage.run("apply").expect()
    [wheel] = (stage.folder / "wheels").iterdir()
    stage.reinstall(wheel)


def test_files_that_are_as_shipped_again_are_no_edit_and_the_patch_is_named(stage: Stage) -> None:
    installed_anew(stage)
    error = refused(stage, exit_code=1)
    assert error["code"] == "no-change" and error["hint"].startswith("fix/one is not in some_dist/mod.py any more")
    stage.write(DATA, b"one\nzwei\nthree\n")
    said = capture(stage)
    assert {each["path"]: each["edit"] for each in said["edits"]} == {DATA: "modified"}
    assert [notice["code"] for notice in said["warnings"]] == ["drifted"]
    assert stage.states() == {"fix/one": "drifted", "fix/captured": "applied"}
    stage.run("apply").expect()
    assert (stage.read(), stage.read(NEW), stage.read(DATA)) == (FIVE, b"new = 1\n", b"one\nzwei\nthree\n")
    stage.run("verify").expect()


def test_an_edit_of_what_was_installed_anew_does_not_take_the_patch_out(stage: Stage) -> None:
    installed_anew(stage)
    stage.write(MOD, with_line(30, b"line_30 = 0\n"))
    error = refused(stage, exit_code=4)
    assert error["code"] == "drifted" and "is without what fix/one does" in error["message"]
    stage.run("apply", "fix/one", "--discard-edits", "--wheel", next((stage.folder / "wheels").iterdir())).expect()
    stage.write(MOD, with_line(30, b"line_30 = 0\n", FIVE))
    assert capture(stage)["edits"] == [{"path": MOD, "edit": "modified"}]
    assert stage.states() == {"fix/one": "applied", "fix/captured": "applied"}


def test_an_edit_that_takes_a_patch_out_again_is_refused_where_no_other_file_shows_it(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.run("apply").expect()
    stage.write(MOD, with_line(30, b"line_30 = 0\n", b"line_0 = 0\n" + WHOLE))
    assert refused(stage, exit_code=4)["code"] == "drifted"


# ---- what lies below an edit ----------------------------------------------------------------------------------


def test_an_edit_on_top_of_a_patch_on_an_accepted_base_is_captured_and_reverted_to_that_base(stage: Stage) -> None:
    accepted = with_line(30, b"line_30 = 'mine'\n")
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.write(MOD, accepted)
    stage.run("apply", "--accept-modified").expect()
    edited = with_line(20, b"line_20 = 0\n", stage.read())
    stage.write(MOD, edited)
    said = capture(stage)
    diff = Path(said["file"]).read_bytes()
    assert b"+line_20 = 0\n" in diff and diff.count(b"\n+") == 2
    assert stage.states() == {"fix/one": "applied", "fix/captured": "applied"} and stage.read() == edited
    stage.run("verify").expect()
    stage.run("revert", "fix/captured").expect()
    assert stage.read() == with_line(5, b"line_5 = 5.0\n", accepted)
    stage.run("revert", "--all").expect()
    assert stage.read() == accepted


def test_a_patch_that_comes_before_what_the_edit_lies_on_is_refused_until_its_entry_says_after(stage: Stage) -> None:
    first = patch("first", edit(30, b"line_30 = 0\n"), versions="==1.0")
    second = patch("second", edit(5, b"line_5 = 5.0\n"))
    stage.add("fix", first, second)
    stage.run("apply", "fix/second").expect()
    stage.run("edit", "some-dist", MOD, "--on-top", "--into", "work").expect()
    edited = with_line(6, b"line_6 = 6.0\n", FIVE)
    (stage.folder / "work" / MOD).write_bytes(edited)
    stage.write(MOD, edited)
    for words in (("commit", "work"), ("capture", "some-dist")):
        before = stage.tree(), tree(stage.patches)
        error = stage.json(*words, "--patch", "first", exit_code=3)["error"]
        assert (stage.tree(), tree(stage.patches)) == before
        assert error["code"] == "variant-exists" and 'write `after = ["second"]` into' in error["hint"]
    stage.add("fix", {**first, "after": ["second"]}, second)
    capture(stage, "--patch", "first")
    assert set(stage.actions("apply").values()) == {"none"} and stage.read() == edited


def test_where_saying_after_would_be_a_cycle_it_is_not_proposed(stage: Stage) -> None:
    first = patch("first", edit(30, b"line_30 = 0\n"), versions="==1.0")
    stage.add("fix", first, patch("second", edit(5, b"line_5 = 5.0\n"), after=["first"]))
    stage.run("apply", "fix/second").expect()
    stage.write(MOD, with_line(6, b"line_6 = 6.0\n", FIVE))
    assert refused(stage, "--patch", "first", exit_code=3)["hint"] == "name another patch with --patch"


def test_an_edit_on_top_of_a_patch_that_its_set_has_no_more_is_told_so(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.run("apply").expect()
    stage.add("fix", patch("other", edit(30, b"line_30 = 0\n"), default=False))
    stage.write(MOD, with_line(6, b"line_6 = 6.0\n", FIVE))
    error = refused(stage, exit_code=3)
    assert error["code"] == "unknown-patch" and "on top of fix/one, which no patch set at hand has" in error["message"]
    capture(stage, "--set", "own")
    assert stage.states()["own/captured"] == "applied"


def test_an_edit_left_out_beside_one_that_is_captured_is_told_in_words_of_capture(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n") + make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n"})))
    stage.run("apply").expect()
    for path in (MOD, DATA):
        stage.write(path, stage.read(path) + b"end = 1\n")
    hint = refused(stage, "--exclude", DATA, exit_code=5)["hint"]
    assert "without --exclude" in hint and "patchkit capture" not in hint


# ---- files that no patch may touch ----------------------------------------------------------------------------


def test_an_edited_script_or_metadata_file_is_listed_as_left_out(stage: Stage) -> None:
    metadata = "some_dist-1.2.3.dist-info/METADATA"
    add_script(stage).write_bytes(b"#!/bin/sh\necho mine\n")
    stage.record.write_text("../bin/put-elsewhere,sha256=AAAA,1\n" + stage.record.read_text("utf-8"), "utf-8")
    error = refused(stage, exit_code=1)
    assert error["message"].startswith("no file that a patch may touch of some-dist 1.2.3")
    assert "../bin/some-tool lies outside the site root" in error["hint"]
    stage.write(metadata, stage.read(metadata) + b"Requires-Dist: other\n")
    stage.write(MOD, FIVE)
    said = capture(stage, "--dry-run")
    assert {each["path"]: each["reason"] for each in said["left_out"]} == dict.fromkeys(
        ("../bin/some-tool", metadata), "edited, and no patch may touch it"
    )
    said = capture(stage, "--exclude", "../bin/*")
    assert said["left_out"][0] == {"path": "../bin/some-tool", "reason": "excluded"}


# ---- patches at hand that are in the files already ------------------------------------------------------------


def test_what_a_patch_at_hand_does_is_left_to_it_and_the_rest_is_captured(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.write(MOD, FIVE)
    stage.write(DATA, b"one\nzwei\nthree\n")
    said = capture(stage)
    assert said["edits"] == [{"path": DATA, "edit": "modified"}] and said["warnings"] == []
    assert [each["path"] for each in said["left_out"]] == [MOD] and "fix/one" in said["left_out"][0]["reason"]
    assert stage.actions("apply") == {"fix/one": "adopted", "fix/captured": "none"}
    assert (stage.read(), stage.read(DATA)) == (FIVE, b"one\nzwei\nthree\n")


def test_what_a_patch_at_hand_does_among_other_edits_is_refused_and_the_way_on_works(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    both = with_line(30, b"line_30 = 0\n", FIVE)
    stage.write(MOD, both)
    error = refused(stage, exit_code=5)
    assert error["code"] == "conflict" and f"{MOD} has what fix/one does among other edits" in error["message"]
    wheel = next((stage.folder / "wheels").iterdir())
    [kept] = stage.json("apply", "fix/one", "--discard-edits", "--wheel", wheel)["warnings"]
    stage.write(MOD, Path(kept["message"].rpartition(" ")[2]).read_bytes())
    said = capture(stage)
    diff = Path(said["file"]).read_bytes()
    assert b"+line_30 = 0\n" in diff and b"+line_5" not in diff and stage.read() == both
    assert stage.actions("apply") == {"fix/one": "none", "fix/captured": "none"}


def test_a_capture_that_a_bare_apply_will_refuse_says_so(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    stage.write(MOD, FIVE)
    said = capture(stage)
    assert [notice["code"] for notice in said["warnings"]] == ["clash"]
    stage.run("apply").expect(5)


def test_a_capture_under_a_name_that_is_deselected_is_told(stage: Stage) -> None:
    stage.declare(deselect=["some-dist/captured"])
    stage.write(MOD, FIVE)
    [notice] = capture(stage)["warnings"]
    assert notice["code"] == "not-declared" and "`patchkit apply --exact` would take the edit out" in notice["message"]
    stage.run("apply", "--exact").expect()
    assert stage.read() == WHOLE


def test_a_glob_that_matches_nothing_is_told(stage: Stage) -> None:
    stage.write(MOD, FIVE)
    stage.write(DATA, b"one\n")
    words = ("--exclude", DATA, "--exclude", "some_dist/mot.py", "--include", "some_dist/new/*", "--dry-run")
    said = capture(stage, *words)["warnings"]
    assert [notice["code"] for notice in said] == ["idle-exclude", "idle-include"]
    assert said[0]["message"] == "--exclude some_dist/mot.py leaves out nothing: no such file differs"


# ---- sources that do not compile ------------------------------------------------------------------------------


def test_an_edit_that_does_not_compile_is_refused_as_apply_would(stage: Stage) -> None:
    stage.write(MOD, WHOLE + b"def broken(:\n")
    error = refused(stage, exit_code=7)
    assert error["code"] == "check-failed" and f"{MOD} does not compile: " in error["message"]
    assert "line 41" in error["message"]
    assert capture(stage, "--exclude", MOD, exit_code=1)["error"]["code"] == "no-change"


def test_a_commit_that_does_not_compile_is_refused_on_what_is_installed_and_elsewhere(stage: Stage) -> None:
    stage.run("edit", "some-dist", MOD, "--into", "work").expect()
    (stage.folder / "work" / MOD).write_bytes(WHOLE + b"def broken(:\n")
    error = stage.json("commit", "work", "--patch", "one", exit_code=7)["error"]
    assert error["code"] == "check-failed" and "line 41" in error["message"] and "mend the file" in error["hint"]
    stage.reinstall(sample_wheel(stage.folder / "later", "2.0"))
    error = stage.json("commit", "work", "--patch", "one", exit_code=7)["error"]
    assert error["code"] == "check-failed" and "line 41" in error["message"]
    assert not list(stage.patches.iterdir())


# ---- files of nobody, and files without a row -----------------------------------------------------------------


def test_a_loose_file_in_a_shared_namespace_is_listed_with_the_way_to_take_it(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = sample_wheel(tmp_path / "wheels", files={"space/mine/a.py": b"a = 1\n"}, name="mine")
    other = sample_wheel(tmp_path / "wheels", files={"space/other/a.py": b"a = 1\n"}, name="other")
    stage = make_stage(tmp_path, make_site, capfd.readouterr, mine, other)
    monkeypatch.chdir(stage.folder)
    stage.write("space/loose file.py", b"a = 2\n")
    words = ("capture", "mine", "--find-links", wheels(stage))
    way = "--include 'space/loose file.py' takes it"
    error = stage.json(*words, exit_code=1)["error"]
    assert error["code"] == "no-change" and error["hint"].endswith(way)
    stage.write("space/mine/a.py", b"a = 2\n")
    said = stage.json(*words, "--dry-run")
    assert [(each["path"], each["reason"].endswith(way)) for each in said["left_out"]] == [
        ("space/loose file.py", True)
    ]
    assert stage.json(*words, "--dry-run", "--exclude", "space/*")["left_out"][0]["reason"] == "excluded"
    said = stage.json(*words, "--include", "space/loose file.py")
    assert {each["path"]: each["edit"] for each in said["edits"]} == {
        "space/loose file.py": "created",
        "space/mine/a.py": "modified",
    }
    stage.run("revert", "--all").expect()
    assert not (stage.site / "space/loose file.py").exists()


def drop_row(stage: Stage, path: str) -> None:
    """RECORD as a careless build tool leaves it: without a row for a file that it ships."""
    rows = stage.record.read_text("utf-8").splitlines(keepends=True)
    stage.record.write_text("".join(row for row in rows if not row.startswith(f"{path},")), "utf-8")


def test_a_shipped_file_without_a_row_is_no_new_file(stage: Stage) -> None:
    drop_row(stage, BLOCKS)
    assert refused(stage, exit_code=1)["code"] == "no-change"
    stage.write(MOD, FIVE)
    said = capture(stage)
    assert said["left_out"] == [{"path": BLOCKS, "reason": "shipped, and RECORD has no row for it"}]
    assert [each["path"] for each in said["edits"]] == [MOD]
    stage.run("revert", "--all").expect()
    assert stage.read(BLOCKS) == SHIPPED[BLOCKS]


def test_a_shipped_file_without_a_row_that_was_edited_is_said_to_be_that(stage: Stage) -> None:
    drop_row(stage, MOD)
    stage.write(MOD, FIVE)
    error = refused(stage, exit_code=3)
    assert error["code"] == "unpatchable-file" and f"{MOD} was edited, and RECORD has no row for it" in error["message"]
    assert "`pip install --force-reinstall --no-deps some-dist==1.2.3`" in error["hint"]
    error = stage.json("edit", "some-dist", MOD, exit_code=2)["error"]
    assert f"{MOD} is there, and RECORD of some-dist 1.2.3 has no row for it" in error["message"]
    (stage.folder / "commit.diff").write_bytes(edit(5, b"line_5 = 5.0\n"))
    error = stage.json("import", "commit.diff", "--distribution", "some-dist", exit_code=5)["error"]
    assert f"{MOD} is there, and RECORD of some-dist 1.2.3 has no row for it" in error["message"]


# ---- the ways out ---------------------------------------------------------------------------------------------


def test_status_and_drift_name_capture_among_the_ways_out_of_an_edit(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 5.0\n")))
    stage.write(MOD, with_line(30, b"line_30 = 'thirty'\n"))
    keep = "`patchkit capture some-dist` makes a patch of the edit"
    for command, code in (("status", 0), ("check", 1)):
        assert f"replaces it and keeps its bytes; {keep}" in stage.run(command).expect(code).out
    assert keep in stage.json("drift", exit_code=1)["drift"][0]["detail"]
    assert keep in stage.json("apply", exit_code=5)["error"]["hint"]
    stage.write(MOD, WHOLE)
    stage.run("apply").expect()
    stage.write(MOD, with_line(30, b"line_30 = 'thirty'\n", FIVE))
    for command, code in (("status", 0), ("drift", 1)):
        assert keep in stage.run(command).expect(code).out
    stage.json("capture", "some-dist", "--set", "own")
    assert stage.states() == {"fix/one": "applied", "own/captured": "applied"}


def test_a_set_folder_that_is_there_and_empty_is_used(stage: Stage) -> None:
    (stage.patches / "some-dist").mkdir()
    stage.write(MOD, b"".join(LINES[1:]))
    capture(stage)
    assert manifest(stage).patches[0].id.patch == "captured"
