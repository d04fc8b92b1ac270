"""The patch set for FlashInfer on real releases, installed by real installers: to and fro, byte for byte."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import worlds
from installers import INSTALLERS, Installer, contents, copy_venv, identities, stamps
from worlds import CHECKOUT, Entry, Finished, RunPatchkit, UvInstall, Venv, tree, without_bytecode

SET = "flashinfer-dynamo"
DISTRIBUTION = "flashinfer-python"
PATCHES = CHECKOUT / "patches"
STATE = ".patchkit"
LARGE = "0.7.4"  # its wheel unpacks to 600 MB: it is installed once, by pip, and never copied
Patchkit = Callable[..., Finished]


@pytest.fixture(scope="module")
def installers(uv: Path, uv_cache: Path, uv_install: UvInstall) -> Mapping[str, Installer]:
    return {name: Installer(name, uv, uv_cache, uv_install) for name in INSTALLERS}


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
    installers: Mapping[str, Installer],
    make_venv: Callable[..., Venv],
    wheel_cache: Callable[..., Path],
) -> Callable[[str], Venv]:
    """An environment in which pip installed a release, made once; not to be changed, or to be left as it was."""
    made: dict[str, Venv] = {}

    def find(version: str) -> Venv:
        if version not in made:
            made[version] = make_venv(tmp_path_factory.mktemp(version) / "venv", with_pip=False)
            installers["pip"].install(made[version], wheel_cache(version))
        return made[version]

    return find


@pytest.fixture
def install(
    tmp_path: Path,
    installers: Mapping[str, Installer],
    shared: Callable[[str], Venv],
    make_venv: Callable[..., Venv],
    wheel_cache: Callable[..., Path],
) -> Callable[..., Venv]:
    """``install(installer, version, name="venv")``: an environment with the release. Of a pip's work it is a copy."""

    def make(installer: str, version: str, name: str = "venv") -> Venv:
        if installer == "pip":
            return shared(version) if version == LARGE else copy_venv(shared(version), tmp_path / name)
        venv = make_venv(tmp_path / name, with_pip=False)
        installers[installer].install(venv, wheel_cache(version))
        return venv

    return make


@pytest.fixture
def on(patchkit: RunPatchkit) -> Callable[[Venv], Patchkit]:
    """``on(venv)(*args)``: patchkit on an environment, with the patch sets of this checkout."""

    def bind(venv: Venv) -> Patchkit:
        return lambda *args: patchkit(*args, "--python", venv.python, "--patches", PATCHES)

    return bind


def look(venv: Venv) -> dict[str, Entry]:
    return without_bytecode(tree(venv.site_packages))


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def states(report: Any) -> dict[str, str]:
    return {row["patch"]: row["state"] for row in report["patches"]}


