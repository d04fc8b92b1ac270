"""Reading pristine bytes out of wheels that the user named (PEP 427). Writes nothing."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Sequence

from patchkit.errors import WrongWheel
from patchkit.installed import Distribution
from patchkit.site import normalise

# Where the parts of a wheel are unpacked to that end up in a site root.
_ROOTS = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")


def read_members(wheels: Sequence[str], distribution: Distribution, paths: Iterable[str]) -> dict[str, bytes]:
    """The bytes that the wheels of ``distribution`` hold for ``paths``; those of other distributions are passed over.

    What they hold is not trusted: whoever uses it compares it with RECORD. Raises `WrongWheel` for a file that is not
    a wheel, and where none of ``wheels`` is of this distribution's version.
    """
    found: dict[str, bytes] = {}
    own = [wheel for wheel in wheels if _name_and_version(wheel) == (distribution.name, distribution.version)]
    if wheels and not own:
        raise WrongWheel(
            f"none of {', '.join(wheels)} is a wheel of {distribution.name} {distribution.version}",
            hint=f"`pip download --no-deps {distribution.name}=={distribution.version}` fetches it",
        )
    for wheel in own:
        found |= _read_members(wheel, frozenset(paths))
    return found


def _name_and_version(wheel: str) -> tuple[str, str]:
    parts = os.path.basename(wheel).split("-")
    if not wheel.endswith(".whl") or len(parts) < 5:
        raise WrongWheel(f"--wheel {wheel}: that is not the name of a wheel (PEP 427)")
    return normalise(parts[0]), parts[1].replace("_", "-")


def _read_members(wheel: str, paths: frozenset[str]) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            places = {_ROOTS.sub("", name, count=1): name for name in archive.namelist()}
            return {path: archive.read(places[path]) for path in paths & places.keys()}
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise WrongWheel(f"--wheel {wheel} cannot be read: {error}") from error
