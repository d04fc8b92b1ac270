"""What a hostile tester fed it: sources that never compiled, long names, damaged wheels, pipes instead of texts."""

from __future__ import annotations

import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import worlds
from rivals import interrupt
from stages import LINES, MOD, SHIPPED, TOOL, Stage, edit, make_diff, make_stage, patch, put, sample_wheel, with_line
from test_bad_input import as_another
from worlds import Finished, clean_environment, patchkit_command, run

MADE = "some_dist/made.sh"
PRISTINE = b"".join(LINES)
FIVE = b"line_5 = 'five'\n"
LOW = with_line(5, FIVE)


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capfd.readouterr)


def tell(stage: Stage, *args: str, **env: str) -> Finished:
    """The command as a real process that may not take long, with variables of its own."""
    options = ("--site-packages", stage.site, "--patches", stage.patches)
    return run(*patchkit_command(), *args, *options, cwd=stage.folder, env=clean_environment(env), timeout=20)


# ---- compiling ------------------------------------------------------------------------------------------------


def test_a_source_that_never_compiled_can_be_patched_verified_and_reverted(stage: Stage) -> None:
    template = b"{{ name }} = class\nfoo bar\nbaz\n"
    stage.ship(TOOL, template)
    shipped = stage.tree()
    stage.add("alpha", patch("word", make_diff({TOOL: template}, {TOOL: template.replace(b"bar", b"BAR")})))
    for command in (["check"], ["apply"], ["verify"], ["status", "--exit-code"], ["revert", "--all"]):
        stage.run(*command).expect()
    assert stage.tree() == shipped


THREE = [(number, f"p{number}", f"line_{number} = 'changed'\n".encode()) for number in (5, 15, 25)]
SPY = (
    "import sys\nfrom patchkit.cli import main\nseen = []\n"
    "sys.addaudithook(lambda event, args: event == 'compile' and seen.append(str(args[1])))\n"
    "code = main(sys.argv[1:])\nprint(sum(name.endswith('mod.py') for name in seen))\nsys.exit(code)\n"
)


def test_verify_compiles_a_file_once_however_many_patches_it_holds(stage: Stage) -> None:
    stage.add("alpha", *(patch(name, edit(number, text)) for number, name, text in THREE))
    stage.run("apply").expect()
    words = ("verify", "--site-packages", stage.site, "--patches", stage.patches, "--quiet")
    said = run(
        sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(worlds.CHECKOUT)!r})\n{SPY}", *words, cwd="/"
    )
    assert said.expect().out == "1\n"


def change_tool() -> bytes:
    return make_diff({TOOL: SHIPPED[TOOL]}, {TOOL: b"print('changed')\n"})


def test_a_target_of_another_version_is_started_once_for_all_files(stage: Stage) -> None:
    log = stage.folder / "starts"
    other = re.escape(f'"version": "{sys.version_info[0]}.{sys.version_info[1]}.')
    fake = f'#!/bin/sh\necho >>{log}\n{sys.executable} "$@" | sed \'s/{other}/"version": "3.98./\'\n'
    python = put(stage.folder / "fake-python", fake.encode(), 0o755)
    starts = []
    for diffs in ([edit(5, FIVE)], [edit(5, FIVE), edit(20, b"x = 1\n"), change_tool()]):
        stage.add("alpha", *(patch(f"p{number}", diff) for number, diff in enumerate(diffs)))
        stage.run("apply").expect()
        put(log, b"")
        assert "3.98" in stage.run("verify", "--python", str(python)).expect().out
        starts.append(log.read_bytes().count(b"\n"))
    assert starts[0] == starts[1] > 1


@pytest.mark.parametrize(
    "place", ["some_dist/mod.pyc", f"some_dist/__pycache__/mod.{sys.implementation.cache_tag}.pyc"]
)
def test_a_folder_in_the_place_of_a_compiled_file_is_in_nobodys_way(place: str, stage: Stage) -> None:
    (stage.site / place).mkdir(parents=True)
    _assert_there_and_back(stage, edit(5, FIVE))


def test_a_created_file_may_have_the_longest_name_there_is(stage: Stage) -> None:
    _assert_there_and_back(stage, make_diff({}, {"some_dist/" + "n" * 252 + ".py": b"x = 1\n"}))


def _assert_there_and_back(stage: Stage, diff: bytes) -> None:
    stage.add("alpha", patch("one", diff))
    shipped = stage.tree()
    for command in (["apply"], ["verify"], ["revert", "--all"]):
        stage.run(*command).expect()
    assert stage.tree() == shipped


