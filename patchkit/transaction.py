"""The one writer: a `Plan` is carried out as a whole or not at all, whatever happens on the way.

The order is the promise. The journal is on the disk before the first target is touched; every backup and every new
file is on the disk before the first rename; the commit record follows the last rename, the read-back and the checks.
So whoever finds a journal knows what to do: without a commit record undo it, with one finish the clean-up. An undo
decides by what it finds on the disk and by nothing else, so that one that was killed is simply done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum, unique

from patchkit.errors import Bug, DamagedState, Interrupted, NotRolledBack, NotWritable, RolledBack
from patchkit.faults import advise, words
from patchkit.installed import Content, Observed, Stamp, sha256
from patchkit.interruption import deferred, disregard
from patchkit.journal import JOURNAL, LEDGER, OBJECTS, STATE, Journal, Step, read_journal, write_journal
from patchkit.model import FileChange, Plan
from patchkit.preflight import preflight
from patchkit.state import needs_sweep
from patchkit.store import (
    Lock,
    discard,
    keep_objects,
    locked,
    make_directory,
    promote_state,
    put_ledger,
    put_object,
    put_state,
    read_ledger_file,
    read_object,
    remove_if_empty,
    stage_state,
    sync_existing,
)
from patchkit.targets import Move, find_escape, is_alike, observe, settle, stage, swap
from patchkit.undo import find_missing, find_moves, ledger_digest

__all__ = ["Lock", "Recovery", "Stale", "execute", "locked", "needs_sweep", "preflight", "recover"]


class Stale(Exception):
    """The ledger on the disk is not the one that the plan was made from: decide anew."""


@unique
class Recovery(Enum):
    """What `recover` found to do."""

    NOTHING = "nothing"
    UNDONE = "undone"
    FINISHED = "finished"


# ---- execute --------------------------------------------------------------------------------------------------


def execute(
    lock: Lock,
    plan: Plan,
    *,
    before_commit: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Carry out ``plan``: when it returns, all of it is done and on the disk; when it raises, nothing is.

    ``before_commit`` runs when every file is in place and read back; whatever it raises undoes everything and is
    raised on. ``progress`` is told how many files of how many are in place.
    Raises `Stale` if the ledger is not ``plan.state_before``; `NotWritable` if a path leads out of the site root;
    `RolledBack` for a file that changed since the plan was made and for every OSError; `NotRolledBack` if the undo
    failed; `Interrupted` if a journal is there (call `recover` first), or if the change is complete and its clean-up
    is not.
    """
    plan = replace(plan, changes=_put_links_first(plan.changes))
    with _telling():
        _admit(lock, plan)
        journal = _describe(lock, plan)
    begun = False
    try:
        with _telling():
            _back_up(lock, plan, journal)
            begun = True
            _put_in_place(lock, plan, journal, progress)
        before_commit()
        with _telling():
            _read_back(lock, plan)  # what runs before the commit may be anything, and must leave the files alone
            _commit(lock, plan)
    except BaseException as error:
        # Only the disk knows how far it came: a Ctrl-C just behind the commit record is too late to undo anything.
        found = recover(lock)
        if found is Recovery.NOTHING and begun:
            raise _lost(lock) from error
        if found is not Recovery.FINISHED:
            raise
    else:
        with deferred():
            _finish(lock, journal)


def _lost(lock: Lock) -> NotRolledBack:
    return NotRolledBack(
        f"{lock.state(JOURNAL)} went away while patchkit was at work: nothing tells how to undo it",
        hint="a check must not touch the state folder; reinstall the distributions, then apply anew",
    )


