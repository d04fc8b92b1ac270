"""Which files a patch may touch: those that its distribution owns by its own RECORD."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from patchkit.errors import DiffError, NotOwned, UnsafePath
from patchkit.model import EntryKind, FileDiff


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of one distribution's files.

    ``owned`` are the paths of its RECORD, ``created`` those that wanted patches create, ``inputs`` its top-level
    folders, ``existing`` the paths that are on disk, ``hidden`` those behind a symbolic link.
    """

    distribution: str
    owned: Collection[str]
    created: Collection[str]
    folders: Collection[str]
    existing: Collection[str]
    hidden: Collection[str]


def check_targets(diffs: Sequence[FileDiff], bounds: Bounds, *, file: str) -> list[DiffError]:
    """Every target of ``diffs`` that is refused, each with its line in ``file``.

    A path that nobody has is no error here: the fold says that it does not exist.
    """
    return [error for diff in diffs for path in diff.paths for error in _check(diff, path, bounds, file)]


def _check(diff: FileDiff, path: str, bounds: Bounds, file: str) -> Iterator[DiffError]:
    words = refuse_kind(path)
    if words:
        yield NotOwned(words, file=file, line=diff.line)
    elif path in bounds.hidden:
        yield UnsafePath(f"{path} lies behind a symbolic link", file=file, line=diff.line)
    elif path in bounds.owned or (path in bounds.created and not _is_created(diff, path)):
        return
    elif _is_created(diff, path):
        if "/" not in path or path.partition("/")[0] not in bounds.folders:
            own = ", ".join(sorted(bounds.folders)) or "none"
            words = f"{path} is to be created outside the folders of {bounds.distribution} ({own})"
            yield NotOwned(words, file=file, line=diff.line)
    elif path in bounds.existing:
        words = f"{path} is not in the RECORD of {bounds.distribution}: it is not this distribution's file"
        yield NotOwned(words, file=file, line=diff.line)


def _is_created(diff: FileDiff, path: str) -> bool:
    return diff.kind is EntryKind.CREATE or (diff.kind is EntryKind.RENAME and path == diff.new)


def refuse_kind(path: str) -> str:
    """Files that no patch may touch, whoever owns them ("" for all others)."""
    if path.startswith("/") or ".." in path.split("/"):
        return f"{path} lies outside the site root, as scripts and data do; patches may not leave it"
    top = path.partition("/")[0].lower()
    if top.endswith((".dist-info", ".egg-info")):
        return f"{path} is metadata of an installed distribution, which installers own"
    if "/" not in path and path.lower().endswith(".pth"):
        return f"{path} runs at every start of the interpreter; patches may not touch it"
    if top == ".patchkit":
        return f"{path} lies in patchkit's own state folder"
    if path.endswith((".pyc", ".pyo")):
        return f"{path} is compiled code; patch its source"
    return ""
