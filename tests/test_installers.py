"""Living with pip and uv: upgrades, uninstalling, shared files, other users, compiled files. Wheels are made here."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import worlds
from installers import INSTALLERS, Installer, contents, copy_venv, git_diff, identities, stamps
from patchkit.cli import main
from worlds import Entry, Finished, RunPatchkit, UvInstall, Venv, tree, without_bytecode

DISTRIBUTION = "some-dist"
STATE = ".patchkit"
VERSIONS = ("1.0", "2.0", "3.0")
Patchkit = Callable[..., Finished]
Files = dict[str, str]
Start = Callable[..., None]
Wheels = Mapping[str, Path]


# ---- a distribution in three versions, and a patch set with a patch of every kind ------------------------------


def release(version: str) -> Files:
    """The files of a release: every version has other text around what is patched."""
    return {
        "some_dist/__init__.py": "",
        "some_dist/core.py": f"RELEASE = '{version}'\n\n\ndef answer():\n    return 'shipped in {version}'\n",
        "some_dist/gone.py": f"NAME = 'gone {version}'\n",
        "some_dist/old_name.py": "".join(f"LINE_{number} = {number}, '{version}'\n" for number in range(12)),
        "some_dist/tool": f"#!/bin/sh\necho {version}\n",
    }


MODES = {"some_dist/tool": 0o755}
NEW_FILES = ("some_dist/extra/__init__.py", "some_dist/extra/deep/new.py", "some_dist/new_name.py")
GONE_FILES = ("some_dist/gone.py", "some_dist/old_name.py")


def modify(files: Files) -> Files:
    return files | {"some_dist/core.py": files["some_dist/core.py"].replace("shipped", "patched")}


def create(files: Files) -> Files:
    return files | {"some_dist/extra/__init__.py": "", "some_dist/extra/deep/new.py": "VALUE = 'created'\n"}


def delete(files: Files) -> Files:
    return {path: text for path, text in files.items() if path != "some_dist/gone.py"}


def rename(files: Files) -> Files:
    text = files["some_dist/old_name.py"].replace("LINE_5", "RENAMED")
    return {path: text for path, text in files.items() if path != "some_dist/old_name.py"} | {
        "some_dist/new_name.py": text
    }


def same(files: Files) -> Files:
    return files


KINDS: dict[str, Callable[[Files], Files]] = {
    "create": create,
    "delete": delete,
    "mode": same,
    "modify": modify,
    "rename": rename,
}


def patched(files: Files) -> Files:
    for change in KINDS.values():
        files = change(files)
    return files


def write_set(folder: Path, diffs: Mapping[str, Mapping[str, str]]) -> None:
    """A patch set for the distribution; ``diffs`` are by patch, then by version."""
    folder.mkdir(parents=True)
    lines = ["schema = 1", f'name = "{folder.name}"', f'distribution = "{DISTRIBUTION}"', 'summary = "for the tests"']
    for name, variants in diffs.items():
        lines += ["[[patch]]", f'name = "{name}"', f'summary = "{name}"']
        for version, diff in variants.items():
            file = f"{name}.{version}.patch"
            (folder / file).write_text(diff)
            lines += ["[[patch.variant]]", f'versions = "=={version}"', f'file = "{file}"']
    (folder / "patchset.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, make_wheel: Callable[..., Path]) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    return {version: make_wheel(folder, DISTRIBUTION, version, release(version), modes=MODES) for version in VERSIONS}


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("patches")
    diffs: dict[str, dict[str, str]] = {
        name: {
            version: git_diff(
                folder / ".git-work" / f"{name}-{version}",
                release(version),
                change(release(version)),
                old_modes=MODES,
                new_modes={} if name == "mode" else MODES,
            )
            for version in VERSIONS
        }
        for name, change in KINDS.items()
    }
    assert "new file mode" in diffs["create"]["1.0"]
    assert "deleted file mode" in diffs["delete"]["1.0"]
    assert "rename to some_dist/new_name.py" in diffs["rename"]["1.0"]
    assert diffs["mode"]["1.0"].splitlines()[1:] == ["old mode 100755", "new mode 100644"]
    write_set(folder / "every-kind", diffs)
    return folder


# ---- environments ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installers(uv: Path, uv_cache: Path, uv_install: UvInstall) -> Mapping[str, Installer]:
    return {name: Installer(name, uv, uv_cache, uv_install) for name in INSTALLERS}


@pytest.fixture(params=INSTALLERS)
def installer(request: pytest.FixtureRequest, installers: Mapping[str, Installer]) -> Installer:
    return installers[request.param]


@pytest.fixture(params=["pip", "uv-hardlink"])
def either(request: pytest.FixtureRequest, installers: Mapping[str, Installer]) -> Installer:
    """Both installers, where the link mode does not matter."""
    return installers[request.param]


@pytest.fixture(scope="module")
def empty_venv(tmp_path_factory: pytest.TempPathFactory, make_venv: Callable[..., Venv]) -> Venv:
    return make_venv(tmp_path_factory.mktemp("empty") / "venv", with_pip=False)


@pytest.fixture
def venv(tmp_path: Path, empty_venv: Venv) -> Venv:
    return copy_venv(empty_venv, tmp_path / "venv")


@pytest.fixture(scope="module")
def pip_made(
    tmp_path_factory: pytest.TempPathFactory,
    empty_venv: Venv,
    installers: Mapping[str, Installer],
    wheels: Wheels,
) -> Mapping[bool, Venv]:
    """An environment in which pip installed version 1.0, with compiled files and without."""
    made = {}
    for compiled in (False, True):
        made[compiled] = copy_venv(empty_venv, tmp_path_factory.mktemp("pip-made") / "venv")
        installers["pip"].install(made[compiled], wheels["1.0"], compiled=compiled)
    return made


@pytest.fixture
def start(venv: Venv, wheels: Wheels, pip_made: Mapping[bool, Venv]) -> Callable[..., None]:
    """``start(installer, compiled=False)``: version 1.0 is in ``venv``. Of what pip does it is a copy: pip is slow."""

    def begin(installer: Installer, *, compiled: bool = False) -> None:
        if installer.name == "pip":
            shutil.copytree(pip_made[compiled].site_packages, venv.site_packages, dirs_exist_ok=True)
        else:
            installer.install(venv, wheels["1.0"], compiled=compiled)

    return begin


@pytest.fixture
def run(venv: Venv, patches: Path) -> Patchkit:
    """patchkit on the site root of ``venv``, with the patch set of every kind."""

    def command(*args: str, on: Venv = venv, sets: Path = patches) -> Finished:
        return run_main(*args, "--site-packages", str(on.site_packages), "--patches", str(sets))

    return command


def run_main(*args: str) -> Finished:
    """The whole command without a process of its own, for speed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(args)
    return Finished(args, code, out.getvalue(), err.getvalue())


