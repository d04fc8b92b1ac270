"""Files that a user asked for: whole or not at all, never over something that was not named."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from patchkit.disk import Disk
from patchkit.errors import NotWritable, RolledBack, UsageError
from patchkit.installed import Content
from patchkit.outputs import write_folder, write_output
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
