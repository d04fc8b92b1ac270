"""The command line as people and scripts meet it: help, usage errors, variables, colours, endings."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest

import patchkit.console
import patchkit.patch_commands
from patchkit import __version__
from patchkit.cli import NAMES, cli, find_command, main
from rivals import add_slow_check, held, wait_for, words_of
from stages import MOD, Stage, edit, make_diff, make_stage, patch, put, sample_wheel
from worlds import clean_environment, patchkit_command, run, tree

ANSI = re.compile(r"\x1b\[")
COMMANDS = sorted(NAMES)
WITH_OPERANDS = ("apply", "check", "revert", "verify")
COMMON = ("python", "site_packages", "patches", "bundled", "as_json", "quiet", "verbose", "color")


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    return stage


def options_of(command: str) -> list[click.Option]:
    return [each for each in find_command(command).params if isinstance(each, click.Option)]


# ---- help and usage -------------------------------------------------------------------------------------------


def test_the_commands_of_the_contract_are_there() -> None:
    assert {"list", "show", "check", "apply", "verify", "revert", "status", "recover"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_explains_itself_and_each_of_its_options(
    command: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, flag]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: patchkit {command} ")
    assert err == ""
    for option in options_of(command):
        assert option.opts[0] in out
        assert option.help, f"{option.opts[0]} is not explained"


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", out, re.MULTILINE)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


USAGE = {
    "an unknown command": (["nonsense"], "nonsense", "patchkit --help"),
    "an unknown option": (["apply", "--nope"], "--nope", "patchkit apply --help"),
    "an option before the command": (["--quiet", "apply"], "--quiet", "patchkit --help"),
    "a missing operand": (["show"], "SET/PATCH", "patchkit show --help"),
    "an operand too many": (["list", "more"], "more", "patchkit list --help"),
    "a colour that is none": (["check", "--color", "pink"], "pink", "patchkit check --help"),
    "a time below nothing": (["apply", "--lock-timeout", "-1"], "-1", "patchkit apply --help"),
    "a time that is no number": (["recover", "--lock-timeout", "soon"], "soon", "patchkit recover --help"),
    "a time that is not a number": (["apply", "--lock-timeout", "nan"], "nan", "patchkit apply --help"),
    "an option without its value": (["status", "--python"], "--python", "patchkit status --help"),
    "--exact with operands": (["apply", "--exact", "fix"], "--exact", "leave out X"),
    "two policies at once": (["apply", "--accept-modified", "--discard-edits"], "contradict", "one of them"),
    "revert of nothing": (["revert"], "name what to revert", "patchkit status"),
    "revert of all and of one": (["revert", "--all", "fix"], "contradict each other", "one of them"),
    "an operand with two slashes": (["check", "a/b/c"], "'a/b/c'", "patchkit list"),
    "an operand without a set": (["apply", "/one"], "'/one'", "patchkit list"),
    "an operand without a patch": (["verify", "fix/"], "'fix/'", "patchkit list"),
    "an empty operand": (["revert", ""], "''", "patchkit list"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage_errors_end_with_2_and_say_what_and_what_to_do(
    case: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    args, words, hint = USAGE[case]
    monkeypatch.setenv("PATCHKIT_SITE_PACKAGES", str(stage.site))
    monkeypatch.setenv("PATCHKIT_PATCHES", str(stage.patches))
    before = stage.tree()
    stage.capture()
    assert main(args) == 2
    out, err = stage.capture()
    problem, _, advice = err.partition("\nhint: ")
    assert out == ""
    assert problem.startswith("error: ") and words in problem
    assert hint in advice
    assert stage.tree() == before


def test_no_command_is_a_usage_error_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and "Usage:" not in err.splitlines()[0]
    assert "patchkit --help" in err


@pytest.mark.parametrize("command", [*WITH_OPERANDS, "show"])
def test_an_unknown_name_ends_with_3_with_the_nearest_name_and_the_folders_looked_in(
    command: str, stage: Stage
) -> None:
    for name, meant in (("fixx", "fix"), ("fix/won", "fix/one")):
        said = stage.run(command, name).expect(3)
        assert said.out == ""
        assert f"'{name}'" in said.err
        assert f"did you mean '{meant}'?" in said.err
        assert str(stage.patches) in said.err
    said = stage.run(command, "zzz").expect(3)
    assert "did you mean" not in said.err and "`patchkit list` shows the patch sets at hand" in said.err


def test_of_several_problems_the_lowest_exit_code_counts_and_all_are_shown(stage: Stage) -> None:
    said = stage.run("apply", "fixx", "other").expect(3)
    assert "'fixx'" in said.err and "'other'" in said.err
    stage.add("absent", patch("a", edit(3, b"3\n")), distribution="not-there")
    stage.add("odd", patch("b", edit(9, b"9\n"), versions=">=7"))
    stage.write(MOD, b"edited\n")
    said = stage.run("apply", "absent", "fix", "odd").expect(4)
    for words in ("not-there is not installed", "no range holds some-dist 1.2.3", f"{MOD} was edited"):
        assert words in said.err


# ---- variables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_that_go_with_every_command_have_a_variable_and_no_other_option_has_one(command: str) -> None:
    variables = {option.name: option.envvar for option in options_of(command) if option.name != "help"}
    expected = {name: f"PATCHKIT_{name.removeprefix('as_').upper()}" for name in COMMON}
    assert {name: variables.pop(name) for name in COMMON} == expected
    assert not any(variables.values()), variables
    assert cli.context_settings.get("auto_envvar_prefix") is None


def test_variables_do_what_the_options_do(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    more = stage.folder / "more"
    put(more / "other==1.0.patch", edit(7, b"7\n"))
    monkeypatch.setenv("PATCHKIT_SITE_PACKAGES", str(stage.site))
    monkeypatch.setenv("PATCHKIT_PATCHES", f"{stage.patches}{os.pathsep}{more}")
    stage.capture()
    assert main(["list"]) == 0
    assert re.findall(r"^\S+", stage.capture().out, re.MULTILINE) == ["fix", "other"]
    monkeypatch.setenv("PATCHKIT_QUIET", "1")
    assert main(["check", "fix"]) == 0
    assert stage.capture() == ("", "")
    monkeypatch.delenv("PATCHKIT_QUIET")
    monkeypatch.setenv("PATCHKIT_VERBOSE", "1")
    monkeypatch.setenv("PATCHKIT_COLOR", "always")
    assert main(["check", "fix"]) == 0
    out = stage.capture().out
    assert "hunk 1" in out and ANSI.search(out)
    monkeypatch.setenv("PATCHKIT_JSON", "1")
    assert main(["check", "fix"]) == 0
    assert stage.capture().out.startswith("{")


def test_the_variables_for_the_environment_and_the_bundled_sets_are_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHKIT_BUNDLED", "1")
    stage.capture()
    assert main(["list"]) == 0
    assert "flashinfer-dynamo" in stage.capture().out
    monkeypatch.setenv("PATCHKIT_PYTHON", str(stage.folder / "nowhere"))
    assert main(["status"]) == 4
    assert str(stage.folder / "nowhere") in stage.capture().err


def test_the_command_line_wins_over_a_variable(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_SITE_PACKAGES", str(stage.folder / "nowhere"))
    monkeypatch.setenv("PATCHKIT_PATCHES", str(stage.folder / "nowhere"))
    monkeypatch.setenv("PATCHKIT_COLOR", "always")
    assert not ANSI.search(stage.run("check", "--color", "never").expect(0).out)


def test_a_wrong_value_in_a_variable_is_a_usage_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_COLOR", "pink")
    assert "pink" in stage.run("check").expect(2).err


def test_lenience_comes_from_the_command_line_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for option in {each.name or "" for command in COMMANDS for each in options_of(command)} - set(COMMON):
        for name in (option, f"apply_{option}"):
            monkeypatch.setenv(f"PATCHKIT_{name.upper()}", "1")
    check = {"kind": "python", "file": "no.py"}
    stage.add(
        "fix", patch("one", edit(5, b"line_5 = 'five'\n"), check=[check]), checks={"no.py": b"raise SystemExit(1)\n"}
    )
    before = stage.tree()
    stage.run("apply", "--python", sys.executable).expect(7)
    assert stage.tree() == before
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    stage.run("apply").expect(0)
    assert stage.read() != b"" and b"five" in stage.read()


# ---- quiet, colours, terminals --------------------------------------------------------------------------------


def test_quiet_says_nothing_on_success(stage: Stage) -> None:
    for command in (["check"], ["apply"], ["apply"], ["verify"], ["status"], ["recover"], ["revert", "--all"]):
        said = stage.run(*command, "--quiet").expect(0)
        assert (said.out, said.err) == ("", ""), command


def test_quiet_says_what_is_wrong(stage: Stage) -> None:
    stage.write(MOD, b"edited\n")
    assert MOD in stage.run("check", "-q").expect(1).out
    assert f"{MOD} was edited" in stage.run("apply", "-q").expect(5).err


def test_colours_are_for_terminals_unless_asked_for(stage: Stage) -> None:
    for command in (["list"], ["show", "fix"], ["check"], ["status"]):
        assert not ANSI.search(stage.run(*command).expect(0).out)
        assert not ANSI.search(stage.run(*command, "--color", "never").expect(0).out)
        assert ANSI.search(stage.run(*command, "--color", "always").expect(0).out)
    plain = stage.run("check").out
    assert re.sub(r"\x1b\[[0-9;]*m", "", stage.run("check", "--color", "always").out) == plain


@pytest.mark.parametrize("args", [["apply"], ["list", "--patches", "nowhere"], ["apply", "--nope"]])
def test_color_reaches_errors_too(args: list[str], stage: Stage) -> None:
    stage.write(MOD, b"edited\n")
    stage.capture()
    where = [] if "--patches" in args else ["--patches", str(stage.patches)]
    for color, shown in (("always", True), ("never", False), ("auto", False)):
        assert main([*args, *where, "--site-packages", str(stage.site), "--color", color]) > 1
        assert bool(ANSI.search(stage.capture().err)) is shown, color


def on_terminal(words: Sequence[str], cwd: Path, *, seconds: float = 60) -> tuple[int, str]:
    """The exit code of a process on a terminal of its own, and all that it wrote there."""
    controller, terminal = pty.openpty()
    env = clean_environment({"TERM": "xterm", "COLUMNS": "200"})
    with subprocess.Popen(words, cwd=cwd, env=env, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        killer = time.monotonic() + seconds
        said = b""
        while time.monotonic() < killer:
            try:
                data = os.read(controller, 65536)
            except OSError:  # Linux says EIO where the other side is gone
                data = b""
            said += data
            if not data:
                break
        else:
            process.kill()
        os.close(controller)
    return process.returncode, said.decode()


def test_a_terminal_gets_colours(stage: Stage) -> None:
    code, said = on_terminal(words_of(stage, "check"), stage.folder)
    assert code == 0 and ANSI.search(said)
    code, said = on_terminal(words_of(stage, "check", "--color", "never"), stage.folder)
    assert code == 0 and not ANSI.search(said)
    code, said = on_terminal(words_of(stage, "check", "nothing", "--color", "never"), stage.folder)
    assert code == 3 and "error: " in said and not ANSI.search(said)


def test_json_is_never_coloured(stage: Stage) -> None:
    assert not ANSI.search(stage.run("check", "--json", "--color", "always").expect(0).out)


def test_a_bar_shows_how_far_a_long_run_is_on_a_terminal_and_not_in_a_log(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    before: dict[str, bytes | None] = {f"some_dist/m{number}.py": b"x = 1\n" for number in range(20)}
    after: dict[str, bytes | None] = dict.fromkeys(before, b"x = 2\n")
    stage = make_stage(tmp_path, make_site, capfd.readouterr, sample_wheel(tmp_path / "wheels", files=before))
    stage.add("many", patch("all", make_diff(before, after)))
    # A second that is over at once makes a long run of a short one.
    hurried = "import threading; real = threading.Timer; threading.Timer = lambda seconds, call: real(0, call)"
    program, flag, code, *args = words_of(stage, "apply", "--lock-timeout", "10000")
    assert flag == "-c" or code == "patchkit"
    code = (
        f"{hurried}; {code}"
        if flag == "-c"
        else f"{hurried}; import runpy; runpy.run_module('patchkit', run_name='__main__')"
    )
    slow = (program, "-c", code, *args)
    ended, said = on_terminal(slow, stage.folder)
    assert ended == 0
    assert "writing  [" in said and "100%" in said
    assert "1 applied" in said
    stage.run("revert", "--all").expect(0)
    quiet = on_terminal((*slow, "--quiet"), stage.folder)
    assert quiet == (0, "")
    stage.run("revert", "--all").expect(0)
    logged = run(*slow, cwd=stage.folder).expect(0)
    assert "writing" not in logged.out + logged.err


def test_a_short_run_shows_no_bar_even_on_a_terminal(stage: Stage) -> None:
    code, said = on_terminal(words_of(stage, "apply"), stage.folder)
    assert code == 0 and "writing" not in said


# ---- endings --------------------------------------------------------------------------------------------------


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_ctrl_c_undoes_everything_and_ends_with_130(stage: Stage) -> None:
    begun = add_slow_check(stage)
    before = stage.tree()
    words = words_of(stage, "apply", "--python", sys.executable)
    with subprocess.Popen(
        words, cwd=stage.folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        check = int(wait_for(begun))
        assert b"five" in stage.read(), "the check runs on the patched file"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "nothing was changed" in err and "Traceback" not in out + err
    assert stage.tree() == before
    assert is_gone(check), "the check outlives the command"


def test_ctrl_c_ends_the_wait_for_the_lock(stage: Stage) -> None:
    words = words_of(stage, "apply", "--lock-timeout", "60")
    with held(stage):
        before = stage.tree()
        with subprocess.Popen(
            words, cwd=stage.folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            time.sleep(1)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "Traceback" not in out + err
        assert stage.tree() == before


@pytest.mark.parametrize("args", [["list"], ["show", "fix"], ["check"], ["check", "--json"], ["status"]])
def test_a_reader_that_goes_away_is_no_failure(args: list[str], stage: Stage) -> None:
    assert run_without_reader(stage, *args) == (0, "")


def test_a_reader_that_goes_away_does_not_change_the_answer(stage: Stage) -> None:
    stage.write(MOD, b"edited\n")
    code, err = run_without_reader(stage, "check")
    assert code == 1 and "Traceback" not in err
    code, err = run_without_reader(stage, "apply")
    assert code == 5 and "Traceback" not in err


def test_what_was_asked_for_is_done_though_nobody_reads_on(stage: Stage) -> None:
    assert run_without_reader(stage, "apply") == (0, "")
    assert b"five" in stage.read()
    assert stage.run("verify").exit_code == 0


FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
LOST = "error: the output could not be written: No space left on device\n"


@FULL
@pytest.mark.parametrize("output", [[], ["--json"]])
@pytest.mark.parametrize(
    "args", [["list"], ["show", "fix"], ["check"], ["status"], ["drift"], ["snippet", "containerfile"]]
)
def test_an_answer_that_cannot_be_written_is_a_failure(args: list[str], output: list[str], stage: Stage) -> None:
    code, err = run_on_full_disk(stage, *args, *output)
    assert code == 7 and LOST in err


@FULL
@pytest.mark.parametrize("output", [[], ["--json"]])
def test_what_was_changed_counts_though_it_cannot_be_told(output: list[str], stage: Stage) -> None:
    assert run_on_full_disk(stage, "apply", *output) == (0, LOST)
    assert b"five" in stage.read()
    code, err = run_on_full_disk(stage, "apply", *output)  # nothing to do: the answer is all there was
    assert code == 7 and LOST in err
    stage.write(MOD, b"edited\n")
    code, err = run_on_full_disk(stage, "apply", *output)
    assert code == 5 and LOST in err
    stage.run("revert", "--all", "--discard-edits").expect()


@FULL
@pytest.mark.parametrize("args", [["--help"], ["apply", "--help"], ["--version"]])
def test_help_that_cannot_be_written_is_a_failure_and_no_bug(args: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        assert run_into(full.fileno(), *args) == (7, LOST)
    reader, writer = os.pipe()
    os.close(reader)
    assert run_into(writer, *args) == (0, "")
    os.close(writer)


def run_into(descriptor: int, *args: str) -> tuple[int, str]:
    ended = subprocess.run(
        [*patchkit_command(), *args],
        env=clean_environment(),
        stdout=descriptor,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr.decode()


def run_on_full_disk(stage: Stage, *args: str) -> tuple[int, str]:
    """The exit code and the errors of a real process whose standard output takes nothing."""
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            words_of(stage, *args),
            cwd=stage.folder,
            env=clean_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    return ended.returncode, ended.stderr.decode()


def run_without_reader(stage: Stage, *args: str) -> tuple[int, str]:
    """The exit code and the errors of a real process whose standard output is a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            words_of(stage, *args),
            cwd=stage.folder,
            env=clean_environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    return ended.returncode, ended.stderr.decode()


