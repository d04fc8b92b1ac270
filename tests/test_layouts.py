"""Where site roots lie and what they share: Debian's and Fedora's, the system's, the user's, namespaces, copies."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import worlds
from rivals import interrupt
from stages import LINES, MOD, SHIPPED, TOOL, Stage, edit, make_diff, make_stage, patch, put, sample_wheel, with_line
from test_environment import BASE, environment_of, fill, make_conda, says
from worlds import Finished, LinkMode, RunPatchkit, UvInstall, Venv, record_digest, run, tree, without_bytecode

FIVE = b"line_5 = 'five'\n"
PATCHED = with_line(5, FIVE)
NEW = "some_dist/deep/new.py"
ASK = "import some_dist.mod; print(some_dist.mod.line_5)"


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    """A patch that changes a file and creates another."""
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", make_diff({MOD: b"".join(LINES)}, {MOD: PATCHED, NEW: b"x = 1\n"})))
    return stage


def there_and_back(stage: Stage, site: Path, *where: str | Path) -> None:
    """Every command on ``site``, which ``where`` tells them of."""
    shipped = without_bytecode(tree(site))

    def patchkit(*args: str) -> None:
        assert environment_of(says(stage, *args, *where)) == str(site)

    patchkit("check")
    patchkit("apply")
    assert (site / MOD).read_bytes() == PATCHED
    patchkit("verify")
    applied = tree(site)
    patchkit("apply")
    patchkit("status", "--exit-code")
    assert without_bytecode(tree(site)) == without_bytecode(applied)
    patchkit("revert", "--all")
    assert without_bytecode(tree(site)) == shipped


# ---- Debian ---------------------------------------------------------------------------------------------------

DEBIAN = Path("/usr/bin/python3")
MOUNT = 'mount --bind "$0" "$1" && shift && exec "$@"'


def write_hex(record: Path) -> None:
    """Digests as Debian's packages of Python distributions have them."""
    rows = [row.split(",") for row in record.read_text().splitlines()]
    for row in rows:
        data = (record.parent.parent / row[0]).read_bytes()
        row[1] = row[1] and f"sha256={hashlib.sha256(data).hexdigest()}"
    record.write_text("".join(",".join(row) + "\n" for row in rows))


def test_a_root_in_the_layout_of_debian_is_patched_by_its_name(stage: Stage) -> None:
    site = stage.folder / "usr/lib/python3/dist-packages"
    shutil.copytree(stage.site, site)
    write_hex(site / stage.record.relative_to(stage.site))
    put(site / "apt_pkg.cpython-311-x86_64-linux-gnu.so", b"\x7fELF")
    put(site / "some_old_dist-1.0.egg-info", b"Name: some-old-dist\n")
    there_and_back(stage, site, "--site-packages", site)


