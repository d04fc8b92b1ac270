"""The journal's codec: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from patchkit.errors import DamagedState, ExitCode, NewerFormat
from patchkit.installed import Stamp
from patchkit.journal import Journal, Step, is_safe, read_journal, write_journal

A, B, C = "a" * 64, "b" * 64, "c" * 64
JOURNAL = Journal(
    id="0123456789abcdef",
    steps=(
        Step("pkg/mod.py", Stamp(A, 0o644), Stamp(B, 0o755), owner=(1000, 100), record="pkg-1.dist-info/RECORD"),
        Step("pkg/new/x.py", None, Stamp(B, 0o644)),
        Step("gone.py", Stamp(A, 0o600), None, owner=(0, 0)),
        Step("pkg/link.py", Stamp(A, 0o644), Stamp(B, 0o644), link="../cache/a\udcff", owner=(1, 2)),
        Step("pkg/caf\u00e9 \udcff.py", Stamp(A, 0o644), Stamp(A, 0o755)),
    ),
    ledger_before=None,
    ledger_after=C,
    made=("pkg/new",),
    dropped=("pkg/old",),
    live=frozenset({A, C}),
    live_before=frozenset({A}),
    records={"pkg-1.dist-info/RECORD": B},
)


STEP = {"path": "a", "before": None, "after": None, "link": None, "owner": None, "record": None}


def test_what_is_written_is_read_back() -> None:
    for journal in (JOURNAL, replace(JOURNAL, committed=True)):
        assert read_journal(write_journal(journal), file="j") == journal


def test_the_bytes_are_one_line_of_ascii() -> None:
    data = write_journal(JOURNAL)
    assert data.isascii() and data.count(b"\n") == 1 and data.endswith(b"\n")


def test_staged_files_are_hidden_siblings_of_their_targets() -> None:
    names = {
        name for number in range(len(JOURNAL.steps)) for name in (JOURNAL.staged(number), JOURNAL.restored(number))
    }
    assert len(names) == 2 * len(JOURNAL.steps)
    assert JOURNAL.staged(0) == "pkg/.patchkit-0123456789abcdef-0.tmp"
    assert JOURNAL.staged(2) == ".patchkit-0123456789abcdef-2.tmp"


def test_a_newer_format_is_refused_and_named() -> None:
    with pytest.raises(NewerFormat, match="where/journal.json has format 2") as caught:
        read_journal(_changed(format=2, steps="of another kind"), file="where/journal.json")
    assert caught.value.exit_code is ExitCode.ENVIRONMENT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'"text"',
        b"[" * 100_000,
        write_journal(JOURNAL)[:-40],
    ],
    ids=["empty", "torn", "list", "null", "no text", "string", "deep", "half"],
)
def test_what_is_no_journal_is_damaged(data: bytes) -> None:
    with pytest.raises(DamagedState, match="^where is damaged") as caught:
        read_journal(data, file="where")
    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert "objects" in caught.value.hint


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "a/../../x", "", "a//b", "./a", "a/.", "a/", "a\0b", ".patchkit/ledger.json", "\ud800"],
)
@pytest.mark.parametrize("field", ["changes", "made", "dropped", "records"])
def test_a_path_that_leaves_the_site_root_is_damage(path: str, field: str) -> None:
    rows = {"changes": {**STEP, "path": path}, "records": {"path": path, "sha256": A}}
    with pytest.raises(DamagedState):
        read_journal(_changed(**{field: [rows.get(field, path)]}), file="j")


@pytest.mark.parametrize(
    "change",
    [
        {"before": {"sha256": "A" * 64, "mode": 420}},
        {"before": {"sha256": "../../etc/passwd", "mode": 420}},
        {"before": {"sha256": A, "mode": 0o100644}},
        {"before": {"sha256": A, "mode": -1}},
        {"before": {"sha256": A, "mode": True}},
        {"before": {"sha256": A}},
        {"before": "absent"},
        {"link": 3},
        {"link": "a\0b"},
        {"owner": [0]},
        {"owner": [0, -1]},
        {"owner": [0, 2**40]},
        {"owner": "root"},
        {"path": None},
        {"record": "../RECORD"},
        {"record": 1},
    ],
)
def test_a_damaged_change_is_damage(change: dict[str, Any]) -> None:
    with pytest.raises(DamagedState):
        read_journal(_changed(changes=[{**STEP, **change}]), file="j")


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 0},
        {"format": "1"},
        {"id": "../../x"},
        {"id": None},
        {"committed": 1},
        {"live": ["../ledger.json"]},
        {"live_before": None},
        {"ledger_before": "x"},
        {"changes": {}},
        {"records": {}},
        {"records": [{"path": "a", "sha256": "x"}]},
    ],
)
def test_a_damaged_field_is_damage(fields: dict[str, Any]) -> None:
    with pytest.raises(DamagedState):
        read_journal(_changed(**fields), file="j")


def test_the_change_that_these_damage_is_none_itself() -> None:
    assert read_journal(_changed(changes=[STEP]), file="j").steps == (Step("a", None, None),)


def test_a_journal_that_is_cut_anywhere_is_damage() -> None:
    whole = write_journal(JOURNAL)
    for end in range(len(whole) - 1):
        with pytest.raises(DamagedState):
            read_journal(whole[:end], file="j")


@pytest.mark.parametrize("key", sorted(json.loads(write_journal(JOURNAL))))
def test_a_missing_field_is_damage(key: str) -> None:
    document = json.loads(write_journal(JOURNAL))
    del document[key]
    with pytest.raises(DamagedState, match=key):
        read_journal(json.dumps(document).encode(), file="j")


def test_names_that_only_look_dangerous_are_safe() -> None:
    assert all(map(is_safe, ("..a", "a..b/c", "a/.patchkit", ".patchkit2", "a b", "a\\b")))


def _changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(write_journal(JOURNAL)), **fields}).encode()
