"""A patch set that is being changed: its manifest and diffs as they will be, tried before they are written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from patchkit.catalog import read_set_file
from patchkit.errors import BadManifest
from patchkit.inputs import MANIFEST
from patchkit.manifesttext import with_file, with_range, with_variant
from patchkit.patchset import Catalog, Patch, PatchId, PatchSet, Variant
from patchkit.versions import common_version, contains, is_just, range_for, specifier_trouble


@dataclass(frozen=True, slots=True)
class Redraft:
    """The patch set as it will be. ``text`` is its manifest (None: it is made of patch files without one).

    ``files`` are what is to be written, by absolute path; the manifest is none of them.
    """

    catalog: Catalog
    patch_set: PatchSet
    text: str | None
    files: Mapping[str, bytes] = field(default_factory=dict)

    def patch(self, id: PatchId) -> Patch:
        return next(patch for patch in self.patch_set.patches if patch.id == id)

    @property
    def written(self) -> Mapping[str, bytes]:
        """All that is to be written and is not there yet; the manifest last: it names nothing that is absent."""
        manifest = {} if self.text is None else {os.path.join(self.patch_set.folder, MANIFEST): self.text.encode()}
        return {path: data for path, data in {**self.files, **manifest}.items() if not self._has(path, data)}

    def _has(self, path: str, data: bytes) -> bool:
        return (
            os.path.isfile(path)
            and read_set_file(self.patch_set.folder, os.path.relpath(path, self.patch_set.folder)) == data
        )


def open_redraft(catalog: Catalog, patch_set: PatchSet) -> Redraft:
    """The patch set as it is."""
    has_manifest = os.path.isfile(os.path.join(patch_set.folder, MANIFEST))
    text = read_set_file(patch_set.folder, MANIFEST).decode() if has_manifest else None
    return Redraft(catalog, patch_set, text)


def may_widen(draft: Redraft, id: PatchId, variant: Variant, versions: str) -> bool:
    """Whether a variant may have the range ``versions``: there is a manifest, and no other range meets it."""
    patch = draft.patch(id)
    others = [each for each in patch.ranges if each != variant.versions]
    return draft.text is not None and not any(common_version(versions, other) for other in others)


def widen(draft: Redraft, id: PatchId, variant: Variant, versions: str) -> Redraft:
    """Another range for a variant. Raises `BadManifest` where the manifest is written in a way that hides it."""
    assert draft.text is not None
    text, patch_set = with_range(draft.text, draft.patch_set, id.patch, variant, versions)
    return _with(draft, patch_set, text)


def add_variant(draft: Redraft, id: PatchId, version: str, diff: bytes) -> tuple[Redraft, Variant]:
    """A variant with a diff of its own for just ``version``; the one whose range held it so far no longer does.

    Raises `BadManifest` where the manifest is written in a way that no entry can be put into.
    """
    draft = _free(draft, id, version)
    taken = next((each for each in draft.patch(id).variants if is_just(each.versions, version)), None)
    if taken is not None:
        return replace_text(draft, id, version, taken, diff, plain=True)
    if draft.text is None:
        file = f"{draft.patch_set.distribution}=={version}.patch"
    else:
        file = _free_name(draft, f"{id.patch}.{version}")
    variant = Variant(_range_for(draft, id, version), file)
    return _add(replace(draft, files={**draft.files, _place(draft, variant): diff}), id, variant), variant


def repeat_variant(draft: Redraft, id: PatchId, version: str, like: Variant) -> tuple[Redraft, Variant]:
    """The diff of ``like`` for one version more, in an entry (or, without a manifest, a file) of its own."""
    if draft.text is None:
        return add_variant(draft, id, version, read_set_file(draft.patch_set.folder, like.file))
    variant = replace(like, versions=_range_for(draft, id, version))
    return _add(draft, id, variant), variant


def _range_for(draft: Redraft, id: PatchId, version: str) -> str:
    return range_for(version, draft.patch(id).ranges) if draft.text is not None else f"=={version}"


def _add(draft: Redraft, id: PatchId, variant: Variant) -> Redraft:
    if draft.text is not None:
        text, patch_set = with_variant(draft.text, draft.patch_set, id.patch, variant)
        return _with(draft, patch_set, text)
    patch = draft.patch(id)
    for other in patch.variants:
        if common := common_version(other.versions, variant.versions):
            words = f"{draft.patch_set.folder}: {other.file} is for {common} too, as {variant.file} would be"
            raise BadManifest(words, hint=f"write a {MANIFEST}, whose ranges can leave versions out")
    patch = replace(patch, variants=(*patch.variants, variant))
    patches = tuple(patch if each.id == id else each for each in draft.patch_set.patches)
    return _with(draft, replace(draft.patch_set, patches=patches), None)


def _free(draft: Redraft, id: PatchId, version: str) -> Redraft:
    """Take ``version`` out of the range that holds it, unless it is the only one in it."""
    for variant in draft.patch(id).variants:
        narrowed = f"{variant.versions},!={version}"
        if draft.text is not None and contains(variant.versions, version) and not specifier_trouble(narrowed):
            return widen(draft, id, variant, narrowed)
    return draft


def replace_text(
    draft: Redraft, id: PatchId, version: str, variant: Variant, diff: bytes, *, plain: bool = False
) -> tuple[Redraft, Variant]:
    """A new diff for the variant of ``version``, and what that is then: with a file of its own where it shared one.

    With ``plain``, the diff has the paths of the distribution, so nothing of it is dropped or left out. Raises
    `BadManifest` where the entry cannot say so.
    """
    if plain and (variant.strip, variant.directory, variant.include, variant.exclude) != (1, "", (), ()):
        words = f"{draft.patch_set.folder}: the variant for {variant.versions} ({variant.file}) does not fit"
        raise BadManifest(words, hint="remove its entry, and run this again")
    sharing = [each for patch in draft.patch_set.patches for each in patch.variants if each.file == variant.file]
    if len(sharing) > 1 and draft.text is not None and read_set_file(draft.patch_set.folder, variant.file) != diff:
        own = replace(variant, file=_free_name(draft, f"{id.patch}.{version}"))
        text, patch_set = with_file(draft.text, draft.patch_set, id.patch, variant, own.file)
        draft, variant = _with(draft, patch_set, text), own
    return replace(draft, files={**draft.files, _place(draft, variant): diff}), variant


def _place(draft: Redraft, variant: Variant) -> str:
    return os.path.join(draft.patch_set.folder, variant.file)


def _free_name(draft: Redraft, stem: str) -> str:
    taken = {variant.file for patch in draft.patch_set.patches for variant in patch.variants}
    names = [f"{stem}.patch", *(f"{stem}-{number}.patch" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken and not os.path.lexists(f"{draft.patch_set.folder}/{name}"))


def _with(draft: Redraft, patch_set: PatchSet, text: str | None) -> Redraft:
    sets = tuple(patch_set if each.name == patch_set.name else each for each in draft.catalog.sets)
    return Redraft(replace(draft.catalog, sets=sets), patch_set, text, draft.files)
