"""All or nothing: killed, without power, or failing at every single deed of a transaction, of its undo, its clean-up.

After each of these ends, one `recover` must bring the tree to exactly what it was before or exactly what it was to
become, with nothing left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from mortal import TEARABLE, CountingDisk, FailingDisk, Fate, Killed, MortalDisk, QuickDisk
from patchkit.disk import Disk
from patchkit.errors import CheckFailed, Interrupted, NotWritable, RolledBack
from patchkit.installed import Content
from patchkit.model import Plan
from patchkit.transaction import Recovery, execute, locked, recover
from plans import make_plan, write
from worlds import Entry, tree, without_bytecode

PLAIN = 0o644
SHIPPED = {
    "pkg/mod.py": (b"old\n", PLAIN),
    "pkg/tool.py": (b"tool\n", PLAIN),
    "pkg/gone.py": (b"gone\n", 0o640),
    "pkg-1.dist-info/RECORD": (b"pkg/mod.py,,\n", PLAIN),
}
PATCHED = {
    "pkg/mod.py": Content(b"new\n", PLAIN),
    "pkg/deep/er/made.py": Content(b"made\n", 0o755),
    "pkg/gone.py": None,
    "pkg/tool.py": Content(b"tool\n", 0o755),
    "pkg/link.py": Content(b"private\n", PLAIN),
    "pkg-1.dist-info/RECORD": Content(b"pkg/mod.py,,\npkg/deep/er/made.py,,\n", PLAIN),
}
MADE = ("pkg/deep", "pkg/deep/er")


def pass_check() -> None:
    pass


def fail_check() -> None:
    raise CheckFailed("the check")


@dataclass(frozen=True)
class Scenario:
    """A tree, and the transaction that dies in it; ``after`` is what becomes of the tree if it does not."""

    template: Path
    plan: Callable[[Path], Plan]
    check: Callable[[], None]
    before: dict[str, Entry]
    after: dict[str, Entry]
    deeds: tuple[str, ...]

    def fresh(self, root: Path) -> Path:
        """The tree as it was, new."""
        return copy(self.template, root)

    def run(self, root: Path, disk: Disk) -> None:
        """The transaction, on a fresh tree."""
        plan = self.plan(self.fresh(root))
        with locked(root, timeout=0, disk=disk) as lock:
            execute(lock, plan, before_commit=self.check)

    def assert_whole(self, root: Path, found: Recovery) -> None:
        """The tree is as before or as after, as `recover` says, without bytecode of a source that was replaced."""
        now = without_bytecode(tree(root))
        expected = {Recovery.UNDONE: [self.before], Recovery.FINISHED: [self.after]}
        assert now in expected.get(found, [self.before, self.after])
        for compiled in root.glob("pkg/__pycache__/*.pyc"):
            source = root / "pkg" / f"{compiled.name.partition('.')[0]}.py"
            assert source.stat().st_mtime == 1_000_000_000


def copy(template: Path, root: Path) -> Path:
    """The same tree at ``root``, each file a hard link: whoever wrote in place would change the template."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(template, root, symlinks=True, copy_function=os.link)
    return root


def lay_out(root: Path) -> None:
    """What the distribution shipped, with a file that is a link into a cache, and compiled files."""
    for path, (data, mode) in SHIPPED.items():
        write(root / path, data, mode)
    write(root.parent / "cache/link.py", b"shared\n")
    (root / "pkg/link.py").symlink_to("../../cache/link.py")
    for stem in ("mod", "gone"):
        write(root / f"pkg/__pycache__/{stem}.cpython-311.pyc", b"code")
    age(root)


def age(root: Path) -> None:
    for source in root.glob("pkg/*.py"):
        os.utime(source, (1_000_000_000, 1_000_000_000))


def plan_apply(root: Path) -> Plan:
    return make_plan(root, PATCHED, make=MADE)


def plan_update(root: Path) -> Plan:
    wanted = {
        "pkg/mod.py": Content(b"newer\n", PLAIN),
        "pkg/deep/er/made.py": None,
        "pkg/gone.py": Content(b"b", PLAIN),
    }
    return make_plan(root, wanted, ledger=b"a second ledger\n", drop=MADE)


