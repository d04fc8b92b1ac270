"""The states of patches, what `apply` makes of them, checks, and the exit codes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit import checks
from stages import (
    BLOCK,
    BLOCKS,
    LINES,
    MOD,
    SHIPPED,
    Stage,
    edit,
    make_diff,
    make_stage,
    patch,
    put,
    sample_wheel,
    with_line,
)
from worlds import CHECKOUT, clean_environment, git, run

PRISTINE = b"".join(LINES)
MADE = "some_dist/made.py"
FIVE, THIRTY = b"line_5 = 'five'\n", b"line_30 = 'thirty'\n"
LOW = with_line(5, FIVE)


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


def row_of(document: Any, patch_name: str) -> Any:
    [row] = [row for row in document["patches"] if row["patch"] == patch_name]
    return row


# ---- undeclared ---------------------------------------------------------------------------------------------


def test_status_says_what_becomes_of_applied_patches_that_are_not_declared(stage: Stage) -> None:
    def message(name: str) -> str:
        return str(row_of(stage.json("status"), name)["message"])

    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.run("apply").expect()
    stage.add("alpha", patch("renamed", edit(5, FIVE)))
    assert message("low") == "the patch folder calls it alpha/renamed now: `patchkit apply` goes along"
    stage.run("apply").expect()
    assert stage.states() == {"alpha/renamed": "applied"}
    stage.add("alpha", patch("renamed", edit(5, FIVE), default=False, group="line"), patch("other", edit(5, THIRTY)))
    assert message("renamed") == "not declared: `patchkit apply --exact` would take it out"
    other = patch("other", edit(5, THIRTY), group="line")
    stage.add("alpha", patch("renamed", edit(5, FIVE), default=False, group="line"), other)
    assert message("renamed") == "not declared: `patchkit apply` takes it out"
    stage.run("apply").expect()
    assert stage.states() == {"alpha/other": "applied"}


# ---- applied --------------------------------------------------------------------------------------------------


def test_a_patch_goes_from_pending_to_applied_to_pending(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    shipped = stage.tree()
    assert stage.states("check") == {"alpha/low": "pending"}
    assert stage.states() == {"alpha/low": "pending"}
    assert stage.tree() == shipped
    [row] = stage.json("apply")["patches"]
    assert (row["state"], row["action"], row["variant"], row["installed"]) == (
        "applied",
        "applied",
        "low.patch",
        "1.2.3",
    )
    assert stage.read() == LOW
    assert stage.states("check") == stage.states() == stage.states("verify") == {"alpha/low": "applied"}
    [row] = stage.json("revert", "--all")["patches"]
    assert (row["state"], row["action"]) == ("pending", "reverted")
    assert stage.tree() == shipped


def test_the_same_in_processes_of_their_own(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    shipped = stage.tree()
    assert "pending" in stage.process("check").expect().out
    assert "1 applied" in stage.process("apply").expect().out
    assert "nothing to do: 1 already applied" in stage.process("apply").expect().out
    assert "1 verified" in stage.process("verify").expect().out
    stage.write(MOD, b"an edit\n")
    assert "edited, or RECORD is wrong" in stage.process("revert", "--all").expect(5).err
    stage.write(MOD, LOW)
    stage.process("revert", "--all").expect()
    assert stage.tree() == shipped
    assert "nothing is applied" in stage.process("verify").expect(1).out


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)), patch("made", make_diff({}, {MADE: b"made = 1\n"})))
    before = stage.tree()
    said = stage.json("apply", "--dry-run", "--diff")
    assert [row["action"] for row in said["patches"]] == ["applied", "applied"]
    assert said["dry_run"] is True
    assert stage.tree() == before
    put(stage.folder / "copy" / MOD, PRISTINE)
    record = stage.record.relative_to(stage.site)
    put(stage.folder / "copy" / record, stage.record.read_bytes())
    git("apply", "-", cwd=stage.folder / "copy", input=said["diff"]).expect()
    stage.run("apply").expect()
    for path in (MOD, MADE, str(record)):
        assert (stage.folder / "copy" / path).read_bytes() == stage.read(path)
    after = stage.tree()
    assert {row["action"] for row in stage.json("revert", "--all", "--dry-run")["patches"]} == {"reverted"}
    assert stage.tree() == after


def test_several_problems_are_all_shown_and_the_lowest_exit_code_counts(stage: Stage) -> None:
    stage.add("alpha", patch("conflict", edit(5, FIVE, with_line(5, b"never shipped\n"))))
    stage.add("beta", patch("unmatched", edit(30, THIRTY), versions="<1"))
    before = stage.tree()
    error = stage.json("apply", exit_code=4)["error"]
    assert error["code"] == "no-variant"
    assert {each["code"] for each in error["all"]} == {"no-variant", "conflict"}
    assert "alpha/conflict" in error["message"] and "beta/unmatched" in error["message"]
    assert stage.tree() == before


def test_check_answers_no_with_exit_1_and_shows_what_was_expected_and_found(stage: Stage) -> None:
    stage.add("alpha", patch("conflict", edit(5, FIVE, with_line(5, b"never shipped\n"))))
    row = row_of(stage.json("check", exit_code=1), "conflict")
    [hunk] = row["files"][0]["hunks"]
    assert (row["state"], hunk["result"], hunk["line"]) == ("conflict", "conflict", 2)
    assert "never shipped" in hunk["expected"]
    assert "line_5 = 5" in hunk["found"]
    assert hunk["nearest"] == 2
    said = stage.run("check", "--verbose").expect(1).out
    assert "expected | never shipped" in said and "| line_5 = 5" in said


# ---- upstreamed -----------------------------------------------------------------------------------------------


def test_a_patch_whose_text_is_shipped_is_upstreamed_and_can_be_retired(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.ship(MOD, LOW)
    before = stage.tree()
    for command in ("check", "apply", "status"):
        [row] = stage.json(command)["patches"]
        assert (row["state"], row["action"]) == ("upstreamed", "none")
        assert "retired" in row["message"]
        assert [hunk["result"] for hunk in row["files"][0]["hunks"]] == ["upstream"]
    assert stage.tree() == before
    stage.run("status", "--exit-code").expect()


def test_a_text_that_is_shipped_without_the_executable_bit_of_the_diff_is_not_upstreamed(stage: Stage) -> None:
    new = b"".join([*LINES[:4], b"line_5 = 5.0\n", *LINES[5:]])
    stage.ship(MOD, new)
    stage.add("fix", patch("one", make_diff({MOD: b"".join(LINES)}, {MOD: new}, {MOD: 0o755})))
    error = stage.json("apply", exit_code=5)["error"]
    assert f"{MOD}: it is shipped with this text, and not with the executable bit" in error["message"]
    (stage.site / MOD).chmod(0o755)
    assert stage.states("check") == {"fix/one": "upstreamed"}


def test_a_patch_that_an_upgrade_brings_is_upstreamed_and_leaves_the_ledger(stage: Stage, tmp_path: Path) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.run("apply").expect()
    stage.reinstall(sample_wheel(tmp_path / "wheels", "1.3", SHIPPED | {MOD: b"# newer\n" + LOW}))
    assert stage.states() == {"alpha/low": "upstreamed"}
    stage.run("apply").expect()
    assert stage.read() == b"# newer\n" + LOW
    assert not (stage.site / ".patchkit").exists()


def test_upstreamed_beside_pending_lets_the_other_be_applied(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)), patch("high", edit(30, THIRTY)))
    stage.ship(MOD, LOW)
    assert stage.states("apply") == {"alpha/low": "upstreamed", "alpha/high": "applied"}
    assert stage.read() == with_line(30, THIRTY, LOW)


def test_a_hunk_that_only_deletes_proves_nothing_and_is_a_conflict(stage: Stage) -> None:
    without = b"".join((*LINES[:19], *LINES[20:]))
    stage.add("alpha", patch("delete", make_diff({MOD: PRISTINE}, {MOD: without})))
    stage.ship(MOD, without)
    said = stage.json("apply", exit_code=5)
    assert said["patches"][0]["state"] == "conflict"
    assert "perhaps upstream" in said["error"]["message"]


def test_a_deleted_file_that_is_gone_is_a_conflict_that_says_perhaps_upstream(stage: Stage) -> None:
    stage.add("alpha", patch("delete", make_diff({"some_dist/old.py": b"old = 1\n"}, {})))
    said = stage.json("apply", exit_code=5)
    assert "perhaps upstream" in said["error"]["message"]


def three_hunks() -> bytes:
    return make_diff({MOD: PRISTINE}, {MOD: with_line(35, b"line_35 = 'x'\n", with_line(20, b"line_20 = 'x'\n", LOW))})


def test_a_conflict_says_how_many_hunks_are_upstream(stage: Stage) -> None:
    stage.add("alpha", patch("three", three_hunks()))
    stage.ship(MOD, with_line(35, b"line_35 = 'x'\n", with_line(20, b"line_20 = 'other'\n", LOW)))
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    assert "2 of 3 hunks are upstream" in said["error"]["message"]
    [row] = said["patches"]
    assert [hunk["result"] for hunk in row["files"][0]["hunks"]] == ["upstream", "conflict", "upstream"]
    assert stage.tree() == before


def test_hunks_that_fit_beside_hunks_that_are_upstream_are_a_conflict(stage: Stage) -> None:
    stage.add("alpha", patch("three", three_hunks()))
    stage.ship(MOD, LOW)
    said = stage.json("apply", exit_code=5)
    assert "1 of 3 hunks are upstream" in said["error"]["message"]
    assert [hunk["result"] for hunk in said["patches"][0]["files"][0]["hunks"]] == ["upstream", "fits", "fits"]


def test_where_the_patch_fits_forward_it_is_pending_whatever_else_is_there(stage: Stage) -> None:
    inserted = b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:]))
    head = b"import sys\n\n"
    diff = make_diff({BLOCKS: SHIPPED[BLOCKS]}, {BLOCKS: head + inserted + b"".join(BLOCK) * 3})
    stage.add("alpha", patch("insert", diff))
    stage.ship(BLOCKS, head + b"".join(BLOCK) * 3 + inserted)
    assert stage.states("check") == {"alpha/insert": "pending"}
    stage.run("apply").expect()
    assert stage.read(BLOCKS) == head + inserted + b"".join(BLOCK) * 2 + inserted


def test_while_one_hunk_fits_forward_nothing_is_upstreamed_though_every_text_is_there(stage: Stage) -> None:
    inserted = b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:]))
    head = b"import sys\n\n"
    diff = make_diff({BLOCKS: SHIPPED[BLOCKS]}, {BLOCKS: head + inserted + b"".join(BLOCK) * 3})
    stage.add("alpha", patch("both", diff + edit(5, FIVE)))
    stage.ship(BLOCKS, head + b"".join(BLOCK) * 3 + inserted)
    stage.ship(MOD, LOW)
    before = stage.tree()
    assert stage.json("apply", exit_code=5)["patches"][0]["state"] == "conflict"
    assert stage.tree() == before


def test_a_text_that_is_there_at_two_places_is_not_taken_for_upstream(stage: Stage) -> None:
    inserted = b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:]))
    head = b"import sys\n\n"
    diff = make_diff({BLOCKS: head + b"".join(BLOCK)}, {BLOCKS: head + inserted})
    stage.add("alpha", patch("insert", diff))
    stage.ship(BLOCKS, head + inserted * 2)
    assert stage.states("check", exit_code=1) == {"alpha/insert": "conflict"}


def test_a_symbol_check_that_fails_on_the_shipped_file_keeps_it_from_being_upstreamed(stage: Stage) -> None:
    check = {"kind": "symbol", "module": "some_dist.mod", "lacks": ["'bad'"]}
    stage.add("alpha", patch("low", edit(5, FIVE), check=[check]))
    stage.ship(MOD, with_line(20, b"line_20 = 'bad'\n", LOW))
    said = stage.json("apply", exit_code=5)
    assert said["patches"][0]["state"] == "conflict"
    assert "all hunks are upstream, but the check some_dist.mod fails there" in said["error"]["message"]


# ---- not needed, no variant -----------------------------------------------------------------------------------


def test_a_patch_that_is_known_not_to_be_needed_is_success_and_says_why(stage: Stage) -> None:
    rule = {"versions": ">=1.2", "why": "fixed upstream in 1.2"}
    stage.add("alpha", patch("low", edit(5, FIVE), versions="<1.2", not_needed=[rule]))
    before = stage.tree()
    [row] = stage.json("apply")["patches"]
    assert (row["state"], row["action"], row["message"]) == ("not-needed", "none", "fixed upstream in 1.2")
    stage.run("check").expect()
    stage.run("status", "--exit-code").expect()
    assert stage.tree() == before


def test_a_version_without_a_range_is_exit_4_and_the_variant_that_would_fit_is_named(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), versions="<=1.2.2"))
    before = stage.tree()
    error = stage.json("apply", exit_code=4)["error"]
    assert error["code"] == "no-variant"
    assert "no range holds some-dist 1.2.3 (there are: <=1.2.2)" in error["message"]
    assert "low.patch would fit" in error["message"]
    assert '[[patch.variant]]\nversions = "==1.2.3"\nfile = "low.patch"' in error["message"]
    assert "--skip-unmatched" in error["hint"]
    assert stage.states() == {"alpha/low": "no-variant"}
    assert stage.states("check", exit_code=1) == {"alpha/low": "no-variant"}
    assert stage.tree() == before


def test_a_version_without_a_range_that_has_the_text_already_says_so(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), versions="<=1.2.2"))
    stage.ship(MOD, LOW)
    message = stage.json("apply", exit_code=4)["error"]["message"]
    assert "the text of low.patch is there already" in message
    assert '[[patch.not-needed]]\nversions = "==1.2.3"' in message


def test_a_version_without_a_range_that_no_diff_fits_says_so(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE, with_line(5, b"never shipped\n")), versions="<=1.2.2"))
    error = stage.json("apply", exit_code=4)["error"]
    assert "none of its diffs fits this version" in error["message"]
    assert error["hint"].startswith("`patchkit rebase alpha/low --to 1.2.3` makes the diff for that version; ")


def test_the_next_step_of_patches_that_fit_no_more_after_an_upgrade_leads_to_rebase(stage: Stage) -> None:
    ranges = {"versions": "<=1.2.3"}
    stage.add("alpha", patch("low", edit(5, FIVE), **ranges), patch("high", edit(30, THIRTY), **ranges))
    stage.run("apply").expect()
    other = {**SHIPPED, MOD: b"other = 1\n"}
    stage.reinstall(sample_wheel(stage.folder / "new", "2.0", other))
    assert "\nnext: patchkit drift" in stage.run("verify").expect(1).out
    assert "remedy: patchkit rebase alpha/low --to 2.0" in stage.run("drift").expect(1).out
    for command in ("status", "check"):
        assert "\nnext: patchkit rebase alpha --to 2.0" in stage.run(command).out
        low = row_of(stage.json(command, exit_code=0 if command == "status" else 1), "low")
        assert low["next"].startswith("patchkit rebase alpha/low --to 2.0")
    said = stage.run("apply").expect(4).err
    assert (
        said.count("hint: ") == 1 and "hint: `patchkit rebase alpha --to 2.0` makes the diff for that version" in said
    )
    assert "next: patchkit rebase alpha/high --to 2.0" in stage.run("check", "alpha/high").expect(1).out


def test_the_manifest_lines_that_are_suggested_make_the_patch_apply(stage: Stage) -> None:
    low = patch("low", edit(5, FIVE), versions="<=1.2.2")
    low["variant"][0] |= {"strip": 2, "directory": "some_dist", "include": ["some_dist/*"], "exclude": ["tests/**"]}
    folder = stage.add("alpha", low)
    message = stage.json("apply", exit_code=4)["error"]["message"]
    with (folder / "patchset.toml").open("a") as manifest:
        manifest.write("\n" + message[message.index("[[patch.variant]]") :] + "\n")
    stage.run("apply").expect()
    assert stage.read() == LOW


def test_skip_unmatched_goes_on_without_the_patch_and_says_so(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), versions="<=1.2.2"), patch("high", edit(30, THIRTY)))
    stage.run("apply").expect(4)
    said = stage.json("apply", "--skip-unmatched")
    assert (row_of(said, "low")["state"], row_of(said, "low")["action"]) == ("no-variant", "none")
    assert "low.patch would fit" in row_of(said, "low")["message"]
    assert stage.read() == with_line(30, THIRTY)


def test_skip_unmatched_does_not_make_a_run_pass_in_which_nothing_was_applicable(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), versions="<=1.2.2"))
    assert stage.json("apply", "--skip-unmatched", exit_code=4)["error"]["code"] == "nothing-applicable"
    stage.run("apply", "--skip-unmatched", "--allow-empty").expect()


@pytest.mark.parametrize("versions", ["==1.2.3", ">=1.2.3rc1,<1.3", "~=1.2", ">=1.0.dev0,<2.dev0"])
def test_the_variant_whose_range_holds_the_installed_version_is_taken(stage: Stage, versions: str) -> None:
    low = patch("low", edit(5, FIVE), versions=versions)
    low["variant"].append({"versions": ">=2", "file": "other.patch"})
    low["FILES"]["other.patch"] = edit(5, b"wrong\n")
    stage.add("alpha", low)
    assert stage.json("apply")["patches"][0]["variant"] == "low.patch"
    assert stage.read() == LOW


# ---- not installed, not applicable, constraints ------------------------------------------------------------------


@pytest.fixture
def absent(stage: Stage) -> Stage:
    """alpha is for what is installed, beta for what is not."""
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.add("beta", patch("other", edit(30, THIRTY)), distribution="not-there")
    return stage


def test_a_distribution_that_is_not_installed_is_skipped_and_said(absent: Stage) -> None:
    said = absent.run("apply").expect().out
    assert "beta/other  not-installed" in said and "not-there is not installed" in said
    assert absent.read() == LOW


def test_a_distribution_that_is_not_installed_is_exit_4_when_its_patch_is_named(absent: Stage) -> None:
    before = absent.tree()
    for operands in (["beta"], ["beta/other"], ["alpha", "beta"]):
        error = absent.json("apply", *operands, exit_code=4)["error"]
        assert error["code"] == "not-installed" and "not-there" in error["message"]
    assert absent.json("check", "beta", exit_code=1)["patches"][0]["state"] == "not-installed"
    assert absent.tree() == before


def test_a_distribution_that_is_not_installed_is_exit_4_under_strict(absent: Stage) -> None:
    before = absent.tree()
    assert absent.json("apply", "--strict", exit_code=4)["error"]["code"] == "not-installed"
    assert absent.tree() == before


def test_a_run_in_which_nothing_is_installed_is_exit_4(stage: Stage) -> None:
    stage.add("beta", patch("other", edit(30, THIRTY)), distribution="not-there")
    error = stage.json("apply", exit_code=4)["error"]
    assert (
        error["code"] == "nothing-applicable"
        and "not-there" in error["message"]
        and str(stage.site) in error["message"]
    )
    assert "--site-packages" in error["hint"]
    stage.run("check").expect(1)
    assert stage.states("apply", "--allow-empty") == {"beta/other": "not-installed"}


def test_a_marker_that_is_false_makes_a_patch_not_applicable(stage: Stage) -> None:
    nowhere = patch("low", edit(5, FIVE), markers="platform_system == 'Nowhere'")
    stage.add("alpha", nowhere, patch("high", edit(30, THIRTY), markers="python_version >= '3'"))
    said = stage.json("apply")
    row = row_of(said, "low")
    assert (row["state"], row["action"]) == ("not-applicable", "none") and "platform_system" in row["message"]
    assert stage.read() == with_line(30, THIRTY)


def test_a_marker_of_the_set_holds_for_all_its_patches(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)), markers="platform_system == 'Nowhere'")
    error = stage.json("apply", exit_code=4)["error"]
    assert error["code"] == "nothing-applicable"
    assert stage.states("apply", "--allow-empty") == {"alpha/low": "not-applicable"}


def test_a_constraint_that_does_not_hold_is_exit_4(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other = sample_wheel(tmp_path / "wheels", "2.0", {"other/mod.py": PRISTINE}, name="other.dist")
    stage = make_stage(tmp_path, make_site, capsys.readouterr, sample_wheel(tmp_path / "wheels"), other)
    stage.add("alpha", patch("low", edit(5, FIVE), constraints=["other-dist>=2.1"]))
    before = stage.tree()
    error = stage.json("apply", exit_code=4)["error"]
    assert error["code"] == "constraint" and "other-dist>=2.1 (installed: 2.0)" in error["message"]
    assert stage.tree() == before
    stage.run("check").expect(1)
    stage.add("alpha", patch("low", edit(5, FIVE), constraints=["Other.Dist>=2.0", "absent>=99"]))
    stage.run("apply").expect()


def test_a_constraint_of_a_set_holds_for_all_its_patches(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)), constraints=["some-dist<1"])
    assert stage.json("apply", exit_code=4)["error"]["code"] == "constraint"


def test_no_declared_patch_is_exit_4_unless_an_empty_run_is_allowed(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), default=False))
    error = stage.json("apply", exit_code=4)["error"]
    assert error["code"] == "nothing-applicable" and "no patch is declared" in error["message"]
    stage.run("apply", "--allow-empty").expect()


def test_a_patch_folder_that_is_not_there_is_exit_3_and_says_where_it_was_looked_for(stage: Stage) -> None:
    shutil.rmtree(stage.patches)
    for command in ("apply", "check", "list"):
        error = stage.json(command, exit_code=3)["error"]
        assert error["code"] == "no-patch-sets" and str(stage.patches) in error["message"]
        assert ("--allow-empty" in error["hint"]) is (command == "apply")
    said = stage.json("apply", "--allow-empty")
    assert said["warnings"][0]["code"] == "no-patch-sets"


def test_an_empty_patch_folder_is_exit_3(stage: Stage) -> None:
    assert stage.json("apply", exit_code=3)["error"]["code"] == "no-patch-sets"
    stage.run("apply", "--allow-empty").expect()


def test_verify_with_nothing_recorded_answers_no(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    said = stage.run("verify").expect(1)
    assert f"nothing is applied on {stage.site}" in said.out
    shutil.rmtree(stage.patches)
    stage.run("verify").expect(1)


def test_another_distribution_that_shadows_the_source_is_a_warning(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), shadowed_by=["some-dist", "absent"]))
    [warning] = stage.json("apply")["warnings"]
    assert warning["code"] == "shadowed" and "some-dist is installed" in warning["message"]


# ---- symbol checks --------------------------------------------------------------------------------------------


def symbol(**keys: Any) -> dict[str, Any]:
    return {"kind": "symbol", "module": "some_dist.mod", **keys}


def test_a_symbol_check_passes_on_the_patched_file_and_fails_without_the_patch(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), check=[symbol(has=["'five'"])]))
    [check] = stage.json("check")["patches"][0]["checks"]
    assert (check["kind"], check["name"], check["result"]) == ("symbol", "some_dist.mod", "passed")
    stage.run("apply").expect()
    stage.run("verify").expect()


def test_a_symbol_check_that_fails_is_exit_7_and_nothing_changed(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), check=[symbol(has=["'six'"])]))
    before = stage.tree()
    said = stage.json("apply", exit_code=7)
    assert said["error"]["code"] == "check-failed" and "alpha/low" in said["error"]["message"]
    assert said["patches"][0]["checks"][0]["result"] == "failed"
    assert stage.tree() == before
    stage.run("check").expect(1)
    stage.run("apply", "--no-checks").expect()
    assert stage.read() == LOW


def test_a_symbol_check_of_a_module_that_is_not_there_fails(stage: Stage) -> None:
    check = {"kind": "symbol", "module": "some_dist.gone", "has": ["1"]}
    stage.add("alpha", patch("low", edit(5, FIVE), check=[check]))
    assert "there is no some_dist/gone" in stage.json("apply", exit_code=7)["error"]["message"]


def test_a_symbol_check_that_passes_without_the_patch_is_exit_3(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE), check=[symbol(lacks=["'six'"])]))
    before = stage.tree()
    for command in ("apply", "check"):
        error = stage.json(command, exit_code=3)["error"]
        assert error["code"] == "useless-check" and "passes without the patch too" in error["message"]
    assert stage.tree() == before


def test_a_symbol_check_is_tried_without_its_own_patch_and_with_the_lower_ones(stage: Stage) -> None:
    upper = patch("upper", edit(30, THIRTY), check=[symbol(has=["'five'"])])
    stage.add("alpha", patch("low", edit(5, FIVE)), upper)
    error = stage.json("apply", exit_code=3)["error"]
    assert "alpha/upper" in error["message"]


def test_a_check_for_other_versions_is_not_run(stage: Stage) -> None:
    checks = [symbol(has=["'six'"], versions="<1"), symbol(has=["'five'"], versions=">=1")]
    stage.add("alpha", patch("low", edit(5, FIVE), check=checks))
    stage.run("apply").expect()
    assert [check["result"] for check in stage.json("verify")["patches"][0]["checks"]] == ["passed"]


def test_a_patched_source_that_does_not_compile_is_exit_7_and_nothing_changed(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, b"line_5 = (\n")))
    before = stage.tree()
    error = stage.json("apply", exit_code=7)["error"]
    assert f"{MOD} would not compile" in error["message"] and "alpha/low" in error["message"]
    assert stage.tree() == before


# ---- python checks --------------------------------------------------------------------------------------------

ASKS = b"import some_dist.mod, sys\nsys.exit(some_dist.mod.line_5 != 'five')\n"
PYTHON = ("--python", sys.executable)


def python(**keys: Any) -> dict[str, Any]:
    return {"kind": "python", "file": "checks/ask.py", **keys}


def add_script(stage: Stage, script: bytes, **keys: Any) -> None:
    """alpha/low with a python check that runs ``script``."""
    stage.add("alpha", patch("low", edit(5, FIVE), check=[python(**keys)]), checks={"checks/ask.py": script})


def check_of(document: Any) -> Any:
    [check] = document["patches"][0]["checks"]
    return check


def test_a_python_check_fails_before_apply_and_passes_after(stage: Stage) -> None:
    add_script(stage, ASKS)
    env = clean_environment({"PYTHONPATH": str(stage.site), "PYTHONDONTWRITEBYTECODE": "1"})
    by_hand = [sys.executable, str(stage.patches / "alpha" / "checks" / "ask.py")]
    assert subprocess.run(by_hand, env=env, check=False).returncode == 1
    said = stage.json("apply", *PYTHON)
    assert (check_of(said)["name"], check_of(said)["result"]) == ("checks/ask.py", "passed")
    assert subprocess.run(by_hand, env=env, check=False).returncode == 0
    assert not [path for path in stage.tree() if "__pycache__" in path]


def test_a_python_check_that_fails_is_exit_7_and_the_tree_is_as_before(stage: Stage) -> None:
    add_script(stage, b"import some_dist.mod\nprint('what it', 'found')\nraise SystemExit(3)\n")
    stage.add("beta", patch("high", edit(30, THIRTY)))
    before = stage.tree()
    said = stage.json("apply", *PYTHON, exit_code=7)
    assert said["error"]["code"] == "check-failed"
    assert "exit 3" in said["error"]["message"] and "what it found" in said["error"]["message"]
    assert {row["action"] for row in said["patches"]} == {"none"}
    assert row_of(said, "low")["checks"][0]["result"] == "failed"
    assert stage.tree() == before


def test_a_failing_check_of_an_update_leaves_the_old_text_in_place(stage: Stage) -> None:
    add_script(stage, ASKS)
    stage.run("apply", *PYTHON).expect()
    stage.add("alpha", patch("low", edit(5, b"line_5 = 'six'\n"), check=[python()]), checks={"checks/ask.py": ASKS})
    before = stage.tree()
    stage.run("apply", *PYTHON).expect(7)
    assert stage.tree() == before
    stage.run("verify", *PYTHON).expect()


def test_a_changed_python_check_of_an_applied_patch_runs_before_it_is_taken_into_the_ledger(
    stage: Stage, tmp_path: Path
) -> None:
    note = f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\n".encode()
    stage.add("beta", patch("high", edit(30, THIRTY), check=[python()]), checks={"checks/ask.py": note})
    add_script(stage, ASKS)
    stage.run("apply", *PYTHON).expect()
    add_script(stage, b"raise SystemExit('no')\n")
    before = stage.tree()
    said = stage.json("check", *PYTHON)
    messages = {name: row_of(said, name)["checks"][0]["message"] for name in ("low", "high")}
    assert messages["low"] == "`patchkit apply` runs it, for it is new or changed"
    assert messages["high"] == "`patchkit verify` runs it"
    said = stage.json("apply", *PYTHON, exit_code=7)
    assert said["error"]["code"] == "check-failed" and row_of(said, "low")["checks"][0]["result"] == "failed"
    assert stage.tree() == before
    stage.run("verify", *PYTHON).expect()
    add_script(stage, ASKS + b"\n")
    row = row_of(stage.json("apply", *PYTHON), "low")
    assert (row["action"], row["checks"][0]["result"]) == ("none", "passed")
    assert "nothing to do" in stage.run("apply", *PYTHON).expect().out
    assert (tmp_path / "ran").read_text() == "xx"  # by apply and by verify: what did not change is not run again


def test_a_failing_check_undoes_an_adoption_too(stage: Stage) -> None:
    add_script(stage, b"raise SystemExit('no')\n")
    stage.write(MOD, LOW)
    before = stage.tree()
    stage.run("apply", *PYTHON).expect(7)
    assert stage.tree() == before


def test_a_python_check_that_exits_77_is_skipped_and_its_last_line_says_why(stage: Stage) -> None:
    add_script(stage, b"print('first')\nprint('there is no GPU')\nraise SystemExit(77)\n")
    said = stage.json("apply", *PYTHON)
    assert check_of(said) == {
        "kind": "python",
        "name": "checks/ask.py",
        "result": "skipped",
        "message": "there is no GPU",
    }
    text = stage.run("verify", *PYTHON).expect().out
    assert "skipped (there is no GPU)" in text and "checks: 1 skipped" in text


def test_a_python_check_is_skipped_where_what_it_needs_is_missing(stage: Stage) -> None:
    add_script(stage, b"raise SystemExit(1)\n", needs=["some-dist", "Not.There"])
    said = stage.json("apply", *PYTHON)
    assert (check_of(said)["result"], check_of(said)["message"]) == ("skipped", "not-there is not installed")


def test_a_python_check_is_skipped_and_said_where_only_a_folder_is_named(stage: Stage) -> None:
    add_script(stage, b"raise SystemExit(1)\n")
    said = stage.json("apply")
    assert check_of(said)["result"] == "skipped" and "--python" in check_of(said)["message"]
    assert "checks: 1 skipped" in stage.run("verify").expect().out


def test_strict_fails_when_every_check_of_a_patch_was_skipped(stage: Stage) -> None:
    add_script(stage, b"raise SystemExit(77)\n")
    before = stage.tree()
    for options in (PYTHON, ()):
        error = stage.json("apply", "--strict", *options, exit_code=4)["error"]
        assert error["code"] == "all-checks-skipped" and "alpha/low" in error["message"]
        assert stage.tree() == before


def test_strict_is_content_when_one_check_of_the_patch_passed(stage: Stage) -> None:
    checks = [symbol(has=["'five'"]), python()]
    stage.add("alpha", patch("low", edit(5, FIVE), check=checks), checks={"checks/ask.py": b"raise SystemExit(77)\n"})
    stage.run("apply", "--strict", *PYTHON).expect()


def test_no_checks_runs_none_in_apply_and_verify(stage: Stage, tmp_path: Path) -> None:
    add_script(stage, f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(1)\n".encode())
    assert stage.json("apply", *PYTHON, "--no-checks")["patches"][0]["checks"] == []
    stage.run("verify", *PYTHON, "--no-checks").expect()
    assert not (tmp_path / "ran").exists()
    stage.run("verify", *PYTHON).expect(1)
    assert (tmp_path / "ran").exists()


def test_check_runs_no_python_check_and_says_when_it_runs(stage: Stage, tmp_path: Path) -> None:
    add_script(stage, f"open({str(tmp_path / 'ran')!r}, 'w')\n".encode())
    said = stage.json("check", *PYTHON)
    assert check_of(said)["result"] == "skipped" and "once the patch is applied" in check_of(said)["message"]
    assert not (tmp_path / "ran").exists()


def test_apply_with_nothing_to_do_runs_no_checks(stage: Stage, tmp_path: Path) -> None:
    add_script(stage, f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\n".encode())
    stage.run("apply", *PYTHON).expect()
    stage.run("apply", *PYTHON).expect()
    assert (tmp_path / "ran").read_text() == "x"


def test_verify_runs_the_checks_again_with_no_patch_folder_at_hand(stage: Stage, tmp_path: Path) -> None:
    add_script(stage, f"import os\nraise SystemExit(os.path.exists({str(tmp_path / 'broken')!r}))\n".encode())
    stage.run("apply", *PYTHON).expect()
    shutil.rmtree(stage.patches)
    assert check_of(stage.json("verify", *PYTHON))["result"] == "passed"
    (tmp_path / "broken").touch()
    said = stage.json("verify", *PYTHON, exit_code=1)
    assert check_of(said)["result"] == "failed"
    assert "checks/ask.py failed" in said["patches"][0]["message"]


def test_verify_runs_the_script_that_was_applied_and_not_the_one_at_hand(stage: Stage) -> None:
    add_script(stage, ASKS)
    stage.run("apply", *PYTHON).expect()
    add_script(stage, b"raise SystemExit(1)\n")
    stage.run("verify", *PYTHON).expect()


def test_a_python_check_may_print_bytes_that_are_not_utf_8(stage: Stage) -> None:
    add_script(stage, b"import sys\nsys.stdout.buffer.write(b'\\xff\\xfe no\\n')\nsys.exit(1)\n")
    before = stage.tree()
    said = stage.json("apply", *PYTHON, exit_code=7)
    assert "\N{REPLACEMENT CHARACTER} no" in said["error"]["message"]
    assert "exit 1" in stage.run("apply", *PYTHON).expect(7).err
    assert stage.tree() == before


def test_a_python_check_that_is_killed_says_by_which_signal(stage: Stage) -> None:
    add_script(stage, b"import os\nos.kill(os.getpid(), 9)\n")
    assert "killed by signal 9" in stage.json("apply", *PYTHON, exit_code=7)["error"]["message"]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    if Path("/proc/self").exists():  # Linux, where a small image may have no ps
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(said.strip()) and not said.strip().startswith("Z")


def test_a_python_check_that_takes_too_long_is_killed_with_its_children(stage: Stage, tmp_path: Path) -> None:
    script = f"""
