"""What was edited in place: a distribution's files held against its RECORD and what patchkit wrote. Reads only."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patchkit.bounds import refuse_kind
from patchkit.errors import NotInstalled, PatchkitError, Unpatchable, raise_all
from patchkit.examination import Progress
from patchkit.installed import Content, Digest, Stamp, is_same
from patchkit.noise import is_noise
from patchkit.paths import matches
from patchkit.record import read_record
from patchkit.scene import Scene
from patchkit.site import has_digest, observe, read_plain, walk_folder
from patchkit.survey import Ownership
from patchkit.workfolder import refuse_special

EXCLUDED = "excluded"
UNLISTED = "shipped, and RECORD has no row for it"
NOISE = "left behind by a program"
BEYOND = "edited, and no patch may touch it"
_STEP = 200  # files between two reports of progress
_COMPILED = (".pyc", ".pyo")

Intended = Digest | Stamp | None  # by RECORD, by the ledger, or: there should be no file


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user said of files: globs of those that are no part of the edit, and of stray ones that are."""

    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edits:
    """The edited files as they are (None: deleted), and those that are left out, each with the reason.

    ``unseen`` are files without a digest in RECORD: nothing shows whether they were edited. Left out are also ``stray``
    files, which are nobody's, in folders that several distributions share, and ``beyond``: edited ones that no patch
    may touch, such as scripts. ``linked`` are edited files that an installer made links into its ``archive``.
    ``idle`` are the globs of `Chosen` that match no file that differs.
    """

    files: Mapping[str, Content | None] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    stray: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    archive: str = ""
    idle: Chosen = field(default_factory=Chosen)


@dataclass(frozen=True, slots=True)
class Shipped:
    """What the wheels of a release tell: its files with their executable bits, and their contents when asked."""

    modes: Mapping[str, bool] = field(default_factory=dict)
    read: Callable[[Iterable[str]], Mapping[str, Content]] = lambda paths: {}


def find_edits(
    scene: Scene,
    own: Ownership,
    chosen: Chosen,
    progress: Progress,
    shipped: Shipped,
    undone: Collection[str] = (),
) -> Edits:
    """All that differs from what should be installed, but for what was chosen to be left out.

    ``shipped`` is what a wheel tells beside RECORD: executable bits, and files that RECORD has no row for. ``undone``
    are patched files that are as shipped again, which is no edit. Raises `Unpatchable` for what is no plain file any
    more and for a file without a row that was edited, `NotInstalled` where most of the files are gone.
    """
    intended = _list_intended(scene, own, undone)
    changed = list(_find_changed(scene.root, intended, shipped.modes, progress))
    added, stray = _find_added(scene, own, intended, chosen)
    left_out = {path: NOISE for path in added if is_noise(path)}
    left_out |= {path: EXCLUDED for path in (*changed, *added, *stray) if _is_any(path, chosen.exclude)}
    strays = tuple(path for path in stray if path not in left_out)
    left_out |= {path: f"nobody's, in a shared folder: --include {shlex.quote(path)} takes it" for path in strays}
    unlisted = [path for path in added if path in shipped.modes and path not in left_out]
    left_out |= dict.fromkeys(_pass_over(scene, own, unlisted, shipped), UNLISTED)
    beyond = tuple(_find_beyond(scene.root, own))
    left_out |= {path: EXCLUDED if _is_any(path, chosen.exclude) else BEYOND for path in beyond}
    archive = _find_archive(scene.root, own)
    files, linked = _read(scene.root, [path for path in (*changed, *added) if path not in left_out], archive)
    _refuse_ruin(own, [path for path in files if files[path] is None], len(intended))
    idle = _find_idle(chosen, (*changed, *beyond), (*added, *stray))
    shown = {path: why for path, why in left_out.items() if not path.endswith(_COMPILED)}
    beyond = tuple(path for path in beyond if left_out[path] == BEYOND)
    return Edits(files, shown, tuple(_find_unrecorded(own, intended)), strays, beyond, linked, archive, idle)


def _find_idle(chosen: Chosen, changed: Iterable[str], new: Sequence[str]) -> Chosen:
    """The globs that match nothing: none of what was edited, or none of the new files."""
    whole = (*changed, *new)
    exclude = tuple(glob for glob in chosen.exclude if not any(matches(path, glob) for path in whole))
    return Chosen(exclude, tuple(glob for glob in chosen.include if not any(matches(path, glob) for path in new)))


def _is_any(path: str, globs: Iterable[str]) -> bool:
    return any(matches(path, glob) for glob in globs)


def _pass_over(scene: Scene, own: Ownership, unlisted: Sequence[str], shipped: Shipped) -> Sequence[str]:
    """The files that RECORD has no row for, if they are as the wheel has them: else no patch could be made of them."""
    contents = shipped.read(unlisted) if unlisted else {}
    edited = [
        path for path, found in observe(scene.root, unlisted).items() if not is_same(found.content, contents[path])
    ]
    anew = f"`pip install --force-reinstall --no-deps {own.distribution.name}=={own.distribution.version}`"
    raise_all(
        [
            Unpatchable(
                f"{path} was edited, and RECORD has no row for it although the wheel ships it: no patch may touch it",
                hint=f"{anew} writes RECORD anew; --exclude {shlex.quote(path)} leaves it out",
            )
            for path in edited
        ]
    )
    return unlisted


