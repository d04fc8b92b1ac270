"""What `coverage` and `rebase` say to people: aligned lines, and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from click import style

from patchkit.fits import Cell, Column, Coverage, Fit
from patchkit.model import CheckResult
from patchkit.patchset import PatchId
from patchkit.rebased import Rebase, Rebased, RebasedPatch, Step

_WORDS = {
    Fit.FITS: "fits",
    Fit.OFFSET: "fits with offset",
    Fit.CONFLICT: "conflict",
    Fit.UPSTREAMED: "upstreamed",
    Fit.MOVED: "moved",
    Fit.NO_VARIANT: "no variant",
    Fit.NOT_NEEDED: "not needed",
    Fit.NO_WHEEL: "no wheel",
}
_WOULD = {
    Fit.FITS: "would fit",
    Fit.OFFSET: "would fit with offset",
    Fit.CONFLICT: "would conflict",
    Fit.UPSTREAMED: "would be upstreamed",
    Fit.MOVED: "does not fit",
}
_GOOD = (Fit.FITS, Fit.OFFSET, Fit.UPSTREAMED, Fit.NOT_NEEDED)
_COLOURS = {
    Rebase.CLEAN: "green",
    Rebase.CONFLICT: "red",
    Rebase.UPSTREAMED: "green",
    Rebase.PARTLY_UPSTREAMED: "yellow",
    Rebase.NOT_NEEDED: "green",
}
_STEPS = {
    Step.NONE: "",
    Step.WIDENED: "range widened",
    Step.ADDED: "new entry",
    Step.WORK_FOLDER: "work folder",
}


# ---- coverage -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the table: a run of releases with the same answer."""

    releases: str
    word: str
    colour: str | None
    rest: str


def render_coverage(coverage: Coverage, *, verbose: bool = False, again: str = "") -> Iterator[str]:
    """A block a patch, a line a run of releases that it fares alike on; with ``verbose`` a line a release."""
    rows = {id: list(_rows(coverage.cells_of(id), verbose=verbose)) for id in coverage.patches}
    every = [row for several in rows.values() for row in several]
    widths = [max(len(row.releases) for row in every), max(len(row.word) for row in every)]
    for id, several in rows.items():
        yield style(str(id), bold=True)
        for row in several:
            word = style(f"{row.word:<{widths[1]}}", fg=row.colour)
            yield f"  {row.releases:<{widths[0]}}  {word}  {row.rest}".rstrip()
    yield _summarise(coverage)
    following = _next_command(coverage)
    if following:
        yield f"next: {style(following + again, bold=True)}"


def _rows(cells: Sequence[tuple[Column, Cell]], *, verbose: bool) -> Iterator[_Row]:
    for _, group in groupby(cells, key=lambda pair: pair[0].version if verbose else _alike(pair[1])):
        run = list(group)
        (first, cell), (last, _) = run[0], run[-1]
        span = first.version if len(run) == 1 else f"{first.version} to {last.version}"
        count = "" if len(run) == 1 else f" ({len(run)})"
        yanked = " (yanked)" if len(run) == 1 and first.yanked else ""
        colour = "red" if cell.failed else "green" if cell.result in _GOOD else "yellow"
        yield _Row(span + count + yanked, _word(cell), colour, "; ".join(filter(None, _rest(cell, verbose=verbose))))


def _alike(cell: Cell) -> tuple[object, ...]:
    """What must be the same for two releases to share a line; how large an offset is, is no matter."""
    return cell.result, cell.would, cell.variant, cell.moves, cell.failed


def _word(cell: Cell) -> str:
    return _WORDS[cell.result] + (" (check fails)" if _has_failed_check(cell) else "")


def _has_failed_check(cell: Cell) -> bool:
    return any(check.result is CheckResult.FAILED for check in cell.checks)


def _rest(cell: Cell, *, verbose: bool) -> Iterator[str]:
    variant = cell.variant or ""
    yield f"{variant} {_WOULD[cell.would]}" if cell.would is not None else variant
    yield from (f"{move.path} is {move.home} now" for move in cell.moves)
    if verbose or cell.failed or cell.result in (Fit.NOT_NEEDED, Fit.NO_WHEEL):
        yield cell.message.partition("\n")[0]
        yield from (check.message for check in cell.checks if check.result is CheckResult.FAILED)


