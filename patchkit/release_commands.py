"""The commands that look at releases which are not installed: rebase, coverage."""

from __future__ import annotations

import shlex
from typing import Any

import click

from patchkit import text
from patchkit.bench import RebaseOptions
from patchkit.console import Progress, echo, mark_changed, print_json, print_lines
from patchkit.coverage import cover
from patchkit.errors import ExitCode
from patchkit.fits import to_coverage
from patchkit.options import COMMON, FIND_LINKS, split, with_options
from patchkit.rebase import rebase
from patchkit.rebased import to_rebased
from patchkit.release_text import render_coverage, render_markdown, render_rebased
from patchkit.releases import ReleaseSource
from patchkit.report import Report

SOURCE = (
    FIND_LINKS,
    click.option(
        "--cache",
        metavar="DIR",
        default="",
        type=click.Path(readable=False),
        help="Where downloads are kept.",
    ),
)


@click.command("coverage")
@click.argument("operand", metavar="X")
@click.option("--versions", metavar="SPEC", default="", help="Only these releases, such as '>=0.6,<0.8'.")
@click.option("--format", "form", type=click.Choice(("text", "markdown")), default="text", help="How it is written.")
@with_options(SOURCE)
@with_options(COMMON)
def coverage_command(operand: str, versions: str, form: str, **keys: Any) -> int:
    """How X fares on every release of its distribution; exit 1 where a range claims one that it does not fit."""
    options, output = split(keys)
    source = _to_source(keys)
    again = output.again + _say_source(source)
    with Progress(output) as progress:
        coverage = cover(options, operand, source, versions=versions, progress=progress.advance)
    if output.json:
        print_json(to_coverage(coverage))
    elif form == "markdown":
        print_lines(render_markdown(coverage), output)
    elif not output.quiet or coverage.exit_code is not ExitCode.DONE:
        print_lines(render_coverage(coverage, verbose=output.verbose, again=again), output)
    warnings = text.render_notices(Report("coverage", notices=coverage.notices))
    for line in () if output.json else warnings:
        echo(line, err=True, color=output.color)
    return int(coverage.exit_code)


@click.command("rebase")
@click.argument("operand", metavar="X")
@click.option("--to", metavar="VERSION", required=True, help="The version to bring X to.")
@click.option("--from", "base", metavar="VERSION", default="", help="The release to take the change from.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing.")
@with_options(SOURCE)
@with_options(COMMON)
def rebase_command(operand: str, to: str, base: str, dry_run: bool, **keys: Any) -> int:
    """Bring X to a new version: its range is widened, or its change is merged into a new variant."""
    options, output = split(keys)
    how = RebaseOptions(base, dry_run, _to_source(keys))
    links = _say_source(how.source)
    with Progress(output) as progress:
        rebased = rebase(options, operand, to, how, progress.advance)
    mark_changed(not dry_run)
    if output.json:
        print_json(to_rebased(rebased, again=output.again))
    elif not output.quiet or rebased.exit_code is not ExitCode.DONE:
        print_lines(render_rebased(rebased, verbose=output.verbose, again=output.again, links=links), output)
    return int(rebased.exit_code)


def _say_source(source: ReleaseSource) -> str:
    """The options that say where the releases are, for the next command."""
    words = [word for folder in source.folders for word in ("--find-links", folder)]
    return f" {shlex.join(words)}" if words else ""


def _to_source(keys: dict[str, Any]) -> ReleaseSource:
    return ReleaseSource(keys.pop("find_links"), keys.pop("cache"))


COMMANDS = {command.name or "": command for command in (coverage_command, rebase_command)}
