"""Patches that are about to be written: made, tried as if they were there, and only then put into the patch folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from patchkit.catalog import find_folders, read_catalog, read_set_file
from patchkit.change import DEFAULTS, Proposal, propose
from patchkit.decision import decide
from patchkit.errors import NoPatchSets, PatchkitError, UsageError, VariantExists
from patchkit.folders import bundled_folder, is_file, is_folder
from patchkit.inputs import MANIFEST
from patchkit.installed import Content, sha256
from patchkit.manifesttext import new_manifest, with_patch, with_variant
from patchkit.model import Notice
from patchkit.outputs import holding, write_folder, write_output
from patchkit.patchset import Catalog, NotNeeded, Patch, PatchId, PatchSet, Provenance, Variant
from patchkit.redraft import add_variant, open_redraft, replace_text
from patchkit.scene import Options, Scene, current_folder
from patchkit.versions import is_just, normalised, range_for, variant_for
from patchkit.wanted import Wanted, want_apply, want_named

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_UNFIT = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 48


@dataclass(frozen=True, slots=True)
class Shelf:
    """The patch sets at hand, and the folder that a new one goes into.

    ``protected`` is a patch folder that is not written to ("": there is none): the one that comes with patchkit.
    """

    catalog: Catalog
    home: str
    protected: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    """What a new variant is made of: its diff, and what is to be said of it.

    ``replaces``: a variant whose range holds the version does not fit it, and gives it up. ``overwrites``: another diff
    of the patch for this very version may go. ``may_go``: digests (sha256) of those that may go in any case: what is
    edited has become that diff before, or it is the one that did not fit.
    """

    id: PatchId
    distribution: str
    version: str
    diff: bytes
    summary: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    after: tuple[PatchId, ...] = ()
    strip: int = 1
    directory: str = ""
    include: tuple[str, ...] = ()
    replaces: bool = False
    overwrites: bool = False
    may_go: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Draft:
    """A patch set as it will be. ``files`` are what is to be written, by absolute path, the manifest last.

    ``version`` is what ``variant`` was made for. ``new``: there is no such patch set yet.
    """

    id: PatchId
    version: str
    patch_set: PatchSet
    variant: Variant
    files: Mapping[str, bytes]
    new: bool = False

    @property
    def patch(self) -> Patch:
        return next(patch for patch in self.patch_set.patches if patch.id == self.id)


def open_shelf(options: Options) -> Shelf:
    """The patch sets at hand; none is no error here. Raises what is wrong with those that are there.

    `UsageError` where ``--bundled`` is all that is said of where patches are.
    """
    cwd = current_folder()
    folders = find_folders(options.patches, bundled=options.bundled, cwd=cwd)
    there = [folder for folder in folders if is_folder(folder)]
    try:
        catalog = read_catalog(there, bundled=False, cwd=cwd) if there else Catalog(folders)
    except NoPatchSets:
        catalog = Catalog(folders)
    protected = bundled_folder() if options.bundled else ""
    if folders[0] == protected:
        words = f"{protected} comes with patchkit, and what is written there is lost with the next installation"
        raise UsageError(words, hint="name a folder of your own with --patches DIR")
    return Shelf(catalog, folders[0], protected)


@contextmanager
def hold_shelf(options: Options) -> Iterator[None]:
    """Keep other authoring commands out of the patch folders, from reading them until the draft is written.

    Raises `Locked`.
    """
    with holding(find_folders(options.patches, bundled=options.bundled, cwd=current_folder())):
        yield


# ---- names ----------------------------------------------------------------------------------------------------


def choose_id(shelf: Shelf, distribution: str, set: str | None, patch: str | None, default: str) -> PatchId:
    """The name of a patch: what was asked for, else the distribution's only set and the first free name.

    Raises `UsageError` for what is not a name.
    """
    for option, name in (("--set", set), ("--patch", patch)):
        if name is not None and not _NAME.fullmatch(name):
            hint = "write letters, digits, '.', '_' and '-', a letter or digit first"
            raise UsageError(f"{option} {name!r} is not a name", hint=hint)
    chosen = set or suggest_set(shelf, distribution)
    found = shelf.catalog.set(chosen)
    taken = {each.id.patch for each in found.patches} if found is not None else frozenset()
    name, number = default, 1
    while name in taken:
        number += 1
        name = f"{default}-{number}"
    return PatchId(chosen, patch or name)


def suggest_set(shelf: Shelf, distribution: str) -> str:
    """The distribution's only patch set with a manifest, else the distribution's name."""
    sets = [each.name for each in shelf.catalog.sets if each.distribution == distribution and _has_manifest(each)]
    return sets[0] if len(sets) == 1 else distribution


def to_name(text: str) -> str:
    """A patch's name out of a sentence: ``Fix the plural of "x"`` gives ``fix-the-plural-of-x``."""
    words = _UNFIT.sub("-", text.lower()).strip("-")
    if len(words) > _LONGEST_NAME:
        words = words[:_LONGEST_NAME].rpartition("-")[0] or words[:_LONGEST_NAME]
    return words


