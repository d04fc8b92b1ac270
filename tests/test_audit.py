"""`patchkit audit` as a user runs it: real wheels and environments, exit codes, the document, and nothing written."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worlds
from patchkit.audit_words import next_command
from patchkit.audited import DOUBTS, Hazard
from patchkit.audited import Audit as Audited
from patchkit.errors import PatchkitError
from patchkit.hazards import read_hazards
from patchkit.patchset import PatchId
from test_docs import JSON, _without_parents, key_paths, page, read_blocks, read_first_words, read_rows, read_sections
from worlds import Finished, RunPatchkit, tree

LIB = {
    "lib/__init__.py": "from .core import quantise, plain\n",
    "lib/core.py": textwrap.dedent(
        """
        import subprocess
        import torch


        def build():
            return subprocess.run(["nvcc"])


        def quantise(x):
            return build()


        def plain(x):
            return x
        """
    ).lstrip(),
}
CALLER = {
    "app/__init__.py": "",
    "app/layers.py": "from lib import quantise\n\n\ndef forward(x):\n    return quantise(x)\n",
    "app/runner.py": "import torch\n\n\ndef run(model):\n    return torch.compile(model, fullgraph=True)\n",
    "app/quiet.py": "from lib import plain\n\n\ndef forward(x):\n    return plain(x)\n",
}
DISABLE = (
    "--- a/lib/core.py\n+++ b/lib/core.py\n@@ -7,4 +7,5 @@\n \n \n"
    "+@torch.compiler.disable\n def quantise(x):\n     return build()\n"
)
OPERATOR = DISABLE.replace("torch.compiler.disable", "torch.library.custom_op('lib::quantise', mutates_args=())")
MANIFEST = """
schema = 1
name = "fixes"
distribution = "lib"

[[patch]]
name = "disable"
group = "quantise"
[[patch.variant]]
versions = "==1"
file = "disable.patch"

[[patch]]
name = "operator"
group = "quantise"
default = false
[[patch.variant]]
versions = "==1"
file = "operator.patch"
"""

Audit = Callable[..., Finished]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site root with a library, a caller of it, and beside it a patch folder with two alternatives."""
    wheels = [worlds.make_wheel(tmp_path, "lib", "1", LIB), worlds.make_wheel(tmp_path, "app", "1", CALLER)]
    folder = tmp_path / "patches" / "fixes"
    folder.mkdir(parents=True)
    for name, text in {"patchset.toml": MANIFEST, "disable.patch": DISABLE, "operator.patch": OPERATOR}.items():
        (folder / name).write_text(text)
    return worlds.unpack_site(tmp_path / "site", *wheels)


@pytest.fixture
def audit(site: Path, patchkit: RunPatchkit) -> Audit:
    """``audit("app.layers", ...)`` on the site root; nothing may be written by it."""

    def run(*words: str | Path, env: dict[str, str] | None = None) -> Finished:
        before = tree(site.parent)
        ended = patchkit("audit", *words, "--site-packages", site, cwd=site.parent, env=env)
        assert tree(site.parent) == before
        return ended

    return run


def patched(ended: Finished) -> dict[str, Any]:
    document: dict[str, Any] = ended.json()
    return document


# ---- before and after a patch ---------------------------------------------------------------------------------


def test_an_unpatched_hazard_is_told_with_its_chain_and_the_patches_that_would_cover_it(audit: Audit) -> None:
    document = audit("app.layers", "--json").expect(1).json()
    [hazard] = document["hazards"]
    assert (hazard["callable"], hazard["construct"], hazard["kind"]) == (
        "lib.core.quantise",
        "subprocess.run",
        "subprocess",
    )
    assert [(step["path"], step["line"], step["function"]) for step in hazard["chain"]] == [
        ("app/layers.py", 5, "app.layers.forward"),
        ("lib/core.py", 10, "lib.core.quantise"),
        ("lib/core.py", 6, "lib.core.build"),
    ]
    assert hazard["patches"] == ["fixes/disable", "fixes/operator"]
    assert document["covered"] == []
    [found] = document["contradictions"]
    assert (found["patch"], found["applied"], found["alternative"]) == ("fixes/disable", False, "fixes/operator")


