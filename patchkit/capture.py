"""Capturing what was edited in place: the edit becomes a patch, and the patch counts as applied."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from patchkit.applied import Reason
from patchkit.authored import DraftReport, name_edits
from patchkit.authoring import Naming, open_workplace, refuse_retelling, tell_draft
from patchkit.bounds import refuse_kind
from patchkit.change import DEFAULTS, change
from patchkit.difference import changed_paths, make_diff
from patchkit.drafts import (
    Draft,
    Material,
    choose_id,
    hold_shelf,
    make_draft,
    open_shelf,
    require_distribution,
    try_draft,
    write_draft,
)
from patchkit.edits import Chosen, Edits, Shipped, find_edits
from patchkit.errors import NoChange, PatchkitError, VariantExists, raise_all
from patchkit.examination import Progress, no_progress, refuse_uncompilable
from patchkit.fold import Tree
from patchkit.footing import (
    ByHand,
    find_by_hand,
    find_clashes,
    find_undone,
    mention_undeclared,
    mention_undone,
    refuse_by_hand,
    require_at_hand,
    require_footing,
    require_order,
)
from patchkit.model import Notice
from patchkit.origins import Source, find_below, find_shipped, find_wheels, read_intended, require_ownership
from patchkit.patchset import PatchId
from patchkit.scene import Options, Scene, read_steadily
from patchkit.wanted import Wanted

DEFAULT_PATCH = "captured"


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How `capture` goes about it."""

    source: Source = field(default_factory=Source)
    chosen: Chosen = field(default_factory=Chosen)
    lock_timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class _Found:
    """An edit in place: the version that it is of, what should be there, what is there, and the patches below it.

    ``wheels`` are those at hand of that version.
    """

    scene: Scene
    version: str
    edits: Edits
    before: Tree
    below: tuple[PatchId, ...]
    wheels: tuple[str, ...]
    notices: tuple[Notice, ...]


def capture(
    options: Options,
    distribution: str,
    naming: Naming,
    how: CaptureOptions,
    progress: Progress = no_progress,
) -> DraftReport:
    """Make a patch of the files of a distribution that were edited in place, and take the edit under management.

    Afterwards the patch is applied, and `revert` gives what was there before the edit. Raises `NoChange` where nothing
    differs, `Unpatchable` for what no diff can carry, `CheckFailed` for a source that no longer compiles, and
    `NoPristineBytes` where the shipped bytes are nowhere. Other things that stand in the way are in the report's error.
    Nothing is written then.
    """
    with hold_shelf(options):
        return _capture(options, distribution, naming, how, progress)


def _capture(
    options: Options, distribution: str, naming: Naming, how: CaptureOptions, progress: Progress
) -> DraftReport:
    name = require_distribution(distribution)
    shelf = open_shelf(options)
    found = read_steadily(
        lambda: open_workplace(options, shelf.catalog, name), lambda scene: _find(scene, name, how, progress)
    )
    files = found.edits.files
    id = choose_id(shelf, name, naming.set, naming.patch, DEFAULT_PATCH)
    _refuse_applied(found.scene, id)
    require_at_hand(shelf.catalog.set(id.set), id, found.below)
    require_order({**{each.id: each for each in found.scene.ledger.applied}, **shelf.catalog.patches}, id, found.below)
    raise_all(refuse_uncompilable(found.before, files, found.scene.environment))
    diff = make_diff(found.before, files)
    material = Material(id, name, found.version, diff, naming.summary, naming.provenance, after=found.below)
    refuse_retelling(shelf, id, naming)
    draft = make_draft(shelf, material)
    wanted = _want(found.scene, id, found.below)
    proposal = try_draft(found.scene, draft, wanted)
    made = tell_draft("capture", draft, proposal, name_edits(found.before, files, tuple(files)), naming)
    made = replace(made, left_out=found.edits.left_out)
    if not (naming.dry_run or proposal.problems):
        write_draft(draft)
        made = _take_over(options, draft, made, found, how, progress)
    notices = (*made.report.notices, *found.notices, *_mention(name, found.edits))
    return replace(made, report=replace(made.report, notices=notices))


