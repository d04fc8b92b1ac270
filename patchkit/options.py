"""The options of the command line, declared once, and what they come to as values."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from patchkit.change import ApplyOptions
from patchkit.errors import UsageError
from patchkit.formats import Delivery, Format
from patchkit.model import ForeignPolicy
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


COLORS = {"auto": None, "always": True, "never": False}

COMMON = (
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
        type=click.Choice(tuple(COLORS)),
        default="auto",
        envvar="PATCHKIT_COLOR",
        help="Colours in the output.",
    ),
)


def _require_finite(context: click.Context, option: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of seconds")
    return value


LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    callback=_require_finite,
    default=10.0,
    show_default=True,
    help="How long to wait for another patchkit.",
)

WHEEL = click.option(
    "--wheel",
    metavar="FILE",
    multiple=True,
    type=click.Path(readable=False),
    help="A wheel with the shipped bytes.",
)

FIND_LINKS = click.option(
    "--find-links",
    metavar="DIR",
    multiple=True,
    type=click.Path(readable=False),
    help="A folder of wheels, instead of the index.",
)

CHANGE = (
    click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing."),
    click.option("--diff", is_flag=True, help="Show the change as a diff."),
    click.option("--discard-edits", is_flag=True, help="Replace foreign files; their bytes are kept."),
    WHEEL,
    LOCK_TIMEOUT,
)

APPLY = (
    click.option("--accept-modified", is_flag=True, help="Take foreign files as they are as the base."),
    click.option("--exact", is_flag=True, help="Revert what is applied and not declared."),
    click.option("--strict", is_flag=True, help="Missing distributions and wholly skipped checks are failures."),
    click.option("--skip-unmatched", is_flag=True, help="Go on without patches that have no variant here."),
    click.option("--allow-empty", is_flag=True, help="Nothing to apply is no failure."),
    click.option("--no-checks", is_flag=True, help="Run no checks."),
)

REPORT = (
    click.option(
        "--format",
        type=click.Choice([each.value for each in Format]),
        help="How the report is written; json is --json.",
    ),
    click.option(
        "--output",
        metavar="FILE",
        type=click.Path(readable=False),
        help="Write the report to a file; - is standard output.",
    ),
)


def with_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Add ``options`` to a command, in the order in which its help lists them."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def split(keys: dict[str, Any]) -> tuple[Options, Output]:
    """Take the options that go with every command out of ``keys``."""
    options = Options(
        python=keys.pop("python"),
        site_packages=keys.pop("site_packages"),
        patches=keys.pop("patches"),
        bundled=keys.pop("bundled"),
    )
    output = Output(
        keys.pop("as_json"), keys.pop("quiet"), keys.pop("verbose"), COLORS[keys.pop("color")], _say_again(options)
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


def to_delivery(keys: dict[str, Any]) -> Delivery:
    """Where and how a report is wanted. ``keys`` keeps ``as_json``, now true to the format. Raises `UsageError`.

    A format that was typed wins over the variable of ``--json``, and contradicts the option.
    """
    typed, json = keys.pop("format"), keys["as_json"]
    source = click.get_current_context().get_parameter_source("as_json")
    if json and typed not in (None, "json") and source is click.core.ParameterSource.COMMANDLINE:
        raise UsageError(f"--json and --format {typed} contradict each other", hint="give one of them")
    format = Format(typed) if typed is not None else Format.JSON if json else Format.TEXT
    keys["as_json"] = format is Format.JSON
    return Delivery(format, to_file(keys.pop("output")))


def to_file(name: str | None) -> str | None:
    """The file that ``--output`` names; None is standard output, which ``-`` names."""
    return None if name == "-" else name


def to_how(keys: dict[str, Any]) -> ApplyOptions:
    """How to apply or revert, from what is left in ``keys``. Raises `UsageError` for options that contradict."""
    accept, discard = keys.pop("accept_modified", False), keys.pop("discard_edits")
    if accept and discard:
        raise UsageError("--accept-modified and --discard-edits contradict each other", hint="give one of them")
    foreign = ForeignPolicy.ACCEPT if accept else ForeignPolicy.DISCARD if discard else ForeignPolicy.REFUSE
    return ApplyOptions(foreign=foreign, checks=not keys.pop("no_checks", False), wheels=keys.pop("wheel"), **keys)
