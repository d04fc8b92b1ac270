"""Patches tried on a release that is not installed, by the very decision that `check` makes on one that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from patchkit.account import account_for
from patchkit.candidates import parse, text_of
from patchkit.catalog import read_set_file
from patchkit.decision import Decision, decide
from patchkit.errors import PatchkitError, raise_all
from patchkit.examination import prove
from patchkit.fits import Cell, Fit, Move, fit_of
from patchkit.fold import FileOutcome
from patchkit.homes import find_home
from patchkit.installed import Environment
from patchkit.model import EntryKind, FileDiff, HunkResult, PatchState
from patchkit.moves import changed_symbols
from patchkit.patchset import Catalog, Patch, PatchId, PatchSet, SymbolCheck, Variant
from patchkit.pristine import Pristine
from patchkit.report import FileReport
from patchkit.scene import Scene
from patchkit.site import list_root
from patchkit.state import read_state
from patchkit.symbols import module_paths
from patchkit.trials import Trial
from patchkit.wanted import find_patch, matches, want_named


def choose_patches(catalog: Catalog, operand: str) -> tuple[PatchSet, tuple[Patch, ...]]:
    """The patches that ``SET`` (all of them) or ``SET/PATCH`` means, in the order of the manifest.

    Raises `UnknownPatch`.
    """
    patches = tuple(patch for id, patch in catalog.patches.items() if matches(operand, id))
    if not patches:
        find_patch(catalog, operand)  # says what there is instead
    patch_set = catalog.set(patches[0].id.set)
    assert patch_set is not None
    return patch_set, patches


def without_surroundings(catalog: Catalog) -> Catalog:
    """The same patches without what speaks of an environment (markers, constraints): a release has none."""
    sets = tuple(
        replace(
            patch_set,
            patches=tuple(replace(patch, markers=(), constraints=(), shadowed_by=()) for patch in patch_set.patches),
        )
        for patch_set in catalog.sets
    )
    return replace(catalog, sets=sets, declarations=())


def read_variant(folder: str, variant: Variant) -> tuple[FileDiff, ...]:
    """The entries of a variant's diff. Raises `DiffError`."""
    data = read_set_file(folder, variant.file)
    return parse(data, text_of(variant, data), f"{folder}/{variant.file}")


def find_paths(catalog: Catalog, patches: Sequence[Patch]) -> tuple[str, ...]:
    """Every file that the diffs and symbol checks of ``patches``, and of those below them, speak of.

    Raises everything that is wrong with any of the diffs, at once.
    """
    paths: dict[str, None] = {}
    problems: list[PatchkitError] = []
    ids = dict.fromkeys(id for patch in patches for id in stack_of(catalog, patch))
    for patch in (catalog.patches[id] for id in ids):
        patch_set = catalog.set(patch.id.set)
        assert patch_set is not None
        for variant in patch.variants:
            try:
                paths.update((path, None) for diff in read_variant(patch_set.folder, variant) for path in diff.paths)
            except PatchkitError as error:
                problems.append(error)
        modules = [check.module for check in patch.checks if isinstance(check, SymbolCheck)]
        paths.update((path, None) for module in modules for path in module_paths(module))
    raise_all(problems)
    return tuple(paths)


def stack_of(catalog: Catalog, patch: Patch) -> tuple[PatchId, ...]:
    """``patch`` and those that it comes after (`after`), theirs too; of alternatives only the first."""
    patches = {id: each for id, each in catalog.patches.items() if each.distribution == patch.distribution}
    found = [patch.id]
    groups = _groups(patch)
    for id in found:
        for other in patches[id].after:
            if other in patches and other not in found and not groups & _groups(patches[other]):
                found.append(other)
                groups |= _groups(patches[other])
    return tuple(found)


def _groups(patch: Patch) -> frozenset[tuple[str, str]]:
    """The group of a patch, in its set; none where it has none."""
    return frozenset({(patch.id.set, patch.group)} if patch.group else ())


def open_release(pristine: Pristine, catalog: Catalog, paths: Sequence[str]) -> Scene:
    """A scene in which the release is installed and nothing is applied, with the files at ``paths``."""
    pristine.supply(paths)
    root = pristine.root
    return Scene(Environment(roots=(root,)), (list_root(root),), read_state(root), catalog)


def decide_alone(scene: Scene, patch: Patch) -> Decision:
    """The decision of ``check`` on one patch, with those that it comes after below it."""
    return decide(scene, want_named(scene.catalog, scene.ledger, [*map(str, stack_of(scene.catalog, patch))], "try"))


