"""Rows in columns, and sentences below them, within the width of a terminal. Names and commands are never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WIDTH = 100
MARGIN = "    "
"""What stands below a row is indented so."""

_TIED = "\N{NO-BREAK SPACE}"


class Cell:
    """The words of a cell; ``painted`` are the same with colours ("" where it has none)."""

    # No dataclass: `shortcut` has no time to import that module.
    __slots__ = ("painted", "words")

    def __init__(self, words: str, painted: str = "") -> None:
        self.words = words
        self.painted = painted

    def pad(self, width: int) -> str:
        return (self.painted or self.words) + " " * (width - len(self.words))


def lay_out(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """The lines of each row, all of which have the same number of cells.

    Aligned where every row fits; else with the last column on lines of its own; else, where it must be, row by row
    without padding, and continued below.
    """
    if _fits(rows):
        return [[line] for line in _align(rows)]
    heads = [row[:-1] for row in rows]
    if _fits(heads):
        tails = [row[-1] for row in rows]
        return [
            [line, f"{MARGIN}{tail.pad(0)}"] if tail.words else [line]
            for line, tail in zip(_align(heads), tails, strict=True)
        ]
    return [_run_on(row) for row in rows]


def _fits(rows: Sequence[Sequence[Cell]]) -> bool:
    widths = _measure(rows)
    padding = sum(widths[:-1]) + 2 * (len(widths) - 1)
    return all(len(row[-1].words) + padding <= WIDTH for row in rows)


def _measure(rows: Sequence[Sequence[Cell]]) -> list[int]:
    return [max(len(cell.words) for cell in column) for column in zip(*rows, strict=True)]


def _align(rows: Sequence[Sequence[Cell]]) -> list[str]:
    widths = _measure(rows)
    return ["  ".join(cell.pad(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _run_on(row: Sequence[Cell]) -> list[str]:
    lines: list[str] = []
    used = 0
    for cell in filter(lambda cell: cell.words, row):
        if lines and used + 2 + len(cell.words) <= WIDTH:
            lines[-1] += f"  {cell.pad(0)}"
            used += 2 + len(cell.words)
        else:
            lines.append((MARGIN if lines else "") + cell.pad(0))
            used = len(cell.words) + len(MARGIN) * (len(lines) > 1)
    return lines


def wrap(line: str, margin: str = MARGIN) -> Iterator[str]:
    """``line`` behind ``margin``, broken between words where it is too long; never within a command in backticks."""
    if len(margin) + len(line) <= WIDTH:
        yield margin + line
        return
    import re
    import textwrap

    tied = re.sub(r"`[^`]*`", lambda found: found[0].replace(" ", _TIED), line)
    for piece in textwrap.wrap(
        tied, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    ):
        yield piece.replace(_TIED, " ")
