"""The index and what it serves: lists of files, whole wheels, and parts of wheels by range requests (RFC 9110).

Through `unearth`, which knows index pages (PEP 503, PEP 691), credentials and hosts. A wheel that is downloaded whole
goes into the cache under its digest.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from patchkit.archives import Archive, version_in
from patchkit.errors import IndexUnreachable, MissingExtra, WrongWheel
from patchkit.indexes import Indexes, read_indexes
from patchkit.outputs import keep_copy

if TYPE_CHECKING:
    from unearth import Package
    from unearth.fetchers import Fetcher
    from unearth.fetchers.sync import PyPIClient

TIMEOUT_SECONDS = 60.0
CHUNK_BYTES = 64 << 10
PAUSES_SECONDS = (0.25, 1.0)
"""Between attempts to read a part: a table over years of releases is not to fail for one hiccup."""


class NoRanges(Exception):
    """The server sends whole files only, or other parts than it was asked for."""


def default_cache() -> str:
    """Where downloads are kept: ``patchkit`` in XDG_CACHE_HOME, else in ~/.cache (XDG Base Directory Specification)."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "patchkit")


@contextmanager
def open_index(cache: str | None = None) -> Iterator[Index]:
    """The index that the user's configuration names. Nothing is asked of it, nor imported, before it is needed."""
    index = Index(read_indexes(os.environ, os.getcwd()), cache or default_cache())
    try:
        yield index
    finally:
        index.close()


class Index:
    """The indexes in force, and the folder ``cache`` for what they serve. Threads may share it.

    ``received`` counts the bytes of wheels that came over the wire.
    """

    def __init__(self, indexes: Indexes, cache: str) -> None:
        self.indexes = indexes
        self.cache = cache
        self.received = 0
        self._turn = Lock()

    @property
    def places(self) -> tuple[str, ...]:
        """Where it looks, without the credentials that a URL may hold."""
        return tuple(map(_without_credentials, (*self.indexes.urls, *self.indexes.find_links)))

    @cached_property
    def _client(self) -> PyPIClient:
        try:
            from unearth.auth import MultiDomainBasicAuth
            from unearth.fetchers.sync import PyPIClient
        except ImportError as error:
            raise _missing_extra(error) from error
        import ssl

        logging.getLogger("httpx2").setLevel(logging.WARNING)
        certificates = self.indexes.certificates
        client = PyPIClient(
            trusted_hosts=self.indexes.trusted_hosts,
            verify=ssl.create_default_context(cafile=certificates) if certificates else True,
            timeout=TIMEOUT_SECONDS,
            follow_redirects=True,
        )
        client.auth = MultiDomainBasicAuth(prompting=False, index_urls=self.indexes.urls)
        return client

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()

    def _count(self, data: bytes) -> bytes:
        with self._turn:
            self.received += len(data)
        return data

    # ---- lists ------------------------------------------------------------------------------------------------

    def list_archives(self, distribution: str) -> list[Archive]:
        """What all its places have of ``distribution``, yanked files among it. Raises `IndexUnreachable`.

        A place that does not answer is passed over as long as another one has something.
        """
        client = self._client
        from unearth import PackageFinder

        places = [place for place in self.indexes.find_links if "://" in place or os.path.exists(place)]
        if not (self.indexes.urls or places):
            raise IndexUnreachable(
                "pip or uv is configured to ask no index", hint="name a folder with --find-links DIR"
            )
        finder = PackageFinder(
            session=cast("Fetcher", client), index_urls=self.indexes.urls, find_links=places, ignore_compatibility=True
        )
        with _listening("unearth") as trouble, _explaining(", ".join(self.places)):
            found = [_to_archive(package, distribution) for package in finder.find_all_packages(distribution, True)]
        if not found and trouble and not all("404" in words for words in trouble):
            raise IndexUnreachable(f"the index does not answer: {trouble[0]}")
        return list({archive.file: archive for archive in reversed(found) if archive is not None}.values())

    # ---- wheels -----------------------------------------------------------------------------------------------

    def download(self, wheel: Archive) -> str:
        """The path of ``wheel`` in the cache, where it is put once. Raises `IndexUnreachable` and `WrongWheel`."""
        name = hashlib.sha256(repr(wheel.digests or wheel.place).encode()).hexdigest()[:16]
        path = os.path.join(self.cache, "wheels", name, wheel.file)
        if not os.path.isfile(path):
            keep_copy(path, self._stream(wheel))
        return path

    def _stream(self, wheel: Archive) -> Iterator[bytes]:
        """The bytes of a wheel; at their end the digest is compared."""
        algorithm, stated = next(iter(wheel.digests), ("sha256", ""))
        digest = hashlib.new(algorithm)
        with _explaining(wheel.file), self._client.get_stream(wheel.place, headers=_PLAIN) as response:
            _require_success(response.status_code, wheel.file)
            for chunk in response.iter_bytes(CHUNK_BYTES):
                digest.update(self._count(chunk))
                yield chunk
        if stated and digest.hexdigest() != stated.lower():
            words = f"{wheel.file}: its {algorithm} is {digest.hexdigest()}, and the index says {stated}"
            raise WrongWheel(words, hint="it was changed on the way, or the index is wrong; nothing of it was kept")

    def read_range(self, wheel: Archive, begin: int, end: int | None = None) -> tuple[int, bytes, int]:
        """Bytes ``begin`` up to before ``end`` of a wheel; a negative ``begin`` counts from the end.

        Answers where they begin, the bytes, and the size of the whole. Raises `NoRanges` where the server does not do
        that, without reading what it sends instead, and `IndexUnreachable` where it does not answer a few times.
        """
        for pause in PAUSES_SECONDS:
            with suppress(IndexUnreachable):
                return self._read_range(wheel, begin, end)
            time.sleep(pause)
        return self._read_range(wheel, begin, end)

    def _read_range(self, wheel: Archive, begin: int, end: int | None) -> tuple[int, bytes, int]:
        wanted = f"bytes={begin}" if begin < 0 else f"bytes={begin}-{'' if end is None else end - 1}"
        with (
            _explaining(wheel.file),
            self._client.get_stream(wheel.place, headers={**_PLAIN, "Range": wanted}) as response,
        ):
            if response.status_code != 206:
                if response.status_code not in (200, 400, 416, 501):
                    _require_success(response.status_code, wheel.file)
                raise NoRanges
            start, size = _read_content_range(response.headers.get("Content-Range", ""))
            expected = max(size + begin, 0) if begin < 0 else begin
            if start != expected:
                raise NoRanges
            data = self._count(b"".join(response.iter_bytes()))
            if len(data) != min(size if end is None else end, size) - start:
                raise NoRanges
            return start, data, size


