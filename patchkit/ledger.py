"""The ledger's codec: `Ledger` to the bytes of ledger.json and back (docs/reference/state.md).

The bytes are a function of the value alone: no time stamps, sorted keys, so that two builds with the same inputs
give the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from patchkit.applied import Applied, BaseOrigin, Kept, Ledger, LedgerFile, LedgerRecord, Reason
from patchkit.errors import DamagedState, NewerFormat
from patchkit.installed import Stamp, is_below_root
from patchkit.model import DiffText
from patchkit.patchset import Check, PatchId, Provenance, PythonCheck, SymbolCheck

FORMAT = 1
SETTLED = "settled"

T = TypeVar("T")


def write_ledger(ledger: Ledger) -> bytes:
    """The bytes of ledger.json for ``ledger``: a line for each row."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "applied": [_from_applied(applied) for applied in ledger.applied],
        "files": [_from_file(file) for file in sorted(ledger.files, key=lambda file: file.path)],
        "records": [_from_record(record) for record in sorted(ledger.records, key=lambda record: record.path)],
        "directories": sorted(ledger.directories),
        "kept": [{"path": kept.path, "sha256": kept.sha256} for kept in ledger.kept],
    }
    parts = [f' "{key}": {_write_value(value)}' for key, value in sorted(document.items())]
    return add_seal(("{\n" + ",\n".join(parts) + "\n}\n").encode("ascii"), ledger.settled)


def _write_value(value: Any) -> str:
    """JSON; of a list, each element on a line. The json module's own indentation takes ten times as long."""
    if not isinstance(value, list):
        return json.dumps(value)
    rows = ",\n".join(f"  {json.dumps(row, sort_keys=True)}" for row in value)
    return f"[\n{rows}\n ]" if rows else "[]"


def add_seal(unsealed: bytes, lines: Sequence[str]) -> bytes:
    """The bytes of a ledger with a seal (`patchkit.settled`): the last key, as that is where it is looked for."""
    if not lines:
        return unsealed
    seal = f',\n "{SETTLED}": {_write_value([*lines])}\n}}\n'
    return unsealed.removesuffix(b"\n}\n") + seal.encode("ascii")