def apply_with_git(report: Any, site: Path, scratch: Path, git: Callable[..., Finished]) -> dict[str, bytes]:
    """The files of the patches in ``report`` as git makes them from what lies in ``site`` now."""
    paths = {file["path"] for row in report["patches"] for file in row["files"]}
    for path in paths:
        (scratch / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(site / path, scratch / path)
    for row in report["patches"]:
        git("apply", PATCHES / SET / row["variant"], cwd=scratch).expect()
    return {path: (scratch / path).read_bytes() for path in paths}


CASES = [
    ("pip", "0.5.3"),
    ("pip", "0.6.3"),
    ("pip", LARGE),
    ("uv-hardlink", "0.5.3"),
    ("uv-hardlink", "0.6.3"),
    ("uv-copy", "0.6.3"),
    ("uv-symlink", "0.6.3"),
    ("uv-clone", "0.6.3"),
]


@pytest.mark.parametrize(("installer", "version"), CASES, ids=map("-".join, CASES))
def test_a_release_is_patched_as_git_would_and_brought_back_byte_for_byte(
    installer: str,
    version: str,
    tmp_path: Path,
    install: Callable[..., Venv],
    on: Callable[[Venv], Patchkit],
    git: Callable[..., Finished],
) -> None:
    venv = install(installer, version)
    run = on(venv)
    pristine, untouched = look(venv), stamps(venv.root)

    checked = run("check", "--json").expect().json()
    assert states(checked) == {"cuda-version-from-torch": "pending", "fp4-quantize-compiler-disable": "pending"}
    assert {row["installed"] for row in checked["patches"]} == {version}
    assert differing(untouched, stamps(venv.root)) == set()
    wanted = apply_with_git(checked, venv.site_packages, tmp_path / "git", git)

    applied = run("apply", "--json").expect().json()
    assert set(states(applied).values()) == {"applied"}
    patched = look(venv)
    changed = {path for path in differing(pristine, patched) if path.partition("/")[0] != STATE}
    assert changed == wanted.keys()
    assert {path: (venv.site_packages / path).read_bytes() for path in wanted} == wanted
    assert all(patched[path].kind == "file" for path in wanted)
    run("verify").expect()

    before = stamps(venv.root)
    again = run("apply", "--json").expect().json()
    assert {row["action"] for row in again["patches"]} == {"none"}
    run("status", "--exit-code").expect()
    assert differing(before, stamps(venv.root)) == set()

    run("revert", "--all").expect()
    reverted = look(venv)
    # A link into uv's cache becomes a private file and stays one (DESIGN, section 6.2).
    became_private = {path for path in wanted if pristine[path].kind == "link"}
    assert became_private == (set(wanted) if installer == "uv-symlink" else set())
    assert differing(pristine, reverted) == became_private
    for path in became_private:
        shipped = Path(pristine[path].content)
        assert (venv.site_packages / path).read_bytes() == shipped.read_bytes()
        assert reverted[path].mode == shipped.stat().st_mode & 0o777
    run("status", "--exit-code").expect(1)


def test_every_patch_that_has_a_variant_comes_and_goes_alone(
    install: Callable[..., Venv], on: Callable[[Venv], Patchkit]
) -> None:
    venv = install("pip", "0.6.3")
    run = on(venv)
    pristine = look(venv)
    listed = run("list", "--json").expect().json()
    names = [patch["patch"] for found in listed["sets"] for patch in found["patches"]]
    tried = []
    for name in names:
        operand = f"{SET}/{name}"
        applied = run("apply", operand, "--json")
        if applied.exit_code:
            assert states(applied.expect(4).json()) == {name: "no-variant"}
            continue
        assert look(venv) != pristine
        run("verify", operand).expect()
        run("revert", operand).expect()
        assert differing(pristine, look(venv)) == set()
        tried.append(name)
    assert {"cuda-version-from-torch", "fp4-quantize-compiler-disable", "fp4-quantize-custom-op"} <= set(tried)


def test_where_torch_is_absent_python_checks_are_skipped_and_said(
    install: Callable[..., Venv], on: Callable[[Venv], Patchkit]
) -> None:
    venv = install("pip", "0.6.3")
    run = on(venv)
    said = run("apply").expect().out
    assert said.count("skipped (torch is not installed)") == 2
    assert "checks: 2 passed, 2 skipped" in said
    rows = run("verify", "--json").expect().json()["patches"]
    checks = [check for row in rows for check in row["checks"]]
    results = sorted((check["kind"], check["result"]) for check in checks)
    assert results == [("python", "skipped")] * 2 + [("symbol", "passed")] * 2
    assert {check["message"] for check in checks if check["kind"] == "python"} == {"torch is not installed"}


# ---- upgrades and uninstalling --------------------------------------------------------------------------------


@pytest.mark.parametrize("installer", ["pip", "uv-hardlink"])
def test_a_patched_release_is_upgraded_patched_anew_and_uninstalled(
    installer: str,
    install: Callable[..., Venv],
    installers: Mapping[str, Installer],
    shared: Callable[[str], Venv],
    wheel_cache: Callable[..., Path],
    on: Callable[[Venv], Patchkit],
) -> None:
    venv = install(installer, "0.5.3")
    run = on(venv)
    run("apply").expect()
    installers[installer].install(venv, wheel_cache("0.6.3"))
    shipped = look_without_state(venv)
    run("status", "--exit-code").expect(1)
    assert set(states(run("status", "--json").expect().json()).values()) == {"drifted"}

    rows = run("apply", "--json").expect().json()["patches"]
    assert {row["installed"] for row in rows} == {"0.6.3"}
    assert "fp4-quantize-compiler-disable.0.6.0.patch" in {row["variant"] for row in rows}
    run("verify").expect()
    run("revert", "--all").expect()
    assert differing(shipped, look(venv)) == set()
    if installer == "pip":
        assert differing(package_files(shared("0.6.3")), package_files(venv)) == set()

    run("apply").expect()
    installers[installer].uninstall(venv, DISTRIBUTION)
    assert {path for path in look(venv) if path.partition("/")[0] != STATE} == set()
    run("revert", "--all").expect()
    assert look(venv) == {}


@pytest.mark.parametrize("installer", ["pip", "uv-hardlink"])
def test_a_reverted_release_is_upgraded_and_uninstalled_as_if_never_patched(
    installer: str,
    install: Callable[..., Venv],
    installers: Mapping[str, Installer],
    wheel_cache: Callable[..., Path],
    on: Callable[[Venv], Patchkit],
) -> None:
    venv = install(installer, "0.5.3")
    run = on(venv)
    run("apply").expect()
    run("revert", "--all").expect()
    installers[installer].install(venv, wheel_cache("0.6.3"))
    assert not {path for path in look(venv) if path.startswith(("flashinfer_python-0.5.3", STATE))}
    assert set(states(run("check", "--json").expect().json()).values()) == {"pending"}
    installers[installer].uninstall(venv, DISTRIBUTION)
    assert look(venv) == {}


def look_without_state(venv: Venv) -> dict[str, Entry]:
    return {path: entry for path, entry in look(venv).items() if path.partition("/")[0] != STATE}


def package_files(venv: Venv) -> dict[str, tuple[int, bytes]]:
    """What the wheel shipped, without what the installer wrote about itself."""
    return {path: found for path, found in contents(venv.site_packages).items() if ".dist-info/" not in path}


# ---- what uv shares -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("installer", ["uv-hardlink", "uv-symlink"])
def test_uvs_cache_and_another_environment_keep_bytes_inodes_and_modes(
    installer: str, install: Callable[..., Venv], uv_cache: Path, on: Callable[[Venv], Patchkit]
) -> None:
    venv, other = install(installer, "0.6.3"), install(installer, "0.6.3", "other")
    shared_file = "flashinfer/jit/cpp_ext.py"
    inode = (other.site_packages / shared_file).stat().st_ino
    assert (venv.site_packages / shared_file).stat().st_ino == inode
    places = (uv_cache, other.site_packages)
    before = [identities(place) for place in places]
    links = tree(other.site_packages)

    for command in (("apply",), ("revert", "--all"), ("apply", f"{SET}/cuda-version-from-torch"), ("revert", "--all")):
        on(venv)(*command).expect()
        assert (venv.site_packages / shared_file).lstat().st_ino != inode
        assert [identities(place) for place in places] == before
        assert tree(other.site_packages) == links
    shipped = worlds.tree(other.site_packages)[shared_file]
    mine = (venv.site_packages / shared_file).read_bytes()
    assert mine == (other.site_packages / shared_file).read_bytes()
    assert tree(venv.site_packages)[shared_file].kind == "file"
    assert shipped.kind == ("link" if installer == "uv-symlink" else "file")
