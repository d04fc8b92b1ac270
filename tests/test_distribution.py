"""The wheel that is released: it is built, looked into, installed and run."""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import worlds
from worlds import CHECKOUT, Finished, Venv


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    words = ("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, CHECKOUT)
    worlds.run(sys.executable, *words, cwd=folder).expect()
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory,
    wheel: Path,
    make_venv: Callable[..., Venv],
    pip_install: Callable[..., Finished],
) -> Venv:
    """An environment with the wheel in it; what it depends on is lent by the tests' own environment."""
    venv = make_venv(tmp_path_factory.mktemp("installed") / "venv", with_pip=False)
    pip_install(venv, wheel)
    (venv.site_packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return venv


def test_the_wheel_holds_the_patch_sets_as_bundled(wheel: Path) -> None:
    prefix = "patchkit/bundled/"
    with zipfile.ZipFile(wheel) as archive:
        bundled = {
            name.removeprefix(prefix): archive.read(name) for name in archive.namelist() if name.startswith(prefix)
        }
    files = [path for path in (CHECKOUT / "patches").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert bundled == {path.relative_to(CHECKOUT / "patches").as_posix(): path.read_bytes() for path in files}
    assert bundled


def test_the_wheel_holds_the_modules_the_marker_of_types_and_the_licence_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {f"patchkit/{path.name}" for path in (CHECKOUT / "patchkit").glob("*.py")} <= set(names)
    assert "patchkit/py.typed" in names
    assert "patchkit/dynamo.toml" in names  # the audit's table of hazards
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"patchkit", "site_patchkit"}


def test_the_installed_command_says_its_version(installed: Venv, tmp_path: Path) -> None:
    said = worlds.run(installed.root / "bin" / "patchkit", "--version", cwd=tmp_path).expect()
    assert "0.1.0" in said.out


def test_the_installed_module_runs_as_a_program(installed: Venv, tmp_path: Path) -> None:
    command = worlds.run(installed.root / "bin" / "patchkit", "--help", cwd=tmp_path).expect()
    module = installed.run("-m", "patchkit", "--help", cwd=tmp_path).expect()
    assert "apply" in module.out
    assert module.out.splitlines()[2:] == command.out.splitlines()[2:]


def test_the_installed_command_finds_the_bundled_patch_sets(installed: Venv, tmp_path: Path) -> None:
    said = worlds.run(installed.root / "bin" / "patchkit", "list", "--bundled", cwd=tmp_path).expect()
    for folder in (CHECKOUT / "patches").iterdir():
        if folder.is_dir():
            assert folder.name in said.out
