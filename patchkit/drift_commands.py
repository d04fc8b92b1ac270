"""The commands that tell what happened to patches: drift."""

from __future__ import annotations

from typing import Any

import click

from patchkit.comparison import compare
from patchkit.console import Progress, print_json, tell_with
from patchkit.drift_text import render_drift
from patchkit.options import COMMON, split, with_options
from patchkit.report import to_document


@click.command()
@with_options(COMMON)
def drift(**keys: Any) -> int:
    """What changed since apply, why, and what to do."""
    options, output = split(keys)
    with Progress(output):
        report = compare(options, again=output.again)
    if output.json:
        print_json(to_document(report))
        return int(report.exit_code)
    return tell_with(render_drift(report, verbose=output.verbose), report, output)


COMMANDS = {command.name or "": command for command in (drift,)}
