"""Work folders: copies of installed files to be edited, beside what is needed to make a diff of the edit.

The files to edit lie where they lie below the site root. ``.patchkit-edit/edit.json`` says what they are of, and
``.patchkit-edit/before/`` holds them as they were.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from patchkit.errors import PatchkitError, Unpatchable, UsageError, raise_all
from patchkit.installed import Content, sha256
from patchkit.noise import is_noise
from patchkit.outputs import write_folder, write_output
from patchkit.patchset import PatchId
from patchkit.site import read_plain, walk_folder
from patchkit.versions import is_version, normalised

HOME = "patchkit-edit"
"""The folder in the working directory that work folders are made in."""

OWN = ".patchkit-edit"
FORMAT = 1
_NOTES = f"{OWN}/edit.json"
_BEFORE = f"{OWN}/before"
_COMMITTED = f"{OWN}/committed"  # the sha256 of the diff that it became last


@dataclass(frozen=True, slots=True)
class Work:
    """What a work folder is about.

    ``before`` are the files that the diff will lead away from, by path; ``folders`` the top-level folders of the
    distribution, where new files may lie. ``set`` and ``patch`` are what the edit is for ("": not said yet), ``after``
    the patches whose text is in ``before`` already. ``rebased``: it is that patch brought to a new version.
    ``replaces`` is the digest (sha256) of the diff for the version that did not fit, "" where there was none;
    ``committed`` that of the diff that it became last ("": it was not committed yet). ``patches``
    are the patch folders that were at hand, ``find_links`` the folders of wheels, as absolute paths.
    """

    distribution: str
    version: str
    before: Mapping[str, Content]
    folders: tuple[str, ...] = ()
    set: str = ""
    patch: str = ""
    after: tuple[PatchId, ...] = ()
    rebased: bool = False
    replaces: str = ""
    committed: str = ""
    patches: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edited:
    """The files of a work folder as they are now, and those that are no part of the edit, with the reason."""

    files: Mapping[str, Content] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def write_work(folder: str, work: Work, files: Mapping[str, Content] | None = None) -> None:
    """Make ``folder`` a work folder; ``files`` are to be edited, those of ``work.before`` where none are given.

    It must not exist, or be empty. Raises what `write_folder` raises.
    """
    notes = {
        "format": FORMAT,
        "distribution": work.distribution,
        "version": work.version,
        "folders": list(work.folders),
        "set": work.set or None,
        "patch": work.patch or None,
        "after": [str(id) for id in work.after],
        "rebased": work.rebased,
        "replaces": work.replaces or None,
        "patches": list(work.patches),
        "find-links": list(work.find_links),
        "files": {path: {"sha256": sha256(each.data), "mode": each.mode} for path, each in work.before.items()},
    }
    own = {_NOTES: Content(json.dumps(notes, indent=2).encode() + b"\n", 0o644)}
    copies = {f"{_BEFORE}/{path}": each for path, each in work.before.items()}
    edited = {path: Content(each.data, each.mode | 0o600) for path, each in (files or work.before).items()}
    write_folder(folder, {**own, **copies, **edited})


def note_commit(folder: str, diff: bytes) -> None:
    """Remember in the work folder that it became ``diff``. One that cannot be written is left as it is."""
    with suppress(PatchkitError):
        write_output(os.path.join(folder, _COMMITTED), f"{sha256(diff)}\n".encode())


def free_folder(home: str, name: str) -> str:
    """A path in ``home`` that is not taken: ``name``, or with ``-2``, ``-3``... behind."""
    path, number = os.path.join(home, name), 1
    while os.path.lexists(path):
        number += 1
        path = os.path.join(home, f"{name}-{number}")
    return path


# ---- reading --------------------------------------------------------------------------------------------------


def read_work(folder: str) -> Work:
    """What the work folder ``folder`` is about. Raises `UsageError` where it is none, or is damaged."""
    notes = read_plain(os.path.join(folder, _NOTES))
    if notes is None:
        words = f"{folder} is not a work folder: it has no {_NOTES}"
        raise UsageError(words, hint="`patchkit edit DISTRIBUTION` makes one")
    try:
        return _to_work(folder, json.loads(notes.data))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _damaged(folder, _NOTES) from error


def _to_work(folder: str, notes: Any) -> Work:
    if notes["format"] != FORMAT:
        words = f"{folder} was made by another patchkit (format {notes['format']}, not {FORMAT})"
        raise UsageError(words, hint="use that one")
    if normalised(notes["distribution"]) != notes["distribution"] or not is_version(notes["version"]):
        raise ValueError("no name or no version")
    committed = read_plain(os.path.join(folder, _COMMITTED))
    return Work(
        distribution=notes["distribution"],
        version=notes["version"],
        before={str(path): _read_before(folder, path, said) for path, said in notes["files"].items()},
        folders=tuple(map(str, notes["folders"])),
        set=notes["set"] or "",
        patch=notes["patch"] or "",
        after=tuple(PatchId(*id.split("/")) for id in notes["after"]),
        rebased=notes["rebased"] is True,
        replaces=str(notes.get("replaces") or ""),
        committed=committed.data.decode().strip() if committed is not None else "",
        patches=tuple(map(str, notes.get("patches", ()))),
        find_links=tuple(map(str, notes.get("find-links", ()))),
    )


def _read_before(folder: str, path: str, said: Mapping[str, Any]) -> Content:
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ValueError("a path that leaves the folder")
    content = read_plain(os.path.join(folder, _BEFORE, path))
    if content is None or sha256(content.data) != said["sha256"]:
        raise _damaged(folder, f"{_BEFORE}/{path}")
    return Content(content.data, int(said["mode"]))


def _damaged(folder: str, file: str) -> UsageError:
    words = f"{folder} is damaged: {file} is not what `patchkit edit` wrote"
    return UsageError(words, hint="make a new one, and copy the edited files into it")


def read_edited(folder: str, work: Work) -> Edited:
    """The files in ``folder`` now. What lies outside the distribution's folders, and noise, is left out.

    Raises `Unpatchable` for everything that is neither a plain file nor a folder, by name.
    """
    files: dict[str, Content] = {}
    left_out: dict[str, str] = {}
    problems: list[Unpatchable] = []
    for path in sorted(_walk(folder)):
        why = "" if path in work.before else _leave_out(path, work)
        if why:
            left_out[path] = why
        elif stat.S_ISREG(os.lstat(os.path.join(folder, path)).st_mode):
            content = read_plain(os.path.join(folder, path))
            assert content is not None
            files[path] = content
        else:
            problems.append(refuse_special(path, os.path.join(folder, path)))
    raise_all(problems)
    return Edited(files, left_out)


def refuse_special(path: str, full: str) -> Unpatchable:
    """What to say of something at ``full`` that is no plain file."""
    if os.path.islink(full):
        words = f"{path} is a symbolic link to {os.readlink(full)}, which no diff can carry"
        return Unpatchable(words, hint="put a plain file in its place, or take it away")
    return Unpatchable(f"{path} is neither a file nor a folder", hint="take it away")


def _leave_out(path: str, work: Work) -> str:
    if is_noise(path):
        return "left behind by a program"
    inside = "/" in path and path.partition("/")[0] in work.folders
    return "" if inside else f"outside the folders of {work.distribution} ({', '.join(work.folders) or 'none'})"


def _walk(folder: str) -> Iterator[str]:
    for place, folders, files in walk_folder(folder):
        here = os.path.relpath(place, folder)
        if here == ".":
            folders[:] = [name for name in folders if name != OWN]
        linked = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*files, *linked):
            yield os.path.normpath(os.path.join(here, name)).replace(os.sep, "/")
