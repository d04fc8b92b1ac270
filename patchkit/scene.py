"""Where a command works: the environment, the one site root, its ledger, the patch sets at hand. Reads only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from typing import TypeVar

from patchkit.applied import Ledger
from patchkit.catalog import read_catalog, read_set_file
from patchkit.environment import find_environment, marker_values
from patchkit.errors import BadManifest, ExitCode, InProgress, NoPatchSets, PatchkitError, UsageError
from patchkit.installed import Environment
from patchkit.model import Notice
from patchkit.patchset import Catalog, PatchId
from patchkit.site import STATE_FOLDER, Listing, choose_root, find_version, list_visible
from patchkit.state import READER_WAIT_SECONDS, State, read_state
from patchkit.wanted import Wanted, want_apply

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """The options that go with every command: which environment, which patch folders."""

    python: str | None = None
    site_packages: str | None = None
    patches: tuple[str, ...] = ()
    bundled: bool = False


@unique
class CatalogNeed(Enum):
    """What a command does without a patch folder: fail, or warn and go on."""

    REQUIRED = "required"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that was read before anything is decided. ``listings`` are all site roots, the chosen one first.

    ``doubtful``: the patch sets or the declared list are there, or were named, and cannot be read. ``drafts`` are files
    of patch sets that are to be written, by path: they count as if they were there.
    """

    environment: Environment
    listings: tuple[Listing, ...]
    state: State
    catalog: Catalog
    notices: tuple[Notice, ...] = ()
    doubtful: bool = False
    drafts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def listing(self) -> Listing:
        return self.listings[0]

    @property
    def root(self) -> str:
        return self.listing.root

    @property
    def ledger(self) -> Ledger:
        return self.state.ledger

    def version_of(self, name: str) -> str | None:
        """The version of a distribution that the target interpreter can import, wherever it lies."""
        return find_version(list_visible(self.environment, self.listings), name)

    def install_command(self, requirement: str, *, again: bool = False) -> str:
        """The command that installs ``requirement`` here; ``again``: over the same version, without dependencies.

        By the pip of this environment, or by uv where it has none.
        """
        from shlex import quote

        if self.environment.executable is None:
            return " ".join(["pip install", *(["--force-reinstall --no-deps"] * again), requirement])
        python = quote(self.environment.executable)
        if self.version_of("pip") is None:
            return " ".join([f"uv pip install --python {python}", *(["--reinstall --no-deps"] * again), requirement])
        return " ".join([f"{python} -m pip install", *(["--force-reinstall --no-deps"] * again), requirement])

    def folder_of(self, id: PatchId) -> str:
        """The folder of the patch set of ``id``, which is at hand."""
        found = self.catalog.set(id.set)
        assert found is not None
        return found.folder

    def read_set_file(self, id: PatchId, file: str) -> bytes:
        """The bytes of a file of the patch set of ``id``. Raises `BadManifest`."""
        folder = self.folder_of(id)
        draft = self.drafts.get(f"{folder}/{file}")
        return read_set_file(folder, file) if draft is None else draft

    def holds(self, marker: str) -> bool:
        """Whether a PEP 508 marker is true in the target environment."""
        from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName

        try:
            return Marker(marker).evaluate(dict(marker_values(self.environment)))
        except (UndefinedComparison, UndefinedEnvironmentName) as error:
            words = f"the marker {marker!r} cannot be evaluated: {error}"
            raise BadManifest(words, hint="see PEP 508 for what a marker may say") from error


def open_catalog(options: Options, need: CatalogNeed) -> tuple[Catalog, tuple[Notice, ...]]:
    """The patch sets at hand; where a command can do without, what is wrong with them is a warning."""
    try:
        return read_catalog(options.patches, bundled=options.bundled, cwd=current_folder()), ()
    except PatchkitError as error:
        if need is CatalogNeed.REQUIRED or error.exit_code is not ExitCode.PATCH_SET:
            raise
        return Catalog(), tuple(Notice(single.code, single.message) for single in error.all())


def current_folder() -> str:
    """The working directory. Raises `UsageError` where it is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder was removed", hint="cd to one that exists") from error


def open_scene(
    options: Options,
    need: CatalogNeed,
    *,
    operands: Sequence[str] = (),
    allow_interrupted: bool = False,
    wait: float = READER_WAIT_SECONDS,
) -> Scene:
    """Read what a command starts from. Raises what the catalog, the environment and the state folder raise."""
    environment = find_environment(options.python, options.site_packages, os.environ)
    catalog, notices = open_catalog(options, need)
    wanted_sets = {operand.partition("/")[0] for operand in operands}
    names = [found.distribution for found in catalog.sets if not wanted_sets or found.name in wanted_sets]
    scene = open_place(environment, catalog, names, notices=notices, allow_interrupted=allow_interrupted, wait=wait)
    absent = {NoPatchSets.code} if not options.patches else set()
    return replace(scene, doubtful=any(notice.code not in absent for notice in notices))


def open_place(
    environment: Environment,
    catalog: Catalog,
    names: Sequence[str],
    *,
    notices: tuple[Notice, ...] = (),
    allow_interrupted: bool = False,
    wait: float = READER_WAIT_SECONDS,
) -> Scene:
    """The scene on the one site root that holds the distributions of ``names``. Raises as `open_scene` does."""
    chosen, others = choose_root(environment, names)
    strays = [listing.root for listing in others if STATE_FOLDER in listing.entries]
    notices += tuple(
        Notice("another-state-folder", f"{root} has patches too; name it with --site-packages to speak of them")
        for root in strays
    )
    state = read_state(chosen.root, allow_interrupted=allow_interrupted, wait=wait)
    return Scene(environment, (chosen, *others), state, catalog, notices)


def reread_state(scene: Scene) -> Scene:
    """The same scene with the ledger as it is now."""
    return replace(scene, state=read_state(scene.root, allow_interrupted=True))


ATTEMPTS = 5


def read_steadily(open_it: Callable[[], Scene], think: Callable[[Scene], T]) -> T:
    """What ``think`` makes of the scene, if no transaction came between; else read anew, for a while.

    Readers take no lock: what was read while somebody wrote is void, and so is an error that comes of it. Raises
    `InProgress` when the writing does not end.
    """
    deadline = time.monotonic() + READER_WAIT_SECONDS
    attempts = 0
    while attempts < ATTEMPTS or time.monotonic() < deadline:
        attempts += 1
        scene = open_it()
        try:
            result = think(scene)
        except PatchkitError:
            if is_unchanged(scene):
                raise
            continue
        if is_unchanged(scene):
            return result
    raise InProgress(f"the patches on {scene.root} change faster than they can be read")


def is_unchanged(scene: Scene) -> bool:
    """Whether no transaction has begun since the state was read, and none has ended."""
    now = read_state(scene.root, allow_interrupted=True)
    return (now.moment, now.data, now.interrupted) == (scene.state.moment, scene.state.data, scene.state.interrupted)


def want_leniently(scene: Scene) -> tuple[Scene, Wanted]:
    """What is wanted; where the declaration is wrong, that is a warning, and what is applied counts alone."""
    try:
        return scene, want_apply(scene.catalog, scene.ledger)
    except PatchkitError as error:
        if error.exit_code is not ExitCode.PATCH_SET:
            raise
        notices = tuple(Notice(single.code, single.message) for single in error.all())
        bare = replace(scene, catalog=Catalog(), notices=(*scene.notices, *notices), doubtful=True)
        return bare, want_apply(bare.catalog, bare.ledger)