def test_closed_standard_streams_are_no_failure(stage: Stage) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join(words_of(stage, 'apply'))} >&- 2>&-"],
        cwd=stage.folder,
        env=clean_environment(),
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0
    assert b"five" in stage.read()


class Surprise(Exception):
    """What no code here raises."""


def broken(*args: object, **keys: object) -> None:
    raise Surprise("boom")


def test_a_bug_ends_with_70_and_one_line(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patchkit.patch_commands.service, "status", broken)
    said = stage.run("status").expect(70)
    assert said.out == ""
    assert said.err.splitlines()[0] == "error: Surprise: boom"
    assert "report this" in said.err and "Traceback" not in said.err


def test_a_bug_shows_its_traceback_under_verbose(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patchkit.patch_commands.service, "status", broken)
    for flag in ("--verbose", "-v"):
        said = stage.run("status", flag).expect(70)
        assert 'raise Surprise("boom")' in said.err, flag
    monkeypatch.setenv("PATCHKIT_VERBOSE", "1")
    assert 'raise Surprise("boom")' in stage.run("status").expect(70).err


def test_a_bug_during_a_change_leaves_everything_as_it_was(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patchkit.console.Progress, "advance", broken)
    before = stage.tree()
    stage.run("apply").expect(70)
    assert stage.tree() == before


