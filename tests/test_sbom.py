"""Bills of materials: valid by the official schemas, true, the same each time, and merged into those of other tools."""

from __future__ import annotations

import json
import sys
import sysconfig
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator

import worlds
from patchkit.bill import SpecVersion
from patchkit.cli import main
from stages import DATA, MOD, SHIPPED, Stage, edit, make_diff, make_stage, patch, put, sample_wheel, with_line
from worlds import CHECKOUT, Finished, Venv, make_wheel, run

FIVE = edit(5, b"line_5 = 'five'\n")
NINE = edit(35, b"line_35 = 'nine'\n")
WITHOUT_DATA = make_diff({DATA: SHIPPED[DATA]}, {DATA: None})
VERSIONS = [version.value for version in SpecVersion]
Bill = dict[str, Any]


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capfd.readouterr)


def validate(text: str, form: str = "json", version: str = "1.6") -> None:
    """Assert that the official schema takes the bill, formats of URLs and all."""
    validator = make_schemabased_validator(OutputFormat[form.upper()], SchemaVersion.from_version(version))
    problem = validator.validate_str(text)
    assert problem is None, f"{problem}\n{text}"


def bill_of(stage: Stage, *args: str) -> Bill:
    """The bill of a stage, which must be valid and come without a warning."""
    said = stage.run("sbom", *args).expect()
    assert said.err == ""
    document: Bill = said.json()
    validate(said.out, version=document["specVersion"])
    return document


def only_component(bill: Bill) -> Bill:
    [component] = bill["components"]
    return dict(component)


def only_patch(bill: Bill) -> Bill:
    [found] = only_component(bill)["pedigree"]["patches"]
    return dict(found)


def text_of(attachment: Mapping[str, str]) -> bytes:
    """The bytes that an attachment stands for."""
    content = attachment["content"]
    return b64decode(content, validate=True) if attachment.get("encoding") == "base64" else content.encode()


# ---- what is in it --------------------------------------------------------------------------------------------


def test_a_component_has_its_package_url_and_its_patch_with_diff_and_reports(stage: Stage) -> None:
    bug = "https://example.org/project/issues/17, CVE-2026-0001"
    stage.add("fix", patch("one", FIVE, summary="Five in words", origin="other, ours", bug=bug, forwarded="no"))
    stage.run("apply").expect()
    component = only_component(bill_of(stage))
    [found] = component["pedigree"].pop("patches")
    [line] = component["pedigree"].pop("notes").splitlines()
    assert component == {
        "type": "library",
        "bom-ref": "pkg:pypi/some-dist@1.2.3",
        "name": "some-dist",
        "version": "1.2.3",
        "purl": "pkg:pypi/some-dist@1.2.3",
        "pedigree": {},
    }
    assert found == {
        "type": "unofficial",
        "diff": {"text": {"contentType": "text/x-diff", "content": FIVE.decode()}},
        "resolves": [
            {
                "type": "defect",
                "id": "17",
                "source": {"name": "example.org", "url": "https://example.org/project/issues/17"},
            },
            {"type": "security", "id": "CVE-2026-0001"},
        ],
    }
    assert line.startswith("fix/one: Five in words; diff: sha256 ")
    assert line.endswith(f"; files: {MOD}; origin: other, ours; bug: {bug}; forwarded: no")


