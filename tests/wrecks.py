"""Real commands, ended by signals at random moments, and what the next command makes of the wreck.

A `Yard` is a site root with a large patch, applied and reverted in turn. Where a kill fell is not what it was aimed at:
`look_at` reads it off the disk, from the journal and from the files that are new or still old.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, unique
from pathlib import Path

import worlds
from patchkit.installed import sha256
from rivals import start_hearing
from stages import make_diff, put
from worlds import Entry, Finished, patchkit_command, tree

PATIENCE = 120.0
POLL_SECONDS = 0.0003


@unique
class Aim(Enum):
    """When to send the signal; each waits a random time more."""

    ANYWHERE = "at any moment of the process"
    JOURNAL = "once its journal is there"
    RENAMES = "once the first file is another"


@unique
class Where(Enum):
    """How far a command had come, by what it left on the disk."""

    UNTOUCHED = "before the journal"
    STAGING = "journal, no rename yet"
    RENAMES = "between the first and the last rename"
    RENAMED = "all renamed, no commit record yet"
    COMMITTED = "commit record, not cleaned up"
    DONE = "all done"


# ---- the yard -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Yard:
    """A site root with the distribution ``yard``, and a patch set that changes nearly all of it."""

    folder: Path
    shipped: dict[str, Entry]
    patched: dict[str, Entry]
    ends: tuple[Path, Path]

    @property
    def site(self) -> Path:
        return self.folder / "site"

    @property
    def journal(self) -> Path:
        return self.site / ".patchkit" / "journal.json"

    def run(self, *args: str) -> Finished:
        """The command as a real process, to its end."""
        return worlds.run(*_words(self.folder, *args), cwd=self.folder)

    def start(self, *args: str) -> subprocess.Popen[str]:
        return start_hearing(_words(self.folder, *args), self.folder)


def _words(folder: Path, *args: str) -> tuple[str, ...]:
    return (*patchkit_command(), *args, "--site-packages", str(folder / "site"), "--patches", str(folder / "patches"))


def lay_out(folder: Path, files: int = 60) -> Yard:
    """``files`` modules that the patch changes, and some that it creates, deletes, or makes executable."""
    body = b"".join(b"line_%d = %d\n" % (number, number) for number in range(1, 31))
    changed = body.replace(b"line_15 = 15\n", b"line_15 = 'fifteen'\n")
    many = [f"yard/m{number:03}.py" for number in range(files)]
    gone = [f"yard/gone/g{number}.py" for number in range(4)]
    made = [f"yard/made/deep/n{number}.py" for number in range(4)]
    before: dict[str, bytes | None] = {"yard/tool.py": body, **dict.fromkeys(many, body), **dict.fromkeys(gone, b"0\n")}
    after = {"yard/tool.py": body, **dict.fromkeys(many, changed), **dict.fromkeys(made, b"value = 'made'\n" * 5)}
    wheel = worlds.make_wheel(folder / "wheels", "yard", "1.0", {name: data or b"" for name, data in before.items()})
    worlds.unpack_site(folder / "site", wheel)
    put(folder / "patches" / "yard==1.0.patch", make_diff(before, after, {"yard/tool.py": 0o755}))
    shipped = tree(folder / "site")
    worlds.run(*_words(folder, "apply"), cwd=folder).expect(0)
    patched = tree(folder / "site")
    worlds.run(*_words(folder, "revert", "--all"), cwd=folder).expect(0)
    assert tree(folder / "site") == shipped != patched
    return Yard(folder, shipped, patched, (folder / "site" / many[0], folder / "site" / many[-1]))


def look_at(yard: Yard, before: dict[str, Entry]) -> Where:
    """How far the command had come that began with the tree ``before``."""
    try:
        journal = json.loads(yard.journal.read_bytes())
    except FileNotFoundError:
        name = yard.ends[0].relative_to(yard.site).as_posix()
        return Where.UNTOUCHED if tree(yard.site)[name] == before[name] else Where.DONE
    if journal["committed"]:
        return Where.COMMITTED
    moved = sum(_stamp(yard.site / change["path"]) == change["after"] for change in journal["changes"])
    return {0: Where.STAGING, len(journal["changes"]): Where.RENAMED}.get(moved, Where.RENAMES)


def _stamp(path: Path) -> dict[str, object] | None:
    if not path.exists():
        return None
    return {"sha256": sha256(path.read_bytes()), "mode": path.stat().st_mode & 0o7777}


# ---- one command, ended ---------------------------------------------------------------------------------------


@dataclass
class Pace:
    """Seconds that a command takes here: to its end; from its journal to its end; from its first rename to its last."""

    life: float = 0.0
    journal: float = 0.0
    renames: float = 0.0

    def of(self, aim: Aim) -> float:
        return {Aim.ANYWHERE: self.life, Aim.JOURNAL: self.journal, Aim.RENAMES: self.renames}[aim]


def measure(yard: Yard, *args: str) -> Pace:
    """Let the command run to its end, and look on."""
    first, last = map(_identify, yard.ends)
    begun = time.monotonic()
    process = yard.start(*args)
    times = [
        _wait(process, condition) - begun
        for condition in (
            yard.journal.exists,
            lambda: _identify(yard.ends[0]) != first,
            lambda: _identify(yard.ends[1]) != last,
        )
    ]
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    end = time.monotonic() - begun
    return Pace(end, end - times[0], times[2] - times[1])


def _wait(process: subprocess.Popen[str], condition: Callable[[], bool]) -> float:
    while process.poll() is None and not condition():
        time.sleep(POLL_SECONDS)
    return time.monotonic()


def _identify(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def end(yard: Yard, signal_: signal.Signals, aim: Aim, more: float, *args: str) -> tuple[int, str]:
    """Start the command and send the signal ``more`` seconds behind what ``aim`` waits for; exit code and errors."""
    first, last = map(_identify, yard.ends)
    process = yard.start(*args)
    if aim is Aim.JOURNAL:
        _wait(process, yard.journal.exists)
    if aim is Aim.RENAMES:  # an undo begins with the last
        _wait(process, lambda: (_identify(yard.ends[0]), _identify(yard.ends[1])) != (first, last))
    time.sleep(more)
    process.send_signal(signal_)
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


# ---- many of them ---------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was tried: where each kill fell, by the command that it ended, and the commands that came next."""

    kills: Counter[tuple[str, Where]] = field(default_factory=Counter)
    missed: int = 0
    next: Counter[str] = field(default_factory=Counter)

    @property
    def killed(self) -> int:
        return self.kills.total()

    def fell(self, where: Where) -> int:
        return sum(count for (_, place), count in self.kills.items() if place is where)


