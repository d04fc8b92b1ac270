"""Drift reports as one HTML page that needs nothing else: no script, no network, no style sheet beside it.

It can be read by eye, by keyboard, by a screen reader, on paper and on a telephone (docs/reference/drift.md). Texts
come from files and messages that nobody vouches for: `elements` escapes them, and the page's policy forbids the rest.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from patchkit import __version__
from patchkit.alignment import Alignment, Gap, Kind, Line, Pair, Row
from patchkit.drift import Cause, Drift
from patchkit.drift_text import name_row, tell_headline, tell_versions
from patchkit.elements import make, write_html
from patchkit.errors import ExitCode, PatchkitError
from patchkit.evidence import FileEvidence, gather
from patchkit.model import PatchState
from patchkit.report import PatchReport, Report
from patchkit.stylesheet import STYLE

LIMIT = 10_000
"""Rows of texts side by side on one page; what would go beyond is left out, and said so."""

_TONES = {
    Cause.REINSTALLED: "turn",
    Cause.UPGRADED: "turn",
    Cause.DOWNGRADED: "turn",
    Cause.UNINSTALLED: "loss",
    Cause.EDITED: "loss",
    Cause.PATCH_CHANGED: "list",
    Cause.PATCH_REMOVED: "list",
    Cause.NOT_APPLIED: "loss",
    Cause.INTERRUPTED: "loss",
}
_SIGNS = {Kind.CHANGED: "\u2260", Kind.MISSING: "\u2212", Kind.EXTRA: "+"}


def render_page(report: Report) -> str:
    """The page, the same for equal reports."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = make(
        "head",
        make("meta", charset="utf-8"),
        make("meta", http_equiv="Content-Security-Policy", content=policy),
        make("meta", name="viewport", content="width=device-width, initial-scale=1"),
        make("meta", name="referrer", content="no-referrer"),
        make("title", f"{tell_headline(report)} \u2013 patchkit"),
        make("style"),
    )
    head[-1].text = STYLE
    skip = make("a", "Skip to the report", href="#report", class_="skip")
    main = make("main", *_list_sections(report), id="report", tabindex="-1")
    return write_html(make("html", head, make("body", skip, _header(report), main, _footer()), lang="en"))


# ---- the head of the page -------------------------------------------------------------------------------------


def _header(report: Report) -> Element:
    counts = Counter((row.cause.value, _TONES[row.cause]) for row in report.drift or ())
    if not counts and report.error is None:
        counts = Counter((patch.state.value, _tone(patch)) for patch in report.patches)
    items = [make("li", f"{count} {word}", class_=f"cause {tone}") for (word, tone), count in counts.items()]
    return make(
        "header",
        make("p", "patchkit drift", class_="title"),
        make("h1", _title(report)),
        *([make("ul", *items, class_="counts", aria_label="Patches by what happened")] if items else []),
        make("dl", *_list_facts(report), class_="facts"),
    )


def _title(report: Report) -> str:
    rows = report.drift or ()
    if report.error is not None:
        return "The drift cannot be told"
    if any(row.id is None for row in rows):
        return "A transaction was interrupted"
    if report.summary:
        return report.summary
    if rows:
        drifted, known = {row.id for row in rows}, {patch.id for patch in report.patches}
        return f"{len(drifted)} of {_count(len(drifted | known), 'patch', 'patches')} drifted"
    return "No drift" if report.patches else "No drift: nothing is declared or applied here"


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _list_facts(report: Report) -> Iterator[Element]:
    meanings = {ExitCode.DONE: "nothing drifted", ExitCode.NO: "something drifted"}
    code = report.exit_code
    facts: dict[str, Element | str | None] = {
        "Site root": None if report.site_root is None else make("code", report.site_root),
        "Python": report.python,
        "Exit code": f"{int(code)} ({meanings.get(code, code.name.lower().replace('_', ' '))})",
    }
    for name, value in facts.items():
        if value is not None:
            yield make("div", make("dt", name), make("dd", value))


def _footer() -> Element:
    return make(
        "footer",
        make(
            "p",
            "Side by side, ",
            make("del", "this", class_="sample"),
            " was expected and is not there, and ",
            make("ins", "this", class_="sample"),
            " is there instead. Characters that cannot be seen are written as escapes.",
        ),
        make("p", f"Written by patchkit {__version__}. Remedies are commands to be typed as they stand."),
    )


# ---- the sections ---------------------------------------------------------------------------------------------


def _list_sections(report: Report) -> Iterator[Element]:
    if report.error is not None:
        yield _section("error", "What went wrong", *(_alert(single) for single in report.error.all()))
    if report.notices:
        items = (make("li", notice.message) for notice in report.notices)
        yield _section("warnings", "Warnings", make("ul", *items, class_="warnings"))
    rows = report.drift or ()
    if rows:
        yield _section("drifted", "Overview", _overview(rows))
        yield _section("found", "What was found", *_list_articles(report, rows))
    names = {row.id for row in rows}
    rest = [patch for patch in report.patches if patch.id not in names]
    if rest:
        yield _section("rest", "Where nothing drifted", _rest(rest))


def _section(id: str, title: str, *children: Element) -> Element:
    return make("section", make("h2", title, id=id), *children, aria_labelledby=id)


def _alert(error: PatchkitError) -> Element:
    hint = [make("p", f"Hint: {error.hint}")] if error.hint else []
    return make(
        "div",
        make("h3", f"{error.code} (exit {int(error.exit_code)})"),
        make("p", error.message),
        *hint,
        role="alert",
        class_="said",
    )


