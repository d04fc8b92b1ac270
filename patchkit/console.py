"""What is printed: reports, listings, progress. The only module that writes to a terminal or a pipe."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

import click

from patchkit import text
from patchkit.errors import ExitCode
from patchkit.options import Output
from patchkit.report import Report, to_document


def tell(report: Report, output: Output) -> int:
    """Print ``report`` as it was asked for, and return its exit code."""
    if output.json:
        return tell_json(to_document(report, again=output.again), report)
    return tell_with(text.render(report, verbose=output.verbose, again=output.again), report, output)


def tell_with(lines: Iterable[str], report: Report, output: Output) -> int:
    """Print ``lines``, which say what ``report`` found, with its warnings and errors; return its exit code."""
    if not output.quiet or report.exit_code is not ExitCode.DONE:
        print_lines(lines, output)
    return tell_problems(report, output)


def tell_json(document: Any, report: Report) -> int:
    """Print ``document``, which says what ``report`` found; return its exit code."""
    print_json(document)
    mark_changed(report.wrote)
    return int(report.exit_code)


def tell_problems(report: Report, output: Output) -> int:
    """The warnings and errors of ``report`` on standard error; the exit code."""
    for line in text.render_notices(report):
        echo(line, err=True, color=output.color)
    if report.error is not None:
        for line in text.render_error(report.error):
            echo(line, err=True, color=output.color)
    mark_changed(report.wrote)
    return int(report.exit_code)


def print_lines(lines: Any, output: Output) -> int:
    for line in lines:
        echo(line, color=output.color)
    return int(ExitCode.DONE)


# All control characters but tabs, line ends and our own colours: words of a patch set may not drive the terminal.
_CONTROL = re.compile(r"\x1b\[[0-9;]*m|\r(?!$)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", re.MULTILINE)


def _show_control(match: re.Match[str]) -> str:
    return match[0] if match[0].endswith("m") else f"\\x{ord(match[0]):02x}"


def echo(line: str, *, err: bool = False, color: bool | None = None) -> None:
    """Print, as long as somebody reads. Raises nothing where that fails; `weigh` makes it count."""
    _write(_CONTROL.sub(_show_control, line) + "\n", err=err, color=color)


def print_document(data: bytes) -> None:
    """A whole file on standard output, byte for byte: its encoding is its own, not the terminal's."""
    _write(data)


def _write(message: str | bytes, *, err: bool = False, color: bool | None = None) -> None:
    stream: TextIO | None = sys.stderr if err else sys.stdout
    if stream is None or stream.closed:
        return
    try:
        click.echo(message, nl=False, err=err, color=color)
    except OSError as error:
        if err:
            _close(stream)
        else:
            note_loss(error)


# ---- output that is lost --------------------------------------------------------------------------------------

_LOST, _CHANGED = "patchkit.lost", "patchkit.changed"


def note_loss(error: OSError) -> bool:
    """Say that standard output took no more, and whether that counts: a reader that went away does not."""
    _close(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return False
    echo(f"{click.style('error', fg='red', bold=True)}: the output could not be written: {error.strerror}", err=True)
    _notes()[_LOST] = True
    return True


def _close(stream: TextIO | None) -> None:
    """What it still holds would be written at the exit of the process, and fail anew."""
    with suppress(OSError):
        if stream is not None:
            stream.close()


def mark_changed(changed: bool) -> None:
    """Note that this run wrote what was asked for: its exit code tells that, whatever becomes of the output."""
    if changed:
        _notes()[_CHANGED] = True


def weigh(code: int) -> int:
    """The exit code of a run whose own is ``code``: an answer that could not be written is none."""
    lost = _LOST in _notes() and _CHANGED not in _notes()
    return int(ExitCode.ROLLED_BACK) if lost and code in (ExitCode.DONE, ExitCode.NO) else code


def _notes() -> dict[str, Any]:
    """What is noted of this run; it ends with it, for it lies in click's context."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def print_json(document: Any) -> int:
    echo(json.dumps(document, indent=2, ensure_ascii=True))
    return int(ExitCode.DONE)


class Progress:
    """A progress bar on standard error once a run takes more than a second; none in a log."""

    def __init__(self, output: Output) -> None:
        self.shown = not (output.json or output.quiet) and sys.stderr is not None and sys.stderr.isatty()
        self.late = False
        self.state = ("reading", 0, 1)
        self.bar: Any = None

    def __enter__(self) -> Progress:
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
