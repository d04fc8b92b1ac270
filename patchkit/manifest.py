"""Manifests: patchset.toml, patches/patchkit.toml and [tool.patchkit], from bytes to frozen values.

The only reader of TOML. Everything is checked here, and all problems of a file are raised at once as BadManifest,
each with the file, the key path (``patch[1].variant[0].versions``) and what to write instead.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from packaging.version import Version

from patchkit import symbols
from patchkit.errors import BadManifest, OrderCycle, PatchkitError, raise_all
from patchkit.fields import (
    Ranges,
    read_after,
    read_constraints,
    read_distribution,
    read_distributions,
    read_globs,
    read_markers,
    read_name,
    read_patch_names,
    read_path,
    read_versions,
    refuse_overlaps,
)
from patchkit.patchset import (
    Check,
    Constraint,
    Declaration,
    NotNeeded,
    Patch,
    PatchId,
    PatchSet,
    Project,
    Provenance,
    PythonCheck,
    SymbolCheck,
    Variant,
)
from patchkit.tables import Table, shown
from patchkit.versions import common_version, read_patch_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = 1
LARGEST_BYTES = 1 << 20
LONGEST_KEY = 256  # parts of a dotted key: tomllib's time grows with their square
LARGEST_STRIP = 64
LONGEST_TIMEOUT_S = 3600.0
MOST_PATCHES = 1000  # all that is compared is compared with each other
MOST_VARIANTS = 50

_PERHAPS_A_KEY = re.compile(rb"[^\s=\[\]{},#]+")


def read_manifest(data: bytes, *, folder: str, file: str) -> PatchSet:
    """The patch set that a patchset.toml describes; ``folder`` is where it lies, ``file`` what messages call it.

    Raises BadManifest and OrderCycle, several of them as Several.
    """
    top = Table(read_toml(data, file), file)
    require_schema(top)
    patch_set = _patch_set(top, folder)
    errors: list[PatchkitError] = [*top.problems, *_cycles(patch_set, file)]
    raise_all(errors)
    return patch_set


def read_patchkit_toml(data: bytes, *, file: str) -> Declaration:
    """What a patches/patchkit.toml selects and deselects. Raises BadManifest, several of them as Several."""
    top = Table(read_toml(data, file), file)
    declaration = _declaration(top)
    top.finish()
    raise_all(top.problems)
    return declaration


def read_pyproject(data: bytes, *, file: str) -> Project | None:
    """What [tool.patchkit] of a pyproject.toml says; None where there is no such table.

    Raises BadManifest, several of them as Several.
    """
    if b"patchkit" not in data:  # most are not ours: not worth parsing, nor ours to complain about
        return None
    tool = read_toml(data, file).get("tool")
    own = tool.get("patchkit") if isinstance(tool, dict) else None
    if own is None:
        return None
    if not isinstance(own, dict):
        raise BadManifest(f"{file}: tool.patchkit: must be a table; write [tool.patchkit]")
    table = Table(own, file, "tool.patchkit")
    project = Project(table.texts("patches", or_one=True), _declaration(table))
    table.finish()
    raise_all(table.problems)
    return project


def file_sets(files: Iterable[str], *, folder: str) -> tuple[PatchSet, ...]:
    """The patch sets of the patch files in ``folder`` that have no manifest, one a distribution.

    ``files`` are their names (`read_patch_name`). Each set is named after its distribution and has one patch,
    "default", with one variant a file, by version. Raises BadManifest, several of them as Several.
    """
    by_distribution: dict[str, list[tuple[Version, str, str]]] = {}
    problems: list[BadManifest] = []
    for file in sorted(files):
        try:
            name, version = read_patch_name(file)
        except BadManifest as error:
            problems.append(BadManifest(f"{folder}/{error.message}"))
        else:
            by_distribution.setdefault(name, []).append((Version(version), version, file))
    sets = tuple(_file_set(name, sorted(found), folder, problems) for name, found in sorted(by_distribution.items()))
    raise_all(problems)
    return sets


def _file_set(
    name: str, found: Sequence[tuple[Version, str, str]], folder: str, problems: list[BadManifest]
) -> PatchSet:
    variants = tuple(Variant(versions=f"=={version}", file=file) for _, version, file in found)
    for one, other in combinations(variants, 2):
        if common := common_version(one.versions, other.versions):
            words = f"{one.file} and {other.file} are both for {name} {common}; keep one, or write a patchset.toml"
            problems.append(BadManifest(f"{folder}: {words}"))
    patch = Patch(id=PatchId(name, "default"), distribution=name, place=0, variants=variants)
    return PatchSet(name=name, distribution=name, summary="", folder=folder, patches=(patch,))


# ---- the document ---------------------------------------------------------------------------------------------


def read_toml(data: bytes, file: str) -> Mapping[str, object]:
    """The top table of a TOML document; ``file`` is what messages call it. Raises `BadManifest`."""
    if len(data) > LARGEST_BYTES:
        raise BadManifest(f"{file}: {len(data)} bytes are too many; the limit is {LARGEST_BYTES}")
    if data.startswith(b"\xef\xbb\xbf"):
        raise BadManifest(f"{file}: it begins with a byte order mark; save it as UTF-8 without one")
    if data.count(b".") > LONGEST_KEY and _has_endless_key(data):
        raise BadManifest(f"{file}: it has a key of more than {LONGEST_KEY} parts, which is nested too deeply")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadManifest(
            f"{file}:{line}: it is not UTF-8 (byte 0x{data[error.start]:02x}); save it as UTF-8"
        ) from None
    except RecursionError:
        raise BadManifest(f"{file}: it is nested too deeply to be read") from None
    except ValueError as error:  # TOMLDecodeError is one; so is int() with thousands of digits
        raise BadManifest(f"{file}: it is not TOML: {error}") from None


def _has_endless_key(data: bytes) -> bool:
    without_blanks = data.translate(None, b" \t")
    return any(text.count(b".") > LONGEST_KEY for text in _PERHAPS_A_KEY.findall(without_blanks))


def require_schema(top: Table) -> None:
    """Leave at once for a newer schema: its keys mean what this patchkit does not know."""
    schema = top.values.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        words = f"{shown(schema)} is newer than this patchkit knows ({SCHEMA}); use a newer patchkit"
        raise BadManifest(f"{top.file}: schema: {words}")
    top.integer("schema", default=SCHEMA, low=SCHEMA, high=SCHEMA)
    if schema is None:
        top.note("schema", f"is missing; write schema = {SCHEMA}")


def _declaration(table: Table) -> Declaration:
    select, deselect = (read_patch_names(table, key) for key in ("select", "deselect"))
    for name in dict.fromkeys(select):
        if name in deselect:
            table.note("deselect", f'"{name}" is also in select; keep it in one of them')
    return Declaration(select, deselect, table.file if select or deselect else "")


# ---- a patch set ----------------------------------------------------------------------------------------------


def _patch_set(top: Table, folder: str) -> PatchSet:
    name = read_name(top, "name")
    own = folder.rstrip("/").rpartition("/")[2]
    if name and name != own:
        top.note("name", f'"{name}" is not the name of its folder; write name = "{own}", or rename the folder')
    distribution = read_distribution(top, "distribution")
    constraints, markers = read_constraints(top), read_markers(top)
    tables = top.tables("patch", most=MOST_PATCHES)
    if top.values.get("patch", []) == []:
        top.note("patch", "a patch set needs at least one patch; write [[patch]]")
    patches = tuple(
        _patch(table, place, name or own, distribution, constraints, markers) for place, table in enumerate(tables)
    )
    _check_together(tables, patches)
    summary = top.text("summary")
    top.finish()
    return PatchSet(name, distribution, summary, folder, patches, constraints, markers)


def _patch(
    table: Table,
    place: int,
    set_name: str,
    distribution: str,
    constraints: tuple[Constraint, ...],
    markers: tuple[str, ...],
) -> Patch:
    ranges: Ranges = []
    patch = Patch(
        id=PatchId(set_name, read_name(table, "name")),
        distribution=distribution,
        place=place,
        summary=table.text("summary"),
        default=table.flag("default", default=True),
        group=read_name(table, "group", required=False),
        after=read_after(table, set_name),
        constraints=constraints + read_constraints(table),
        markers=markers + read_markers(table),
        shadowed_by=read_distributions(table, "shadowed-by"),
        provenance=_provenance(table),
        variants=tuple(_variant(one, ranges) for one in table.tables("variant", most=MOST_VARIANTS)),
        not_needed=tuple(_not_needed(one, ranges) for one in table.tables("not-needed", most=MOST_VARIANTS)),
        checks=tuple(check for one in table.tables("check", most=MOST_VARIANTS) if (check := _check(one))),
    )
    if table.values.get("variant", []) == [] and table.values.get("not-needed", []) == []:
        table.note("variant", "a patch needs a diff, or the versions that need none; write [[patch.variant]]")
    refuse_overlaps(table, ranges)
    table.finish()
    return patch


def _variant(table: Table, ranges: Ranges) -> Variant:
    variant = Variant(
        versions=read_versions(table, ranges),
        file=read_path(table, "file", required=True),
        strip=table.integer("strip", default=1, low=0, high=LARGEST_STRIP),
        directory=read_path(table, "directory"),
        include=read_globs(table, "include"),
        exclude=read_globs(table, "exclude"),
    )
    table.finish()
    return variant


def _not_needed(table: Table, ranges: Ranges) -> NotNeeded:
    rule = NotNeeded(versions=read_versions(table, ranges), why=table.text("why", required=True))
    table.finish()
    return rule


def _check(table: Table) -> Check | None:
    readers: dict[str, Callable[[Table], Check]] = {"symbol": _symbol_check, "python": _python_check}
    kind = table.text("kind", required=True)
    if kind not in readers:
        if kind:
            table.note("kind", f'"{kind}" is not a kind of check; write "symbol" or "python"')
        return None
    check = readers[kind](table)
    table.finish()
    return check


def _symbol_check(table: Table) -> SymbolCheck:
    versions = read_versions(table, None)
    before = len(table.problems)
    check = SymbolCheck(
        module=table.text("module", required=True),
        symbol=table.text("symbol"),
        starts_with=table.text("starts-with"),
        has=table.texts("has", or_one=True),
        lacks=table.texts("lacks", or_one=True),
        decorators=table.texts("decorators", or_one=True),
        versions=versions,
    )
    if len(table.problems) == before:  # else a value that was left out would be missed
        for problem in symbols.validate(check):
            key, _, words = problem.partition(": ")
            table.note(key, words)
    return check


def _python_check(table: Table) -> PythonCheck:
    return PythonCheck(
        file=read_path(table, "file", required=True),
        needs=read_distributions(table, "needs"),
        timeout=table.number("timeout", default=60.0, high=LONGEST_TIMEOUT_S),
        versions=read_versions(table, None),
    )


def _provenance(table: Table) -> Provenance:
    return Provenance(
        origin=table.text("origin"),
        bug=table.text("bug"),
        forwarded=table.text("forwarded"),
        applied_upstream=table.text("applied-upstream"),
        last_update=table.text_or_date("last-update"),
    )


# ---- patches together -----------------------------------------------------------------------------------------


def _check_together(tables: Sequence[Table], patches: Sequence[Patch]) -> None:
    first: dict[str, int] = {}
    default_of: dict[str, str] = {}
    names = {patch.id for patch in patches}
    for place, (table, patch) in enumerate(zip(tables, patches, strict=True)):
        name = patch.id.patch
        if name and first.setdefault(name, place) != place:
            table.note("name", f'"{name}" is also the name of patch[{first[name]}]; names are unique in a set')
        if patch.group and patch.default and default_of.setdefault(patch.group, name) != name:
            words = f'"{name}" and "{default_of[patch.group]}" are both defaults of the group "{patch.group}"'
            table.note("default", f"{words}; write default = false for all but one (true where absent)")
        _check_after(table, patch, names)


def _check_after(table: Table, patch: Patch, names: set[PatchId]) -> None:
    for other in patch.after:
        if other == patch.id:
            table.note("after", f'"{other.patch}" cannot come after itself')
        elif other.set == patch.id.set and other not in names:
            table.note("after", f'there is no patch "{other.patch}" in this set')


def _cycles(patch_set: PatchSet, file: str) -> list[OrderCycle]:
    """A cycle of `after` within the set: what stays when patches that wait for nobody are taken away."""
    waits = {patch.id: {other for other in patch.after if other != patch.id} for patch in patch_set.patches}
    while free := [one for one, others in waits.items() if not others & waits.keys()]:
        for one in free:
            del waits[one]
    if not waits:
        return []
    path = [next(iter(waits))]
    while path[-1] not in path[:-1]:
        path.append(min(waits[path[-1]] & waits.keys()))
    cycle = path[path.index(path[-1]) :]
    return [OrderCycle(f"{file}: `after` goes in a circle: " + " after ".join(one.patch for one in cycle))]
