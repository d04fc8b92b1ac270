"""desired = fold(pristine, wanted patches in order): patches that share files, changed texts, the order of the fold."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from stages import (
    BLOCK,
    BLOCKS,
    DATA,
    LINES,
    MOD,
    SHIPPED,
    TOOL,
    Stage,
    edit,
    git_apply,
    make_diff,
    make_stage,
    patch,
    sample_wheel,
    with_line,
)
from worlds import tree

PRISTINE = b"".join(LINES)
ALL = {"alpha/low": 5, "alpha/middle": 20, "alpha/high": 35}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


def text(number: int) -> bytes:
    return b"line_%d = 'patched'\n" % number


@pytest.fixture
def three(stage: Stage) -> Stage:
    """Three patches on one file, each on lines of its own, applied."""
    stage.add("alpha", *(patch(id.partition("/")[2], edit(number, text(number))) for id, number in ALL.items()))
    stage.run("apply").expect()
    return stage


def with_all(*ids: str) -> bytes:
    data = PRISTINE
    for id in ids:
        data = with_line(ALL[id], text(ALL[id]), data)
    return data


# ---- two or three patches on one file -------------------------------------------------------------------------


def test_reverting_the_first_of_two_patches_on_one_file_leaves_what_git_makes_of_the_second_alone(stage: Stage) -> None:
    first = make_diff({MOD: PRISTINE}, {MOD: b"".join((*LINES[:4], b"new = 1\nnew = 2\n", *LINES[4:]))})
    second = edit(30, text(30))
    stage.add("alpha", patch("first", first), patch("second", second))
    stage.run("apply").expect()
    assert stage.read() == git_apply(second, git_apply(first, {MOD: PRISTINE}))[MOD]
    assert stage.actions("revert", "alpha/first") == {"alpha/first": "reverted"}
    assert stage.read() == git_apply(second, {MOD: PRISTINE})[MOD]
    assert stage.states("verify") == {"alpha/second": "applied"}


@pytest.mark.parametrize("gone", ALL)
def test_any_one_of_three_patches_on_one_file_can_go_and_the_other_two_stay(three: Stage, gone: str) -> None:
    three.run("revert", gone).expect()
    kept = [id for id in ALL if id != gone]
    assert three.read() == with_all(*kept)
    assert three.states("verify") == dict.fromkeys(sorted(kept), "applied")


@pytest.mark.parametrize("order", [*permutations(ALL)])
def test_three_patches_on_one_file_reverted_in_any_order_give_the_shipped_tree(
    three: Stage, make_site: Callable[..., Path], tmp_path: Path, order: tuple[str, ...]
) -> None:
    for done, id in enumerate(order, start=1):
        three.run("revert", id).expect()
        assert three.read() == with_all(*order[done:])
    assert not (three.site / ".patchkit").exists()
    assert three.tree() == tree(make_site(tmp_path / "fresh", sample_wheel(tmp_path / "wheels")))


def test_a_patch_that_another_needs_cannot_go_alone_and_is_named(stage: Stage) -> None:
    base = with_line(20, b"line_20 = 'first'\n")
    on_top = make_diff({MOD: base}, {MOD: with_line(20, b"line_20 = 'second'\n", base)})
    stage.add("alpha", patch("first", edit(20, b"line_20 = 'first'\n")), patch("second", on_top))
    stage.run("apply").expect()
    before = stage.tree()
    said = stage.json("revert", "alpha/first", exit_code=5)
    assert said["error"]["code"] == "conflict"
    assert "alpha/second" in said["error"]["message"] and "alpha/first" in said["error"]["message"]
    assert stage.tree() == before
    stage.run("revert", "alpha").expect()
    assert stage.read() == PRISTINE


def test_apply_exact_cannot_take_out_a_patch_that_a_declared_one_needs(stage: Stage) -> None:
    base = with_line(20, b"line_20 = 'first'\n")
    on_top = make_diff({MOD: base}, {MOD: with_line(20, b"line_20 = 'second'\n", base)})
    stage.add("alpha", patch("first", edit(20, b"line_20 = 'first'\n"), default=False), patch("second", on_top))
    stage.run("apply", "alpha/first").expect()
    stage.run("apply", "alpha/second").expect()
    before = stage.tree()
    said = stage.json("apply", "--exact", exit_code=5)
    assert "alpha/second" in said["error"]["message"] and "alpha/first" in said["error"]["message"]
    assert stage.tree() == before


def test_two_patches_that_change_the_same_lines_are_a_conflict_that_names_both(stage: Stage) -> None:
    stage.add("alpha", patch("first", edit(20, text(20))), patch("second", edit(20, b"line_20 = 'other'\n")))
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    assert "alpha/first" in said["error"]["message"] and "alpha/second" in said["error"]["message"]
    assert stage.tree() == before


def test_a_patch_whose_second_file_does_not_fit_leaves_the_first_alone(stage: Stage) -> None:
    wrong = edit(20, text(20)) + make_diff({DATA: b"uno\ndue\ntre\n"}, {DATA: b"uno\ndue!\ntre\n"})
    stage.add("alpha", patch("both", wrong))
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    [row] = said["patches"]
    assert (row["state"], row["action"]) == ("conflict", "none")
    assert DATA in said["error"]["message"]
    assert stage.tree() == before


def test_hunks_that_lower_patches_moved_are_put_where_they_belong_and_the_offset_is_said(stage: Stage) -> None:
    longer = make_diff({MOD: PRISTINE}, {MOD: b"".join((*LINES[:10], b"new = 1\n" * 3, *LINES[10:]))})
    stage.add("alpha", patch("first", longer), patch("second", edit(30, text(30))))
    said = stage.json("apply")
    [hunk] = [hunk for row in said["patches"] if row["patch"] == "second" for hunk in row["files"][0]["hunks"]]
    assert (hunk["line"], hunk["offset"], hunk["result"]) == (30, 3, "fits")
    assert stage.read() == b"".join((*LINES[:10], b"new = 1\n" * 3, *LINES[10:29], text(30), *LINES[30:]))


# ---- idempotence ----------------------------------------------------------------------------------------------


def test_applying_twice_is_applying_once(three: Stage) -> None:
    before = three.tree()
    times = {path: (three.site / path).lstat().st_mtime_ns for path in before}
    assert three.actions("apply") == dict.fromkeys(sorted(ALL), "none")
    assert three.tree() == before
    assert {path: (three.site / path).lstat().st_mtime_ns for path in before} == times


def test_reverting_twice_is_reverting_once(three: Stage) -> None:
    three.run("revert", "alpha/low").expect()
    before = three.tree()
    assert three.json("revert", "alpha/low")["patches"] == []
    assert three.tree() == before
    three.run("revert", "--all").expect()
    assert "nothing to do" in three.run("revert", "--all").expect().out
    assert not (three.site / ".patchkit").exists()


def test_an_insertion_into_the_first_of_four_equal_blocks_is_made_once_however_often_it_is_applied(
    stage: Stage,
) -> None:
    shipped = SHIPPED[BLOCKS] or b""
    inserted = b"import sys\n\n" + b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:])) + b"".join(BLOCK) * 3
    stage.add("alpha", patch("insert", make_diff({BLOCKS: shipped}, {BLOCKS: inserted})))
    assert stage.actions("apply") == {"alpha/insert": "applied"}
    assert stage.read(BLOCKS) == inserted
    assert stage.actions("apply") == {"alpha/insert": "none"}
    assert stage.actions("apply", "alpha/insert") == {"alpha/insert": "none"}
    assert stage.read(BLOCKS) == inserted
    stage.run("revert", "alpha").expect()
    assert stage.read(BLOCKS) == shipped


def test_a_file_that_the_reversed_patch_fits_is_not_taken_for_patched(stage: Stage) -> None:
    shipped = SHIPPED[BLOCKS] or b""
    inserted = b"import sys\n\n" + b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:])) + b"".join(BLOCK) * 3
    elsewhere = b"import sys\n\n" + b"".join(BLOCK) * 3 + b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:]))
    stage.add("alpha", patch("insert", make_diff({BLOCKS: shipped}, {BLOCKS: inserted})))
    stage.run("apply").expect()
    stage.write(BLOCKS, elsewhere)
    assert stage.states() == {"alpha/insert": "drifted"}
    said = stage.json("apply", exit_code=5)
    assert said["error"]["code"] == "foreign-file"
    assert stage.read(BLOCKS) == elsewhere


# ---- the text of a patch changed ------------------------------------------------------------------------------


def test_a_changed_text_is_outdated_and_then_applied_anew_over_the_old(three: Stage) -> None:
    new = b"line_5 = 'patched again'\n"
    three.add(
        "alpha", *(patch(id[6:], edit(number, new if number == 5 else text(number))) for id, number in ALL.items())
    )
    others = {"alpha/high": "applied", "alpha/middle": "applied"}
    assert three.states() == {"alpha/low": "outdated", **others}
    assert three.actions("apply") == {"alpha/low": "updated", "alpha/high": "none", "alpha/middle": "none"}
    assert three.read() == with_line(5, new, with_all("alpha/middle", "alpha/high"))
    assert three.states() == {"alpha/low": "applied", **others}
    three.run("revert", "--all").expect()
    assert three.read() == PRISTINE


def test_a_changed_text_that_does_not_fit_leaves_the_old_one_in_place(three: Stage) -> None:
    wrong = make_diff({MOD: b"x = 1\nx = 2\nx = 3\n"}, {MOD: b"x = 1\nx = 'two'\nx = 3\n"})
    three.add(
        "alpha", *(patch(id[6:], wrong if number == 5 else edit(number, text(number))) for id, number in ALL.items())
    )
    before = three.tree()
    said = three.json("apply", exit_code=5)
    assert {row["patch"]: row["state"] for row in said["patches"]}["low"] == "outdated"
    assert three.tree() == before


def change_texts(stage: Stage) -> dict[int, bytes]:
    """New texts for the low and the high patch."""
    new = {5: b"line_5 = 'new'\n", 35: b"line_35 = 'new'\n"}
    stage.add("alpha", *(patch(id[6:], edit(n, new.get(n, text(n)))) for id, n in ALL.items()))
    return new


def test_apply_x_takes_up_the_changed_text_of_x_alone(three: Stage) -> None:
    new = change_texts(three)
    assert three.actions("apply", "alpha/low") == {"alpha/low": "updated"}
    assert three.read() == with_line(5, new[5], with_all("alpha/middle", "alpha/high"))
    assert three.states() == {"alpha/low": "applied", "alpha/middle": "applied", "alpha/high": "outdated"}


def test_a_bare_apply_takes_up_all_changed_texts(three: Stage) -> None:
    new = change_texts(three)
    three.run("apply").expect()
    assert three.read() == with_line(35, new[35], with_line(5, new[5], with_all("alpha/middle")))


def test_revert_x_does_not_take_up_the_changed_texts_of_others(three: Stage) -> None:
    change_texts(three)
    three.run("revert", "alpha/middle").expect()
    assert three.read() == with_all("alpha/low", "alpha/high")
    assert three.states() == {"alpha/low": "outdated", "alpha/middle": "pending", "alpha/high": "outdated"}


def test_revert_x_needs_no_patch_folder(three: Stage) -> None:
    for path in sorted(three.patches.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    three.run("revert", "alpha/middle").expect()
    assert three.read() == with_all("alpha/low", "alpha/high")


def test_operands_touch_no_file_that_x_does_not_name(stage: Stage) -> None:
    data = make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})
    stage.add("alpha", patch("data", data), patch("mod", edit(5, text(5))))
    stage.run("apply").expect()
    stage.write(DATA, b"an edit\n")
    stage.add("alpha", patch("data", data), patch("mod", edit(5, b"line_5 = 'new'\n")))
    assert stage.actions("apply", "alpha/mod") == {"alpha/mod": "updated"}
    assert stage.actions("revert", "alpha/mod") == {"alpha/mod": "reverted"}
    assert stage.read(DATA) == b"an edit\n"
    assert stage.read() == PRISTINE
    assert stage.states() == {"alpha/data": "drifted", "alpha/mod": "pending"}


def test_a_file_that_a_changed_text_names_no_more_goes_back_to_what_was_shipped(stage: Stage) -> None:
    both = edit(5, text(5)) + make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})
    stage.add("alpha", patch("a", both))
    stage.run("apply").expect()
    stage.add("alpha", patch("a", edit(5, text(5))))
    assert stage.actions("apply", "alpha/a") == {"alpha/a": "updated"}
    assert (stage.read(), stage.read(DATA)) == (with_line(5, text(5)), SHIPPED[DATA])


# ---- upgrades -------------------------------------------------------------------------------------------------


def newer_files() -> dict[str, bytes | None]:
    return SHIPPED | {MOD: b"# newer\n" + PRISTINE}


def test_after_an_upgrade_the_patch_is_folded_from_the_new_bytes(three: Stage, tmp_path: Path) -> None:
    three.reinstall(sample_wheel(tmp_path / "wheels", "1.3", newer_files()))
    assert set(three.states().values()) == {"drifted"}
    three.run("apply").expect()
    assert three.read() == b"# newer\n" + with_all(*ALL)
    three.run("revert", "alpha/low").expect()
    assert three.read() == b"# newer\n" + with_all("alpha/middle", "alpha/high")
    three.run("revert", "--all").expect()
    assert three.read() == b"# newer\n" + PRISTINE


def test_a_patch_that_no_longer_fits_the_installed_version_never_blocks_a_revert(three: Stage, tmp_path: Path) -> None:
    three.reinstall(sample_wheel(tmp_path / "wheels", "1.3", SHIPPED | {MOD: b"all = 'new'\n"}))
    three.run("apply", "alpha").expect(5)
    three.run("revert", "alpha/middle").expect()
    assert three.read() == b"all = 'new'\n"
    three.run("revert", "--all").expect()
    assert three.read() == b"all = 'new'\n"
    assert not (three.site / ".patchkit").exists()


def test_one_of_two_patches_is_reverted_though_the_other_no_longer_has_a_range(stage: Stage, tmp_path: Path) -> None:
    data = make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})
    stage.add("alpha", patch("data", data, versions="<1.3"), patch("mod", edit(5, text(5)), versions="<1.3"))
    stage.run("apply").expect()
    stage.reinstall(sample_wheel(tmp_path / "wheels", "1.3", newer_files()))
    stage.run("revert", "alpha/mod").expect()
    assert stage.read() == b"# newer\n" + PRISTINE
    stage.run("revert", "alpha").expect()
    assert not (stage.site / ".patchkit").exists()


# ---- created, deleted, renamed files ---------------------------------------------------------------------------

MADE = "some_dist/made.py"


def test_a_patch_may_change_what_the_one_before_it_creates(stage: Stage) -> None:
    create = make_diff({}, {MADE: b"made = 1\nmade = 2\nmade = 3\n"})
    more = make_diff({MADE: b"made = 1\nmade = 2\nmade = 3\n"}, {MADE: b"made = 1\nmade = 'two'\nmade = 3\n"})
    stage.add("alpha", patch("change", more, after=["create"]), patch("create", create))
    shipped = stage.tree()
    stage.run("apply").expect()
    assert stage.read(MADE) == b"made = 1\nmade = 'two'\nmade = 3\n"
    said = stage.json("revert", "alpha/create", exit_code=5)
    assert "alpha/change" in said["error"]["message"]
    stage.run("revert", "alpha/change").expect()
    assert stage.read(MADE) == b"made = 1\nmade = 2\nmade = 3\n"
    stage.run("revert", "alpha/create").expect()
    assert stage.tree() == shipped


def test_two_patches_that_create_the_same_file_are_a_conflict_that_names_both(stage: Stage) -> None:
    stage.add("alpha", patch("one", make_diff({}, {MADE: b"1\n"})), patch("two", make_diff({}, {MADE: b"2\n"})))
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    assert "alpha/one" in said["error"]["message"] and "alpha/two" in said["error"]["message"]
    assert stage.tree() == before


def test_two_patches_that_create_the_same_file_with_the_same_content_are_a_conflict_too(stage: Stage) -> None:
    create = make_diff({}, {MADE: b"1\n"})
    stage.add("alpha", patch("one", create), patch("two", create))
    assert "alpha/two" in stage.json("apply", exit_code=5)["error"]["message"]
    assert not (stage.site / MADE).exists()


def test_a_file_with_other_content_is_never_replaced_by_a_created_one(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {MADE: b"made\n"})))
    stage.write(MADE, b"somebody's\n")
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    assert MADE in said["error"]["message"] and "exists" in said["error"]["message"]
    assert stage.states() == {"alpha/create": "conflict"}
    assert stage.tree() == before


def test_a_shipped_file_is_never_replaced_by_a_created_one(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {DATA: b"made\n"})))
    before = stage.tree()
    assert "exists already with other content" in stage.json("apply", exit_code=5)["error"]["message"]
    assert stage.tree() == before


def test_created_files_have_a_row_in_record_while_they_are_there(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {"some_dist/deep/er/made.py": b"made = 1\n"})))
    shipped, record = stage.tree(), stage.record.read_bytes()
    stage.run("apply").expect()
    [row] = set(stage.record.read_text().splitlines()) - set(record.decode().splitlines())
    assert row.startswith("some_dist/deep/er/made.py,sha256=") and row.endswith(",9")
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_deleted_and_renamed_files_come_back(stage: Stage) -> None:
    before: dict[str, bytes | None] = {MOD: PRISTINE, DATA: SHIPPED[DATA]}
    after = {"some_dist/moved.py": with_line(5, text(5))}
    diff = make_diff(before, {**after, MOD: None, DATA: None})
    assert b"rename from" in diff and b"deleted file" in diff
    stage.add("alpha", patch("move", diff))
    shipped = stage.tree()
    stage.run("apply").expect()
    assert stage.read("some_dist/moved.py") == with_line(5, text(5))
    assert not (stage.site / MOD).exists() and not (stage.site / DATA).exists()
    assert stage.states("verify") == {"alpha/move": "applied"}
    assert stage.actions("apply") == {"alpha/move": "none"}
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_a_patch_may_change_a_file_where_another_renamed_it_to(stage: Stage) -> None:
    moved = "some_dist/moved.py"
    rename = make_diff({MOD: PRISTINE}, {moved: PRISTINE})
    change = make_diff({moved: PRISTINE}, {moved: with_line(5, text(5))})
    stage.add("alpha", patch("rename", rename), patch("change", change))
    shipped = stage.tree()
    stage.run("apply").expect()
    assert stage.read(moved) == with_line(5, text(5)) and not (stage.site / MOD).exists()
    stage.run("revert", "alpha/change").expect()
    assert stage.read(moved) == PRISTINE
    stage.run("apply", "alpha/change").expect()
    stage.run("revert", "alpha/rename").expect(5)
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


# ---- modes ----------------------------------------------------------------------------------------------------

MODE_ONLY = f"diff --git a/{TOOL} b/{TOOL}\nold mode 100644\nnew mode 100755\n".encode()


def mode(stage: Stage, path: str = TOOL) -> int:
    return stat.S_IMODE(os.stat(stage.site / path).st_mode)


def test_a_patch_of_the_mode_alone_is_applied_verified_and_reverted(stage: Stage) -> None:
    stage.add("alpha", patch("executable", MODE_ONLY))
    shipped = stage.tree()
    assert stage.states("check") == {"alpha/executable": "pending"}
    assert stage.actions("apply") == {"alpha/executable": "applied"}
    assert (mode(stage), stage.read(TOOL)) == (0o755, SHIPPED[TOOL])
    assert stage.states("verify") == {"alpha/executable": "applied"}
    assert stage.actions("apply") == {"alpha/executable": "none"}
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_an_executable_bit_that_chmod_took_away_is_drift_and_apply_gives_it_back(stage: Stage) -> None:
    stage.add("alpha", patch("executable", MODE_ONLY))
    stage.run("apply").expect()
    (stage.site / TOOL).chmod(0o644)
    assert stage.states() == {"alpha/executable": "drifted"}
    assert stage.states("verify", exit_code=1) == {"alpha/executable": "drifted"}
    stage.run("apply").expect()
    assert mode(stage) == 0o755
    stage.run("verify").expect()


def test_the_executable_bit_of_a_patched_file_is_part_of_what_is_verified(stage: Stage) -> None:
    both = make_diff({TOOL: SHIPPED[TOOL]}, {TOOL: b"#!/usr/bin/env python3\nprint('new')\n"}, {TOOL: 0o755})
    stage.add("alpha", patch("tool", both))
    stage.run("apply").expect()
    assert mode(stage) == 0o755
    (stage.site / TOOL).chmod(0o644)
    assert stage.states() == {"alpha/tool": "drifted"}
    stage.run("verify").expect(1)
    assert stage.actions("apply") == {"alpha/tool": "applied"}
    assert mode(stage) == 0o755
    stage.run("revert", "--all").expect()
    assert (mode(stage), stage.read(TOOL)) == (0o644, SHIPPED[TOOL])


def test_other_permission_bits_are_the_owners_affair_and_are_carried_over(stage: Stage) -> None:
    stage.add("alpha", patch("mod", edit(5, text(5))))
    (stage.site / MOD).chmod(0o600)
    stage.run("apply").expect()
    assert mode(stage, MOD) == 0o600
    (stage.site / MOD).chmod(0o640)
    assert stage.states() == {"alpha/mod": "applied"}
    assert stage.actions("apply") == {"alpha/mod": "none"}


# ---- the order of the fold ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [*permutations(("beta/z", "beta/a", "alpha/y", "alpha/b"))][::5])
def test_the_fold_takes_sets_by_name_and_patches_as_listed_whatever_the_order_of_commands(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str], order: tuple[str, ...]
) -> None:
    stage = make_stage(tmp_path, make_site, capsys.readouterr)
    lines = {"alpha/y": 2, "alpha/b": 11, "beta/z": 20, "beta/a": 29}
    edits = {id: edit(number, b"# " + id.encode() + b"\n") for id, number in lines.items()}
    stage.add("beta", patch("z", edits["beta/z"]), patch("a", edits["beta/a"]))
    stage.add("alpha", patch("y", edits["alpha/y"]), patch("b", edits["alpha/b"]))
    for id in order:
        stage.run("apply", id).expect()
    one_by_one = stage.read(), [row["patch"] for row in stage.ledger()["applied"]]
    assert one_by_one[1] == ["alpha/y", "alpha/b", "beta/z", "beta/a"]
    ledger = stage.ledger_file.read_bytes()
    stage.run("revert", "--all").expect()
    stage.run("apply", *order).expect()
    assert stage.ledger_file.read_bytes() == ledger
    assert (stage.read(), [row["patch"] for row in stage.ledger()["applied"]]) == one_by_one


def names_in_order(stage: Stage) -> list[str]:
    return [row["patch"] for row in stage.ledger()["applied"]]


def test_after_moves_a_patch_behind_another_of_its_set_and_no_further(stage: Stage) -> None:
    patches = [
        patch("a", edit(5, text(5)), after=["c"]),
        patch("b", edit(15, text(15))),
        patch("c", edit(25, text(25))),
    ]
    stage.add("alpha", *patches, patch("d", edit(35, text(35))))
    stage.run("apply").expect()
    assert names_in_order(stage) == ["alpha/b", "alpha/c", "alpha/a", "alpha/d"]


def test_after_reaches_across_sets(stage: Stage) -> None:
    stage.add("alpha", patch("a", edit(5, text(5)), after=["beta/b"]), patch("c", edit(15, text(15))))
    stage.add("beta", patch("b", edit(25, text(25))))
    stage.run("apply").expect()
    assert names_in_order(stage) == ["alpha/c", "beta/b", "alpha/a"]


def test_after_decides_which_of_two_patches_on_the_same_lines_is_the_lower(stage: Stage) -> None:
    lower = edit(20, b"line_20 = 'lower'\n")
    upper = edit(20, b"line_20 = 'upper'\n", with_line(20, b"line_20 = 'lower'\n"))
    stage.add("alpha", patch("upper", upper, after=["beta/lower"]))
    stage.add("beta", patch("lower", lower))
    stage.run("apply").expect()
    assert stage.read() == with_line(20, b"line_20 = 'upper'\n")


@pytest.mark.parametrize("order", [("alpha/upper", "beta/lower"), ("beta/lower", "alpha/upper")])
def test_a_patch_may_be_named_with_the_one_that_it_needs_in_any_order(stage: Stage, order: tuple[str, ...]) -> None:
    upper = edit(20, b"line_20 = 'upper'\n", with_line(20, b"line_20 = 'lower'\n"))
    stage.add("alpha", patch("upper", upper, after=["beta/lower"]))
    stage.add("beta", patch("lower", edit(20, b"line_20 = 'lower'\n")))
    stage.run("apply", "alpha/upper").expect(5)
    stage.run("apply", *order).expect()
    assert stage.read() == with_line(20, b"line_20 = 'upper'\n")


def test_an_after_that_names_a_patch_which_is_not_wanted_demands_nothing(stage: Stage) -> None:
    stage.add(
        "alpha", patch("a", edit(5, text(5)), after=["b", "gone/far"]), patch("b", edit(15, text(15)), default=False)
    )
    stage.run("apply").expect()
    assert names_in_order(stage) == ["alpha/a"]


def test_a_cycle_of_after_within_a_set_is_exit_3_and_is_shown(stage: Stage) -> None:
    stage.add("alpha", patch("a", edit(5, text(5)), after=["b"]), patch("b", edit(15, text(15)), after=["a"]))
    before = stage.tree()
    error = stage.json("apply", exit_code=3)["error"]
    assert error["code"] == "order-cycle" and "a after b" in error["message"]
    assert stage.tree() == before


def test_a_cycle_of_after_across_sets_is_exit_3_and_names_its_patches(stage: Stage) -> None:
    stage.add("alpha", patch("a", edit(5, text(5)), after=["beta/b"]))
    stage.add("beta", patch("b", edit(15, text(15)), after=["gamma/c"]), patch("free", edit(30, text(30))))
    stage.add("gamma", patch("c", edit(25, text(25)), after=["alpha/a"]))
    before = stage.tree()
    for command in ("apply", "check"):
        error = stage.json(command, exit_code=3)["error"]
        assert error["code"] == "order-cycle"
        assert all(id in error["message"] for id in ("alpha/a", "beta/b", "gamma/c"))
        assert "beta/free" not in error["message"]
    [warning] = stage.json("status")["warnings"]
    assert warning == {"code": "order-cycle", "message": error["message"]}
    assert stage.json("status", "--exit-code", exit_code=1)["patches"] == []
    assert stage.tree() == before


def test_the_ledger_keeps_the_place_of_each_patch_when_the_manifest_is_gone(stage: Stage) -> None:
    stage.add("alpha", patch("z", edit(5, text(5))), patch("a", edit(15, text(15))), patch("m", edit(25, text(25))))
    stage.run("apply").expect()
    stage.add("alpha", patch("new", edit(35, text(35))))
    stage.run("apply").expect()
    assert names_in_order(stage) == ["alpha/new", "alpha/z", "alpha/a", "alpha/m"]


def test_a_new_order_of_the_manifest_alone_makes_the_fold_anew(stage: Stage) -> None:
    a, b = patch("a", edit(5, text(5))), patch("b", edit(15, text(15)))
    stage.add("alpha", a, b)
    stage.run("apply").expect()
    data = stage.read()
    stage.add("alpha", b, a)
    assert stage.actions("apply") == {"alpha/a": "none", "alpha/b": "none"}
    assert names_in_order(stage) == ["alpha/b", "alpha/a"]
    assert stage.read() == data


def test_apply_x_with_a_text_on_which_another_patch_no_longer_folds_is_a_conflict_that_names_it(stage: Stage) -> None:
    base = with_line(20, b"line_20 = 'first'\n")
    on_top = make_diff({MOD: base}, {MOD: with_line(20, b"line_20 = 'second'\n", base)})
    stage.add("alpha", patch("first", edit(20, b"line_20 = 'first'\n")), patch("second", on_top))
    stage.run("apply").expect()
    stage.add("alpha", patch("first", edit(20, b"line_20 = 'changed'\n")), patch("second", on_top))
    before = stage.tree()
    said = stage.json("apply", "alpha/first", exit_code=5)
    assert "alpha/second" in said["error"]["message"]
    assert stage.tree() == before