_PLAIN = {"Accept-Encoding": "identity"}


def _missing_extra(error: ImportError) -> MissingExtra:
    return MissingExtra(
        f"the index is asked with unearth, which is not installed ({error})",
        hint="`pip install 'site-patchkit[authoring]'`, or in a checkout of patchkit `pip install '.[authoring]'`; "
        "or name a folder of wheels with --find-links DIR",
    )


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _to_archive(package: Package, distribution: str) -> Archive | None:
    link = package.link
    version = version_in(link.filename, distribution)
    if version is None:
        return None
    digests = {name: values[0] for name, values in (link.hash_option or {}).items()}
    known = tuple(
        (name, digests[name]) for name in sorted(digests, reverse=True) if name in hashlib.algorithms_available
    )
    url = link.url_without_fragment
    place = unquote(urlsplit(url).path) if link.is_file else url
    return Archive(version, link.filename, place, known, yanked=link.is_yanked)


def _read_content_range(text: str) -> tuple[int, int]:
    """Where a part begins, and the size of the whole, as in ``bytes 100-199/1000``."""
    unit, _, rest = text.partition(" ")
    begin, size = rest.partition("-")[0], rest.partition("/")[2]
    if unit != "bytes" or not begin.isdecimal() or not size.isdecimal():
        raise NoRanges
    return int(begin), int(size)


def _require_success(status: int, file: str) -> None:
    if status >= 400 or status < 200:
        raise IndexUnreachable(f"{file} cannot be downloaded: the server answers {status}")


@contextmanager
def _explaining(what: str) -> Iterator[None]:
    """What goes wrong on the network, as an error of ours."""
    from httpx2 import HTTPError, InvalidURL

    try:
        yield
    except (HTTPError, InvalidURL, OSError, ValueError) as error:
        raise IndexUnreachable(f"{what} cannot be reached: {str(error) or type(error).__name__}") from error


@contextmanager
def _listening(name: str) -> Iterator[list[str]]:
    """What a library warns of in its log, which is the only place where it says so."""
    said: list[str] = []

    class _Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, ear = logging.getLogger(name), _Ear(logging.WARNING)
    before = logger.propagate
    logger.addHandler(ear)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(ear)
        logger.propagate = before
