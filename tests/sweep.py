"""A program: changes of real releases held against git, distribution by distribution.

    python tests/sweep.py [DISTRIBUTION ...] [--count 60] [--seed 1]

For each distribution its releases are unpacked, and

- `coverage`: what a release changed in a file, the whole of it and one hunk of it, is a patch; on every release the
  table must say that it fits where `git apply --check` takes it, and that it is upstream only where git takes it back;
- `rebase`: a change made at random to a file of one release is brought to a later one; where the result is clean it
  must be, byte for byte, what `git merge-file` gives of the three texts, where git merges them at all;
- `import`: an upstream change in the folders of a repository, beside a test that no wheel has, as a mail now and then,
  is imported on a release; where it is, the files after `apply` must be those that `git apply` gives, and where it is
  not, git must refuse it too, or take it back, or what comes out is no Python.

Prints the figures of docs/measurements/releases.md; every disagreement is told, and ends in exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from worlds import clean_environment, find_wheel, patchkit_command

RELEASES = {
    "attrs": "22.1.0 22.2.0 23.1.0 23.2.0 24.1.0 24.2.0 24.3.0 25.1.0 25.2.0 25.3.0",
    "compressed-tensors": "0.6.0 0.7.0 0.8.0 0.8.1 0.9.0 0.9.1 0.9.2 0.9.3 0.9.4",
    "httpx": "0.23.0 0.23.1 0.23.2 0.23.3 0.24.0 0.24.1 0.25.0 0.25.1 0.25.2 0.26.0",
    "requests": "2.28.0 2.28.1 2.28.2 2.29.0 2.30.0 2.31.0 2.32.0 2.32.2 2.32.3 2.32.4",
    "rich": "13.0.0 13.1.0 13.2.0 13.3.1 13.4.0 13.5.0 13.6.0 13.7.0 13.8.0 13.9.1",
    "starlette": "0.27.0 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0 0.34.0 0.36.0 0.37.0 0.38.0",
    "urllib3": "1.26.12 1.26.15 1.26.18 2.0.0 2.0.4 2.1.0 2.2.0 2.2.2 2.3.0 2.4.0",
}
LAYOUTS = ("", "src/", "python/", "lib/x/")
NO_WHEEL_HAS_IT = "".join(
    f"{line}\n"
    for line in (
        "diff --git a/tests/test_it.py b/tests/test_it.py",
        "--- a/tests/test_it.py",
        "+++ b/tests/test_it.py",
        "@@ -1 +1,2 @@",
        " x = 1",
        "+y = 2",
    )
)
MAIL = "From {0:040x} Mon Sep 17 00:00:00 2001\nFrom: A <a@b.invalid>\nSubject: [PATCH] Mend it\n\nBody.\n---\n\n"


@dataclass
class Sweep:
    """One distribution's releases, unpacked below ``folder``; ``figures`` by command and what was said."""

    distribution: str
    versions: tuple[str, ...]
    folder: Path
    random: random.Random
    figures: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wheels.mkdir(parents=True)
        for version in self.versions:
            wheel = find_wheel(self.distribution, version)
            shutil.copy(wheel, self.wheels)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(self.at(version))

    @property
    def wheels(self) -> Path:
        return self.folder / "wheels"

    def at(self, version: str) -> Path:
        return self.folder / "unpacked" / version

    def git(self, *args: str | Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
        environment = {**clean_environment(), "GIT_CEILING_DIRECTORIES": str(self.folder)}
        return subprocess.run(["git", *args], cwd=cwd, env=environment, capture_output=True, check=False)

    def takes(self, version: str, diff: Path) -> bool:
        """Whether git would apply a diff to a release."""
        return self.git("apply", "--check", diff, cwd=self.at(version)).returncode == 0

    def takes_back(self, version: str, diff: Path) -> bool:
        """Whether git would take it back, also where other lines are above a hunk that began at the first line."""
        return self.git("apply", "--check", "-R", "--unidiff-zero", diff, cwd=self.at(version)).returncode == 0

    def patchkit(self, *args: str | Path, cwd: Path) -> Any:
        """The document of a command that ended by itself."""
        words = [*patchkit_command(), *args, "--json"]
        done = subprocess.run(words, cwd=cwd, env=clean_environment(), capture_output=True, check=False)
        return json.loads(done.stdout)

    def count(self, command: str, word: str) -> None:
        self.figures.setdefault(command, Counter())[word] += 1

    def differ(self, words: str) -> None:
        self.wrong.append(f"{self.distribution}: {words}")

    # ---- coverage ---------------------------------------------------------------------------------------------

    def changed_files(self, old: str, new: str) -> list[str]:
        paths = [path.relative_to(self.at(old)).as_posix() for path in sorted(self.at(old).rglob("*.py"))]
        there = [path for path in paths if (self.at(new) / path).exists()]
        return [path for path in there if (self.at(old) / path).read_bytes() != (self.at(new) / path).read_bytes()]

    def upstream_changes(self) -> Iterator[bytes]:
        """Diffs of single files between neighbours, whole and a hunk of each."""
        for old, new in zip(self.versions, self.versions[1:], strict=False):
            files = self.changed_files(old, new)
            for path in self.random.sample(files, min(3, len(files))):
                diff = self.difference(self.at(old) / path, self.at(new) / path, path)
                if diff.count(b"\n") <= 400:
                    yield diff
                    head, *hunks = diff.split(b"\n@@ ")
                    if len(hunks) > 1:
                        yield b"\n@@ ".join([head, self.random.choice(hunks).rstrip(b"\n") + b"\n"])

    def difference(self, old: Path, new: Path, path: str) -> bytes:
        """git's diff of two files, as that of one file at ``path``."""
        diff = self.git("diff", "--no-index", "--no-renames", old, new, cwd=self.folder).stdout
        head, at, hunks = diff.partition(b"\n@@ ")
        return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}".encode() + at + hunks if head else b""

    def coverage(self) -> None:
        """Every change on every release."""
        folder = self.folder / "coverage"
        diffs = list(self.upstream_changes())
        write_set(folder, self.distribution, diffs, ">=0")
        document = self.patchkit("coverage", "s", "--find-links", self.wheels, cwd=folder)
        for release in document["releases"]:
            for cell in release["patches"]:
                version, word = release["version"], cell["result"]
                diff = folder / "patches" / "s" / f"{cell['patch'].rpartition('/')[2]}.patch"
                forward, backward = self.takes(version, diff), self.takes_back(version, diff)
                self.count("coverage", f"{word}, git: {'fits' if forward else 'there' if backward else 'no'}")
                if (word in ("fits", "offset")) != forward or (word == "upstreamed" and not backward):
                    self.differ(f"coverage of {diff} on {version}: {word}, git {forward} {backward}")

    # ---- rebase -----------------------------------------------------------------------------------------------

    def edited(self, text: bytes, number: int) -> bytes:
        """``text`` after one to four changes of lines."""
        lines = text.splitlines(keepends=True)
        for edit in range(self.random.randint(1, 4)):
            at, kind = self.random.randrange(len(lines)), self.random.random()
            comment = f"# mine {number} {edit}\n".encode()
            if kind < 0.4:
                lines[at:at] = [comment] * self.random.randint(1, 3)
            elif kind < 0.7:
                lines[at] = lines[at].rstrip(b"\n") + b"  " + comment
            else:
                lines[at : at + self.random.randint(1, 3)] = [comment] if kind < 0.85 else []
        return b"".join(lines)

    def rebase(self, number: int) -> None:
        """One change at random, from a release to a later one."""
        at = self.random.randrange(len(self.versions) - 1)
        old, new = self.versions[at], self.random.choice(self.versions[at + 1 :])
        files = [path for path in self.changed_files(old, new) if (self.at(old) / path).stat().st_size > 400]
        if not files:
            return
        path, folder = self.random.choice(files), self.folder / f"rebase-{number}"
        base, theirs = self.at(old) / path, self.at(new) / path
        mine = folder / "mine"
        folder.mkdir()
        mine.write_bytes(self.edited(base.read_bytes(), number))
        write_set(folder, self.distribution, [self.difference(base, mine, path)], f"=={old}")
        document = self.patchkit("rebase", "s", "--to", new, "--find-links", self.wheels, cwd=folder)
        row = document["patches"][0]
        merged = self.git("merge-file", "-p", mine, base, theirs, cwd=folder)
        self.count("rebase", f"{row['result']}, git: {'merges' if merged.returncode == 0 else 'conflict'}")
        if row["result"] == "clean":
            shutil.copytree(self.at(new), folder / "new")
            made = folder / "patches" / "s" / row["variant"]
            applied = self.git("apply", made, cwd=folder / "new").returncode == 0
            if not applied or (merged.returncode == 0 and (folder / "new" / path).read_bytes() != merged.stdout):
                self.differ(f"rebase of {made} from {old} to {new}")

    # ---- import -----------------------------------------------------------------------------------------------

    def import_(self, number: int) -> None:
        """One upstream change as a commit of a repository, on a release at random."""
        diff = self.random.choice(sorted((self.folder / "coverage" / "patches" / "s").glob("*.patch")))
        version, layout = self.random.choice(self.versions), self.random.choice(LAYOUTS)
        text = diff.read_text("utf-8")
        for side in ("a/", "b/"):
            text = text.replace(f" {side}", f" {side}{layout}", 2)
        commit = f"{text}{NO_WHEEL_HAS_IT}"
        if self.random.random() < 0.5:
            commit = f"{MAIL.format(number)}{commit}-- \n2.39.5\n\n"
        folder = self.folder / f"import-{number}"
        (folder / "patches").mkdir(parents=True)
        for name in ("ours", "gits"):
            shutil.copytree(self.at(version), folder / name)
        (folder / "commit").write_text(commit, "utf-8")
        site = ("--site-packages", folder / "ours")
        document = self.patchkit("import", "commit", "--distribution", self.distribution, *site, cwd=folder)
        forward, backward = self.takes(version, diff), self.takes_back(version, diff)
        made = any((folder / "patches").rglob("*.patch"))
        broken = document.get("error", {}).get("code") == "check-failed"  # a hunk alone may leave half of a statement
        word = "imported" if made else "not Python" if broken else "refused" if document["exit_code"] else "upstreamed"
        self.count("import", f"{word}, git: {'fits' if forward else 'there' if backward else 'no'}")
        if made:
            self.patchkit("apply", *site, cwd=folder)
            self.git("apply", diff, cwd=folder / "gits")
        if (made or broken) != forward or (made and code_below(folder / "ours") != code_below(folder / "gits")):
            self.differ(f"import of {folder / 'commit'} on {version}: {word}, git {forward} {backward}")


