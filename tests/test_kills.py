"""Real processes: killed at random moments, told to end, and many at once (DESIGN, section 6).

``PATCHKIT_KILLS`` is the number of kills (18 where it is unset); `endurance.py` does the same for longer, with figures.
"""

from __future__ import annotations

import signal
from itertools import cycle, islice
from pathlib import Path

import pytest

import crowd
import wrecks
from worlds import OUTER, tree
from wrecks import Aim, Where, Wrecker

KILLS = int(OUTER.get("PATCHKIT_KILLS") or 18)
AIMS = (Aim.RENAMES, Aim.JOURNAL, Aim.RENAMES, Aim.ANYWHERE)


@pytest.fixture(scope="module")
def wrecker(tmp_path_factory: pytest.TempPathFactory) -> Wrecker:
    return Wrecker(wrecks.lay_out(tmp_path_factory.mktemp("yard")), seed=5)


def test_the_next_command_finds_all_or_nothing_whenever_the_last_was_killed(wrecker: Wrecker) -> None:
    for aim in islice(cycle(AIMS), KILLS):
        wrecker.wreck_one(aim)
    assert wrecker.tally.fell(Where.RENAMES) >= KILLS // 10, wrecker.tally


def test_a_command_that_is_told_to_end_undoes_all_or_has_done_all(wrecker: Wrecker) -> None:
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    codes = [wrecker.interrupt_one(number, aim) for aim in (Aim.RENAMES, Aim.JOURNAL) for number in signals]
    assert 130 in codes, "none came in time"


@pytest.mark.parametrize("killing", [False, True], ids=["in peace", "with a killer"])
def test_eight_that_apply_and_revert_at_once_lose_nothing_and_readers_are_right(tmp_path: Path, killing: bool) -> None:
    ground = crowd.lay_out(tmp_path)
    shipped = tree(ground.site)
    tally = crowd.run_crowd(ground, 4, killing=killing)
    assert not tally.complaints, "\n".join(tally.complaints)
    assert tally.writes.total() >= (1 if killing else ground.writers) and (tally.kills > 0) is killing
    assert {answer.partition(":")[0] for answer in tally.reads} == set(crowd.READERS)
    assert crowd.command(ground, "recover") == 0
    crowd.assert_nothing_lost(ground)
    assert crowd.command(ground, "revert", "--all") == 0
    assert tree(ground.site) == shipped


def test_the_lock_file_that_a_last_revert_removes_is_no_trap(tmp_path: Path) -> None:
    """Two take turns with one patch each: half of all reverts are the last, and take the state folder along."""
    ground = crowd.lay_out(tmp_path, writers=2)
    shipped = tree(ground.site)
    tally = crowd.run_crowd(ground, 3)
    assert not tally.complaints, "\n".join(tally.complaints)
    crowd.assert_nothing_lost(ground)
    assert crowd.command(ground, "revert", "--all") == 0
    assert tree(ground.site) == shipped
