"""The long version of `test_kills`: python tests/endurance.py [--kills 300] [--signals 60] [--seconds 30] [--seed 1]

Prints the figures of docs/measurements/crash.md, and ends with an AssertionError at the first promise that is broken.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import crowd
import wrecks
from worlds import tree
from wrecks import Aim, Where, Wrecker

AIMS = (Aim.ANYWHERE, Aim.JOURNAL, Aim.RENAMES)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMANDS = ("apply", "revert", "recover")


def say(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def head(*cells: object) -> None:
    print()
    say(*cells)
    say(*("---" for _ in cells))


def show_machine(folder: Path) -> None:
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False
    ).stdout.strip()
    cores = os.cpu_count()
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {kind}, {cores} cores")


def kill_many(wrecker: Wrecker, count: int) -> None:
    begun = time.monotonic()
    while wrecker.tally.killed < count:
        wrecker.wreck_one(AIMS[wrecker.tally.killed % len(AIMS)])
        print(f"\r{wrecker.tally.killed} of {count} kills ", end="", file=sys.stderr, flush=True)
    tally = wrecker.tally
    head("killed", *COMMANDS, "all")
    for where in Where:
        say(where.value, *(tally.kills[command, where] for command in COMMANDS), tally.fell(where))
    say("all", *(sum(tally.kills[command, where] for where in Where) for command in COMMANDS), tally.killed)
    next_ = ", ".join(f"{count} {command}" for command, count in sorted(tally.next.items()))
    print(f"\nnext commands: {next_}; ended before their kill: {tally.missed}; {time.monotonic() - begun:.0f} s")


def signal_many(wrecker: Wrecker, count: int) -> None:
    codes: Counter[tuple[str, int]] = Counter()
    for number, aim in islice(zip(cycle(SIGNALS), cycle((Aim.RENAMES, Aim.JOURNAL)), strict=False), count):
        codes[number.name, wrecker.interrupt_one(number, aim)] += 1
    head("signal", "130, undone", "0, too late")
    for number in SIGNALS:
        say(number.name, codes[number.name, 130], codes[number.name, 0])


def crowd_together(folder: Path, seconds: float, *, killing: bool, seed: int) -> None:
    ground = crowd.lay_out(folder)
    shipped = tree(ground.site)
    tally = crowd.run_crowd(ground, seconds, killing=killing, seed=seed)
    assert not tally.complaints, "\n".join(tally.complaints)
    assert crowd.command(ground, "recover") == 0
    crowd.assert_nothing_lost(ground)
    assert crowd.command(ground, "revert", "--all") == 0
    assert tree(ground.site) == shipped
    writes = ", ".join(f"{count} {verb}" for verb, count in sorted(tally.writes.items()))
    print(f"\n{ground.writers} writers for {seconds:g} s: {writes}, {tally.kills} killed; readers:")
    head("reader", "answers")
    for answer, count in sorted(tally.reads.items()):
        say(answer, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--signals", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30, help="for each of the two crowds")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for place in ("yard", "peace", "war"):
            (folder / place).mkdir()
        show_machine(folder)
        wrecker = Wrecker(wrecks.lay_out(folder / "yard"), given.seed)
        kill_many(wrecker, given.kills)
        signal_many(wrecker, given.signals)
        crowd_together(folder / "peace", given.seconds, killing=False, seed=given.seed)
        crowd_together(folder / "war", given.seconds, killing=True, seed=given.seed)


if __name__ == "__main__":
    main()
