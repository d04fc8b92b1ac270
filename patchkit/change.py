"""A change of the environment: decided, planned, carried out under the lock, and told.

`apply` and `revert` differ in what they want only. When the ledger changed while the lock was waited for, the decision
is made anew, so that two runs at once never undo each other's work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from patchkit.account import Outcomes, account_for, explain_absence, find_step
from patchkit.applied import BaseOrigin, Ledger
from patchkit.decision import Decision, decide
from patchkit.errors import Bug, NothingApplicable, PatchkitError, RequiredSet, Several
from patchkit.examination import Progress, compile_all, examine, list_waiting, prove
from patchkit.installed import sha256
from patchkit.model import Action, CheckOutcome, CheckResult, ForeignPolicy, Notice, PatchState, Plan
from patchkit.outcome import outcome_of
from patchkit.patchset import PatchId
from patchkit.plan import make_plan
from patchkit.report import PatchReport, Report
from patchkit.scene import Scene, read_steadily, reread_state
from patchkit.settlement import seal_ledger
from patchkit.state import needs_sweep, object_path
from patchkit.wanted import Wanted, matches


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How `apply` and `revert` go about it (docs/reference/commands.md)."""

    exact: bool = False
    dry_run: bool = False
    diff: bool = False
    strict: bool = False
    skip_unmatched: bool = False
    allow_empty: bool = False
    checks: bool = True
    foreign: ForeignPolicy = ForeignPolicy.REFUSE
    wheels: tuple[str, ...] = ()
    lock_timeout: float = 10.0
    required: tuple[str, ...] = ()