def _table(caption: str, names: Mapping[str, str], rows: Sequence[Element]) -> Element:
    return make(
        "table",
        make("caption", caption, class_="unseen"),
        make("thead", make("tr", *(make("th", name, scope="col", class_=kind) for name, kind in names.items()))),
        make("tbody", *rows),
        class_="rows",
    )


def _overview(rows: Sequence[Drift]) -> Element:
    return _table(
        "A row for each patch that drifted",
        {"Patch": "name", "Cause": "word", "Distribution": "distribution", "What happened": "message"},
        [
            make(
                "tr",
                make("th", make("a", name_row(row), href=f"#row-{number}"), scope="row"),
                make("td", _cause(row), data_name="Cause"),
                make("td", tell_versions(row), data_name="Distribution"),
                make("td", row.detail),
            )
            for number, row in enumerate(rows, 1)
        ],
    )


def _rest(patches: Sequence[PatchReport]) -> Element:
    return _table(
        "A row for each patch that did not drift",
        {"Patch": "name", "State": "word", "Distribution": "distribution", "Message": "message"},
        [
            make(
                "tr",
                make("th", str(patch.id), scope="row"),
                make("td", make("span", patch.state.value, class_=f"cause {_tone(patch)}"), data_name="State"),
                make("td", f"{patch.distribution} {patch.installed or ''}".rstrip(), data_name="Distribution"),
                make("td", patch.message),
            )
            for patch in patches
        ],
    )


def _tone(patch: PatchReport) -> str:
    return "idle" if patch.state in (PatchState.NOT_INSTALLED, PatchState.NOT_APPLICABLE) else "calm"


def _cause(row: Drift) -> Element:
    return make("span", row.cause.value, class_=f"cause {_TONES[row.cause]}")


# ---- a row with its evidence ----------------------------------------------------------------------------------


def _list_articles(report: Report, rows: Sequence[Drift]) -> Iterator[Element]:
    room = LIMIT
    for number, row in enumerate(rows, 1):
        files = gather(report, row)
        needed = sum(len(passage.alignment.rows) for file in files for passage in file.passages)
        yield _article(number, row, files, shown=needed <= room)
        room -= needed if needed <= room else 0


def _article(number: int, row: Drift, files: Sequence[FileEvidence], *, shown: bool) -> Element:
    id = f"row-{number}"
    title = make("h3", name_row(row), id=id)
    words = [make("p", line, class_="what") for line in row.detail.splitlines()]
    remedy = [make("p", "Remedy", make("code", row.remedy), class_="remedy")] if row.remedy else []
    full = (
        [] if shown else [make("p", "The texts have no room on this page: `patchkit drift --verbose`.", class_="what")]
    )
    details = (_details(file, shown=shown) for file in files)
    head = make("div", title, _cause(row), make("span", tell_versions(row)), class_="head")
    return make("article", head, *words, *remedy, *full, *details, aria_labelledby=id)


def _details(file: FileEvidence, *, shown: bool) -> Element:
    words = f" {file.words}" if file.words else ""
    notes = [make("ul", *(make("li", note) for note in file.notes), class_="notes")] if file.notes else []
    texts = (
        element
        for passage in (file.passages if shown else ())
        for element in (
            *([make("p", passage.words, class_="where")] if passage.words else []),
            *_side_by_side(f"{file.path} {passage.words}".rstrip(), passage.alignment),
        )
    )
    summary = make("summary", make("h4", make("code", file.path)), words)
    return make("details", summary, *notes, *texts, open="")


def _side_by_side(caption: str, alignment: Alignment) -> Iterator[Element]:
    heads = (
        make("th", make("span", "Difference", class_="unseen"), scope="col", class_="sign"),
        make("th", "Line", scope="col", class_="number"),
        make("th", "Expected", scope="col"),
        make("th", "Line", scope="col", class_="number"),
        make("th", "Found", scope="col"),
    )
    yield make(
        "table",
        make("caption", f"{caption}: expected and found", class_="unseen"),
        make("thead", make("tr", *heads)),
        make("tbody", *(_row(row) for row in alignment.rows)),
        class_="side",
    )
    if alignment.cut:
        words = f"{_count(alignment.cut, 'more row has', 'more rows have')} no room here: `patchkit drift --verbose`."
        yield make("p", words, class_="where")


def _row(row: Row) -> Element:
    match row:
        case Gap(lines):
            return make("tr", make("td", f"{lines} lines that are the same", colspan="5"), class_="gap")
        case Pair(kind, expected, found):
            cells = (*_cells(expected, "expected", kind), *_cells(found, "found", kind))
            return make("tr", make("td", *_sign(kind), class_="sign"), *cells, class_=kind.value)


def _sign(kind: Kind) -> tuple[Element, ...]:
    """What tells how a row differs without colour: a sign for the eye, a word for the ear."""
    if kind is Kind.SAME:
        return ()
    return make("span", _SIGNS[kind], aria_hidden="true"), make("span", kind.value, class_="unseen")


def _cells(line: Line | None, side: str, kind: Kind) -> tuple[Element, Element]:
    """The number of a line and its text, in which what differs is marked."""
    if line is None:
        return make("td", class_=f"number {side}-number none"), make("td", class_=f"text {side} none")
    mark = "del" if side == "expected" else "ins"
    spans = (make(mark, span.text) if span.differs else span.text for span in line.spans)
    differs = "" if kind is Kind.SAME else " differs"
    number = "" if line.number is None else str(line.number)
    return make("td", number, class_=f"number {side}-number"), make("td", *spans, class_=f"text {side}{differs}")