import pathlib, subprocess, time
child = subprocess.Popen(["sleep", "50"])
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
time.sleep(50)
"""
    add_script(stage, script.encode(), timeout=1.5)
    before = stage.tree()
    error = stage.json("apply", *PYTHON, exit_code=7)["error"]
    assert "still running after 1.5 s" in error["message"]
    assert stage.tree() == before
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(pid)


def test_a_child_that_left_its_process_group_does_not_make_apply_wait_for_ever(stage: Stage, tmp_path: Path) -> None:
    script = f"""
import pathlib, subprocess, time
child = subprocess.Popen(["sleep", "12"], start_new_session=True)
pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
time.sleep(50)
"""
    add_script(stage, script.encode(), timeout=1.5)
    started = time.monotonic()
    try:
        stage.run("apply", *PYTHON).expect(7)
        assert time.monotonic() - started < 9
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_python_check_sees_no_terminal_and_its_output_stays_out_of_the_document(stage: Stage) -> None:
    add_script(stage, b"import sys\nassert sys.stdin.read() == ''\nprint('words')\n")
    assert check_of(stage.json("apply", *PYTHON))["message"] == "words"


def test_a_run_that_has_nothing_to_do_loads_no_parser_and_no_writer(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, b"line_5 = 'five'\n")))
    stage.run("apply").expect()
    program = f"""
import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from patchkit.cli import main
code = main(["apply", "--site-packages", {str(stage.site)!r}, "--patches", {str(stage.patches)!r}, "--quiet"])
slow = ("unidiff", "importlib.metadata", "packaging.requirements", "packaging.markers", "difflib", "zipfile",
        "patchkit.diff", "patchkit.transaction", "patchkit.wheel", "patchkit.preview")
print(code, [name for name in slow if name in sys.modules])
"""
    ended = run(sys.executable, "-c", program, cwd=stage.folder).expect()
    assert ended.out == "0 []\n"


def test_the_end_of_a_check_never_waits_for_a_lock_that_a_signal_left_held() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as process:
        process._waitpid_lock.acquire()  # type: ignore[attr-defined]  # as a signal within Popen.poll leaves it
        checks._kill_group(process)
    assert process.returncode == -signal.SIGKILL
