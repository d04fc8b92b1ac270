"""Reading the state folder ``.patchkit`` of a site root, without a lock and without writing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from enum import Enum, unique

from patchkit.applied import Ledger
from patchkit.errors import DamagedState, InProgress, Interrupted, NotReadable
from patchkit.installed import sha256
from patchkit.ledger import read_ledger
from patchkit.site import STATE_FOLDER, read_plain

READER_WAIT_SECONDS = 5.0
POLL_SECONDS = 0.02

Identity = tuple[int, int, int]
"""What tells a file or folder from another that stood at its path before: inode, mtime, ctime (of a folder, both
change with the names in it)."""


@dataclass(frozen=True, slots=True)
class State:
    """What ``.patchkit`` holds. ``data`` are the bytes of ledger.json (None: there is none).

    ``moment`` differs whenever a transaction came between two readings, though the ledger be the same again.
    """

    ledger: Ledger
    data: bytes | None
    moment: Identity | None
    interrupted: bool = False


@unique
class Transaction(Enum):
    """What a journal in the state folder means."""

    NONE = "none"
    UNDER_WAY = "under way"
    INTERRUPTED = "interrupted"


def read_state(root: str, *, allow_interrupted: bool = False, wait: float = READER_WAIT_SECONDS) -> State:
    """The ledger of ``root``, read without a lock.

    Where a journal lies beside it: `InProgress` when its writer lives (after ``wait`` seconds), else `Interrupted`,
    unless ``allow_interrupted``. Raises `DamagedState` and `NewerFormat` too.
    """
    folder = os.path.join(root, STATE_FOLDER)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise DamagedState(f"{folder} is not a directory", hint="patchkit did not put it there; move it away")
    deadline = time.monotonic() + wait
    while True:
        moment = _identify(folder) or _identify(root)
        match _find_transaction(folder):
            case Transaction.NONE:
                return State(*_read_ledger_file(folder), moment)
            case Transaction.INTERRUPTED if allow_interrupted:
                return State(*_read_ledger_file(folder), moment, interrupted=True)
            case Transaction.INTERRUPTED:
                raise Interrupted(f"a transaction on {root} was interrupted: {folder}/journal.json is there")
            case Transaction.UNDER_WAY:
                if time.monotonic() >= deadline:
                    raise InProgress(f"another patchkit is writing to {root}")
                time.sleep(POLL_SECONDS)


def _read_ledger_file(folder: str) -> tuple[Ledger, bytes | None]:
    path = os.path.join(folder, "ledger.json")
    content = read_plain(path)
    if content is None and os.path.lexists(path):
        raise DamagedState(f"{path} is not a plain file", hint="patchkit did not put it there; move it away")
    return (Ledger(), None) if content is None else (read_ledger(content.data, file=path), content.data)


def _find_transaction(folder: str) -> Transaction:
    """Whether a transaction is under way, or was interrupted: then nobody holds the lock while its journal is there.

    Between any two looks one writer may end and the next begin. So the journal counts as left behind only if it is seen
    while this process itself keeps writers out by a shared lock, or on both sides of a look that found no lock file.
    """
    import fcntl  # here, for other systems lack it and are to be told so in words

    journal, lock = os.path.join(folder, "journal.json"), os.path.join(folder, "lock")
    seen = _identify(journal)
    if seen is None:
        return Transaction.NONE
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Transaction.INTERRUPTED if _identify(journal) == seen else Transaction.UNDER_WAY
    except PermissionError as error:
        raise NotReadable(f"{lock} cannot be read: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        opened = os.fstat(descriptor)
        is_current = _identify(lock) == (opened.st_ino, opened.st_mtime_ns, opened.st_ctime_ns)
        is_left = is_current and os.path.lexists(journal)
        return Transaction.INTERRUPTED if is_left else Transaction.UNDER_WAY
    except BlockingIOError:
        return Transaction.UNDER_WAY
    finally:
        os.close(descriptor)


def _identify(path: str) -> Identity | None:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def read_object(root: str, name: str) -> bytes | None:
    """The bytes of the object ``name`` (a sha256), None where the store lacks it. Raises `DamagedState`."""
    path = os.path.join(root, STATE_FOLDER, "objects", name)
    content = read_plain(path)
    if content is not None and sha256(content.data) != name:
        raise DamagedState(
            f"{path} is damaged: its bytes are not what its name says",
            hint="remove that file; where its bytes are needed, --wheel FILE or a reinstall supplies them",
        )
    return None if content is None else content.data


def object_path(root: str, name: str) -> str:
    return os.path.join(root, STATE_FOLDER, "objects", name)


def needs_sweep(root: str | os.PathLike[str]) -> bool:
    """Whether a run that was killed left something, besides a transaction, that the next writer sweeps.

    Also true for a moment while another run is about to begin.
    """
    try:
        names = os.listdir(os.path.join(root, STATE_FOLDER))
    except (FileNotFoundError, NotADirectoryError):
        return False
    if "journal.json" in names:
        return False
    return "ledger.json" not in names or any(name.endswith(".tmp") for name in names)
