"""A stage: a site root with a small distribution, a patch folder beside it, and the command run on both.

The command is run in this process (`patchkit.cli.main` is all of it); `Stage.process` starts a real one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from patchkit.cli import main
from worlds import Entry, Finished, git, make_wheel, patchkit_command, record_digest, run, tree

Files = Mapping[str, bytes | None]

MOD = "some_dist/mod.py"
BLOCKS = "some_dist/blocks.py"
TOOL = "some_dist/tool.py"
DATA = "some_dist/data.txt"

# Forty lines, each of its own; and a block that occurs four times below two lines of its own.
LINES = tuple(b"line_%d = %d\n" % (number, number) for number in range(1, 41))
BLOCK = (b"begin = 1\n", b"step = 2\n", b"step = 3\n", b"step = 4\n", b"step = 5\n", b"step = 6\n", b"end = 7\n", b"\n")
SHIPPED: dict[str, bytes | None] = {
    "some_dist/__init__.py": b"",
    MOD: b"".join(LINES),
    BLOCKS: b"import sys\n\n" + b"".join(BLOCK) * 4,
    TOOL: b"#!/usr/bin/env python3\nprint('tool')\n",
    DATA: b"one\ntwo\nthree\n",
}


def sample_wheel(
    folder: Path,
    version: str = "1.2.3",
    files: Files = SHIPPED,
    *,
    name: str = "some-dist",
    modes: Mapping[str, int] | None = None,
) -> Path:
    """A wheel of some-dist with ``files``."""
    return make_wheel(
        folder, name, version, {path: data for path, data in files.items() if data is not None}, modes=modes
    )


# ---- texts and diffs ------------------------------------------------------------------------------------------


def with_line(number: int, text: bytes, of: bytes = b"".join(LINES)) -> bytes:
    """`mod.py` (or ``of``) with its 1-based line ``number`` replaced by ``text``."""
    lines = of.splitlines(keepends=True)
    return b"".join((*lines[: number - 1], text, *lines[number:]))


def make_diff(before: Files, after: Files, modes: Mapping[str, int] | None = None) -> bytes:
    """What git says leads from ``before`` to ``after`` (None: no such file); ``modes`` are those of ``after``."""
    folder = Path(mkdtemp(prefix="diff-", dir=os.environ["HOME"]))
    try:
        for side, files in (("a", before), ("b", after)):
            (folder / side).mkdir()
            for path, data in files.items():
                if data is not None:
                    put(folder / side / path, data, (modes or {}).get(path, 0o644) if side == "b" else 0o644)
        said = git("diff", "--no-index", "--no-prefix", "a", "b", cwd=folder).expect(1).out
        return said.replace("\nrename from a/", "\nrename from ").replace("\nrename to b/", "\nrename to ").encode()
    finally:
        shutil.rmtree(folder)


def edit(number: int, text: bytes, of: bytes = b"".join(LINES)) -> bytes:
    """The diff that replaces line ``number`` of `mod.py` (as shipped, or ``of``) by ``text``."""
    return make_diff({MOD: of}, {MOD: with_line(number, text, of)})


def git_apply(diff: bytes, files: Files) -> dict[str, bytes]:
    """What the real git makes of ``files`` with ``diff``."""
    folder = Path(mkdtemp(prefix="apply-", dir=os.environ["HOME"]))
    try:
        for path, data in files.items():
            if data is not None:
                put(folder / path, data)
        git("apply", "-", cwd=folder, input=diff).expect()
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    finally:
        shutil.rmtree(folder)


def put(path: Path, data: bytes, mode: int | None = None) -> Path:
    """A file with these bytes (and this mode), its folders with it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if mode is not None:
        path.chmod(mode)
    return path


# ---- manifests ------------------------------------------------------------------------------------------------


def patch(name: str, diff: bytes | None, *, versions: str = ">=1.0", **keys: Any) -> dict[str, Any]:
    """One ``[[patch]]`` for `Stage.add`; ``keys`` are its other keys (``not_needed`` for ``not-needed``)."""
    table = {key.replace("_", "-"): value for key, value in keys.items()}
    own = {} if diff is None else {"variant": [{"versions": versions, "file": f"{name}.patch"}]}
    return {"name": name, **own, **table, "FILES": {} if diff is None else {f"{name}.patch": diff}}


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """``table`` as TOML: lists of tables as ``[[...]]``, all else in JSON's notation, which is TOML's too."""
    rows = {
        key: value for key, value in table.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    plain = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items() if key not in rows)
    nested = [(key, row) for key, several in rows.items() for row in several]
    return plain + "".join(f"\n[[{prefix}{key}]]\n{to_toml(row, f'{prefix}{key}.')}" for key, row in nested)


