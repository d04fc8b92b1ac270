"""Bad input: hostile diffs, broken files, folders that may not be read or written, states that others left behind."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostile import DIFFS, FIVE, creation_of, diff_of
from patchkit.cli import main
from rivals import held, interrupt, words_of
from stages import DATA, MOD, SHIPPED, TOOL, Stage, make_diff, make_stage, patch, put, sample_wheel
from worlds import Finished, make_wheel, patchkit_command, run, tree

NOBODY = 65534
OTHER = {"other/mod.py": b"x = 1\n", "some_dist/plugin.py": b"x = 1\n"}


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    extra: dict[str, bytes | None] = {
        **SHIPPED,
        "start.pth": b"x = 1\n",
        "some_dist-1.2.3.data/scripts/some-tool": b"#!python\nx = 1\n",
    }
    wheels = (
        sample_wheel(tmp_path / "wheels", files=extra),
        make_wheel(tmp_path / "wheels", "other", "1.0", OTHER),
    )
    stage = make_stage(tmp_path, make_site, capfd.readouterr, *wheels)
    put(stage.site / "some_dist" / "stray.py", b"x = 1\n")
    stage.add("fix", patch("one", FIVE))
    return stage


def refuse(stage: Stage, code: int, *args: str) -> str:
    """What the command says when it ends with ``code``; nothing may be written, not even a state folder."""
    before, outside = stage.tree(), tree(stage.folder)
    said = stage.run(*args).expect(code)
    assert "Traceback" not in said.err and "error: " in said.err
    assert stage.tree() == before and tree(stage.folder) == outside
    return said.err


# ---- hostile diffs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIFFS)
def test_a_hostile_diff_is_told_by_check_with_its_place(name: str, stage: Stage) -> None:
    diff, words = DIFFS[name]
    stage.add("fix", patch("one", b"a word before\n" + diff))
    said = refuse(stage, 3, "check")
    assert f"{stage.patches / 'fix' / 'one.patch'}:" in said
    assert words in said
    line = int(said.partition("one.patch:")[2].partition(":")[0])
    assert 2 <= line <= 12


@pytest.mark.parametrize("name", ["up and out", "absolute", "a .pth of its own", "the file of another"])
def test_a_hostile_entry_among_good_ones_stops_all(name: str, stage: Stage) -> None:
    diff, words = DIFFS[name]
    stage.add("fix", patch("one", FIVE + diff))
    said = refuse(stage, 3, "apply")
    assert f"one.patch:{FIVE.count(bytes([10])) + 1}: " in said and words in said


def test_hostile_entries_that_the_manifest_leaves_out_are_no_problem(stage: Stage) -> None:
    variant = [{"versions": ">=1", "file": "one.patch", "include": ["some_dist/**"]}]
    stage.add("fix", patch("one", FIVE + diff_of("tests/../../x.py") + diff_of("other/mod.py"), variant=variant))
    stage.run("apply").expect(0)
    assert b"five" in stage.read()


def test_a_symbolic_link_in_the_tree_is_not_written_through(stage: Stage) -> None:
    shutil.move(stage.site / "some_dist", stage.folder / "elsewhere")
    (stage.site / "some_dist").symlink_to(stage.folder / "elsewhere", target_is_directory=True)
    said = refuse(stage, 3, "apply")
    assert f"{MOD} lies behind a symbolic link" in said and "one.patch:1" in said
    stage.add("fix", patch("one", creation_of("some_dist/new.py")))
    assert "behind a symbolic link" in refuse(stage, 3, "apply")


def test_a_folder_in_the_place_of_a_file_is_a_conflict(stage: Stage) -> None:
    (stage.site / MOD).unlink()
    (stage.site / MOD).mkdir()
    assert f"{MOD} is not a plain file" in refuse(stage, 5, "apply")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(stage: Stage) -> None:
    (stage.site / MOD).unlink()
    os.mkfifo(stage.site / MOD)
    said = refuse_without_comparing(stage, 5)
    assert f"{MOD} is not a plain file" in said


def refuse_without_comparing(stage: Stage, code: int) -> str:
    said = run(*words_of(stage, "apply"), cwd=stage.folder, timeout=30).expect(code)
    assert not (stage.site / ".patchkit").exists()
    return said.err


def stage_options(stage: Stage) -> tuple[str | Path, ...]:
    return ("--site-packages", stage.site, "--patches", stage.patches)


@pytest.mark.parametrize("args", [["check", "--verbose"], ["apply", "--diff"], ["show", "fix"], ["list"]])
def test_words_from_others_cannot_drive_the_terminal(args: list[str], stage: Stage) -> None:
    odd = "\x1b]0;title\x07\x1b[2J\x9b2J\x7f"
    for diff in (
        diff_of(f"some_dist/{odd}.py"),
        creation_of(f"{odd}.py"),
        FIVE.replace(b"'five'", f"{odd!a}  # {odd}".encode()),
    ):
        stage.add("fix", patch("one", diff, summary=f"quick {odd} fix"), summary=odd)
        said = stage.run(*args, "--color", "always")
        assert said.exit_code in (0, 1, 3, 5, 7)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", said.out + said.err)  # colours do no harm
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", plain), ascii(plain)


@pytest.mark.parametrize(
    ("stated", "mode"), [("104755", 0o755), ("102755", 0o755), ("100666", 0o644), ("100777", 0o755)]
)
def test_of_a_stated_mode_the_executable_bit_alone_is_taken(stated: str, mode: int, stage: Stage) -> None:
    header = f"diff --git a/some_dist/n.py b/some_dist/n.py\nnew file mode {stated}\n".encode()
    stage.add("fix", patch("one", header + creation_of("some_dist/n.py")))
    stage.run("apply").expect(0)
    assert stat.S_IMODE((stage.site / "some_dist" / "n.py").stat().st_mode) == mode


# ---- broken diffs ---------------------------------------------------------------------------------------------


def test_a_truncated_diff_is_refused_wherever_it_is_cut(stage: Stage) -> None:
    whole = make_diff({MOD: SHIPPED[MOD], TOOL: SHIPPED[TOOL]}, {MOD: stage.read() + b"end\n", TOOL: b"print(1)\n"})
    before = stage.tree()
    fitting = 0
    for end in range(0, len(whole) - 1, 7):
        stage.add("fix", patch("one", whole[:end]))
        said = stage.run("apply", "--dry-run")
        assert said.exit_code in (0, 3, 5), said
        fitting += said.exit_code == 0
        assert "Traceback" not in said.err and (said.exit_code == 0 or "one.patch" in said.err or MOD in said.err)
    assert stage.tree() == before
    assert fitting < 12, "only where the cut leaves whole entries"


@pytest.mark.parametrize("seed", range(6))
def test_garbage_is_refused(seed: int, stage: Stage) -> None:
    chance = random.Random(seed)
    garbage = chance.randbytes(5000)
    for data in (garbage, FIVE + garbage, garbage + b"\n" + diff_of(DATA)[:-3] + garbage, b"\0" * 4096, b"\n" * 4096):
        stage.add("fix", patch("one", data))
        said = refuse(stage, 3, "apply")
        assert "one.patch:" in said


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"nothing but words\n", b"--- a\n", b"@@ -1 +1 @@\n-a\n+b\n", b"\xef\xbb\xbf"]
)
def test_a_file_without_any_entry_is_refused(data: bytes, stage: Stage) -> None:
    stage.add("fix", patch("one", data))
    assert "one.patch:1: " in refuse(stage, 3, "apply")


@pytest.mark.parametrize(
    "header",
    [
        b"@@ -1,99999999999999999999 +1,99999999999999999999 @@",
        b"@@ -99999999999999999999 +1 @@",
        b"@@ -1,2 +1,2 @@",
        b"@@ -1 +1 @",
        b"@@ --1 +1 @@",
    ],
)
def test_counts_that_lie_are_refused(header: bytes, stage: Stage) -> None:
    stage.add("fix", patch("one", b"--- a/%b\n+++ b/%b\n%b\n-one\n+uno\n" % (DATA.encode(), DATA.encode(), header)))
    said = stage.run("apply")
    assert said.exit_code in (3, 5) and "Traceback" not in said.err
    assert not (stage.site / ".patchkit").exists()


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


@pytest.mark.parametrize("file", ["one.patch", "patchset.toml", "patchkit.toml", "check.py"])
def test_a_huge_file_is_refused_without_reading_it_whole(file: str, stage: Stage) -> None:
    check = [{"kind": "python", "file": "check.py"}]
    folder = stage.add("fix", patch("one", FIVE, check=check), checks={"check.py": b""})
    path = (stage.patches if file == "patchkit.toml" else folder) / file
    path.touch()
    os.truncate(path, 8 << 30)  # sparse: it takes no room
    words = words_of(stage, "apply")
    ended = subprocess.run(
        words, cwd=stage.folder, capture_output=True, text=True, preexec_fn=limit_memory, timeout=60, check=False
    )
    assert ended.returncode == 3, ended.stderr
    assert str(path) in ended.stderr and "Traceback" not in ended.stderr
    assert not (stage.site / ".patchkit").exists()


def test_a_long_diff_of_many_files_is_read_in_bounded_time(stage: Stage) -> None:
    many = b"".join(diff_of(f"some_dist/m{number}.py") for number in range(4000))
    stage.add("fix", patch("one", many))
    begun = time.monotonic()
    said = stage.run("check")
    assert said.exit_code == 1 and "some_dist/m0.py" in said.out
    assert time.monotonic() - begun < 30


# ---- files and folders that others made -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b'"unclosed', b"\0" * 100, b"", b"some_dist/mod.py,sha256=" + b"A" * 43 + b",1\n"]
)
def test_a_record_that_cannot_be_relied_on_stops_everything(data: bytes, stage: Stage) -> None:
    stage.record.write_bytes(data)
    before = stage.tree()
    said = stage.run("apply")
    assert said.exit_code in (3, 4, 5) and "Traceback" not in said.err
    assert "RECORD" in said.err or MOD in said.err
    assert stage.tree() == before


@pytest.mark.parametrize("field", ["sha999=abc", "sha256=!!!", "x", ""])
def test_a_row_without_a_digest_that_can_be_used_is_said_to_be_unrecorded(field: str, stage: Stage) -> None:
    shipped = stage.read()
    stage.change_record(MOD, field)
    said = stage.run("apply").expect(0)
    assert f"warning: {MOD} has no digest in RECORD" in said.err
    stage.run("revert", "--all").expect(0)
    assert stage.read() == shipped


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"format": 1}', b"\xff", b"[" * 100000, b'{"format": "1"}'])
def test_a_damaged_ledger_is_told_and_never_rewritten(data: bytes, stage: Stage) -> None:
    stage.run("apply").expect(0)
    stage.ledger_file.write_bytes(data)
    before = stage.tree()
    for command in (["check"], ["apply"], ["verify"], ["status"], ["revert", "--all"], ["revert", "fix"]):
        said = stage.run(*command).expect(8)
        assert str(stage.ledger_file) in said.err
    assert stage.tree() == before


def test_a_ledger_of_a_newer_patchkit_is_left_alone(stage: Stage) -> None:
    stage.run("apply").expect(0)
    ledger = stage.ledger()
    stage.ledger_file.write_bytes(stage.ledger_file.read_bytes().replace(b'"format": 1', b'"format": 99'))
    assert stage.ledger() != ledger
    before = stage.tree()
    for command in (["check"], ["apply"], ["verify"], ["status"], ["revert", "--all"]):
        said = stage.run(*command).expect(4)
        assert str(stage.ledger_file) in said.err and "99" in said.err
    assert stage.tree() == before


def test_a_state_folder_that_is_a_file_is_told(stage: Stage) -> None:
    put(stage.site / ".patchkit", b"somebody's\n")
    before = stage.tree()
    said = stage.run("apply")
    assert said.exit_code in (4, 8), said
    assert str(stage.site / ".patchkit") in said.err
    stage.run("check").expect(8)
    for command in (["revert", "--all"], ["recover"]):
        said = stage.run(*command)
        assert said.exit_code in (0, 8), said
    assert stage.tree() == before


def test_a_state_folder_that_is_a_link_is_told(stage: Stage) -> None:
    (stage.folder / "state").mkdir()
    (stage.site / ".patchkit").symlink_to(stage.folder / "state", target_is_directory=True)
    said = stage.run("apply")
    assert said.exit_code in (4, 8), said
    assert os.listdir(stage.folder / "state") == []


def test_a_site_root_whose_name_is_no_text_can_be_worked_on(stage: Stage) -> None:
    odd = Path(os.fsdecode(os.fsencode(stage.folder) + b"/si\xffte"))
    stage.site.rename(odd)
    for command in (["check"], ["apply"], ["status", "--json"]):
        said = run(*patchkit_command(), *command, "--site-packages", odd, "--patches", stage.patches, cwd=stage.folder)
        assert said.exit_code == 0 and "Traceback" not in said.err, said


# ---- permissions ----------------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[None]:
    """Let other users pass through the folders of the tests that lead to ``path``."""
    modes: dict[Path, int] = {}
    for folder in path.parents:
        status = folder.stat()
        if status.st_uid == os.geteuid() and not status.st_mode & stat.S_IXOTH:
            modes[folder] = status.st_mode
            folder.chmod(status.st_mode | stat.S_IXOTH)
    try:
        yield
    finally:
        for folder, mode in modes.items():
            folder.chmod(stat.S_IMODE(mode))


def as_another(stage: Stage, *args: str) -> Finished:
    """The command, run by a user who owns nothing here (by the tests' own user where that is not root)."""
    main(["--version"])
    stage.run("check")  # whatever it imports is imported: the interpreter may lie where nobody else may look
    stage.capture()
    with opened(stage.site):
        process = os.fork()
        if process == 0:
            code = 99
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                code = main([*args, *map(str, stage_options(stage))])
                sys.stdout.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(process, 0)
    return Finished(args, os.waitstatus_to_exitcode(status), *stage.capture())


@pytest.fixture
def closed() -> Iterator[Callable[[Path], None]]:
    """``closed(path)`` takes all permissions away, until the end of the test."""
    modes: dict[Path, int] = {}

    def close(path: Path, mode: int = 0) -> None:
        modes[path] = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)

    yield close
    for path, mode in reversed(modes.items()):
        path.chmod(mode)


