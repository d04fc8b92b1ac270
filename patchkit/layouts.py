"""The paths of an upstream diff and those of a distribution: what the one may mean among the others.

A repository keeps its sources elsewhere than a wheel does (``src/``, or a folder that the build puts into another), and
its commits carry tests, documentation and build files that no wheel has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from patchkit.entries import RawEntry
from patchkit.errors import DiffError
from patchkit.headers import Names, read_names

_NOT_SOURCES = re.compile(
    r"tests?|testing|docs?|examples?|bench(?:mark)?s?|tools?|scripts?|ci|notebooks?|tutorials?|\..*", re.IGNORECASE
)
_EXTRAS = re.compile(r"tests?|docs?|examples?|bench(?:mark)?s?|\..*", re.IGNORECASE)
_DOCUMENTS = (".md", ".rst")
_DEEPEST = 12  # components that are dropped at most


@dataclass(frozen=True, slots=True)
class Route:
    """How paths of the diff become paths of the distribution: ``strip`` components go, ``directory`` comes in front."""

    strip: int
    directory: str = ""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where an entry goes: ``targets`` are its old and new path below the site root.

    ``by_folder``: it is a new file, and nothing but the name of its folder says so. ``moved`` is the path that the
    route gives, where the user said that the file is another one ("": it is the one that the route gives).
    """

    entry: RawEntry
    route: Route
    targets: tuple[str, str]
    by_folder: bool = False
    moved: str = ""

    @property
    def located(self) -> tuple[str, ...]:
        """The paths that the route gives."""
        return (self.moved,) if self.moved else self.targets


class Files:
    """The paths of a distribution, by how they end."""

    def __init__(self, owned: Collection[str]) -> None:
        self.owned = frozenset(owned)

    @cached_property
    def by_name(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self.owned):
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    @cached_property
    def folders(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self.owned:
            while "/" in path and (path := path.rpartition("/")[0]) not in found:
                found.add(path)
        return frozenset(found)

    @cached_property
    def homes(self) -> frozenset[str]:
        """The folders that a file of the distribution lies directly in."""
        return frozenset(path.rpartition("/")[0] for path in self.owned if "/" in path)

    def has_folder_of(self, directory: str, path: str) -> bool:
        """Whether the distribution has a folder that ``path`` names below ``directory``; no folder of tests counts."""
        return any(folder in self.folders for folder in self._above(directory, path))

    def should_have(self, directory: str, path: str) -> bool:
        """Whether a file that is not there should be: the distribution has files in a folder that ``path`` names."""
        inside = any(folder in self.homes for folder in self._above(directory, path))
        return inside and not path.endswith(_DOCUMENTS)

    def _above(self, directory: str, path: str) -> Sequence[str]:
        """The folders that ``path`` names, from the first one down; none where it is about tests or documents alone."""
        parts = path.split("/")[:-1]
        lead = f"{directory}/" if directory else ""
        above = [lead + "/".join(parts[: number + 1]) for number in range(len(parts))]
        extra = any(
            _EXTRAS.fullmatch(part) and folder not in self.folders for part, folder in zip(parts, above, strict=True)
        )
        return () if extra else above

    def folder_called(self, path: str) -> str | None:
        """The directory below which the folder of ``path``, or the nearest above, is, if there is only one such."""
        while "/" in path:
            path = path.rpartition("/")[0]
            found = [folder for folder in self.folders if folder.endswith(f"/{path}")]
            if len(found) == 1:
                return found[0].removesuffix(f"/{path}")
        return None

    def directories(self, path: str) -> Iterator[str]:
        """Each folder below which the distribution has ``path``; "" is the site root."""
        for found in self.by_name.get(path.rpartition("/")[2], ()):
            if found == path or found.endswith(f"/{path}"):
                yield found[: len(found) - len(path)].rstrip("/")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry with its names by the number of components dropped; ``paths`` are the old and the new one, with none."""

    entry: RawEntry
    names: Mapping[int, Names]
    paths: tuple[str, str]

    @classmethod
    def of(cls, entry: RawEntry) -> Candidate:
        """The entry with the names that its path may mean, by strip level."""
        names: dict[int, Names] = {}
        problem: DiffError | None = None
        for strip in range(_DEEPEST + 1):
            try:
                found = read_names(entry, strip=strip, directory="")
            except DiffError as error:
                problem = problem or error
                continue
            if found is not None:
                names[strip] = found
        if not names and problem is not None:
            raise problem
        return cls(entry, names, _paths_of(names))

    @property
    def path(self) -> str:
        return self.paths[1]

    @property
    def is_elsewhere(self) -> bool:
        """Whether it lies where a repository has what is no source of a distribution: tests, documents, tools."""
        return _NOT_SOURCES.fullmatch(self.path.partition("/")[0]) is not None

    @property
    def is_copy(self) -> bool:
        return b"copy from" in self.entry.fields

    def options(self, files: Files) -> Iterator[tuple[Route, tuple[str, str]]]:
        """The ways to files that are there; a file at the very end of a path counts only where its folder does too."""
        for strip, names in self.names.items():
            there = names.new_path if names.old_absent else names.old_path
            for directory in files.directories(there):
                if "/" in there or not directory:
                    yield Route(strip, directory), under(directory, names)

    def is_new(self) -> bool:
        return next(iter(self.names.values())).old_absent if self.names else False

    @property
    def stays(self) -> bool:
        """Whether it is one file before and after, or before alone: neither made, renamed nor copied."""
        return not self.is_new() and not any(field.startswith((b"rename", b"copy")) for field in self.entry.fields)

    def is_called(self, path: str) -> bool:
        """Whether ``path`` is the file's name, with any number of components dropped."""
        return path in self.paths or any(path in (names.old_path, names.new_path) for names in self.names.values())


def _paths_of(names: Mapping[int, Names]) -> tuple[str, str]:
    """The old and new path as the repository has them: without a/ and b/, where the diff has these."""
    if not names:
        return "?", "?"
    natural = names[min(names)]
    chosen = names[1] if natural.new_path.startswith(("a/", "b/")) and 1 in names else natural
    return chosen.old_path, chosen.new_path


def under(directory: str, names: Names) -> tuple[str, str]:
    """The old and new path of an entry below ``directory``."""
    lead = f"{directory}/" if directory else ""
    return f"{lead}{names.old_path}", f"{lead}{names.new_path}"
