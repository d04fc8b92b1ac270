"""The system calls that change a file, all of them, and those that look at one.

Nothing else in patchkit changes a file. `store`, `targets` and `transaction` do so through a `Disk`, and so does
`outputs`, so that a test can let any single operation fail, tear, or be the last before the power goes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from patchkit.installed import Content

SYNC_ALL = 16
"""From so many files on, one sync(2) is cheaper than an fsync(2) each: on ext4 with 8 kB files 0.6 ms against 2.8 ms
for 16 files, 5.5 ms against 99 ms for 500. sync(2) waits for the data on Linux only; POSIX does not ask for that."""

Owner = tuple[int, int]
"""(uid, gid)"""


class Disk:
    """Every file operation of a transaction, and the place where tests let it fail. Paths are absolute.

    All raise OSError with the path in it. A method that makes something fails if there is something already.
    """

    def look(self, path: str, *, follow: bool = False) -> os.stat_result | None:
        """stat(2) or lstat(2); None if nothing is there."""
        try:
            return os.stat(path, follow_symlinks=follow)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def read_link(self, path: str) -> str:
        return os.readlink(path)

    def names(self, path: str) -> list[str]:
        """The sorted names in a directory; none if it is absent."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def is_writable(self, path: str) -> bool:
        """Whether names can be made and removed in this directory; false on a read-only file system, for root too."""
        return os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)

    def open_lock(self, path: str, mode: int, owner: Owner | None) -> int:
        """A descriptor of the lock file, which is made if need be."""
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            _admit(descriptor, mode, owner)
            return descriptor

    def write(self, path: str, content: Content, owner: Owner | None) -> None:
        """A new file with exactly this mode, whatever the umask says; ``owner`` None: whoever runs this."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with _named(path), os.fdopen(descriptor, "wb") as file:
            _admit(descriptor, content.mode, owner)
            file.write(content.data)

    def extend(self, path: str, data: bytes) -> None:
        """More data behind what a file holds."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        with _named(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)

    def pour(self, path: str, data: bytes) -> None:
        """Into what is there already and is no regular file: a pipe, a terminal."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        with _named(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)

    def umask(self) -> int:
        """The permissions that new files lack here; asking for it sets it, so it is put back at once."""
        mask = os.umask(0)
        os.umask(mask)
        return mask

    def link(self, path: str, target: str, owner: Owner | None) -> None:
        """A new symbolic link to ``target``."""
        os.symlink(target, path)
        if owner is not None:
            os.chown(path, *owner, follow_symlinks=False)

    def touch(self, path: str) -> None:
        os.utime(path, follow_symlinks=False)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def mkdir(self, path: str, mode: int, owner: Owner | None) -> None:
        os.mkdir(path)
        if owner is not None:
            os.chown(path, *owner)
        os.chmod(path, mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def sync(self, paths: Sequence[str]) -> None:
        """These files and directories are on the disk when it returns."""
        if sys.platform == "linux" and len(paths) >= SYNC_ALL:
            os.sync()
            return
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                with _named(path):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """An OSError of an open file has no name; give it one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def _admit(descriptor: int, mode: int, owner: Owner | None) -> None:
    """Exactly this mode, whatever the umask says, and after the owner: chown(2) may clear bits."""
    status = os.fstat(descriptor)
    if owner is not None and owner != (status.st_uid, status.st_gid):
        os.fchown(descriptor, *owner)
    os.fchmod(descriptor, mode)
