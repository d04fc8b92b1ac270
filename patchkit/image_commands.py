"""The commands of an image build: sbom."""

from __future__ import annotations

from typing import Any

import click

from patchkit.bill import BillFormat, SpecVersion
from patchkit.console import Progress, print_document, tell, tell_problems
from patchkit.errors import UsageError
from patchkit.materials import BillOptions, make_bill
from patchkit.options import COMMON, split, with_options


@click.command()
@click.option("--output", "output_file", metavar="FILE", help="Write the bill there instead of printing it.")
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
    if output.json and output_file is None:
        words = "the document of --json and the bill cannot both be on standard output"
        raise UsageError(words, hint="give --output FILE for the bill; or leave out --json, for the bill is JSON too")
    version = None if spec_version is None else SpecVersion(spec_version)
    with Progress(output) as progress:
        wish = BillOptions(BillFormat(form), version, merge, output_file, skip_drifted)
        bill = make_bill(options, wish, progress.advance)
    if output_file is not None:
        return tell(bill.report, output)
    print_document(bill.data)
    return tell_problems(bill.report, output)


COMMANDS = {command.name or "": command for command in (sbom,)}
