"""Which diff of a patch is meant for what is installed, decided without looking at any file's bytes.

Each patch becomes a `Choice`: either one of the states that need no bytes (not installed, not applicable, not needed,
no variant), or the variant to fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from patchkit.applied import Applied, Ledger, Reason
from patchkit.errors import ConstraintFails, PatchkitError
from patchkit.installed import Distribution
from patchkit.model import PatchState
from patchkit.patchset import Catalog, Check, Constraint, NotNeeded, Patch, PatchId, Variant
from patchkit.versions import contains, variant_for
from patchkit.wanted import Wanted


@dataclass(frozen=True, slots=True)
class Choice:
    """One patch and what it comes to here.

    ``patch`` is the one at hand (None: only the ledger knows it), ``applied`` what the ledger says of it. Exactly one
    of ``state``, ``variant`` (the diff at hand) and ``keep`` (the text in the ledger stays) decides.
    """

    id: PatchId
    distribution: str
    installed: Distribution | None
    reason: Reason
    patch: Patch | None = None
    applied: Applied | None = None
    state: PatchState | None = None
    variant: Variant | None = None
    keep: bool = False
    message: str = ""
    problem: PatchkitError | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A wanted patch with the text that is meant for what is installed.

    ``record`` is what the ledger will say once it is applied; its ``paths`` are known once the diff is parsed. ``diff``
    are the bytes of its diff (None: the object store has them), ``scripts`` those of its python checks by sha256.
    """

    choice: Choice
    record: Applied
    diff: bytes | None
    scripts: Mapping[str, bytes]

    @property
    def id(self) -> PatchId:
        return self.choice.id


Versions = Mapping[str, str | None]
MarkerTest = Callable[[str], bool]


def distributions_of(wanted: Wanted, catalog: Catalog, ledger: Ledger) -> tuple[str, ...]:
    """The distributions that the wanted and the applied patches are for, sorted."""
    patches = catalog.patches
    names = {applied.distribution for applied in ledger.applied} | {file.distribution for file in ledger.files}
    names |= {patches[id].distribution for id in wanted.reasons if id in patches}
    return tuple(sorted(names))


def choose(
    wanted: Wanted,
    catalog: Catalog,
    ledger: Ledger,
    installed: Mapping[str, Distribution | None],
    versions: Versions,
    holds: MarkerTest,
) -> dict[PatchId, Choice]:
    """A choice for each wanted patch; ``versions`` are of the distributions that constraints name, None: absent."""
    return {
        id: _choose(
            id, reason, catalog.patches.get(id) if id in wanted.fresh else None, ledger, installed, versions, holds
        )
        for id, reason in wanted.reasons.items()
    }


def _choose(
    id: PatchId,
    reason: Reason,
    patch: Patch | None,
    ledger: Ledger,
    installed: Mapping[str, Distribution | None],
    versions: Versions,
    holds: MarkerTest,
) -> Choice:
    applied = ledger.patch(id)
    if patch is None:
        assert applied is not None
        return _keep(applied, reason, installed.get(applied.distribution))
    target = installed.get(patch.distribution)

    def choice(
        state: PatchState | None = None,
        message: str = "",
        variant: Variant | None = None,
        problem: PatchkitError | None = None,
    ) -> Choice:
        return Choice(
            id, patch.distribution, target, reason, patch, applied, state, variant, message=message, problem=problem
        )

    for marker in patch.markers:
        if not holds(marker):
            return choice(PatchState.NOT_APPLICABLE, f"the marker is false here: {marker}")
    if target is None:
        return choice(PatchState.NOT_INSTALLED, f"{patch.distribution} is not installed")
    found = variant_for(patch, target.version)
    if isinstance(found, NotNeeded):
        return choice(PatchState.NOT_NEEDED, found.why)
    if found is None:
        ranges = ", ".join(variant.versions for variant in patch.variants)
        return choice(
            PatchState.NO_VARIANT, f"no range holds {patch.distribution} {target.version} (there are: {ranges})"
        )
    return choice(variant=found, problem=_constraint_problem(id, patch.constraints, versions))


def _keep(applied: Applied, reason: Reason, target: Distribution | None) -> Choice:
    """A patch that only the ledger knows, or whose text must stay: its own range still has to hold."""
    if target is None:
        return Choice(
            applied.id,
            applied.distribution,
            None,
            reason,
            applied=applied,
            state=PatchState.NOT_INSTALLED,
            message=f"{applied.distribution} is not installed",
        )
    if not contains(applied.versions, target.version):
        return Choice(
            applied.id,
            applied.distribution,
            target,
            reason,
            applied=applied,
            state=PatchState.NO_VARIANT,
            message=f"it was applied for {applied.versions}, which does not hold {target.version}",
        )
    return Choice(applied.id, applied.distribution, target, reason, applied=applied, keep=True)


def _constraint_problem(id: PatchId, constraints: tuple[Constraint, ...], versions: Versions) -> PatchkitError | None:
    failing = [f"{constraint} (installed: {version})" for constraint, version in list_failing(constraints, versions)]
    if not failing:
        return None
    return ConstraintFails(f"{id} needs {', '.join(failing)}", hint=f"install a version that fits, or deselect {id}")


def list_failing(constraints: Iterable[Constraint], versions: Versions) -> tuple[tuple[Constraint, str], ...]:
    """The constraints that do not hold, each with the version that is installed instead."""
    return tuple(
        (constraint, version)
        for constraint in constraints
        if (version := versions.get(constraint.distribution)) is not None and not contains(constraint.versions, version)
    )


def constraints_of(catalog: Catalog, wanted: Wanted) -> tuple[str, ...]:
    """The distributions that the constraints of wanted patches name, sorted."""
    patches = catalog.patches
    return tuple(
        sorted(
            {
                constraint.distribution
                for id in wanted.reasons
                if id in patches
                for constraint in patches[id].constraints
            }
        )
    )


def checks_for(checks: tuple[Check, ...], version: str) -> tuple[Check, ...]:
    """Those of ``checks`` that are meant for ``version``."""
    return tuple(check for check in checks if not check.versions or contains(check.versions, version))
