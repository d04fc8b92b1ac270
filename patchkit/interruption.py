"""Signals that ask a process to end (SIGINT, SIGTERM, SIGHUP): when they are heeded, and when they have to wait.

They raise KeyboardInterrupt, so that whatever is under way is undone. What must not stop half way defers them; behind
the commit record they come too late. Only the main thread hears of signals, so in any other all of this does nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heed() -> None:
    """From now on SIGTERM and SIGHUP raise KeyboardInterrupt as SIGINT does, with what came as its text.

    For a process that runs one command. A signal that the process was started to ignore, as by nohup(1), stays ignored.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)


def disregard() -> None:
    """It is too late for them: where `heed` was called they are ignored to the end of the process."""
    for number in ENDING if _hears() else ():
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def deferred() -> Iterator[None]:
    """Those that come in here are delivered behind it, unless it ends with an error of its own."""
    came: list[int] = []
    kept = {number: handler for number in ENDING if _hears() and callable(handler := signal.getsignal(number))}
    try:
        for number in kept:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in kept.items():
            if signal.getsignal(number) is not signal.SIG_IGN:  # `disregard` was called in here
                signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _hears() -> bool:
    return threading.current_thread() is threading.main_thread()
