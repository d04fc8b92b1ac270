"""`lint`: what is wrong or doubtful in patch folders, with no environment anywhere."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.cli import NAMES
from patchkit.lints import Lint
from stages import BLOCKS, MOD, SHIPPED, Stage, edit, make_diff, make_stage, patch, put
from test_docs import COMMANDS, JSON, key_paths, read_first_words
from worlds import CHECKOUT, RunPatchkit

CHECK = {"kind": "symbol", "module": "some_dist.mod", "symbol": "line_5", "has": ["5.0"]}
FIVE = edit(5, b"line_5 = 5.0\n")
GOOD = {"origin": "vendor", "check": [CHECK]}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capfd.readouterr)


def lint(stage: Stage, *words: str, exit_code: int = 3) -> list[dict[str, Any]]:
    said = stage.json("lint", *words, exit_code=exit_code)
    assert said["ok"] is (exit_code == 0)
    findings: list[dict[str, Any]] = said["findings"]
    return findings


def codes(stage: Stage, *words: str) -> list[str]:
    return [finding["code"] for finding in lint(stage, *words)]


def test_a_good_set_has_no_finding(stage: Stage) -> None:
    stage.add("good", patch("one", FIVE, **GOOD), checks={"README.md": b"why\n", ".hidden": b"x\n"})
    assert lint(stage, exit_code=0) == []
    said = stage.run("lint").expect()
    assert said.out == "nothing found in 1 patch of 1 set\n"
    assert stage.run("lint", "--quiet").expect().out == ""


def test_the_bundled_sets_have_no_finding(patchkit: RunPatchkit) -> None:
    assert "nothing found" in patchkit("lint", "--bundled").expect().out


def test_no_environment_is_needed(stage: Stage, patchkit: RunPatchkit) -> None:
    stage.add("good", patch("one", FIVE, **GOOD))
    nowhere = {"VIRTUAL_ENV": "/nowhere", "PATCHKIT_SITE_PACKAGES": "/nowhere"}
    assert patchkit("lint", "--patches", stage.patches, env=nowhere).expect().exit_code == 0


# ---- what is doubtful -----------------------------------------------------------------------------------------


def test_a_patch_without_a_check_or_an_origin_is_found(stage: Stage) -> None:
    stage.add("bare", patch("one", FIVE))
    first, second = lint(stage)
    assert (first["code"], second["code"]) == ("no-check", "no-origin")
    assert (first["set"], first["patch"]) == ("bare", "one") and first["file"].endswith("bare/patchset.toml")
    assert "[[patch.check]]" in first["hint"]


def test_a_variant_that_none_of_the_checks_is_meant_for_is_found(stage: Stage) -> None:
    variants = [{"versions": ">=1,<2", "file": "a.patch"}, {"versions": "==3", "file": "a.patch"}]
    check = {**CHECK, "versions": "<2"}
    stage.add("s", patch("one", None, variant=variants, origin="x", check=[check]), checks={"a.patch": FIVE})
    [finding] = lint(stage)
    assert finding["code"] == "no-check" and "a.patch (==3)" in finding["message"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("line_5 = str(5, sep='T')", True),
        ("line_5 = a.b[0](", False),
        ("line_5 = a.b[0](f(1),\n  sep='T')", True),
        ("sep='T'", False),
        ("sep = f(sep='T')", False),
        ("def line_5(a, sep='T'): pass", False),
        ("class line_5(sep='T'): pass", False),
        ("line_5 = f(1).sep == (2)", False),
        ("x.sep = 'T'", False),
    ],
)
def test_a_keyword_argument_that_a_check_would_take_for_an_assignment_is_found(
    stage: Stage, line: str, found: bool
) -> None:
    for key in ("has", "lacks"):
        check = {"kind": "symbol", "module": "some_dist.mod", "symbol": "line_5", key: ["sep='T'"]}
        stage.add("s", patch("one", edit(5, f"{line}\n".encode()), origin="x", check=[check]))
        told = [(each["code"], each["hint"].partition(",")[0]) for each in lint(stage, exit_code=3 if found else 0)]
        assert told == [("bare-keyword", "write a keyword argument with its call")] * found


def test_a_file_that_nothing_uses_is_found(stage: Stage) -> None:
    stage.add("s", patch("one", FIVE, **GOOD), checks={"old.patch": FIVE, "checks/a.py": b"", "NOTICE": b""})
    assert [(each["code"], Path(each["file"]).name) for each in lint(stage)] == [
        ("unused-file", "a.py"),
        ("unused-file", "old.patch"),
    ]


@pytest.mark.parametrize(
    ("first", "second", "bound"),
    [
        (">=1,<2", ">=2", "2"),
        (">=1.0.dev0,<2.0", ">=2.0,<3.dev0", "2.0"),
        (">=1.0.dev0,<2.0.dev0", ">=2.0.dev0", None),
        (">=1,<=1.9", ">=2", None),  # closed at what was tried
        (">=1,<2", ">=2.0.dev0", None),
        ("==1", "==2", None),
        (">=1,<2", ">=3", None),
    ],
)
def test_ranges_that_leave_out_the_release_candidates_are_found(
    first: str, second: str, bound: str | None, stage: Stage
) -> None:
    variants = [{"versions": first, "file": "a.patch"}]
    rules = {"not_needed": [{"versions": second, "why": "upstream"}], **GOOD}
    stage.add("s", patch("one", None, variant=variants, **rules), checks={"a.patch": FIVE})
    findings = lint(stage, exit_code=3 if bound else 0)
    assert [finding["code"] for finding in findings] == ["pre-release-gap"] * bool(bound)
    if bound:
        assert f"no range holds {bound}rc1" in findings[0]["message"]
        assert findings[0]["hint"] == f'write "<{bound}.dev0" and ">={bound}.dev0"'


TOP = b"".join(b"top_%d = 1\n" % number for number in range(5))


def hunk(*lines: str, heading: str = "") -> bytes:
    """A diff of one hunk in the middle of a file; lines begin with their sign."""
    count = len(lines)
    old, new = (sum(line[:1] != sign for line in lines) for sign in "+-")
    body = "".join(f"{line}\n" for line in lines)
    assert count
    return f"--- a/{MOD}\n+++ b/{MOD}\n@@ -10,{old} +10,{new} @@{heading}\n{body}".encode()


AMBIGUOUS = {
    "no words": (hunk(" ", " )", "+    a = 1", " ", " }"), "without a word"),
    "the same line": (hunk(" pass", " pass", "+a = 1", " pass", " pass"), "repeats the same line"),
    "the same two lines": (hunk(" a = 1", " b = 2", " a = 1", "+c", " b = 2"), "repeats the same 2 lines"),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_context_that_tells_no_place_is_found_and_a_heading_settles_it(case: str, stage: Stage) -> None:
    diff, words = AMBIGUOUS[case]
    stage.add("s", patch("one", diff, **GOOD))
    [finding] = lint(stage)
    assert (finding["code"], finding["line"]) == ("ambiguous-context", 3)
    assert words in finding["message"] and finding["file"].endswith("s/one.patch")
    stage.add("s", patch("one", diff.replace(b"@@\n", b"@@ def f():\n"), **GOOD))
    assert lint(stage, exit_code=0) == []


def test_two_hunks_that_only_the_line_number_tells_apart_are_found(stage: Stage) -> None:
    text = SHIPPED[BLOCKS]
    assert text is not None
    changed = text.replace(b"step = 4\n", b"step = 'four'\n", 2)
    diff = re.sub(rb"(?m)^(@@ .* @@).*$", rb"\1", make_diff({BLOCKS: text}, {BLOCKS: changed}))
    stage.add("s", patch("one", diff, **GOOD))
    assert any("only the line number tells them apart" in each["message"] for each in lint(stage))


@pytest.mark.parametrize("diff", [FIVE, hunk(" a = 1", "+b = 2", " c = 3"), edit(1, b"x\n"), edit(40, b"x\n")])
def test_usual_context_is_no_finding(diff: bytes, stage: Stage) -> None:
    stage.add("s", patch("one", diff, **GOOD))
    assert lint(stage, exit_code=0) == []


@pytest.mark.parametrize("path", ["some_dist-1.0.dist-info/METADATA", "a.pth", "some_dist/a.pyc"])
def test_paths_that_no_patch_may_touch_are_found(path: str, stage: Stage) -> None:
    stage.add("s", patch("one", make_diff({path: b"1\n"}, {path: b"2\n"}), **GOOD))
    [finding] = lint(stage)
    assert finding["code"] == "never-owned" and path in finding["message"]


# ---- what is wrong --------------------------------------------------------------------------------------------


def test_one_broken_set_does_not_hide_the_others(stage: Stage) -> None:
    stage.add("bare", patch("one", FIVE))
    stage.add("odd", patch("two", FIVE, colour="blue", versions=">2,<1"))
    put(stage.patches / "torn" / "patchset.toml", b"schema =")
    found = {(finding["code"], Path(finding["file"]).parent.name) for finding in lint(stage)}
    assert found == {("no-check", "bare"), ("no-origin", "bare"), ("bad-manifest", "odd"), ("bad-manifest", "torn")}
    words = [finding["message"] for finding in lint(stage)]
    assert any("holds no version at all" in each for each in words) and any("unknown key" in each for each in words)


def test_overlapping_ranges_are_found(stage: Stage) -> None:
    variants = [{"versions": ">=1,<3", "file": "a.patch"}, {"versions": ">=2", "file": "a.patch"}]
    stage.add("s", patch("one", None, variant=variants, **GOOD), checks={"a.patch": FIVE})
    assert any("overlaps" in finding["message"] for finding in lint(stage))


def test_a_broken_diff_is_found_with_its_line_and_its_code(stage: Stage) -> None:
    stage.add("s", patch("one", FIVE + b"and more\n", **GOOD), patch("two", b"", **GOOD))
    assert [(each["code"], each["patch"]) for each in lint(stage)] == [
        ("text-outside-entry", "one"),
        ("empty-diff", "two"),
    ]
    assert lint(stage)[0]["line"] == FIVE.count(b"\n") + 1


def test_what_sets_and_declarations_say_of_each_other_is_found(stage: Stage) -> None:
    stage.add("a", patch("one", FIVE, after=["b/two"], **GOOD))
    stage.add("b", patch("two", FIVE, after=["a/one"], **GOOD))
    assert codes(stage) == ["order-cycle"]
    stage.add("b", patch("two", FIVE, **GOOD))
    stage.declare(select=["a/none"])
    assert codes(stage) == ["unknown-patch"]


def test_patch_files_without_a_manifest_are_not_asked_for_checks(stage: Stage) -> None:
    put(stage.patches / "some-dist==1.2.3.patch", FIVE)
    assert lint(stage, exit_code=0) == []
    put(stage.patches / "some-dist==1.2.4.patch", b"no diff\n")
    assert codes(stage) == ["empty-diff"]


# ---- the command ----------------------------------------------------------------------------------------------


def test_what_is_no_plain_file_is_found_and_links_to_folders_are_not_followed(stage: Stage) -> None:
    folder = stage.add("s", patch("one", FIVE, **GOOD), checks={"checks/README.md": b""})
    (folder / "checks" / "round").symlink_to(folder)
    (folder / "outside").symlink_to("/")
    os.mkfifo(folder / "pipe")
    found = [(each["code"], str(Path(each["file"]).relative_to(folder))) for each in lint(stage)]
    assert found == [("no-plain-file", name) for name in ("checks/round", "outside", "pipe")]


def test_a_file_name_cannot_drive_the_terminal(stage: Stage) -> None:
    folder = stage.add("s", patch("one", FIVE, **GOOD))
    put(folder / "a\x1b[2Jb\nhint: c", b"")
    said = stage.run("lint").expect(3)
    assert "a\\x1b[2Jb\\nhint: c: unused-file" in said.out and "\x1b" not in said.out


def test_sets_whose_names_differ_in_case_alone_are_found(stage: Stage) -> None:
    stage.add("s", patch("one", FIVE, **GOOD))
    folder = stage.patches / "S"
    if folder.exists():
        pytest.skip("the file system does not tell cases apart")
    stage.add("S", patch("one", FIVE, **GOOD))
    assert codes(stage) == ["similar-names"]


def test_an_order_behind_a_set_that_nobody_has_is_found(stage: Stage) -> None:
    stage.add("s", patch("one", FIVE, **GOOD, after=["t/two"]))
    [finding] = lint(stage)
    assert finding["code"] == "unknown-after" and "no set t at hand" in finding["message"]
    stage.add("t", patch("two", edit(30, b"x = 1\n"), **GOOD))
    assert lint(stage, exit_code=0) == []


def test_sets_and_patches_can_be_named_and_kinds_passed_over(stage: Stage) -> None:
    stage.add("a", patch("one", FIVE), patch("two", FIVE))
    stage.add("b", patch("one", FIVE, origin="x"))
    assert codes(stage, "a/two") == ["no-check", "no-origin"]
    assert codes(stage, "b") == ["no-check"]
    assert codes(stage, "--ignore", "no-check") == ["no-origin", "no-origin"]
    assert lint(stage, "--ignore", "no-check", "--ignore", "no-origin", exit_code=0) == []
    assert stage.run("lint", "c").expect(3).err.startswith("error: lint: no patch set or patch is called 'c'")
    assert "--ignore" in stage.run("lint", "--ignore", "nonsense").expect(2).err


def test_without_a_patch_set_there_is_nothing_to_look_at(stage: Stage) -> None:
    assert stage.json("lint", exit_code=3)["error"]["code"] == "no-patch-sets"


def test_findings_are_lines_that_tools_can_jump_to(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    stage.add("s", patch("one", AMBIGUOUS["no words"][0]))
    said = stage.run("lint").expect(3)
    assert "patches/s/patchset.toml: no-check: s/one: it has no check" in said.out
    assert "patches/s/one.patch:3: ambiguous-context: s/one: hunk 1 of some_dist/mod.py" in said.out
    assert said.out.endswith("3 findings in 1 patch of 1 set\n")


def test_every_kind_is_documented() -> None:
    words = read_first_words(COMMANDS["`lint`"])
    assert [word for word in words if not word.startswith("--")] == [each.value for each in Lint]


def test_every_key_of_the_document_is_documented(stage: Stage) -> None:
    stage.add("bare", patch("one", FIVE))
    document = stage.json("lint", exit_code=3)
    keys = key_paths(document) - {"schema", "command", "ok", "exit_code", "warnings[]"}
    assert keys == set(read_first_words(JSON["`lint`"]))


def test_the_hook_of_pre_commit_runs_a_command_that_is_there() -> None:
    text = (CHECKOUT / ".pre-commit-hooks.yaml").read_text("utf-8")
    [entry] = re.findall(r"^  entry: (.+)$", text, re.MULTILINE)
    program, command = shlex.split(entry)
    assert program == "patchkit" and command in NAMES
    [files] = re.findall(r"^  files: (.+)$", text, re.MULTILINE)
    manifests, diffs = ("patches/s/patchset.toml", "patches/patchkit.toml"), ("fixes/s/a.diff", "patches/s/one")
    for path in (*manifests, *diffs, "fixes/s/checks/a.py"):
        assert re.search(files, path)
