"""What patchkit remembers: ledger.json and the object store, read by every later run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.applied import Applied, BaseOrigin, Kept, Ledger, LedgerFile, LedgerRecord, Reason
from patchkit.errors import DamagedState, NewerFormat
from patchkit.installed import Stamp
from patchkit.ledger import read_ledger, write_ledger
from patchkit.model import DiffText
from patchkit.patchset import PatchId, Provenance, PythonCheck, SymbolCheck
from stages import DATA, LINES, MOD, SHIPPED, Stage, edit, make_diff, make_stage, patch, sample_wheel, with_line

PRISTINE = b"".join(LINES)
FIVE, THIRTY = b"line_5 = 'five'\n", b"line_30 = 'thirty'\n"
BOTH = with_line(30, THIRTY, with_line(5, FIVE))
MADE = "some_dist/deep/made.py"


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


def fill(stage: Stage) -> None:
    """Three patches: two on one file, one that creates a file, with checks and provenance."""
    checks = [
        {"kind": "symbol", "module": "some_dist.mod", "has": ["'five'"]},
        {"kind": "python", "file": "checks/c.py", "needs": ["absent"]},
    ]
    low = patch("low", edit(5, FIVE), check=checks, origin="upstream", summary="näme")
    stage.add(
        "alpha",
        low,
        patch("high", edit(30, THIRTY), after=["low"]),
        patch("made", make_diff({}, {MADE: b"made = 1\n"})),
        checks={"checks/c.py": b"raise SystemExit(1)\n"},
    )


@pytest.fixture
def applied(stage: Stage) -> Stage:
    fill(stage)
    stage.run("apply").expect()
    return stage


def objects(stage: Stage) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (stage.site / ".patchkit" / "objects").iterdir()}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---- its bytes ------------------------------------------------------------------------------------------------


def test_two_environments_with_the_same_patches_have_the_same_state_byte_for_byte(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    states = []
    for number, order in enumerate([["alpha"], ["alpha/made", "alpha/high", "alpha/low"]]):
        (tmp_path / str(number)).mkdir()
        stage = make_stage(tmp_path / str(number), make_site, capsys.readouterr)
        fill(stage)
        if number:
            os.utime(stage.site / MOD, (1, 1))
        for operand in order:
            stage.run("apply", operand).expect()
        stage.run("apply").expect()
        folder = stage.site / ".patchkit"
        states.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    reasons = [json.loads(state[Path("ledger.json")]) for state in states]
    for document in reasons:
        document.pop("settled")  # a sum over all of the ledger, the reasons too
        for row in document["applied"]:
            row.pop("reason")  # declared in one, named in the other: that is the one thing that differs
    assert reasons[0] == reasons[1]
    assert {path: data for path, data in states[0].items() if path.name != "ledger.json"} == {
        path: data for path, data in states[1].items() if path.name != "ledger.json"
    }


def test_the_same_commands_give_the_same_ledger_byte_for_byte(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    ledgers = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        stage = make_stage(tmp_path / name, make_site, capsys.readouterr)
        fill(stage)
        stage.run("apply").expect()
        ledgers.append(stage.ledger_file.read_bytes())
    assert ledgers[0] == ledgers[1]


def test_the_ledger_holds_no_time_no_inode_and_no_path_of_this_machine(applied: Stage) -> None:
    text = applied.ledger_file.read_text("ascii")
    assert not re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d|\b1[6-9]\d{8}\b|mtime|inode", text)
    assert str(applied.folder) not in text
    assert json.loads(text)["format"] == 1
    assert write_ledger(read_ledger(text.encode(), file="ledger.json")).decode() == text
    json.loads(text, object_pairs_hook=_require_order)


def _require_order(pairs: list[tuple[str, object]]) -> dict[str, object]:
    assert [key for key, _ in pairs] == sorted(key for key, _ in pairs)
    return dict(pairs)


def test_the_object_store_holds_the_shipped_bytes_the_diffs_and_the_scripts_and_nothing_else(applied: Stage) -> None:
    folder = applied.patches / "alpha"
    files = [folder / name for name in ("low.patch", "high.patch", "made.patch", "checks/c.py")]
    expected = [PRISTINE, *(file.read_bytes() for file in files)]
    assert objects(applied) == {digest(data): data for data in expected}
    applied.run("revert", "alpha/low").expect()
    assert set(objects(applied)) == {digest(data) for data in (PRISTINE, files[1].read_bytes(), files[2].read_bytes())}


def test_the_state_folder_is_gone_after_the_last_revert(applied: Stage) -> None:
    applied.run("revert", "alpha").expect()
    assert not (applied.site / ".patchkit").exists()


def test_the_state_is_enough_to_verify_and_to_revert_in_another_place(applied: Stage, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(applied.site, moved, symlinks=True)
    shutil.rmtree(applied.site)
    shutil.rmtree(applied.patches)
    there = Stage(applied.folder, moved, applied.patches, applied.install_site, applied.capture)
    there.run("verify").expect()
    assert set(there.states().values()) == {"applied"}
    there.run("revert", "--all").expect()
    assert there.read() == PRISTINE and not (moved / "some_dist" / "deep").exists()


# ---- a ledger that cannot be trusted -----------------------------------------------------------------------------

COMMANDS = (["apply"], ["revert", "--all"], ["verify"], ["status"], ["check"], ["recover"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_ledger_of_a_newer_format_is_exit_4_and_never_rewritten(applied: Stage, command: list[str]) -> None:
    document = applied.ledger()
    document["format"] = 2
    applied.ledger_file.write_text(json.dumps(document))
    before = applied.tree()
    error = applied.json(*command, exit_code=4)["error"]
    assert error["code"] == "newer-format" and str(applied.ledger_file) in error["message"]
    assert "newer" in error["hint"]
    assert applied.tree() == before


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_damaged_ledger_is_exit_8_and_never_rewritten(applied: Stage, command: list[str]) -> None:
    applied.ledger_file.write_bytes(applied.ledger_file.read_bytes()[:-40])
    before = applied.tree()
    error = applied.json(*command, exit_code=8)["error"]
    assert error["code"] == "damaged-state" and str(applied.ledger_file) in error["message"]
    assert "reinstall" in error["hint"]
    assert applied.tree() == before


@pytest.mark.parametrize(
    "damage",
    [
        {"format": 0},
        {"format": "1"},
        {"format": None},
        {"format": True},
        {"applied": {}},
        {"applied": [1]},
        {"files": None},
        {"files": [{"path": "a"}]},
        {"directories": ["../out"]},
        {"directories": ["/abs"]},
        {"kept": [{"path": "a", "sha256": "short"}]},
        {"records": "x"},
    ],
    ids=json.dumps,
)
def test_a_ledger_that_says_what_no_patchkit_writes_is_damaged(applied: Stage, damage: dict[str, Any]) -> None:
    applied.ledger_file.write_text(json.dumps(applied.ledger() | damage))
    before = applied.tree()
    assert applied.json("revert", "--all", exit_code=8)["error"]["code"] == "damaged-state"
    assert applied.tree() == before


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a//b", "./a", "a/../b", "", "a\\b", "a\0b", "a\ud800"])
def test_a_path_in_the_ledger_that_leads_out_of_the_site_root_is_damage(applied: Stage, path: str) -> None:
    document = applied.ledger()
    document["files"][0]["path"] = path
    applied.ledger_file.write_text(json.dumps(document))
    before = applied.tree()
    assert applied.json("revert", "--all", exit_code=8)["error"]["code"] == "damaged-state"
    assert applied.tree() == before


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"null", b"[]", b"1", b'"x"', b"{}", b"[" * 100_000, b'{"format": 1}']
)
def test_bytes_that_are_no_ledger_are_damage_and_no_traceback(data: bytes) -> None:
    with pytest.raises(DamagedState, match="ledger.json is damaged"):
        read_ledger(data, file="ledger.json")


def test_a_newer_format_is_told_from_damage_even_where_nothing_else_is_known() -> None:
    with pytest.raises(NewerFormat, match="has format 7; this patchkit knows 1"):
        read_ledger(b'{"format": 7, "anything": "else"}', file="ledger.json")


# ---- objects that are missing or damaged --------------------------------------------------------------------------


def object_of(stage: Stage, data: bytes) -> Path:
    return stage.site / ".patchkit" / "objects" / digest(data)


def test_without_the_shipped_bytes_a_revert_is_exit_5_and_names_the_ways_out(applied: Stage, tmp_path: Path) -> None:
    object_of(applied, PRISTINE).unlink()
    before = applied.tree()
    for command in (["revert", "--all"], ["revert", "alpha/low"]):
        error = applied.json(*command, exit_code=5)["error"]
        assert error["code"] == "no-pristine-bytes" and MOD in error["message"]
        assert "--wheel" in error["hint"] and "pip install --force-reinstall" in error["hint"]
        assert applied.tree() == before
    applied.run("verify").expect()
    applied.run("revert", "--all", "--wheel", sample_wheel(tmp_path / "wheels")).expect()
    assert applied.read() == PRISTINE


def test_a_patch_that_is_in_place_is_applied_though_the_shipped_bytes_are_gone(applied: Stage) -> None:
    object_of(applied, PRISTINE).unlink()
    applied.add("beta", patch("data", make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})))
    assert applied.states() == {
        "alpha/high": "applied",
        "alpha/low": "applied",
        "alpha/made": "applied",
        "beta/data": "pending",
    }
    applied.run("apply", "beta").expect()
    applied.run("verify").expect()


def test_a_patch_on_another_file_can_be_reverted_without_them(applied: Stage) -> None:
    object_of(applied, PRISTINE).unlink()
    applied.run("revert", "alpha/made").expect()
    assert not (applied.site / MADE).exists()


def test_a_damaged_object_is_exit_8_and_is_never_written_into_a_file(applied: Stage, tmp_path: Path) -> None:
    object_of(applied, PRISTINE).write_bytes(b"damaged\n")
    before = applied.tree()
    error = applied.json("revert", "--all", exit_code=8)["error"]
    assert error["code"] == "damaged-state" and digest(PRISTINE) in error["message"]
    assert applied.tree() == before
    object_of(applied, PRISTINE).unlink()
    applied.run("revert", "--all", "--wheel", sample_wheel(tmp_path / "wheels")).expect()
    assert applied.read() == PRISTINE


def test_a_missing_diff_is_exit_8_where_it_is_needed_and_the_patch_folder_brings_it_back(applied: Stage) -> None:
    diff = (applied.patches / "alpha" / "high.patch").read_bytes()
    object_of(applied, diff).unlink()
    before = applied.tree()
    error = applied.json("revert", "alpha/low", exit_code=8)["error"]
    assert error["code"] == "damaged-state" and "alpha/high" in error["message"]
    assert applied.tree() == before
    applied.run("revert", "--all").expect()
    assert applied.read() == PRISTINE


def add_asking(stage: Stage, ran: Path) -> Path:
    """A patch with a check that leaves a file where it runs; the script's object is returned."""
    script = f"open({str(ran)!r}, 'a').write('x')\n".encode()
    check = {"kind": "python", "file": "c.py"}
    stage.add("alpha", patch("low", edit(5, FIVE), check=[check]), checks={"c.py": script})
    stage.run("apply", "--python", sys.executable).expect()
    return object_of(stage, script)