def require_distribution(name: str) -> str:
    """The normalised name of a distribution on the command line. Raises `UsageError`."""
    found = normalised(name)
    if found is None:
        raise UsageError(f"{name!r} is not the name of a distribution", hint="write for example flashinfer-python")
    return found


# ---- making ---------------------------------------------------------------------------------------------------


def make_draft(shelf: Shelf, material: Material) -> Draft:
    """The patch folder's files with ``material`` in them: a new set, patch or variant, or a variant's new text.

    Raises `VariantExists` where the patch has another diff for that version, `UsageError` where the set is of another
    distribution or has no manifest, and `BadManifest` where no entry can be put into it.
    """
    found = shelf.catalog.set(material.id.set)
    if found is None:
        return _new_set(shelf, material)
    patch = next((each for each in found.patches if each.id == material.id), None)
    if material.replaces and patch is not None:
        _require_misfit(found, patch, material)
        redraft, variant = add_variant(open_redraft(shelf.catalog, found), patch.id, material.version, material.diff)
        return Draft(patch.id, material.version, redraft.patch_set, variant, redraft.written)
    _require_fit(shelf, found, material)
    same = None if patch is None else _same_variant(patch, material)
    if same is not None:
        _require_leave(found, same, material)
        redraft = open_redraft(shelf.catalog, found)
        redraft, variant = replace_text(redraft, material.id, material.version, same, material.diff)
        return Draft(material.id, material.version, redraft.patch_set, variant, redraft.written)
    text = read_set_file(found.folder, MANIFEST).decode()
    variant = _new_variant(material, found, patch)
    if patch is None:
        manifest, wanted = with_patch(text, found, _new_patch(material, variant))
    else:
        manifest, wanted = with_variant(text, found, material.id.patch, variant)
    files = {f"{found.folder}/{variant.file}": material.diff, f"{found.folder}/{MANIFEST}": manifest.encode()}
    return Draft(material.id, material.version, wanted, variant, files)


def _new_set(shelf: Shelf, material: Material) -> Draft:
    folder = os.path.join(shelf.home, material.id.set)
    if os.path.exists(os.path.join(shelf.home, MANIFEST)):
        words = f"{shelf.home} is a patch set itself, so the set {material.id.set!r} cannot be made in it"
        raise UsageError(words, hint="name the folder above with --patches DIR, or the set with --set")
    if os.path.isdir(folder) and os.listdir(folder):
        words = f"{folder} is there already and is not a patch set: it has no {MANIFEST}"
        raise UsageError(words, hint="name another set with --set, or move that folder away")
    empty = PatchSet(material.id.set, material.distribution, "", folder, ())
    variant = _new_variant(material, empty, None)
    wanted = replace(empty, patches=(_new_patch(material, variant),))
    files = {f"{folder}/{variant.file}": material.diff, f"{folder}/{MANIFEST}": new_manifest(wanted).encode()}
    return Draft(material.id, material.version, wanted, variant, files, new=True)


def _require_fit(shelf: Shelf, found: PatchSet, material: Material) -> None:
    if os.path.dirname(found.folder) == shelf.protected:
        words = f"the set {found.name!r} comes with patchkit: the next installation replaces what is written there"
        raise UsageError(words, hint="name another set with --set")
    if not _has_manifest(found):
        words = f"the set {found.name!r} is made of patch files without a {MANIFEST}, which name a version each"
        raise UsageError(words, hint="name another set with --set")
    if found.distribution != material.distribution:
        words = f"the set {found.name!r} is for {found.distribution}, not for {material.distribution}"
        raise UsageError(words, hint="name another set with --set")


def _has_manifest(patch_set: PatchSet) -> bool:
    return is_file(os.path.join(patch_set.folder, MANIFEST))


def _same_variant(patch: Patch, material: Material) -> Variant | None:
    """The variant for just this version, whose text is replaced; None: there is none for it."""
    match variant_for(patch, material.version):
        case None:
            return None
        case Variant() as rule if is_just(rule.versions, material.version) and rule == _variant(material, rule):
            return rule
        case Variant() | NotNeeded() as rule:
            raise _held(patch, material, rule)


def _held(patch: Patch, material: Material, rule: Variant | NotNeeded) -> VariantExists:
    match rule:
        case Variant():
            has = f"a variant for {rule.versions} ({rule.file})"
        case NotNeeded():
            has = f"no need of one for {rule.versions} ({rule.why})"
    words = f"{patch.id} has {has} already, which holds {material.distribution} {material.version}"
    return VariantExists(words, hint="name another patch with --patch, or narrow that range by hand first")


