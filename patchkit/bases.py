"""What each file is (pristine, patched, foreign, missing), and what its patches are folded from.

State is decided by digests alone: first the row of the RECORD installed now, then what was written last. A foreign
file is left alone unless it proves to be patched by hand (adopted), or the user says what to do with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patchkit.applied import BaseOrigin, LedgerFile
from patchkit.errors import Conflict, ForeignFile, NoPristineBytes, PatchkitError
from patchkit.fold import Layer, Tree, fold, reverse, set_executable, tied_paths
from patchkit.installed import Content, FileState, Observed, RecordRow, is_same, sha256
from patchkit.model import ForeignPolicy
from patchkit.patchset import PatchId


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of one path. ``row`` is its RECORD row, unless the ledger says that the row is ours.

    ``distribution`` and ``version`` are of the one that owns it; ``stale``: it had another version when ``entry`` was
    written. ``saved`` are the bytes that the object store has for the ledger's base, ``supplied`` what a wheel has that
    the user named, with the mode that an installer gives it; None where there are none. ``asked``: RECORD was read, so
    that no ``row`` means no row. ``ceded``: its distribution lists it no more, and another lists it and ships what is
    there.
    """

    path: str
    distribution: str
    version: str
    observed: Observed
    row: RecordRow | None = None
    entry: LedgerFile | None = None
    saved: bytes | None = None
    supplied: Content | None = None
    stale: bool = False
    asked: bool = False
    ceded: bool = False

    @property
    def content(self) -> Content | None:
        return self.observed.content

    @property
    def at_hand(self) -> tuple[bytes, ...]:
        """Bytes that may be the shipped ones, wherever they come from."""
        supplied = None if self.supplied is None else self.supplied.data
        return tuple(data for data in (self.saved, supplied) if data is not None)


@dataclass(frozen=True, slots=True)
class Base:
    """What one file is folded from, and by whose word. ``problem`` keeps it from being touched at all.

    ``adopted`` are the patches that it proved to hold already; ``keep`` are foreign bytes that will be replaced and go
    into the object store.
    """

    path: str
    state: FileState
    content: Content | None
    origin: BaseOrigin
    adopted: tuple[PatchId, ...] = ()
    keep: bytes | None = None
    problem: PatchkitError | None = None


def classify(facts: Facts) -> FileState:
    """The state of one file, decided by digests in the order of the contract."""
    content, entry = facts.content, facts.entry
    if facts.observed.obstacle:
        return FileState.FOREIGN
    if facts.ceded:
        return FileState.PRISTINE
    written_here = entry is not None and _is_written(content, entry)
    if is_pristine(facts, content):
        return FileState.PATCHED if written_here and _only_mode_differs(entry) else FileState.PRISTINE
    if written_here or (
        entry is not None and entry.written and content and sha256(content.data) == entry.written.sha256
    ):
        return FileState.PATCHED
    return FileState.MISSING if content is None else FileState.FOREIGN


def _is_written(content: Content | None, entry: LedgerFile) -> bool:
    if content is None or entry.written is None:
        return content is None and entry.written is None
    return entry.written.executable == content.executable and sha256(content.data) == entry.written.sha256


def _only_mode_differs(entry: LedgerFile | None) -> bool:
    return (
        entry is not None
        and entry.base is not None
        and entry.written is not None
        and entry.base.sha256 == entry.written.sha256
        and entry.base.executable != entry.written.executable
    )


def is_pristine(facts: Facts, content: Content | None) -> bool:
    """Whether ``content`` is what the distribution shipped at this path, by the RECORD installed now.

    A row without digest is taken at first contact with a version: then what is on disk counts, later what was noted.
    """
    if facts.row is None:
        return content is None
    if content is None:
        return False
    if facts.row.digest is not None:
        return facts.row.digest.matches(content.data)
    noted = facts.entry.base if facts.entry is not None and not facts.stale else None
    return noted is None or noted.sha256 == sha256(content.data)


def is_as_written(facts: Facts) -> bool:
    """Whether the bytes and the executable bit on disk are those that the ledger says were written."""
    return facts.entry is not None and not facts.observed.obstacle and _is_written(facts.content, facts.entry)


def holds_ours(facts: Facts) -> bool:
    """Whether a file is as it was written, and that is not what is shipped by now.

    A new version may ship what a patch made, or no longer have what one deleted: by RECORD such a file is pristine.
    Where RECORD was not asked (it is the one that was written then) the bytes alone tell.
    """
    if not is_as_written(facts):
        return False
    entry = facts.entry
    assert entry is not None
    shipped = facts.ceded or (facts.asked and is_pristine(facts, facts.content))
    return not shipped or _same_bytes(entry)


