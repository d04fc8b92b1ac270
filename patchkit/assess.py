"""The state of each patch: from what the ledger says, what is on disk, and how the fold went."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from patchkit.applied import Applied, BaseOrigin
from patchkit.bases import Base, Facts, holds_ours
from patchkit.choices import Candidate
from patchkit.errors import Conflict, ForeignFile, PatchkitError
from patchkit.fold import FileOutcome, Fold, Layer, Misfit, Tree, compare_upstream, fold, is_upstream, reverse
from patchkit.model import CheckResult, DiffText, EntryKind, HunkResult, PatchState
from patchkit.patchset import PatchId
from patchkit.proof import evaluate_symbols


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one patch comes to: its state now, whether it is (or would be) in the desired files, and why not."""

    id: PatchId
    state: PatchState
    fits: bool
    files: tuple[FileOutcome, ...] = ()
    message: str = ""
    problem: PatchkitError | None = None


def is_in_place(applied: Applied, facts: Mapping[str, Facts]) -> bool:
    """Whether every file of ``applied`` holds what was written last, with this patch in it, and is not shipped so."""
    for path in applied.paths:
        fact = facts.get(path)
        if fact is None or fact.entry is None or applied.id not in fact.entry.patches or not holds_ours(fact):
            return False
    return True


def state_in_ledger(applied: Applied, text: DiffText | None, facts: Mapping[str, Facts]) -> PatchState:
    """The state of a patch that the ledger holds; ``text`` is the one at hand (None: there is none)."""
    if not is_in_place(applied, facts):
        return PatchState.DRIFTED
    return PatchState.APPLIED if text is None or text == applied.text else PatchState.OUTDATED


@dataclass(frozen=True, slots=True)
class Stack:
    """The wanted patches on their files, folded.

    ``shipped`` are the paths whose base is what the distribution shipped; ``blocked`` maps each path that may not be
    touched to why. ``names`` are all paths that the distributions' RECORDs list.
    """

    layers: tuple[Layer, ...]
    base: Tree
    shipped: frozenset[str]
    blocked: Mapping[str, PatchkitError]
    result: Fold
    names: Collection[str] = ()


def stack(layers: Sequence[Layer], bases: Mapping[str, Base], others: Tree, names: Collection[str] = ()) -> Stack:
    """Fold what can be folded: patches on a file that may not be touched stay out as a whole.

    ``others`` are files that no patch touches here and that checks look at.
    """
    base = dict(others) | {path: entry.content for path, entry in bases.items()}
    blocked = {path: entry.problem for path, entry in bases.items() if entry.problem is not None}
    free = [layer for layer in layers if not blocked.keys() & set(layer.paths)]
    shipped = frozenset(path for path, entry in bases.items() if entry.origin is not BaseOrigin.ACCEPTED)
    return Stack(tuple(layers), base, shipped, blocked, fold(base, free), names)


def assess(
    candidate: Candidate, layer: Layer, facts: Mapping[str, Facts], stacked: Stack, dropped: frozenset[PatchId]
) -> Verdict:
    """The verdict on one wanted patch that has a text for what is installed."""
    applied = candidate.choice.applied
    state = PatchState.PENDING if applied is None else state_in_ledger(applied, candidate.record.text, facts)
    walls = [path for path in layer.paths if path in stacked.blocked]
    if walls:
        worst = stacked.blocked[walls[0]]
        wrapped = _about(candidate.id, worst, len(walls))
        held = PatchState.CONFLICT if applied is None else state
        files = tuple(FileOutcome(path, misfit=Misfit.BLOCKED, problem=stacked.blocked[path].message) for path in walls)
        return Verdict(candidate.id, held, False, files, worst.message, wrapped)
    outcome = stacked.result.outcomes[candidate.id]
    if outcome.fits:
        return Verdict(candidate.id, state, True, outcome.files, _describe_offsets(outcome.files))
    return _assess_misfit(candidate, layer, state, outcome.files, stacked, dropped)


