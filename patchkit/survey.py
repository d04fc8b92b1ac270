"""What is known of the files that patches touch: RECORD's rows, the bytes on disk, the ledger's memory. Reads only."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from patchkit.applied import Ledger, LedgerFile, LedgerRecord
from patchkit.bases import Facts, is_as_written
from patchkit.bounds import Bounds
from patchkit.errors import EnvironmentMismatch, NoRecord
from patchkit.installed import Content, Distribution, Observed, RecordRow, sha256
from patchkit.record import read_record, remove_rows, top_level_folders
from patchkit.scene import Scene
from patchkit.site import observe, read_plain
from patchkit.state import read_object


@dataclass(frozen=True, slots=True)
class Ownership:
    """One distribution by its RECORD installed now: the rows that are not ours, and RECORD without ours."""

    distribution: Distribution
    rows: Mapping[str, RecordRow]
    own_rows: tuple[str, ...]
    record: bytes

    @property
    def folders(self) -> frozenset[str]:
        return top_level_folders(self.rows)


def read_ownership(distribution: Distribution, ledger: Ledger) -> Ownership:
    """Parse a RECORD, leaving out the rows that the ledger says are ours."""
    noted = next((record for record in ledger.records if record.distribution == distribution.name), None)
    ours = _own_rows(distribution, noted, ledger)
    data = remove_rows(distribution.record.data, ours) if ours else distribution.record.data
    return Ownership(distribution, read_record(data, path=distribution.record_path), ours, data)


def _own_rows(distribution: Distribution, noted: LedgerRecord | None, ledger: Ledger) -> tuple[str, ...]:
    """Our rows, if RECORD is still the one we wrote, or at least of the version we wrote it for.

    A new version may ship the very file that a patch created, with the very same row: that one is not ours.
    """
    if noted is None:
        return ()
    versions = {applied.version for applied in ledger.applied if applied.distribution == distribution.name}
    untouched = sha256(distribution.record.data) == noted.written.sha256
    return noted.rows if untouched or versions <= {distribution.version} else ()


def gather_facts(
    scene: Scene,
    paths: Mapping[str, str],
    owners: Mapping[str, Ownership],
    wheels: Sequence[str],
) -> dict[str, Facts]:
    """The facts on each of ``paths`` (path to the distribution that it belongs to)."""
    entries = {file.path: file for file in scene.ledger.files}
    observed = observe(scene.root, paths)
    supplied = _read_wheels(paths, owners, wheels)
    found = {
        path: _state_facts(scene, observed[path], name, owners.get(name), entries.get(path), supplied.get(path))
        for path, name in paths.items()
    }
    left = [fact for fact in found.values() if _is_left(scene.ledger, fact, owners.get(fact.distribution))]
    return found | {path: replace(found[path], ceded=True) for path in _find_ceded(scene, left)}


def gather_noted_facts(
    scene: Scene, paths: Mapping[str, str], owners: Mapping[str, Distribution | None]
) -> dict[str, Facts]:
    """The facts on files that patches were written to; a RECORD is parsed only where something happened since.

    That is so where RECORD is not the one that was written then, or a file not as it was. A distribution that
    ``owners`` does not speak of is in doubt: of it, only files that are not as written are looked into.
    """
    entries = {file.path: file for file in scene.ledger.files}
    observed = observe(scene.root, paths)
    facts = {path: Facts(path, name, "", observed[path], entry=entries.get(path)) for path, name in paths.items()}
    changed = {name for name, owner in owners.items() if not is_record_kept(scene.ledger, owner)}
    strange = {name for path, name in paths.items() if not is_as_written(facts[path])}
    ownership = _read_ownerships(scene.ledger, owners, changed | strange)
    told = {name for name in changed if owners[name] is None or name in ownership}
    odd = {path: name for path, name in paths.items() if name in told or not is_as_written(facts[path])}
    return facts | gather_facts(scene, odd, ownership, ()) if odd else facts


def _read_ownerships(
    ledger: Ledger, owners: Mapping[str, Distribution | None], names: Iterable[str]
) -> dict[str, Ownership]:
    """The distributions of ``names`` by their RECORDs, as far as these can be read."""
    found: dict[str, Ownership] = {}
    for name in names:
        owner = owners.get(name)
        if owner is not None:
            with suppress(NoRecord):
                found[name] = read_ownership(owner, ledger)
    return found


def is_record_kept(ledger: Ledger, owner: Distribution | None) -> bool:
    """Whether RECORD is byte for byte the one that patchkit wrote, so that nothing was installed since."""
    noted = {record.distribution: record.written.sha256 for record in ledger.records}
    return owner is not None and noted.get(owner.name) == sha256(owner.record.data)


def _is_left(ledger: Ledger, facts: Facts, owner: Ownership | None) -> bool:
    """Whether there is a file that its distribution does not list: it dropped it, or it is in the way of a patch."""
    there = facts.row is None and facts.content is not None
    kept = is_record_kept(ledger, owner.distribution if owner is not None else None)
    return there and not (kept and facts.entry is not None)


def _find_ceded(scene: Scene, left: Sequence[Facts]) -> Iterator[str]:
    """The paths of ``left`` that another distribution lists, with what is there. Reads all RECORDs of the site root."""
    for name, folders in scene.listing.folders.items() if left else ():
        for folder in folders:
            rows = _read_rows(scene.root, folder)
            for facts in left:
                row = rows.get(facts.path) if name != facts.distribution else None
                if row is not None and facts.content is not None and _ships(row, facts.content):
                    yield facts.path


def _read_rows(root: str, folder: str) -> Mapping[str, RecordRow]:
    """The rows of one RECORD; none where it cannot be read, for that distribution is not the one in question."""
    try:
        record = read_plain(os.path.join(root, folder, "RECORD"))
        return {} if record is None else read_record(record.data)
    except EnvironmentMismatch:
        return {}


def _ships(row: RecordRow, content: Content) -> bool:
    return row.digest is None or row.digest.matches(content.data)


def _state_facts(
    scene: Scene,
    observed: Observed,
    name: str,
    owner: Ownership | None,
    entry: LedgerFile | None,
    supplied: Content | None,
) -> Facts:
    saved = read_object(scene.root, entry.base.sha256) if entry is not None and entry.base is not None else None
    return Facts(
        path=observed.path,
        distribution=name,
        version=owner.distribution.version if owner is not None else "",
        observed=observed,
        row=owner.rows.get(observed.path) if owner is not None else None,
        entry=entry,
        saved=saved,
        supplied=supplied,
        asked=True,
        stale=entry is not None and owner is not None and _is_stale(scene.ledger, entry, owner.distribution.version),
    )


def _is_stale(ledger: Ledger, entry: LedgerFile, version: str) -> bool:
    return any(applied.version != version for applied in ledger.applied if applied.id in entry.patches)


def _read_wheels(
    paths: Mapping[str, str], owners: Mapping[str, Ownership], wheels: Sequence[str]
) -> Mapping[str, Content]:
    if not wheels:
        return {}
    from patchkit.wheel import read_members

    of = {name: [path for path, owner in paths.items() if owner == name] for name in owners}
    return read_members(wheels, [owner.distribution for owner in owners.values()], of)


def find_absent_folders(root: str, paths: Iterable[str]) -> frozenset[str]:
    """The folders that ``paths`` need and that are not there, each with its absent parents."""
    absent: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        while folder and folder not in absent and not os.path.isdir(os.path.join(root, folder)):
            absent.add(folder)
            folder = os.path.dirname(folder)
    return frozenset(absent)


def bounds_of(own: Ownership, created: Collection[str], facts: Mapping[str, Facts]) -> Bounds:
    """What a patch of this distribution may touch; ``created`` are the paths that wanted patches create."""
    existing = {path for path, fact in facts.items() if fact.content is not None or fact.observed.link is not None}
    hidden = {path for path, fact in facts.items() if fact.observed.hidden}
    return Bounds(own.distribution.name, own.rows, created, own.folders, existing, hidden)
