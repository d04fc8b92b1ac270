"""Linting patch folders: everything that is wrong or doubtful in them, found without any environment."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from patchkit.candidates import parse, text_of
from patchkit.catalog import files_of, gather_catalog, read_set_file
from patchkit.errors import DiffError, ExitCode, NoPatchSets, PatchkitError
from patchkit.folders import is_file, is_folder, list_names
from patchkit.inputs import MANIFEST
from patchkit.lints import (
    Finding,
    Lint,
    lint_diff,
    lint_files,
    lint_keywords,
    lint_manifest,
    lint_names,
    lint_order,
    lint_special,
)
from patchkit.patchset import Catalog, Patch, PatchId, PatchSet, Variant
from patchkit.scene import Options, current_folder
from patchkit.wanted import check_operands, list_declared, matches, order_fold, require_known


@dataclass(frozen=True, slots=True)
class LintReport:
    """What `lint` found in how many patch sets."""

    findings: tuple[Finding, ...]
    sets: int
    patches: int

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.PATCH_SET if self.findings else ExitCode.DONE


def lint(options: Options, operands: Sequence[str] = (), ignore: Collection[Lint] = ()) -> LintReport:
    """Look through the patch sets at hand, or those of ``operands`` (``SET`` or ``SET/PATCH``).

    What the loader refuses is a finding as well, so that one broken set does not hide what is wrong with the others.
    Raises `NoPatchSets` where there is none to look at, `UsageError` and `UnknownPatch`.
    """
    check_operands(operands)
    catalog, problems = gather_catalog(options.patches, bundled=options.bundled, cwd=current_folder())
    if not catalog.sets and all(isinstance(problem, NoPatchSets) for problem in problems):
        raise NoPatchSets(f"there is no patch set in {', '.join(catalog.folders)}")
    if not problems:
        require_known(catalog, operands, "lint")
    ids = [id for id in catalog.patches if not operands or any(matches(operand, id) for operand in operands)]
    sets = [found for found in catalog.sets if any(id.set == found.name for id in ids)]
    found = [_from_error(single) for problem in problems for single in problem.all()]
    found += [finding for patch_set in sets for finding in _lint_set(patch_set)]
    found += lint_names(sets)
    found += [] if problems else list(_lint_together(catalog))
    ignored = {each.value for each in ignore}
    wanted = [each for each in found if each.code not in ignored and (each.id is None or each.id in ids)]
    return LintReport(tuple(dict.fromkeys(wanted)), len(sets), len(ids))


def _lint_set(patch_set: PatchSet) -> Iterator[Finding]:
    manifest = f"{patch_set.folder}/{MANIFEST}"
    if is_file(manifest):  # patch files without a manifest have no place for checks, origins, other files
        yield from lint_manifest(patch_set, manifest)
        files = list(_list_files(patch_set.folder))
        special = [file for file in files if not is_file(f"{patch_set.folder}/{file}")]
        yield from lint_files([file for file in files if file not in special], files_of(patch_set), patch_set.folder)
        yield from lint_special(f"{patch_set.folder}/{file}" for file in special)
    for patch in patch_set.patches:
        for variant in patch.variants:
            yield from _lint_variant(patch_set, patch, variant)


def _lint_variant(patch_set: PatchSet, patch: Patch, variant: Variant) -> Iterator[Finding]:
    place = f"{patch_set.folder}/{variant.file}"
    try:
        data = read_set_file(patch_set.folder, variant.file)
        diffs = parse(data, text_of(variant, data), place)
        yield from lint_diff(diffs, patch, place)
        yield from lint_keywords(diffs, patch, f"{patch_set.folder}/{MANIFEST}")
    except PatchkitError as error:
        yield from (_from_error(single, patch.id) for single in error.all())


def _lint_together(catalog: Catalog) -> Iterator[Finding]:
    """What the sets and the project's declarations say of each other."""
    names = {each.name for each in catalog.sets}
    for each in catalog.sets:
        yield from lint_order(each.patches, f"{each.folder}/{MANIFEST}", names)
    try:
        list_declared(catalog)
        order_fold({patch.id: (patch.place, patch.after) for patch in catalog.patches.values()})
    except PatchkitError as error:
        yield from (_from_error(single) for single in error.all())


def _list_files(folder: str, below: str = "") -> Iterator[str]:
    for name in list_names(f"{folder}/{below}"):
        place = f"{folder}/{below}{name}"
        if is_folder(place) and not os.path.islink(place):  # a link may lead round in circles, or anywhere
            yield from _list_files(folder, f"{below}{name}/")
        else:
            yield f"{below}{name}"


def _from_error(error: PatchkitError, id: PatchId | None = None) -> Finding:
    """An error as a finding. Those of diffs know their place; the messages of others begin with it."""
    if isinstance(error, DiffError):
        words = error.message.removeprefix(f"{error.file}:{error.line}: ")
        return Finding(error.code, error.file, words, error.line, id, error.hint)
    file, colon, words = error.message.partition(": ")
    named = colon and "/" in file and " " not in file
    return Finding(error.code, file if named else "", words if named else error.message, 0, id, error.hint)
