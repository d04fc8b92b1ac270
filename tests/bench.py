"""What `make bench` measures: patchkit beside the tools that people compare it with, in one run, as whole processes.

Every comparison is paired: in each round all commands of a group run one after another, each in a tree of its own that
was prepared before the clock started, and the ratio is taken within the round. What is told is the median. Nothing
here is a test: the numbers go into docs/measurements/speed.md, with the machine that gave them.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from worlds import CHECKOUT, find_wheel, make_wheel, unpack_site

PAGE = CHECKOUT / "docs" / "measurements" / "speed.md"
RELEASE = "0.7.4"
FILES, HUNKS, LINES = 1000, 11, 400
QUICK, SLOW = 25, 5
"""Rounds: of commands that take less than a second, and of those that take longer."""

# Bytecode is there, as it is wherever patchkit was installed; a developer's own variables do not count.
VARIABLES = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PATCHKIT_", "PYTHON", "VIRTUAL_ENV", "CONDA_", "GIT_"))
}
VARIABLES |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
Words = Sequence[str | os.PathLike[str]]


# ---- one run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Of one process and its children: wall clock and processor, in ms; the largest resident set, in MiB."""

    wall: float
    cpu: float
    memory: float


@dataclass
class Runner:
    """A command with what has to be prepared before each run, and what it cost."""

    name: str
    words: Words
    cwd: Path
    prepare: Callable[[], object] = lambda: None
    expected: int = 0
    costs: list[Cost] = field(default_factory=list)

    def run(self) -> None:
        self.prepare()
        with open(os.devnull, "r+b") as null:
            begun = time.perf_counter()
            process = subprocess.Popen(
                list(map(os.fspath, self.words)), cwd=self.cwd, env=VARIABLES, stdin=null, stdout=null, stderr=null
            )
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != self.expected:
            sys.exit(f"{' '.join(map(os.fspath, self.words))} (in {self.cwd}): exit {process.returncode}")
        scale = 1 << 20 if sys.platform == "darwin" else 1 << 10  # getrusage(2): bytes there, KiB here
        self.costs.append(Cost(wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss / scale))

    def wall(self) -> float:
        return median(cost.wall for cost in self.costs)

    def cpu(self) -> float:
        return median(cost.cpu for cost in self.costs)

    def memory(self) -> float:
        return max(cost.memory for cost in self.costs)

    def times(self, other: Runner) -> float:
        """How many times as long as ``other``, in the median of the rounds."""
        return median(own.wall / their.wall for own, their in zip(self.costs, other.costs, strict=True))


def measure(title: str, runners: Sequence[Runner], rounds: int) -> Sequence[Runner]:
    print(f"{title} ...", flush=True)
    for runner in runners:
        runner.run()  # what is read for the first time is read from the disk
        runner.costs.clear()
    for number in range(rounds):
        order = runners if number % 2 else [*reversed(runners)]
        for runner in order:
            runner.run()
    return runners


def table(runners: Sequence[Runner], *bases: Runner) -> Iterator[str]:
    """One row a command; a column for each of ``bases`` says how many times as long as that it took."""
    heads = ["command", "wall, ms", "processor, ms", "memory, MiB", *(f"times `{base.name}`" for base in bases)]
    yield f"| {' | '.join(heads)} |"
    yield f"| --- |{' ---: |' * (len(heads) - 1)}"
    for runner in runners:
        ratios = [f"{runner.times(base):.2f}" for base in bases]
        cells = [f"`{runner.name}`", f"{runner.wall():.0f}", f"{runner.cpu():.0f}", f"{runner.memory():.0f}", *ratios]
        yield f"| {' | '.join(cells)} |"
    yield ""


# ---- worlds ---------------------------------------------------------------------------------------------------


def patchkit(*words: str | os.PathLike[str]) -> Words:
    """The command: the console script where this environment has one."""
    script = Path(sys.executable).with_name("patchkit")
    return (script, *words) if script.exists() else (sys.executable, "-m", "patchkit", *words)


def renew(source: Path, target: Path) -> Callable[[], object]:
    """Put a fresh copy of ``source`` at ``target``, on the disk before the clock starts."""

    def copy() -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)
        os.sync()

    return copy


