"""Version specifiers (PEP 440): what a range holds, whether two ranges meet, which variant a version gets.

Pre-releases always count (``prereleases=True``): the default of `packaging` changed between its releases, and a range
that leaves out the release candidate in use would lose a fix without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from patchkit.errors import BadManifest
from patchkit.patchset import NotNeeded, Patch, Variant

_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
_PATCH_FILE = re.compile(r"(?P<name>.+?)(?:==|@|\+)(?P<version>.*)\.patch", re.DOTALL)
_LOWER = frozenset({">=", ">", "~=", "==", "==="})
_UPPER = frozenset({"<=", "<", "==", "===", "~="})
_LOWEST = ("0.dev0", "0")
MOST_CLAUSES = 20
_MOST_LEFT_OUT = 5
_SUFFIXES = ("", ".0.1", ".post0", ".dev0", "a0.dev0", "a0", "b0", "rc0", ".post0.dev0", ".0.1.dev0")


def normalised(distribution: str) -> str | None:
    """The normalised name of a distribution (PEP 503); None if it is not a name (PEP 508)."""
    # Not packaging.utils: its import costs as much as all of packaging.specifiers and packaging.version.
    return _SEPARATORS.sub("-", distribution).lower() if _DISTRIBUTION.fullmatch(distribution) else None


@cache
def _specifiers(text: str) -> SpecifierSet:
    return SpecifierSet(text)


@cache
def _clauses(text: str) -> tuple[Specifier, ...]:
    """The clauses of a specifier, those with a lower bound first."""
    clauses = sorted((Specifier(clause) for clause in text.split(",") if clause.strip()), key=str)
    return tuple(sorted(clauses, key=lambda clause: clause.operator not in _LOWER))


def _bound(clause: Specifier) -> Version:
    return Version(clause.version.removesuffix(".*"))


def contains(specifier: str, version: str) -> bool:
    """Whether ``version`` is in a valid specifier. Local versions are as PEP 440 says: ``==1.0`` holds ``1.0+cu130``.

    A version that is not one by PEP 440 is in no range.
    """
    try:
        return _specifiers(specifier).contains(Version(version), prereleases=True)
    except ValueError:
        return False


def is_older(one: str, other: str) -> bool:
    """Whether the version ``one`` comes before ``other``. What is no version by PEP 440 comes before nothing."""
    try:
        return Version(one) < Version(other)
    except ValueError:  # InvalidVersion
        return False


def is_below(specifier: str, version: str) -> bool:
    """Whether ``version`` is older than all that a valid specifier holds. What is no version is below nothing."""
    try:
        return any(_public(Version(version)) < low for low in _lower_bounds(specifier))
    except ValueError:  # InvalidVersion
        return False


def is_same_version(one: str, other: str) -> bool:
    """Whether two version texts are the same: by PEP 440 ``1.0`` is ``1.0.0``; what is none by PEP 440, as text."""
    try:
        return one == other or Version(one) == Version(other)
    except ValueError:
        return False


def is_just(specifier: str, version: str) -> bool:
    """Whether a valid specifier is for just ``version``, however spelled: for 1.0.0 ``==1.0,!=1.0+cu128`` is."""
    exact = [clause for clause in _clauses(specifier) if clause.operator in ("==", "===")]
    return contains(specifier, version) and any(is_same_version(clause.version, version) for clause in exact)


def range_for(version: str, others: Sequence[str]) -> str:
    """The specifier of just ``version``. Local versions of it that one of ``others`` holds are left out."""
    text = f"=={version}"
    for other in others:
        while text.count(",") < _MOST_LEFT_OUT and (common := common_version(text, other)):
            text += f",!={common}"
    return f"==={Version(version)}" if any(common_version(text, other) for other in others) else text


def older_than(version: str) -> str:
    """The specifier of what is older than ``version``; a bound has no local part (PEP 440)."""
    return f"<{_public(Version(version))}"


def by_nearness(specifiers: Sequence[str], version: str) -> list[int]:
    """The places of valid specifiers, the nearest to ``version`` first: older ones from there down, then newer ones.

    One whose bounds leave ``version`` between them counts as nearest. What is no version is as near to each.
    """
    if not is_version(version):
        return list(range(len(specifiers)))
    now = _public(Version(version))
    ends = [min((high for high, _ in _upper_bounds(text) if high <= now), default=None) for text in specifiers]
    starts = [max((low for low in _lower_bounds(text) if low > now), default=None) for text in specifiers]
    older = sorted((now if end is None else end, -place) for place, end in enumerate(ends) if starts[place] is None)
    newer = sorted((start, place) for place, start in enumerate(starts) if start is not None)
    return [*(-place for _, place in reversed(older)), *(place for _, place in newer)]


def variant_for(patch: Patch, version: str) -> Variant | NotNeeded | None:
    """What a patch has for a version: a diff, the word that it is not needed, or None (no range holds it)."""
    rules: tuple[Variant | NotNeeded, ...] = (*patch.variants, *patch.not_needed)
    return next((rule for rule in rules if contains(rule.versions, version)), None)


def specifier_trouble(text: str) -> str:
    """Why ``text`` is not a specifier that holds some version, in words; "" if it is one."""
    example = 'write for example ">=0.4.0.dev0,<0.5.dev0"'
    if text.count(",") >= MOST_CLAUSES:
        return f"{text.count(',') + 1} clauses are too many; the limit is {MOST_CLAUSES}"
    try:
        clauses = _clauses(text)
        held = any(contains(text, sample) for sample in _samples(text))
    except ValueError:  # InvalidSpecifier, InvalidVersion; and int() refuses thousands of digits
        return f'"{text}" is not a PEP 440 specifier; {example}'
    if not clauses:
        return f'"{text}" names no version; {example}'
    return "" if held else f'"{text}" holds no version at all; {example}'


def common_version(one: str, other: str) -> str | None:
    """A version that two valid specifiers both hold; None if they exclude each other.

    Decided by trying versions around every bound: where two ranges meet, they meet at or next to one of them.
    """
    if _apart(one, other) or _apart(other, one):
        return None
    both = chain(
        (sample for sample in _held(one) if contains(other, sample)),
        (sample for sample in _held(other) if contains(one, sample)),
    )
    return next(both, None)


def prerelease_gaps(specifiers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Where one range ends with ``<B`` and another begins at B, and none holds B's pre-releases: (the range, B).

    By PEP 440 ``<B`` leaves out the pre-releases of B, and so does ``>=B``.
    """
    for text in specifiers:
        for clause in _clauses(text):
            bound = _bound(clause)
            meets = clause.operator == "<" and not bound.is_prerelease
            if meets and _holds(specifiers, str(bound)) and not _holds(specifiers, f"{bound.base_version}rc1"):
                yield text, str(bound)


