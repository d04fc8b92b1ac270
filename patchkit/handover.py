"""What a merge leaves to a person: a work folder with the whole patch in it, conflicts between markers."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace

from patchkit.bench import Bench
from patchkit.catalog import read_set_file
from patchkit.difference import changed_paths
from patchkit.installed import sha256
from patchkit.patchset import Patch, Variant
from patchkit.rebased import RebasedPatch, Step
from patchkit.record import top_level_folders
from patchkit.scene import current_folder
from patchkit.treemerge import FileMerge, TreeMerge
from patchkit.versions import variant_for
from patchkit.workfolder import HOME, Work, free_folder


def hand_over(bench: Bench, patch: Patch, merged: TreeMerge, row: RebasedPatch, doubt: str) -> RebasedPatch:
    """``row`` with a work folder for `patchkit commit`, which is made when the bench writes.

    None is needed where nothing is left to be committed: then only the doubt is told.
    """
    words = "; ".join(filter(None, [*(_tell(file) for file in merged.files if not file.clean), doubt]))
    if merged.clean and not changed_paths(merged.before, merged.after):
        return replace(row, message=words)
    kept = {path: content for path, content in merged.before.items() if content is not None}
    files = {path: content for path, content in merged.after.items() if content is not None}
    folder = free_folder(os.path.join(current_folder(), HOME), f"{patch.id.set}-{patch.id.patch}-{bench.to}")
    work = Work(
        bench.target.distribution,
        bench.to,
        kept,
        tuple(sorted(top_level_folders(bench.pristine(bench.target).rows))),
        patch.id.set,
        patch.id.patch,
        rebased=True,
        replaces=_digest_of_misfit(bench, patch),
        patches=tuple(map(os.path.abspath, bench.homes)),
        find_links=tuple(map(os.path.abspath, bench.how.source.folders)),
    )
    bench.works.append((folder, work, files))
    following = shlex.join(["patchkit", "commit", os.path.relpath(folder)])
    return replace(row, step=Step.WORK_FOLDER, folder=folder, message=words, next=following)


def _tell(file: FileMerge) -> str:
    if file.problem:
        return f"{file.path}: {file.problem}"
    return f"{file.path}: {file.conflicts} conflict{'s' if file.conflicts > 1 else ''}"


def _digest_of_misfit(bench: Bench, patch: Patch) -> str:
    """The diff that the patch set has for this version, and that does not fit: it may go. "" where it has none."""
    rule = variant_for(patch, bench.to)
    return sha256(read_set_file(bench.folder, rule.file)) if isinstance(rule, Variant) else ""