def test_patches_of_several_distributions_are_all_there_and_sorted(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    other = make_wheel(tmp_path / "wheels", "Other.Dist_x", "2.0+cu130", {"other/__init__.py": "a = 1\n"})
    stage = make_stage(tmp_path, make_site, capfd.readouterr, sample_wheel(tmp_path / "wheels"), other)
    change = make_diff({"other/__init__.py": b"a = 1\n"}, {"other/__init__.py": b"a = 2\n"})
    stage.add("zeta", patch("one", FIVE), patch("two", NINE), patch("three", WITHOUT_DATA))
    stage.add("alpha", patch("one", change), distribution="other-dist-x")
    stage.run("apply").expect()
    first, second = bill_of(stage)["components"]
    assert (first["name"], first["version"]) == ("Other.Dist_x", "2.0+cu130")
    assert first["purl"] == "pkg:pypi/other.dist-x@2.0%2Bcu130"
    assert {each["diff"]["text"]["content"].encode() for each in second["pedigree"]["patches"]} == {
        FIVE,
        NINE,
        WITHOUT_DATA,
    }
    lines = second["pedigree"]["notes"].splitlines()
    assert [line.partition(":")[0] for line in lines] == ["zeta/one", "zeta/two", "zeta/three"]


AWKWARD = {
    "markup": b"line_5 = '<a href=\"&amp;\">]]>'\n",
    "spaces at the end": b"line_5 = 5 \t \n",
    "letters of the world": "line_5 = 'žluťoučký 🐎'\n".encode(),
    "a form feed": b"line_5 = '\x0c'\n",
    "a colour": b"line_5 = '\x1b[31m'\n",
    "a next line": "line_5 = '\x85'\n".encode(),
    "latin-1": b"line_5 = '\xe9'\n",
    "a carriage return": b"line_5 = 5\r\n",
    "a noncharacter": "line_5 = '\uffff'\n".encode(),
}


@pytest.mark.parametrize("case", AWKWARD)
def test_the_bytes_of_a_diff_come_back_from_every_form(case: str, stage: Stage) -> None:
    diff = b" \n\n\tWhy, in words\n" + edit(5, AWKWARD[case])
    stage.add("fix", patch("one", diff, summary=f"{case}: \x1b[31m \ufffe & <b>\n  next line"))
    stage.run("apply").expect()
    assert text_of(only_patch(bill_of(stage))["diff"]["text"]) == diff
    target = stage.folder / "bill.xml"
    stage.run("sbom", "--format", "xml", "--output", target).expect()
    validate(target.read_text("utf-8"), "xml")
    space = "{http://cyclonedx.org/schema/bom/1.6}"
    text = ElementTree.parse(target).getroot().find(f".//{space}diff/{space}text")
    assert text is not None
    assert text_of({"content": text.text or "", **text.attrib}) == diff


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["json", "xml"])
def test_every_form_and_version_is_valid_by_its_official_schema(form: str, version: str, stage: Stage) -> None:
    args = ("sbom", "--format", form, "--spec-version", version)
    validate(stage.run(*args).expect().out, form, version)
    stage.add("fix", patch("one", FIVE, origin="upstream, https://example.org/a", bug="https://example.org/[1]#a"))
    stage.run("apply").expect()
    text = stage.run(*args).expect().out
    assert "line_5 = 'five'" in text
    validate(text, form, version)
    assert "serialNumber" not in text and "timestamp" not in text and "dependencies" not in text


TYPES = {
    "no provenance": ({}, "unofficial"),
    "from upstream": ({"origin": "upstream, https://example.org/1"}, "cherry-pick"),
    "a bare keyword": ({"origin": "Backport"}, "backport"),
    "a commit of upstream": ({"origin": "commit:0123abc"}, "cherry-pick"),
    "a backport": ({"origin": "backport, commit:0123abc", "applied_upstream": "2.0"}, "backport"),
    "another vendor's": ({"origin": "vendor, https://example.org/1", "applied_upstream": "2.0"}, "unofficial"),
    "ours": ({"origin": "other, written here"}, "unofficial"),
    "a URL alone": ({"origin": "https://example.org/upstream/1"}, "unofficial"),
    "a word that only begins so": ({"origin": "upstreamed by nobody"}, "unofficial"),
    "applied upstream": ({"origin": "https://example.org/1", "applied_upstream": "2.0"}, "backport"),
    "applied upstream, origin unknown": ({"applied_upstream": "2.0"}, "backport"),
    "not applied upstream": ({"applied_upstream": "No"}, "unofficial"),
}


@pytest.mark.parametrize("case", TYPES)
def test_the_type_of_a_patch_is_read_from_its_provenance(case: str, stage: Stage) -> None:
    fields, expected = TYPES[case]
    stage.add("fix", patch("one", FIVE, **fields))
    stage.run("apply").expect()
    assert only_patch(bill_of(stage))["type"] == expected


