"""Many at once on one site root: processes that apply and revert for a while, readers beside them, and a killer.

Each writer has a patch of its own, so it knows at any moment whether that one must be there; all patches change one
file that they share and one of their own. A writer or a reader that sees what cannot be says so and ends with 1.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import worlds
from patchkit.cli import main
from stages import put
from worlds import CHECKOUT, clean_environment, tree

SHARED = "crowd/shared.py"
LINES = tuple(b"value_%d = 0\n" % number for number in range(1, 61))
READERS = ("status", "verify", "check", "bytes", "import")


def changed_line(number: int) -> int:
    """The 1-based line of the shared file that patch ``number`` (from 0) changes, out of sight of its neighbours."""
    return 4 + 7 * number


def own_file(number: int) -> str:
    return f"crowd/own_{number}.py"


def shared_with(numbers: Sequence[int]) -> bytes:
    """The shared file with the patches of these numbers."""
    lines = list(LINES)
    for number in numbers:
        lines[changed_line(number) - 1] = b"value_%d = 1\n" % changed_line(number)
    return b"".join(lines)


@dataclass(frozen=True)
class Ground:
    """A site root and a patch set with one patch a writer."""

    folder: Path
    writers: int

    @property
    def site(self) -> Path:
        return self.folder / "site"

    def words(self, *args: str) -> tuple[str, ...]:
        return (*args, "--site-packages", str(self.site), "--patches", str(self.folder / "patches"))

    def applied(self) -> list[int]:
        """The numbers of the patches in the ledger, read as a file: it is there whole or not at all."""
        ledger = self.site / ".patchkit" / "ledger.json"
        try:
            rows = json.loads(ledger.read_bytes())["applied"]
        except FileNotFoundError:
            return []
        return sorted(int(row["patch"].rpartition("-")[2]) for row in rows)


def lay_out(folder: Path, writers: int = 8) -> Ground:
    """A distribution with the shared file and one file a writer, and a patch set on it."""
    ground = Ground(folder, writers)
    files = {SHARED: b"".join(LINES), **{own_file(number): LINES[0] for number in range(writers)}}
    worlds.unpack_site(ground.site, worlds.make_wheel(folder / "wheels", "crowd", "1.0", files))
    manifest = 'schema = 1\nname = "crowd"\ndistribution = "crowd"\n'
    for number in range(writers):
        line = changed_line(number)
        old, new = b"".join(LINES[line - 4 : line + 3]), shared_with([number]).splitlines(keepends=True)
        context = b"".join(
            b" " + was if was == now else b"-" + was + b"+" + now
            for was, now in zip(old.splitlines(keepends=True), new[line - 4 : line + 3], strict=True)
        )
        shared = b"--- a/%b\n+++ b/%b\n@@ -%d,7 +%d,7 @@\n%b" % (*[SHARED.encode()] * 2, line - 3, line - 3, context)
        own = b"--- a/%b\n+++ b/%b\n@@ -1 +1 @@\n-%b+value_1 = 1\n" % (*[own_file(number).encode()] * 2, LINES[0])
        put(folder / "patches" / "crowd" / f"p{number}.patch", shared + own)
        manifest += f'[[patch]]\nname = "p-{number}"\n[[patch.variant]]\nversions = "==1.0"\nfile = "p{number}.patch"\n'
    put(folder / "patches" / "crowd" / "patchset.toml", manifest.encode())
    return ground


# ---- what runs in processes of their own ----------------------------------------------------------------------


def _say(words: str) -> None:
    os.write(1, words.encode() + b"\n")


@contextmanager
def _muted() -> Iterator[None]:
    """What the command prints goes nowhere."""
    with open(os.devnull, "w") as nowhere:
        kept = sys.stdout
        sys.stdout = nowhere
        try:
            yield
        finally:
            sys.stdout = kept


def command(ground: Ground, *args: str) -> int:
    """The exit code of the command, run in this process."""
    with _muted():
        return main(ground.words(*args))


def write_for(ground: Ground, number: int, seconds: float) -> None:
    """Apply and revert patch ``number`` in turn; says ``begin`` and ``done`` with what is meant to be there."""
    deadline = time.monotonic() + seconds
    name, wanted = f"crowd/p-{number}", number not in ground.applied()
    while time.monotonic() < deadline:
        verb = "apply" if wanted else "revert"
        _say(f"begin {verb}")
        code = command(ground, verb, name, "--lock-timeout", "60")
        assert code == 0, f"{verb} {name}: exit {code}"
        assert (number in ground.applied()) is wanted, f"lost: {name} after {verb}"
        own = (ground.site / own_file(number)).read_bytes()
        assert own == (b"value_1 = 1\n" if wanted else LINES[0]), f"lost: {own_file(number)} after {verb}"
        _say(f"done {verb}")
        wanted = not wanted


def read_for(ground: Ground, what: str, seconds: float, interrupted: bool) -> None:
    """Read in one of the ways of `READERS`; ``interrupted``: whether one may find a killed writer's work."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        _say(f"read {_READ[what](ground, interrupted)}")


def _look_at_bytes(ground: Ground, interrupted: bool) -> str:
    found = (ground.site / SHARED).read_bytes()
    lines = found.splitlines(keepends=True)
    there = [n for n in range(ground.writers) if lines[changed_line(n) - 1].endswith(b"= 1\n")]
    assert found == shared_with(there), f"torn: {SHARED}"
    for number in range(ground.writers):
        own = (ground.site / own_file(number)).read_bytes()
        assert own in (LINES[0], b"value_1 = 1\n"), f"torn: {own_file(number)}"
    ground.applied()
    return "whole"


