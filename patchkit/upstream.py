"""An upstream diff meets a distribution: which of its files that has, and where they lie.

A repository keeps its sources elsewhere than a wheel does (``src/``, or a folder that the build puts into another), and
its commits carry tests and documentation. So each entry is looked for among the installed files: by its path with the
first components dropped, and by whether its hunks are about the text that stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from patchkit.diff import ends_in_crlf
from patchkit.entries import RawEntry, read_entries
from patchkit.errors import EmptyDiff, UsageError, raise_all
from patchkit.homes import find_home
from patchkit.hunks import apply_hunks, find_upstream
from patchkit.layouts import Candidate, Files, Landing, Route, under
from patchkit.model import EntryKind, FileDiff, HunkResult
from patchkit.paths import matches

EXCLUDED = "excluded"

Reader = Callable[[str], bytes | None]
"""The text that the distribution shipped at a path, or None."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A file that is not where the diff has it: ``meant`` is where it would be, ``there`` whether a file is, with
    another text. ``home`` is the installed file that has its text ("": none was found).
    """

    meant: str
    there: bool
    home: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user said of the diff's files: globs of those to leave out, and which installed file each one is."""

    exclude: Sequence[str] = ()
    moved: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """The entries that the distribution has, and the paths of the diff that are left out, with the reason.

    ``doubtful`` are paths of the diff that the distribution should have, and why that is in doubt.
    ``include`` are the globs of a manifest that take just these entries, where all go by one route.
    ``idle`` are the user's globs that left out nothing.
    """

    landings: tuple[Landing, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    doubtful: Mapping[str, Doubt] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    @property
    def routes(self) -> tuple[Route, ...]:
        return tuple(dict.fromkeys(landing.route for landing in self.landings))


def place(data: bytes, owned: Collection[str], read: Reader, choices: Choices, *, file: str) -> Placement:
    """Find the files of the diff ``data`` among those that a distribution ``owned``; ``read`` gives a shipped text.

    Globs match the path in the diff or below the site root. Raises `DiffError` where the diff is malformed, `EmptyDiff`
    where it has no entry, and `UsageError` for a choice that is about no file, or no such file.
    """
    entries, broken = read_entries(without_cr(data), file=file)
    if broken is not None:
        raise broken
    if not entries:
        raise EmptyDiff("no entry of a unified diff was found", file=file, line=1)
    search = _Search([Candidate.of(entry) for entry in entries], Files(owned), read)
    _require_files(search, choices, file)
    placement = _settle(search, choices)
    _require_one_each(placement, file)
    return placement


def _require_one_each(placement: Placement, file: str) -> None:
    for landing in placement.landings:
        home = landing.targets[0]
        if landing.moved and any(home in other.targets for other in placement.landings if other is not landing):
            words = f"--moved {landing.moved}={home}: {file} changes {home} itself, and one patch may not do so twice"
            raise UsageError(words, hint="leave one of the two out with --exclude, and import it as a patch of its own")


def _require_files(search: _Search, choices: Choices, file: str) -> None:
    problems: list[UsageError] = []
    for path, home in choices.moved.items():
        named = [candidate for candidate in search.candidates if candidate.is_called(path)]
        if home not in search.files.owned:
            problems.append(UsageError(f"--moved {path}={home}: the distribution has no file {home}"))
        elif len(named) != 1:
            words = f"--moved {path}={home}: {file} has {'no file' if not named else 'several files called'} {path}"
            problems.append(UsageError(words, hint="write the path as the diff has it, without a/ and b/"))
        elif not named[0].stays:
            words = f"--moved {path}={home}: {file} creates, renames or copies it"
            problems.append(UsageError(words, hint="name a file that the diff changes or deletes"))
    raise_all(problems)


def without_cr(data: bytes) -> bytes:
    """The diff with LF line ends, if all of its lines end in CRLF."""
    return data.replace(b"\r\n", b"\n") if ends_in_crlf(data) else data


# ---- what an entry may mean -----------------------------------------------------------------------------------


class _Search:
    """The entries with all that they may mean, and which of it the installed texts bear out."""

    def __init__(self, candidates: Sequence[Candidate], files: Files, read: Reader) -> None:
        self.candidates = candidates
        self.files = files
        self.read: Reader = lambda path: read(path) if path in files.owned else None
        self.options = {number: dict(candidate.options(files)) for number, candidate in enumerate(candidates)}
        self.proved = {
            (number, route)
            for number, ways in self.options.items()
            for route, targets in ways.items()
            if self.is_about(candidates[number].entry, targets)
        }

    def is_about(self, entry: RawEntry, targets: tuple[str, str]) -> bool:
        """Whether some hunk of the entry fits the shipped text, or is in it already."""
        text = self.read(targets[0] if targets[0] in self.files.owned else targets[1])
        if text is None or not entry.hunks:
            return False
        diff = FileDiff(entry.line, EntryKind.MODIFY, *targets, entry.hunks)
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


def _settle(search: _Search, choices: Choices) -> Placement:
    routes = search.routes()
    landings: list[Landing] = []
    left_out: dict[str, str] = {}
    doubtful: dict[str, Doubt] = {}
    others: list[Candidate] = []
    idle = set(choices.exclude)
    for number, candidate in enumerate(search.candidates):
        landing = _land_moved(candidate, routes, choices) or _land(search, number, routes)
        paths = (*candidate.paths, *(landing.targets if landing is not None else ()))
        matching = {glob for glob in choices.exclude if any(matches(path, glob) for path in paths)}
        idle -= matching
        if matching:
            left_out[candidate.path] = EXCLUDED
            others.append(candidate)
        elif landing is not None:
            landings.append(landing)
        elif (doubt := _doubt(search, number, routes)) is not None:
            doubtful[candidate.path] = doubt
        else:
            left_out[candidate.path] = "not in the distribution"
            others.append(candidate)
    unused = tuple(glob for glob in choices.exclude if glob in idle)
    return Placement(tuple(landings), left_out, doubtful, _choose_include(landings, others), unused)


def _land_moved(candidate: Candidate, routes: Sequence[Route], choices: Choices) -> Landing | None:
    """Where the user said that a file is."""
    home = next((home for path, home in choices.moved.items() if candidate.is_called(path)), None)
    if home is None:
        return None
    known = [route for route in routes if route.strip in candidate.names]
    route = known[0] if known else Route(next(iter(candidate.names)))
    return Landing(candidate.entry, route, (home, home), moved=under(route.directory, candidate.names[route.strip])[0])


def _land(search: _Search, number: int, routes: Sequence[Route]) -> Landing | None:
    candidate, ways = search.candidates[number], search.options[number]
    for route in routes:
        if route in ways:
            return Landing(candidate.entry, route, ways[route])
    if not (candidate.is_new() or candidate.is_copy):
        return None
    for route in routes or [Route(strip) for strip in candidate.names]:
        names = candidate.names.get(route.strip)
        if names is not None and search.files.has_folder_of(route.directory, names.new_path):
            return Landing(candidate.entry, route, under(route.directory, names))
    return None if candidate.is_elsewhere else _land_by_folder(candidate, search.files)


def _land_by_folder(candidate: Candidate, files: Files) -> Landing | None:
    """Where a new file goes that no other file shows the way: into the only folder that is called as its own is."""
    for strip, names in sorted(candidate.names.items()):
        directory = files.folder_called(names.new_path)
        if directory is not None and files.has_folder_of(directory, names.new_path):
            return Landing(candidate.entry, Route(strip, directory), under(directory, names), by_folder=True)
    return None


def _doubt(search: _Search, number: int, routes: Sequence[Route]) -> Doubt | None:
    """Why an entry that the distribution does not have may nevertheless be about it."""
    candidate = search.candidates[number]
    if candidate.is_elsewhere:
        return None
    for targets in search.options[number].values():  # a file that none of the hunks is about
        return Doubt(targets[0], there=True)
    meant = _find_place(candidate, routes, search.files)
    if meant is None:
        return None
    diff = FileDiff(candidate.entry.line, EntryKind.MODIFY, meant, meant, candidate.entry.hunks)
    named = {path for ways in search.options.values() for targets in ways.values() for path in targets}
    if not (candidate.stays and diff.hunks):
        return Doubt(meant, there=False)
    home = find_home(diff, (), search.files.owned - named, search.read, everywhere=True)
    return Doubt(meant, there=False, home=home or "")


def _find_place(candidate: Candidate, routes: Sequence[Route], files: Files) -> str | None:
    """Where a file would be that the distribution should have; None where nothing says that it should."""
    ways = [route for route in routes if route.strip in candidate.names]
    ways += [Route(strip) for strip in candidate.names] if not routes else []
    ways += [
        Route(strip, directory)
        for strip, names in sorted(candidate.names.items())
        if (directory := files.folder_called(names.old_path)) is not None
    ]
    for route in ways:
        names = candidate.names[route.strip]
        pairs = zip((names.old_path, names.new_path), under(route.directory, names), strict=True)
        for path, located in pairs:
            if files.should_have(route.directory, path):
                return located
    return None


def _choose_include(landings: Sequence[Landing], others: Sequence[Candidate]) -> tuple[str, ...]:
    """The globs that take what landed and nothing else, by the one route of all; () where everything landed."""
    if not others or not landings:
        return ()
    route = landings[0].route
    located = [under(route.directory, each.names[route.strip]) for each in others if route.strip in each.names]
    targets = dict.fromkeys(path for landing in landings for path in landing.targets)
    tops = tuple(dict.fromkeys(f"{path.partition('/')[0]}/**" if "/" in path else path for path in targets))
    loose = any(matches(path, glob) for pair in located for path in pair for glob in tops)
    return tuple(sorted(targets)) if loose else tops
