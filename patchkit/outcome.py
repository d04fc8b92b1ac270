"""From a decision to the `Outcome` that a plan is made of."""

from __future__ import annotations

from patchkit.applied import Applied
from patchkit.decision import Decision
from patchkit.plan import Outcome, RecordNow


def outcome_of(decision: Decision) -> Outcome:
    """What ``decision`` comes to, in the terms of the plan. Patches that do not fit are left out."""
    result = decision.stacked.result if decision.stacked is not None else None
    ledger, ledger_data = decision.scene.ledger, decision.scene.state.data
    if result is None:  # settled: nothing is to be written
        return Outcome(ledger, ledger_data, {}, {}, {}, {}, ledger.applied, (), {}, frozenset())
    applied = _list_applied(decision)
    ids = {each.id for each in applied}
    texts: dict[str, bytes] = {}
    for id, candidate in decision.candidates.items():
        if id in ids:
            texts |= candidate.scripts
            if candidate.diff is not None:
                texts[candidate.record.text.sha256] = candidate.diff
    return Outcome(
        ledger=ledger,
        ledger_data=ledger_data,
        facts=decision.facts,
        bases=decision.bases,
        tree=result.tree,
        members=result.members,
        applied=applied,
        records=tuple(
            RecordNow(name, own.distribution.record_path, own.distribution.record, own.record, own.own_rows)
            for name, own in decision.ownership.items()
        ),
        texts=texts,
        absent_folders=decision.absent_folders,
    )


def _list_applied(decision: Decision) -> tuple[Applied, ...]:
    """All patches that are applied afterwards, in the order of the fold."""
    applied = {id: candidate.record for id, candidate in decision.candidates.items() if decision.verdicts[id].fits}
    if decision.wanted.named is not None:
        gone = decision.wanted.named | decision.wanted.dropped
        applied |= {each.id: each for each in decision.scene.ledger.applied if each.id not in gone}
    return tuple(applied[id] for id in decision.order if id in applied)