def plan_revert(root: Path) -> Plan:
    shipped = {path: Content(*SHIPPED[path]) if path in SHIPPED else None for path in PATCHED}
    shipped["pkg/link.py"] = Content(b"shared\n", PLAIN)
    return make_plan(root, shipped, ledger=None, drop=MADE)


def act(root: Path, plan: Plan, disk: Disk, check: Callable[[], None] = pass_check) -> None:
    with locked(root, timeout=0, disk=disk) as lock:
        execute(lock, plan, before_commit=check)


@pytest.fixture(scope="module", params=["apply", "update", "revert", "rollback", "rollback of an update"])
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    folder = tmp_path_factory.mktemp("scenario")
    template, trial = folder / "template", folder / "trial"
    lay_out(template)
    if request.param not in ("apply", "rollback"):
        act(template, plan_apply(template), QuickDisk())
        write(template / "pkg/__pycache__/mod.cpython-311.pyc", b"code")
        age(template)
    plan = {"update": plan_update, "revert": plan_revert, "rollback of an update": plan_update}.get(
        request.param, plan_apply
    )
    check = fail_check if request.param.startswith("rollback") else pass_check
    before = without_bytecode(tree(template))
    copy(template, trial)
    counter = CountingDisk()
    try:
        act(trial, plan(trial), counter, check)
    except CheckFailed:
        assert without_bytecode(tree(trial)) == before
    scenario = Scenario(template, plan, check, before, without_bytecode(tree(trial)), tuple(counter.deeds))
    yield scenario
    assert without_bytecode(tree(template)) == before


@pytest.fixture
def root(scenario: Scenario) -> Path:
    return scenario.template.parent / "site-packages"


def ends(scenario: Scenario, root: Path, fate: Fate, *, step: int = 1) -> Iterator[int]:
    """Let the transaction end by ``fate`` at each deed; yields the number of the deed behind each end."""
    for life in range(1, len(scenario.deeds) + 1, step):
        if fate is Fate.TORN and scenario.deeds[life - 1] not in TEARABLE:
            continue
        with pytest.raises(Killed):
            scenario.run(root, MortalDisk(life, fate))
        yield life


def recover_on(root: Path, disk: Disk) -> Recovery:
    with locked(root, timeout=0, disk=disk) as lock:
        return recover(lock)


# What the other power cuts find is open for several deeds on end: every second or third meets it.
STEPS = {Fate.POWER: 3, Fate.POWER_STATE: 2, Fate.POWER_TARGETS: 2}


@pytest.mark.parametrize("fate", Fate)
def test_an_end_at_any_deed_leaves_all_or_nothing(scenario: Scenario, root: Path, fate: Fate) -> None:
    for _ in ends(scenario, root, fate, step=STEPS.get(fate, 1)):
        scenario.assert_whole(root, recover_on(root, QuickDisk()))


@pytest.mark.parametrize(("fate", "step"), [(Fate.KILLED, 10), (Fate.TORN, 25), (Fate.POWER_ALL, 15)])
def test_an_end_in_the_middle_of_a_recovery_leaves_all_or_nothing(
    scenario: Scenario, root: Path, fate: Fate, step: int
) -> None:
    wreck = root.parent / "wreck"
    for end in ends(scenario, root, Fate.KILLED, step=step):
        shutil.rmtree(wreck, ignore_errors=True)
        root.rename(wreck)
        for life in range(1 + end % 2, 1000, 2):
            try:
                recover_on(copy(wreck, root), MortalDisk(life, fate))
                break
            except Killed:
                scenario.assert_whole(root, recover_on(root, QuickDisk()))


@pytest.mark.parametrize("fate", [Fate.POWER, Fate.POWER_ALL, Fate.POWER_LAST])
def test_what_is_done_is_on_the_disk(scenario: Scenario, root: Path, fate: Fate) -> None:
    disk = MortalDisk(0, fate)
    with suppress(CheckFailed):
        scenario.run(root, disk)
    disk.cut_power()
    assert not (root / ".patchkit/journal.json").exists()
    assert targets(tree(root)) == targets(scenario.after)