@pytest.mark.parametrize("what", ["the folder", "a set", "a manifest", "a diff", "patchkit.toml"])
def test_a_patch_folder_that_may_not_be_read_is_told(what: str, stage: Stage, closed: Callable[[Path], None]) -> None:
    stage.declare()
    fix = stage.patches / "fix"
    places = {
        "the folder": stage.patches,
        "a set": fix,
        "a manifest": fix / "patchset.toml",
        "a diff": fix / "one.patch",
        "patchkit.toml": stage.patches / "patchkit.toml",
    }
    if what == "patchkit.toml":
        put(places[what], b"select = []\n")
    closed(places[what])
    said = as_another(stage, "apply").expect(3)
    assert str(places[what]) in said.err and "Permission denied" in said.err
    assert not (stage.site / ".patchkit").exists()


def test_commands_that_need_no_patch_folder_warn_of_one_that_may_not_be_read(
    stage: Stage, closed: Callable[[Path], None]
) -> None:
    stage.run("apply").expect(0)
    closed(stage.patches)
    for command in ("verify", "status"):
        said = as_another(stage, command).expect(0)
        assert "warning: " in said.err and str(stage.patches) in said.err


@pytest.mark.parametrize("what", ["the root", "the folder of the file"])
def test_a_site_root_that_is_not_writable_is_told_before_anything_is_written(
    what: str, stage: Stage, closed: Callable[..., None]
) -> None:
    if os.geteuid() == 0:
        if what == "the folder of the file":
            stage.site.chmod(0o777)
    else:
        closed(stage.site if what == "the root" else stage.site / "some_dist", 0o555)
    before = stage.tree()
    said = as_another(stage, "apply").expect(4)
    place = stage.site if what == "the root" else stage.site / "some_dist"
    assert f"{place} is not writable" in said.err and "hint: run as a user who may write there" in said.err
    assert stage.tree() == before


