"""What a fresh interpreter runs, and what a build tool builds, after a source was patched and after it was put back.

The worst case for Python's own check is made each time: the new source has the size and the time stamp of the old one.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest

import worlds
from stages import LINES, MOD, Stage, edit, make_stage, patch, put, with_line
from test_environment import fill, find_interpreter, says
from worlds import Venv, clean_environment, run

OLD, NEW = "5\n", "6\n"
SAME_SIZE = b"line_5 = 6\n"
ASK = "import some_dist.mod; print(some_dist.mod.line_5)"
LEVELS = ("", "-O", "-OO")
MODES = ("timestamp", "checked-hash", "unchecked-hash")


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", edit(5, SAME_SIZE)))
    return stage


@pytest.fixture
def venv(stage: Stage) -> Venv:
    return fill(worlds.make_venv(stage.folder / "venv", with_pip=False), stage)


def compile_all(venv: Venv, *options: str) -> None:
    """Compile the distribution at every level; ``options`` are compileall's."""
    for level in LEVELS:
        words = (*filter(None, [level]), "-m", "compileall", "-q", "-f", *options, "some_dist")
        venv.run(*words, cwd=venv.site_packages).expect()


def compiled(venv: Venv) -> list[str]:
    return sorted(path.name for path in (venv.site_packages / "some_dist").rglob("mod*.pyc"))


def answers(venv: Venv, **env: str) -> list[str]:
    """What fresh interpreters say at every level. The variable that turns compiled files off is not set."""
    values = clean_environment(env)
    assert "PYTHONDONTWRITEBYTECODE" not in values
    return [venv.run(*filter(None, [level]), "-c", ASK, env=values).expect().out for level in LEVELS]


def make_alike(venv: Venv) -> Callable[[], None]:
    """Give the source the time stamp that it has now, whenever the function that is returned is called."""
    source = venv.site_packages / MOD
    shipped = source.stat()

    def repeat() -> None:
        assert source.stat().st_size == shipped.st_size and source.stat().st_mtime_ns > shipped.st_mtime_ns
        os.utime(source, ns=(shipped.st_atime_ns, shipped.st_mtime_ns))

    return repeat


# ---- compiled files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_fresh_interpreter_runs_the_source_at_every_level_of_optimisation(
    mode: str, stage: Stage, venv: Venv
) -> None:
    repeat = make_alike(venv)
    for args, answer in ((["apply"], NEW), (["revert", "--all"], OLD)):
        compile_all(venv, "--invalidation-mode", mode)
        assert len(compiled(venv)) == 3
        says(stage, *args, "--site-packages", venv.site_packages)
        assert compiled(venv) == []
        repeat()
        assert answers(venv) == [answer] * 3


def test_a_compiled_file_in_the_place_of_the_source_is_dropped_at_every_level(stage: Stage, venv: Venv) -> None:
    for args, answer in ((["apply"], NEW), (["revert", "--all"], OLD)):
        compile_all(venv, "-b", "--invalidation-mode", "unchecked-hash")
        assert "mod.pyc" in compiled(venv)
        says(stage, *args, "--site-packages", venv.site_packages)
        assert "mod.pyc" not in compiled(venv)
        assert answers(venv) == [answer] * 3


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
def test_the_compiled_files_of_other_interpreters_are_dropped_too(version: str, stage: Stage) -> None:
    other = worlds.make_venv(stage.folder / "other", with_pip=False, python=find_interpreter(version))
    shared = Venv(other.root, other.python, stage.site)  # one folder, imported by interpreters of two versions
    put(other.site_packages / "shared.pth", f"{stage.site}\n".encode())
    repeat = make_alike(shared)
    for args, answer in ((["apply"], NEW), (["revert", "--all"], OLD)):
        compile_all(shared, "--invalidation-mode", "unchecked-hash")
        assert all(version.replace(".", "") in name for name in compiled(shared)) and compiled(shared)
        stage.run(*args).expect()
        repeat()
        assert answers(shared) == [answer] * 3


