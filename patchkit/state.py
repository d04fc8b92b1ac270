"""Reading the state folder ``.patchkit`` of a site root, without a lock and without writing."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from patchkit.applied import Ledger
from patchkit.errors import DamagedState, InProgress, Interrupted, NotReadable
from patchkit.installed import sha256
from patchkit.ledger import read_ledger
from patchkit.site import STATE_FOLDER, read_plain

READER_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class State:
    """What ``.patchkit`` holds. ``data`` are the bytes of ledger.json (None: there is none)."""

    ledger: Ledger
    data: bytes | None
    interrupted: bool = False


def read_state(root: str, *, allow_interrupted: bool = False, wait: float = READER_WAIT_SECONDS) -> State:
    """The ledger of ``root``, read without a lock.

    Where a journal lies beside it: `InProgress` when its writer lives (after ``wait`` seconds), else `Interrupted`,
    unless ``allow_interrupted``. Raises `DamagedState` and `NewerFormat` too.
    """
    folder = os.path.join(root, STATE_FOLDER)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise DamagedState(f"{folder} is not a directory", hint="patchkit did not put it there; move it away")
    deadline = time.monotonic() + wait
    while os.path.lexists(os.path.join(folder, "journal.json")):
        if not _is_held(os.path.join(folder, "lock")):
            if not os.path.lexists(os.path.join(folder, "journal.json")):
                break
            if not allow_interrupted:
                raise Interrupted(f"a transaction on {root} was interrupted: {folder}/journal.json is there")
            return State(*_read_ledger_file(folder), interrupted=True)
        if time.monotonic() >= deadline:
            raise InProgress(f"another patchkit is writing to {root}")
        time.sleep(0.02)
    return State(*_read_ledger_file(folder))


def _read_ledger_file(folder: str) -> tuple[Ledger, bytes | None]:
    path = os.path.join(folder, "ledger.json")
    content = read_plain(path)
    if content is None and os.path.lexists(path):
        raise DamagedState(f"{path} is not a plain file", hint="patchkit did not put it there; move it away")
    return (Ledger(), None) if content is None else (read_ledger(content.data, file=path), content.data)


def _is_held(lock: str) -> bool:
    """Whether a writer holds the lock: a shared lock cannot be had, without writing anything."""
    import fcntl  # here, for other systems lack it and are to be told so in words

    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise NotReadable(f"{lock} cannot be read: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


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