def _summarise(coverage: Coverage) -> str:
    counts = Counter(_word(cell) for column in coverage.columns for cell in column.cells)
    words = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    received = f"; {coverage.received / 1e6:.1f} MB fetched" if coverage.received else ""
    number = len(coverage.columns)
    return f"{number} release{'s' if number > 1 else ''} of {coverage.distribution}: {words}{received}"


def _next_command(coverage: Coverage) -> str:
    """The newest release that a patch does not hold on is where work waits."""
    for id in coverage.patches:
        column, cell = coverage.cells_of(id)[-1]
        if cell.failed or cell.result is Fit.NO_VARIANT:
            return f"patchkit rebase {id} --to {column.version}"
    return ""


def render_markdown(coverage: Coverage) -> Iterator[str]:
    """One table: a row a release, the newest first, a column a patch."""
    yield f"| {coverage.distribution} | " + " | ".join(f"`{id.patch}`" for id in coverage.patches) + " |"
    yield "| --- |" + " --- |" * len(coverage.patches)
    for column in reversed(coverage.columns):
        name = f"{column.version} (yanked)" if column.yanked else column.version
        yield f"| {name} | " + " | ".join(_mark(cell) for cell in column.cells) + " |"


def _mark(cell: Cell) -> str:
    words = [_word(cell)]
    words += [_WOULD[cell.would]] if cell.would is not None else []
    words += [f"now in `{move.home}`" for move in cell.moves]
    text = ", ".join(words).replace("|", "\\|")
    return f"**{text}**" if cell.failed else text


# ---- rebase ---------------------------------------------------------------------------------------------------


def render_rebased(rebased: Rebased, *, verbose: bool = False, again: str = "", links: str = "") -> Iterator[str]:
    """A line a patch with what became of it, what was written, and the next command.

    ``links`` are options that only a command on releases takes.
    """
    yield style(f"{rebased.distribution} {rebased.to}", dim=True)
    cells = [(str(row.id), row.result.value, _STEPS[row.step]) for row in rebased.patches]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row, (name, word, step) in zip(rebased.patches, cells, strict=True):
        result = style(f"{word:<{widths[1]}}", fg=_COLOURS[row.result])
        yield f"{name:<{widths[0]}}  {result}  {step}".rstrip()
        yield from (f"    {line}" for line in _details(row, verbose=verbose, dry_run=rebased.dry_run))
    if rebased.written:
        yield "would write:" if rebased.dry_run else "wrote:"
        yield from (f"  {path}" for path in rebased.written)
    following = _next_of(rebased)
    if following:
        yield f"next: {style(following + again + links, bold=True)}"


def _details(row: RebasedPatch, *, verbose: bool, dry_run: bool) -> Iterator[str]:
    if row.variant:
        yield f"{row.variant} {'would be' if dry_run and row.step is not Step.NONE else 'is'} for {row.versions}"
    if row.folder:
        yield f"{row.folder} would be made" if dry_run else row.folder
    if row.base:
        yield f"merged from {row.base}"
    yield from (f"{move.path} is {move.home} now" for move in row.moves)
    yield from row.message.splitlines()
    if row.advice:
        certain = row.result is not Rebase.CONFLICT
        yield f"{'it can be retired' if certain else 'if it is upstream'}: add below this patch in the manifest"
        yield from (f"  {line}" for line in row.advice.splitlines())
    for file in row.files if verbose else ():
        yield f"{file.path}: {file.kept} kept, {file.there} upstream, {file.conflicts} conflicts"
    for check in row.checks:
        if verbose or check.result is CheckResult.FAILED:
            yield f"{check.kind} check {check.name}: {check.result.value} ({check.message})"


def _next_of(rebased: Rebased) -> str:
    if rebased.dry_run:
        return ""
    waiting = [row.next for row in rebased.patches if row.next]
    if waiting:
        return waiting[0]
    changed = [row.id for row in rebased.patches if row.step is not Step.NONE]
    return f"patchkit coverage {_name(rebased, changed)} --versions =={rebased.to}" if changed else ""


def _name(rebased: Rebased, ids: Sequence[PatchId]) -> str:
    return str(ids[0]) if len(rebased.patches) == 1 else rebased.set
