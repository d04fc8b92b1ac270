"""The formats of `drift`: each says the same of a really drifted environment, and no text in it acts on its reader."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import cmarkgfm
import junitparser
import pytest

from drifted import CAUSES, HOSTILE, World
from patchkit.cli import main
from patchkit.drift import Cause, Drift, DriftedFile
from patchkit.errors import ExitCode
from patchkit.installed import FileState
from patchkit.junit import render_junit
from patchkit.markdown import LIMIT, render_markdown
from patchkit.model import Notice
from patchkit.page import render_page
from patchkit.patchset import PatchId
from patchkit.report import Report
from rivals import interrupt
from stages import DATA, LINES, MOD, SHIPPED, Stage, edit, make_diff, make_stage, patch, put
from worlds import Finished, tree

FORMATS = ("text", "json", "markdown", "junit", "html")
DOCUMENTS = FORMATS[2:]


# ---- reading the formats --------------------------------------------------------------------------------------


class Table(HTMLParser):
    """The rows of the first table of a page, each as the texts of its cells; and the tags that the page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tables = 0
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        self.rows = [[cell.strip() for cell in row] for row in self.rows]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.tables += tag == "table"
        if self.tables == 1 and tag == "tr":
            self.rows.append([])
        if self.tables == 1 and tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.tables += (tag == "table") * 100

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.tables == 1 and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


Row = tuple[str, str]


def read_text(said: str) -> list[Row]:
    return [(found[1], found[2]) for found in re.finditer(r"^(\S+/\S+) +([a-z-]+) +\S", said, re.MULTILINE)]


def read_json(said: str) -> list[Row]:
    rows = ((f"{row['set']}/{row['patch']}", row["cause"]) for row in json.loads(said)["drift"])
    return [*dict.fromkeys(rows)]


def read_markdown(said: str) -> list[Row]:
    return [(row[0], row[1]) for row in Table(cmarkgfm.github_flavored_markdown_to_html(said)).rows[1:]]


def read_junit(said: str) -> list[Row]:
    cases = ElementTree.fromstring(said).iter("testcase")
    failed = ((case, case.find("failure")) for case in cases)
    return [
        (f"{case.get('classname')}/{case.get('name')}", failure.get("type") or "")
        for case, failure in failed
        if failure is not None
    ]


def read_html(said: str) -> list[Row]:
    return [(row[0], row[1]) for row in Table(said).rows[1:]]


READERS: dict[str, Callable[[str], list[Row]]] = {
    "text": read_text,
    "json": read_json,
    "markdown": read_markdown,
    "junit": read_junit,
    "html": read_html,
}

# What Jenkins' schema (junit-10.xsd) allows: attributes and children of each element.
SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, {"failure", "error", "skipped"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-err": (set(), set()),
}


def check_schema(element: ElementTree.Element) -> None:
    attributes, children = SCHEMA[element.tag]
    assert element.attrib.keys() <= attributes
    assert element.tag != "testcase" or len(element) <= 1, "readers take the first"
    for child in element:
        assert child.tag in children
        check_schema(child)