def code_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.py")}


def write_set(folder: Path, distribution: str, diffs: list[bytes], versions: str) -> None:
    """A patch set ``s`` with a patch a diff, each for ``versions``."""
    where = folder / "patches" / "s"
    where.mkdir(parents=True)
    lines = ["schema = 1", 'name = "s"', f'distribution = "{distribution}"']
    for number, diff in enumerate(diffs):
        (where / f"p{number}.patch").write_bytes(diff)
        lines += ["", "[[patch]]", f'name = "p{number}"', "[[patch.variant]]"]
        lines += [f'versions = "{versions}"', f'file = "p{number}.patch"']
    (where / "patchset.toml").write_text("\n".join(lines) + "\n", "utf-8")


def sweep(distribution: str, versions: tuple[str, ...], *, count: int, seed: int, folder: Path) -> Sweep:
    """All three, ``count`` times what is made at random."""
    found = Sweep(distribution, versions, folder, random.Random(f"{seed} {distribution}"))
    found.coverage()
    for number in range(count):
        found.rebase(number)
        found.import_(number)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("distributions", nargs="*", default=sorted(RELEASES))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    figures: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for name in args.distributions:
        with TemporaryDirectory() as folder:
            done = sweep(name, tuple(RELEASES[name].split()), count=args.count, seed=args.seed, folder=Path(folder))
        for command, counted in done.figures.items():
            figures.setdefault(command, Counter()).update(counted)
        wrong += done.wrong
        print(f"{name}: {sum(sum(each.values()) for each in done.figures.values())} answers", file=sys.stderr)
    for command, counted in figures.items():
        print(f"\n| {command} | answers |\n| --- | --- |")
        for word, number in sorted(counted.items()):
            print(f"| {word} | {number} |")
    print("\n".join(["", *wrong] if wrong else ["", "no disagreement"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main())
