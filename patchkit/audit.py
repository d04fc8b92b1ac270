"""The audit of a caller: is a fix complete? Reads files and the ledger; imports and runs nothing of what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources

from patchkit.audited import (
    Audit,
    Compile,
    Contradiction,
    Cover,
    Covered,
    Hazard,
    Owner,
    Subject,
)
from patchkit.candidates import parse, read_kept_diff
from patchkit.codebase import Caller, find_caller, find_modules, read_source
from patchkit.compiles import find_compiles
from patchkit.errors import NotInstalled, UsageError
from patchkit.examination import Progress, no_progress
from patchkit.hazards import HazardTable, read_hazards
from patchkit.installed import Distribution
from patchkit.patchset import PatchId
from patchkit.programs import Program, Source, Texts
from patchkit.remedies import Trial, try_patches
from patchkit.scene import CatalogNeed, Options, Scene, open_scene, read_steadily
from patchkit.site import Listing, find_distribution, normalise, read_plain
from patchkit.views import Root, View, Viewer, key_of

SHIPPED = "dynamo"


def audit(
    options: Options,
    caller: str,
    *,
    of: Sequence[str] = (),
    hazards: str | None = None,
    progress: Progress = no_progress,
) -> Audit:
    """What ``caller`` (a module of the environment, a file or a folder) reaches in the distributions ``of``.

    Without ``of``: those that patches at hand or applied are for. ``hazards`` is a file with another table. Raises
    `UsageError` where the caller or the table is not there, `NotInstalled` where a distribution is not.
    """
    table = read_table(hazards)
    return read_steadily(
        lambda: open_scene(options, CatalogNeed.OPTIONAL, allow_interrupted=True),
        lambda scene: _audit(scene, caller, of, table, progress),
    )


def read_table(path: str | None) -> HazardTable:
    """The table of hazards in the file ``path``, or the one that is shipped. Raises `UsageError`, `BadManifest`."""
    if path is None:
        data = resources.files("patchkit").joinpath(f"{SHIPPED}.toml").read_bytes()
        return read_hazards(data, file=f"{SHIPPED}.toml")
    content = read_plain(path)
    if content is None:
        raise UsageError(f"--hazards {path}: there is no such file", hint="name a table of hazards, a TOML file")
    return read_hazards(content.data, file=path)


def _audit(scene: Scene, asked: str, of: Sequence[str], table: HazardTable, progress: Progress) -> Audit:
    found = list(_find_subjects(scene, of))
    subjects = frozenset(distribution.name for _, distribution in found)
    folders = list(dict.fromkeys([scene.root, *scene.environment.roots, *scene.environment.visible]))
    caller = find_caller(asked, folders, os.getcwd())
    modules = {name: source for at, each in found for name, source in find_modules(at.root, each).items()}
    if not caller.sources.keys().isdisjoint(modules):
        owner = next(modules[name].distribution for name in caller.sources if name in modules)
        raise UsageError(f"{asked} belongs to {owner} itself", hint="name a caller of it: another distribution's code")
    caller = caller.without(_idle(caller, modules))
    program = Program({**caller.sources, **modules}, read_source, Texts())
    viewer = Viewer(table, subjects, caller.modules, tick=progress)
    view = viewer.look(program)
    compiles = tuple(find_compiles(program, caller.sources, table, progress))
    trials, notices = try_patches(scene, viewer, program, view.roots)
    owners = _Owners(scene, caller, program)
    return Audit(
        caller=caller.name,
        files=tuple(sorted(caller.sources[name].path for name in caller.modules)),
        subjects=tuple(Subject(each.name, each.version) for _, each in found),
        table=table.name,
        imports=tuple(row.found for row in view.rows),
        hazards=tuple(
            _open_hazards(view, table, [each for each in trials if not owners.has_alternative(each.patch.id)])
        ),
        covered=tuple(_covered_hazards(view, table, owners)),
        contradictions=tuple(_contradictions(view, compiles, trials, owners)) if compiles else (),
        unknown=view.unknown,
        site_root=scene.root,
        python=scene.environment.python,
        notices=(*scene.notices, *notices),
        whole=caller.whole,
        groups=tuple(_groups(trials)),
    )


def _groups(trials: Sequence[Trial]) -> Iterator[frozenset[PatchId]]:
    """The patches that were tried, by the groups of which at most one can be wanted."""
    groups: dict[tuple[str, str], set[PatchId]] = {}
    for trial in trials:
        if trial.patch.group:
            groups.setdefault((trial.patch.id.set, trial.patch.group), set()).add(trial.patch.id)
    return map(frozenset, groups.values())


def _idle(caller: Caller, modules: Mapping[str, Source]) -> set[str]:
    """The files of an odd name that do not name what is looked into: copies and templates may be no Python at all."""
    tops = {name.partition(".")[0].encode() for name in modules}
    texts = {name: read_source(caller.sources[name]) or b"" for name in caller.odd}
    return {name for name, data in texts.items() if not any(top in data for top in tops)}


def _find_subjects(scene: Scene, of: Sequence[str]) -> Iterable[tuple[Listing, Distribution]]:
    """The distributions to look into, each with the site root that holds it."""
    patched = [patch_set.distribution for patch_set in scene.catalog.sets]
    patched += [applied.distribution for applied in scene.ledger.applied]
    names = dict.fromkeys(map(normalise, of) if of else patched)
    found = []
    for name in names:
        for listing in scene.listings:
            distribution = find_distribution(listing, name, scene.environment)
            if distribution is not None:
                found.append((listing, distribution))
                break
        else:
            if of:
                raise NotInstalled(f"{name} is not installed on {scene.root}", hint="name another with --of")
    if not found:
        words = "no distribution is named, and no patch at hand or applied is for one that is installed"
        raise UsageError(words, hint="name the one to look into: --of DISTRIBUTION")
    return found


# ---- hazards --------------------------------------------------------------------------------------------------


def _open_hazards(view: View, table: HazardTable, trials: Sequence[Trial]) -> Iterable[Hazard]:
    for root in view.roots:
        for met in root.open:
            key = key_of(root.callable, met)
            patches = tuple(trial.patch.id for trial in trials if key not in trial.open)
            yield replace(root.hazard(met, table), patches=patches)


def _covered_hazards(view: View, table: HazardTable, owners: _Owners) -> Iterable[Covered]:
    for root in view.roots:
        for met, cover in root.covered:
            owner, patch = owners.of(cover)
            yield Covered(root.hazard(met, table), cover, owner, patch)


class _Owners:
    """Who put a cover where it is: the caller, a patch whose diff adds the line, or else upstream."""

    def __init__(self, scene: Scene, caller: Caller, program: Program) -> None:
        self._scene = scene
        self._own = {source.path for source in caller.sources.values()}
        self._names = {source.path: name for name, source in program.sources.items()}
        self._program = program
        self._found: dict[Cover, tuple[Owner, PatchId | None]] = {}

    def of(self, cover: Cover) -> tuple[Owner, PatchId | None]:
        if cover not in self._found:
            self._found[cover] = self._find(cover)
        return self._found[cover]

    def group_of(self, id: PatchId) -> str:
        """The group of a patch, at hand or applied."""
        patch = self._scene.catalog.patches.get(id) or self._scene.ledger.patch(id)
        return patch.group if patch is not None else ""

    def has_alternative(self, id: PatchId) -> bool:
        """Whether another patch of the same group is applied, so that nobody is about to apply this one."""
        group, applied = self.group_of(id), self._scene.ledger.applied
        return bool(group) and any(each.id.set == id.set and each.group == group for each in applied)

    def _find(self, cover: Cover) -> tuple[Owner, PatchId | None]:
        path = cover.place.path
        if path in self._own:
            return Owner.CALLER, None
        entry = self._scene.ledger.file(path)
        data = self._program.data(self._names[path]) or b""
        line = data.splitlines()[cover.place.line - 1].strip()
        for id in reversed(entry.patches if entry is not None else ()):
            if line in self._added_by(id, path):
                return Owner.PATCH, id
        return Owner.UPSTREAM, None

    def _added_by(self, id: PatchId, path: str) -> set[bytes]:
        """The lines that an applied patch adds to a file."""
        record = self._scene.ledger.patch(id)
        if record is None:
            return set()
        diffs = parse(read_kept_diff(self._scene.root, record), record.text, f"{id} (as applied)")
        lines: set[bytes] = set()
        for hunk in (hunk for diff in diffs if diff.path == path for hunk in diff.hunks):
            lines |= {line.strip() for line in hunk.new.splitlines()} - {line.strip() for line in hunk.old.splitlines()}
        return lines


# ---- contradictions -------------------------------------------------------------------------------------------


def _contradictions(
    view: View, compiles: tuple[Compile, ...], trials: Sequence[Trial], owners: _Owners
) -> Iterable[Contradiction]:
    for root in view.roots:
        known = {(cover.function, cover.maker) for cover in root.breaks}
        for cover in root.breaks:
            owner, patch = owners.of(cover)
            alternative = _alternative(root, patch, trials, owners)
            yield Contradiction(root.callable, cover, owner, patch, True, compiles, alternative)
        for trial in trials:
            fresh = () if owners.has_alternative(trial.patch.id) else trial.breaks.get(root.callable, ())
            for cover in fresh:
                if (cover.function, cover.maker) not in known:
                    patch = trial.patch.id
                    alternative = _alternative(root, patch, trials, owners)
                    yield Contradiction(root.callable, cover, Owner.PATCH, patch, False, compiles, alternative)


def _alternative(root: Root, patch: PatchId | None, trials: Sequence[Trial], owners: _Owners) -> PatchId | None:
    """Another patch of the same group, with which the callable has no graph break."""
    group = owners.group_of(patch) if patch is not None else ""
    for trial in trials:
        same = patch is not None and trial.patch.id.set == patch.set and trial.patch.group == group
        if group and same and trial.patch.id != patch and trial.breaks.get(root.callable) == ():
            return trial.patch.id
    return None
