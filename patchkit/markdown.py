"""Drift reports as GitHub Flavored Markdown, for a comment on a pull request: a table, and the details folded away.

Whatever stands in a file, a name or a message is shown and never acted on: no markup, no mention, no link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from patchkit.drift import Drift
from patchkit.drift_text import name_row, tell_headline, tell_versions
from patchkit.errors import PatchkitError
from patchkit.escapes import make_legible
from patchkit.evidence import FileEvidence, gather, to_diff
from patchkit.report import Report

LIMIT = 65_000
"""Bytes of UTF-8: a comment on GitHub takes 65,536 characters, and a pipeline may want to add a line."""


def render_markdown(report: Report) -> str:
    """The report in at most `LIMIT` bytes: what has no room is left out whole, and said to be."""
    rows = report.drift or ()
    head = "\n\n".join(_head(report)) + "\n"
    table = [f"{_table_row(row)}\n" for row in rows]
    details = [f"\n{_details(row, files)}" for row in rows if (files := gather(report, row))]
    kept_rows = _fit(table, LIMIT - _size(head) - RESERVE)
    shown = f"{head}\n{TABLE_HEAD}{''.join(kept_rows)}" if rows else head
    kept = _fit(details, LIMIT - _size(shown) - RESERVE) if len(kept_rows) == len(table) else []
    return _cut_to_limit(shown + "".join(kept) + _say_cut(len(table) - len(kept_rows), len(details) - len(kept)))


TABLE_HEAD = "| patch | cause | distribution | what happened | remedy |\n| --- | --- | --- | --- | --- |\n"
RESERVE = 400
"""Bytes kept for the words about what was left out."""


def _size(text: str) -> int:
    return len(text.encode())


def _fit(pieces: Iterable[str], room: int) -> list[str]:
    """The first pieces, as many as there is room for."""
    kept: list[str] = []
    for piece in pieces:
        room -= _size(piece)
        if room < 0:
            break
        kept.append(piece)
    return kept


def _say_cut(rows: int, details: int) -> str:
    words = [f"{rows} more rows"] * bool(rows) + [f"the details of {details} rows"] * bool(details)
    left_out = " and ".join(words)
    return f"\n_Cut: {left_out} had no room in a comment. `patchkit drift` shows all._\n" if words else ""


def _cut_to_limit(text: str) -> str:
    """Only warnings and errors without end come this far; a table or a fence is never cut."""
    if _size(text) <= LIMIT:
        return text
    return text.encode()[: LIMIT - RESERVE].decode("utf-8", "ignore") + "\n\n_Cut: `patchkit drift` shows all._\n"


# ---- the parts ------------------------------------------------------------------------------------------------


def _head(report: Report) -> Iterator[str]:
    yield f"**{_escape(tell_headline(report))}**"
    if report.site_root is not None:
        python = f" (Python {_escape(report.python)})" if report.python is not None else ""
        yield f"Environment {_code(report.site_root)}{python}, exit {int(report.exit_code)}"
    if report.error is not None:
        yield "\n".join(_list_errors(report.error))
    if report.notices:
        yield "\n".join(f"- warning: {_escape(notice.message)}" for notice in report.notices)


def _list_errors(error: PatchkitError) -> Iterator[str]:
    for single in error.all():
        yield f"- error {_code(single.code)} (exit {int(single.exit_code)}): {_escape(single.message)}"
        if single.hint:
            yield f"  - hint: {_escape(single.hint)}"


def _table_row(row: Drift) -> str:
    remedy = _code(row.remedy) if row.remedy else ""
    cells = (_code(name_row(row)), row.cause.value, _escape(tell_versions(row)), _escape(row.detail), remedy)
    return f"| {' | '.join(cells)} |"


def _details(row: Drift, files: Sequence[FileEvidence]) -> str:
    title = f"<summary>{_escape(name_row(row))}: {row.cause.value}, {_count(len(files), 'file')}</summary>"
    return "\n".join(["<details>", title, "", *(line for file in files for line in _tell_file(file)), "</details>", ""])


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
