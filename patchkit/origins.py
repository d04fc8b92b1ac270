"""The bytes that a distribution shipped, and what should be installed of it now: from the disk, the store, or a wheel.

Nothing is taken on trust: bytes count as shipped when their digest is the one in RECORD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchkit.applied import Applied
from patchkit.bases import Base, Facts, as_shipped, find_bases
from patchkit.candidates import parse, read_kept_diff
from patchkit.edits import Shipped
from patchkit.errors import (
    ForeignFile,
    MissingExtra,
    NoPristineBytes,
    NoRelease,
    NotInstalled,
    NoWheel,
    PatchkitError,
    raise_all,
)
from patchkit.fold import Layer, Tree, fold
from patchkit.installed import Content, FileState, sha256
from patchkit.model import ForeignPolicy
from patchkit.patchset import PatchId
from patchkit.scene import Scene
from patchkit.site import find_distribution, observe, read_plain
from patchkit.survey import Ownership, gather_facts, read_ownership
from patchkit.wheel import read_members, read_modes


@dataclass(frozen=True, slots=True)
class Source:
    """Where shipped bytes come from that are not at hand: the ``wheels`` that the user named, else the release's own.

    That is looked for in ``folders``, else on the index, and only when bytes lack.
    """

    wheels: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def require_ownership(scene: Scene, name: str) -> Ownership:
    """The RECORD of the distribution ``name``. Raises `NotInstalled`, and what `find_distribution` raises."""
    found = find_distribution(scene.listing, name, scene.environment)
    if found is None:
        hint = "install it first, or name the environment with --python PATH or --site-packages DIR"
        raise NotInstalled(f"{name} is not installed in {scene.root}", hint=hint)
    return read_ownership(found, scene.ledger)


def read_pristine(scene: Scene, own: Ownership, paths: Iterable[str], source: Source) -> dict[str, Content | None]:
    """What the distribution shipped at each of ``paths``; None where it has no such file.

    Of modes, a wheel tells the executable bit where one is at hand; else it is that of the disk. Raises
    `NoPristineBytes` for every file whose shipped bytes are nowhere, and what finding a wheel raises.
    """
    wanted = dict.fromkeys(paths, own.distribution.name)
    owners = {own.distribution.name: own}
    wheels = find_wheels(scene, own, source)
    facts = gather_facts(scene, wanted, owners, wheels)
    bases = _find(facts)
    if not source.wheels and any(isinstance(base.problem, NoPristineBytes) for base in bases.values()):
        wheels = wheels or (_find_wheel(scene, own, source.folders),)
        facts = gather_facts(scene, wanted, owners, wheels)
        bases = _find(facts)
        _refuse_other_build(own, bases, wheels[0])
    raise_all([base.problem for base in bases.values() if base.problem is not None])
    return {
        path: as_shipped(facts[path]) if base.state is FileState.PRISTINE else base.content
        for path, base in bases.items()
    }


def find_wheels(scene: Scene, own: Ownership, source: Source) -> tuple[str, ...]:
    """The wheels that the user named, else that of the release in the folders of ``source``, where it is there."""
    if source.wheels or not source.folders:
        return source.wheels
    try:
        return (_find_wheel(scene, own, source.folders),)
    except (NoRelease, NoWheel, MissingExtra):
        return ()


def find_shipped(scene: Scene, own: Ownership, source: Source) -> Shipped:
    """What a wheel at hand tells of the shipped files; nothing where there is none. Raises `WrongWheel`.

    Some installers give no file an executable bit: where none has one, it was not taken away.
    """
    wheels, name = find_wheels(scene, own, source), own.distribution.name
    modes = read_modes(wheels, own.distribution)
    executable = [path for path, mode in modes.items() if mode]
    contents = [found.content for found in observe(scene.root, executable).values()]
    if len(executable) > 1 and not any(content is not None and content.executable for content in contents):
        modes = dict.fromkeys(modes, False)
    return Shipped(modes, lambda paths: read_members(wheels, [own.distribution], {name: [*paths]}))


def peek_pristine(scene: Scene, own: Ownership, path: str) -> bytes | None:
    """What is at ``path``, as shipped where that is at hand; None where there is no such file."""
    [facts] = gather_facts(scene, {path: own.distribution.name}, {own.distribution.name: own}, ()).values()
    [base] = _find({path: facts}).values()
    content = facts.content if base.problem is not None else base.content
    return None if content is None else content.data


def _find_wheel(scene: Scene, own: Ownership, folders: Sequence[str]) -> str:
    """The wheel of what is installed, from ``folders`` or by the user's own configuration of pip or uv."""
    from patchkit.releases import find_wheel  # brings what speaks to an index with it

    dist = own.distribution
    return str(find_wheel(dist.name, dist.version, find_links=folders, tags=_tags(scene, own)))


