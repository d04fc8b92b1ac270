"""One writer (DESIGN, section 6), with real second processes, and what is swept."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchkit.disk import Disk, Owner
from patchkit.errors import (
    ExitCode,
    Interrupted,
    Locked,
    NotWritable,
)
from patchkit.installed import Content, sha256
from patchkit.transaction import Recovery, execute, locked, needs_sweep
from plans import (
    NEW,
    OLD,
    PLAIN,
    edited_during_the_check,
    lay_out,
    make_plan,
    run,
    undo,
    write,
)
from worlds import CHECKOUT, clean_environment, tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "site-packages")


# ---- one writer -----------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from patchkit.transaction import locked
with locked(Path(sys.argv[1]), timeout=0):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its standard input is closed."""
    command = [sys.executable, "-c", HOLDER, str(root)]
    place = clean_environment({"PYTHONPATH": str(CHECKOUT)})
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=place) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "held\n"
        yield process
        if process.poll() is None:
            process.communicate()


def test_a_second_writer_waits_and_gives_up_with_the_path_of_the_lock(root: Path) -> None:
    with holder(root):
        began = time.monotonic()
        with (
            pytest.raises(Locked, match=r"holds .*/\.patchkit/lock \(waited 0\.3 s\)") as caught,
            locked(root, timeout=0.3),
        ):
            pass
        assert 0.3 <= time.monotonic() - began < 5
        assert caught.value.exit_code is ExitCode.LOCKED
        assert "--lock-timeout" in caught.value.hint
    assert not (root / ".patchkit").exists()


def test_a_second_writer_gets_the_lock_when_the_first_ends(root: Path) -> None:
    with holder(root) as process:
        assert process.stdin is not None
        process.stdin.close()
        with locked(root, timeout=20) as lock:
            execute(lock, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
        process.wait()
    assert (root / ".patchkit/ledger.json").exists()
    assert (root / ".patchkit/lock").exists()


def test_a_killed_holder_does_not_block(root: Path) -> None:
    with holder(root) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (root / ".patchkit/lock").exists()
    with locked(root, timeout=0):
        pass
    assert not (root / ".patchkit").exists()


COUNTER = """
import sys
from pathlib import Path
from patchkit.transaction import locked
for _ in range(40):
    with locked(Path(sys.argv[1]), timeout=60):
        file = Path(sys.argv[1], "count")
        file.write_text(str(int(file.read_text()) + 1))
"""


def test_only_one_holds_the_lock_although_each_removes_it(root: Path) -> None:
    (root / "count").write_text("0")
    place = clean_environment({"PYTHONPATH": str(CHECKOUT)})
    writers = [subprocess.Popen([sys.executable, "-c", COUNTER, str(root)], env=place) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert (root / "count").read_text() == "120"


class RacedDisk(Disk):
    """Another run removes the lock file in the moment after it was opened, as the last revert does."""

    raced = False

    def open_lock(self, path: str, mode: int, owner: Owner | None) -> int:
        descriptor = super().open_lock(path, mode, owner)
        if not self.raced:
            self.raced = True
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        return descriptor


def test_a_lock_file_that_was_removed_meanwhile_is_no_lock(root: Path) -> None:
    with locked(root, timeout=0, disk=RacedDisk()), pytest.raises(Locked), locked(root, timeout=0):
        pass


class HastyDisk(Disk):
    """Another run is done with the new state folder, and has removed it, before it has its owner and mode."""

    raced = False

    def mkdir(self, path: str, mode: int, owner: Owner | None) -> None:
        if not self.raced:
            self.raced = True
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        super().mkdir(path, mode, owner)


def test_a_state_folder_that_goes_as_soon_as_it_is_made_is_made_again(root: Path) -> None:
    with locked(root, timeout=0, disk=HastyDisk()), pytest.raises(Locked), locked(root, timeout=0):
        pass


def test_a_site_root_that_is_gone_cannot_be_locked(root: Path) -> None:
    with pytest.raises(NotWritable, match=f"{root}/gone: No such file or directory"), locked(root / "gone", timeout=0):
        pass


def test_what_a_run_left_that_was_killed_before_its_journal_is_swept(root: Path) -> None:
    before = tree(root)
    assert not needs_sweep(root)
    write(root / ".patchkit/journal.json.tmp", b"half")
    write(root / ".patchkit/objects" / sha256(OLD), OLD)
    write(root / ".patchkit/objects" / f"{sha256(NEW)}.tmp", b"half")
    assert needs_sweep(root)
    with locked(root, timeout=0):
        pass
    assert tree(root) == before
    assert not needs_sweep(root)


def test_a_sweep_keeps_what_a_ledger_speaks_of(root: Path) -> None:
    run(root, make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)}))
    before = tree(root)
    assert not needs_sweep(root)
    write(root / ".patchkit/journal.json.tmp", b"half")
    assert needs_sweep(root)
    with locked(root, timeout=0):
        pass
    assert tree(root) == before


def test_a_file_that_is_not_ours_keeps_the_state_folder(root: Path) -> None:
    write(root / ".patchkit/README", b"mine")
    with locked(root, timeout=0):
        pass
    assert (root / ".patchkit/README").read_bytes() == b"mine"


def test_a_transaction_does_not_begin_on_top_of_another(root: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    edited_during_the_check(root, plan, lambda: write(root / "pkg/mod.py", b"an edit\n"))
    before = tree(root)
    with pytest.raises(Interrupted, match=r"unfinished transaction is in .*journal\.json"):
        run(root, make_plan(root, {"pkg/other.py": None}))
    assert tree(root) == before


def test_there_is_nothing_to_recover_where_nothing_was_interrupted(root: Path) -> None:
    before = tree(root)
    assert undo(root) is Recovery.NOTHING
    assert tree(root) == before
