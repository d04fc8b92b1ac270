"""The commands that tell what happened to patches: drift, run, export."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from patchkit.aftermath import follow, reapply
from patchkit.comparison import compare
from patchkit.console import Progress, echo, print_json, tell
from patchkit.delivery import catch, deliver
from patchkit.drift_text import render_drift
from patchkit.errors import ExitCode
from patchkit.formats import Delivery, Format
from patchkit.golden import to_document as golden_to_document
from patchkit.golden import write_golden
from patchkit.inventory import compare_with, export
from patchkit.options import COMMON, REPORT, Output, split, to_delivery, with_options
from patchkit.outputs import write_output
from patchkit.report import Report, to_document


@click.command()
@click.option("--against", metavar="FILE", type=click.Path(readable=False), help="Compare with what `export` wrote.")
@with_options(REPORT)
@with_options(COMMON)
def drift(against: str | None, **keys: Any) -> int:
    """What changed since apply, why, and what to do."""
    delivery = to_delivery(keys)
    options, output = split(keys)
    with Progress(output):
        if against is not None:
            report = catch(lambda: compare_with(options, against, again=output.again))
        else:
            report = catch(lambda: compare(options, again=output.again))
    return deliver(report, delivery, output)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="[--] COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--reapply", "wants_reapply", is_flag=True, help="Bring back what drifted, and verify it.")
@with_options(COMMON)
def run(command: tuple[str, ...], wants_reapply: bool, **keys: Any) -> int:
    """Run COMMAND (an installer, say), then report the drift that it caused.

    COMMAND's own exit code counts where it failed; else 1 where patches drifted and were not brought back.
    """
    options, output = split(keys)
    code, report = follow(options, command, again=output.again, output_to_error=output.json)
    drifted = bool(report.drift)
    if drifted and wants_reapply:
        _mention_drift(report, output)
        with Progress(output) as progress:
            mended = reapply(options, report, progress.advance)
        told = int(tell(replace(mended, command="run") if output.json else mended, output))
    else:
        worth_telling = drifted or output.json or output.verbose
        delivery = Delivery(Format.JSON if output.json else Format.TEXT)
        told = deliver(report, delivery, output) if worth_telling else int(ExitCode.DONE)
    return code or told


def _mention_drift(report: Report, output: Output) -> None:
    """What is about to be mended; in JSON the document of what came of it says all."""
    if not output.json and not output.quiet:
        for line in render_drift(report):
            echo(line, err=True, color=output.color)


@click.command("export")
@click.option(
    "--output", "target", metavar="FILE", type=click.Path(readable=False), help="Write to FILE, not standard output."
)
@with_options(COMMON)
def export_(target: str | None, **keys: Any) -> int:
    """Write what is applied, with digests, as one file that `drift --against` reads."""
    options, output = split(keys)
    golden = export(options)
    if target is not None:
        write_output(target, write_golden(golden))
    if output.json:
        document = to_document(Report("export"))
        print_json({**document, "export": golden_to_document(golden)})
    elif target is None:
        echo(write_golden(golden).decode().rstrip("\n"))
    elif not output.quiet:
        echo(f"wrote {target}: {len(golden.patches)} patches in {len(golden.files)} files")
    return int(ExitCode.DONE)


COMMANDS = {command.name or "": command for command in (drift, run, export_)}
