"""The table of layers, held by reading every module's source: data flows one way, and one module writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import pytest

from sources import PACKAGE, Finding, find_imports, find_uses, find_writes, is_within, neighbours, parse
from worlds import CHECKOUT

# From the lowest layer to the highest. A module may import from its own layer and from those below, in no circle.
LAYERS: tuple[tuple[str, str], ...] = (
    ("words", "__init__ errors installed patchset model applied drift audited"),
    ("pure", "versions tables fields manifest paths hunktext entries headers diff places hunks escapes alignment"),
    ("pure", "provenance record bounds syntax symbols ledger journal golden"),
    ("pure", "branches bindings programs loading hazards values facts classes results operations surroundings"),
    (
        "pure",
        "lineage annotations substitutions mutations members returns contents outlines definitions narrowing inference "
        "accessors notes",
    ),
    (
        "pure",
        "hooks operands handing callees bodies registrations opacity calls reach importmap truths compiles carriers "
        "views",
    ),
    ("decide", "fold wanted choices bases proof assess remnants moves causes plan preview report evidence"),
    ("decide", "bill components merger"),
    ("decide", "tally"),
    ("pure", "archives homes patience merge outline"),
    ("decide", "fits treemerge rebased"),
    ("decide", "manifesttext noise mail renames difference layouts upstream rewritten lints authored"),
    ("decide", "audit_json"),
    ("world", "interruption inputs settled folders catalog interpreter environment site state wheel checks child"),
    ("world", "codebase"),
    ("world", "disk faults store targets preflight undo transaction outputs"),
    ("world", "workfolder"),
    ("world", "indexes remote ranges pristine releases"),
    (
        "use",
        "scene survey candidates trials bystanders decision dependents account outcome verification examination"
        " settlement change service tryout coverage redraft bench doubt handover mergebase rebase"
        " origins edits footing drafts foundation rehearsal authoring copies capture importation linting",
    ),
    ("use", "memory comparison inventory aftermath materials"),
    ("use", "image_build snippets"),
    ("use", "remedies audit"),
    ("people", "columns build_log"),
    ("people", "text drift_text formats elements markdown junit stylesheet page options console delivery"),
    ("people", "authoring_text release_text authoring_commands release_commands"),
    ("people", "audit_words audit_brief audit_text audit_commands"),
    ("people", "patch_commands drift_commands image_commands cli shortcut __main__"),
)
PLACES = [(module, layer) for layer, modules in LAYERS for module in modules.split()]
ORDER = [*dict.fromkeys(layer for layer, _ in LAYERS)]
LAYER = dict(PLACES)

# The one writer of installed files is `transaction`; these are its parts. All of them write through `disk`, which alone
# makes the system calls, and nobody else imports a part; but `outputs`, which writes what a user asked for elsewhere.
PARTS = ("disk", "store", "targets", "preflight", "undo")
WRITERS = ("transaction", *PARTS, "outputs")

# Modules of others that only some of ours may import. What is "lazy" is imported inside functions only, so that a run
# that has nothing to do never loads it.
OWNERS: dict[str, tuple[str, ...]] = {
    "tomllib": ("manifest", "indexes"),
    "tomli": ("manifest", "indexes"),
    "unearth": ("remote",),
    "httpx2": ("remote",),
    "unidiff": ("diff",),
    "importlib.metadata": ("site",),
    "click": (
        "text",
        "options",
        "console",
        "patch_commands",
        "drift_text",
        "delivery",
        "drift_commands",
        "image_commands",
        "authoring_text",
        "authoring_commands",
        "release_text",
        "release_commands",
        "audit_words",
        "audit_brief",
        "audit_text",
        "audit_commands",
        "cli",
    ),
    "cyclonedx": ("components",),
    "packageurl": ("components", "merger"),
    "subprocess": ("environment", "checks", "child"),
    "signal": ("interruption", "checks", "child"),
    "tempfile": (),
    "shutil": ("environment", "text"),
}
LAZY = ("unidiff", "importlib.metadata", "packaging.requirements", "packaging.markers", "difflib")

# Who may end the process or speak to a person. `interpreter` prints, as the program that another interpreter runs.
SPEAKS = ("sys.exit", "os._exit", "exit", "quit", "print", "click.echo", "click.secho", "sys.stdout", "sys.stderr")
SPEAKERS: dict[str, tuple[str, ...]] = {"cli": SPEAKS, "__main__": SPEAKS, "console": SPEAKS, "interpreter": ("print",)}

TREES = {path.stem: parse(path.read_text(encoding="utf-8")) for path in sorted((CHECKOUT / PACKAGE).rglob("*.py"))}
KNOWN = frozenset(TREES)


def _at(module: str, line: int) -> str:
    return f"{PACKAGE}/{module}.py:{line}"


def _lines(problems: Iterable[str]) -> str:
    return "\n".join(["", *problems])


# ---- the rules ------------------------------------------------------------------------------------------------


def upward_imports(module: str, imported: dict[str, int]) -> list[str]:
    """The imports of a module that lies in a higher layer."""
    return [
        f"{_at(module, line)} is of the layer {LAYER[module]} and imports {other} of the higher layer {LAYER[other]}"
        for other, line in imported.items()
        if other in LAYER and ORDER.index(LAYER[other]) > ORDER.index(LAYER[module])
    ]


def find_speech(source: str, allowed: tuple[str, ...]) -> list[Finding]:
    """Where a source speaks to a person or ends the process, and may not."""
    banned = [name for name in SPEAKS if name not in allowed]
    return [use for use in find_uses(parse(source)) if any(is_within(use.what, name) for name in banned)]


def test_every_module_has_a_place_in_the_table() -> None:
    homeless = sorted(KNOWN - LAYER.keys())
    assert not homeless, (
        f"add {', '.join(homeless)} to LAYERS in tests/test_layers.py, to the lowest layer that is true"
    )


def test_the_table_names_only_modules_that_exist() -> None:
    gone = sorted(LAYER.keys() - KNOWN)
    assert not gone, f"take {', '.join(gone)} out of LAYERS in tests/test_layers.py"


def test_no_module_stands_in_the_table_twice() -> None:
    assert len(LAYER) == len(PLACES)


def test_the_package_is_flat() -> None:
    folders = [path for path in (CHECKOUT / PACKAGE).rglob("*.py") if path.parent != CHECKOUT / PACKAGE]
    assert not folders, f"modules lie in folders: {folders}"


@pytest.mark.parametrize("module", sorted(KNOWN & LAYER.keys()))
def test_lower_layers_never_import_higher_ones(module: str) -> None:
    problems = upward_imports(module, neighbours(TREES[module], KNOWN))
    assert not problems, _lines(problems)


def test_imports_form_no_circle() -> None:
    graph = {module: neighbours(tree, KNOWN).keys() - {module} for module, tree in TREES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these modules import each other: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("foreign", OWNERS)
def test_a_module_of_others_is_imported_only_by_its_owners(foreign: str) -> None:
    problems = [
        f"{_at(module, item.line)} imports {item.module}; only {', '.join(OWNERS[foreign]) or 'no module'} may"
        for module, tree in TREES.items()
        if module not in OWNERS[foreign]
        for item in find_imports(tree)
        if is_within(item.module, foreign)
    ]
    assert not problems, _lines(problems)


@pytest.mark.parametrize("foreign", LAZY)
def test_slow_modules_are_imported_inside_functions(foreign: str) -> None:
    problems = [
        f"{_at(module, item.line)} imports {item.module} at the top: a run that has nothing to do would load it"
        for module, tree in TREES.items()
        for item in find_imports(tree)
        if is_within(item.module, foreign) and not item.lazy
    ]
    assert not problems, _lines(problems)


@pytest.mark.parametrize("module", sorted(KNOWN))
def test_only_the_command_line_speaks_and_exits(module: str) -> None:
    source = (CHECKOUT / PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    problems = [f"{_at(module, use.line)}: {use.what}" for use in find_speech(source, SPEAKERS.get(module, ()))]
    assert not problems, _lines(problems)


@pytest.mark.parametrize("module", sorted(KNOWN.difference(WRITERS)))
def test_only_transaction_writes_to_the_file_system(module: str) -> None:
    problems = [f"{_at(module, finding.line)}: {finding.what}" for finding in find_writes(TREES[module])]
    assert not problems, _lines(problems)


@pytest.mark.parametrize("module", sorted(KNOWN.intersection(WRITERS) - {"disk"}))
def test_the_parts_of_transaction_write_through_disk_alone(module: str) -> None:
    through_disk = {
        node.lineno for node in ast.walk(TREES[module]) if isinstance(node, ast.Call) and _is_of_a_disk(node)
    }
    problems = [
        f"{_at(module, finding.line)}: {finding.what}"
        for finding in find_writes(TREES[module])
        if finding.line not in through_disk
    ]
    assert not problems, _lines(problems)


def _is_of_a_disk(call: ast.Call) -> bool:
    return bool(re.fullmatch(r"(.*[._])?disk\.\w+", ast.unparse(call.func), re.IGNORECASE))


@pytest.mark.parametrize("part", PARTS)
def test_the_parts_of_transaction_are_imported_only_by_it(part: str) -> None:
    problems = [
        f"{_at(module, imported[part])} imports {part}; only transaction and its parts may"
        for module, imported in ((module, neighbours(tree, KNOWN)) for module, tree in TREES.items())
        if part in imported and (module not in WRITERS or (module == "outputs" and part != "disk"))
    ]
    assert not problems, _lines(problems)


# ---- the rules catch what they are for ------------------------------------------------------------------------

WRITES = (
    "import os\nos.replace(a, b)",
    "import os\nos.rename(a, b)",
    "import os as o\no.unlink(a)",
    "import os.path\nos.remove(a)",
    "from os import mkdir\nmkdir(a)",
    "from os import makedirs as make\nmake(a)",
    "import os\nos.rmdir(a)",
    "import os\nos.link(a, b)",
    "import os\nos.symlink(a, b)",
    "import os\nos.chmod(a, 0o644)",
    "import os\nos.chown(a, 0, 0)",
    "import os\nos.utime(a)",
    "import os\nos.truncate(a, 0)",
    "import os\nos.write(fd, b'')",
    "import os\nundo = os.unlink",
    "import os\nlist(map(os.remove, paths))",
    "import os\ngetattr(os, 'unlink')(a)",
    "import os\nos.system('rm a')",
    "import os\nos.execv(a, b)",
    "from os import *",
    "def inner():\n    import os\n    os.unlink(a)",
    "open(a, 'w')",
    "open(a, 'ab')",
    "open(a, 'r+')",
    "open(a, mode='x')",
    "open(a, mode)",
    "import io\nio.open(a, 'wb')",
    "import os\nos.fdopen(fd, 'wb')",
    "import os\nos.open(a, os.O_WRONLY)",
    "import os\nos.open(a, os.O_RDWR | os.O_CLOEXEC)",
    "import os\nos.open(a, os.O_RDONLY | os.O_CREAT, 0o600)",
    "import os\nos.open(a, flags)",
    "import os\nos.open(a, flags=os.O_RDONLY | os.O_TRUNC)",
    "path.open('w')",
    "path.open(mode='ab')",
    "path.write_text('')",
    "path.write_bytes(b'')",
    "Path(a).touch()",
    "path.mkdir(parents=True)",
    "path.unlink(missing_ok=True)",
    "path.rename(other)",
    "path.replace(other)",
    "(a / b).replace(a / c)",
    "path.symlink_to(other)",
    "path.hardlink_to(other)",
    "path.chmod(0o600)",
    "path.rmdir()",
    "import shutil\nshutil.rmtree(a)",
    "from shutil import copy2\ncopy2(a, b)",
    "import tempfile\ntempfile.mkstemp()",
    "from tempfile import TemporaryDirectory\nTemporaryDirectory()",
    "import zipfile\nzipfile.ZipFile(a, 'w')",
    "from zipfile import ZipFile\nZipFile(a, mode=mode)",
    "archive.extractall(a)",
)
READS = (
    "open(a)",
    "open(a, 'rb')",
    "open(a, mode='r', encoding='utf-8')",
    "path.open()",
    "path.open('rb')",
    "path.read_bytes()",
    "archive.open('wheel/data.txt')",
    "archive.open(member)",
    "import zipfile\nzipfile.ZipFile(a)",
    "import os\nos.open(a, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)",
    "import os\nos.stat(a), os.scandir(a), os.readlink(a), os.fsync(fd), os.path.join(a, b)",
    "text.replace('a', 'b')",
    "b''.replace(b'a', b'b', 1)",
    "from dataclasses import replace\nreplace(value, mode=0o644)",
    "import dataclasses\ndataclasses.replace(value)",
    "moment.replace(tzinfo=None)",
    "from shutil import which\nwhich('python')",
    "from patchkit.fold import rename\nrename(a)",
    "getattr(value, 'name')",
    "plan.renames",
)


@pytest.mark.parametrize("source", WRITES)
def test_the_scan_finds_a_write(source: str) -> None:
    assert list(find_writes(parse(source)))


@pytest.mark.parametrize("source", READS)
def test_the_scan_lets_reading_pass(source: str) -> None:
    assert not list(find_writes(parse(source)))


def test_the_scan_finds_the_writes_of_the_module_that_writes() -> None:
    found = {finding.what for finding in find_writes(TREES["disk"])}
    assert {"os.replace", "os.unlink", "os.mkdir"} <= found


def test_the_scan_tells_the_line() -> None:
    assert list(find_writes(parse("import os\n\n\ndef f():\n    os.unlink(a)\n"))) == [Finding(5, "os.unlink")]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import patchkit.cli", 1),
        ("from patchkit import cli", 1),
        ("from patchkit.cli import main", 1),
        ("from . import cli", 1),
        ("from .cli import main", 1),
        ("def f():\n    from patchkit.cli import main", 2),
        ("if TYPE_CHECKING:\n    import patchkit.cli as c", 2),
        ("class C:\n    def f(self):\n        return [__import__ for _ in ()]\n    import patchkit.cli", 4),
    ],
)
def test_an_import_of_a_higher_layer_is_found(source: str, line: int) -> None:
    [problem] = upward_imports("model", neighbours(parse(source), KNOWN | {"cli"}))
    assert problem == f"{_at('model', line)} is of the layer words and imports cli of the higher layer people"


def test_imports_from_below_and_beside_are_let_pass() -> None:
    source = "import cli\nfrom patchkit.errors import Bug\nfrom patchkit.wanted import Wanted"
    assert not upward_imports("choices", neighbours(parse(source), KNOWN | {"cli"}))


@pytest.mark.parametrize(
    ("source", "lazy"),
    [
        ("import unidiff", False),
        ("def f():\n    import unidiff", True),
        ("class C:\n    from unidiff import PatchSet", False),
    ],
)
def test_an_import_at_the_top_is_told_from_one_inside_a_function(source: str, lazy: bool) -> None:
    assert {item.lazy for item in find_imports(parse(source)) if is_within(item.module, "unidiff")} == {lazy}


@pytest.mark.parametrize(
    "source",
    [
        "print('a')",
        "import sys\nsys.exit(1)",
        "from sys import exit as leave\nleave()",
        "import sys\nsys.stdout.write('a')",
        "import click\nclick.echo('a')",
        "from click import secho\nsecho('a')",
        "raise SystemExit(1)\nquit()",
    ],
)
def test_speech_is_found(source: str) -> None:
    assert find_speech(source, ())


def test_speech_is_let_pass_where_it_belongs() -> None:
    assert not find_speech("import sys, click\nclick.echo('a')\nsys.exit(0)", SPEAKS)


def _dynamic(source: str) -> list[Finding]:
    names = ("importlib.import_module", "__import__", "exec", "eval")
    return [use for use in find_uses(parse(source)) if use.what in names]


@pytest.mark.parametrize("module", sorted(KNOWN))
def test_no_import_hides_from_the_table(module: str) -> None:
    problems = _dynamic((CHECKOUT / PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    assert not problems, _lines(f"{_at(module, use.line)}: {use.what}" for use in problems)


@pytest.mark.parametrize("source", ["__import__('cli')", "from importlib import import_module as i\ni('patchkit.cli')"])
def test_a_hidden_import_is_found(source: str) -> None:
    assert _dynamic(source)
