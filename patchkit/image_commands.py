"""The commands of an image build: post-install, snippet, sbom."""

from __future__ import annotations

from typing import Any

import click

from patchkit.bill import BillFormat, SpecVersion
from patchkit.build_log import render_build
from patchkit.change import ApplyOptions
from patchkit.console import (
    Progress,
    mark_changed,
    print_document,
    print_json,
    print_lines,
    tell,
    tell_json,
    tell_problems,
    tell_with,
)
from patchkit.errors import UsageError
from patchkit.image_build import BuildOptions, post_install
from patchkit.materials import BillOptions, make_bill
from patchkit.options import COMMON, LOCK_TIMEOUT, Output, split, to_file, with_options
from patchkit.snippets import SnippetKind, make_snippet, to_snippet_document
from patchkit.tally import BuildReport, to_build_document


@click.command("post-install")
@click.option("--require", "required", metavar="SET", multiple=True, help="Fail unless SET is applied; repeatable.")
@click.option("--report", "report_file", metavar="FILE", help="Write the JSON document there, also on failure.")
@click.option("--strict", is_flag=True, help="Missing distributions and wholly skipped checks are failures.")
@click.option("--no-checks", is_flag=True, help="Run no checks.")
@LOCK_TIMEOUT
@with_options(COMMON)
def post_install_(
    required: tuple[str, ...],
    report_file: str | None,
    strict: bool,
    no_checks: bool,
    lock_timeout: float,
    **keys: Any,
) -> int:
    """Behind pip or uv in an image build: apply exactly what is declared, verify, and log it."""
    options, output = split(keys)
    if report_file == "-":
        raise UsageError("--report - would be a file of that name", hint="--json prints the document")
    how = ApplyOptions(strict=strict, checks=not no_checks, lock_timeout=lock_timeout)
    with Progress(output) as progress:
        built = post_install(options, BuildOptions(required, report_file, how, output.again), progress.advance)
    mark_changed(report_file is not None)
    return _log(built, output)


def _log(built: BuildReport, output: Output) -> int:
    report = built.report
    if output.json:
        return tell_json(to_build_document(built, again=output.again), report)
    return tell_with(render_build(built, verbose=output.verbose, again=output.again), report, output)


@click.command()
@click.argument("kind", type=click.Choice([kind.value for kind in SnippetKind]))
@with_options(COMMON)
def snippet(kind: str, **keys: Any) -> int:
    """Print lines to paste into a Containerfile, filled in for the patch sets at hand."""
    options, output = split(keys)
    made = make_snippet(options, SnippetKind(kind))
    if output.json:
        return print_json(to_snippet_document(made))
    return print_lines(made.text.splitlines(), output)


@click.command()
@click.option("--output", "output_file", metavar="FILE", help="Write the bill there; - is standard output.")
@click.option("--merge", metavar="FILE", help="Put the patches into this bill, which another tool made (JSON).")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in BillFormat]),
    default=BillFormat.JSON.value,
    show_default=True,
    help="Its form.",
)
@click.option(
    "--spec-version",
    type=click.Choice([version.value for version in SpecVersion]),
    help="Its version of CycloneDX; 1.6, or with --merge that of FILE.",
)
@click.option("--skip-drifted", is_flag=True, help="Leave out patches that are not in place any more.")
@with_options(COMMON)
def sbom(
    output_file: str | None, merge: str | None, form: str, spec_version: str | None, skip_drifted: bool, **keys: Any
) -> int:
    """A bill of materials (CycloneDX) of the patched distributions, with their patches."""
    options, output = split(keys)
    output_file = to_file(output_file)
    if output.json and output_file is None:
        words = "the document of --json and the bill cannot both be on standard output"
        raise UsageError(words, hint="give --output FILE for the bill; or leave out --json, for the bill is JSON too")
    version = None if spec_version is None else SpecVersion(spec_version)
    with Progress(output) as progress:
        wish = BillOptions(BillFormat(form), version, merge, output_file, skip_drifted)
        bill = make_bill(options, wish, progress.advance)
    if output_file is not None:
        mark_changed(True)
        return tell(bill.report, output)
    print_document(bill.data)
    return tell_problems(bill.report, output)


COMMANDS = {command.name or "": command for command in (post_install_, snippet, sbom)}
