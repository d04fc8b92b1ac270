"""Where hunks are placed, when they are not, what is said then, and what comes out."""

from __future__ import annotations

import difflib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.diff import read_diff
from patchkit.hunks import MAX_MISFITS, Placed, Shift, apply_hunks, find_upstream
from patchkit.model import DiffText, FileDiff, HunkOutcome, HunkResult
from patchkit.places import MAX_PLACES


def parsed(diff: bytes) -> FileDiff:
    (entry,) = read_diff(diff, DiffText(""), file="x.patch")
    return entry


def entry(*hunks: bytes) -> FileDiff:
    return parsed(b"--- a/m.py\n+++ b/m.py\n" + b"".join(hunks))


def diff_of(old: bytes, new: bytes, *, context: int = 3) -> FileDiff:
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        b"a/m.py",
        b"b/m.py",
        n=context,
    )
    return parsed(b"".join(lines))


def numbered(count: int, *, start: int = 1) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(start, start + count))


def fits(placed: Placed) -> list[tuple[int, int]]:
    """The line and offset of each hunk, all of which must fit."""
    assert placed.data is not None, [outcome.reason for outcome in placed.outcomes]
    assert all(outcome.result is HunkResult.FITS and not outcome.reason for outcome in placed.outcomes)
    return [(outcome.line, outcome.offset) for outcome in placed.outcomes]


def conflicts(placed: Placed) -> list[HunkOutcome]:
    assert placed.data is None
    return [outcome for outcome in placed.outcomes if outcome.result is HunkResult.CONFLICT]


def reason(placed: Placed) -> str:
    (conflict,) = conflicts(placed)
    return conflict.reason


OLD = numbered(30)
NEW = OLD.replace(b"line 15\n", b"changed\nand more\n")
DIFF = diff_of(OLD, NEW)

# ---- content --------------------------------------------------------------------------------------------------


def test_hunks_apply_and_their_reverse_gives_the_old_bytes() -> None:
    placed = apply_hunks(OLD, DIFF)
    assert placed.data == NEW
    assert fits(placed) == [(12, 0)]
    assert apply_hunks(NEW, DIFF.reversed()).data == OLD


def test_several_hunks_are_placed_by_lines_of_the_text_before() -> None:
    new = NEW.replace(b"line 3\n", b"").replace(b"line 28\n", b"x\ny\n")
    placed = apply_hunks(OLD, diff_of(OLD, new, context=2))
    assert placed.data == new
    assert [line for line, _ in fits(placed)] == [1, 13, 26]
    assert placed.layer == ((4, -1), (16, 1), (29, 1))


@pytest.mark.parametrize(
    ("old", "body", "new"),
    [
        (b"a\nb\n", b" a\n-b\n+B\n", b"a\nB\n"),
        (b"a\nb", b" a\n-b\n\\ No newline at end of file\n+B\n", b"a\nB\n"),
        (b"a\nb\n", b" a\n-b\n+B\n\\ No newline at end of file\n", b"a\nB"),
        (b"a\nb", b" a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n", b"a\nB"),
    ],
)
def test_all_four_transitions_of_the_last_newline_work_both_ways(old: bytes, body: bytes, new: bytes) -> None:
    diff = entry(b"@@ -1,2 +1,2 @@\n" + body)
    assert apply_hunks(old, diff).data == new
    assert apply_hunks(new, diff.reversed()).data == old