def read_ledger(data: bytes, *, file: str) -> Ledger:
    """The ledger in ``data``; ``file`` is its path, for messages.

    Raises `NewerFormat` for a format that this version does not know and `DamagedState` for anything else that
    `write_ledger` cannot have written.
    """
    try:
        document = json.loads(data)
        found = document["format"]
        if isinstance(found, bool):
            raise ValueError(f"format {found!r}")
        if isinstance(found, int) and found > FORMAT:
            raise NewerFormat(f"{file} has format {found}; this patchkit knows {FORMAT}")
        if found != FORMAT:
            raise ValueError(f"format {found!r}")
        return Ledger(
            applied=_many(document, "applied", _to_applied),
            files=_many(document, "files", _to_file),
            records=_many(document, "records", _to_record),
            directories=tuple(_path(path) for path in document["directories"]),
            kept=_many(document, "kept", lambda row: Kept(_path(row["path"]), _sha(row["sha256"]))),
            settled=_texts(document.get(SETTLED, [])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedState(
            f"{file} is damaged ({type(error).__name__}: {error})",
            hint="restore the file from a backup or image; or reinstall the patched distributions, "
            "then remove the folder that holds it and apply anew",
        ) from error


def _many(document: Mapping[str, Any], key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    rows = document[key]
    if not isinstance(rows, list):
        raise ValueError(f"{key} is not a list")
    return tuple(read(row) for row in rows)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return tuple(_text(item) for item in value)


def _sha(value: object) -> str:
    text = _text(value)
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a sha256")
    return text


def _path(value: object) -> str:
    text = _text(value)
    if not is_below_root(text):
        raise ValueError(f"{text!r} is not a path below the site root")
    return text


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _to_id(value: object) -> PatchId:
    set_name, slash, patch = _text(value).partition("/")
    if not (set_name and slash and patch):
        raise ValueError(f"{value!r} is not SET/PATCH")
    return PatchId(set_name, patch)


def _to_ids(value: object) -> tuple[PatchId, ...]:
    return tuple(_to_id(item) for item in _texts(value))


def _from_stamp(stamp: Stamp | None) -> dict[str, Any] | None:
    return None if stamp is None else {"sha256": stamp.sha256, "mode": f"{stamp.mode:04o}"}


def _to_stamp(value: Any) -> Stamp:
    mode = int(_text(value["mode"]), 8)
    if not 0 <= mode <= 0o7777:
        raise ValueError(f"{mode:o} is not a mode")
    return Stamp(_sha(value["sha256"]), mode)


def _from_file(file: LedgerFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "distribution": file.distribution,
        "base": _from_stamp(file.base),
        "origin": file.origin.value,
        "recorded": file.recorded,
        "patches": [str(id) for id in file.patches],
        "written": _from_stamp(file.written),
    }


def _to_file(row: Any) -> LedgerFile:
    return LedgerFile(
        path=_path(row["path"]),
        distribution=_text(row["distribution"]),
        base=None if row["base"] is None else _to_stamp(row["base"]),
        origin=BaseOrigin(row["origin"]),
        recorded=_text(row["recorded"]),
        patches=_to_ids(row["patches"]),
        written=None if row["written"] is None else _to_stamp(row["written"]),
    )


def _from_record(record: LedgerRecord) -> dict[str, Any]:
    return {
        "distribution": record.distribution,
        "path": record.path,
        "base": _from_stamp(record.base),
        "written": _from_stamp(record.written),
        "rows": list(record.rows),
    }


def _to_record(row: Any) -> LedgerRecord:
    return LedgerRecord(
        distribution=_text(row["distribution"]),
        path=_path(row["path"]),
        base=_to_stamp(row["base"]),
        written=_to_stamp(row["written"]),
        rows=_texts(row["rows"]),
    )


def _from_applied(applied: Applied) -> dict[str, Any]:
    text, source = applied.text, applied.provenance
    return {
        "patch": str(applied.id),
        "distribution": applied.distribution,
        "version": applied.version,
        "variant": applied.variant,
        "versions": applied.versions,
        "diff": {
            "sha256": text.sha256,
            "strip": text.strip,
            "directory": text.directory,
            "include": list(text.include),
            "exclude": list(text.exclude),
        },
        "place": applied.place,
        "after": [str(id) for id in applied.after],
        "group": applied.group,
        "reason": applied.reason.value,
        "summary": applied.summary,
        "provenance": {name: getattr(source, name) for name in Provenance.__slots__},
        "shadowed-by": list(applied.shadowed_by),
        "checks": [_from_check(check) for check in applied.checks],
        "paths": list(applied.paths),
    }


def _to_applied(row: Any) -> Applied:
    diff = row["diff"]
    return Applied(
        id=_to_id(row["patch"]),
        distribution=_text(row["distribution"]),
        version=_text(row["version"]),
        variant=_text(row["variant"]),
        versions=_text(row["versions"]),
        text=DiffText(
            sha256=_sha(diff["sha256"]),
            strip=_number(diff["strip"]),
            directory=_text(diff["directory"]),
            include=_texts(diff["include"]),
            exclude=_texts(diff["exclude"]),
        ),
        place=_number(row["place"]),
        after=_to_ids(row["after"]),
        group=_text(row["group"]),
        reason=Reason(row["reason"]),
        summary=_text(row["summary"]),
        provenance=Provenance(**{name: _text(row["provenance"][name]) for name in Provenance.__slots__}),
        shadowed_by=_texts(row["shadowed-by"]),
        checks=_many(row, "checks", _to_check),
        paths=tuple(_path(path) for path in row["paths"]),
    )


def _from_check(check: Check) -> dict[str, Any]:
    match check:
        case SymbolCheck():
            return {
                "kind": "symbol",
                "module": check.module,
                "symbol": check.symbol,
                "starts-with": check.starts_with,
                "has": list(check.has),
                "lacks": list(check.lacks),
                "decorators": list(check.decorators),
                "versions": check.versions,
            }
        case PythonCheck():
            return {
                "kind": "python",
                "file": check.file,
                "needs": list(check.needs),
                "timeout": check.timeout,
                "versions": check.versions,
                "sha256": check.sha256,
            }


def _to_check(row: Any) -> Check:
    if row["kind"] == "symbol":
        return SymbolCheck(
            module=_text(row["module"]),
            symbol=_text(row["symbol"]),
            starts_with=_text(row["starts-with"]),
            has=_texts(row["has"]),
            lacks=_texts(row["lacks"]),
            decorators=_texts(row["decorators"]),
            versions=_text(row["versions"]),
        )
    if row["kind"] == "python":
        return PythonCheck(
            file=_text(row["file"]),
            needs=_texts(row["needs"]),
            timeout=float(row["timeout"]),
            versions=_text(row["versions"]),
            sha256=_sha(row["sha256"]),
        )
    raise ValueError(f"check kind {row['kind']!r}")