DEFAULTS = ApplyOptions()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A decision with its plan, or with what stands in its way."""

    decision: Decision
    plan: Plan | None
    checks: Outcomes
    problems: tuple[PatchkitError, ...] = ()


def change(
    command: str,
    open_it: Callable[[], Scene],
    want: Callable[[Scene], Wanted],
    how: ApplyOptions,
    progress: Progress,
) -> Report:
    """Open, decide, carry out, and tell: the whole of a command that writes."""
    proposal = read_steadily(lambda: _open_whole(open_it, how), lambda scene: propose(scene, want(scene), how))
    scene, plan = proposal.decision.scene, proposal.plan
    if plan is None:
        return _refuse(command, proposal, how)
    if plan.empty and not needs_sweep(scene.root):
        return _tell(command, proposal, how, done=not how.dry_run)
    obstacles = find_obstacles(proposal)
    if obstacles:
        return _refuse(command, replace(proposal, problems=obstacles), how)
    if how.dry_run or not _may_sweep(scene, plan):
        return _tell(command, proposal, how, done=not how.dry_run)
    return _execute(command, scene, want, how, proposal, progress)


def _open_whole(open_it: Callable[[], Scene], how: ApplyOptions) -> Scene:
    """The scene without an interrupted transaction: whoever is about to write undoes it first."""
    scene = open_it()
    return _recover_first(scene, how) if scene.state.interrupted and not how.dry_run else scene


def find_obstacles(proposal: Proposal) -> tuple[PatchkitError, ...]:
    """What keeps a plan from being written at all: permissions, ownership, a read-only file system. Only looks."""
    from patchkit.transaction import preflight

    plan = proposal.plan
    return () if plan is None or plan.empty else tuple(preflight(proposal.decision.scene.root, plan))


def _may_sweep(scene: Scene, plan: Plan) -> bool:
    """Whether what a killed run left can be swept here; where it cannot, an empty plan is still a no-op."""
    from patchkit.transaction import preflight

    return not (plan.empty and preflight(scene.root, plan))


def _recover_first(scene: Scene, how: ApplyOptions) -> Scene:
    from patchkit.transaction import locked
    from patchkit.transaction import recover as recover_transaction

    with locked(scene.root, timeout=how.lock_timeout) as lock:
        found = recover_transaction(lock)
    notice = Notice("recovered", f"an interrupted transaction was found and {found.value}")
    return replace(reread_state(scene), notices=(*scene.notices, notice))


def propose(scene: Scene, wanted: Wanted, how: ApplyOptions, *, sealed: bool = True) -> Proposal:
    """Decide, and plan what was decided; `check` asks no more than this, so it cannot disagree with `apply`.

    A plan that nobody will carry out needs no seal in its ledger (``sealed``): it is much reading.
    """
    decision = decide(scene, wanted, policy=how.foreign, wheels=how.wheels)
    problems = _judge(decision, how)
    checks: Outcomes = {}
    if not problems and how.checks and not decision.settled:
        checks, found = prove(decision)
        problems += found
    if not problems and not decision.settled:
        problems += compile_all(decision)
    if problems:
        return Proposal(decision, None, checks, tuple(problems))
    seal = partial(seal_ledger, decision) if sealed else _leave_unsealed
    return Proposal(decision, make_plan(outcome_of(decision), seal), checks)


def _leave_unsealed(ledger: Ledger, unsealed: bytes) -> tuple[str, ...]:
    return ()


def _judge(decision: Decision, how: ApplyOptions) -> list[PatchkitError]:
    """Everything that keeps a decision from being carried out."""
    problems: list[PatchkitError] = []
    stuck = Counter(id.set for id, choice in decision.choices.items() if find_step(choice, decision.trials.get(id, ())))
    for id, choice in decision.choices.items():
        named = decision.wanted.named is not None and id in decision.wanted.named
        if choice.state is PatchState.NO_VARIANT and not how.skip_unmatched:
            problems.append(explain_absence(choice, decision.trials.get(id, ()), whole_set=stuck[id.set] > 1))
        if choice.state is PatchState.NOT_INSTALLED and (named or how.strict):
            problems.append(explain_absence(choice, ()))
        if choice.problem is not None:
            problems.append(choice.problem)
        verdict = decision.verdicts.get(id)
        if verdict is not None and verdict.problem is not None:
            problems.append(verdict.problem)
    problems += [*_judge_files(decision), *decision.problems]
    problems += [problem for name in how.required if (problem := _judge_required(decision, name)) is not None]
    emptied = how.exact and not decision.choices  # nothing is declared, and exactly that is asked for
    if not (problems or emptied or how.allow_empty or decision.wanted.dropped or find_effective(decision)):
        problems.append(_explain_nothing(decision))
    return problems


def _judge_files(decision: Decision) -> list[PatchkitError]:
    """Files that may not be touched, and hold a patch that would leave them: reverted, changed or not needed by now."""
    problems: list[PatchkitError] = []
    named = {layer.id: frozenset(layer.paths) for layer in decision.layers}
    for path, base in decision.bases.items():
        entry = decision.facts[path].entry
        if base.problem is None or entry is None:
            continue
        if any(path not in named.get(id, ()) for id in entry.patches):
            problems.append(base.problem)
    return problems


def _judge_required(decision: Decision, name: str) -> PatchkitError | None:
    """Why a required set would not be applied: it is not installed, not declared, or no marker of it is true here.

    What has an error of its own (a conflict, no variant) is not told twice.
    """
    asked = {id: choice for id, choice in decision.choices.items() if matches(name, id)}
    absent = [choice for choice in asked.values() if choice.state is PatchState.NOT_INSTALLED]
    if absent:
        words = f"--require {name}: {absent[0].distribution} is not installed on {decision.scene.root}"
        return RequiredSet(words, hint=f"install {absent[0].distribution} before this step")
    if all(choice.state is PatchState.NOT_APPLICABLE for choice in asked.values()):
        why = "the markers of all its patches are false here" if asked else "none of its patches is declared"
        return RequiredSet(f"--require {name}: {why}")
    return None


def find_effective(decision: Decision) -> list[PatchId]:
    """The patches that are applied, upstreamed or not needed afterwards: proof that this is the environment meant."""
    states = (PatchState.UPSTREAMED, PatchState.NOT_NEEDED)
    found = [id for id, verdict in decision.verdicts.items() if verdict.fits or verdict.state in states]
    return found + [id for id, choice in decision.choices.items() if choice.state in states]


def _explain_nothing(decision: Decision) -> PatchkitError:
    root = decision.scene.root
    if not decision.choices:
        return NothingApplicable(
            f"no patch is declared for {root}", hint="select one, or name one: patchkit apply SET/PATCH"
        )
    names = sorted({choice.distribution for choice in decision.choices.values() if choice.installed is None})
    if names:
        return NothingApplicable(f"nothing to apply on {root}: {', '.join(names)} is not installed there")
    words = f"nothing to apply on {root}: no wanted patch is applicable there"
    return NothingApplicable(words, hint="`patchkit status` says why; `patchkit apply --allow-empty` accepts that")


def _execute(
    command: str,
    scene: Scene,
    want: Callable[[Scene], Wanted],
    how: ApplyOptions,
    proposal: Proposal,
    progress: Progress,
) -> Report:
    """Carry the plan out under the lock; when the ledger changed meanwhile, decide anew and try again."""
    from patchkit.transaction import Stale, execute, locked
    from patchkit.transaction import recover as recover_transaction

    with locked(scene.root, timeout=how.lock_timeout) as lock:
        recover_transaction(lock)
        while proposal.plan is not None and not proposal.plan.empty:
            ran: dict[PatchId, tuple[CheckOutcome, ...]] = {}
            try:
                execute(
                    lock,
                    proposal.plan,
                    before_commit=partial(_examine, proposal, how, ran, progress),
                    progress=partial(progress, "writing"),
                )
            except Stale:
                scene = reread_state(scene)
                proposal = propose(scene, want(scene), how)
                continue
            except PatchkitError as error:
                return _refuse(command, replace(_with_checks(proposal, ran), problems=(error,)), how)
            return _tell(command, _with_checks(proposal, ran), how, done=True)
    return _refuse(command, proposal, how) if proposal.plan is None else _tell(command, proposal, how, done=True)


def _examine(
    proposal: Proposal, how: ApplyOptions, ran: dict[PatchId, tuple[CheckOutcome, ...]], progress: Progress
) -> None:
    if how.checks:
        examine(proposal.decision, proposal.checks, ran, progress, strict=how.strict)


def with_python_checks(proposal: Proposal) -> Outcomes:
    """The outcomes of the checks, with the python checks that are still to come listed as skipped."""
    return {id: (*found, *list_waiting(proposal.decision, id)) for id, found in proposal.checks.items()}


def _with_checks(proposal: Proposal, ran: Outcomes) -> Proposal:
    ids = {**proposal.checks, **ran}
    return replace(proposal, checks={id: (*proposal.checks.get(id, ()), *ran.get(id, ())) for id in ids})


# ---- what is said ---------------------------------------------------------------------------------------------


def report_on(command: str, decision: Decision, **parts: object) -> Report:
    environment = decision.scene.environment
    report = Report(command, decision.scene.root, environment.python, notices=_notices(decision))
    return replace(report, **parts)  # type: ignore[arg-type]


def _notices(decision: Decision) -> tuple[Notice, ...]:
    found = list(decision.scene.notices)
    for id, choice in decision.choices.items():
        shadows = choice.patch.shadowed_by if choice.patch is not None else ()
        found += [
            Notice("shadowed", f"{id}: {name} is installed, and its prebuilt binaries win over the patched source")
            for name in shadows
            if decision.scene.version_of(name) is not None
        ]
    found += [
        Notice("unrecorded", f"{path} has no digest in RECORD: what was on disk at first contact counts as shipped")
        for path, base in decision.bases.items()
        if base.origin is BaseOrigin.UNRECORDED
    ]
    return tuple(found)


def _mention_kept(decision: Decision, *, done: bool) -> Iterator[Notice]:
    verb = "are" if done else "would be"
    for path, base in decision.bases.items():
        if base.keep is not None:
            place = object_path(decision.scene.root, sha256(base.keep))
            yield Notice("kept", f"{path}: the bytes that were there {verb} kept in {place}")


def _refuse(command: str, proposal: Proposal, how: ApplyOptions) -> Report:
    problems = proposal.problems
    error = problems[0] if len(problems) == 1 else Several(problems)
    rows = account_for(proposal.decision, proposal.checks)
    rows = tuple(replace(row, action=Action.NONE, failed=row.failed or _fails_check(row)) for row in rows)
    return report_on(command, proposal.decision, patches=rows, error=error, dry_run=how.dry_run)


def _fails_check(row: PatchReport) -> bool:
    return any(check.result is CheckResult.FAILED for check in row.checks)


def _tell(command: str, proposal: Proposal, how: ApplyOptions, *, done: bool) -> Report:
    decision, plan = proposal.decision, proposal.plan
    if plan is None:
        raise Bug("a plan that does not exist was carried out")
    return report_on(
        command,
        decision,
        patches=account_for(decision, proposal.checks, done=done),
        notices=(*_notices(decision), *_mention_kept(decision, done=done)),
        dry_run=how.dry_run,
        changes=tuple(change.path for change in plan.changes),
        wrote=not plan.empty and not how.dry_run,
        diff=_preview(plan) if how.diff else "",
    )


def _preview(plan: Plan) -> str:
    from patchkit.preview import show_changes

    return show_changes(plan.changes)
