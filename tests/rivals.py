"""What gets in the way of a command: a check that kills it, one that takes long, a process that holds the lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stages import Stage, edit, patch
from worlds import Entry, clean_environment, patchkit_command

_KILL = b"import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"
_SLOW = """import os, pathlib, time
begun = {!r}
pathlib.Path(begun + ".new").write_text(str(os.getpid()))
os.replace(begun + ".new", begun)
time.sleep(60)
"""
_HOLD = """import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
for _ in sys.stdin:
    os.unlink(sys.argv[2])
"""


def words_of(stage: Stage, *args: str | os.PathLike[str]) -> tuple[str, ...]:
    """The words of a real process that runs the command on ``stage``."""
    where = ("--site-packages", stage.site, "--patches", stage.patches)
    return (*patchkit_command(), *map(os.fspath, (*args, *where)))


def _five() -> bytes:
    return edit(5, b"line_5 = 'five'\n")


def add_slow_check(stage: Stage) -> Path:
    """Give fix/one a check that takes a minute; the file that is returned holds its process id once it runs."""
    begun = stage.folder / "begun"
    script = {"slow.py": _SLOW.format(str(begun)).encode()}
    stage.add("fix", patch("one", _five(), check=[{"kind": "python", "file": "slow.py"}]), checks=script)
    return begun


def wait_for(path: Path) -> str:
    """What the file at ``path`` holds, once it is there."""
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)
    return path.read_text()


def interrupt(stage: Stage, diff: bytes | None = None, *, distribution: str = "some-dist") -> dict[str, Entry]:
    """Leave a real transaction half done, by a check that kills the command that runs it; returns the tree before."""
    before = stage.tree()
    diff = _five() if diff is None else diff
    one = patch("one", diff, check=[{"kind": "python", "file": "kill.py"}])
    stage.add("fix", one, distribution=distribution, checks={"kill.py": _KILL})
    assert stage.process("apply", "--python", sys.executable).exit_code == -signal.SIGKILL
    assert (stage.site / ".patchkit" / "journal.json").exists() and stage.tree().items() - before.items()
    stage.add("fix", patch("one", diff), distribution=distribution)
    return before


def start_hearing(words: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """A process that hears the signals that ask it to end, even where this one was started to ignore them."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in signals}
    try:
        return subprocess.Popen(
            words, cwd=folder, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held(stage: Stage) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the site root; each line that it is told makes it remove the journal."""
    state = stage.site / ".patchkit"
    state.mkdir(exist_ok=True)
    words = [sys.executable, "-c", _HOLD, str(state / "lock"), str(state / "journal.json")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
