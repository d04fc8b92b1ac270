"""The fixtures are what they say: wheels that installers accept, environments of their own, nothing that leaks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import worlds
from worlds import Entry, Finished, UvInstall, Venv, clean_environment, find_wheel, tree, without_bytecode


@pytest.fixture
def wheel(tmp_path: Path, make_wheel: Callable[..., Path]) -> Path:
    files: dict[str, bytes | str] = {
        "some_dist/__init__.py": "VALUE = 'ä'\n",
        "some_dist/tool": b"#!/bin/sh\n",
        "some_dist/a,b.txt": "comma\r\n",
    }
    return make_wheel(tmp_path / "wheels", "Some.Dist", "1.2.3+cu130", files, modes={"some_dist/tool": 0o755})


def test_a_written_wheel_is_installed_by_pip(
    tmp_path: Path, wheel: Path, make_venv: Callable[..., Venv], pip_install: Callable[..., Finished]
) -> None:
    venv = make_venv(tmp_path / "venv", with_pip=False)
    pip_install(venv, wheel)
    said = venv.run("-c", "import some_dist, importlib.metadata as m; print(some_dist.VALUE, m.version('some-dist'))")
    assert said.expect().out == "ä 1.2.3+cu130\n"
    found = tree(venv.site_packages)
    assert found["some_dist/tool"].mode == 0o755
    assert found["some_dist/a,b.txt"].mode == 0o644
    record = (venv.site_packages / "some_dist-1.2.3+cu130.dist-info" / "RECORD").read_text()
    assert f'"some_dist/a,b.txt",{worlds.record_digest(b"comma" + bytes([13, 10]))},7' in record
    worlds.pip_uninstall(venv, "some-dist")
    assert not without_bytecode(tree(venv.site_packages)).keys() & {"some_dist", "some_dist-1.2.3+cu130.dist-info"}


def test_uv_installs_hard_links_into_its_cache(
    tmp_path: Path, wheel: Path, make_venv: Callable[..., Venv], uv_install: UvInstall
) -> None:
    venv = make_venv(tmp_path / "venv", with_pip=False)
    uv_install(venv, wheel)
    assert (venv.site_packages / "some_dist" / "__init__.py").stat().st_nlink > 1


def test_uv_installs_symbolic_links(
    tmp_path: Path, wheel: Path, make_venv: Callable[..., Venv], uv_install: UvInstall
) -> None:
    venv = make_venv(tmp_path / "venv", with_pip=False)
    uv_install(venv, wheel, link_mode="symlink")
    assert tree(venv.site_packages)["some_dist/__init__.py"].kind == "link"


def test_sites_are_copies_that_share_nothing(tmp_path: Path, wheel: Path, make_site: Callable[..., Path]) -> None:
    first = make_site(tmp_path / "first", wheel)
    (first / "some_dist" / "__init__.py").write_text("changed\n")
    second = make_site(tmp_path / "second", wheel)
    assert (second / "some_dist" / "__init__.py").read_text("utf-8") == "VALUE = 'ä'\n"
    assert (second / "some_dist-1.2.3+cu130.dist-info" / "RECORD").is_file()


def test_a_tree_tells_kinds_modes_and_targets(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder" / "__pycache__").mkdir(parents=True, mode=0o755)
    (root / "folder" / "__pycache__" / "a.pyc").write_bytes(b"")
    (root / "link").symlink_to("folder")
    (root / "file").write_bytes(b"")
    (root / "file").chmod(0o640)
    assert without_bytecode(tree(root)) == {
        "file": Entry("file", 0o640, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        "folder": Entry("directory", 0o755, ""),
        "link": Entry("link", 0, "folder"),
    }


def test_child_processes_inherit_no_environment_of_the_developer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PATCHKIT_PYTHON", "PYTHONDONTWRITEBYTECODE", "PIP_TARGET", "NO_COLOR"):
        monkeypatch.setenv(name, "leaked")
    said = worlds.run("env", cwd=tmp_path).expect().out
    assert "leaked" not in said
    assert f"HOME={os.environ['HOME']}\n" in said


def test_home_is_not_the_developers() -> None:
    assert os.environ["HOME"] != worlds.OUTER.get("HOME")
    assert Path(os.environ["XDG_CACHE_HOME"]).is_relative_to(os.environ["HOME"])


def test_variables_can_be_given_and_taken_away() -> None:
    values = clean_environment({"PATCHKIT_PYTHON": "python3", "HOME": None})
    assert values["PATCHKIT_PYTHON"] == "python3"
    assert "HOME" not in values


def test_a_folder_of_wheels_can_be_named(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(worlds.OUTER, "PATCHKIT_WHEELS", str(wheel.parent))
    assert find_wheel("some-dist", "1.2.3+cu130") == wheel


def test_a_released_wheel_is_found_in_the_cache_once_it_was_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(worlds.OUTER, "XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(worlds.OUTER, "PATCHKIT_WHEELS", raising=False)
    wheel = find_wheel("iniconfig", "2.0.0")
    assert [path.name for path in (tmp_path / "patchkit-tests").iterdir()] == [wheel.name]
    monkeypatch.setitem(worlds.OUTER, "PIP_NO_INDEX", "1")
    assert find_wheel("iniconfig", "2.0.0") == wheel