# ---- the stage ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """A site root with a patch folder. ``capture`` takes what this process has printed."""

    folder: Path
    site: Path
    patches: Path
    install_site: Callable[..., Path]
    capture: Callable[[], Any]

    def add(
        self,
        name: str,
        *patches: dict[str, Any],
        distribution: str = "some-dist",
        checks: Files | None = None,
        **keys: Any,
    ) -> Path:
        """Write (or replace) a patch set; ``checks`` are its other files."""
        folder = self.patches / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file, data in (*(checks or {}).items(), *(item for each in patches for item in each["FILES"].items())):
            put(folder / file, data or b"")
        tables = [{key: value for key, value in each.items() if key != "FILES"} for each in patches]
        table = {"schema": 1, "name": name, "distribution": distribution, **keys, "patch": tables}
        (folder / "patchset.toml").write_text(to_toml(table), "utf-8")
        return folder

    def declare(self, select: Sequence[str] = (), deselect: Sequence[str] = ()) -> None:
        """Write patches/patchkit.toml."""
        (self.patches / "patchkit.toml").write_text(to_toml({"select": list(select), "deselect": list(deselect)}))

    def run(self, *args: str | os.PathLike[str], patches: bool = True) -> Finished:
        """The command on this stage, in this process. ``patches`` False: no patch folder is named."""
        words = (*(os.fspath(arg) for arg in args), *self._options(patches))
        self.capture()
        code = main(words)
        out, err = self.capture()
        return Finished(("patchkit", *words), code, out, err)

    def process(self, *args: str | os.PathLike[str]) -> Finished:
        """The command on this stage, as a real process."""
        return run(*patchkit_command(), *args, *self._options(True), cwd=self.folder)

    def _options(self, patches: bool) -> tuple[str, ...]:
        return ("--site-packages", str(self.site), *(("--patches", str(self.patches)) if patches else ()))

    def json(self, *args: str | os.PathLike[str], exit_code: int = 0) -> Any:
        """The JSON document of the command, which must end with ``exit_code``."""
        return self.run(*args, "--json").expect(exit_code).json()

    def states(self, *args: str | os.PathLike[str], exit_code: int = 0) -> dict[str, str]:
        """The state of each patch in the JSON document of the command (``status`` where none is given)."""
        return {name(row): row["state"] for row in self.json(*(args or ("status",)), exit_code=exit_code)["patches"]}

    def actions(self, *args: str | os.PathLike[str], exit_code: int = 0) -> dict[str, str]:
        """What the command did to each patch."""
        return {name(row): row["action"] for row in self.json(*args, exit_code=exit_code)["patches"]}

    def read(self, path: str = MOD) -> bytes:
        return (self.site / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        put(self.site / path, data)

    def tree(self) -> dict[str, Entry]:
        """All of the site root, the state folder too."""
        return tree(self.site)

    def ledger(self) -> Any:
        return json.loads(self.ledger_file.read_bytes())

    @property
    def ledger_file(self) -> Path:
        return self.site / ".patchkit" / "ledger.json"

    @property
    def record(self) -> Path:
        [path] = self.site.glob("some_dist-*.dist-info/RECORD")
        return path

    def reinstall(self, *wheels: Path) -> None:
        """Install ``wheels`` in the place of all that is there, as an upgrade does; the state stays."""
        for entry in self.site.iterdir():
            if entry.name != ".patchkit":
                shutil.rmtree(entry)
        fresh = self.install_site(Path(mkdtemp(dir=self.folder)) / "site", *wheels)
        shutil.copytree(fresh, self.site, symlinks=True, dirs_exist_ok=True)

    def ship(self, path: str, data: bytes) -> None:
        """What is there if the installed wheel had held ``data`` at ``path``: the bytes, and their row in RECORD."""
        self.write(path, data)
        self.change_record(path, record_digest(data))

    def change_record(self, path: str, field: str) -> None:
        """Give the row of ``path`` in RECORD another digest field."""
        rows = [row.split(",") for row in self.record.read_text("utf-8").splitlines()]
        assert path in [row[0] for row in rows]
        text = "".join(",".join([row[0], field if row[0] == path else row[1], row[2]]) + "\n" for row in rows)
        self.record.write_text(text, "utf-8")


def name(row: Mapping[str, Any]) -> str:
    """SET/PATCH of a row of the document."""
    return f"{row['set']}/{row['patch']}"


def make_stage(
    folder: Path, make_site: Callable[..., Path], capture: Callable[[], Any], *wheels: Path, patches: str = "patches"
) -> Stage:
    """A stage in ``folder``; some-dist 1.2.3 is installed where no wheel is named."""
    named = wheels or (sample_wheel(folder / "wheels"),)
    (folder / patches).mkdir()
    return Stage(folder, make_site(folder / "site", *named), folder / patches, make_site, capture)
