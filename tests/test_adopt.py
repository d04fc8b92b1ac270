"""Files that are not what was shipped: patched by hand and adopted, foreign, missing; and what RECORD can say."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import worlds
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
    make_diff,
    make_stage,
    patch,
    sample_wheel,
    with_line,
)
from worlds import Entry

PRISTINE = b"".join(LINES)
MADE = "some_dist/made.py"
FIVE, THIRTY = b"line_5 = 'five'\n", b"line_30 = 'thirty'\n"
LOW, HIGH = with_line(5, FIVE), with_line(30, THIRTY)
BOTH = with_line(30, THIRTY, LOW)
EDITED = with_line(20, b"line_20 = 'an edit'\n")


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


@pytest.fixture
def two(stage: Stage) -> Stage:
    """Two patches on one file, none applied."""
    stage.add("alpha", patch("low", edit(5, FIVE)), patch("high", edit(30, THIRTY)))
    return stage


def by_hand(stage: Stage, diff: bytes) -> None:
    """Apply a diff with GNU patch."""
    worlds.run("patch", "-p1", "--no-backup-if-mismatch", cwd=stage.site, input=diff).expect()


def without_state(stage: Stage) -> dict[str, Entry]:
    return {path: entry for path, entry in stage.tree().items() if not path.startswith(".patchkit")}


def inodes(stage: Stage) -> dict[str, tuple[int, int]]:
    """What changes when a file is replaced."""
    stats = {path: (stage.site / path).lstat() for path in without_state(stage)}
    return {path: (status.st_ino, status.st_mtime_ns) for path, status in stats.items()}


# ---- adopted --------------------------------------------------------------------------------------------------


def test_a_patch_that_was_applied_by_hand_is_adopted_and_only_the_state_is_written(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    by_hand(stage, edit(5, FIVE))
    before, kept = without_state(stage), inodes(stage)
    assert stage.states("check") == {"alpha/low": "pending"}
    assert stage.actions("apply") == {"alpha/low": "adopted"}
    assert without_state(stage) == before
    assert inodes(stage) == kept
    assert stage.states("verify") == {"alpha/low": "applied"}
    assert stage.actions("apply") == {"alpha/low": "none"}


def test_an_adopted_patch_can_be_reverted_to_the_shipped_bytes(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    shipped = stage.tree()
    by_hand(stage, edit(5, FIVE))
    stage.run("apply").expect()
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_two_patches_that_were_applied_by_hand_to_one_file_are_both_adopted(two: Stage) -> None:
    by_hand(two, edit(5, FIVE))
    by_hand(two, edit(30, THIRTY))
    assert two.actions("apply") == {"alpha/low": "adopted", "alpha/high": "adopted"}
    two.run("revert", "alpha/low").expect()
    assert two.read() == HIGH
    two.run("revert", "alpha/high").expect()
    assert two.read() == PRISTINE


@pytest.mark.parametrize(("number", "text", "done"), [(5, FIVE, "alpha/low"), (30, THIRTY, "alpha/high")])
def test_one_patch_by_hand_and_one_pending_are_adopted_and_applied(
    two: Stage, number: int, text: bytes, done: str
) -> None:
    by_hand(two, edit(number, text))
    other = "alpha/high" if done == "alpha/low" else "alpha/low"
    assert two.actions("apply") == {done: "adopted", other: "applied"}
    assert two.read() == BOTH
    two.run("revert", "--all").expect()
    assert two.read() == PRISTINE


def test_adoption_stands_in_a_dry_run_too_and_writes_nothing(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    by_hand(stage, edit(5, FIVE))
    before = stage.tree()
    assert stage.actions("apply", "--dry-run") == {"alpha/low": "adopted"}
    assert stage.tree() == before


def test_a_patch_by_hand_and_another_edit_make_the_file_foreign(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    by_hand(stage, edit(5, FIVE))
    stage.write(MOD, with_line(20, b"line_20 = 'an edit'\n", stage.read()))
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    assert said["error"]["code"] == "foreign-file"
    assert f"{MOD} was edited, or RECORD is wrong" in said["error"]["message"]
    assert said["patches"][0]["files"][0]["state"] == "foreign"
    assert stage.tree() == before


def test_a_text_put_at_another_place_by_hand_is_foreign(stage: Stage) -> None:
    inserted = b"import sys\n\n" + b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:])) + b"".join(BLOCK) * 3
    elsewhere = b"import sys\n\n" + b"".join(BLOCK) * 3 + b"".join((*BLOCK[:4], b"new = 0\n", *BLOCK[4:]))
    stage.add("alpha", patch("insert", make_diff({BLOCKS: SHIPPED[BLOCKS]}, {BLOCKS: inserted})))
    stage.write(BLOCKS, elsewhere)
    before = stage.tree()
    assert stage.json("apply", exit_code=5)["error"]["code"] == "foreign-file"
    assert stage.tree() == before


def test_a_file_created_by_hand_with_the_very_content_and_no_row_is_adopted(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {MADE: b"made = 1\n"})))
    shipped = stage.tree()
    by_hand(stage, make_diff({}, {MADE: b"made = 1\n"}))
    assert stage.actions("apply") == {"alpha/create": "adopted"}
    assert MADE in stage.record.read_text()
    stage.run("verify").expect()
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_a_file_that_is_shipped_with_the_very_content_makes_the_patch_that_creates_it_upstreamed(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {DATA: SHIPPED[DATA]})))
    before = stage.tree()
    assert stage.states("check") == {"alpha/create": "upstreamed"}
    assert stage.states("apply") == {"alpha/create": "upstreamed"}
    assert stage.tree() == before


def test_a_file_deleted_by_hand_is_adopted(stage: Stage) -> None:
    diff = make_diff({DATA: SHIPPED[DATA]}, {})
    stage.add("alpha", patch("delete", diff))
    shipped = stage.tree()
    by_hand(stage, diff)
    assert not (stage.site / DATA).exists()
    assert stage.actions("apply") == {"alpha/delete": "adopted"}
    stage.run("verify").expect()
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_a_file_renamed_by_hand_is_adopted(stage: Stage) -> None:
    diff = make_diff({MOD: PRISTINE}, {"some_dist/moved.py": LOW})
    stage.add("alpha", patch("move", diff))
    shipped = stage.tree()
    by_hand(stage, diff)
    assert stage.actions("apply") == {"alpha/move": "adopted"}
    stage.run("verify").expect()
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


def test_a_patch_of_two_files_of_which_one_was_patched_by_hand_is_applied_as_a_whole(stage: Stage) -> None:
    data = make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})
    stage.add("alpha", patch("both", edit(5, FIVE) + data))
    by_hand(stage, data)
    assert stage.actions("apply") == {"alpha/both": "applied"}
    assert (stage.read(), stage.read(DATA)) == (LOW, b"one\n2\nthree\n")
    stage.run("revert", "--all").expect()
    assert (stage.read(), stage.read(DATA)) == (PRISTINE, SHIPPED[DATA])


def test_a_lost_ledger_is_made_anew_by_adoption(two: Stage) -> None:
    two.run("apply").expect()
    before = two.tree()
    shutil.rmtree(two.site / ".patchkit")
    assert two.actions("apply") == {"alpha/low": "adopted", "alpha/high": "adopted"}
    assert two.tree() == before


# ---- foreign and missing files --------------------------------------------------------------------------------


@pytest.fixture
def edited(two: Stage) -> Stage:
    two.write(MOD, EDITED)
    return two


def test_a_foreign_file_is_refused_and_nothing_of_the_run_is_written(edited: Stage) -> None:
    edited.add("beta", patch("data", make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})))
    before = edited.tree()
    said = edited.json("apply", exit_code=5)
    assert "edited, or RECORD is wrong" in said["error"]["message"]
    assert "--accept-modified" in said["error"]["hint"] and "--discard-edits" in said["error"]["hint"]
    assert {row["action"] for row in said["patches"]} == {"none"}
    assert edited.tree() == before
    assert edited.states("check", exit_code=1) == {
        "alpha/low": "conflict",
        "alpha/high": "conflict",
        "beta/data": "pending",
    }


def test_an_edit_of_a_patched_file_is_never_overwritten_nor_reverted_silently(two: Stage) -> None:
    two.run("apply").expect()
    two.write(MOD, with_line(20, b"line_20 = 'an edit'\n", BOTH))
    before = two.tree()
    assert two.json("apply", exit_code=5)["error"]["hint"].startswith("--discard-edits puts the file back into shape")
    assert two.states() == {"alpha/low": "drifted", "alpha/high": "drifted"}
    for command in (["apply"], ["revert", "--all"], ["revert", "alpha/low"], ["apply", "alpha/low"]):
        said = two.json(*command, exit_code=5)
        assert MOD in said["error"]["message"]
        assert two.tree() == before


def test_a_missing_file_is_refused_with_the_reinstall_command(two: Stage) -> None:
    (two.site / MOD).unlink()
    before = two.tree()
    said = two.json("apply", exit_code=5)
    assert f"{MOD} is missing" in said["error"]["message"]
    assert "pip install --force-reinstall --no-deps some-dist==1.2.3" in said["error"]["hint"]
    assert said["patches"][0]["files"][0]["state"] == "missing"
    assert two.tree() == before


def test_a_patched_file_that_was_deleted_is_put_back_on_request(two: Stage) -> None:
    two.run("apply").expect()
    (two.site / MOD).unlink()
    two.run("apply").expect(5)
    two.run("apply", "--discard-edits").expect()
    assert two.read() == BOTH
    two.run("revert", "--all").expect()
    assert two.read() == PRISTINE


def test_accept_modified_takes_the_edited_file_as_the_base_and_revert_gives_it_back(edited: Stage) -> None:
    edited.run("apply", "--accept-modified").expect()
    assert edited.read() == with_line(20, b"line_20 = 'an edit'\n", BOTH)
    assert edited.states() == {"alpha/low": "applied", "alpha/high": "applied"}
    assert edited.actions("apply") == {"alpha/low": "none", "alpha/high": "none"}
    edited.run("revert", "alpha/low").expect()
    assert edited.read() == with_line(30, THIRTY, EDITED)
    edited.run("revert", "--all").expect()
    assert edited.read() == EDITED
    assert not (edited.site / ".patchkit").exists()


def test_an_accepted_base_holds_when_the_text_of_a_patch_changes(edited: Stage) -> None:
    edited.run("apply", "--accept-modified").expect()
    edited.add("alpha", patch("low", edit(5, b"line_5 = 'new'\n")), patch("high", edit(30, THIRTY)))
    edited.run("apply").expect()
    assert edited.read() == with_line(30, THIRTY, with_line(5, b"line_5 = 'new'\n", EDITED))


def test_a_reinstall_ends_the_acceptance(edited: Stage, tmp_path: Path) -> None:
    edited.run("apply", "--accept-modified").expect()
    edited.reinstall(sample_wheel(tmp_path / "wheels"))
    edited.run("apply").expect()
    assert edited.read() == BOTH
    [file] = edited.ledger()["files"]
    assert file["origin"] == "recorded"
    edited.write(MOD, EDITED)
    edited.run("apply").expect(5)


def test_an_edit_that_the_patch_does_not_fit_is_a_conflict_even_when_accepted(two: Stage) -> None:
    two.write(MOD, with_line(5, b"line_5 = 'an edit'\n"))
    before = two.tree()
    said = two.json("apply", "--accept-modified", exit_code=5)
    assert "alpha/low does not fit" in said["error"]["message"]
    assert two.tree() == before


def test_an_accepted_file_that_holds_the_text_already_is_not_taken_for_upstream(edited: Stage) -> None:
    edited.write(MOD, with_line(20, b"line_20 = 'an edit'\n", BOTH))
    before = edited.tree()
    said = edited.json("apply", "--accept-modified", exit_code=5)
    assert {row["state"] for row in said["patches"]} == {"conflict"}
    assert edited.tree() == before


def test_an_edit_on_top_of_applied_patches_never_makes_them_upstreamed(two: Stage) -> None:
    two.run("apply").expect()
    two.write(MOD, with_line(20, b"line_20 = 'an edit'\n", BOTH))
    before = two.tree()
    two.run("apply", "--accept-modified").expect(5)
    assert two.tree() == before


def test_a_missing_file_cannot_be_accepted_as_the_base_of_a_patch_that_changes_it(two: Stage) -> None:
    (two.site / MOD).unlink()
    before = two.tree()
    assert MOD in two.json("apply", "--accept-modified", exit_code=5)["error"]["message"]
    assert two.tree() == before


def kept_object(stage: Stage, data: bytes) -> Path:
    return stage.site / ".patchkit" / "objects" / hashlib.sha256(data).hexdigest()


def test_discarded_edits_are_kept_their_place_is_said_and_they_survive_the_last_revert(two: Stage) -> None:
    two.run("apply").expect()
    edit_on_top = with_line(20, b"line_20 = 'an edit'\n", BOTH)
    two.write(MOD, edit_on_top)
    said = two.json("apply", "--discard-edits")
    path = kept_object(two, edit_on_top)
    assert str(path) in next(warning["message"] for warning in said["warnings"] if warning["code"] == "kept")
    assert path.read_bytes() == edit_on_top
    assert two.read() == BOTH
    two.run("revert", "--all").expect()
    assert two.read() == PRISTINE
    assert path.read_bytes() == edit_on_top
    assert two.ledger()["kept"] == [{"path": MOD, "sha256": path.name}]


def test_revert_discards_edits_on_request(two: Stage) -> None:
    two.run("apply").expect()
    edit_on_top = with_line(20, b"line_20 = 'an edit'\n", BOTH)
    two.write(MOD, edit_on_top)
    two.run("revert", "--all", "--discard-edits").expect()
    assert two.read() == PRISTINE
    assert kept_object(two, edit_on_top).read_bytes() == edit_on_top


def test_edits_cannot_be_discarded_where_the_shipped_bytes_are_nowhere(edited: Stage) -> None:
    before = edited.tree()
    hint = edited.json("apply", exit_code=5)["error"]["hint"]
    assert "--discard-edits --wheel FILE (no shipped bytes are at hand) replaces it" in hint
    said = edited.json("apply", "--discard-edits", exit_code=5)
    assert said["error"]["code"] == "no-pristine-bytes"
    assert "--wheel" in said["error"]["hint"] and "pip install --force-reinstall" in said["error"]["hint"]
    assert edited.tree() == before


def test_the_shipped_bytes_come_from_a_wheel_that_the_user_names(edited: Stage, tmp_path: Path) -> None:
    wheel = sample_wheel(tmp_path / "wheels")
    edited.run("apply", "--discard-edits", "--wheel", wheel).expect()
    assert edited.read() == BOTH
    assert kept_object(edited, EDITED).read_bytes() == EDITED
    edited.run("revert", "--all").expect()
    assert edited.read() == PRISTINE


def test_a_wheel_of_another_version_is_refused(edited: Stage, tmp_path: Path) -> None:
    wheel = sample_wheel(tmp_path / "wheels", "1.2.4")
    before = edited.tree()
    said = edited.json("apply", "--discard-edits", "--wheel", wheel, exit_code=4)
    assert said["error"]["code"] == "wrong-wheel" and "some-dist 1.2.3" in said["error"]["message"]
    assert edited.tree() == before


def test_a_wheel_whose_bytes_record_does_not_confirm_is_of_no_use(edited: Stage, tmp_path: Path) -> None:
    wheel = sample_wheel(tmp_path / "other", files=SHIPPED | {MOD: PRISTINE + b"more\n"})
    before = edited.tree()
    said = edited.json("apply", "--discard-edits", "--wheel", wheel, exit_code=5)
    assert said["error"]["code"] == "no-pristine-bytes"
    assert edited.tree() == before


def test_a_wheel_that_cannot_be_read_is_refused(edited: Stage, tmp_path: Path) -> None:
    broken = tmp_path / "some_dist-1.2.3-py3-none-any.whl"
    broken.write_bytes(b"PK, or not")
    for wheel in (broken, tmp_path / "gone-1.2.3-py3-none-any.whl", tmp_path / "no-name.zip"):
        assert edited.json("apply", "--discard-edits", "--wheel", wheel, exit_code=4)["error"]["code"] == "wrong-wheel"


def test_a_missing_file_is_put_back_from_a_wheel(two: Stage, tmp_path: Path) -> None:
    (two.site / MOD).unlink()
    two.run("apply", "--discard-edits", "--wheel", sample_wheel(tmp_path / "wheels")).expect()
    assert two.read() == BOTH
    two.run("revert", "--all").expect()
    assert two.read() == PRISTINE


def test_somebody_elses_file_in_the_way_of_a_created_one_is_replaced_and_kept_on_request(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {MADE: b"made = 1\n"})))
    stage.write(MADE, b"somebody's\n")
    stage.run("apply", "--discard-edits").expect()
    assert stage.read(MADE) == b"made = 1\n"
    assert kept_object(stage, b"somebody's\n").read_bytes() == b"somebody's\n"


def test_a_file_in_the_way_of_a_created_one_cannot_be_its_base(stage: Stage) -> None:
    stage.add("alpha", patch("create", make_diff({}, {MADE: b"made = 1\n"})))
    stage.write(MADE, b"somebody's\n")
    before = stage.tree()
    stage.run("apply", "--accept-modified").expect(5)
    assert stage.tree() == before


# ---- what RECORD can say --------------------------------------------------------------------------------------


def spell(algorithm: str, how: str) -> str:
    value = hashlib.new(algorithm, PRISTINE)
    words = {
        "hex": value.hexdigest(),
        "base64": base64.urlsafe_b64encode(value.digest()).decode().rstrip("="),
        "padded": base64.urlsafe_b64encode(value.digest()).decode(),
        "standard": base64.b64encode(value.digest()).decode(),
    }
    return f"{algorithm}={words[how]}"


@pytest.mark.parametrize("how", ["hex", "base64", "padded", "standard"])
@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5", "sha1", "blake2b"])
def test_record_may_use_any_algorithm_in_base64_or_hex(two: Stage, algorithm: str, how: str) -> None:
    two.change_record(MOD, spell(algorithm, how))
    record = two.record.read_bytes()
    assert two.states("check") == {"alpha/low": "pending", "alpha/high": "pending"}
    assert two.json("check")["warnings"] == []
    if (algorithm, how) in (("sha256", "hex"), ("sha512", "base64"), ("md5", "padded")):
        two.run("apply").expect()
        two.run("revert", "--all").expect()
        assert (two.read(), two.record.read_bytes()) == (PRISTINE, record)


def test_a_wrong_digest_makes_a_file_foreign_and_the_message_says_that_record_may_be_wrong(two: Stage) -> None:
    two.change_record(MOD, "sha256=" + "A" * 43)
    before = two.tree()
    assert "was edited, or RECORD is wrong" in two.json("apply", exit_code=5)["error"]["message"]
    assert two.tree() == before


def test_a_file_without_a_digest_counts_as_shipped_at_first_contact_and_that_is_said(two: Stage) -> None:
    two.change_record(MOD, "")
    two.write(MOD, EDITED)
    said = two.json("apply")
    [warning] = [warning for warning in said["warnings"] if warning["code"] == "unrecorded"]
    assert MOD in warning["message"] and "first contact" in warning["message"]
    [file] = two.ledger()["files"]
    assert file["origin"] == "unrecorded"
    two.run("verify").expect()
    two.run("revert", "alpha/low").expect()
    assert two.read() == with_line(30, THIRTY, EDITED)
    two.run("revert", "--all").expect()
    assert two.read() == EDITED


def test_an_edit_of_an_unrecorded_file_is_foreign_once_it_is_patched(two: Stage) -> None:
    two.change_record(MOD, "")
    two.run("apply").expect()
    two.write(MOD, with_line(20, b"line_20 = 'an edit'\n", BOTH))
    before = two.tree()
    assert two.json("apply", exit_code=5)["error"]["code"] == "foreign-file"
    assert two.tree() == before
    two.write(MOD, PRISTINE)
    assert two.actions("apply") == {"alpha/low": "applied", "alpha/high": "applied"}


def test_a_patch_by_hand_on_an_unrecorded_file_is_taken_for_shipped_and_not_adopted(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.change_record(MOD, "")
    by_hand(stage, edit(5, FIVE))
    before = stage.tree()
    said = stage.json("apply")
    assert [(row["state"], row["action"]) for row in said["patches"]] == [("upstreamed", "none")]
    assert "unrecorded" in [warning["code"] for warning in said["warnings"]]
    assert stage.tree() == before


@pytest.mark.parametrize("field", ["sha257=abc", "sha256=short", "nonsense", "shake_128=00"])
def test_a_digest_that_nobody_can_read_counts_as_none(two: Stage, field: str) -> None:
    two.change_record(MOD, field)
    assert "unrecorded" in [warning["code"] for warning in two.json("check")["warnings"]]


def test_a_file_that_record_does_not_list_is_not_patched(two: Stage) -> None:
    two.record.write_text("".join(f"{row}\n" for row in two.record.read_text().splitlines() if not row.startswith(MOD)))
    before = two.tree()
    said = two.json("apply", exit_code=3)
    assert said["error"]["code"] == "not-owned" and MOD in said["error"]["message"]
    assert two.tree() == before


def test_a_distribution_without_record_is_refused(two: Stage) -> None:
    two.record.unlink()
    said = two.json("apply", exit_code=4)
    assert said["error"]["code"] == "no-record" and "pip or uv" in said["error"]["hint"]


# ---- any sequence of edits, reinstalls and commands ---------------------------------------------------------------

COMMANDS = (["apply"], ["apply"], ["apply", "X"], ["apply", "--exact"], ["revert", "X"], ["revert", "--all"])
ANSWERS = (["status"], ["verify"], ["check"])
WAYS: tuple[list[str], ...] = ([], [], ["--accept-modified"], ["--discard-edits"], ["--dry-run"])


def make_diffs() -> dict[str, bytes]:
    """Patches that lie on each other, on lines of their own, that create a file, that change a mode."""
    lower, made = with_line(20, b"line_20 = 'lower'\n"), b"made = 1\nmade = 2\nmade = 3\n"
    return {
        "lower": edit(20, b"line_20 = 'lower'\n"),
        "upper": edit(20, b"line_20 = 'upper'\n", lower),
        "low": edit(5, FIVE),
        "made": make_diff({}, {MADE: made}),
        "more": make_diff({MADE: made}, {MADE: with_line(2, b"made = 'two'\n", made)}),
        "mode": f"diff --git a/{TOOL} b/{TOOL}\nold mode 100644\nnew mode 100755\n".encode(),
    }


def disturb(stage: Stage, random: Random, diffs: list[bytes], wheels: list[Path]) -> None:
    """One thing that happens to an environment without patchkit."""
    path = stage.site / random.choice((MOD, DATA, MADE, TOOL))
    match random.choice(("edit", "edit", "remove", "reinstall", "by hand")):
        case "edit" if path.exists():
            path.write_bytes(path.read_bytes() + b"edit_%d = 1\n" % random.randrange(1000))
        case "remove":
            path.unlink(missing_ok=True)
        case "reinstall":
            stage.reinstall(random.choice(wheels))
        case "by hand":
            options = ("--no-backup-if-mismatch", "-N", "-r", "-", "-f", "-s")
            worlds.run("patch", "-p1", *options, cwd=stage.site, input=random.choice(diffs))
            for left_over in stage.site.rglob("*.orig"):
                left_over.unlink()
        case _:
            pass


def edits(stage: Stage) -> dict[str, bytes]:
    """The files that hold somebody's edit."""
    files = {path: stage.site / path for path in (MOD, DATA, MADE, TOOL)}
    found = {path: file.read_bytes() for path, file in files.items() if file.exists()}
    return {path: data for path, data in found.items() if b"edit_" in data}


