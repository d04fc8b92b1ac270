"""An upstream diff with its paths written anew, proved entry by entry: the hunks say what they said before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from patchkit.diff import ends_in_crlf, read_diff
from patchkit.difference import quote_path
from patchkit.entries import RawEntry, read_entries
from patchkit.errors import Bug
from patchkit.headers import read_names
from patchkit.installed import sha256
from patchkit.layouts import Landing
from patchkit.model import DiffText, EntryKind, FileDiff
from patchkit.upstream import Placement, without_cr


def rewrite(data: bytes, placement: Placement, *, file: str) -> bytes:
    """The diff with the paths below the site root, and only the entries that are taken; the words in front stay.

    Raises `Bug` where what was written says something else than the diff did.
    """
    plain = without_cr(data)
    lines = plain.split(b"\n")
    entries, _ = read_entries(plain, file=file)
    front = b"".join(line + b"\n" for line in lines[: entries[0].line - 1])
    text = front + b"".join(_render(landing) for landing in placement.landings)
    text = text.replace(b"\n", b"\r\n") if ends_in_crlf(data) else text
    _prove(data, text, placement, file)
    return text


def _render(landing: Landing) -> bytes:
    raw = landing.entry
    old, new = (quote_path(f"{side}/{path}").encode() for side, path in zip("ab", landing.targets, strict=True))
    bare = {b"rename from": landing.targets[0], b"rename to": landing.targets[1]}
    bare |= {b"rename old": landing.targets[0], b"rename new": landing.targets[1]}
    lines = [b"diff --git " + old + b" " + new]
    for keyword, value in raw.fields.items():
        lines.append(keyword + b" " + (quote_path(bare[keyword]).encode() if keyword in bare else value.value))
    absent = _absent_sides(raw, landing)
    lines += [] if raw.headline is not None else [line for line in absent if line]
    if raw.hunks:
        lines += [b"--- " + (b"/dev/null" if absent[0] else old), b"+++ " + (b"/dev/null" if absent[1] else new)]
    return b"".join(line + b"\n" for line in lines) + b"".join(raw.bodies)


def _absent_sides(raw: RawEntry, landing: Landing) -> tuple[bytes, bytes]:
    """The extended header that says that a side is absent, for the old and the new one; b"" where it is there."""
    names = read_names(raw, strip=landing.route.strip, directory="")
    if names is None:
        raise Bug(f"an entry for {landing.targets[1]} lost its name")
    return (
        b"new file mode 100644" if names.old_absent else b"",
        b"deleted file mode 100644" if names.new_absent else b"",
    )


def _prove(before: bytes, after: bytes, placement: Placement, file: str) -> None:
    meant: dict[str, FileDiff] = {}
    for route in placement.routes:
        landings = [landing for landing in placement.landings if landing.route == route]
        moved = {landing.moved: landing.targets[0] for landing in landings if landing.moved}
        paths = tuple(path for landing in landings for path in landing.located)
        text = DiffText(sha256(before), route.strip, route.directory, paths)
        read = [_move(_neutral(diff), moved) for diff in read_diff(before, text, file=file)]
        meant |= {diff.path: diff for diff in read}
    written = read_diff(after, DiffText(sha256(after)), file=file)
    if {diff.path: _neutral(diff) for diff in written} != meant:
        raise Bug(f"{file}: the diff with other paths says something else than the one that was given")


def _move(diff: FileDiff, moved: Mapping[str, str]) -> FileDiff:
    """The entry under the name that the user gave its file."""
    old, new = (None if path is None else moved.get(path, path) for path in (diff.old, diff.new))
    return replace(diff, old=old, new=new)


def _neutral(diff: FileDiff) -> FileDiff:
    """The entry without the lines of the diff that it stands on, and modes that only a git header states."""
    hunks, without_cr = (
        None if each is None else tuple(replace(hunk, source_line=0) for hunk in each)
        for each in (diff.hunks, diff.without_cr)
    )
    created = diff.kind in (EntryKind.CREATE, EntryKind.DELETE)
    return replace(
        diff,
        line=0,
        hunks=hunks or (),
        without_cr=without_cr,
        executable=bool(diff.executable) if created else diff.executable,
        was_executable=bool(diff.was_executable) if created else diff.was_executable,
    )