# ---- names, texts and files that nobody should have made ------------------------------------------------------


def test_a_wheel_whose_compressed_bytes_are_damaged_is_the_wrong_wheel(stage: Stage, tmp_path: Path) -> None:
    wheel = sample_wheel(tmp_path / "damaged")
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    data = bytearray(wheel.read_bytes())
    start = data.index(MOD.encode()) + len(MOD)
    data[start : start + 20] = b"\xff" * 20
    wheel.write_bytes(data)
    with zipfile.ZipFile(wheel) as archive, pytest.raises(zlib.error):
        archive.read(MOD)
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.write(MOD, b"edited = 1\n")
    words = ("apply", "--discard-edits", "--wheel", str(wheel))
    assert stage.json(*words, exit_code=4)["error"]["code"] == "wrong-wheel"


def test_a_name_that_the_locale_cannot_say_is_no_bug(stage: Stage) -> None:
    stage.add("alpha", patch("made", make_diff({}, {"some_dist/\u00fc.py": b"x = 1\n"})))
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for command in (["check"], ["apply"], ["status"], ["verify"], ["list"], ["revert", "--all"]):
        said = tell(stage, *command, **plain)
        assert said.exit_code in (0, 1, 4) and "Traceback" not in said.err, said
        assert said.exit_code != 4 or "PYTHONUTF8=1" in said.err


def test_a_checkout_with_crlf_is_read_one_way_for_all_files_of_a_patch(stage: Stage) -> None:
    script = b"#!/bin/sh\necho hi\n"
    diff = make_diff({MOD: PRISTINE}, {MOD: LOW, MADE: script})
    stage.add("alpha", patch("low", diff.replace(b"\n", b"\r\n")))
    stage.run("apply").expect()
    assert (stage.read(), stage.read(MADE)) == (LOW, script)


@pytest.mark.parametrize("version", ["2004d", "unknown"])
def test_every_range_that_is_advised_can_be_written_into_a_manifest(version: str, stage: Stage) -> None:
    info = stage.record.parent
    put(info / "METADATA", f"Metadata-Version: 2.1\nName: some-dist\nVersion: {version}\n".encode())
    info.rename(info.with_name(f"some_dist-{version}.dist-info"))
    stage.add("alpha", patch("low", edit(5, FIVE)))
    said = stage.run("apply", "--verbose").expect(4)
    for advised in re.findall(r'versions = "([^"]*)"', said.out + said.err):
        SpecifierSet(advised)
    assert version in said.err


LONG = {"a component": "some_dist/" + "n" * 300 + ".py", "a path": "some_dist/" + "/".join(["d" * 200] * 30) + "/x.py"}


@pytest.mark.parametrize("old", [None, b"x = 2\n"], ids=["created", "changed"])
@pytest.mark.parametrize("what", LONG)
def test_a_name_that_is_too_long_for_the_system_is_no_bug(what: str, old: bytes | None, stage: Stage) -> None:
    path = LONG[what]
    side = "@@ -1 +1 @@\n-x = 2\n" if old else "@@ -0,0 +1 @@\n"
    diff = f"--- {f'a/{path}' if old else '/dev/null'}\n+++ b/{path}\n{side}+x = 1\n".encode()
    stage.add("alpha", patch("long", diff))
    assert stage.run("check").exit_code in (1, 3)
    assert stage.run("apply").exit_code in (3, 4, 5)
    assert stage.run("status").exit_code in (0, 3)
    assert not (stage.site / ".patchkit").exists()


PIPES = {"patchset.toml": 3, "patchkit.toml": 3, "RECORD": 4, "ledger.json": 8}


@pytest.mark.parametrize(("what", "code"), PIPES.items())
def test_a_pipe_in_the_place_of_a_text_is_told_and_not_waited_for(what: str, code: int, stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, FIVE)))
    stage.run("apply").expect()
    stage.declare()
    manifest, declaration = stage.patches / "alpha/patchset.toml", stage.patches / "patchkit.toml"
    place = {path.name: path for path in (manifest, declaration, stage.record, stage.ledger_file)}[what]
    place.unlink()
    os.mkfifo(place)
    assert str(place.parent) in tell(stage, "apply").expect(code).err


def test_a_lock_that_may_not_be_read_is_told(stage: Stage) -> None:
    interrupt(stage)
    lock = put(stage.site / ".patchkit/lock", b"", 0)
    for command in (["status"], ["apply", "--lock-timeout", "0"]):
        said = as_another(stage, *command)
        assert said.exit_code in (4, 6) and str(lock) in said.err, said
    lock.chmod(0o644)
    stage.run("recover").expect()
