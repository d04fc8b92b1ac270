"""Another tool's bill of materials, with our patches put into the components that it has for the same distributions.

Only JSON is merged: all that the other tool wrote stays, also what the library does not know. As `components` this
module needs the extra ``sbom``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from packageurl import PackageURL
from packaging.version import InvalidVersion, Version

from patchkit.bill import BilledDistribution, SpecVersion
from patchkit.components import to_document, write_json
from patchkit.errors import WrongBill
from patchkit.model import Notice
from patchkit.versions import normalised

T = TypeVar("T")
Document = dict[str, Any]
Identity = tuple[str, str]
"""A distribution's normalised name (PEP 503) and version (PEP 440), whatever spelling a bill has for them."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The bytes of the bill, those that were given where nothing was to be added."""

    data: bytes
    notices: tuple[Notice, ...] = ()


def merge_bill(data: bytes, distributions: Sequence[BilledDistribution], *, file: str) -> Merged:
    """``data`` (a CycloneDX bill in JSON, called ``file`` in messages) with the patches of ``distributions`` in it.

    A component is the same distribution if its package URL is of the type ``pypi`` and has that name and version,
    qualifiers aside; one without a package URL, if its own name and version are. Patches that are in it already are
    not put in twice. A distribution that the bill does not know becomes a component of its own, with a notice.

    Raises `WrongBill` where ``data`` is no such bill, is signed, knows the distribution in another version only, or
    has it twice.
    """
    document, version = _read_bill(data, file)
    known = list(_walk(document, file))
    notices: list[Notice] = []
    changed = False
    for component in to_document(distributions, version)["components"]:
        place = _find_place(component, known, file)
        if place is None:
            document.setdefault("components", []).append(component)
            words = f"{file} has no component for {component['name']} {component['version']}: one was added"
            notices.append(Notice("added-component", words))
            changed = True
        else:
            changed = _add_pedigree(place, component["pedigree"], file) or changed
    if not changed:
        return Merged(data, tuple(notices))
    _sign_off(document, to_document((), version)["metadata"]["tools"], file)
    return Merged(write_json(document), tuple(notices))


# ---- reading --------------------------------------------------------------------------------------------------


def _read_bill(data: bytes, file: str) -> tuple[Document, SpecVersion]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise WrongBill(f"{file} is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("bomFormat") != "CycloneDX":
        raise WrongBill(f"{file} is no CycloneDX bill: it has no `bomFormat` that says so")
    if "signature" in document:
        raise WrongBill(
            f"{file} is signed, and what is put into it would break the signature",
            hint="merge into the bill that is not signed yet, then sign it",
        )
    found = document.get("specVersion")
    version = next((version for version in SpecVersion if version.value == found), None)
    if version is None:
        words = ", ".join(version.value for version in SpecVersion)
        raise WrongBill(f"{file} has the specVersion {found!r}; known are {words}")
    return document, version


def _walk(parent: Document, file: str) -> Iterator[Document]:
    """All components of a bill, those inside other components too."""
    components = parent.get("components", [])
    if not isinstance(components, list) or not all(isinstance(each, dict) for each in components):
        raise _malformed(file, "components")
    for component in components:
        yield component
        yield from _walk(component, file)


def _find_place(ours: Document, known: Sequence[Document], file: str) -> Document | None:
    identity = _identify(ours)
    assert identity is not None
    alike = [(found, other) for other in known if (found := _identify(other)) is not None and found[0] == identity[0]]
    same = [other for found, other in alike if found == identity]
    told = f"{ours['name']} {ours['version']}"
    if len(same) > 1:
        raise WrongBill(
            f"{file} has {len(same)} components for {told}: nothing tells which of them is the patched one",
            hint="make a bill of this environment alone, and merge into that",
        )
    if alike and not same:
        versions = ", ".join(found[1] for found, _ in alike)
        raise WrongBill(f"{told} is installed, and {file} has {versions}", hint="make the bill anew, then merge")
    return same[0] if same else None


def _identify(component: Document) -> Identity | None:
    """Which distribution a component is, None where it is something else."""
    purl = component.get("purl")
    if purl is None:
        plain = component.get("type") == "library" and not component.get("group")
        return _to_identity(component.get("name"), component.get("version")) if plain else None
    try:
        parsed = PackageURL.from_string(purl)
    except (ValueError, TypeError, AttributeError):
        return None
    return _to_identity(parsed.name, parsed.version) if parsed.type == "pypi" else None


def _to_identity(name: object, version: object) -> Identity | None:
    if not isinstance(name, str) or not isinstance(version, str):
        return None
    try:
        return normalised(name) or name, str(Version(version))
    except InvalidVersion:
        return normalised(name) or name, version


# ---- changing -------------------------------------------------------------------------------------------------


def _add_pedigree(component: Document, ours: Document, file: str) -> bool:
    """Put our patches and notes into a component; whether that changed it."""
    pedigree: Document = _enter(component, "pedigree", {}, file)
    patches: list[Any] = _enter(pedigree, "patches", [], file)
    lines = _enter(pedigree, "notes", "", file).splitlines()
    fresh = [patch for patch in ours["patches"] if patch not in patches]
    more = [line for line in ours["notes"].splitlines() if line not in lines]
    patches += fresh
    pedigree["notes"] = "\n".join((*lines, *more))
    return bool(fresh or more)


def _sign_off(document: Document, own: Any, file: str) -> None:
    """Name us among the tools, in the form that the bill has for them, and count its version up.

    ``own`` are the tools as we write them: an array up to CycloneDX 1.4, an object from 1.5 on, when a bill may have
    either.
    """
    metadata: Document = _enter(document, "metadata", {}, file)
    there = metadata.setdefault("tools", type(own)())
    [tool] = own["components"] if isinstance(own, dict) else own
    if isinstance(there, dict):
        there = _enter(there, "components", [], file)
    elif isinstance(there, list):
        tool = {key: value for key, value in tool.items() if key != "type"}
    else:
        raise _malformed(file, "tools")
    if tool not in there:
        there.append(tool)
    if "serialNumber" in document:  # the same bill, modified: the specification asks for the next version
        document["version"] = _enter(document, "version", 1, file) + 1


def _enter(parent: Document, key: str, default: T, file: str) -> T:
    """What a bill has at ``key``, which is put there if need be, and must be of the kind of ``default``."""
    value = parent.setdefault(key, default)
    if not isinstance(value, type(default)):
        raise _malformed(file, key)
    return value


def _malformed(file: str, key: str) -> WrongBill:
    return WrongBill(f"{file} is no CycloneDX bill: `{key}` is not of the form that the specification has for it")
