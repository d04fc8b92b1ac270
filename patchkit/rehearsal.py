"""A draft is tried before it is written: on the version that it is for, as that is installed or as its wheel has it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from patchkit.archives import pick_release, pick_wheel
from patchkit.candidates import parse, text_of
from patchkit.catalog import read_set_file
from patchkit.change import Proposal
from patchkit.drafts import Draft, find_clash, try_draft, with_draft
from patchkit.errors import (
    CheckFailed,
    Conflict,
    ForeignFile,
    IndexUnreachable,
    MissingExtra,
    NoRelease,
    NoWheel,
    PatchkitError,
    Several,
    WrongWheel,
)
from patchkit.examination import refuse_uncompilable
from patchkit.fits import Cell, Fit
from patchkit.fold import Tree
from patchkit.model import CheckResult, Notice
from patchkit.patchset import Catalog, Patch, PatchId, SymbolCheck, Variant
from patchkit.pristine import open_pristine
from patchkit.releases import list_releases
from patchkit.remote import open_index
from patchkit.scene import Scene, read_steadily
from patchkit.site import find_distribution
from patchkit.symbols import module_paths
from patchkit.tryout import find_paths, open_release, stack_of, try_patch, without_surroundings
from patchkit.versions import older_than, variant_for
from patchkit.wanted import want_named
from patchkit.workfolder import Work


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What trying a draft came to; ``next`` is the command to run where nothing stands in its way."""

    proposal: Proposal | None = None
    error: PatchkitError | None = None
    notices: tuple[Notice, ...] = ()
    next: str = ""


def rehearse(
    open_scene: Callable[[], Scene], catalog: Catalog, work: Work, draft: Draft, edited: Tree, folders: Sequence[str]
) -> Rehearsal:
    """Try ``draft`` on the version of the work folder: as installed, or its wheel; else say that it was not tried.

    ``edited`` are the files that the draft makes. Sources that do not compile by now are an error in any case.
    ``folders`` are folders of wheels; without any, the index is asked after a rebase, which asked it too.
    """
    scene = open_scene()
    found = find_distribution(scene.listing, work.distribution, scene.environment)
    if found is None or found.version != work.version:
        there = f"{found.version} is installed" if found is not None else f"it is not installed in {scene.root}"
        broken = refuse_uncompilable(work.before, edited, scene.environment)
        if broken:
            return Rehearsal(error=broken[0] if len(broken) == 1 else Several(broken))
        return _rehearse_elsewhere(catalog, work, draft, folders, there)
    proposal, operands = read_steadily(open_scene, lambda scene: _try_in_place(scene, draft, work.version))
    clashes = () if proposal.problems else find_clash(proposal.decision.scene, draft)
    return Rehearsal(proposal, notices=clashes, next=shlex.join(["patchkit", "apply", *map(str, operands)]))


def _try_in_place(scene: Scene, draft: Draft, version: str) -> tuple[Proposal, tuple[PatchId, ...]]:
    """What the draft comes to alone, or else on top of those that it comes after; and what has to be applied for it."""
    alone = try_draft(scene, draft)
    drafted = with_draft(scene, draft).catalog
    stack = stack_of(drafted, draft.patch)
    below = [id for id in reversed(stack) if id != draft.id and _is_absent(scene, drafted.patches[id], version)]
    if not (alone.problems and below):
        return alone, (draft.id,)
    operands = (*below, draft.id)
    return try_draft(scene, draft, want_named(drafted, scene.ledger, [*map(str, operands)], "check")), operands


def _is_absent(scene: Scene, patch: Patch, version: str) -> bool:
    """Whether a patch has a diff for ``version`` and is not applied."""
    return scene.ledger.patch(patch.id) is None and isinstance(variant_for(patch, version), Variant)


def _rehearse_elsewhere(catalog: Catalog, work: Work, draft: Draft, folders: Sequence[str], there: str) -> Rehearsal:
    words = f"the patch is for {work.distribution} {work.version}, and {there}"
    links = "".join(f" --find-links {shlex.quote(os.path.relpath(folder))}" for folder in folders)
    following = f"patchkit coverage {draft.id} --versions =={work.version}{links}"
    if not (folders or work.rebased):
        words += ": it was not tried; --find-links DIR names a folder that has its wheel"
        return Rehearsal(notices=(Notice("not-tried", words),), next=following)
    try:
        cell = _try_on_wheel(catalog, work, draft, folders)
    except (NoRelease, NoWheel, WrongWheel, IndexUnreachable, MissingExtra) as error:
        return Rehearsal(notices=(Notice("not-tried", f"{words}: it was not tried ({error.message})"),), next=following)
    if cell.result not in (Fit.FITS, Fit.OFFSET):
        hint = f"is every file of the edit in the work folder as {work.version} ships it, and nothing else?"
        return Rehearsal(error=Conflict(cell.message, hint=hint))
    failed = [check for check in cell.checks if check.result is CheckResult.FAILED]
    notices = tuple(Notice("check-fails", f"{words}; the check {each.name} fails: {each.message}") for each in failed)
    return Rehearsal(notices=notices, next=following)


def _try_on_wheel(catalog: Catalog, work: Work, draft: Draft, folders: Sequence[str]) -> Cell:
    """What the draft comes to on the wheel of the version that it is for."""
    drafted = without_surroundings(catalog)
    others = [drafted.patches[id] for id in draft.patch.after if id in drafted.patches]
    modules = [check.module for check in draft.patch.checks if isinstance(check, SymbolCheck)]
    folder, file = draft.patch_set.folder, draft.variant.file
    data = draft.files.get(f"{folder}/{file}") or read_set_file(folder, file)
    diffs = parse(data, text_of(draft.variant, data), file)
    paths = [*work.before, *(path for diff in diffs for path in diff.paths), *find_paths(drafted, others)]
    paths += [path for module in modules for path in module_paths(module)]
    with open_index() as index:
        release = pick_release(list_releases(work.distribution, folders, index), work.distribution, work.version)
        with open_pristine(index, pick_wheel(release), work.distribution) as pristine:
            scene = with_draft(open_release(pristine, drafted, paths), draft)
            scene = replace(scene, catalog=without_surroundings(scene.catalog))
            return try_patch(scene, pristine, scene.catalog.patches[draft.id])


def speak_of_draft(problem: PatchkitError, draft: Draft, command: str) -> PatchkitError:
    """``problem`` with a hint that works on a patch that was not written: no other command knows of it."""
    if isinstance(problem, ForeignFile) and command == "capture":
        words = "nothing was written; capture the edit of that file too (without --exclude), or put the file back"
        return ForeignFile(problem.message, hint=words)
    if isinstance(problem, ForeignFile):
        name = draft.patch_set.distribution
        back = f"`pip install --force-reinstall --no-deps {name}=={draft.version}` puts back what was shipped"
        return ForeignFile(problem.message, hint=f"`patchkit capture {name}` makes a patch of the edit first; {back}")
    if isinstance(problem, CheckFailed) and "mend the diff" in problem.hint:
        return CheckFailed(problem.message, hint="nothing was written; mend the file, or leave it out")
    if isinstance(problem, CheckFailed) and "--no-checks" in problem.hint:
        key = f'`versions = "{older_than(draft.version)}"`'
        words = f"mend the change, or, if the check is for older versions, give it {key} in the manifest"
        return CheckFailed(problem.message, hint=f"nothing was written; {words}")
    if isinstance(problem, Conflict) and ("`patchkit check " in problem.hint or "in the manifest" in problem.hint):
        hint = "nothing was written; the same command with --verbose shows all the expected and the found lines"
        return Conflict(problem.message, hint=hint)
    return problem
