"""Which environment is meant, and how a distribution is found in it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

import pytest

import worlds
from patchkit.cli import main
from stages import MOD, Stage, edit, make_stage, patch, put
from worlds import CHECKOUT, OUTER, Finished, RunPatchkit, Venv, clean_environment, run

FIVE = edit(5, b"line_5 = 'five'\n")
NINE = edit(9, b"line_9 = 'nine'\n")
WHO = b"import os, sys\nprint('run by', sys.executable)\nimport some_dist.mod\nassert some_dist.mod.line_5 == 'five'\n"
BASE = Path(os.path.realpath(sys.executable))


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", FIVE))
    return stage


@pytest.fixture
def venv(stage: Stage) -> Venv:
    """A virtual environment that has some-dist."""
    return fill(worlds.make_venv(stage.folder / "venv", with_pip=False), stage)


def fill(venv: Venv, stage: Stage) -> Venv:
    shutil.copytree(stage.site, venv.site_packages, symlinks=True, dirs_exist_ok=True)
    return venv


def add_check(stage: Stage) -> None:
    """Give the patch a python check that says which interpreter runs it."""
    stage.add("fix", patch("one", FIVE, check=[{"kind": "python", "file": "who.py"}]), checks={"who.py": WHO})


def says(stage: Stage, *args: str | os.PathLike[str], code: int = 0) -> Finished:
    """The command with the stage's patches, and no other word on the environment than ``args``."""
    stage.capture()
    ended = main([*map(os.fspath, args), "--patches", str(stage.patches)])
    out, err = stage.capture()
    return Finished(tuple(map(os.fspath, args)), ended, out, err).expect(code)


def environment_of(said: Finished) -> str:
    """The site root that the first line names."""
    found = re.match(r"environment (\S+)( \(Python [\d.]+\))?\n", said.out)
    assert found, said.out
    return found[1]


# ---- options --------------------------------------------------------------------------------------------------


def test_the_first_line_names_the_environment(stage: Stage, venv: Venv) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    for command in (["check"], ["apply"], ["status"], ["verify"], ["recover"], ["revert", "--all"]):
        said = says(stage, *command, "--python", venv.python)
        assert said.out.splitlines()[0] == f"environment {venv.site_packages} (Python {version})"
        said = stage.run(*command) if command != ["verify"] else stage.run("status")
        assert said.out.splitlines()[0] == f"environment {stage.site}"


def test_python_names_an_environment_by_its_interpreter(stage: Stage, venv: Venv) -> None:
    add_check(stage)
    document = says(stage, "apply", "--python", venv.python, "--json").json()
    assert document["environment"]["site_root"] == str(venv.site_packages)
    [row] = document["patches"]
    assert row["checks"][0]["result"] == "passed"
    assert row["checks"][0]["message"] == f"run by {venv.python}"
    assert venv.run("-c", "import some_dist.mod; print(some_dist.mod.line_5)").out == "five\n"


def test_python_may_be_a_command_on_the_path(stage: Stage, venv: Venv, monkeypatch: pytest.MonkeyPatch) -> None:
    (venv.root / "bin" / "my-python").symlink_to(venv.python.name)
    monkeypatch.setenv("PATH", str(venv.root / "bin"), prepend=os.pathsep)
    assert environment_of(says(stage, "check", "--python", "my-python")) == str(venv.site_packages)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "there is no such interpreter"),
        (b"#!/bin/sh\n", 0o644, "there is no such interpreter"),
        (b"#!/bin/sh\necho 'not a Python' >&2\nexit 3\n", 0o755, "did not say what its environment is: not a Python"),
        (b"#!/bin/sh\nexit 3\n", 0o755, "exit 3"),
        (b"#!/bin/sh\n", 0o755, "did not say what its environment is"),
        (b"#!/bin/sh\necho '[1]'\n", 0o755, "did not say what its environment is"),
        (b"#!/bin/sh\necho '{\"roots\": 1}'\n", 0o755, "did not say what its environment is"),
        (b"#!/no/such/program\n", 0o755, "did not say what its environment is"),
        (b"\x7fELF nonsense", 0o755, "did not say what its environment is"),
    ],
)
def test_a_python_that_is_none_is_refused(content: bytes | None, mode: int, words: str, stage: Stage) -> None:
    path = stage.folder / "python"
    if content is not None:
        put(path, content, mode)
    said = says(stage, "apply", "--python", path, code=4)
    assert str(path) in said.err and words in said.err


