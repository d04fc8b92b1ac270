"""Which patches are wanted, why, and in what order they are folded.

The declared list comes from the manifests (``default``) and from ``select`` and ``deselect``; each command turns it
and the ledger into the wanted list (docs/explanation/fold.md holds the table).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from patchkit.applied import Applied, Ledger, Reason
from patchkit.errors import GroupClash, NoPatchSets, OrderCycle, PatchkitError, UnknownPatch, UsageError, raise_all
from patchkit.patchset import Catalog, Patch, PatchId


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted list with the reason of each, and what goes because of it.

    ``named`` are the patches that operands stand for (None: the command was bare). ``dropped`` were applied and are not
    wanted. ``fresh`` may take up the text at hand; the others keep the text that the ledger holds.
    """

    reasons: Mapping[PatchId, Reason]
    dropped: frozenset[PatchId] = frozenset()
    named: frozenset[PatchId] | None = None
    fresh: frozenset[PatchId] = frozenset()


def list_declared(catalog: Catalog) -> dict[PatchId, Reason]:
    """The declared list: defaults, changed by select and deselect. A selected patch replaces its group's default.

    A default has `Reason.DECLARED`, a selected patch `Reason.NAMED`: somebody chose it by name.
    Raises `UnknownPatch` and `GroupClash`, all at once.
    """
    patches = catalog.patches
    problems: list[PatchkitError] = []
    selected = _find_all(catalog, patches, "select", problems)
    deselected = _find_all(catalog, patches, "deselect", problems)
    for id in sorted(selected.keys() & deselected.keys()):
        source = selected[id] or deselected[id]
        problems.append(GroupClash(f"{source}: {id} is both selected and deselected", hint="remove one of the two"))
    problems += _find_clashes(patches, selected)
    raise_all(problems)
    taken = {_group(patches[id]) for id in selected} - {None}
    declared = {
        id: Reason.DECLARED
        for id, patch in patches.items()
        if patch.default and id not in deselected and (_group(patch) is None or _group(patch) not in taken)
    }
    return declared | dict.fromkeys(selected, Reason.NAMED)


def _find_all(
    catalog: Catalog, patches: Mapping[PatchId, Patch], key: str, problems: list[PatchkitError]
) -> dict[PatchId, str]:
    """What the declarations name under ``key``, each with the file that says so."""
    found: dict[PatchId, str] = {}
    for declaration in catalog.declarations:
        for name in declaration.select if key == "select" else declaration.deselect:
            ids = [id for id in patches if matches(name, id)]
            if not ids:
                problems.append(_unknown(name, patches, f"{declaration.source}: {key}", catalog.folders))
            found |= dict.fromkeys(ids, declaration.source)
    return found


def _find_clashes(patches: Mapping[PatchId, Patch], ids: Iterable[PatchId]) -> list[PatchkitError]:
    members: dict[tuple[str, str], list[PatchId]] = {}
    for id in ids:
        group = _group(patches[id])
        if group is not None:
            members.setdefault(group, []).append(id)
    return [
        GroupClash(
            f"{' and '.join(map(str, sorted(clash)))} are alternatives (group {name!r}): at most one can be wanted",
            hint="name one of them",
        )
        for (_, name), clash in members.items()
        if len(clash) > 1
    ]


def _group(patch: Patch | Applied) -> tuple[str, str] | None:
    return (patch.id.set, patch.group) if patch.group else None


def matches(operand: str, id: PatchId) -> bool:
    """Whether ``operand`` (``SET`` or ``SET/PATCH``) names ``id``."""
    return operand == str(id) if "/" in operand else operand == id.set


def _unknown(operand: str, known: Mapping[PatchId, Patch], where: str, folders: Sequence[str]) -> UnknownPatch:
    from difflib import get_close_matches

    words = {str(id) for id in known} | {id.set for id in known}
    close = get_close_matches(operand, sorted(words), n=1)
    places = ", ".join(folders) or "no patch folder"
    message = f"{where}: no patch set or patch is called {operand!r} (looked in {places})"
    of_distribution = sorted({id.set for id, patch in known.items() if patch.distribution == operand.lower()})
    if of_distribution:
        return UnknownPatch(message, hint=f"the patch set for {operand} is {of_distribution[0]!r}")
    return UnknownPatch(message, hint=f"did you mean {close[0]!r}?" if close else None)


