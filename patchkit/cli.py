"""The command line: which command is meant, and how a run ends. Each room of commands is loaded when it is entered."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

import click

from patchkit import __version__, text
from patchkit.console import echo, note_loss, print_json, weigh
from patchkit.errors import Aborted, Bug, ExitCode, PatchkitError, UnsupportedSystem, UsageError
from patchkit.interruption import disregard, heed
from patchkit.options import COLORS
from patchkit.report import Report, to_document


def _enter_patch_commands() -> Mapping[str, click.Command]:
    from patchkit.patch_commands import COMMANDS

    return COMMANDS


def _enter_drift_commands() -> Mapping[str, click.Command]:
    from patchkit.drift_commands import COMMANDS

    return COMMANDS


def _enter_authoring_commands() -> Mapping[str, click.Command]:
    from patchkit.authoring_commands import COMMANDS

    return COMMANDS


def _enter_image_commands() -> Mapping[str, click.Command]:
    from patchkit.image_commands import COMMANDS

    return COMMANDS


def _enter_release_commands() -> Mapping[str, click.Command]:
    from patchkit.release_commands import COMMANDS

    return COMMANDS


def _enter_audit_commands() -> Mapping[str, click.Command]:
    from patchkit.audit_commands import COMMANDS

    return COMMANDS


# In the order in which help lists them.
ROOMS: tuple[tuple[Callable[[], Mapping[str, click.Command]], str], ...] = (
    (_enter_patch_commands, "list show check apply revert verify status recover"),
    (_enter_drift_commands, "drift run export"),
    (_enter_image_commands, "post-install snippet sbom"),
    (_enter_authoring_commands, "edit commit capture import lint"),
    (_enter_release_commands, "rebase coverage"),
    (_enter_audit_commands, "audit"),
)
NAMES = tuple(name for _, names in ROOMS for name in names.split())


def find_command(name: str) -> click.Command:
    """The command of that name, which is among `NAMES`."""
    return next(enter()[name] for enter, names in ROOMS if name in names.split())


class _Rooms(click.Group):
    """A group whose commands lie in modules that are imported only when one of their commands is meant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name) if cmd_name in NAMES else None


@click.group(
    cls=_Rooms,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="patchkit")
def cli() -> None:
    """Keep installed Python distributions in a declared, checked, patched state.

    X is SET or SET/PATCH. Without X, commands speak of the declared list and of what is applied.
    """


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

    def list_values(name: str) -> list[str]:
        joined = [word.partition("=")[2] for word in arguments if word.startswith(f"{name}=")]
        return joined + [value for word, value in pairwise(arguments) if word == name]

    colors, formats = list_values("--color"), list_values("--format")
    return _Wish(
        command=next((word for word in arguments if word in NAMES), None),
        json="json" in formats or is_wished(["--json"], "PATCHKIT_JSON"),
        verbose=is_wished(["--verbose", "-v"], "PATCHKIT_VERBOSE"),
        color=COLORS.get((colors or [environ.get("PATCHKIT_COLOR", "")])[-1]),
    )


# What a standard stream says that takes no more.
_NO_ROOM = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run patchkit on ``argv`` and return the exit code: every ending is one of the closed set, and is told."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    wish = _read_wish(arguments, os.environ)
    try:
        with cli.make_context("patchkit", arguments) as context:
            answer = cli.invoke(context)
            return weigh(answer if isinstance(answer, int) else int(ExitCode.DONE))
    except PatchkitError as error:
        return _fail(error, wish)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except (KeyboardInterrupt, EOFError, click.Abort) as error:
        return abort(arguments, error)
    except click.ClickException as error:
        return _fail(UsageError(error.format_message(), hint=_help_for(error, wish.command)), wish)
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_ROOM:
            return _surprise(error, wish)
        return int(ExitCode.ROLLED_BACK if note_loss(error) else ExitCode.DONE)  # click's own output: --help
    except UnicodeEncodeError as error:
        words = f"{error.object!a} cannot be said in the locale's encoding ({error.encoding})"
        return _fail(UnsupportedSystem(words, hint="set PYTHONUTF8=1, or a UTF-8 locale"), wish)
    except Exception as error:
        return _surprise(error, wish)


def _surprise(error: Exception, wish: _Wish) -> int:
    if wish.verbose:
        import traceback

        traceback.print_exc()
    return _fail(Bug(f"{type(error).__name__}: {error}"), wish)


def _help_for(error: click.ClickException, command: str | None) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else " ".join(filter(None, ("patchkit", command)))
    return f"`{path} --help` says what it takes"


def _fail(error: PatchkitError, wish: _Wish) -> int:
    if wish.json:
        print_json(to_document(Report(wish.command or "", error=error)))
    else:
        for line in text.render_error(error):
            echo(line, err=True, color=wish.color)
    return int(error.exit_code)


def abort(argv: Sequence[str], error: BaseException) -> int:
    """Say that ``error``, as Ctrl-C, ended the run before anything was changed, and return the exit code."""
    disregard()
    words = f"interrupted by {str(error) or 'Ctrl-C'}: nothing was changed"
    return _fail(Aborted(words), _read_wish(list(argv), os.environ))


def run() -> NoReturn:
    """All of the command line, as a process of its own (`patchkit.__main__` may have a shorter way)."""
    heed()
    sys.exit(main())