def test_a_last_line_with_and_without_a_newline_are_not_the_same() -> None:
    diff = entry(b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n")
    assert apply_hunks(b"a\nb", diff).data == b"A\nb"
    for other in (b"a\nb\n", b"a\nb \n", b"a\nbc", b"a\nb\nc\n"):
        assert apply_hunks(other, diff).data is None
    assert apply_hunks(b"a\nb", entry(b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n")).data is None


def test_creation_expects_an_empty_text_and_deletion_leaves_one() -> None:
    created = parsed(b"--- /dev/null\n+++ b/m.py\n@@ -0,0 +1,2 @@\n+a\n+b\n")
    placed = apply_hunks(b"", created)
    assert placed.data == b"a\nb\n"
    assert fits(placed) == [(1, 0)]
    assert reason(apply_hunks(b"x\n", created)) == "fits only an empty file"
    deleted = created.reversed()
    assert apply_hunks(b"a\nb\n", deleted).data == b""
    assert "be the whole file" in reason(apply_hunks(b"a\nb\nc\n", deleted))
    assert "be the whole file" in reason(apply_hunks(b"c\na\nb\n", deleted))


def test_the_deletion_of_an_empty_file_wants_it_empty() -> None:
    deleted = parsed(b"diff --git a/m b/m\ndeleted file mode 100644\nindex e69de29..0000000\n")
    assert apply_hunks(b"", deleted) == Placed(b"", ())
    assert "should be empty" in reason(apply_hunks(b"x", deleted))


def test_an_entry_without_hunks_leaves_the_text() -> None:
    moved = parsed(b"diff --git a/m b/n\nsimilarity index 100%\nrename from m\nrename to n\n")
    assert apply_hunks(b"x", moved) == Placed(b"x", ())


@pytest.mark.parametrize(
    "changed", [b"line 14 \n", b"Line 14\n", b"line 14\r\n", b"\tline 14\n", b"line\xc2\xa014\n", b"line 14\x0c\n"]
)
def test_context_must_be_equal_byte_for_byte(changed: bytes) -> None:
    assert apply_hunks(OLD.replace(b"line 14\n", changed), DIFF).data is None


# ---- places ---------------------------------------------------------------------------------------------------


def test_a_hunk_moves_to_the_one_place_where_it_fits_and_the_offset_is_told() -> None:
    above = numbered(7, start=100)
    placed = apply_hunks(above + OLD, DIFF)
    assert placed.data == above + NEW
    assert fits(placed) == [(19, 7)]
    assert fits(apply_hunks(OLD[len(numbered(5)) :], DIFF)) == [(7, -5)]


BLOCK = b"start\n    a\n    b\n    c\nend\n"
FOUR = BLOCK * 4
IN_BLOCK = b" start\n     a\n-    b\n+    B\n     c\n end\n"


@pytest.mark.parametrize("which", range(1, 4))
def test_of_four_equal_blocks_the_stated_one_is_taken(which: int) -> None:
    diff = entry(b"@@ -%d,5 +%d,5 @@\n" % (5 * which + 1, 5 * which + 1) + IN_BLOCK)
    wanted = BLOCK * which + BLOCK.replace(b"    b\n", b"    B\n") + BLOCK * (3 - which)
    assert apply_hunks(FOUR, diff).data == wanted


def test_of_four_equal_blocks_none_is_taken_when_the_stated_line_is_not_one() -> None:
    diff = entry(b"@@ -6,5 +6,5 @@\n" + IN_BLOCK)
    (conflict,) = conflicts(apply_hunks(b"moved\n" + FOUR, diff))
    assert conflict.reason == "4 places fit: lines 2, 7, 12, 17; it has no section heading"
    assert (conflict.line, conflict.offset) == (6, 0)


def under_headings(*headings: bytes) -> bytes:
    return b"".join(
        heading + b"\n" + BLOCK.replace(b"start", b"    start").replace(b"end", b"    end") for heading in headings
    )


IN_FUNCTION = b"     start\n     a\n-    b\n+    B\n     c\n     end\n"


@pytest.mark.parametrize(
    ("headings", "section", "line"),
    [
        ([b"def f(x):", b"def g(x):", b"def h(x):"], b"def g(x):", 9),
        ([b"class A:", b"class B:"], b"class B:", 9),
        ([b"  def f(self):", b"  def g(self):", b"  async def h(self):"], b"async def h(self):", 15),
        ([b"void f(int a) {", b"$g = 1", b"_h"], b"$g = 1", 9),
        ([b"def " + b"f" * 100 + b"(a):", b"def " + b"g" * 100 + b"(a):"], b"def " + b"g" * 76, 9),
        ([b"def " + b"f" * 50 + b"(a):", b"def " + b"g" * 50 + b"(a):"], b"def " + b"g" * 36, 9),
        ([b"def f(x):\r", b"def g(x):\r"], b"def g(x):", 9),
    ],
)
def test_of_several_places_the_section_heading_decides(headings: list[bytes], section: bytes, line: int) -> None:
    text = b"# a new line above\n" + under_headings(*headings)
    diff = entry(b"@@ -30,5 +30,5 @@ " + section + b"\n" + IN_FUNCTION)
    assert fits(apply_hunks(text, diff)) == [(line, line - 30)]


@pytest.mark.parametrize(
    ("headings", "section"),
    [
        ([b"def f(x):", b"def g(x):"], b"def h(x):"),
        ([b"def f(x):", b"def g(x):"], b"def g"),
        ([b"def f(x):", b"def f(x):"], b"def f(x):"),
        ([b"class A:", b"    def f(self):", b"    def f(self):"], b"class A:"),
        ([b"class A:", b"    def f(self):", b"    def f(self):"], b"def f(self):"),
    ],
)
def test_a_heading_that_none_or_several_places_stand_under_does_not_decide(
    headings: list[bytes], section: bytes
) -> None:
    text = b"# a new line above\n" + under_headings(*headings)
    diff = entry(b"@@ -30,5 +30,5 @@ " + section + b"\n" + IN_FUNCTION)
    assert "its section heading does not tell which" in reason(apply_hunks(text, diff))


def test_the_heading_is_looked_for_above_the_first_line_of_the_hunk() -> None:
    """A heading among the hunk's own lines is not what git wrote behind the second @@."""
    block = b"void f(x)\n    a\n    b\n    c\n"
    hunk = b"@@ -30,4 +30,4 @@ %s\n void f(x)\n     a\n-    b\n+    B\n     c\n"
    text = b"first\n" + block + b"second\n" + block + b"tail\n"
    assert fits(apply_hunks(text, entry(hunk % b"second"))) == [(7, -23)]
    assert apply_hunks(text, entry(hunk % b"void f(x)")).data is None


HEAD = b"".join(b"head %d\n" % number for number in range(9))
TWO_HUNKS = (
    b"@@ -3,3 +3,3 @@\n head 2\n-head 3\n+head three\n head 4\n",
    b"@@ -10,5 +10,5 @@%s\n" + IN_BLOCK,
)


def test_of_several_places_the_one_moved_as_the_hunk_above_is_taken_where_it_is_the_nearest() -> None:
    diff = entry(TWO_HUNKS[0], TWO_HUNKS[1] % b"")
    text = b"above\n" * 2 + HEAD + BLOCK * 3 + b"tail\n"
    assert fits(apply_hunks(text, diff)) == [(5, 2), (12, 2)]
    between = b"above\n" * 2 + HEAD + b"more\n" + BLOCK * 3 + b"tail\n"
    assert apply_hunks(between, diff).data is None


def test_a_section_heading_against_the_hunk_above_is_a_conflict() -> None:
    text = b"above\n" * 2 + HEAD + BLOCK + b"other\n" + BLOCK + b"tail\n"
    assert fits(apply_hunks(text, entry(TWO_HUNKS[0], TWO_HUNKS[1] % b" head 8"))) == [(5, 2), (12, 2)]
    assert "point to different ones" in reason(apply_hunks(text, entry(TWO_HUNKS[0], TWO_HUNKS[1] % b" other")))


def test_hunks_keep_their_order() -> None:
    new = OLD.replace(b"line 5\n", b"five\n").replace(b"line 25\n", b"twenty-five\n")
    swapped = numbered(10, start=20) + numbered(19) + b"line 30\n"
    placed = apply_hunks(swapped, diff_of(OLD, new))
    first, second = placed.outcomes
    assert (first.result, first.line) == (HunkResult.FITS, 12)
    assert second.reason == "fits at line 3, but only before hunk 1"


def test_hunks_never_overlap() -> None:
    diff = entry(b"@@ -5,3 +5,3 @@\n x\n-y\n+Y\n z\n", b"@@ -8,3 +8,3 @@\n z\n-y\n+Y2\n z\n")
    text = b"1\n2\n3\nx\ny\nz\ny\nz\n"
    assert apply_hunks(text, diff).data is None
    assert apply_hunks(b"1\n2\n3\n4\nx\ny\nz\nz\ny\nz\n", diff).data == b"1\n2\n3\n4\nx\nY\nz\nz\nY2\nz\n"


def test_all_conflicts_of_a_file_are_told_and_the_hunks_between_still_tried() -> None:
    new = OLD.replace(b"line 5\n", b"V\n").replace(b"line 15\n", b"XV\n").replace(b"line 25\n", b"XXV\n")
    placed = apply_hunks(OLD.replace(b"line 4\n", b"other\n").replace(b"line 26\n", b"other\n"), diff_of(OLD, new))
    assert [outcome.number for outcome in conflicts(placed)] == [1, 3]
    assert placed.outcomes[1].result is HunkResult.FITS


# ---- where git apply is stricter than patch -------------------------------------------------------------------


def test_a_hunk_that_states_line_1_stands_at_the_beginning_or_nowhere() -> None:
    new = OLD.replace(b"line 4\n", b"four\n")
    assert "beginning of the file" in reason(apply_hunks(b"above\n" + OLD, diff_of(OLD, new)))


def test_a_hunk_without_context_behind_stands_at_the_end_or_nowhere() -> None:
    new = OLD + b"added\n"
    diff = diff_of(OLD, new)
    assert apply_hunks(b"above\n" + OLD, diff).data == b"above\n" + new
    assert "at the end of the file" in reason(apply_hunks(OLD + b"below\n", diff))


def test_lines_are_never_glued_to_a_last_line_without_newline() -> None:
    removal = entry(b"@@ -3,1 +2,0 @@\n-c\n")
    assert apply_hunks(b"a\nb\nc\n", removal).data == b"a\nb\n"
    assert apply_hunks(b"a\nb\n", removal.reversed()).data == b"a\nb\nc\n"
    assert "behind a newline" in reason(apply_hunks(b"a\nb", removal.reversed()))


# ---- where the engine is stricter than git apply --------------------------------------------------------------


def test_stricter_than_git_two_equally_good_places_are_no_place() -> None:
    """git takes the nearest of them."""
    text = b"1\n" * 3 + BLOCK + b"2\n" * 40 + BLOCK
    assert "2 places fit: lines 4, 49" in reason(apply_hunks(text, entry(b"@@ -6,5 +6,5 @@\n" + IN_BLOCK)))


def test_stricter_than_git_a_hunk_may_not_stay_where_the_one_above_says_otherwise() -> None:
    """Hunk 1 moved by five lines; hunk 2 fits as stated, and moved by five lines too. git takes the stated line."""
    diff = entry(b"@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n", b"@@ -13,5 +13,5 @@\n" + IN_BLOCK)
    text = b"".join(b"%d\n" % number for number in range(-4, 8)) + BLOCK * 2 + b"tail\n"
    assert reason(apply_hunks(text, diff)) == "fits at line 13 as stated and at line 18, moved as hunk 1 is"
    one = text.replace(BLOCK * 2, BLOCK + b"other\n" * 5)
    assert fits(apply_hunks(one, diff)) == [(7, 5), (13, 0)]


def test_stricter_than_git_contradicting_line_numbers_are_not_followed() -> None:
    """The old line says the first block, the new line the second; git looks only at the new one, patch at the old."""
    diff = entry(b"@@ -6,5 +11,5 @@\n" + IN_BLOCK)
    assert "two line numbers contradict each other" in reason(apply_hunks(FOUR, diff))
    assert fits(apply_hunks(b"1\n" * 5 + BLOCK + b"2\n", diff)) == [(6, 0)]


def test_unlike_git_a_last_line_without_newline_is_found_at_the_end_alone() -> None:
    """git takes it for a line with one where it is context: here it fits line 2 and makes `aa` of two lines."""
    diff = entry(b"@@ -2,2 +2,3 @@\n a\n+b\n a\n\\ No newline at end of file\n")
    assert apply_hunks(b"a\na\na\na", diff).data == b"a\na\na\nb\na"
    assert apply_hunks(b"a\na\na\na\n", diff).data is None


# ---- in a stack -----------------------------------------------------------------------------------------------


def test_a_shift_moves_lines_at_and_below_each_edit_layer_by_layer() -> None:
    shift = Shift().above(((10, 3), (20, -1))).above(((13, 5),))
    assert [shift.line(line) for line in (9, 10, 19, 20)] == [9, 18, 27, 27]
    assert Shift().above(()) == Shift()


def test_in_a_stack_equal_places_are_a_conflict_even_where_the_lower_patch_tells_which() -> None:
    lower = apply_hunks(
        FOUR, entry(b"@@ -1,5 +1,10 @@\n start\n     a\n     b\n+    1\n+    2\n+    3\n+    4\n+    5\n     c\n end\n")
    )
    assert lower.data is not None
    upper = entry(b"@@ -6,5 +6,5 @@\n" + IN_BLOCK)
    shift = Shift().above(lower.layer)
    assert reason(apply_hunks(lower.data, upper, shift)).startswith("3 places fit: lines 11, 16, 21;")


def test_in_a_stack_a_hunk_that_fits_as_stated_and_as_shifted_is_a_conflict() -> None:
    diff = entry(b"@@ -11,5 +11,5 @@\n" + IN_BLOCK)
    outcome = reason(apply_hunks(FOUR, diff, Shift((((1, 5),),))))
    assert outcome == "fits at line 11 as stated and at line 16 below the other patch"
    assert fits(apply_hunks(FOUR, diff, Shift((((12, 5),),)))) == [(11, 0)]


def test_the_layer_of_a_patch_is_what_the_next_one_needs() -> None:
    placed = apply_hunks(OLD, DIFF)
    assert placed.layer == ((16, 1),)
    assert apply_hunks(OLD, diff_of(OLD, OLD.replace(b"line 9\n", b"nine\n"))).layer == ()


EDITS = st.lists(st.sampled_from([b"", b"new\n", b"new\nlines\n", BLOCK, BLOCK * 2]), min_size=2, max_size=2)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    blocks=st.lists(st.sampled_from([BLOCK, b"    a\n" * 3, b"x\ny\n", b"\n"]), min_size=12, max_size=30),
    places=st.lists(st.integers(1, 10), min_size=2, max_size=2),
    edits=EDITS,
    lower_is_first=st.booleans(),
)
def test_in_a_stack_a_patch_against_pristine_is_merged_or_a_conflict_never_misplaced(
    blocks: list[bytes], places: list[int], edits: list[bytes], lower_is_first: bool
) -> None:
    """Two edits with three lines of their own between them, so that neither touches the context of the other."""
    near, far = min(places), max(places) + 1
    pieces = [*blocks[:near], b"", b"apart 1\napart 2\napart 3\n", *blocks[near:far], b"", *blocks[far:]]
    one, both = list(pieces), list(pieces)
    one[near] = both[near] = edits[0]
    other = list(pieces)
    other[far + 2] = both[far + 2] = edits[1]
    pristine = b"".join(pieces)
    lower, upper = (one, other) if lower_is_first else (other, one)
    below = diff_of(pristine, b"".join(lower)) if lower != pieces else None
    above = diff_of(pristine, b"".join(upper)) if upper != pieces else None
    if below is None or above is None:
        return
    under = apply_hunks(pristine, below)
    assert under.data == b"".join(lower)
    placed = apply_hunks(under.data, above, Shift().above(under.layer))
    assert placed.data in (None, b"".join(both))


# ---- CRLF -----------------------------------------------------------------------------------------------------


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


CRLF_DIFF = parsed(crlf(b"--- a/m.py\n+++ b/m.py\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"))


def test_a_crlf_diff_fits_a_crlf_file_as_it_is() -> None:
    placed = apply_hunks(crlf(b"a\nb\nc\nd\n"), CRLF_DIFF)
    assert placed.data == crlf(b"a\nb\nC\nd\n")
    assert not placed.dropped_cr


def test_a_crlf_diff_fits_an_lf_file_without_its_crs_and_says_so() -> None:
    placed = apply_hunks(b"a\nb\nc\nd\n", CRLF_DIFF)
    assert placed.data == b"a\nb\nC\nd\n"
    assert placed.dropped_cr
    assert apply_hunks(b"a\nb\nC\nd\n", CRLF_DIFF.reversed()).data == b"a\nb\nc\nd\n"


def test_the_two_readings_of_a_crlf_diff_are_never_mixed() -> None:
    mixed = numbered(8) + crlf(numbered(8, start=9))
    new = mixed.replace(b"line 4\n", b"four\n").replace(b"line 13\r\n", b"thirteen\r\n")
    as_lf = difflib.unified_diff(
        *[text.replace(b"\r", b"").decode().splitlines(keepends=True) for text in (mixed, new)], "a/m", "b/m", n=1
    )
    assert apply_hunks(mixed, parsed(crlf("".join(as_lf).encode()))).data is None


def test_an_lf_diff_does_not_fit_a_crlf_file_and_the_reason_says_line_ends() -> None:
    (conflict,) = conflicts(apply_hunks(crlf(OLD), DIFF))
    assert conflict.reason == "no place in the file has these lines; line 12 differs only in line ends"


# ---- what is said of a conflict -------------------------------------------------------------------------------


def test_a_conflict_tells_what_was_expected_and_what_almost_fits() -> None:
    text = numbered(5, start=100) + OLD.replace(b"line 16\n", b"upstream\xff\n")
    (conflict,) = conflicts(apply_hunks(text, DIFF))
    assert conflict.reason == "no place in the file has these lines"
    assert (conflict.line, conflict.nearest) == (12, 17)
    assert conflict.expected == tuple(f"line {number}" for number in range(12, 19))
    assert conflict.found == ("line 12", "line 13", "line 14", "line 15", "upstream\\xff", "line 17", "line 18")


def test_a_conflict_in_white_space_alone_says_so() -> None:
    text = OLD.replace(b"line 14\n", b"  line\t14 \n")
    assert reason(apply_hunks(text, DIFF)).endswith("line 12 differs only in white space")


def test_a_conflict_with_nothing_alike_shows_the_stated_line() -> None:
    (conflict,) = conflicts(apply_hunks(b"other\n" * 20, DIFF))
    assert conflict.nearest is None
    assert conflict.found == ("other",) * 7
    (conflict,) = conflicts(apply_hunks(b"", DIFF))
    assert conflict.found == ()


# ---- upstream -------------------------------------------------------------------------------------------------


def results(outcomes: tuple[HunkOutcome, ...]) -> list[HunkResult]:
    return [outcome.result for outcome in outcomes]


def test_a_hunk_whose_new_side_is_there_once_is_upstream() -> None:
    (outcome,) = find_upstream(b"above\n" + NEW, DIFF)
    assert (outcome.result, outcome.line, outcome.reason) == (HunkResult.UPSTREAM, 13, "")


def test_some_hunks_may_be_upstream_and_others_not() -> None:
    new = OLD.replace(b"line 5\n", b"V\n").replace(b"line 15\n", b"XV\n").replace(b"line 25\n", b"XXV\n")
    outcomes = find_upstream(new.replace(b"XV\n", b"other\n", 1), diff_of(OLD, new))
    assert results(outcomes) == [HunkResult.UPSTREAM, HunkResult.CONFLICT, HunkResult.UPSTREAM]
    assert outcomes[1].reason == "what it brings is not in the file"


def test_a_hunk_that_only_deletes_proves_nothing() -> None:
    new = OLD.replace(b"line 15\n", b"")
    (outcome,) = find_upstream(new, diff_of(OLD, new))
    assert outcome.result is HunkResult.CONFLICT
    assert "proves nothing" in outcome.reason


def test_a_new_side_that_is_there_twice_is_not_upstream() -> None:
    (outcome,) = find_upstream(NEW * 2, DIFF)
    assert outcome.reason == "what it brings is in the file at more than one place"


def test_two_equal_hunks_need_two_places() -> None:
    diff = entry(b"@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", b"@@ -12,3 +12,3 @@\n a\n-b\n+B\n c\n")
    outcomes = find_upstream(b"x\na\nB\nc\n", diff)
    assert results(outcomes) == [HunkResult.UPSTREAM, HunkResult.CONFLICT]


def test_a_created_file_is_upstream_only_as_a_whole() -> None:
    created = parsed(b"--- /dev/null\n+++ b/m.py\n@@ -0,0 +1,2 @@\n+a\n+b\n")
    assert results(find_upstream(b"a\nb\n", created)) == [HunkResult.UPSTREAM]
    assert find_upstream(b"a\nb\nc\n", created)[0].reason == "the file is there with other text"


def test_upstream_is_found_without_the_crs_of_a_crlf_diff() -> None:
    assert results(find_upstream(b"a\nb\nC\nd\n", CRLF_DIFF)) == [HunkResult.UPSTREAM]


# ---- bounds ---------------------------------------------------------------------------------------------------


def test_more_places_than_the_bound_are_a_conflict() -> None:
    diff = entry(b"@@ -9,3 +9,3 @@\n x\n-x\n+y\n x\n")
    text = b"first\n" * 20 + b"x\n" * (MAX_PLACES + 10)
    assert reason(apply_hunks(text, diff)) == f"more than {MAX_PLACES} places fit"


@pytest.mark.parametrize("line", [b"x\n", b"\n"])
def test_repetitive_text_costs_no_more_than_its_size(line: bytes) -> None:
    text = line * 300_000
    hunk = b"@@ -900001,81 +900001,81 @@\n" + (b" " + line) * 40 + b"-" + line + b"+new\n" + (b" " + line) * 40
    start = time.process_time()
    assert apply_hunks(text, entry(hunk)).data is None
    assert time.process_time() - start < 5


# ---- bounds ---------------------------------------------------------------------------------------------------


def test_behind_a_hundred_hunks_that_do_not_fit_no_other_is_tried() -> None:
    hunks = [b"@@ -%d,2 +%d,2 @@\n gone\n-%d\n+x\n" % (line, line, line) for line in range(3, 603, 4)]
    for outcomes in (apply_hunks(OLD, entry(*hunks)).outcomes, find_upstream(OLD, entry(*hunks))):
        assert len(outcomes) == MAX_MISFITS
        assert outcomes[-1].reason.endswith(f"; the {len(hunks) - MAX_MISFITS} hunks behind it were not tried")
        assert {outcome.result for outcome in outcomes} == {HunkResult.CONFLICT}


def test_a_text_is_not_searched_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.places.MAX_SEARCHED", 10 * len(OLD) + 40_000)
    moved = numbered(5, start=100) + numbered(300)
    hunks = [
        b"@@ -%d,3 +%d,3 @@\n line %d\n-line %d\n+x\n line %d\n" % (line, line, line, line + 1, line + 2)
        for line in range(3, 203, 5)
    ]
    placed = apply_hunks(moved, entry(*hunks))
    assert placed.outcomes[0].offset == 5
    assert "is not searched for" in conflicts(placed)[0].reason
    assert all(outcome.result is HunkResult.UPSTREAM for outcome in find_upstream(OLD, DIFF.reversed()))
