"""The JSON document: the same keys, types and words for every command and every ending, and nothing beside it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import patchkit.patch_commands
from patchkit.cli import NAMES, main
from rivals import add_slow_check, held, interrupt, wait_for, words_of
from stages import MOD, Stage, edit, make_diff, make_stage, patch, sample_wheel
from worlds import clean_environment

FIVE = edit(5, b"line_5 = 'five'\n")
FAILING = {"no.py": b"print('this goes nowhere')\nraise SystemExit('it does not hold')\n"}

# ---- the contract ---------------------------------------------------------------------------------------------
#
# A type stands for itself, a set for its members, a list for any number of its one element, a tuple for any of its
# members, a dictionary for exactly these keys.

NULL = type(None)
TEXT, PERHAPS = str, (str, NULL)

HUNK = {
    "number": int,
    "line": int,
    "offset": int,
    "result": {"fits", "conflict", "upstream"},
    "reason": PERHAPS,
    "expected": [TEXT],
    "found": [TEXT],
    "nearest": (int, NULL),
}
FILE = {
    "path": TEXT,
    "state": ({"pristine", "patched", "foreign", "missing"}, NULL),
    "message": PERHAPS,
    "hunks": [HUNK],
}
CHECK = {"kind": {"python", "symbol"}, "name": TEXT, "result": {"passed", "failed", "skipped"}, "message": PERHAPS}
STATES = {
    "applied",
    "pending",
    "outdated",
    "drifted",
    "conflict",
    "upstreamed",
    "not-needed",
    "no-variant",
    "not-installed",
    "not-applicable",
}
PATCH = {
    "set": TEXT,
    "patch": TEXT,
    "distribution": TEXT,
    "installed": PERHAPS,
    "variant": PERHAPS,
    "state": STATES,
    "action": {"applied", "updated", "adopted", "reverted", "none"},
    "message": PERHAPS,
    "files": [FILE],
    "checks": [CHECK],
    "next": PERHAPS,
}
PROBLEM = {"code": TEXT, "message": TEXT, "hint": PERHAPS}
DOCUMENT = {
    "schema": {1},
    "command": (set(NAMES), NULL),
    "ok": bool,
    "exit_code": {0, 1, 2, 3, 4, 5, 6, 7, 8, 70, 130},
    "dry_run": bool,
    "environment": {"site_root": PERHAPS, "python": PERHAPS},
    "patches": [PATCH],
    "skipped_checks": int,
    "warnings": [{"code": TEXT, "message": TEXT}],
}
VERSIONED = {"version": PERHAPS, "sha256": PERHAPS}
TRACE = {
    "number": int,
    "line": int,
    "result": {"there", "gone"},
    "expected": [TEXT],
    "found": [TEXT],
    "nearest": (int, NULL),
}
DRIFT = {
    "set": PERHAPS,
    "patch": PERHAPS,
    "distribution": PERHAPS,
    "cause": {
        "reinstalled",
        "upgraded",
        "downgraded",
        "uninstalled",
        "edited",
        "patch-changed",
        "patch-removed",
        "not-applied",
        "interrupted",
    },
    "path": PERHAPS,
    "detail": TEXT,
    "remedy": PERHAPS,
    "state": (STATES, NULL),
    "recorded": VERSIONED,
    "found": VERSIONED,
    "hunks": [TRACE],
}
DRIFTED = {"drift": [DRIFT]}
PREVIEW = {"changes": [TEXT], "diff": PERHAPS}  # with --dry-run or --diff
ONE_ERROR = {"error": PROBLEM}
ERRORS = {"error": {**PROBLEM, "all": [PROBLEM]}}
COUNTS = ("declared", "applicable", "applied", "upstreamed", "not_needed", "skipped", "reverted")
BUILD = {"counts": dict.fromkeys(COUNTS, int), "verified": (bool, NULL), "required": [TEXT]}
DESCRIBED = {
    "patch": TEXT,
    "summary": PERHAPS,
    "default": bool,
    "group": PERHAPS,
    "after": [TEXT],
    "constraints": [TEXT],
    "markers": [TEXT],
    "shadowed_by": [TEXT],
    "origin": PERHAPS,
    "bug": PERHAPS,
    "forwarded": PERHAPS,
    "applied_upstream": PERHAPS,
    "last_update": PERHAPS,
    "variants": [{"versions": TEXT, "file": TEXT}],
    "not_needed": [{"versions": TEXT, "why": TEXT}],
    "checks": [{"kind": {"python", "symbol"}, "name": TEXT, "versions": PERHAPS}],
}
HEAD = {"schema": {1}, "ok": bool, "exit_code": {0}, "warnings": [{"code": TEXT, "message": TEXT}]}
SET = {"set": TEXT, "distribution": TEXT, "summary": PERHAPS, "folder": TEXT, "patches": [DESCRIBED]}
LISTING = {**HEAD, "command": {"list"}, "folders": [TEXT], "sets": [SET]}
SHOWING = {
    **HEAD,
    "command": {"show"},
    "set": TEXT,
    "distribution": TEXT,
    **DESCRIBED,
    "diffs": [{"file": TEXT, "text": TEXT}],
}
SNIPPET = {
    **HEAD,
    "command": {"snippet"},
    "kind": {"containerfile", "healthcheck"},
    "text": TEXT,
    "python": TEXT,
    "required": [TEXT],
    "sources": [TEXT],
}


def conform(value: Any, shape: Any, at: str = "$") -> None:
    """Assert that ``value`` has the shape, and say where it has not."""
    match shape:
        case type():
            assert type(value) is shape, f"{at}: {value!r} is no {shape.__name__}"
        case set():
            assert value in shape and type(value) in {type(word) for word in shape}, f"{at}: {value!r}"
        case tuple():
            kinds = [kind for kind in shape if fits(value, kind)]
            assert kinds, f"{at}: {value!r}"
        case list():
            assert type(value) is list, f"{at}: {value!r} is no list"
            for number, item in enumerate(value):
                conform(item, shape[0], f"{at}[{number}]")
        case dict():
            assert type(value) is dict and value.keys() == shape.keys(), f"{at}: {sorted(value)} not {sorted(shape)}"
            for key, kind in shape.items():
                conform(value[key], kind, f"{at}.{key}")


def fits(value: Any, shape: Any) -> bool:
    try:
        conform(value, shape)
    except AssertionError:
        return False
    return True


def take(stage: Stage, code: int, *args: str, also: dict[str, Any] | None = None, shape: Any = DOCUMENT) -> Any:
    """The document of the command, whose exit code must be ``code``; nothing else may be printed."""
    said = stage.run(*args, "--json").expect(code)
    return read(said.out, said.err, code, {**shape, **(also or {})}, args[0])


def read(out: str, err: str, code: int, shape: Any, command: str | None) -> Any:
    document = json.loads(out)  # one document, and nothing around it
    assert err == ""
    conform(document, shape)
    assert document["exit_code"] == code
    assert document["ok"] is (code == 0)
    assert document["command"] == command
    assert ("error" in document) is (code > 1)
    assert document.get("error", {"message": "-"})["message"]
    return document


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", FIVE))
    return stage


# ---- what commands say ----------------------------------------------------------------------------------------


def test_check_says_what_would_be(stage: Stage) -> None:
    document = take(stage, 0, "check")
    [row] = document["patches"]
    assert document["environment"] == {"site_root": str(stage.site), "python": None}
    assert (row["set"], row["patch"], row["distribution"], row["installed"]) == ("fix", "one", "some-dist", "1.2.3")
    assert (row["variant"], row["state"], row["message"]) == ("one.patch", "pending", None)
    [file] = row["files"]
    assert (file["path"], file["state"], file["message"]) == (MOD, "pristine", None)
    [hunk] = file["hunks"]
    assert hunk == {
        "number": 1,
        "line": 2,
        "offset": 0,
        "result": "fits",
        "reason": None,
        "expected": [],
        "found": [],
        "nearest": None,
    }


def test_check_says_where_a_hunk_does_not_fit(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE.replace(b"-line_5 = 5", b"-line_5 = 6")))
    document = take(stage, 1, "check")
    [row] = document["patches"]
    [file] = row["files"]
    [hunk] = file["hunks"]
    assert row["state"] == "conflict" and MOD in row["message"]
    assert hunk["result"] == "conflict" and hunk["reason"]
    assert hunk["nearest"] == 2
    assert hunk["expected"][3] == "line_5 = 6" and hunk["found"][3] == "line_5 = 5"


def test_an_offset_is_told(stage: Stage) -> None:
    shifted = FIVE.replace(b"@@ -2,7 +2,7 @@", b"@@ -3,7 +3,7 @@")
    assert shifted != FIVE
    stage.add("fix", patch("one", shifted))
    [row] = take(stage, 0, "check")["patches"]
    [hunk] = row["files"][0]["hunks"]
    assert (hunk["line"], hunk["offset"], hunk["result"]) == (2, -1, "fits")


def test_the_life_of_a_patch_in_documents(stage: Stage) -> None:
    [row] = take(stage, 0, "apply", "--dry-run", also=PREVIEW)["patches"]
    assert (row["state"], row["action"]) == ("pending", "applied")
    [row] = take(stage, 0, "apply")["patches"]
    assert (row["state"], row["action"], row["files"][0]["state"]) == ("applied", "applied", "patched")
    [row] = take(stage, 0, "apply")["patches"]
    assert (row["state"], row["action"]) == ("applied", "none")
    [row] = take(stage, 0, "verify")["patches"]
    assert (row["state"], row["action"], row["files"][0]["state"]) == ("applied", "none", "patched")
    [row] = take(stage, 0, "status")["patches"]
    assert row["state"] == "applied"
    assert take(stage, 0, "recover")["patches"] == []
    stage.add("fix", patch("one", edit(5, b"line_5 = 'other'\n")))
    [row] = take(stage, 0, "status")["patches"]
    assert row["state"] == "outdated" and row["next"].startswith("patchkit apply fix/one --site-packages ")
    [row] = take(stage, 0, "apply")["patches"]
    assert row["action"] == "updated"
    [row] = take(stage, 0, "revert", "fix")["patches"]
    assert (row["state"], row["action"], row["files"][0]["state"]) == ("pending", "reverted", "pristine")


def test_an_image_build_counts_and_verifies_in_its_document(stage: Stage) -> None:
    stage.add("absent", patch("p", FIVE), distribution="not-there")
    document = take(stage, 0, "post-install", "--require", "fix", also=BUILD)
    assert {row["set"]: row["state"] for row in document["patches"]} == {"absent": "not-installed", "fix": "applied"}
    assert document["counts"] == {
        "declared": 2,
        "applicable": 1,
        "applied": 1,
        "upstreamed": 0,
        "not_needed": 0,
        "skipped": 1,
        "reverted": 0,
    }
    assert (document["verified"], document["required"]) == (True, ["fix"])
    stage.write(MOD, b"edited\n")
    document = take(stage, 5, "post-install", also=BUILD | ONE_ERROR)
    assert (document["verified"], document["counts"]["applied"]) == (None, 0)
    shutil.rmtree(stage.patches)
    document = take(stage, 3, "post-install", also=BUILD | ONE_ERROR)
    assert set(document["counts"].values()) == {0}


def test_a_snippet_is_a_document(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    for kind in ("containerfile", "healthcheck"):
        document = take(stage, 0, "snippet", kind, shape=SNIPPET)
        assert document["kind"] == kind and document["python"] in document["text"]
    assert (document["required"], document["sources"]) == (["fix"], ["patchkit.pyz", "patches"])


def test_a_dry_run_lists_what_would_be_written_and_with_diff_how(stage: Stage) -> None:
    document = take(stage, 0, "apply", "--dry-run", "--diff", also=PREVIEW)
    assert document["dry_run"] is True and document["changes"] == [MOD]
    assert "+line_5 = 'five'" in document["diff"]
    document = take(stage, 0, "apply", "--dry-run", also=PREVIEW)
    assert document["diff"] is None
    assert take(stage, 0, "apply", "--diff", also=PREVIEW)["dry_run"] is False


def test_verify_says_what_is_wrong(stage: Stage) -> None:
    take(stage, 0, "apply")
    stage.write(MOD, b"edited\n")
    [row] = take(stage, 1, "verify")["patches"]
    assert (row["state"], row["files"][0]["state"]) == ("drifted", "foreign")
    (stage.site / MOD).unlink()
    [row] = take(stage, 1, "verify")["patches"]
    assert (row["state"], row["files"][0]["state"]) == ("drifted", "missing")


def test_verify_with_nothing_applied_says_no(stage: Stage) -> None:
    document = take(stage, 1, "verify")
    assert document["patches"] == []
    assert [warning["code"] for warning in document["warnings"]] == ["not-applied"]
    [row] = take(stage, 1, "verify", "fix")["patches"]
    assert row["state"] == "pending" and row["message"]


def test_every_state_that_needs_no_bytes_has_its_word_and_null_for_what_is_not_known(stage: Stage) -> None:
    stage.add("absent", patch("p", FIVE), distribution="not-there")
    stage.add("other-system", patch("p", FIVE), markers="sys_platform == 'no-such'")
    stage.add("not-needed", patch("p", None, not_needed=[{"versions": ">=1", "why": "fixed"}]))
    stage.add("unmatched", patch("p", FIVE, versions=">=7"))
    rows = {row["set"]: row for row in take(stage, 0, "status")["patches"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "absent": "not-installed",
        "fix": "pending",
        "not-needed": "not-needed",
        "other-system": "not-applicable",
        "unmatched": "no-variant",
    }
    assert rows["absent"]["installed"] is None and rows["absent"]["variant"] is None
    assert rows["not-needed"]["message"] == "fixed"
    assert all(row["files"] == [] for name, row in rows.items() if name not in ("fix", "unmatched"))
    assert [file["path"] for file in rows["unmatched"]["files"]] == [MOD]  # how its diff would fare here


def test_upstreamed_and_adopted_have_their_words(stage: Stage) -> None:
    stage.add("there", patch("p", make_diff({MOD: stage.read().replace(b"line_9", b"line_0")}, {MOD: stage.read()})))
    rows = {row["set"]: row for row in take(stage, 0, "check")["patches"]}
    assert rows["there"]["state"] == "upstreamed"
    assert {hunk["result"] for hunk in rows["there"]["files"][0]["hunks"]} == {"upstream"}
    stage.write(MOD, stage.read().replace(b"line_5 = 5", b"line_5 = 'five'"))
    rows = {row["set"]: row for row in take(stage, 0, "apply", "fix")["patches"]}
    assert rows["fix"]["action"] == "adopted"


def test_checks_are_told_one_by_one_and_what_they_print_goes_nowhere_else(stage: Stage) -> None:
    symbol = {"kind": "symbol", "module": "some_dist.mod", "has": "line_5 = 'five'"}
    passing = {"kind": "python", "file": "yes.py"}
    skipping = {"kind": "python", "file": "yes.py", "needs": ["not-there"]}
    scripts = {"yes.py": b"import sys\nprint('to out')\nprint('to err', file=sys.stderr)\n"}
    stage.add("fix", patch("one", FIVE, check=[symbol, passing, skipping]), checks=scripts)
    document = take(stage, 0, "apply", "--python", sys.executable)
    [row] = document["patches"]
    assert document["skipped_checks"] == 1
    assert [(check["kind"], check["result"]) for check in row["checks"]] == [
        ("symbol", "passed"),
        ("python", "passed"),
        ("python", "skipped"),
    ]
    assert row["checks"][2]["message"] == "not-there is not installed"


def test_warnings_have_codes(stage: Stage) -> None:
    shutil.rmtree(stage.patches)
    document = take(stage, 0, "status")
    assert [warning["code"] for warning in document["warnings"]] == ["no-patch-sets"]
    assert str(stage.patches) in document["warnings"][0]["message"]


def test_list_tells_all_that_is_in_the_manifests(stage: Stage) -> None:
    document = take(stage, 0, "list", shape=LISTING)
    assert document["folders"] == [str(stage.patches)]
    [found] = document["sets"]
    assert (found["set"], found["distribution"], found["summary"]) == ("fix", "some-dist", None)
    assert found["patches"][0]["variants"] == [{"versions": ">=1.0", "file": "one.patch"}]


def test_show_tells_all_of_one_patch(stage: Stage) -> None:
    check = [{"kind": "python", "file": "no.py", "versions": ">=1"}]
    more = {"summary": "s", "group": "g", "origin": "o", "bug": "b", "forwarded": "f", "last_update": "2025-01-02"}
    stage.add(
        "fix",
        patch("zero", FIVE, default=False),
        patch("one", FIVE, after=["zero"], applied_upstream="2.0", shadowed_by=["x"], check=check, **more),
        checks=FAILING,
        constraints=["torch>=2.4"],
        markers="os_name == 'posix'",
    )
    document = take(stage, 0, "show", "fix/one", shape=SHOWING)
    assert {key: document[key] for key in ("summary", "group", "origin", "bug", "forwarded", "last_update")} == more
    assert (document["after"], document["constraints"], document["shadowed_by"], document["applied_upstream"]) == (
        ["fix/zero"],
        ["torch>=2.4"],
        ["x"],
        "2.0",
    )
    assert document["markers"] == ["os_name == 'posix'"]
    assert document["diffs"] == [{"file": "one.patch", "text": FIVE.decode()}]
    assert document["checks"] == [{"kind": "python", "name": document["checks"][0]["name"], "versions": ">=1"}]


def test_bytes_that_are_no_text_do_not_break_the_document(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE.replace(b"'five'", b"'five'  # \xff\xfe")))
    assert "\\xff" in take(stage, 0, "show", "fix", shape=SHOWING)["diffs"][0]["text"]
    take(stage, 0, "check")


def test_drift_has_rows_of_every_kind(stage: Stage) -> None:
    def look(code: int) -> Any:
        return take(stage, code, "drift", also=DRIFTED)["drift"]

    assert [row["cause"] for row in look(1)] == ["not-applied"]
    stage.run("apply").expect(0)
    assert look(0) == []
    stage.write(MOD, b"mine\n")
    [row] = look(1)
    assert (row["cause"], row["path"], len(row["hunks"])) == ("edited", MOD, 1)
    stage.run("apply", "--discard-edits").expect(0)
    stage.reinstall(sample_wheel(stage.folder / "new", "2.0.0"))
    [row] = look(1)
    assert (row["cause"], row["recorded"], row["found"]) == (
        "upgraded",
        {"version": "1.2.3", "sha256": None},
        {"version": "2.0.0", "sha256": None},
    )


# ---- how failures are told ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", sorted(NAMES))
def test_a_usage_error_is_a_document(command: str, stage: Stage) -> None:
    document = take(stage, 2, command, "--nope", also=ONE_ERROR)
    assert document["error"]["code"] == "usage"
    assert f"patchkit {command} --help" in document["error"]["hint"]


def test_a_command_that_is_not_known_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense", "--json"]) == 2
    out, err = capsys.readouterr()
    read(out, err, 2, {**DOCUMENT, **ONE_ERROR}, None)


@pytest.mark.parametrize("args", [["list"], ["show", "fix"], ["check"], ["apply"], ["apply", "--dry-run"]])
def test_a_broken_patch_set_is_a_document(args: list[str], stage: Stage) -> None:
    (stage.patches / "fix" / "patchset.toml").write_text("schema = 1\nname = 'other'\nodd = 1\n")
    document = take(stage, 3, *args, also=ERRORS)
    assert document["error"]["code"] == "bad-manifest"
    assert len(document["error"]["all"]) >= 3
    assert all(each["message"] in document["error"]["message"] for each in document["error"]["all"])


@pytest.mark.parametrize("command", ["verify", "status", "recover"])
def test_a_broken_patch_set_is_a_warning_where_it_is_not_needed(command: str, stage: Stage) -> None:
    take(stage, 0, "apply")
    (stage.patches / "fix" / "patchset.toml").write_text("schema = 1\nodd = 1\n")
    document = take(stage, 0, command)
    assert {warning["code"] for warning in document["warnings"]} == {"bad-manifest"}
    assert any("odd: unknown key" in warning["message"] for warning in document["warnings"])


@pytest.mark.parametrize("command", ["show", "check", "apply", "verify", "revert"])
def test_an_unknown_name_is_a_document(command: str, stage: Stage) -> None:
    assert take(stage, 3, command, "fixx", also=ONE_ERROR)["error"]["code"] == "unknown-patch"


@pytest.mark.parametrize("args", [["check"], ["apply"], ["verify"], ["status"], ["revert", "--all"], ["recover"]])
def test_an_environment_that_is_not_there_is_a_document(args: list[str], stage: Stage) -> None:
    stage.run(*args, "--json")
    assert main([*args, "--json", "--patches", str(stage.patches), "--site-packages", str(stage.folder / "no")]) == 4
    document = read(*stage.capture(), 4, {**DOCUMENT, **ONE_ERROR}, args[0])
    assert document["error"]["code"] == "no-environment" and document["error"]["hint"]


@pytest.mark.parametrize("args", [["apply"], ["revert", "--all"]])
def test_a_conflict_is_a_document(args: list[str], stage: Stage) -> None:
    if args[0] == "revert":
        take(stage, 0, "apply")
    stage.write(MOD, b"edited\n")
    document = take(stage, 5, *args, also=ONE_ERROR)
    assert document["error"]["code"] == "foreign-file"
    assert all(row["action"] == "none" for row in document["patches"])


def test_of_several_problems_the_document_has_the_gravest_and_all(stage: Stage) -> None:
    stage.add("absent", patch("p", FIVE), distribution="not-there")
    stage.write(MOD, b"edited\n")
    document = take(stage, 4, "apply", "absent", "fix", also=ERRORS)
    assert document["error"]["code"] == "not-installed"
    assert {each["code"] for each in document["error"]["all"]} == {"not-installed", "foreign-file"}


@pytest.mark.parametrize("args", [["apply"], ["revert", "--all"], ["recover"]])
def test_a_lock_that_another_holds_is_a_document(args: list[str], stage: Stage) -> None:
    if args[0] != "apply":
        take(stage, 0, "apply")
    (stage.site / ".patchkit").mkdir(exist_ok=True)
    if args[0] == "recover":
        (stage.site / ".patchkit" / ("0" * 64 + ".tmp")).touch()  # what a run that was killed early leaves
    with held(stage):
        document = take(stage, 6, *args, "--lock-timeout", "0", also=ONE_ERROR)
    assert document["error"]["code"] == "locked" and "--lock-timeout" in document["error"]["hint"]


def test_a_failing_check_is_a_document(stage: Stage) -> None:
    check = {"kind": "python", "file": "no.py"}
    stage.add("fix", patch("one", FIVE, check=[check]), checks=FAILING)
    document = take(stage, 7, "apply", "--python", sys.executable, also=ONE_ERROR)
    assert document["error"]["code"] == "check-failed"
    [row] = document["patches"]
    [outcome] = row["checks"]
    assert (row["state"], row["action"], outcome["result"]) == ("pending", "none", "failed")
    assert "it does not hold" in outcome["message"]


def test_an_interrupted_transaction_is_told_by_every_command(stage: Stage) -> None:
    interrupt(stage)
    for command in (["check"], ["verify"], ["apply", "--dry-run"]):
        also = {**ONE_ERROR}
        assert take(stage, 8, *command, also=also)["error"]["code"] == "interrupted"
    document = take(stage, 0, "status")
    assert [warning["code"] for warning in document["warnings"]] == ["interrupted"]
    take(stage, 1, "status", "--exit-code")
    stage.write(MOD, b"edited since\n")
    for command in (["recover"], ["revert", "--all"], ["apply"]):
        document = take(stage, 8, *command, also=ONE_ERROR)
        assert document["error"]["code"] == "not-rolled-back" and MOD in document["error"]["message"]


def broken(*args: object, **keys: object) -> None:
    raise ZeroDivisionError("boom")


def test_a_bug_is_a_document_and_its_traceback_stays_out_of_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patchkit.patch_commands.service, "status", broken)
    assert take(stage, 70, "status", also=ONE_ERROR)["error"]["code"] == "bug"
    said = stage.run("status", "--json", "--verbose").expect(70)
    conform(json.loads(said.out), {**DOCUMENT, **ONE_ERROR})
    assert "Traceback" in said.err


def test_ctrl_c_is_told_as_a_document_too(stage: Stage) -> None:
    begun = add_slow_check(stage)
    words = words_of(stage, "apply", "--json", "--python", sys.executable)
    env = clean_environment()
    with subprocess.Popen(
        words, cwd=stage.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(begun)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    read(out, err, 130, {**DOCUMENT, **ONE_ERROR}, "apply")


@pytest.mark.parametrize("word", ["1", "true", "True", "t", "yes", "y", "on"])
def test_every_spelling_of_the_variable_turns_failures_into_documents_too(
    word: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHKIT_JSON", word)
    said = stage.run("check", "nothing").expect(3)
    read(said.out, said.err, 3, {**DOCUMENT, **ONE_ERROR}, "check")
    monkeypatch.setenv("PATCHKIT_JSON", "0")
    assert stage.run("check", "nothing").expect(3).out == ""


def test_a_real_process_prints_the_same(stage: Stage) -> None:
    for args, code, also in (
        (["check"], 0, {}),
        (["apply"], 0, {}),
        (["verify"], 0, {}),
        (["revert", "fixx"], 3, ONE_ERROR),
    ):
        said = stage.process(*args, "--json").expect(code)
        read(said.out, said.err, code, {**DOCUMENT, **also}, args[0])
    assert os.listdir(stage.site / ".patchkit")
