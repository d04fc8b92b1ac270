"""The command `rebase`: the patches of a set brought to a new version of their distribution.

Each patch is looked at in the order of the fold, on top of what became of those that it comes after. What is decided is
written at the end: the diffs, then the manifest, then the work folders of conflicts.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace

from patchkit.archives import Release, pick_release, pick_wheel
from patchkit.bench import AS_USUAL, Bench, RebaseOptions
from patchkit.catalog import find_folders
from patchkit.difference import changed_paths, make_diff
from patchkit.doubt import explain_checks, find_doubt
from patchkit.drafts import hold_shelf
from patchkit.errors import (
    BadManifest,
    NoRelease,
    NoWheel,
    UsageError,
    WrongWheel,
    raise_all,
)
from patchkit.examination import Progress, no_progress
from patchkit.fits import Cell, Fit
from patchkit.folders import bundled_folder
from patchkit.handover import hand_over
from patchkit.mergebase import decide_on, find_base, fold_below
from patchkit.model import FileDiff
from patchkit.outputs import write_output
from patchkit.patchset import NotNeeded, Patch, PatchId, PatchSet, Variant
from patchkit.rebased import Rebase, Rebased, RebasedPatch, Step
from patchkit.redraft import Redraft, add_variant, may_widen, open_redraft, repeat_variant, widen
from patchkit.releases import list_releases
from patchkit.remote import open_index
from patchkit.scene import CatalogNeed, Options, current_folder, open_catalog
from patchkit.treemerge import Sides, TreeMerge, merge_trees
from patchkit.tryout import (
    choose_patches,
    find_home_of,
    find_paths,
)
from patchkit.versions import contains, variant_for, widened
from patchkit.wanted import order_fold


def rebase(
    options: Options, operand: str, to: str, how: RebaseOptions = AS_USUAL, progress: Progress = no_progress
) -> Rebased:
    """Bring ``SET`` or ``SET/PATCH`` to version ``to``. Patches that merge are written even if another one conflicts.

    Raises what the catalog and the index raise, `NoRelease` where there is no release to take a change from, and
    `Locked` where another authoring command is writing into the patch folders.
    """
    with nullcontext() if how.dry_run else hold_shelf(options):
        return _rebase_all(options, operand, to, how, progress)


def _rebase_all(options: Options, operand: str, to: str, how: RebaseOptions, progress: Progress) -> Rebased:
    catalog, _ = open_catalog(options, CatalogNeed.REQUIRED)
    patch_set, patches = choose_patches(catalog, operand)
    if not how.dry_run:
        _refuse_bundled(options, patch_set)
    places = {patch.id: (patch.place, patch.after) for patch in patches}
    with open_index(how.source.cache or None) as index, ExitStack() as stack:
        releases = list_releases(patch_set.distribution, how.source.folders, index)
        target = pick_release(releases, patch_set.distribution, to)
        pick_wheel(target)
        paths = find_paths(catalog, patches)
        homes = find_folders(options.patches, bundled=False, cwd=current_folder())
        bench = Bench(index, stack, releases, target, paths, how, progress, patch_set.folder, homes)
        draft = open_redraft(catalog, patch_set)
        rows: list[RebasedPatch] = []
        for id in order_fold(places):
            row, draft = _rebase_or_explain(bench, draft, id)
            rows.append(row)
    if all(row.error is not None for row in rows):
        raise_all([row.error for row in rows if row.error is not None])
    written = draft.written
    if not how.dry_run:
        bench.write_folders()
        for path, data in written.items():
            write_output(path, data)
    ordered = tuple(sorted(rows, key=lambda row: places[row.id][0]))
    return Rebased(patch_set.name, patch_set.distribution, target.version, ordered, tuple(written), how.dry_run)


def _refuse_bundled(options: Options, patch_set: PatchSet) -> None:
    """The sets that come with patchkit are no place to write to: the next installation replaces them."""
    if options.bundled and os.path.dirname(patch_set.folder) == bundled_folder():
        words = f"{patch_set.name} comes with patchkit, and what is written there is lost with the next installation"
        copy = f"mkdir -p patches && cp -r {shlex.quote(patch_set.folder)} patches/"
        raise UsageError(words, hint=f"copy it first: {copy}")


# ---- one patch ------------------------------------------------------------------------------------------------


def _fits(cell: Cell) -> bool:
    return cell.result in (Fit.FITS, Fit.OFFSET)


def _rebase_or_explain(bench: Bench, draft: Redraft, id: PatchId) -> tuple[RebasedPatch, Redraft]:
    """What becomes of one patch; what stands in its way stands in the way of that one alone."""
    try:
        return _rebase(bench, draft, id)
    except (BadManifest, NoRelease, NoWheel, WrongWheel) as error:
        words = "; ".join(filter(None, (error.message.removeprefix(f"{id}: "), error.hint)))
        return RebasedPatch(id, Rebase.CONFLICT, message=words, error=error), draft


def _rebase(bench: Bench, draft: Redraft, id: PatchId) -> tuple[RebasedPatch, Redraft]:
    """What becomes of one patch, and the patch set with it."""
    patch = draft.patch(id)
    rule = variant_for(patch, bench.to)
    if isinstance(rule, NotNeeded):
        return RebasedPatch(id, Rebase.NOT_NEEDED, message=f"the manifest says so: {rule.why}"), draft
    for variant in [rule] if rule is not None else _by_nearness(bench, patch):
        cell = bench.fare(bench.target, draft, _only(patch, variant, bench.to))
        if cell.result is Fit.OFFSET and _lands_elsewhere(bench, draft, patch, variant):
            row, changed = _merge(bench, draft, patch, variant)
            return replace(row, message="; ".join(filter(None, (row.message, _ELSEWHERE)))), changed
        if _fits(cell):
            row, draft = (_settled(bench, id, rule, cell), draft) if rule else _reuse(bench, draft, patch, variant)
            return replace(row, checks=cell.checks), draft
        if cell.result is Fit.UPSTREAMED:
            return _retire(bench, id, cell.message, held=rule is not None), draft
    return _merge(bench, draft, patch, rule)


_ELSEWHERE = "the old diff fits too, but at another place than the merge puts it"


def _lands_elsewhere(bench: Bench, draft: Redraft, patch: Patch, variant: Variant) -> bool:
    """Whether a diff that fits at an offset changes other lines than a merge would: text that looks alike, say.

    Where there is no release to merge from, or the merge conflicts, nothing speaks against the diff.
    """
    own = replace(bench, how=replace(bench.how, base=""))
    try:
        merged, _, _, _ = _merge_from(own, draft, patch, variant)
    except NoRelease:
        return False
    only = _only(patch, variant, bench.to)
    decision = decide_on(bench, draft, only, bench.target)
    if not merged.clean or decision is None or decision.stacked is None:
        return False
    tree = decision.stacked.result.tree
    return any(tree.get(path) != content for path, content in merged.after.items())


def _only(patch: Patch, variant: Variant, version: str) -> Patch:
    """``patch`` as if one of its diffs were meant for ``version``, and no other."""
    return replace(patch, variants=(replace(variant, versions=f"=={version}"),), not_needed=())


def _by_nearness(bench: Bench, patch: Patch) -> list[Variant]:
    """Its variants, that for the nearest release first; only that for the release to start from, where one is named."""
    rules = (variant_for(patch, release.version) for release in bench.near())
    near = [rule for rule in rules if isinstance(rule, Variant)]
    return list(dict.fromkeys((*near, *(() if bench.how.base else reversed(patch.variants)))))


def _settled(bench: Bench, id: PatchId, variant: Variant, cell: Cell) -> RebasedPatch:
    base = bench.how.base
    kept = f"nothing was taken from {base}: remove that entry to have its diff made anew" if base else ""
    words = "; ".join(filter(None, ("its range holds this version already, and it fits", kept, cell.message)))
    return RebasedPatch(id, Rebase.CLEAN, variant=variant.file, versions=variant.versions, message=words)


def _retire(bench: Bench, id: PatchId, message: str, *, held: bool) -> RebasedPatch:
    bench.upstream.add(id)
    return RebasedPatch(id, Rebase.UPSTREAMED, message=message, advice="" if held else _advise(bench))


def _advise(bench: Bench) -> str:
    return f'[[patch.not-needed]]\nversions = "=={bench.to}"\nwhy = "upstream in {bench.to}"'


def _reuse(bench: Bench, draft: Redraft, patch: Patch, variant: Variant) -> tuple[RebasedPatch, Redraft]:
    """The same diff fits: its range is widened where all that lies between was tried, else it gets an entry more."""
    wider = widened(variant.versions, bench.to)
    untried = _first_misfit(bench, draft, patch, variant, wider) if wider else ""
    row = RebasedPatch(patch.id, Rebase.CLEAN, variant=variant.file)
    if wider and not untried and may_widen(draft, patch.id, variant, wider):
        words = "the same diff fits a wider range"
        return replace(row, step=Step.WIDENED, versions=wider, message=words), widen(draft, patch.id, variant, wider)
    draft, added = repeat_variant(draft, patch.id, bench.to, variant)
    words = "the same diff fits, for this version alone" + (f": {untried}" if untried else "")
    return replace(row, step=Step.ADDED, variant=added.file, versions=added.versions, message=words), draft


def _first_misfit(bench: Bench, draft: Redraft, patch: Patch, variant: Variant, wider: str) -> str:
    """The first release that ``wider`` takes in and that the diff does not fit or was not tried on, in words."""
    for release in bench.releases:
        if release is bench.target or contains(variant.versions, release.version):
            continue
        if not contains(wider, release.version) or variant_for(patch, release.version) is not None:
            continue
        if not release.wheels:
            return f"{release.version} lies between, and is a source distribution only"
        try:
            cell = bench.fare(release, draft, _only(patch, variant, release.version))
            at_its_place = cell.result is not Fit.OFFSET or not _lands_elsewhere(
                replace(bench, target=release), draft, patch, variant
            )
        except WrongWheel as error:
            return f"{release.version} lies between, and cannot be tried: {error.message}"
        if not _fits(cell):
            return f"it does not fit {release.version}, which lies between"
        if not at_its_place:
            return f"in {release.version}, which lies between, it fits at another place than a merge puts it"
    return ""


# ---- three-way ------------------------------------------------------------------------------------------------


def _merge_from(
    bench: Bench, draft: Redraft, patch: Patch, rule: Variant | None
) -> tuple[TreeMerge, Release, Sequence[FileDiff], list[PatchId]]:
    """The merge, the release that it starts from, that one's diffs, and the patches below that are in neither."""
    release, decision = find_base(bench, draft, patch, rule)
    assert decision.stacked is not None
    result = decision.stacked.result
    diffs = next(layer.diffs for layer in decision.layers if layer.id == patch.id)
    below, absent = fold_below(bench, draft, patch)
    target, base = bench.pristine(bench.target), result.below(patch.id)

    def guide(diff: FileDiff) -> str | None:
        content = base.get(str(diff.old))
        return find_home_of(diff, patch, target, b"" if content is None else content.data)

    merged = merge_trees(
        diffs,
        Sides(
            base=base,
            ours=result.tree,
            theirs=lambda path: below[path] if path in below else target.read(path),
            guide=guide,
            ours_name=str(patch.id),
            theirs_name=f"{bench.target.distribution} {bench.to}",
        ),
    )
    return merged, release, diffs, absent