def _about(id: PatchId, problem: PatchkitError, count: int) -> PatchkitError:
    more = f" (and {count - 1} more of its files)" if count > 1 else ""
    kind = type(problem) if isinstance(problem, Conflict) else ForeignFile
    return kind(f"{id}: {problem.message}{more}", hint=problem.hint)


def _describe_offsets(files: Sequence[FileOutcome]) -> str:
    shifted = [hunk for file in files for hunk in file.hunks if hunk.offset]
    words = []
    if shifted:
        words.append("fits at an offset of " + ", ".join(f"{hunk.offset:+d}" for hunk in shifted) + " lines")
    if any(file.dropped_cr for file in files):
        words.append("the patch file has CRLF line ends; it fits without the CRs")
    return "; ".join(words)


def _assess_misfit(
    candidate: Candidate,
    layer: Layer,
    state: PatchState,
    files: tuple[FileOutcome, ...],
    stacked: Stack,
    dropped: frozenset[PatchId],
) -> Verdict:
    alone = fold(stacked.base, [layer]).outcomes[layer.id]
    if alone.fits:
        words = _name_rivals(layer, stacked, dropped)
        hint = "make its diff on top of the other, and say so with `after` in the manifest" if not dropped else None
        return _conflict(candidate, state, files, stacked, words, hint)
    compared = compare_upstream(stacked.base, layer)
    if not stacked.shipped.issuperset(layer.paths):
        words = "the accepted file has its change already" if is_upstream(compared) else ""
        return _conflict(candidate, state, files, stacked, words)
    forward = any(hunk.result is HunkResult.FITS for file in alone.files for hunk in file.hunks)
    if not forward and is_upstream(compared):
        return _assess_upstream(candidate, layer, state, compared, stacked)
    merged = tuple(_merge(own, other) for own, other in zip(files, compared, strict=True))
    words = _count_upstream(layer, merged) or _suspect(candidate, layer, stacked, dropped)
    return _conflict(candidate, state, merged, stacked, words)


def _assess_upstream(
    candidate: Candidate, layer: Layer, state: PatchState, compared: tuple[FileOutcome, ...], stacked: Stack
) -> Verdict:
    """All hunks are in the shipped files; the symbol checks must say so too."""
    outcomes = evaluate_symbols(candidate.record.checks, stacked.base)
    failed = next((check for check in outcomes if check.result is CheckResult.FAILED), None)
    if failed is not None:
        words = f"all hunks are upstream, but the check {failed.name} fails there: {failed.message}"
        return _conflict(candidate, state, compared, stacked, words)
    message = "the shipped files have this change: the patch can be retired"
    if not outcomes:
        message += ", unless its diff is the wrong way round (no symbol check tells)"
    if any(diff.kind is EntryKind.CREATE for diff in layer.diffs):
        message += " (unless a .patchkit folder that knew of the created file was lost)"
    return Verdict(candidate.id, PatchState.UPSTREAMED, False, compared, message)


def _suspect(candidate: Candidate, layer: Layer, stacked: Stack, dropped: frozenset[PatchId]) -> str:
    """The likely reason for a conflict: a patch that is missing below, or a diff the wrong way round."""
    if dropped:
        return f"perhaps it needs {', '.join(map(str, sorted(dropped)))}, which would go"
    missing = sorted({str(id) for id in candidate.record.after} - {str(other.id) for other in stacked.layers})
    if missing:
        return f"it comes after {', '.join(missing)}, which is not wanted here"
    backwards = "backwards it fits: perhaps upstream has it, or the diff is the wrong way round"
    return backwards if reverse(stacked.base, layer) is not None else ""