def test_the_folder_of_a_virtual_environment_stands_for_its_python(stage: Stage, venv: Venv) -> None:
    assert str(venv.site_packages) in says(stage, "status", "--python", venv.root).out


def test_another_folder_is_no_python(stage: Stage) -> None:
    assert str(stage.folder) in says(stage, "check", "--python", stage.folder, code=4).err


@pytest.mark.parametrize("what", ["missing", "a file"])
def test_a_site_root_that_is_no_folder_is_refused(what: str, stage: Stage) -> None:
    path = stage.folder / "nowhere"
    if what == "a file":
        path.write_text("")
    for command in (["check"], ["apply"], ["status"], ["verify"], ["revert", "--all"], ["recover"]):
        said = says(stage, *command, "--site-packages", path, code=4)
        assert f"--site-packages {path}: there is no such folder" in said.err


def test_with_a_site_root_alone_python_checks_are_skipped_and_said(stage: Stage) -> None:
    add_check(stage)
    said = stage.run("apply").expect(0)
    assert "python check who.py: skipped (only a folder was named: --python PATH runs it)" in said.out
    assert "1 skipped" in said.out
    said = stage.run("verify").expect(0)
    assert "who.py: skipped" in said.out


def test_a_site_root_and_a_python_together_run_the_checks(stage: Stage, venv: Venv) -> None:
    add_check(stage)
    [row] = stage.json("apply", "--python", str(venv.python))["patches"]
    assert [(each["result"], each["message"]) for each in row["checks"]] == [("passed", f"run by {venv.python}")]
    assert b"five" in stage.read()
    assert b"five" not in (venv.site_packages / MOD).read_bytes()


