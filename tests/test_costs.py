"""What a run that writes costs, counted: how often it waits for the disk, and how many bytes it writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.disk import Disk
from patchkit.installed import Content
from stages import Stage, make_diff, make_stage, patch, sample_wheel


@pytest.fixture
def make_many(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> Callable[..., Stage]:
    """``make_many(count)``: a stage on which one patch changes that many files of a thousand bytes and more."""

    def make(count: int) -> Stage:
        folder = tmp_path / str(count)
        folder.mkdir()
        before: dict[str, bytes | None] = {
            f"some_dist/part_{number % 3}/f{number}.py": b"".join(
                b"v%d_%d = 1\n" % (number, line) for line in range(99)
            )
            for number in range(count)
        }
        after: dict[str, bytes | None] = {path: (data or b"") + b"end = 2\n" for path, data in before.items()}
        stage = make_stage(folder, make_site, capsys.readouterr, sample_wheel(folder / "wheels", files=before))
        stage.add("fix", patch("all", make_diff(before, after)))
        return stage

    return make


class Meter:
    """Counts the waits for the disk and the bytes written, while the real calls are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits = self.bytes = 0
        fsync, sync, write = os.fsync, os.sync, Disk.write

        def count_fsync(descriptor: int) -> None:
            self.waits += 1
            fsync(descriptor)

        def count_sync() -> None:
            self.waits += 1
            sync()

        def count_write(disk: Disk, path: str, content: Content, owner: tuple[int, int] | None) -> None:
            self.bytes += len(content.data)
            write(disk, path, content, owner)

        monkeypatch.setattr(os, "fsync", count_fsync)
        monkeypatch.setattr(os, "sync", count_sync)
        monkeypatch.setattr(Disk, "write", count_write)


@pytest.mark.parametrize("command", [("apply",), ("revert", "--all")], ids=" ".join)
def test_waits_for_the_disk_do_not_grow_with_the_files(
    make_many: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    waits = []
    for count in (40, 160):
        stage = make_many(count)
        if command != ("apply",):
            stage.run("apply").expect()
        with monkeypatch.context() as patched:
            meter = Meter(patched)
            stage.run(*command, *(["--no-checks"] if command == ("apply",) else [])).expect()
            waits.append(meter.waits)
    assert waits[0] == waits[1] <= 24


def test_a_first_apply_writes_each_file_its_backup_and_little_more(
    make_many: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_many(60)
    shipped = sum(path.stat().st_size for path in stage.site.rglob("f*.py"))
    with monkeypatch.context() as patched:
        meter = Meter(patched)
        stage.run("apply", "--no-checks").expect()
    patched_size = sum(path.stat().st_size for path in stage.site.rglob("f*.py"))
    diff, ledger = (stage.patches / "fix/all.patch").stat().st_size, stage.ledger_file.stat().st_size
    journals = meter.bytes - (shipped + patched_size + diff + ledger)
    assert 0 < journals < 2 * 60 * 400  # two states of it, each with a row a file


def test_a_run_with_nothing_to_do_waits_for_nothing_and_writes_nothing(
    make_many: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_many(3)
    stage.run("apply").expect()
    meter = Meter(monkeypatch)
    for command in (["apply"], ["apply", "--exact"], ["verify"], ["status"], ["drift"], ["check"]):
        stage.run(*command).expect()
    assert (meter.waits, meter.bytes) == (0, 0)