def test_a_file_whose_owner_would_be_lost_is_told_before_anything_is_written(stage: Stage) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for folder in (stage.site, stage.site / "some_dist"):
        folder.chmod(0o777)
    before = stage.tree()
    said = as_another(stage, "apply").expect(4)
    assert f"{stage.site / MOD} belongs to 0:0" in said.err
    assert stage.tree() == before


def test_readers_need_no_permission_to_write(stage: Stage) -> None:
    stage.run("apply").expect(0)
    before = stage.tree()
    for command in (["check"], ["apply"], ["verify"], ["status", "--exit-code"]):
        as_another(stage, *command).expect(0)
    assert as_another(stage, "revert", "--all").exit_code == 4
    assert stage.tree() == before


def test_an_installed_file_that_may_not_be_read_is_told(stage: Stage, closed: Callable[[Path], None]) -> None:
    closed(stage.site / MOD)
    said = as_another(stage, "apply")
    assert said.exit_code in (4, 5) and str(stage.site / MOD) in said.err


def test_a_folder_of_a_work_folder_that_may_not_be_listed_is_not_taken_for_deleted_files(
    stage: Stage, closed: Callable[[Path], None]
) -> None:
    work = stage.folder / "work"
    stage.run("edit", "some-dist", "--into", work).expect(0)
    put(work / "some_dist" / "new.py", b"new = 1\n")
    put(work / "some_dist" / "inner" / "other.py", b"other = 1\n")
    stage.run("commit", work, "--patch", "two", "--dry-run").expect(0)
    closed(work / "some_dist" / "inner")
    before = tree(stage.patches)
    said = as_another(stage, "commit", str(work), "--patch", "two", "--dry-run").expect(4)
    assert f"{work / 'some_dist' / 'inner'} cannot be listed" in said.err
    assert tree(stage.patches) == before


