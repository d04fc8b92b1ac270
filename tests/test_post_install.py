"""The step of an image build: exactly the declared list, verified, counted, and no green build without its patches."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worlds
from stages import DATA, MOD, Stage, edit, make_diff, make_stage, patch, sample_wheel
from test_bad_input import NOBODY, as_another
from worlds import Finished, Venv, patchkit_command, tree

FIVE = edit(5, b"line_5 = 'five'\n")
NINE = edit(9, b"line_9 = 'nine'\n")
NEW = make_diff({"some_dist/new/made.py": None}, {"some_dist/new/made.py": b"made = 1\n"})


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", FIVE))
    return stage


def build(stage: Stage, *args: str, code: int = 0) -> Finished:
    return stage.run("post-install", *args).expect(code)


def counts(stage: Stage, *args: str, code: int = 0) -> dict[str, int]:
    """The counts that are not 0."""
    found = stage.json("post-install", *args, exit_code=code)["counts"]
    return {name: number for name, number in found.items() if number}


def python_check(stage: Stage, script: bytes, set_name: str = "fix", diff: bytes = FIVE) -> None:
    check = [{"kind": "python", "file": "check.py"}]
    stage.add(set_name, patch("one", diff, check=check), checks={"check.py": script})


# ---- the log --------------------------------------------------------------------------------------------------


def test_the_log_has_one_line_a_patch_then_the_counts(stage: Stage) -> None:
    stage.add("absent", patch("p", FIVE), distribution="not-there")
    stage.add("old", patch("p", None, not_needed=[{"versions": ">=1", "why": "fixed in 1.0"}]))
    assert build(stage).out.splitlines() == [
        "patchkit 0.1.0: post-install",
        f"environment {stage.site}",
        "skipped     absent/p  not-there; not-there is not installed",
        "applied     fix/one   some-dist 1.2.3",
        "not-needed  old/p     some-dist 1.2.3; fixed in 1.0",
        "3 declared, 1 applicable, 1 applied, 0 upstreamed, 1 not needed, 1 skipped",
        "verified: yes",
    ]
    again = build(stage).out
    assert "already applied  fix/one" in again and "3 declared, 1 applicable, 1 applied" in again


def test_the_log_says_why_checks_were_skipped(stage: Stage) -> None:
    python_check(stage, b"raise SystemExit(77)\n")
    said = build(stage)
    assert "fix/one  some-dist 1.2.3; checks: 1 skipped" in said.out
    assert "1 check skipped: only a folder was named: --python PATH runs it" in said.out
    said = build(stage, "--verbose")
    assert f"    {MOD} (patched)" in said.out and "    python check check.py: skipped" in said.out


def test_quiet_says_nothing_where_all_is_well_and_all_where_it_is_not(stage: Stage) -> None:
    said = build(stage, "--quiet")
    assert (said.out, said.err) == ("", "")
    stage.write(MOD, b"edited\n")
    said = build(stage, "--quiet", code=5)
    assert "1 declared, 1 applicable, 0 applied" in said.out and MOD in said.err


def test_no_colour_is_ever_in_the_log(stage: Stage) -> None:
    assert "\x1b" not in build(stage, "--color", "always").out


# ---- exactly the declared list --------------------------------------------------------------------------------


def test_what_is_applied_and_not_declared_is_taken_out(stage: Stage) -> None:
    stage.add("other", patch("two", NINE, default=False))
    stage.run("apply", "other/two").expect()
    said = build(stage)
    assert "reverted  other/two" in said.out
    assert "1 declared, 1 applicable, 1 applied, 0 upstreamed, 1 reverted" in said.out
    assert b"nine" not in stage.read() and b"five" in stage.read()


def test_a_selection_is_followed(stage: Stage) -> None:
    stage.add("other", patch("two", NINE, default=False))
    stage.declare(select=["other/two"], deselect=["fix/one"])
    assert counts(stage) == {"declared": 1, "applicable": 1, "applied": 1}
    assert b"nine" in stage.read() and b"five" not in stage.read()


def test_upstreamed_patches_are_success_and_leave_nothing_to_verify(stage: Stage) -> None:
    stage.add("fix", patch("one", make_diff({MOD: stage.read().replace(b"line_9", b"line_0")}, {MOD: stage.read()})))
    document = stage.json("post-install")
    assert (document["counts"]["upstreamed"], document["counts"]["applicable"], document["verified"]) == (1, 1, None)
    assert not (stage.site / ".patchkit").exists()


def test_the_options_of_apply_that_accept_less_are_not_there(stage: Stage) -> None:
    for option in ("--skip-unmatched", "--allow-empty", "--accept-modified", "--discard-edits"):
        assert option in build(stage, option, code=2).err
    assert "fix" in build(stage, "fix", code=2).err
    assert not (stage.site / ".patchkit").exists()


# ---- what must not pass ---------------------------------------------------------------------------------------


def remove_the_folder(stage: Stage) -> None:
    shutil.rmtree(stage.patches)


def empty_the_folder(stage: Stage) -> None:
    shutil.rmtree(stage.patches / "fix")


def remove_a_diff(stage: Stage) -> None:
    (stage.patches / "fix" / "one.patch").unlink()


def remove_a_check(stage: Stage) -> None:
    python_check(stage, b"")
    (stage.patches / "fix" / "check.py").unlink()


def let_no_version_fit(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE, versions=">=2"))


def let_the_diff_not_fit(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE.replace(b"-line_5 = 5", b"-line_5 = 6")))


def edit_the_file(stage: Stage) -> None:
    stage.write(MOD, b"edited\n")


def fail_a_symbol_check(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE, check=[{"kind": "symbol", "module": "some_dist.mod", "has": ["line_5 = 6"]}]))


def break_the_syntax(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = (\n")))


def install_nothing_that_is_meant(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE), distribution="not-there")


def declare_nothing(stage: Stage) -> None:
    stage.declare(deselect=["fix/one"])


BROKEN: dict[Callable[[Stage], None], tuple[int, str]] = {
    remove_the_folder: (3, "no-patch-sets"),
    empty_the_folder: (3, "no-patch-sets"),
    remove_a_diff: (3, "bad-manifest"),
    remove_a_check: (3, "bad-manifest"),
    let_no_version_fit: (4, "no-variant"),
    install_nothing_that_is_meant: (4, "nothing-applicable"),
    declare_nothing: (4, "nothing-applicable"),
    let_the_diff_not_fit: (5, "conflict"),
    edit_the_file: (5, "foreign-file"),
    fail_a_symbol_check: (7, "check-failed"),
    break_the_syntax: (7, "check-failed"),
}


@pytest.mark.parametrize("harm", BROKEN, ids=lambda harm: harm.__name__)
def test_a_broken_build_fails_with_its_code_writes_nothing_and_leaves_its_report(
    harm: Callable[[Stage], None], stage: Stage
) -> None:
    code, word = BROKEN[harm]
    harm(stage)
    before = tree(stage.site)
    said = build(stage, "--report", str(stage.folder / "report.json"), code=code)
    assert tree(stage.site) == before
    report = json.loads((stage.folder / "report.json").read_bytes())
    assert (report["command"], report["exit_code"], report["ok"]) == ("post-install", code, False)
    assert report["error"]["code"] == word and report["counts"]["applied"] == 0
    assert report["error"]["message"].splitlines()[0] in said.err
    assert "--allow-empty" not in said.err.replace("patchkit apply --allow-empty", "")


def test_a_folder_that_was_not_copied_is_named_with_the_likely_cause(stage: Stage) -> None:
    remove_the_folder(stage)
    said = build(stage, code=3)
    assert f"there is no patch folder {stage.patches}" in said.err
    assert "in an image build, is it copied into this layer?" in said.err


def test_nothing_declared_fails_and_takes_nothing_out(stage: Stage) -> None:
    build(stage)
    declare_nothing(stage)
    before = tree(stage.site)
    said = build(stage, code=4)
    assert tree(stage.site) == before
    assert "select" in said.err and "is it copied too?" in said.err


def test_a_python_check_that_fails_takes_back_what_was_written(stage: Stage) -> None:
    python_check(stage, b"raise SystemExit('it does not hold')\n")
    before = tree(stage.site)
    said = build(stage, "--python", sys.executable, code=7)
    assert tree(stage.site) == before
    assert "it does not hold" in said.err
    assert "FAILED  fix/one" in said.out and "1 failed" in said.out
    assert counts(stage, "--python", sys.executable, "--no-checks") == {"declared": 1, "applicable": 1, "applied": 1}


def test_strict_refuses_what_is_not_installed_and_what_nothing_was_checked_of(stage: Stage) -> None:
    stage.add("absent", patch("p", FIVE), distribution="not-there")
    assert "not-there is not installed" in build(stage, "--strict", code=4).err
    shutil.rmtree(stage.patches / "absent")
    python_check(stage, b"")
    assert "every check was skipped" in build(stage, "--strict", code=4).err
    assert not (stage.site / ".patchkit").exists()


# ---- --require ------------------------------------------------------------------------------------------------


def test_a_required_set_that_is_applied_upstream_or_not_needed_passes(stage: Stage) -> None:
    stage.add("old", patch("p", None, not_needed=[{"versions": ">=1", "why": "fixed"}]))
    stage.add("mixed", patch("here", NINE), patch("elsewhere", FIVE, markers="sys_platform == 'none'"))
    build(stage, "--require", "fix", "--require", "fix/one", "--require", "old", "--require", "mixed")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"distribution": "not-there"}, "not-there is not installed"),
        ({"markers": "sys_platform == 'none'"}, "the markers of all its patches are false here"),
    ],
)
def test_a_required_set_that_is_skipped_fails_before_anything_is_written(
    keys: dict[str, str], words: str, stage: Stage
) -> None:
    stage.add("wanted", patch("p", NINE), **keys)
    build_without = stage.json("post-install")
    assert build_without["counts"]["skipped"] == 1
    stage.run("revert", "--all").expect()
    before = tree(stage.site)
    said = build(stage, "--require", "fix", "--require", "wanted", code=4)
    assert f"--require wanted: {words}" in said.err
    assert tree(stage.site) == before


def test_a_required_set_without_a_declared_patch_fails(stage: Stage) -> None:
    stage.add("wanted", patch("p", NINE, default=False))
    assert "none of its patches is declared" in build(stage, "--require", "wanted", code=4).err


@pytest.mark.parametrize(("name", "code"), [("fixx", 3), ("fix/won", 3), ("a/b/c", 2), ("", 2)])
def test_a_required_name_that_nobody_has_is_an_error(name: str, code: int, stage: Stage) -> None:
    said = build(stage, "--require", name, code=code)
    assert name in said.err
    assert not (stage.site / ".patchkit").exists()


# ---- --report -------------------------------------------------------------------------------------------------


def test_a_report_on_standard_output_is_refused_with_the_option_that_prints_it(stage: Stage) -> None:
    before = stage.tree()
    assert "--json" in stage.run("post-install", "--report", "-").expect(2).err
    assert stage.tree() == before


def test_the_report_is_the_document_that_json_prints(stage: Stage) -> None:
    said = build(stage, "--report", str(stage.folder / "report.json"), "--json")
    assert json.loads((stage.folder / "report.json").read_bytes()) == said.json()


@pytest.mark.parametrize("place", ["absent/report.json", "site", "patches/fix/one.patch/report.json"])
def test_a_report_that_has_no_place_is_an_error_before_anything_is_written(place: str, stage: Stage) -> None:
    before = tree(stage.folder)
    said = build(stage, "--report", str(stage.folder / place), code=4)
    assert f"{place} cannot be written" in said.err
    assert tree(stage.folder) == before


# ---- again, elsewhere, by others ------------------------------------------------------------------------------


def test_the_second_run_writes_nothing_and_runs_the_checks(stage: Stage) -> None:
    python_check(stage, b"print('looked')\n")
    build(stage, "--python", sys.executable)
    before = tree(stage.site)
    [row] = stage.json("post-install", "--python", sys.executable)["patches"]
    assert (row["action"], [check["message"] for check in row["checks"]]) == ("none", ["looked"])
    assert tree(stage.site) == before


def test_a_check_runs_once_a_run(stage: Stage) -> None:
    log = stage.folder / "log"
    python_check(stage, f"open({str(log)!r}, 'a').write('ran ')\n".encode())
    build(stage, "--python", sys.executable)
    assert log.read_text() == "ran "
    stage.add("other", patch("two", NINE))
    build(stage, "--python", sys.executable)
    assert log.read_text() == "ran ran "


def test_a_check_that_fails_later_is_the_answer_no(stage: Stage) -> None:
    flag = stage.folder / "flag"
    python_check(stage, f"import os, sys\nsys.exit(os.path.exists({str(flag)!r}) and 'not any more')\n".encode())
    build(stage, "--python", sys.executable)
    flag.touch()
    said = build(stage, "--python", sys.executable, code=1)
    assert "FAILED  fix/one" in said.out and "not any more" in said.out and "verified: no" in said.out
    assert said.out.splitlines()[-1].startswith("next: patchkit ")


def test_what_was_applied_is_told_although_it_cannot_be_verified(stage: Stage) -> None:
    python_check(stage, b"")
    build(stage, "--python", sys.executable)
    [script] = [row["sha256"] for row in stage.ledger()["applied"][0]["checks"]]
    (stage.site / ".patchkit" / "objects" / script).unlink()
    document = stage.json("post-install", "--python", sys.executable, exit_code=8)
    assert (document["counts"]["applied"], document["verified"]) == (1, False)
    assert document["error"]["code"] == "damaged-state" and document["patches"]


def test_another_user_who_may_only_read_runs_it_again_and_it_passes(stage: Stage) -> None:
    build(stage)
    if os.geteuid() != 0:
        stage.site.chmod(0o555)
    before = tree(stage.site)
    for words in (("post-install",), ("verify",), ("status", "--exit-code")):
        as_another(stage, *words).expect()
    assert tree(stage.site) == before
    stage.add("other", patch("two", NINE))
    assert f"{stage.site}" in as_another(stage, "post-install").expect(4).err
    assert tree(stage.site) == before


def test_a_user_who_owns_the_environment_and_is_not_root_builds_verifies_and_reverts(stage: Stage) -> None:
    """The patches are somebody else's, and may only be read."""
    stage.add("more", patch("made", NEW))
    before = tree(stage.site)
    report = stage.folder / "reports" / "report.json"
    report.parent.mkdir()
    for path in (report.parent, stage.site, *stage.site.rglob("*")) if os.geteuid() == 0 else ():
        os.chown(path, NOBODY, NOBODY)
    said = as_another(stage, "post-install", "--report", str(report)).expect()
    assert "2 declared, 2 applicable, 2 applied" in said.out and json.loads(report.read_bytes())["verified"]
    assert {path.stat().st_uid for path in stage.site.rglob("*")} == {stage.site.stat().st_uid}
    as_another(stage, "verify").expect()
    denied = as_another(stage, "post-install", "--report", str(stage.folder / "report.json"))
    if os.geteuid() == 0:
        assert f"{stage.folder / 'report.json'} cannot be written" in denied.expect(4).err
    as_another(stage, "revert", "--all").expect()
    assert tree(stage.site) == before


