"""The releases of a distribution, and one of them as a wheel: in folders that the user named, or on the index.

A folder that is named answers alone; else the indexes and the find-links of the user's pip and uv do. Pre-releases and
yanked releases are listed, the latter marked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchkit.archives import Archive, Release, group_releases, pick_release, pick_wheel, version_in
from patchkit.errors import NoRelease
from patchkit.remote import Index, open_index


@dataclass(frozen=True, slots=True)
class ReleaseSource:
    """Where releases are looked for: folders of wheels (none: the index), and the cache ("": the usual one)."""

    folders: tuple[str, ...] = ()
    cache: str = ""


def list_releases(distribution: str, folders: Sequence[str], index: Index) -> tuple[Release, ...]:
    """All releases of ``distribution``, the oldest first. Raises `NoRelease` (none at all), `IndexUnreachable`."""
    found = [archive for folder in folders for archive in _list_folder(folder, distribution)]
    if not folders:
        found = index.list_archives(distribution)
    if not found:
        where = f"in {', '.join(folders)}" if folders else f"at {', '.join(index.places)}"
        hint = "leave out --find-links to ask the index" if folders else "name a folder of wheels with --find-links DIR"
        raise NoRelease(f"there is no release of {distribution} {where}", hint=hint)
    return group_releases(distribution, found)


def _list_folder(folder: str, distribution: str) -> Iterator[Archive]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        words = f"--find-links {folder} cannot be listed: {error.strerror}"
        raise NoRelease(words, hint="name a folder that holds wheels") from error
    for name in names:
        version = version_in(name, distribution)
        if version is not None:
            yield Archive(version, name, os.path.abspath(os.path.join(folder, name)))


def find_wheel(
    distribution: str,
    version: str,
    *,
    find_links: Sequence[str] = (),
    tags: frozenset[str] = frozenset(),
    cache: str | None = None,
) -> Path:
    """The wheel of a release as a file: from the folders of ``find_links``, else downloaded into the cache once.

    ``tags`` are those of the WHEEL file of what is installed (PEP 427), for several wheels of one release may differ.
    The digest that the index states is checked. Raises `NoRelease`, `NoWheel`, `IndexUnreachable`, `WrongWheel`, and
    `MissingExtra` where the index is needed and the extra `authoring` is not installed.
    """
    with open_index(cache) as index:
        releases = list_releases(distribution, find_links, index)
        wheel = pick_wheel(pick_release(releases, distribution, version), tags)
        return Path(index.download(wheel) if wheel.remote else wheel.place)
