"""The journal of one transaction, as values and as JSON (``.patchkit/journal.json``).

It is complete before the first file is touched: what every file was, what it becomes, and under which names the
new bytes are staged. That is all that an undo needs, besides the object store. Nothing here reads or writes a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchkit.errors import DamagedState, NewerFormat
from patchkit.installed import Stamp

FORMAT = 1

STATE = ".patchkit"
"""The state folder, and the names in it."""
JOURNAL = "journal.json"
LEDGER = "ledger.json"
LOCK = "lock"
OBJECTS = "objects"

_ID = re.compile(r"[0-9a-f]{16}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HINT = (
    "the bytes from before the change lie in .patchkit/objects, named by their sha256; "
    "reinstall the distribution, then remove .patchkit"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One file of a transaction: what it was and what it becomes (None: absent on that side).

    ``link`` is where the path pointed if it was a symbolic link; ``owner`` is the (uid, gid) of what was there;
    ``record`` is the RECORD of the distribution that it belongs to (None: not known).
    """

    path: str
    before: Stamp | None
    after: Stamp | None
    link: str | None = None
    owner: tuple[int, int] | None = None
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """Everything that one transaction does below a site root.

    ``ledger_before`` and ``ledger_after`` are the sha256 of ledger.json (None: no ledger). ``made`` are the
    directories that it makes, ``dropped`` those that it removes in its clean-up. ``live`` are the objects that stay
    when it is committed, ``live_before`` those that stay when it is undone. ``records`` are the RECORDs that its steps
    name, by path, with their sha256 at the beginning: where one is another, its distribution was installed anew.
    """

    id: str
    steps: tuple[Step, ...]
    ledger_before: str | None
    ledger_after: str | None
    made: tuple[str, ...]
    dropped: tuple[str, ...]
    live: frozenset[str]
    live_before: frozenset[str]
    records: Mapping[str, str]
    committed: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it may touch or look at."""
        return (*(step.path for step in self.steps), *self.made, *self.dropped, *self.records)

    def staged(self, number: int) -> str:
        """Where step ``number`` waits for its turn; while it is there, the target is untouched."""
        return self._sibling(number, "")

    def restored(self, number: int) -> str:
        """Where an undo stages what step ``number`` had replaced."""
        return self._sibling(number, "-undo")

    def _sibling(self, number: int, suffix: str) -> str:
        folder, slash, _ = self.steps[number].path.rpartition("/")
        return f"{folder}{slash}.patchkit-{self.id}-{number}{suffix}.tmp"


def is_safe(path: str) -> bool:
    """Whether ``path`` is a plain relative POSIX path that names something outside the state folder."""
    parts = path.split("/")
    return "\0" not in path and not {"", ".", ".."} & set(parts) and parts[0] != STATE


def write_journal(journal: Journal) -> bytes:
    """The journal as JSON, one line, ASCII (so that any file name survives)."""
    document = {
        "format": FORMAT,
        "id": journal.id,
        "committed": journal.committed,
        "changes": [_from_step(step) for step in journal.steps],
        "ledger_before": journal.ledger_before,
        "ledger_after": journal.ledger_after,
        "made": list(journal.made),
        "dropped": list(journal.dropped),
        "live": sorted(journal.live),
        "live_before": sorted(journal.live_before),
        "records": [{"path": path, "sha256": digest} for path, digest in sorted(journal.records.items())],
    }
    return json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"


def read_journal(data: bytes, *, file: str) -> Journal:
    """The journal that ``data`` holds; ``file`` is its path, for messages.

    Raises `NewerFormat` for a format number above `FORMAT`, `DamagedState` for anything that `write_journal` would not
    have written, paths that leave the site root among it.
    """
    try:
        document = _typed(json.loads(data), dict)
        number = _typed(document["format"], int)
        if number > FORMAT:
            raise NewerFormat(f"{file} has format {number}, this patchkit knows {FORMAT}")
        if number < FORMAT:
            raise ValueError(f"no such format: {number}")
        return _to_journal(document)
    except (ValueError, KeyError, RecursionError) as error:
        raise DamagedState(f"{file} is damaged ({type(error).__name__}: {error})", hint=_HINT) from error


def _to_journal(document: dict[str, Any]) -> Journal:
    return Journal(
        id=_matching(document["id"], _ID),
        steps=tuple(_to_step(change) for change in _typed(document["changes"], list)),
        ledger_before=_digest_or_none(document["ledger_before"]),
        ledger_after=_digest_or_none(document["ledger_after"]),
        made=tuple(_path(path) for path in _typed(document["made"], list)),
        dropped=tuple(_path(path) for path in _typed(document["dropped"], list)),
        live=frozenset(_matching(name, _SHA256) for name in _typed(document["live"], list)),
        live_before=frozenset(_matching(name, _SHA256) for name in _typed(document["live_before"], list)),
        records=dict(_to_record(record) for record in _typed(document["records"], list)),
        committed=_typed(document["committed"], bool),
    )


def _from_step(step: Step) -> dict[str, Any]:
    return {
        "path": step.path,
        "before": _from_stamp(step.before),
        "after": _from_stamp(step.after),
        "link": step.link,
        "owner": step.owner,
        "record": step.record,
    }


def _to_step(value: Any) -> Step:
    change = _typed(value, dict)
    return Step(
        path=_path(change["path"]),
        before=_to_stamp(change["before"]),
        after=_to_stamp(change["after"]),
        link=None if change["link"] is None else _text(change["link"]),
        owner=None if change["owner"] is None else _owner(change["owner"]),
        record=None if change["record"] is None else _path(change["record"]),
    )


def _to_record(value: Any) -> tuple[str, str]:
    record = _typed(value, dict)
    return _path(record["path"]), _matching(record["sha256"], _SHA256)


def _from_stamp(stamp: Stamp | None) -> dict[str, Any] | None:
    return None if stamp is None else {"sha256": stamp.sha256, "mode": stamp.mode}


def _to_stamp(value: Any) -> Stamp | None:
    if value is None:
        return None
    stamp = _typed(value, dict)
    mode = _typed(stamp["mode"], int)
    if not 0 <= mode <= 0o7777:
        raise ValueError(f"no permission bits: {mode}")
    return Stamp(_matching(stamp["sha256"], _SHA256), mode)


def _owner(value: Any) -> tuple[int, int]:
    uid, gid = (_typed(number, int) for number in _typed(value, list))
    if not (0 <= uid < 2**32 and 0 <= gid < 2**32):
        raise ValueError(f"no owner: {value!r}")
    return uid, gid


def _path(value: Any) -> str:
    path = _text(value)
    if not is_safe(path):
        raise ValueError(f"unsafe path {path!r}")
    return path


def _text(value: Any) -> str:
    """``value``, if it is a string that the operating system can take as a name."""
    if b"\0" in _typed(value, str).encode("utf-8", "surrogateescape"):
        raise ValueError(f"NUL in {value!r}")
    return str(value)


def _digest_or_none(value: Any) -> str | None:
    return None if value is None else _matching(value, _SHA256)


def _matching(value: Any, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(_typed(value, str)):
        raise ValueError(f"unexpected {value!r}")
    return str(value)


def _typed(value: Any, kind: type) -> Any:
    """``value``, if its type is exactly ``kind`` (True is no int here)."""
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, found {value!r}")
    return value