def _put_links_first(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """A link may lead to another file of the plan, and reads as planned only while that one is untouched."""
    return tuple(sorted(changes, key=lambda change: change.before.link is None))


def _admit(lock: Lock, plan: Plan) -> None:
    if plan.empty:
        raise Bug("an empty plan is not executed")
    if lock.disk.look(lock.state(JOURNAL)) is not None:
        raise Interrupted(f"an unfinished transaction is in {lock.state(JOURNAL)}")
    if read_ledger_file(lock) != plan.state_before:
        raise Stale
    if problem := find_escape(lock, plan.paths):
        raise NotWritable(problem)


def _describe(lock: Lock, plan: Plan) -> Journal:
    return Journal(
        id=os.urandom(8).hex(),
        steps=tuple(_describe_step(lock, change) for change in plan.changes),
        ledger_before=None if plan.state_before is None else sha256(plan.state_before),
        ledger_after=None if plan.state_after is None else sha256(plan.state_after),
        made=tuple(path for path in sorted(plan.make_directories) if lock.disk.look(lock.at(path)) is None),
        dropped=tuple(sorted(plan.drop_directories)),
        live=plan.live,
        live_before=plan.live_before,
        records=_witness(lock, plan),
    )


def _witness(lock: Lock, plan: Plan) -> dict[str, str]:
    """The RECORDs of the distributions that are changed, by path, with their sha256: what tells this installation."""
    found = {path: observe(lock, path).content for path in {change.record for change in plan.changes if change.record}}
    return {path: sha256(content.data) for path, content in sorted(found.items()) if content is not None}


def _describe_step(lock: Lock, change: FileChange) -> Step:
    info = lock.disk.look(lock.at(change.path))
    return Step(
        path=change.path,
        before=_stamp(change.before.content),
        after=_stamp(change.after),
        link=change.before.link,
        owner=None if info is None else (info.st_uid, info.st_gid),
        record=change.record or None,
    )


def _stamp(content: Content | None) -> Stamp | None:
    return None if content is None else Stamp.of(content)


def _back_up(lock: Lock, plan: Plan, journal: Journal) -> None:
    """The journal, then the bytes of everything that will be replaced (of a symbolic link the journal says all).

    The new ledger and the commit record are written here too: once a file is renamed, a full disk stops nothing.
    """
    put_state(lock, JOURNAL, write_journal(journal))
    lock.disk.sync([lock.at(STATE)])
    if lock.disk.look(lock.state(OBJECTS)) is None:
        make_directory(lock, lock.state(OBJECTS))
    objects = dict(plan.objects)
    for step, change in zip(journal.steps, plan.changes, strict=True):
        if step.before is not None and change.before.content is not None and step.link is None:
            objects[step.before.sha256] = change.before.content.data
    if plan.state_before is not None:
        objects[sha256(plan.state_before)] = plan.state_before
    written = [lock.object(name) for name, data in objects.items() if put_object(lock, name, data)]
    written.append(stage_state(lock, JOURNAL, write_journal(replace(journal, committed=True))))
    if plan.state_after is not None:
        written.append(stage_state(lock, LEDGER, plan.state_after))
    lock.disk.sync([*written, lock.state(OBJECTS), lock.at(STATE)])


def _put_in_place(lock: Lock, plan: Plan, journal: Journal, progress: Callable[[int, int], None]) -> None:
    for path in journal.made:
        make_directory(lock, lock.at(path))
    moves = [
        Move(change.path, journal.staged(number), change.after, None, journal.steps[number].owner)
        for number, change in enumerate(plan.changes)
    ]
    stage(lock, moves)
    for done, (move, change) in enumerate(zip(moves, plan.changes, strict=True), start=1):
        if not is_alike(observe(lock, change.path), change.before):
            raise RolledBack(f"{lock.at(change.path)} changed while patchkit was at work", hint="run the command again")
        swap(lock, move)
        progress(done, len(moves))
    settle(lock, [change.path for change in plan.changes], journal.made)
    _read_back(lock, plan)


def _read_back(lock: Lock, plan: Plan) -> None:
    for change in plan.changes:
        if not is_alike(observe(lock, change.path), Observed(change.path, change.after)):
            raise RolledBack(f"{lock.at(change.path)} does not read back as it was written")


def _commit(lock: Lock, plan: Plan) -> None:
    if plan.state_after is None:
        discard(lock, lock.state(LEDGER))
    else:
        promote_state(lock, LEDGER)
    lock.disk.sync([lock.at(STATE)])
    disregard()
    promote_state(lock, JOURNAL)


@contextmanager
def _telling() -> Iterator[None]:
    """An OSError in here becomes `RolledBack`; `execute` undoes everything before anybody hears of it."""
    try:
        yield
    except OSError as error:
        raise RolledBack(f"{words(error)}; nothing was changed", hint=advise(error, "run the command again")) from error


# ---- recover --------------------------------------------------------------------------------------------------


def recover(lock: Lock) -> Recovery:
    """Undo the transaction whose journal is there, or finish its clean-up if it has a commit record.

    Raises `NotRolledBack` if a file holds neither what it held before nor what it was to hold, or if the undo fails:
    the journal and every backup then stay. `Interrupted` if a clean-up fails; `DamagedState` and `NewerFormat` for a
    journal that cannot be read or a backup that is damaged. A signal that comes in the midst of it is heeded behind it.
    """
    with deferred():
        return _recover(lock)


def _recover(lock: Lock) -> Recovery:
    journal = _read_journal(lock)
    if journal is None:
        return Recovery.NOTHING
    if journal.committed:
        _finish(lock, journal)
        return Recovery.FINISHED
    try:
        _undo(lock, journal)
    except OSError as error:
        message = f"the undo of {lock.state(JOURNAL)} is not complete ({words(error)}); every backup is kept beside it"
        raise NotRolledBack(message, hint=advise(error, "run `patchkit recover`")) from error
    return Recovery.UNDONE


def _read_journal(lock: Lock) -> Journal | None:
    file = lock.state(JOURNAL)
    try:
        if lock.disk.look(file) is None:
            return None
        journal = read_journal(lock.disk.read(file), file=file)
        problem = find_escape(lock, journal.paths)
    except OSError as error:
        raise DamagedState(f"the journal cannot be followed: {words(error)}") from error
    if problem:
        raise DamagedState(f"{file}: {problem}", hint="nothing was touched; look into that journal")
    return journal


def _finish(lock: Lock, journal: Journal) -> None:
    try:
        _clean_up(lock, journal.dropped, journal.live)
    except OSError as error:
        message = f"the change is complete, its clean-up is not ({words(error)})"
        raise Interrupted(message, hint=advise(error, "run `patchkit recover`")) from error


def _undo(lock: Lock, journal: Journal) -> None:
    for number in range(len(journal.steps)):
        discard(lock, lock.at(journal.restored(number)))
    moves = find_moves(lock, journal)
    for folder in find_missing(lock, moves):  # emptied by us, and removed by somebody since
        make_directory(lock, folder)
    stage(lock, moves)
    for move in moves:
        swap(lock, move)
    _restore_ledger(lock, journal)
    for number in range(len(journal.steps)):
        discard(lock, lock.at(journal.staged(number)))
    # of all steps: an undo that was killed may have restored a file and left what was compiled from the other
    settle(lock, [step.path for step in journal.steps], journal.made)
    _clean_up(lock, journal.made, journal.live_before)


def _restore_ledger(lock: Lock, journal: Journal) -> None:
    if ledger_digest(lock) != journal.ledger_before:
        put_ledger(lock, None if journal.ledger_before is None else read_object(lock, journal.ledger_before))


def _clean_up(lock: Lock, directories: Iterable[str], live: frozenset[str]) -> None:
    """What may be done any number of times, the journal last."""
    lock.disk.sync([lock.at(STATE)])  # what led here is on the disk before a backup goes
    for path in sorted(directories, reverse=True):
        for folder in (f"{path}/__pycache__", path):
            remove_if_empty(lock, lock.at(folder))
    keep_objects(lock, live)
    parents = {os.path.dirname(lock.at(path)) for path in directories}
    sync_existing(lock, parents | {lock.state(OBJECTS), lock.at(STATE)})
    lock.disk.unlink(lock.state(JOURNAL))
    lock.disk.sync([lock.at(STATE)])
