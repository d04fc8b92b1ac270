"""The commands that every day needs: list, show, check, apply, revert, verify, status, recover."""

from __future__ import annotations

from typing import Any

import click

from patchkit import service, text
from patchkit.console import Progress, print_json, print_lines, tell
from patchkit.errors import UsageError
from patchkit.options import APPLY, CHANGE, COMMON, LOCK_TIMEOUT, split, to_how, with_options
from patchkit.report import to_listing, to_showing


@click.command("list")
@with_options(COMMON)
def list_(**keys: Any) -> int:
    """List the patch sets at hand, their patches and ranges."""
    options, output = split(keys)
    catalog = service.list_patches(options)
    if output.json:
        return print_json(to_listing(catalog))
    return print_lines(text.render_catalog(catalog), output)


@click.command()
@click.argument("patch", metavar="SET/PATCH")
@with_options(COMMON)
def show(patch: str, **keys: Any) -> int:
    """Show one patch with its diffs, origin and checks."""
    options, output = split(keys)
    catalog = service.list_patches(options)
    found, patch_set, diffs = service.show_patch(catalog, patch)
    if output.json:
        return print_json(to_showing(found, diffs))
    return print_lines(text.render_patch(patch_set, found, diffs), output)


@click.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@with_options(COMMON)
def check(operands: tuple[str, ...], **keys: Any) -> int:
    """Would each patch apply to what is installed? Writes nothing."""
    options, output = split(keys)
    with Progress(output):
        report = service.check(options, operands)
    return tell(report, output)


@click.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@with_options(APPLY)
@with_options(CHANGE)
@with_options(COMMON)
def apply(operands: tuple[str, ...], **keys: Any) -> int:
    """Apply what is declared, or X on top of what is applied; all of it or nothing."""
    options, output = split(keys)
    how = to_how(keys)
    if how.exact and operands:
        raise UsageError("--exact speaks of the declared list and takes no X", hint="leave out X, or --exact")
    with Progress(output) as progress:
        report = service.apply(options, operands, how, progress.advance)
    return tell(report, output)


@click.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Revert every patch.")
@with_options(CHANGE)
@with_options(COMMON)
def revert(operands: tuple[str, ...], everything: bool, **keys: Any) -> int:
    """Take X out again, or --all: files go back to the shipped bytes, with what stays applied."""
    options, output = split(keys)
    if everything and operands:
        raise UsageError("X and --all contradict each other", hint="give one of them")
    if not everything and not operands:
        raise UsageError("name what to revert: X, or --all", hint="`patchkit status` shows what is applied")
    with Progress(output) as progress:
        report = service.revert(options, operands, to_how(keys), progress.advance)
    return tell(report, output)


@click.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@click.option("--no-checks", is_flag=True, help="Run no checks.")
@with_options(COMMON)
def verify(operands: tuple[str, ...], no_checks: bool, **keys: Any) -> int:
    """Are the bytes what the ledger says, do they compile, do the checks pass?"""
    options, output = split(keys)
    with Progress(output) as progress:
        report = service.verify(options, operands, checks=not no_checks, progress=progress.advance)
    return tell(report, output)


@click.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 unless all is as wanted.")
@with_options(COMMON)
def status(exit_code: bool, **keys: Any) -> int:
    """One table: each patch, its variant, its state."""
    options, output = split(keys)
    with Progress(output):
        report = service.status(options, exit_code=exit_code)
    return tell(report, output)


@click.command()
@LOCK_TIMEOUT
@with_options(COMMON)
def recover(lock_timeout: float, **keys: Any) -> int:
    """Undo an interrupted transaction, or finish its clean-up."""
    options, output = split(keys)
    return tell(service.recover(options, lock_timeout=lock_timeout), output)


COMMANDS = {command.name or "": command for command in (list_, show, check, apply, revert, verify, status, recover)}
