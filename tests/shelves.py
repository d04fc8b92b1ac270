"""A patch folder beside a folder of wheels, and the commands that look at releases run on both, in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchkit.cli import main
from stages import Files, put, sample_wheel, to_toml
from worlds import Finished

# Three functions far from each other, so that changes to them are hunks of their own.
FILLER = "".join(f"    value = {number}\n" for number in range(20))
MATHS = "some_dist/maths.py"


def maths(one: str = "1", two: str = "2", three: str = "3", *, head: str = "") -> bytes:
    """A module whose functions return these."""
    parts = [
        f"def {name}():\n{FILLER}    return {value}\n\n\n" for name, value in zip(NAMES, (one, two, three), strict=True)
    ]
    return (head + "".join(parts)).encode()


NAMES = ("first", "second", "third")


@dataclass(frozen=True)
class Shelf:
    """``patches`` and ``wheels`` in a folder. ``capture`` takes what this process has printed."""

    folder: Path
    capture: Callable[[], Any]

    @property
    def patches(self) -> Path:
        return self.folder / "patches"

    @property
    def wheels(self) -> Path:
        return self.folder / "wheels"

    def release(self, version: str, files: Files, modes: Mapping[str, int] | None = None) -> Path:
        """A wheel of some-dist."""
        return sample_wheel(self.wheels, version, {"some_dist/__init__.py": b"", **files}, modes=modes)

    def add(self, name: str, *patches: dict[str, Any], distribution: str = "some-dist", **keys: Any) -> Path:
        """Write a patch set of ``patch`` tables."""
        folder = self.patches / name
        for each in patches:
            for file, data in each["FILES"].items():
                put(folder / file, data)
        tables = [{key: value for key, value in each.items() if key != "FILES"} for each in patches]
        table = {"schema": 1, "name": name, "distribution": distribution, **keys, "patch": tables}
        put(folder / "patchset.toml", to_toml(table).encode())
        return folder

    def run(self, *args: str | os.PathLike[str], wheels: bool = True) -> Finished:
        """The command, with the folder of wheels where there is to be one."""
        links = ("--find-links", str(self.wheels)) if wheels else ()
        words = (*map(os.fspath, args), "--patches", str(self.patches), *links)
        self.capture()
        code = main(words)
        out, err = self.capture()
        return Finished(("patchkit", *words), code, out, err)

    def json(self, *args: str | os.PathLike[str], exit_code: int = 0, wheels: bool = True) -> Any:
        return self.run(*args, "--json", wheels=wheels).expect(exit_code).json()

    def results(self, *args: str | os.PathLike[str], exit_code: int = 0) -> dict[str, str]:
        """The word for each release in the document of ``coverage`` on a set of one patch."""
        document = self.json("coverage", *args, exit_code=exit_code)
        return {release["version"]: release["patches"][0]["result"] for release in document["releases"]}