def _list_intended(scene: Scene, own: Ownership, undone: Collection[str]) -> dict[str, Intended]:
    found: dict[str, Intended] = {
        path: row.digest for path, row in own.rows.items() if row.digest is not None and not refuse_kind(path)
    }
    ours = [file for file in scene.ledger.files if file.distribution == own.distribution.name]
    return found | {file.path: file.written for file in ours if file.path not in undone}


def _find_unrecorded(own: Ownership, intended: Mapping[str, Intended]) -> Iterator[str]:
    for path, row in own.rows.items():
        if row.digest is None and path not in intended and not refuse_kind(path):
            yield path


def _find_beyond(root: str, own: Ownership) -> Iterator[str]:
    """The files that are not as RECORD has them and that no patch may touch. Some installers put a script elsewhere."""
    for path, row in own.rows.items():
        if row.digest is not None and not path.endswith(_COMPILED) and refuse_kind(path):
            full = os.path.join(root, path)
            if os.path.isfile(full) and not has_digest(full, row.digest):
                yield path


def _find_changed(
    root: str, intended: Mapping[str, Intended], modes: Mapping[str, bool], progress: Progress
) -> Iterator[str]:
    for number, (path, wanted) in enumerate(sorted(intended.items())):
        if number % _STEP == 0:
            progress("comparing", number, len(intended))
        if not _is_as_intended(os.path.join(root, path), wanted, modes.get(path)):
            yield path


def _is_as_intended(full: str, wanted: Intended, executable: bool | None) -> bool:
    match wanted:
        case None:
            return not os.path.lexists(full)
        case Digest():
            return has_digest(full, wanted) and executable in (None, bool(os.stat(full).st_mode & 0o100))
        case Stamp():
            content = read_plain(full)
            found = None if content is None else Stamp.of(content)
            return found is not None and (found.sha256, found.executable) == (wanted.sha256, wanted.executable)


def _find_archive(root: str, own: Ownership) -> str:
    """The folder of the installer's cache that the distribution is linked from, file by file; "" where it is not.

    uv does so with ``--link-mode symlink``; RECORD is a file of its own, METADATA a link as all that the wheel has.
    """
    metadata = f"{own.distribution.dist_info}/METADATA"
    full = os.path.join(root, metadata)
    real = os.path.realpath(full)
    return real.removesuffix(f"/{metadata}") if os.path.islink(full) and real.endswith(f"/{metadata}") else ""


def _read(root: str, paths: Iterable[str], archive: str) -> tuple[dict[str, Content | None], tuple[str, ...]]:
    """The files as they are, and those that are links into ``archive``. Raises `Unpatchable` for other links."""
    files: dict[str, Content | None] = {}
    linked: list[str] = []
    problems: list[PatchkitError] = []
    for path, found in observe(root, paths).items():
        full = os.path.join(root, path)
        if archive and found.link is not None and os.path.realpath(full) == f"{archive}/{path}" and not found.obstacle:
            linked.append(path)
        elif found.link is not None or found.obstacle:
            problems.append(refuse_special(path, full))
        files[path] = found.content
    raise_all(problems)
    return files, tuple(linked)


def _refuse_ruin(own: Ownership, missing: Sequence[str], count: int) -> None:
    """A distribution of which most is gone was not edited: its installation is broken."""
    if len(missing) * 2 > count:
        name, version = own.distribution.name, own.distribution.version
        words = f"{len(missing)} of {count} files of {name} {version} are missing, {missing[0]} among them"
        hint = f"its installation is broken: `pip install --force-reinstall --no-deps {name}=={version}`"
        raise NotInstalled(words, hint=hint)


# ---- files that nobody shipped --------------------------------------------------------------------------------


def _find_added(
    scene: Scene, own: Ownership, intended: Mapping[str, Intended], chosen: Chosen
) -> tuple[list[str], list[str]]:
    """The files that no distribution has in its RECORD: those in the distribution's own folders, and stray ones.

    A folder counts as its own where a file of it lies directly in it or in one above: in a namespace that several
    distributions share, what lies beside their folders is nobody's, unless the user says otherwise.
    """
    homes = {os.path.dirname(path) for path in own.rows}
    walked = (path for folder in sorted(own.folders) for path in _walk(scene.root, folder))
    found = [path for path in walked if path not in own.rows and path not in intended]
    others = _list_others(scene, own) if found else frozenset()
    added: list[str] = []
    stray: list[str] = []
    for path in found:
        if path not in others:
            taken = _is_inside(path, homes) or _is_any(path, chosen.include)
            (added if taken else stray).append(path)
    return added, [path for path in stray if not is_noise(path)]


def _is_inside(path: str, homes: set[str]) -> bool:
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in homes:
            return True
    return False


def _walk(root: str, folder: str) -> Iterator[str]:
    for place, folders, files in walk_folder(os.path.join(root, folder)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        here = os.path.relpath(place, root).replace(os.sep, "/")
        linked = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (f"{here}/{name}" for name in sorted((*files, *linked)))


def _list_others(scene: Scene, own: Ownership) -> frozenset[str]:
    """All that the other distributions of the site root have in their RECORDs."""
    found: set[str] = set()
    for folders in scene.listing.folders.values():
        for folder in folders:
            content = read_plain(os.path.join(scene.root, folder, "RECORD"))
            if folder != own.distribution.dist_info and content is not None:
                found.update(read_record(content.data, path=f"{folder}/RECORD"))
    return frozenset(found)
