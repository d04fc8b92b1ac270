"""The hazard table `dynamo` is measured: each of its constructs is run under torch.compile on PyTorch's CPU build."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import dynamo
import worlds
from patchkit.audit import read_table
from patchkit.audited import Effect
from test_flagship_live import MUST_RUN, libraries, link_libraries
from worlds import CHECKOUT

__all__ = ["libraries"]  # the fixture: PyTorch and what FlashInfer imports, installed once
TABLE = CHECKOUT / "patchkit" / "dynamo.toml"


@pytest.fixture(scope="module")
def measured(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program says of the table, as it says it to a machine."""
    venv = worlds.make_venv(tmp_path_factory.mktemp("dynamo") / "venv", with_pip=False)
    link_libraries(venv, libraries)
    program = CHECKOUT / "tests" / "dynamo.py"
    ended = worlds.run(venv.python, "-B", program, TABLE, "--json", cwd=venv.root, timeout=300)
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_every_hazard_stops_the_tracer_and_all_else_is_as_the_table_says(measured: dict[str, Any]) -> None:
    assert not measured["wrong"]
    table = read_table(None)
    ends = {row["construct"]: row["result"] for row in measured["rows"]}
    assert {name for name, end in ends.items() if end == "stops"} <= table.rules.keys() | table.opaque.keys()
    assert not {name for name in table.rules if ends[name] == "absent"} or not MUST_RUN


def test_every_maker_has_the_effect_that_the_table_says(measured: dict[str, Any]) -> None:
    effects = {row["construct"]: Effect(row["result"]) for row in measured["makers"]}
    table = read_table(None)
    shallow = {f"{maker}({given.name}=False)": Effect.NOT_RECURSIVE for maker, given in table.recursive.items()}
    assert shallow and effects == {**table.opaque, **shallow}


def test_every_whole_forbids_graph_breaks_where_the_table_says_so_and_nowhere_else(measured: dict[str, Any]) -> None:
    assert {row["construct"].partition("(")[0] for row in measured["wholes"]} >= read_table(None).wholes.keys()
    assert all(row["result"] == row["wanted"] for row in measured["wholes"])


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the page is of Python 3.11")
def test_the_page_of_measurements_is_of_this_table_and_this_pytorch(measured: dict[str, Any]) -> None:
    page = (CHECKOUT / "docs" / "measurements" / "dynamo.md").read_text()
    told = dict(re.findall(r"^\| `([^`]+)` \|[^|]*\| ([a-z -]+) \|", page, re.MULTILINE))
    rows = [*measured["rows"], *measured["makers"], *measured["wholes"], *measured["conditions"]]
    words = {"forbids": "is an error", "allows": "is allowed"}
    assert told == {row["construct"]: words.get(row["result"], row["result"]) for row in rows}
    assert f"PyTorch {measured['torch']}" in page


def test_every_construct_of_the_table_has_a_snippet() -> None:
    table = read_table(None)
    named = {*table.rules, *(name for name in table.traced if not name.endswith("*"))}
    assert named <= dynamo.SNIPPETS.keys()
    assert table.opaque.keys() == dynamo.MAKERS.keys()
    assert table.wholes.keys() == dynamo.WHOLES.keys()