def _merge(bench: Bench, draft: Redraft, patch: Patch, rule: Variant | None) -> tuple[RebasedPatch, Redraft]:
    merged, release, diffs, absent = _merge_from(bench, draft, patch, rule)
    row = RebasedPatch(patch.id, Rebase.CONFLICT, base=release.version, files=merged.files)
    doubt = find_doubt(bench, patch, diffs, merged)
    if not merged.clean and absent:
        return _wait(bench, row, absent), draft
    if not merged.clean or doubt:
        row = hand_over(bench, patch, merged, row, doubt)
        return (row if row.folder else replace(row, advice=_advise(bench))), draft
    if not changed_paths(merged.before, merged.after):
        words = f"{bench.to} makes all of its changes, in other words or at another place"
        return replace(_retire(bench, patch.id, words, held=rule is not None), base=row.base, files=row.files), draft
    changed, variant = add_variant(draft, patch.id, bench.to, make_diff(merged.before, merged.after))
    cell = bench.fare(bench.target, changed, changed.patch(patch.id))
    row = replace(row, step=Step.ADDED, variant=variant.file, versions=variant.versions, checks=cell.checks)
    if not _fits(cell):
        words = f"the merged diff was not written, for it would be refused: {cell.message}"
        return replace(row, step=Step.NONE, variant=None, versions="", message=words), draft
    notes = [f"{merged.there} of {merged.kept + merged.there} changes are upstream"] if merged.there else []
    notes += [f"{merged.gone} of its changes only took away what {bench.to} does not have there"] if merged.gone else []
    notes += explain_checks(row, bench.to)
    notes += [f"made without {', '.join(map(str, absent))}, which has no diff here that fits"] if absent else []
    word = Rebase.PARTLY_UPSTREAMED if merged.there else Rebase.CLEAN
    return replace(row, result=word, message="; ".join(notes)), changed


def _wait(bench: Bench, row: RebasedPatch, absent: Sequence[PatchId]) -> RebasedPatch:
    """A conflict that may be none once the patches below are there: resolved without them, it would clash with them."""
    names = ", ".join(map(str, absent))
    words = f"it comes after {names}, which {'has' if len(absent) == 1 else 'have'} no diff that fits {bench.to}"
    first = row.id.set if all(id.set == row.id.set for id in absent) else str(absent[-1])
    following = f"patchkit rebase {first} --to {bench.to}"
    return replace(row, message=f"{words} yet, and without that it conflicts", next=following)
