"""The golden file: what is applied in one environment, so that others can be held against it.

The format is told in docs/reference/golden.md. It says no path outside the site root, no time and no machine, and is
sorted: equal environments give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from patchkit.applied import Ledger
from patchkit.errors import BadExport, NewerFormat
from patchkit.installed import Stamp, is_below_root
from patchkit.patchset import PatchId

SCHEMA = 1
KIND = "patchkit-export"


@dataclass(frozen=True, slots=True)
class GoldenPatch:
    """A patch as it is applied; ``sha256`` is the digest of its diff."""

    id: PatchId
    distribution: str
    version: str
    variant: str
    sha256: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """A patched file: what it was folded from and what was written (None: absent), and the patches in it."""

    path: str
    distribution: str
    patches: tuple[PatchId, ...]
    before: Stamp | None
    after: Stamp | None


@dataclass(frozen=True, slots=True)
class Golden:
    """Everything that is applied in one environment."""

    patches: tuple[GoldenPatch, ...] = ()
    files: tuple[GoldenFile, ...] = ()

    def patch(self, id: PatchId) -> GoldenPatch | None:
        return next((patch for patch in self.patches if patch.id == id), None)


def take(ledger: Ledger) -> Golden:
    """What ``ledger`` says, in the order of names and paths."""
    patches = (
        GoldenPatch(
            applied.id,
            applied.distribution,
            applied.version,
            applied.variant,
            applied.text.sha256,
            tuple(sorted(applied.paths)),
        )
        for applied in ledger.applied
    )
    files = (
        GoldenFile(file.path, file.distribution, file.patches, file.base, file.written)
        for file in ledger.files
        if file.patches
    )
    return Golden(
        tuple(sorted(patches, key=lambda patch: (patch.id.set, patch.id.patch))),
        tuple(sorted(files, key=lambda file: file.path)),
    )


# ---- to bytes -------------------------------------------------------------------------------------------------


def to_document(golden: Golden) -> dict[str, Any]:
    """The JSON document of ``golden``."""
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "patches": [
            {
                "set": patch.id.set,
                "patch": patch.id.patch,
                "distribution": patch.distribution,
                "version": patch.version,
                "variant": patch.variant,
                "sha256": patch.sha256,
                "paths": list(patch.paths),
            }
            for patch in golden.patches
        ],
        "files": [
            {
                "path": file.path,
                "distribution": file.distribution,
                "patches": [str(id) for id in file.patches],
                "before": _from_stamp(file.before),
                "after": _from_stamp(file.after),
            }
            for file in golden.files
        ],
    }


def _from_stamp(stamp: Stamp | None) -> dict[str, object] | None:
    return None if stamp is None else {"sha256": stamp.sha256, "executable": stamp.executable}


def write_golden(golden: Golden) -> bytes:
    """The bytes of the golden file, with a line end."""
    return (json.dumps(to_document(golden), indent=2, ensure_ascii=True) + "\n").encode()


# ---- from bytes -----------------------------------------------------------------------------------------------


def read_golden(data: bytes, *, file: str) -> Golden:
    """The golden file ``file``, or the JSON document of `export` around it. Raises `BadExport` and `NewerFormat`."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadExport(f"{file} is not JSON: {error}") from error
    try:
        inner = document.get("export", document)
        schema, kind = inner["schema"], inner["kind"]
        if kind != KIND or not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
            raise BadExport(f"{file} is not an export of patchkit (its kind is {kind!r}, its schema {schema!r})")
        if schema > SCHEMA:
            raise NewerFormat(f"{file} has the format {schema}; this patchkit reads up to {SCHEMA}")
        return _require_whole(
            Golden(
                tuple(_read_patch(table) for table in inner["patches"]),
                tuple(_read_file(table) for table in inner["files"]),
            ),
            file,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:  # a path that leaves the site root too
        words = f"has no {error}" if isinstance(error, KeyError) else "is not what `patchkit export` writes"
        raise BadExport(f"{file} {words}") from error


def _require_whole(golden: Golden, file: str) -> Golden:
    """A patch whose files are left out could never be found to differ. Raises `BadExport`."""
    files = {found.path: found for found in golden.files}
    if len({patch.id for patch in golden.patches}) < len(golden.patches) or len(files) < len(golden.files):
        raise BadExport(f"{file} names a patch or a file twice")
    for patch in golden.patches:
        for path in patch.paths:
            if path not in files or patch.id not in files[path].patches:
                raise BadExport(f"{file} says that {patch.id} changes {path}, and its `files` do not")
    return golden


def _read_patch(table: Mapping[str, Any]) -> GoldenPatch:
    words = (_text(table[key]) for key in ("set", "patch", "distribution", "version", "variant", "sha256"))
    set_name, patch, distribution, version, variant, sha256 = words
    return GoldenPatch(PatchId(set_name, patch), distribution, version, variant, sha256, _paths(table["paths"]))


def _read_file(table: Mapping[str, Any]) -> GoldenFile:
    ids = tuple(PatchId(*name.split("/", 1)) for name in _texts(table["patches"]))
    before, after = (_read_stamp(table[key]) for key in ("before", "after"))
    return GoldenFile(_path(table["path"]), _text(table["distribution"]), ids, before, after)


def _read_stamp(table: Mapping[str, Any] | None) -> Stamp | None:
    if table is None:
        return None
    if not isinstance(table["executable"], bool):
        raise TypeError("executable")
    return Stamp(_text(table["sha256"]), 0o755 if table["executable"] else 0o644)


def _path(value: object) -> str:
    text = _text(value)
    if not is_below_root(text):
        raise ValueError(text)
    return text


def _paths(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(_path(value) for value in values)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    return tuple(_text(value) for value in values)
