"""Reading pristine bytes out of wheels that the user named (PEP 427). Writes nothing."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from patchkit.errors import WrongWheel
from patchkit.installed import Content, Distribution
from patchkit.site import normalise

# Where the parts of a wheel are unpacked to that end up in a site root.
_ROOTS = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")


def read_members(
    wheels: Sequence[str], distributions: Iterable[Distribution], paths: Mapping[str, Collection[str]]
) -> dict[str, Content]:
    """What ``wheels`` hold for ``paths``, which are by the name of their distribution; other wheels are passed over.

    Modes are those that installers give: of the permission bits, the executable one counts. Bytes are not trusted:
    whoever uses them compares them with RECORD. Raises `WrongWheel` for a file that is not a wheel, and where none of
    ``wheels`` is of the installed version of one of ``distributions``.
    """
    found: dict[str, Content] = {}
    own = {wheel: _name_and_version(wheel) for wheel in wheels}
    installed = {(distribution.name, distribution.version): distribution for distribution in distributions}
    if installed and own and not installed.keys() & set(own.values()):
        first = next(iter(installed.values()))
        raise WrongWheel(
            f"none of {', '.join(wheels)} is a wheel of {first.name} {first.version}",
            hint=f"`pip download --no-deps {first.name}=={first.version}` fetches it",
        )
    for wheel, (name, version) in own.items():
        if (name, version) in installed:
            found |= _read_members(wheel, frozenset(paths.get(name, ())))
    return found


def read_modes(wheels: Sequence[str], distribution: Distribution) -> dict[str, bool]:
    """Whether each file that the wheels of ``distribution`` install below a site root is executable.

    Raises `WrongWheel` for a file that is not a wheel.
    """
    found: dict[str, bool] = {}
    for wheel in wheels:
        if _name_and_version(wheel) == (distribution.name, distribution.version):
            with _opened(wheel) as archive:
                found |= {path: _is_executable(archive.getinfo(name)) for path, name in _places(archive).items()}
    return found


def _name_and_version(wheel: str) -> tuple[str, str]:
    parts = os.path.basename(wheel).split("-")
    if not wheel.endswith(".whl") or len(parts) < 5:
        raise WrongWheel(f"--wheel {wheel}: that is not the name of a wheel (PEP 427)")
    return normalise(parts[0]), parts[1].replace("_", "-")


def _read_members(wheel: str, paths: frozenset[str]) -> dict[str, Content]:
    with _opened(wheel) as archive:
        places = _places(archive)
        return {
            path: Content(archive.read(places[path]), 0o755 if _is_executable(archive.getinfo(places[path])) else 0o644)
            for path in paths & places.keys()
        }


@contextmanager
def _opened(wheel: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            yield archive
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise WrongWheel(f"--wheel {wheel} cannot be read: {error}") from error


def _places(archive: zipfile.ZipFile) -> dict[str, str]:
    """The member of the wheel for each path below the site root."""
    return {_ROOTS.sub("", name, count=1): name for name in archive.namelist() if not name.endswith("/")}


def _is_executable(member: zipfile.ZipInfo) -> bool:
    """By the permission bits that Unix archivers put there (APPNOTE 4.4.15), as pip and uv read them."""
    return bool(member.external_attr >> 16 & 0o111)