def test_a_site_root_may_be_relative_or_a_link(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    (stage.folder / "link").symlink_to("site", target_is_directory=True)
    says(stage, "apply", "--site-packages", "site")
    says(stage, "verify", "--site-packages", "link")
    says(stage, "revert", "--all", "--site-packages", "./link/")
    assert sorted(os.listdir(stage.site)) == ["some_dist", "some_dist-1.2.3.dist-info"]


def test_an_empty_site_root_is_the_wrong_environment(stage: Stage) -> None:
    empty = stage.folder / "empty"
    empty.mkdir()
    said = says(stage, "apply", "--site-packages", empty, code=4)
    assert f"nothing to apply on {empty}: some-dist is not installed there" in said.err
    assert os.listdir(empty) == []


# ---- the environment in force ---------------------------------------------------------------------------------


def bare(stage: Stage, env: Mapping[str, str], *, python: Path = BASE) -> Finished:
    """``check`` in an interpreter that is in no virtual environment; what it imports is put on its path by name."""
    paths = [str(CHECKOUT), sysconfig.get_path("purelib")]
    code = f"import sys; sys.path[:0] = {paths!r}; import runpy; runpy.run_module('patchkit', run_name='__main__')"
    words = (python, "-c", code, "check", "--patches", stage.patches)
    return run(*words, cwd=stage.folder, env=clean_environment(env))


def test_virtual_env_comes_before_the_venv_that_patchkit_runs_in(
    stage: Stage, venv: Venv, patchkit: RunPatchkit
) -> None:
    said = patchkit("check", "--patches", stage.patches, env={"VIRTUAL_ENV": str(venv.root)}).expect(0)
    assert environment_of(said) == str(venv.site_packages)


def test_the_venv_that_patchkit_runs_in_comes_before_conda(stage: Stage, venv: Venv, patchkit: RunPatchkit) -> None:
    assert sys.prefix != sys.base_prefix, "the tests run in a virtual environment"
    own = sysconfig.get_path("purelib")
    for env in ({}, {"CONDA_PREFIX": str(venv.root)}, {"VIRTUAL_ENV": sys.prefix, "CONDA_PREFIX": str(venv.root)}):
        assert environment_of(patchkit("check", "--patches", stage.patches, env=env).expect(1)) == own


def test_options_come_before_variables(stage: Stage, venv: Venv, patchkit: RunPatchkit) -> None:
    other = fill(worlds.make_venv(stage.folder / "other", with_pip=False), stage)
    env = {"VIRTUAL_ENV": str(other.root), "CONDA_PREFIX": str(other.root)}
    named = patchkit("check", "--patches", stage.patches, "--python", venv.python, env=env).expect(0)
    assert environment_of(named) == str(venv.site_packages)
    both = ("--python", venv.python, "--site-packages", stage.site)
    assert environment_of(patchkit("check", "--patches", stage.patches, *both, env=env).expect(0)) == str(stage.site)


def test_conda_comes_before_a_bare_interpreter_and_after_virtual_env(stage: Stage, venv: Venv) -> None:
    conda = make_conda(stage)
    said = bare(stage, {"CONDA_PREFIX": str(conda.root)}).expect(0)
    assert environment_of(said) == str(conda.site_packages)
    said = bare(stage, {"CONDA_PREFIX": str(conda.root), "VIRTUAL_ENV": str(venv.root)}).expect(0)
    assert environment_of(said) == str(venv.site_packages)


def make_conda(stage: Stage) -> Venv:
    """An installation of Python at a prefix of its own, as conda makes them: no pyvenv.cfg, its own site-packages."""
    root = stage.folder / "conda"
    library = root / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    library.mkdir(parents=True)
    for entry in Path(sysconfig.get_path("stdlib")).iterdir():
        if entry.name not in ("site-packages", "dist-packages", "sitecustomize.py"):
            (library / entry.name).symlink_to(entry)
    (root / "bin").mkdir()
    shutil.copy(BASE, root / "bin" / "python")
    (library / "site-packages").mkdir()
    conda = Venv(root, root / "bin" / "python", library / "site-packages")
    prefix = run(conda.python, "-c", "import sys; print(sys.prefix, sys.base_prefix)", cwd=root)
    if prefix.out != f"{root} {root}\n":  # a Python that cannot be moved: conda's place is taken by a venv
        shutil.rmtree(root)
        conda = worlds.make_venv(root, with_pip=False)
    return fill(conda, stage)


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_a_variable_that_names_nothing_is_told(variable: str, stage: Stage) -> None:
    said = bare(stage, {variable: str(stage.folder / "gone")}).expect(4)
    assert f"{variable} names {stage.folder / 'gone'}" in said.err
    assert "--python PATH" in said.err


def test_without_any_word_the_interpreter_itself_is_meant(stage: Stage) -> None:
    said = bare(stage, {})
    assert said.exit_code in (1, 4), said.err  # whatever it has, some-dist is not there
    assert "some-dist" in said.out


def test_the_user_site_belongs_to_a_bare_interpreter(stage: Stage, patchkit: RunPatchkit) -> None:
    base = stage.folder / "user"
    env = {"PYTHONUSERBASE": str(base)}
    where = run(
        BASE, "-c", "import site; print(site.getusersitepackages())", cwd=base.parent, env=clean_environment(env)
    )
    user = Path(where.out.strip())
    shutil.copytree(stage.site, user, symlinks=True)
    before = worlds.tree(user)
    options = ("--patches", stage.patches, "--python", BASE)
    said = patchkit("apply", *options, env=env).expect(0)
    assert environment_of(said) == str(user)
    patchkit("verify", *options, env=env).expect(0)
    patchkit("revert", "--all", *options, env=env).expect(0)
    assert worlds.tree(user) == before


# ---- other interpreters as targets ----------------------------------------------------------------------------


def find_interpreter(version: str) -> Path:
    """An interpreter of that minor version: of pyenv, or on PATH."""
    home = Path(OUTER.get("PYENV_ROOT") or Path(OUTER.get("HOME", "/"), ".pyenv"))
    found = [path for path in sorted(home.glob(f"versions/{version}.*/bin/python")) if path.is_file()]
    on_path = shutil.which(f"python{version}", path=os.pathsep.join(p for p in os.get_exec_path() if "shims" not in p))
    if not found and on_path is None:
        pytest.skip(f"there is no Python {version} here")
    return found[0] if found else Path(on_path or "")


@pytest.mark.parametrize("version", ["3.8", "3.10", "3.11", "3.12", "3.13"])
def test_another_python_is_asked_and_its_checks_run_there(version: str, stage: Stage) -> None:
    target = fill(worlds.make_venv(stage.folder / "venv", with_pip=False, python=find_interpreter(version)), stage)
    before = worlds.tree(target.site_packages)
    mine = [{"kind": "python", "file": "who.py"}]
    stage.add(
        "fix",
        patch("one", FIVE, check=mine, markers=f"python_version == '{version}'"),
        patch("two", NINE, markers=f"python_version != '{version}'"),
        checks={"who.py": WHO},
    )
    document = says(stage, "apply", "--python", target.python, "--json").json()
    one, two = document["patches"]
    assert document["environment"]["python"].startswith(f"{version}.")
    assert document["environment"]["site_root"] == str(target.site_packages)
    assert one["state"] == "applied" and one["checks"][0]["message"] == f"run by {target.python}"
    assert two["state"] == "not-applicable"
    says(stage, "verify", "--python", target.python)
    says(stage, "revert", "--all", "--python", target.python)
    assert worlds.without_bytecode(worlds.tree(target.site_packages)) == before


@pytest.mark.parametrize(("version", "code"), [("3.10", 7), ("3.12", 0)])
def test_the_syntax_is_judged_by_the_target(version: str, code: int, stage: Stage) -> None:
    target = fill(worlds.make_venv(stage.folder / "venv", with_pip=False, python=find_interpreter(version)), stage)
    before = worlds.tree(target.site_packages)
    stage.add("fix", patch("one", edit(5, b"type line_5 = int\n")))
    said = says(stage, "apply", "--python", target.python, code=code)
    if code:
        assert f"{MOD} would not compile" in said.err
        assert worlds.tree(target.site_packages) == before


# ---- patchkit as it is installed ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """A virtual environment with patchkit's own wheel, built from the checkout, and what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "dist", CHECKOUT)
    run(sys.executable, *build, cwd=folder, timeout=300).expect()
    [wheel] = (folder / "dist").glob("*.whl")
    home = worlds.make_venv(folder / "venv", with_pip=False)
    worlds.pip_install(home, wheel)
    for name in ("click", "packaging", "unidiff", *(("tomli",) if sys.version_info < (3, 11) else ())):
        copy_distribution(name, home.site_packages)
    return home


def copy_distribution(name: str, target: Path) -> None:
    for file in metadata.files(name) or ():
        source = Path(str(file.locate()))
        if ".." not in file.parts and source.suffix != ".pyc":
            put(target / str(file), source.read_bytes())


def test_the_wheel_holds_the_types_the_bundled_sets_and_the_command(installed: Venv) -> None:
    package = installed.site_packages / "patchkit"
    assert (package / "py.typed").is_file()
    shipped = files_below(CHECKOUT / "patches")
    assert shipped and files_below(package / "bundled") == shipped
    assert {path.name for path in installed.site_packages.iterdir() if "patchkit" in path.name} == {
        "patchkit",
        f"site_patchkit-{metadata_version(installed)}.dist-info",
    }
    assert {path.name for path in package.glob("*.py")} == {path.name for path in (CHECKOUT / "patchkit").glob("*.py")}


def files_below(folder: Path) -> dict[str, worlds.Entry]:
    """All files but compiled ones: installing makes these."""
    entries = worlds.without_bytecode(worlds.tree(folder))
    return {path: entry for path, entry in entries.items() if entry.kind == "file"}


def metadata_version(installed: Venv) -> str:
    said = installed.run("-c", "import importlib.metadata as m; print(m.version('site-patchkit'))").expect()
    return said.out.strip()


@pytest.mark.parametrize("how", ["console script", "python -m"])
def test_the_installed_command_speaks_of_its_own_environment(how: str, installed: Venv, stage: Stage) -> None:
    words = [installed.root / "bin" / "patchkit"] if how == "console script" else [installed.python, "-m", "patchkit"]
    said = run(*words, "--version", cwd=stage.folder).expect(0)
    assert metadata_version(installed) in said.out
    said = run(*words, "list", "--bundled", cwd=stage.folder).expect(0)
    assert "flashinfer-dynamo  (flashinfer-python)" in said.out
    said = run(*words, "show", "--bundled", "flashinfer-dynamo/cuda-version-from-torch", cwd=stage.folder).expect(0)
    assert "diff --git" in said.out or "\n--- " in said.out
    env = clean_environment({"CONDA_PREFIX": str(stage.folder)})
    assert environment_of(run(*words, "status", cwd=stage.folder, env=env).expect(0)) == str(installed.site_packages)
    said = run(*words, "apply", "--site-packages", stage.site, "--patches", stage.patches, cwd=stage.folder).expect(0)
    assert b"five" in stage.read()
    assert run(*words, "apply", "--nope", cwd=stage.folder).exit_code == 2
