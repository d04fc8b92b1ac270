"""The outline of a TOML document: where its headers and its values stand in the text.

It is for text that the loader took (TOML 1.0), and judges nothing: it tells strings and comments from what is neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""Keys and, in arrays, 0-based numbers: ``("patch", 1, "variant", 0, "versions")``."""

_BLANKS = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'  # up to two quotation marks may stand before the closing three
    r"|'''.*?'''(?:'{0,2})"
    r"""|"(?:[^"\\]|\\.)*"|'[^']*'""",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the text, from ``begin`` up to before ``end``, in characters."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """A table with a header of its own: from the header's line to the next header's; ``body`` ends its last value."""

    path: Path
    begin: int
    body: int
    end: int


@dataclass(frozen=True, slots=True)
class Outline:
    """The tables with headers in their order, and every value that stands behind a key or in an array, by its path."""

    blocks: tuple[Block, ...]
    values: Mapping[Path, Span]

    def elements(self, path: Path) -> tuple[Span, ...]:
        """The elements of the array that is the value at ``path``."""
        found: list[Span] = []
        while (span := self.values.get((*path, len(found)))) is not None:
            found.append(span)
        return tuple(found)


def outline(text: str) -> Outline:
    """The outline of a valid TOML document."""
    scan = _Scan(text)
    scan.read_document()
    ends = [*(begin for _, begin, _ in scan.headers[1:]), len(text)]
    blocks = (Block(path, begin, body, end) for (path, begin, body), end in zip(scan.headers, ends, strict=False))
    return Outline(tuple(blocks), scan.values)


@dataclass(slots=True)
class _Scan:
    text: str
    at: int = 0
    values: dict[Path, Span] = field(default_factory=dict)
    headers: list[tuple[Path, int, int]] = field(default_factory=list)
    last: dict[Path, int] = field(default_factory=dict)  # the number of the newest table of each array with headers

    def read_document(self) -> None:
        path: Path = ()
        while self._skip(_GAP) < len(self.text):
            if self.text[self.at] == "[":
                begin = self.text.rfind("\n", 0, self.at) + 1
                path = self._read_header()
                self.headers.append((path, begin, self.at))
            else:
                self._read_pair(path)
                if self.headers:
                    self.headers[-1] = (*self.headers[-1][:2], self.at)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at
        return self.at

    def _read_header(self) -> Path:
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        keys = self._read_key()
        self.at += brackets
        path: Path = ()
        for key in keys[:-1]:
            path = (*path, key)
            path = (*path, self.last[path]) if path in self.last else path
        path = (*path, keys[-1])
        if brackets == 1:
            return path
        self.last[path] = self.last.get(path, -1) + 1
        return (*path, self.last[path])

    def _read_key(self) -> list[str]:
        """The parts of a dotted key; what follows it comes next."""
        parts: list[str] = []
        while True:
            begin = self._skip(_BLANKS)
            parts.append(_unquote(self.text[begin : self._skip(_KEY)]))
            self._skip(_BLANKS)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _read_pair(self, path: Path) -> None:
        keys = self._read_key()
        self.at += 1  # the equals sign
        self._skip(_BLANKS)
        self._read_value((*path, *keys))

    def _read_value(self, path: Path) -> None:
        begin = self.at
        match self.text[begin]:
            case "[":
                self._read_array(path)
            case "{":
                self._read_inline_table(path)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                end = self._skip(_SCALAR)
                self.at = begin + len(self.text[begin:end].rstrip(" \t"))
        self.values[path] = Span(begin, self.at)

    def _read_array(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self.text[self._skip(_GAP)] != "]":
            self._read_value((*path, number))
            number += 1
            self._skip_comma()
        self.at += 1

    def _read_inline_table(self, path: Path) -> None:
        self.at += 1
        while self.text[self._skip(_GAP)] != "}":
            self._read_pair(path)
            self._skip_comma()
        self.at += 1

    def _skip_comma(self) -> None:
        if self.text[self._skip(_GAP)] == ",":
            self.at += 1


def _unquote(key: str) -> str:
    if key[:1] == "'":
        return key[1:-1]
    return _ESCAPE.sub(_unescape, key[1:-1]) if key[:1] == '"' else key


def _unescape(found: re.Match[str]) -> str:
    """The character of a ``\\u`` or ``\\U``; other escapes stay as they are: no key that is looked for has one."""
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else found[0]
