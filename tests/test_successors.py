"""Files that a new version or another distribution ships by now, and what status, verify and drift say then.

They are pristine by the RECORD that is installed now: nothing that was saved of an older version is written over them,
and no patch counts as applied because they look as it left them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.cli import main
from stages import DATA, MOD, SHIPPED, Files, Stage, edit, make_diff, make_stage, patch, sample_wheel, with_line

PRISTINE = with_line(1, b"line_1 = 1\n")
FIXED = with_line(5, b"line_5 = 'fixed'\n")
NEW = "some_dist/new.py"
FIX = edit(5, b"line_5 = 'fixed'\n")
CREATE = make_diff({NEW: None}, {NEW: b"NEW = 1\n"})
DELETE = make_diff({DATA: SHIPPED[DATA]}, {DATA: None})
RENAME = make_diff({DATA: SHIPPED[DATA]}, {"some_dist/renamed.txt": SHIPPED[DATA]})
WITHOUT_DATA: Files = {path: data for path, data in SHIPPED.items() if path != DATA}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capfd.readouterr)


def other_wheel(folder: Path, files: Files) -> Path:
    return sample_wheel(folder, "1.0", files, name="other-dist")


def look(stage: Stage) -> dict[str, Any]:
    return {path: entry for path, entry in stage.tree().items() if not path.startswith(".patchkit")}


def exit_codes(stage: Stage) -> dict[str, int]:
    words = (("drift",), ("status", "--exit-code"), ("verify",), ("check",), ("apply", "--dry-run"))
    return {each[0]: stage.run(*each).exit_code for each in words}


def drift(stage: Stage) -> dict[str, dict[str, Any]]:
    """The rows of the report by patch; only one each."""
    rows = stage.run("drift", "--json").json()["drift"]
    found = {row["patch"]: row for row in rows}
    assert len(found) == len(rows)
    return found


# ---- another distribution's files ---------------------------------------------------------------------------


SWAPS: dict[str, tuple[bytes, Files]] = {
    "patched": (FIX, {MOD: FIXED}),  # it ships what the patch made
    "created": (CREATE, {NEW: b"NEW = 1\n"}),
    "shipped anew": (FIX, {MOD: PRISTINE}),
    "otherwise": (CREATE, {NEW: b"NEW = 2\n"}),
}


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("command", [("revert", "fix/one"), ("revert", "--all"), ("apply", "--exact")])
def test_a_file_that_another_distribution_ships_by_now_is_left_as_it_is(
    stage: Stage, tmp_path: Path, swap: str, gone: bool, command: tuple[str, ...]
) -> None:
    diff, files = SWAPS[swap]
    stage.add("fix", patch("one", diff, versions="<2"))
    stage.run("apply").expect()
    kept = () if gone else (sample_wheel(tmp_path / "2", "2.0", {"some_dist/__init__.py": b""}),)
    stage.reinstall(other_wheel(tmp_path / "o", files), *kept)
    before = look(stage)
    if command[0] == "apply":
        stage.declare(deselect=["fix/one"])
    stage.run(*command).expect()
    assert look(stage) == before
    assert not (stage.site / ".patchkit").exists()


def test_an_image_step_leaves_the_files_of_the_distribution_that_came_instead(stage: Stage, tmp_path: Path) -> None:
    """`run --reapply` and `post-install` take out what was uninstalled without being asked file by file."""
    wheel = sample_wheel(tmp_path / "w", "1.0", {"third_dist/a.py": b"A = 1\n"}, name="third-dist")
    stage.reinstall(sample_wheel(tmp_path / "1"), wheel)
    stage.add("fix", patch("one", FIX, versions="<2"))
    stage.add(
        "third", patch("a", make_diff({"third_dist/a.py": b"A = 1\n"}, {"third_dist/a.py": b"A = 2\n"})),
        distribution="third-dist",
    )  # fmt: skip
    stage.run("apply").expect()
    stage.reinstall(other_wheel(tmp_path / "o", {MOD: FIXED}), wheel)
    stage.run("post-install").expect()
    assert stage.read() == FIXED
    assert stage.read("third_dist/a.py") == b"A = 2\n"


def test_a_file_that_another_distribution_ships_is_never_adopted(stage: Stage, tmp_path: Path) -> None:
    stage.reinstall(sample_wheel(tmp_path / "1"), other_wheel(tmp_path / "o", {NEW: b"NEW = 1\n"}))
    before = stage.tree()
    stage.add("fix", patch("one", CREATE))
    for _ in range(2):
        assert stage.actions("apply") == {"fix/one": "none"}
        assert stage.states() == {"fix/one": "upstreamed"}
    stage.run("revert", "--all").expect()
    assert stage.tree() == before


def test_old_bytes_go_back_where_nobody_lists_the_file(stage: Stage, tmp_path: Path) -> None:
    """A file that an upgrade left behind as it was patched is nobody else's."""
    stage.add("fix", patch("one", FIX, versions="<2"))
    stage.run("apply").expect()
    stage.reinstall(sample_wheel(tmp_path / "2", "2.0", {"some_dist/__init__.py": b""}))
    stage.write(MOD, FIXED)
    stage.run("revert", "--all").expect()
    assert stage.read() == PRISTINE


