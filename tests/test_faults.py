"""What can go wrong around a command, by real means where there are any: nothing is lost, and each says what to do."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchkit.disk import Disk, Owner
from patchkit.errors import NotRolledBack, RolledBack
from patchkit.installed import Content
from patchkit.transaction import Recovery
from plans import NEW, PLAIN, execute_on, in_child, make_plan, needs_root, undo, write
from plans import lay_out as lay_out_root
from rivals import add_slow_check, held, interrupt, start_hearing, wait_for, words_of
from stages import DATA, MOD, SHIPPED, TOOL, Stage, make_diff, make_stage, patch, put, sample_wheel
from worlds import Entry, Finished, make_wheel, tree

MADE = "some_dist/made/new.py"
CHANGED = {
    **SHIPPED,
    MOD: b"".join(b"line_%d = 'other'\n" % number for number in range(1, 400)),
    TOOL: None,
    DATA: b"one\nzwei\nthree\n" * 300,
    MADE: b"made = True\n" * 300,
}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", make_diff(SHIPPED, CHANGED)))
    return stage


def hint_of(said: Finished) -> str:
    """What to do next, which every error must say."""
    assert "Traceback" not in said.err
    hints = [line for line in said.err.splitlines() if line.startswith("hint: ")]
    assert hints, said
    return " ".join(hints)


# ---- a full disk ----------------------------------------------------------------------------------------------


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory at ``folder``, where this user may mount one."""
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def small(stage: Stage, tmp_path: Path) -> Iterator[Stage]:
    """The stage with its site root on a file system of 400 kB."""
    with mounted(tmp_path / "small", "size=400k") as folder:
        site = Path(shutil.copytree(stage.site, folder / "site"))
        yield Stage(stage.folder, site, stage.patches, stage.install_site, stage.capture)


def leave_room(stage: Stage, blocks: int) -> None:
    """Fill the disk of the site root, but for so many blocks."""
    filler = stage.site.parent / "filler"
    filler.unlink(missing_ok=True)
    found = os.statvfs(stage.site)
    filler.write_bytes(b"x" * (found.f_frsize * (found.f_bavail - blocks)))


@needs_root
def test_a_full_disk_changes_nothing_wherever_it_is_met(small: Stage) -> None:
    """Each run has one block more, until it succeeds; a revert needs room too."""
    for command in (["apply"], ["revert", "--all"]):
        before = small.tree()
        for blocks in range(60):
            leave_room(small, blocks)
            said = small.run(*command)
            if said.exit_code == 0:
                break
            said.expect(7)
            assert "No space left on device; nothing was changed" in said.err
            assert "make room on that file system, then run the command again" in hint_of(said)
            assert small.tree() == before
        assert said.exit_code == 0 and blocks > 4
        small.run("verify", "--no-checks").expect(0 if command == ["apply"] else 1)
    assert not (small.site / ".patchkit").exists()


FILL = """import os
with open({!r}, "wb", 0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        raise SystemExit(1)
"""


@needs_root
def test_an_undo_on_a_full_disk_keeps_every_backup_and_is_finished_when_there_is_room(small: Stage) -> None:
    filler = small.site.parent / "filler"
    checks = {"fill.py": FILL.format(str(filler)).encode()}
    change = make_diff(SHIPPED, CHANGED)
    small.add("fix", patch("one", change, check=[{"kind": "python", "file": "fill.py"}]), checks=checks)
    before = small.tree()
    said = small.run("apply", "--python", sys.executable).expect(8)
    assert "is not complete" in said.err and f"{small.site}/.patchkit/journal.json" in said.err
    assert "make room on that file system, then run `patchkit recover`" in hint_of(said)
    small.run("recover").expect(8)
    filler.unlink()
    small.run("recover").expect(0)
    assert small.tree() == before


