"""Why an applied patch is not in its files any more, from what the ledger says and what is installed now."""

from __future__ import annotations

from collections.abc import Mapping

from patchkit.applied import Applied
from patchkit.bases import Facts, classify, is_as_written
from patchkit.drift import Cause, DriftedFile, HunkTrace, Trace
from patchkit.installed import FileState, sha256
from patchkit.model import PatchState
from patchkit.patchset import PatchId
from patchkit.versions import is_older, is_same_version

FITTING = (PatchState.PENDING, PatchState.OUTDATED, PatchState.DRIFTED, PatchState.APPLIED)
"""What `apply` would find where it can bring the patch back."""
RETIRED = (PatchState.UPSTREAMED, PatchState.NOT_NEEDED)
"""What it would find where the patch is needed no more."""


VERSIONED = (Cause.UPGRADED, Cause.DOWNGRADED)


def find_causes(
    applied: Applied, version: str | None, facts: Mapping[str, Facts], *, record_kept: bool
) -> dict[Cause, tuple[str, ...]]:
    """What happened to ``applied``, each cause with the paths that show it; empty where all is as it was left.

    ``version`` is the one installed now (None: none is). ``record_kept``: RECORD is byte for byte the one that
    patchkit wrote, so whatever became of a file, no installer did it.
    """
    if version is None:
        return {Cause.UNINSTALLED: applied.paths}
    if not is_same_version(version, applied.version):
        return {Cause.DOWNGRADED if is_older(version, applied.version) else Cause.UPGRADED: applied.paths}
    found: dict[Cause, tuple[str, ...]] = {}
    for path in applied.paths:
        cause = _find_cause(facts[path], applied.id, record_kept=record_kept)
        if cause is not None:
            found[cause] = (*found.get(cause, ()), path)
    return found


def find_causes_without_record(applied: Applied, facts: Mapping[str, Facts]) -> dict[Cause, tuple[str, ...]]:
    """As `find_causes`, where no RECORD counts: the ledger alone says what was shipped and what was written."""
    found: dict[Cause, tuple[str, ...]] = {}
    for path in applied.paths:
        fact = facts[path]
        if not is_as_written(fact):
            base = None if fact.entry is None else fact.entry.base
            shipped = base is not None and fact.content is not None and sha256(fact.content.data) == base.sha256
            cause = Cause.REINSTALLED if shipped else Cause.EDITED
            found[cause] = (*found.get(cause, ()), path)
    return found


def _find_cause(facts: Facts, id: PatchId, *, record_kept: bool) -> Cause | None:
    if is_as_written(facts) and facts.entry is not None:
        return None if id in facts.entry.patches else Cause.REINSTALLED  # written since, and without this patch
    created = facts.entry is not None and facts.entry.base is None
    if classify(facts) is FileState.PRISTINE and not (created and record_kept):
        return Cause.REINSTALLED
    return Cause.EDITED


def describe_file(facts: Facts, hunks: tuple[HunkTrace, ...], expected: bytes | None) -> DriftedFile:
    """A file that is not as it was written."""
    entry, content = facts.entry, facts.content
    gone = content is None and not facts.observed.obstacle and entry is not None and entry.written is not None
    state = FileState.MISSING if gone else classify(facts)
    return DriftedFile(
        facts.path,
        state,
        entry.written.sha256 if entry is not None and entry.written is not None else None,
        sha256(content.data) if content is not None else None,
        _describe(facts, state, hunks),
        hunks,
        expected,
        None if content is None else content.data,
    )


def _describe(facts: Facts, state: FileState, hunks: tuple[HunkTrace, ...]) -> str:
    there = sum(hunk.trace is Trace.THERE for hunk in hunks)
    left = f"; {there} of {len(hunks)} hunks still there" if hunks else ""
    if facts.observed.obstacle:
        return facts.observed.obstacle
    match state:
        case FileState.MISSING:
            return "is missing"
        case FileState.PRISTINE:
            return "holds what was shipped again" if facts.content is not None else "is gone"
        case FileState.FOREIGN:
            return f"holds neither what was written nor what was shipped{left}"
        case FileState.PATCHED if is_as_written(facts):
            return "holds other patches, and not this one"
        case FileState.PATCHED:
            return "has what was written, with another executable bit"


def suggest(
    cause: Cause,
    id: PatchId,
    state: PatchState | None,
    *,
    found: str | None,
    at_hand: bool,
    again: str,
    blocked: bool = False,
) -> str:
    """The command that mends a row about ``id``; ``state`` is what `apply` would find (None: it cannot be applied).

    ``found`` is the version installed now. ``again`` are options that name the environment and the patches, as they
    were typed. ``at_hand``: a patch folder has the patch. ``blocked``: what keeps it out are foreign bytes.
    """
    discard = " --discard-edits" if blocked or cause is Cause.EDITED else ""
    match cause:
        case Cause.INTERRUPTED:
            return f"patchkit recover{again}"
        case Cause.UNINSTALLED | Cause.PATCH_REMOVED:
            return f"patchkit revert {id}{discard}{again}"
        case Cause.EDITED:
            return f"patchkit {'revert' if state is None else 'apply'} {id}{discard}{again}"
        case Cause.REINSTALLED | Cause.UPGRADED | Cause.DOWNGRADED | Cause.PATCH_CHANGED | Cause.NOT_APPLIED:
            if state in FITTING or (state in RETIRED and at_hand) or (state is PatchState.CONFLICT and blocked):
                return f"patchkit apply {id}{discard}{again}"
            other_text = state is PatchState.NO_VARIANT or (state is PatchState.CONFLICT and cause in VERSIONED)
            if other_text and at_hand and found is not None:
                return f"patchkit rebase {id} --to {found}{again}"
            unfit = cause is Cause.PATCH_CHANGED and state is PatchState.CONFLICT
            if cause is Cause.NOT_APPLIED or (unfit and at_hand):
                return f"patchkit check {id} --verbose{again}"
            return f"patchkit revert {id}{discard}{again}"
