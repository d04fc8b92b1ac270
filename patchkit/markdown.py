"""Drift reports as GitHub Flavored Markdown, for a comment on a pull request: a table, and the details folded away.

Whatever stands in a file, a name or a message is shown and never acted on: no markup, no mention, no link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from patchkit.drift import Drift
from patchkit.drift_text import name_row, tell_headline, tell_versions
from patchkit.errors import PatchkitError
from patchkit.escapes import make_legible
from patchkit.evidence import FileEvidence, gather, to_diff
from patchkit.report import Report

LIMIT = 65_000
"""Bytes of UTF-8: a comment on GitHub takes 65,536 characters, and a pipeline may want to add a line."""


TABLE_HEAD = "| patch | cause | distribution | what happened | remedy |\n| --- | --- | --- | --- | --- |\n"
RESERVE = 400
"""Bytes kept for the head of the table and the words about what was left out."""


def render_markdown(report: Report) -> str:
    """The report in at most `LIMIT` bytes: what has no room is left out whole, and said to be."""
    rows = report.drift or ()
    head = _fit((f"{part}\n\n" for part in _head(report)), LIMIT - RESERVE)
    room = LIMIT - RESERVE - _size(head)
    table = _fit((f"{_table_row(row)}\n" for row in rows), room)
    whole = len(table) == len(rows)
    details = _fit((_details(report, row) for row in rows), room - _size(table) if whole else 0)
    left_out = [
        f"{len(rows) - len(table)} more rows" if not whole else "",
        f"the details of the last {len(rows) - len(details)} rows" if len(details) < len(rows) else "",
        "warnings or errors" if len(head) < sum(1 for _ in _head(report)) else "",
    ]
    parts = (*head, *([TABLE_HEAD] if rows else []), *table, *details, _say_cut(left_out))
    return "".join(parts).rstrip("\n") + "\n"


def _size(pieces: Iterable[str]) -> int:
    return sum(len(piece.encode()) for piece in pieces)


def _fit(pieces: Iterable[str], room: int) -> list[str]:
    """The first pieces, as many as there is room for, in bytes."""
    kept: list[str] = []
    for piece in pieces:
        room -= _size([piece])
        if room < 0:
            break
        kept.append(piece)
    return kept


def _say_cut(left_out: Iterable[str]) -> str:
    words = " and ".join(filter(None, left_out))
    return f"\n_Cut: {words} had no room in a comment. `patchkit drift` shows all._\n" if words else ""


# ---- the parts ------------------------------------------------------------------------------------------------


def _head(report: Report) -> Iterator[str]:
    yield f"**{_escape(tell_headline(report))}**"
    if report.site_root is not None:
        python = f" (Python {_escape(report.python)})" if report.python is not None else ""
        yield f"Environment {_code(report.site_root)}{python}, exit {int(report.exit_code)}"
    if report.error is not None:
        yield from _list_errors(report.error)
    yield from (f"- warning: {_escape(notice.message)}" for notice in report.notices)


def _list_errors(error: PatchkitError) -> Iterator[str]:
    for single in error.all():
        hint = f"\n  - hint: {_escape(single.hint)}" if single.hint else ""
        yield f"- error {_code(single.code)} (exit {int(single.exit_code)}): {_escape(single.message)}{hint}"


def _table_row(row: Drift) -> str:
    remedy = _code(row.remedy) if row.remedy else ""
    cells = (_code(name_row(row)), row.cause.value, _escape(tell_versions(row)), _escape(row.detail), remedy)
    return f"| {' | '.join(cells)} |"


def _details(report: Report, row: Drift) -> str:
    """The evidence, folded away; "" where there is none."""
    files = gather(report, row)
    if not files:
        return ""
    title = f"<summary>{_escape(name_row(row))}: {row.cause.value}, {_count(len(files), 'file')}</summary>"
    return "\n".join(
        ["", "<details>", title, "", *(line for file in files for line in _tell_file(file)), "</details>", ""]
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _tell_file(file: FileEvidence) -> Iterator[str]:
    yield f"{_code(file.path)} {_escape(file.words)}".rstrip()
    yield ""
    if file.notes:
        yield from (f"- {_escape(note)}" for note in file.notes)
        yield ""
    for passage in file.passages:
        lines = list(to_diff(passage.alignment))
        fence = _fence(lines)
        yield from (f"{fence}diff", *lines, fence, "")


def _fence(lines: Iterable[str]) -> str:
    """A fence that no line can close: longer than any run of backticks."""
    return "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))


# ---- escaping -------------------------------------------------------------------------------------------------

_PLAIN_CODE = re.compile(r"[^`|\\<>&\n\t]*[^`|\\<>&\s]")
# Markup; and what GitHub turns into mentions and links in plain text: an empty comment behind it keeps it from that.
_MARKUP = re.compile(r"(?P<sign>[\\`*{}\[\]<|~&!]|\b_|_\b)|[@#]|:(?=//)|\bwww(?=\.)|\bGH(?=-)", re.IGNORECASE)


def _escape(text: str) -> str:
    """``text`` as text: markup as character references (CommonMark, 2.5), lines joined."""
    return _MARKUP.sub(_disarm, " ".join(make_legible(text).split()))


def _disarm(match: re.Match[str]) -> str:
    return _refer(match) if match["sign"] else f"{match[0]}<!-- -->"


def _code(text: str) -> str:
    """``text`` as code. A code span has no escapes: what it cannot hold in a table is written as references."""
    shown = make_legible(text)
    plain = _PLAIN_CODE.fullmatch(shown) and not shown.startswith(" ")
    return f"`{shown}`" if plain else f"<code>{_escape(text)}</code>"


def _refer(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
