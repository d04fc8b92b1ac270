"""A bill of materials, as values: the patched distributions and what a bill says of each patch.

`components` makes CycloneDX of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from patchkit.applied import Applied
from patchkit.patchset import Provenance
from patchkit.provenance import OriginKind, read_origin


@unique
class BillFormat(Enum):
    JSON = "json"
    XML = "xml"


@unique
class SpecVersion(Enum):
    """The versions of CycloneDX that can be written."""

    V1_4 = "1.4"
    V1_5 = "1.5"
    V1_6 = "1.6"
    V1_7 = "1.7"


@unique
class PatchType(Enum):
    """CycloneDX's ``patchClassification``. Its fourth word, ``monkey``, is for changes at run time: never ours."""

    UNOFFICIAL = "unofficial"
    BACKPORT = "backport"
    CHERRY_PICK = "cherry-pick"


@dataclass(frozen=True, slots=True)
class BilledPatch:
    """A patch that is in its files, with the bytes of its diff as it was applied."""

    applied: Applied
    diff: bytes


@dataclass(frozen=True, slots=True)
class BilledDistribution:
    """A patched distribution, named as its own metadata writes it; its patches in the order of the fold."""

    name: str
    version: str
    patches: tuple[BilledPatch, ...]


def classify_patch(provenance: Provenance) -> PatchType:
    """What CycloneDX calls a patch of that provenance. The keyword of the origin decides where there is one.

    Without one, a patch that is applied upstream brings code of a newer version to an older one: a backport. All
    others, those of unknown origin too, are not the maintainers' word: unofficial.
    """
    match read_origin(provenance.origin).kind:
        case OriginKind.UPSTREAM:
            return PatchType.CHERRY_PICK
        case OriginKind.BACKPORT:
            return PatchType.BACKPORT
        case OriginKind.VENDOR | OriginKind.OTHER:
            return PatchType.UNOFFICIAL
        case None:
            claimed = provenance.applied_upstream.strip().lower() not in ("", "no")
            return PatchType.BACKPORT if claimed else PatchType.UNOFFICIAL


def describe_patch(applied: Applied) -> str:
    """One line on a patch, for a bill has no other place for its name, its files and the rest of its provenance."""
    source = applied.provenance
    fields = [
        ("diff", f"sha256 {applied.text.sha256}"),
        ("files", ", ".join(applied.paths)),
        ("origin", source.origin),
        ("bug", source.bug),
        ("forwarded", source.forwarded),
        ("applied upstream", source.applied_upstream),
        ("last update", source.last_update),
    ]
    said = "; ".join(f"{name}: {value}" for name, value in fields if value)
    return f"{applied.id}: " + (f"{applied.summary}; {said}" if applied.summary else said)