@pytest.mark.parametrize("limit", [0, 300, 2000, 5000])
def test_a_limit_for_the_size_of_files_changes_nothing(limit: int, stage: Stage) -> None:
    before = stage.tree()
    ended = subprocess.run(
        words_of(stage, "apply"),
        cwd=stage.folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert ended.returncode == 7 and "File too large; nothing was changed" in ended.stderr
    assert "hint: raise the limit for the size of files (ulimit -f)" in ended.stderr
    assert stage.tree() == before


# ---- permissions ----------------------------------------------------------------------------------------------


@needs_root
def test_a_file_that_may_not_be_replaced_undoes_those_before_it(stage: Stage) -> None:
    """Root may write everywhere, but not replace an immutable file; only the rename finds out."""
    locked_file = stage.site / TOOL
    if subprocess.run(["chattr", "+i", locked_file], capture_output=True, check=False).returncode != 0:
        pytest.skip("there are no immutable files here")
    try:
        before = stage.tree()
        said = stage.process("apply").expect(7)
        assert f"{locked_file}: Operation not permitted; nothing was changed" in said.err
        assert "lsattr" in hint_of(said)
        assert stage.tree() == before
    finally:
        subprocess.run(["chattr", "-i", locked_file], check=True)
    stage.run("apply").expect(0)


class ClosingDisk(Disk):
    """Somebody takes the permission to write in ``folders`` away, once the first target is replaced."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders

    def replace(self, source: str, target: str) -> None:
        super().replace(source, target)
        if "/.patchkit/" not in target:
            for folder in self.folders:
                folder.chmod(0o555)


@needs_root
@pytest.mark.parametrize("names", [["late"], ["early", "late"]], ids=", ".join)
def test_a_permission_that_is_lost_half_way_is_told_and_nothing_is_lost(names: list[str], tmp_path: Path) -> None:
    """What cannot be put back, or cleared away, is kept until it can."""
    root = lay_out_root(tmp_path / "site-packages")
    for name in ("early", "late"):
        write(root / name / "mod.py", b"old\n")
    before = tree(root)
    for path in (root, *root.rglob("*")):
        os.chown(path, 4321, 4321)
    for place in root.parents:
        if place == Path("/tmp"):
            break
        place.chmod(0o755)
    plan = make_plan(root, {f"{name}/mod.py": Content(NEW, PLAIN) for name in ("early", "late")})
    folders = [root / name for name in names]

    def child() -> None:
        with pytest.raises(NotRolledBack, match=rf"{root}/{names[0]}/.*: Permission denied.*kept beside it") as caught:
            execute_on(ClosingDisk(folders), root, plan)
        assert caught.value.hint == "run as a user who may write there, then run `patchkit recover`"
        assert (root / "late/mod.py").read_bytes() == b"old\n"
        assert (root / "early/mod.py").read_bytes() == (NEW if "early" in names else b"old\n")
        for folder in folders:
            folder.chmod(0o755)
        assert undo(root) is Recovery.UNDONE

    in_child(child, user=4321)
    assert tree(root) == before


@needs_root
def test_a_root_that_is_read_only_can_be_read_and_is_not_written(stage: Stage, tmp_path: Path) -> None:
    with mounted(tmp_path / "mount", "size=2m") as folder:
        site = Path(shutil.copytree(stage.site, folder / "site"))
        there = Stage(stage.folder, site, stage.patches, stage.install_site, stage.capture)
        read_only, writable = (["mount", "-o", f"remount,{mode}", folder] for mode in ("ro", "rw"))
        subprocess.run(read_only, check=True)
        there.run("check").expect(0)
        assert "read-only" in there.run("apply").expect(4).err
        subprocess.run(writable, check=True)
        there.run("apply").expect(0)
        before = there.tree()
        subprocess.run(read_only, check=True)
        for command in (["apply"], ["check"], ["verify"], ["status", "--exit-code"], ["recover"]):
            there.run(*command).expect(0)
        assert "read-only" in there.run("revert", "--all").expect(4).err
        assert there.tree() == before
        subprocess.run(writable, check=True)
        put(site / ".patchkit" / "journal.json", b"{}")
        subprocess.run(read_only, check=True)
        for command in (["recover"], ["revert", "--all"]):
            said = there.run(*command).expect(4)
            assert "Read-only file system; nothing was changed" in said.err and "mount it so" in hint_of(said)


# ---- what others do meanwhile ---------------------------------------------------------------------------------


def while_it_waits(stage: Stage, deed: Callable[[], object], *args: str) -> Finished:
    """What the command says that had decided before ``deed`` was done, and gets the lock after it."""
    with held(stage) as holder, ThreadPoolExecutor(1) as pool:
        command = pool.submit(stage.run, *args, "--lock-timeout", "60")
        while not any(frame.f_code.co_name == "_acquire" for frame in sys._current_frames().values()):
            assert not command.done(), command.result()
            time.sleep(0.01)
        deed()
        holder.kill()
        return command.result(60)


def test_a_file_that_is_edited_between_plan_and_commit_is_kept(stage: Stage) -> None:
    before = stage.tree()
    said = while_it_waits(stage, lambda: stage.write(DATA, b"edited\n"), "apply").expect(7)
    assert f"{stage.site / DATA} changed while patchkit was at work" in said.err and "run the command again" in said.err
    assert stage.read(DATA) == b"edited\n"
    stage.run("apply").expect(5)
    stage.write(DATA, SHIPPED[DATA] or b"")
    assert stage.tree() == before


def test_a_folder_that_vanishes_between_plan_and_commit_is_told(stage: Stage) -> None:
    said = while_it_waits(stage, lambda: shutil.rmtree(stage.site / "some_dist"), "apply").expect(7)
    assert f"{stage.site}/some_dist" in said.err and "nothing was changed" in said.err
    assert "see what else changes files there at the same time" in hint_of(said)
    assert {path.partition("/")[0] for path in stage.tree()} == {"some_dist-1.2.3.dist-info"}


def test_a_site_root_that_vanishes_between_plan_and_commit_is_told(stage: Stage) -> None:
    before = stage.tree()
    elsewhere = stage.folder / "elsewhere"
    said = while_it_waits(stage, lambda: stage.site.rename(elsewhere), "apply").expect(4)
    assert f"{stage.site}: No such file or directory" in said.err
    assert "see what else changes files there" in hint_of(said)
    assert not stage.site.exists()
    shutil.rmtree(elsewhere / ".patchkit")  # of the process that held the lock
    assert tree(elsewhere) == before


class VanishingDisk(Disk):
    """A folder goes away as soon as there is something new in it."""

    def write(self, path: str, content: Content, owner: Owner | None) -> None:
        super().write(path, content, owner)
        if "/pkg/" in path:
            shutil.rmtree(os.path.dirname(path))


def test_a_folder_that_vanishes_half_way_is_told_and_nothing_of_ours_is_left(tmp_path: Path) -> None:
    root = lay_out_root(tmp_path / "site-packages")
    write(root / "kept/mod.py", b"old\n")
    plan = make_plan(root, {path: Content(NEW, PLAIN) for path in ("kept/mod.py", "pkg/mod.py", "pkg/other.py")})
    with pytest.raises(RolledBack, match=r"pkg/.*: No such file or directory; nothing was changed") as caught:
        execute_on(VanishingDisk(), root, plan)
    assert "then run the command again" in caught.value.hint
    assert {path: entry.kind for path, entry in tree(root).items()} == {"kept": "directory", "kept/mod.py": "file"}
    assert (root / "kept/mod.py").read_bytes() == b"old\n"


# ---- signals --------------------------------------------------------------------------------------------------


@pytest.fixture
def alarms() -> Iterator[list[int]]:
    """A signal every half millisecond, whose handler returns: system calls end with EINTR. The list counts them."""
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: came.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    yield came
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_signals_that_ask_for_nothing_disturb_nothing(alarms: list[int], stage: Stage) -> None:
    script = {"slow.py": b"import time\ntime.sleep(0.3)\n"}
    stage.add(
        "fix", patch("one", make_diff(SHIPPED, CHANGED), check=[{"kind": "python", "file": "slow.py"}]), checks=script
    )
    before = stage.tree()
    for _ in range(3):
        stage.run("apply", "--python", sys.executable).expect(0)
        stage.run("verify").expect(0)
        stage.run("revert", "--all").expect(0)
    assert stage.tree() == before
    with held(stage):
        stage.run("apply", "--lock-timeout", "0.3").expect(6)
    assert len(alarms) > 100


def test_the_work_goes_on_under_nohup_when_the_terminal_goes(stage: Stage) -> None:
    with held(stage) as holder:
        words = ("nohup", *words_of(stage, "apply", "--lock-timeout", "30"))
        with subprocess.Popen(words, cwd=stage.folder, stdout=subprocess.DEVNULL) as process:
            time.sleep(0.8)
            process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            assert process.poll() is None
            holder.kill()
            assert process.wait(30) == 0
    stage.run("verify").expect(0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_takes_its_check_along(number: signal.Signals, stage: Stage) -> None:
    begun = add_slow_check(stage)
    before = stage.tree()
    with start_hearing(words_of(stage, "apply", "--python", sys.executable), stage.folder) as process:
        check = int(wait_for(begun))
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and f"interrupted by {number.name}: nothing was changed" in err
    assert stage.tree() == before
    with pytest.raises(ProcessLookupError):
        os.kill(check, 0)


# ---- the state folder of another machine --------------------------------------------------------


@pytest.fixture
def other(stage: Stage, tmp_path: Path, make_site: Callable[..., Path]) -> Callable[[str], Stage]:
    """``other(version)``: another site root, with that version, whose state folder is a copy of the stage's."""

    def make(version: str) -> Stage:
        files = SHIPPED if version == "1.2.3" else {**SHIPPED, MOD: b"".join(b"new_%d = 0\n" % n for n in range(30))}
        wheel = sample_wheel(tmp_path / "other-wheels", version, files)
        site = make_site(tmp_path / "another machine", wheel)
        shutil.copytree(stage.site / ".patchkit", site / ".patchkit")
        return Stage(stage.folder, site, stage.patches, stage.install_site, stage.capture)

    return make


def shipped(stage: Stage) -> dict[str, Entry]:
    return {path: entry for path, entry in stage.tree().items() if not path.startswith(".patchkit")}


@pytest.mark.parametrize("version", ["1.2.3", "2.0"])
def test_a_ledger_of_another_machine_is_drift_and_costs_nothing(
    version: str, stage: Stage, other: Callable[[str], Stage]
) -> None:
    stage.add("fix", patch("one", make_diff(SHIPPED, CHANGED), versions="==1.2.3"))
    stage.run("apply").expect(0)
    there = other(version)
    before = shipped(there)
    assert there.states() == {"fix/one": "drifted" if version == "1.2.3" else "no-variant"}
    there.run("verify").expect(1)
    said = there.run("apply").expect(0 if version == "1.2.3" else 4)
    if version == "1.2.3":
        assert there.tree() == stage.tree()
    else:
        assert "2.0" in said.err and shipped(there) == before
    there.run("revert", "--all").expect(0)
    assert there.tree() == before


@pytest.mark.parametrize("version", ["1.2.3", "2.0"])
def test_a_journal_of_another_machine_undoes_nothing_that_was_not_done(
    version: str, stage: Stage, other: Callable[[str], Stage]
) -> None:
    interrupt(stage)
    there = other(version)
    before = shipped(there)
    there.run("verify").expect(8)
    assert "undid an interrupted transaction" in there.run("recover").expect(0).out
    assert there.tree() == before


# ---- another installation since the kill ----------------------------------------------------------------------


def test_a_distribution_that_was_upgraded_since_the_kill_is_left_as_it_was_installed(stage: Stage) -> None:
    change = {**SHIPPED, MOD: b"changed = 1\n", TOOL: None, MADE: b"made = 1\n"}
    interrupt(stage, make_diff(SHIPPED, change))
    # 2.0 has a file of its own where 1.2.3 was changed, none where it was changed, and ships what the patch creates
    newer = {**SHIPPED, MOD: b"of 2.0\n", DATA: None, MADE: b"made = 1\n"}
    stage.reinstall(sample_wheel(stage.folder / "newer", "2.0", newer))
    before = shipped(stage)
    assert "undid an interrupted transaction" in stage.run("recover").expect(0).out
    assert stage.tree() == before


def test_shipped_bytes_are_nobodys_edit_when_an_update_is_undone(stage: Stage) -> None:
    """The same version was installed anew: its RECORD is the same, its file neither the old nor the new patched one."""
    stage.run("apply").expect(0)
    before = interrupt(stage, make_diff(SHIPPED, {**SHIPPED, MOD: b"changed = 1\n"}))
    stage.reinstall(sample_wheel(stage.folder / "same"))
    stage.run("recover").expect(0)
    assert stage.tree() == before


def test_what_a_killed_run_created_goes_though_its_distribution_was_reinstalled_since(stage: Stage) -> None:
    """The row in RECORD, which would have taken it along, is the last thing that is written."""
    interrupt(stage, make_diff(SHIPPED, {**SHIPPED, MOD: b"changed = 1\n", "some_dist/new.py": b"made = 1\n"}))
    made = stage.read("some_dist/new.py")
    stage.reinstall(sample_wheel(stage.folder / "newer", "2.0", {**SHIPPED, DATA: b"of 2.0\n"}))
    before = shipped(stage)
    stage.write("some_dist/new.py", made)
    stage.run("recover").expect(0)
    assert stage.tree() == before


def test_a_module_of_its_own_comes_back_when_an_edit_was_moved_away(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """A distribution may be one file, whose absence does not mean that it was uninstalled."""
    wheel = make_wheel(tmp_path / "wheels", "single", "1.0", {"single.py": b"x = 1\n"})
    stage = make_stage(tmp_path, make_site, capfd.readouterr, wheel)
    diff = make_diff({"single.py": b"x = 1\n"}, {"single.py": b"x = 2\n"})
    before = interrupt(stage, diff, distribution="single")
    stage.write("single.py", b"edited\n")
    assert "move it away" in hint_of(stage.run("recover").expect(8))
    (stage.site / "single.py").unlink()
    stage.run("recover").expect(0)
    assert stage.tree() == before


# ---- cut, or newer --------------------------------------------------------------------------------------------

COMMANDS = (["recover"], ["apply"], ["revert", "--all"], ["verify"], ["status"], ["check"])


@pytest.mark.parametrize("name", ["ledger.json", "journal.json"])
@pytest.mark.parametrize("kind", ["cut", "newer"])
def test_a_cut_or_newer_state_is_told_by_every_command_and_left_alone(name: str, kind: str, stage: Stage) -> None:
    if name == "ledger.json":
        stage.run("apply").expect(0)
    else:
        interrupt(stage)
    file = stage.site / ".patchkit" / name
    whole = file.read_bytes()
    cuts = [whole[: len(whole) * part // 7] for part in range(7)] + [whole[:-2]]
    newer = whole.replace(b'"format": 1', b'"format": 2').replace(b'"format":1', b'"format":2')
    for data in cuts if kind == "cut" else [newer]:
        file.write_bytes(data)
        before = stage.tree()
        for command in COMMANDS if data in (cuts[3], newer) else COMMANDS[:2]:
            said = stage.run(*command)
            if name == "journal.json" and command[0] in ("verify", "status", "check"):
                assert said.exit_code == (0 if command == ["status"] else 8)  # they do not read it
                continue
            said.expect(4 if kind == "newer" else 8)
            assert str(file) in said.err
            assert ("newer" if kind == "newer" else "reinstall") in hint_of(said)
        assert stage.tree() == before
    file.write_bytes(whole)
    stage.run("recover").expect(0)
    stage.run("revert", "--all").expect(0)
    assert stage.tree() == shipped(stage)


def test_a_killed_holder_is_no_reason_to_wait(stage: Stage) -> None:
    with held(stage) as holder:
        holder.kill()
        holder.wait()
        stage.run("apply", "--lock-timeout", "0").expect(0)
