"""Real repositories of git, in which a change is a commit: its mail and its diff."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

from stages import put
from worlds import git

Blobs = Mapping[str, bytes]
Modes = Mapping[str, int]


def write_tree(root: Path, blobs: Blobs, modes: Modes | None = None) -> Path:
    """The files below ``root``, 0o644 where ``modes`` says nothing."""
    root.mkdir(parents=True, exist_ok=True)
    for path, data in blobs.items():
        put(root / path, data, (modes or {}).get(path, 0o644))
    return root


def read_tree(root: Path) -> dict[str, tuple[bytes, bool]]:
    """The files below ``root``, but not what git, patchkit and installers keep: bytes, and if executable."""
    found: dict[str, tuple[bytes, bool]] = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and parts[0] not in (".git", ".patchkit") and not parts[0].endswith(".dist-info"):
            found["/".join(parts)] = path.read_bytes(), bool(path.stat().st_mode & 0o100)
    return found


class Repository:
    """A repository whose commits are whole trees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        git("init", "--quiet", cwd=folder).expect()

    def commit(self, blobs: Blobs, modes: Modes | None = None, *, message: str = "a change") -> None:
        """Make ``blobs`` all that there is."""
        for entry in self.folder.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        write_tree(self.folder, blobs, modes)
        git("add", "--all", "--force", ".", cwd=self.folder).expect()
        git("commit", "--quiet", "--allow-empty", "--message", message, cwd=self.folder).expect()

    def mail(self, *options: str) -> bytes:
        """The last commit as git-format-patch(1) writes it: a mail with a signature."""
        folder = Path(mkdtemp(dir=os.environ["HOME"]))
        git("format-patch", "--quiet", "-1", "--output-directory", folder, *options, cwd=self.folder).expect()
        [file] = folder.iterdir()
        return file.read_bytes()

    def diff(
        self, *options: str, range: tuple[str, str] = ("HEAD~", "HEAD"), config: str = "core.quotePath=true"
    ) -> bytes:
        """The last commit (or what is between two others) as git-diff(1) writes it."""
        return self._written("diff", *options, *range, config=config)

    def show(self, *options: str) -> bytes:
        """The last commit as git-show(1) writes it: its message, and its diff."""
        return self._written("show", *options)

    def _written(self, command: str, *words: str, config: str = "core.quotePath=true") -> bytes:
        file = Path(mkdtemp(dir=os.environ["HOME"]), "written")
        git("-c", config, command, f"--output={file}", *words, cwd=self.folder).expect()
        return file.read_bytes()

    def leave(self, commit: str, folder: Path) -> Path:
        """Write the files of ``commit`` into ``folder``."""
        folder.mkdir(parents=True)
        git(f"--work-tree={folder}", "checkout", "--quiet", commit, "--", ".", cwd=self.folder).expect()
        return folder


def unpack_wheel(site: Path, wheel: Path) -> Path:
    """The files of ``wheel`` with their modes in a site root at ``site``: what pip does, a hundred times faster."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            Path(archive.extract(member, site)).chmod(member.external_attr >> 16 & 0o777)
    return site


def apply_with_git(root: Path, diff: bytes, *options: str) -> dict[str, tuple[bytes, bool]]:
    """The files below ``root`` once git-apply(1) has changed them."""
    git("apply", "--whitespace=nowarn", *options, "-", cwd=root, input=diff).expect()
    return read_tree(root)
