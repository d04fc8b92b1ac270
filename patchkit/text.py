"""Reports as lines for people: short, aligned, with the next command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from click import style

from patchkit.columns import MARGIN, Cell, lay_out, wrap
from patchkit.errors import ExitCode, PatchkitError
from patchkit.installed import FileState
from patchkit.model import Action, CheckResult, HunkResult, PatchState
from patchkit.patchset import Catalog, Patch, PatchSet, PythonCheck
from patchkit.report import FileReport, PatchReport, Report

SHOWN_PROBLEMS = 100
LONGEST_SHOWN = 1000
"""Characters of a line; --json has all of them."""
SHOWN_LINES = 12
"""Lines of a conflicting hunk that are shown without --verbose."""

_COLOURS = {
    PatchState.APPLIED: "green",
    PatchState.UPSTREAMED: "green",
    PatchState.NOT_NEEDED: "green",
    PatchState.PENDING: "cyan",
    PatchState.OUTDATED: "yellow",
    PatchState.DRIFTED: "red",
    PatchState.CONFLICT: "red",
    PatchState.NO_VARIANT: "red",
    PatchState.NOT_INSTALLED: None,
    PatchState.NOT_APPLICABLE: None,
}
_NOTHING = {
    "revert": "nothing to do: no patch is applied here",
    "status": "no patch is declared or applied here",
    "check": "no patch is declared",
}
_MARKS = {
    CheckResult.PASSED: ("ok", "green"),
    CheckResult.FAILED: ("failed", "red"),
    CheckResult.SKIPPED: ("skipped", "yellow"),
}


def render(report: Report, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """The lines of a report for standard output; what went wrong is told by `render_error`.

    ``again`` are the options that the next command needs to mean the same environment and patches.
    """
    if report.site_root is not None:
        python = f" (Python {report.python})" if report.python is not None else ""
        yield style(f"environment {report.site_root}{python}", dim=True)
    yield from _render_rows(report, verbose=verbose)
    if report.diff:
        yield report.diff.rstrip("\n")
    elif report.dry_run and report.changes:
        yield "would write:"
        yield from (f"  {path}" for path in report.changes)
    summary = report.summary or _summarise(report)
    if summary:
        yield summary
    if report.dry_run and report.error is None and report.changes:
        yield "nothing was written: leave out --dry-run to do it"
    yield from (f"{style('hint', fg='cyan')}: {hint}" for hint in report.hints)
    following = _next_command(report, verbose=verbose)
    if following:
        yield f"next: {style(following + again, bold=True)}"


def render_notices(report: Report) -> Iterator[str]:
    """The warnings, for standard error."""
    for notice in report.notices:
        yield f"{style('warning', fg='yellow')}: {notice.message}"


def render_error(error: PatchkitError) -> Iterator[str]:
    """All problems, each with its hint, for standard error."""
    problems = error.all()
    for single in problems[:SHOWN_PROBLEMS]:
        yield f"{style('error', fg='red', bold=True)}: {single.message}"
    if len(problems) > SHOWN_PROBLEMS:
        yield f"and {len(problems) - SHOWN_PROBLEMS} more problems; --json has all of them"
    hints = dict.fromkeys(single.hint for single in problems[:SHOWN_PROBLEMS] if single.hint)
    for hint in hints:
        yield f"{style('hint', fg='cyan')}: {hint}"


# ---- rows -----------------------------------------------------------------------------------------------------


def _render_rows(report: Report, *, verbose: bool) -> Iterator[str]:
    cells = [_to_cells(report, row) for row in report.patches]
    for row, lines in zip(report.patches, lay_out(cells), strict=True):
        yield from lines
        yield from _render_details(report, row, verbose=verbose)


def _to_cells(report: Report, row: PatchReport) -> tuple[Cell, ...]:
    word = _word(report, row)
    painted = style(word, fg="red" if row.failed else _COLOURS[row.state])
    return Cell(str(row.id)), Cell(word, painted), Cell(_installed(row)), Cell(row.variant or "")


def _installed(row: PatchReport) -> str:
    return f"{row.distribution} {row.installed}" if row.installed else row.distribution


def _word(report: Report, row: PatchReport) -> str:
    if row.action is not Action.NONE and report.error is None:
        if report.dry_run:
            return f"would be {row.action.value}"
        if report.command in ("apply", "revert"):
            return str(row.action.value)
    if row.state is PatchState.APPLIED and report.command in ("apply", "check"):
        return "already applied"
    if row.state is PatchState.APPLIED and report.command == "verify":
        return "failed" if row.failed else "verified"
    return str(row.state.value)


def _render_details(report: Report, row: PatchReport, *, verbose: bool) -> Iterator[str]:
    if row.message and not (report.error is not None and row.failed):
        yield from (piece for line in row.message.splitlines() for piece in wrap(line))
    for check in row.checks:
        if verbose or check.result is not CheckResult.PASSED:
            word, colour = _MARKS[check.result]
            yield f"    {check.kind} check {check.name}: {style(word, fg=colour)}" + _because(check.message)
    told = row.message + (report.error.message if report.error is not None else "")
    for file in row.files if verbose or row.failed else ():
        yield from _render_file(file if file.message not in told else replace(file, message=""), verbose=verbose)


def _because(message: str) -> str:
    return f" ({message.splitlines()[0]})" if message else ""


def _render_file(file: FileReport, *, verbose: bool) -> Iterator[str]:
    state = f" ({file.state.value})" if file.state is not None and file.state is not FileState.PRISTINE else ""
    problem = f": {file.message}" if file.message else ""
    yield from wrap(f"{file.path}{state}{problem}")
    for hunk in file.hunks:
        where = f"line {hunk.line}" + (f", offset {hunk.offset:+d}" if hunk.offset else "")
        because = f": {hunk.reason}" if hunk.reason else ""
        yield from wrap(f"hunk {hunk.number} ({where}) {hunk.result.value}{because}", f"{MARGIN}  ")
        if hunk.result is HunkResult.CONFLICT and (verbose or len(hunk.expected) <= SHOWN_LINES):
            yield from _indent((_beside("expected", line) for line in hunk.expected), 8)
            found = f"found near line {hunk.nearest}" if hunk.nearest else "found"
            yield from _indent((_beside(found, line) for line in hunk.found), 8)


def _beside(word: str, line: str) -> str:
    """A line of a file behind ``word``; of an empty one nothing, and of others the blanks at their ends too."""
    return f"{word} | {_clip(line)}" if line else f"{word} |"


def _clip(line: str) -> str:
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}... ({len(line)} characters)"


def _indent(lines: Iterable[str], width: int = 4) -> Iterator[str]:
    return (" " * width + line for line in lines)


# ---- the last lines -------------------------------------------------------------------------------------------


def _summarise(report: Report) -> str:
    if not report.patches:
        untold = report.error is None and (report.command == "status" or not report.notices)
        return _NOTHING.get(report.command, "") if untold else ""
    if report.command in ("check", "status") and all(row.state is PatchState.NOT_INSTALLED for row in report.patches):
        return "none of the distributions is installed here: is this the environment you mean?"
    counts = Counter(_word(report, row) for row in report.patches)
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    checks = Counter(check.result for row in report.patches for check in row.checks)
    if checks:
        words += "; checks: " + ", ".join(f"{count} {result.value}" for result, count in checks.items())
    idle = report.command in ("apply", "revert") and all(row.action is Action.NONE for row in report.patches)
    if not idle or report.error is not None or report.dry_run:
        return words
    return f"brought the ledger up to date: {words}" if report.wrote else f"nothing to do: {words}"


def _next_command(report: Report, *, verbose: bool) -> str:
    if report.error is not None or report.dry_run:
        return ""
    if report.command == "apply" and any(row.action is not Action.NONE for row in report.patches):
        return "patchkit verify"
    waiting = [row.next for row in report.patches if row.next]
    if report.command == "verify" and report.exit_code is ExitCode.NO:
        return _join_commands(waiting, report.operands) or "patchkit status"
    if report.command not in ("check", "status"):
        return ""
    failed = [row.next for row in report.patches if row.failed and row.next]
    if failed or (report.exit_code is ExitCode.NO and report.command == "check"):
        return _join_failed(failed, verbose=verbose)
    return _join_commands(waiting, report.operands)


def _join_failed(commands: Sequence[str], *, verbose: bool) -> str:
    """The first of the commands for rows that failed; one for a whole set where more of it go to the same version.

    Those that show more have shown it already where ``verbose`` is given.
    """
    left = [command for command in commands if not (verbose and command.endswith(" --verbose"))]
    if not left or not left[0].startswith("patchkit rebase "):
        return left[0] if left else ""
    _, _, operand, to = left[0].split(maxsplit=3)
    name = operand.partition("/")[0]
    alike = [command for command in left if command.startswith(f"patchkit rebase {name}/") and command.endswith(to)]
    return left[0] if len(alike) == 1 else f"patchkit rebase {name} {to}"


def _join_commands(commands: Sequence[str], operands: Sequence[str]) -> str:
    """One command for all rows: for what was asked about, or the first kind of step that is due."""
    if len(commands) < 2:
        return "".join(commands)
    verb = commands[0].split()[1]
    if verb == "drift":
        return commands[0]
    if verb == "apply":
        return " ".join(["patchkit apply", *operands])
    return " ".join([f"patchkit {verb}", *(command.split()[2] for command in commands if command.split()[1] == verb)])


# ---- the patch sets at hand -----------------------------------------------------------------------------------


def render_catalog(catalog: Catalog) -> Iterator[str]:
    """A block a patch set: what it is for, its patches with their ranges."""
    for patch_set in catalog.sets:
        yield f"{style(patch_set.name, bold=True)}  ({patch_set.distribution})  {patch_set.summary}".rstrip()
        width = max(len(patch.id.patch) for patch in patch_set.patches)
        for patch in patch_set.patches:
            yield f"  {patch.id.patch:<{width}}  {_traits(patch)}{patch.summary}".rstrip()
            yield from (f"  {'':<{width}}  {variant.versions}  {variant.file}" for variant in patch.variants)
            yield from (f"  {'':<{width}}  {skip.versions}  not needed: {skip.why}" for skip in patch.not_needed)


def _traits(patch: Patch) -> str:
    words = [] if patch.default else ["optional"]
    words += [f"group {patch.group}"] if patch.group else []
    return f"[{', '.join(words)}] " if words else ""


def render_patch(patch_set: PatchSet, patch: Patch, diffs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """One patch whole: purpose, provenance (DEP-3), ranges, checks, and its diffs as (file, text)."""
    yield f"{style(str(patch.id), bold=True)}  ({patch_set.distribution})"
    source = patch.provenance
    fields = [
        ("summary", patch.summary),
        ("default", "yes" if patch.default else "no"),
        ("group", patch.group),
        ("after", ", ".join(map(str, patch.after))),
        ("constraints", ", ".join(map(str, patch.constraints))),
        ("markers", " and ".join(patch.markers)),
        ("shadowed by", ", ".join(patch.shadowed_by)),
        ("origin", source.origin),
        ("bug", source.bug),
        ("forwarded", source.forwarded),
        ("applied upstream", source.applied_upstream),
        ("last update", source.last_update),
    ]
    yield from (f"  {name + ':':<18}{value}" for name, value in fields if value)
    yield from (f"  {'variant:':<18}{variant.versions}  {variant.file}" for variant in patch.variants)
    yield from (f"  {'not needed:':<18}{skip.versions}  {skip.why}" for skip in patch.not_needed)
    for check in patch.checks:
        kind = "python" if isinstance(check, PythonCheck) else "symbol"
        versions = f" for {check.versions}" if check.versions else ""
        yield f"  {kind + ' check:':<18}{check.name}{versions}"
    for name, text in diffs:
        yield ""
        yield style(name, bold=True)
        yield text.rstrip("\n")
