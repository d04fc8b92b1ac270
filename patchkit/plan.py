"""The exact writes that bring the files, RECORD and the ledger to what was decided. Pure: nothing is written here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from patchkit.applied import Applied, Kept, Ledger, LedgerFile, LedgerRecord
from patchkit.bases import Base, Facts
from patchkit.fold import Tree
from patchkit.installed import Content, Observed, Stamp, is_same, sha256
from patchkit.ledger import add_seal, write_ledger
from patchkit.model import FileChange, Plan
from patchkit.patchset import PatchId, PythonCheck
from patchkit.record import append_rows, make_row, row_path


@dataclass(frozen=True, slots=True)
class RecordNow:
    """The RECORD of one distribution: as it is on disk, and without our rows."""

    distribution: str
    path: str
    content: Content
    bare: bytes
    own_rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was decided, as a plan needs it.

    ``facts`` and ``bases`` hold the files in question, ``tree`` what they are to be, ``members`` the patches in each.
    ``applied`` are all patches that are applied afterwards, ``records`` the RECORDs of the distributions in question;
    ``texts`` are diffs and check scripts by sha256.
    """

    ledger: Ledger
    ledger_data: bytes | None
    facts: Mapping[str, Facts]
    bases: Mapping[str, Base]
    tree: Tree
    members: Mapping[str, tuple[PatchId, ...]]
    applied: tuple[Applied, ...]
    records: tuple[RecordNow, ...]
    texts: Mapping[str, bytes]
    absent_folders: frozenset[str]


Sealing = Callable[[Ledger, bytes], tuple[str, ...]]
"""The seal of a ledger that is to be written, from its value and its bytes without one (`patchkit.settlement`)."""


def make_plan(outcome: Outcome, seal: Sealing = lambda ledger, unsealed: ()) -> Plan:
    """The plan for ``outcome``; empty where everything is as it should be: a seal alone is no reason to write."""
    files = _list_files(outcome)
    written = {path: content for path in outcome.facts if (content := outcome.tree.get(path)) is not None}
    records, record_changes = _plan_records(outcome, files, written)
    file_changes = tuple(_plan_changes(outcome))
    made = _folders_to_make(outcome, file_changes)
    folders = _folders_in_use(outcome.ledger.directories + made, files)
    kept = _keep(outcome)
    after = Ledger(outcome.applied, files, records, folders, kept)
    is_same_ledger = replace(after, settled=outcome.ledger.settled) == outcome.ledger
    plan = Plan(
        changes=(*file_changes, *record_changes),
        objects=_objects(outcome, files),
        live=_live(after),
        live_before=_live(outcome.ledger),
        state_before=outcome.ledger_data,
        state_after=None if after.empty else outcome.ledger_data if is_same_ledger else write_ledger(after),
        make_directories=made,
        drop_directories=tuple(
            sorted(set(outcome.ledger.directories) - set(folders), key=lambda path: -path.count("/"))
        ),
    )
    if plan.empty or after.empty:
        return plan
    unsealed = write_ledger(after) if is_same_ledger or plan.state_after is None else plan.state_after
    return replace(plan, state_after=add_seal(unsealed, seal(after, unsealed)))


def _is_touched(outcome: Outcome, path: str) -> bool:
    """Whether a file is ours to write: a wanted patch is in it, or one was that goes."""
    return path in outcome.members or outcome.facts[path].entry is not None


def _plan_changes(outcome: Outcome) -> Iterator[FileChange]:
    records = {now.distribution: now.path for now in outcome.records}
    for path, facts in outcome.facts.items():
        after = outcome.tree.get(path)
        if _is_touched(outcome, path) and not is_same(facts.content, after):
            yield FileChange(path, facts.observed, after, records.get(facts.distribution, ""))


# ---- the ledger after -----------------------------------------------------------------------------------------


def _list_files(outcome: Outcome) -> tuple[LedgerFile, ...]:
    untouched = [file for file in outcome.ledger.files if file.path not in outcome.facts]
    return tuple(sorted((*untouched, *_describe_files(outcome)), key=lambda file: file.path))