@dataclass(frozen=True)
class Patched:
    """A distribution of many files and the patch set for it; ``diff`` is the one file that has it all."""

    site: Path
    patches: Path
    diff: Path


def make_patched(folder: Path, **sizes: int | str) -> Patched:
    """`_make_patched` in a process of its own: a process that is started here counts what this one holds as its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(partial(_make_patched, folder, **sizes)).result()


def _make_patched(
    folder: Path, *, files: int = FILES, hunks: int = HUNKS, lines: int = LINES, ending: str = "py"
) -> Patched:
    """``hunks`` changed lines, spread evenly, in each of ``files`` files of ``lines`` lines."""
    before, after = folder / "a", folder / "b"
    step = lines // (hunks + 1)
    contents: dict[str, bytes | str] = {"many/__init__.py": ""}
    for number in range(files):
        name = f"many/part_{number // 50}/file_{number}.{ending}"
        old = [f"value_{number}_{line} = {line}  # as it was shipped\n" for line in range(lines)]
        new = list(old)
        for hunk in range(hunks):
            new[step * (hunk + 1)] = f"value_{number}_{hunk} = 'changed'\n"
        for root, text in ((before, old), (after, new)):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("".join(text))
        contents[name] = "".join(old)
    said = subprocess.run(
        ["git", "diff", "--no-index", "--no-prefix", "a", "b"],
        cwd=folder,
        env=VARIABLES,
        capture_output=True,
        check=False,
    )
    shutil.rmtree(before)
    shutil.rmtree(after)
    wheel = make_wheel(folder, "many", "1.0", contents)
    (folder / "patches").mkdir()
    diff = folder / "patches" / "many==1.0.patch"
    diff.write_bytes(said.stdout)
    return Patched(unpack_site(folder / "site", wheel), folder / "patches", diff)


def run_untimed(words: Words, folder: Path) -> None:
    subprocess.run(words, cwd=folder, env=VARIABLES, check=True, capture_output=True)


def is_there(program: str, package: str) -> bool:
    found = shutil.which(program) is not None
    if not found:
        print(f"note: there is no {program} here, so it is not compared (apt-get install {package})", flush=True)
    return found


# ---- the flagship set -----------------------------------------------------------------------------------------


def measure_flagship(folder: Path) -> Iterator[str]:
    site = unpack_site(folder / "site", find_wheel("flashinfer-python", RELEASE))
    where = ("--patches", CHECKOUT / "patches", "--site-packages")
    run_untimed(patchkit("apply", "--no-checks", *where, site), folder)
    click = Runner("python -c 'import click'", (sys.executable, "-c", "import click"), folder)
    runners = [
        click,
        Runner("patchkit apply", patchkit("apply", "--no-checks", *where, site), folder),
        Runner("patchkit verify --no-checks", patchkit("verify", "--no-checks", *where, site), folder),
        Runner("patchkit status --exit-code", patchkit("status", "--exit-code", *where, site), folder),
        Runner("patchkit status -v", patchkit("status", "-v", *where, site), folder),
        *find_patch_package(folder),
        *find_gnu_patch(folder, site),
    ]
    yield "## Nothing to do: the flagship set"
    yield ""
    yield f"`flashinfer-python` {RELEASE}, two patches, both applied. `status -v` stands for the long way."
    yield ""
    yield from table(measure("flagship, nothing to do", runners, QUICK), click)
    again = Runner(click.name, click.words, folder)
    revert = partial(run_untimed, patchkit("revert", "--all", *where, site), folder)
    first = Runner("patchkit apply, the first", runners[1].words, folder, revert)
    yield "## The first apply of the flagship set"
    yield ""
    yield from table(measure("flagship, first apply", [again, first], QUICK), again)


def find_gnu_patch(folder: Path, site: Path) -> Iterator[Runner]:
    if is_there("patch", "patch"):
        diffs = sorted((CHECKOUT / "patches" / "flashinfer-dynamo").glob("cuda-version-from-torch.0.4.0.patch"))
        yield Runner("patch -R --dry-run (one diff)", ("patch", "-p1", "-R", "--dry-run", "-s", "-i", diffs[0]), site)


def find_patch_package(folder: Path) -> Iterator[Runner]:
    """npm's patch-package on a project whose one patch is applied already, where npm is and its registry answers."""
    if not (is_there("npm", "npm") and is_there("node", "nodejs")):
        return
    project = folder / "npm"
    (project / "patches").mkdir(parents=True)
    (project / "package.json").write_text('{"name": "own", "version": "1.0.0", "license": "MIT"}\n')
    install = ("npm", "install", "--no-audit", "--no-fund", "--silent", "patch-package@8", "left-pad@1.3.0")
    if subprocess.run(install, cwd=project, capture_output=True, check=False, timeout=120).returncode:
        print("note: patch-package cannot be installed from npm's registry here, so it is not compared", flush=True)
        return
    target = project / "node_modules" / "left-pad" / "index.js"
    line = next(line for line in target.read_text().splitlines() if line.strip())
    number = target.read_text().splitlines().index(line) + 1
    following = target.read_text().splitlines()[number : number + 3]
    context = "".join(f" {text}\n" for text in following)
    (project / "patches" / "left-pad+1.3.0.patch").write_text(
        "diff --git a/node_modules/left-pad/index.js b/node_modules/left-pad/index.js\n"
        "--- a/node_modules/left-pad/index.js\n+++ b/node_modules/left-pad/index.js\n"
        f"@@ -{number},4 +{number},4 @@\n-{line}\n+/* Patched. */\n{context}"
    )
    command = ("node", "node_modules/patch-package/index.js")
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    yield Runner("patch-package (npm), applied", command, project)


