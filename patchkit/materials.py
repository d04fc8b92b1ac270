"""What a bill of materials says of an environment: the patches that the ledger holds and that are really there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from patchkit.applied import Applied
from patchkit.bases import Facts
from patchkit.bill import BilledDistribution, BilledPatch, BillFormat, SpecVersion
from patchkit.candidates import read_kept_diff
from patchkit.causes import find_causes
from patchkit.drift import Cause
from patchkit.errors import Drifted, MissingExtra, UsageError, WrongBill, raise_all
from patchkit.examination import Progress, no_progress
from patchkit.memory import Owner
from patchkit.model import Notice, PatchState
from patchkit.outputs import write_output
from patchkit.report import PatchReport, Report
from patchkit.scene import CatalogNeed, Options, Scene, open_scene, read_steadily
from patchkit.site import find_distribution, read_plain, read_written_name
from patchkit.verification import read_applied_facts


@dataclass(frozen=True, slots=True)
class BillOptions:
    """Which bill is wanted, and where.

    ``merge`` is the file of another tool's bill to put the patches into, in its own version (``spec_version`` is then
    None). ``output`` is the file to write. ``skip_drifted``: patches that are not in place any more are left out.
    """

    form: BillFormat = BillFormat.JSON
    spec_version: SpecVersion | None = None
    merge: str | None = None
    output: str | None = None
    skip_drifted: bool = False


@dataclass(frozen=True, slots=True)
class Billing:
    """The bill, UTF-8, and what there is to say of it."""

    data: bytes
    report: Report


def make_bill(options: Options, how: BillOptions, progress: Progress = no_progress) -> Billing:
    """The bill of what is applied and in place, written to ``how.output`` if that is named.

    Raises `UsageError`, `WrongBill`, `MissingExtra`; `Drifted` for each patch that is not in place, unless
    ``how.skip_drifted``; `DamagedState` where a diff is not in the object store; what writing a file raises.
    """
    _refuse_contradictions(how)
    _require_library()
    timestamp = _read_epoch(os.environ.get("SOURCE_DATE_EPOCH", ""))
    foreign = None if how.merge is None else _read_foreign(how.merge)
    billing = read_steadily(
        lambda: open_scene(options, CatalogNeed.OPTIONAL),
        lambda scene: _make_bill(scene, how, foreign, timestamp, progress),
    )
    if how.output is not None:
        write_output(how.output, billing.data)
    return billing


def _refuse_contradictions(how: BillOptions) -> None:
    if how.merge is not None and how.form is not BillFormat.JSON:
        raise UsageError("--merge reads and writes JSON", hint="leave out --format")
    if how.merge is not None and how.spec_version is not None:
        raise UsageError("--merge keeps the specVersion of its bill", hint="leave out --spec-version")


def _require_library() -> None:
    try:
        import patchkit.components  # noqa: F401 -- find_spec would miss a library that is too old
    except (ImportError, AttributeError) as error:
        raise MissingExtra(
            f"a bill of materials needs the library cyclonedx-python-lib: {error}",
            hint="`pip install 'site-patchkit[sbom]'`, or in a checkout of patchkit `pip install '.[sbom]'`",
        ) from error


def _read_epoch(text: str) -> datetime | None:
    """SOURCE_DATE_EPOCH: seconds since 1970, in UTC; a build must not go on with one that is malformed."""
    if not text:
        return None
    try:
        if not (text.isascii() and text.isdigit()):  # int() takes signs, spaces and underscores too
            raise ValueError(text)
        return datetime.fromtimestamp(int(text), tz=timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {text!r}, which is no number of seconds since 1970", hint="unset it, or mend it"
        ) from error


def _read_foreign(path: str) -> bytes:
    content = read_plain(path)
    if content is None:
        raise WrongBill(f"{path} is not there, or no plain file")
    return content.data


def _make_bill(
    scene: Scene, how: BillOptions, foreign: bytes | None, timestamp: datetime | None, progress: Progress
) -> Billing:
    from patchkit.components import write_bill
    from patchkit.merger import Merged, merge_bill

    rows = _look_at_applied(scene)
    drifted = [row for row in rows if row.state is not PatchState.APPLIED]
    if not how.skip_drifted:
        raise_all([_refuse(row) for row in drifted])
    there = {row.id for row in rows} - {row.id for row in drifted}
    distributions = _gather(scene, [applied for applied in scene.ledger.applied if applied.id in there], progress)
    if foreign is None:
        bill = Merged(write_bill(distributions, how.form, how.spec_version or SpecVersion.V1_6, timestamp=timestamp))
    else:
        bill = merge_bill(foreign, distributions, file=how.merge or "")
    notices = (*scene.notices, *_mention(scene, drifted), *bill.notices)
    report = Report("sbom", scene.root, scene.environment.python, rows, notices, summary=_summarise(how, distributions))
    return Billing(bill.data, report)


def _summarise(how: BillOptions, distributions: Sequence[BilledDistribution]) -> str:
    if how.output is None:
        return ""
    patches = sum(len(distribution.patches) for distribution in distributions)
    patch, distribution = "patch" if patches == 1 else "patches", "distribution" + "s" * (len(distributions) != 1)
    return f"wrote {how.output}: {patches} {patch} of {len(distributions)} {distribution}"


def _look_at_applied(scene: Scene) -> tuple[PatchReport, ...]:
    """One row an applied patch: `applied` where it is as it was left, else `drifted`, and why."""
    facts = read_applied_facts(scene, scene.ledger.applied)
    names = {applied.distribution for applied in scene.ledger.applied}
    owners = {name: Owner(scene, find_distribution(scene.listing, name, scene.environment)) for name in names}
    return tuple(_look_at(applied, owners[applied.distribution], facts) for applied in scene.ledger.applied)


def _look_at(applied: Applied, owner: Owner, facts: Mapping[str, Facts]) -> PatchReport:
    row = PatchReport(applied.id, applied.distribution, owner.version, applied.variant, PatchState.APPLIED)
    causes = find_causes(applied, owner.version, facts, record_kept=owner.record_kept)
    if not causes:
        return row
    words = "; ".join(_tell(cause, paths, applied, owner) for cause, paths in causes.items())
    return replace(row, state=PatchState.DRIFTED, message=words, failed=True)


def _tell(cause: Cause, paths: Sequence[str], applied: Applied, owner: Owner) -> str:
    if cause in (Cause.UPGRADED, Cause.DOWNGRADED):
        return f"{cause.value} from {applied.version} to {owner.version}"
    return cause.value if cause is Cause.UNINSTALLED else f"{cause.value}: {', '.join(paths)}"


def _refuse(row: PatchReport) -> Drifted:
    return Drifted(
        f"{row.id} is recorded as applied, and is not in place: {row.message}",
        hint="`patchkit drift` says what happened and what mends it; --skip-drifted leaves such patches out",
    )


def _mention(scene: Scene, drifted: Sequence[PatchReport]) -> tuple[Notice, ...]:
    if not scene.ledger.applied:
        return (Notice("nothing-applied", f"nothing is applied on {scene.root}: the bill has no patch"),)
    return tuple(Notice("left-out", f"{row.id} is left out, for it is not in place: {row.message}") for row in drifted)


def _gather(scene: Scene, there: Sequence[Applied], progress: Progress) -> tuple[BilledDistribution, ...]:
    billed: dict[str, BilledDistribution] = {}
    for number, applied in enumerate(there):
        progress("reading", number, len(there))
        name = applied.distribution
        so_far = billed.get(name) or BilledDistribution(_written_name(scene, name), applied.version, ())
        patch = BilledPatch(applied, read_kept_diff(scene.root, applied))
        billed[name] = replace(so_far, patches=(*so_far.patches, patch))
    return tuple(billed.values())


def _written_name(scene: Scene, name: str) -> str:
    distribution = find_distribution(scene.listing, name, scene.environment)
    return name if distribution is None else read_written_name(scene.listing, distribution)
