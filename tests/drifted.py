"""An environment in which every cause of drift has been at work: patched, and then changed by pip and by hand."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages import Files, make_diff, patch, put, to_toml
from worlds import Venv, make_venv, make_wheel, patchkit_command, pip, run

SOURCE = b'''"""Calls that may fail are made again, at growing intervals."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

ATTEMPTS = 3
FIRST_PAUSE = 0.5


class GaveUp(Exception):
    """Every attempt failed; the last error is the cause."""


def retry(call: Callable[[], Result], attempts: int = ATTEMPTS) -> Result:
    """What `call` returns, from the first attempt that succeeds."""
    pause = FIRST_PAUSE
    for attempt in range(attempts):
        try:
            return call()
        except OSError as error:
            if attempt == attempts - 1:
                raise GaveUp(f"{attempts} attempts failed") from error
        time.sleep(pause)
        pause *= 2
    raise ValueError("no attempt was asked for")


def describe(attempts: int) -> str:
    """The intervals in words."""
    pauses = [FIRST_PAUSE * 2**number for number in range(attempts - 1)]
    return ", ".join(f"{pause:g} s" for pause in pauses)


def total(attempts: int) -> float:
    """Seconds that are slept where every attempt fails."""
    return sum(FIRST_PAUSE * 2**number for number in range(attempts - 1))
'''
PATCHED = SOURCE.replace(b"FIRST_PAUSE = 0.5\n", b"FIRST_PAUSE = 2.0  # the server bans faster clients\n").replace(
    b"        except OSError as error:\n", b"        except (OSError, EOFError) as error:\n"
)
# Somebody's own change of one of the two places, and a function of theirs.
EDITED = PATCHED.replace(b"FIRST_PAUSE = 2.0", b"FIRST_PAUSE = 10.0").replace(
    b"def total(", b"def never(attempts: int) -> bool:\n    return attempts < 1\n\n\ndef total("
)
# A release in which one hunk fits at another line and the other meets other text.
NEXT = SOURCE.replace(b"import time\n", b"import logging\nimport time\n").replace(
    b"        except OSError as error:\n", b"        except ConnectionError as error:\n            log.info(error)\n"
)
# What somebody may write into a file to be shown: markup, a mention, control characters, bytes that are no text.
HOSTILE = (
    b"</code></td></table><script>alert('owned')</script><img src=x onerror=alert(1)>\n"
    b"```\n</details> | @everyone #1 `code` ]]> &amp; https://evil.example/\n"
    b"\x1b[31mred\x1b[0m \x00\x08\xff\xfe \xe2\x80\xaetxet desrever\xe2\x80\xac \xef\xbf\xbf\r\n" + b"long " * 2000
)
CAUSES = {
    "edited": "edited",
    "hostile": "edited",
    "reinstalled": "reinstalled",
    "upgraded": "upgraded",
    "downgraded": "downgraded",
    "uninstalled": "uninstalled",
    "changed": "patch-changed",
    "removed": "patch-removed",
    "never": "not-applied",
}
"""The sets of the world, each with one patch ``fix`` for the distribution NAME-dist, and what became of it."""


@dataclass(frozen=True)
class World:
    """A virtual environment with a patch folder."""

    venv: Venv
    patches: Path

    def words(self, *args: str | os.PathLike[str]) -> tuple[str, ...]:
        where = ("--site-packages", str(self.venv.site_packages), "--patches", str(self.patches))
        return (*(os.fspath(arg) for arg in args), *where)

    def add(self, name: str, before: bytes, after: bytes, **keys: Any) -> None:
        """A set with one patch of ``NAME_dist/retry.py``."""
        path = f"{name}_dist/retry.py"
        fix = patch("fix", make_diff({path: before}, {path: after}), versions=">=1,<3", **keys)
        folder = self.patches / name
        put(folder / "fix.patch", fix.pop("FILES")["fix.patch"])
        table = {"schema": 1, "name": name, "distribution": f"{name}-dist", "patch": [fix]}
        (folder / "patchset.toml").write_text(to_toml(table), "utf-8")

    def file(self, name: str) -> Path:
        return self.venv.site_packages / f"{name}_dist" / "retry.py"


def make_world(folder: Path) -> World:
    """Install ten distributions, patch nine, and let each of `CAUSES` happen; one is left as it is."""
    world = World(make_venv(folder / "venv", with_pip=False), folder / "patches")
    names = (*CAUSES, "kept")
    older = [_wheel(folder, name, "1.0" if name != "downgraded" else "2.0") for name in names]
    pip(world.venv, "install", "--no-index", "--no-deps", *older)
    for name in names:
        if name != "never":
            world.add(name, SOURCE, PATCHED)
    run(*patchkit_command(), *world.words("apply"), cwd=folder).expect(0)
    _drift(world, folder)
    return world


def _wheel(folder: Path, name: str, version: str, source: bytes = SOURCE) -> Path:
    files: Files = {f"{name}_dist/__init__.py": b"", f"{name}_dist/retry.py": source}
    return make_wheel(folder, f"{name}-dist", version, {path: data or b"" for path, data in files.items()})


def _drift(world: World, folder: Path) -> None:
    world.file("edited").write_bytes(EDITED)
    world.file("hostile").write_bytes(HOSTILE + SOURCE)
    newer = [_wheel(folder, "upgraded", "2.0", NEXT), _wheel(folder, "downgraded", "1.0")]
    anew = ("install", "--no-index", "--no-deps", "--force-reinstall")
    pip(world.venv, *anew, *newer, folder / "reinstalled_dist-1.0-py3-none-any.whl")
    pip(world.venv, "uninstall", "--yes", "uninstalled-dist")
    world.add("changed", SOURCE, PATCHED.replace(b"2.0", b"3.0"))
    shutil.rmtree(world.patches / "removed")
    world.add("never", SOURCE, PATCHED)
