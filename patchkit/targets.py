"""The files that a transaction replaces: looked at, staged beside their targets, swapped in."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from patchkit.disk import Owner
from patchkit.installed import Content, Observed
from patchkit.journal import is_safe
from patchkit.store import Lock, discard, find_owner, sync_existing

_MARK = Content(b"", 0o600)


@dataclass(frozen=True, slots=True)
class Move:
    """A target that becomes ``content``, a symbolic link to ``link``, or (both None) nothing.

    ``temp`` is there from `stage` to `swap`; for a target that goes it is an empty file that says just that.
    ``owner`` None means whoever owns what is made new in the directory.
    """

    path: str
    temp: str
    content: Content | None
    link: str | None
    owner: Owner | None

    @property
    def removes(self) -> bool:
        """Whether the target goes."""
        return self.content is None and self.link is None


def observe(lock: Lock, path: str) -> Observed:
    """The path as it is on the disk, a symbolic link read through."""
    full = lock.at(path)
    info = lock.disk.look(full)
    if info is None:
        return Observed(path, None)
    link = None
    if stat.S_ISLNK(info.st_mode):
        link = lock.disk.read_link(full)
        info = lock.disk.look(full, follow=True)
    if info is None or not stat.S_ISREG(info.st_mode):
        return Observed(path, None, link, "is not a plain file")
    return Observed(path, Content(lock.disk.read(full), stat.S_IMODE(info.st_mode)), link)


def is_alike(found: Observed, planned: Observed) -> bool:
    """Whether a path is as planned: the same content, or the same link, and nothing in its place."""
    return not found.obstacle and (found.content, found.link) == (planned.content, planned.link)


def find_escape(lock: Lock, paths: Iterable[str]) -> str:
    """What would lead out of the site root, in words ("" if nothing): every parent must be a real directory."""
    real: set[str] = set()
    for path in paths:
        if not is_safe(path):
            return f"{path!r} does not name a file below {lock.root}"
        parts = path.split("/")
        for parent in ("/".join(parts[:count]) for count in range(1, len(parts))):
            if parent not in real and (info := lock.disk.look(lock.at(parent))) is not None:
                if not stat.S_ISDIR(info.st_mode):
                    return f"{path} lies behind {lock.at(parent)}, which is not a directory"
                real.add(parent)
    return ""


def stage(lock: Lock, moves: Sequence[Move]) -> None:
    """Write everything that will be renamed, under its temporary name; on the disk when it returns."""
    written = []
    for move in moves:
        temp = lock.at(move.temp)
        owner = move.owner or find_owner(lock, os.path.dirname(temp))
        if move.link is not None:
            lock.disk.link(temp, move.link, owner)
        else:
            lock.disk.write(temp, move.content or _MARK, owner)
            written.append(temp)
    lock.disk.sync([*written, *sorted({os.path.dirname(lock.at(move.temp)) for move in moves})])


def swap(lock: Lock, move: Move) -> None:
    """Replace one target by what is staged, or remove it. Never in place, never through a link."""
    target, temp = lock.at(move.path), lock.at(move.temp)
    if move.removes:
        lock.disk.unlink(target)
        lock.disk.unlink(temp)
    else:
        lock.disk.touch(temp)  # what a build made of the old bytes since staging must not look newer than the new ones
        lock.disk.replace(temp, target)


def settle(lock: Lock, paths: Sequence[str], directories: Sequence[str]) -> None:
    """Drop every compiled file of ``paths``; all directories that were touched are on the disk when it returns."""
    touched = _drop_compiled(lock, paths)
    sync_existing(lock, touched | {os.path.dirname(lock.at(path)) for path in (*paths, *directories)})


def _drop_compiled(lock: Lock, paths: Iterable[str]) -> set[str]:
    """Remove the compiled files of these sources (PEP 3147, PEP 488); the directories that they were in."""
    sources: dict[str, set[str]] = {}
    for path in paths:
        if path.endswith(".py"):
            folder, name = os.path.split(lock.at(path))
            sources.setdefault(folder, set()).add(name[: -len(".py")])
    touched = set()
    for folder, stems in sources.items():
        cache = f"{folder}/__pycache__"
        info = lock.disk.look(cache)
        names = lock.disk.names(cache) if info is not None and stat.S_ISDIR(info.st_mode) else []
        for name in names:
            info = lock.disk.look(f"{cache}/{name}") if compiled_from(name) in stems else None
            if info is not None and not stat.S_ISDIR(info.st_mode):
                lock.disk.unlink(f"{cache}/{name}")
                touched.add(cache)
        for stem in sorted(stems):
            with suppress(OSError):  # a name that is too long, or no file: nothing that anybody would import
                discard(lock, f"{folder}/{stem}.pyc")  # as Python 2 and `compileall -b` place them
    return touched


def compiled_from(name: str) -> str:
    """The module whose compiled file is called ``name``, as in ``module.tag[.opt-level].pyc``; "" for other files."""
    if not name.endswith(".pyc"):
        return ""
    stem = name[: -len(".pyc")].partition("-pytest-")[0]  # pytest's own tag has dots in it
    if stem.rpartition(".")[2].startswith("opt-"):
        stem = stem.rpartition(".")[0]
    return stem.rpartition(".")[0]
