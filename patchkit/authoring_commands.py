"""The commands that make and keep patches: edit, commit, capture, import, lint."""

from __future__ import annotations

import sys
from typing import Any

import click

from patchkit import text
from patchkit.authored import DraftReport, WorkReport, to_draft_document, to_lint_document, to_work_document
from patchkit.authoring import Naming, commit
from patchkit.authoring_text import render_draft, render_lint, render_work
from patchkit.capture import CaptureOptions, capture
from patchkit.console import Progress, echo, mark_changed, print_json, print_lines
from patchkit.copies import EditOptions, edit
from patchkit.edits import Chosen
from patchkit.errors import ExitCode, UsageError
from patchkit.importation import LARGEST_BYTES, import_diff, read_submission, take_submission
from patchkit.linting import lint
from patchkit.lints import Lint
from patchkit.options import COMMON, FIND_LINKS, LOCK_TIMEOUT, WHEEL, Output, split, with_options
from patchkit.origins import Source
from patchkit.patchset import Provenance
from patchkit.report import Report
from patchkit.upstream import Choices

SOURCE = (
    WHEEL,
    FIND_LINKS,
)

NAMING = (
    click.option("--set", "set_name", metavar="SET", help="The patch set that it goes into."),
    click.option("--patch", "patch_name", metavar="PATCH", help="The name of the patch."),
    click.option("--summary", metavar="TEXT", default="", help="One line: what it is for."),
    click.option("--origin", metavar="TEXT", default="", help="Where it comes from (DEP-3)."),
    click.option("--bug", metavar="URL", default="", help="The report that it is about (DEP-3)."),
    click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing."),
)

REPLACE = click.option("--replace", is_flag=True, help="Let the patch's other diff for the very version go.")

EXCLUDE = click.option(
    "--exclude", metavar="GLOB", multiple=True, help="Files that are no part of the patch; repeatable."
)


@click.command("edit")
@click.argument("distribution", metavar="DIST")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--into", metavar="DIR", default="", help="The work folder; it must not exist, or be empty.")
@click.option("--on-top", is_flag=True, help="Copy files with the applied patches in them.")
@with_options(SOURCE)
@with_options(COMMON)
def edit_command(distribution: str, files: tuple[str, ...], into: str, on_top: bool, **keys: Any) -> int:
    """Copy installed files, as shipped, into a work folder to be edited there.

    FILE is a path as in RECORD, a folder, or a module by its dotted name; all text files where none is given.
    """
    options, output = split(keys)
    how = EditOptions(into, on_top, _to_source(keys))
    with Progress(output):
        work = edit(options, distribution, files, how)
    return _tell_work(work, output)


@click.command("commit")
@click.argument("folder", metavar="FOLDER")
@REPLACE
@with_options(NAMING)
@with_options(SOURCE[1:])
@with_options(COMMON)
def commit_command(folder: str, replace: bool, **keys: Any) -> int:
    """Make a patch of what was edited in a work folder: its diff, and its entry in the manifest."""
    options, output = split(keys)
    with Progress(output):
        made = commit(options, folder, _to_naming(keys, overwrites=replace), keys.pop("find_links"))
    return _tell_draft(made, output)


@click.command("capture")
@click.argument("distribution", metavar="DIST")
@EXCLUDE
@click.option(
    "--include",
    metavar="GLOB",
    multiple=True,
    help="New files in a folder that distributions share and that are part of it; repeatable.",
)
@LOCK_TIMEOUT
@with_options(NAMING)
@with_options(SOURCE)
@with_options(COMMON)
def capture_command(
    distribution: str, exclude: tuple[str, ...], include: tuple[str, ...], lock_timeout: float, **keys: Any
) -> int:
    """Make a patch of what was edited in place, and take the edit under management."""
    options, output = split(keys)
    how = CaptureOptions(_to_source(keys), Chosen(exclude, include), lock_timeout)
    with Progress(output) as progress:
        made = capture(options, distribution, _to_naming(keys), how, progress.advance)
    return _tell_draft(made, output)