def test_a_current_folder_that_is_gone_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = stage.folder / "gone"
    gone.mkdir()
    words = words_of(stage, "status")
    script = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.execv({words[0]!r}, {list(words)!r})"
    ended = subprocess.run(
        [sys.executable, "-c", script], env=clean_environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode in (0, 2, 3, 4), ended.stderr
    assert "Traceback" not in ended.stderr


def test_reading_commands_leave_the_site_root_alone(stage: Stage) -> None:
    before = tree(stage.site)
    for command in (["list"], ["show", "fix"], ["check"], ["status"], ["recover"], ["apply", "--dry-run"]):
        stage.run(*command).expect(0)
    stage.run("verify").expect(1)
    assert tree(stage.site) == before


# ---- a start-up check is not fooled ---------------------------------------------------------------------------


def test_status_exit_code_is_1_where_the_named_folder_cannot_be_read(stage: Stage) -> None:
    stage.run("apply").expect(0)
    assert stage.run("status", "--exit-code").expect(0)
    assert stage.run("status", "--exit-code", "--patches", "nonexistent", patches=False).expect(1)
    (stage.patches / "fix" / "patchset.toml").write_text("schema = [")
    assert stage.run("status", "--exit-code").expect(1)
    assert stage.run("status").expect(0)