# ---- the same twice -------------------------------------------------------------------------------------------


def make_environment(
    folder: Path, wheel: Path, make_venv: Callable[..., Venv], pip_install: Callable[..., Any]
) -> Venv:
    venv = make_venv(folder / "venv", with_pip=False)
    pip_install(venv, "--no-compile", wheel)
    return venv


def test_two_builds_of_the_same_inputs_are_the_same_in_content_mode_and_names(
    stage: Stage, make_venv: Callable[..., Venv], pip_install: Callable[..., Any]
) -> None:
    """In two places, with another umask, at another time, by another process, the sets read in another order."""
    wheel = sample_wheel(stage.folder / "more", modes={"some_dist/tool.py": 0o755})
    data = make_diff({DATA: b"one\ntwo\nthree\n"}, {DATA: b"one\n2\nthree\n"})
    python_check(stage, b"import some_dist.mod\n")
    stage.add("more", patch("made", NEW), patch("data", data))
    copied = shutil.copytree(stage.patches, stage.folder / "elsewhere" / "p")
    sites = []
    for place, patches, umask in (("a", stage.patches, 0o022), ("b/deeper", copied, 0o077)):
        venv = make_environment(stage.folder / place, wheel, make_venv, pip_install)
        words = (*patchkit_command(), "post-install", "--python", venv.python, "--patches", patches)
        before = os.umask(umask)
        try:
            env = worlds.clean_environment({"PYTHONHASHSEED": str(umask)})
            worlds.run(*words, cwd=stage.folder, env=env).expect()
        finally:
            os.umask(before)
        sites.append(tree(venv.site_packages))
    assert sites[0] == sites[1]
    assert {".patchkit/ledger.json", "some_dist/new/made.py"} <= sites[0].keys()
    state = [path for path in stage.folder.rglob("venv/lib/*/site-packages/.patchkit/**/*") if path.is_file()]
    assert state and not [path for path in state if os.fsencode(stage.folder) in path.read_bytes()]


def test_an_environment_that_was_copied_verifies_reports_and_reverts_at_its_new_place(
    stage: Stage, make_venv: Callable[..., Venv], pip_install: Callable[..., Any]
) -> None:
    python_check(stage, b"import some_dist.mod\n")
    wheel = sample_wheel(stage.folder / "more")
    venv = make_environment(stage.folder / "build", wheel, make_venv, pip_install)
    shipped = tree(venv.site_packages)
    command = patchkit_command()
    worlds.run(*command, "post-install", "--python", venv.python, "--patches", stage.patches, cwd="/").expect()
    final = stage.folder / "final" / "env"
    shutil.copytree(venv.root, final, symlinks=True)
    shutil.rmtree(venv.root)
    site = final / venv.site_packages.relative_to(venv.root)
    python = final / "bin" / "python"
    for words in (("verify",), ("status", "--exit-code")):
        said = worlds.run(*command, *words, "--python", python, cwd="/").expect()
        assert str(site) in said.out
    worlds.run(*command, "post-install", "--python", python, "--patches", stage.patches, cwd="/").expect()
    worlds.run(*command, "revert", "--all", "--python", python, cwd="/").expect()
    assert worlds.without_bytecode(tree(site)) == worlds.without_bytecode(shipped)
