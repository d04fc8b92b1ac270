"""The commands that tell what happened to patches: drift, run, export."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from patchkit.aftermath import Aftermath, follow, reapply
from patchkit.comparison import compare
from patchkit.console import Progress, echo, mark_changed, tell, tell_json, tell_problems
from patchkit.delivery import catch, deliver
from patchkit.drift_text import summarise
from patchkit.formats import Delivery, Format
from patchkit.golden import to_document as golden_to_document
from patchkit.golden import write_golden
from patchkit.inventory import compare_with, export
from patchkit.options import COMMON, REPORT, Output, split, to_delivery, to_file, with_options
from patchkit.outputs import write_output
from patchkit.report import to_document
from patchkit.scene import Options


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
    found = follow(options, command, again=output.again, output_to_error=output.json)
    mark_changed(True)
    if wants_reapply and found.everything and not found.code:
        return _reapply(options, found, output)
    return _tell_aftermath(found, output)


def _tell_aftermath(found: Aftermath, output: Output) -> int:
    """COMMAND's exit code comes first; what became of the patches is told all the same."""
    report = found.report
    if output.json:
        failure = {"ok": False, "exit_code": found.code} if found.code else {}
        told = tell_json({**to_document(report, again=output.again), **failure}, report)
    elif report.drift or output.verbose:
        told = deliver(report, Delivery(Format.TEXT), output)
    else:
        told = tell_problems(report, output)
    return found.code or told


def _reapply(options: Options, found: Aftermath, output: Output) -> int:
    """Mend all drift, also what was there before; in JSON the document of what came of it says all."""
    if not output.json and not output.quiet:
        echo(f"{summarise(replace(found.report, drift=found.everything))}; bringing it back", err=True)
    with Progress(output) as progress:
        mended = reapply(options, found, progress.advance)
    return tell(replace(mended, command="run") if output.json else mended, output)


@click.command("export")
@click.option(
    "--output",
    "target",
    metavar="FILE",
    type=click.Path(readable=False),
    help="Write to FILE; - is standard output.",
)
@with_options(COMMON)
def export_(target: str | None, **keys: Any) -> int:
    """Write what is applied, with digests, as one file that `drift --against` reads."""
    options, output = split(keys)
    golden, report = export(options)
    file = to_file(target)
    if file is not None:
        write_output(file, write_golden(golden))
        mark_changed(True)
    if output.json:
        return tell_json({**to_document(report), "export": golden_to_document(golden)}, report)
    if file is None:
        echo(write_golden(golden).decode().rstrip("\n"))
    elif not output.quiet:
        echo(f"wrote {file}: {', '.join(str(patch.id) for patch in golden.patches) or 'no patch'}")
    return tell_problems(report, output)


COMMANDS = {command.name or "": command for command in (drift, run, export_)}
