"""The one-file patchkit: the same bytes each time, all of it inside, and run by every Python that is found."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import worlds
from stages import MOD, Stage, edit, make_stage, patch
from test_environment import find_interpreter
from worlds import CHECKOUT, Finished, clean_environment, tree

FIVE = edit(5, b"line_5 = 'five'\n")
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PINS = (CHECKOUT / "tools" / "zipapp-requirements.txt").read_text("utf-8")
WHO = b"import sys\nimport some_dist.mod\nassert some_dist.mod.line_5 == 'five'\nprint(sys.executable)\n"


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", FIVE, check=[{"kind": "python", "file": "who.py"}]), checks={"who.py": WHO})
    return stage


@pytest.fixture
def alone(zipapp: Path, tmp_path: Path) -> Path:
    """The archive in a folder of its own, where nothing of the checkout is near."""
    return Path(shutil.copy(zipapp, tmp_path / "patchkit.pyz"))


def ask(
    python: str | os.PathLike[str], archive: Path, *args: str | os.PathLike[str], env: dict[str, str] | None = None
) -> Finished:
    return worlds.run(python, archive, *args, cwd=archive.parent, env=clean_environment(env))


# ---- what is in it --------------------------------------------------------------------------------------------


def test_two_builds_have_the_same_bytes(zipapp: Path, tmp_path: Path) -> None:
    """Whatever the time zone, the umask and the time stamps of the sources."""
    umask = os.umask(0o077)
    try:
        again = worlds.build_zipapp(tmp_path / "again.pyz", {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"})
    finally:
        os.umask(umask)
    assert again.read_bytes() == zipapp.read_bytes()
    assert os.access(again, os.X_OK)
    assert [path.name for path in tmp_path.iterdir()] == ["again.pyz"]


def test_it_holds_all_modules_the_patch_sets_and_the_licences(zipapp: Path) -> None:
    with zipfile.ZipFile(zipapp) as archive:
        names = archive.namelist()
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {member.external_attr >> 16 for member in archive.infolist()} == {0o100644}
        main = archive.read("__main__.py")
    modules = {f"patchkit/{path.name}" for path in (CHECKOUT / "patchkit").glob("*.py")}
    patches = {
        f"patchkit/bundled/{path.relative_to(CHECKOUT / 'patches').as_posix()}"
        for path in (CHECKOUT / "patches").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert patches and modules | patches | {"LICENSE", "__main__.py"} <= set(names)
    assert sorted(names) == names and len(set(names)) == len(names)
    assert not [name for name in names if name.endswith((".pyc", ".so", "RECORD", "INSTALLER"))]
    for pin in re.findall(r"^(\w+)==", PINS, re.MULTILINE):
        assert [name for name in names if re.match(rf"{pin}-[^/]+\.dist-info/licenses/", name)], pin
    compile(main, "__main__.py", "exec")
    assert zipapp.read_bytes().startswith(b"#!/usr/bin/env python3\n")


def test_the_pins_are_what_the_project_requires() -> None:
    from packaging.requirements import Requirement

    if sys.version_info < (3, 11):
        import tomli as tomllib
    else:
        import tomllib
    required = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    pins = dict(re.findall(r"^([\w-]+)==(\S+) --hash=sha256:[0-9a-f]{64}$", PINS, re.MULTILINE))
    assert pins.keys() == {Requirement(line).name for line in required}
    for requirement in map(Requirement, required):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


# ---- run by every Python --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_it_finds_the_environment_of_the_python_that_runs_it(version: str, stage: Stage, alone: Path) -> None:
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False, python=find_interpreter(version))
    shutil.copytree(stage.site, venv.site_packages, dirs_exist_ok=True)
    shipped = tree(venv.site_packages)
    here = f"environment {venv.site_packages} (Python {version}."
    said = ask(venv.python, alone, "post-install").expect()
    assert here in said.out and "checks: 1 passed" in said.out and "verified: yes" in said.out
    document = ask(venv.python, alone, "verify", "--json").expect().json()
    assert [check["message"] for check in document["patches"][0]["checks"]] == [str(venv.python)]
    assert here in ask(venv.python, alone, "status", "--exit-code").expect().out
    ask(venv.python, alone, "revert", "--all").expect()
    assert worlds.without_bytecode(tree(venv.site_packages)) == shipped


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bundled_sets_are_reached_by_name(version: str, alone: Path) -> None:
    python = find_interpreter(version)
    assert "flashinfer-dynamo" in ask(python, alone, "list", "--bundled").expect().out
    name = "flashinfer-dynamo/cuda-version-from-torch"
    shown = ask(python, alone, "show", "--bundled", name, "--json").expect().json()
    for diff in shown["diffs"]:
        assert diff["text"] == (CHECKOUT / "patches" / "flashinfer-dynamo" / diff["file"]).read_text("utf-8")


def test_a_bundled_set_is_applied_verified_and_reverted_from_the_archive(
    alone: Path, wheel_cache: Callable[..., Path], tmp_path: Path
) -> None:
    venv = worlds.make_venv(tmp_path / "venv", with_pip=False)
    worlds.unpack_code(venv.site_packages, wheel_cache("0.6.3"))
    shipped = tree(venv.site_packages)
    where = ("--bundled", "--python", venv.python)
    said = ask(sys.executable, alone, "post-install", "--require", "flashinfer-dynamo", *where).expect()
    assert "2 declared, 2 applicable, 2 applied" in said.out and "torch is not installed" in said.out
    ask(sys.executable, alone, "apply", "flashinfer-dynamo/fp4-quantize-custom-op", *where).expect()
    ask(sys.executable, alone, "verify", "--python", venv.python).expect()
    ask(sys.executable, alone, "revert", "--all", "--python", venv.python).expect()
    assert worlds.without_bytecode(tree(venv.site_packages)) == shipped


def test_another_environment_is_named_by_its_interpreter_or_by_virtual_env(stage: Stage, alone: Path) -> None:
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False, python=find_interpreter("3.10"))
    shutil.copytree(stage.site, venv.site_packages, dirs_exist_ok=True)
    said = ask(sys.executable, alone, "post-install", "--python", venv.python).expect()
    assert f"environment {venv.site_packages} (Python 3.10." in said.out and "checks: 1 passed" in said.out
    said = ask(sys.executable, alone, "status", "--exit-code", env={"VIRTUAL_ENV": str(venv.root)}).expect()
    assert f"environment {venv.site_packages}" in said.out
    assert ask(sys.executable, alone, "verify", "--python", venv.root).expect()


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8", "3.9"])
def test_an_older_python_says_what_is_needed(version: str, alone: Path) -> None:
    said = ask(find_interpreter(version), alone, "status").expect(1)
    assert f"patchkit needs Python 3.10 or newer; this is {version}." in said.err
    assert "Traceback" not in said.err


def test_it_needs_no_other_program_no_network_and_no_home(stage: Stage, alone: Path) -> None:
    """PATH is empty and, where namespaces may be made, there is no network."""
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    shutil.copytree(stage.site, venv.site_packages, dirs_exist_ok=True)
    unshare = shutil.which("unshare")
    words: tuple[str, ...] = (unshare, "--net", *["--map-root-user"] * (os.geteuid() != 0)) if unshare else ()
    if words and worlds.run(*words, "true", cwd="/").exit_code:
        words = ()
    env = clean_environment({"PATH": str(stage.folder / "none"), "HOME": str(stage.folder / "none")})
    for command in (("post-install",), ("verify",), ("status", "--exit-code"), ("revert", "--all")):
        worlds.run(*words, venv.python, alone, *command, cwd=stage.folder, env=env).expect()
    assert stage.read(MOD) == (venv.site_packages / MOD).read_bytes()


def test_running_it_leaves_nothing_beside_it(stage: Stage, alone: Path) -> None:
    before = tree(stage.folder)
    ask(sys.executable, alone, "status", "--site-packages", stage.site).expect()
    assert tree(stage.folder) == before