def test_a_new_folder_that_may_not_be_listed_is_not_left_out_of_a_capture(
    stage: Stage, closed: Callable[[Path], None]
) -> None:
    put(stage.site / "some_dist" / "inner" / "other.py", b"other = 1\n")
    stage.run("capture", "some-dist", "--dry-run").expect(0)
    closed(stage.site / "some_dist" / "inner")
    said = as_another(stage, "capture", "some-dist", "--dry-run").expect(4)
    assert f"{stage.site / 'some_dist' / 'inner'} cannot be listed" in said.err


# ---- transactions of others -----------------------------------------------------------------------------------


def test_a_transaction_that_was_interrupted_elsewhere_is_told_and_undone(stage: Stage) -> None:
    before = interrupt(stage)
    elsewhere = shutil.move(stage.site, stage.folder / "another machine")
    shutil.copytree(elsewhere, stage.site, symlinks=True)  # other inodes, and nobody holds a lock
    half = stage.tree()
    for command in (["check"], ["verify"], ["apply", "--dry-run"], ["revert", "--all", "--dry-run"]):
        said = stage.run(*command).expect(8)
        assert f"{stage.site}/.patchkit/journal.json" in said.err and "patchkit recover" in said.err
    said = stage.run("status").expect(0)
    assert "a transaction was interrupted here: run `patchkit recover`" in said.err
    stage.run("status", "--exit-code").expect(1)
    assert stage.tree() == half
    said = stage.run("recover").expect(0)
    assert "undid an interrupted transaction" in said.out
    assert stage.tree() == before
    assert "nothing to recover" in stage.run("recover").expect(0).out


