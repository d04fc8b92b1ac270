"""Reading a TOML table key by key: what is wrong is noted with its file and key path, and reading goes on.

So all problems of a document come at once. A method that meets a wrong value notes it and gives what an absent key
would have given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time

from patchkit.errors import BadManifest

_MISSING = object()
_LARGEST_SHOWN = 10**18  # str() refuses integers of thousands of digits


@dataclass(frozen=True, slots=True)
class Table:
    """A table at ``path`` ("" is the document's top) of ``file``, and the problems noted so far."""

    values: Mapping[str, object]
    file: str
    path: str = ""
    problems: list[BadManifest] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def place(self, key: str) -> str:
        """The path of a key, as in ``patch[1].variant[0].versions``."""
        return f"{self.path}.{key}" if self.path else key

    def note(self, key: str, words: str) -> None:
        """Note that the value of ``key`` is wrong."""
        self.problems.append(BadManifest(f"{self.file}: {self.place(key)}: {words}"))

    def text(self, key: str, *, required: bool = False) -> str:
        """A string that is not blank; "" where the key is absent."""
        value = self._take(key, required=required)
        if value is _MISSING:
            return ""
        if not isinstance(value, str):
            self.note(key, f"must be a string, not {_kind(value)}")
            return ""
        if not value.strip():
            self.note(key, "must not be empty; leave the key out instead")
            return ""
        return value

    def texts(self, key: str, *, or_one: bool = False) -> tuple[str, ...]:
        """A list of strings that are not blank, or with ``or_one`` a single one; () where the key is absent."""
        return tuple(self.numbered_texts(key, or_one=or_one).values())

    def numbered_texts(self, key: str, *, or_one: bool = False) -> dict[int, str]:
        """The same by their places in the list: others in it were no strings."""
        value = self._take(key)
        if value is _MISSING:
            return {}
        if isinstance(value, str) and or_one:
            value = [value]
        if not isinstance(value, list):
            words = "a string or a list of strings" if or_one else "a list of strings"
            self.note(key, f'must be {words}, such as ["..."], not {_kind(value)}')
            return {}
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.note(f"{key}[{index}]", f"must be a string, not {_kind(item)}")
            elif not item.strip():
                self.note(f"{key}[{index}]", "must not be empty")
        return {index: item for index, item in enumerate(value) if isinstance(item, str) and item.strip()}

    def text_or_date(self, key: str) -> str:
        """A string, or a TOML date or time in ISO 8601."""
        value = self.values.get(key)
        if isinstance(value, date | datetime | time):
            self.read.add(key)
            return value.isoformat()
        return self.text(key)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._take(key)
        if isinstance(value, bool):
            return value
        if value is not _MISSING:
            self.note(key, f"must be true or false, not {_kind(value)}")
        return default

    def integer(self, key: str, *, default: int, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``."""
        value = self._take(key)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        if value is not _MISSING:
            wanted = f"{low}" if low == high else f"an integer from {low} to {high}"
            self.note(key, f"must be {wanted}, not {shown(value)}")
        return default

    def number(self, key: str, *, default: float, high: float) -> float:
        """A number above 0, up to ``high``."""
        value = self._take(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= high:
            return float(value)
        if value is not _MISSING:
            self.note(key, f"must be a number above 0, up to {high:g}, not {shown(value)}")
        return default

    def tables(self, key: str, *, most: int) -> list[Table]:
        """The tables of an array, ``[[key]]``; none of them where there are more than ``most``."""
        value = self._take(key)
        if value is _MISSING:
            return []
        if not isinstance(value, list):
            self.note(key, f"must be an array of tables, not {_kind(value)}; write [[{self._header(key)}]]")
            return []
        if len(value) > most:
            self.note(key, f"{len(value)} tables are too many; the limit is {most}")
            return []
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                self.note(f"{key}[{index}]", f"must be a table, not {_kind(item)}; write [[{self._header(key)}]]")
        return [
            Table(item, self.file, self.place(f"{key}[{index}]"), self.problems)
            for index, item in enumerate(value)
            if isinstance(item, dict)
        ]

    def finish(self) -> None:
        """Note every key that nobody asked for."""
        for key in self.values:
            if key not in self.read:
                self.note(key, f"unknown key{_suggestion(key, self.read)}; known are {', '.join(sorted(self.read))}")

    def _take(self, key: str, *, required: bool = False) -> object:
        self.read.add(key)
        value = self.values.get(key, _MISSING)
        if value is _MISSING and required:
            self.note(key, "is missing")
        return value

    def _header(self, key: str) -> str:
        above = ".".join(part.partition("[")[0] for part in self.path.split(".") if part)
        return f"{above}.{key}" if above else key


def _suggestion(key: str, known: set[str]) -> str:
    import difflib  # only for a message

    close = difflib.get_close_matches(key.lower().replace("_", "-"), sorted(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def _kind(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int():
            return "an integer"
        case float():
            return "a float"
        case list():
            return "an array"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def shown(value: object) -> str:
    """A wrong value for a message: a number as it is, else what kind of value it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _kind(value)
    return str(value) if isinstance(value, float) or abs(value) < _LARGEST_SHOWN else "a huge integer"