def test_a_new_version_without_a_digest_is_a_first_contact(stage: Stage, tmp_path: Path) -> None:
    stage.add("fix", patch("one", FIX, versions="<2"))
    stage.run("apply").expect()
    stage.reinstall(sample_wheel(tmp_path / "2", "2.0", {**SHIPPED, MOD: FIXED}))
    stage.change_record(MOD, "")
    before = look(stage)
    assert exit_codes(stage) == {"drift": 1, "status": 1, "verify": 1, "check": 1, "apply": 4}
    stage.run("revert", "fix/one").expect()
    assert look(stage) == before


# ---- what an upgrade did on its own -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("diff", "files", "words"),
    [
        (DELETE, WITHOUT_DATA, "perhaps upstream deleted it"),
        (RENAME, {**WITHOUT_DATA, "some_dist/renamed.txt": SHIPPED[DATA]}, "perhaps upstream renamed it"),
    ],
)
def test_a_deletion_or_renaming_that_upstream_made_itself_is_a_conflict(
    stage: Stage, tmp_path: Path, diff: bytes, files: Files, words: str
) -> None:
    stage.add("fix", patch("one", diff))
    stage.run("apply").expect()
    stage.reinstall(sample_wheel(tmp_path / "2", "2.0", files))
    before = look(stage)
    assert exit_codes(stage) == {"drift": 1, "status": 1, "verify": 1, "check": 1, "apply": 5}
    row = drift(stage)["one"]
    assert (row["cause"], row["state"]) == ("upgraded", "conflict")
    assert words in row["detail"]
    assert words in stage.run("apply").err
    assert stage.states() == {"fix/one": "drifted"}
    stage.run("revert", "fix/one").expect()
    assert look(stage) == before


def test_a_patch_is_reverted_below_a_deletion_that_upstream_made_itself(stage: Stage, tmp_path: Path) -> None:
    changed = b"one\ntwo\n3\n"
    stage.add(
        "fix",
        patch("change", make_diff({DATA: SHIPPED[DATA]}, {DATA: changed})),
        patch("delete", make_diff({DATA: changed}, {DATA: None})),
    )
    stage.run("apply").expect()
    stage.reinstall(sample_wheel(tmp_path / "2", "2.0", WITHOUT_DATA))
    before = look(stage)
    for name in ("change", "delete"):
        stage.run("revert", f"fix/{name}").expect()
        assert look(stage) == before


