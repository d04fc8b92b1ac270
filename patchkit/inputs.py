"""Where patch folders lie, and one digest of all that reading them may read. Reads only.

It is loaded before anything else is, to find out whether there is anything to do (`settled`); so it imports nothing
that an interpreter has not loaded when it starts, but hashlib.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from hashlib import sha256

MANIFEST = "patchset.toml"
DECLARATION = "patchkit.toml"
DEFAULT_FOLDER = "patches"
LARGEST_FILE = 64 << 20
"""Bytes; no reader takes more."""
MOST_ENTRIES = 4096
MOST_BYTES = 64 << 20
DEEPEST = 64
"""Of all patch folders together. One digest of more than that is no short way to anything."""


class Doubt(Exception):
    """What is there is not plain enough to be sure of; whoever meets this decides in full instead."""


def find_project(cwd: str) -> str:
    """The path of the nearest pyproject.toml, from ``cwd`` up; "" where there is none."""
    folder = os.path.abspath(cwd)
    while True:
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path):
            return path
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def place_folders(
    folders: Sequence[str], *, bundled: str, cwd: str, home: str, named: Sequence[str], declares: bool
) -> list[str]:
    """The patch folders to read, each once however it is spelt.

    ``inputs`` are those that the user named. Else ``named`` count, by the pyproject.toml in ``home``, or the default;
    ``declares``: that file says something of patchkit, be it the folders or not. ``bundled`` is the folder of the sets
    that come with patchkit, where they are asked for, else "".
    """
    base = cwd
    if not folders and not bundled:
        folders, base = (named, home) if named else ((DEFAULT_FOLDER,), cwd)
        if not named and declares and not os.path.isdir(os.path.join(cwd, DEFAULT_FOLDER)):
            base = home  # in a folder of the project below the one that has the patches
    places: dict[str, str] = {}
    for folder in (*folders, *([bundled] if bundled else [])):
        place = os.path.abspath(os.path.join(base, folder))
        places.setdefault(os.path.realpath(place), place)
    return list(places.values())


# ---- one digest -----------------------------------------------------------------------------------------------


class Sum:
    """A digest of named pieces, in the order in which they are added. No two lists of pieces run into each other."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._entries = self._bytes = 0

    def add(self, kind: str, name: str, data: bytes = b"") -> None:
        self._entries += 1
        self._bytes += len(data)
        if self._entries > MOST_ENTRIES or self._bytes > MOST_BYTES:
            raise Doubt(f"more than {MOST_ENTRIES} entries, or than {MOST_BYTES >> 20} MiB")
        words = os.fsencode(name)
        self._hash.update(b"%s %d %d\n" % (kind.encode("ascii"), len(words), len(data)) + words)
        self._hash.update(data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def digest_folders(places: Sequence[str], project: bytes | None) -> str:
    """One sha256 of what the patch folders ``places`` hold and of the bytes of the pyproject.toml (None: none).

    Names and bytes count, in the order of ``places``; where the folders lie does not. Raises `Doubt` for symbolic
    links, special files and sheer size, OSError for what cannot be read.
    """
    whole = Sum()
    whole.add("no-project" if project is None else "project", "", project or b"")
    for place in places:
        names = sorted(os.listdir(place))
        if MANIFEST in names:  # a patch set itself, which must be called as its folder is
            whole.add("set", os.path.basename(place))
            _add_tree(whole, place, "", names)
        else:
            whole.add("folder", "")
            _add_folder(whole, place, names)
    return whole.hexdigest()


def _add_folder(whole: Sum, place: str, names: Sequence[str]) -> None:
    """The sets, the manifest-free patches and the declaration in one patch folder; other files are never read."""
    for name in names:
        path = os.path.join(place, name)
        if _is_folder(path):
            inside = [] if name.startswith(".") else sorted(os.listdir(path))
            if MANIFEST in inside or any(entry.endswith(".patch") for entry in inside):
                whole.add("set", name)
                _add_tree(whole, path, "", inside)
        elif name == DECLARATION or name.endswith(".patch"):
            whole.add("file", name, read_regular(path)[0])


def _add_tree(whole: Sum, folder: str, below: str, names: Sequence[str]) -> None:
    for name in names:
        path = os.path.join(folder, name)
        if _is_folder(path):
            if below.count("/") >= DEEPEST:
                raise Doubt(f"{path} lies too deep")
            whole.add("in", f"{below}{name}")
            _add_tree(whole, path, f"{below}{name}/", sorted(os.listdir(path)))
        else:
            whole.add("file", f"{below}{name}", read_regular(path)[0])


def _is_folder(path: str) -> bool:
    mode = os.lstat(path).st_mode
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise Doubt(f"{path} is neither a file nor a folder")
    return stat.S_ISDIR(mode)


def read_regular(path: str) -> tuple[bytes, int]:
    """The bytes and permission bits of a regular file. Raises `Doubt` where it is none, OSError where unreadable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            raise Doubt(f"{path} is no file that is read here")
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:
            raise Doubt(f"{path} is being written")
        return data, stat.S_IMODE(status.st_mode)
    finally:
        os.close(descriptor)