def _holds(specifiers: Sequence[str], version: str) -> bool:
    return any(contains(text, version) for text in specifiers)


def _apart(below: str, above: str) -> bool:
    """Whether an upper bound of ``below`` proves that no version of ``above`` is in it: the usual case, and cheap."""
    return any(
        low > high or (low == high and open_end)
        for high, open_end in _upper_bounds(below)
        for low in _lower_bounds(above)
    )


@cache
def _lower_bounds(text: str) -> tuple[Version, ...]:
    """Versions that nothing in the range is below; local parts aside."""
    return tuple(
        Version(f"{clause.version.removesuffix('.*')}.dev0")
        if clause.version.endswith(".*")
        else _public(_bound(clause))
        for clause in _clauses(text)
        if clause.operator in _LOWER
    )


@cache
def _upper_bounds(text: str) -> tuple[tuple[Version, bool], ...]:
    """Versions that nothing in the range is above, local parts aside, and whether they are out of it themselves."""
    return tuple(
        (_end(clause), True)
        if clause.operator == "~=" or clause.version.endswith(".*")
        else (_public(_bound(clause)), clause.operator == "<")
        for clause in _clauses(text)
        if clause.operator in _UPPER
    )


def _end(clause: Specifier) -> Version:
    """What no version of ``==1.2.*`` or ``~=1.2.3`` comes up to: the first of 1.3."""
    bound = _bound(clause)
    release = bound.release if clause.operator == "==" else bound.release[:-1]
    return Version(f"{bound.epoch}!{'.'.join(map(str, (*release[:-1], release[-1] + 1)))}.dev0")


def _public(version: Version) -> Version:
    return Version(version.public) if version.local else version