def test_the_url_of_an_origin_is_that_of_the_diff_but_for_a_backport(stage: Stage) -> None:
    stage.add(
        "fix",
        patch("one", FIVE, origin="upstream, https://example.org/commit/1."),
        patch("two", NINE, origin="backport, https://example.org/commit/2"),
    )
    stage.run("apply").expect()
    diffs = [each["diff"] for each in only_component(bill_of(stage))["pedigree"]["patches"]]
    assert {diff.get("url") for diff in diffs} == {None, "https://example.org/commit/1"}


HOST = {"name": "example.org"}
RESOLVED = {
    "https://example.org/a/b/pull/12#issuecomment-3": [
        ("defect", "12", None, "https://example.org/a/b/pull/12#issuecomment-3")
    ],
    "https://example.org/show_bug.cgi?id=77": [("defect", "77", None, "https://example.org/show_bug.cgi?id=77")],
    "https://example.org/browse/ABC-9": [("defect", "ABC-9", None, "https://example.org/browse/ABC-9")],
    "https://example.org/thread": [("defect", None, None, "https://example.org/thread")],
    "see https://example.org/-/issues/4, too": [("defect", "4", None, "https://example.org/-/issues/4")],
    "https://example.org/advisories/GHSA-abcd-1234-efgh": [
        ("security", "GHSA-abcd-1234-efgh", None, "https://example.org/advisories/GHSA-abcd-1234-efgh")
    ],
    "https://example.org/detail/CVE-2026-0001 (CVE-2026-0001)": [
        ("security", "CVE-2026-0001", None, "https://example.org/detail/CVE-2026-0001")
    ],
    "cve-2026-0001 PYSEC-2026-5": [("security", "CVE-2026-0001", None, None), ("security", "PYSEC-2026-5", None, None)],
    "#123": [("defect", "#123", None, None)],
    "told on the list": [("defect", None, "told on the list", None)],
    "https://[example.org/1": [("defect", "https://[example.org/1", None, None)],
    "https://example.org/100%/issues/1": [("defect", "1", None, None)],
    "https://example.org/a#b#c": [("defect", None, None, None)],
}


@pytest.mark.parametrize("bug", RESOLVED)
def test_what_a_patch_resolves_is_read_from_its_bug(bug: str, stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE, bug=bug))
    stage.run("apply").expect()
    found = [
        (issue["type"], issue.get("id"), issue.get("name"), issue.get("source", {}).get("url"))
        for issue in only_patch(bill_of(stage))["resolves"]
    ]
    assert found == RESOLVED[bug]


# ---- the same each time ---------------------------------------------------------------------------------------


def test_two_environments_with_the_same_patches_have_the_same_bill(
    stage: Stage, make_site: Callable[..., Path]
) -> None:
    stage.add("fix", patch("one", FIVE), patch("two", NINE))
    stage.run("apply").expect()
    first = stage.run("sbom").expect().out
    twin = Stage(
        stage.folder,
        make_site(stage.folder / "twin", sample_wheel(stage.folder / "wheels")),
        stage.patches,
        make_site,
        stage.capture,
    )
    twin.run("apply", "fix/two").expect()
    twin.run("apply", "fix/one").expect()
    assert twin.run("sbom").expect().out == first


