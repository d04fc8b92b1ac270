"""The account of a decision: one `PatchReport` a patch, with what was found, what is done, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchkit.applied import Applied
from patchkit.assess import state_in_ledger
from patchkit.bases import classify
from patchkit.choices import Choice
from patchkit.decision import Decision
from patchkit.errors import NotInstalled, NoVariant, PatchkitError
from patchkit.fold import FileOutcome
from patchkit.installed import FileState
from patchkit.model import Action, CheckOutcome, HunkResult, PatchState
from patchkit.patchset import PatchId, Variant
from patchkit.report import FileReport, PatchReport
from patchkit.trials import Trial
from patchkit.versions import is_version

Outcomes = Mapping[PatchId, tuple[CheckOutcome, ...]]


def account_for(decision: Decision, checks: Outcomes, *, done: bool = False) -> tuple[PatchReport, ...]:
    """A report on every patch that was looked at, in the order of the fold.

    ``done``: the decision was carried out, so what fits is applied.
    """
    rows = [_account(decision, choice, checks.get(id, ()), done=done) for id, choice in decision.choices.items()]
    rows += [
        _account_dropped(decision, applied, done=done)
        for applied in decision.scene.ledger.applied
        if applied.id in decision.wanted.dropped
    ]
    places = {id: place for place, id in enumerate(decision.order)}
    return tuple(sorted(rows, key=lambda row: (row.id.set, places.get(row.id, len(places)), row.id)))


def action_for(decision: Decision, id: PatchId) -> Action:
    """What carrying out ``decision`` does to a wanted patch."""
    verdict = decision.verdicts.get(id)
    if verdict is None or not verdict.fits:
        return Action.NONE
    adopted = bool(decision.bases) and all(id in decision.bases[path].adopted for path in _paths(decision, id))
    match verdict.state:
        case PatchState.APPLIED:
            return Action.NONE
        case PatchState.OUTDATED:
            return Action.UPDATED
        case _:
            return Action.ADOPTED if adopted else Action.APPLIED


def _paths(decision: Decision, id: PatchId) -> tuple[str, ...]:
    return decision.candidates[id].record.paths


def _account(decision: Decision, choice: Choice, checks: tuple[CheckOutcome, ...], *, done: bool) -> PatchReport:
    row = PatchReport(
        id=choice.id,
        distribution=choice.distribution,
        installed=choice.installed.version if choice.installed is not None else None,
        variant=_variant_of(choice),
        state=choice.state or PatchState.PENDING,
        message=choice.message,
        checks=checks,
    )
    if choice.state is not None:
        trials = decision.trials.get(choice.id, ())
        held = choice.applied if choice.applied is not None and _is_held(decision, choice.applied) else None
        tried = tuple(FileReport(file.path, None, file.hunks, file.problem) for file in _nearest(trials))
        return replace(
            row,
            action=Action.NONE if held is None else Action.REVERTED,
            message="; ".join(filter(None, (choice.message, suggest_variant(choice, trials)))),
            files=tried if held is None else _list_files(decision, held, done=done),
            next="" if done else find_step(choice, trials),
            failed=choice.state is PatchState.NO_VARIANT,
        )
    verdict = decision.verdicts[choice.id]
    action = action_for(decision, choice.id)
    row = replace(
        row,
        state=PatchState.APPLIED if done and verdict.fits else verdict.state,
        action=action,
        message=_message(choice, action, verdict.message, done=done),
        files=_files(decision, choice.id, verdict.files, done=done and verdict.fits),
        failed=(not verdict.fits and verdict.state is not PatchState.UPSTREAMED) or choice.problem is not None,
    )
    return replace(row, next="" if done else _next(row))


def _nearest(trials: Sequence[Trial]) -> tuple[FileOutcome, ...]:
    """How the variant fared that came nearest to fitting."""
    return min((trial.files for trial in trials if trial.files), key=_count_misfits, default=())


def _count_misfits(files: Sequence[FileOutcome]) -> int:
    return sum(
        (file.misfit is not None) + sum(hunk.result is not HunkResult.FITS for hunk in file.hunks) for file in files
    )


def _message(choice: Choice, action: Action, message: str, *, done: bool) -> str:
    waits = action is Action.ADOPTED and not done
    adopted = "it is in the files already, put there by hand: to be adopted" if waits else ""
    return "; ".join(filter(None, (message, adopted, choice.problem.message if choice.problem is not None else "")))


def _variant_of(choice: Choice) -> str | None:
    if choice.variant is not None:
        return choice.variant.file
    return choice.applied.variant if choice.applied is not None else None


def _next(row: PatchReport) -> str:
    if row.failed:
        return f"patchkit check {row.id} --verbose"
    if row.state in (PatchState.PENDING, PatchState.OUTDATED, PatchState.DRIFTED):
        return f"patchkit apply {row.id}"
    return ""


def _files(decision: Decision, id: PatchId, outcomes: Sequence[FileOutcome], *, done: bool) -> tuple[FileReport, ...]:
    by_path = {outcome.path: outcome for outcome in outcomes}
    paths = dict.fromkeys((*by_path, *_paths(decision, id)))
    return tuple(
        FileReport(
            path,
            _file_state(decision, path, done=done),
            by_path[path].hunks if path in by_path else (),
            by_path[path].problem if path in by_path else "",
        )
        for path in paths
    )


def _file_state(decision: Decision, path: str, *, done: bool) -> FileState | None:
    if done or decision.settled:
        return FileState.PATCHED
    if path not in decision.facts:
        return None
    facts = decision.facts[path]
    if facts.content is None and facts.row is None and facts.entry is None:
        return None  # it is yet to be created, or nobody knows it
    return classify(facts)


def _account_dropped(decision: Decision, applied: Applied, *, done: bool) -> PatchReport:
    """A patch that goes: pending once it is gone, until then whatever it is."""
    state = PatchState.PENDING if done else state_in_ledger(applied, None, decision.facts)
    return PatchReport(
        id=applied.id,
        distribution=applied.distribution,
        installed=applied.version,
        variant=applied.variant,
        state=state,
        action=Action.REVERTED,
        files=_list_files(decision, applied, done=done),
    )


def _list_files(decision: Decision, applied: Applied, *, done: bool) -> tuple[FileReport, ...]:
    """The files of a patch that goes: as shipped once it is gone."""
    return tuple(
        FileReport(path, FileState.PRISTINE if done else _file_state(decision, path, done=False))
        for path in applied.paths
    )


def _is_held(decision: Decision, applied: Applied) -> bool:
    return state_in_ledger(applied, None, decision.facts) is PatchState.APPLIED


# ---- no variant, not installed --------------------------------------------------------------------------------


def suggest_variant(choice: Choice, trials: Sequence[Trial]) -> str:
    """What the variants out of range say of the installed version, with the manifest's lines to add."""
    if choice.state is not PatchState.NO_VARIANT or choice.installed is None:
        return ""
    version = choice.installed.version
    if not is_version(version):
        return f"{version!r} is no version by PEP 440, so no range can hold it"
    fitting = [trial.variant for trial in trials if trial.fits]
    if fitting:
        lines = manifest_lines(fitting[0], version)
        return f"{fitting[0].file} would fit: try it, then add below this patch in the manifest\n{lines}"
    there = [trial.variant for trial in trials if trial.upstream]
    if there:
        lines = f'[[patch.not-needed]]\nversions = "=={version}"\nwhy = "..."'
        return f"the text of {there[0].file} is there already; if that is the fix, add below this patch\n{lines}"
    if not trials:
        return f"`patchkit revert {choice.id}` takes it off the list"
    return "none of its diffs fits this version"