def test_a_distribution_that_is_gone_is_told_by_all(stage: Stage, tmp_path: Path) -> None:
    wheel = sample_wheel(tmp_path / "w", "1.0", {"third_dist/a.py": b"A = 1\n"}, name="third-dist")
    stage.reinstall(sample_wheel(tmp_path / "1"), wheel)
    stage.add("fix", patch("one", FIX))
    diff = make_diff({"third_dist/a.py": b"A = 1\n"}, {"third_dist/a.py": b"A = 2\n"})
    stage.add("third", patch("a", diff), distribution="third-dist")
    stage.run("apply").expect()
    assert set(exit_codes(stage).values()) == {0}
    patched = stage.read()
    [metadata] = stage.site.glob("some_dist-*.dist-info")
    for file in metadata.iterdir():
        file.unlink()
    metadata.rmdir()
    assert stage.read() == patched
    codes = exit_codes(stage)
    assert (codes["drift"], codes["status"], codes["verify"]) == (1, 1, 1)
    assert "fix/one" in stage.run("status", "--exit-code").expect(1).err
    stage.run("status").expect(0)


# ---- the accepted base ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [True, False])
def test_an_edit_on_an_accepted_base_is_discarded_to_that_base(stage: Stage, tmp_path: Path, back: bool) -> None:
    mine = PRISTINE + b"mine = 1\n"
    stage.write(MOD, mine)
    stage.add("fix", patch("one", FIX))
    stage.run("apply", "--accept-modified").expect()
    stage.write(MOD, mine if back else FIXED + b"edited = 1\n")
    stage.run("apply").expect(5)
    first, *words = shlex.split(drift(stage)["one"]["remedy"])
    assert (first, main(words)) == ("patchkit", 0)
    assert stage.read() == FIXED + b"mine = 1\n"
    assert set(exit_codes(stage).values()) == {0}
    stage.run("revert", "--all").expect()
    assert stage.read() == mine


def test_an_accepted_base_of_an_older_version_is_never_put_back(stage: Stage, tmp_path: Path) -> None:
    stage.write(MOD, PRISTINE + b"mine = 1\n")
    stage.add("fix", patch("one", FIX))
    stage.run("apply", "--accept-modified").expect()
    stage.reinstall(sample_wheel(tmp_path / "2", "2.0", {**SHIPPED, MOD: PRISTINE + b"two = 2\n"}))
    stage.write(MOD, edited := PRISTINE + b"two = 2\nedited = 1\n")
    assert "not in the object store" in stage.run("apply", "--discard-edits").expect(5).err
    assert stage.read() == edited


# ---- the declared list ----------------------------------------------------------------------------------------


def test_a_patch_that_left_the_folder_goes_with_those_that_lie_on_it(stage: Stage) -> None:
    third = patch("third", edit(7, b"line_7 = 'third'\n", with_line(6, b"line_6 = 'dep'\n", FIXED)))
    dependent = patch("dep", edit(6, b"line_6 = 'dep'\n", FIXED))
    stage.add("fix", patch("one", FIX), dependent, third, patch("far", edit(30, b"line_30 = 'far'\n")))
    stage.run("apply").expect()
    stage.add("fix", dependent, third, patch("far", edit(30, b"line_30 = 'far'\n")))
    row = drift(stage)["one"]
    assert row["cause"] == "patch-removed"
    assert "fix/dep, fix/third lie on it" in row["detail"]
    _, *words = shlex.split(row["remedy"])
    assert words[:4] == ["revert", "fix/one", "fix/dep", "fix/third"]
    stage.run("status", "--exit-code").expect(1)
    assert main(words) == 0
    assert stage.read() == with_line(30, b"line_30 = 'far'\n")


