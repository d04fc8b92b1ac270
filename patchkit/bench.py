"""The bench that patches are tried on: the releases of their distribution, and the one to come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from packaging.version import Version

from patchkit.archives import Release, pick_wheel
from patchkit.examination import Progress
from patchkit.fits import Cell
from patchkit.installed import Content
from patchkit.patchset import Patch, PatchId, PatchSet
from patchkit.pristine import Pristine, open_pristine
from patchkit.redraft import Redraft
from patchkit.releases import ReleaseSource
from patchkit.remote import Index
from patchkit.scene import Scene
from patchkit.tryout import open_release, try_patch, without_surroundings
from patchkit.workfolder import Work, write_work


@dataclass(frozen=True, slots=True)
class RebaseOptions:
    """How `rebase` goes about it. ``base`` is the release to take the change from ("": the nearest that it fits)."""

    base: str = ""
    dry_run: bool = False
    source: ReleaseSource = field(default_factory=ReleaseSource)


AS_USUAL = RebaseOptions()


@dataclass(slots=True)
class Bench:
    """The releases that patches are tried on, each opened once; and the work folders that are to be made.

    ``folder`` is that of the patch set, ``homes`` are the patch folders that the work folders remember. ``upstream``
    are the patches that the release to come to turned out to have.
    """

    index: Index
    stack: ExitStack
    releases: Sequence[Release]
    target: Release
    paths: Sequence[str]
    how: RebaseOptions
    progress: Progress
    folder: str
    homes: Sequence[str]
    opened: dict[str, Pristine] = field(default_factory=dict)
    works: list[tuple[str, Work, Mapping[str, Content]]] = field(default_factory=list)
    upstream: set[PatchId] = field(default_factory=set)

    @property
    def to(self) -> str:
        return self.target.version

    def pristine(self, release: Release) -> Pristine:
        if release.version not in self.opened:
            wheel = pick_wheel(release)
            opened = self.stack.enter_context(open_pristine(self.index, wheel, release.distribution))
            self.opened[release.version] = opened
            self.progress("reading releases", len(self.opened), len(self.releases))
        return self.opened[release.version]

    def scene(self, release: Release, draft: Redraft, patch: Patch) -> Scene:
        """A scene in which the release is installed and the draft is at hand, with ``patch`` as it is given."""
        catalog = without_surroundings(draft.catalog)
        sets = [each if each.name != patch.id.set else _exchange(each, patch) for each in catalog.sets]
        scene = open_release(self.pristine(release), replace(catalog, sets=tuple(sets)), self.paths)
        return replace(scene, drafts=draft.files)

    def fare(self, release: Release, draft: Redraft, patch: Patch) -> Cell:
        """What ``patch`` comes to on a release."""
        stripped = replace(patch, markers=(), constraints=(), shadowed_by=())
        return try_patch(self.scene(release, draft, stripped), self.pristine(release), stripped)

    def near(self) -> Iterator[Release]:
        """The other releases that have a wheel: the older ones first, from the target away."""
        at = self.releases.index(self.target)
        for release in (*reversed(self.releases[:at]), *self.releases[at + 1 :]):
            if release.wheels and (not self.how.base or Version(release.version) == Version(self.how.base)):
                yield release

    def write_folders(self) -> None:
        for folder, work, files in self.works:
            write_work(folder, work, files)


def _exchange(patch_set: PatchSet, patch: Patch) -> PatchSet:
    return replace(patch_set, patches=tuple(patch if each.id == patch.id else each for each in patch_set.patches))