def record(venv: Venv, version: str = "1.0") -> Path:
    return venv.site_packages / f"some_dist-{version}.dist-info" / "RECORD"


def look(venv: Venv) -> dict[str, Entry]:
    return without_bytecode(tree(venv.site_packages))


def sources(venv: Venv) -> Files:
    """The files of the distribution, without its metadata and compiled files."""
    return {
        path: data.decode()
        for path, (_, data) in contents(venv.site_packages).items()
        if path.partition("/")[0] == "some_dist"
    }


def is_executable(venv: Venv) -> bool:
    return bool((venv.site_packages / "some_dist/tool").stat().st_mode & stat.S_IXUSR)


def objects(venv: Venv) -> set[bytes]:
    return {path.read_bytes() for path in (venv.site_packages / STATE / "objects").iterdir()}


def states(report: Any) -> dict[str, str]:
    return {row["patch"]: row["state"] for row in report["patches"]}


def list_distributions(venv: Venv) -> list[str]:
    program = "import importlib.metadata as m; print(*[d.metadata['Name'] for d in m.distributions()])"
    return venv.run("-c", program).expect().out.split()


def import_everything(venv: Venv) -> None:
    """Import every module of the distribution that is there, so that compiled files lie beside them all."""
    program = (
        "import pkgutil, importlib, some_dist\n"
        "for found in pkgutil.walk_packages(some_dist.__path__, 'some_dist.'): importlib.import_module(found.name)"
    )
    venv.run("-c", program).expect()
    assert list(venv.site_packages.glob("some_dist/__pycache__/core.*.pyc"))


# ---- to and fro -----------------------------------------------------------------------------------------------


def test_every_kind_of_patch_comes_and_goes(installer: Installer, start: Start, venv: Venv, run: Patchkit) -> None:
    start(installer)
    before, bytes_before = look(venv), contents(venv.site_packages)
    shipped_record = record(venv).read_bytes()
    assert set(states(run("check", "--json").expect().json()).values()) == {"pending"}
    assert look(venv) == before

    run("apply").expect()
    assert sources(venv) == patched(release("1.0"))
    assert not is_executable(venv)
    run("verify").expect()
    left = stamps(venv.root)
    run("apply").expect()
    run("status", "--exit-code").expect()
    assert stamps(venv.root) == left

    run("revert", "--all").expect()
    assert record(venv).read_bytes() == shipped_record
    assert contents(venv.site_packages) == bytes_before
    expected = {
        path: entry if entry.kind != "link" or path not in touched() else look(venv)[path]
        for path, entry in before.items()
    }
    assert look(venv) == expected
    assert not any(entry.kind == "link" for path, entry in look(venv).items() if path in touched())