# ---- a thousand files -----------------------------------------------------------------------------------------


def measure_many(folder: Path) -> Iterator[str]:
    many = make_patched(folder)
    lines, size = many.diff.read_bytes().count(b"\n"), sum(path.stat().st_size for path in many.site.rglob("file_*"))
    yield "## A thousand files"
    yield ""
    yield f"{FILES} files ({size >> 20} MiB) and one diff of {lines:,} lines. Only patchkit syncs what it wrote."
    yield ""
    own, with_git, with_patch = folder / "own", folder / "git", folder / "patch"
    where = ("--patches", many.patches, "--site-packages", own)
    apply = Runner("patchkit apply", patchkit("apply", "--no-checks", *where), folder, renew(many.site, own))
    git = Runner("git apply", ("git", "apply", "-p1", many.diff), with_git, renew(many.site, with_git))
    runners = [apply, git]
    words = ("patch", "-p1", "-s", "-i", many.diff)
    if is_there("patch", "patch"):
        runners.append(Runner("patch", words, with_patch, renew(many.site, with_patch)))
    yield from table(measure("a thousand files, first apply", runners, SLOW), git)
    yield from measure_text(folder / "text")
    check = Runner("git apply --check -R", ("git", "apply", "-p1", "--check", "-R", many.diff), with_git)
    runners = [
        Runner("patchkit apply, nothing to do", patchkit("apply", "--no-checks", *where), folder),
        Runner("patchkit verify --no-checks", patchkit("verify", "--no-checks", *where), folder),
        Runner("patchkit drift", patchkit("drift", *where), folder),
        check,
    ]
    if is_there("patch", "patch"):
        runners.append(Runner("patch -R --dry-run", (*words, "-R", "--dry-run"), with_patch))
    yield from table(measure("a thousand files, nothing to do", runners, SLOW), check)
    done, git_done = folder / "done", folder / "git-done"
    shutil.copytree(own, done, symlinks=True)
    shutil.copytree(with_git, git_done)
    back = Runner("git apply -R", ("git", "apply", "-p1", "-R", many.diff), with_git, renew(git_done, with_git))
    revert = Runner("patchkit revert --all", patchkit("revert", "--all", *where), folder, renew(done, own))
    yield from table(measure("a thousand files, revert", [revert, back], SLOW), back)


def measure_text(folder: Path) -> Iterator[str]:
    """The same where nothing is to be compiled."""
    folder.mkdir()
    many = make_patched(folder, ending="txt")
    own, with_git = folder / "own", folder / "git"
    where = ("--patches", many.patches, "--site-packages", own)
    apply = Runner("patchkit apply, no sources", patchkit("apply", *where), folder, renew(many.site, own))
    git = Runner("git apply", ("git", "apply", "-p1", many.diff), with_git, renew(many.site, with_git))
    yield "patchkit compiles every patched source, to refuse what breaks its syntax. The same as text files:"
    yield ""
    yield from table(measure("a thousand text files, first apply", [apply, git], SLOW), git)


