"""Releases and their wheels, as values, and what file names say of them (PEP 427, PEP 625)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from patchkit.errors import NoRelease, NoWheel, UsageError
from patchkit.versions import contains, is_version, normalised

_SDISTS = (".tar.gz", ".zip")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Archive:
    """A wheel or a source distribution. ``place`` is a URL, or an absolute path.

    ``digests`` are what the index states: pairs of algorithm and hex. ``yanked``: withdrawn by its makers (PEP 592).
    """

    version: str
    file: str
    place: str
    digests: tuple[tuple[str, str], ...] = ()
    yanked: bool = False

    @property
    def remote(self) -> bool:
        return "://" in self.place

    @property
    def tags(self) -> frozenset[str]:
        """What the name of a wheel says that it is built for (PEP 425)."""
        from packaging.utils import parse_wheel_filename

        return frozenset(map(str, parse_wheel_filename(self.file)[3]))


@dataclass(frozen=True, slots=True)
class Release:
    """One version with its wheels, the one to read first; none: there is only a source distribution."""

    distribution: str
    version: str
    wheels: tuple[Archive, ...]
    yanked: bool = False


def version_in(file: str, distribution: str) -> str | None:
    """The version that the name of a wheel or a source distribution states; None where it is of another one."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

    try:
        if file.endswith(".whl"):
            name, version = parse_wheel_filename(file)[:2]
        elif file.endswith(_SDISTS):
            name, version = parse_sdist_filename(file)
        else:
            return None
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return str(version) if name == normalised(distribution) else None


def group_releases(distribution: str, archives: Iterable[Archive]) -> tuple[Release, ...]:
    """The releases that ``archives`` make up, the oldest first."""
    by_version: dict[Version, list[Archive]] = {}
    for archive in archives:
        by_version.setdefault(Version(archive.version), []).append(archive)
    return tuple(_to_release(distribution, version, by_version[version]) for version in sorted(by_version))


def _to_release(distribution: str, version: Version, archives: Sequence[Archive]) -> Release:
    wheels = sorted((archive for archive in archives if archive.file.endswith(".whl")), key=_preference)
    return Release(distribution, str(version), tuple(wheels), yanked=all(archive.yanked for archive in archives))


def _preference(wheel: Archive) -> tuple[bool, int, str]:
    """The order of wheels of one release: a function of their names alone, so that every machine reads the same one."""
    platforms = {tag.rpartition("-")[2] for tag in wheel.tags}
    if "any" in platforms:
        rank = 0
    elif any("linux" in platform and platform.endswith("x86_64") for platform in platforms):
        rank = 1
    else:
        rank = 2 if any("linux" in platform for platform in platforms) else 3
    return wheel.yanked, rank, wheel.file


def pick_release(releases: Sequence[Release], distribution: str, version: str) -> Release:
    """The release of exactly ``version`` (PEP 440: 1.0 is 1.0.0). Raises `NoRelease`, with those that are near."""
    if not is_version(version):
        raise UsageError(f"{version!r} is no version by PEP 440", hint="write for example 1.2.3")
    wanted = Version(version)
    for release in releases:
        if Version(release.version) == wanted:
            return release
    near = [release.version for release in releases if contains(f"=={wanted.base_version}.*", release.version)]
    shown = ", ".join((near or [release.version for release in releases])[-_SHOWN:])
    raise NoRelease(f"there is no {distribution} {version} where it was looked for", hint=f"there is {shown}")


def pick_wheel(release: Release, tags: frozenset[str] = frozenset()) -> Archive:
    """The wheel to read; with ``tags`` one that is built for all of them. Raises `NoWheel`."""
    name = f"{release.distribution}=={release.version}"
    if not release.wheels:
        raise NoWheel(
            f"{name} is a source distribution only, which does not say what it installs",
            hint=f"build it with `pip wheel --no-deps {name}`, and name the folder with --find-links DIR",
        )
    found = next((wheel for wheel in release.wheels if tags <= wheel.tags), None)
    if found is None:
        have = ", ".join(wheel.file for wheel in release.wheels)
        words = f"no wheel of {name} is for {', '.join(sorted(tags))} (there is {have})"
        raise NoWheel(words, hint="name a folder that has it with --find-links DIR")
    return found
