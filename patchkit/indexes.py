"""Where releases come from, by the user's own configuration of pip and uv. Reads only.

The first that names an index decides which it is: the variables of pip, those of uv, the files of pip, the files of
uv; else it is PyPI. Further indexes, folders of wheels (find-links) and trusted hosts of all of them count.

Sources: pip's and uv's manuals on configuration files and environment variables.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_INDEX = "https://pypi.org/simple/"
_SECTIONS = ("global", "download")


@dataclass(frozen=True, slots=True)
class Indexes:
    """The URLs of the indexes (PEP 503), and the find-links; ``certificates`` is a file of CAs ("": the usual ones)."""

    urls: tuple[str, ...] = (DEFAULT_INDEX,)
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    certificates: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """What one place of configuration says."""

    index: str = ""
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    certificates: str = ""
    no_index: bool = False


def read_indexes(environ: Mapping[str, str], cwd: str) -> Indexes:
    """What the configuration in force says. What cannot be read or understood says nothing: it is not ours to judge."""
    sources = [
        _from_pip_variables(environ),
        _from_uv_variables(environ),
        *_from_pip_files(environ),
        *_from_uv_files(environ, cwd),
    ]
    index = next((source.index for source in sources if source.index), DEFAULT_INDEX)
    extra = [url for source in sources for url in source.extra]
    none = any(source.no_index for source in sources)
    return Indexes(
        urls=() if none else tuple(dict.fromkeys((index, *extra))),
        find_links=tuple(dict.fromkeys(place for source in sources for place in source.find_links)),
        trusted_hosts=tuple(dict.fromkeys(host for source in sources for host in source.trusted_hosts)),
        certificates=next((source.certificates for source in sources if source.certificates), ""),
    )


# ---- pip ------------------------------------------------------------------------------------------------------


def _from_pip_variables(environ: Mapping[str, str]) -> _Source:
    values = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("PIP_")
    }
    return _from_pip(values)


def _from_pip(values: Mapping[str, str]) -> _Source:
    return _Source(
        index=values.get("index-url", "").strip(),
        extra=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        certificates=values.get("cert", "").strip(),
        no_index=_is_true(values.get("no-index", "")),
    )


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on", "y", "t")


def _from_pip_files(environ: Mapping[str, str]) -> Iterator[_Source]:
    """pip's files, the one that wins first."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    for path in reversed([*_list_pip_files(environ), *([named] if named else [])]):
        parser = configparser.RawConfigParser()
        with suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read(path, encoding="utf-8")
            yield _from_pip(
                {key: text for part in _SECTIONS if parser.has_section(part) for key, text in parser[part].items()}
            )


def _list_pip_files(environ: Mapping[str, str]) -> list[str]:
    home = environ.get("HOME", "")
    shared = [folder for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if folder]
    user = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    mac = [os.path.join(home, "Library", "Application Support", "pip", "pip.conf")] if sys.platform == "darwin" else []
    return [
        *(os.path.join(folder, "pip", "pip.conf") for folder in shared),
        "/etc/pip.conf",
        os.path.join(home, ".pip", "pip.conf"),
        *mac,
        os.path.join(user, "pip", "pip.conf"),
        os.path.join(environ.get("VIRTUAL_ENV") or sys.prefix, "pip.conf"),
    ]


# ---- uv -------------------------------------------------------------------------------------------------------


def _from_uv_variables(environ: Mapping[str, str]) -> _Source:
    extra = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    return _Source(
        index=_without_name(environ.get("UV_DEFAULT_INDEX", "") or environ.get("UV_INDEX_URL", "")),
        extra=tuple(map(_without_name, extra)),
        find_links=tuple(place.strip() for place in environ.get("UV_FIND_LINKS", "").split(",") if place.strip()),
        trusted_hosts=tuple(environ.get("UV_INSECURE_HOST", "").split()),
        certificates=environ.get("SSL_CERT_FILE", ""),
        no_index=_is_true(environ.get("UV_NO_INDEX", "")),
    )


def _without_name(index: str) -> str:
    """The URL of an index that may be written as NAME=URL."""
    name, equals, url = index.strip().partition("=")
    return url if equals and name.replace("-", "").replace("_", "").isalnum() else index.strip()


def _from_uv_files(environ: Mapping[str, str], cwd: str) -> Iterator[_Source]:
    """uv's files, the one that wins first: that of the project, the user's, the system's."""
    if _is_true(environ.get("UV_NO_CONFIG", "")):
        return
    user = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
    named = environ.get("UV_CONFIG_FILE", "")
    paths = [named] if named else [*_list_project_files(cwd), os.path.join(user, "uv", "uv.toml"), "/etc/uv/uv.toml"]
    for path in paths:
        with suppress(OSError, ValueError, RecursionError):
            with open(path, "rb") as file:
                table: object = tomllib.load(file)
            for key in ("tool", "uv") if path.endswith("pyproject.toml") else ():
                table = table.get(key, {}) if isinstance(table, dict) else {}
            yield _from_uv(table if isinstance(table, dict) else {}, os.path.dirname(path))


def _list_project_files(cwd: str) -> Iterator[str]:
    folder = os.path.abspath(cwd)
    while True:
        for name in ("uv.toml", "pyproject.toml"):
            if os.path.isfile(os.path.join(folder, name)):
                yield os.path.join(folder, name)
                return
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _from_uv(table: Mapping[str, object], home: str) -> _Source:
    index = _text(table.get("index-url"))
    extra = list(_texts(table.get("extra-index-url")))
    for entry in _tables(table.get("index")):
        if entry.get("explicit") is True:  # only for distributions that are pinned to it
            continue
        if entry.get("default") is True:
            index = _text(entry.get("url"))
        else:
            extra.append(_text(entry.get("url")))
    return _Source(
        index=index,
        extra=tuple(filter(None, extra)),
        find_links=tuple(_place(place, home) for place in _texts(table.get("find-links"))),
        trusted_hosts=_texts(table.get("allow-insecure-host")),
        no_index=table.get("no-index") is True,
    )


def _place(place: str, home: str) -> str:
    return place if "://" in place else os.path.join(home, place)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, value))) if isinstance(value, list) else ()


def _tables(value: object) -> Sequence[Mapping[str, object]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
