"""Importing an upstream commit: its diff becomes a patch of the installed distribution, tried before it is written."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from patchkit.authored import DraftReport, Edit
from patchkit.authoring import Naming, open_workplace, refuse_retelling, tell_draft
from patchkit.bounds import refuse_kind
from patchkit.catalog import read_set_file
from patchkit.change import Proposal
from patchkit.drafts import (
    Draft,
    Material,
    Shelf,
    choose_id,
    find_clash,
    hold_shelf,
    make_draft,
    open_shelf,
    require_distribution,
    to_name,
    try_draft,
    write_draft,
)
from patchkit.entries import read_entries
from patchkit.errors import (
    Conflict,
    DiffError,
    DiffTooLarge,
    NoMatchingFile,
    PatchkitError,
    UsageError,
    VariantExists,
    raise_all,
)
from patchkit.fields import MOST_GLOBS
from patchkit.foundation import find_foundation
from patchkit.homes import find_home
from patchkit.installed import Distribution
from patchkit.layouts import Route
from patchkit.mail import read_letter
from patchkit.model import EntryKind, FileDiff, Notice, PatchState
from patchkit.origins import peek_pristine, require_ownership
from patchkit.patchset import PatchId
from patchkit.rewritten import rewrite
from patchkit.scene import Options, Scene, read_steadily
from patchkit.site import observe
from patchkit.survey import Ownership
from patchkit.upstream import EXCLUDED, Choices, Doubt, Placement, place, without_cr

LARGEST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Submission:
    """An upstream diff: its bytes, and what messages call it. ``stem`` names the patch where nothing better does."""

    data: bytes
    file: str
    stem: str = "imported"


def read_submission(path: str) -> Submission:
    """The diff at ``path``, which may be a pipe. Raises `UsageError` where it cannot be read, and `DiffTooLarge`."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror}"
        raise UsageError(words, hint="name a diff, or - for standard input") from error
    return take_submission(data, path)


def take_submission(data: bytes, file: str) -> Submission:
    """``data`` as a submission. Raises `DiffTooLarge`."""
    if len(data) > LARGEST_BYTES:
        raise DiffTooLarge(f"the diff is over {LARGEST_BYTES >> 20} MiB", file=file, line=1)
    name = file.rpartition("/")[2].rpartition(".")[0]
    return Submission(data, file, to_name(name) or "imported")


# ---- import ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ground:
    """What a diff lands on: files that the distribution shipped, and those that applied patches created in it."""

    scene: Scene
    own: Ownership

    @cached_property
    def created(self) -> frozenset[str]:
        name = self.own.distribution.name
        files = self.scene.ledger.files
        return frozenset(
            file.path for file in files if file.distribution == name and file.base is None and file.written
        )

    @cached_property
    def paths(self) -> frozenset[str]:
        shipped = (path for path in self.own.rows if not path.startswith(("../", "/")) and not refuse_kind(path))
        return self.created.union(shipped)

    def read(self, path: str) -> bytes | None:
        """The text as it was shipped; of a file that was not, as it is."""
        if path not in self.created:
            return peek_pristine(self.scene, self.own, path)
        content = observe(self.scene.root, [path])[path].content
        return None if content is None else content.data


@dataclass(frozen=True, slots=True)
class _Found:
    ground: _Ground
    placement: Placement

    @property
    def scene(self) -> Scene:
        return self.ground.scene

    @property
    def distribution(self) -> Distribution:
        return self.ground.own.distribution


def import_diff(
    options: Options, submission: Submission, distribution: str, naming: Naming, choices: Choices
) -> DraftReport:
    """Make a patch of an upstream diff: the files that the installed distribution has, found wherever they lie there.

    The diff stays as upstream wrote it where one strip level and directory does for all its files; else its paths are
    written anew. It is tried on the installed version; what does not fit is in the report's error, and nothing is
    written then, nor where the version has the change already. Raises `DiffError`, `NoMatchingFile`, `Conflict` where
    the file that is meant is in doubt, and `VariantExists`.
    """
    with hold_shelf(options):
        return _import(options, submission, distribution, naming, choices)


