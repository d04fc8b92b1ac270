"""The documentation is held to what the program does: commands are run, tables are compared, links are followed."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

import worlds
from patchkit import cli, errors
from patchkit.errors import PatchkitError
from patchkit.installed import Stamp
from patchkit.journal import Journal, Step, write_journal
from patchkit.manifest import read_manifest, read_patchkit_toml, read_pyproject
from worlds import CHECKOUT, RunPatchkit

RECORD_SEPARATOR = "\x1e"


# ---- reading Markdown -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the last line of prose above it."""

    language: str
    text: str
    above: str

    @property
    def file(self) -> str | None:
        """The file that it is the content of: prose that ends in "`path`:" says so."""
        found = re.search(r"`([^`]+)`:$", self.above)
        return found[1] if found else None

    @property
    def appends(self) -> bool:
        """Whether its text goes behind what the file has: the prose says "Append to"."""
        return self.above.startswith("Append to")


@dataclass
class Shown:
    """A command as it is shown, with what is shown below it."""

    command: str
    output: list[str] = field(default_factory=list)


def read_blocks(page: str) -> Iterator[Block]:
    above, language, lines = "", None, []
    for line in page.splitlines():
        if line.startswith("```"):
            if language is None:
                language, lines = line[3:].strip(), []
            else:
                yield Block(language, "".join(f"{each}\n" for each in lines), above)
                language = None
        elif language is not None:
            lines.append(line)
        elif line.strip():
            above = line


def read_steps(block: Block) -> list[Shown]:
    steps: list[Shown] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            steps.append(Shown(line[2:]))
        else:
            steps[-1].output.append(line)
    return steps


def read_rows(text: str) -> list[list[str]]:
    """The rows of all tables, without their heads; backticks and escapes taken off."""
    lines = [*text.splitlines(), ""]
    rows = [line for line, below in pairwise(lines) if line.startswith("| ") and not below.startswith("| ---")]
    wanted = [line for line in rows if not line.startswith("| ---")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in wanted]


def read_first_words(text: str) -> list[str]:
    """What stands in backticks first in each row."""
    return [found[1] for cells in read_rows(text) if (found := re.match(r"`([^`]+)`", cells[0]))]


def read_sections(text: str, *, level: int = 2) -> dict[str, str]:
    """The sections of a page by their heading."""
    found: dict[str, str] = {}
    heading, lines = "", []
    for line in text.splitlines():
        if line.startswith("#" * level + " "):
            found[heading] = "\n".join(lines)
            heading, lines = line[level + 1 :], []
        else:
            lines.append(line)
    return found | {heading: "\n".join(lines)}