def test_a_damaged_script_is_never_run(stage: Stage, tmp_path: Path) -> None:
    add_asking(stage, tmp_path / "ran").write_text(f"open({str(tmp_path / 'other')!r}, 'w')\n")
    error = stage.json("verify", "--python", sys.executable, exit_code=8)["error"]
    assert error["code"] == "damaged-state"
    assert not (tmp_path / "other").exists()
    assert (tmp_path / "ran").read_text() == "x"
    stage.run("revert", "--all").expect()
    assert stage.read() == PRISTINE


def test_a_missing_script_is_damage_and_not_a_failed_check(stage: Stage, tmp_path: Path) -> None:
    add_asking(stage, tmp_path / "ran").unlink()
    error = stage.json("verify", "--python", sys.executable, exit_code=8)["error"]
    assert error["code"] == "damaged-state" and "alpha/low" in error["message"]
    stage.run("verify", "--no-checks").expect()
    stage.run("revert", "--all").expect()
    assert stage.read() == PRISTINE


# ---- what it remembers ----------------------------------------------------------------------------------------


def test_the_ledger_remembers_what_a_patch_is_and_why_it_is_there(applied: Stage) -> None:
    applied.run("revert", "alpha/high").expect()
    applied.run("apply", "alpha/high").expect()
    low, high, made = applied.ledger()["applied"]
    assert (low["patch"], low["summary"], low["provenance"]["origin"]) == ("alpha/low", "näme", "upstream")
    assert (low["reason"], high["reason"], made["reason"]) == ("declared", "declared", "declared")
    assert (low["version"], low["versions"], low["variant"]) == ("1.2.3", ">=1.0", "low.patch")
    assert [check["kind"] for check in low["checks"]] == ["symbol", "python"]
    assert high["after"] == ["alpha/low"] and made["paths"] == [MADE]
    assert applied.ledger()["directories"] == ["some_dist/deep"]
    by_path = {file["path"]: file for file in applied.ledger()["files"]}
    assert by_path[MADE]["base"] is None and by_path[MOD]["base"]["sha256"] == digest(PRISTINE)
    assert by_path[MOD]["patches"] == ["alpha/low", "alpha/high"]
    assert by_path[MOD]["written"]["sha256"] == digest(BOTH)