def test_a_patch_that_contradicts_is_told_with_the_compile_call_and_the_alternative(
    audit: Audit, patchkit: RunPatchkit, site: Path
) -> None:
    patchkit("apply", "--site-packages", site, cwd=site.parent).expect()
    document = audit("app.layers", "--json").expect(1).json()
    assert document["hazards"] == []
    [covered] = document["covered"]
    assert (covered["by"]["owner"], covered["by"]["patch"]) == ("patch", "fixes/disable")
    assert (covered["by"]["path"], covered["by"]["line"], covered["by"]["effect"]) == ("lib/core.py", 9, "graph-break")
    [found] = document["contradictions"]
    assert (found["patch"], found["applied"], found["alternative"]) == ("fixes/disable", True, "fixes/operator")
    [compiled] = found["compiled"]
    assert (compiled["path"], compiled["line"], compiled["function"]) == ("app/runner.py", 5, "run")

    said = audit("app.layers").expect(1).out
    assert f"next: patchkit apply fixes/operator --site-packages {site}" in said
    patchkit("apply", "fixes/operator", "--site-packages", site, cwd=site.parent).expect()
    document = audit("app.layers", "--json").expect(0).json()
    [covered] = document["covered"]
    assert (covered["by"]["patch"], covered["by"]["effect"]) == ("fixes/operator", "operator")
    assert document["hazards"] == document["contradictions"] == []
    assert "complete as far as a static view goes" in audit("app.layers").expect(0).out


def test_the_next_command_never_names_two_alternatives() -> None:
    disable, operator, other = (PatchId("fixes", name) for name in ("disable", "operator", "other"))
    covers = [(operator, disable), (operator,), (operator, other), (disable,), (other,)]
    hazards = tuple(Hazard("lib.f", "process", "os.fork", "", (), patches) for patches in covers)
    found = Audited("app", (), (), "dynamo", hazards=hazards, groups=(frozenset((disable, operator)),))
    assert next_command(found) == "patchkit apply fixes/operator fixes/other"


def test_a_value_that_is_not_known_is_told_and_is_no_contradiction_by_itself(
    audit: Audit, patchkit: RunPatchkit, site: Path
) -> None:
    runner = site / "app" / "runner.py"
    runner.write_text(CALLER["app/runner.py"].replace("fullgraph=True", "fullgraph=model.whole"))
    patchkit("apply", "--site-packages", site, cwd=site.parent).expect()
    document = audit("app.layers", "--json").expect(0).json()
    [found] = document["contradictions"]
    assert found["applied"] and [(each["line"], each["sure"]) for each in found["compiled"]] == [(5, False)]
    said = audit("app.layers").expect(0).out
    assert "code that may be compiled as a whole" in said
    assert "perhaps torch.compile(fullgraph=model.whole) at app/runner.py:5" in said
    assert audit("app.layers", "--quiet").expect(0).out == ""


OPTIONS = {
    "in the same module": "import torch\n\nK = {'fullgraph': True}\n\ndef run(m):\n    return torch.compile(m, **K)\n",
    "in another one": "import torch\nfrom .quiet import K\n\n\ndef run(m):\n    return torch.compile(m, **K)\n",
}


@pytest.mark.parametrize("text", OPTIONS.values(), ids=OPTIONS)
def test_options_that_are_kept_in_a_mapping_contradict(
    audit: Audit, patchkit: RunPatchkit, site: Path, text: str
) -> None:
    quiet = site / "app" / "quiet.py"
    quiet.write_text("K = dict(fullgraph=1)\n" + quiet.read_text())
    (site / "app" / "runner.py").write_text(text)
    patchkit("apply", "--site-packages", site, cwd=site.parent).expect()
    [found] = audit("app.layers", "--json").expect(1).json()["contradictions"]
    assert ("app/runner.py", 6, True) in {(each["path"], each["line"], each["sure"]) for each in found["compiled"]}


OWNERS = {
    "the caller's": ("app/layers.py", "def forward", "import torch\n@torch.compiler.disable\ndef forward", "caller"),
    "upstream's": ("lib/core.py", "def build", "@torch.compiler.disable\ndef build", "upstream"),
}