def test_the_time_is_that_of_the_source_date_epoch(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for form in ("json", "xml"):
        text = stage.run("sbom", "--format", form).expect().out
        validate(text, form)
        assert "2023-11-14T22:13:20+00:00" in text


@pytest.mark.parametrize("epoch", ["soon", "1e9", "-1", "1_0", "99999999999999999999"])
def test_a_malformed_epoch_is_a_usage_error(epoch: str, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    said = stage.run("sbom").expect(2)
    assert said.out == "" and epoch in said.err and "unset it" in said.err


# ---- a bill is true -------------------------------------------------------------------------------------------


def test_where_nothing_is_applied_the_bill_is_empty_and_a_warning_says_so(stage: Stage) -> None:
    said = stage.run("sbom").expect()
    validate(said.out)
    assert said.json()["components"] == []
    assert f"warning: nothing is applied on {stage.site}" in said.err


def _edit_the_file(stage: Stage) -> None:
    stage.write(MOD, stage.read() + b"mine = 1\n")


def _reinstall(stage: Stage) -> None:
    stage.reinstall(sample_wheel(stage.folder / "wheels"))


def _upgrade(stage: Stage) -> None:
    stage.reinstall(sample_wheel(stage.folder / "wheels", "1.2.4"))


def _upgrade_to_what_it_made(stage: Stage) -> None:
    files = {path: data for path, data in SHIPPED.items() if path != DATA}
    files[MOD] = with_line(5, b"line_5 = 'five'\n")
    stage.reinstall(sample_wheel(stage.folder / "wheels", "1.2.4", files))


def _uninstall(stage: Stage) -> None:
    stage.reinstall(make_wheel(stage.folder / "wheels", "unrelated", "1", {"unrelated.py": ""}))


DRIFTS: dict[str, tuple[Callable[[Stage], None], str]] = {
    "edited": (_edit_the_file, f"edited: {MOD}"),
    "reinstalled": (_reinstall, f"reinstalled: {MOD}"),
    "upgraded": (_upgrade, "upgraded from 1.2.3 to 1.2.4"),
    "upgraded to the same bytes": (_upgrade_to_what_it_made, "upgraded from 1.2.3 to 1.2.4"),
    "uninstalled": (_uninstall, "uninstalled"),
}


@pytest.mark.parametrize("case", DRIFTS)
def test_a_patch_that_is_not_in_place_is_refused_and_left_out_only_if_asked(case: str, stage: Stage) -> None:
    drift, words = DRIFTS[case]
    stage.add("fix", patch("one", FIVE), patch("two", WITHOUT_DATA))
    stage.run("apply").expect()
    drift(stage)
    target = put(stage.folder / "bill.json", b"as it was")
    before = stage.tree()
    said = stage.run("sbom", "--output", target).expect(4)
    assert said.out == ""
    assert "fix/one is recorded as applied, and is not in place" in said.err and words in said.err
    assert "--skip-drifted" in said.err and "patchkit drift" in said.err
    assert target.read_bytes() == b"as it was"
    said = stage.run("sbom", "--skip-drifted", "--output", target).expect()
    assert "warning: fix/one is left out" in said.err
    text = target.read_text("utf-8")
    validate(text)
    assert FIVE.decode() not in json.dumps(json.loads(text))
    left = [each for component in json.loads(text)["components"] for each in component["pedigree"]["patches"]]
    assert len(left) == (1 if case == "edited" else 0)
    assert stage.tree() == before


def test_a_distribution_that_is_there_twice_is_refused(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE))
    stage.run("apply").expect()
    put(stage.site / "some_dist-1.2.2.dist-info" / "METADATA", b"Name: some-dist\nVersion: 1.2.2\n")
    assert "installed twice" in stage.run("sbom", "--skip-drifted").expect(4).err


def test_an_unfinished_transaction_is_refused(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE))
    stage.run("apply").expect()
    put(stage.site / ".patchkit" / "journal.json", b"{}")
    assert "patchkit recover" in stage.run("sbom").expect(8).err


def test_the_text_is_the_one_that_was_applied_and_not_the_one_at_hand(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE, bug="#1"))
    stage.run("apply").expect()
    stage.add("fix", patch("one", NINE, bug="#2"))
    found = only_patch(bill_of(stage))
    assert text_of(found["diff"]["text"]) == FIVE
    assert [issue["id"] for issue in found["resolves"]] == ["#1"]


def test_a_diff_that_the_object_store_lost_is_damage(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE))
    stage.run("apply").expect()
    [row] = stage.ledger()["applied"]
    (stage.site / ".patchkit" / "objects" / row["diff"]["sha256"]).unlink()
    assert "its diff is not in the object store" in stage.run("sbom").expect(8).err


@pytest.mark.parametrize("named", [True, False])
def test_a_patch_folder_that_is_broken_or_missing_is_a_warning(
    named: bool, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.add("fix", patch("one", FIVE))
    stage.run("apply").expect()
    (stage.patches / "fix" / "patchset.toml").write_text("schema = 1\nodd = 1\n")
    monkeypatch.chdir(stage.site)
    said = stage.run("sbom", patches=named).expect()
    assert ("odd: unknown key" if named else "there is no patch") in said.err
    assert only_patch(said.json())["type"] == "unofficial"


# ---- where it goes --------------------------------------------------------------------------------------------


def test_a_file_is_written_and_the_report_says_what_is_in_it(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE), patch("two", NINE))
    stage.run("apply").expect()
    target = stage.folder / "bill.json"
    said = stage.run("sbom", "--output", target).expect()
    assert "fix/one  applied  some-dist 1.2.3" in said.out
    assert said.out.endswith(f"wrote {target}: 2 patches of 1 distribution\n")
    assert target.read_text("utf-8") == stage.run("sbom", "--quiet").expect().out
    assert stage.run("sbom", "--quiet", "--output", target).expect().out == ""