def test_the_interpreter_of_debian_has_its_roots_in_dist_packages(stage: Stage, patchkit: RunPatchkit) -> None:
    """Debian's own folder is not written to: in a mount namespace another one lies over it."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    root = Path(run(DEBIAN, "-c", ask, cwd=stage.folder).out.strip()) if DEBIAN.exists() else Path()
    if root.name != "dist-packages" or not root.is_dir():
        pytest.skip("this is no Debian with a Python of its own")
    said = patchkit("status", "--python", DEBIAN, "--patches", stage.patches).expect()
    assert environment_of(said).endswith("dist-packages")
    before = ("unshare", "--mount", *["--map-root-user"] * (os.geteuid() != 0), "sh", "-c", MOUNT, stage.site, root)
    if subprocess.run([*map(str, before), "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    untouched = sorted(os.listdir(root))

    def inside(*args: str) -> Finished:
        words = (*before, *worlds.patchkit_command(), *args, "--python", DEBIAN, "--patches", stage.patches)
        said = run(*words, cwd=stage.folder).expect()
        assert environment_of(said) == str(root)
        return said

    shipped = stage.tree()
    inside("apply")
    assert run(*before, DEBIAN, "-B", "-c", ASK, cwd=stage.folder).expect().out == "five\n"
    inside("verify")
    inside("revert", "--all")
    assert stage.tree() == shipped
    assert sorted(os.listdir(root)) == untouched


# ---- Fedora ---------------------------------------------------------------------------------------------------


def make_lib64(stage: Stage) -> tuple[Path, Path, Path]:
    """An interpreter with lib64 beside lib, as Fedora's: itself, the root for pure Python, and the one for the rest."""
    prefix, library = stage.folder / "fedora", f"python{sys.version_info.major}.{sys.version_info.minor}"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(BASE, prefix / "bin/python-of-fedora")
    roots = [prefix / folder / library / "site-packages" for folder in ("lib", "lib64")]
    for root in roots:
        root.mkdir(parents=True)
    for entry in Path(sysconfig.get_path("stdlib")).iterdir():
        if entry.name not in ("site-packages", "dist-packages", "sitecustomize.py"):
            for root in roots:
                (root.parent / entry.name).symlink_to(entry)
    start = f'#!/bin/sh\nPYTHONPLATLIBDIR=lib64 exec "{prefix}/bin/python-of-fedora" "$@"\n'
    python = put(prefix / "bin/python", start.encode(), 0o755)
    said = run(python, "-c", "import site, sys; print(sys.prefix, *site.getsitepackages())", cwd=prefix)
    if said.out.split() != [str(prefix), str(roots[1]), str(roots[0])]:
        pytest.skip("this Python cannot be moved to a prefix with lib64")
    return python, *roots


def test_lib64_beside_lib_are_two_site_roots_and_the_one_with_the_distribution_is_meant(
    stage: Stage, patchkit: RunPatchkit
) -> None:
    python, pure, compiled = make_lib64(stage)
    shutil.copytree(stage.site, pure, dirs_exist_ok=True)
    said = patchkit("check", "--python", python, "--patches", stage.patches).expect()
    assert environment_of(said) == str(pure)
    shutil.rmtree(pure)
    pure.mkdir()
    shutil.copytree(stage.site, compiled, dirs_exist_ok=True)
    there_and_back(stage, compiled, "--python", python)


def test_a_copy_in_lib_and_one_in_lib64_are_refused_with_both_paths(stage: Stage, patchkit: RunPatchkit) -> None:
    python, *roots = make_lib64(stage)
    for site in roots:
        shutil.copytree(stage.site, site, dirs_exist_ok=True)
    said = patchkit("apply", "--python", python, "--patches", stage.patches).expect(4)
    assert "installed on 2 site roots" in said.err and all(str(root) in said.err for root in roots)


def test_a_lib64_that_is_a_link_to_lib_is_the_same_root(stage: Stage, patchkit: RunPatchkit) -> None:
    venv = fill(worlds.make_venv(stage.folder / "venv", with_pip=False), stage)
    link = venv.root / "lib64"
    if not link.exists():
        link.symlink_to("lib")
    behind = link / venv.site_packages.relative_to(venv.root / "lib")
    options = ("--patches", stage.patches)
    patchkit("apply", "--python", venv.python, *options).expect()
    patchkit("verify", "--site-packages", behind, *options).expect()
    patchkit("revert", "--all", "--site-packages", behind, *options).expect()
    assert environment_of(patchkit("check", "--python", venv.python, *options).expect()) == str(venv.site_packages)


# ---- what an environment sees of others -----------------------------------------------------------------------


def test_a_copy_in_the_system_below_is_neither_taken_nor_touched(stage: Stage, patchkit: RunPatchkit) -> None:
    system = make_conda(stage)
    inner = worlds.make_venv(stage.folder / "inner", with_pip=False, system_site_packages=True, python=system.python)
    untouched = tree(system.site_packages)
    options = ("--python", inner.python, "--patches", stage.patches)
    said = patchkit("apply", *options).expect(4)
    assert f"some-dist is installed in {system.site_packages}, outside the environment" in said.err
    fill(inner, stage)
    there_and_back(stage, inner.site_packages, "--python", inner.python)
    patchkit("apply", *options).expect()
    assert inner.run("-B", "-c", ASK).out == "five\n"
    assert tree(system.site_packages) == untouched