def test_a_reinstall_of_the_same_version_is_seen_and_healed(applied: Stage, tmp_path: Path) -> None:
    before = applied.tree()
    applied.reinstall(sample_wheel(tmp_path / "wheels"))
    assert set(applied.states().values()) == {"drifted"}
    applied.run("verify").expect(1)
    applied.run("apply").expect()
    assert applied.tree() == before


def test_a_revert_after_a_reinstall_leaves_what_was_installed(applied: Stage, tmp_path: Path) -> None:
    applied.reinstall(sample_wheel(tmp_path / "wheels"))
    shipped = {path: entry for path, entry in applied.tree().items() if not path.startswith(".patchkit")}
    applied.run("revert", "--all").expect()
    assert applied.tree() == shipped


def test_a_revert_after_an_uninstall_leaves_nothing(applied: Stage) -> None:
    shutil.rmtree(applied.site / "some_dist")
    shutil.rmtree(applied.record.parent)
    applied.run("verify").expect(1)
    applied.run("revert", "--all").expect()
    assert applied.tree() == {}


def test_a_summary_that_changed_in_the_manifest_rewrites_the_ledger_alone(applied: Stage) -> None:
    before = {path: entry for path, entry in applied.tree().items() if path != ".patchkit/ledger.json"}
    fill(applied)
    manifest = applied.patches / "alpha" / "patchset.toml"
    manifest.write_text(manifest.read_text("utf-8").replace("n\\u00e4me", "name"), "utf-8")
    assert applied.actions("apply") == {"alpha/high": "none", "alpha/low": "none", "alpha/made": "none"}
    assert applied.ledger()["applied"][0]["summary"] == "name"
    assert {path: entry for path, entry in applied.tree().items() if path != ".patchkit/ledger.json"} == before