def test_with_json_the_bill_needs_a_file_of_its_own(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE))
    stage.run("apply").expect()
    target = stage.folder / "bill.json"
    document = stage.json("sbom", exit_code=2)
    assert "--output FILE" in document["error"]["hint"]
    document = stage.json("sbom", "--output", target)
    assert (document["command"], document["ok"]) == ("sbom", True)
    assert [row["state"] for row in document["patches"]] == ["applied"]
    validate(target.read_text("utf-8"))


def test_a_place_that_cannot_be_written_ends_with_4(stage: Stage) -> None:
    assert "cannot be written" in stage.run("sbom", "--output", stage.folder / "absent" / "bill.json").expect(4).err


def test_xml_is_utf_8_whatever_the_locale_says(stage: Stage) -> None:
    stage.add("fix", patch("one", edit(5, AWKWARD["letters of the world"])))
    stage.run("apply").expect()
    target = stage.folder / "bill.xml"
    stage.run("sbom", "--format", "xml", "--output", target).expect()
    words = (*worlds.patchkit_command(), "sbom", "--format", "xml", "--site-packages", stage.site)
    values = worlds.clean_environment({"LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})
    said = run(*words, cwd=stage.folder, env=values).expect()
    assert said.out.encode() == target.read_bytes()


# ---- merged into the bills of others --------------------------------------------------------------------------


@pytest.fixture
def venv(tmp_path: Path, make_venv: Callable[..., Venv], pip_install: Callable[..., Finished]) -> Venv:
    """An environment with a distribution from a folder of wheels, as from an index, and one from a file."""
    made = make_venv(tmp_path / "venv", with_pip=False)
    wheels = tmp_path / "wheels"
    sample_wheel(wheels, name="Some.Dist")
    file = make_wheel(wheels, "from_file", "1.0", {"from_file.py": "a = 1\n"}, requires=["some-dist"])
    pip_install(made, "--find-links", wheels, "Some.Dist")
    pip_install(made, file)
    return made


def bill_by_cyclonedx_py(venv: Venv, target: Path, *args: str) -> Bill:
    """The bill that cyclonedx-py makes of an environment."""
    words = (sys.executable, "-m", "cyclonedx_py", "environment", *args, "--output-file", target, venv.python)
    run(*words, cwd=venv.root).expect()
    document: Bill = json.loads(target.read_bytes())
    return document


def _without_pedigree(bill: Bill) -> Bill:
    components = [{key: value for key, value in each.items() if key != "pedigree"} for each in bill["components"]]
    return {**bill, "components": components, "metadata": {**bill["metadata"], "tools": {}}, "version": 0}


@pytest.mark.parametrize("version", ["1.4", "1.6"])
def test_the_bill_of_cyclonedx_py_gets_the_patches_and_keeps_all_else(
    version: str, venv: Venv, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(tmp_path, venv.site_packages, tmp_path / "patches", lambda: tmp_path, capfd.readouterr)
    change = make_diff({"from_file.py": b"a = 1\n"}, {"from_file.py": b"a = 2\n"})
    stage.add("fix", patch("one", FIVE))
    stage.add("more", patch("one", change), distribution="from-file")
    stage.run("apply").expect()
    target = tmp_path / "app.json"
    given = bill_by_cyclonedx_py(venv, target, "--spec-version", version)
    stage.run("sbom", "--merge", target, "--output", target).expect()
    merged = json.loads(target.read_bytes())
    validate(target.read_text("utf-8"), version=version)
    assert _without_pedigree(merged) == _without_pedigree(given)
    assert merged["version"] == given["version"] + 1
    tools = merged["metadata"]["tools"]
    names = [tool["name"] for tool in (tools if version == "1.4" else tools["components"])]
    assert "patchkit" in names and "cyclonedx-py" in names
    patched = {each["name"]: each["pedigree"]["patches"] for each in merged["components"] if "pedigree" in each}
    assert {name: text_of(found["diff"]["text"]) for name, [found] in patched.items()} == {
        "Some.Dist": FIVE,
        "from_file": change,
    }
    [own] = [each for each in bill_of(stage)["components"] if each["name"] == "Some.Dist"]
    [theirs] = [each for each in given["components"] if each["name"] == "Some.Dist"]
    assert {key: own[key] for key in ("name", "version", "purl", "type")} == {
        key: theirs[key] for key in ("name", "version", "purl", "type")
    }
    once = target.read_bytes()
    stage.run("sbom", "--merge", target, "--output", target).expect()
    assert target.read_bytes() == once


def merge(stage: Stage, bill: object, exit_code: int = 0) -> Finished:
    data = bill if isinstance(bill, bytes) else json.dumps(bill).encode()
    return stage.run("sbom", "--merge", put(stage.folder / "given.json", data)).expect(exit_code)


def a_bill(*components: Any, **keys: Any) -> Bill:
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": list(components), **keys}


def a_component(purl: str | None, name: str = "some-dist", version: str = "1.2.3", **keys: Any) -> Bill:
    return {"type": "library", "name": name, "version": version, **({"purl": purl} if purl else {}), **keys}


@pytest.fixture
def patched(stage: Stage) -> Stage:
    stage.add("fix", patch("one", FIVE))
    stage.run("apply").expect()
    return stage


FOUND = {
    "a reference and qualifiers of another scanner": a_component(
        "pkg:pypi/Some_Dist@1.2.3?vcs_url=git%2Bhttps://example.org",
        **{"bom-ref": "pkg:pypi/some-dist@1.2.3?package-id=0"},
    ),
    "another spelling of the version": a_component("pkg:pypi/some-dist@v1.2.3", version="v1.2.3"),
    "no package URL": a_component(None, "Some.Dist"),
    "a pedigree of its own": a_component(
        "pkg:pypi/some-dist@1.2.3", pedigree={"notes": "built here", "patches": [{"type": "backport"}]}
    ),
}


@pytest.mark.parametrize("case", FOUND)
@pytest.mark.parametrize("nested", [False, True])
def test_a_component_is_found_by_its_package_url_whatever_its_spelling(case: str, nested: bool, patched: Stage) -> None:
    given = FOUND[case]
    others = [a_component("pkg:npm/some-dist@1.2.3"), a_component("pkg:pypi/other@1.2.3", "other"), a_component("odd")]
    box = {"type": "container", "name": "image", "components": [given]}
    said = merge(patched, a_bill(*others, box if nested else given))
    validate(said.out)
    assert said.err == ""
    *rest, last = said.json()["components"]
    assert rest == others
    component = last["components"][0] if nested else last
    pedigree = component.pop("pedigree")
    assert component == {key: value for key, value in given.items() if key != "pedigree"}
    assert [text_of(each["diff"]["text"]) for each in pedigree["patches"] if "diff" in each] == [FIVE]
    assert pedigree["patches"][:-1] == given.get("pedigree", {}).get("patches", [])
    assert pedigree["notes"].startswith("built here\nfix/one: " if "pedigree" in given else "fix/one: ")


def test_a_distribution_that_the_bill_does_not_have_is_added_with_a_warning(patched: Stage) -> None:
    said = merge(patched, {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1})
    validate(said.out, version="1.5")
    assert "has no component for some-dist 1.2.3: one was added" in said.err
    assert only_component(said.json())["purl"] == "pkg:pypi/some-dist@1.2.3"


def test_a_bill_is_not_touched_where_nothing_is_applied(stage: Stage) -> None:
    odd = b'{"bomFormat": "CycloneDX",  "specVersion": "1.6", "serialNumber": "urn:uuid:0", "x": 1.50}'
    assert merge(stage, odd).out.encode() == odd


def test_a_serial_number_gets_the_next_version_and_a_bill_without_one_does_not(patched: Stage) -> None:
    serial = {"serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79", "version": 4}
    assert merge(patched, a_bill(**serial)).json()["version"] == 5
    assert merge(patched, a_bill(version=4)).json()["version"] == 4


WRONG: dict[str, tuple[object, str]] = {
    "no JSON": (b"<bom/>", "is not JSON"),
    "nested beyond reason": (b"[" * 100_000, "is not JSON"),
    "not UTF-8": (b'{"a": "\xff"}', "is not JSON"),
    "another document": ({"spdxVersion": "SPDX-2.3"}, "is no CycloneDX bill"),
    "a list": ([], "is no CycloneDX bill"),
    "a version to come": (a_bill(specVersion="9.0"), "the specVersion '9.0'; known are 1.4, 1.5, 1.6, 1.7"),
    "a signature": (a_bill(signature={"algorithm": "RS256"}), "is signed"),
    "components that are none": (a_bill(components={}), "`components`"),
    "a component that is none": (a_bill("some-dist"), "`components`"),
    "metadata that is none": (a_bill(metadata=[]), "`metadata`"),
    "tools that are none": (a_bill(metadata={"tools": 1}), "`tools`"),
    "a pedigree that is none": (a_bill(a_component(None, pedigree=[])), "`pedigree`"),
    "another version of it": (a_bill(a_component("pkg:pypi/some-dist@1.2.4")), "some-dist 1.2.3 is installed, and"),
    "it twice": (a_bill(a_component(None), a_component("pkg:pypi/some-dist@1.2.3")), "has 2 components"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_bill_of_this_environment_is_refused(case: str, patched: Stage) -> None:
    given, words = WRONG[case]
    said = merge(patched, given, exit_code=2)
    assert said.out == ""
    assert str(patched.folder / "given.json") in said.err and words in said.err and "hint: " in said.err


def test_a_bill_that_is_not_there_is_refused(patched: Stage) -> None:
    for path in (patched.folder / "absent.json", patched.folder):
        assert str(path) in patched.run("sbom", "--merge", path).expect(2).err


@pytest.mark.parametrize("option", [("--format", "xml"), ("--spec-version", "1.6")])
def test_options_that_merging_contradicts_are_usage_errors(option: tuple[str, str], patched: Stage) -> None:
    given = put(patched.folder / "given.json", b"{}")
    assert f"leave out {option[0]}" in patched.run("sbom", "--merge", given, *option).expect(2).err


# ---- without the extra ----------------------------------------------------------------------------------------


def test_without_the_extra_the_error_says_how_to_get_it_and_other_commands_do_without(
    tmp_path: Path, make_venv: Callable[..., Venv], patched: Stage
) -> None:
    bare = make_venv(tmp_path / "bare", with_pip=False)
    for name in ("click", "packaging", "unidiff", "tomli"):
        lent = Path(sysconfig.get_path("purelib"), name)
        if lent.exists():
            (bare.site_packages / name).symlink_to(lent)
    program = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from patchkit.cli import run; run()"
    where = ("--site-packages", str(patched.site), "--patches", str(patched.patches))
    said = bare.run("-c", program, "sbom", *where).expect(4)
    assert said.out == "" and "pip install 'site-patchkit[sbom]'" in said.err
    bare.run("-c", program, "status", "--exit-code", *where).expect()


def test_a_library_that_is_too_old_is_told_as_well(patched: Stage) -> None:
    put(patched.folder / "old" / "cyclonedx" / "__init__.py", b"")
    paths = [str(patched.folder / "old"), str(CHECKOUT)]
    program = f"import sys; sys.path[:0] = {paths}; from patchkit.cli import run; run()"
    said = run(sys.executable, "-c", program, "sbom", "--site-packages", patched.site, cwd=patched.folder).expect(4)
    assert "needs the library cyclonedx-python-lib" in said.err


def test_no_other_command_loads_the_library(patched: Stage) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from patchkit.cli import main; "
        f"main(['status', '--site-packages', {str(patched.site)!r}]); "
        "sys.exit(any(name.startswith(('cyclonedx', 'packageurl', 'patchkit.materials')) for name in sys.modules))"
    )
    run(sys.executable, "-c", program, cwd=patched.folder).expect()


def test_help_needs_no_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sbom", "--help"]) == 0
    assert "--merge FILE" in capsys.readouterr().out
