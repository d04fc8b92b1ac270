"""All or nothing (DESIGN, section 6): real files, real errors, and the edits of others."""

from __future__ import annotations

import errno
import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from patchkit.disk import Disk, Owner
from patchkit.errors import (
    Bug,
    CheckFailed,
    DamagedState,
    ExitCode,
    Interrupted,
    NotRolledBack,
    RolledBack,
)
from patchkit.installed import Content, sha256
from patchkit.transaction import Recovery, Stale
from plans import (
    NEW,
    OLD,
    PLAIN,
    content,
    edited_during_the_check,
    execute_on,
    fail,
    in_child,
    lay_out,
    make_plan,
    run,
    undo,
    write,
)
from worlds import tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "site-packages")


# ---- all or nothing -------------------------------------------------------------------------------------------


def test_every_change_is_made_and_undone_by_its_opposite_to_the_byte(root: Path) -> None:
    write(root / "pkg/gone.py", b"gone\n", 0o600)
    before = tree(root)
    shipped = {path: content(root / path) for path, entry in before.items() if entry.kind == "file"}
    wanted = {
        "pkg/mod.py": Content(NEW, PLAIN),
        "pkg/gone.py": None,
        "pkg/deep/er/new.py": Content(b"new\n", 0o755),
        "pkg/other.py": Content(b"other\n", 0o755),
    }
    run(root, make_plan(root, wanted, make=("pkg/deep", "pkg/deep/er")))
    assert {path: content(root / path) if (root / path).exists() else None for path in wanted} == wanted
    assert sorted(os.listdir(root / ".patchkit")) == ["ledger.json", "lock", "objects"]
    assert (root / ".patchkit/ledger.json").read_bytes() == b"ledger\n"

    back = {path: shipped.get(path) for path in wanted}
    run(root, make_plan(root, back, ledger=None, drop=("pkg/deep", "pkg/deep/er")))
    assert tree(root) == before


def test_nothing_but_the_live_objects_is_left(root: Path) -> None:
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    run(root, make_plan(root, {"pkg/mod.py": Content(b"third\n", PLAIN)}, ledger=b"second\n"))
    live = {sha256(OLD)}
    plan = replace(make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}, ledger=b"third\n"), live=frozenset(live))
    run(root, plan)
    assert set(os.listdir(root / ".patchkit/objects")) == live
    assert (root / ".patchkit/objects" / sha256(OLD)).read_bytes() == OLD


def test_a_failing_check_undoes_everything_and_is_raised_on(root: Path) -> None:
    before = tree(root)
    seen: list[bytes] = []

    def check() -> None:
        seen.append((root / "pkg/mod.py").read_bytes())
        raise CheckFailed("no such symbol")

    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/a/b.py": Content(b"", PLAIN)}, make=("pkg/a",))
    with pytest.raises(CheckFailed, match="no such symbol"):
        run(root, plan, before_commit=check)
    assert seen == [NEW]
    assert tree(root) == before


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), OSError(errno.EIO, "of the check"), ZeroDivisionError()])
def test_whatever_a_check_raises_undoes_everything(root: Path, raised: BaseException) -> None:
    run(root, make_plan(root, {"pkg/mod.py": Content(b"first\n", PLAIN)}))
    before = tree(root)

    def check() -> None:
        raise raised

    with pytest.raises(type(raised)) as caught:
        run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}, ledger=b"2\n"), before_commit=check)
    assert caught.value is raised
    assert tree(root) == before


