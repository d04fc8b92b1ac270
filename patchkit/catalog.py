"""Reading patch folders: manifests, manifest-free patches, what the project declares. Writes nothing, runs nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from patchkit.errors import BadManifest, DuplicateSet, NoPatchSets, PatchkitError, raise_all
from patchkit.folders import bundled_folder, is_file, is_folder, list_names, read_file
from patchkit.inputs import DECLARATION, MANIFEST, Doubt, digest_folders, find_project, place_folders
from patchkit.manifest import file_sets, read_manifest, read_patchkit_toml, read_pyproject
from patchkit.patchset import Catalog, Declaration, PatchSet, Project, PythonCheck


def read_catalog(folders: Sequence[str], *, bundled: bool, cwd: str) -> Catalog:
    """The patch sets in ``folders`` (else those that the nearest pyproject.toml names, else ``./patches``).

    With ``bundled`` the sets that come with patchkit are read too; alone, they only. Raises `NoPatchSets` where none
    was found, and everything that is wrong with any manifest, at once.
    """
    catalog, problems = gather_catalog(folders, bundled=bundled, cwd=cwd)
    raise_all(problems)
    if not catalog.sets:
        raise NoPatchSets(f"there is no patch set in {', '.join(catalog.folders)}")
    return catalog


def gather_catalog(folders: Sequence[str], *, bundled: bool, cwd: str) -> tuple[Catalog, tuple[PatchkitError, ...]]:
    """The sound patch sets of the folders that `read_catalog` reads, and everything that is wrong with the others."""
    project, source, data = _read_project(cwd)
    places = _find_places(project, source, folders, bundled=bundled, cwd=cwd)
    digest = _digest(places, data)  # before anything in them is read: what is edited meanwhile is not taken for it
    problems: list[PatchkitError] = []
    sets: list[PatchSet] = []
    declarations = [project.declaration] if project.declaration != Declaration() else []
    for place in places:
        try:
            found, declaration = _read_folder(place, problems)
            sets += found
            declarations += [declaration] if declaration != Declaration() else []
        except PatchkitError as error:
            problems.append(error)
    problems += _find_duplicates(sets)
    ordered = tuple(sorted(sets, key=lambda found: found.name))
    digest = "" if problems else digest
    return Catalog(tuple(places), ordered, tuple(declarations), project, digest), tuple(problems)


def find_folders(folders: Sequence[str], *, bundled: bool, cwd: str) -> tuple[str, ...]:
    """The patch folders that `read_catalog` reads for the same arguments, whether or not they are there."""
    project, source, _ = _read_project(cwd)
    return tuple(_find_places(project, source, folders, bundled=bundled, cwd=cwd))


def _find_places(project: Project, source: str, folders: Sequence[str], *, bundled: bool, cwd: str) -> list[str]:
    """The patch folders to read, each once however it is spelt; ``source`` is the path of ``project``."""
    return place_folders(
        folders,
        bundled=bundled_folder() if bundled else "",
        cwd=cwd,
        home=os.path.dirname(source),
        named=project.patches,
        declares=project != Project(),
    )


def _digest(places: Sequence[str], project: bytes | None) -> str:
    try:
        return digest_folders(places, project)
    except (Doubt, OSError):
        return ""  # whoever reads them says what is wrong with them, if anything is


def _read_project(cwd: str) -> tuple[Project, str, bytes | None]:
    """What the nearest pyproject.toml says, its path and its bytes; an empty `Project` where it says nothing."""
    path = find_project(cwd)
    if not path:
        return Project(), "", None
    data = read_file(path)
    return read_pyproject(data, file=path) or Project(), path, data


def _read_folder(folder: str, problems: list[PatchkitError]) -> tuple[list[PatchSet], Declaration]:
    """The sets in one patch folder, and its patchkit.toml; what is wrong with one goes to ``problems``.

    A folder that is a patch set itself is taken as one.
    """
    if not is_folder(folder):
        raise NoPatchSets(f"there is no patch folder {folder}")
    entries = list_names(folder)
    if MANIFEST in entries:
        return [_read_set(folder)], Declaration()
    sets: list[PatchSet] = []
    files: list[str] = []
    declaration = Declaration()
    for entry in entries:
        path = os.path.join(folder, entry)
        try:
            if entry == DECLARATION:
                declaration = read_patchkit_toml(read_file(path), file=path)
            elif is_folder(path):
                sets += [_read_set(path)] if _is_set(path) else []
            elif entry.endswith(".patch"):
                files.append(entry)
        except PatchkitError as error:
            problems.append(error)
    try:
        sets += file_sets(files, folder=folder)
    except PatchkitError as error:
        problems.append(error)
    return sets, declaration


def _read_set(folder: str) -> PatchSet:
    path = os.path.join(folder, MANIFEST)
    found = read_manifest(read_file(path), folder=folder, file=path)
    missing = [file for file in files_of(found) if not is_file(os.path.join(folder, file))]
    raise_all(
        [
            BadManifest(f"{path}: it names {file}, and there is no such file", hint="is it committed?")
            for file in missing
        ]
    )
    return found


def files_of(patch_set: PatchSet) -> Iterable[str]:
    """The files that a manifest names, each once, in its order."""
    named = [
        file
        for patch in patch_set.patches
        for file in (
            *(variant.file for variant in patch.variants),
            *(check.file for check in patch.checks if isinstance(check, PythonCheck)),
        )
    ]
    return dict.fromkeys(named)


def _is_set(folder: str) -> bool:
    """Whether ``folder`` is a patch set. `BadManifest` for diffs without a manifest, which nothing would apply."""
    if os.path.basename(folder).startswith("."):
        return False
    entries = list_names(folder)
    if MANIFEST not in entries and any(entry.endswith(".patch") for entry in entries):
        raise BadManifest(f"{folder} holds diffs and no {MANIFEST}", hint=f"write {MANIFEST}, or move the folder away")
    return MANIFEST in entries


def _find_duplicates(sets: Iterable[PatchSet]) -> list[PatchkitError]:
    places: dict[str, list[str]] = {}
    for found in sets:
        places.setdefault(found.name, []).append(found.folder)
    return [
        DuplicateSet(f"{len(folders)} patch sets are called {name}: {', '.join(folders)}", hint="rename one of them")
        for name, folders in places.items()
        if len(folders) > 1
    ]


def read_set_file(folder: str, file: str) -> bytes:
    """The bytes of a file of a patch set. A link that leads out of the folder is refused. Raises `BadManifest`."""
    path = os.path.join(folder, file)
    inside = os.path.realpath(folder) + os.sep
    if not os.path.realpath(path).startswith(inside):
        raise BadManifest(f"{path} leads out of its patch set", hint="copy the file into the folder")
    return read_file(path)
