"""Real upgrades of real distributions by pip and by uv: what drift says of each patch, with real git as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import worlds
from installers import Installer, copy_venv
from stages import make_diff, put, to_toml
from worlds import CHECKOUT, UvInstall, Venv, git, patchkit_command

# (distribution, from, to); a patch each is made for every function at the top of these files, as shipped in the first.
UPGRADES = [
    ("packaging", "23.2", "24.0", "uv-hardlink"),
    ("click", "8.1.3", "8.1.8", "pip"),
    ("tomlkit", "0.11.8", "0.13.2", "uv-hardlink"),
    ("tomlkit", "0.13.2", "0.11.8", "pip"),
]
MOST = 24


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, make_venv: Callable[..., Venv]) -> Venv:
    return make_venv(tmp_path_factory.mktemp("bare") / "venv", with_pip=False)


def find_functions(site: Path, package: str) -> list[tuple[str, bytes, bytes]]:
    """(path, shipped, with a line more in one function): spread over the package's files."""
    found = []
    for path in sorted((site / package).rglob("*.py")):
        shipped = path.read_bytes()
        lines = shipped.splitlines(keepends=True)
        heads = [
            number
            for number, line in enumerate(lines)
            if line.startswith(b"def ") and line.rstrip().endswith(b":") and number + 4 < len(lines)
        ]
        for number in heads[::3]:
            more = [*lines[: number + 1], b"    # this line is ours\n", *lines[number + 1 :]]
            found.append((path.relative_to(site).as_posix(), shipped, b"".join(more)))
    step = max(len(found) // MOST, 1)
    return found[::step][:MOST]


@pytest.mark.parametrize(("name", "old", "new", "by"), UPGRADES)
def test_drift_agrees_with_git_on_every_patch_after_a_real_upgrade(
    name: str,
    old: str,
    new: str,
    by: str,
    tmp_path: Path,
    bare: Venv,
    wheel_cache: Callable[..., Path],
    uv: Path,
    uv_cache: Path,
    uv_install: UvInstall,
) -> None:
    venv = copy_venv(bare, tmp_path / "venv")
    installer = Installer(by, uv, uv_cache, uv_install)
    installer.install(venv, wheel_cache(old, name))
    changes = find_functions(venv.site_packages, name)
    assert len(changes) > 5
    diffs = write_patches(tmp_path / "patches", name, changes)
    # One by one, for two of them may touch: each is applied by name, and the upgrade finds it alone.
    where = ("--site-packages", venv.site_packages, "--patches", tmp_path / "patches")
    chosen = [
        patch for patch in diffs if worlds.run(*patchkit_command(), "apply", f"own/{patch}", *where, cwd=tmp_path)
    ]
    installer.install(venv, wheel_cache(new, name))
    document = worlds.run(*patchkit_command(), "drift", "--json", *where, cwd=tmp_path).expect(1).json()
    rows: Mapping[str, Any] = {row["patch"]: row for row in document["drift"]}
    wrong = []
    for patch in chosen:
        row = rows[patch]
        assert row["cause"] == ("upgraded" if old < new else "downgraded")
        assert (row["recorded"]["version"], row["found"]["version"]) == (old, new)
        fits = git("apply", "--check", "-p1", "-", cwd=venv.site_packages, input=diffs[patch]).exit_code == 0
        if (row["state"] == "pending") != fits:
            wrong.append((patch, row["state"], row["detail"], fits))
    # git takes the first of several places; here that is a conflict which says so.
    assert not [each for each in wrong if not (each[3] and each[1] == "conflict" and "places" in each[2])]
    states = {row["state"] for row in rows.values()}
    assert "pending" in states
    worlds.run(*patchkit_command(), "revert", "--all", *where, cwd=tmp_path).expect(0)
    assert worlds.run(*patchkit_command(), "drift", *where[:2], cwd=tmp_path).expect(0)
    installer.uninstall(venv, name)
    assert not list(venv.site_packages.glob(f"{name}*"))


def write_patches(folder: Path, name: str, changes: list[tuple[str, bytes, bytes]]) -> dict[str, bytes]:
    diffs = {f"p{number}": make_diff({path: a}, {path: b}) for number, (path, a, b) in enumerate(changes)}
    patches = []
    for patch, diff in diffs.items():
        put(folder / f"own/{patch}.patch", diff)
        variant = {"versions": ">=0", "file": f"{patch}.patch"}
        patches.append({"name": patch, "default": False, "variant": [variant]})
    table = {"schema": 1, "name": "own", "distribution": name, "patch": patches}
    put(folder / "own/patchset.toml", to_toml(table).encode())
    return diffs


@pytest.mark.parametrize("by", ["pip", "uv-hardlink"])
def test_flashinfer_across_the_release_where_its_module_moved(
    by: str,
    tmp_path: Path,
    bare: Venv,
    wheel_cache: Callable[..., Path],
    uv: Path,
    uv_cache: Path,
    uv_install: UvInstall,
) -> None:
    venv = copy_venv(bare, tmp_path / "venv")
    installer = Installer(by, uv, uv_cache, uv_install)
    installer.install(venv, wheel_cache("0.6.3", "flashinfer-python"))
    where = ("--site-packages", venv.site_packages)
    sets = ("--patches", CHECKOUT / "patches")
    worlds.run(*patchkit_command(), "apply", *where, *sets, cwd=tmp_path).expect(0)
    installer.install(venv, wheel_cache("0.7.4", "flashinfer-python"))

    def drift(*more: Any) -> dict[str, Any]:
        document = worlds.run(*patchkit_command(), "drift", "--json", *where, *more, cwd=tmp_path).expect(1).json()
        return {row["patch"]: row for row in document["drift"]}

    alone = drift()
    disable = alone["fp4-quantize-compiler-disable"]
    assert (disable["cause"], disable["state"]) == ("upgraded", "no-variant")
    assert "fp4_quantize is now in flashinfer/quantization/fp4_quantization.py" in disable["detail"]
    with_sets = drift(*sets)
    assert {row["state"] for row in with_sets.values()} == {"pending"}
    assert all("offset" in row["detail"] for row in with_sets.values())
    worlds.run(*patchkit_command(), "apply", *where, *sets, cwd=tmp_path).expect(0)
    worlds.run(*patchkit_command(), "drift", *where, *sets, cwd=tmp_path).expect(0)
    patched = venv.site_packages / "flashinfer/quantization/fp4_quantization.py"
    assert b"torch.compiler.disable" in patched.read_bytes()
    installer.uninstall(venv, "flashinfer-python")
    worlds.run(*patchkit_command(), "revert", "--all", *where, cwd=tmp_path).expect(0)
    assert not [path for path in venv.site_packages.iterdir() if "flashinfer" in path.name or path.name == ".patchkit"]