@pytest.mark.parametrize("command", [["apply"], ["revert", "--all"]])
def test_the_next_command_that_writes_undoes_it_first(command: list[str], stage: Stage) -> None:
    before = interrupt(stage)
    said = stage.run(*command).expect(0)
    assert "an interrupted transaction was found and undone" in said.err
    if command == ["apply"]:
        assert b"five" in stage.read()
        stage.run("revert", "--all").expect(0)
    assert stage.tree() == before


def test_an_edit_since_then_is_not_overwritten(stage: Stage) -> None:
    interrupt(stage)
    stage.write(MOD, b"edited since\n")
    before = stage.tree()
    for command in (["recover"], ["apply"], ["revert", "--all"]):
        said = stage.run(*command).expect(8)
        assert f"{stage.site}/{MOD}" in said.err and f"{stage.site}/.patchkit/objects" in said.err
        assert "move it away" in said.err
    assert {path: entry for path, entry in stage.tree().items() if "/lock" not in path} == {
        path: entry for path, entry in before.items() if "/lock" not in path
    }
    (stage.site / MOD).unlink()
    stage.run("recover").expect(0)
    assert b"five" not in stage.read() and b"line_5 = 5" in stage.read()


@pytest.mark.parametrize("data", [b"", b"{", b"null", b'{"format": 1}', b'{"format": 0}', b"\xff\x00"])
def test_a_damaged_journal_is_told_and_left(data: bytes, stage: Stage) -> None:
    interrupt(stage)
    put(stage.site / ".patchkit" / "journal.json", data)
    before = stage.tree()
    for command in (["recover"], ["apply"], ["check"]):
        assert f"{stage.site}/.patchkit/journal.json" in stage.run(*command).expect(8).err
    assert stage.tree() == before


