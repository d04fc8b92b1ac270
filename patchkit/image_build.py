"""What an image build asks for: exactly the declared list, verified, counted, and told also where it failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from patchkit import service
from patchkit.applied import Ledger
from patchkit.change import DEFAULTS, ApplyOptions
from patchkit.errors import NothingApplicable, PatchkitError, Several
from patchkit.examination import Progress, no_progress
from patchkit.model import Action, Notice, PatchState
from patchkit.outputs import check_place, write_output
from patchkit.patchset import PatchId
from patchkit.report import PatchReport, Report
from patchkit.scene import Options
from patchkit.tally import BuildReport, Tally, count, to_build_document
from patchkit.wanted import check_known, check_operands, list_declared


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How `post_install` goes about it (docs/reference/commands.md). ``report_file`` gets the JSON document.

    ``again`` are the options that the next command needs to mean the same environment and patches.
    """

    required: tuple[str, ...] = ()
    report_file: str | None = None
    how: ApplyOptions = DEFAULTS
    again: str = ""


ORDINARY = BuildOptions()


def post_install(options: Options, wish: BuildOptions = ORDINARY, progress: Progress = no_progress) -> BuildReport:
    """Make the environment exactly the declared list, verify it, and write the report that was asked for.

    What `service` raises is in the report, so that a build that fails leaves its report too. Raises `NotWritable`
    where the report has no place; then nothing was done.
    """
    if wish.report_file is not None:
        check_place(wish.report_file)
    try:
        built = _build(options, wish, progress)
    except PatchkitError as error:
        built = BuildReport(Report("post-install", error=error), Tally(), required=wish.required)
    return built if wish.report_file is None else _write(built, wish.report_file, wish.again)


def _build(options: Options, wish: BuildOptions, progress: Progress) -> BuildReport:
    declared = _read_declared(options, wish)
    how = replace(wish.how, exact=True, required=wish.required)
    applied = service.apply(options, how=how, progress=progress)
    done = BuildReport(
        replace(applied, command="post-install"), count(applied.patches, declared), required=wish.required
    )
    if applied.error is not None or not done.tally.applied:
        return done
    # What this run applied was checked in place, before it was committed; what it found was not.
    found = any(row.state is PatchState.APPLIED and row.action is Action.NONE for row in applied.patches)
    try:
        return _add(done, service.verify(options, checks=how.checks and found, progress=progress))
    except PatchkitError as error:  # what was applied is told all the same
        return replace(done, report=replace(done.report, error=error), verified=False)


def _read_declared(options: Options, wish: BuildOptions) -> frozenset[PatchId]:
    """The declared list, which must not be empty. Raises `PatchSetError` and `NothingApplicable`."""
    check_operands(wish.required)
    catalog = service.list_patches(options)
    check_known(catalog, Ledger(), wish.required, "--require")
    declared = frozenset(list_declared(catalog))
    if not declared:
        raise NothingApplicable(
            f"no patch of {', '.join(catalog.folders)} is declared",
            hint="name some in `select` of patchkit.toml, or of [tool.patchkit] in pyproject.toml (is it copied too?)",
        )
    return declared


def _add(done: BuildReport, verified: Report) -> BuildReport:
    """What was verified, told in the rows of what was applied."""
    answers = {row.id: row for row in verified.patches}
    report = replace(
        done.report,
        patches=tuple(_merge(row, answers) for row in done.report.patches),
        notices=(*done.report.notices, *_news(verified, done.report)),
        error=verified.error,
        answer=verified.answer,
    )
    return replace(done, report=report, verified=not report.exit_code)


def _merge(row: PatchReport, answers: Mapping[PatchId, PatchReport]) -> PatchReport:
    answer = answers.get(row.id)
    if answer is None or row.state is not PatchState.APPLIED:
        return row
    if not answer.failed:
        return replace(row, checks=row.checks if row.action is not Action.NONE else answer.checks)
    return replace(answer, action=row.action)


def _news(verified: Report, applied: Report) -> tuple[Notice, ...]:
    """The warnings of the second report that the first does not give, without those on what is not applied."""
    return tuple(
        notice for notice in verified.notices if notice not in applied.notices and notice.code != "not-applied"
    )


def _write(built: BuildReport, path: str, again: str) -> BuildReport:
    document = json.dumps(to_build_document(built, again=again), indent=2, ensure_ascii=True) + "\n"
    try:
        write_output(path, document.encode("ascii"))
    except PatchkitError as error:
        both = error if built.report.error is None else Several([built.report.error, error])
        return replace(built, report=replace(built.report, error=both))
    return built
