"""The tally of an image build: what became of the declared patches, in numbers, and whether it was verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from patchkit.model import Action, CheckResult, PatchState
from patchkit.patchset import PatchId
from patchkit.report import PatchReport, Report, to_document

NOT_MEANT = (PatchState.NOT_INSTALLED, PatchState.NOT_APPLICABLE)
"""States of a patch that is not meant for what is installed here: it is skipped, and that is said."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The declared patches by what became of them.

    ``applicable`` are those that are meant for what is installed: declared, less ``skipped`` and ``not_needed``.
    Where all went well, it is ``applied`` plus ``upstreamed``. ``reverted`` were applied, and are no longer.
    """

    declared: int = 0
    applicable: int = 0
    applied: int = 0
    upstreamed: int = 0
    not_needed: int = 0
    skipped: int = 0
    reverted: int = 0


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What ``post-install`` has to say. ``verified`` is None where nothing was there to verify, or it went not so far.

    ``required`` are the names that had to be applied.
    """

    report: Report
    tally: Tally
    verified: bool | None = None
    required: tuple[str, ...] = ()


def count(rows: Collection[PatchReport], declared: Collection[PatchId]) -> Tally:
    """The tally of ``rows``, of which those in ``declared`` are in the declared list."""
    states = Counter(row.state for row in rows if row.id in declared)
    skipped = sum(states[state] for state in NOT_MEANT)
    not_needed = states[PatchState.NOT_NEEDED]
    return Tally(
        declared=len(declared),
        applicable=states.total() - skipped - not_needed,
        applied=states[PatchState.APPLIED],
        upstreamed=states[PatchState.UPSTREAMED],
        not_needed=not_needed,
        skipped=skipped,
        reverted=sum(row.action is Action.REVERTED for row in rows),
    )


def count_checks(rows: Collection[PatchReport]) -> Counter[CheckResult]:
    """How the checks of ``rows`` ended."""
    return Counter(check.result for row in rows for check in row.checks)


def to_build_document(built: BuildReport, *, again: str = "") -> dict[str, Any]:
    """The JSON document of ``post-install``: that of every command, with the counts. ``again`` as in `to_document`."""
    tally = built.tally
    return {
        **to_document(built.report, again=again),
        "counts": {
            "declared": tally.declared,
            "applicable": tally.applicable,
            "applied": tally.applied,
            "upstreamed": tally.upstreamed,
            "not_needed": tally.not_needed,
            "skipped": tally.skipped,
            "reverted": tally.reverted,
        },
        "verified": built.verified,
        "required": list(built.required),
    }