@click.command("import")
@click.argument("diff", metavar="DIFF")
@click.option("--distribution", metavar="DIST", required=True, help="The installed distribution that it changes.")
@EXCLUDE
@click.option(
    "--moved",
    metavar="OLD=NEW",
    multiple=True,
    help="The file that the diff calls OLD is the installed file NEW; repeatable.",
)
@with_options(NAMING)
@with_options(COMMON)
def import_command(diff: str, distribution: str, exclude: tuple[str, ...], moved: tuple[str, ...], **keys: Any) -> int:
    """Make a patch of an upstream commit's DIFF (- is standard input), and try it on what is installed."""
    options, output = split(keys)
    if diff == "-":
        submission = take_submission(sys.stdin.buffer.read(LARGEST_BYTES + 1), "standard input")
    else:
        submission = read_submission(diff)
    with Progress(output):
        made = import_diff(options, submission, distribution, _to_naming(keys), _to_choices(exclude, moved))
    return _tell_draft(made, output)


@click.command("lint")
@click.argument("operands", metavar="[X]...", nargs=-1)
@click.option(
    "--ignore",
    metavar="CODE",
    multiple=True,
    type=click.Choice([each.value for each in Lint]),
    help="A kind of finding to pass over; repeatable.",
)
@with_options(COMMON)
def lint_command(operands: tuple[str, ...], ignore: tuple[str, ...], **keys: Any) -> int:
    """Look through manifests and diffs for what is wrong or doubtful, without any environment."""
    options, output = split(keys)
    report = lint(options, operands, [Lint(code) for code in ignore])
    if output.json:
        print_json(to_lint_document(report.findings, report.exit_code))
    elif not output.quiet or report.findings:
        print_lines(render_lint(report), output)
    return int(report.exit_code)


# ---- options as values, reports as output ---------------------------------------------------------------------


def _to_source(keys: dict[str, Any]) -> Source:
    return Source(keys.pop("wheel"), keys.pop("find_links"))


def _to_choices(exclude: tuple[str, ...], moved: tuple[str, ...]) -> Choices:
    pairs = [word.rpartition("=") for word in moved]
    wrong = [word for word, (old, _, new) in zip(moved, pairs, strict=True) if not (old and new)]
    if wrong:
        raise UsageError(f"--moved {wrong[0]!r} is not OLD=NEW", hint="write --moved pkg/old.py=pkg/new.py")
    return Choices(exclude, {old: new for old, _, new in pairs})


def _to_naming(keys: dict[str, Any], *, overwrites: bool = False) -> Naming:
    for key in ("summary", "origin", "bug"):
        if len(keys[key].splitlines()) > 1:
            raise UsageError(f"--{key} has a line break", hint="write it on one line")
    provenance = Provenance(origin=keys.pop("origin"), bug=keys.pop("bug"))
    return Naming(
        keys.pop("set_name"),
        keys.pop("patch_name"),
        keys.pop("summary"),
        provenance,
        keys.pop("dry_run"),
        overwrites,
    )


def _tell_work(work: WorkReport, output: Output) -> int:
    mark_changed(work.report.wrote)
    if output.json:
        print_json(to_work_document(work, again=output.again))
        return int(ExitCode.DONE)
    if not output.quiet:
        print_lines(render_work(work, verbose=output.verbose, again=output.again), output)
    return _tell_rest(work.report, output)


def _tell_draft(draft: DraftReport, output: Output) -> int:
    mark_changed(not draft.report.dry_run)
    if output.json:
        print_json(to_draft_document(draft, again=output.again))
        return int(draft.report.exit_code)
    if not output.quiet:
        print_lines(render_draft(draft, verbose=output.verbose, again=output.again), output)
    return _tell_rest(draft.report, output)


def _tell_rest(report: Report, output: Output) -> int:
    """Warnings, and what went wrong, on standard error."""
    for line in text.render_notices(report):
        echo(line, err=True, color=output.color)
    for line in text.render_error(report.error) if report.error is not None else ():
        echo(line, err=True, color=output.color)
    return int(report.exit_code)


_ALL = (edit_command, commit_command, capture_command, import_command, lint_command)
COMMANDS = {command.name or "": command for command in _ALL}