def _find(scene: Scene, name: str, how: CaptureOptions, progress: Progress) -> _Found:
    own = require_ownership(scene, name)
    shipped = find_shipped(scene, own, how.source)
    undone = find_undone(scene, own)
    edits = find_edits(scene, own, how.chosen, progress, shipped, undone)
    notices = mention_undone(scene, undone)
    if not edits.files:
        which = "no file that a patch may touch" if edits.beyond else "no file"
        words = f"{which} of {name} {own.distribution.version} in {scene.root} was edited"
        raise NoChange(words, hint=_ways_on(edits, shipped, notices))
    by_hand = find_by_hand(scene, edits.files)
    edits = _leave_known(edits, by_hand)
    before, below = read_intended(scene, own, edits.files, how.source)
    require_footing(scene, find_below(scene, edits.files), undone, before, edits.files)
    refuse_by_hand(by_hand, before, edits.files)
    if not changed_paths(before, edits.files):
        words = f"the edited files of {name} {own.distribution.version} are as shipped but for what RECORD says of them"
        raise NoChange(words, hint="RECORD may be wrong: reinstall the distribution")
    return _Found(scene, own.distribution.version, edits, before, below, find_wheels(scene, own, how.source), notices)


def _ways_on(edits: Edits, shipped: Shipped, notices: Sequence[Notice]) -> str:
    if notices:
        return notices[0].message
    if edits.beyond:
        return f"left out, for {refuse_kind(edits.beyond[0])}"
    if edits.stray:
        return f"{edits.stray[0]} is {edits.left_out[edits.stray[0]]}"
    words = "is this the environment you mean? name it with --python PATH or --site-packages DIR"
    more = "executable bits are compared where --wheel FILE or --find-links DIR gives the wheel"
    return words if shipped.modes else f"{words}; {more}"


def _refuse_applied(scene: Scene, id: PatchId) -> None:
    """Raise where the patch is applied: the diff has only what was edited since, and the rest would be lost."""
    if scene.ledger.patch(id) is not None:
        words = f"{id} is applied, and the edit comes on top of it: as {id} it would take the place of what that does"
        raise VariantExists(words, hint="name another patch with --patch, or leave --patch out")


def _leave_known(edits: Edits, by_hand: ByHand) -> Edits:
    """The edit without the files that are just what patches at hand make of them; raise where that is all of it."""
    known = by_hand.whole
    names = ", ".join(sorted({str(id) for ids in known.values() for id in ids}))
    if len(known) == len(edits.files):
        raise NoChange(f"the edit is {names}, put there by hand", hint="`patchkit apply` takes it over")
    taken = "which `patchkit apply` takes over"
    why = {path: f"{', '.join(map(str, ids))} put there by hand, {taken}" for path, ids in known.items()}
    files = {path: content for path, content in edits.files.items() if path not in known}
    return replace(edits, files=files, left_out={**edits.left_out, **why})


def _want(scene: Scene, id: PatchId, below: Sequence[PatchId]) -> Wanted:
    """What is applied and the captured patch; the patches in its files stay as they are, and are looked at with it."""
    reasons = {applied.id: applied.reason for applied in scene.ledger.applied} | {id: Reason.NAMED}
    return Wanted(reasons, named=frozenset({id, *below}), fresh=frozenset({id}))


def _take_over(
    options: Options,
    draft: Draft,
    made: DraftReport,
    found: _Found,
    how: CaptureOptions,
    progress: Progress,
) -> DraftReport:
    try:
        report = change(
            "capture",
            lambda: open_workplace(options, open_shelf(options).catalog, made.distribution),
            lambda scene: _want(scene, draft.id, found.below),
            replace(DEFAULTS, wheels=found.wheels, lock_timeout=how.lock_timeout),
            progress,
        )
    except PatchkitError as error:
        report = replace(made.report, error=error)
    notices = report.notices
    if report.error is None:
        catalog = open_shelf(options).catalog
        notices += mention_undeclared(catalog, draft.id)
        notices += find_clashes(open_workplace(options, catalog, made.distribution), made.edits)
    if report.error is not None:
        words = f"{draft.id} is written, and not under management yet: mend the error, then `patchkit apply {draft.id}`"
        notices += (Notice("not-taken-over", words),)
    rows = tuple(row for row in report.patches if row.id == draft.id)
    told = replace(report, patches=rows, notices=notices, wrote=True)
    return replace(made, report=told, next="" if report.error is not None else "patchkit verify")


def _mention(name: str, edits: Edits) -> Iterator[Notice]:
    if edits.unseen:
        words = f"{len(edits.unseen)} files of {name} have no digest in RECORD, {edits.unseen[0]} among them"
        yield Notice("unrecorded", f"{words}: whether they were edited cannot be told")
    for glob in edits.idle.exclude:
        yield Notice("idle-exclude", f"--exclude {shlex.quote(glob)} leaves out nothing: no such file differs")
    for glob in edits.idle.include:
        yield Notice("idle-include", f"--include {shlex.quote(glob)} takes nothing: there is no such new file")
    if edits.linked:
        words = f"{edits.linked[0]} is a link into {edits.archive}: every environment that is linked to it has the edit"
        yield Notice("linked", f"{words}, and so has what is installed from there")
