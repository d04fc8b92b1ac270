"""Committing what was edited in a work folder: it becomes a patch."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchkit.account import account_for
from patchkit.authored import DraftReport, Edit, name_edits
from patchkit.catalog import find_folders, read_set_file
from patchkit.change import Proposal, report_on, with_python_checks
from patchkit.difference import changed_paths, make_diff
from patchkit.drafts import (
    Draft,
    Material,
    Shelf,
    choose_id,
    hold_shelf,
    make_draft,
    open_shelf,
    write_draft,
)
from patchkit.environment import find_environment
from patchkit.errors import (
    NoChange,
    Several,
    Unpatchable,
    UsageError,
    VariantExists,
    raise_all,
)
from patchkit.footing import require_at_hand, require_order
from patchkit.installed import Content
from patchkit.model import Action
from patchkit.patchset import Catalog, PatchId, Provenance
from patchkit.rehearsal import rehearse, speak_of_draft
from patchkit.report import Report
from patchkit.scene import Options, Scene, current_folder, open_place
from patchkit.workfolder import Work, note_commit, read_edited, read_work

_MARKERS = re.compile(rb"^(?:<<<<<<<|>>>>>>>)(?: |$)", re.MULTILINE)
_SEPARATOR = re.compile(rb"^=======\r?$", re.MULTILINE)
_ADDED_SEPARATOR = re.compile(rb"^\+=======\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Naming:
    """What a patch is to be called, and what is to be said of it; None: that is left to patchkit.

    ``overwrites``: another diff of that name for the very version may go.
    """

    set: str | None = None
    patch: str | None = None
    summary: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    dry_run: bool = False
    overwrites: bool = False


def open_workplace(options: Options, catalog: Catalog, distribution: str) -> Scene:
    """The scene on the site root that holds ``distribution``."""
    environment = find_environment(options.python, options.site_packages, os.environ)
    return open_place(environment, catalog, [distribution])


# ---- commit ---------------------------------------------------------------------------------------------------


def commit(options: Options, folder: str, naming: Naming, find_links: Sequence[str] = ()) -> DraftReport:
    """Make a patch of what was edited in a work folder: its diff and its entry in the manifest.

    It goes into the patch folder that ``options`` name, else into the one that the work folder was made for. The patch
    is tried first: on the version itself where that is installed, else on its wheel, where one is at hand (in the
    folders ``find_links``, in those that the work folder was made with; after a rebase also from the index). What
    stands in its way is in the report's error, and nothing is written then. Raises `NoChange` where nothing was
    edited, `Unpatchable` for what no diff can carry, and what `make_draft` raises.
    """
    work = read_work(folder)
    options = _at_home(options, folder, work)
    with hold_shelf(options):
        return _commit(options, folder, work, naming, find_links)


def _commit(options: Options, folder: str, work: Work, naming: Naming, find_links: Sequence[str]) -> DraftReport:
    edited = read_edited(folder, work)
    paths = changed_paths(work.before, edited.files)
    _require_edit(folder, work, edited.files, paths)
    shelf = open_shelf(options)
    _require_resolution(folder, work, edited.files, paths, shelf)
    patch = naming.patch or work.patch
    if not patch:
        raise UsageError("the patch needs a name", hint="give one with --patch NAME")
    id = choose_id(shelf, work.distribution, naming.set or work.set or None, patch, "")
    _refuse_increment(folder, work, id)
    require_at_hand(shelf.catalog.set(id.set), id, work.after)
    require_order(shelf.catalog.patches, id, work.after)
    diff = make_diff(work.before, edited.files)
    material = Material(id, work.distribution, work.version, diff, naming.summary, naming.provenance, after=work.after)
    if work.rebased and id == PatchId(work.set, work.patch):
        material = replace(material, replaces=True)
    may_go = frozenset(filter(None, (work.committed, work.replaces)))
    material = replace(material, overwrites=naming.overwrites, may_go=may_go)
    refuse_retelling(shelf, id, naming)
    draft = make_draft(shelf, material)
    opened = lambda: open_workplace(options, shelf.catalog, work.distribution)  # noqa: E731
    trial = rehearse(opened, shelf.catalog, work, draft, edited.files, tuple(find_links) or work.find_links)
    made = tell_draft("commit", draft, trial.proposal, name_edits(work.before, edited.files, paths), naming)
    error = made.report.error or trial.error
    report = replace(made.report, notices=(*made.report.notices, *trial.notices), error=error)
    made = replace(made, report=report, left_out=edited.left_out, written=() if error else made.written)
    if error is not None or naming.dry_run or not made.written:
        return made
    write_draft(draft)
    note_commit(folder, diff)
    return replace(made, next=trial.next)


def _at_home(options: Options, folder: str, work: Work) -> Options:
    """``options`` with the patch folders that the work folder was made for, where they name none.

    A project that was moved since has none of these; then it is as with any other command. Raises `UsageError` where
    the patch would go into the work folder itself.
    """
    if not (options.patches or options.bundled) and any(os.path.isdir(os.path.dirname(path)) for path in work.patches):
        options = replace(options, patches=work.patches)
    home = find_folders(options.patches, bundled=options.bundled, cwd=current_folder())[0]
    inside = os.path.realpath(folder)
    if os.path.commonpath([inside, os.path.realpath(home)]) == inside:
        words = f"the patch would go into {home}, which is in the work folder"
        raise UsageError(words, hint="run this where the project is, or name its patch folder with --patches DIR")
    return options


def refuse_retelling(shelf: Shelf, id: PatchId, naming: Naming) -> None:
    """Raise for what was said of a patch that is there already and says something else of itself."""
    patch = shelf.catalog.patches.get(id)
    if patch is None:
        return
    said = (
        ("summary", naming.summary, patch.summary),
        ("origin", naming.provenance.origin, patch.provenance.origin),
        ("bug", naming.provenance.bug, patch.provenance.bug),
    )
    other = [key for key, new, old in said if new and new != old]
    if other:
        words = f"{id} is there already, and --{', --'.join(other)} would not be written: its entry says that"
        found = shelf.catalog.set(id.set)
        where = f"{os.path.relpath(found.folder)}/patchset.toml" if found is not None else "the manifest"
        raise UsageError(
            words, hint=f"write {', '.join(f'`{key}`' for key in other)} into {where}, and leave it out here"
        )


def _refuse_increment(folder: str, work: Work, id: PatchId) -> None:
    """Raise where the diff would be what comes on top of the very patch that it is to be the diff of."""
    if id in work.after:
        words = f"{folder} has the text of {id} in it, so its diff has only what comes on top: {id} would lose the rest"
        ways = "name another patch with --patch; or edit the files as shipped, with `patchkit edit` without --on-top"
        raise VariantExists(words, hint=ways)


def _require_edit(folder: str, work: Work, files: Mapping[str, Content], paths: Sequence[str]) -> None:
    if not paths and work.rebased:
        words = f"{work.set}/{work.patch}: upstreamed, for {folder} is what {work.distribution} {work.version} ships"
        lines = f'[[patch.not-needed]]\nversions = "=={work.version}"\nwhy = "upstream in {work.version}"'
        raise NoChange(words, hint=f"if that is meant, add below this patch in the manifest:\n{lines}")
    if not paths:
        hint = "edit the files there, then run this again"
        raise NoChange(f"nothing was edited in {folder}", hint=hint)
    if work.before and not (files or work.rebased):
        words = f"all files that were copied into {folder} are gone; a patch does not delete a whole distribution"
        raise Unpatchable(words, hint=f"copy them back from {folder}/.patchkit-edit/before")


def _require_resolution(
    folder: str, work: Work, files: Mapping[str, Content], paths: Sequence[str], shelf: Shelf
) -> None:
    """Raise for markers of conflicts that the shipped file does not have.

    The line between two sides may be text too, an underline in reStructuredText say: it counts after a rebase alone,
    and as often as no diff of the patch adds it.
    """
    own = _count_own(work, shelf)
    there = [path for path in paths if path in files]
    marked = [path for path in there if _exceeds(_MARKERS, work, path, files[path])]
    marked += [path for path in there if work.rebased and _exceeds(_SEPARATOR, work, path, files[path], own)]
    raise_all(
        [
            Unpatchable(f"{os.path.join(folder, path)} has conflict markers", hint="resolve the conflicts first")
            for path in dict.fromkeys(marked)
        ]
    )


def _exceeds(marker: re.Pattern[bytes], work: Work, path: str, content: Content, beside: int = 0) -> bool:
    before = len(marker.findall(work.before[path].data)) if path in work.before else 0
    return len(marker.findall(content.data)) > before + beside


def _count_own(work: Work, shelf: Shelf) -> int:
    """How many lines like the one between two sides of a conflict a diff of the patch adds itself, at most."""
    found, patch = shelf.catalog.set(work.set), shelf.catalog.patches.get(PatchId(work.set, work.patch))
    if found is None or patch is None:
        return 0
    diffs = [read_set_file(found.folder, variant.file) for variant in patch.variants]
    return max((len(_ADDED_SEPARATOR.findall(diff)) for diff in diffs), default=0)


# ---- what is said ---------------------------------------------------------------------------------------------


def tell_draft(
    command: str, draft: Draft, proposal: Proposal | None, edits: Mapping[str, Edit], naming: Naming
) -> DraftReport:
    """What there is to say of a draft that is written, or would be; what stands in its way is in the report's error."""
    report = Report(command)
    problems = proposal.problems if proposal is not None else ()
    if proposal is not None:
        rows = account_for(proposal.decision, with_python_checks(proposal))
        own = tuple(replace(row, action=Action.NONE) for row in rows if row.id == draft.id)
        told = [speak_of_draft(problem, draft, command) for problem in problems]
        error = told[0] if len(told) == 1 else Several(told) if told else None
        report = report_on(command, proposal.decision, patches=own, error=error)
    folder, files = draft.patch_set.folder, tuple(draft.files)
    return DraftReport(
        report=replace(report, dry_run=naming.dry_run),
        id=draft.id,
        distribution=draft.patch_set.distribution,
        version=draft.version,
        versions=draft.variant.versions,
        file=f"{folder}/{draft.variant.file}",
        manifest=f"{folder}/patchset.toml",
        origin=draft.patch.provenance.origin,
        edits=edits,
        written=() if problems else files,
    )
