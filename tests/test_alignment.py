"""Two texts side by side, and what is left of a text that is not fit to be shown."""

from __future__ import annotations

import time
import unicodedata
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as some

from patchkit.alignment import CONTEXT, LONGEST, Alignment, Gap, Kind, Line, Pair, align, split_lines
from patchkit.elements import make, write_html, write_xml
from patchkit.escapes import make_legible

LINES = tuple(f"line_{number} = {number}" for number in range(40))
TEXTS = some.lists(some.sampled_from(["a", "b = 1", "b = 2", "    c(b)", "", "\t"]), max_size=30)


def pairs(alignment: Alignment) -> list[Pair]:
    return [row for row in alignment.rows if isinstance(row, Pair)]


def marked(line: Line | None) -> str:
    """A line with what differs in brackets."""
    return "" if line is None else "".join(f"[{span.text}]" if span.differs else span.text for span in line.spans)


def told(alignment: Alignment) -> list[tuple[str, str, str]]:
    return [(pair.kind.value, marked(pair.expected), marked(pair.found)) for pair in pairs(alignment)]


# ---- lines ----------------------------------------------------------------------------------------------------


def test_equal_lines_far_from_a_difference_are_left_out() -> None:
    found = [*LINES[:20], "line_20 = 'twenty'", *LINES[21:]]
    first, *shown, last = align(LINES, found, limit=400).rows
    assert (first, last) == (Gap(20 - CONTEXT), Gap(19 - CONTEXT))
    assert [row.kind for row in shown if isinstance(row, Pair)] == [Kind.SAME] * 3 + [Kind.CHANGED] + [Kind.SAME] * 3
    assert [row.found.number for row in shown if isinstance(row, Pair) and row.found] == [*range(18, 25)]


def test_what_differs_within_a_line_is_marked_on_both_sides() -> None:
    assert told(align(["pause = 0.5  # why"], ["pause = 2.5  # why"], limit=9)) == [
        ("changed", "pause = [0].5  # why", "pause = [2].5  # why")
    ]


def test_two_lines_that_share_little_are_still_one_that_was_changed() -> None:
    assert told(align(["line_5 = 'five'"], ["line_5 = 5.5"], limit=9)) == [
        ("changed", "line_5 = ['five']", "line_5 = [5.5]")
    ]


def test_lines_that_have_nothing_in_common_stand_beside_each_other_whole() -> None:
    assert told(align(["    return one"], ["import sys"], limit=9)) == [("changed", "    [return one]", "[import sys]")]


def test_an_inserted_line_does_not_part_the_lines_around_it_that_were_changed() -> None:
    expected = ["alpha = first(1)", "beta = second(2)"]
    found = ["alpha = first(9)", "print('new')", "beta = second(9)"]
    assert [kind for kind, _, _ in told(align(expected, found, limit=9))] == ["changed", "extra", "changed"]


def test_a_side_may_be_empty() -> None:
    assert told(align(["a"], [], limit=9)) == [("missing", "[a]", "")]
    assert told(align([], ["", "a"], limit=9)) == [("extra", "", ""), ("extra", "", "[a]")]
    assert align([], [], limit=9) == Alignment(())


@given(TEXTS, TEXTS)
def test_every_line_of_both_sides_is_told_once_and_in_order(expected: list[str], found: list[str]) -> None:
    alignment = align(expected, found, limit=1000)
    place = [0, 0]
    for row in alignment.rows:
        if isinstance(row, Gap):
            low, high = place[0] + row.lines, place[1] + row.lines
            assert expected[place[0] : low] == found[place[1] : high]
            place = [low, high]
            continue
        for side, (line, text) in enumerate(((row.expected, expected), (row.found, found))):
            if line is not None:
                assert line.number == place[side] + 1 and line.text == text[place[side]]
                place[side] += 1
        texts = [None if line is None else line.text for line in (row.expected, row.found)]
        assert (row.kind is Kind.SAME) == (texts[0] == texts[1])
    assert place == [len(expected), len(found)]


@given(TEXTS, TEXTS, some.integers(0, 10))
def test_what_has_no_room_is_counted(expected: list[str], found: list[str], limit: int) -> None:
    whole, cut = align(expected, found, limit=1000), align(expected, found, limit=limit)
    assert cut.rows == whole.rows[:limit]
    assert len(cut.rows) + cut.cut == len(whole.rows)


def test_texts_without_end_are_aligned_in_bounded_time() -> None:
    turned = [str(number * 7 % 95) for number in range(2000)]
    hard = (
        ([str(number % 95) for number in range(2000)], turned),
        ([str(number) for number in range(200_000)], [str(-number) for number in range(200_000)]),
        (["a b " * 100_000 + "x"], ["a b " * 100_000 + "y"]),
    )
    begun = time.monotonic()
    for expected, found in hard:
        assert len(align(expected, found, limit=400).rows) <= 400
    assert time.monotonic() - begun < 20, "this takes less than a second on an idle machine"


def test_a_long_line_is_shown_where_it_differs() -> None:
    [row] = pairs(align(["word " * 2000 + "one" + " word" * 2000], ["word " * 2000 + "two" + " word" * 2000], limit=9))
    assert row.expected is not None and row.found is not None
    assert "[one]" in marked(row.expected) and "[two]" in marked(row.found)
    assert row.expected.text.startswith("[... 9960 characters ...]") and len(row.expected.text) < LONGEST + 60


# ---- bytes ----------------------------------------------------------------------------------------------------


def test_a_missing_newline_at_the_end_is_a_difference() -> None:
    assert told(align(split_lines(b"a\nb\n"), split_lines(b"a\nb"), limit=9))[-1] == (
        "extra",
        "",
        "[\\ No newline at end of file]",
    )


def test_bytes_that_are_no_text_differ_from_their_escapes() -> None:
    [(kind, expected, found)] = told(align(split_lines(b"\xff\n"), split_lines(b"\\xff\n"), limit=9))
    assert kind == "changed" and expected == found == "[\\xff]"


def test_line_ends_are_seen() -> None:
    [(_, expected, found)] = told(align(split_lines(b"a = 1\n"), split_lines(b"a = 1\r\n"), limit=9))
    assert (expected, found) == ("a = 1", "a = 1[\\x0d]")


# ---- what is not fit to be shown ------------------------------------------------------------------------------


def test_what_drives_a_terminal_or_turns_a_line_around_is_an_escape() -> None:
    assert make_legible("\x1b[31m \x00 \x7f \u202e \ufeff \u200b \U000e0041") == (
        "\\x1b[31m \\x00 \\x7f \\u202e \\ufeff \\u200b \\U000e0041"
    )
    assert make_legible("tab\t, line\n, é, 漢, 🦊") == "tab\t, line\n, é, 漢, 🦊"
    assert make_legible(b"\xff\xe9".decode("utf-8", "surrogateescape")) == "\\xff\\xe9"


@given(some.text(some.characters(blacklist_categories=()), max_size=40))
def test_any_text_becomes_one_that_xml_can_hold(text: str) -> None:
    shown = make_legible(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cs") and sign not in "\t\n" for sign in shown)
    root = ElementTree.fromstring(write_xml(make("a", text, make("b"), text, title=text)))
    assert (root.text or "", root[0].tail or "", root.get("title")) == (shown, shown, shown)
    assert write_html(make("a", text)).isascii()