def find_step(choice: Choice, trials: Sequence[Trial], *, whole_set: bool = False) -> str:
    """The command for a patch of which no diff at hand fits the installed version, nor is there already; else ""."""
    settled = any(trial.fits or trial.upstream for trial in trials)
    if choice.state is not PatchState.NO_VARIANT or choice.patch is None or choice.installed is None or settled:
        return ""
    version = choice.installed.version
    name = choice.id.set if whole_set else choice.id
    return f"patchkit rebase {name} --to {version}" if is_version(version) else ""


def manifest_lines(variant: Variant, version: str) -> str:
    """The variant's entry in patchset.toml for one more version."""
    lines = ["[[patch.variant]]", f'versions = "=={version}"', f'file = "{variant.file}"']
    lines += [f"strip = {variant.strip}"] if variant.strip != 1 else []
    lines += [f'directory = "{variant.directory}"'] if variant.directory else []
    for key, globs in (("include", variant.include), ("exclude", variant.exclude)):
        lines += [f"{key} = [{', '.join(chr(34) + glob + chr(34) for glob in globs)}]"] if globs else []
    return "\n".join(lines)


def explain_absence(choice: Choice, trials: Sequence[Trial], *, whole_set: bool = False) -> PatchkitError:
    """The error for a patch that has no variant here, or whose distribution is missing.

    ``whole_set``: others of its set are in the same place, so one hint is for all.
    """
    words = f"{choice.id}: {choice.message}"
    if choice.state is PatchState.NOT_INSTALLED:
        return NotInstalled(words, hint=f"`pip install {choice.distribution}`, or name the environment you mean")
    advice = suggest_variant(choice, trials)
    step = find_step(choice, trials, whole_set=whole_set)
    way = f"`{step}` makes the diff for that version" if step else "add the version to the manifest once it is tried"
    hint = f"{way}; `patchkit apply --skip-unmatched` goes on without the patch"
    return NoVariant(f"{words}; {advice}" if advice else words, hint=hint)