@pytest.mark.parametrize(("forever", "step"), [(False, 1), (True, 3)])
def test_an_error_at_any_deed_leaves_all_or_nothing(scenario: Scenario, root: Path, forever: bool, step: int) -> None:
    told = set()
    for bad in range(1, len(scenario.deeds) + 1, step):
        error = fail_at(scenario, root, FailingDisk(bad, forever=forever))
        told.add(type(error))
        if isinstance(error, (NotWritable, RolledBack)):
            assert targets(tree(root)) == targets(scenario.before)
        if error is None:
            assert targets(tree(root)) == targets(scenario.after)
        scenario.assert_whole(root, recover_on(root, QuickDisk()))
    assert {NotWritable, RolledBack} & told


def fail_at(scenario: Scenario, root: Path, disk: Disk) -> Exception | None:
    try:
        scenario.run(root, disk)
    except (NotWritable, RolledBack, Interrupted) as error:
        return error
    return None


def targets(entries: dict[str, Entry]) -> dict[str, Entry]:
    """All but the state folder and compiled files."""
    return {path: entry for path, entry in without_bytecode(entries).items() if not path.startswith(".patchkit")}


class SignallingDisk(CountingDisk):
    """Ctrl-C comes before the deed number ``life`` (from 1), and again before the next."""

    def __init__(self, life: int) -> None:
        super().__init__()
        self.life = life

    def begin(self, deed: str, arguments: tuple[object, ...]) -> None:
        super().begin(deed, arguments)
        if len(self.deeds) in (self.life, self.life + 1):
            signal.raise_signal(signal.SIGINT)


def test_a_ctrl_c_at_any_deed_leaves_all_or_nothing_and_no_recovery_to_do(scenario: Scenario, root: Path) -> None:
    for life in range(1, len(scenario.deeds) + 1, 3):
        with pytest.raises(KeyboardInterrupt):
            scenario.run(root, SignallingDisk(life))
        assert without_bytecode(tree(root)) in (scenario.before, scenario.after)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_ctrl_c_does_not_stop_a_recovery_half_way(scenario: Scenario, root: Path) -> None:
    for end in ends(scenario, root, Fate.KILLED, step=7):
        with suppress(KeyboardInterrupt):
            recover_on(root, SignallingDisk(1 + end % 20))
        assert not (root / ".patchkit/journal.json").exists()
        assert without_bytecode(tree(root)) in (scenario.before, scenario.after)


class SuicidalDisk(CountingDisk):
    """Kills its own process."""

    def __init__(self, life: int) -> None:
        super().__init__()
        self.life = life

    def begin(self, deed: str, arguments: tuple[object, ...]) -> None:
        super().begin(deed, arguments)
        if len(self.deeds) == self.life:
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_really_killed_holds_no_lock_and_is_undone_or_finished(
    scenario: Scenario, root: Path
) -> None:
    for life in range(2, len(scenario.deeds), 9):
        plan = scenario.plan(scenario.fresh(root))
        process = os.fork()
        if process == 0:
            act(root, plan, SuicidalDisk(life), scenario.check)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
        scenario.assert_whole(root, recover_on(root, Disk()))


def test_a_folder_that_somebody_cleared_away_comes_back_with_its_last_file(tmp_path: Path) -> None:
    """A sweep of empty folders between the kill and the recovery takes nothing that the undo cannot make anew."""
    template, root = tmp_path / "template", tmp_path / "site-packages"
    write(template / "pkg/mod.py", b"old\n")
    write(template / "pkg/sub/only.py", b"only\n", 0o640)
    before = tree(template)
    wanted = {"pkg/sub/only.py": None, "pkg/mod.py": Content(b"new\n", PLAIN)}
    counter = CountingDisk()
    act(copy(template, root), make_plan(root, wanted), counter)
    cleared = 0
    for life in range(1, len(counter.deeds) + 1):
        plan = make_plan(copy(template, root), wanted)
        with pytest.raises(Killed):
            act(root, plan, MortalDisk(life, Fate.KILLED))
        with suppress(OSError):
            (root / "pkg/sub").rmdir()
            cleared += 1
        recover_on(root, QuickDisk())
        is_done = (root / "pkg/mod.py").read_bytes() == b"new\n"
        assert is_done or tree(root) == before
        assert is_done != (root / "pkg/sub/only.py").exists()
    assert cleared