class Wrecker:
    """Kills commands on a yard, one after another, and holds the next command to its promise."""

    def __init__(self, yard: Yard, seed: int) -> None:
        self.yard = yard
        self.chance = random.Random(seed)
        self.tally = Tally()
        self.paces = {"apply": measure(yard, "apply"), "revert": measure(yard, "revert", "--all")}
        self.paces["recover"] = self.paces["revert"]

    def wreck_one(self, aim: Aim) -> None:
        """Kill an apply or a revert, perhaps a recovery too, and see what the next command makes of it."""
        before, after, words = self.turn()
        where = self.kill(aim, before, *words)
        for _ in range(2):
            if self.yard.journal.exists() and self.chance.random() < 0.4:
                where = self.kill(self.chance.choice((Aim.ANYWHERE, Aim.RENAMES)), before, "recover")
        if self.chance.random() < 0.3:
            self.read()
        next_ = self.chance.choice(("recover", "apply", "revert"))
        self.tally.next[next_] += 1
        said = self.yard.run(*(("revert", "--all") if next_ == "revert" else (next_,))).expect(0)
        ended = after if where in (Where.COMMITTED, Where.DONE) else before
        expected = {"apply": self.yard.patched, "revert": self.yard.shipped, "recover": ended}[next_]
        assert tree(self.yard.site) == expected, f"{words}, killed {where.value}, then {next_}: {said.out}{said.err}"

    def turn(self) -> tuple[dict[str, Entry], dict[str, Entry], tuple[str, ...]]:
        """The tree as it is, what it is to become, and the words of the command that does it."""
        now = tree(self.yard.site)
        if now == self.yard.shipped:
            return now, self.yard.patched, ("apply",)
        assert now == self.yard.patched
        return now, self.yard.shipped, ("revert", "--all")

    def kill(self, aim: Aim, before: dict[str, Entry], *words: str) -> Where:
        more = self.chance.uniform(0, self.paces[words[0]].of(aim))
        code, errors = end(self.yard, signal.SIGKILL, aim, more, *words)
        assert code in (0, -signal.SIGKILL), errors
        where = look_at(self.yard, before)
        if code == 0:
            self.tally.missed += 1
        else:
            self.tally.kills[words[0], where] += 1
        return where

    def read(self) -> None:
        """What readers say of the wreck: interrupted where a journal lies, else nothing of the kind."""
        interrupted = self.yard.journal.exists()
        warnings = self.yard.run("status", "--json").expect(0).json()["warnings"]
        assert ("interrupted" in [row["code"] for row in warnings]) is interrupted
        for command in ("verify", "check"):
            said = self.yard.run(command)
            assert (said.exit_code == 8) is interrupted, said

    def interrupt_one(self, signal_: signal.Signals, aim: Aim) -> int:
        """Let the command undo what it did, or finish; its exit code."""
        before, after, words = self.turn()
        code, errors = end(self.yard, signal_, aim, self.chance.uniform(0, self.paces[words[0]].of(aim)), *words)
        assert code in (0, 130), f"{code}: {errors}"
        assert tree(self.yard.site) == (after if code == 0 else before), f"{words}, {signal_.name}: {errors}"
        assert "Traceback" not in errors and ("nothing was changed" in errors) is (code == 130), errors
        return code
