"""What the text of a module says of its names without being parsed. It errs to one side: what may be, is.

Parsing takes a hundred times as long as looking for a word, and most modules of a large caller need no more than that.
"""

from __future__ import annotations

import re
from functools import lru_cache

_DEFINITIONS = re.compile(rb"^(?:class|def|async def) +(\w+)", re.MULTILINE)
_IMPORTS = re.compile(rb"^[ \t]*(?:from\b.*|import\b.*|\w+(?: as \w+)?,?[ \t]*(?:#.*)?)$", re.MULTILINE)
_WORDS = re.compile(rb"\w+")
_STARS = re.compile(rb"\bfrom[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*\*")
_EXPORTS = re.compile(rb"\b__all__\b[ \t]*(\+?=[ \t]*[\[(])?")


def defined_names(data: bytes) -> frozenset[bytes]:
    """The names that a text defines at its left edge and nowhere imports."""
    imported = {word for line in _IMPORTS.findall(data) for word in _WORDS.findall(line)}
    return frozenset(_DEFINITIONS.findall(data)) - imported


@lru_cache(maxsize=10_000)
def star_imports(data: bytes) -> tuple[tuple[int, str], ...]:
    """The modules that a text takes all names of: the dots in front, and the rest of the name."""
    found = _STARS.findall(data) if b"*" in data else []
    return tuple((len(dots), name.decode()) for dots, name in found)


def may_export(data: bytes, name: str) -> bool:
    """Whether a text may bind ``name`` for those who take all of its names: not where only prose or a call has it."""
    word = name.encode()
    if word not in data:
        return False
    lists = _EXPORTS.findall(data)
    if lists and all(lists) and not re.search(rb"[\"']" + re.escape(word) + rb"[\"']", data):
        return False  # `__all__` is written out, without it
    return re.search(_BINDING.replace(b"NAME", re.escape(word)), data, re.MULTILINE) is not None


_BINDING = rb"|".join(
    (
        rb"^[ \t]*(?:class|def|async[ \t]+def)[ \t]+NAME\b",
        rb"^[ \t]*from\b[^\n]*\bimport\b[^\n#]*\bNAME\b",
        rb"^[ \t]*import\b[^\n#]*\bNAME\b",
        rb"^[ \t]*(?:\w+[ \t]+as[ \t]+)?NAME\b(?:[ \t]+as\b[^\n]*)?[ \t]*[,)]?[ \t]*(?:#[^\n]*)?$",  # of several lines
        rb"^[^\n\"'>#`(]*\bNAME\b[^\n=]*:?=",
        rb"\bas[ \t]+NAME\b",
    )
)
