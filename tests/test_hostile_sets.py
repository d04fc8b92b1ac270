"""Every hostile patch set that we could think of, through the command: refused in words, and nothing is written."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mutants
from hostile import GROUPS, REPEATED, REPEATS
from patchkit.cli import main
from rivals import words_of
from stages import SHIPPED, Stage, make_stage, patch, put, sample_wheel
from test_environment import says
from worlds import CHECKOUT, Finished, clean_environment, make_venv, make_wheel, pip_uninstall, tree

SECONDS = 20
MEMORY = 1 << 30
"""Bytes of address space."""

LONGEST_OUTPUT = 1_000_000
SMALL = ("paths", "hunks", "manifests")  # groups

ATTACKS = {f"{group}: {name}": attack for group, attacks in GROUPS.items() for name, attack in attacks.items()}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    files: dict[str, bytes | None] = {
        **SHIPPED,
        REPEATED: b"x = 1\n" * REPEATS,
        "start.pth": b"x = 1\n",
        "some_dist-1.2.3.data/scripts/some-tool": b"#!python\nx = 1\n",
    }
    others: dict[str, bytes | str] = {"other/mod.py": b"x = 1\n", "some_dist/plugin.py": b"x = 1\n"}
    wheels = (sample_wheel(tmp_path / "wheels", files=files), make_wheel(tmp_path / "wheels", "other", "1.0", others))
    stage = make_stage(tmp_path, make_site, capfd.readouterr, *wheels)
    put(stage.site / "some_dist" / "stray.py", b"x = 1\n")
    put(tmp_path / "secret.py", b"x = 1\n")
    return stage


def bound() -> None:
    """What the child may use: a run that is not bounded ends in a MemoryError or is killed.

    A fork of a process that has run other tests begins with all that these have taken; that is not the command's.
    """
    most = MEMORY + _address_space()
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _address_space() -> int:
    """Bytes that this process has mapped; 0 where the system does not tell (then none of the tests ran before)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def strike(stage: Stage) -> Finished:
    """``apply`` as a process whose time and memory are limited."""
    words = words_of(stage, "apply")
    ended = subprocess.run(
        words, cwd=stage.folder, env=clean_environment(), capture_output=True, preexec_fn=bound, check=False
    )
    return Finished(words, ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def strike_by_fork(stage: Stage) -> Finished:
    """The same in a fork of this process, which has the command loaded: an interpreter takes longer than the rest."""
    words = ("apply", "--site-packages", str(stage.site), "--patches", str(stage.patches))
    stage.capture()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            bound()
            code = main(words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return Finished(words, os.waitstatus_to_exitcode(status), *stage.capture())


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused_in_words_and_nothing_is_written(name: str, stage: Stage) -> None:
    attack = ATTACKS[name]
    attack.lay(stage)
    before = tree(stage.folder)
    said = (strike_by_fork if name.startswith(SMALL) else strike)(stage).expect(attack.code)
    assert all(words in said.err for words in attack.words), said.err[:2000]
    assert "Traceback" not in said.err and "error: " in said.err
    assert len(said.out + said.err) < LONGEST_OUTPUT
    assert tree(stage.folder) == before


def test_damaged_patch_sets_are_refused_or_go_in_and_out_without_a_trace(
    tmp_path: Path, make_site: Callable[..., Path]
) -> None:
    """A few of what `mutants` does by the thousand."""
    site = make_site(tmp_path / "site", sample_wheel(tmp_path / "wheels"))
    ended = mutants.run_all(tmp_path, site, count=80, seed=2)
    assert ended["diff: exit 3"] and ended["manifest: exit 3"] and ended["diff: exit 0"]


def test_the_page_of_figures_counts_what_is_tried_here() -> None:
    text = (CHECKOUT / "docs/measurements/hostile-input.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    told = {row[0]: tuple(map(int, row[1:])) for row in rows if row[0] in (*GROUPS, "all")}
    codes = {group: [attack.code for attack in attacks.values()] for group, attacks in GROUPS.items()}
    codes["all"] = [code for group in GROUPS for code in codes[group]]
    assert told == {name: (len(each), len(each), each.count(3), each.count(5)) for name, each in codes.items()}


ODD = (
    rb"a\nb.py", rb"q\"q,.py", rb"t\tt.py", rb"\033[31m.py", rb"\302\205.py", rb"r\r.py", b"CON.py", b"nul.",
    b" lead.py", b"-rf", b"*.py", b"$(touch evil).py", b"%s.py", b".hidden",
)  # fmt: skip


def test_odd_names_that_are_no_danger_come_and_go_without_a_trace(stage: Stage) -> None:
    """Line breaks, quotes, escapes, names of devices: RECORD quotes them, and pip takes them along."""
    made = [b'--- /dev/null\n+++ "b/some_dist/%b"\n@@ -0,0 +1 @@\n+x = 1\n' % name for name in ODD]
    stage.add("fix", patch("one", b"".join(made)))
    shipped = stage.tree()
    for command in (["check", "--verbose"], ["apply"], ["verify"], ["status", "--exit-code"]):
        assert "\033[31m" not in stage.run(*command).expect().out
    assert len(stage.tree()) > len(shipped) + len(ODD)
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped
    venv = make_venv(stage.folder / "venv", with_pip=False)
    shutil.copytree(stage.site, venv.site_packages, dirs_exist_ok=True)
    (venv.site_packages / "some_dist/stray.py").unlink()
    says(stage, "apply", "--site-packages", venv.site_packages)
    pip_uninstall(venv, "some-dist", "other")
    says(stage, "revert", "--all", "--site-packages", venv.site_packages)
    left = tree(venv.site_packages)
    assert [path for path in left if path.startswith(("some_dist", ".patchkit"))] == []
