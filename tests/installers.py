"""The programs that install wheels, pip and uv in each of its link modes, and what they leave on the disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import worlds
from worlds import Finished, LinkMode, UvInstall, Venv

LINK_MODES: dict[str, LinkMode] = {f"uv-{mode}": mode for mode in ("hardlink", "copy", "symlink", "clone")}
INSTALLERS = ("pip", *LINK_MODES)  # where the file system cannot clone, uv falls back to another mode


@dataclass(frozen=True)
class Installer:
    """An installer by name; ``cache`` is uv's. No index, no dependencies, no compiled files unless asked for."""

    name: str
    uv: Path
    cache: Path
    uv_install: UvInstall

    def install(self, venv: Venv, wheel: Path, *, again: bool = False, compiled: bool = False) -> Finished:
        """Install ``wheel``, over another version where one is there; ``again``: over the same version too."""
        if self.name == "pip":
            options = ["--no-compile"] * (not compiled) + ["--force-reinstall"] * again
            return worlds.pip_install(venv, *options, wheel)
        options = ["--compile-bytecode"] * compiled + ["--reinstall"] * again
        return self.uv_install(venv, *options, wheel, link_mode=LINK_MODES[self.name])

    def uninstall(self, venv: Venv, name: str) -> Finished:
        """Uninstall a distribution; it must have been there."""
        if self.name == "pip":
            ended = worlds.pip_uninstall(venv, name)
            assert f"Successfully uninstalled {name}" in ended.out
            return ended
        where = ("--python", venv.python, "--cache-dir", self.cache, "--no-config", "--offline")
        ended = worlds.run(self.uv, "pip", "uninstall", *where, name, cwd=venv.root).expect()
        assert f"- {name.replace('_', '-')}==" in ended.err
        return ended


# ---- what is on the disk --------------------------------------------------------------------------------------


class Stamp(NamedTuple):
    """What any write would change, also one that puts the same bytes back."""

    inode: int
    links: int
    mode: int
    size: int
    modified: int
    changed: int


def stamps(root: Path) -> dict[str, Stamp]:
    """The stamp of ``root`` (".") and of everything below it. Times are in nanoseconds; links are not followed."""
    paths = [root, *(Path(folder, name) for folder, folders, files in os.walk(root) for name in (*folders, *files))]
    return {path.relative_to(root).as_posix(): _stamp(path.lstat()) for path in paths}


def _stamp(status: os.stat_result) -> Stamp:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return Stamp(status.st_ino, status.st_nlink, status.st_mode, status.st_size, *times)


def identities(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Inode, mode, time of the last change of the bytes, and sha256 of every plain file below ``root``."""
    found: dict[str, tuple[int, int, int, str]] = {}
    for folder, _, files in os.walk(root):
        for path in (Path(folder, name) for name in files):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[path.relative_to(root).as_posix()] = (status.st_ino, status.st_mode, status.st_mtime_ns, digest)
    return found


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    """Permission bits and bytes of every file below ``root``, links followed; compiled files are left out."""
    return {
        path: (stat.S_IMODE((root / path).stat().st_mode), (root / path).read_bytes())
        for path, entry in worlds.without_bytecode(worlds.tree(root)).items()
        if entry.kind in ("file", "link")
    }


def copy_venv(venv: Venv, path: Path) -> Venv:
    """A copy of ``venv`` that shares no file with it; modes and times are kept."""
    shutil.copytree(venv.root, path, symlinks=True)
    return Venv(path, *(path / part.relative_to(venv.root) for part in (venv.python, venv.site_packages)))


# ---- diffs ----------------------------------------------------------------------------------------------------


def write_files(root: Path, files: Mapping[str, str | bytes], modes: Mapping[str, int] | None = None) -> None:
    """Make ``files`` the only ones below ``root``, but for a .git."""
    for entry in root.iterdir() if root.exists() else ():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)
        target.chmod((modes or {}).get(path, 0o644))


def git_diff(
    folder: Path,
    old: Mapping[str, str | bytes],
    new: Mapping[str, str | bytes],
    *,
    old_modes: Mapping[str, int] | None = None,
    new_modes: Mapping[str, int] | None = None,
) -> str:
    """What git says changes ``old`` into ``new``, renames found; ``folder`` is for git's own use."""
    folder.mkdir(parents=True, exist_ok=True)
    worlds.git("init", "--quiet", cwd=folder).expect()
    trees = []
    for files, modes in ((old, old_modes), (new, new_modes)):
        write_files(folder, files, modes)
        worlds.git("add", "--all", "--force", ".", cwd=folder).expect()
        trees.append(worlds.git("write-tree", cwd=folder).expect().out.strip())
    return worlds.git("diff", "--find-renames", *trees, cwd=folder).expect().out