@pytest.fixture
def drift(drifted_world: World, capfd: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """`drift` on the world, in this process."""

    def call(*args: str) -> Finished:
        words = drifted_world.words("drift", *args)
        capfd.readouterr()
        code = main(words)
        return Finished(words, code, *capfd.readouterr())

    return call


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    return stage


# ---- one report in five formats -------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_tells_the_same_rows(format: str, drift: Callable[..., Finished]) -> None:
    said = drift("--format", format).expect(1).out
    assert dict(READERS[format](said)) == {f"{name}/fix": cause for name, cause in CAUSES.items()}
    assert READERS[format](said) == read_json(drift("--json").expect(1).out)


@pytest.mark.parametrize("format", DOCUMENTS)
def test_every_format_has_every_remedy_and_every_detail(format: str, drift: Callable[..., Finished]) -> None:
    said = drift("--format", format).out
    shown = {
        "markdown": lambda: Table(cmarkgfm.github_flavored_markdown_to_html(said)).text,
        "junit": lambda: "".join(ElementTree.fromstring(said).itertext()),
        "html": lambda: Table(said).text,
    }[format]()
    for row in drift("--json").json()["drift"]:
        assert row["remedy"] in shown
        for words in (row["detail"].split(" ", 1)[1], row["distribution"], row["path"] or ""):
            assert words in shown


@pytest.mark.parametrize("format", FORMATS)
def test_a_report_is_the_same_each_time_and_writes_nothing(
    format: str, drift: Callable[..., Finished], drifted_world: World
) -> None:
    before = tree(drifted_world.venv.site_packages)
    assert drift("--format", format).out == drift("--format", format).out
    assert tree(drifted_world.venv.site_packages) == before


def test_the_format_json_is_the_option_json(drift: Callable[..., Finished]) -> None:
    assert drift("--format", "json") == drift("--format", "json")
    assert drift("--format", "json").out == drift("--json").out == drift("--json", "--format", "json").out


def test_conflicting_hunks_of_the_new_version_stand_beside_what_they_met(drift: Callable[..., Finished]) -> None:
    junit = drift("--format", "junit").out
    [body] = [
        case.findtext("failure")
        for case in ElementTree.fromstring(junit).iter("testcase")
        if case.get("classname") == "upgraded"
    ]
    assert body is not None
    assert "hunk 1 (line 8, offset +1) fits" in body and "hunk 2 (line 20) does not fit" in body
    assert "    -        except OSError as error:\n    +        except ConnectionError as error:\n" in body
    assert "time.sleep(pause)\n    -" not in body, "a line that was not looked at is not missing"
    page = drift("--format", "html").out
    assert "except <del>OSError</del> as error:" in page and "except <ins>ConnectionError</ins> as error:" in page


# ---- options --------------------------------------------------------------------------------------------------


def test_json_and_another_format_contradict_each_other(drift: Callable[..., Finished]) -> None:
    for format in ("text", "markdown", "junit", "html"):
        said = drift("--format", format, "--json").expect(2)
        assert "contradict" in said.json()["error"]["message"]


def test_a_format_that_was_typed_wins_over_the_variable(
    drift: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHKIT_JSON", "1")
    assert drift().expect(1).json()["command"] == "drift"
    assert drift("--format", "html").expect(1).out.startswith("<!DOCTYPE html>")


def test_a_usage_error_under_the_format_json_is_a_document(drift: Callable[..., Finished]) -> None:
    for words in (("--format", "json"), ("--format=json",)):
        assert drift(*words, "--nope").expect(2).json()["error"]["code"] == "usage"
    said = drift("--format", "pdf").expect(2)
    assert said.out == "" and "'pdf'" in said.err and "markdown" in said.err


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_gets_the_report_without_colours_and_one_line_says_where(
    format: str, drift: Callable[..., Finished], tmp_path: Path
) -> None:
    file = tmp_path / "report"
    said = drift("--format", format, "--output", str(file), "--color", "always").expect(1)
    told = [f"{drift().out.splitlines()[-1]}; the report is in {file}"]
    assert said.out.splitlines() == ([] if format == "json" else told)
    assert said.err == ""
    assert file.read_text("utf-8") == drift("--format", format, "--color", "never").out
    assert os.listdir(tmp_path) == ["report"]
    quiet = drift("--format", format, "--output", str(file), "--quiet").expect(1)
    assert (quiet.out, quiet.err) == ("", "")


def test_a_file_that_cannot_be_written_is_an_error_and_nothing_is_lost(
    drift: Callable[..., Finished], tmp_path: Path
) -> None:
    said = drift("--format", "html", "--output", str(tmp_path / "nowhere" / "report.html")).expect(4)
    assert said.out == "" and "nowhere/report.html cannot be written" in said.err and "hint:" in said.err
    (tmp_path / "folder").mkdir()
    drift("--output", str(tmp_path / "folder")).expect(4)
    assert not list((tmp_path / "folder").iterdir())


def test_a_report_is_printed_in_any_locale(drifted_world: World, patchkit: Callable[..., Finished]) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for format in ("html", "junit"):
        said = patchkit(*drifted_world.words("drift", "--format", format), env=ascii_only).expect(1)
        assert said.out.isascii() and said.out.startswith("<")


# ---- nothing, errors, interruptions ---------------------------------------------------------------------------


def texts(stage: Stage, ends: int, *args: str) -> Iterator[tuple[str, str, str]]:
    """What each document shows on this stage: its format, its source, and all of its text."""
    for format in DOCUMENTS:
        said = stage.run("drift", "--format", format, *args).expect(ends).out
        if format == "junit":
            root = ElementTree.fromstring(said)
            check_schema(root)
            yield (
                format,
                said,
                " ".join([*root.itertext(), *(value for each in root.iter() for value in each.attrib.values())]),
            )
        else:
            yield (
                format,
                said,
                Table(said if format == "html" else cmarkgfm.github_flavored_markdown_to_html(said)).text,
            )


def test_no_drift_is_said_in_every_format(stage: Stage) -> None:
    stage.run("apply").expect(0)
    for format, said, shown in texts(stage, 0):
        assert "1 applied" in shown or format == "junit"
        assert not READERS[format](said) or format == "html"
    suites = junitparser.JUnitXml.fromstring(stage.run("drift", "--format", "junit").out.encode())
    assert [(case.classname, case.name, case.is_passed) for suite in suites for case in suite] == [("fix", "one", True)]


def test_where_nothing_is_declared_or_applied_every_format_says_so(stage: Stage) -> None:
    shutil.rmtree(stage.patches / "fix")
    for format, _, shown in texts(stage, 0):
        assert "nothing is declared or applied here" in shown or (format == "junit" and "patchkit environment" in shown)


def test_a_patch_that_is_not_meant_here_is_skipped(stage: Stage) -> None:
    stage.add("absent", patch("a", edit(3, b"3\n")), distribution="not-there")
    stage.run("apply").expect(0)
    [suite] = junitparser.JUnitXml.fromstring(stage.run("drift", "--format", "junit").expect(0).out.encode())
    assert {case.classname: case.is_skipped for case in suite} == {"absent": True, "fix": False}
    assert (suite.tests, suite.skipped, suite.failures, suite.errors) == (2, 1, 0, 0)


def test_an_error_is_said_in_every_format(stage: Stage) -> None:
    stage.run("apply").expect(0)
    stage.ledger_file.write_bytes(b"{")
    message = stage.json("drift", exit_code=8)["error"]["message"]
    for format, said, shown in texts(stage, 8):
        assert " ".join(message.split()) in " ".join(shown.split())
        assert "damaged-state" in shown and "exit 8" in shown
        assert {"junit": "<error ", "html": 'role="alert"', "markdown": "error `damaged-state`"}[format] in said
    file = stage.folder / "report.html"
    told = stage.run("drift", "--format", "html", "--output", str(file)).expect(8)
    assert "the report is in" in told.out and "error: " in told.err
    assert "damaged-state" in file.read_text()
    assert stage.run("drift", "--output", str(file)).expect(8).out and "error: " in file.read_text()


def test_an_environment_that_is_not_there_is_said_in_every_format(stage: Stage) -> None:
    for _, _, shown in texts(stage, 4, "--python", str(stage.folder / "nowhere")):
        assert "no-environment" in shown and "--python" in shown


def test_an_interrupted_transaction_is_said_in_every_format(stage: Stage) -> None:
    interrupt(stage)
    for format, said, shown in texts(stage, 1):
        assert "interrupted" in shown and "patchkit recover" in shown
        if format == "junit":
            assert read_junit(said) == [("patchkit/environment", "interrupted")]


def test_warnings_are_in_every_format(stage: Stage) -> None:
    stage.run("apply").expect(0)
    put(stage.patches / "broken" / "patchset.toml", b"schema = [\n")
    warning = stage.json("drift", exit_code=0)["warnings"][0]["message"]
    for _, _, shown in texts(stage, 0):
        assert " ".join(warning.split()) in " ".join(shown.split())


def test_a_file_that_several_patches_share_is_shown_whole_and_said_to_be(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")), patch("two", edit(30, b"line_30 = 'thirty'\n")))
    stage.run("apply").expect(0)
    stage.write(MOD, b"".join(LINES))
    for _, said, shown in texts(stage, 1):
        assert len(READERS["json"](stage.run("drift", "--json").out)) == 2
        assert shown.count("other patches drifted in this file too") == 2
        assert said.count("thirty") >= 2


def test_a_text_report_of_a_binary_file_fits_the_width(stage: Stage) -> None:
    stage.add("fix", patch("one", make_diff({DATA: SHIPPED[DATA]}, {DATA: b"one\n2\nthree\n"})))
    stage.run("apply").expect(0)
    stage.write(DATA, b"\x00\xff" * 5000)
    plain, verbose = (stage.run("drift", *more).expect(1).out.splitlines() for more in ((), ("--verbose",)))
    assert any("found    | \\x00\\xff" in line for line in plain)
    assert max(len(line) for line in plain if "remedy" not in line and "environment" not in line) <= 100
    assert 300 < max(len(line) for line in verbose if " | " in line) < 450


# ---- JUnit ----------------------------------------------------------------------------------------------------


def test_other_readers_of_junit_count_what_we_count(drift: Callable[..., Finished]) -> None:
    said = drift("--format", "junit").out
    check_schema(ElementTree.fromstring(said))
    document = junitparser.JUnitXml.fromstring(said.encode())
    [suite] = document
    stated = (document.tests, document.failures, document.errors, suite.tests, suite.failures, suite.skipped)
    assert stated == (10, 9, 0, 10, 9, 0)
    suite.update_statistics()
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (10, 9, 0, 0)
    assert [case.classname for case in suite if case.is_passed] == ["kept"]


def test_two_causes_of_one_patch_are_one_case(stage: Stage) -> None:
    stage.run("apply").expect(0)
    stage.write(MOD, b"edited\n")
    stage.add("fix", patch("two", edit(5, b"line_5 = 'five'\n")))
    assert len(read_json(stage.run("drift", "--json").out)) > 1
    cases = read_junit(stage.run("drift", "--format", "junit").out)
    assert len({case for case, _ in cases}) == len(cases)
    assert {cause for _, causes in cases for cause in causes.split(", ")} >= {"edited", "patch-changed"}


# ---- hostile texts --------------------------------------------------------------------------------------------


def test_a_hostile_file_is_shown_and_does_nothing(drift: Callable[..., Finished]) -> None:
    first = HOSTILE.splitlines()[0].decode()
    markdown = drift("--format", "markdown").out
    rendered = Table(cmarkgfm.github_flavored_markdown_to_html(markdown, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
    assert first in rendered.text and "@everyone #1 `code` ]]>" in rendered.text
    assert not rendered.tags & {"script", "img", "a"} and "details" in rendered.tags
    page = drift("--format", "html").out
    assert first in Table(page).text.replace("\u2212", "")
    assert not Table(page).tags & {"script", "img", "iframe", "link", "object", "svg"}
    assert "http" not in re.sub(r"https:(?=//evil\.example)|http-equiv", "", page)
    junit = "".join(ElementTree.fromstring(drift("--format", "junit").out).itertext())
    assert first in junit
    for shown in (rendered.text, Table(page).text, junit):
        assert "\\x1b[31mred" in shown and "\\x00\\x08\\xff\\xfe" in shown and "\\u202etxet" in shown
        assert not set(shown) & {"\x1b", "\x00", "\x08", "\u202e", "\r"}
        assert re.search(r"\[\.\.\. 9\d{3} characters \.\.\.\]", shown)


EVIL = (
    "a|b`c` <script>x</script> **b** _i_ [l](u) @team #12 https://x.example www.y.example GH-3 &amp; \\| \x1b[1m\nnext"
)


def make_report(rows: int = 1, *, words: str = EVIL, notices: Sequence[Notice] = (), data: bytes = b"b\n") -> Report:
    """A report whose every text is ``words``."""
    file = DriftedFile(words, FileState.FOREIGN, None, None, words, (), b"a\n", data)
    drift = tuple(
        Drift(PatchId("set", f"p{n}"), Cause.EDITED, words, words, words, "1", "1", None, (file,)) for n in range(rows)
    )
    return Report("drift", words, words, notices=tuple(notices), answer=ExitCode.NO, drift=drift)


def test_names_and_messages_are_text_in_markdown() -> None:
    markdown = render_markdown(make_report(notices=[Notice("evil", EVIL)]))
    rendered = Table(cmarkgfm.github_flavored_markdown_to_html(markdown, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
    assert [len(row) for row in rendered.rows] == [5, 5]
    assert rendered.tags <= {
        "p",
        "strong",
        "code",
        "ul",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "pre",
    }
    shown = " ".join(EVIL.replace("\x1b", "\\x1b").split())
    assert [rendered.rows[1][place] for place in (3, 4)] == [shown, shown]
    prose = re.sub(
        r"<code>.*?</code>|<pre.*?</pre>", "", cmarkgfm.github_flavored_markdown_to_html(markdown), flags=re.DOTALL
    )
    assert not re.search(r"@team|#12|https://|www\.y|GH-3", prose), "GitHub would make links and mentions of these"


def test_a_file_that_closes_fences_and_elements_stays_within_its_own() -> None:
    closing = b"``````\n</details>\n<h1>out</h1>\n"
    file = DriftedFile("a.py", FileState.FOREIGN, None, None, "is odd", (), closing + b"a\n", closing + b"b\n")
    row = Drift(PatchId("set", "a"), Cause.EDITED, "words", "remedy", None, None, None, None, (file,))
    markdown = render_markdown(Report("drift", answer=ExitCode.NO, drift=(row,)))
    rendered = Table(cmarkgfm.github_flavored_markdown_to_html(markdown, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))
    assert "h1" not in rendered.tags and " ``````\n </details>\n <h1>out</h1>\n-a\n+b\n" in rendered.text


def test_names_and_messages_are_text_in_html_and_junit() -> None:
    report = make_report(notices=[Notice("evil", EVIL)])
    page = Table(render_page(report))
    assert "script" not in page.tags and EVIL.replace("\x1b", "\\x1b").splitlines()[0] in page.text
    root = ElementTree.fromstring(render_junit(report))
    check_schema(root)
    assert EVIL.replace("\x1b", "\\x1b") in (root.findtext("testsuite/testcase/failure") or "")


# ---- bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "report",
    [
        make_report(3000),
        make_report(300),
        make_report(9, words="w" * 9000),
        make_report(1, words="\U0001f98a|" * 70_000),
        make_report(1, notices=[Notice("n", EVIL)] * 2000),
    ],
    ids=["rows", "details", "words", "one", "notices"],
)
def test_a_comment_is_never_too_long_and_says_what_is_left_out(report: Report) -> None:
    markdown = render_markdown(report)
    assert len(markdown.encode()) <= LIMIT < 65_536
    assert "_Cut: " in markdown and "`patchkit drift` shows" in markdown
    rendered = cmarkgfm.github_flavored_markdown_to_html(markdown, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)
    assert rendered.count("<details>") == rendered.count("</details>") == markdown.count("</details>")
    assert all(len(row) == 5 for row in Table(rendered).rows)


def test_a_comment_that_fits_is_not_cut() -> None:
    assert "Cut" not in render_markdown(make_report(20, words="words"))


def test_a_page_of_huge_files_stays_small_and_says_so() -> None:
    many = b"".join(b"%d\n" % number for number in range(3000))
    page = render_page(make_report(30, words="words", data=many))
    assert len(page) < 8_000_000
    assert "more rows have no room here" in page and "The texts have no room on this page" in page


def test_a_failure_in_junit_is_cut_with_a_word() -> None:
    many = b"".join(b"%d\n" % number for number in range(5000))
    failure = ElementTree.fromstring(render_junit(make_report(data=many))).findtext("testsuite/testcase/failure")
    assert (
        failure is not None and len(failure.splitlines()) < 220 and "more lines: `patchkit drift --verbose`" in failure
    )
