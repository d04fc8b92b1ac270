"""Build patchkit.pyz (PEP 441): patchkit, its patch sets and its dependencies in one file for any Python from 3.10 on.

    python tools/build_zipapp.py dist/patchkit.pyz

The same sources and pins give the same bytes: no time stamps, no order and no modes of the file system, and no
compression, whose output differs between releases of zlib.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

CHECKOUT = Path(__file__).resolve().parent.parent
REQUIREMENTS = Path(__file__).with_name("zipapp-requirements.txt")
SHEBANG = b"#!/usr/bin/env python3\n"
LEFT_OUT = ("RECORD", "WHEEL", "entry_points.txt", "top_level.txt")
"""Files of a dist-info folder that speak of an installation; METADATA and the licences stay."""

# Older Pythons must be able to read it, to say what is wrong.
MAIN = b"""\
import sys

if sys.version_info < (3, 10):
    sys.exit("error: patchkit needs Python 3.10 or newer; this is %s (%s)" % (sys.version.split()[0], sys.executable))

from patchkit.cli import run

run()
"""


def download(folder: Path) -> list[Path]:
    """The wheels of the pins, compared with their hashes, in ``folder``."""
    words = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    pure = ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none"]
    command = [sys.executable, "-m", "pip", *words, *pure, "--dest", str(folder), "--requirement", str(REQUIREMENTS)]
    subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


def read_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            folder, _, file = name.rpartition("/")
            if file and not (folder.endswith(".dist-info") and file in LEFT_OUT):
                yield name, archive.read(name)


def read_checkout() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", MAIN
    yield "LICENSE", (CHECKOUT / "LICENSE").read_bytes()
    for source, target in (("patchkit", "patchkit"), ("patches", "patchkit/bundled")):
        for path in (CHECKOUT / source).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{target}/{path.relative_to(CHECKOUT / source).as_posix()}", path.read_bytes()


def write(target: Path, members: dict[str, bytes]) -> None:
    """Make ``target`` the archive of ``members``, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with staged.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in sorted(members.items()):
                member = zipfile.ZipInfo(name)  # of 1980-01-01
                member.create_system = 3  # Unix, also where it is built elsewhere
                member.external_attr = 0o100644 << 16
                archive.writestr(member, data)
    staged.chmod(0o755)
    staged.replace(target)


def main(target: Path) -> None:
    members = dict(read_checkout())
    with TemporaryDirectory() as folder:
        for wheel in download(Path(folder)):
            members |= dict(read_wheel(wheel))
    write(target, members)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/build_zipapp.py FILE")
    main(Path(sys.argv[1]))