def test_the_user_site_is_outside_a_virtual_environment_that_sees_it(stage: Stage, patchkit: RunPatchkit) -> None:
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False, system_site_packages=True)
    env = {"PYTHONUSERBASE": str(stage.folder / "user")}
    ask = "import site; print(site.getusersitepackages())"
    user = Path(run(venv.python, "-c", ask, cwd="/", env=worlds.clean_environment(env)).out.strip())
    shutil.copytree(stage.site, user)
    said = patchkit("apply", "--python", venv.python, "--patches", stage.patches, env=env).expect(4)
    assert f"some-dist is installed in {user}, outside the environment" in said.err
    assert tree(user) == stage.tree()


@pytest.mark.parametrize("mode", ["copy", "symlink"])
def test_a_folder_that_uv_filled_by_target(mode: LinkMode, stage: Stage, uv_install: UvInstall, tmp_path: Path) -> None:
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    site = stage.folder / "target"
    uv_install(venv, "--target", site, sample_wheel(tmp_path / "wheels"), link_mode=mode)
    if mode == "copy":
        there_and_back(stage, site, "--site-packages", site)
        return
    shared = (site / MOD).resolve()
    for command in (["apply"], ["verify"], ["revert", "--all"], ["apply"]):
        says(stage, *command, "--site-packages", site)
        assert shared.read_bytes() == b"".join(LINES)
    assert not (site / MOD).is_symlink() and (site / MOD).read_bytes() == PATCHED
    assert (site / TOOL).is_symlink()


# ---- namespaces -----------------------------------------------------------------------------------------------

ONE, TWO = "company/one/mod.py", "company/two/mod.py"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_two_distributions_in_one_namespace_keep_apart(
    installer: str, stage: Stage, tmp_path: Path, uv_install: UvInstall
) -> None:
    wheels = [
        sample_wheel(tmp_path / "wheels", name=f"company-{path.split('/')[1]}", files={path: b"x = 1\n"})
        for path in (ONE, TWO)
    ]
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    if installer == "pip":
        worlds.pip_install(venv, "--no-compile", *wheels)
    else:
        uv_install(venv, *wheels)
    site, shipped = venv.site_packages, without_bytecode(tree(venv.site_packages))
    made = {ONE: b"x = 2\n", "company/one/new.py": b"", "company/three/__init__.py": b"y = 3\n"}
    stage.add("fix", patch("one", make_diff({ONE: b"x = 1\n"}, made)), distribution="company-one")
    says(stage, "apply", "--site-packages", site)
    ask = "import company.one.mod, company.two.mod, company.three; print(company.one.mod.x, company.two.mod.x)"
    assert venv.run("-B", "-c", ask).expect().out == "2 1\n"
    worlds.pip_uninstall(venv, "company-two")
    says(stage, "verify", "--site-packages", site)
    says(stage, "revert", "--all", "--site-packages", site)
    left = {path: entry for path, entry in shipped.items() if "two" not in path}
    assert without_bytecode(tree(site)) == left
    says(stage, "apply", "--site-packages", site)
    worlds.pip_uninstall(venv, "company-one")
    says(stage, "revert", "--all", "--site-packages", site)
    assert tree(site).keys() <= {"company"}  # which pip leaves behind, patched or not


def test_the_file_of_a_neighbour_in_the_namespace_is_refused(stage: Stage, tmp_path: Path) -> None:
    shutil.rmtree(stage.site)
    wheels = [
        sample_wheel(tmp_path / "wheels", name=f"company-{path.split('/')[1]}", files={path: b"x = 1\n"})
        for path in (ONE, TWO)
    ]
    stage.install_site(stage.site, *wheels)
    stage.add("fix", patch("one", make_diff({TWO: b"x = 1\n"}, {TWO: b"x = 2\n"})), distribution="company-one")
    before = stage.tree()
    assert "not in the RECORD of company-one" in stage.run("apply").expect(3).err
    assert stage.tree() == before