def test_a_journal_of_a_newer_patchkit_is_left(stage: Stage) -> None:
    interrupt(stage)
    put(stage.site / ".patchkit" / "journal.json", b'{"format": 99}')
    before = stage.tree()
    for command in (["recover"], ["apply"]):
        assert "format 99" in stage.run(*command).expect(4).err
    assert stage.tree() == before


def test_a_journal_that_leads_out_of_the_site_root_is_not_followed(stage: Stage) -> None:
    interrupt(stage)
    journal = stage.site / ".patchkit" / "journal.json"
    secret = put(stage.folder / "secret.py", stage.read())
    for path in ("../secret.py", str(secret), "some_dist/../../secret.py", ".patchkit/ledger.json"):
        put(stage.folder / "kept.json", journal.read_bytes())
        put(journal, journal.read_bytes().replace(f'"{MOD}"'.encode(), f'"{path}"'.encode()))
        stage.run("recover").expect(8)
        shutil.move(stage.folder / "kept.json", journal)
    assert b"five" in secret.read_bytes()


def test_writers_wait_for_the_lock_and_then_give_up(stage: Stage) -> None:
    with held(stage):
        before = stage.tree()
        begun = time.monotonic()
        said = stage.run("apply", "--lock-timeout", "0.4").expect(6)
        assert 0.4 <= time.monotonic() - begun < 5
        assert f"another patchkit holds {stage.site}/.patchkit/lock (waited 0.4 s)" in said.err
        assert "--lock-timeout SECONDS" in said.err
        assert stage.tree() == before
        stage.run("check").expect(0)
        stage.run("status").expect(0)
    stage.run("apply", "--lock-timeout", "0").expect(0)
    with held(stage):
        stage.run("apply", "--lock-timeout", "0").expect(0)  # there is nothing to write
        stage.run("verify").expect(0)
        stage.run("revert", "--all", "--lock-timeout", "0").expect(6)


def test_a_writer_that_waits_gets_its_turn(stage: Stage) -> None:
    with held(stage) as holder:
        words = words_of(stage, "apply", "--lock-timeout", "30")
        with subprocess.Popen(words, cwd=stage.folder, stdout=subprocess.PIPE, text=True) as waiting:
            time.sleep(0.8)
            assert waiting.poll() is None and b"five" not in stage.read()
            holder.kill()
            assert waiting.wait(30) == 0
    assert b"five" in stage.read()


def test_readers_wait_for_a_transaction_under_way_and_then_give_up(stage: Stage) -> None:
    interrupt(stage)
    with held(stage) as holder:
        before = stage.tree()
        readers = [
            subprocess.Popen(
                words_of(stage, command),
                cwd=stage.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for command in ("check", "status")
        ]
        for reader in readers:
            _, err = reader.communicate(timeout=60)
            assert reader.returncode == 6
            assert f"another patchkit is writing to {stage.site}" in err and "try again" in err
        assert stage.tree() == before
        assert holder.poll() is None


def test_a_reader_that_waits_reads_what_comes_after(stage: Stage) -> None:
    stage.run("apply").expect(0)
    put(stage.site / ".patchkit" / "journal.json", b"under way")
    with held(stage) as holder:
        words = words_of(stage, "verify")
        with subprocess.Popen(words, cwd=stage.folder, stdout=subprocess.PIPE, text=True) as waiting:
            time.sleep(0.8)
            assert waiting.poll() is None
            assert holder.stdin is not None
            print("go", file=holder.stdin, flush=True)
            out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0 and "1 verified" in out
