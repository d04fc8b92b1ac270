"""Drift: every cause as real pip and real uv produce it, in text, JSON and exit code; and the remedies, typed."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import worlds
from installers import Installer, copy_venv
from patchkit.cli import main
from rivals import wait_for
from stages import make_diff, put, to_toml
from worlds import Finished, UvInstall, Venv, patchkit_command, tree, without_bytecode

CORE = "demo_dist/core.py"
EXTRA = "demo_dist/extra.py"


def core(answer: str = "40 + 2", other: str = "'other'", top: int = 0) -> bytes:
    middle = "".join(f"LINE_{number} = {number}\n" for number in range(12))
    head = '"""Answers."""\n\nimport os\n' + "# a comment\n" * top
    return f"{head}\n\ndef answer():\n    return {answer}\n\n\n{middle}\n\ndef other():\n    return {other}\n".encode()


SHIPPED = core()
FIXED = core("42", "'fixed'")
RELEASES: dict[str, Mapping[str, bytes]] = {
    "1.0": {CORE: SHIPPED},
    "2.0": {CORE: core(top=5)},  # fits, at an offset
    "3.0": {CORE: core("6 * 7")},  # hunk 1 conflicts
    "4.0": {CORE: core("42", "'fixed'", top=3)},  # upstream has all of it
    "5.0": {CORE: core("42")},  # upstream has one hunk of two
    "6.0": {"demo_dist/deep/moved.py": SHIPPED},  # the functions moved
    "7.0": {CORE: core()},  # not needed, says the manifest
    "8.0": {CORE: core(top=1)},  # no range holds it
}


BOTH = pytest.mark.parametrize("world", ["pip", "uv-hardlink"], indirect=True)


@dataclass(frozen=True)
class World:
    """An environment with demo-dist in it, an installer, and a patch folder."""

    folder: Path
    venv: Venv
    installer: Installer
    wheels: Mapping[str, Path]

    @property
    def elsewhere(self) -> Path:
        """The current folder of everything here: one in which no patch folder lies."""
        return self.folder / "elsewhere"

    @property
    def patches(self) -> Path:
        return self.folder / "patches"

    def install(self, version: str, *, again: bool = False) -> None:
        self.installer.install(self.venv, self.wheels[version], again=again)

    def run(self, *args: str, patches: bool = True) -> Finished:
        """The command: a real process where it starts one or is killed, else without one of its own, for speed."""
        where = ["--python", str(self.venv.python)] + ["--patches", str(self.patches)] * patches
        if args[0] == "run":  # options stand before what is to be run
            return worlds.run(*patchkit_command(), "run", *where, *args[1:], cwd=self.elsewhere)
        return run_main(*args, *where)

    def process(self, *args: str) -> Finished:
        return worlds.run(
            *patchkit_command(), *args, "--python", self.venv.python, "--patches", self.patches, cwd=self.elsewhere
        )

    def drift(self, *args: str, patches: bool = True) -> list[dict[str, Any]]:
        """The rows of the report, whose exit code must go with them."""
        said = self.run("drift", "--json", *args, patches=patches)
        document = said.json()
        rows: list[dict[str, Any]] = document["drift"]
        assert (said.exit_code, document["exit_code"], document["ok"]) == ((1, 1, False) if rows else (0, 0, True))
        return rows

    def causes(self, *, patches: bool = True) -> dict[str, str]:
        return {row["patch"]: row["cause"] for row in self.drift(patches=patches)}

    def type(self, remedy: str) -> Finished:
        """The remedy as a person types it."""
        first, *words = shlex.split(remedy)
        assert first == "patchkit", remedy
        return run_main(*words)

    def declare(self, **keys: Any) -> None:
        (self.patches / "patchkit.toml").write_text(to_toml(keys))

    def tree(self) -> Any:
        return without_bytecode(tree(self.venv.site_packages))

    @property
    def core(self) -> Path:
        return self.venv.site_packages / CORE


def run_main(*args: str) -> Finished:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(args)
    return Finished(args, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, make_wheel: Callable[..., Path]) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    return {
        version: make_wheel(folder, "demo-dist", version, {"demo_dist/__init__.py": b"", **files})
        for version, files in RELEASES.items()
    }


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, make_venv: Callable[..., Venv]) -> Venv:
    return make_venv(tmp_path_factory.mktemp("bare") / "venv", with_pip=False)


@pytest.fixture(params=["uv-hardlink"])
def world(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    bare: Venv,
    wheels: Mapping[str, Path],
    uv: Path,
    uv_cache: Path,
    uv_install: UvInstall,
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    """demo-dist 1.0 is installed and patched: `fix/core` has two hunks, `fix/extra` creates a file."""
    installer = Installer(request.param, uv, uv_cache, uv_install)
    world = World(tmp_path, copy_venv(bare, tmp_path / "venv"), installer, wheels)
    world.elsewhere.mkdir()
    monkeypatch.chdir(world.elsewhere)
    write_set(world.patches)
    world.install("1.0")
    world.run("apply").expect(0)
    assert world.core.read_bytes() == FIXED
    return world


def write_set(folder: Path, fixed: bytes = FIXED, **keys: Any) -> None:
    put(folder / "fix/core.patch", make_diff({CORE: SHIPPED}, {CORE: fixed}))
    put(folder / "fix/extra.patch", make_diff({EXTRA: None}, {EXTRA: b"EXTRA = 1\n"}))
    skip = [{"versions": "==7.0", "why": "7.0 answers well"}]
    one = {"name": "core", "variant": [{"versions": ">=1.0,<7.0", "file": "core.patch"}], "not-needed": skip, **keys}
    two = {"name": "extra", "variant": [{"versions": ">=1.0", "file": "extra.patch"}]}
    table = {"schema": 1, "name": "fix", "distribution": "demo-dist", "patch": [one, two]}
    put(folder / "fix/patchset.toml", to_toml(table).encode())


def only(rows: list[dict[str, Any]], patch: str = "core") -> dict[str, Any]:
    [row] = [row for row in rows if row["patch"] == patch]
    return row


# ---- the causes -----------------------------------------------------------------------------------------------


def test_an_environment_that_is_as_it_was_left_has_no_drift(world: World) -> None:
    before = world.tree()
    for patches in (True, False):
        assert world.drift(patches=patches) == []
        assert "no drift: 2 applied" in world.run("drift", patches=patches).expect(0).out
    assert world.run("drift", "--quiet").expect(0).out == ""
    assert world.tree() == before


@BOTH
@pytest.mark.parametrize("patches", [True, False])
def test_a_reinstall_of_the_same_version_is_told_with_the_file_and_its_hunks(world: World, patches: bool) -> None:
    world.install("1.0", again=True)
    assert world.causes(patches=patches) == {"core": "reinstalled", "extra": "reinstalled"}
    row = only(world.drift(patches=patches))
    assert (row["path"], row["state"]) == (CORE, "pending")
    assert row["recorded"]["version"] == row["found"]["version"] == "1.0"
    assert row["recorded"]["sha256"] != row["found"]["sha256"]
    assert [(hunk["number"], hunk["result"]) for hunk in row["hunks"]] == [(1, "gone"), (2, "gone")]
    assert "    return 42" in row["hunks"][0]["expected"]
    said = world.run("drift", patches=patches).expect(1)
    assert "fix/core   reinstalled  demo-dist 1.0" in said.out
    assert f"{CORE} holds what was shipped again" in said.out
    for each in world.drift(patches=patches):
        world.type(each["remedy"]).expect(0)
    assert world.drift(patches=patches) == []
    assert world.core.read_bytes() == FIXED


@BOTH
def test_an_upgrade_to_a_version_where_the_patch_fits_tells_the_offset(world: World) -> None:
    world.install("2.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("upgraded", "pending")
    assert (row["recorded"]["version"], row["found"]["version"]) == ("1.0", "2.0")
    assert "fits at an offset of +5, +5 lines" in row["detail"]
    assert "demo-dist 1.0 -> 2.0" in world.run("drift").expect(1).out
    for each in world.drift():
        world.type(each["remedy"]).expect(0)
    assert world.drift() == []
    assert world.core.read_bytes() == core("42", "'fixed'", top=5)


def test_an_upgrade_to_a_version_where_a_hunk_conflicts_tells_which(world: World) -> None:
    world.install("3.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("upgraded", "conflict")
    assert "hunk 1 (line 4)" in row["detail"]
    said = world.run("drift").expect(1)
    assert "hunk 1 (line 4) conflict" in said.out
    assert "hunk 2 (line 22) fits" in said.out
    assert max(map(len, said.out.splitlines()[1:])) <= 100 or "remedy" in said.out


def test_an_upgrade_to_a_version_that_has_the_fix_says_that_the_patch_can_be_retired(world: World) -> None:
    world.install("4.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("upgraded", "upstreamed")
    assert "can be retired" in row["detail"]
    world.type(row["remedy"]).expect(0)
    assert "core" not in world.causes()
    assert world.core.read_bytes() == RELEASES["4.0"][CORE]


def test_an_upgrade_to_a_version_that_has_half_of_the_fix_says_so(world: World) -> None:
    world.install("5.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("upgraded", "conflict")
    assert "1 of 2 hunks are upstream" in row["detail"]


@BOTH
def test_an_upgrade_that_moved_the_function_names_its_new_file(world: World) -> None:
    world.install("6.0")
    for patches in (True, False):
        row = only(world.drift(patches=patches))
        assert row["cause"] == "upgraded"
        assert "answer is now in demo_dist/deep/moved.py" in row["detail"]
        assert "other is now in demo_dist/deep/moved.py" in row["detail"]
        said = " ".join(world.run("drift", patches=patches).expect(1).out.split())
        assert "answer is now in demo_dist/deep/moved.py" in said


def test_an_upgrade_to_a_version_that_does_not_need_the_patch_is_settled_by_apply(world: World) -> None:
    world.install("7.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("upgraded", "not-needed")
    assert "7.0 answers well" in row["detail"]
    for each in world.drift():
        world.type(each["remedy"]).expect(0)
    assert world.drift() == []


def test_an_upgrade_to_a_version_that_no_range_holds_says_which_diff_would_fit(world: World) -> None:
    world.install("8.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("upgraded", "no-variant")
    assert "core.patch would fit" in row["detail"]
    alone = only(world.drift(patches=False))
    assert alone["state"] == "no-variant"
    assert "--patches DIR" in alone["detail"]
    world.type(alone["remedy"]).expect(0)
    assert "core" not in world.causes(patches=False)


@BOTH
def test_a_downgrade_is_told_from_an_upgrade(world: World) -> None:
    world.install("2.0")
    world.run("apply").expect(0)
    world.install("1.0")
    assert world.causes() == {"core": "downgraded", "extra": "downgraded"}
    assert only(world.drift(patches=False))["found"]["version"] == "1.0"


@BOTH
@pytest.mark.parametrize("patches", [True, False])
def test_an_uninstall_is_told_and_the_remedy_forgets_the_patches(world: World, patches: bool) -> None:
    world.installer.uninstall(world.venv, "demo-dist")
    assert not (world.venv.site_packages / "demo_dist").exists()
    assert world.causes(patches=patches) == {"core": "uninstalled", "extra": "uninstalled"}
    for each in world.drift(patches=patches):
        world.type(each["remedy"]).expect(0)
    assert world.drift(patches=patches) == []
    assert not (world.venv.site_packages / ".patchkit").exists()


@pytest.mark.parametrize("patches", [True, False])
def test_an_edit_is_told_hunk_by_hunk_and_the_remedy_keeps_it(world: World, patches: bool) -> None:
    edited = FIXED.replace(b"return 42", b"return 43  # by hand")
    world.core.write_bytes(edited)
    row = only(world.drift(patches=patches))
    assert (row["cause"], row["path"]) == ("edited", CORE)
    assert "1 of 2 hunks still there" in row["detail"]
    assert [(hunk["number"], hunk["result"]) for hunk in row["hunks"]] == [(1, "gone"), (2, "there")]
    assert "    return 43  # by hand" in row["hunks"][0]["found"]
    assert "found    |     return 43  # by hand" in world.run("drift", patches=patches).expect(1).out
    world.type(row["remedy"]).expect(0)
    assert world.drift(patches=patches) == []
    assert world.core.read_bytes() == FIXED
    kept = [path.read_bytes() for path in (world.venv.site_packages / ".patchkit/objects").iterdir()]
    assert edited in kept


@pytest.mark.parametrize("path", [CORE, EXTRA])
def test_a_file_that_was_deleted_is_edited_and_comes_back(world: World, path: str) -> None:
    written = (world.venv.site_packages / path).read_bytes()
    (world.venv.site_packages / path).unlink()
    [row] = world.drift(patches=False)
    assert (row["cause"], row["path"], row["found"]["sha256"]) == ("edited", path, None)
    assert "is missing" in row["detail"]
    world.type(row["remedy"]).expect(0)
    assert (world.venv.site_packages / path).read_bytes() == written
    assert world.drift() == []


def test_an_edit_whose_shipped_bytes_are_lost_is_mended_by_the_installer(world: World) -> None:
    world.core.write_bytes(b"mine\n")
    shutil.rmtree(world.venv.site_packages / ".patchkit/objects")
    row = only(world.drift())
    python = shlex.quote(str(world.venv.python))
    remedy = f"uv pip install --python {python} --reinstall --no-deps demo-dist==1.0"  # there is no pip in there
    assert (row["cause"], row["remedy"]) == ("edited", remedy)


def test_a_mode_that_changed_is_an_edit_and_no_hunk_of_it_is_gone(world: World) -> None:
    world.core.chmod(0o755)
    row = only(world.drift())
    assert (row["cause"], {hunk["result"] for hunk in row["hunks"]}) == ("edited", {"there"})
    assert "another executable bit" in row["detail"]
    assert f"{CORE} has another executable bit" in world.run("verify").expect(1).out
    world.type(row["remedy"]).expect(0)
    assert world.core.stat().st_mode & 0o111 == 0
    assert world.drift() == []


def test_a_diff_that_changed_since_is_told_and_taken_up(world: World) -> None:
    write_set(world.patches, core("42", "'better'"))
    row = only(world.drift())
    assert (row["cause"], row["path"], row["state"]) == ("patch-changed", None, "outdated")
    assert world.drift(patches=False) == []
    world.type(row["remedy"]).expect(0)
    assert world.drift() == []
    assert b"better" in world.core.read_bytes()


def test_a_patch_that_was_removed_from_the_folder_is_told_and_taken_out(world: World) -> None:
    shutil.rmtree(world.patches / "fix")
    put(world.patches / "other/x.patch", make_diff({EXTRA: None}, {EXTRA: b"X = 1\n"}))
    table = {"schema": 1, "name": "other", "distribution": "not-here"}
    variants = [{"name": "x", "variant": [{"versions": ">=1", "file": "x.patch"}]}]
    put(world.patches / "other/patchset.toml", to_toml({**table, "patch": variants}).encode())
    assert world.causes() == {"core": "patch-removed", "extra": "patch-removed"}
    for each in world.drift():
        world.type(each["remedy"]).expect(0)
    assert world.core.read_bytes() == SHIPPED
    assert world.drift() == []


def test_a_patch_that_was_taken_off_the_list_is_told_and_taken_out(world: World) -> None:
    world.declare(deselect=["fix/core"])
    assert world.causes() == {"core": "patch-removed"}
    world.type(only(world.drift())["remedy"]).expect(0)
    assert world.drift() == []
    assert world.core.read_bytes() == SHIPPED


def test_a_patch_that_was_applied_by_name_is_no_drift_when_the_list_does_not_hold_it(world: World) -> None:
    write_set(world.patches, default=False)
    world.run("revert", "fix/core").expect(0)
    world.run("apply", "fix/core").expect(0)
    assert world.drift() == []


def test_a_patch_that_got_another_name_is_one_that_changed(world: World) -> None:
    manifest = world.patches / "fix/patchset.toml"
    manifest.write_text(manifest.read_text().replace('name = "core"', 'name = "answers"'))
    row = only(world.drift())
    assert row["cause"] == "patch-changed"
    assert "calls it fix/answers now" in row["detail"]
    assert world.causes() == {"core": "patch-changed"}
    world.type(row["remedy"]).expect(0)
    assert world.drift() == []


@BOTH
def test_a_marker_that_is_false_by_now_is_told_and_the_remedy_takes_the_patch_out(world: World) -> None:
    write_set(world.patches, markers="platform_system == 'Plan9'")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("patch-changed", "not-applicable")
    world.type(row["remedy"]).expect(0)
    assert world.drift() == []
    assert world.core.read_bytes() == SHIPPED


def test_a_diff_that_changed_and_does_not_fit_is_a_conflict(world: World) -> None:
    put(world.patches / "fix/core.patch", make_diff({CORE: core("7")}, {CORE: core("8")}))
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("patch-changed", "conflict")
    assert "does not fit" in row["detail"] and "hunk 1" in row["detail"]
    assert "hunk 1" in world.type(row["remedy"]).expect(1).out
    assert "hunk 1 (line 4) conflict: " in world.run("drift").expect(1).out


def test_an_edited_file_of_a_patch_that_was_removed_has_one_remedy(world: World) -> None:
    world.core.write_bytes(b"mine\n")
    world.declare(deselect=["fix/core"])
    rows = world.drift()
    assert [row["cause"] for row in rows] == ["edited", "patch-removed"]
    [remedy] = {row["remedy"] for row in rows}
    world.type(remedy).expect(0)
    assert world.drift() == []
    assert world.core.read_bytes() == SHIPPED


def test_an_edited_file_that_an_upgrade_left_behind_is_replaced_by_the_remedy(world: World) -> None:
    (world.venv.site_packages / EXTRA).write_bytes(b"mine\n")
    kept = world.folder / "kept.py"
    shutil.move(world.venv.site_packages / EXTRA, kept)
    world.install("2.0")
    shutil.move(kept, world.venv.site_packages / EXTRA)
    row = only(world.drift(), "extra")
    assert (row["cause"], row["state"]) == ("upgraded", "conflict")
    world.type(row["remedy"]).expect(0)
    assert (world.venv.site_packages / EXTRA).read_bytes() == b"EXTRA = 1\n"


@pytest.mark.parametrize(("there", "cause"), [(SHIPPED, "reinstalled"), (b"mine\n", "edited")])
def test_two_copies_of_the_metadata_are_named_and_no_remedy_is_made_up(world: World, there: bytes, cause: str) -> None:
    real = next(world.venv.site_packages.glob("demo_dist-*.dist-info"))
    shutil.copytree(real, real.with_name("demo_dist-0.9.dist-info"))
    world.core.write_bytes(there)
    document = world.run("drift", "--json").expect(1).json()
    [row] = document["drift"]
    assert (row["patch"], row["cause"], row["remedy"]) == ("core", cause, None)
    assert "demo_dist-0.9.dist-info" in row["detail"] and real.name in row["detail"]
    assert [warning["code"] for warning in document["warnings"]] == ["ambiguous-distribution"]


def test_a_distribution_that_lost_its_record_is_told_and_the_remedy_works(world: World) -> None:
    (next(world.venv.site_packages.glob("demo_dist-*.dist-info")) / "RECORD").unlink()
    world.core.write_bytes(SHIPPED)
    row = only(world.drift())
    assert row["cause"] == "uninstalled" and "no RECORD" in row["detail"]
    world.type(row["remedy"]).expect(0)
    assert "core" not in world.causes()


def test_an_environment_that_was_made_anew_is_not_silence(world: World, uv: Path) -> None:
    where = ("--python", world.venv.python.resolve(), "--no-config", "--offline", world.venv.root)
    worlds.run(uv, "venv", "--clear", *where, cwd=world.folder).expect()
    world.install("1.0")
    assert not (world.venv.site_packages / ".patchkit").exists()
    assert world.causes() == {"core": "not-applied", "extra": "not-applied"}
    assert only(world.drift())["state"] == "pending"
    for each in world.drift():
        world.type(each["remedy"]).expect(0)
    assert world.drift() == []


def test_a_declared_patch_that_does_not_fit_is_not_applied_and_says_why(world: World) -> None:
    world.run("revert", "--all").expect(0)
    world.install("3.0")
    row = only(world.drift())
    assert (row["cause"], row["state"]) == ("not-applied", "conflict")
    assert "hunk 1" in world.run("drift").expect(1).out
    assert "hunk 1" in world.type(row["remedy"]).out


def test_a_declared_patch_whose_distribution_is_absent_is_no_drift(world: World) -> None:
    world.run("revert", "--all").expect(0)
    world.installer.uninstall(world.venv, "demo-dist")
    assert world.drift() == []


def test_an_interrupted_transaction_is_told_and_recovered(world: World) -> None:
    world.run("revert", "--all").expect(0)
    before = world.tree()
    put(world.patches / "fix/kill.py", b"import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    write_set(world.patches, check=[{"kind": "python", "file": "kill.py"}])
    assert world.process("apply").exit_code == -signal.SIGKILL
    for patches in (True, False):
        [row] = world.drift(patches=patches)
        assert (row["set"], row["patch"], row["cause"]) == (None, None, "interrupted")
        assert "interrupted" in world.run("drift", patches=patches).expect(1).out
    world.type(row["remedy"]).expect(0)
    assert world.tree() == before
    assert set(world.causes().values()) == {"not-applied"}


# ---- doubt and damage -----------------------------------------------------------------------------------------


def test_a_broken_patch_folder_is_a_warning_and_the_ledger_still_tells(world: World) -> None:
    world.install("1.0", again=True)
    put(world.patches / "fix/patchset.toml", b"schema = [\n")
    assert world.causes() == {"core": "reinstalled", "extra": "reinstalled"}
    assert "patchset.toml" in world.run("drift").expect(1).err


def test_a_broken_diff_in_the_folder_is_a_warning_and_the_ledger_still_tells(world: World) -> None:
    world.install("1.0", again=True)
    put(world.patches / "fix/core.patch", b"this is no diff\n")
    assert world.causes() == {"core": "reinstalled", "extra": "reinstalled"}
    assert "core.patch" in world.run("drift").expect(1).err


def test_a_stale_copy_of_the_metadata_is_a_warning_as_long_as_the_patch_is_in_place(world: World) -> None:
    site = world.venv.site_packages
    shutil.copytree(site / "demo_dist-1.0.dist-info", site / "demo_dist-0.9.dist-info")
    assert world.drift() == []
    assert "installed twice" in world.run("drift").expect(0).err
    world.core.write_bytes(SHIPPED)
    row = only(world.drift())
    assert row["cause"] == "reinstalled"
    assert "installed twice" in row["detail"]
    assert "demo-dist 1.0 -> ?" in world.run("drift").expect(1).out


def test_an_editable_install_in_the_place_of_what_was_patched_is_named(world: World) -> None:
    world.installer.uninstall(world.venv, "demo-dist")
    put(
        world.folder / "checkout/pyproject.toml",
        b'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        b'[project]\nname = "demo-dist"\nversion = "1.0"\n',
    )
    put(world.folder / "checkout/demo_dist/__init__.py", b"")
    where = ("--python", world.venv.python, "--no-config", "--no-deps", "--editable", world.folder / "checkout")
    worlds.run(world.installer.uv, "pip", "install", *where, cwd=world.elsewhere).expect()
    row = only(world.drift())
    assert row["cause"] == "uninstalled"
    assert f"editable install of {world.folder / 'checkout'}" in row["detail"]


def test_a_damaged_ledger_is_an_error_of_its_own(world: World) -> None:
    (world.venv.site_packages / ".patchkit/ledger.json").write_bytes(b"{")
    assert world.run("drift", "--json").expect(8).json()["error"]["code"] == "damaged-state"


def test_a_lost_object_store_leaves_out_the_hunks_and_tells_the_rest(world: World) -> None:
    world.install("1.0", again=True)
    shutil.rmtree(world.venv.site_packages / ".patchkit/objects")
    rows = world.drift(patches=False)
    assert {row["cause"] for row in rows} == {"reinstalled"}
    assert only(rows)["hunks"] == []


def test_nothing_declared_and_nothing_applied_is_no_drift(world: World) -> None:
    world.run("revert", "--all").expect(0)
    assert "nothing is declared or applied here" in world.run("drift", patches=False).expect(0).out


@BOTH
def test_pip_and_uv_still_work_after_it_all(world: World) -> None:
    for version in ("2.0", "4.0", "1.0"):
        world.install(version)
        world.run("drift")
        world.run("apply").expect(0)
    world.installer.uninstall(world.venv, "demo-dist")
    world.run("revert", "--all").expect(0)
    assert not [path for path in world.venv.site_packages.iterdir() if "demo" in path.name or ".patchkit" in path.name]


# ---- run ------------------------------------------------------------------------------------------------------


def command_of(world: World, version: str = "1.0", *, again: bool = False) -> tuple[str, ...]:
    """The words that install ``version``, for `run` to run."""
    wheel = str(world.wheels[version])
    if world.installer.name == "pip":
        pip = ("-m", "pip", "--disable-pip-version-check", "--python", str(world.venv.python), "install", "--no-index")
        return (sys.executable, *pip, "--no-deps", *(["--force-reinstall"] * again), wheel)
    where = ("--python", str(world.venv.python), "--cache-dir", str(world.installer.cache), "--no-config")
    return (str(world.installer.uv), "pip", "install", *where, "--offline", *(["--reinstall"] * again), wheel)


@BOTH
def test_run_reports_the_drift_that_the_command_caused(world: World) -> None:
    said = world.run("run", "--", *command_of(world, again=True)).expect(1)
    assert "demo-dist" in said.out + said.err  # the installer's own words
    assert "fix/core   reinstalled" in said.out
    assert world.causes() == {"core": "reinstalled", "extra": "reinstalled"}


@BOTH
def test_run_reapply_brings_everything_back_and_verifies_it(world: World) -> None:
    said = world.run("run", "--reapply", "--", *command_of(world, again=True)).expect(0)
    assert "2 verified" in said.out
    assert world.drift() == []
    world.run("run", "--reapply", "--", *command_of(world, "2.0")).expect(0)
    assert world.core.read_bytes() == core("42", "'fixed'", top=5)


@BOTH
def test_run_reapply_works_from_the_ledger_alone(world: World) -> None:
    world.run("run", "--reapply", "--", *command_of(world, again=True), patches=False).expect(0)
    assert world.core.read_bytes() == FIXED
    assert world.drift() == []


def test_run_reapply_fails_where_the_new_version_cannot_be_patched(world: World) -> None:
    said = world.run("run", "--reapply", "--", *command_of(world, "3.0")).expect(5)
    assert "hunk 1" in said.err
    assert world.core.read_bytes() == RELEASES["3.0"][CORE]


def test_run_reapply_after_an_uninstall_forgets_the_patches(world: World) -> None:
    for patches in (True, False):
        words = (sys.executable, "-m", "pip", "--python", str(world.venv.python), "uninstall", "-y", "demo-dist")
        world.run("run", "--reapply", "--", *words, patches=patches).expect(0)
        assert not (world.venv.site_packages / ".patchkit").exists()
        world.install("1.0")
        world.run("apply").expect(0)


def test_run_passes_output_and_exit_code_through(world: World) -> None:
    said = world.run("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (said.exit_code, said.out, said.err) == (7, "out\n", "err\n")
    assert world.run("run", "--", "sh", "-c", "kill -9 $$").exit_code == 137
    assert world.run("run", "true").expect(0).out == ""
    assert "cannot be run" in world.run("run", "--", "/no/such/program").expect(2).err


def test_run_tells_what_a_command_did_that_failed_and_ends_with_its_code(world: World) -> None:
    damage = f"echo mine > {shlex.quote(str(world.core))}; exit 9"
    assert "fix/core  edited" in world.run("run", "--", "sh", "-c", damage).expect(9).out
    world.run("apply", "--discard-edits").expect(0)
    document = world.run("run", "--json", "--", "sh", "-c", damage).expect(9).json()
    assert (document["ok"], document["exit_code"], document["drift"][0]["cause"]) == (False, 9, "edited")


@pytest.mark.parametrize("output", [[], ["--json"], ["--reapply"]])
def test_a_command_that_fails_and_leaves_nothing_to_read_ends_with_its_code(world: World, output: list[str]) -> None:
    ledger = world.venv.site_packages / ".patchkit/ledger.json"
    said = world.run("run", *output, "--", "sh", "-c", f"echo '{{' > {shlex.quote(str(ledger))}; exit 9").expect(9)
    if output == ["--json"]:
        document = said.json()
        assert (document["exit_code"], document["error"]["code"]) == (9, "damaged-state")
    else:
        assert "ledger.json is damaged" in said.err


def test_run_with_json_prints_one_document_and_the_commands_words_elsewhere(world: World) -> None:
    words = " ".join(map(shlex.quote, command_of(world, again=True)))
    said = world.run("run", "--json", "--", "sh", "-c", f"echo words; {words} >/dev/null 2>&1").expect(1)
    document = json.loads(said.out)
    assert document["command"] == "run"
    assert {row["cause"] for row in document["drift"]} == {"reinstalled"}
    assert "words" in said.err


def test_run_reports_only_what_the_command_itself_caused(world: World) -> None:
    world.core.write_bytes(b"mine\n")
    said = world.run("run", "--", "true").expect(0)
    assert said.out == ""
    assert "1 more had drifted before" in said.err
    (world.venv.site_packages / EXTRA).unlink()
    world.run("apply", "--discard-edits").expect(0)
    (world.venv.site_packages / EXTRA).unlink()
    said = world.run("run", "--", "sh", "-c", f"echo mine > {shlex.quote(str(world.core))}").expect(1)
    assert "fix/core  edited" in said.out
    assert "fix/extra" not in said.out
    assert "1 more had drifted before" in said.err


def test_run_reapply_mends_what_had_drifted_before_too(world: World) -> None:
    world.install("1.0", again=True)
    said = world.run("run", "--reapply", "--", "true").expect(0)
    assert "drift: 2 reinstalled; bringing it back" in said.err
    assert world.drift() == []


def test_run_says_so_where_there_is_nothing_that_could_drift(world: World) -> None:
    world.run("revert", "--all").expect(0)
    world.installer.uninstall(world.venv, "demo-dist")
    said = world.run("run", "--", "true", patches=False).expect(0)
    assert "nothing is declared or applied" in said.err


def test_run_says_not_applied_when_the_command_makes_the_environment_anew(world: World, uv: Path) -> None:
    again = ["venv", "--clear", "--python", str(world.venv.python.resolve()), "--no-config", "--offline"]
    words = shlex.join([str(uv), *again, str(world.venv.root)]) + "\n" + shlex.join(command_of(world))
    for patches in (False, True):
        said = world.run("run", "--json", "--", "sh", "-ec", words, patches=patches).expect(1)
        assert {row["patch"]: row["cause"] for row in json.loads(said.out)["drift"]} == {
            "core": "not-applied",
            "extra": "not-applied",
        }
        world.run("apply").expect(0)


def test_run_leaves_ctrl_c_and_a_request_to_end_to_the_command(world: World) -> None:
    begun = world.folder / "begun"
    script = f"trap 'exit 9' INT TERM; echo $$ > {begun}.new; mv {begun}.new {begun}; while :; do sleep 0.1; done"
    for number in (signal.SIGINT, signal.SIGTERM):
        begun.unlink(missing_ok=True)
        where = ("--python", str(world.venv.python))
        child = subprocess.Popen(
            [*patchkit_command(), "run", *where, "--", "sh", "-c", script],
            cwd=world.elsewhere,
            env=worlds.clean_environment(),
            start_new_session=True,
        )
        pid = int(wait_for(begun))
        if number == signal.SIGINT:  # as a terminal does: the whole group
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
        assert child.wait(timeout=30) == 9
        time.sleep(0.2)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# ---- export and against ---------------------------------------------------------------------------------------


def test_an_export_is_the_same_from_equal_environments(world: World, bare: Venv, tmp_path: Path) -> None:
    world.run("export", "--output", str(tmp_path / "one.json")).expect(0)
    twin = World(tmp_path, copy_venv(bare, tmp_path / "another" / "other-venv"), world.installer, world.wheels)
    twin.install("1.0")
    twin.run("apply", "fix/extra").expect(0)
    twin.run("apply", "fix/core").expect(0)
    assert twin.run("export").expect(0).out.encode() == (tmp_path / "one.json").read_bytes()
    assert str(tmp_path) not in (tmp_path / "one.json").read_text()
    assert twin.drift("--against", str(tmp_path / "one.json")) == []


def test_an_environment_is_held_against_a_golden_file(world: World, bare: Venv, tmp_path: Path) -> None:
    golden = tmp_path / "golden.json"
    golden.write_text(world.run("export", "--json").expect(0).out)

    def differences() -> dict[str, str]:
        return {row["patch"]: row["cause"] for row in world.drift("--against", str(golden), patches=False)}

    assert differences() == {}
    world.install("2.0")
    assert differences() == {"core": "upgraded", "extra": "upgraded"}
    world.install("1.0")
    world.run("apply").expect(0)
    assert differences() == {}
    world.run("revert", "fix/core").expect(0)
    assert differences() == {"core": "not-applied"}
    write_set(world.patches, core("42", "'better'"))
    world.run("apply").expect(0)
    assert differences() == {"core": "patch-changed"}
    world.core.write_bytes(b"mine\n")
    (world.venv.site_packages / EXTRA).unlink()
    assert differences() == {"core": "patch-changed", "extra": "edited"}
    world.installer.uninstall(world.venv, "demo-dist")
    assert differences() == {"core": "uninstalled", "extra": "uninstalled"}
    said = world.run("drift", "--against", str(golden)).expect(1)
    assert "2 differences" in said.out
    assert f"uv pip install --python {shlex.quote(str(world.venv.python))} demo-dist==1.0" in said.out


def test_what_a_golden_file_does_not_hold_is_told(world: World, tmp_path: Path) -> None:
    world.run("revert", "fix/core").expect(0)
    world.run("export", "--output", str(tmp_path / "golden.json")).expect(0)
    world.run("apply").expect(0)
    [row] = world.drift("--against", str(tmp_path / "golden.json"))
    assert (row["patch"], row["cause"]) == ("core", "patch-removed")
    world.type(row["remedy"]).expect(0)
    assert world.drift("--against", str(tmp_path / "golden.json")) == []


def test_another_diff_than_the_golden_one_has_a_remedy_only_where_the_folder_has_that_diff(
    world: World, tmp_path: Path
) -> None:
    golden = str(tmp_path / "golden.json")
    world.run("export", "--output", golden).expect(0)
    write_set(world.patches, core("42", "'better'"))
    world.run("apply").expect(0)
    row = only(world.drift("--against", golden))
    assert (row["cause"], row["remedy"]) == ("patch-changed", None)
    assert "the patch folder at hand has another diff" in row["detail"]
    assert only(world.drift("--against", golden, patches=False))["remedy"] is None
    write_set(world.patches)
    world.type(only(world.drift("--against", golden))["remedy"]).expect(0)
    assert world.drift("--against", golden) == []


def test_a_patch_that_only_shares_its_file_with_one_that_is_missing_is_not_edited(world: World, tmp_path: Path) -> None:
    golden = str(tmp_path / "golden.json")
    add_second(world)
    world.run("apply").expect(0)
    world.run("export", "--output", golden).expect(0)
    world.run("revert", "fix/core").expect(0)
    [row] = world.drift("--against", golden)
    assert (row["patch"], row["cause"]) == ("core", "not-applied")
    assert "what it shares with more/top differs for that" in row["detail"]
    world.type(row["remedy"]).expect(0)
    assert world.drift("--against", golden) == []
    world.core.write_bytes(b"mine\n")
    assert {row["cause"] for row in world.drift("--against", golden)} == {"edited"}


def add_second(world: World) -> None:
    """A patch of another set, on the same file."""
    put(
        world.patches / "more/top.patch",
        make_diff({CORE: SHIPPED}, {CORE: SHIPPED.replace(b"LINE_6 = 6", b"LINE_6 = 0")}),
    )
    variant = {"name": "top", "variant": [{"versions": ">=1.0", "file": "top.patch"}]}
    table = {"schema": 1, "name": "more", "distribution": "demo-dist", "patch": [variant]}
    put(world.patches / "more/patchset.toml", to_toml(table).encode())


@pytest.mark.parametrize("command", ["drift", "export"])
def test_a_hyphen_is_standard_output(world: World, command: str) -> None:
    assert world.run(command, "--output", "-").expect(0).out == world.run(command).expect(0).out
    assert not (world.elsewhere / "-").exists()


def test_nothing_but_the_document_is_printed_under_json_where_the_report_goes_to_a_file(
    world: World, tmp_path: Path
) -> None:
    file = str(tmp_path / "drift.json")
    assert world.run("drift", "--json", "--output", file).expect(0).out == ""
    assert json.loads((tmp_path / "drift.json").read_text())["command"] == "drift"


def test_an_export_of_nothing_says_so(world: World, tmp_path: Path) -> None:
    world.run("revert", "--all").expect(0)
    assert "nothing is applied" in world.run("export", "--output", str(tmp_path / "golden.json")).expect(0).err
    assert "it holds no patch" in world.run("drift", "--against", str(tmp_path / "golden.json")).expect(0).out


def test_what_drifted_is_not_exported(world: World, tmp_path: Path) -> None:
    world.install("1.0", again=True)
    said = world.run("export", "--json", "--output", str(tmp_path / "golden.json")).expect(4)
    assert said.json()["error"]["code"] == "drifted"
    assert not (tmp_path / "golden.json").exists()


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"{", "bad-export", "is not JSON"),
        (b"[]", "bad-export", "is not what"),
        (b"{}", "bad-export", "has no 'schema'"),
        (b'{"schema": 1, "kind": "else", "patches": [], "files": []}', "bad-export", "is not an export"),
        (b'{"schema": 9, "kind": "patchkit-export", "patches": [], "files": []}', "newer-format", "the format 9"),
        (b'{"schema": 1, "kind": "patchkit-export", "patches": [{"set": 1}], "files": []}', "bad-export", "golden"),
        (b"[" * 100_000, "bad-export", "is not JSON"),
        (b"\xff\xfe", "bad-export", "is not JSON"),
    ],
)
def test_a_bad_golden_file_is_refused(world: World, tmp_path: Path, data: bytes, code: str, words: str) -> None:
    (tmp_path / "golden.json").write_bytes(data)
    error = world.run("drift", "--json", "--against", str(tmp_path / "golden.json")).expect(4).json()["error"]
    assert error["code"] == code
    assert words in error["message"]


def damage_schema(golden: dict[str, Any], schema: object) -> None:
    golden["schema"] = schema


def damage_paths(golden: dict[str, Any], path: str) -> None:
    old = golden["files"][0]["path"]
    golden["files"][0]["path"] = path
    for entry in golden["patches"]:
        entry["paths"] = [path if each == old else each for each in entry["paths"]]


def leave_out_files(golden: dict[str, Any]) -> None:
    golden["files"] = []


def name_patches_twice(golden: dict[str, Any]) -> None:
    golden["patches"] *= 2


@pytest.mark.parametrize(
    "damage",
    [
        partial(damage_schema, schema=True),
        partial(damage_schema, schema=-1),
        partial(damage_paths, path="demo_dist/\0core.py"),
        partial(damage_paths, path="../core.py"),
        partial(damage_paths, path="/etc/hosts"),
        partial(damage_paths, path="\ud800"),
        leave_out_files,
        name_patches_twice,
    ],
)
def test_a_golden_file_that_export_cannot_have_written_is_refused(
    world: World, tmp_path: Path, damage: Callable[[dict[str, Any]], None]
) -> None:
    golden = json.loads(world.run("export").expect(0).out)
    damage(golden)
    (tmp_path / "golden.json").write_text(json.dumps(golden))
    error = world.run("drift", "--json", "--against", str(tmp_path / "golden.json")).expect(4).json()["error"]
    assert error["code"] == "bad-export"


def test_a_version_that_is_written_another_way_is_no_upgrade(world: World, tmp_path: Path) -> None:
    world.run("export", "--output", str(tmp_path / "golden.json")).expect(0)
    metadata = next(world.venv.site_packages.glob("demo_dist-*.dist-info")) / "METADATA"
    metadata.write_bytes(metadata.read_bytes().replace(b"Version: 1.0\n", b"Version: 1.0.0\n"))
    assert world.drift() == []
    assert world.drift("--against", str(tmp_path / "golden.json")) == []


def test_a_lost_executable_bit_is_told_from_other_content(world: World, tmp_path: Path) -> None:
    world.run("export", "--output", str(tmp_path / "golden.json")).expect(0)
    world.core.chmod(0o755)
    row = only(world.drift("--against", str(tmp_path / "golden.json")))
    assert (row["cause"], row["detail"]) == ("edited", f"{CORE} has another executable bit")


def test_a_golden_file_that_is_not_there_is_named(world: World) -> None:
    error = world.run("drift", "--json", "--against", "absent.json").expect(4).json()["error"]
    assert "absent.json" in error["message"]