def _conflict(
    candidate: Candidate,
    state: PatchState,
    files: tuple[FileOutcome, ...],
    stacked: Stack,
    words: str,
    hint: str | None = None,
) -> Verdict:
    kept = PatchState.CONFLICT if state is PatchState.PENDING else state
    name = f"{candidate.record.distribution} {candidate.record.version}"
    message = f"{candidate.id} does not fit {name}: {tell(files)}" + (f"; {words}" if words else "")
    hint = hint or f"`patchkit check {candidate.id} --verbose` shows the expected and the found lines"
    lost = [file.path for file in files if file.misfit is Misfit.ABSENT]
    if lost:
        like = [path for path in stacked.names if path.rpartition("/")[2] == lost[0].rpartition("/")[2]][:3]
        found = f"; RECORD has {', '.join(like)}" if like else ""
        hint = f"are strip and directory right in the manifest{found}?"
    return Verdict(candidate.id, kept, False, files, message, Conflict(message, hint=hint))


def tell(files: Sequence[FileOutcome]) -> str:
    """The first thing that does not fit, in words, and how many more there are; what is upstream where nothing else."""
    words = [told for file in files for told in _tell_file(file, HunkResult.CONFLICT)]
    words = words or [told for file in files for told in _tell_file(file, HunkResult.UPSTREAM)]
    more = f" (and {len(words) - 1} more that {'do' if len(words) > 2 else 'does'} not fit)" if len(words) > 1 else ""
    return (words[0] if words else files[0].path) + more


def _tell_file(file: FileOutcome, result: HunkResult) -> list[str]:
    if file.misfit is not None:
        return [f"{file.path}: {file.problem}"]
    wrong = [hunk for hunk in file.hunks if hunk.result is result]
    return [f"{file.path}: hunk {hunk.number} (line {hunk.line}): {hunk.reason or hunk.result.value}" for hunk in wrong]


def _merge(own: FileOutcome, compared: FileOutcome) -> FileOutcome:
    """The outcome of the fold, with the hunks that upstream has marked as such."""
    upstream = {hunk.number: hunk for hunk in compared.hunks if hunk.result is HunkResult.UPSTREAM}
    hunks = tuple(upstream.get(hunk.number, hunk) if hunk.result is HunkResult.CONFLICT else hunk for hunk in own.hunks)
    if compared.misfit is Misfit.UNPROVED and compared.hunks:  # the text is all there, and something else is not
        return replace(own, hunks=hunks, misfit=compared.misfit, problem=compared.problem)
    return replace(own, hunks=hunks)


def _count_upstream(layer: Layer, merged: Sequence[FileOutcome]) -> str:
    """What of a patch that conflicts is upstream already, or may be."""
    hunks = [hunk for file in merged for hunk in file.hunks]
    there = sum(hunk.result is HunkResult.UPSTREAM for hunk in hunks)
    gone = [diff.old for diff, file in zip(layer.diffs, merged, strict=True) if file.misfit is Misfit.GONE]
    if gone and not there:
        return f"{gone[0]} is gone, perhaps upstream"
    deleting = {(diff.path, hunk.number) for diff in layer.diffs for hunk in diff.hunks if not hunk.added}
    absent = [
        hunk.number
        for file in merged
        for hunk in file.hunks
        if hunk.result is HunkResult.CONFLICT and (file.path, hunk.number) in deleting
    ]
    words = f"{there} of {len(hunks)} hunks are upstream" if there else ""
    if there and absent:
        return f"{words}, {len(absent)} only delete{'s' * (len(absent) == 1)} lines that are gone (perhaps upstream)"
    return words or (f"hunk {absent[0]} only deletes lines that are gone, perhaps upstream" if absent else "")


def _name_rivals(layer: Layer, stacked: Stack, dropped: frozenset[PatchId]) -> str:
    """The other patches that keep one out which fits the shipped files alone."""
    paths = set(layer.paths)
    below = [str(other.id) for other in stacked.layers if other.id != layer.id and paths & set(other.paths)]
    words = [f"perhaps it needs {', '.join(map(str, sorted(dropped)))}, which would go"] if dropped else []
    words += [f"it fits the shipped file, but not together with {', '.join(below)}"] if below else []
    return "; ".join(words)
