"""An upstream diff meets a distribution: which of its files that has, and where they lie.

A repository keeps its sources elsewhere than a wheel does (``src/``, or a folder that the build puts into another), and
its commits carry tests and documentation. So each entry is looked for among the installed files: by its path with the
first components dropped, and by whether its hunks are about the text that stands there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from patchkit.diff import ends_in_crlf
from patchkit.entries import RawEntry, read_entries
from patchkit.errors import DiffError, EmptyDiff
from patchkit.headers import Names, read_names
from patchkit.hunks import apply_hunks, find_upstream
from patchkit.model import EntryKind, FileDiff, HunkResult
from patchkit.paths import matches

_NOT_SOURCES = re.compile(
    r"tests?|testing|docs?|examples?|bench(?:mark)?s?|tools?|scripts?|ci|notebooks?|tutorials?|\..*", re.IGNORECASE
)
_DEEPEST = 12  # components that are dropped at most


@dataclass(frozen=True, slots=True)
class Route:
    """How paths of the diff become paths of the distribution: ``strip`` components go, ``directory`` comes in front."""

    strip: int
    directory: str = ""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where an entry goes: ``targets`` are its old and new path below the site root.

    ``by_folder``: it is a new file, and nothing but the name of its folder says so.
    """

    entry: RawEntry
    route: Route
    targets: tuple[str, str]
    by_folder: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """The entries that the distribution has, and the paths of the diff that are left out, with the reason.

    ``doubtful`` are paths of the diff with the installed file that may be meant, where no hunk is about its text.
    ``include`` are the globs of a manifest that take just these entries, where all go by one route.
    """

    landings: tuple[Landing, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    doubtful: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()

    @property
    def routes(self) -> tuple[Route, ...]:
        return tuple(dict.fromkeys(landing.route for landing in self.landings))


def place(
    data: bytes, owned: Collection[str], read: Callable[[str], bytes | None], exclude: Sequence[str], *, file: str
) -> Placement:
    """Find the files of the diff ``data`` among those that a distribution ``owned``; ``read`` gives a shipped text.

    What a glob of ``exclude`` matches, by its path in the diff or below the site root, is left out. Raises `DiffError`
    where the diff is malformed, and `EmptyDiff` where it has no entry.
    """
    entries, broken = read_entries(without_cr(data), file=file)
    if broken is not None:
        raise broken
    if not entries:
        raise EmptyDiff("no entry of a unified diff was found", file=file, line=1)
    search = _Search([_Candidate.of(entry) for entry in entries], _Files(owned), read)
    return _settle(search, exclude)


def without_cr(data: bytes) -> bytes:
    """The diff with LF line ends, if all of its lines end in CRLF."""
    return data.replace(b"\r\n", b"\n") if ends_in_crlf(data) else data


# ---- what an entry may mean -----------------------------------------------------------------------------------


class _Files:
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

    def directories(self, path: str) -> Iterator[str]:
        """Each folder below which the distribution has ``path``; "" is the site root."""
        for found in self.by_name.get(path.rpartition("/")[2], ()):
            if found == path or found.endswith(f"/{path}"):
                yield found[: len(found) - len(path)].rstrip("/")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An entry with its names by the number of components dropped."""

    entry: RawEntry
    names: Mapping[int, Names]
    path: str

    @classmethod
    def of(cls, entry: RawEntry) -> _Candidate:
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
        shown = names.get(1) or next(iter(names.values()), None)
        return cls(entry, names, shown.new_path if shown is not None else "?")

    @property
    def first_folder(self) -> str:
        return self.path.partition("/")[0]

    def options(self, files: _Files) -> Iterator[tuple[Route, tuple[str, str]]]:
        """The ways to files that are there; a file at the very end of a path counts only where its folder does too."""
        for strip, names in self.names.items():
            there = names.new_path if names.old_absent else names.old_path
            for directory in files.directories(there):
                if "/" in there or not directory:
                    yield Route(strip, directory), _under(directory, names)

    def is_new(self) -> bool:
        return next(iter(self.names.values())).old_absent if self.names else False


def _under(directory: str, names: Names) -> tuple[str, str]:
    lead = f"{directory}/" if directory else ""
    return f"{lead}{names.old_path}", f"{lead}{names.new_path}"


class _Search:
    """The entries with all that they may mean, and which of it the installed texts bear out."""

    def __init__(self, candidates: Sequence[_Candidate], files: _Files, read: Callable[[str], bytes | None]) -> None:
        self.candidates = candidates
        self.files = files
        self.read = read
        self.options = {number: dict(candidate.options(files)) for number, candidate in enumerate(candidates)}
        self.proved = {
            (number, route)
            for number, ways in self.options.items()
            for route, targets in ways.items()
            if self.is_about(candidates[number].entry, targets)
        }

    def is_about(self, entry: RawEntry, targets: tuple[str, str]) -> bool:
        """Whether some hunk of the entry fits the shipped text, or is in it already."""
        text = self.read(targets[0]) if targets[0] in self.files.owned else self.read(targets[1])
        if text is None or not entry.hunks:
            return False
        diff = FileDiff(entry.line, EntryKind.MODIFY, targets[0], targets[1], entry.hunks)
        outcomes = (*apply_hunks(text, diff).outcomes, *find_upstream(text, diff))
        return any(outcome.result is not HunkResult.CONFLICT for outcome in outcomes)

    def routes(self) -> list[Route]:
        """The routes that are taken, the most trusted first: each is borne out by a text, or is the natural one."""
        open_entries = set(self.options)
        taken: list[Route] = []
        while True:
            proofs = Counter(route for number, route in self.proved if number in open_entries)
            if not proofs:
                break
            best = max(proofs, key=lambda route: (proofs[route], not route.directory, -route.strip))
            taken.append(best)
            open_entries -= {number for number in open_entries if best in self.options[number]}
        if not taken:
            votes = Counter(route for ways in self.options.values() for route in ways)
            natural = [route for route in votes if not route.directory]
            taken += sorted(natural, key=lambda route: (-votes[route], route.strip))[:1]
        return taken


# ---- what is taken --------------------------------------------------------------------------------------------


def _settle(search: _Search, exclude: Sequence[str]) -> Placement:
    routes = search.routes()
    landings: list[Landing] = []
    left_out: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    others: list[_Candidate] = []
    for number, candidate in enumerate(search.candidates):
        landing = _land(search, number, routes)
        paths = (candidate.path, *(landing.targets if landing is not None else ()))
        if any(matches(path, glob) for path in paths for glob in exclude):
            left_out[candidate.path] = "excluded"
            others.append(candidate)
        elif landing is not None:
            landings.append(landing)
        elif (meant := _perhaps(search, number)) and not _NOT_SOURCES.fullmatch(candidate.first_folder):
            doubtful[candidate.path] = meant
        else:
            left_out[candidate.path] = "not in the distribution"
            others.append(candidate)
    return Placement(tuple(landings), left_out, doubtful, _choose_include(landings, others))


def _land(search: _Search, number: int, routes: Sequence[Route]) -> Landing | None:
    candidate, ways = search.candidates[number], search.options[number]
    for route in routes:
        if route in ways:
            return Landing(candidate.entry, route, ways[route])
    if not candidate.is_new():
        return None
    for route in routes or [Route(strip) for strip in candidate.names]:
        names = candidate.names.get(route.strip)
        if names is not None and _belongs(names.new_path, route.directory, search.files):
            return Landing(candidate.entry, route, _under(route.directory, names))
    return None if _NOT_SOURCES.fullmatch(candidate.first_folder) else _land_by_folder(candidate, search.files)


def _land_by_folder(candidate: _Candidate, files: _Files) -> Landing | None:
    """Where a new file goes that no other file shows the way: into the only folder that is called as its own is."""
    for strip, names in sorted(candidate.names.items()):
        path = names.new_path
        while "/" in path:
            path = path.rpartition("/")[0]
            found = [folder for folder in files.folders if folder.endswith(f"/{path}")]
            if len(found) == 1:
                directory = found[0].removesuffix(f"/{path}")
                return Landing(candidate.entry, Route(strip, directory), _under(directory, names), by_folder=True)
    return None


def _belongs(path: str, directory: str, files: _Files) -> bool:
    """Whether a new file would lie in a folder of the distribution that the diff itself names."""
    lead = f"{directory}/" if directory else ""
    while "/" in path:
        path = path.rpartition("/")[0]
        if f"{lead}{path}" in files.folders:
            return True
    return False


def _perhaps(search: _Search, number: int) -> str:
    """An installed file that an entry may mean although none of its hunks is about the text there."""
    return next((targets[0] for targets in search.options[number].values()), "")


def _choose_include(landings: Sequence[Landing], others: Sequence[_Candidate]) -> tuple[str, ...]:
    """The globs that take what landed and nothing else, by the one route of all; () where everything landed."""
    if not others or not landings:
        return ()
    route = landings[0].route
    located = [_under(route.directory, each.names[route.strip]) for each in others if route.strip in each.names]
    targets = dict.fromkeys(path for landing in landings for path in landing.targets)
    tops = tuple(dict.fromkeys(f"{path.partition('/')[0]}/**" if "/" in path else path for path in targets))
    loose = any(matches(path, glob) for pair in located for path in pair for glob in tops)
    return tuple(sorted(targets)) if loose else tops
