"""Disks that die: the process is killed at the n-th deed, or the power goes, or the n-th deed fails."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from enum import Enum, unique
from pathlib import Path
from typing import Any

from patchkit.disk import Disk
from patchkit.installed import Content

DEEDS = ("open_lock", "write", "link", "touch", "replace", "unlink", "mkdir", "rmdir", "sync")
TEARABLE = ("write", "mkdir")
LOOKS = ("look", "read", "read_link", "names")


class Killed(BaseException):
    """What nothing can catch, and after what nothing is done any more."""


@unique
class Fate(Enum):
    """How it ends. A power cut takes bytes that were not synced, and perhaps names, directory by directory."""

    KILLED = "killed before the deed"
    TORN = "killed in the middle of it"
    POWER = "no power, every name had reached the disk"
    POWER_STATE = "no power, names in the state folder are lost since its last sync"
    POWER_TARGETS = "no power, names outside the state folder are lost since the last sync of their directory"
    POWER_ALL = "no power, all names are lost since the last sync of their directory"
    POWER_LAST = "no power, all such names are lost but the last"


class QuickDisk(Disk):
    """A disk that needs no sync."""

    def sync(self, paths: Sequence[str]) -> None:
        for path in paths:
            os.stat(path)


class CountingDisk(QuickDisk):
    """Announces every deed before it is done, and keeps a list."""

    def __init__(self) -> None:
        self.deeds: list[str] = []

    def begin(self, deed: str, arguments: tuple[Any, ...]) -> None:
        self.deeds.append(deed)

    def begin_look(self) -> None:
        pass


def _announced(name: str) -> Callable[..., Any]:
    real = getattr(QuickDisk, name)

    def method(disk: CountingDisk, *arguments: Any, **options: Any) -> Any:
        if name in LOOKS:
            disk.begin_look()
        else:
            disk.begin(name, arguments)
        return real(disk, *arguments, **options)

    return method


for _name in (*DEEDS, *LOOKS):
    setattr(CountingDisk, _name, _announced(_name))


class FailingDisk(CountingDisk):
    """The deed number ``bad`` (from 1) fails, and with ``forever`` all after it."""

    def __init__(self, bad: int, *, forever: bool) -> None:
        super().__init__()
        self.bad = bad
        self.forever = forever

    def begin(self, deed: str, arguments: tuple[Any, ...]) -> None:
        super().begin(deed, arguments)
        if len(self.deeds) == self.bad or (self.forever and len(self.deeds) > self.bad):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(arguments[0]))


class MortalDisk(CountingDisk):
    """Dies at the deed number ``life`` (from 1); no deed and no look after that."""

    def __init__(self, life: int, fate: Fate) -> None:
        super().__init__()
        self.life = life
        self.fate = fate
        self.dead = False
        self.unsynced: set[str] = set()
        self.pending: list[tuple[int, str, Callable[[], None]]] = []

    def begin_look(self) -> None:
        if self.dead:
            raise Killed

    def begin(self, deed: str, arguments: tuple[Any, ...]) -> None:
        super().begin(deed, arguments)
        self.begin_look()
        if len(self.deeds) == self.life:
            self.die(deed, arguments)
        self.note(deed, arguments)

    def die(self, deed: str, arguments: tuple[Any, ...]) -> None:
        self.dead = True
        if self.fate is Fate.TORN and deed == "write":
            path, content, owner = arguments
            Disk.write(self, path, Content(content.data[: len(content.data) // 2], 0o600), owner)
        elif self.fate is Fate.TORN and deed == "mkdir":
            os.mkdir(arguments[0])
        elif self.fate not in (Fate.KILLED, Fate.TORN):
            self.cut_power()
        raise Killed

    # ---- what a power cut takes with it

    def note(self, deed: str, arguments: tuple[Any, ...]) -> None:
        path = str(arguments[0])
        match deed:
            case "sync":
                synced = {str(item) for item in arguments[0]}
                self.unsynced -= synced
                self.pending = [entry for entry in self.pending if os.path.dirname(entry[1]) not in synced]
            case "replace":
                target = str(arguments[1])
                self.unsynced.discard(target)
                if path in self.unsynced:
                    self.unsynced.remove(path)
                    self.unsynced.add(target)
                self.keep(target)
                self.keep(path)
            case "write":
                self.unsynced.add(path)
                self.keep(path)
            case "link" | "unlink" | "mkdir" | "rmdir":
                self.unsynced.discard(path)
                self.keep(path)

    def keep(self, path: str) -> None:
        self.pending.append((len(self.deeds), path, _keeper(path)))

    def cut_power(self) -> None:
        """What a power cut now would do to the tree."""
        for path in self.unsynced:
            if os.path.exists(path):
                os.truncate(path, 0)
        last = self.pending[-1][0] if self.pending else 0
        for number, path, put_back in reversed(self.pending):
            folder = os.path.dirname(path)
            lost = {
                Fate.POWER_STATE: folder.endswith("/.patchkit"),
                Fate.POWER_TARGETS: "/.patchkit/" not in path,
                Fate.POWER_ALL: True,
                Fate.POWER_LAST: number != last,
            }
            if lost.get(self.fate, False) and os.path.isdir(folder):
                put_back()


def _keeper(path: str) -> Callable[[], None]:
    """What makes ``path`` as it is now."""
    place = Path(path)
    target = os.readlink(place) if place.is_symlink() else None
    content = None if target is not None or not place.is_file() else (place.read_bytes(), place.stat().st_mode)
    is_directory = target is None and place.is_dir()

    def put_back() -> None:
        if is_directory:
            place.mkdir(exist_ok=True)
            return
        _clear(place)
        if target is not None:
            place.symlink_to(target)
        elif content is not None:
            place.write_bytes(content[0])
            place.chmod(content[1])

    return put_back


def _clear(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