def _describe_files(outcome: Outcome) -> Iterator[LedgerFile]:
    for path, patches in outcome.members.items():
        base, facts = outcome.bases[path], outcome.facts[path]
        after = outcome.tree.get(path)
        yield LedgerFile(
            path=path,
            distribution=facts.distribution,
            base=None if base.content is None else Stamp.of(base.content),
            origin=base.origin,
            recorded=facts.row.field if facts.row is not None else "",
            patches=patches,
            written=None if after is None else Stamp.of(after),
        )


def _keep(outcome: Outcome) -> tuple[Kept, ...]:
    new = [Kept(path, sha256(data)) for path, data in _replaced(outcome)]
    return (*outcome.ledger.kept, *(kept for kept in new if kept not in outcome.ledger.kept))


def _replaced(outcome: Outcome) -> Iterator[tuple[str, bytes]]:
    """Foreign bytes that the user had replaced, by path."""
    for base in outcome.bases.values():
        if base.keep is not None and _is_touched(outcome, base.path):
            yield base.path, base.keep


# ---- RECORD ---------------------------------------------------------------------------------------------------


def _plan_records(
    outcome: Outcome, files: tuple[LedgerFile, ...], written: Mapping[str, Content]
) -> tuple[tuple[LedgerRecord, ...], list[FileChange]]:
    """A row for each file that a patch creates; all other bytes of RECORD stay as shipped."""
    looked_at = {record.distribution for record in outcome.records}
    kept = [record for record in outcome.ledger.records if record.distribution not in looked_at]
    held = {applied.distribution for applied in outcome.applied}
    notes: list[LedgerRecord] = [record for record in kept if record.distribution in held]
    changes: list[FileChange] = []
    for now in outcome.records:
        rows = tuple(_rows(now, files, written))
        data = append_rows(now.bare, rows)
        if now.distribution in held:
            bare = Stamp(sha256(now.bare), now.content.mode)
            notes.append(LedgerRecord(now.distribution, now.path, bare, Stamp(sha256(data), now.content.mode), rows))
        if data != now.content.data:
            before, after = Observed(now.path, now.content), Content(data, now.content.mode)
            changes.append(FileChange(now.path, before, after, record=now.path))
    return tuple(sorted(notes, key=lambda note: note.path)), changes


def _rows(now: RecordNow, files: Iterable[LedgerFile], written: Mapping[str, Content]) -> Iterator[str]:
    noted = {row_path(row): row for row in now.own_rows}
    for file in files:
        if file.distribution != now.distribution or file.base is not None or file.written is None:
            continue
        if file.path in written:
            yield make_row(file.path, written[file.path].data)
        elif file.path in noted:
            yield noted[file.path]


# ---- directories and objects ----------------------------------------------------------------------------------


def _folders_to_make(outcome: Outcome, changes: Iterable[FileChange]) -> tuple[str, ...]:
    """The absent folders of files that are written: of created ones, and of shipped ones that come back."""
    needed = {parent for change in changes if change.after is not None for parent in _parents(change.path)}
    return tuple(sorted(needed & outcome.absent_folders))


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _folders_in_use(folders: tuple[str, ...], files: tuple[LedgerFile, ...]) -> tuple[str, ...]:
    """Those of ``inputs`` that hold a file which a patch created: they go when it goes."""
    created = [file for file in files if file.base is None and file.written is not None]
    used = {parent for file in created for parent in _parents(file.path)}
    return tuple(sorted(set(folders) & used))


def _objects(outcome: Outcome, files: Iterable[LedgerFile]) -> dict[str, bytes]:
    """What must be in the store: pristine bytes, diffs, scripts, and foreign bytes that are replaced."""
    found = dict(outcome.texts)
    for file in files:
        base = outcome.bases.get(file.path)
        if base is not None and base.content is not None and file.base is not None:
            found[file.base.sha256] = base.content.data
    return found | {sha256(data): data for _, data in _replaced(outcome)}


def _live(ledger: Ledger) -> frozenset[str]:
    """The objects that ``ledger`` speaks of."""
    names = {file.base.sha256 for file in ledger.files if file.base is not None}
    names |= {kept.sha256 for kept in ledger.kept}
    for applied in ledger.applied:
        names.add(applied.text.sha256)
        names |= {check.sha256 for check in applied.checks if isinstance(check, PythonCheck)}
    return frozenset(names)