@pytest.mark.parametrize(("path", "old", "new", "owner"), OWNERS.values(), ids=OWNERS)
def test_a_graph_break_contradicts_whoever_put_it_there(
    audit: Audit, site: Path, path: str, old: str, new: str, owner: str
) -> None:
    (site / path).write_text((site / path).read_text().replace(old, new))
    found = [each for each in audit("app.layers", "--json").expect(1).json()["contradictions"] if each["applied"]]
    assert [(each["owner"], each["graph_break"]["path"], each["alternative"]) for each in found] == [
        (owner, path, None)
    ]
    whose = {"caller": "the caller", "upstream": "upstream"}[owner]
    assert f"torch.compiler.disable at {path}:" in (said := audit("app.layers").expect(1).out)
    assert f"(of {whose})" in said and "not complete: 1 contradiction" in said


def test_a_compile_call_in_an_editable_checkout_contradicts(
    audit: Audit, patchkit: RunPatchkit, site: Path, tmp_path: Path
) -> None:
    patchkit("apply", "--site-packages", site, cwd=site.parent).expect()
    checkout = tmp_path / "checkout" / "src"
    for path, text in CALLER.items():
        file = checkout / path.replace("app", "own", 1)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (site / "__editable__.own-1.pth").write_text(f"{checkout}\n")
    for operand in ("own.layers", "checkout/src/own/layers.py", "checkout/src"):
        [found] = audit(operand, "--json").expect(1).json()["contradictions"]
        assert [(each["path"], each["line"]) for each in found["compiled"]] == [("checkout/src/own/runner.py", 5)]
        assert found["alternative"] == "fixes/operator"


def test_what_upstream_covers_itself_is_upstreams(audit: Audit, site: Path) -> None:
    core = site / "lib" / "core.py"
    core.write_text(core.read_text().replace("def build", "@torch.compiler.disable\ndef build"))
    document = audit("app.layers", "--json").expect(1).json()
    [covered] = document["covered"]
    assert (covered["by"]["owner"], covered["by"]["patch"]) == ("upstream", None)
    assert [each["owner"] for each in document["contradictions"] if each["applied"]] == ["upstream"]


def test_a_caller_that_reaches_no_hazard_is_complete(audit: Audit) -> None:
    document = audit("app.quiet", "--json").expect(0).json()
    assert document["ok"] and document["hazards"] == [] and len(document["imports"]) == 1
    assert audit("app.quiet", "--quiet").expect(0).out == ""


def test_text_names_the_places_and_stays_narrow(audit: Audit) -> None:
    said = audit("app.layers").expect(1).out
    for words in ("lib/core.py:6", "subprocess.run", "app/layers.py", "fixes/operator", "not covered", "next: "):
        assert words in said
    assert all(len(line) <= 100 for line in said.splitlines() if "/" not in line)


def test_verbose_text_shows_every_chain_and_every_unknown_place(audit: Audit, site: Path) -> None:
    core = site / "lib" / "core.py"
    more = "    open(x)\n    print(x)\n    x.something_of_its_own()\n"
    core.write_text(core.read_text().replace("    return build()\n", f"{more}    return build()\n"))
    brief, whole = audit("app.layers").expect(1).out, audit("app.layers", "--verbose").expect(1).out
    assert "lib.core.quantise: 3 hazards, 1 of them subprocess" in brief and "something_of_its_own" not in brief
    assert "such as subprocess.run at lib/core.py:6:\n      forward -> quantise -> build -> subprocess.run" in brief
    assert "print, output (direct)" in whole and "lib/core.py:12  x.something_of_its_own" in whole


