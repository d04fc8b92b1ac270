"""Plans for the tests of the writer, made from what is on the disk, and what carries them out."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from patchkit.disk import Disk
from patchkit.errors import CheckFailed, NotRolledBack
from patchkit.installed import Content, Observed, sha256
from patchkit.model import FileChange, Plan
from patchkit.transaction import Recovery, execute, locked, recover

OLD, NEW = b"value = 'old'\n", b"value = 'new'\n"
PLAIN = 0o644

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def lay_out(root: Path) -> Path:
    """A site root with two modules."""
    write(root / "pkg/mod.py", OLD)
    write(root / "pkg/other.py", b"other\n")
    return root


def write(path: Path, data: bytes, mode: int = 0o644) -> Path:
    """A file with these bytes and this mode, its directories with it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def content(path: Path) -> Content:
    """What a file holds."""
    return Content(path.read_bytes(), stat.S_IMODE(path.stat().st_mode))


def make_plan(
    root: Path,
    wanted: Mapping[str, Content | None],
    *,
    ledger: bytes | None = b"ledger\n",
    make: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
) -> Plan:
    """The plan that takes ``root`` to ``wanted``; what was there stays in the object store while there is a ledger."""
    changes = tuple(FileChange(path, observe(root, path), after) for path, after in wanted.items())
    contents = [change.before.content for change in changes]
    objects = {sha256(found.data): found.data for found in contents if found is not None and ledger is not None}
    state, store = root / ".patchkit/ledger.json", root / ".patchkit/objects"
    stored = frozenset(os.listdir(store)) if store.is_dir() else frozenset[str]()
    return Plan(
        changes=changes,
        objects=objects,
        live=stored | frozenset(objects) if ledger is not None else frozenset(),
        live_before=stored,
        state_before=state.read_bytes() if state.exists() else None,
        state_after=ledger,
        make_directories=make,
        drop_directories=drop,
    )


def observe(root: Path, path: str) -> Observed:
    """A path below ``root`` as it is."""
    file = root / path
    link = os.readlink(file) if file.is_symlink() else None
    return Observed(path, content(file) if file.exists() else None, link)


# ---- carried out ----------------------------------------------------------------------------------------------


def run(root: Path, plan: Plan, **options: Callable[..., None]) -> None:
    with locked(root, timeout=0) as lock:
        execute(lock, plan, **options)


def execute_on(disk: Disk, root: Path, plan: Plan) -> None:
    with locked(root, timeout=0, disk=disk) as lock:
        execute(lock, plan)


def undo(root: Path) -> Recovery:
    with locked(root, timeout=0) as lock:
        return recover(lock)


def in_child(action: Callable[[], None], *, user: int | None = None) -> None:
    """Run ``action`` in a process of its own, as another user if asked to."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            action()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(process, 0)[1] == 0


def fail() -> None:
    raise CheckFailed("the check")


def edited_during_the_check(root: Path, plan: Plan, edit: Callable[[], object]) -> NotRolledBack:
    """Somebody edits what was just put in place, and then the check fails."""

    def check() -> None:
        edit()
        raise CheckFailed("the check")

    with pytest.raises(NotRolledBack) as caught:
        run(root, plan, before_commit=check)
    return caught.value
