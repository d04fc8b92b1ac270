"""Running a command of the user's: its output and its exit code go through as they are."""

from __future__ import annotations

import errno
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from patchkit.errors import UsageError

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_command(command: Sequence[str], *, output_to_error: bool = False) -> int:
    """Run ``command`` and return its exit code as a shell would tell it (128 and the signal where one ended it).

    It has this process's standard streams; with ``output_to_error`` what it prints goes to standard error. Ctrl-C
    reaches it as it reaches us, and what it makes of it counts; other signals that would end us are passed on to it.
    Raises `UsageError` where it cannot be started.
    """
    try:
        with _signals_wait() as pending:
            child = subprocess.Popen(command, stdout=2 if output_to_error else None)
            pending.append(child)
            code = child.wait()
    except OSError as error:
        hint = "is it installed, and on PATH?" if error.errno == errno.ENOENT else None
        raise UsageError(f"{command[0]} cannot be run: {error.strerror}", hint=hint) from error
    return code if code >= 0 else 128 - code


@contextmanager
def _signals_wait() -> Iterator[list[subprocess.Popen[bytes]]]:
    """While the child runs, signals do not end us: it answers them. Handlers, unlike ignoring, are not inherited."""
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    def leave_it(number: int, frame: FrameType | None) -> None:
        pass

    before = {number: signal.signal(number, pass_on) for number in FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, leave_it)
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
