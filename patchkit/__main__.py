"""``python -m patchkit`` and the command ``patchkit``: the short way where there is nothing to do, else all of it."""

from __future__ import annotations

import os
import sys

from patchkit.shortcut import find_answer


def run() -> None:
    """The console script."""
    arguments = sys.argv[1:]
    try:
        terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
        answer = find_answer(arguments, os.environ, terminal=terminal)
        if answer is not None:
            sys.exit(_say(answer))
    except KeyboardInterrupt as error:
        from patchkit.cli import abort

        sys.exit(abort(arguments, error))
    from patchkit.cli import run as run_commands

    run_commands()


def _say(text: str) -> int:
    """Print, as long as somebody reads; the exit code, which is 7 where that fails (`patchkit.console`)."""
    if not text or sys.stdout is None or sys.stdout.closed:
        return 0
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        from patchkit.console import note_loss
        from patchkit.errors import ExitCode

        return int(ExitCode.ROLLED_BACK if note_loss(error) else ExitCode.DONE)
    return 0


if __name__ == "__main__":
    run()