@pytest.mark.parametrize("mode", MODES)
def test_after_an_undo_a_fresh_interpreter_runs_the_old_source(mode: str, stage: Stage, venv: Venv) -> None:
    """The check compiles the patched source, as an import without -B would, and fails."""
    words = ["-m", "compileall", "-q", "-f", "--invalidation-mode", mode, str(venv.site_packages / "some_dist")]
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, *{words}], check=True)\nsys.exit(1)\n"
    stage.add(
        "fix",
        patch("one", edit(5, SAME_SIZE), check=[{"kind": "python", "file": "c.py"}]),
        checks={"c.py": script.encode()},
    )
    repeat = make_alike(venv)
    says(stage, "apply", "--python", venv.python, code=7)
    assert compiled(venv) == []
    repeat()
    assert answers(venv) == [OLD] * 3


# ---- a cache elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["timestamp", "checked-hash"])
def test_a_cache_outside_the_site_root_is_seen_to_be_old(mode: str, stage: Stage, venv: Venv) -> None:
    """PYTHONPYCACHEPREFIX: the files lie where patchkit does not look, and the fresh time stamp or the hash tells."""
    env = {"PYTHONPYCACHEPREFIX": str(stage.folder / "cache")}
    for args, answer in ((["apply"], NEW), (["revert", "--all"], OLD)):
        os.utime(venv.site_packages / MOD, (1_500_000_000, 1_500_000_000))  # an installation of another day
        for level in LEVELS:
            words = (*filter(None, [level]), "-m", "compileall", "-q", "--invalidation-mode", mode, "some_dist")
            venv.run(*words, cwd=venv.site_packages, env=clean_environment(env)).expect()
        assert compiled(venv) == []
        says(stage, *args, "--site-packages", venv.site_packages)
        assert answers(venv, **env) == [answer] * 3


# ---- build tools ----------------------------------------------------------------------------------------------

MAKE = "out: {source}\n\tcp {source} out\n\techo built >> log\n"
NINJA = "rule copy\n  command = cp $in $out && echo built >> log\nbuild out: copy {source}\n"


def find_make(folder: Path) -> list[str]:
    found = shutil.which("make")
    if found is None:
        pytest.skip("there is no make here: apt-get install make")
    return [found]


def find_ninja(folder: Path) -> list[str]:
    """ninja as its wheel has it."""
    wheel = worlds.find_wheel("ninja", "1.11.1.3")
    with zipfile.ZipFile(wheel) as archive:
        program = put(folder / "ninja", archive.read("ninja-1.11.1.3.data/scripts/ninja"), 0o755)
    return [str(program)]


@pytest.mark.parametrize(
    ("find", "file", "text"), [(find_make, "Makefile", MAKE), (find_ninja, "build.ninja", NINJA)], ids=["make", "ninja"]
)
def test_a_build_tool_builds_anew_after_apply_and_after_revert_and_not_otherwise(
    find: Callable[[Path], list[str]], file: str, text: str, stage: Stage
) -> None:
    tool, folder = find(stage.folder), stage.folder / "build"
    put(folder / file, text.format(source=stage.site / MOD).encode())
    log = folder / "log"
    pristine, patched = b"".join(LINES), with_line(5, SAME_SIZE)

    def built() -> int:
        sleep(0.02)  # so that no file system gives two steps one time
        run(*tool, cwd=folder).expect()
        return len(log.read_text().splitlines())

    os.utime(stage.site / MOD, (1_500_000_000, 1_500_000_000))
    assert (built(), built()) == (1, 1)
    for number, (args, content) in enumerate(
        [(["apply"], patched), (["revert", "--all"], pristine), (["apply"], patched)], 2
    ):
        sleep(0.02)
        stage.run(*args).expect()
        assert (built(), (folder / "out").read_bytes()) == (number, content)
        stage.run(*args).expect()  # nothing to do
        assert built() == number
