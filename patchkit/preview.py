"""The changes of a plan as a unified diff, for people to read."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.model import FileChange


def show_changes(changes: Iterable[FileChange]) -> str:
    """What would change on disk, file by file; bytes that are not UTF-8 are shown escaped."""
    return "".join(_show(change) for change in changes)


def _show(change: FileChange) -> str:
    from difflib import unified_diff

    before, after = change.before.content, change.after
    old = f"a/{change.path}" if before is not None else "/dev/null"
    new = f"b/{change.path}" if after is not None else "/dev/null"
    lines = unified_diff(_lines(before.data if before else b""), _lines(after.data if after else b""), old, new)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    if before is not None and after is not None and before.executable != after.executable:
        text = f"mode of {change.path}: {before.mode:04o} -> {after.mode:04o}\n" + text
    return text


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "backslashreplace")
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
