"""What ``post-install`` says, as lines for a build log: one a patch, then the counts. It needs no terminal."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit import __version__
from patchkit.columns import WIDTH, Cell, lay_out, wrap
from patchkit.errors import ExitCode
from patchkit.model import Action, CheckResult, PatchState
from patchkit.report import PatchReport
from patchkit.tally import NOT_MEANT, BuildReport, count_checks


def render_build(built: BuildReport, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """The lines of ``built`` for standard output; ``verbose`` adds files and checks.

    ``again`` are the options that the next command needs to mean the same environment and patches.
    """
    report = built.report
    yield f"patchkit {__version__}: post-install"
    if report.site_root is not None:
        python = f" (Python {report.python})" if report.python is not None else ""
        yield f"environment {report.site_root}{python}"
    told = [_describe(built, row) for row in report.patches]
    heads = [
        (Cell(_word(built, row)), Cell(str(row.id)), Cell(what))
        for row, (what, *_) in zip(report.patches, told, strict=True)
    ]
    for row, lines, (_, *more) in zip(report.patches, lay_out(heads), told, strict=True):
        whole = "; ".join([lines[-1], *more])
        yield from lines[:-1]
        yield from (whole,) if len(whole) <= WIDTH else (lines[-1], *(piece for each in more for piece in wrap(each)))
        if row.failed and report.error is None:
            yield from (piece for line in row.message.splitlines()[1:] for piece in wrap(line))
        if verbose:
            yield from _list_parts(row)
    yield from _sum_up(built)
    if report.exit_code is ExitCode.NO:
        yield f"next: {_next_command(built)}{again}"


def _word(built: BuildReport, row: PatchReport) -> str:
    if row.failed:
        return "FAILED"
    if row.state in NOT_MEANT:
        return "skipped"
    if row.action is not Action.NONE and built.report.error is None:
        return str(row.action.value)
    return "already applied" if row.state is PatchState.APPLIED else str(row.state.value)


def _describe(built: BuildReport, row: PatchReport) -> list[str]:
    """What it was for, and the first line of what there is to say of it, unless the error says it."""
    parts = [f"{row.distribution} {row.installed}" if row.installed else row.distribution]
    if not row.failed or built.report.error is None:
        parts += row.message.splitlines()[:1]
    tally = count_checks([row])
    if tally:
        parts.append("checks: " + ", ".join(f"{number} {result.value}" for result, number in tally.items()))
    return parts


def _list_parts(row: PatchReport) -> Iterator[str]:
    for file in row.files:
        yield f"    {file.path}" + (f" ({file.state.value})" if file.state is not None else "")
    for check in row.checks:
        because = f" ({check.message.splitlines()[0]})" if check.message else ""
        yield f"    {check.kind} check {check.name}: {check.result.value}{because}"


def _sum_up(built: BuildReport) -> Iterator[str]:
    tally, rows = built.tally, built.report.patches
    if not tally.declared:
        return
    words = f"{tally.declared} declared, {tally.applicable} applicable"
    words += f", {tally.applied} applied, {tally.upstreamed} upstreamed"
    for number, word in ((tally.not_needed, "not needed"), (tally.skipped, "skipped"), (tally.reverted, "reverted")):
        words += f", {number} {word}" if number else ""
    yield words
    skipped = [check for row in rows for check in row.checks if check.result is CheckResult.SKIPPED]
    if skipped:
        reasons = dict.fromkeys(check.message.splitlines()[0] for check in skipped if check.message)
        yield f"{len(skipped)} check{'s' * (len(skipped) > 1)} skipped: {'; '.join(reasons)}"
    if built.verified is not None:
        yield f"verified: {'yes' if built.verified else 'no'}"


def _next_command(built: BuildReport) -> str:
    otherwise = "patchkit verify --verbose" if built.verified is False else "patchkit status"
    return next((row.next for row in built.report.patches if row.failed and row.next), otherwise)