# ---- an environment that moves --------------------------------------------------------------------------------


@pytest.fixture
def applied(stage: Stage) -> Venv:
    """A virtual environment in which the patch is applied."""
    venv = fill(worlds.make_venv(stage.folder / "venv", with_pip=False), stage)
    says(stage, "apply", "--python", venv.python)
    return venv


def elsewhere(venv: Venv, root: Path) -> Venv:
    return Venv(root, *(root / part.relative_to(venv.root) for part in (venv.python, venv.site_packages)))


@pytest.mark.parametrize("how", [["mv"], ["cp", "-r"], ["cp", "-rL"], ["cp", "-al"]], ids=" ".join)
def test_an_environment_that_was_moved_or_copied_goes_on(how: list[str], stage: Stage, applied: Venv) -> None:
    target = elsewhere(applied, stage.folder / "another place/venv")
    target.root.parent.mkdir()
    run(*how, applied.root, target.root, cwd=stage.folder).expect()
    kept = None if how == ["mv"] else tree(applied.site_packages)
    if how == ["cp", "-rL"]:  # the interpreter itself was copied, and does not find its library
        target = Venv(target.root, applied.python, target.site_packages)
    where = ("--site-packages", target.site_packages, "--python", target.python)
    says(stage, "status", "--exit-code", *where)
    says(stage, "verify", *where)
    before = tree(target.site_packages)
    says(stage, "apply", *where)
    assert without_bytecode(tree(target.site_packages)) == without_bytecode(before)
    says(stage, "revert", "--all", *where)
    assert without_bytecode(tree(target.site_packages)) == stage.tree()
    says(stage, "apply", *where)
    says(stage, "verify", *where)
    if kept is not None:
        assert tree(applied.site_packages) == kept
        says(stage, "verify", "--python", applied.python)


def test_the_state_folder_holds_no_path_of_this_machine(stage: Stage, applied: Venv) -> None:
    state = applied.site_packages / ".patchkit"
    texts = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    assert {path.name for path in texts} >= {"ledger.json"}
    interrupt(stage)
    texts |= {path: path.read_bytes() for path in (stage.site / ".patchkit").rglob("*") if path.is_file()}
    journals = [path for path in texts if path.name == "journal.json"]
    assert journals
    own = str(stage.folder).encode()
    assert [path for path, text in texts.items() if own in text and path.parent.name != "objects"] == []


def test_a_lost_state_folder_is_made_anew_from_what_record_proves(stage: Stage, applied: Venv) -> None:
    """What was changed is adopted; what was created has its row in RECORD, and counts as shipped from then on."""
    stage.add("fix", patch("one", edit(5, FIVE)), patch("two", make_diff({}, {NEW: b"x = 1\n"})))
    shutil.rmtree(applied.site_packages / ".patchkit")
    said = says(stage, "apply", "--python", applied.python)
    assert "adopted" in said.out and "upstreamed" in said.out
    says(stage, "verify", "--python", applied.python)
    says(stage, "revert", "--all", "--python", applied.python)
    assert (applied.site_packages / MOD).read_bytes() == b"".join(LINES)


def test_rows_of_every_kind_stand_in_one_record(stage: Stage) -> None:
    """Hex, another algorithm, none, and a wrong one: the first three can be patched, the last is somebody's edit."""
    stage.add("fix", patch("one", edit(5, FIVE)))
    digests = {
        "hex": f"sha256={hashlib.sha256(stage.read()).hexdigest()}",
        "sha512": f"sha512={hashlib.sha512(stage.read()).hexdigest()}",
        "none": "",
    }
    for field in digests.values():
        stage.change_record(MOD, field)
        shipped = stage.tree()
        stage.run("apply").expect()
        stage.run("verify").expect()
        stage.run("revert", "--all").expect()
        assert stage.tree() == shipped
    stage.change_record(MOD, record_digest(SHIPPED[TOOL] or b""))
    before = stage.tree()
    assert "edited, or RECORD is wrong" in stage.run("apply").expect(5).err
    assert stage.tree() == before
