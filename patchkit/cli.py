"""The command line: options in, reports out. The only module that prints and that ends with an exit code."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn, TextIO, TypeVar

import click

from patchkit import __version__, service, text
from patchkit.change import ApplyOptions
from patchkit.errors import Aborted, Bug, ExitCode, PatchkitError, UsageError
from patchkit.model import ForeignPolicy
from patchkit.report import Report, to_document, to_listing, to_showing
from patchkit.scene import Options

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Output:
    """How a command speaks."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: bool | None = None
    again: str = ""


_COLOR = {"auto": None, "always": True, "never": False}

_COMMON = (
    click.option("--python", metavar="PATH", envvar="PATCHKIT_PYTHON", help="The interpreter of the environment."),
    click.option(
        "--site-packages", metavar="DIR", envvar="PATCHKIT_SITE_PACKAGES", help="One site root, by its folder."
    ),
    click.option(
        "--patches",
        metavar="DIR",
        multiple=True,
        type=click.Path(readable=False),
        envvar="PATCHKIT_PATCHES",
        help="A patch folder; repeatable.",
    ),
    click.option("--bundled", is_flag=True, envvar="PATCHKIT_BUNDLED", help="The patch sets that come with patchkit."),
    click.option("--json", "as_json", is_flag=True, envvar="PATCHKIT_JSON", help="One JSON document."),
    click.option("--quiet", "-q", is_flag=True, envvar="PATCHKIT_QUIET", help="Say only what is wrong."),
    click.option(
        "--verbose", "-v", is_flag=True, envvar="PATCHKIT_VERBOSE", help="Files, hunks and passed checks too."
    ),
    click.option(
        "--color",
        type=click.Choice(tuple(_COLOR)),
        default="auto",
        envvar="PATCHKIT_COLOR",
        help="Colours in the output.",
    ),
)


def _require_finite(context: click.Context, option: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds")
    return value


_LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    callback=_require_finite,
    default=10.0,
    show_default=True,
    help="How long to wait for another patchkit.",
)

_CHANGE = (
    click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing."),
    click.option("--diff", is_flag=True, help="Show the change as a diff."),
    click.option("--accept-modified", is_flag=True, help="Take foreign files as they are as the base."),
    click.option("--discard-edits", is_flag=True, help="Replace foreign files; their bytes are kept."),
    click.option(
        "--wheel",
        metavar="FILE",
        multiple=True,
        type=click.Path(readable=False),
        help="A wheel with the shipped bytes.",
    ),
    _LOCK_TIMEOUT,
)

_APPLY = (
    click.option("--exact", is_flag=True, help="Revert what is applied and not declared."),
    click.option("--strict", is_flag=True, help="Missing distributions and wholly skipped checks are failures."),
    click.option("--skip-unmatched", is_flag=True, help="Go on without patches that have no variant here."),
    click.option("--allow-empty", is_flag=True, help="Nothing to apply is no failure."),
    click.option("--no-checks", is_flag=True, help="Run no checks."),
)


def _with(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Add ``options`` to a command, in the order in which its help lists them."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _split(keys: dict[str, Any]) -> tuple[Options, Output]:
    """Take the options that go with every command out of ``keys``."""
    options = Options(
        python=keys.pop("python"),
        site_packages=keys.pop("site_packages"),
        patches=keys.pop("patches"),
        bundled=keys.pop("bundled"),
    )
    output = Output(
        keys.pop("as_json"), keys.pop("quiet"), keys.pop("verbose"), _COLOR[keys.pop("color")], _say_again(options)
    )
    return options, output


def _say_again(options: Options) -> str:
    """The options that were typed to say which environment and patches are meant; variables go on by themselves."""
    context = click.get_current_context()
    typed = {
        key for key in context.params if context.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE
    }
    words: list[str] = []
    words += ["--python", options.python] if options.python is not None and "python" in typed else []
    words += (
        ["--site-packages", options.site_packages]
        if options.site_packages is not None and "site_packages" in typed
        else []
    )
    words += [word for folder in options.patches for word in ("--patches", folder)] if "patches" in typed else []
    words += ["--bundled"] if options.bundled and "bundled" in typed else []
    return "".join(f" {shlex.quote(word)}" for word in words)


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="patchkit")
def cli() -> None:
    """Keep installed Python distributions in a declared, checked, patched state.

    X is SET or SET/PATCH. Without X, commands speak of the declared list and of what is applied.
    """


