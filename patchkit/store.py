"""The state folder ``.patchkit`` of one site root: its lock, and how ledger, journal and objects get into it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from patchkit.disk import Disk, Owner
from patchkit.errors import DamagedState, Locked
from patchkit.faults import explain
from patchkit.installed import Content, sha256
from patchkit.interruption import deferred
from patchkit.journal import JOURNAL, LEDGER, LOCK, OBJECTS, STATE

_TEMP = ".tmp"
_OBJECT = re.compile(r"[0-9a-f]{64}(\.tmp)?")
_POLL_SECONDS = 0.05
_REAL = Disk()


@dataclass(frozen=True, slots=True)
class Lock:
    """The right to write below one site root, held; `locked` gives it."""

    root: str
    disk: Disk

    def at(self, path: str) -> str:
        """The absolute path of ``path``, which is relative to the site root."""
        return f"{self.root}/{path}"

    def state(self, name: str) -> str:
        """The absolute path of a file in the state folder."""
        return f"{self.root}/{STATE}/{name}"

    def object(self, name: str) -> str:
        """The absolute path of an object; ``name`` is its sha256."""
        return f"{self.root}/{STATE}/{OBJECTS}/{name}"


@contextmanager
def locked(root: str | os.PathLike[str], *, timeout: float, disk: Disk = _REAL) -> Iterator[Lock]:
    """Hold the lock of the site root ``root``; wait up to ``timeout`` seconds for it.

    The lock is flock(2)'s, so one that was killed does not block. What it left before its journal was complete is
    swept, and a state folder that ends up with nothing but the lock in it goes away with it.
    Raises `Locked` after the timeout, `NotWritable` where the state folder may not be made or written, `RolledBack`
    where that fails (a full disk), `DamagedState` where something else lies in its place.
    """
    lock = Lock(os.fspath(root), disk)
    descriptor = _acquire(lock, timeout)
    try:
        with _unwritable():
            _sweep(lock)
        yield lock
    finally:
        _release(lock, descriptor)


# ---- the lock -------------------------------------------------------------------------------------------------


def _acquire(lock: Lock, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    descriptor = None
    try:
        while True:
            with _unwritable(), deferred():
                descriptor = _try_lock(lock)
            if descriptor is not None:
                return descriptor
            left = deadline - time.monotonic()
            if left <= 0:
                raise Locked(f"another patchkit holds {lock.state(LOCK)} (waited {timeout:g} s)")
            time.sleep(min(_POLL_SECONDS, left))
    except KeyboardInterrupt:
        if descriptor is not None:
            _release(lock, descriptor)
        raise


def _release(lock: Lock, descriptor: int) -> None:
    with deferred():
        try:
            with suppress(OSError):  # what stays is swept by the next run
                _sweep(lock)
                _leave(lock)
        finally:
            os.close(descriptor)


def _try_lock(lock: Lock) -> int | None:
    """A descriptor that holds the lock, or None if another does."""
    while True:
        descriptor = _open_lock(lock)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = lock.disk.look(lock.state(LOCK))
            if named is not None and os.path.samestat(os.fstat(descriptor), named):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # a last revert removed the file before it let go of it: the lock is another file now


def _open_lock(lock: Lock) -> int:
    while True:
        mode, owner = _state_mode(lock), find_owner(lock, lock.root)  # an error where the site root itself is gone
        try:
            _make_state(lock)
            return lock.disk.open_lock(lock.state(LOCK), mode, owner)
        except FileNotFoundError:  # a last revert has just removed the folder, perhaps as soon as it was made
            continue


def _make_state(lock: Lock) -> None:
    folder = lock.at(STATE)
    if lock.disk.look(folder) is None:
        with suppress(FileExistsError):  # another run was faster
            make_directory(lock, folder)
            lock.disk.sync([lock.root])
    for path in (folder, lock.state(OBJECTS)):
        info = lock.disk.look(path)
        if info is not None and not stat.S_ISDIR(info.st_mode):
            raise DamagedState(f"{path} is not a directory", hint="patchkit did not put it there; move it away")


def _sweep(lock: Lock) -> None:
    """Remove what neither a journal nor a ledger speaks of."""
    names = lock.disk.names(lock.at(STATE))
    if JOURNAL not in names:
        _discard_temps(lock)
        if LEDGER not in names:
            keep_objects(lock, frozenset())


def _leave(lock: Lock) -> None:
    if lock.disk.names(lock.at(STATE)) == [LOCK]:
        lock.disk.unlink(lock.state(LOCK))
        lock.disk.rmdir(lock.at(STATE))


@contextmanager
def _unwritable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(error) from error


# ---- ledger, journal, objects ---------------------------------------------------------------------------------


def read_ledger_file(lock: Lock) -> bytes | None:
    """The bytes of ledger.json; None if there is none."""
    path = lock.state(LEDGER)
    return None if lock.disk.look(path) is None else lock.disk.read(path)


def put_ledger(lock: Lock, data: bytes | None) -> None:
    """Replace ledger.json, or remove it; done on the disk when it returns."""
    if data is None:
        discard(lock, lock.state(LEDGER))
    else:
        put_state(lock, LEDGER, data)
    lock.disk.sync([lock.at(STATE)])


def put_state(lock: Lock, name: str, data: bytes) -> None:
    """Replace a state file: its bytes are on the disk when it returns, its name after the next sync of the folder."""
    lock.disk.sync([stage_state(lock, name, data)])
    promote_state(lock, name)


def stage_state(lock: Lock, name: str, data: bytes) -> str:
    """Write what `promote_state` will rename; the path that it has by then."""
    return _put_aside(lock, lock.state(name), data)


def promote_state(lock: Lock, name: str) -> None:
    """Replace a state file by the staged one. Takes no room on the disk."""
    lock.disk.replace(lock.state(name) + _TEMP, lock.state(name))


def put_object(lock: Lock, name: str, data: bytes) -> bool:
    """Store ``data`` and return True, unless it is there; an object that is not what its name says is replaced."""
    path = lock.object(name)
    if lock.disk.look(path) is not None and sha256(lock.disk.read(path)) == name:
        return False
    lock.disk.replace(_put_aside(lock, path, data), path)
    return True


def read_object(lock: Lock, name: str) -> bytes:
    """The bytes called ``name``. Raises OSError, or `DamagedState` if they are others."""
    data = lock.disk.read(lock.object(name))
    if sha256(data) != name:
        raise DamagedState(f"{lock.object(name)} is not what its name says", hint="reinstall the distribution")
    return data


def keep_objects(lock: Lock, live: frozenset[str]) -> None:
    """Remove every object that is not ``live``, and the folder when none is left."""
    folder = lock.state(OBJECTS)
    for name in lock.disk.names(folder):
        if name not in live and _OBJECT.fullmatch(name):
            lock.disk.unlink(lock.object(name))
    if not lock.disk.names(folder):
        remove_if_empty(lock, folder)


def _discard_temps(lock: Lock) -> None:
    """Remove what a killed run left half written in the state folder."""
    for name in lock.disk.names(lock.at(STATE)):
        if name.endswith(_TEMP):
            lock.disk.unlink(lock.state(name))


def _put_aside(lock: Lock, path: str, data: bytes) -> str:
    temp = path + _TEMP
    discard(lock, temp)
    lock.disk.write(temp, Content(data, _state_mode(lock)), find_owner(lock, lock.root))
    return temp


def _state_mode(lock: Lock) -> int:
    """State files are open to whoever may use the site root: another user may have to verify, or to recover."""
    return stat.S_IMODE(_status(lock, lock.root).st_mode) & 0o666


# ---- single operations ----------------------------------------------------------------------------------------


def find_owner(lock: Lock, folder: str) -> Owner | None:
    """Who owns what is made new in ``folder``: under root, its owner; else None, whoever runs this."""
    status = _status(lock, folder)
    return (status.st_uid, status.st_gid) if os.geteuid() == 0 else None


def make_directory(lock: Lock, path: str) -> None:
    """A new directory, as open and as owned as the one that it lies in."""
    folder = os.path.dirname(path)
    mode = stat.S_IMODE(_status(lock, folder).st_mode)
    lock.disk.mkdir(path, mode, find_owner(lock, folder))


def discard(lock: Lock, path: str) -> None:
    """Remove a file if it is there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        lock.disk.unlink(path)


def remove_if_empty(lock: Lock, path: str) -> None:
    """Remove a directory if it is one, and empty."""
    try:
        lock.disk.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise


def sync_existing(lock: Lock, folders: set[str]) -> None:
    """Those of the directories that are there are on the disk when it returns."""
    lock.disk.sync([folder for folder in sorted(folders) if lock.disk.look(folder) is not None])


def _status(lock: Lock, folder: str) -> os.stat_result:
    status = lock.disk.look(folder, follow=True)
    if status is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    return status