def touched() -> set[str]:
    """What the patch set writes, RECORD aside."""
    return {"some_dist/core.py", "some_dist/tool", *GONE_FILES}


def test_a_created_file_has_a_record_row_in_the_line_ends_of_record(
    installer: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(installer)
    shipped = record(venv).read_bytes()
    end = "\r\n" if b"\r\n" in shipped else "\n"
    run("apply").expect()
    grown = record(venv).read_bytes()
    assert grown.startswith(shipped)
    rows = grown[len(shipped) :].decode().split(end)
    expected = [
        f"{path},{worlds.record_digest(data)},{len(data)}"
        for path in NEW_FILES
        for data in [(venv.site_packages / path).read_bytes()]
    ]
    assert sorted(rows) == sorted(["", *expected])
    run("revert", "--all").expect()
    assert record(venv).read_bytes() == shipped


RECORD_FORMS: dict[str, Callable[[bytes], bytes]] = {
    "LF": lambda data: data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "LF and no final newline": lambda data: data.removesuffix(b"\n"),
    "CRLF and no final newline": lambda data: data.replace(b"\n", b"\r\n").removesuffix(b"\r\n"),
}


@pytest.mark.parametrize("form", RECORD_FORMS)
def test_record_comes_back_in_whatever_form_it_was(
    form: str, either: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(either)
    written = RECORD_FORMS[form](record(venv).read_bytes().replace(b"\r\n", b"\n"))
    record(venv).write_bytes(written)
    run("apply").expect()
    grown = record(venv).read_bytes()
    assert grown.startswith(written)
    assert (b"\r\n" in grown) == form.startswith("CRLF")
    assert grown.count(b"\n") == written.count(b"\n") + len(NEW_FILES)
    run("revert", "--all").expect()
    assert record(venv).read_bytes() == written
    run("apply").expect()
    import_everything(venv)
    either.uninstall(venv, DISTRIBUTION)
    run("revert", "--all").expect()
    assert tree(venv.site_packages) == {}


# ---- uninstalling and upgrading -------------------------------------------------------------------------------


def test_a_patched_distribution_is_uninstalled_with_all_that_its_patches_made(
    installer: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(installer, compiled=installer.name in ("pip", "uv-hardlink"))
    run("apply").expect()
    import_everything(venv)
    installer.uninstall(venv, DISTRIBUTION)
    assert {path.partition("/")[0] for path in tree(venv.site_packages)} == {STATE}
    assert list_distributions(venv) == []
    assert run("apply").exit_code == 4
    assert {path.partition("/")[0] for path in tree(venv.site_packages)} == {STATE}
    assert set(states(run("status", "--json").expect().json()).values()) == {"not-installed"}
    run("revert", "--all").expect()
    assert tree(venv.site_packages) == {}


def test_a_reverted_distribution_is_uninstalled_without_a_trace(
    installer: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(installer, compiled=installer.name in ("pip", "uv-hardlink"))
    run("apply").expect()
    import_everything(venv)
    run("revert", "--all").expect()
    import_everything(venv)
    installer.uninstall(venv, DISTRIBUTION)
    assert tree(venv.site_packages) == {}


def test_after_each_upgrade_the_variant_of_that_version_is_applied(
    either: Installer, venv: Venv, tmp_path: Path, empty_venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    for version in (*VERSIONS, "1.0"):  # the last step goes back
        either.install(venv, wheels[version])
        assert sources(venv) == release(version)
        assert run("status", "--exit-code").exit_code == 1
        rows = run("apply", "--json").expect().json()["patches"]
        assert {row["variant"] for row in rows} == {f"{name}.{version}.patch" for name in KINDS}
        assert {row["action"] for row in rows} <= {"applied", "updated"}
        assert sources(venv) == patched(release(version))
        run("verify").expect()
        held = b"\n".join(objects(venv)).decode()
        assert {other for other in VERSIONS if other in held} == {version}
    run("revert", "--all").expect()
    fresh = copy_venv(empty_venv, tmp_path / "fresh")
    either.install(fresh, wheels["1.0"])
    assert contents(venv.site_packages) == contents(fresh.site_packages)
    assert look(venv).keys() == look(fresh).keys()


def test_reverting_after_an_upgrade_leaves_the_new_version_as_it_was_shipped(
    installer: Installer, start: Start, venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    start(installer)
    run("apply").expect()
    installer.install(venv, wheels["2.0"])
    upgraded = {path: entry for path, entry in look(venv).items() if path.partition("/")[0] != STATE}
    untouched = {path: stamp for path, stamp in stamps(venv.site_packages).items() if path in upgraded}
    run("revert", "--all").expect()
    assert look(venv) == upgraded
    assert {path: stamp for path, stamp in stamps(venv.site_packages).items() if path in upgraded} == untouched
    assert sources(venv) == release("2.0")
    assert is_executable(venv)


def test_reverting_one_patch_after_an_upgrade_writes_no_old_bytes(
    either: Installer, start: Start, venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    either.install(venv, wheels["2.0"])
    for name in KINDS:
        run("revert", f"every-kind/{name}").expect()
        assert sources(venv) == release("2.0")
    assert not (venv.site_packages / STATE).exists()


def test_a_file_that_a_new_version_dropped_stays_away(
    either: Installer, start: Start, venv: Venv, tmp_path: Path, make_wheel: Callable[..., Path], run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    files: Files = {"some_dist/__init__.py": "", "some_dist/other.py": "NAME = 'other'\n"}
    either.install(venv, make_wheel(tmp_path / "4", DISTRIBUTION, "4.0", files))
    assert sources(venv) == files
    assert run("apply").exit_code == 4
    assert sources(venv) == files
    run("revert", "--all").expect()
    assert sources(venv) == files
    assert not (venv.site_packages / STATE).exists()


def test_a_file_that_a_patch_made_and_a_new_version_ships_is_the_new_versions(
    either: Installer, start: Start, venv: Venv, tmp_path: Path, make_wheel: Callable[..., Path], run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    files = release("2.0") | {"some_dist/extra/deep/new.py": "VALUE = 'shipped now'\n"}
    either.install(venv, make_wheel(tmp_path / "2", DISTRIBUTION, "2.0", files, modes=MODES))
    refused = run("apply")
    assert refused.exit_code == 5
    assert "some_dist/extra/deep/new.py" in refused.err
    assert sources(venv) == files
    run("revert", "--all").expect()
    assert sources(venv) == files
    assert not (venv.site_packages / STATE).exists()
    either.uninstall(venv, DISTRIBUTION)
    assert tree(venv.site_packages) == {}


def test_a_distribution_that_was_uninstalled_while_patched_is_installed_and_patched_anew(
    either: Installer, start: Start, venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    either.uninstall(venv, DISTRIBUTION)
    either.install(venv, wheels["2.0"])
    before = {path: entry for path, entry in look(venv).items() if path.partition("/")[0] != STATE}
    assert sources(venv) == release("2.0")
    run("apply").expect()
    assert sources(venv) == patched(release("2.0"))
    run("verify").expect()
    run("revert", "--all").expect()
    assert look(venv) == before


def test_one_patch_after_another_is_reverted_from_a_distribution_that_is_gone(
    either: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    either.uninstall(venv, DISTRIBUTION)
    for name in KINDS:
        assert (venv.site_packages / STATE).exists()
        run("revert", f"every-kind/{name}").expect()
    assert tree(venv.site_packages) == {}


def test_what_a_patch_did_to_another_distribution_stays_when_one_is_uninstalled(
    either: Installer,
    start: Start,
    venv: Venv,
    tmp_path: Path,
    make_wheel: Callable[..., Path],
    patches: Path,
    run: Patchkit,
) -> None:
    start(either)
    files = {"other_dist/__init__.py": "VALUE = 'shipped'\n"}
    changed = {"other_dist/__init__.py": "VALUE = 'patched'\n", "other_dist/new.py": "VALUE = 'new'\n"}
    either.install(venv, make_wheel(tmp_path / "other", "other-dist", "7", files))
    alone = {path: entry for path, entry in look(venv).items() if path.startswith("other_dist")}
    sets = shutil.copytree(patches, tmp_path / "sets", ignore=shutil.ignore_patterns(".git-work"))
    (sets / "other-dist==7.patch").write_text(git_diff(tmp_path / "git", files, changed))
    run("apply", sets=sets).expect()
    either.uninstall(venv, DISTRIBUTION)
    run("verify", "other-dist", sets=sets).expect()
    left = look(venv)
    ended = run("apply", "--json", sets=sets).expect().json()
    assert {row["set"]: row["state"] for row in ended["patches"]} == {
        "every-kind": "not-installed",
        "other-dist": "applied",
    }
    assert {path: entry for path, entry in look(venv).items() if path.partition("/")[0] != STATE} == {
        path: entry for path, entry in left.items() if path.partition("/")[0] != STATE
    }
    run("revert", "--all", sets=sets).expect()
    assert look(venv) == alone


def test_a_change_that_a_new_version_ships_is_upstreamed_and_no_longer_ours(
    either: Installer, venv: Venv, tmp_path: Path, make_wheel: Callable[..., Path], run: Patchkit
) -> None:
    sets = tmp_path / "sets"
    shipped, changed = "VALUE = 1\n\n\nLAST = 3\n", "VALUE = 1\nMIDDLE = 2\n\n\nLAST = 3\n"
    diff = git_diff(tmp_path / "git", {"some_dist/core.py": shipped}, {"some_dist/core.py": changed})
    write_set(sets / "fix", {"middle": {"8.0": diff, "9.0": diff}})
    for version, text in (("8.0", shipped), ("9.0", changed)):
        make_wheel(tmp_path / "wheels", DISTRIBUTION, version, {"some_dist/core.py": text})
    either.install(venv, next((tmp_path / "wheels").glob("*8.0*")))
    run("apply", sets=sets).expect()
    either.install(venv, next((tmp_path / "wheels").glob("*9.0*")))
    before = {path: entry for path, entry in look(venv).items() if path.partition("/")[0] != STATE}
    assert states(run("status", "--json", sets=sets).expect().json()) == {"middle": "upstreamed"}
    run("apply", sets=sets).expect()
    assert look(venv) == before
    run("revert", "--all", sets=sets).expect()
    assert look(venv) == before


def test_a_new_version_with_the_very_same_file_is_patched_anew(
    either: Installer, venv: Venv, tmp_path: Path, make_wheel: Callable[..., Path], run: Patchkit
) -> None:
    files = release("1.0")
    diff = git_diff(tmp_path / "git", files, modify(files))
    write_set(tmp_path / "sets" / "fix", {"modify": {"8.0": diff, "9.0": diff}})
    for version in ("8.0", "9.0"):
        either.install(venv, make_wheel(tmp_path / version, DISTRIBUTION, version, files))
        assert sources(venv) == files
        ended = run("apply", "--json", sets=tmp_path / "sets").expect().json()
        assert [row["action"] for row in ended["patches"]] == ["applied"]
        assert sources(venv) == modify(files)
        run("verify", sets=tmp_path / "sets").expect()
    run("revert", "--all", sets=tmp_path / "sets").expect()
    assert sources(venv) == files


def test_the_patched_file_of_an_old_version_is_not_replaced_by_the_old_shipped_bytes(
    either: Installer, start: Start, venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    core = venv.site_packages / "some_dist/core.py"
    old_patched = core.read_bytes()
    either.install(venv, wheels["2.0"])
    core.unlink()  # uv's cache has the same inode
    core.write_bytes(old_patched)  # as a build step does that copies a file it kept
    for words in (("revert", "--all"), ("revert", "every-kind/modify"), ("apply",), ("apply", "every-kind/modify")):
        assert "some_dist/core.py" in run(*words).expect(5).err
        assert core.read_bytes() == old_patched
    run("revert", "--all", "--discard-edits", "--wheel", str(wheels["2.0"])).expect()
    assert sources(venv) == release("2.0")


def test_after_an_upgrade_a_named_patch_is_applied_and_the_others_are_left_alone(
    either: Installer, start: Start, venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    either.install(venv, wheels["2.0"])
    run("apply", "every-kind/modify").expect()
    assert sources(venv) == modify(release("2.0"))
    found = states(run("status", "--json").expect().json())
    assert found.pop("modify") == "applied"
    assert set(found.values()) == {"drifted"}
    run("verify", "every-kind/modify").expect()
    run("verify").expect(1)
    run("apply").expect()
    assert sources(venv) == patched(release("2.0"))
    run("revert", "--all").expect()
    assert sources(venv) == release("2.0")
    assert not (venv.site_packages / STATE).exists()


def test_a_patch_without_a_variant_for_the_new_version_is_a_failure_until_it_is_waived(
    either: Installer, start: Start, venv: Venv, tmp_path: Path, wheels: Wheels, run: Patchkit
) -> None:
    start(either)
    files = {version: release(version) for version in ("1.0", "2.0")}
    diffs = {
        name: {v: git_diff(tmp_path / name / v, files[v], change(files[v])) for v in versions}
        for name, change, versions in (("delete", delete, ("1.0",)), ("modify", modify, ("1.0", "2.0")))
    }
    sets = tmp_path / "sets"
    write_set(sets / "fix", diffs)
    run("apply", sets=sets).expect()
    either.install(venv, wheels["2.0"])
    assert "no range holds some-dist 2.0" in run("apply", sets=sets).expect(4).err
    assert sources(venv) == files["2.0"]
    run("apply", "--skip-unmatched", sets=sets).expect()
    assert sources(venv) == modify(files["2.0"])
    assert states(run("status", "--json", sets=sets).expect().json()) == {"delete": "no-variant", "modify": "applied"}
    run("revert", "--all", sets=sets).expect()
    assert sources(venv) == files["2.0"]
    assert not (venv.site_packages / STATE).exists()


def test_a_file_that_somebody_put_beside_created_ones_stays_with_its_directory(
    either: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(either)
    run("apply").expect()
    notes = venv.site_packages / "some_dist/extra/notes.txt"
    notes.write_text("mine\n")
    run("revert", "--all").expect()
    assert sources(venv) == release("1.0") | {"some_dist/extra/notes.txt": "mine\n"}
    assert not (venv.site_packages / "some_dist/extra/deep").exists()
    assert not (venv.site_packages / STATE).exists()


def test_a_reinstall_of_the_same_version_is_patched_anew(
    either: Installer, start: Start, venv: Venv, wheels: Wheels, run: Patchkit
) -> None:
    start(either)
    before = look(venv)
    run("apply").expect()
    either.install(venv, wheels["1.0"], again=True)
    assert sources(venv) == release("1.0")
    run("verify").expect(1)
    assert set(states(run("status", "--json").expect().json()).values()) == {"drifted"}
    run("apply").expect()
    assert sources(venv) == patched(release("1.0"))
    run("verify").expect()
    run("revert", "--all").expect()
    assert look(venv) == before


# ---- what uv shares -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "clone", "copy"])
def test_uvs_cache_and_another_environment_keep_everything(
    mode: str,
    venv: Venv,
    tmp_path: Path,
    empty_venv: Venv,
    installers: Mapping[str, Installer],
    uv_cache: Path,
    wheels: Wheels,
    run: Patchkit,
) -> None:
    installer = installers[f"uv-{mode}"]
    other = copy_venv(empty_venv, tmp_path / "other")
    for place in (venv, other):
        installer.install(place, wheels["1.0"])
    core = venv.site_packages / "some_dist/core.py"
    assert core.is_symlink() == (mode == "symlink")
    assert mode != "hardlink" or core.stat().st_nlink >= 3
    assert mode != "copy" or core.stat().st_nlink == 1
    before = [(identities(place), tree(place)) for place in (uv_cache, other.site_packages)]

    for command in ("apply", "revert", "apply"):
        run(command, *["--all"] * (command == "revert")).expect()
        for path in touched() & look(venv).keys():
            status = (venv.site_packages / path).lstat()
            assert stat.S_ISREG(status.st_mode)
            assert status.st_nlink == 1
        assert [(identities(place), tree(place)) for place in (uv_cache, other.site_packages)] == before
    assert sources(venv) == patched(release("1.0"))
    assert sources(other) == release("1.0")
    run("apply", on=other).expect()
    run("revert", "--all").expect()
    assert sources(other) == patched(release("1.0"))
    fresh = copy_venv(empty_venv, tmp_path / "fresh")
    installer.install(fresh, wheels["1.0"])
    assert sources(fresh) == release("1.0")


def test_the_file_behind_a_link_becomes_private_and_stays_private_with_the_shipped_bytes(
    start: Start, venv: Venv, installers: Mapping[str, Installer], run: Patchkit
) -> None:
    start(installers["uv-symlink"])
    core = venv.site_packages / "some_dist/core.py"
    shared = core.resolve()
    run("apply", "every-kind/modify").expect()
    assert not core.is_symlink()
    assert core.read_text() == modify(release("1.0"))["some_dist/core.py"]
    run("revert", "--all").expect()
    assert not core.is_symlink()
    assert core.read_bytes() == shared.read_bytes()
    assert stat.S_IMODE(core.stat().st_mode) == stat.S_IMODE(shared.stat().st_mode)
    assert (venv.site_packages / "some_dist/gone.py").is_symlink()  # no patch was in it


# ---- nothing to write -----------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[None]:
    """Let other users reach ``path``; pytest's own folders are closed to them."""
    closed = [folder for folder in (path, *path.parents) if not folder.stat().st_mode & stat.S_IXOTH]
    modes = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in closed if folder.owner() == path.owner()}
    for folder, mode in modes.items():
        folder.chmod(mode | stat.S_IXOTH)
    yield
    for folder, mode in modes.items():
        folder.chmod(mode)


def as_somebody_who_may_not_write(cwd: Path, *words: str) -> Finished:
    """Run patchkit's `main` in a child as another user (where this one is root), or as this one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        ended = Finished(words, 99, "", "it did not come to an end")
        try:
            os.chdir(cwd)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            ended = run_main(*words)
        finally:
            with open(writing, "w") as pipe:
                pipe.write(f"{ended.out}\0{ended.err}")
            os._exit(ended.exit_code)
    os.close(writing)
    with open(reading) as pipe:
        out, _, err = pipe.read().partition("\0")
    _, status = os.waitpid(child, 0)
    return Finished(words, os.waitstatus_to_exitcode(status), out, err)


@pytest.fixture
def folder_of_sets(tmp_path: Path, patches: Path) -> Path:
    """A copy of the patch sets that other users can read."""
    copy = tmp_path / "sets"
    for source in (patches / "every-kind").iterdir():
        target = copy / "every-kind" / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    return copy


def lock_up(root: Path) -> None:
    """Take every right to write away from ``root`` and everything below it."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def test_a_user_without_write_permission_gets_every_answer_that_needs_no_write(
    start: Start, venv: Venv, tmp_path: Path, folder_of_sets: Path, installers: Mapping[str, Installer], run: Patchkit
) -> None:
    start(installers["pip"])
    words = ("--site-packages", str(venv.site_packages), "--patches", str(folder_of_sets))
    commands = {"apply": 0, "verify": 0, "check": 0, "status": 0, "recover": 0}
    run("apply", sets=folder_of_sets).expect()
    lock_up(venv.site_packages)
    for command in commands:  # what they import has to be there before this process gives up its rights
        assert main((command, *words)) == 0
    before = stamps(venv.root)
    with opened(tmp_path):
        for command, expected in commands.items():
            ended = as_somebody_who_may_not_write(tmp_path, command, *words).expect(expected)
            assert ended.err == ""
        as_somebody_who_may_not_write(tmp_path, "status", "--exit-code", *words).expect(0)
    assert stamps(venv.root) == before


def test_a_user_who_may_not_look_into_the_state_folder_is_told_so(
    installers: Mapping[str, Installer], start: Start, venv: Venv, run: Patchkit, folder_of_sets: Path
) -> None:
    start(installers["uv-copy"])
    run("apply").expect()
    (venv.site_packages / STATE).chmod(0o700 if os.geteuid() == 0 else 0)
    where = ("--site-packages", str(venv.site_packages), "--patches", str(folder_of_sets), "--json")
    with opened(venv.site_packages), opened(folder_of_sets):
        for command in ("status", "verify", "drift", "check", "apply"):
            said = as_somebody_who_may_not_write(venv.root, command, *where).expect(4)
            assert said.json()["error"]["code"] == "not-readable", command
    (venv.site_packages / STATE).chmod(0o755)


def test_a_user_without_write_permission_who_has_something_to_write_is_refused_before_any_write(
    start: Start, venv: Venv, tmp_path: Path, folder_of_sets: Path, installers: Mapping[str, Installer], run: Patchkit
) -> None:
    start(installers["pip"])
    words = ("--site-packages", str(venv.site_packages), "--patches", str(folder_of_sets))
    run("apply", sets=folder_of_sets).expect()  # for what it imports, below too
    assert main(("apply", *words)) == 0
    assert main(("revert", "--all", *words)) == 0
    lock_up(venv.site_packages)
    main(("apply", "--dry-run", *words))
    before = stamps(venv.root)
    with opened(tmp_path):
        as_somebody_who_may_not_write(tmp_path, "check", *words).expect(0)
        as_somebody_who_may_not_write(tmp_path, "status", *words).expect(0)
        as_somebody_who_may_not_write(tmp_path, "verify", *words).expect(1)
        as_somebody_who_may_not_write(tmp_path, "revert", "--all", *words).expect(0)
        refused = as_somebody_who_may_not_write(tmp_path, "apply", *words).expect(4)
    assert "not writable" in refused.err
    assert stamps(venv.root) == before


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/probe" 2>/dev/null && exec "$@"'


def read_only_words(root: Path) -> tuple[str, ...]:
    """What to put before a command so that ``root`` is a read-only file system for it; nothing where that cannot be."""
    words = ("unshare", "--mount", *["--map-root-user"] * (os.geteuid() != 0), "sh", "-c", READ_ONLY, str(root))
    try:
        possible = subprocess.run([*words, sys.executable, "-c", ""], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:  # macOS
        return ()
    return words if possible else ()


def test_on_a_read_only_file_system_a_no_op_is_a_success(
    start: Start, venv: Venv, tmp_path: Path, patches: Path, installers: Mapping[str, Installer], run: Patchkit
) -> None:
    start(installers["pip"])
    run("apply").expect()
    before = stamps(venv.root)
    readonly = read_only_words(venv.site_packages)
    if not readonly:
        lock_up(venv.site_packages)
        before = stamps(venv.root)
    options = ("--python", venv.python, "--patches", patches)
    for command in ("apply", "verify", "check", "status", "recover"):
        words = (*readonly, *worlds.patchkit_command(), command, *options)
        assert worlds.run(*words, cwd=tmp_path).expect(0).err == ""
    if readonly:
        words = (*readonly, *worlds.patchkit_command(), "revert", "--all", *options)
        assert "read-only" in worlds.run(*words, cwd=tmp_path).expect(4).err
    assert stamps(venv.root) == before


# ---- what a fresh interpreter runs ----------------------------------------------------------------------------

ANSWER = "from some_dist.core import answer; print(answer())"
COMPILERS = {
    "imported": ("-c", ANSWER),
    "optimised": ("-OO", "-c", ANSWER),
    "unchecked-hash": ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", "some_dist"),
    "checked-hash": ("-m", "compileall", "-q", "-f", "--invalidation-mode", "checked-hash", "some_dist"),
    "beside-the-source": ("-m", "compileall", "-q", "-f", "-b", "some_dist"),
}


def ask(venv: Venv, *options: str) -> str:
    return venv.run(*options, "-c", ANSWER).expect().out.strip()


@pytest.mark.parametrize("how", COMPILERS)
def test_a_fresh_interpreter_runs_what_is_in_the_source(
    how: str, start: Start, venv: Venv, installers: Mapping[str, Installer], run: Patchkit
) -> None:
    start(installers["pip"], compiled=True)
    core = venv.site_packages / "some_dist/core.py"
    options = ["-OO"] * (how == "optimised")
    shipped, size = core.stat(), len(modify(release("1.0"))["some_dist/core.py"])
    assert shipped.st_size == size
    for command, answer in (("apply", "patched in 1.0"), ("revert", "shipped in 1.0"), ("apply", "patched in 1.0")):
        venv.run(*COMPILERS[how], cwd=venv.site_packages).expect()
        run(command, *["--all"] * (command == "revert")).expect()
        assert core.stat().st_mtime_ns > shipped.st_mtime_ns
        # The worst case for Python: the old compiled file would have the size and the time of the new source.
        os.utime(core, ns=(shipped.st_atime_ns, shipped.st_mtime_ns))
        assert ask(venv, *options) == answer


def test_a_fresh_interpreter_runs_what_is_in_the_source_within_one_second(
    start: Start, venv: Venv, installers: Mapping[str, Installer], run: Patchkit
) -> None:
    start(installers["pip"])
    core = venv.site_packages / "some_dist/core.py"
    for command, answer in (("apply", "patched in 1.0"), ("revert", "shipped in 1.0")):
        os.utime(core, (time.time(), time.time()))
        ask(venv)
        run(command, *["--all"] * (command == "revert")).expect()
        assert ask(venv) == answer


def test_a_fresh_interpreter_finds_created_and_renamed_modules_and_no_deleted_ones(
    either: Installer, start: Start, venv: Venv, run: Patchkit
) -> None:
    start(either, compiled=True)
    program = (
        "import importlib.util as u\n"
        "names = ('extra.deep.new', 'new_name', 'gone', 'old_name')\n"
        "def found(name):\n"
        "    try: return u.find_spec('some_dist.' + name) is not None\n"
        "    except ModuleNotFoundError: return False\n"
        "print(*[name for name in names if found(name)])"
    )
    import_everything(venv)
    venv.run("-m", "compileall", "-q", "-b", "some_dist", cwd=venv.site_packages).expect()
    run("apply").expect()
    assert venv.run("-c", program).expect().out == "extra.deep.new new_name\n"
    import_everything(venv)
    run("revert", "--all").expect()
    assert venv.run("-c", program).expect().out == "gone old_name\n"
    assert not (venv.site_packages / "some_dist/extra").exists()


def test_no_compiled_file_is_written_by_a_command_that_runs_the_interpreter(
    start: Start, venv: Venv, patches: Path, installers: Mapping[str, Installer], patchkit: RunPatchkit
) -> None:
    start(installers["pip"])
    for command in (("apply",), ("verify",), ("status",), ("revert", "--all")):
        patchkit(*command, "--python", venv.python, "--patches", patches).expect()
        assert not [path for path in tree(venv.site_packages) if path.endswith(".pyc")]
