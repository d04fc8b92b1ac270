"""Folders that patch sets are read from: on disk, or in the archive that patchkit is run from (PEP 441).

A place is a path either way: that of a file in an archive goes through the archive's own path, as in a traceback.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

from patchkit.errors import BadManifest, DiffTooLarge
from patchkit.inputs import LARGEST_FILE

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def bundled_folder() -> str:
    """Where the patch sets that come with patchkit lie: in the package, or beside it in a checkout."""
    inside = os.path.join(_PACKAGE, "bundled")
    return inside if is_folder(inside) else os.path.join(os.path.dirname(_PACKAGE), "patches")


def is_folder(path: str) -> bool:
    archived = _find_archived(path)
    return os.path.isdir(path) if archived is None else archived.is_dir()


def is_file(path: str) -> bool:
    archived = _find_archived(path)
    return os.path.isfile(path) if archived is None else archived.is_file()


def list_names(folder: str) -> list[str]:
    """The sorted names in a folder. Raises `BadManifest` where it cannot be listed."""
    archived = _find_archived(folder)
    try:
        return sorted(os.listdir(folder) if archived is None else (entry.name for entry in archived.iterdir()))
    except OSError as error:
        words = f"{folder} cannot be listed: {error.strerror}"
        raise BadManifest(words, hint="check the folder and its permissions") from error


def read_file(path: str) -> bytes:
    """The bytes of a file. One that is larger than any reader takes is refused before it fills the memory.

    Raises `BadManifest` and `DiffTooLarge`.
    """
    archived = _find_archived(path)
    if archived is not None:
        return archived.read_bytes()
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # opening a named pipe would wait for its other end
            raise BadManifest(f"{path} is not a plain file", hint="put a file in its place")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror}"
        raise BadManifest(words, hint="check the file and its permissions") from error
    if len(data) > LARGEST_FILE:
        raise DiffTooLarge(f"the file is over {LARGEST_FILE >> 20} MiB", file=path, line=1)
    return data


def _find_archived(path: str) -> Traversable | None:
    """What lies at ``path`` below this package, where the package is no folder on disk; else None."""
    if not path.startswith(_PACKAGE + os.sep) or os.path.isdir(_PACKAGE):
        return None
    found = _open_package()
    for part in path[len(_PACKAGE) + 1 :].split(os.sep):
        found = found / part
    return found


@cache
def _open_package() -> Traversable:
    from importlib.resources import files  # slow to load, and only an archive needs it

    return files("patchkit")
