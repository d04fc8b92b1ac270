"""Sound patch sets, damaged at random: a program that counts how each ends, and a function for a test of a few.

    python tests/mutants.py --count 5000 --seed 1

Each is applied for real. One that is refused must have changed nothing; one that is applied is reverted, and then
nothing may differ from what was shipped. Standard output has a line for each exit code.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from hostile import FIVE, WHOLE, creation_of, renaming
from patchkit.cli import main
from stages import DATA, SHIPPED, TOOL, make_diff, sample_wheel
from worlds import tree, unpack_site

REFUSED = (3, 4, 5, 7)  # 7: it would not compile, and was undone
TOKENS = [
    b"..", b"/", b"/etc/passwd", b"\\", b"\0", b"\xff", b"\r\n", b"\n", b'"', b"-1", b"0", b"999999999", b"1" * 30,
    b"@@ -1 +1 @@\n", b"--- a/x\n+++ b/x\n", b"/dev/null", b"diff --git a/x b/x\n", b"rename to ../x\n",
    b"new file mode 120000\n", b"\\ No newline at end of file\n", b".pth", b".dist-info", b".patchkit/", b"other/m.py",
    b"[[patch]]\n", b"[", b"{", b"=", b"inf", b"nan", b"1979-05-27", b"true", b"''", b'"""', b"\xef\xbb\xbf",
]  # fmt: skip


def sound_diff() -> bytes:
    """A diff of every kind of entry that fits what is shipped."""
    before = {path: SHIPPED[path] for path in (TOOL, DATA)}
    changed = make_diff(before, {TOOL: None, DATA: b"one\n2\nthree\n"})
    return FIVE + changed + creation_of("some_dist/new.py") + renaming(b"some_dist/__init__.py", b"some_dist/start.py")


def damage(data: bytes, chance: random.Random) -> bytes:
    """``data`` after one to four changes of the kinds that people, editors and attackers make."""
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(KINDS)(data, chance)
    return data


def _put_token(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(TOKENS) + data[at:]


def _replace_byte(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    begin = chance.randrange(len(data) + 1)
    return data[:begin] + data[begin + chance.choice([1, 2, 10, 100, 10_000]) :]


def _move_line(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    line = lines[chance.randrange(len(lines))]
    if chance.random() < 0.5:
        lines.remove(line)
    lines.insert(chance.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _change_number(data: bytes, chance: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data
    found = chance.choice(numbers)
    return data[: found.start()] + b"%d" % chance.choice([0, 1, 2, 7, 40, 41, 10**9, 10**30]) + data[found.end() :]


def _swap_path(data: bytes, chance: random.Random) -> bytes:
    paths = re.findall(rb"some_dist/\w+\.\w+", data) or [b"a"]
    others = [*paths, b"../evil.py", b"/evil.py", b"other/mod.py", b"evil.pth", b"some_dist/.."]
    return data.replace(chance.choice(paths), chance.choice(others), chance.choice([1, 2, -1]))


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _put_token, _replace_byte, _cut, _move_line, _change_number, _swap_path,
)  # fmt: skip


def run_all(folder: Path, site: Path, *, count: int, seed: int) -> Counter[str]:
    """Damage and apply ``count`` patch sets: how many of which kind ended how. AssertionError for a wrong end."""
    chance = random.Random(seed)
    diff, ended = sound_diff(), Counter[str]()
    own = folder / "patches" / "fix"
    own.mkdir(parents=True)
    shipped, outside = tree(site), sorted(os.listdir(folder))
    for number in range(count):
        what = chance.choice(["diff", "diff", "manifest"])
        (own / "one.patch").write_bytes(damage(diff, chance) if what == "diff" else diff)
        whole = WHOLE.encode()
        (own / "patchset.toml").write_bytes(damage(whole, chance) if what == "manifest" else whole)
        code, said = run_main("apply", "--no-checks", "--site-packages", str(site), "--patches", str(own.parent))
        case = f"input {number} of seed {seed}: exit {code}\n{said}"
        assert code in (0, *REFUSED) and "Traceback" not in said, case
        if code == 0:
            back, words = run_main("revert", "--all", "--site-packages", str(site))
            assert back == 0, case + words
        assert tree(site) == shipped and sorted(os.listdir(folder)) == outside, case
        ended[f"{what}: exit {code}"] += 1
    return ended


def run_main(*args: str) -> tuple[int, str]:
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(args)
    return code, said.getvalue()


def main_program() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="mutants-") as folder:
        os.environ["HOME"] = folder
        site = unpack_site(Path(folder) / "site", sample_wheel(Path(folder) / "wheels"))
        shutil.rmtree(Path(folder) / "wheels")
        ended = run_all(Path(folder), site, count=options.count, seed=options.seed)
    for end, number in sorted(ended.items()):
        sys.stdout.write(f"{end:20} {number}\n")


if __name__ == "__main__":
    main_program()