def page(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


# ---- a shell --------------------------------------------------------------------------------------------------


class Shell:
    """One bash, told a command at a time, in a folder of its own."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=worlds.clean_environment(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[list[str], int]:
        """What a command prints on both of its streams, line by line, and its exit code."""
        assert self.process.stdin is not None and self.process.stdout is not None
        ending = "code=$?; printf '\\036%s\\n' $code; (exit $code)"
        self.process.stdin.write(f"{{ {command}\n}} </dev/null; {ending}\n")
        self.process.stdin.flush()
        said = ""
        while RECORD_SEPARATOR not in said:
            line = self.process.stdout.readline()
            assert line, f"the shell ended in: {command}\n{said}"
            said += line
        text, _, code = said.partition(RECORD_SEPARATOR)
        return text.splitlines(), int(code)

    def close(self) -> None:
        self.process.communicate(timeout=30)


def patchkit_on_path(folder: Path) -> str:
    """A folder with the command ``patchkit`` of this checkout, as the first of a PATH."""
    folder.mkdir()
    script = folder / "patchkit"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(worlds.patchkit_command())} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


def neutral(lines: Iterable[str], folder: Path, shown_as: str) -> list[str]:
    """Output without what differs from one machine to the next: where it ran, by which Python, with how many files."""
    text = "\n".join(lines).replace(str(folder), shown_as)
    text = re.sub(r"\(Python 3\.\d+\.\d+\)", "(Python 3.11.7)", text)
    text = re.sub(r"^\d+ paths compared", "3090 paths compared", text, flags=re.MULTILINE)
    return re.sub(r"/python3\.\d+/", "/python3.11/", text).splitlines()


# ---- the tutorial and the README ------------------------------------------------------------------------------


TUTORIALS = ("docs/tutorial.md", "docs/my-first-patch.md")


def run_tutorial(name: str, folder: Path, path: str, wheels: Path) -> Iterator[tuple[Shown, list[str], int]]:
    """Do what the tutorial says, in its order: each command with what it printed and its exit code."""
    variables = {"PATH": path, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    shell = Shell(folder, variables)
    try:
        for block in read_blocks(page(name)):
            if block.language == "console":
                for step in read_steps(block):
                    said, code = shell.run(step.command)
                    yield step, neutral(said, folder, "/src/first"), code
            else:
                assert block.file is not None, f"what is this block? {block.text}"
                target = folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("a" if block.appends else "w", encoding="utf-8") as opened:
                    opened.write(block.text)
    finally:
        shell.close()


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_shows_what_really_happens(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("0.5.0", "0.5.1"):
        shutil.copy(worlds.find_wheel("inflection", version), wheels)
    wrong: list[str] = []
    asked: str | None = None  # a command that failed: the next line must ask for its exit code
    for step, said, code in run_tutorial(name, folder, patchkit_on_path(tmp_path / "bin"), wheels):
        if said != step.output:
            wrong += [f"$ {step.command}", *(f"  shown  | {line}" for line in step.output)]
            wrong += [f"  really | {line}" for line in said]
        if asked is not None and step.command != "echo $?":
            wrong.append(f"$ {asked}: ended with another exit code than 0, and the tutorial does not say so")
        asked = step.command if code else None
    assert not wrong, "\n".join([f"{name} is not what happens:", *wrong])
    assert asked is None


def test_the_output_in_the_readme_is_that_of_the_demo(tmp_path: Path) -> None:
    checkout = tmp_path / "patchkit"
    for name in ("patchkit", "patches", "tests"):
        shutil.copytree(CHECKOUT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    wheel = worlds.find_wheel("flashinfer-python", "0.6.3")
    variables = {
        "PATH": patchkit_on_path(tmp_path / "bin"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PYTHONUNBUFFERED": "1",
    }
    ended = worlds.run(
        sys.executable, "-B", checkout / "tests" / "demo.py", cwd=checkout, env=worlds.clean_environment(variables)
    )
    ended.expect(0)
    [shown] = [block.text for block in read_blocks(page("README.md")) if block.language == "text"]
    assert neutral(ended.out.splitlines(), checkout, "/src/patchkit") == shown.splitlines()


def test_the_readme_is_short() -> None:
    assert len(page("README.md").splitlines()) < 200


def test_the_readme_names_the_extras_that_commands_need() -> None:
    table = (CHECKOUT / "pyproject.toml").read_text("utf-8").partition("[project.optional-dependencies]")[2]
    extras = set(re.findall(r"^(\w+) = \[$", table.partition("\n[")[0], re.MULTILINE)) - {"dev"}
    assert extras == {"authoring", "sbom"} == set(re.findall(r"'\.\[(\w+)\]'", page("README.md")))


def test_the_patch_set_in_the_readme_is_one() -> None:
    [shown] = [block.text for block in read_blocks(page("README.md")) if block.language == "toml"]
    assert read_manifest(shown.encode(), folder="patches/words", file="a").patches


# ---- exit codes -----------------------------------------------------------------------------------------------


def _all_errors(root: type[PatchkitError] = PatchkitError) -> Iterator[type[PatchkitError]]:
    for kind in root.__subclasses__():
        yield kind
        yield from _all_errors(kind)


def test_every_error_code_is_in_the_table_with_its_exit_code() -> None:
    table = {cells[0].strip("`"): int(cells[1]) for cells in read_rows(read_sections(EXIT_CODES)["Error codes"])}
    own = (kind for kind in _all_errors() if kind.__module__ == errors.__name__ and kind is not errors.Several)
    assert table == {kind.code: int(kind.exit_code) for kind in own}


def test_what_is_called_a_family_is_never_raised_itself() -> None:
    families = {cells[0].strip("`") for cells in read_rows(EXIT_CODES) if cells[2:] and cells[2].startswith("*family*")}
    assert families == {kind.code for kind in _all_errors() if (kind.__doc__ or "").startswith("Family")}


def test_every_exit_code_is_in_the_table() -> None:
    first = EXIT_CODES.partition("## In a script")[0]
    assert [int(cells[0]) for cells in read_rows(first)] == [int(code) for code in errors.ExitCode]


EXIT_CODES = page("docs/reference/exit-codes.md")


# ---- commands -------------------------------------------------------------------------------------------------

COMMANDS = read_sections(page("docs/reference/commands.md"))


def _options(command: click.Command) -> dict[str, str | None]:
    """The options of a command in their longest spelling, with their variables."""
    return {
        max(each.opts, key=len): each.envvar if isinstance(each.envvar, str) else None
        for each in command.params
        if isinstance(each, click.Option)
    }


def _documented(section: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for cells in read_rows(section):
        if (option := re.match(r"`(--[a-z-]+)", cells[0])) is not None:
            variable = re.fullmatch(r"`(PATCHKIT_\w+)`", cells[1])
            found[option[1]] = variable[1] if variable else None
    return found


def test_every_command_has_a_section_and_no_other_has_one() -> None:
    sections = [heading.strip("`") for heading in COMMANDS if heading.startswith("`")]
    assert sorted(sections) == sorted(cli.NAMES)


@pytest.mark.parametrize("name", sorted(cli.NAMES))
def test_every_option_of_a_command_is_documented_with_its_variable(name: str) -> None:
    shared = _documented(COMMANDS["Options of every command"])
    assert _options(cli.find_command(name)) == shared | _documented(COMMANDS[f"`{name}`"])


def test_the_states_are_those_of_the_program() -> None:
    from patchkit.model import PatchState

    states = [word for word in read_first_words(COMMANDS["`status`"]) if not word.startswith("--")]
    assert states == [state.value for state in PatchState]


# ---- the manifest ---------------------------------------------------------------------------------------------

MANIFEST = page("docs/reference/manifest.md")
MANIFEST_SECTIONS = read_sections(MANIFEST)

# A manifest that asks each table for a key that it does not have: the message says which it has.
ASKING = """
schema = 1
name = "a"
distribution = "a"
zzz = 1
[[patch]]
name = "a"
zzz = 1
[[patch.variant]]
versions = "==1"
file = "a"
zzz = 1
[[patch.not-needed]]
versions = "==2"
why = "a"
zzz = 1
[[patch.check]]
kind = "symbol"
module = "a"
symbol = "a"
zzz = 1
[[patch.check]]
kind = "python"
file = "a"
zzz = 1
"""
TABLES = {
    "Top level": "zzz",
    "`[[patch]]`": "patch[0].zzz",
    "`[[patch.variant]]`": "patch[0].variant[0].zzz",
    "`[[patch.not-needed]]`": "patch[0].not-needed[0].zzz",
    '`[[patch.check]]`, `kind = "symbol"`': "patch[0].check[0].zzz",
    '`[[patch.check]]`, `kind = "python"`': "patch[0].check[1].zzz",
}


def _messages(read: Callable[[], object]) -> list[str]:
    with pytest.raises(PatchkitError) as raised:
        read()
    return [single.message for single in raised.value.all()]


def _known_keys(messages: Iterable[str], place: str) -> list[str]:
    [words] = [message for message in messages if f": {place}: unknown key" in message]
    return words.partition("known are ")[2].split(", ")


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_of_the_manifest_is_in_its_table(heading: str) -> None:
    messages = _messages(lambda: read_manifest(ASKING.encode(), folder="a", file="a"))
    assert sorted(read_first_words(MANIFEST_SECTIONS[heading])) == _known_keys(messages, TABLES[heading])


def test_every_key_of_a_project_is_in_its_table() -> None:
    pyproject = _messages(lambda: read_pyproject(b"[tool.patchkit]\nzzz = 1", file="a"))
    in_folder = _messages(lambda: read_patchkit_toml(b"zzz = 1", file="a"))
    table = read_first_words(MANIFEST_SECTIONS["What a project declares"])
    assert sorted(table) == _known_keys(pyproject, "tool.patchkit.zzz")
    assert sorted(set(table) - {"patches"}) == _known_keys(in_folder, "zzz")


def test_the_example_of_a_manifest_has_every_key() -> None:
    example = next(read_blocks(MANIFEST)).text
    assert read_manifest(example.encode(), folder="patches/flashinfer-dynamo", file="a").patches
    keys = {found[1] for found in re.finditer(r"^(?:\[\[(?:patch\.)?)?([a-z-]+)(?:\]\]| = )", example, re.MULTILINE)}
    assert keys == {key for heading in TABLES for key in read_first_words(MANIFEST_SECTIONS[heading])}


def test_the_messages_of_the_manifest_are_those_of_the_program() -> None:
    blocks = list(read_blocks(MANIFEST_SECTIONS["Messages"]))
    assert len(blocks) == 4
    for manifest, shown in zip(blocks[::2], blocks[1::2], strict=True):
        data, folder = manifest.text.encode(), "patches/example"
        file = f"{folder}/patchset.toml"
        said = _messages(lambda: read_manifest(data, folder=folder, file=file))  # noqa: B023
        assert said == shown.text.splitlines()


# ---- JSON and the state ---------------------------------------------------------------------------------------


def key_paths(value: Any, path: str = "") -> set[str]:
    """Where the leaves of a document are, as in ``patches[].files[].path``; nulls and empty lists count as leaves."""
    match value:
        case dict() if value:
            return {found for key, each in value.items() for found in key_paths(each, f"{path}.{key}".lstrip("."))}
        case list() if value:
            return {found for each in value for found in key_paths(each, f"{path}[]")}
        case list():
            return {f"{path}[]"}
        case _:
            return {path}


def _without_parents(paths: Iterable[str]) -> set[str]:
    """Without those that are null or empty here and have keys elsewhere."""
    every = set(paths)
    return {path for path in every if not any(other.startswith((f"{path}.", f"{path}[")) for other in every)}


FILES = {
    "demo/__init__.py": "",
    "demo/a.py": "".join(f"line_{n} = {n}\n" for n in range(30)),
    "demo/b.py": "b = 1\n",
}
MANIFEST_OF_DEMO = """
schema = 1
name = "demo"
distribution = "demo"
summary = "..."
markers = "python_version >= '3'"
constraints = ["demo>=1"]

[[patch]]
name = "good"
shadowed-by = ["demo"]
group = "g"
[[patch.variant]]
versions = "==1"
file = "good.patch"
include = ["demo/**"]
exclude = ["tests/**"]
[[patch.not-needed]]
versions = "==2"
why = "..."
[[patch.check]]
kind = "symbol"
module = "demo.a"
symbol = "added"
has = ["1"]
lacks = ["2"]
[[patch.check]]
kind = "python"
file = "check.py"
needs = ["absent"]

[[patch]]
name = "bad"
default = false
after = ["good"]
[[patch.variant]]
versions = "==1"
file = "bad.patch"

[[patch]]
name = "worse"
default = false
[[patch.variant]]
versions = "==3"
file = "bad.patch"
"""
GOOD = """--- a/demo/a.py
+++ b/demo/a.py
@@ -3,3 +3,4 @@
 line_2 = 2
 line_3 = 3
+added = 1
 line_4 = 4
--- /dev/null
+++ b/demo/new/c.py
@@ -0,0 +1 @@
+c = 1
"""
BAD = """--- a/demo/a.py
+++ b/demo/a.py
@@ -10,3 +10,4 @@
 line_9 = 9
 line_10 = 11
+added = 2
 line_11 = 11
"""


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A site root with a small distribution, and beside it a folder ``patches`` with one set."""
    wheel = worlds.make_wheel(tmp_path / "wheels", "demo", "1", FILES)
    root = worlds.unpack_site(tmp_path / "site", wheel)
    folder = tmp_path / "patches" / "demo"
    folder.mkdir(parents=True)
    texts = {"patchset.toml": MANIFEST_OF_DEMO, "good.patch": GOOD, "bad.patch": BAD, "check.py": ""}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def told(demo: Path, patchkit: RunPatchkit) -> Callable[..., Any]:
    """The JSON document of a command on the site root of `demo`."""
    return lambda *words: patchkit(*words, "--json", env={"PATCHKIT_SITE_PACKAGES": str(demo)}).json()


JSON = read_sections(page("docs/reference/json.md"))


def test_every_key_of_a_report_is_documented_and_every_documented_key_is_real(told: Callable[..., Any]) -> None:
    documents = [
        told("check"),
        told("check", "demo/bad"),
        told("apply", "--dry-run", "--diff"),
        told("apply", "demo/bad", "demo/worse"),
        told("apply"),
        told("status"),
        told("verify"),
        told("recover"),
        told("revert", "--all"),
        told("apply", "--no-such-option"),
    ]
    [heading] = [heading for heading in JSON if heading.startswith("`check`")]
    assert _without_parents(path for each in documents for path in key_paths(each)) == set(
        read_first_words(JSON[heading])
    )


def test_every_key_of_drift_and_export_is_documented(told: Callable[..., Any], demo: Path) -> None:
    told("apply")
    golden = told("export")["export"]
    (demo / "demo" / "a.py").write_text("edited = 1\n", encoding="utf-8")
    [heading] = [heading for heading in JSON if heading.startswith("`drift`")]
    rows = {"drift": told("drift")["drift"]}
    assert _without_parents(key_paths(rows)) == set(read_first_words(JSON[heading]))
    keys = read_first_words(page("docs/reference/golden.md"))
    assert _without_parents(key_paths(golden)) == set(keys)


def test_every_key_of_list_and_show_is_documented(told: Callable[..., Any]) -> None:
    shared = {"schema", "command", "ok", "exit_code", "warnings[]"}
    listed, shown = told("list"), told("show", "demo/good")
    patch = read_first_words(JSON["`show`"])
    assert key_paths(shown) - shared == set(patch)
    for found in listed["sets"]:
        assert all(
            set(each) == set(shown) - shared - {"set", "distribution", "diffs", "warnings"} for each in found["patches"]
        )
        found["patches"] = [""]
    assert key_paths(listed) - shared == set(read_first_words(JSON["`list`"]))


def test_every_key_of_an_image_build_is_documented(told: Callable[..., Any], tmp_path: Path) -> None:
    report = set(read_first_words(JSON[next(heading for heading in JSON if heading.startswith("`check`"))]))
    built = key_paths(told("post-install", "--require", "demo"))
    assert {path for path in built if path not in report} == set(read_first_words(JSON["`post-install`"]))
    shared = {"schema", "command", "ok", "exit_code", "warnings[]"}
    assert key_paths(told("snippet", "containerfile")) - shared == set(read_first_words(JSON["`snippet`"]))


def test_every_warning_code_is_documented() -> None:
    calls = [
        node
        for path in (CHECKOUT / "patchkit").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Notice"
    ]
    codes = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert codes == set(read_first_words(JSON["Warning codes"]))


STATE = read_sections(page("docs/reference/state.md"))


def test_every_key_of_the_ledger_is_documented(told: Callable[..., Any], demo: Path) -> None:
    assert told("apply")["ok"]
    (demo / "demo" / "a.py").write_text("edited = 1\n", encoding="utf-8")
    assert told("apply", "--discard-edits")["ok"]
    document = json.loads((demo / ".patchkit" / "ledger.json").read_bytes())
    unsealed = _without_parents(key_paths(document))  # a patch with a marker; tests/test_settled.py has the seal
    assert unsealed | {"settled[]"} == set(read_first_words(STATE["`ledger.json`, format 1"]))


def test_the_state_folder_holds_what_is_said_of_it(told: Callable[..., Any], demo: Path) -> None:
    told("apply")
    names = {path.name for path in (demo / ".patchkit").iterdir()}
    listed = {word.partition("/")[0] for word in read_first_words(STATE[""])}
    assert names == listed - {"journal.json"}
    told("revert", "--all")
    assert not (demo / ".patchkit").exists()


def test_every_key_of_the_journal_is_documented() -> None:
    stamp = Stamp("0" * 64, 0o644)
    step = Step("a", stamp, stamp, None, (0, 0), "r")
    names = frozenset({"0" * 64})
    journal = Journal("0" * 16, (step,), None, None, ("a",), ("b",), names, names, {"r": "0" * 64})
    document = json.loads(write_journal(journal))
    assert key_paths(document) == set(read_first_words(STATE["`journal.json`, format 1"]))


# ---- the pages themselves -------------------------------------------------------------------------------------

PAGES = sorted(path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "docs").rglob("*.md"))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ["README.md", *PAGES])
def test_every_link_leads_somewhere(name: str) -> None:
    text = re.sub(r"^```.*?^```", "", page(name), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (CHECKOUT / name).parent / path if path else CHECKOUT / name
        assert place.exists(), f"{name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", place.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(_anchor, headings), f"{name}: {target}"


def test_every_page_can_be_found() -> None:
    linked = {
        ((CHECKOUT / name).parent / target.partition("#")[0]).resolve()
        for name in ("README.md", *PAGES)
        for target in re.findall(r"\]\(([^)]+)\)", page(name))
    }
    lost = [name for name in PAGES if (CHECKOUT / name).resolve() not in linked]
    assert not lost


def test_the_house_names_every_module_once() -> None:
    modules = {path.name for path in (CHECKOUT / "patchkit").glob("*.py")}
    named = re.findall(r"^\| `(\w+\.py)` \|", page("docs/house.md"), re.MULTILINE)
    assert sorted(named) == sorted(modules)


# ---- the example of the fold ----------------------------------------------------------------------------------


def _lines(*words: str) -> str:
    return "".join(f"{word}\n" for word in words)


def _change(old: int, new: str) -> str:
    lines = "".join(f"-{n}\n+{new}\n" if n == old else f" {n}\n" for n in range(1, 6))
    return f"--- a/demo/a.py\n+++ b/demo/a.py\n@@ -1,5 +1,5 @@\n{lines}"


def test_the_worked_example_of_the_fold_is_true(tmp_path: Path, patchkit: RunPatchkit) -> None:
    wheel = worlds.make_wheel(tmp_path / "wheels", "demo", "1", {"demo/a.py": _lines(*"12345")})
    root = worlds.unpack_site(tmp_path / "site", wheel)
    folder = tmp_path / "patches" / "set"
    folder.mkdir(parents=True)
    patches = "".join(
        f'[[patch]]\nname = "{name}"\n[[patch.variant]]\nversions = "==1"\nfile = "{name}.patch"\n'
        for name in ("low", "high")
    )
    (folder / "patchset.toml").write_text(
        f'schema = 1\nname = "set"\ndistribution = "demo"\n{patches}', encoding="utf-8"
    )
    (folder / "low.patch").write_text(_change(2, "two"), encoding="utf-8")
    (folder / "high.patch").write_text(_low_context(_change(4, "four")), encoding="utf-8")
    file = root / "demo" / "a.py"

    def do(*words: str, ends: int = 0) -> str:
        patchkit(*words, "--site-packages", root, "--no-checks" if words[0] == "apply" else "--quiet").expect(ends)
        return file.read_text(encoding="utf-8")

    assert do("apply") == _lines("1", "two", "3", "four", "5")
    assert do("revert", "set/low") == _lines("1", "2", "3", "four", "5")
    assert do("apply") == _lines("1", "two", "3", "four", "5")
    (folder / "low.patch").write_text(_change(2, "zwei"), encoding="utf-8")
    assert do("apply") == _lines("1", "zwei", "3", "four", "5")
    file.write_text(_lines(*"12345"), encoding="utf-8")  # as a reinstallation does
    status = patchkit("status", "--json", "--site-packages", root).json()
    assert [patch["state"] for patch in status["patches"]] == ["drifted", "drifted"]
    edited = do("apply") + "6\n"
    file.write_text(edited, encoding="utf-8")
    assert do("apply", ends=5) == edited
    assert do("revert", "--all", "--discard-edits") == _lines(*"12345")
    kept = [path.read_text(encoding="utf-8") for path in (root / ".patchkit" / "objects").iterdir()]
    assert edited in kept


def _low_context(diff: str) -> str:
    """The diff with one line of context above its change, so that it stands beside another change."""
    return diff.replace("@@ -1,5 +1,5 @@\n 1\n 2\n", "@@ -3,3 +3,3 @@\n")
