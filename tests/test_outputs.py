"""Files that a user asked for: whole or not at all, never over something that was not named."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patchkit.disk import Disk
from patchkit.errors import Locked, NotWritable, RolledBack, UsageError
from patchkit.installed import Content
from patchkit.outputs import holding, keep_copy, write_folder, write_output
from worlds import tree


class Full(Disk):
    """A disk that is full once so many files are written."""

    def __init__(self, left: int) -> None:
        self.left = left

    def write(self, path: str, content: Content, owner: tuple[int, int] | None) -> None:
        self.left -= 1
        if self.left < 0:
            super().write(path, Content(content.data[:1], content.mode), owner)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write(path, content, owner)


def test_a_new_file_has_the_data_and_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_output(str(tmp_path / "report.json"), b"{}\n")
    finally:
        os.umask(before)
    assert tree(tmp_path).keys() == {"report.json"}
    assert (tmp_path / "report.json").read_bytes() == b"{}\n"
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_there_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"old")
    (tmp_path / "report").chmod(0o604)
    os.link(tmp_path / "report", tmp_path / "twin")
    write_output(str(tmp_path / "report"), b"new")
    assert (tmp_path / "report").read_bytes() == b"new"
    assert (tmp_path / "report").stat().st_mode & 0o777 == 0o604
    assert (tmp_path / "twin").read_bytes() == b"old"


def test_a_symbolic_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_output(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_pipe_is_written_straight(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_output(str(tmp_path / "pipe"), b"through")
    reader.join(timeout=10)
    assert read == [b"through"]
    assert tree(tmp_path).keys() == {"pipe"}


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"old")
    with pytest.raises(RolledBack, match="report cannot be written: No space left"):
        write_output(str(tmp_path / "report"), b"new", disk=Full(0))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"report": b"old"}


@pytest.mark.parametrize("place", ["absent/report", "file/report", "folder"])
def test_a_place_that_cannot_be_written_is_named(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotWritable, match=f"{place} cannot be written"):
        write_output(str(tmp_path / place), b"new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_folder_is_made_with_its_files_and_their_modes(tmp_path: Path) -> None:
    write_folder(str(tmp_path / "deep" / "place"), {"a/b.py": Content(b"b\n", 0o755), "c": Content(b"", 0o644)})
    assert (tmp_path / "deep/place/a/b.py").read_bytes() == b"b\n"
    assert (tmp_path / "deep/place/a/b.py").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "deep/place/c").read_bytes() == b""


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mine").write_bytes(b"mine")
    with pytest.raises(UsageError, match="is there already and not empty"):
        write_folder(str(tmp_path / "work"), {"mine": Content(b"yours", 0o644)})
    assert (tmp_path / "work" / "mine").read_bytes() == b"mine"


def test_a_folder_that_cannot_be_filled_is_taken_back(tmp_path: Path) -> None:
    with pytest.raises(RolledBack, match="No space left"):
        write_folder(
            str(tmp_path / "deep/place"), {"a": Content(b"a", 0o644), "b": Content(b"bb", 0o644)}, disk=Full(1)
        )
    assert not list(tmp_path.iterdir())


DYING = """
import os, sys
from patchkit.disk import Disk
from patchkit.installed import Content
from patchkit.outputs import write_folder
left = int(sys.argv[2])
def dying(name):
    done = getattr(Disk, name)
    def call(*args, **keys):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return done(*args, **keys)
    return call
for name in ("mkdir", "write", "replace"):
    setattr(Disk, name, dying(name))
write_folder(sys.argv[1], {"a.patch": Content(b"a", 0o644), "patchset.toml": Content(b"b", 0o644)})
"""


def test_killed_at_any_moment_the_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    for left in range(5):
        place = tmp_path / str(left)
        place.mkdir()
        ended = subprocess.run([sys.executable, "-c", DYING, place / "own", str(left)], check=False)
        whole = {"own", "own/a.patch", "own/patchset.toml"}
        seen = {path for path in tree(place) if not path.startswith(".")}
        assert (ended.returncode, seen) == ((0, whole) if left == 4 else (9, set()))


def test_an_empty_folder_is_filled_whole_or_not_at_all_too(tmp_path: Path) -> None:
    for left in range(5):
        own = tmp_path / str(left) / "own"
        own.mkdir(parents=True, mode=0o750)
        ended = subprocess.run([sys.executable, "-c", DYING, own, str(left)], check=False)
        assert (ended.returncode, len(list(own.iterdir()))) == ((0, 2) if left == 4 else (9, 0))
        assert own.stat().st_mode & 0o777 == 0o750


def test_an_empty_folder_of_which_more_than_its_name_counts_stays_the_one_that_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    write_folder(str(tmp_path / "link"), {"a": Content(b"a", 0o644)})
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target" / "a").is_file()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_folder(str(tmp_path / "here"), {"a": Content(b"a", 0o644)})
    assert Path("a").is_file()


def test_who_holds_a_folder_keeps_others_out_also_of_one_that_is_not_there_yet(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent" / "patches"):
        asked = [str(folder)]
        with holding(asked), pytest.raises(Locked, match="is writing into"), holding(asked, wait_seconds=0):
            raise AssertionError
        with holding(asked, wait_seconds=0):
            assert not list(tmp_path.iterdir())


# ---- caches ---------------------------------------------------------------------------------------------------


def test_a_copy_in_a_cache_comes_whole_with_folders_that_are_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "of" / "copy.py"
    keep_copy(str(path), [b"one\n", b"two\n"], 0o755)
    assert path.read_bytes() == b"one\ntwo\n" and path.stat().st_mode & 0o777 == 0o755
    assert [folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]
    keep_copy(str(path), [b"three\n"])
    assert path.read_bytes() == b"three\n"
    assert [each.name for each in path.parent.iterdir()] == ["copy.py"]


def test_of_a_copy_that_breaks_off_nothing_is_left(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError

    path = tmp_path / "cache" / "copy.py"
    keep_copy(str(path), [b"old\n"])
    with pytest.raises(RuntimeError):
        keep_copy(str(path), broken())
    assert path.read_bytes() == b"old\n" and [each.name for each in path.parent.iterdir()] == ["copy.py"]
    with pytest.raises(NotWritable, match="cannot be written"):
        keep_copy(str(path / "below" / "copy.py"), [b""])


def test_many_threads_keep_copies_and_the_umask_stays(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: keep_copy(f"{tmp_path}/a/{number % 3}/{number}", [b"x"]), range(60)))
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert len([path for path in (tmp_path / "a").rglob("*") if path.is_file()]) == 60
