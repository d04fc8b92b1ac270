"""RECORD: reading any installer's spelling, adding rows and taking them out again byte for byte."""

from __future__ import annotations

import base64
import csv
import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import ExitCode, NoRecord
from patchkit.installed import Digest, RecordRow
from patchkit.record import (
    Record,
    append_rows,
    make_row,
    read_digest,
    read_record,
    remove_rows,
    row_path,
    top_level_folders,
)

CONTENT = b"def answer():\n    return 42\n"


def add_rows(record: bytes, rows: list[tuple[str, bytes]]) -> tuple[bytes, tuple[str, ...]]:
    """Append a row for each (path, content); the new RECORD and the texts of the rows."""
    texts = tuple(make_row(path, data) for path, data in rows)
    assert [row_path(text) for text in texts] == [path for path, _ in rows]
    return append_rows(record, texts), texts


def spelling(algorithm: str, kind: str) -> str:
    value = hashlib.new(algorithm, CONTENT).digest()
    match kind:
        case "hex":
            return f"{algorithm}={value.hex()}"
        case "standard":
            return f"{algorithm}={base64.b64encode(value).decode()}"
        case "padded":
            return f"{algorithm}={base64.urlsafe_b64encode(value).decode()}"
        case _:
            return f"{algorithm}={base64.urlsafe_b64encode(value).decode().rstrip('=')}"


@pytest.mark.parametrize("kind", ["bare", "padded", "standard", "hex"])
@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512", "sha1", "md5", "sha3_256", "blake2b"])
def test_a_digest_is_read_in_every_spelling_of_every_algorithm(algorithm: str, kind: str) -> None:
    field = spelling(algorithm, kind)
    row = read_record(f"a.py,{field},27\n".encode())["a.py"]
    assert row == RecordRow("a.py", Digest(algorithm, hashlib.new(algorithm, CONTENT).digest()), field)
    assert row.digest is not None and row.digest.matches(CONTENT) and not row.digest.matches(CONTENT + b" ")


def test_upper_case_names_and_hex_are_the_same_digest() -> None:
    upper = f"SHA256={hashlib.sha256(CONTENT).hexdigest().upper()}"
    assert read_digest(upper) == read_digest(spelling("sha256", "bare"))


@pytest.mark.parametrize(
    "field",
    [
        "",
        "sha256",
        "sha256=",
        "=abc",
        "nosuch=" + "0" * 64,
        "sha256=" + "0" * 62,
        "sha256=" + "0" * 66,
        "sha256=" + "g" * 64,
        "sha256=not base64 at all",
        "sha256=AAAA",
        "sha256=" + "\u00e4" * 43,
        "shake_128=" + "0" * 32,
        "sha256\udcff=AAAA",
    ],
)
def test_a_row_with_an_unusable_digest_is_unrecorded_and_keeps_its_text(field: str) -> None:
    row = read_record(f"a.py,{field},1\n".encode("utf-8", "surrogateescape"))["a.py"]
    assert row.digest is None
    assert row.field == field


def test_rows_with_missing_columns_and_blank_lines_are_no_fault() -> None:
    rows = read_record(b"\nonly-a-path.py\ntwo.py,\nthree.py,,\n\n,sha256=x,1\nmany.py,,,,,\n")
    assert list(rows) == ["only-a-path.py", "two.py", "three.py", "many.py"]
    assert all(row.digest is None and row.field == "" for row in rows.values())


def test_an_empty_record_has_no_rows() -> None:
    assert len(read_record(b"")) == 0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quoted", ["", '"q,1.py",,\n'])
def test_line_ends_of_every_kind_are_read(end: str, quoted: str) -> None:
    field = spelling("sha256", "bare")
    text = f"{quoted}a.py,{field},27\nb.py,,\nc.py".replace("\n", end)
    rows = read_record(text.encode())
    assert list(rows)[-3:] == ["a.py", "b.py", "c.py"]
    assert rows["a.py"].field == field


def test_quoted_paths_hold_commas_quotes_and_line_breaks() -> None:
    rows = read_record(b'"a,b.py",sha256=x,1\n"say ""hi"".py",,\n"two\nlines.py",,\nplain.py,,\n')
    assert list(rows) == ["a,b.py", 'say "hi".py', "two\nlines.py", "plain.py"]


def test_a_path_that_is_not_utf8_comes_back_as_it_was() -> None:
    path = b"caf\xe9.py".decode("utf-8", "surrogateescape")
    record, texts = add_rows(b"", [(path, CONTENT)])
    assert record.startswith(b"caf\xe9.py,sha256=")
    assert path in read_record(record)
    assert remove_rows(record, texts) == b""


def test_line_separators_of_unicode_do_not_end_a_row() -> None:
    path = "a\u2028b\x85c\x0cd.py"
    assert list(read_record(f"{path},,\n".encode())) == [path]


def test_of_two_rows_for_one_path_the_last_counts() -> None:
    first, last = spelling("md5", "hex"), spelling("sha256", "bare")
    assert read_record(f"a.py,{first},27\na.py,{last},27\n".encode())["a.py"].field == last


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a.py,,\n\0\0\n", "contains a NUL byte"),
        (b'"never closed,,\nb.py,,\n', "line 2: unexpected end of data"),
        (b'ok.py,,\n"a"b.py,,\n', "line 2: "),
    ],
)
def test_a_record_that_is_not_csv_is_refused_with_its_path_and_what_to_do(data: bytes, words: str) -> None:
    with pytest.raises(NoRecord) as caught:
        read_record(data, path="x-1.0.dist-info/RECORD")
    assert caught.value.message.startswith("x-1.0.dist-info/RECORD is not CSV: ")
    assert words in caught.value.message
    assert "reinstall" in caught.value.hint
    assert caught.value.exit_code is ExitCode.ENVIRONMENT