@cli.command("list")
@_with(_COMMON)
def list_(**keys: Any) -> int:
    """List the patch sets at hand, their patches and ranges."""
    options, output = _split(keys)
    catalog = service.list_patches(options)
    if output.json:
        return _print_json(to_listing(catalog))
    return _print(text.render_catalog(catalog), output)


@cli.command()
@click.argument("patch", metavar="SET/PATCH")
@_with(_COMMON)
def show(patch: str, **keys: Any) -> int:
    """Show one patch with its diffs, origin and checks."""
    options, output = _split(keys)
    catalog = service.list_patches(options)
    found, patch_set, diffs = service.show_patch(catalog, patch)
    if output.json:
        return _print_json(to_showing(found, diffs))
    return _print(text.render_patch(patch_set, found, diffs), output)


@cli.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@_with(_COMMON)
def check(operands: tuple[str, ...], **keys: Any) -> int:
    """Would each patch apply to what is installed? Writes nothing."""
    options, output = _split(keys)
    return _tell(service.check(options, operands), output)


@cli.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@_with(_APPLY)
@_with(_CHANGE)
@_with(_COMMON)
def apply(operands: tuple[str, ...], **keys: Any) -> int:
    """Apply what is declared, or X on top of what is applied; all of it or nothing."""
    options, output = _split(keys)
    how = _to_how(keys)
    if how.exact and operands:
        raise UsageError("--exact speaks of the declared list and takes no X", hint="leave out X, or --exact")
    with _Progress(output) as progress:
        report = service.apply(options, operands, how, progress.advance)
    return _tell(report, output)


@cli.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Revert every patch.")
@_with(_CHANGE)
@_with(_COMMON)
def revert(operands: tuple[str, ...], everything: bool, **keys: Any) -> int:
    """Take X out again, or --all: files go back to the shipped bytes, with what stays applied."""
    options, output = _split(keys)
    if everything == bool(operands):
        raise UsageError("name what to revert: X, or --all", hint="`patchkit status` shows what is applied")
    with _Progress(output) as progress:
        report = service.revert(options, operands, _to_how(keys), progress.advance)
    return _tell(report, output)


def _to_how(keys: dict[str, Any]) -> ApplyOptions:
    accept, discard = keys.pop("accept_modified"), keys.pop("discard_edits")
    if accept and discard:
        raise UsageError("--accept-modified and --discard-edits contradict each other", hint="give one of them")
    foreign = ForeignPolicy.ACCEPT if accept else ForeignPolicy.DISCARD if discard else ForeignPolicy.REFUSE
    return ApplyOptions(foreign=foreign, checks=not keys.pop("no_checks", False), wheels=keys.pop("wheel"), **keys)


@cli.command()
@click.argument("operands", metavar="[X]...", nargs=-1)
@click.option("--no-checks", is_flag=True, help="Run no checks.")
@_with(_COMMON)
def verify(operands: tuple[str, ...], no_checks: bool, **keys: Any) -> int:
    """Are the bytes what the ledger says, do they compile, do the checks pass?"""
    options, output = _split(keys)
    return _tell(service.verify(options, operands, checks=not no_checks), output)


@cli.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 unless all is as wanted.")
@_with(_COMMON)
def status(exit_code: bool, **keys: Any) -> int:
    """One table: each patch, its variant, its state."""
    options, output = _split(keys)
    return _tell(service.status(options, exit_code=exit_code), output)


@cli.command()
@_LOCK_TIMEOUT
@_with(_COMMON)
def recover(lock_timeout: float, **keys: Any) -> int:
    """Undo an interrupted transaction, or finish its clean-up."""
    options, output = _split(keys)
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
        self.started = time.monotonic()
        self.bar: Any = None

    def __enter__(self) -> _Progress:
        return self

    def advance(self, done: int, total: int) -> None:
        if not self.shown or (self.bar is None and time.monotonic() - self.started < 1):
            return
        if self.bar is None:
            self.bar = click.progressbar(length=total, label="writing", file=sys.stderr)
            self.bar.__enter__()
        self.bar.update(done - self.bar.pos)

    def __exit__(self, *exception: object) -> None:
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
        color=_COLOR.get((colors or [environ.get("PATCHKIT_COLOR", "")])[-1]),
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
