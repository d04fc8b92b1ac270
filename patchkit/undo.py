"""What undoes a transaction: decided by what is on the disk and by nothing else. Only looks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, unique

from patchkit.errors import NoRecord, NotRolledBack
from patchkit.installed import Content, Observed, Stamp, sha256
from patchkit.journal import JOURNAL, LEDGER, OBJECTS, Journal, Step
from patchkit.record import read_record
from patchkit.store import Lock, read_ledger_file, read_object
from patchkit.targets import Move, is_alike, observe


@unique
class Duty(Enum):
    """What an undo owes one file."""

    NONE = "none"
    PUT_BACK = "put back"
    REFUSE = "refuse"


def find_moves(lock: Lock, journal: Journal) -> list[Move]:
    """What puts every file back, the last first. All are judged before the first is touched.

    A file of a distribution that was installed anew or uninstalled since is put back only if it is as the transaction
    left it and nobody ships it so. Raises `NotRolledBack` if a file, or the ledger, holds neither what it held before
    nor what it was to hold nor what RECORD says; `DamagedState` for a backup that is damaged.
    """
    renewed, vanished = _find_renewed(lock, journal), _find_vanished(lock, journal)
    foreign = [] if ledger_digest(lock) in (journal.ledger_before, journal.ledger_after) else [lock.state(LEDGER)]
    moves: list[Move] = []
    for number, step in reversed(tuple(enumerate(journal.steps))):
        match _judge(lock, journal, number, renewed, vanished):
            case Duty.NONE:
                pass
            case Duty.PUT_BACK:
                moves.append(_move_back(lock, journal, number))
            case Duty.REFUSE:
                foreign.append(lock.at(step.path))
    if foreign:
        raise _refuse(lock, foreign)
    return moves


def find_missing(lock: Lock, moves: Iterable[Move]) -> list[str]:
    """The directories that the files to be put back need, the highest first."""
    needed = (parent for move in moves if not move.removes for parent in _parents(move.path))
    return sorted({lock.at(parent) for parent in needed if lock.disk.look(lock.at(parent)) is None})


def ledger_digest(lock: Lock) -> str | None:
    """The sha256 of ledger.json, None if there is none."""
    data = read_ledger_file(lock)
    return None if data is None else sha256(data)


def _judge(lock: Lock, journal: Journal, number: int, renewed: frozenset[str], vanished: frozenset[str]) -> Duty:
    step = journal.steps[number]
    found = observe(lock, step.path)
    absent = is_alike(found, Observed(step.path, None))
    if _is_before(found, step) or (_is_staged(lock, journal, number) and not (absent and step.after is None)):
        return Duty.NONE  # its turn never came
    if step.record in renewed:
        is_ours = step.after is not None and _is_after(found, step) and not _is_shipped(lock, found)
        return Duty.PUT_BACK if is_ours else Duty.NONE
    if absent and step.path.partition("/")[0] in vanished:
        return Duty.NONE
    is_nobodys = absent or _is_after(found, step) or _is_shipped(lock, found)
    return Duty.PUT_BACK if is_nobodys else Duty.REFUSE


def _find_renewed(lock: Lock, journal: Journal) -> frozenset[str]:
    """The RECORDs of distributions that were installed anew, or uninstalled, since the journal was written."""
    becomes = {step.path: step.after.sha256 for step in journal.steps if step.after is not None}
    known = {path: {before, becomes.get(path, before)} for path, before in journal.records.items()}
    return frozenset(path for path, digests in known.items() if _digest(lock, path) not in digests)


def _digest(lock: Lock, path: str) -> str | None:
    content = observe(lock, path).content
    return None if content is None else sha256(content.data)


def _find_vanished(lock: Lock, journal: Journal) -> frozenset[str]:
    """The top folders that somebody removed whole: they are gone, and held files that the transaction only changes."""
    changed = (step.path for step in journal.steps if step.before is not None and step.after is not None)
    tops = {top for top, slash, _ in (path.partition("/") for path in changed) if slash}
    return frozenset(top for top in tops if lock.disk.look(lock.at(top)) is None)


def _parents(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path


def _is_shipped(lock: Lock, found: Observed) -> bool:
    """Whether a RECORD that is there now has these bytes at this path."""
    for folder in lock.disk.names(lock.root):
        record = observe(lock, f"{folder}/RECORD").content if folder.endswith(".dist-info") else None
        if record is None or found.content is None:
            continue
        try:
            row = read_record(record.data).get(found.path)
        except NoRecord:
            continue
        if row is not None and row.digest is not None and row.digest.matches(found.content.data):
            return True
    return False


def _is_staged(lock: Lock, journal: Journal, number: int) -> bool:
    return lock.disk.look(lock.at(journal.staged(number))) is not None


def _move_back(lock: Lock, journal: Journal, number: int) -> Move:
    step = journal.steps[number]
    content = None
    if step.before is not None and step.link is None:
        content = Content(read_object(lock, step.before.sha256), step.before.mode)
    return Move(step.path, journal.restored(number), content, step.link, step.owner)


def _is_before(found: Observed, step: Step) -> bool:
    if step.link is not None:
        return found.link == step.link
    return _is_plain(found) and _stamp(found) == step.before


def _is_after(found: Observed, step: Step) -> bool:
    return _is_plain(found) and _stamp(found) == step.after


def _is_plain(found: Observed) -> bool:
    return not found.obstacle and found.link is None


def _stamp(found: Observed) -> Stamp | None:
    return None if found.content is None else Stamp.of(found.content)


def _refuse(lock: Lock, foreign: Sequence[str]) -> NotRolledBack:
    return NotRolledBack(
        f"{', '.join(foreign)}: neither as before the interrupted change nor as after it; nothing was touched, "
        f"{lock.state(JOURNAL)} stays, and the bytes from before are in {lock.state(OBJECTS)}",
        hint="move it away, then run `patchkit recover`: that puts back what was there before",
    )
