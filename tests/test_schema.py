"""The JSON Schema of patchset.toml is held against the loader, both ways."""

from __future__ import annotations

import json
import re
import sys
from datetime import date, datetime, time
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import PatchkitError
from patchkit.manifest import read_manifest
from worlds import CHECKOUT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = json.loads((CHECKOUT / "docs" / "reference" / "patchset.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def plain(value: Any) -> Any:
    """A TOML value as a validator for JSON has it: dates are text."""
    match value:
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case date() | datetime() | time():
            return value.isoformat()
        case _:
            return value


def schema_takes(text: str) -> bool:
    return VALIDATOR.is_valid(plain(tomllib.loads(text)))


def loader_takes(text: str) -> bool:
    try:
        return bool(read_manifest(text.encode(), folder="patches/s", file="patchset.toml"))
    except PatchkitError:
        return False


# ---- a manifest with everything, and each of its places --------------------------------------------------------

WHOLE: dict[str, Any] = {
    "schema": 1,
    "name": "s",
    "distribution": "Some.Dist",
    "summary": "one line",
    "constraints": ["torch>=2.4", "numpy >= 1.26, <3"],
    "markers": "platform_system == 'Linux'",
    "patch": [
        {
            "name": "p",
            "summary": "one line",
            "default": True,
            "group": "g",
            "after": ["q", "other/q"],
            "constraints": ["a==1.*"],
            "markers": "python_version >= '3'",
            "shadowed-by": ["other-dist"],
            "origin": "vendor",
            "bug": "https://example.org/1",
            "forwarded": "no",
            "applied-upstream": "1.0",
            "last-update": "2026-11-30",
            "variant": [
                {
                    "versions": ">=1.0.dev0,<2.dev0",
                    "file": "fixes/p.patch",
                    "strip": 2,
                    "directory": "some_dist/data",
                    "include": ["some_dist/**"],
                    "exclude": ["tests/**"],
                }
            ],
            "not-needed": [{"versions": ">=2.dev0", "why": "it is upstream"}],
            "check": [
                {
                    "kind": "symbol",
                    "versions": ">=1",
                    "module": "some_dist.mod",
                    "symbol": "f",
                    "starts-with": "return 1",
                    "has": ["a.b"],
                    "lacks": "c.d",
                    "decorators": ["cache"],
                },
                {"kind": "python", "versions": ">=1", "file": "checks/a.py", "needs": ["torch"], "timeout": 1.5},
            ],
        },
        {"name": "q", "not-needed": [{"versions": "==1", "why": "no"}]},
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in pairs for place in places(each, (*path, key)))]


def with_value(place: tuple[Any, ...], new: Any) -> dict[str, Any]:
    """The whole manifest with another value at ``place``; ... takes the key away."""
    document = json.loads(json.dumps(WHOLE))
    at = document
    for key in place[:-1]:
        at = at[key]
    if new is ...:
        del at[place[-1]]
    else:
        at[place[-1]] = new
    return dict(document)


PLACES = places(WHOLE)[1:]
OTHERS: list[Any] = [
    ...,
    "",
    "  ",
    "words of text",
    "a/../b",
    -1,
    0,
    65,
    4000,
    1.5,
    True,
    False,
    [],
    [""],
    [1],
    {},
    {"a": 1},
]

# What a schema cannot say: values that hang together, and the meaning of texts.
BEYOND = {
    ("name",): "the folder's name",
    ("markers",): "PEP 508's grammar",
    ("patch", 0, "markers"): "PEP 508's grammar",
    ("patch", 0, "name"): "`after` and the other names",
    ("patch", 1, "name"): "`after` and the other names",
    ("patch", 1): "`after` and the other names",
    ("patch", 0, "after", 0): "the other names",
    ("patch", 0, "check", 0, "module"): "identifiers",
    ("patch", 0, "check", 0, "symbol"): "identifiers",
    ("patch", 0, "check", 0, "starts-with"): "Python",
    ("patch", 0, "check", 0, "has"): "Python",
    ("patch", 0, "check", 0, "has", 0): "Python",
    ("patch", 0, "check", 0, "lacks"): "Python",
    ("patch", 0, "check", 0, "decorators"): "Python",
    ("patch", 0, "check", 0, "decorators", 0): "Python",
}


def render(document: dict[str, Any]) -> str:
    """TOML, arrays of tables inline, so that any value may stand anywhere."""
    return "".join(f"{json.dumps(key)} = {inline(value)}\n" for key, value in document.items())


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {inline(each)}" for key, each in value.items()) + "}"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def test_the_schema_is_one_and_takes_the_manifest_with_every_key() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert schema_takes(render(WHOLE)) and loader_takes(render(WHOLE))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_whatever_stands_at_a_place_schema_and_loader_agree(place: tuple[Any, ...]) -> None:
    apart = []
    for other in OTHERS:
        text = render(with_value(place, other))
        verdicts = schema_takes(text), loader_takes(text)
        stricter = verdicts == (True, False) and place in BEYOND
        if verdicts[0] is not verdicts[1] and not stricter:
            apart.append((other, *verdicts))
    assert not apart, f"(value, by the schema, by the loader): {apart}"


@pytest.mark.parametrize("place", [place for place in [(), *PLACES] if isinstance(place[-1:], tuple)], ids=str)
def test_an_unknown_key_is_refused_by_both(place: tuple[Any, ...]) -> None:
    at: Any = WHOLE
    for key in place:
        at = at[key]
    if isinstance(at, dict):
        text = render(with_value((*place, "unknown"), 1))
        assert not schema_takes(text) and not loader_takes(text)


def test_every_key_of_the_schema_is_in_the_manifest_with_every_key() -> None:
    used = {key for place in PLACES for key in place if isinstance(key, str)}
    tables = [SCHEMA, *SCHEMA["$defs"].values()]
    assert {key for table in tables for key in table.get("properties", {})} == used


# ---- texts ----------------------------------------------------------------------------------------------------

TEXTS: dict[tuple[Any, ...], tuple[list[str], list[str]]] = {
    ("distribution",): (["a", "A.b_C-1", "0"], ["-a", "a-", "a b", "a==1", "a[b]", "\u00e4", "a\n"]),
    ("patch", 0, "group"): (["g", "0.6-x_y"], ["-g", "g/h", "g h", "\u00e4", "g\n", "_g"]),
    ("patch", 0, "after", 1): (["other/q", "q", "a.b/c-d"], ["/q", "q/", "a/b/c", "a b", ""]),
    ("patch", 0, "variant", 0, "file"): (
        ["a.patch", "a/b c.patch", "a..b", ".hidden", "\u00e4.patch"],
        ["/a", "../a", "a/..", "a//b", "a/", ".", "./a", "a/./b", "C:a", "a\\b", "a\nb", "a\x01"],
    ),
    ("patch", 0, "variant", 0, "versions"): (
        ["==1", ">=1.0.dev0, <2.dev0", "==1.*", "~=1.4", "===1.0", "!=1.5,>=1", "==1.0+cu130", ">=1!1.0,<1!2", ">1,"],
        ["1.0", "=1", "==", ">=a b", "latest", ",", "==1;", ">= 1 2", "=>1", "== 1 <2"],
    ),
    ("constraints", 0): (
        ["a==1", "a ~= 1.4", " a>=1 ", "A.b<2,>1"],
        ["a", "a[x]>=1", "a>=1; python_version>'3'", "a @ https://example.org", ">=1", "-a>=1"],
    ),
    ("patch", 0, "shadowed-by", 0): (["b"], ["b c", ""]),
    ("patch", 0, "check", 1, "needs", 0): (["b"], ["b c", "b>=1"]),
    ("patch", 0, "check", 0, "kind"): (["symbol"], ["python", "regex", "Symbol"]),
}


@pytest.mark.parametrize("place", TEXTS, ids=lambda place: ".".join(map(str, place)))
def test_good_texts_are_taken_and_bad_ones_refused_by_both(place: tuple[Any, ...]) -> None:
    good, bad = TEXTS[place]
    for text in good:
        document = with_value(place, text)
        if place[-1] == "versions":
            del document["patch"][0]["not-needed"]  # the ranges would overlap
        assert schema_takes(render(document)) and loader_takes(render(document)), text
    for text in bad:
        shown = render(with_value(place, text))
        assert not schema_takes(shown) and not loader_takes(shown), text


@settings(max_examples=150)
@given(st.sampled_from([place for place in TEXTS if place[-1] != "kind"]), st.text(max_size=12))
def test_what_the_schema_refuses_the_loader_refuses(place: tuple[Any, ...], text: str) -> None:
    if "\x7f" not in text and not re.search(r"[\ud800-\udfff]", text):
        shown = render(with_value(place, text))
        assert schema_takes(shown) or not loader_takes(shown)


LIMITS: dict[tuple[Any, ...], tuple[Any, int]] = {
    ("patch",): ({"name": "n", "not-needed": [{"versions": "==1", "why": "no"}]}, 1000),
    ("patch", 0, "variant"): ({"versions": "==1", "file": "a.patch"}, 50),
    ("patch", 0, "not-needed"): ({"versions": "==1", "why": "no"}, 50),
    ("patch", 0, "check"): ({"kind": "python", "file": "a.py"}, 50),
    ("patch", 0, "variant", 0, "include"): ("a/**", 64),
    ("patch", 0, "variant", 0, "exclude"): ("a/**", 64),
}


@pytest.mark.parametrize("place", LIMITS, ids=lambda place: ".".join(map(str, place)))
def test_the_schema_knows_how_many_are_too_many(place: tuple[Any, ...]) -> None:
    one, most = LIMITS[place]
    assert schema_takes(render(with_value(place, [one] * most)))
    assert f"the limit is {most}" in words_of_loader(render(with_value(place, [one] * (most + 1))))
    assert not schema_takes(render(with_value(place, [one] * (most + 1))))


def words_of_loader(text: str) -> str:
    with pytest.raises(PatchkitError) as raised:
        read_manifest(text.encode(), folder="patches/s", file="patchset.toml")
    return raised.value.message


def test_the_schema_knows_how_long_is_too_long() -> None:
    glob, versions = ("patch", 0, "variant", 0, "include", 0), ("patch", 0, "variant", 0, "versions")
    for place, good, bad in (
        (glob, "a" * 1024, "a" * 1025),
        (versions, ",".join([">=1,<2", *["!=1.5"] * 18]), ",".join([">=1,<2", *["!=1.5"] * 19])),
    ):
        assert schema_takes(render(with_value(place, good))) and loader_takes(render(with_value(place, good)))
        assert not schema_takes(render(with_value(place, bad))) and not loader_takes(render(with_value(place, bad)))


def test_a_date_is_a_date_for_both() -> None:
    shown = render(WHOLE).replace('"2026-11-30"', "2026-11-30")
    assert schema_takes(shown) and loader_takes(shown)


def test_the_bundled_sets_and_the_example_in_the_reference_are_valid() -> None:
    example = re.search(r"```toml\n(.*?)```", (CHECKOUT / "docs/reference/manifest.md").read_text("utf-8"), re.DOTALL)
    assert example is not None
    texts = [example[1], *(path.read_text("utf-8") for path in (CHECKOUT / "patches").glob("*/patchset.toml"))]
    assert len(texts) > 1
    for text in texts:
        VALIDATOR.validate(plain(tomllib.loads(text)))