def _import(
    options: Options, submission: Submission, distribution: str, naming: Naming, choices: Choices
) -> DraftReport:
    name = require_distribution(distribution)
    shelf = open_shelf(options)
    found = read_steadily(
        lambda: open_workplace(options, shelf.catalog, name), lambda scene: _place(scene, name, submission, choices)
    )
    _require_landing(submission, found)
    letter = read_letter(submission.data)
    id = choose_id(shelf, name, naming.set, naming.patch, to_name(letter.subject) or submission.stem)
    provenance = replace(naming.provenance, origin=naming.provenance.origin or letter.origin)
    material = _to_material(submission, found, id, naming.summary or letter.subject)
    _refuse_again(shelf, material)
    refuse_retelling(shelf, id, naming)
    material = replace(material, provenance=provenance)
    draft, proposal = _try(shelf, submission, found, material)
    below = find_foundation(proposal.decision, id)
    if below and id not in shelf.catalog.patches and shelf.catalog.patches.keys() >= set(below):
        draft, proposal = _try(shelf, submission, found, replace(material, after=below))
    made = tell_draft("import", draft, proposal, _name_edits(proposal, id), naming)
    made = replace(made, left_out=found.placement.left_out)
    made = replace(made, report=replace(made.report, notices=(*made.report.notices, *_mention_idle(submission, found))))
    if proposal.problems:
        moved = tuple(_mention_moves(found, proposal, id))
        return replace(made, report=replace(made.report, notices=(*made.report.notices, *moved)))
    if proposal.decision.verdicts[id].state is PatchState.UPSTREAMED:
        return replace(made, versions=None, file=None, manifest=None, written=())
    notices = (*made.report.notices, *find_clash(found.scene, draft), *_mention_foundation(draft, below))
    notices += (*_mention_origin(made), *_mention_guesses(found))
    if made.written and not naming.dry_run:
        write_draft(draft)
        made = replace(made, next=f"patchkit apply {id}")
    return replace(made, report=replace(made.report, notices=notices))


def _try(shelf: Shelf, submission: Submission, found: _Found, material: Material) -> tuple[Draft, Proposal]:
    """The draft, and what applying it would come to."""
    draft = make_draft(shelf, material)
    try:
        return draft, try_draft(found.scene, draft)
    except PatchkitError as error:
        raise_all([_speak_of_submission(each, submission, draft, found.placement) for each in error.all()])
        raise


def _place(scene: Scene, name: str, submission: Submission, choices: Choices) -> _Found:
    ground = _Ground(scene, require_ownership(scene, name))
    return _Found(ground, place(submission.data, ground.paths, ground.read, choices, file=submission.file))


def _require_landing(submission: Submission, found: _Found) -> None:
    dist, placement = found.distribution, found.placement
    name = f"{dist.name} {dist.version}"
    problems: list[PatchkitError] = []
    for path, doubt in placement.doubtful.items():
        unlisted = not doubt.there and os.path.lexists(os.path.join(found.scene.root, doubt.meant))
        if unlisted:
            words = f"{doubt.meant} is there, and RECORD of {name} has no row for it: no patch may touch it"
            hint = f"`pip install --force-reinstall --no-deps {dist.name}=={dist.version}` writes RECORD anew"
        else:
            words, hint = _tell_doubt(path, doubt, name), _ways_out(path, doubt, dist.version)
        problems.append(Conflict(f"{submission.file}: {words}", hint=hint))
    raise_all(problems)
    if not placement.landings and set(placement.left_out.values()) == {EXCLUDED}:
        words = f"--exclude leaves out all of {submission.file}: {', '.join(list(placement.left_out)[:5])}"
        raise NoMatchingFile(words, hint="leave out less")
    if not placement.landings:
        count = len(placement.left_out)
        files = f"{', '.join(list(placement.left_out)[:5])}{', ...' if count > 5 else ''}"
        words = f"none of its {count} files" if count > 1 else "no such file as it changes"
        hint = f"is {dist.name} the distribution that it is made for? --moved OLD=NEW says which file one of them is"
        raise NoMatchingFile(f"{submission.file}: {name} has {words}: {files}", hint=hint)


def _tell_doubt(path: str, doubt: Doubt, name: str) -> str:
    if doubt.there:
        return f"{path} may be {doubt.meant}, but none of its hunks is about the text that is there"
    where = f"no {doubt.meant}" if doubt.meant == path else f"no {doubt.meant} ({path})"
    return f"{name} has {where}, and leaving its change out would be half of the patch"


def _ways_out(path: str, doubt: Doubt, version: str) -> str:
    leave = f"--exclude {shlex.quote(path)} leaves it out"
    if doubt.home:
        return f"its text is in {doubt.home}: --moved {shlex.quote(f'{path}={doubt.home}')} takes it there; {leave}"
    return f"is it made for another version than {version}? {leave}"


def _to_material(submission: Submission, found: _Found, id: PatchId, summary: str) -> Material:
    placement, dist = found.placement, found.distribution
    moved = any(landing.moved for landing in placement.landings)
    if len(placement.routes) == 1 and len(placement.include) <= MOST_GLOBS and not moved:
        [route] = placement.routes
        diff, include = submission.data, placement.include
    else:
        route, include = Route(1), ()
        diff = rewrite(submission.data, placement, file=submission.file)
    return Material(
        id,
        dist.name,
        dist.version,
        diff,
        summary,
        strip=route.strip,
        directory=route.directory,
        include=include,
    )


