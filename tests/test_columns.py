"""Rows in columns and sentences below them: within 100 columns, whatever the names, and nothing is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.columns import MARGIN, WIDTH, Cell, lay_out, wrap
from stages import Stage, edit, make_stage, patch


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


WORDS = st.text(alphabet="abc-/.+", min_size=1, max_size=60)
ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS, st.just("") | WORDS), min_size=1, max_size=5)


def lay(*rows: tuple[str, ...]) -> list[list[str]]:
    return lay_out([[Cell(words) for words in row] for row in rows])


def test_rows_that_fit_are_aligned() -> None:
    assert lay(("a", "applied", "x"), ("long/name", "no", "")) == [["a          applied  x"], ["long/name  no"]]


def test_the_last_column_goes_below_in_all_rows_where_one_is_too_wide() -> None:
    assert lay(("a", "applied", "x" * 90), ("b", "no", "y")) == [
        ["a  applied", f"{MARGIN}{'x' * 90}"],
        ["b  no", f"{MARGIN}y"],
    ]


def test_colours_take_no_room() -> None:
    assert lay_out([[Cell("a", "\x1b[31ma\x1b[0m"), Cell("b")], [Cell("aaa"), Cell("b")]]) == [
        ["\x1b[31ma\x1b[0m    b"],
        ["aaa  b"],
    ]


def test_no_rows_have_no_lines() -> None:
    assert lay_out([]) == []


@given(ROWS)
def test_every_word_is_there_whole_and_in_order_within_the_width(rows: list[tuple[str, ...]]) -> None:
    for row, lines in zip(rows, lay(*rows), strict=True):
        assert " ".join(lines).split() == [words for words in row if words]
        assert all(len(line) <= WIDTH for line in lines)


@given(st.lists(WORDS, min_size=1, max_size=40))
def test_a_sentence_keeps_its_words_and_the_width(words: list[str]) -> None:
    lines = list(wrap(" ".join(words)))
    assert " ".join(lines).split() == words
    assert all(len(line) <= WIDTH and line.startswith(MARGIN) for line in lines)


def test_a_command_stays_on_one_line() -> None:
    command = "`patchkit apply some-set/some-patch --site-packages /a/folder`"
    lines = list(wrap(f"{'word ' * 12}{command}{' word' * 12}"))
    assert any(command in line for line in lines)
    assert len(lines) > 1


def test_tables_keep_the_width_with_names_that_are_long(stage: Stage) -> None:
    name = "a-patch-set-with-quite-a-long-name"
    stage.add(name, patch("a-change-with-an-ordinary-name-of-some-length", edit(5, b"line_5 = 'five'\n")))
    stage.add(
        "other",
        patch("a-change-for-later-versions-that-has-a-name-too", edit(9, b"line_9 = 'nine'\n"), versions=">=90"),
    )
    for args in (["check"], ["status"], ["drift"], ["post-install"], ["apply", "--skip-unmatched"], ["verify"]):
        said = stage.run(*args)
        wide = [line for line in said.out.splitlines() if len(line) > WIDTH]
        assert not [line for line in wide if not re.match(r"environment |next: |hint: | +remedy: ", line)], args


def test_the_log_of_a_build_tells_a_failure_once(stage: Stage) -> None:
    stage.add("other", patch("later", edit(9, b"line_9 = 'nine'\n"), versions=">=90"))
    said = stage.run("post-install").expect(4)
    assert (said.out + said.err).count("no range holds") == 1
