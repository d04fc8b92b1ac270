"""The typed values of our TOML files: names, paths, version ranges, constraints, markers.

What is wrong is noted in the table (`tables`), with what to write instead.
"""

from __future__ import annotations

import re
from itertools import combinations

from patchkit.errors import BadManifest
from patchkit.patchset import Constraint, PatchId
from patchkit.tables import Table
from patchkit.versions import common_version, normalised, specifier_trouble

MOST_GLOBS = 64
LONGEST_GLOB = 1024

Ranges = list[tuple[str, str]]  # specifiers that must not overlap, each with its key path in front

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAME_WORDS = "write letters, digits, '.', '_' and '-', a letter or digit first"
_CONSTRAINT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<versions>.*)", re.DOTALL)


def read_name(table: Table, key: str, *, required: bool = True) -> str:
    """The name of a set, a patch or a group."""
    name = table.text(key, required=required)
    if name and not _NAME.fullmatch(name):
        table.note(key, f'"{name}" is not a name; {_NAME_WORDS}')
    return name


def read_distribution(table: Table, key: str) -> str:
    """The normalised name of a distribution (PEP 503)."""
    text = table.text(key, required=True)
    name = normalised(text)
    if text and name is None:
        table.note(key, f'"{text}" is not the name of a distribution, such as "flashinfer-python"')
    return name or ""


def read_distributions(table: Table, key: str) -> tuple[str, ...]:
    """A list of normalised names of distributions."""
    texts = table.texts(key)
    for text in texts:
        if normalised(text) is None:
            table.note(key, f'"{text}" is not the name of a distribution, such as "flashinfer-python"')
    return tuple(name for text in texts if (name := normalised(text)))


def read_versions(table: Table, ranges: Ranges | None) -> str:
    """The specifier of a table; a valid one is put into ``ranges``, those that must not overlap (None: it may)."""
    text = table.text("versions", required=ranges is not None)
    if text and (words := specifier_trouble(text)):
        table.note("versions", words)
    elif text and ranges is not None:
        ranges.append((table.place("versions"), text))
    return text


def refuse_overlaps(table: Table, ranges: Ranges) -> None:
    """Note each pair of ranges that share a version."""
    for (place, text), (other_place, other_text) in combinations(ranges, 2):
        if common := common_version(text, other_text):
            words = f'"{other_text}" overlaps {place} "{text}": both hold {common}; write ranges that share no version'
            table.problems.append(BadManifest(f"{table.file}: {other_place}: {words}"))


def read_path(table: Table, key: str, *, required: bool = False) -> str:
    """A relative POSIX path that stays in its folder, without components that mean nothing."""
    path = table.text(key, required=required)
    if path and (words := _path_trouble(path)):
        table.note(key, f'"{path}" {words}; write a relative path such as "fixes/a.patch"')
    return path


def _path_trouble(path: str) -> str:
    if "\\" in path:
        return "has a backslash, which separates nothing here"
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "is absolute"
    if any(ord(character) < 32 for character in path):
        return "has a control character"
    parts = path.split("/")
    if ".." in parts:
        return 'leaves its folder by ".."'
    return 'has an empty or "." component' if "" in parts or "." in parts else ""


def read_globs(table: Table, key: str) -> tuple[str, ...]:
    """The patterns of paths that a variant takes or leaves out, no more than each of many files can be held against."""
    globs = table.texts(key)
    if len(globs) > MOST_GLOBS:
        table.note(key, f"{len(globs)} patterns are too many; the limit is {MOST_GLOBS}")
    for index, glob in enumerate(globs):
        if len(glob) > LONGEST_GLOB:
            table.note(f"{key}[{index}]", f"{len(glob)} characters are too many; the limit is {LONGEST_GLOB}")
    return globs


def read_constraints(table: Table) -> tuple[Constraint, ...]:
    """Other distributions with their versions, as pip's constraints files have them."""
    constraints = []
    for index, text in enumerate(table.texts("constraints")):
        found = _CONSTRAINT.fullmatch(text.strip())
        name = normalised(found["name"]) if found else None
        if found is None or name is None or specifier_trouble(found["versions"]):
            words = 'is not a constraint: a name and a specifier, without extras, markers or URLs, such as "torch>=2.4"'
            table.note(f"constraints[{index}]", f'"{text}" {words}')
        else:
            constraints.append(Constraint(name, found["versions"].replace(" ", "")))
    return tuple(constraints)


def read_markers(table: Table) -> tuple[str, ...]:
    """The environment marker of a table (PEP 508), none or one."""
    text = table.text("markers")
    if not text:
        return ()
    from packaging.markers import InvalidMarker, Marker  # only where a marker is: an import of some milliseconds

    try:
        Marker(text)
    except (InvalidMarker, RecursionError):
        table.note("markers", f"`{text}` is not a PEP 508 marker; write for example \"platform_system == 'Linux'\"")
    return (text,)


def read_after(table: Table, set_name: str) -> tuple[PatchId, ...]:
    """The patches that a patch of ``set_name`` must come after: "PATCH" of the same set, or "SET/PATCH"."""
    ids = []
    for index, text in enumerate(table.texts("after")):
        parts = text.split("/")
        if len(parts) > 2 or not all(_NAME.fullmatch(part) for part in parts):
            table.note(f"after[{index}]", f'"{text}" is not the name of a patch; write "PATCH" or "SET/PATCH"')
        else:
            ids.append(PatchId(parts[0] if len(parts) == 2 else set_name, parts[-1]))
    return tuple(dict.fromkeys(ids))


def read_patch_names(table: Table, key: str) -> tuple[str, ...]:
    """A list of full names, "SET/PATCH"."""
    names = table.texts(key)
    for index, name in enumerate(names):
        parts = name.split("/")
        if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
            table.note(f"{key}[{index}]", f'"{name}" is not the name of a patch; write "SET/PATCH"')
    return names