def _import(ground: Ground, interrupted: bool) -> str:
    """A fresh interpreter imports the file that is being replaced."""
    program = f"import sys; sys.path.insert(0, {str(ground.site)!r}); import crowd.shared as s; print(len(vars(s)))"
    ended = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", program], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return "imported"


def _ask(*command: str) -> Callable[[Ground, bool], str]:
    def ask(ground: Ground, interrupted: bool) -> str:
        reader, writer = os.pipe()
        with os.fdopen(reader) as answer:
            with os.fdopen(writer, "w") as stream:
                kept, sys.stdout = sys.stdout, stream
                try:
                    code = main(ground.words(*command, "--json"))
                finally:
                    sys.stdout = kept
            document = json.loads(answer.read())
        _judge(command[0], code, document, interrupted)
        return f"exit {code}"

    return ask


def _judge(command: str, code: int, document: dict[str, object], interrupted: bool) -> None:
    """Whether ``document`` can be true: in progress, or every patch whole, there or not; interrupted only by a kill."""
    shown = json.dumps(document, indent=1)
    codes = {"status": {0, 6}, "check": {0, 6}, "verify": {0, 1, 6}}[command]
    assert code in codes | ({8} if interrupted and command != "status" else set()), shown
    warned = any(row["code"] == "interrupted" for row in document["warnings"])  # type: ignore[attr-defined]
    assert interrupted or not warned, shown
    if code in (0, 1) and not warned:
        states = {row["state"] for row in document["patches"]}  # type: ignore[attr-defined]
        assert states <= {"applied", "pending"}, shown
        assert code == 0 or not states, shown


_READ: dict[str, Callable[[Ground, bool], str]] = {
    "bytes": _look_at_bytes,
    "import": _import,
    "status": _ask("status"),
    "verify": _ask("verify", "--no-checks"),
    "check": _ask("check"),
}


# ---- the crowd ------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What happened: finished writes, answers of readers, kills and what was said by those who saw the impossible."""

    writes: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    complaints: list[str] = field(default_factory=list)


@dataclass
class _Member:
    process: subprocess.Popen[bytes]
    said: Path
    errors: Path
    number: int | None = None
    reads: str = ""


def run_crowd(ground: Ground, seconds: float, *, killing: bool = False, seed: int = 0) -> Tally:
    """Let all writers and readers loose for ``seconds``; with ``killing`` a writer is killed now and then."""
    chance, tally = random.Random(seed), Tally()
    deadline = time.monotonic() + seconds
    with ExitStack() as stack:
        writers = [_start_writer(stack, ground, number, seconds) for number in range(ground.writers)]
        readers = [_start_reader(stack, ground, what, seconds, killing) for what in READERS]
        dead: list[_Member] = []
        while killing and (left := deadline - time.monotonic()) > 0.8:
            time.sleep(min(left, chance.uniform(0.05, 0.4)))
            victim = chance.choice(writers)
            victim.process.kill()
            victim.process.wait()
            tally.kills += 1
            dead.append(victim)
            assert victim.number is not None
            writers[writers.index(victim)] = _start_writer(stack, ground, victim.number, deadline - time.monotonic())
        for member in (*writers, *readers):
            member.process.wait(timeout=seconds + 120)
    for member in (*writers, *readers, *dead):
        _count(member, tally, killed=member in dead)
    return tally


def _start_writer(stack: ExitStack, ground: Ground, number: int, seconds: float) -> _Member:
    return _start(stack, ground, f"write_for(ground, {number}, {seconds})", number=number)


def _start_reader(stack: ExitStack, ground: Ground, what: str, seconds: float, killing: bool) -> _Member:
    return _start(stack, ground, f"read_for(ground, {what!r}, {seconds}, {killing})", reads=what)


def _start(stack: ExitStack, ground: Ground, call: str, *, number: int | None = None, reads: str = "") -> _Member:
    program = (
        f"import sys; sys.path[:0] = {[str(CHECKOUT), str(CHECKOUT / 'tests')]!r}\n"
        f"from pathlib import Path; from crowd import *\n"
        f"ground = Ground(Path({str(ground.folder)!r}), {ground.writers})\n{call}\n"
    )
    place = ground.folder / "said"
    place.mkdir(exist_ok=True)
    count = len(list(place.iterdir()))
    said, errors = place / f"{count}.out", place / f"{count}.err"
    with said.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ground.folder, stdout=out, stderr=err, env=clean_environment()
        )
    stack.callback(_end, process)
    return _Member(process, said, errors, number, reads)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _count(member: _Member, tally: Tally, *, killed: bool) -> None:
    for line in member.said.read_text().splitlines():
        kind, _, what = line.partition(" ")
        if kind == "done":
            tally.writes[what] += 1
        if kind == "read":
            tally.reads[f"{member.reads}: {what}"] += 1
    if member.process.returncode != (-signal.SIGKILL if killed else 0):
        tally.complaints.append(f"{member.reads or member.number}: {member.errors.read_text()[-3000:]}")


def assert_nothing_lost(ground: Ground) -> None:
    """The ledger and the bytes agree, and the way back leads to what was shipped."""
    applied = ground.applied()
    assert (ground.site / SHARED).read_bytes() == shared_with(applied)
    for number in range(ground.writers):
        own = (ground.site / own_file(number)).read_bytes()
        assert own == (b"value_1 = 1\n" if number in applied else LINES[0])
    assert not [path for path in tree(ground.site) if path.endswith((".tmp", "journal.json"))]
