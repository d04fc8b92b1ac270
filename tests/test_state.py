"""Readers take no lock, and are right nevertheless (DESIGN, section 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.errors import InProgress, Interrupted
from patchkit.scene import CatalogNeed, Options, Scene, is_unchanged, open_scene, read_steadily
from patchkit.state import read_state
from rivals import held, interrupt
from stages import Stage, edit, make_stage, patch


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    return stage


def read_scene(stage: Stage) -> Scene:
    return open_scene(Options(site_packages=str(stage.site), patches=(str(stage.patches),)), CatalogNeed.REQUIRED)


def apply_and_revert(stage: Stage) -> None:
    stage.run("apply").expect(0)
    stage.run("revert", "--all").expect(0)


def revert_and_apply(stage: Stage) -> None:
    stage.run("revert", "--all").expect(0)
    stage.run("apply").expect(0)


@pytest.mark.parametrize(("first", "meanwhile"), [("status", apply_and_revert), ("apply", revert_and_apply)])
def test_a_change_that_was_changed_back_is_a_change(
    first: str, meanwhile: Callable[[Stage], None], stage: Stage
) -> None:
    """The ledger is the same again, to the byte; a reader may have seen files of both."""
    stage.run(first).expect(0)
    scene = read_scene(stage)
    assert is_unchanged(scene)
    meanwhile(stage)
    assert read_scene(stage).state.data == scene.state.data
    assert not is_unchanged(scene)


def test_what_was_read_while_somebody_wrote_is_read_again(stage: Stage) -> None:
    seen: list[bytes | None] = []

    def think(scene: Scene) -> bytes:
        seen.append(scene.state.data)
        if len(seen) <= 2:
            (apply_and_revert if len(seen) == 1 else lambda stage: stage.run("apply").expect(0))(stage)
        return stage.read()

    assert b"five" in read_steadily(lambda: read_scene(stage), think)
    assert len(seen) == 3 and seen[:2] == [None, None] and seen[2] is not None


def test_a_journal_means_interrupted_where_nobody_holds_the_lock(stage: Stage) -> None:
    interrupt(stage)
    root = str(stage.site)
    assert read_state(root, allow_interrupted=True).interrupted
    with held(stage), pytest.raises(InProgress):
        read_state(root, wait=0.1)
    (stage.site / ".patchkit" / "lock").unlink()  # not every tool copies an empty file
    with pytest.raises(Interrupted):
        read_state(root)
