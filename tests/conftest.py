"""Fixtures that every test may use: the real things of `worlds`, bound to folders that go away."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

import worlds
from drifted import World, make_world
from worlds import Finished, LinkMode, RunPatchkit, UvInstall, Venv

# No deadline: the machines of a build farm stall. No database: tests write nothing into the checkout.
settings.register_profile("patchkit", deadline=None, database=None, derandomize="CI" in os.environ)
settings.load_profile("patchkit")
_notes = mkdtemp(prefix="hypothesis-")  # what it learns of our sources while it collects; else it writes that here
atexit.register(shutil.rmtree, _notes, ignore_errors=True)
set_hypothesis_home_dir(_notes)

# Other programs that say what is right; the packages (of Debian and Ubuntu) that have them.
ORACLES = {"git": "git", "patch": "patch", "diff": "diffutils"}


# The files that take longest, longest first: begun late, one of them would keep a single processor busy at the end.
LONG = (
    "test_flagship_live",
    "test_image",
    "test_installers",
    "test_upgrades",
    "test_crash",
    "test_drift",
    "test_kills",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session", autouse=True)
def _guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the developer's own environment out of the tests, and the tests out of it."""
    home = tmp_path_factory.mktemp("home")
    folders = {"CACHE": ".cache", "CONFIG": ".config", "DATA": ".local/share", "STATE": ".local/state"}
    umask = os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name in ("VIRTUAL_ENV", "CONDA_PREFIX") or name.startswith("PATCHKIT_"):
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        for name, folder in folders.items():
            patch.setenv(f"XDG_{name}_HOME", str(home / folder))
        yield
    os.umask(umask)


def _skip_for_want_of_an_oracle(error: FileNotFoundError) -> None:
    package = ORACLES.get(str(error.filename))
    if package is not None and shutil.which(str(error.filename)) is None:
        pytest.skip(f"there is no {error.filename} here: apt-get install {package}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except FileNotFoundError as error:
        _skip_for_want_of_an_oracle(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except FileNotFoundError as error:
        _skip_for_want_of_an_oracle(error)
        raise


# ---- wheels ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def wheel_cache() -> Callable[..., Path]:
    """``wheel_cache(version, distribution="flashinfer-python")``: the wheel of a release, from the index."""

    def find(version: str, distribution: str = "flashinfer-python") -> Path:
        return worlds.find_wheel(distribution, version)

    return find


@pytest.fixture(scope="session")
def make_wheel() -> Callable[..., Path]:
    """``make_wheel(folder, name, version, files, modes=..., requires=...)``: a wheel written by the tests."""
    return worlds.make_wheel


@pytest.fixture(scope="session")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """patchkit.pyz, built from the checkout."""
    return worlds.build_zipapp(tmp_path_factory.mktemp("zipapp") / "patchkit.pyz")


# ---- environments ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def make_venv() -> Callable[..., Venv]:
    """``make_venv(path, with_pip=True, system_site_packages=False, python=...)``: a real virtual environment."""
    return worlds.make_venv


@pytest.fixture(scope="session")
def pip_install() -> Callable[..., Finished]:
    """``pip_install(venv, *wheels_and_options)``, with no index and no dependencies."""
    return worlds.pip_install


@pytest.fixture(scope="session")
def pip_uninstall() -> Callable[..., Finished]:
    """``pip_uninstall(venv, *names)``."""
    return worlds.pip_uninstall


@pytest.fixture(scope="session")
def make_site(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``make_site(path, *wheels)``: a site root as ``pip install --target`` makes it; pip runs once a set of wheels."""
    cache = tmp_path_factory.mktemp("sites")

    def make(path: str | os.PathLike[str], *wheels: Path) -> Path:
        digests = "".join(f"{wheel.name} {hashlib.sha256(wheel.read_bytes()).hexdigest()}\n" for wheel in wheels)
        model = cache / hashlib.sha256(digests.encode()).hexdigest()[:16]
        if not model.exists():
            worlds.unpack_site(model, *wheels)
        return Path(shutil.copytree(model, path, symlinks=True))

    return make


@pytest.fixture(scope="session")
def drifted_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """An environment in which every cause of drift has been at work; for reading only."""
    return make_world(tmp_path_factory.mktemp("drifted"))


@pytest.fixture(scope="session")
def uv() -> Path:
    """The program uv: the one beside this interpreter, or the first on PATH."""
    beside = Path(sys.executable).with_name("uv")
    found = beside if beside.is_file() else shutil.which("uv")
    if found is None:
        pytest.fail("there is no uv: install the extra `dev`")
    return Path(found)


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of uv's cache that `uv_install` uses; on one file system with `tmp_path`, so that hard links work."""
    return tmp_path_factory.mktemp("uv-cache")


@pytest.fixture(scope="session")
def uv_install(uv: Path, uv_cache: Path) -> UvInstall:
    """``uv_install(venv, *wheels_and_options, link_mode="hardlink")``, offline and with no dependencies."""

    def install(venv: Venv, *args: str | os.PathLike[str], link_mode: LinkMode = "hardlink") -> Finished:
        where = ("--python", venv.python, "--cache-dir", uv_cache)
        how = ("--no-config", "--offline", "--no-index", "--no-deps", "--link-mode", link_mode)
        return worlds.run(uv, "pip", "install", *where, *how, *args, cwd=venv.root, timeout=300).expect()

    return install


# ---- processes ------------------------------------------------------------------------------------------------


@pytest.fixture
def patchkit(tmp_path: Path) -> RunPatchkit:
    """``patchkit(*args, cwd=tmp_path, env={...}, input=..., python=sys.executable)``: the command as a real process.

    ``env`` changes a clean environment (None unsets a variable); with ``python`` another interpreter runs it.
    """

    def command(
        *args: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        input: str | bytes | None = None,
        python: str | os.PathLike[str] = sys.executable,
        timeout: float = 120,
    ) -> Finished:
        words = (*worlds.patchkit_command(python), *args)
        clean = worlds.clean_environment(env)
        return worlds.run(*words, cwd=cwd or tmp_path, env=clean, input=input, timeout=timeout)

    return command


@pytest.fixture(scope="session")
def git() -> Callable[..., Finished]:
    """``git(*args, cwd=..., input=...)``: the real git, with no configuration of its own."""
    return worlds.git