def test_nothing_to_do_is_said_only_where_nothing_was_written(applied: Stage) -> None:
    assert "nothing to do" in applied.run("apply").expect().out
    manifest = applied.patches / "alpha" / "patchset.toml"
    manifest.write_text(manifest.read_text("utf-8").replace("n\\u00e4me", "name"), "utf-8")
    assert "nothing to do" not in applied.run("apply").expect().out
    assert "nothing to do" in applied.run("apply").expect().out


def test_a_kept_edit_stays_in_the_store_while_other_patches_come_and_go(applied: Stage) -> None:
    applied.write(MOD, b"an edit\n")
    applied.run("apply", "--discard-edits").expect()
    applied.add("beta", patch("data", make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})))
    applied.run("apply", "beta").expect()
    applied.run("revert", "--all").expect()
    assert objects(applied) == {digest(b"an edit\n"): b"an edit\n"}
    applied.run("apply", "beta").expect()
    assert object_of(applied, b"an edit\n").exists()


# ---- the codec ------------------------------------------------------------------------------------------------

words = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.text("abcxyz019.-_", min_size=1, max_size=6).map(lambda name: f"n{name}")
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
shas = st.binary(max_size=4).map(digest)
ids = st.builds(PatchId, names, names)
stamps = st.builds(Stamp, shas, st.integers(0, 0o7777))


def several(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


def by_path(rows: list[Any]) -> tuple[Any, ...]:
    return tuple(sorted({row.path: row for row in rows}.values(), key=lambda row: row.path))


symbol_checks = st.builds(SymbolCheck, words, words, words, several(words), several(words), several(words), words)
python_checks = st.builds(PythonCheck, paths, several(names), st.floats(0.5, 3600), words, shas)
applied_patches = st.builds(
    Applied,
    id=ids,
    distribution=names,
    version=words,
    variant=words,
    versions=words,
    text=st.builds(DiffText, shas, st.integers(0, 9), words, several(words), several(words)),
    place=st.integers(0, 99),
    after=several(ids),
    group=words,
    reason=st.sampled_from(Reason),
    summary=words,
    provenance=st.builds(Provenance, words, words, words, words, words),
    shadowed_by=several(names),
    checks=several(st.one_of(symbol_checks, python_checks)),
    paths=several(paths),
)
files = st.builds(
    LedgerFile, paths, names, st.none() | stamps, st.sampled_from(BaseOrigin), words, several(ids), st.none() | stamps
)
ledgers = st.builds(
    Ledger,
    applied=several(applied_patches),
    files=st.lists(files, max_size=3).map(by_path),
    records=st.lists(st.builds(LedgerRecord, names, paths, stamps, stamps, several(words)), max_size=2).map(by_path),
    directories=st.sets(paths, max_size=3).map(lambda found: tuple(sorted(found))),
    kept=several(st.builds(Kept, paths, shas)),
)


@given(ledgers)
def test_a_ledger_is_read_back_as_it_was_written(ledger: Ledger) -> None:
    data = write_ledger(ledger)
    assert read_ledger(data, file="ledger.json") == ledger
    assert write_ledger(read_ledger(data, file="ledger.json")) == data


@given(ledgers, st.data())
def test_a_ledger_that_lost_bytes_is_damage_and_no_other_error(ledger: Ledger, data: st.DataObject) -> None:
    whole = write_ledger(ledger)
    cut = data.draw(st.integers(0, len(whole) - 3))
    with pytest.raises(DamagedState):
        read_ledger(whole[:cut], file="ledger.json")
