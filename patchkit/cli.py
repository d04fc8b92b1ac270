"""The command line: options in, reports out. The only module that prints and that ends with an exit code."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn, TextIO

import click

from patchkit import __version__, service, text
from patchkit.errors import Aborted, Bug, ExitCode, PatchkitError, UnsupportedSystem, UsageError
from patchkit.options import APPLY, CHANGE, COLORS, COMMON, LOCK_TIMEOUT, Output, split, to_how, with_options
from patchkit.report import Report, to_document, to_listing, to_showing


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="patchkit")
def cli() -> None:
    """Keep installed Python distributions in a declared, checked, patched state.

    X is SET or SET/PATCH. Without X, commands speak of the declared list and of what is applied.
    """


@cli.command("list")
@with_options(COMMON)
def list_(**keys: Any) -> int:
    """List the patch sets at hand, their patches and ranges."""
    options, output = split(keys)
    catalog = service.list_patches(options)
    if output.json:
        return _print_json(to_listing(catalog))
    return _print(text.render_catalog(catalog), output)


@cli.command()
@click.argument("patch", metavar="SET/PATCH")
@with_options(COMMON)
def show(patch: str, **keys: Any) -> int:
    """Show one patch with its diffs, origin and checks."""
    options, output = split(keys)
    catalog = service.list_patches(options)
    found, patch_set, diffs = service.show_patch(catalog, patch)
    if output.json:
        return _print_json(to_showing(found, diffs))
    return _print(text.render_patch(patch_set, found, diffs), output)


@cli.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@with_options(COMMON)
def check(operands: tuple[str, ...], **keys: Any) -> int:
    """Would each patch apply to what is installed? Writes nothing."""
    options, output = split(keys)
    with _Progress(output):
        report = service.check(options, operands)
    return _tell(report, output)


@cli.command()
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
    with _Progress(output) as progress:
        report = service.apply(options, operands, how, progress.advance)
    return _tell(report, output)


@cli.command()
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
    with _Progress(output) as progress:
        report = service.revert(options, operands, to_how(keys), progress.advance)
    return _tell(report, output)


@cli.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@click.option("--no-checks", is_flag=True, help="Run no checks.")
@with_options(COMMON)
def verify(operands: tuple[str, ...], no_checks: bool, **keys: Any) -> int:
    """Are the bytes what the ledger says, do they compile, do the checks pass?"""
    options, output = split(keys)
    with _Progress(output) as progress:
        report = service.verify(options, operands, checks=not no_checks, progress=progress.advance)
    return _tell(report, output)


@cli.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 unless all is as wanted.")
@with_options(COMMON)
def status(exit_code: bool, **keys: Any) -> int:
    """One table: each patch, its variant, its state."""
    options, output = split(keys)
    with _Progress(output):
        report = service.status(options, exit_code=exit_code)
    return _tell(report, output)


@cli.command()
@LOCK_TIMEOUT
@with_options(COMMON)
def recover(lock_timeout: float, **keys: Any) -> int:
    """Undo an interrupted transaction, or finish its clean-up."""
    options, output = split(keys)
    return _tell(service.recover(options, lock_timeout=lock_timeout), output)


# ---- output ---------------------------------------------------------------------------------------------------


def _tell(report: Report, output: Output) -> int:
    if output.json:
        _print_json(to_document(report))
        return int(report.exit_code)
    if not output.quiet or report.exit_code is not ExitCode.DONE:
        _print(text.render(report, verbose=output.verbose, again=output.again), output)
    for line in text.render_notices(report):
        _echo(line, err=True, color=output.color)
    if report.error is not None:
        for line in text.render_error(report.error):
            _echo(line, err=True, color=output.color)
    return int(report.exit_code)


def _print(lines: Any, output: Output) -> int:
    for line in lines:
        _echo(line, color=output.color)
    return int(ExitCode.DONE)


# All control characters but tabs, line ends and our own colours: words of a patch set may not drive the terminal.
_CONTROL = re.compile(r"\x1b\[[0-9;]*m|\r(?!$)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", re.MULTILINE)


def _show_control(match: re.Match[str]) -> str:
    return match[0] if match[0].endswith("m") else f"\\x{ord(match[0]):02x}"


def _echo(line: str, *, err: bool = False, color: bool | None = None) -> None:
    """Print, as long as somebody reads: the exit code is that of the command, not of its output."""
    stream: TextIO | None = sys.stderr if err else sys.stdout
    if stream is None or stream.closed:
        return
    try:
        click.echo(_CONTROL.sub(_show_control, line), err=err, color=color)
    except OSError as error:
        with suppress(OSError):
            stream.close()
        if not err and not isinstance(error, BrokenPipeError):
            _echo(f"the output could not be written: {error.strerror}", err=True)


def _print_json(document: Any) -> int:
    _echo(json.dumps(document, indent=2, ensure_ascii=True))
    return int(ExitCode.DONE)


class _Progress:
    """A progress bar on standard error once a run takes more than a second; none in a log."""

    def __init__(self, output: Output) -> None:
        self.shown = not (output.json or output.quiet) and sys.stderr is not None and sys.stderr.isatty()
        self.late = False
        self.state = ("reading", 0, 1)
        self.bar: Any = None

    def __enter__(self) -> _Progress:
        if self.shown:
            import threading

            self.turn = threading.Lock()
            self.timer = threading.Timer(1, self._begin)
            self.timer.daemon = True
            self.timer.start()
        return self

    def advance(self, doing: str, done: int, total: int) -> None:
        if self.shown:
            with self.turn:
                self.state = (doing, done, total)
                self._draw()

    def _begin(self) -> None:
        with self.turn:
            self.late = True
            self._draw()

    def _draw(self) -> None:
        if not self.late:
            return
        doing, done, total = self.state
        if self.bar is not None and self.bar.label != doing:
            self.bar.__exit__(None, None, None)
            self.bar = None
        if self.bar is None:
            self.bar = click.progressbar(length=total, label=doing, file=sys.stderr)
            self.bar.__enter__()
        self.bar.update(done - self.bar.pos)

    def __exit__(self, *exception: object) -> None:
        if self.shown:
            self.timer.cancel()
            with self.turn:
                self.late = False
                if self.bar is not None:
                    self.bar.__exit__(None, None, None)


# ---- endings --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wish:
    """How the user wants to be spoken to, read from the raw arguments: an error may come before they are parsed."""

    command: str | None
    json: bool
    verbose: bool
    color: bool | None


def _read_wish(arguments: Sequence[str], environ: Mapping[str, str]) -> _Wish:
    def is_wished(names: Sequence[str], variable: str) -> bool:
        said = environ.get(variable, "").strip().lower()
        return any(name in arguments for name in names) or said in ("1", "true", "t", "yes", "y", "on")

    colors = [word.partition("=")[2] for word in arguments if word.startswith("--color=")]
    colors += [value for word, value in pairwise(arguments) if word == "--color"]
    return _Wish(
        command=next((word for word in arguments if word in cli.commands), None),
        json=is_wished(["--json"], "PATCHKIT_JSON"),
        verbose=is_wished(["--verbose", "-v"], "PATCHKIT_VERBOSE"),
        color=COLORS.get((colors or [environ.get("PATCHKIT_COLOR", "")])[-1]),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run patchkit on ``argv`` and return the exit code: every ending is one of the closed set, and is told."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    wish = _read_wish(arguments, os.environ)
    try:
        with cli.make_context("patchkit", arguments) as context:
            answer = cli.invoke(context)
        return answer if isinstance(answer, int) else int(ExitCode.DONE)
    except PatchkitError as error:
        return _fail(error, wish)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except (KeyboardInterrupt, EOFError, click.Abort):
        return _fail(Aborted("interrupted by Ctrl-C: nothing was changed"), wish)
    except click.ClickException as error:
        return _fail(UsageError(error.format_message(), hint=_help_for(error, wish.command)), wish)
    except UnicodeEncodeError as error:
        words = f"{error.object!a} cannot be said in the locale's encoding ({error.encoding})"
        return _fail(UnsupportedSystem(words, hint="set PYTHONUTF8=1, or a UTF-8 locale"), wish)
    except Exception as error:
        if wish.verbose:
            traceback.print_exc()
        return _fail(Bug(f"{type(error).__name__}: {error}"), wish)


def _help_for(error: click.ClickException, command: str | None) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else " ".join(filter(None, ("patchkit", command)))
    return f"`{path} --help` says what it takes"


def _fail(error: PatchkitError, wish: _Wish) -> int:
    if wish.json:
        _print_json(to_document(Report(wish.command or "", error=error)))
    else:
        for line in text.render_error(error):
            _echo(line, err=True, color=wish.color)
    return int(error.exit_code)


def run() -> NoReturn:
    """The console script."""
    sys.exit(main())