def test_an_order_in_which_patches_do_not_fold_is_told(stage: Stage) -> None:
    one, dependent = patch("one", FIX), patch("dep", edit(6, b"line_6 = 'dep'\n", FIXED))
    stage.add("fix", one, dependent)
    stage.run("apply").expect()
    stage.add("fix", dependent, one)
    assert exit_codes(stage) == {"drift": 1, "status": 1, "verify": 0, "check": 1, "apply": 5}
    row = drift(stage)["dep"]
    assert row["cause"] == "patch-changed"
    assert "does not fit" in row["detail"]


def test_a_declared_patch_that_left_the_list_is_not_as_declared_and_one_applied_by_name_is(stage: Stage) -> None:
    extra = patch("extra", edit(30, b"line_30 = 'extra'\n"), default=False)
    stage.add("fix", patch("one", FIX), patch("two", edit(20, b"line_20 = 'two'\n")), extra)
    stage.run("apply").expect()
    stage.run("apply", "fix/extra").expect()
    stage.run("status", "--exit-code").expect(0)
    stage.declare(deselect=["fix/two"])
    said = stage.run("status", "--exit-code").expect(1)
    assert "not as declared: fix/two" in said.err
    assert drift(stage).keys() == {"two"}
    stage.run("status").expect(0)


@pytest.mark.parametrize(("versions", "cause"), [(">=3", "downgraded"), ("<1", "upgraded")])
def test_a_constraint_that_holds_no_more_is_told_with_the_other_distribution(
    stage: Stage, tmp_path: Path, versions: str, cause: str
) -> None:
    stage.add("fix", patch("one", FIX, constraints=[f"third-dist{versions}"]))
    stage.run("apply").expect()
    third = sample_wheel(tmp_path / "w", "2.0", {"third_dist/a.py": b""}, name="third-dist")
    stage.install_site(tmp_path / "third", third)
    for entry in (tmp_path / "third").iterdir():
        entry.rename(stage.site / entry.name)
    assert exit_codes(stage) == {"drift": 1, "status": 1, "verify": 0, "check": 1, "apply": 4}
    row = drift(stage)["one"]
    assert (row["cause"], row["distribution"], row["found"]["version"]) == (cause, "third-dist", "2.0")
    assert row["detail"] == f"it needs third-dist{versions}, and third-dist 2.0 is installed"
    assert shlex.split(row["remedy"])[-1] == f"third-dist{versions}"
    stage.run("post-install").expect(4)
    stage.run("revert", "--all").expect()
    assert drift(stage)["one"]["cause"] == "not-applied"
    assert "it needs third-dist" in drift(stage)["one"]["detail"]


def test_a_broken_diff_is_a_warning_of_status_and_no_reason_to_end(stage: Stage) -> None:
    stage.add("fix", patch("one", FIX))
    stage.run("apply").expect()
    (stage.patches / "fix/one.patch").write_text("garbage\n")
    said = stage.run("status").expect(0)
    assert "fix/one  applied" in said.out
    assert "no entry of a unified diff was found" in said.err
    stage.run("status", "--exit-code").expect(1)
    stage.run("apply").expect(3)


def test_status_tells_what_is_recorded_where_its_file_is_another_distributions(stage: Stage, tmp_path: Path) -> None:
    stage.add("fix", patch("one", FIX))
    stage.run("apply").expect()
    new = sample_wheel(tmp_path / "2", "2.0", {"some_dist/__init__.py": b""})
    stage.reinstall(new, other_wheel(tmp_path / "o", {MOD: FIXED}))
    said = stage.run("status").expect(0)
    assert "fix/one  drifted" in said.out
    assert "not this distribution's file" in said.err
    assert exit_codes(stage) == {"drift": 1, "status": 1, "verify": 1, "check": 3, "apply": 3}


def test_a_record_that_nobody_can_read_any_more_does_not_hide_what_is_applied(stage: Stage) -> None:
    stage.add("fix", patch("one", FIX))
    stage.run("apply").expect()
    stage.record.write_bytes(stage.record.read_bytes() + b"\0")
    stage.run("verify").expect(0)
    stage.run("drift").expect(0)
