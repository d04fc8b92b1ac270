"""What a hostile tester found: folders that vanish, manifests that change under what is applied, checks that write."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worlds
from stages import (
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
from test_bad_input import as_another
from worlds import Finished, patchkit_command, record_digest, run

SUB = "some_dist/sub/only.py"
MOVED = "some_dist/moved.py"
PRISTINE, ONLY = b"".join(LINES), b"only = 1\nother = 2\n"
FIVE = b"line_5 = 'five'\n"
LOW = with_line(5, FIVE)
HERE = ("--python", sys.executable)
BY_NAME: dict[str, Any] = {"default": False}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    wheel = sample_wheel(tmp_path / "wheels", files=SHIPPED | {SUB: ONLY})
    return make_stage(tmp_path, make_site, capfd.readouterr, wheel)


def change_sub() -> bytes:
    return make_diff({SUB: ONLY}, {SUB: b"only = 2\nother = 2\n"})


def change_both() -> bytes:
    return make_diff({MOD: PRISTINE, SUB: ONLY}, {MOD: LOW, SUB: b"only = 2\nother = 2\n"})


def assert_refused(stage: Stage, code: int, *args: str) -> Finished:
    """The command ends with ``code`` and nothing is written."""
    before = stage.tree()
    said = stage.run(*args).expect(code)
    assert stage.tree() == before
    return said


# ---- folders that are gone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [{}, {MOVED: ONLY}], ids=["deleted", "renamed"])
@pytest.mark.parametrize("back", [["revert", "--all"], ["revert", "alpha/away"], ["apply", "--exact"]], ids=" ".join)
def test_a_folder_that_went_with_its_last_file_comes_back_with_it(
    after: dict[str, bytes], back: list[str], stage: Stage
) -> None:
    stage.add("alpha", patch("away", make_diff({SUB: ONLY}, after), **BY_NAME))
    shipped = stage.tree()
    stage.run("apply", "alpha/away").expect()
    shutil.rmtree((stage.site / SUB).parent, ignore_errors=True)
    stage.run(*back, *["--allow-empty"] * (back[0] == "apply")).expect()
    assert stage.tree() == shipped


def test_a_patched_file_comes_back_though_its_whole_folder_was_removed(stage: Stage) -> None:
    stage.add("alpha", patch("sub", change_sub()))
    shipped = stage.tree()
    stage.run("apply").expect()
    shutil.rmtree((stage.site / SUB).parent)
    stage.run("revert", "--all", "--discard-edits").expect()
    assert stage.tree() == shipped


# ---- check and apply agree ------------------------------------------------------------------------------------


def test_check_says_no_to_a_result_that_does_not_compile(stage: Stage) -> None:
    stage.add("alpha", patch("broken", edit(5, b"line_5 = (\n")))
    assert_refused(stage, 1, "check")
    assert_refused(stage, 7, "apply", "--dry-run")
    assert_refused(stage, 7, "apply")


def test_check_says_no_where_an_alternative_would_strand_what_stands_on_the_other(stage: Stage) -> None:
    ours: dict[str, Any] = {"group": "g", **BY_NAME}
    stage.add(
        "alpha",
        patch("one", edit(5, b"line_5 = 5\nadded = 1\n"), **ours),
        patch("two", edit(20, b"line_20 = 'two'\n"), **ours),
        patch("on-one", _on_top_of_one(), after=["one"], **BY_NAME),
    )
    stage.run("apply", "alpha/one", "alpha/on-one").expect()
    assert "on-one" in assert_refused(stage, 1, "check", "alpha/two").err
    assert "on-one" in assert_refused(stage, 5, "apply", "alpha/two").err


def _on_top_of_one() -> bytes:
    low = with_line(5, b"line_5 = 5\nadded = 1\n")
    return make_diff({MOD: low}, {MOD: low.replace(b"added = 1\n", b"added = 1\nmore = 2\n")})


def test_check_says_no_where_the_alternative_that_goes_is_in_an_edited_file(stage: Stage) -> None:
    ours: dict[str, Any] = {"group": "g", **BY_NAME}
    stage.add("alpha", patch("one", change_sub(), **ours), patch("two", edit(5, FIVE), **ours))
    stage.run("apply", "alpha/one").expect()
    stage.write(SUB, stage.read(SUB) + b"edit = 1\n")
    assert_refused(stage, 1, "check", "alpha/two")
    assert_refused(stage, 5, "apply", "--dry-run", "alpha/two")
    assert_refused(stage, 5, "apply", "alpha/two")


def test_a_root_that_cannot_be_written_is_told_by_a_dry_run_and_by_check(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    before = stage.tree()
    if os.geteuid() != 0:
        stage.site.chmod(0o555)
    try:
        assert "not writable" in as_another(stage, "apply", "--dry-run").expect(4).err
        assert "not writable" in as_another(stage, "apply").expect(4).err
        assert "not writable" in as_another(stage, "check").expect(0).err
    finally:
        stage.site.chmod(0o755)
    assert stage.tree() == before


# ---- the manifest changed -------------------------------------------------------------------------------------


@pytest.fixture
def regrouped(stage: Stage) -> Stage:
    """Two patches, both applied by name, that the manifest then made alternatives of each other."""
    for group in ({}, {"group": "g"}):
        stage.add(
            "alpha", patch("one", edit(5, FIVE), **group), patch("two", edit(20, b"line_20 = 2\n"), **BY_NAME, **group)
        )
        stage.run("apply", "alpha/one", "alpha/two").expect(0 if not group else 3)
    return stage


def test_alternatives_that_are_both_applied_are_told_with_the_commands_that_end_it(regrouped: Stage) -> None:
    for command in ("apply", "check"):
        error = assert_refused(regrouped, 3, command)
        assert all(f"`patchkit revert alpha/{name}`" in error.err for name in ("one", "two"))
    regrouped.run("revert", "alpha/two").expect()
    assert regrouped.states("apply") == {"alpha/one": "applied"}


def test_an_alternative_that_is_named_drops_the_other_that_was_applied_before_they_were_alternatives(
    regrouped: Stage,
) -> None:
    regrouped.run("apply", "alpha/two").expect()
    assert regrouped.read() == with_line(20, b"line_20 = 2\n")
    regrouped.run("apply").expect()
    assert regrouped.read() == with_line(20, b"line_20 = 2\n")


def test_nothing_declared_is_reached_twice(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    shipped = stage.tree()
    stage.run("apply").expect()
    stage.declare(deselect=["alpha/low"])
    stage.run("apply", "--exact").expect()
    stage.run("apply", "--exact").expect()
    assert stage.tree() == shipped


REPEATED = b"def f():\n" + b"    pass\n" * 12
ANOTHER = (
    f"--- a/{TOOL}\n+++ b/{TOOL}\n@@ -5,4 +5,5 @@\n     pass\n     pass\n+    pass\n     pass\n     pass\n".encode()
)


@pytest.mark.parametrize("new", ["alpha/new", "beta/old"])
def test_a_patch_under_a_new_name_is_taken_over_and_not_applied_twice(new: str, stage: Stage) -> None:
    stage.ship(TOOL, REPEATED)
    shipped = stage.tree()
    stage.add("alpha", patch("old", ANOTHER))
    stage.run("apply").expect()
    patched = stage.read(TOOL)
    shutil.rmtree(stage.patches / "alpha")
    stage.add(new.partition("/")[0], patch(new.partition("/")[2], ANOTHER))
    stage.run("apply").expect()
    assert stage.read(TOOL) == patched == REPEATED + b"    pass\n"
    assert stage.states() == stage.states("verify") == {new: "applied"}
    assert [row["patch"] for row in stage.ledger()["applied"]] == [new]
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


NO_MORE: dict[str, tuple[Callable[[], dict[str, Any]], list[str]]] = {
    "the text": (lambda: patch("both", edit(5, FIVE)), []),
    "not needed": (lambda: patch("both", None, not_needed=[{"versions": ">=1", "why": "fixed"}]), []),
    "a marker": (lambda: patch("both", change_both(), markers="os_name == 'nt'"), ["--allow-empty"]),
    "the range": (lambda: patch("both", change_both(), versions=">=9"), ["--skip-unmatched", "--allow-empty"]),
}


@pytest.mark.parametrize("operands", [[], ["alpha/both"]], ids=["bare", "named"])
@pytest.mark.parametrize("edited", [True, False], ids=["edited", "deleted"])
@pytest.mark.parametrize("what", NO_MORE)
def test_a_file_that_a_patch_no_longer_names_is_not_forgotten_while_it_holds_an_edit(
    what: str, edited: bool, operands: list[str], stage: Stage
) -> None:
    stage.add("alpha", patch("both", change_both()))
    stage.run("apply").expect()
    if edited:
        stage.write(SUB, stage.read(SUB) + b"edit = 1\n")
    else:
        (stage.site / SUB).unlink()
    make, options = NO_MORE[what]
    stage.add("alpha", make())
    assert SUB in assert_refused(stage, 5, "apply", *operands, *options).err


@pytest.mark.parametrize("what", ["not needed", "a marker"])
def test_apply_x_takes_x_out_where_it_is_not_wanted_any_more(what: str, stage: Stage) -> None:
    stage.add("alpha", patch("both", change_both()))
    shipped = stage.tree()
    stage.run("apply").expect()
    make, options = NO_MORE[what]
    stage.add("alpha", make())
    stage.run("apply", "alpha/both", *options).expect()
    assert stage.tree() == shipped


def test_a_patch_that_is_not_needed_any_more_is_reported_as_reverted(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.run("apply").expect()
    stage.add("alpha", patch("low", None, not_needed=[{"versions": ">=1", "why": "fixed"}]))
    [row] = stage.json("apply", "--dry-run")["patches"]
    assert (row["state"], row["action"], [file["path"] for file in row["files"]]) == ("not-needed", "reverted", [MOD])
    assert "1 reverted" in stage.run("apply").expect().out
    assert stage.read() == PRISTINE


# ---- edits, renames, files of two ----------------------------------------------------------------------------


@pytest.mark.parametrize("edited", [True, False], ids=["edited", "deleted"])
@pytest.mark.parametrize("command", ["revert", "apply"])
def test_a_patch_below_a_rename_half_of_which_was_edited_is_not_touched(
    command: str, edited: bool, stage: Stage
) -> None:
    rename = make_diff({MOD: PRISTINE}, {MOVED: PRISTINE})
    stage.add("alpha", patch("moved", rename, after=["beta/low"]))
    stage.add("beta", patch("low", edit(5, FIVE), default=command == "revert"))
    stage.run("apply").expect()
    if edited:
        stage.write(MOVED, stage.read(MOVED) + b"edit = 1\n")
    else:
        (stage.site / MOVED).unlink()
    assert MOVED in assert_refused(stage, 5, command, "beta/low").err


def test_a_file_of_two_distributions_holds_patches_of_one(stage: Stage) -> None:
    info = "other_dist-1.0.dist-info"
    stage.write(f"{info}/METADATA", b"Metadata-Version: 2.1\nName: other-dist\nVersion: 1.0\n")
    rows = f"{MOD},{record_digest(PRISTINE)},{len(PRISTINE)}\n{info}/METADATA,,\n{info}/RECORD,,\n"
    stage.write(f"{info}/RECORD", rows.encode())
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.add("beta", patch("low", edit(20, b"line_20 = 2\n")), distribution="other-dist")
    assert "not-owned" in stage.json("apply", exit_code=3)["error"]["code"]
    stage.run("apply", "alpha").expect()
    assert MOD in assert_refused(stage, 3, "apply", "beta").err
    stage.run("revert", "--all").expect()
    stage.run("apply", "beta").expect()


def test_revert_accepts_no_edits(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.run("apply").expect()
    assert "--accept-modified" in assert_refused(stage, 2, "revert", "--all", "--accept-modified").err


@pytest.mark.parametrize("options", [[], ["--discard-edits"]], ids=["plain", "--discard-edits"])
def test_without_digests_the_file_of_a_new_version_counts_as_shipped(
    options: list[str], stage: Stage, tmp_path: Path
) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.change_record(MOD, "")
    stage.run("apply").expect()
    newer = with_line(20, b"line_20 = 2\n")
    stage.reinstall(sample_wheel(tmp_path, "2.0", SHIPPED | {MOD: newer}))
    stage.change_record(MOD, "")
    stage.run("apply", *options).expect()
    assert stage.read() == with_line(5, FIVE, newer)
    stage.run("revert", "--all", *options).expect()
    assert stage.read() == newer


# ---- checks that write, and what they see ---------------------------------------------------------------------


def add_check(stage: Stage, script: str, **keys: Any) -> None:
    """One patch of `sub/only.py` with a python check; PATH and STATE stand for the file and the state folder."""
    names = f"import os, pathlib, shutil\nPATH = pathlib.Path({str(stage.site / SUB)!r})\n"
    state = f"STATE = pathlib.Path({str(stage.site / '.patchkit')!r})\n"
    check = [{"kind": "python", "file": "c.py", **keys}]
    stage.add("alpha", patch("sub", change_sub(), check=check), checks={"c.py": (names + state + script).encode()})


@pytest.mark.parametrize("deed", ["PATH.write_text('evil = 1\\n')", "PATH.unlink()", "shutil.rmtree(PATH.parent)"])
def test_a_check_that_passes_and_changes_the_patched_file_has_not_passed(deed: str, stage: Stage) -> None:
    add_check(stage, f"{deed}\n")
    before = stage.tree()
    said = stage.run("apply", *HERE)
    assert said.exit_code in (7, 8), said
    assert said.exit_code == 8 or stage.tree() == before
    assert " applied" not in said.out


@pytest.mark.parametrize("ending", ["", "raise SystemExit(1)"], ids=["passes", "fails"])
@pytest.mark.parametrize("deed", ["(STATE / 'journal.json').unlink()", "shutil.rmtree(STATE)"])
def test_nobody_says_that_nothing_changed_once_the_journal_is_gone(deed: str, ending: str, stage: Stage) -> None:
    add_check(stage, f"{deed}\n{ending}\n")
    said = stage.run("apply", *HERE)
    if said.exit_code == 0:  # all is in place: only the note of what would have been undone is gone
        assert not ending
        stage.run("verify").expect()
        return
    assert "nothing was changed" not in said.expect(8).err


def test_a_backport_in_the_site_root_does_not_shadow_the_standard_library(stage: Stage) -> None:
    stage.write("argparse.py", b"raise ImportError('an old backport')\n")
    add_check(stage, "import argparse\n")
    assert "1 applied" in stage.run("apply", *HERE).expect().out


def test_the_named_root_has_the_copy_that_a_check_sees(stage: Stage) -> None:
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    shutil.copytree(stage.site, venv.site_packages, symlinks=True, dirs_exist_ok=True)
    add_check(stage, "import some_dist.sub.only as only\nassert pathlib.Path(only.__file__) == PATH, only.__file__\n")
    [row] = stage.json("apply", "--python", str(venv.python))["patches"]
    assert [check["result"] for check in row["checks"]] == ["passed"]


@pytest.fixture
def beside(stage: Stage) -> worlds.Venv:
    """An interpreter whose site-packages leads to a folder that has other-dist 1.0."""
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    wheel = worlds.make_wheel(stage.folder / "wheels", "other-dist", "1.0", {"other_dist.py": b""})
    folder = worlds.unpack_site(stage.folder / "beside", wheel)
    put(venv.site_packages / "beside.pth", f"{folder}\n".encode())
    return venv


def test_constraints_and_needs_see_all_that_the_interpreter_imports_from(beside: worlds.Venv, stage: Stage) -> None:
    add_check(stage, "import other_dist\n", needs=["other-dist"])
    python = ("--python", str(beside.python))
    [row] = stage.json("apply", *python)["patches"]
    assert [check["result"] for check in row["checks"]] == ["passed"]
    stage.add("beta", patch("low", edit(5, FIVE), constraints=["other-dist>=2"]))
    assert "other-dist" in assert_refused(stage, 4, "apply", *python).err
    stage.run("apply").expect()


def test_constraints_see_what_a_virtual_environment_takes_from_the_system(stage: Stage) -> None:
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False, system_site_packages=True)
    shutil.copytree(stage.site, venv.site_packages, symlinks=True, dirs_exist_ok=True)
    names = "from importlib import metadata; print(*[d.metadata['Name'] for d in metadata.distributions()])"
    outside = [name for name in venv.run("-c", names).out.split() if name != "some-dist"]
    if not outside:
        pytest.skip("the interpreter of the system has no distribution")
    stage.add("alpha", patch("low", edit(5, FIVE), constraints=[f"{outside[0]}>=99999"]))
    said = run(
        *patchkit_command(), "apply", "--python", venv.python, "--patches", stage.patches, cwd=stage.folder
    ).expect(4)
    assert outside[0] in said.err
