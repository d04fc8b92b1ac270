"""Files that a user asked for outside every site root: reports, diffs, manifests, work folders, caches.

`transaction` writes installed files, this module all others. A file is there whole or not at all: it is written beside
its place, synced, and renamed over it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from threading import get_ident

from patchkit.disk import Disk
from patchkit.errors import Locked, NotWritable, PatchkitError, RolledBack, UsageError
from patchkit.installed import Content

DISK = Disk()
PRIVATE = 0o700
POLL_SECONDS = 0.05
NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}


def write_output(path: str, data: bytes, *, disk: Disk = DISK) -> None:
    """Make ``path`` a file with exactly ``data``; a symbolic link is followed, the mode of a file that is there stays.

    What is no regular file (a pipe, ``/dev/stdout``) is written straight. Raises `NotWritable` and `RolledBack`;
    then what was there before is there still.
    """
    try:
        target = os.path.realpath(path)
        status = disk.look(target, follow=True)
        if status is not None and not stat.S_ISREG(status.st_mode):
            disk.pour(target, data)
        else:
            mode = 0o666 & ~disk.umask() if status is None else stat.S_IMODE(status.st_mode)
            _replace(disk, target, Content(data, mode))
    except OSError as error:
        raise _explain(path, error) from error


def check_place(path: str, *, disk: Disk = DISK) -> None:
    """Whether ``path`` can be a file, asked before the work that it is to tell of. Raises `NotWritable`."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    status, around = disk.look(target, follow=True), disk.look(folder, follow=True)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise _explain(path, OSError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if around is None:
        raise _explain(path, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
    if (status is None or stat.S_ISREG(status.st_mode)) and not disk.is_writable(folder):
        raise _explain(path, OSError(errno.EACCES, os.strerror(errno.EACCES)))


def _replace(disk: Disk, target: str, content: Content) -> None:
    folder, name = os.path.split(target)
    staged = os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")
    try:
        disk.write(staged, content, None)
        disk.sync([staged])
        disk.replace(staged, target)
    except BaseException:
        if disk.look(staged) is not None:
            disk.unlink(staged)
        raise
    disk.sync([folder or "."])


def write_folder(path: str, files: Mapping[str, Content], *, disk: Disk = DISK) -> None:
    """Make ``path`` a folder with ``files`` (``/``-separated relative paths). It must not exist, or be empty.

    It is filled beside its place, under a hidden name, and then renamed; an empty one that more than its name would be
    lost of (a link, a mount point, the working directory, somebody else's) is filled where it is.
    Raises `UsageError` where something is there already, `NotWritable` and `RolledBack`; then nothing of it is left.
    """
    made: list[str] = []
    try:
        there = disk.look(path, follow=True)
        if there is not None and disk.names(path):
            raise _taken(path)
        place = path if there is not None and _is_bound(disk, path, there) else _beside(path)
        _make(disk, place, made, None if there is None else stat.S_IMODE(there.st_mode))
        for relative, content in files.items():
            target = os.path.join(place, *relative.split("/"))
            _make(disk, os.path.dirname(target), made)
            made.append(target)
            disk.write(target, content, None)
        if place != path:
            disk.replace(place, path)
    except BaseException as error:
        _take_back(disk, made)
        if isinstance(error, OSError):
            taken = error.errno in (errno.ENOTEMPTY, errno.EEXIST)  # somebody else was faster
            raise (_taken(path) if taken else _explain(path, error)) from error
        raise


def _is_bound(disk: Disk, path: str, status: os.stat_result) -> bool:
    """Whether another folder of its name would not do for this one, or cannot be made."""
    working = os.path.realpath(path) == os.path.realpath(os.curdir)
    foreign = status.st_uid != os.geteuid() or not disk.is_writable(os.path.dirname(os.path.abspath(path)))
    return working or foreign or os.path.islink(path) or os.path.ismount(path)


def _taken(path: str) -> UsageError:
    return UsageError(f"{path} is there already and not empty", hint="name another folder, or remove this one")


def _beside(path: str) -> str:
    """A hidden name in the same folder, for what will be renamed to ``path``."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")


@contextmanager
def holding(folders: Iterable[str], *, wait_seconds: float = 10.0) -> Iterator[None]:
    """Keep others who hold one of ``folders`` out while this lasts, by flock(2) on the folder itself: no file is made.

    For one that is not there yet, the nearest folder above is held. What cannot be opened, or is on a file system
    without locks, is not held. Raises `Locked`.
    """
    deadline = time.monotonic() + wait_seconds
    places = [os.path.realpath(folder) for folder in folders]
    held: set[str] = set()
    with ExitStack() as stack:
        while waiting := {_nearest(place) for place in places} - held:  # it may have been made while this waited
            for folder in sorted(waiting):
                held.add(folder)
                with suppress(OSError):
                    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    stack.callback(os.close, descriptor)
                    _wait_for(folder, descriptor, deadline)
        yield


def _nearest(folder: str) -> str:
    return folder if os.path.isdir(folder) or folder == os.sep else _nearest(os.path.dirname(folder))


def _wait_for(folder: str, descriptor: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                hint = "wait for it to end, then run this again"
                raise Locked(f"another patchkit is writing into {folder}", hint=hint) from error
            time.sleep(POLL_SECONDS)


def keep_copy(path: str, chunks: Iterable[bytes], mode: int = 0o644, *, disk: Disk = DISK) -> None:
    """Make ``path`` a file of ``chunks`` in a cache, and the folders above it; where ``chunks`` raises, nothing of it.

    Nothing is synced: what is lost can be fetched again. Threads may call it at the same time, so the umask, which they
    share, is not asked: new folders are their user's alone (XDG Base Directory Specification). Raises `NotWritable`
    and `RolledBack`.
    """
    folder, name = os.path.split(path)
    staged = os.path.join(folder, f".{name[:200]}.{os.getpid()}.{get_ident()}.tmp")
    try:
        _make_all(disk, folder)
        try:
            disk.write(staged, Content(b"", mode), None)
            for chunk in chunks:
                disk.extend(staged, chunk)
            disk.replace(staged, path)
        except BaseException:
            if disk.look(staged) is not None:
                disk.unlink(staged)
            raise
    except OSError as error:
        raise _explain(path, error) from error


def _make_all(disk: Disk, folder: str) -> None:
    """Make a folder and those above it; somebody else may do so at the same time."""
    if folder and disk.look(folder, follow=True) is None:
        _make_all(disk, os.path.dirname(folder))
        with suppress(FileExistsError):
            disk.mkdir(folder, PRIVATE, None)


def _make(disk: Disk, folder: str, made: list[str], mode: int | None = None) -> None:
    if not folder or disk.look(folder, follow=True) is not None:
        return
    _make(disk, os.path.dirname(folder), made)
    disk.mkdir(folder, 0o777 & ~disk.umask() if mode is None else mode, None)
    made.append(folder)


def _take_back(disk: Disk, made: list[str]) -> None:
    for path in reversed(made):
        status = disk.look(path)
        if status is not None:
            (disk.rmdir if stat.S_ISDIR(status.st_mode) else disk.unlink)(path)


def _explain(path: str, error: OSError) -> PatchkitError:
    words = f"{path} cannot be written: {error.strerror}"
    if error.errno in NOT_OURS:
        return NotWritable(words, hint="name a place that you may write, in a folder that exists")
    return RolledBack(words, hint="nothing was changed; mend that and run it again")
