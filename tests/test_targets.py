"""Targets are never changed in place, always have a fresh time, and leave no bytecode (DESIGN, section 6)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from patchkit.disk import Disk
from patchkit.errors import (
    CheckFailed,
)
from patchkit.installed import Content, sha256
from patchkit.targets import compiled_from
from plans import (
    NEW,
    OLD,
    PLAIN,
    content,
    execute_on,
    fail,
    lay_out,
    make_plan,
    needs_root,
    run,
    write,
)
from worlds import clean_environment, tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "site-packages")


# ---- never in place -------------------------------------------------------------------------------------------


def test_a_hard_link_keeps_its_bytes_and_its_inode(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.py"
    os.link(root / "pkg/mod.py", cache)
    inode = cache.stat().st_ino
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, 0o755)}, ledger=b"2\n"))
    run(root, make_plan(root, {"pkg/mod.py": Content(OLD, PLAIN)}, ledger=None))
    assert (cache.read_bytes(), cache.stat().st_ino, stat.S_IMODE(cache.stat().st_mode)) == (OLD, inode, PLAIN)
    assert (root / "pkg/mod.py").stat().st_ino != inode


def test_a_symbolic_link_becomes_a_private_file_and_its_target_stays(root: Path, tmp_path: Path) -> None:
    cache = write(tmp_path / "cache/mod.py", OLD, 0o640)
    (root / "pkg/mod.py").unlink()
    (root / "pkg/mod.py").symlink_to(cache)
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, 0o640)}))
    assert not (root / "pkg/mod.py").is_symlink()
    assert content(root / "pkg/mod.py") == Content(NEW, 0o640)
    assert content(cache) == Content(OLD, 0o640)
    run(root, make_plan(root, {"pkg/mod.py": Content(OLD, 0o640)}, ledger=None))
    assert not (root / "pkg/mod.py").is_symlink()


def test_a_rollback_puts_a_symbolic_link_back_as_it_was(root: Path) -> None:
    for name, target in (("to.py", "mod.py"), ("del.py", "../pkg/mod.py"), ("same.py", "mod.py")):
        (root / "pkg" / name).symlink_to(target)
    before = tree(root)
    wanted = {"pkg/to.py": Content(NEW, PLAIN), "pkg/del.py": None, "pkg/same.py": Content(OLD, PLAIN)}
    with pytest.raises(CheckFailed):
        run(root, make_plan(root, wanted), before_commit=fail)
    assert tree(root) == before


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664, 0o444])
@pytest.mark.parametrize("umask", [0o022, 0o077, 0])
def test_the_mode_is_the_one_asked_for_whatever_the_umask(root: Path, mode: int, umask: int) -> None:
    (root / "pkg/mod.py").chmod(mode)
    old_umask = os.umask(umask)
    try:
        run(root, make_plan(root, {"pkg/mod.py": Content(NEW, mode), "pkg/new.py": Content(NEW, mode)}))
    finally:
        os.umask(old_umask)
    assert content(root / "pkg/mod.py").mode == content(root / "pkg/new.py").mode == mode
    with pytest.raises(CheckFailed):
        run(root, make_plan(root, {"pkg/mod.py": Content(b"x", 0o700)}, ledger=b"2\n"), before_commit=fail)
    assert content(root / "pkg/mod.py") == Content(NEW, mode)


def test_a_new_directory_is_as_open_as_the_one_it_lies_in(root: Path) -> None:
    (root / "pkg").chmod(0o775)
    old_umask = os.umask(0o077)
    try:
        run(root, make_plan(root, {"pkg/a/b/c.py": Content(NEW, PLAIN)}, make=("pkg/a", "pkg/a/b")))
    finally:
        os.umask(old_umask)
    assert [stat.S_IMODE((root / path).stat().st_mode) for path in ("pkg/a", "pkg/a/b")] == [0o775, 0o775]


def test_others_may_read_the_state_of_a_root_that_they_may_read(root: Path) -> None:
    root.chmod(0o755)
    old_umask = os.umask(0o077)
    try:
        run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    finally:
        os.umask(old_umask)
    modes = {name: entry.mode for name, entry in tree(root / ".patchkit").items()}
    assert modes == {"ledger.json": 0o644, "lock": 0o644, "objects": 0o755, f"objects/{sha256(OLD)}": 0o644}


@needs_root
def test_the_owner_carries_over_and_what_is_new_belongs_to_the_owner_of_its_directory(root: Path) -> None:
    for path, owner in (("", 1234), ("pkg", 1234), ("pkg/mod.py", 1235), ("pkg/other.py", 1236)):
        os.chown(root / path, owner, owner)
    wanted = {"pkg/mod.py": Content(NEW, 0o755), "pkg/other.py": None, "pkg/a/new.py": Content(NEW, PLAIN)}
    run(root, make_plan(root, wanted, make=("pkg/a",)))
    assert (root / "pkg/mod.py").stat().st_uid == 1235
    new = ["pkg/a", "pkg/a/new.py", ".patchkit", ".patchkit/lock", ".patchkit/ledger.json", ".patchkit/objects"]
    assert {path: (root / path).stat().st_gid for path in new} == dict.fromkeys(new, 1234)


@needs_root
def test_a_rollback_gives_every_file_back_to_its_owner(root: Path) -> None:
    (root / "pkg/link.py").symlink_to("mod.py")
    paths = ("pkg/mod.py", "pkg/other.py", "pkg/link.py")
    for number, path in enumerate(paths):
        os.chown(root / path, 1000 + number, 2000 + number, follow_symlinks=False)
    wanted = {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": None, "pkg/link.py": None}
    with pytest.raises(CheckFailed):
        run(root, make_plan(root, wanted), before_commit=fail)
    owners = [((info := (root / path).lstat()).st_uid, info.st_gid) for path in paths]
    assert owners == [(1000, 2000), (1001, 2001), (1002, 2002)]


def test_a_link_to_a_file_of_the_same_plan_is_replaced_before_that_file(root: Path) -> None:
    (root / "pkg/link.py").symlink_to("mod.py")
    run(root, make_plan(root, {"pkg/mod.py": None, "pkg/link.py": Content(NEW, PLAIN)}))
    assert not (root / "pkg/mod.py").exists()
    assert not (root / "pkg/link.py").is_symlink()
    assert content(root / "pkg/link.py") == Content(NEW, PLAIN)


# ---- fresh times, no stale bytecode ---------------------------------------------------------------------------


def test_times_are_fresh_when_applied_reverted_and_undone(root: Path) -> None:
    file = root / "pkg/mod.py"

    def age() -> None:
        os.utime(file, (1_000_000_000, 1_000_000_000))

    age()
    began = time.time() - 1
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    assert file.stat().st_mtime > began
    age()
    with pytest.raises(CheckFailed):
        run(root, make_plan(root, {"pkg/mod.py": Content(b"x", PLAIN)}, ledger=b"2\n"), before_commit=fail)
    assert file.stat().st_mtime > began
    age()
    run(root, make_plan(root, {"pkg/mod.py": Content(OLD, PLAIN)}, ledger=None))
    assert file.stat().st_mtime > began


class SlowDisk(Disk):
    """Takes a day to sync."""

    def sync(self, paths: Sequence[str]) -> None:
        for path in paths:
            os.utime(path, (time.time() - 86_400, time.time() - 86_400))


def test_the_time_is_that_of_the_replacement_and_not_of_the_staging(root: Path) -> None:
    began = time.time() - 1
    execute_on(SlowDisk(), root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    assert (root / "pkg/mod.py").stat().st_mtime > began


MINE = (
    "__pycache__/mod.cpython-311.pyc",
    "__pycache__/mod.cpython-313.opt-1.pyc",
    "__pycache__/mod.pypy310.opt-2.pyc",
    "__pycache__/mod.cpython-311-pytest-8.3.4.pyc",
    "mod.pyc",
)
OTHERS = (
    "__pycache__/mod.b.cpython-311.pyc",
    "__pycache__/mod.b.cpython-311.opt-1.pyc",
    "__pycache__/mod2.cpython-311.pyc",
    "__pycache__/amod.cpython-311.pyc",
    "__pycache__/mod.cpython-311.pyc.bak",
    "__pycache__/mod.fn-12.py311.nbi",
    "mod.so",
    "mod2.pyc",
)


@pytest.mark.parametrize("after", [Content(NEW, PLAIN), None])
def test_every_compiled_file_of_a_changed_source_goes_and_no_other(root: Path, after: Content | None) -> None:
    for name in (*MINE, *OTHERS):
        write(root / "pkg" / name, b"code")
    run(root, make_plan(root, {"pkg/mod.py": after}))
    assert [name for name in MINE if (root / "pkg" / name).exists()] == []
    assert [name for name in OTHERS if not (root / "pkg" / name).exists()] == []


def test_what_a_check_compiled_goes_with_the_rollback(root: Path) -> None:
    def check() -> None:
        for name in MINE:
            write(root / "pkg" / name, b"code of the new source")
        fail()

    with pytest.raises(CheckFailed):
        run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}), before_commit=check)
    assert [name for name in MINE if (root / "pkg" / name).exists()] == []


def test_names_of_compiled_files_are_read_from_the_right() -> None:
    names = {"a.b.cpython-311.pyc": "a.b", "a.cpython-311.opt-1.pyc": "a", "a.pyc": "", "a.py": "", ".pyc": ""}
    assert {name: compiled_from(name) for name in names} == names


def test_python_runs_the_new_source_even_with_equal_size_and_unchecked_bytecode(root: Path) -> None:
    environment = clean_environment()
    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "pkg"]
    command = [sys.executable, "-c", "import pkg.mod; print(pkg.mod.value)"]

    def value() -> str:
        return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout

    for data, ledger, printed in ((NEW, b"1", "new\n"), (OLD, None, "old\n")):
        subprocess.run(compiled, cwd=root, env=environment, check=True)
        run(root, make_plan(root, {"pkg/mod.py": Content(data, PLAIN)}, ledger=ledger))
        assert value() == printed


def test_a_created_directory_goes_on_revert_although_python_compiled_in_it(root: Path) -> None:
    before = tree(root)
    run(root, make_plan(root, {"pkg/a/new.py": Content(NEW, PLAIN)}, make=("pkg/a",)))
    write(root / "pkg/a/__pycache__/new.cpython-311.pyc", b"code")
    run(root, make_plan(root, {"pkg/a/new.py": None}, ledger=None, drop=("pkg/a",)))
    assert tree(root) == before


def test_a_directory_with_somebodys_file_in_it_stays(root: Path) -> None:
    run(root, make_plan(root, {"pkg/a/new.py": Content(NEW, PLAIN)}, make=("pkg/a",)))
    write(root / "pkg/a/notes.txt", b"mine")
    run(root, make_plan(root, {"pkg/a/new.py": None}, ledger=None, drop=("pkg/a",)))
    assert os.listdir(root / "pkg/a") == ["notes.txt"]