@cache
def _held(text: str) -> tuple[str, ...]:
    """Those of its samples that a specifier holds."""
    return tuple(sample for sample in _samples(text) if contains(text, sample))


def _samples(text: str) -> Iterator[str]:
    """Versions at and next to every bound of a specifier; the bounds themselves come first."""
    bounds = [_bound(clause) for clause in _clauses(text)]
    yield from map(str, bounds)
    near = dict.fromkeys(chain(_LOWEST, *map(_around, bounds)))
    yield from (sample for sample in near if is_version(sample))


def _around(version: Version) -> Iterator[str]:
    base = version.base_version
    stems = [base, version.public]
    if version.pre is not None:
        letter, number = version.pre
        stems += [f"{base}{letter}{number}", f"{base}{letter}{number + 1}"]
    before_post = stems[2] if version.pre is not None else base
    if version.post is not None:
        stems += [f"{before_post}.post{version.post}", f"{before_post}.post{version.post + 1}"]
    if version.dev is not None:
        yield f"{version.public.rpartition('.dev')[0]}.dev{version.dev + 1}"
    stems += _next_releases(version)
    yield from (f"{stem}{suffix}" for stem in dict.fromkeys(stems) for suffix in _SUFFIXES)
    yield from (f"{version.public}{local}" for local in ("+0", f"+{version.local or 0}.0"))


def _next_releases(version: Version) -> Iterator[str]:
    """The releases where `~=` and wildcards may end: one component raised, the rest dropped."""
    epoch = f"{version.epoch}!" if version.epoch else ""
    for index, number in enumerate(version.release):
        yield epoch + ".".join(map(str, (*version.release[:index], number + 1)))


def widened(text: str, version: str) -> str | None:
    """A range that holds ``version`` and all that ``text`` holds, closed at ``version``; None where there is none such.

    The bound on the side of ``version`` gives way, the other one stays: ``>=1,<2`` and 2.1 make ``>=1,<=2.1``.
    """
    added = _public(Version(version))
    pieces = [bound for piece in text.split(",") if piece.strip() for bound in _open(piece.strip())]
    bounds = _upper_bounds(",".join(pieces))
    above = bool(bounds) and all(bound <= added for bound, _ in bounds)
    kept = [piece for piece in pieces if piece[0] == "!" or (piece[0] == "<") != above]
    wider = ",".join([*kept, f"<={added}"] if above else [f">={added}", *kept])
    return wider if contains(wider, version) and not specifier_trouble(wider) else None


def _open(piece: str) -> Iterator[str]:
    """A clause as clauses of one bound each, as near as that can be said; what excludes something stays as it is."""
    clause = Specifier(piece)
    bound = clause.version.removesuffix(".*")
    match clause.operator:
        case "==" if clause.version.endswith(".*"):
            yield from (f">={bound}.dev0", f"<{list(_next_releases(Version(bound)))[-1]}.dev0")
        case "==" | "===":
            yield from (f">={Version(bound).public}", f"<={Version(bound).public}")
        case "~=":
            yield from (f">={bound}", f"<{list(_next_releases(Version(bound)))[-2]}.dev0")
        case _:
            yield piece


def is_version(text: str) -> bool:
    """Whether ``text`` is a version by PEP 440."""
    try:
        Version(text)
    except ValueError:
        return False
    return True


def read_patch_name(file: str) -> tuple[str, str]:
    """The normalised distribution and the version that the name of a patch file without manifest states.

    ``some-dist==1.2.3.patch``, ``some-dist@1.2.3.patch`` or ``some-dist+1.2.3.patch``; the first separator counts, so
    that a local version may follow (``some-dist+1.2.3+cu130.patch``). Raises BadManifest.
    """
    found = _PATCH_FILE.fullmatch(file)
    if found is None:
        raise BadManifest(f"{file}: the name states no version; write DISTRIBUTION==VERSION.patch")
    name, version = normalised(found["name"]), found["version"]
    if name is None:
        raise BadManifest(f'{file}: "{found["name"]}" is not the name of a distribution; write some-dist==1.2.3.patch')
    if not is_version(version) or version != version.strip():
        raise BadManifest(f'{file}: "{version}" is not a version (PEP 440); write {name}==1.2.3.patch')
    return name, version