# ---- finding, growing -----------------------------------------------------------------------------------------


def measure_finding(folder: Path) -> Iterator[str]:
    patched = make_patched(folder, files=1, hunks=1, lines=40)
    runners = []
    for count in (1, 100, 1000):
        site = Path(shutil.copytree(patched.site, folder / f"site-{count}"))
        for number in range(count - 1):
            info = site / f"other_{number}-1.{number}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: other-{number}\nVersion: 1.{number}\n")
            (info / "RECORD").write_text(f"other_{number}.py,,\n")
        where = ("--patches", patched.patches, "--site-packages", site)
        run_untimed(patchkit("apply", "--no-checks", *where), folder)
        runners.append(Runner(f"patchkit apply, {count} installed", patchkit("apply", *where), folder))
        runners.append(Runner(f"patchkit check, {count} installed", patchkit("check", *where), folder))
    yield "## Finding one distribution among many"
    yield ""
    yield "`apply` has nothing to do and takes the short way, `check` the long one."
    yield ""
    yield from table(measure("finding", runners, QUICK), runners[0], runners[1])


def measure_growth(folder: Path) -> Iterator[str]:
    yield "## Ten times the work"
    yield ""
    yield "The same on a tenth and on the whole; the ratio holds the start of the process, which does not grow."
    yield ""
    sizes = {"files": ({"files": 100}, {"files": 1000}), "hunks": ({"hunks": 4}, {"hunks": 40})}
    sizes["lines a file"] = ({"files": 100, "lines": 400}, {"files": 100, "lines": 4000})
    for what, pair in sizes.items():
        runners: dict[str, list[Runner]] = {"the first": [], "nothing to do": []}
        for small, size in zip((True, False), pair, strict=True):
            place = folder / f"{what.split()[0]}-{'small' if small else 'large'}"
            place.mkdir()
            patched = make_patched(place, **{"files": 300, "hunks": 4, **size})
            site = place / "own"
            apply = patchkit("apply", "--no-checks", "--patches", patched.patches, "--site-packages", site)
            name = "a tenth" if small else "ten times"
            first = f"apply, the first, {name} the {what}"
            runners["the first"].append(Runner(first, apply, place, renew(patched.site, site)))
            runners["nothing to do"].append(Runner(f"apply, nothing to do, {name} the {what}", apply, place))
        for group in runners.values():
            yield from table(measure(f"growth by {what}", group, SLOW), group[0])


# ---- the page -------------------------------------------------------------------------------------------------


def describe_machine(folder: Path) -> Iterator[str]:
    def ask(*words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\n")[0].strip()

    kind = ask("stat", "-f", "-c", "%T", str(folder)) if sys.platform == "linux" else "?"
    yield "| what | which |"
    yield "| --- | --- |"
    yield f"| Python | {platform.python_implementation()} {platform.python_version()} |"
    yield f"| git | {ask('git', '--version').removeprefix('git version ')} |"
    for program, package in (("patch", "patch"), ("node", "nodejs")):
        if is_there(program, package):
            yield f"| {program} | {ask(program, '--version').removeprefix('GNU patch ')} |"
    yield f"| processors | {os.cpu_count()} |"
    yield f"| file system | {kind} |"
    yield ""


def write_page(folder: Path) -> Iterator[str]:
    yield "# Speed"
    yield ""
    yield "Made by `make bench`: whole processes, medians of paired runs, ratios of the wall clock taken round by"
    yield "round. Memory is the largest resident set. [What a no-op reads](../explanation/no-op.md) says what"
    yield "makes a run short that has nothing to do, and what the first apply spends its time on."
    yield ""
    yield from describe_machine(folder)
    for number, part in enumerate((measure_flagship, measure_many, measure_finding, measure_growth)):
        place = folder / str(number)
        place.mkdir()
        yield from part(place)
        shutil.rmtree(place)


def main() -> None:
    with TemporaryDirectory(prefix="bench-") as folder:
        page = "\n".join(write_page(Path(folder))).rstrip() + "\n"
    PAGE.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