def try_patch(scene: Scene, pristine: Pristine, patch: Patch) -> Cell:
    """What ``patch`` comes to on the release of ``scene``."""
    try:
        decision = decide_alone(scene, patch)
        checks, problems = prove(decision)
    except PatchkitError as error:
        return Cell(patch.id, Fit.CONFLICT, message=error.message)
    row = next(row for row in account_for(decision, checks) if row.id == patch.id)
    told = [row.message, *(problem.message for problem in problems if problem.message.startswith(f"{patch.id}: "))]
    cell = Cell(
        patch.id, Fit.CONFLICT, row.variant, message="; ".join(filter(None, told)), files=row.files, checks=row.checks
    )
    match row.state:
        case PatchState.UPSTREAMED:
            return replace(cell, result=Fit.UPSTREAMED)
        case PatchState.NOT_NEEDED:
            return replace(cell, result=Fit.NOT_NEEDED)
        case PatchState.NO_VARIANT:
            return _try_others(decision, pristine, patch, cell)
        case _ if decision.verdicts[patch.id].fits:
            return replace(cell, result=fit_of(row.files))
        case _:
            layer = next(layer for layer in decision.layers if layer.id == patch.id)
            moves = find_moves(layer.diffs, decision.verdicts[patch.id].files, patch, pristine)
            return replace(cell, result=Fit.MOVED if moves else Fit.CONFLICT, moves=moves)


def _try_others(decision: Decision, pristine: Pristine, patch: Patch, cell: Cell) -> Cell:
    """No range holds the release: what the variant that comes nearest would come to."""
    trials = decision.trials.get(patch.id, ())
    if not trials:
        return replace(cell, result=Fit.NO_VARIANT)
    best = min(trials, key=_distance)
    cell = replace(cell, result=Fit.NO_VARIANT, variant=best.variant.file, message="")
    files = tuple(FileReport(file.path, None, file.hunks, file.problem) for file in best.files)
    if best.fits:
        return replace(cell, would=fit_of(files), files=files)
    if best.upstream:
        return replace(cell, would=Fit.UPSTREAMED, files=files)
    diffs = read_variant(decision.scene.folder_of(patch.id), best.variant)
    moves = find_moves(diffs, best.files, patch, pristine)
    return replace(cell, would=Fit.MOVED if moves else Fit.CONFLICT, moves=moves, files=files)


def _distance(trial: Trial) -> tuple[bool, bool, int]:
    wrong = sum(1 + sum(hunk.reason != "" for hunk in file.hunks) for file in trial.files if not file.fits)
    return not trial.fits, not trial.upstream, wrong or (0 if trial.files else 1 << 30)


def find_moves(
    diffs: Sequence[FileDiff], outcomes: Sequence[FileOutcome], patch: Patch, pristine: Pristine
) -> tuple[Move, ...]:
    """Where the entries that do not fit have their text by now, as far as that can be told."""
    return tuple(_find_moves({outcome.path: outcome for outcome in outcomes}, diffs, patch, pristine))


def _find_moves(
    outcomes: dict[str, FileOutcome], diffs: Sequence[FileDiff], patch: Patch, pristine: Pristine
) -> Iterator[Move]:
    for diff in diffs:
        outcome = outcomes.get(diff.path)
        if diff.kind is EntryKind.MODIFY and outcome is not None and not outcome.fits and not _is_left(diff, outcome):
            home = find_home_of(diff, patch, pristine)
            if home is not None:
                yield Move(str(diff.old), home)


def _is_left(diff: FileDiff, outcome: FileOutcome) -> bool:
    """Whether nothing of an entry can have moved: some hunks are upstream, the others delete what is gone."""
    deleting = {hunk.number for hunk in diff.hunks if not hunk.added}
    rest = {hunk.number for hunk in outcome.hunks if hunk.result is not HunkResult.UPSTREAM}
    return len(rest) < len(outcome.hunks) and rest <= deleting


def find_home_of(diff: FileDiff, patch: Patch, pristine: Pristine, source: bytes = b"") -> str | None:
    """Where the text that one entry of ``patch`` changes is in the release, if not in its old file.

    ``source`` is that file as the entry fits it, where it is known: it tells best what is changed.
    """
    symbols = [check for check in patch.checks if isinstance(check, SymbolCheck)]
    names = [check.symbol for check in symbols if diff.old in module_paths(check.module)]
    names += changed_symbols(source, diff)

    def read(path: str) -> bytes | None:
        content = pristine.read(path)
        return None if content is None else content.data

    return find_home(diff, names, pristine.rows.keys(), read)
