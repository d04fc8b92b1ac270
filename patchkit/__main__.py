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
            _say(answer)
            sys.exit(0)
    except KeyboardInterrupt as error:
        from patchkit.cli import abort

        sys.exit(abort(arguments, error))
    from patchkit.cli import run as run_commands

    run_commands()


def _say(text: str) -> None:
    """Print, as long as somebody reads (`patchkit.console`)."""
    if not text or sys.stdout is None or sys.stdout.closed:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        from contextlib import suppress

        with suppress(OSError):  # the same again: what is left in the buffer cannot be written
            sys.stdout.close()
        if not isinstance(error, BrokenPipeError) and sys.stderr is not None:
            sys.stderr.write(f"the output could not be written: {error.strerror}\n")


if __name__ == "__main__":
    run()