def test_a_ctrl_c_between_two_files_undoes_the_first(root: Path) -> None:
    before = tree(root)

    def progress(done: int, total: int) -> None:
        assert (done, total) == (1, 2)
        raise KeyboardInterrupt

    wanted = {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": None}
    with pytest.raises(KeyboardInterrupt):
        run(root, make_plan(root, wanted), progress=progress)
    assert tree(root) == before


class ImpatientDisk(Disk):
    """Ctrl-C comes just behind the commit record."""

    def replace(self, source: str, target: str) -> None:
        committed = source.endswith("journal.json.tmp") and b'"committed":true' in self.read(source)
        super().replace(source, target)
        if committed:
            raise KeyboardInterrupt


def test_a_ctrl_c_behind_the_commit_record_is_too_late(root: Path) -> None:
    execute_on(ImpatientDisk(), root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    assert (root / "pkg/mod.py").read_bytes() == NEW
    assert sorted(os.listdir(root / ".patchkit")) == ["ledger.json", "lock", "objects"]


def test_progress_counts_the_files_that_are_in_place(root: Path) -> None:
    told: list[tuple[int, int]] = []
    wanted = {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": None}
    run(root, make_plan(root, wanted), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_an_empty_plan_is_not_executed(root: Path) -> None:
    before = tree(root)
    with pytest.raises(Bug):
        run(root, make_plan(root, {}, ledger=None))
    assert tree(root) == before


def test_a_plan_made_from_another_ledger_is_stale(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    run(root, make_plan(root, {"pkg/other.py": None}, ledger=b"somebody was faster\n"))
    before = tree(root)
    with pytest.raises(Stale):
        run(root, plan)
    assert tree(root) == before


# ---- what goes wrong on the disk ------------------------------------------------------------------------------


class FullDisk(Disk):
    """From one write on, the disk is full; what was made by then stays."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, path: str, content: Content, owner: Owner | None) -> None:
        self.room -= 1
        if self.room < 0:
            super().write(path, replace(content, data=content.data[: len(content.data) // 2]), owner)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write(path, content, owner)


@pytest.mark.parametrize("room", range(8))
def test_a_full_disk_changes_nothing(root: Path, room: int) -> None:
    run(root, make_plan(root, {"pkg/mod.py": Content(b"first\n", PLAIN)}))
    before = tree(root)
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": None}, ledger=b"2\n")
    with pytest.raises(RolledBack, match=f"^{root}/.*: No space left on device; nothing was changed$") as caught:
        execute_on(FullDisk(room), root, plan)
    assert caught.value.exit_code is ExitCode.ROLLED_BACK
    assert tree(root) == before


def test_a_disk_that_is_full_from_the_first_rename_on_is_full_enough(root: Path) -> None:
    run(root, make_plan(root, {"pkg/mod.py": Content(b"first\n", PLAIN)}))
    execute_on(
        FullDisk(8), root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": None}, ledger=b"2")
    )
    assert (root / "pkg/mod.py").read_bytes() == NEW


def test_a_file_too_large_for_the_limit_changes_nothing(root: Path) -> None:
    before = tree(root)
    plan = make_plan(root, {"pkg/other.py": None, "pkg/mod.py": Content(b"x" * 100_000, PLAIN)})

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        with pytest.raises(RolledBack, match=r"\.tmp: File too large; nothing was changed"):
            run(root, plan)

    in_child(child)
    assert tree(root) == before


class ReadOnlyDisk(Disk):
    def replace(self, source: str, target: str) -> None:
        if target.endswith("other.py"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), source, None, target)
        super().replace(source, target)


def test_an_error_names_the_path_and_undoes_the_files_before_it(root: Path) -> None:
    before = tree(root)
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": Content(NEW, PLAIN)})
    with pytest.raises(RolledBack) as caught:
        execute_on(ReadOnlyDisk(), root, plan)
    assert caught.value.message == f"{root}/pkg/other.py: Read-only file system; nothing was changed"
    assert tree(root) == before


class LyingDisk(Disk):
    """Writes other bytes than it was told to."""

    def write(self, path: str, content: Content, owner: Owner | None) -> None:
        super().write(path, replace(content, data=content.data.replace(b"new", b"n\0w")), owner)


def test_applied_is_only_what_reads_back(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    with pytest.raises(NotRolledBack):
        execute_on(LyingDisk(), root, plan)
    assert (root / ".patchkit/journal.json").exists()
    assert (root / ".patchkit/objects" / sha256(OLD)).read_bytes() == OLD


class StubbornDisk(Disk):
    """Cannot remove objects."""

    def unlink(self, path: str) -> None:
        if "/objects/" in path and not path.endswith(".tmp"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        super().unlink(path)


def test_a_failing_clean_up_is_told_as_such_and_finished_by_recover(root: Path) -> None:
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    plan = make_plan(root, {"pkg/mod.py": Content(OLD, PLAIN)}, ledger=None)
    with pytest.raises(Interrupted, match="the change is complete, its clean-up is not .*Permission denied") as caught:
        execute_on(StubbornDisk(), root, plan)
    assert caught.value.hint == "run as a user who may write there, then run `patchkit recover`"
    assert (root / "pkg/mod.py").read_bytes() == OLD
    assert undo(root) is Recovery.FINISHED
    assert not (root / ".patchkit").exists()


# ---- foreign bytes --------------------------------------------------------------------------------------------


def test_a_file_changed_since_the_plan_is_kept_and_everything_else_undone(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": Content(NEW, PLAIN)})
    write(root / "pkg/other.py", b"an edit\n")
    before = tree(root)
    with pytest.raises(RolledBack, match=r"pkg/other\.py changed while patchkit was at work"):
        run(root, plan)
    assert tree(root) == before


@pytest.mark.parametrize("change", ["bytes", "mode", "absent", "link", "folder"])
def test_any_difference_to_the_plan_is_a_change(root: Path, change: str) -> None:
    plan = make_plan(root, {"pkg/other.py": None, "pkg/mod.py": Content(NEW, PLAIN)})
    file = root / "pkg/mod.py"
    match change:
        case "bytes":
            file.write_bytes(NEW)
        case "mode":
            file.chmod(0o600)
        case "absent":
            file.unlink()
        case "link":
            file.rename(root / "pkg/aside.py")
            file.symlink_to("aside.py")
        case "folder":
            file.unlink()
            file.mkdir()
    before = tree(root)
    with pytest.raises(RolledBack, match=r"pkg/mod\.py changed"):
        run(root, plan)
    assert tree(root) == before


def test_a_created_file_does_not_replace_one_that_came_meanwhile(root: Path) -> None:
    plan = make_plan(root, {"pkg/new.py": Content(NEW, PLAIN)})
    write(root / "pkg/new.py", b"mine\n")
    with pytest.raises(RolledBack):
        run(root, plan)
    assert (root / "pkg/new.py").read_bytes() == b"mine\n"


def test_an_undo_that_meets_foreign_bytes_touches_nothing_and_keeps_every_backup(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": Content(NEW, PLAIN)})
    error = edited_during_the_check(root, plan, lambda: write(root / "pkg/other.py", b"an edit\n"))
    assert error.exit_code is ExitCode.INTERRUPTED
    assert f"{root}/pkg/other.py: neither as before" in error.message
    assert f"{root}/.patchkit/objects" in error.message and "pkg/mod.py" not in error.message
    assert (root / "pkg/mod.py").read_bytes() == NEW
    assert (root / "pkg/other.py").read_bytes() == b"an edit\n"
    assert {sha256(OLD), sha256(b"other\n")} <= set(os.listdir(root / ".patchkit/objects"))
    assert (root / ".patchkit/journal.json").exists()


def test_the_way_out_of_a_stuck_undo_is_to_move_the_file_away(root: Path) -> None:
    before = tree(root)
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    edited_during_the_check(root, plan, lambda: write(root / "pkg/mod.py", b"an edit\n"))
    with pytest.raises(NotRolledBack):
        undo(root)
    (root / "pkg/mod.py").unlink()
    assert undo(root) is Recovery.UNDONE
    assert tree(root) == before


def test_a_file_put_where_one_was_removed_is_foreign(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": None})
    edited_during_the_check(root, plan, lambda: write(root / "pkg/mod.py", b"somebody's\n"))
    assert (root / "pkg/mod.py").read_bytes() == b"somebody's\n"
    assert (root / ".patchkit/objects" / sha256(OLD)).read_bytes() == OLD


def test_an_undo_after_an_uninstall_brings_no_directory_back(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    edited_during_the_check(root, plan, lambda: write(root / "pkg/mod.py", b"an edit\n"))
    for file in (root / "pkg").iterdir():
        file.unlink()
    (root / "pkg").rmdir()
    assert undo(root) is Recovery.UNDONE
    assert tree(root) == {}


def test_a_ledger_that_is_neither_old_nor_new_stops_the_undo(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    error = edited_during_the_check(root, plan, lambda: write(root / ".patchkit/ledger.json", b"{}"))
    assert "ledger.json" in error.message
    assert (root / "pkg/mod.py").read_bytes() == NEW


def test_a_damaged_backup_stops_the_undo_before_it_touches_a_file(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": Content(NEW, PLAIN)})

    def check() -> None:
        write(root / ".patchkit/objects" / sha256(OLD), b"rotten")
        raise CheckFailed("the check")

    with pytest.raises(DamagedState, match=sha256(OLD)):
        run(root, plan, before_commit=check)
    assert (root / "pkg/other.py").read_bytes() == NEW
    assert (root / ".patchkit/journal.json").exists()


def test_a_damaged_object_is_not_trusted_as_a_backup(root: Path) -> None:
    run(root, make_plan(root, {"pkg/other.py": None}))
    write(root / ".patchkit/objects" / sha256(OLD), b"rotten")
    with pytest.raises(CheckFailed):
        run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}, ledger=b"2\n"), before_commit=fail)
    assert (root / "pkg/mod.py").read_bytes() == OLD
