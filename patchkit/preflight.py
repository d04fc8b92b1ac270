"""Whether a plan can be carried out at all, asked before anything is written. Only looks."""

from __future__ import annotations

import os

from patchkit.disk import Disk
from patchkit.errors import NotWritable, PatchkitError
from patchkit.journal import OBJECTS, STATE
from patchkit.model import Plan
from patchkit.store import Lock
from patchkit.targets import find_escape


def preflight(root: str | os.PathLike[str], plan: Plan) -> list[PatchkitError]:
    """Everything that would keep ``plan`` from being carried out below ``root``, as far as looking can tell.

    `NotWritable` for a path that leads out of the site root, for each directory that cannot be written, and for each
    file whose owner and group could not be given to its replacement. Takes no lock.
    """
    sight = Lock(os.fspath(root), Disk())
    if problem := find_escape(sight, plan.paths):
        return [NotWritable(problem)]
    folders = sorted(_find_written(sight, plan))
    locked_out = [_lock_out(folder) for folder in folders if not sight.disk.is_writable(folder)]
    lost = (_find_lost_owner(sight.disk, sight.at(change.path)) for change in plan.changes)
    return [*locked_out, *(error for error in lost if error is not None)]


def _find_written(sight: Lock, plan: Plan) -> set[str]:
    """The directories, there already, in which names are made or removed."""
    parents = {os.path.dirname(sight.at(path)) for path in plan.paths}
    sources = {os.path.dirname(sight.at(change.path)) for change in plan.changes if change.path.endswith(".py")}
    caches = {f"{folder}/__pycache__" for folder in sources}
    nearest = {_nearest(sight, path) for path in {sight.at(STATE), sight.state(OBJECTS), *parents}}
    return nearest | {path for path in caches if sight.disk.look(path) is not None}


def _nearest(sight: Lock, path: str) -> str:
    while sight.disk.look(path) is None and path != sight.root:
        path = os.path.dirname(path)
    return path


def _lock_out(folder: str) -> NotWritable:
    return NotWritable(
        f"{folder} is not writable for user {os.geteuid()}, or its file system is read-only",
        hint="run as a user who may write there",
    )


def _find_lost_owner(disk: Disk, path: str) -> NotWritable | None:
    info = disk.look(path)
    if info is None or os.geteuid() == 0:
        return None
    if info.st_uid == os.geteuid() and info.st_gid in (os.getegid(), *os.getgroups()):
        return None
    return NotWritable(
        f"{path} belongs to {info.st_uid}:{info.st_gid}, and its replacement could not be given to them",
        hint="run as the owner of the file, or as root",
    )
