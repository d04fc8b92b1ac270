"""What DEP-3's fields say: where a patch comes from, and which reports it is about.

Source: DEP-3, "Patch Tagging Guidelines". Its fields are text for people; only what has a form of its own is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, unique
from urllib.parse import parse_qs, urlsplit


@unique
class OriginKind(Enum):
    """The keywords that may stand before the comma in ``Origin``."""

    UPSTREAM = "upstream"
    BACKPORT = "backport"
    VENDOR = "vendor"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Origin:
    """``Origin``: its keyword (None where it has none), and the first URL in it ("" where there is none)."""

    kind: OriginKind | None
    url: str


@dataclass(frozen=True, slots=True)
class Bug:
    """A report. ``id`` is its number at ``site`` (a host) or its name as an advisory; each may be "".

    ``words`` is what was written where it is neither a URL nor an identifier.
    """

    id: str = ""
    url: str = ""
    site: str = ""
    words: str = ""
    advisory: bool = False


_KEYWORD = re.compile(rf"\s*({'|'.join(kind.value for kind in OriginKind)})\s*(?:,|$)", re.IGNORECASE)
_COMMIT = re.compile(r"\s*commit:", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)
_ADVISORY = re.compile(r"(?:CVE|PYSEC)-\d{4}-\d+|GHSA(?:-[0-9a-z]{4}){3}", re.IGNORECASE)
_REPORT = re.compile(
    r"/(?:issues?|pulls?|merge_requests|pull-requests|bugs?|tickets?|browse|discussions)/([\w.-]*\d[\w.-]*)"
)


def read_origin(text: str) -> Origin:
    """``Origin`` by its keyword; ``commit:`` without one names a commit of upstream, says DEP-3."""
    keyword = _KEYWORD.match(text)
    kind = OriginKind(keyword[1].lower()) if keyword else OriginKind.UPSTREAM if _COMMIT.match(text) else None
    return Origin(kind, next(iter(find_urls(text)), ""))


def find_urls(text: str) -> tuple[str, ...]:
    """The URLs in ``text``, without the punctuation of the sentence around them."""
    found = (url.rstrip(".,;:)]}'") for url in _URL.findall(text))
    return tuple(dict.fromkeys(url for url in found if _host(url)))


def read_bugs(text: str) -> tuple[Bug, ...]:
    """The reports that ``Bug`` names: its URLs, then advisories that no URL names; else its words as they are."""
    by_url = [_read_url(url) for url in find_urls(text)]
    named = {bug.id for bug in by_url}
    advisories = dict.fromkeys(map(_spell, _ADVISORY.findall(_URL.sub(" ", text))))
    bugs = (*by_url, *(Bug(id=found, advisory=True) for found in advisories if found not in named))
    words = text.strip()
    if bugs or not words:
        return bugs
    return (Bug(words=words),) if len(words.split()) > 1 else (Bug(id=words),)


def _read_url(url: str) -> Bug:
    advisory = _ADVISORY.search(url)
    if advisory is not None:
        return Bug(id=_spell(advisory[0]), url=url, site=_host(url), advisory=True)
    parts = urlsplit(url)
    report = _REPORT.search(parts.path)
    numbers = parse_qs(parts.query).get("id", [""])
    return Bug(id=report[1] if report else numbers[0], url=url, site=_host(url))


def _spell(advisory: str) -> str:
    """The spelling of its database: the prefix in capitals, and the letters of GHSA behind it small."""
    prefix, _, rest = advisory.partition("-")
    return f"{prefix.upper()}-{rest.lower()}"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # brackets that hold no IPv6 address
        return ""