def find_patch(catalog: Catalog, name: str) -> Patch:
    """The one patch that ``name`` means: ``SET/PATCH``, or ``SET`` with only one patch. Raises `UnknownPatch`."""
    found = [patch for id, patch in catalog.patches.items() if matches(name, id)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(str(patch.id) for patch in found)
        raise UnknownPatch(f"{name} has {len(found)} patches: {names}", hint=f"name one: {found[0].id}")
    raise _unknown(name, catalog.patches, "show", catalog.folders)


def check_operands(operands: Sequence[str]) -> None:
    """Raise `UsageError` for an operand that is neither ``SET`` nor ``SET/PATCH``."""
    raise_all(
        [
            UsageError(f"{operand!r} is not SET or SET/PATCH", hint="`patchkit list` shows the names")
            for operand in operands
            if not all(operand.split("/")) or operand.count("/") > 1
        ]
    )


def require_known(catalog: Catalog, operands: Sequence[str], command: str) -> None:
    """Raise `UnknownPatch` for an operand that no patch set at hand knows."""
    patches = catalog.patches
    unknown = [operand for operand in operands if not any(matches(operand, id) for id in patches)]
    raise_all([_unknown(operand, patches, command, catalog.folders) for operand in unknown])


def want_apply(catalog: Catalog, ledger: Ledger) -> Wanted:
    """Bare ``apply``: what is applied now, plus the declared list."""
    return _add(list_declared(catalog), catalog, ledger, named=None)


def want_exactly(catalog: Catalog, ledger: Ledger) -> Wanted:
    """``apply --exact``: the declared list; what is applied and not declared goes."""
    declared = list_declared(catalog)
    gone = frozenset(applied.id for applied in ledger.applied) - declared.keys()
    return Wanted(reasons=declared, dropped=gone, fresh=frozenset(declared))


def want_named(catalog: Catalog, ledger: Ledger, operands: Sequence[str], command: str) -> Wanted:
    """``apply X``: what is applied now, plus X, where ``SET`` stands for the set's declared patches.

    A patch that the declared list holds is wanted for that reason, also where it is named; but a patch that is named
    replaces the member of its group that is applied. Raises `UnknownPatch`, `GroupClash`, `NoPatchSets`.
    """
    patches = catalog.patches
    declared = list_declared(catalog)
    problems: list[PatchkitError] = []
    chosen: dict[PatchId, Reason] = {}
    by_name: set[PatchId] = set()
    for operand in operands:
        if not any(matches(operand, id) for id in patches):
            problems.append(_unknown(operand, patches, command, catalog.folders))
        elif "/" in operand:
            found = {id: declared.get(id, Reason.NAMED) for id in patches if matches(operand, id)}
            chosen |= found
            by_name |= found.keys()
        else:
            members = {id: reason for id, reason in declared.items() if id.set == operand}
            if not members:
                problems.append(NoPatchSets(f"{operand} has no declared patch", hint=f"name one: {operand}/PATCH"))
            chosen = members | chosen
    problems += _find_clashes(patches, [id for id in chosen if id in by_name])
    raise_all(problems)
    taken = {_group(patches[id]) for id in by_name} - {None}
    chosen = {id: reason for id, reason in chosen.items() if id in by_name or _group(patches[id]) not in taken}
    return _add(chosen, catalog, ledger, named=frozenset(chosen), by_name=frozenset(by_name))


def want_kept(ledger: Ledger, operands: Sequence[str]) -> Wanted:
    """``apply X`` with no patch folder at hand: what is applied now, X with the text that the ledger keeps."""
    named = frozenset(applied.id for applied in ledger.applied if any(matches(x, applied.id) for x in operands))
    return Wanted(reasons={applied.id: applied.reason for applied in ledger.applied}, named=named)


def _add(
    chosen: dict[PatchId, Reason],
    catalog: Catalog,
    ledger: Ledger,
    *,
    named: frozenset[PatchId] | None,
    by_name: frozenset[PatchId] = frozenset(),
) -> Wanted:
    """What is applied now, plus ``chosen``: one member of a group replaces another, but a default never a named one.

    ``by_name`` are those of ``chosen`` that were named one by one; they replace any other.
    """
    patches = catalog.patches
    reasons = {applied.id: applied.reason for applied in ledger.applied}
    groups = {applied.id: _group(patches.get(applied.id, applied)) for applied in ledger.applied}
    dropped: set[PatchId] = set()
    yielding: set[PatchId] = set()
    for id, reason in chosen.items():
        group = _group(patches[id])
        rivals = [other for other in groups if group is not None and groups[other] == group and other != id]
        yields = reason is Reason.DECLARED and id not in by_name
        held = [other for other in rivals if yields and reasons[other] is Reason.NAMED]
        if held and id in reasons:
            raise GroupClash(
                f"{id} and {held[0]} are both applied, and alternatives by now (group {patches[id].group!r})",
                hint=f"take one out: `patchkit revert {id}`, or `patchkit revert {held[0]}`",
            )
        if held:
            yielding.add(id)
        else:
            dropped |= set(rivals)
    for id, reason in chosen.items():
        if id not in yielding:
            reasons[id] = Reason.NAMED if Reason.NAMED in (reason, reasons.get(id)) else reason
    fresh = frozenset(patches) if named is None else named
    return Wanted(
        reasons={id: reason for id, reason in reasons.items() if id not in dropped},
        dropped=frozenset(dropped),
        named=None if named is None else named - yielding,
        fresh=fresh,
    )


def check_known(catalog: Catalog, ledger: Ledger, operands: Sequence[str], command: str) -> None:
    """Raise `UnknownPatch` for an operand that neither the ledger nor a patch set at hand knows.

    Without any patch set at hand nothing tells a typing error from a patch that is not applied, so it is no error.
    """
    known = [*(applied.id for applied in ledger.applied), *catalog.patches]
    if catalog.sets:
        unknown = [operand for operand in operands if not any(matches(operand, id) for id in known)]
        raise_all([_unknown(operand, catalog.patches, command, catalog.folders) for operand in unknown])


def want_revert(catalog: Catalog, ledger: Ledger, operands: Sequence[str]) -> Wanted:
    """``revert X``: what is applied now, minus X, where ``SET`` stands for all its applied patches.

    X that is not applied is no error: reverting twice is reverting once. Raises `UnknownPatch` as `check_known` does.
    """
    check_known(catalog, ledger, operands, "revert")
    gone = frozenset(applied.id for applied in ledger.applied if any(matches(x, applied.id) for x in operands))
    kept = {applied.id: applied.reason for applied in ledger.applied if applied.id not in gone}
    return Wanted(reasons=kept, dropped=gone, named=gone)


def want_nothing(ledger: Ledger) -> Wanted:
    """``revert --all``."""
    return Wanted(reasons={}, dropped=frozenset(applied.id for applied in ledger.applied))


def order_fold(places: Mapping[PatchId, tuple[int, tuple[PatchId, ...]]]) -> tuple[PatchId, ...]:
    """The order of the fold for patches given as id to (place in the manifest, the patches it comes after).

    Sets by name, patches as listed, moved only where ``after`` demands; an ``after`` that is not among them demands
    nothing. It is a function of the set of patches alone. Raises `OrderCycle`.
    """
    waiting = {id: {other for other in after if other in places and other != id} for id, (_, after) in places.items()}
    ready = [(id.set, places[id][0], id) for id, others in waiting.items() if not others]
    heapq.heapify(ready)
    done: list[PatchId] = []
    while ready:
        _, _, id = heapq.heappop(ready)
        done.append(id)
        for other, others in waiting.items():
            if id in others:
                others.discard(id)
                if not others:
                    heapq.heappush(ready, (other.set, places[other][0], other))
    if len(done) < len(places):
        left = sorted(str(id) for id in places if id not in done)
        raise OrderCycle(f"`after` demands a cycle among {', '.join(left)}", hint="remove one of these `after` entries")
    return tuple(done)