def assert_no_edit_is_lost(stage: Stage, before: dict[str, bytes]) -> None:
    now = edits(stage)
    for path, data in before.items():
        marks = {line for line in data.splitlines() if line.startswith(b"edit_")}
        in_place = marks <= set(now.get(path, b"").splitlines())
        assert in_place or kept_object(stage, data).read_bytes() == data


@pytest.mark.parametrize("seed", range(4))
def test_no_sequence_of_edits_and_commands_loses_an_edit_or_changes_anything_in_vain(
    stage: Stage, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    diffs = make_diffs()
    stage.add("alpha", *(patch(name, diff, default=name != "low") for name, diff in diffs.items()))
    newer = SHIPPED | {MOD: b"# newer\n" + PRISTINE, MADE: b"made = 1\nmade = 2\nmade = 3\n"}
    wheels = [sample_wheel(tmp_path / "wheels"), sample_wheel(tmp_path / "wheels", "1.3", newer)]
    for _ in range(30):
        if random.random() < 0.5:
            disturb(stage, random, [*diffs.values()], wheels)
        writes = random.random() < 0.7
        words = [*random.choice(COMMANDS if writes else ANSWERS)]
        ways = [way for way in WAYS if words[0] != "revert" or way != ["--accept-modified"]]
        words += random.choice(ways) if writes else []
        words = [f"alpha/{random.choice([*diffs])}" if word == "X" else word for word in words]
        before, edited = stage.tree(), edits(stage)
        said = stage.run(*words, "--json")
        assert said.exit_code in (0, 1, 4, 5), said
        if said.exit_code or not writes or "--dry-run" in words:
            assert stage.tree() == before, words
            continue
        assert_no_edit_is_lost(stage, edited)
        after = stage.tree()
        again = stage.json(*(word for word in words if word not in ("--accept-modified", "--discard-edits")))
        assert {row["action"] for row in again["patches"]} <= {"none"}, words
        assert stage.tree() == after, words


# ---- other patches on the files of what is named --------------------------------------------------------------


@pytest.mark.parametrize(("named", "other"), [("alpha/low", "alpha/high"), ("alpha/high", "alpha/low")])
def test_discarding_an_edit_for_one_patch_keeps_the_other_in_the_file(two: Stage, named: str, other: str) -> None:
    two.run("apply").expect()
    two.write(MOD, BOTH + b"# an edit\n")
    two.run("apply", named, "--discard-edits").expect()
    assert two.read() == BOTH
    assert two.states() == {named: "applied", other: "applied"}
    two.run("verify").expect()


def test_discarding_an_edit_to_revert_one_patch_keeps_the_other_in_the_file(two: Stage) -> None:
    two.run("apply").expect()
    two.write(MOD, BOTH + b"# an edit\n")
    two.run("revert", "alpha/low", "--discard-edits").expect()
    assert two.read() == HIGH
    assert two.states()["alpha/high"] == "applied"


def test_applying_one_patch_after_a_reinstall_brings_back_the_others_on_its_file(two: Stage) -> None:
    two.run("apply").expect()
    two.reinstall(sample_wheel(two.folder / "again"))
    two.run("apply", "alpha/high").expect()
    assert two.read() == BOTH
    assert set(two.states().values()) == {"applied"}


def test_reverting_one_patch_after_a_reinstall_writes_no_other(two: Stage) -> None:
    two.run("apply").expect()
    two.reinstall(sample_wheel(two.folder / "again"))
    two.run("revert", "alpha/high").expect()
    assert two.read() == PRISTINE
    assert two.states() == {"alpha/low": "drifted", "alpha/high": "pending"}


def test_a_patch_upon_another_comes_back_after_a_reinstall_by_its_name(stage: Stage) -> None:
    again = edit(5, b"line_5 = 'again'\n", LOW)
    stage.add("alpha", patch("low", edit(5, FIVE)), patch("top", again, after=["alpha/low"]))
    stage.run("apply").expect()
    written = stage.read()
    stage.reinstall(sample_wheel(stage.folder / "again"))
    stage.run("apply", "alpha/top").expect()
    assert stage.read() == written
