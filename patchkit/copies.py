"""Copies of shipped files, in a work folder, to be edited there: the command `edit`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patchkit.applied import LedgerFile
from patchkit.authored import WorkReport
from patchkit.authoring import open_workplace
from patchkit.bounds import refuse_kind
from patchkit.catalog import find_folders
from patchkit.difference import is_binary
from patchkit.drafts import Shelf, require_distribution, suggest_set
from patchkit.errors import NoPatchSets, PatchkitError, Unpatchable, UsageError, raise_all
from patchkit.installed import Content, sha256
from patchkit.model import Notice
from patchkit.origins import Source, find_below, read_intended, read_pristine, require_ownership
from patchkit.patchset import PatchId
from patchkit.report import Report
from patchkit.scene import CatalogNeed, Options, Scene, current_folder, open_catalog, read_steadily
from patchkit.site import observe, read_head
from patchkit.survey import Ownership
from patchkit.symbols import module_paths
from patchkit.workfolder import HOME, Work, free_folder, write_work

_DOTTED = re.compile(r"\w+(?:\.\w+)*")


@dataclass(frozen=True, slots=True)
class EditOptions:
    """How `edit` goes about it. ``into`` is the work folder ("": a new one in `HOME`).

    ``on_top``: the files are copied with the applied patches in them, for a patch that comes after these.
    """

    into: str = ""
    on_top: bool = False
    source: Source = field(default_factory=Source)


@dataclass(frozen=True, slots=True)
class _Copies:
    """The files that are copied into a work folder, and the patches whose text is in them."""

    scene: Scene
    own: Ownership
    files: Mapping[str, Content]
    below: tuple[PatchId, ...]
    notices: tuple[Notice, ...]


def edit(options: Options, distribution: str, files: Sequence[str], how: EditOptions) -> WorkReport:
    """Copy files of an installed distribution, as shipped, into a new work folder; all text files where none is named.

    Raises `UsageError` for a file that the distribution does not have, `Unpatchable` for one that no patch may touch,
    and `NoPristineBytes` where a file was edited in place and its shipped bytes are nowhere.
    """
    name = require_distribution(distribution)
    catalog, notices = open_catalog(options, CatalogNeed.OPTIONAL)
    notices = tuple(notice for notice in notices if notice.code != NoPatchSets.code)  # the first is about to be made
    copies = read_steadily(lambda: open_workplace(options, catalog, name), lambda scene: _copy(scene, name, files, how))
    version = copies.own.distribution.version
    folder = os.path.abspath(how.into or free_folder(os.path.join(current_folder(), HOME), f"{name}-{version}"))
    _refuse_inside(copies.scene.root, folder)
    homes = find_folders(options.patches, bundled=False, cwd=current_folder())
    work = Work(
        name,
        version,
        copies.files,
        tuple(sorted(copies.own.folders)),
        after=copies.below,
        patches=tuple(map(os.path.abspath, homes)),
        find_links=tuple(map(os.path.abspath, how.source.folders)),
    )
    write_work(folder, work)
    report = Report(
        "edit", copies.scene.root, copies.scene.environment.python, notices=(*notices, *copies.notices), wrote=True
    )
    short = os.path.relpath(folder)
    words = ["patchkit", "commit", folder if short.startswith("..") else short]
    words += ["--set", suggest_set(Shelf(catalog, ""), name), "--patch", "NAME"]
    return WorkReport(report, name, version, folder, tuple(copies.files), shlex.join(words), copies.below)


def _refuse_inside(root: str, folder: str) -> None:
    inside = os.path.realpath(root)
    if os.path.commonpath((inside, os.path.realpath(folder))) == inside:
        words = f"{folder} is inside {root}, where only what is installed belongs"
        raise UsageError(words, hint="name a work folder elsewhere with --into DIR")


def _copy(scene: Scene, name: str, files: Sequence[str], how: EditOptions) -> _Copies:
    own = require_ownership(scene, name)
    present = _list_present(scene, own, on_top=how.on_top)
    named = _choose_files(scene, own, present, files) if files else dict.fromkeys(_list_texts(scene, present), False)
    paths = [*named]
    _refuse_kinds(paths)
    below = tuple(applied.id for applied in find_below(scene, paths))
    if how.on_top:
        found, below = read_intended(scene, own, paths, how.source)
    else:
        found = read_pristine(scene, own, paths, how.source)
    kept = {path: content for path, content in found.items() if content is not None}
    _refuse_files(own, [path for path in paths if named[path]], kept, on_top=how.on_top)
    notices = tuple(_mention(scene, kept, below, how))
    return _Copies(scene, own, kept, below if how.on_top else (), notices)


def _mention(scene: Scene, kept: Mapping[str, Content], below: Sequence[PatchId], how: EditOptions) -> Iterator[Notice]:
    if below and not how.on_top:
        patched = [file.path for file in scene.ledger.files if file.path in kept and file.patches]
        which = "these files are" if len(patched) in (0, len(kept)) else _name_some(patched)
        words = f"{which} patched by {', '.join(map(str, below))}, and the copies are as shipped"
        yield Notice("patched-files", f"{words}; --on-top copies them with these patches in them")
    observed = observe(scene.root, kept)
    state = "with the patches and without the edit" if how.on_top else "as shipped"
    for path, content in kept.items():
        there = observed[path].content
        entry = scene.ledger.file(path)
        stamps = (entry.written, entry.base) if entry is not None else ()
        expected = {sha256(content.data), *(stamp.sha256 for stamp in stamps if stamp is not None)}
        if there is not None and sha256(there.data) not in expected:
            words = f"{path} was edited in place, and the copy is {state}"
            yield Notice("edited-in-place", f"{words}; `patchkit capture` makes a patch of such an edit")


def _name_some(paths: Sequence[str]) -> str:
    """The first of ``paths`` and how many more there are, with the verb."""
    if len(paths) < 2:
        return f"{', '.join(paths)} is"
    more = f" and {len(paths) - 3} more files" if len(paths) > 3 else ""
    return f"{', '.join(paths[:3])}{more} are"


def _list_present(scene: Scene, own: Ownership, *, on_top: bool) -> list[str]:
    """The files that a distribution shipped; ``on_top`` also those that patches created."""
    return [*dict.fromkeys((*own.rows, *(file.path for file in _list_patched(scene, own) if on_top)))]


def _list_patched(scene: Scene, own: Ownership) -> Iterator[LedgerFile]:
    return (file for file in scene.ledger.files if file.distribution == own.distribution.name)


def _list_texts(scene: Scene, present: Sequence[str]) -> list[str]:
    """Those of ``present`` that a patch may touch and that are text."""
    return [
        path for path in present if not refuse_kind(path) and not is_binary(read_head(os.path.join(scene.root, path)))
    ]


def _choose_files(scene: Scene, own: Ownership, present: Sequence[str], names: Sequence[str]) -> dict[str, bool]:
    """The files that ``names`` mean, and whether each is named by itself; such a one need not be among ``present``."""
    known = dict.fromkeys((*own.rows, *(file.path for file in _list_patched(scene, own))))
    found: dict[str, bool] = {}
    problems: list[PatchkitError] = []
    for name in names:
        paths = dict(_find_files(scene, known, present, name))
        if not paths:
            problems.append(_explain_unknown(scene, own, known, name))
        found |= {path: named or found.get(path, False) for path, named in paths.items()}
    raise_all(problems)
    return found


def _find_files(
    scene: Scene, known: Mapping[str, None], present: Sequence[str], name: str
) -> Iterator[tuple[str, bool]]:
    """What a word on the command line stands for: a path, a folder's files, or a module by its dotted name.

    The second value tells whether it is the name of this one file.
    """
    path = os.path.relpath(name, scene.root) if os.path.isabs(name) else os.path.normpath(name)
    path = path.replace(os.sep, "/")
    if path in known:
        yield path, True
        return
    inside = [each for each in present if each.startswith(f"{path}/")]
    if inside:
        yield from ((each, False) for each in _list_texts(scene, inside))
    elif _DOTTED.fullmatch(name):
        yield from ((each, True) for each in module_paths(name) if each in known)


def _explain_unknown(scene: Scene, own: Ownership, known: Mapping[str, None], name: str) -> UsageError:
    from difflib import get_close_matches

    dist = own.distribution
    if os.path.isfile(os.path.join(scene.root, name)):
        words = f"{name} is there, and RECORD of {dist.name} {dist.version} has no row for it: no patch may touch it"
        return UsageError(words, hint=f"`pip install --force-reinstall --no-deps {dist.name}=={dist.version}` may help")

    close = get_close_matches(name, [path for path in known if not refuse_kind(path)], n=1)
    words = f"{dist.name} {dist.version} has no file {name!r}"
    ways = "name it as RECORD does, such as some_dist/module.py; a new file is simply made in the work folder"
    return UsageError(words, hint=f"did you mean {close[0]!r}?" if close else ways)


def _refuse_kinds(paths: Sequence[str]) -> None:
    """Raise for files that no patch may touch, before their shipped bytes are looked for."""
    hint = "leave it out; without FILE all text files are copied that a patch may touch"
    raise_all([Unpatchable(words, hint=hint) for path in paths if (words := refuse_kind(path))])


def _refuse_files(own: Ownership, paths: Sequence[str], kept: Mapping[str, Content], *, on_top: bool) -> None:
    """Raise for those of ``paths``, which were named one by one, that cannot be copied or are not text."""
    problems: list[PatchkitError] = []
    for path in paths:
        if path not in kept and on_top:
            words = f"{path} is not there with the applied patches in place: one of them deletes or renames it"
            problems.append(UsageError(words, hint="name another file, or copy this one as shipped, without --on-top"))
        elif path not in kept:
            words = f"{path} is no file that {own.distribution.name} shipped: an applied patch creates it"
            problems.append(UsageError(words, hint="--on-top copies it as the patches left it"))
        elif is_binary(kept[path].data):
            problems.append(Unpatchable(f"{path} is a binary file; only text can be patched"))
    raise_all(problems)