def _same_bytes(entry: LedgerFile) -> bool:
    """Patches that change no byte (an executable bit, two that cancel out) leave what was shipped."""
    if entry.base is None or entry.written is None:
        return entry.base is entry.written
    return entry.base.sha256 == entry.written.sha256


def find_bases(facts: Mapping[str, Facts], layers: Sequence[Layer], policy: ForeignPolicy) -> dict[str, Base]:
    """The base of every path in ``facts``; ``layers`` are the wanted patches, for adoption."""
    adopted = _adopt(facts, layers)
    bases = {path: adopted.get(path) or _find_base(fact, policy) for path, fact in facts.items()}
    return bases | {
        path: replace(base, content=as_shipped(facts[path]))
        for path in _find_moded(layers) & facts.keys()
        if (base := bases[path]).state is FileState.PRISTINE
    }


def _find_moded(layers: Sequence[Layer]) -> set[str]:
    """The files whose executable bit a patch changes: whether that was done by hand already, only a wheel tells."""
    return {str(diff.old) for layer in layers for diff in layer.diffs if diff.old and diff.executable is not None}


def _find_base(facts: Facts, policy: ForeignPolicy) -> Base:
    state = classify(facts)
    match state:
        case FileState.PRISTINE:
            return Base(facts.path, state, facts.content, _origin(facts))
        case FileState.PATCHED:
            return _restore_patched(facts)
        case FileState.FOREIGN | FileState.MISSING:
            return _treat_foreign(facts, state, policy)


def as_shipped(facts: Facts) -> Content | None:
    """The content of a pristine file, with the executable bit as shipped where a wheel tells it: RECORD does not."""
    content = facts.content
    return None if content is None else Content(content.data, _shipped_mode(facts, content.mode))


def _shipped_mode(facts: Facts, mode: int) -> int:
    shipped = facts.supplied
    known = shipped is not None and shipped.executable != bool(mode & 0o100)
    return set_executable(mode, shipped.executable) if shipped is not None and known else mode


def _origin(facts: Facts) -> BaseOrigin:
    unrecorded = facts.row is not None and facts.row.digest is None
    return BaseOrigin.UNRECORDED if unrecorded else BaseOrigin.RECORDED


def _restore_patched(facts: Facts) -> Base:
    """The base under our own bytes: from the object store, as long as it is the one in force."""
    entry = facts.entry
    assert entry is not None
    if facts.row is None:
        # Created by a patch: pristine is no file. Else the distribution lists it no more, and what was there goes back.
        before = None if entry.base is None else facts.content
        if entry.base is not None and facts.saved is not None:
            before = Content(facts.saved, entry.base.mode)
        return Base(facts.path, FileState.PATCHED, before, entry.origin)
    if entry.base is None:
        return _without_pristine(facts, FileState.PATCHED)
    for data in facts.at_hand:
        content = Content(data, entry.base.mode)
        accepted = entry.origin is BaseOrigin.ACCEPTED and sha256(data) == entry.base.sha256
        if accepted or is_pristine(facts, content):
            return Base(facts.path, FileState.PATCHED, content, entry.origin)
    return _without_pristine(facts, FileState.PATCHED)


def _treat_foreign(facts: Facts, state: FileState, policy: ForeignPolicy) -> Base:
    if facts.observed.obstacle:
        problem = Conflict(f"{facts.path} {facts.observed.obstacle}", hint="make it a plain file, or reinstall")
        return Base(facts.path, state, facts.content, BaseOrigin.RECORDED, problem=problem)
    if facts.row is None and facts.entry is not None and facts.entry.base is not None:
        # The distribution lists it no more, and these bytes are not ours: somebody else's file by now.
        return Base(facts.path, state, facts.content, facts.entry.origin)
    match policy:
        case ForeignPolicy.REFUSE:
            return Base(facts.path, state, facts.content, BaseOrigin.RECORDED, problem=_refusal(facts, state))
        case ForeignPolicy.ACCEPT:
            return Base(facts.path, state, facts.content, BaseOrigin.ACCEPTED)
        case ForeignPolicy.DISCARD:
            return _discard(facts, state)


def _refusal(facts: Facts, state: FileState) -> PatchkitError:
    if state is FileState.MISSING:
        return ForeignFile(
            f"{facts.path} is missing: RECORD lists it, and it is not on disk",
            hint=f"--discard-edits puts it back where its bytes are at hand; else {reinstall(facts)}",
        )
    if facts.row is None and facts.entry is None:
        return Conflict(
            f"{facts.path} exists, and {facts.distribution} does not own it: a patch is to create it",
            hint="move the file away; --discard-edits replaces it and keeps its bytes",
        )
    return ForeignFile(
        f"{facts.path} was edited, or RECORD is wrong: it is neither what {facts.distribution} shipped nor what "
        "patchkit wrote",
        hint=_ways_out(facts, state),
    )