def _refuse_again(shelf: Shelf, material: Material) -> None:
    """Raise for a diff that the patch set has already; as another patch it would be in its own way."""
    found = shelf.catalog.set(material.id.set)
    if found is None:
        return
    for patch in found.patches:
        for variant in patch.variants:
            if patch.id != material.id and read_set_file(found.folder, variant.file) == material.diff:
                words = f"{patch.id} is this very diff already, for {variant.versions}"
                raise VariantExists(words, hint=f"--patch {patch.id.patch} adds a variant for another version to it")


def _speak_of_submission(
    error: PatchkitError, submission: Submission, draft: Draft, placement: Placement
) -> PatchkitError:
    """``error`` with the place in the diff that was given, where it names one in the file that was to be written."""
    path = f"{draft.patch_set.folder}/{draft.variant.file}"
    if not isinstance(error, DiffError) or error.file != path:
        return error
    problem = error.message.removeprefix(f"{path}:{error.line}: ")
    line = error.line
    written = draft.files.get(path, submission.data)
    if written != submission.data:  # its entries are those that landed, one by one
        entries, _ = read_entries(without_cr(written), file=path)
        number = sum(entry.line <= error.line for entry in entries)
        line = placement.landings[max(number, 1) - 1].entry.line
    return type(error)(problem, file=submission.file, line=line, hint=error.hint)


def _name_edits(proposal: Proposal, id: PatchId) -> dict[str, Edit]:
    """What the diff does to each of its files; a rename deletes one and creates another."""
    layer = next(layer for layer in proposal.decision.layers if layer.id == id)
    return {path: edit for diff in layer.diffs for path, edit in _edits_of(diff).items()}


def _edits_of(diff: FileDiff) -> dict[str, Edit]:
    match diff.kind:
        case EntryKind.MODIFY:
            return {diff.path: Edit.MODIFIED}
        case EntryKind.CREATE:
            return {diff.path: Edit.CREATED}
        case EntryKind.DELETE:
            return {diff.path: Edit.DELETED}
        case EntryKind.RENAME:
            old, new = diff.paths
            return {old: Edit.DELETED, new: Edit.CREATED}


def _mention_foundation(draft: Draft, below: Sequence[PatchId]) -> Iterator[Notice]:
    names = ", ".join(map(str, below))
    words = f"{draft.id} fits only on top of {names}, which {'is' if len(below) == 1 else 'are'} applied"
    missing = [str(id) for id in below if id not in draft.patch.after]
    if missing:
        yield Notice("on-top", f"{words}: write {', '.join(missing)} into its `after`")
    elif below:
        yield Notice("on-top", f"{words}: its `after` says so")


def _mention_idle(submission: Submission, found: _Found) -> Iterator[Notice]:
    for glob in found.placement.idle:
        words = f"--exclude {shlex.quote(glob)} leaves out nothing: {submission.file} has no such file"
        yield Notice("idle-exclude", words)


def _mention_guesses(found: _Found) -> Iterator[Notice]:
    for landing in found.placement.landings:
        if landing.by_folder:
            target = landing.targets[1]
            words = f"{target} is a new file, and goes there for the name of its folder alone: is that right?"
            yield Notice("placed-by-folder", f"{words} --exclude {shlex.quote(target)} leaves it out")


def _mention_moves(found: _Found, proposal: Proposal, id: PatchId) -> Iterator[Notice]:
    """Files that are there with another text, and whose text is in another file."""
    misfits = {outcome.path for outcome in proposal.decision.verdicts[id].files if not outcome.fits}
    for landing in found.placement.landings:
        path = landing.targets[0]
        if path in misfits and landing.entry.hunks and not landing.moved and path in found.ground.own.rows:
            diff = FileDiff(landing.entry.line, EntryKind.MODIFY, path, path, landing.entry.hunks)
            home = find_home(diff, (), found.ground.paths, found.ground.read, everywhere=True)
            if home is not None:
                words = f"{home} has the text of {path} that the diff changes"
                yield Notice("perhaps-moved", f"{words}: --moved {shlex.quote(f'{path}={home}')} takes it there")


def _mention_origin(made: DraftReport) -> tuple[Notice, ...]:
    ways = "give --origin" if made.report.dry_run else f"write `origin` into {made.manifest}"
    words = f"nothing says where {made.id} comes from: {ways}"
    return () if made.origin else (Notice("no-origin", words),)