def _require_misfit(found: PatchSet, patch: Patch, material: Material) -> None:
    """Raise where a rebased patch was given another diff for the version since, or the word that it needs none."""
    match variant_for(patch, material.version):
        case NotNeeded() as rule:
            raise _held(patch, material, rule)
        case Variant() as rule if is_just(rule.versions, material.version):
            _require_leave(found, rule, material)
        case Variant() as rule if not _may_go(found, rule, material):
            has = f"a variant for {rule.versions} ({rule.file}), which is not the diff that did not fit"
            hint = f"`patchkit commit` has --replace to take {material.version} out of that range"
            raise VariantExists(f"{patch.id} has {has} {material.distribution} {material.version}", hint=hint)


def _may_go(found: PatchSet, variant: Variant, material: Material) -> bool:
    """Whether a diff need not be asked for: somebody said so, or it is the new one, or one that it comes from."""
    there = read_set_file(found.folder, variant.file)
    return material.overwrites or there == material.diff or sha256(there) in material.may_go


def _require_leave(found: PatchSet, variant: Variant, material: Material) -> None:
    """Raise `VariantExists` where a diff would go that nobody said may go."""
    if _may_go(found, variant, material):
        return
    words = (
        f"{material.id} has another diff for {material.distribution} {material.version} already, which would be lost"
    )
    raise VariantExists(
        f"{words}: {found.folder}/{variant.file}",
        hint="name another patch with --patch; `patchkit commit` has --replace to let that diff go",
    )


def _new_variant(material: Material, found: PatchSet, patch: Patch | None) -> Variant:
    taken = {variant.file for patch in found.patches for variant in patch.variants}
    stem = f"{material.id.patch}.{material.version}"
    names = [f"{stem}.patch", *(f"{stem}-{number}.patch" for number in range(2, len(taken) + 3))]
    file = next(name for name in names if name not in taken and not os.path.lexists(f"{found.folder}/{name}"))
    others = patch.ranges if patch is not None else ()
    return _variant(material, Variant(range_for(material.version, others), file))


def _variant(material: Material, like: Variant) -> Variant:
    """What the material makes of a variant with the range and the file of ``like``."""
    return Variant(like.versions, like.file, material.strip, material.directory, material.include)


def _new_patch(material: Material, variant: Variant) -> Patch:
    return Patch(
        id=material.id,
        distribution=material.distribution,
        place=0,
        summary=material.summary,
        after=material.after,
        provenance=material.provenance,
        variants=(variant,),
    )


# ---- trying and writing ---------------------------------------------------------------------------------------


def with_draft(scene: Scene, draft: Draft) -> Scene:
    """The scene as if ``draft`` were in the patch folder already."""
    others = [each for each in scene.catalog.sets if each.name != draft.id.set]
    sets = tuple(sorted((*others, draft.patch_set), key=lambda each: each.name))
    return replace(scene, catalog=replace(scene.catalog, sets=sets), drafts=draft.files)


def try_draft(scene: Scene, draft: Draft, wanted: Wanted | None = None) -> Proposal:
    """What applying the draft alone would come to; writes nothing."""
    drafted = with_draft(scene, draft)
    alone = wanted or want_named(drafted.catalog, drafted.ledger, [str(draft.id)], "check")
    return propose(drafted, alone, DEFAULTS)


def find_clash(scene: Scene, draft: Draft) -> tuple[Notice, ...]:
    """A warning where the draft fits alone and not together with what is declared and applied: `apply` would refuse."""
    drafted = with_draft(scene, draft)
    try:
        verdict = decide(drafted, want_apply(drafted.catalog, drafted.ledger)).verdicts.get(draft.id)
    except PatchkitError:
        return ()  # something else is wrong with the patch sets, and whoever applies them is told
    if verdict is None or verdict.fits or verdict.problem is None:
        return ()
    words = f"a bare `patchkit apply` will refuse: {verdict.problem.message}"
    return (
        Notice(
            "clash",
            f"{words}; apply the other patch first, then `patchkit edit {draft.patch_set.distribution} --on-top`",
        ),
    )


def write_draft(draft: Draft) -> None:
    """Put ``draft`` into the patch folder; the diff first, so that the manifest names nothing that is not there.

    Raises what `write_output` and `write_folder` raise.
    """
    if draft.new:
        files = {os.path.basename(path): Content(data, 0o644) for path, data in draft.files.items()}
        write_folder(draft.patch_set.folder, files)
        return
    for path, data in draft.files.items():
        write_output(path, data)