def test_of_many_callables_only_the_counts_are_shown(audit: Audit, site: Path) -> None:
    names = [f"f{number}" for number in range(20)]
    core = site / "lib" / "core.py"
    core.write_text(core.read_text() + "".join(f"\ndef {name}(x):\n    print(x)\n" for name in names))
    calls = "".join(f"    core.{name}(x)\n" for name in names)
    (site / "app" / "layers.py").write_text(f"from lib import core\n\ndef forward(x):\n{calls}")
    said = audit("app.layers").expect(1).out
    assert "20 callables lead to what the tracer cannot trace" in said and "the lines of app/layers.py" in said
    assert "  f0   1  4\n  f1   1  5\n" in said and "and 4 more callables" in said
    assert "->" not in said and "--verbose shows each hazard with its chain" in said
    assert all(f"lib.core.{name}" in audit("app.layers", "--verbose").expect(1).out for name in names[:1] + names[-1:])


# ---- callers --------------------------------------------------------------------------------------------------


def test_a_package_is_audited_whole(audit: Audit) -> None:
    document = audit("app", "--json").expect(1).json()
    assert len(document["caller"]["files"]) == len(CALLER)
    assert {each["name"] for each in document["imports"]} == {"quantise", "plain"}


@pytest.mark.parametrize("whole", [False, True], ids=["a file", "a folder"])
def test_a_checkout_outside_the_environment_is_audited(audit: Audit, tmp_path: Path, *, whole: bool) -> None:
    checkout = tmp_path / "checkout" / "src" / "own"
    (checkout / "deep").mkdir(parents=True)
    (checkout / "__init__.py").write_text("")
    (checkout / "deep" / "__init__.py").write_text("")
    (checkout / "gate.py").write_text("from lib import quantise as q\n")
    (checkout / "deep" / "use.py").write_text("from ..gate import q\n\ndef go(x):\n    return q(x)\n")
    operand = checkout.parent if whole else checkout / "deep" / "use.py"
    document = audit(operand.relative_to(tmp_path), "--json").expect(1).json()
    paths = {each["path"] for each in document["imports"]}
    assert "checkout/src/own/deep/use.py" in paths
    assert document["hazards"][0]["chain"][0]["path"] == "checkout/src/own/deep/use.py"