def _find(facts: Mapping[str, Facts]) -> dict[str, Base]:
    return find_bases(facts, (), ForeignPolicy.DISCARD)


def _refuse_other_build(own: Ownership, bases: Mapping[str, Base], wheel: str) -> None:
    dist = own.distribution
    raise_all(
        [
            NoPristineBytes(
                f"{path}: {wheel} has other bytes than RECORD says that {dist.name} {dist.version} shipped",
                hint="another build was installed: give its wheel with --wheel FILE",
            )
            for path, base in bases.items()
            if isinstance(base.problem, NoPristineBytes)
        ]
    )


def _tags(scene: Scene, own: Ownership) -> frozenset[str]:
    """What the installed wheel was built for, by its WHEEL file (PEP 427)."""
    notes = read_plain(f"{scene.root}/{own.distribution.dist_info}/WHEEL")
    lines = notes.data.decode("utf-8", "replace").splitlines() if notes is not None else []
    return frozenset(line.partition(":")[2].strip() for line in lines if line.lower().startswith("tag:"))


# ---- with what is applied -------------------------------------------------------------------------------------


def read_intended(
    scene: Scene, own: Ownership, paths: Iterable[str], source: Source
) -> tuple[dict[str, Content | None], tuple[PatchId, ...]]:
    """What should be at each of ``paths``: the shipped bytes with the applied patches in them; and which these are."""
    wanted = tuple(paths)
    below = find_below(scene, wanted)
    touched = {path for applied in below for path in applied.paths}
    bases = read_pristine(scene, own, dict.fromkeys((*wanted, *touched)), source)
    layers = [_layer(scene, applied) for applied in below]
    named = {path for layer in layers for path in layer.paths}
    tree = fold({**dict.fromkeys(named), **bases}, layers).tree
    _require_written(scene, tree, touched)
    return {path: tree[path] for path in wanted}, tuple(applied.id for applied in below)


def find_below(scene: Scene, paths: Iterable[str]) -> tuple[Applied, ...]:
    """The applied patches in the files at ``paths``, and those that share a file with one of them, in their order."""
    members = {file.path: set(file.patches) for file in scene.ledger.files}
    found: set[PatchId] = set().union(*(members.get(path, set()) for path in paths))
    size = -1
    while size < len(found):
        size = len(found)
        found = found.union(*(ids for ids in members.values() if ids & found))
    return tuple(applied for applied in scene.ledger.applied if applied.id in found)


def _layer(scene: Scene, applied: Applied) -> Layer:
    diff = read_kept_diff(scene.root, applied)
    return Layer(applied.id, parse(diff, applied.text, f"{applied.id} (as applied)"))


def _require_written(scene: Scene, tree: Tree, touched: Iterable[str]) -> None:
    """The fold must give what the ledger says was written: else the version changed, and an edit has no sure base."""
    problems: list[PatchkitError] = []
    for path in sorted(touched):
        entry = scene.ledger.file(path)
        content = tree[path]
        digest = None if content is None else sha256(content.data)
        if entry is not None and digest != (entry.written.sha256 if entry.written is not None else None):
            words = f"{path} was patched for another version than the one installed now"
            problems.append(ForeignFile(words, hint="bring the patches up to date first: `patchkit status`"))
    raise_all(problems)
