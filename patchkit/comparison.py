"""What happened to applied patches: the environment as it is, compared with the ledger and the declared list.

Everything comes from the ledger and the object store; with patch sets at hand the declared list counts too. Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote

from patchkit.account import account_for
from patchkit.applied import Applied, Reason
from patchkit.assess import is_in_place
from patchkit.causes import FITTING, VERSIONED, find_causes, find_causes_without_record, suggest
from patchkit.choices import list_failing
from patchkit.decision import decide, find_renamed
from patchkit.dependents import find_dependents
from patchkit.drift import Cause, Drift, DriftedFile
from patchkit.errors import ExitCode, PatchkitError
from patchkit.installed import FileState
from patchkit.memory import Memory, Owner
from patchkit.model import Notice, PatchState
from patchkit.patchset import Catalog, Constraint, PatchId
from patchkit.report import PatchReport, Report
from patchkit.scene import CatalogNeed, Options, Scene, open_scene, read_steadily, want_leniently
from patchkit.verification import read_applied_facts
from patchkit.versions import is_below
from patchkit.wanted import list_declared

WAITING = (PatchState.PENDING, PatchState.CONFLICT, PatchState.NO_VARIANT)
"""States of a declared patch that the ledger does not hold and that is not there in another way either."""
_KEEP = "`patchkit capture {}` makes a patch of the edit"
LOST = (PatchState.CONFLICT, PatchState.NO_VARIANT)


def compare(options: Options, *, again: str = "") -> Report:
    """The report of ``drift``; the answer is `ExitCode.NO` where there is any.

    ``again`` are the options that name the environment and the patches, for the remedies to be typed as they stand.
    """
    return read_steadily(
        lambda: open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True),
        lambda scene: _compare(scene, again),
    )


def _compare(scene: Scene, again: str) -> Report:
    forecast = _Forecast(scene) if scene.state.interrupted else _foresee(scene)
    rows = (
        (_tell_interrupted(scene, again),)
        if scene.state.interrupted
        else (*_compare_applied(forecast, again), *_compare_declared(forecast, again))
    )
    return Report(
        "drift",
        scene.root,
        scene.environment.python,
        patches=tuple(forecast.rows.values()),
        notices=(*scene.notices, *forecast.notices),
        answer=ExitCode.NO if rows else ExitCode.DONE,
        drift=rows,
    )


def find_drift(scene: Scene) -> tuple[Drift, ...]:
    """The rows of ``drift``: nothing where everything is as it was left, and as declared."""
    return _compare(scene, "").drift or ()


def _tell_interrupted(scene: Scene, again: str) -> Drift:
    words = "a transaction was interrupted here; what else drifted can be told once it is undone or finished"
    return Drift(None, Cause.INTERRUPTED, words, f"patchkit recover{again}")


# ---- what `apply` would find ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Forecast:
    """What a bare `apply` would find, as far as it can be told; ``scene`` is the one it was told from."""

    scene: Scene
    rows: Mapping[PatchId, PatchReport] = field(default_factory=dict)
    dropped: frozenset[PatchId] = frozenset()
    renamed: Mapping[PatchId, PatchId] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def _foresee(scene: Scene) -> _Forecast:
    """Broken patch sets and doubtful distributions are warnings here: the ledger alone still tells what happened."""
    lenient, wanted = want_leniently(scene)
    notices = lenient.notices[len(scene.notices) :]
    try:
        decision = decide(lenient, wanted)
    except PatchkitError as error:
        told = tuple(Notice(single.code, single.message) for single in error.all())
        if not lenient.catalog.sets:
            return _Forecast(lenient, notices=(*notices, *told))
        bare = _foresee(_without_patches(lenient))
        told = (*notices, *told, *bare.notices)
        return _Forecast(bare.scene, bare.rows, bare.dropped, bare.renamed, tuple(dict.fromkeys(told)))
    rows = {row.id: row for row in account_for(decision, {})}
    return _Forecast(lenient, rows, decision.wanted.dropped, find_renamed(decision), notices)


def _without_patches(scene: Scene) -> Scene:
    return Scene(scene.environment, scene.listings, scene.state, Catalog())


# ---- applied patches ------------------------------------------------------------------------------------------


def _compare_applied(forecast: _Forecast, again: str) -> Iterator[Drift]:
    scene = forecast.scene
    facts = read_applied_facts(scene, scene.ledger.applied)
    owners = {name: Owner.find(scene, name) for name in {applied.distribution for applied in scene.ledger.applied}}
    memory = Memory(scene, facts)
    for applied in scene.ledger.applied:
        owner = owners[applied.distribution]
        if owner.trouble and is_in_place(applied, facts):
            continue  # which copy counts is in doubt, and a warning; the patch is where it was put
        if owner.ambiguous:
            causes = find_causes_without_record(applied, facts)
        else:
            causes = find_causes(applied, owner.version, facts, record_kept=owner.record_kept)
        rows = []
        for cause, paths in causes.items():
            files = tuple(memory.describe(applied, path) for path in paths)
            rows.append(_row(forecast, applied, cause, owner, files, memory, again))
        yield from rows
        yield from _compare_with_folder(forecast, applied, owner, again, rows)
        yield from _compare_constraints(forecast, applied.id)


def _row(
    forecast: _Forecast,
    applied: Applied,
    cause: Cause,
    owner: Owner,
    files: tuple[DriftedFile, ...],
    memory: Memory,
    again: str,
) -> Drift:
    row = forecast.rows.get(applied.id)
    state = None if row is None else _state_now(row)
    at_hand = applied.id in forecast.scene.catalog.patches
    known = (at_hand or not forecast.scene.catalog.sets) and not _tell_removal(forecast, applied)
    remedy = suggest(
        cause,
        applied.id,
        state if known else None,
        found=owner.version,
        at_hand=at_hand,
        again=again,
        blocked=row is not None and _is_blocked(row),
    )
    if owner.ambiguous:
        remedy, files = "", ()  # every command asks for one copy first, and no RECORD says what its files should be
    elif cause is Cause.EDITED and not all(memory.restorable(file.path) for file in files):
        remedy = forecast.scene.install_command(f"{applied.distribution}=={applied.version}", again=True)
    words = [_describe(cause, applied, owner), owner.trouble if owner.ambiguous else ""]
    if cause in VERSIONED and row is not None:
        words.append(_foretell(row))
        words += _tell_moves(applied, owner, memory) if state in LOST else []
        if state is PatchState.NO_VARIANT and not forecast.scene.catalog.sets:
            words.append("no patch folder is at hand that might have one (--patches DIR)")
    return Drift(
        applied.id,
        cause,
        "; ".join(filter(None, words)),
        remedy,
        applied.distribution,
        applied.version,
        owner.version,
        state,
        files,
    )


def _state_now(row: PatchReport) -> PatchState:
    """The state as `apply` would find it: that the ledger has it as applied is what the cause tells already."""
    if row.state not in (PatchState.DRIFTED, PatchState.OUTDATED):
        return row.state
    if row.failed:
        return PatchState.CONFLICT
    return PatchState.PENDING if row.state is PatchState.DRIFTED else row.state


def _is_blocked(row: PatchReport) -> bool:
    """Whether foreign bytes keep it out of a file, and not its diff."""
    states = (FileState.FOREIGN, FileState.MISSING)
    return row.failed and any(file.state in states and file.message and not file.hunks for file in row.files)


def _describe(cause: Cause, applied: Applied, owner: Owner) -> str:
    match cause:
        case Cause.UNINSTALLED:
            return owner.trouble or f"{applied.distribution} is not installed any more"
        case Cause.UPGRADED | Cause.DOWNGRADED:
            return f"it was patched as {applied.version}, and {owner.version} is installed now"
        case Cause.REINSTALLED:
            return f"{applied.distribution} {applied.version} was installed anew: what was shipped is back"
        case _:
            return f"its files were changed since; {_KEEP.format(applied.distribution)}"


def _foretell(row: PatchReport) -> str:
    """What `apply` would find in the version that is installed now."""
    words = {
        PatchState.UPSTREAMED: "upstream has the change: the patch can be retired",
        PatchState.NOT_NEEDED: "the patch set says that it is not needed here",
    }
    state = _state_now(row)
    if state in FITTING:
        return "it fits there" + (f" ({row.message})" if row.message else "")
    return ": ".join(filter(None, (words.get(state, state.value), row.message)))


def _tell_moves(applied: Applied, owner: Owner, memory: Memory) -> list[str]:
    moved = memory.find_moves(applied, owner.sources())
    return [f"{symbol} is now in {' and '.join(places[:3])}" for symbol, places in moved.items()]


# ---- the patch folder -----------------------------------------------------------------------------------------


def _compare_with_folder(
    forecast: _Forecast, applied: Applied, owner: Owner, again: str, rows: Sequence[Drift]
) -> Iterator[Drift]:
    """Whether the patch folder still has this patch, as it was applied, on the list; ``rows`` are told already."""
    catalog = forecast.scene.catalog
    if not catalog.sets:
        return
    row = forecast.rows.get(applied.id)
    about = (applied.distribution, applied.version, owner.version, None if row is None else row.state)
    if applied.id in forecast.renamed:
        words = f"the patch folder calls it {forecast.renamed[applied.id]} now"
        yield Drift(applied.id, Cause.PATCH_CHANGED, words, f"patchkit apply{again}", *about)
    elif removal := _tell_removal(forecast, applied):
        words, remedy = _take_out(forecast.scene, applied, removal, again)
        remedy = rows[0].remedy if rows else remedy  # one command mends all its rows
        yield Drift(applied.id, Cause.PATCH_REMOVED, words, remedy, *about)
    elif not rows and row is not None and row.state is not PatchState.APPLIED:
        state = _state_now(row)
        words = _foretell(row)
        if row.state is PatchState.OUTDATED:
            words = "the diff at hand is not the one applied" + (f", and does not fit: {words}" if row.failed else "")
        remedy = suggest(Cause.PATCH_CHANGED, applied.id, state, found=owner.version, at_hand=True, again=again)
        yield Drift(applied.id, Cause.PATCH_CHANGED, words, remedy, *about[:3], state)
    elif not rows and row is not None and row.failed and not _list_failing(forecast, row):
        # Its own text is the same, and it does not fold any more: another place in the order, or others below it.
        remedy = f"patchkit check {applied.id} --verbose{again}"
        yield Drift(applied.id, Cause.PATCH_CHANGED, row.message, remedy, *about)


def _tell_removal(forecast: _Forecast, applied: Applied) -> str:
    """Why the patch folder wants ``applied`` gone; "" where it does not, or where there is none."""
    catalog = forecast.scene.catalog
    if not catalog.sets or applied.id in forecast.renamed:
        return ""
    if applied.id not in catalog.patches:
        return "no patch folder has it any more"
    if applied.id in forecast.dropped or _was_taken_off(catalog, applied):
        return "it is not on the declared list any more"
    return ""


def _take_out(scene: Scene, applied: Applied, words: str, again: str) -> tuple[str, str]:
    """What to say of a patch that is to go, and the command that takes it out, with those that lie on it."""
    others = [str(id) for id in find_dependents(scene, applied.id)]
    if others:
        words += f"; {', '.join(others)} {'lies' if len(others) == 1 else 'lie'} on it"
    return words, f"patchkit revert {' '.join([str(applied.id), *others])}{again}"


def _compare_constraints(forecast: _Forecast, id: PatchId) -> Iterator[Drift]:
    """A row for each constraint of an applied patch that holds no more: it is the other distribution that changed.

    So that one is named in it. At which version it was, nobody noted.
    """
    row = forecast.rows.get(id)
    for constraint, version in _list_failing(forecast, row) if row is not None else ():
        cause = Cause.DOWNGRADED if is_below(constraint.versions, version) else Cause.UPGRADED
        words, remedy = _tell_constraint(forecast.scene, constraint, version)
        yield Drift(id, cause, words, remedy, constraint.distribution, None, version, row.state if row else None)


def _list_failing(forecast: _Forecast, row: PatchReport) -> tuple[tuple[Constraint, str], ...]:
    """The constraints that keep a patch out which would be meant for what is installed."""
    patch = forecast.scene.catalog.patches.get(row.id)
    if patch is None or not row.failed or row.state is PatchState.NO_VARIANT:
        return ()
    versions = {each.distribution: forecast.scene.version_of(each.distribution) for each in patch.constraints}
    return list_failing(patch.constraints, versions)


def _tell_constraint(scene: Scene, constraint: Constraint, version: str) -> tuple[str, str]:
    words = f"it needs {constraint}, and {constraint.distribution} {version} is installed"
    return words, scene.install_command(quote(str(constraint)))


def _was_taken_off(catalog: Catalog, applied: Applied) -> bool:
    return applied.reason is Reason.DECLARED and applied.id not in list_declared(catalog)


def _compare_declared(forecast: _Forecast, again: str) -> Iterator[Drift]:
    """Declared patches that the ledger does not hold: never applied, or the environment was made anew."""
    known = {applied.id for applied in forecast.scene.ledger.applied} | set(forecast.renamed.values())
    for row in forecast.rows.values():
        if row.id in known or row.state not in WAITING:
            continue
        remedy = suggest(Cause.NOT_APPLIED, row.id, row.state, found=row.installed, at_hand=True, again=again)
        words = f"declared, and not applied here: {_foretell(row)}"
        edited = _is_blocked(row) and any(file.state is FileState.FOREIGN for file in row.files)
        words += f"; {_KEEP.format(row.distribution)}" if edited else ""
        failing = _list_failing(forecast, row)
        if failing and row.state is PatchState.PENDING:
            told, remedy = _tell_constraint(forecast.scene, *failing[0])
            words = f"declared, and not applied here: {told}"
        yield Drift(row.id, Cause.NOT_APPLIED, words, remedy, row.distribution, None, row.installed, row.state)