def test_an_editable_caller_is_found_by_its_name(audit: Audit, site: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout" / "python"
    (checkout / "editable").mkdir(parents=True)
    (checkout / "editable" / "__init__.py").write_text("from lib import quantise\nquantise(1)\n")
    (site / "__editable__.editable-1.pth").write_text(f"{checkout}\n")
    document = audit("editable", "--json").expect(1).json()
    assert document["imports"][0]["sites"][0]["function"] is None  # it runs when the module is imported


def test_an_editable_caller_behind_a_finder_is_found(audit: Audit, site: Path, tmp_path: Path) -> None:
    package = tmp_path / "checkout" / "finder"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from lib import quantise\n")
    text = f"import sys\nMAPPING: dict[str, str] = {{'finder': {str(package)!r}}}\nraise RuntimeError('it was run')\n"
    (site / "__editable___finder_1_finder.py").write_text(text)
    assert audit("finder", "--json").expect(1).json()["imports"]


def test_code_that_would_do_harm_is_read_and_not_run(audit: Audit, site: Path, tmp_path: Path) -> None:
    harm = f"open({str(tmp_path / 'harm')!r}, 'w')\n"
    for path in ("lib/__init__.py", "app/layers.py"):
        (site / path).write_text(harm + (site / path).read_text())
    audit("app.layers", "--json").expect(1)
    assert not (tmp_path / "harm").exists()


# ---- bad input ------------------------------------------------------------------------------------------------

TABLE = """
schema = 1
name = "own"
[[hazard]]
kind = "plain"
reason = "because"
constructs = ["os.getpid"]
"""
BAD_TABLES = {
    "not TOML": ("[[hazard", "is not TOML"),
    "no schema": ('name = "own"', "schema: is missing"),
    "a newer schema": ('schema = 9\nname = "own"', "newer than this patchkit knows"),
    "an unknown key": (TABLE + "reasons = 1\n", "reasons: unknown key"),
    "no reason": (TABLE.replace('reason = "because"\n', ""), "hazard[0].reason: is missing"),
    "no constructs": (TABLE.replace('["os.getpid"]', "[]"), "hazard[0].constructs: names nothing"),
    "a construct that is no name": (TABLE.replace("os.getpid", "os.getpid("), "is not a dotted name"),
    "a construct twice": (TABLE.replace('["os.getpid"]', '["os.getpid", "os.getpid"]'), "is in the table already"),
    "a method that is no construct": (TABLE + 'by-name = ["a.b"]\n', "is not among the constructs"),
    "an effect that is none": (
        TABLE + '[[opaque]]\nreason = "a"\nmakers = ["a.b"]\neffect = "magic"\n',
        'opaque[0].effect: "magic" is not known; write graph-break or operator',
    ),
    "a position without an argument": (
        TABLE + '[[opaque]]\nreason = "a"\nmakers = ["a.b"]\neffect = "graph-break"\nrecursive-position = 1\n',
        'opaque[0].recursive-position: says nothing without "recursive-argument"',
    ),
    "a whole that names nothing": (TABLE + '[[whole]]\nreason = "a"\n', "whole[0].callables: names nothing"),
    "a whole that is no name": (
        TABLE + '[[whole]]\nreason = "a"\ncallables = ["a("]\n',
        'whole[0].callables[0]: "a(" is not a dotted name',
    ),
    "a condition that is no code": (
        TABLE + '[[assumption]]\nreason = "a"\nexpression = "if if"\n',
        "assumption[0].expression",
    ),
    "a construct behind one that is no string": (
        TABLE.replace('["os.getpid"]', '[1, "a b"]'),
        'hazard[0].constructs[1]: "a b" is not a dotted name',
    ),
    "a condition that is true and false": (
        TABLE + "".join(f'[[assumption]]\nreason = "a"\nexpression = "x"\nvalue = {it}\n' for it in ("true", "false")),
        '"x" is taken as true and as false',
    ),
    "an argument's name that is none": (
        TABLE + '[[whole]]\nreason = "a"\ncallables = ["a.b"]\nby-name = true\n',
        'whole[0].by-name: says nothing without "argument"',
    ),
    "a method with a dot": (TABLE + '[[ordinary]]\nreason = "a"\nmethods = ["a.b"]\n', "is not the name of a method"),
    "a hazard that is traced": (TABLE + '[[traced]]\nreason = "a"\nconstructs = ["os.getpid"]\n', "is also a hazard"),
}


@pytest.mark.parametrize(("text", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_bad_table_of_hazards_is_told_with_its_key(audit: Audit, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    ended = audit("app.layers", "--hazards", "own.toml").expect(3)
    assert words in ended.err and "own.toml" in ended.err


def test_another_table_of_hazards_is_used(audit: Audit, site: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(TABLE)
    document = audit("app.layers", "--hazards", "own.toml", "--json").expect(0).json()
    assert document["table"] == "own" and document["hazards"] == []
    (site / "lib" / "core.py").write_text("import os\ndef quantise(x):\n    os.getpid()\ndef plain(x): pass\n")
    [hazard] = audit("app.layers", "--hazards", "own.toml", "--json").expect(1).json()["hazards"]
    assert (hazard["kind"], hazard["reason"]) == ("plain", "because")


REFUSED = {
    "a module that is not there": (("app.gone",), 2, "app.gone is neither a file or folder nor a module"),
    "a file that is not there": (("gone.py",), 2, "gone.py: there is no such file or folder"),
    "a file that is no module": (("patches/fixes/patchset.toml",), 2, "is not a Python module"),
    "a folder without modules": (("patches",), 2, "there is no Python module in it"),
    "the distribution itself": (("lib.core",), 2, "lib.core belongs to lib itself"),
    "a distribution that is not installed": (("app.layers", "--of", "gone"), 4, "gone is not installed"),
    "a table that is not there": (("app.layers", "--hazards", "gone.toml"), 2, "there is no such file"),
    "no caller": ((), 2, "CALLER"),
    "a caller without a name": (("",), 2, "the caller has no name"),
}


@pytest.mark.parametrize(("words", "code", "said"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_question_is_refused(audit: Audit, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in audit(*words).expect(code).err


def test_without_patches_a_distribution_must_be_named(patchkit: RunPatchkit, site: Path, tmp_path: Path) -> None:
    (tmp_path / "patches").rename(tmp_path / "away")
    where = ("--site-packages", site)
    assert "--of DISTRIBUTION" in patchkit("audit", "app.layers", *where, cwd=tmp_path).expect(2).err
    ended = patchkit("audit", "app.layers", "--of", "LIB", "--json", *where, cwd=tmp_path).expect(1)
    assert ended.json()["distributions"] == [{"name": "lib", "version": "1"}]


def test_a_patch_that_cannot_be_tried_is_a_warning(audit: Audit, site: Path) -> None:
    core = site / "lib" / "core.py"
    core.write_text(core.read_text() + "# edited\n")
    document = audit("app.layers", "--json").expect(1).json()
    assert document["hazards"][0]["patches"] == []


NO_ANSWER = {
    "a file that is no Python": ("from lib import plain\ndef f(x:\n", "unparsed"),
    "a name that is not there": ("from lib import gone\n", "missing"),
    "an attribute that is not there": ("import lib\ndef f(x):\n    return lib.gone(x)\n", "missing"),
    "only a string": ("NAMES = ['lib.core']\n", "named-in-string"),
}


@pytest.mark.parametrize(("text", "kind"), NO_ANSWER.values(), ids=NO_ANSWER)
def test_what_cannot_be_read_is_no_yes(audit: Audit, site: Path, text: str, kind: str) -> None:
    (site / "app" / "quiet.py").write_text(text)
    assert kind in {each["kind"] for each in audit("app.quiet", "--json").expect(1).json()["unknown"]["places"]}
    for said in (audit("app.quiet").expect(1).out, audit("app.quiet", "--quiet").expect(1).out):
        assert "no answer" in said and "not complete" in said and "nothing to cover" not in said


ODD = ("run-it.py", "my-tools/tool.py", "3rd/deep/tool.py", "a.b/c.py")


@pytest.mark.parametrize("path", ODD)
def test_a_file_that_no_import_statement_can_name_is_looked_at(audit: Audit, site: Path, path: str) -> None:
    script = site.parent / "checkout" / path
    script.parent.mkdir(parents=True)
    script.write_text(CALLER["app/layers.py"])
    for asked in ("checkout", f"checkout/{path}"):
        document = audit(asked, "--json").expect(1).json()
        assert [each["callable"] for each in document["hazards"]] == ["lib.core.quantise"]
        assert [each["path"] for each in document["imports"]] == [f"checkout/{path}"]


def test_a_template_that_names_nothing_of_it_is_left_out(audit: Audit, site: Path) -> None:
    template = site / "app" / "{{ name }}" / "main.py"
    template.parent.mkdir()
    template.write_text("from {{ name }} import this\n")
    assert audit("app.quiet").expect(0) and audit("app", "--json").expect(1).json()["unknown"]["count"] == 0


def test_a_folder_behind_a_link_is_looked_at_once(audit: Audit, site: Path, tmp_path: Path) -> None:
    code = tmp_path / "elsewhere"
    code.mkdir()
    (code / "layers.py").write_text(CALLER["app/layers.py"])
    (tmp_path / "checkout").mkdir()
    for link, target in {"linked": code, "again": code, "up": tmp_path, "self": tmp_path / "checkout"}.items():
        (tmp_path / "checkout" / link).symlink_to(target, target_is_directory=True)
    (code / "round").symlink_to(tmp_path / "checkout", target_is_directory=True)
    document = audit("checkout", "--json").expect(1).json()
    assert [each["callable"] for each in document["hazards"]] == ["lib.core.quantise"]


def test_a_folder_without_init_is_named_as_its_own_imports_name_it(audit: Audit, tmp_path: Path) -> None:
    space = tmp_path / "proj" / "ns" / "inner"
    space.mkdir(parents=True)
    (space / "w.py").write_text("from lib import quantise\ndef make():\n    return quantise\n")
    (space / "go.py").write_text("from ns.inner.w import make\ndef run():\n    make()(1)\n")
    document = audit("proj/ns/inner", "--json").expect(1).json()
    assert document["hazards"][0]["chain"][0]["function"] == "ns.inner.go.run"


def test_the_rest_of_the_package_is_said_not_to_be_looked_into(audit: Audit, site: Path) -> None:
    (site / "app" / "quiet.py").write_text("from .layers import forward\ndef f(x):\n    return forward(x)\n")
    said = audit("app.quiet").expect(0).out
    assert "patchkit audit app --of lib" in said and "1 place not known" in said and "nothing to cover" not in said
    assert "not looked into" not in audit("app").expect(1).out


def test_quiet_tells_only_what_is_wrong(audit: Audit) -> None:
    lines = audit("app.layers", "--quiet").expect(1).out.splitlines()
    assert lines[0] == "not covered: lib.core.quantise: subprocess 1" and len(lines) == 3


def test_every_call_site_is_told(audit: Audit, site: Path) -> None:
    more = "\n\ndef load(x):\n    return quantise(x)\n"
    (site / "app" / "layers.py").write_text(CALLER["app/layers.py"] + more)
    assert "called at lines 5, 9 of app/layers.py" in audit("app.layers", "--verbose").expect(1).out
    said = audit("app.layers").expect(1).out
    assert "called by forward, app/layers.py:5\n    called by load, app/layers.py:9\n" in said
    [hazard] = audit("app.layers", "--json").expect(1).json()["hazards"]
    assert [(each["line"], each["function"]) for each in hazard["sites"]] == [
        (5, "app.layers.forward"),
        (9, "app.layers.load"),
    ]


# ---- the documentation ----------------------------------------------------------------------------------------


def test_every_key_of_the_document_is_documented_and_every_documented_key_is_real(
    audit: Audit, patchkit: RunPatchkit, site: Path
) -> None:
    core = site / "lib" / "core.py"
    core.write_text(LIB["lib/core.py"].replace("def plain(x):", "def plain(x):\n    x.own()"))
    before = audit("app", "--json").json()
    core.write_text(LIB["lib/core.py"])
    patchkit("apply", "--site-packages", site, cwd=site.parent).expect()
    after = audit("app", "--json").json()
    leaves = _without_parents(path for document in (before, after) for path in key_paths(document))
    shared = {"schema", "command", "ok", "exit_code", "environment.site_root", "environment.python", "warnings[]"}
    assert leaves - shared == set(read_first_words(JSON["`audit`"]))


def test_every_key_of_a_table_of_hazards_is_documented() -> None:
    sections = read_sections(page("docs/reference/hazards.md"))
    asking = (
        'schema = 1\nname = "a"\nzzz = 1\n[[hazard]]\nkind = "a"\nreason = "a"\nconstructs = ["a.b"]\nzzz = 1\n'
        '[[traced]]\nreason = "a"\nconstructs = ["a"]\nzzz = 1\n[[opaque]]\nreason = "a"\nmakers = ["a"]\n'
        'effect = "operator"\nzzz = 1\n[[whole]]\nreason = "a"\n'
        'callables = ["a"]\nzzz = 1\n[[assumption]]\nreason = "a"\nexpression = "a"\nzzz = 1\n'
        '[[ordinary]]\nreason = "a"\nmethods = ["a"]\nzzz = 1\n'
    )
    with pytest.raises(PatchkitError) as raised:
        read_hazards(asking.encode(), file="a")
    messages = {single.message.partition(": ")[2].partition("zzz")[0]: single.message for single in raised.value.all()}
    headings = {"": "Top level"} | {f"{name}[0].": f"`[[{name}]]`" for name in KINDS}
    for place, heading in headings.items():
        known = messages[place].partition("known are ")[2].split(", ")
        assert sorted(read_first_words(sections[heading])) == known


KINDS = ("hazard", "traced", "opaque", "whole", "assumption", "ordinary")


def test_the_example_of_a_table_is_one() -> None:
    example = next(read_blocks(page("docs/reference/hazards.md"))).text
    assert read_hazards(example.encode(), file="a").rules


def test_every_kind_of_doubt_is_explained() -> None:
    section = read_sections(page("docs/explanation/static-view.md"))["Where it ends"]
    told = {cells[0].strip("`"): cells[1] for cells in read_rows(section)}
    assert told == {doubt.value: words for doubt, words in DOUBTS.items()}
