"""The command `coverage`: how each patch of a set fares on each release of its distribution. Changes no environment."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from patchkit.archives import Release
from patchkit.errors import NoRelease, NotWritable, PatchkitError, UsageError, WrongWheel, raise_all
from patchkit.examination import Progress, no_progress
from patchkit.fits import Cell, Column, Coverage, Fit
from patchkit.model import Notice
from patchkit.patchset import Catalog, Patch
from patchkit.pristine import open_pristine
from patchkit.releases import ReleaseSource, list_releases
from patchkit.remote import Index, open_index
from patchkit.scene import CatalogNeed, Options, open_catalog
from patchkit.tryout import choose_patches, find_paths, open_release, try_patch, without_surroundings
from patchkit.versions import contains, specifier_trouble

AT_ONCE = 8
"""Releases that are fetched at the same time."""


def cover(
    options: Options, operand: str, source: ReleaseSource, *, versions: str = "", progress: Progress = no_progress
) -> Coverage:
    """The table for ``SET`` or ``SET/PATCH``, over the releases that the specifier ``versions`` holds ("": all).

    Raises what the catalog and the index raise, and `NoRelease` where there is nothing to look at.
    """
    if versions and (trouble := specifier_trouble(versions)):
        raise UsageError(f"--versions: {trouble}", hint='write for example --versions ">=0.6,<0.8"')
    catalog, _ = open_catalog(options, CatalogNeed.REQUIRED)
    catalog = without_surroundings(catalog)
    patch_set, patches = choose_patches(catalog, operand)
    paths = find_paths(catalog, patches)
    with open_index(source.cache or None) as index:
        known = list_releases(patch_set.distribution, source.folders, index)
        releases = [release for release in known if not versions or contains(versions, release.version)]
        if not releases:
            hint = f"there are {known[0].version} to {known[-1].version}"
            raise NoRelease(f"no release of {patch_set.distribution} is in {versions!r}", hint=hint)
        table = _Table(index, catalog, patches, paths)
        columns = tuple(table.columns(releases, progress))
        ids = tuple(patch.id for patch in patches)
        return Coverage(patch_set.name, patch_set.distribution, ids, columns, index.received, _warn(columns))


def _warn(columns: Sequence[Column]) -> tuple[Notice, ...]:
    """A warning for each wheel that is there and could not be read."""
    broken = [column.cells[0] for column in columns if column.wheel is not None and not column.read]
    return tuple(Notice("unreadable-wheel", cell.message) for cell in broken)


@dataclass(frozen=True, slots=True)
class _Table:
    index: Index
    catalog: Catalog
    patches: tuple[Patch, ...]
    paths: tuple[str, ...]

    def columns(self, releases: Sequence[Release], progress: Progress) -> Iterable[Column]:
        """One column a release, read side by side; raises what went wrong with any of them, at once."""
        # The parser of Python code mutes warnings while it runs, which threads would undo for each other.
        with warnings.catch_warnings(), ThreadPoolExecutor(AT_ONCE) as pool:
            warnings.simplefilter("ignore")
            waiting = {pool.submit(self.column, release): release.version for release in releases}
            try:
                for done, _ in enumerate(as_completed(waiting), 1):
                    progress("reading releases", done, len(waiting))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            raise_all(_once([error for future in waiting for error in _errors(future)]))
            return [future.result() for future in waiting]

    def column(self, release: Release) -> Column:
        """How each patch of the set fares on one release."""
        if not release.wheels:
            words = "a source distribution only, which does not say what it installs"
            cells = tuple(Cell(patch.id, Fit.NO_WHEEL, message=words) for patch in self.patches)
            return Column(release.version, None, release.yanked, cells)
        wheel = release.wheels[0]
        try:
            with open_pristine(self.index, wheel, release.distribution) as pristine:
                scene = open_release(pristine, self.catalog, self.paths)
                cells = tuple(try_patch(scene, pristine, patch) for patch in self.patches)
        except WrongWheel as error:  # one damaged file of many years is no reason to say nothing
            cells = tuple(Cell(patch.id, Fit.NO_WHEEL, message=error.message) for patch in self.patches)
        return Column(release.version, wheel.file, release.yanked, cells)


def _once(errors: Sequence[PatchkitError]) -> list[PatchkitError]:
    """``errors``, but of those that say that the cache cannot be written only the first: all releases meet it."""
    cache = [error for error in errors if isinstance(error, NotWritable)]
    return [error for error in errors if error not in cache[1:]]


def _errors(future: Future[Column]) -> Iterator[PatchkitError]:
    error = future.exception()
    if isinstance(error, PatchkitError):
        yield error
    elif error is not None:
        raise error
