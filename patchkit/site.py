"""Reading what is installed below a site root: distributions and files. Writes nothing.

Finding one distribution lists one directory and opens no other distribution's metadata.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from patchkit.errors import (
    AmbiguousDistribution,
    EditableInstall,
    EnvironmentMismatch,
    NoRecord,
    NotReadable,
    OutsideEnvironment,
    SeveralSiteRoots,
)
from patchkit.installed import Content, Digest, Distribution, Environment, Observed
from patchkit.record import read_record

STATE_FOLDER = ".patchkit"
_PIECE_BYTES = 1 << 20


def normalise(name: str) -> str:
    """A distribution's name in its normalised form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


# ---- distributions --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listing:
    """The entries of one site root; ``inputs`` maps a normalised name to its dist-info folders, ``eggs`` to others."""

    root: str
    entries: tuple[str, ...]

    @cached_property
    def folders(self) -> Mapping[str, list[str]]:
        return self._by_name((".dist-info",))

    @cached_property
    def eggs(self) -> Mapping[str, list[str]]:
        return self._by_name((".egg-info", ".egg-link"))

    def _by_name(self, endings: tuple[str, ...]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            stem, ending = os.path.splitext(entry)
            if ending in endings and not entry.startswith("~"):  # pip's leftovers of a broken uninstall
                name = (
                    stem if ending == ".egg-link" else stem.split("-", 1)[0] if ending == ".egg-info" else _stem(stem)
                )
                found.setdefault(normalise(name), []).append(entry)
        return found


def _stem(stem: str) -> str:
    name, dash, _ = stem.rpartition("-")
    return name if dash else stem


def list_root(root: str) -> Listing:
    """The one directory listing that finding distributions needs. Raises `NotReadable` where it cannot be read."""
    try:
        return Listing(root, tuple(sorted(os.listdir(root))))
    except OSError as error:
        raise NotReadable(f"{root} cannot be listed: {error.strerror}") from error


def choose_root(environment: Environment, names: Iterable[str]) -> tuple[Listing, tuple[Listing, ...]]:
    """The one site root that a command works on, and the other listings of the environment.

    It is the one that holds the distributions of ``names``; where none does, the one with a state folder, else the
    first. Raises `AmbiguousDistribution` and `SeveralSiteRoots` where there is more than one.
    """
    listings = [list_root(root) for root in environment.roots]
    wanted = set(names)
    holding = [listing for listing in listings if wanted & listing.folders.keys()]
    used = holding or [listing for listing in listings if STATE_FOLDER in listing.entries]
    if len(used) > 1:
        raise _explain_roots(used, wanted)
    chosen = used[0] if used else listings[0]
    return chosen, tuple(listing for listing in listings if listing is not chosen)


def _explain_roots(used: Sequence[Listing], wanted: set[str]) -> EnvironmentMismatch:
    held = {listing.root: ", ".join(sorted(wanted & listing.folders.keys())) or STATE_FOLDER for listing in used}
    places = "; ".join(f"{root} ({names})" for root, names in held.items())
    shared = sorted(name for name in wanted if sum(name in listing.folders for listing in used) > 1)
    if shared:
        return AmbiguousDistribution(
            f"{shared[0]} is installed on {len(used)} site roots: {places}",
            hint="uninstall one copy, or name a root with --site-packages DIR",
        )
    return SeveralSiteRoots(f"one command writes to one site root, and these are {len(used)}: {places}")


def find_distribution(listing: Listing, name: str, environment: Environment) -> Distribution | None:
    """The distribution called ``name`` (normalised), None where it is not installed.

    Raises `AmbiguousDistribution`, `EditableInstall`, `NoRecord`, `OutsideEnvironment`.
    """
    folders = listing.folders.get(name, [])
    if len(folders) > 1:
        raise _explain_copies(listing.root, name, folders)
    if folders:
        return _read_distribution(listing.root, name, folders[0])
    for entry in listing.eggs.get(name, []):
        _refuse_egg(os.path.join(listing.root, entry), name)
    for root in environment.outside:
        if list_root(root).folders.get(name):
            raise OutsideEnvironment(
                f"{name} is installed in {root}, outside the environment {listing.root}",
                hint="install it into the environment, or name that root with --site-packages",
            )
    return None


def find_version(listings: Iterable[Listing], name: str) -> str | None:
    """The version of ``name`` by its dist-info folder, None where none of ``listings`` has it. Opens no file."""
    for listing in listings:
        for folder in listing.folders.get(name, []):
            return _stem_version(folder)
    return None


def list_visible(environment: Environment, known: Iterable[Listing]) -> Iterator[Listing]:
    """``known``, then what else the target interpreter imports from, each listed when it is asked for."""
    seen = set()
    for listing in known:
        seen.add(os.path.realpath(listing.root))
        yield listing
    for root in environment.visible:
        if os.path.realpath(root) not in seen:
            with suppress(NotReadable):  # what cannot be listed cannot be imported from
                yield list_root(root)


def _read_distribution(root: str, name: str, folder: str) -> Distribution:
    path = os.path.join(root, folder)
    _refuse_editable(path, name)
    record = read_plain(os.path.join(path, "RECORD"))
    if record is None:
        raise NoRecord(
            f"{path} has no RECORD, so nothing tells what {name} shipped", hint=f"install {name} with pip or uv"
        )
    metadata = read_plain(os.path.join(path, "METADATA"))
    version = "" if metadata is None else _field_in(metadata.data, b"Version")
    return Distribution(name, version or _stem_version(folder), folder, record)


def read_written_name(listing: Listing, distribution: Distribution) -> str:
    """The name as the distribution's METADATA writes it; the normalised one where that has none, or another's."""
    metadata = read_plain(os.path.join(listing.root, distribution.dist_info, "METADATA"))
    written = "" if metadata is None else _field_in(metadata.data, b"Name")
    return written if normalise(written) == distribution.name else distribution.name


def _stem_version(folder: str) -> str:
    return folder.removesuffix(".dist-info").rpartition("-")[2]


def _field_in(metadata: bytes, field: bytes) -> str:
    """The one word of a field of core metadata, "" where it is not there."""
    head = metadata.split(b"\n\n", 1)[0]
    found = re.search(rb"^" + field + rb":[ \t]*(\S+)", head, re.MULTILINE | re.IGNORECASE)
    return found[1].decode("utf-8", "replace") if found else ""


def _refuse_editable(path: str, name: str) -> None:
    """PEP 610: direct_url.json says whether an installation is editable."""
    data = read_plain(os.path.join(path, "direct_url.json"))
    if data is None:
        return
    try:
        document = json.loads(data.data)
        editable = bool(document.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return
    if editable:
        from urllib.parse import unquote, urlsplit

        checkout = unquote(urlsplit(str(document.get("url", ""))).path)
        raise EditableInstall(
            f"{name} is an editable install of {checkout}", hint="patch the checkout itself, with git"
        )


def _refuse_egg(path: str, name: str) -> None:
    if path.endswith(".egg-link"):
        data = read_plain(path)
        lines = (data.data if data else b"").decode("utf-8", "replace").splitlines() or ["?"]
        raise EditableInstall(
            f"{name} is an editable install of {lines[0]}", hint="patch the checkout itself, with git"
        )
    raise NoRecord(
        f"{name} was installed without a RECORD ({path})", hint=f"uninstall it, then install {name} with pip or uv"
    )


def _explain_copies(root: str, name: str, folders: list[str]) -> AmbiguousDistribution:
    stale = [folder for folder in folders if not _holds_true(root, folder)]
    which = f"; RECORD tells that {stale[0]} is stale" if len(stale) == len(folders) - 1 else ""
    places = " and ".join(os.path.join(root, folder) for folder in folders)
    return AmbiguousDistribution(
        f"{name} is installed twice: {places}{which}", hint="remove the stale folder, or reinstall the distribution"
    )


def _holds_true(root: str, folder: str) -> bool:
    """Whether what RECORD in ``folder`` lists is what is on disk."""
    data = read_plain(os.path.join(root, folder, "RECORD"))
    if data is None:
        return False
    rows = [row for row in read_record(data.data).values() if row.digest is not None]
    contents = ((row, read_plain(os.path.join(root, row.path))) for row in rows)
    return all(
        content is not None and row.digest is not None and row.digest.matches(content.data) for row, content in contents
    )


# ---- files ----------------------------------------------------------------------------------------------------


def read_plain(path: str) -> Content | None:
    """The content of a plain file, links followed; None where there is none. `NotReadable` where it may not be read."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):  # opening a named pipe would wait for its other end
            return None
        with open(path, "rb") as file:
            return Content(file.read(), stat.S_IMODE(mode))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise NotReadable(f"{path} cannot be read: {error.strerror}") from error


def read_head(path: str, count: int = 8192) -> bytes:
    """The first bytes of a plain file; b"" where there is none. `NotReadable` where it may not be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read(count)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise NotReadable(f"{path} cannot be read: {error.strerror}") from error


def has_digest(path: str, digest: Digest) -> bool:
    """Whether a plain file with this digest is at ``path``, read piece by piece. `NotReadable` where it may not be."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        hasher = hashlib.new(digest.algorithm)
        with open(path, "rb") as file:
            while piece := file.read(_PIECE_BYTES):
                hasher.update(piece)
        return hasher.digest() == digest.value
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: an algorithm that hashlib lacks
        return False
    except OSError as error:
        raise NotReadable(f"{path} cannot be read: {error.strerror}") from error


def walk_folder(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """What os.walk gives of ``top``, top-down. `NotReadable` for a folder that may not be listed: it is not empty."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise NotReadable(f"{error.filename} cannot be listed: {error.strerror}") from error

    yield from os.walk(top, onerror=refuse)


def observe(root: str, paths: Iterable[str]) -> dict[str, Observed]:
    """Each path as it is on disk below ``root``; a symbolic link is read through and said to be one."""
    real_root = os.path.realpath(root)
    parents: dict[str, str] = {}
    return {path: _observe(real_root, path, parents) for path in paths}


def _observe(root: str, path: str, parents: dict[str, str]) -> Observed:
    parent = os.path.dirname(path)
    if parent not in parents:
        parents[parent] = _find_obstacle(root, parent)
    if parents[parent]:
        return Observed(path, None, obstacle=parents[parent], hidden=True)
    full = os.path.join(root, path)
    try:
        status = os.lstat(full)
        link = os.readlink(full) if stat.S_ISLNK(status.st_mode) else None
        if not stat.S_ISREG(os.stat(full).st_mode):
            return Observed(path, None, link, obstacle="is not a plain file")
        return Observed(path, read_plain(full), link)
    except FileNotFoundError:
        return Observed(path, None, _dangling(full), obstacle="is a dangling symbolic link" if _dangling(full) else "")
    except NotADirectoryError:
        return Observed(path, None, obstacle="lies below something that is not a directory")
    except OSError as error:
        return Observed(path, None, obstacle=f"cannot be looked at: {error.strerror}")


def _dangling(full: str) -> str | None:
    return os.readlink(full) if os.path.islink(full) else None


def _find_obstacle(root: str, parent: str) -> str:
    """What keeps ``parent`` from being a plain folder below ``root`` ("" where nothing does, or it does not exist)."""
    place = root
    for part in parent.split("/") if parent else []:
        place = os.path.join(place, part)
        if os.path.islink(place):
            return f"lies behind the symbolic link {place}"
        if not os.path.lexists(place):
            return ""
    return ""