def _ways_out(facts: Facts, state: FileState) -> str:
    """An edit on top of what was written cannot become the base: the patches are in it already."""
    keep = f"`patchkit capture {facts.distribution}` makes a patch of the edit"
    lost = _discard(facts, state).problem is not None
    discard = "--discard-edits --wheel FILE (no shipped bytes are at hand)" if lost else "--discard-edits"
    if facts.entry is not None:
        return f"{discard} puts the file back into shape and keeps the edited bytes; {keep}"
    return f"--accept-modified takes it as the base, {discard} replaces it and keeps its bytes; {keep}"


def reinstall(facts: Facts) -> str:
    """The command that brings the shipped bytes back."""
    name = f"{facts.distribution}=={facts.version}" if facts.version else facts.distribution
    return f"`pip install --force-reinstall --no-deps {name}`"


def _discard(facts: Facts, state: FileState) -> Base:
    keep = None if facts.content is None else facts.content.data
    mode = _shipped_mode(facts, facts.content.mode if facts.content is not None else 0o644)
    if facts.entry is not None and facts.entry.base is not None:
        mode = facts.entry.base.mode
    if facts.row is None:
        return Base(facts.path, state, None, BaseOrigin.RECORDED, keep=keep)
    if facts.saved is not None and _is_accepted(facts, facts.row):
        return Base(facts.path, state, Content(facts.saved, mode), BaseOrigin.ACCEPTED, keep=keep)
    for data in facts.at_hand:
        if is_pristine(facts, Content(data, mode)):
            return Base(facts.path, state, Content(data, mode), _origin(facts), keep=keep)
    return _without_pristine(facts, state)


def _is_accepted(facts: Facts, row: RecordRow) -> bool:
    """Whether the base that the user accepted is in force: nothing was installed over it since."""
    entry = facts.entry
    return entry is not None and entry.origin is BaseOrigin.ACCEPTED and not facts.stale and entry.recorded == row.field


def _without_pristine(facts: Facts, state: FileState) -> Base:
    problem = NoPristineBytes(
        f"{facts.path}: the bytes that {facts.distribution} {facts.version} shipped are not in the object store",
        hint=f"give its wheel with --wheel FILE, or {reinstall(facts)}",
    )
    return Base(facts.path, state, facts.content, BaseOrigin.RECORDED, problem=problem)


# ---- adoption -------------------------------------------------------------------------------------------------


def _adopt(facts: Mapping[str, Facts], layers: Sequence[Layer]) -> dict[str, Base]:
    """Files patched by hand: taking the wanted patches out, from the last down, gives the base in force."""
    adopted: dict[str, Base] = {}
    for component in tied_paths(facts, layers):
        members = {path: facts[path] for path in component}
        states = {path: classify(fact) for path, fact in members.items()}
        if not any(state in (FileState.FOREIGN, FileState.MISSING) for state in states.values()):
            continue
        found = {path: fact.content for path, fact in members.items()}
        tree, taken = _take_out(found, layers)
        origins = {path: _prove(fact, tree[path]) for path, fact in members.items()}
        if taken and all(origins.values()):
            adopted |= {
                path: Base(path, state, tree[path], origin, adopted=taken)
                for path, state in states.items()
                if state in (FileState.FOREIGN, FileState.MISSING) and (origin := origins[path]) is not None
            }
    return adopted


def _prove(facts: Facts, content: Content | None) -> BaseOrigin | None:
    """By whose word ``content`` is the base; None: by nobody's. First contact with an unrecorded file is no proof."""
    unproved = facts.row is not None and facts.row.digest is None and facts.entry is None
    if facts.observed.obstacle or unproved:
        return None
    if is_pristine(facts, content):
        return BaseOrigin.RECORDED
    base = facts.entry.base if facts.entry is not None else None
    known = base is not None and content is not None and sha256(content.data) == base.sha256
    return BaseOrigin.ACCEPTED if known and facts.row is not None and _is_accepted(facts, facts.row) else None


def _take_out(found: Tree, layers: Sequence[Layer]) -> tuple[Tree, tuple[PatchId, ...]]:
    """The files ``found`` without those of ``layers`` that come out whole, and which these are; none proves nothing.

    Folding what came out again must give the very files: a line that somebody put at another place is no patch of ours.
    """
    tree = found
    taken: list[Layer] = []
    for layer in reversed(layers):
        part = Layer(layer.id, tuple(diff for diff in layer.diffs if all(path in tree for path in diff.paths)))
        below = reverse(tree, part) if part.diffs else None
        if below is not None:
            tree = below
            taken.insert(0, part)
    again = fold(tree, taken).tree
    whole = all(is_same(again[path], content) for path, content in found.items())
    return tree, tuple(part.id for part in taken) if whole else ()
