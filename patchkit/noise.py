"""Files that programs leave behind and that are no part of an edit: caches, backups, what editors and shells write."""

from __future__ import annotations

import re

_FOLDERS = frozenset(
    {
        "__pycache__",
        ".git",
        ".hg",
        ".svn",
        ".idea",
        ".vscode",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
        "__MACOSX",
    }
)
_FILES = re.compile(
    r"\.DS_Store|\._.*|Thumbs\.db|desktop\.ini"  # of file managers
    r"|.*\.(?:pyc|pyo|orig|rej|bak|swp|swo|swn|swx|tmp)|.*~|#.*#|\.#.*|4913"  # of compilers, patch(1), editors
    r"|\.nfs[0-9a-f]+|\.fuse_hidden[0-9a-f]+",  # of file systems
    re.IGNORECASE,
)


def is_noise(path: str) -> bool:
    """Whether a file that nobody shipped at ``path`` (POSIX, relative) is left out of a diff."""
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or _FILES.fullmatch(name) is not None
