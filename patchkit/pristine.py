"""What a release ships, as a site root in the cache that holds only the files that were asked for.

It has the release's RECORD and the named files, as an installer would have laid them out (PEP 427, PEP 376), so that
whatever looks at an environment can look at a release. Each file is compared with its row of RECORD.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from patchkit.archives import Archive
from patchkit.errors import IndexUnreachable, NoRecord, WrongWheel
from patchkit.installed import Content, RecordRow
from patchkit.outputs import keep_copy
from patchkit.ranges import RangeFile
from patchkit.record import read_record
from patchkit.remote import Index, NoRanges
from patchkit.site import normalise, read_plain

LARGEST_BYTES = 64 << 20
"""No file that a patch changes is larger; a wheel that holds one is not read further."""

# Where the parts of a wheel are unpacked to that end up in a site root, and elsewhere.
_ROOTS = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
_ELSEWHERE = re.compile(r"[^/]+\.data/")
_UNSIGNED = (".dist-info/RECORD", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")  # PEP 427
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


@contextmanager
def open_pristine(index: Index, wheel: Archive, distribution: str) -> Iterator[Pristine]:
    """The shipped files of ``wheel``; nothing of it is read before it is asked for."""
    pristine = Pristine(index, wheel, distribution)
    try:
        yield pristine
    finally:
        pristine.close()


class Pristine:
    """The shipped files of one wheel; ``root`` is a site root with RECORD and what `supply` was asked for."""

    def __init__(self, index: Index, wheel: Archive, distribution: str) -> None:
        self.index = index
        self.wheel = wheel
        self.distribution = distribution
        folder = f"{distribution}-{wheel.version}-{_fingerprint(wheel)}"
        self.root = os.path.join(index.cache, "releases", folder)
        self._ranges: RangeFile | None = None

    @cached_property
    def rows(self) -> Mapping[str, RecordRow]:
        """The rows of its RECORD by path, as they would be once it is installed."""
        try:
            return read_record(self._record, path=f"RECORD of {self.wheel.file}")
        except NoRecord as error:
            raise WrongWheel(error.message, hint="the wheel is damaged; fetch it anew") from error

    def supply(self, paths: Iterable[str]) -> None:
        """Have those of ``paths`` in ``root`` that the wheel ships. Raises `WrongWheel` where RECORD says otherwise."""
        absent = [path for path in dict.fromkeys(paths) if path in self.rows and not os.path.exists(self._place(path))]
        for path in absent:
            content = self._read(self._names.get(path, path))
            row = self.rows[path]
            if row.digest is None and not path.endswith(_UNSIGNED):
                words = f"{self.wheel.file}: its RECORD states no digest for {path} that can be checked"
                raise WrongWheel(words, hint="the wheel is damaged (PEP 427 asks for one); fetch it anew")
            if row.digest is not None and not row.digest.matches(content.data):
                words = f"{self.wheel.file}: {path} is not what its RECORD says"
                raise WrongWheel(words, hint="the wheel is damaged; fetch it anew")
            keep_copy(self._place(path), [content.data], content.mode)

    def read(self, path: str) -> Content | None:
        """One shipped file; None where the wheel has no such file."""
        self.supply([path])
        return read_plain(self._place(path)) if path in self.rows else None

    def close(self) -> None:
        if "_archive" in self.__dict__:
            self._archive.close()

    def _place(self, path: str) -> str:
        if path.startswith("/") or not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise WrongWheel(f"{self.wheel.file}: its RECORD lists {path!a}, which leaves the site root")
        return os.path.join(self.root, path)

    # ---- the wheel --------------------------------------------------------------------------------------------

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        with self._explaining():
            if not self.wheel.remote:
                return zipfile.ZipFile(self.wheel.place)
            try:
                self._ranges = RangeFile(self.index, self.wheel)
                return zipfile.ZipFile(self._ranges)
            except NoRanges:
                self._ranges = None
                return zipfile.ZipFile(self.index.download(self.wheel))

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The member of the wheel for each path below the site root."""
        names = self._archive.namelist()
        return {_ROOTS.sub("", name, count=1): name for name in names if not name.endswith("/")}

    @cached_property
    def _ends(self) -> Mapping[int, int]:
        """For each place where a member begins, where the next thing does."""
        begins = sorted(info.header_offset for info in self._archive.infolist())
        return dict(zip(begins, [*begins[1:], self._archive.start_dir], strict=True))

    def _read(self, name: str) -> Content:
        with self._explaining():
            try:
                info = self._archive.getinfo(name)
            except KeyError as error:
                raise ValueError(f"its RECORD lists {name}, and it has no such file") from error
            if info.file_size > LARGEST_BYTES:
                raise ValueError(f"{name} has more than {LARGEST_BYTES >> 20} MiB")
            self._fetch(info)
            return Content(self._archive.read(info), 0o755 if info.external_attr >> 16 & 0o111 else 0o644)

    def _fetch(self, info: zipfile.ZipInfo) -> None:
        """Have a member at hand, in one request; where the server sends other parts, the whole wheel."""
        if self._ranges is None:
            return
        try:
            self._ranges.fetch(info.header_offset, self._ends[info.header_offset])
        except NoRanges:
            self._ranges = None
            self._archive.close()
            self.__dict__["_archive"] = zipfile.ZipFile(self.index.download(self.wheel))

    @cached_property
    def _record(self) -> bytes:
        """RECORD as an installer writes it, kept in ``root``."""
        name = self._find_dist_info()
        kept = read_plain(os.path.join(self.root, name, "RECORD"))
        if kept is not None and kept.data:
            return kept.data
        data = _as_installed(self._read(f"{name}/RECORD").data)
        keep_copy(os.path.join(self.root, name, "RECORD"), [data])
        return data

    def _find_dist_info(self) -> str:
        """The name of its dist-info folder: that in ``root``, else the wheel's own."""
        if os.path.isdir(self.root):
            kept = [entry for entry in os.listdir(self.root) if entry.endswith(".dist-info")]
            if kept:
                return kept[0]
        records = [
            name.split("/")[0] for name in self._archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)
        ]
        own = [name for name in records if normalise(name.partition("-")[0]) == self.distribution]
        if not own:
            raise WrongWheel(f"{self.wheel.file} has no RECORD of {self.distribution}", hint="it is no wheel (PEP 427)")
        return own[0]

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except NoRanges as error:
            raise IndexUnreachable(f"{self.wheel.file}: the server does not send parts any more") from error
        except _BROKEN as error:
            raise WrongWheel(f"{self.wheel.file} cannot be read: {error}", hint="fetch it anew") from error


def _fingerprint(wheel: Archive) -> str:
    """What tells one wheel from another of the same name: the digest that the index states, or size and time."""
    identity: tuple[object, ...] = (wheel.file, wheel.digests or wheel.place)
    if not wheel.remote:
        status = os.stat(wheel.place)
        identity = (os.path.realpath(wheel.place), status.st_size, status.st_mtime_ns)
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def _as_installed(record: bytes) -> bytes:
    """A wheel's RECORD with the paths that its files have once installed; scripts and data lie elsewhere."""
    if b".data/" not in record:
        return record
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for row in csv.reader(io.StringIO(record.decode("utf-8", "surrogateescape"), newline="")):
        if row and (_ROOTS.match(row[0]) or not _ELSEWHERE.match(row[0])):
            writer.writerow([_ROOTS.sub("", row[0], count=1), *row[1:]])
    return text.getvalue().encode("utf-8", "surrogateescape")
