"""From the wanted list to a verdict on each patch: reads what that needs, and decides. Writes nothing.

The one question is how far it must go. When every wanted patch is in the ledger with the same text, and every file
holds what was written last, the answer is known without parsing a diff (`Decision.settled`): the no-op's path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from patchkit.applied import Ledger
from patchkit.assess import Stack, Verdict, assess, is_in_place, stack, tell
from patchkit.bases import Base, Facts, find_bases
from patchkit.bounds import check_targets
from patchkit.bystanders import Renewal, bystanders, join_bystanders
from patchkit.candidates import Parsed, parse_candidates, read_candidate
from patchkit.choices import Candidate, Choice, choose, constraints_of, distributions_of
from patchkit.errors import (
    Conflict,
    EditableInstall,
    NoRecord,
    NotOwned,
    OutsideEnvironment,
    PatchkitError,
    raise_all,
)
from patchkit.fold import Layer, fold
from patchkit.installed import Distribution, sha256
from patchkit.model import EntryKind, ForeignPolicy, PatchState
from patchkit.patchset import PatchId, SymbolCheck
from patchkit.scene import Scene
from patchkit.site import find_distribution, observe
from patchkit.survey import Ownership, bounds_of, find_absent_folders, gather_facts, read_ownership
from patchkit.symbols import module_paths
from patchkit.trials import Trial, try_all
from patchkit.wanted import Wanted, order_fold


@dataclass(frozen=True, slots=True)
class Decision:
    """What a command is to do, before it does anything.

    ``order`` are the patches that will be in the ledger, in the order of the fold; with operands those that stay as
    they are (bystanders) are among them. ``problems`` are of bystanders that would no longer fit.
    """

    scene: Scene
    wanted: Wanted
    choices: Mapping[PatchId, Choice]
    candidates: Mapping[PatchId, Candidate]
    order: tuple[PatchId, ...]
    owners: Mapping[str, Distribution | None]
    verdicts: Mapping[PatchId, Verdict] = field(default_factory=dict)
    settled: bool = False
    ownership: Mapping[str, Ownership] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    facts: Mapping[str, Facts] = field(default_factory=dict)
    bases: Mapping[str, Base] = field(default_factory=dict)
    stacked: Stack | None = None
    absent_folders: frozenset[str] = frozenset()
    problems: tuple[PatchkitError, ...] = ()
    trials: Mapping[PatchId, tuple[Trial, ...]] = field(default_factory=dict)


def decide(
    scene: Scene, wanted: Wanted, *, policy: ForeignPolicy = ForeignPolicy.REFUSE, wheels: Sequence[str] = ()
) -> Decision:
    """Read and decide. Raises what keeps any verdict from being given: broken diffs, doubtful distributions."""
    start = _begin(scene, wanted)
    return _settle(start) or _fold(start, policy, wheels)


def foresee(scene: Scene, wanted: Wanted) -> Decision | None:
    """The decision where ``scene`` tells of a ledger that is yet to be written, and its files too; None if unsettled.

    No file that a patch touches is looked at: what the ledger says of them is taken to be true.
    """
    start = _begin(scene, wanted)
    if not start.candidates or _is_unsettled(start):
        return None
    verdicts = {id: Verdict(id, PatchState.APPLIED, fits=True) for id in start.candidates}
    return replace(start, verdicts=verdicts, settled=True)


def _begin(scene: Scene, wanted: Wanted) -> Decision:
    """What can be said before any file is looked at that a patch touches."""
    considered = _narrow(wanted)
    owners = _find_owners(scene, considered)
    versions = {name: scene.version_of(name) for name in constraints_of(scene.catalog, considered)}
    choices = choose(considered, scene.catalog, scene.ledger, owners, versions, scene.holds)
    candidates = {id: read_candidate(scene, choice) for id, choice in choices.items() if choice.state is None}
    wanted, candidates = _forget_renamed(scene, wanted, candidates)
    choices = {id: choice for id, choice in choices.items() if id in wanted.reasons}
    order = _order(scene.ledger, candidates, wanted)
    return Decision(scene, wanted, choices, candidates, order, owners)


def _narrow(wanted: Wanted) -> Wanted:
    """With operands, only what they name is looked at anew."""
    if wanted.named is None:
        return wanted
    reasons = {id: reason for id, reason in wanted.reasons.items() if id in wanted.named}
    return replace(wanted, reasons=reasons)


def _find_owners(scene: Scene, wanted: Wanted) -> dict[str, Distribution | None]:
    ledger = scene.ledger
    if wanted.named is not None:
        involved = wanted.named | wanted.dropped
        ledger = Ledger(applied=tuple(applied for applied in ledger.applied if applied.id in involved))
    needed = set(
        distributions_of(wanted, scene.catalog, Ledger(tuple(a for a in ledger.applied if a.id in wanted.reasons)))
    )
    found: dict[str, Distribution | None] = {}
    problems: list[PatchkitError] = []
    for name in distributions_of(wanted, scene.catalog, ledger):
        try:
            found[name] = find_distribution(scene.listing, name, scene.environment)
        except (EditableInstall, NoRecord, OutsideEnvironment) as error:
            # Patches that go are not held back by what became of their distribution.
            found[name] = None
            problems += [error] if name in needed else []
        except PatchkitError as error:
            problems.append(error)
    raise_all(problems)
    return found


def _forget_renamed(
    scene: Scene, wanted: Wanted, candidates: dict[PatchId, Candidate]
) -> tuple[Wanted, dict[PatchId, Candidate]]:
    """An applied patch that is at hand no more, while another with its very text is: the same patch, renamed."""
    patches = scene.catalog.patches
    texts = {
        (candidate.record.distribution, candidate.record.text) for id, candidate in candidates.items() if id in patches
    }
    renamed = {
        applied.id
        for applied in scene.ledger.applied
        if applied.id in wanted.reasons and applied.id not in patches and (applied.distribution, applied.text) in texts
    }
    if not renamed:
        return wanted, candidates
    reasons = {id: reason for id, reason in wanted.reasons.items() if id not in renamed}
    kept = {id: candidate for id, candidate in candidates.items() if id not in renamed}
    return replace(wanted, reasons=reasons, dropped=wanted.dropped | renamed), kept


def find_renamed(decision: Decision) -> dict[PatchId, PatchId]:
    """The applied patches that the patch folder has under another name, with that name."""
    ledger = decision.scene.ledger
    records = [candidate.record for id, candidate in decision.candidates.items() if ledger.patch(id) is None]
    texts = {(record.distribution, record.text): record.id for record in records}
    gone = [applied for applied in ledger.applied if applied.id in decision.wanted.dropped]
    names = {applied.id: texts.get((applied.distribution, applied.text)) for applied in gone}
    return {id: name for id, name in names.items() if name is not None}


def _order(ledger: Ledger, candidates: Mapping[PatchId, Candidate], wanted: Wanted) -> tuple[PatchId, ...]:
    places = {id: (candidate.record.place, candidate.record.after) for id, candidate in candidates.items()}
    if wanted.named is not None:
        places |= {applied.id: (applied.place, applied.after) for applied in bystanders(ledger, wanted)}
    return order_fold(places)


# ---- the no-op's path -----------------------------------------------------------------------------------------


def _settle(start: Decision) -> Decision | None:
    """The decision when there is nothing to do, else None. Reads the files that the ledger names, parses no diff."""
    ledger = start.scene.ledger
    if _is_unsettled(start):
        return None
    names = {candidate.record.distribution for candidate in start.candidates.values()}
    for record in ledger.records:
        owner = start.owners.get(record.distribution)
        changed = owner is None or sha256(owner.record.data) != record.written.sha256
        if record.distribution in names and changed:
            return None
    files = [file for file in ledger.files if start.candidates.keys() & set(file.patches)]
    observed = observe(start.scene.root, (file.path for file in files))
    facts = {file.path: Facts(file.path, file.distribution, "", observed[file.path], entry=file) for file in files}
    if not all(is_in_place(candidate.record, facts) for candidate in start.candidates.values()):
        return None
    verdicts = {id: Verdict(id, PatchState.APPLIED, fits=True) for id in start.candidates}
    return replace(start, verdicts=verdicts, settled=True, facts=facts)


def _is_unsettled(start: Decision) -> bool:
    """Whether the ledger alone tells that there is something to do, or to look into."""
    doubtful = any(choice.state is PatchState.NO_VARIANT for choice in start.choices.values())
    return doubtful or bool(start.wanted.dropped) or not _says_the_same(start.scene.ledger, start)


def _says_the_same(ledger: Ledger, start: Decision) -> bool:
    if start.wanted.named is not None:
        leaving = start.wanted.named - start.candidates.keys()
        same = all(ledger.patch(id) == candidate.record for id, candidate in start.candidates.items())
        return same and not any(ledger.patch(id) for id in leaving)
    return ledger.applied == tuple(start.candidates[id].record for id in start.order)


# ---- the fold -------------------------------------------------------------------------------------------------


def _fold(start: Decision, policy: ForeignPolicy, wheels: Sequence[str]) -> Decision:
    parsed = parse_candidates(start.scene, start.candidates)
    _refuse_shared(start, parsed)
    layers, paths, torn = _lay_out(start, parsed, policy)
    ownership = {
        name: read_ownership(owner, start.scene.ledger) for name, owner in start.owners.items() if owner is not None
    }
    facts = gather_facts(start.scene, paths, ownership, wheels)
    _refuse_targets(start, parsed, layers, facts, ownership)
    bases = find_bases(facts, layers, policy)
    others = observe(start.scene.root, _modules(start).keys() - paths.keys())
    names = [path for own in ownership.values() for path in own.rows]
    stacked = stack(layers, bases, {path: observed.content for path, observed in others.items()}, names)
    return replace(
        start,
        candidates=_with_paths(start.candidates, parsed),
        verdicts={
            layer.id: assess(start.candidates[layer.id], layer, facts, stacked, start.wanted.dropped)
            for layer in layers
            if layer.id in start.candidates
        },
        ownership=ownership,
        layers=layers,
        facts=facts,
        bases=bases,
        stacked=stacked,
        absent_folders=find_absent_folders(start.scene.root, facts),
        problems=(*torn, *_find_stranded(start, stacked)),
        trials=try_all(start.scene, start.choices, ownership, stacked.result.tree),
    )


def _with_paths(candidates: Mapping[PatchId, Candidate], parsed: Parsed) -> dict[PatchId, Candidate]:
    return {
        id: replace(candidate, record=replace(candidate.record, paths=parsed.layers[id].paths))
        for id, candidate in candidates.items()
    }


def _refuse_shared(start: Decision, parsed: Parsed) -> None:
    """Raise for a file that patches of two distributions touch: whose RECORD would say what was shipped?"""
    gone = start.wanted.dropped
    held = {file.path: file.distribution for file in start.scene.ledger.files if not set(file.patches) <= gone}
    problems: list[PatchkitError] = []
    for id, layer in parsed.layers.items():
        own = start.candidates[id].record.distribution
        for diff in layer.diffs:
            for path in diff.paths:
                if held.setdefault(path, own) != own:
                    words = f"{path} is patched for {held[path]} already, and this is a patch of {own}"
                    hint = "two distributions own this file; keep the patches of one"
                    problems.append(NotOwned(words, file=parsed.files[id], line=diff.line, hint=hint))
    raise_all(problems)


def _lay_out(
    start: Decision, parsed: Parsed, policy: ForeignPolicy
) -> tuple[tuple[Layer, ...], dict[str, str], tuple[PatchkitError, ...]]:
    """The layers in the order of the fold, the paths they concern with their distribution, and what is torn."""
    own = {id: start.candidates[id].record.distribution for id in parsed.layers}
    paths = {path: own[id] for id, layer in parsed.layers.items() for path in layer.paths}
    entries = start.scene.ledger.files
    if start.wanted.named is None:
        paths |= {file.path: file.distribution for file in entries}
        return tuple(parsed.layers[id] for id in start.order), paths, ()
    gone = start.wanted.dropped | start.wanted.named
    paths |= {file.path: file.distribution for file in entries if gone & set(file.patches)}
    renewal = Renewal(start.owners, bool(start.candidates), policy)
    joined, torn = join_bystanders(start.scene, bystanders(start.scene.ledger, start.wanted), paths, renewal)
    layers = {**parsed.layers, **joined}
    return tuple(layers[id] for id in start.order if id in layers), paths, torn


def _modules(start: Decision) -> dict[str, str]:
    """The files that symbol checks look at."""
    return {
        path: candidate.record.distribution
        for candidate in start.candidates.values()
        for check in candidate.record.checks
        if isinstance(check, SymbolCheck)
        for path in module_paths(check.module)
    }


def _refuse_targets(
    start: Decision,
    parsed: Parsed,
    layers: Sequence[Layer],
    facts: Mapping[str, Facts],
    ownership: Mapping[str, Ownership],
) -> None:
    """Raise for every target that a patch may not touch. What wanted patches create, others may change."""
    created = {
        str(diff.new)
        for layer in layers
        for diff in layer.diffs
        if diff.kind in (EntryKind.CREATE, EntryKind.RENAME) and diff.new is not None
    }
    bounds = {name: bounds_of(owner, created, facts) for name, owner in ownership.items()}
    problems: list[PatchkitError] = []
    for id, layer in parsed.layers.items():
        own = bounds[start.candidates[id].record.distribution]
        problems += check_targets(layer.diffs, own, file=parsed.files[id])
    raise_all(problems)


def _find_stranded(start: Decision, stacked: Stack) -> Iterator[PatchkitError]:
    """A conflict for each patch that is to stay as it is, and does not fit without what goes or on what comes."""
    outcomes = stacked.result.outcomes
    stranded = {id for id, outcome in outcomes.items() if id not in start.candidates and not outcome.fits}
    if not stranded:
        return
    named = sorted(str(id) for id in (start.wanted.named or frozenset()) | start.wanted.dropped)
    leaving = stranded | _find_lost(start, stacked, stranded)
    together = " ".join(sorted(map(str, leaving | (start.wanted.dropped or start.wanted.named or frozenset()))))
    for id in outcomes:
        if id in stranded:
            told = tell(outcomes[id].files)
            words = f"{id} stays applied, and does not fit once {', '.join(named)} is changed: {told}"
            yield Conflict(words, hint=f"`patchkit revert {together}` takes them out together")


def _find_lost(start: Decision, stacked: Stack, stranded: Set[PatchId]) -> set[PatchId]:
    """The patches that would not fit once ``stranded`` are taken out too, and those that lie on these."""
    lost: set[PatchId] = set()
    while True:
        gone = stranded | lost
        rest = [layer for layer in stacked.layers if layer.id in stacked.result.outcomes and layer.id not in gone]
        misfits = {id for id, outcome in fold(stacked.base, rest).outcomes.items() if not outcome.fits}
        if not misfits - start.candidates.keys():
            return lost
        lost |= misfits - start.candidates.keys()