def test_a_record_is_a_mapping_and_asks_for_paths_without_parsing_digests() -> None:
    rows = read_record(b"a.py,,\n")
    assert isinstance(rows, Record)
    assert "a.py" in rows and "b.py" not in rows and rows.get("b.py") is None
    assert rows == {"a.py": RecordRow("a.py", None)}
    with pytest.raises(KeyError):
        rows["b.py"]


@given(st.lists(st.tuples(st.text(min_size=1), st.text(), st.integers()), unique_by=lambda row: row[0]))
def test_what_the_csv_module_writes_is_read_back(rows: list[tuple[str, str, int]]) -> None:
    rows = [row for row in rows if "\0" not in row[0] + row[1] and not _has_surrogates(row[0] + row[1])]
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    read = read_record(text.getvalue().encode())
    assert list(read) == [path for path, _, _ in rows]


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


# ---- adding and removing rows ---------------------------------------------------------------------------------


def test_an_added_row_has_the_digest_of_the_wheel_format_and_the_size() -> None:
    value = base64.urlsafe_b64encode(hashlib.sha256(CONTENT).digest()).decode().rstrip("=")
    record, texts = add_rows(b"a.py,,\n", [("pkg/new.py", CONTENT)])
    assert texts == (f"pkg/new.py,sha256={value},{len(CONTENT)}",)
    assert record == b"a.py,,\n" + texts[0].encode() + b"\n"
    digest = read_record(record)["pkg/new.py"].digest
    assert digest is not None and digest.matches(CONTENT)


@pytest.mark.parametrize(
    ("record", "end"),
    [
        (b"a.py,,\nb.py,,\n", b"\n"),
        (b"a.py,,\r\nb.py,,\r\n", b"\r\n"),
        (b"a.py,,\r\nb.py,,\r\nc.py,,\n", b"\r\n"),
        (b"a.py,,\r\nb.py,,\nc.py,,\n", b"\n"),
        (b"", b"\n"),
    ],
)
def test_rows_get_the_line_ends_that_most_of_record_has(record: bytes, end: bytes) -> None:
    longer, texts = add_rows(record, [("x.py", b""), ("y.py", b"")])
    assert longer == record + texts[0].encode() + end + texts[1].encode() + end
    assert remove_rows(longer, texts) == record


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_last_line_without_end_gets_one_and_loses_it_again(end: bytes) -> None:
    record = b"a.py,," + end + b"b.py,,"
    longer, texts = add_rows(record, [("x.py", b""), ("y.py", b"")])
    assert longer == record + end + texts[0].encode() + end + texts[1].encode()
    assert list(read_record(longer)) == ["a.py", "b.py", "x.py", "y.py"]
    assert remove_rows(longer, texts) == record


def test_no_rows_to_add_leave_record_as_it_is() -> None:
    assert add_rows(b"a.py,,", []) == (b"a.py,,", ())


def test_only_the_exact_lines_go_wherever_they_stand() -> None:
    record = b"x,1,2\r\nkeep,1,2\nx,1,2\n x,1,2\nx,1,23\nprefix-x,1,2\nx,1,2"
    assert remove_rows(record, ["x,1,2"]) == b"keep,1,2\n x,1,2\nx,1,23\nprefix-x,1,2"


def test_a_row_that_another_tool_moved_or_lost_is_no_fault() -> None:
    longer, texts = add_rows(b"a.py,,\n", [("x.py", b"1"), ("y.py", b"2")])
    lines = longer.splitlines(keepends=True)
    assert remove_rows(lines[1] + lines[0] + b"later.py,,\n", texts) == b"a.py,,\nlater.py,,\n"


@pytest.mark.parametrize("path", ["a,b.py", 'say "hi".py', "two\nlines.py", "two\r\nlines.py", "a b.py"])
def test_a_path_that_needs_quotes_is_added_read_and_removed(path: str) -> None:
    record = b'"q,1.py",,\nplain.py,,\n'
    longer, texts = add_rows(record, [(path, CONTENT), ("z.py", CONTENT)])
    assert list(read_record(longer)) == ["q,1.py", "plain.py", path, "z.py"]
    assert remove_rows(longer, texts) == record


paths = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=12)
records = st.lists(st.tuples(paths, st.sampled_from(["\n", "\r\n"])), max_size=8)


@given(records, st.booleans(), st.lists(paths, max_size=4, unique=True))
def test_removing_what_was_added_gives_the_very_bytes_back(
    lines: list[tuple[str, str]], cut: bool, new: list[str]
) -> None:
    shipped = "".join(add_rows(b"", [(f"shipped/{path}", b"")])[1][0] + end for path, end in lines).encode()
    record = shipped.rstrip(b"\r\n") if cut else shipped
    longer, texts = add_rows(record, [(path, b"new") for path in new])
    assert set(read_record(longer)) == {*read_record(record), *new}
    assert remove_rows(longer, texts) == record


# ---- folders --------------------------------------------------------------------------------------------------


def test_top_level_folders_are_those_that_hold_the_modules() -> None:
    rows = [
        "flashinfer/jit/core.py",
        "flashinfer/data/x.cu",
        "single_module.py",
        "other/__init__.py",
        "../../../bin/tool",
        "..data/odd.py",
        "x-1.0.dist-info/RECORD",
        "x-1.0.data/scripts/run",
        "__pycache__/single_module.cpython-311.pyc",
        "/absolute/path.py",
        "./dot.py",
    ]
    assert top_level_folders(rows) == {"flashinfer", "other"}
    assert top_level_folders(read_record(b"a/b.py,,\nc.py,,\n")) == {"a"}
