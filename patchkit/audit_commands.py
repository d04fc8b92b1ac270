"""The command that looks at callers: audit."""

from __future__ import annotations

from typing import Any

import click

from patchkit.audit import audit
from patchkit.audit_json import to_audit_document
from patchkit.audit_text import render_audit, render_wrong
from patchkit.console import Progress, echo, print_json, print_lines
from patchkit.options import COMMON, split, with_options
from patchkit.report import Report
from patchkit.text import render_notices


@click.command("audit")
@click.argument("caller", metavar="CALLER")
@click.option("--of", metavar="DISTRIBUTION", multiple=True, help="The distribution to look into; repeatable.")
@click.option("--hazards", metavar="FILE", type=click.Path(readable=False), help="Another table of hazards (TOML).")
@with_options(COMMON)
def audit_(caller: str, of: tuple[str, ...], hazards: str | None, **keys: Any) -> int:
    """Does CALLER reach what torch.compile cannot trace, and what covers it?

    CALLER is a module of the environment, a file or a folder. Nothing of it is imported or run.
    """
    options, output = split(keys)
    with Progress(output) as progress:
        found = audit(options, caller, of=of, hazards=hazards, progress=progress.advance)
    if output.json:
        print_json(to_audit_document(found))
        return int(found.exit_code)
    if not output.quiet:
        print_lines(render_audit(found, verbose=output.verbose, again=output.again), output)
    elif not found.complete:
        print_lines(render_wrong(found, again=output.again), output)
    for line in render_notices(Report("audit", notices=found.notices)):
        echo(line, err=True, color=output.color)
    return int(found.exit_code)


COMMANDS = {"audit": audit_}
