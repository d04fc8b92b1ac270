"""What is installed, as values: distributions, the rows of their RECORD, files on disk.

Paths are POSIX strings relative to the site root, as in RECORD. Digests called ``sha256`` are lower-case hex.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique


def sha256(data: bytes) -> str:
    """The name of ``data`` in the object store."""
    return hashlib.sha256(data).hexdigest()


def is_below_root(path: str) -> bool:
    """Whether ``path`` can name a file below a site root: relative, without ``..``, backslash, NUL and surrogates."""
    if "\\" in path or "\0" in path or {"", ".", ".."} & set(path.split("/")):
        return False
    try:
        return path.isascii() or bool(path.encode())
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest as RECORD states it: a hashlib algorithm and the raw value."""

    algorithm: str
    value: bytes

    def matches(self, data: bytes) -> bool:
        """Whether ``data`` has this digest. An algorithm that hashlib lacks matches nothing."""
        try:
            return hashlib.new(self.algorithm, data).digest() == self.value
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One row of RECORD; ``digest`` is None for an unrecorded file, ``field`` its digest field as it stands there."""

    path: str
    digest: Digest | None
    field: str = ""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The installed thing. ``name`` is normalised (PEP 503), ``dist_info`` the folder's name in the site root.

    ``record`` is its RECORD as it is on disk; it is parsed only where a decision needs its rows.
    """

    name: str
    version: str
    dist_info: str
    record: Content

    @property
    def record_path(self) -> str:
        return f"{self.dist_info}/RECORD"


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment asked for. ``roots`` are its site roots in the order of sys.path, ``outside`` those it only sees.

    ``executable`` is the target interpreter (None: only a folder was named), ``python`` its version, ``markers`` its
    PEP 508 values (empty: not asked yet). ``visible`` are all folders that it imports from: more than may be patched.
    """

    roots: tuple[str, ...]
    outside: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    executable: str | None = None
    python: str | None = None
    markers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file and its permission bits (``stat.S_IMODE``)."""

    data: bytes
    mode: int

    @property
    def executable(self) -> bool:
        return bool(self.mode & 0o100)


def is_same(found: Content | None, wanted: Content | None) -> bool:
    """Equal bytes and executable bit. Other permission bits are the owner's affair as long as nothing is written."""
    if found is None or wanted is None:
        return found is wanted
    return found.data == wanted.data and found.executable == wanted.executable


@dataclass(frozen=True, slots=True)
class Observed:
    """A path as it is on disk: its content, or absent; ``link`` is where a symbolic link points.

    ``obstacle`` says in words what keeps it from being a plain file (a directory, say); "" where nothing does.
    ``hidden``: a folder above it is a symbolic link, so it is not looked at.
    """

    path: str
    content: Content | None
    link: str | None = None
    obstacle: str = ""
    hidden: bool = False


@unique
class FileState(Enum):
    PRISTINE = "pristine"
    PATCHED = "patched"
    FOREIGN = "foreign"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A content by digest and mode."""

    sha256: str
    mode: int

    @classmethod
    def of(cls, content: Content) -> Stamp:
        return cls(sha256(content.data), content.mode)

    @property
    def executable(self) -> bool:
        return bool(self.mode & 0o100)
