"""The short way of runs that have nothing to do, held against the commands: it says the same, or declines.

Whatever is changed on a settled site, in its patch folder, its project or its variables: where the short way answers,
the command itself ends with 0 and prints the very same text.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchkit.cli import find_command
from patchkit.inputs import LARGEST_FILE, MOST_ENTRIES
from patchkit.shortcut import find_answer
from stages import MOD, SHIPPED, TOOL, Stage, edit, make_diff, make_stage, patch, sample_wheel
from worlds import CHECKOUT, Finished, Venv, run

MADE, GONE = "some_dist/new/made.py", "some_dist/gone.py"
RUNS = (("apply",), ("apply", "--exact"), ("verify", "--no-checks"), ("verify",), ("status", "--exit-code"))
Change = Callable[[Stage], None]


@pytest.fixture
def stage(
    tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Stage:
    """Two sets of three patches: they modify, create, delete and set a mode; two more distributions are looked for."""
    wheels = tmp_path / "wheels"
    own = sample_wheel(wheels, files={**SHIPPED, GONE: b"gone = 1\n"})
    other = sample_wheel(wheels, "3.0", {"other_dist/__init__.py": b""}, name="other-dist")
    stage = make_stage(tmp_path, make_site, capsys.readouterr, own, other)
    monkeypatch.chdir(stage.folder)
    (stage.folder / "pyproject.toml").write_text('[project]\nname = "own"\n[tool.patchkit]\npatches = ["patches"]\n')
    made = make_diff({GONE: b"gone = 1\n"}, {MADE: b"made = 1\n"})
    stage.add(
        "alpha",
        patch("low", edit(5, b"line_5 = 'five'\n"), constraints=["other-dist>=2", "missing-dist>=1"]),
        patch("made", made, shadowed_by=["shadow-dist"]),
        patch("spare", edit(9, b"line_9 = 'nine'\n"), default=False),
    )
    mode = make_diff({TOOL: SHIPPED[TOOL]}, {TOOL: SHIPPED[TOOL]}, {TOOL: 0o755})
    (stage.patches / "some-dist==1.2.3.patch").write_bytes(mode)
    stage.run("apply", "--no-checks").expect()
    return stage


def answer(stage: Stage, *args: str, patches: bool = True, terminal: bool = False) -> str | None:
    where = ["--site-packages", str(stage.site), *(["--patches", str(stage.patches)] if patches else [])]
    return find_answer([*args, *where], os.environ, terminal=terminal)


def compare(stage: Stage, *args: str, patches: bool = True) -> bool:
    """Whether the short way answers; then the command must say the same."""
    short = answer(stage, *args, patches=patches)
    if short is not None:
        full = stage.run(*args, patches=patches)
        assert (full.exit_code, full.out, full.err) == (0, short, ""), args
    return short is not None


# ---- it answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", RUNS, ids=" ".join)
@pytest.mark.parametrize("patches", [True, False], ids=["named", "by the project"])
def test_a_settled_site_is_answered_in_the_words_of_the_command(
    stage: Stage, args: tuple[str, ...], patches: bool
) -> None:
    before = stage.tree()
    assert compare(stage, *args, patches=patches)
    assert stage.tree() == before


@pytest.mark.parametrize("args", RUNS, ids=" ".join)
@pytest.mark.parametrize("color", ["always", "never", "auto"])
def test_colours_are_those_of_the_command(stage: Stage, args: tuple[str, ...], color: str) -> None:
    assert compare(stage, *args, "--color", color)


@pytest.mark.parametrize("args", RUNS, ids=" ".join)
def test_quiet_is_quiet(stage: Stage, args: tuple[str, ...]) -> None:
    assert answer(stage, *args, "-q") == "" == stage.run(*args, "-q").expect().out


def test_a_terminal_gets_the_same_from_both(stage: Stage) -> None:
    main = "import sys; sys.path.insert(0, {!r}); from patchkit.{}; sys.exit({})"
    both = (("__main__ import run", "run()"), ("cli import main", "main()"))
    said = [_on_terminal(stage, main.format(str(CHECKOUT), *words)) for words in both]
    assert said[0] == said[1] and b"\x1b[32malready applied\x1b[0m" in said[0]


def _on_terminal(stage: Stage, program: str) -> bytes:
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, "apply", "--site-packages", stage.site], stdout=inner, stderr=inner
    ) as process:
        os.close(inner)
        chunks: list[bytes] = []
        try:
            while chunk := os.read(outer, 4096):
                chunks.append(chunk)
        except OSError:
            pass  # that is how the end of a terminal reads on Linux
        assert process.wait() == 0
    os.close(outer)
    return b"".join(chunks)


def test_every_option_of_a_command_is_declined_or_makes_no_difference(stage: Stage) -> None:
    answered = set()
    for name in ("apply", "verify", "status"):
        for option in find_command(name).params:
            for word in option.opts if isinstance(option, click.Option) else ["alpha"]:
                values = [] if not isinstance(option, click.Option) or option.is_flag else ["never"]
                if compare(stage, name, "--no-checks" if name == "verify" else "-q", word, *values):
                    answered.add(word)
    assert {"--exact", "--quiet", "--color", "--no-checks", "--exit-code"} <= answered
    assert not {"--json", "--verbose", "-v", "--python", "--dry-run", "--diff", "alpha"} & answered


@pytest.mark.parametrize("name", ["list", "show", "check", "revert", "recover", "drift", "--help", "--version", ""])
def test_other_commands_are_never_answered(stage: Stage, name: str) -> None:
    assert answer(stage, name) is None


def test_variables_count_as_their_options_do(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = {str(option.envvar) for name in ("apply", "verify", "status") for option in find_command(name).params}
    variables = sorted(options - {"None"})
    assert len(variables) == 8
    for variable in variables:
        for value in ("", "1", "0", str(stage.site), str(stage.patches), f"{stage.patches}{os.pathsep}{tmp_path}"):
            monkeypatch.setenv(variable, value)
            short = find_answer(["apply", "--site-packages", str(stage.site)], os.environ, terminal=False)
            if short is not None:
                full = stage.run("apply", patches=False)
                assert (full.exit_code, full.out, full.err) == (0, short, "")
            monkeypatch.delenv(variable)
    monkeypatch.setenv("PATCHKIT_SITE_PACKAGES", str(stage.site))
    monkeypatch.setenv("PATCHKIT_PATCHES", str(stage.patches))
    assert find_answer(["apply"], os.environ, terminal=False) == answer(stage, "apply")


# ---- it declines ----------------------------------------------------------------------------------------------


def _spoil(path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """What may become of a file, and of a folder."""
    away = path.with_name(f"{path.name}.away")

    def link() -> None:
        path.rename(away)
        path.symlink_to(away.name)

    def replace(data: bytes) -> Callable[[], None]:
        return lambda: (path.unlink(), path.write_bytes(data))[0]

    yield "linked", link
    if path.is_dir():
        yield "gone", lambda: shutil.rmtree(path)
        yield "a file", lambda: (shutil.rmtree(path), path.write_bytes(b""))[0]
        yield "more in it", lambda: (path / "more.txt").write_bytes(b"more\n") and None
        yield "a patch in it", lambda: (path / "some-dist==1.2.4.patch").write_bytes(edit(7, b"x\n")) and None
        yield "a set in it", lambda: shutil.copytree(CHECKOUT / "patches/flashinfer-dynamo", path / "more") and None
        return
    data = path.read_bytes()
    yield "gone", path.unlink
    yield "longer", replace(data + b"\n")
    yield "shorter", replace(data[:-1])
    yield "other first byte", replace(bytes([data[0] ^ 1]) + data[1:] if data else b"\0")
    yield "other byte inside", replace(data[: len(data) // 2] + b"~" + data[len(data) // 2 + 1 :])
    yield "empty", replace(b"")
    yield "a folder", lambda: (path.unlink(), path.mkdir())[0]
    yield "other bits", lambda: path.chmod(path.stat().st_mode ^ 0o111)
    yield "private", lambda: path.chmod(0o600)


def _list_inputs(stage: Stage) -> list[Path]:
    inside = [path for root in (stage.site, stage.patches) for path in sorted(root.rglob("*"))]
    return [
        path for path in (stage.folder / "pyproject.toml", stage.patches, *inside) if "__pycache__" not in str(path)
    ]


def test_whatever_becomes_of_any_file_or_folder_the_short_way_is_right(stage: Stage, tmp_path: Path) -> None:
    model = tmp_path / "model"
    for part in ("site", "patches", "pyproject.toml"):
        _copy(stage.folder / part, model / part)
    declined = 0
    for path in _list_inputs(stage):
        for name, spoil in list(_spoil(path)):
            spoil()
            for args in RUNS:
                try:
                    declined += not compare(stage, *args)
                except AssertionError as error:
                    raise AssertionError(f"{path.relative_to(stage.folder)}: {name}: {error}") from None
            part = path.relative_to(stage.folder).parts[0]
            _restore(model / part, stage.folder / part)
    assert all(compare(stage, *args) for args in RUNS)
    assert declined > 500


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def _restore(source: Path, target: Path) -> None:
    for path in (target, target.with_name(f"{target.name}.away")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    _copy(source, target)


def _entry(name: str, metadata: bytes = b"") -> Change:
    def change(stage: Stage) -> None:
        (stage.site / name).mkdir()
        if metadata:
            (stage.site / name / "METADATA").write_bytes(metadata)

    return change


def _put(name: str, data: bytes) -> Change:
    return lambda stage: (stage.folder / name).write_bytes(data) and None


def _rename(old: str, new: str) -> Change:
    return lambda stage: (stage.site / old).rename(stage.site / new) and None


# What has to be declined, though no byte of what is there is another.
CHANGES: dict[str, Change] = {
    "a second copy": _entry("Some.Dist-2.0.dist-info"),
    "a second copy, spelt oddly": _entry("some___dist-2.0.dist-info"),
    "the distribution is another version": _rename("some_dist-1.2.3.dist-info", "some_dist-1.2.4.dist-info"),
    "a constraint that is broken": _rename("other_dist-3.0.dist-info", "other_dist-1.0.dist-info"),
    "a constraint that holds": _rename("other_dist-3.0.dist-info", "other_dist-3.1.dist-info"),
    "what a constraint asks for": _entry("missing_dist-0.5.dist-info"),
    "what shadows": _entry("Shadow_Dist-1.dist-info"),
    "an editable install": _put("site/some_dist-1.2.3.dist-info/direct_url.json", b'{"dir_info": {"editable": true}}'),
    "a journal": _put("site/.patchkit/journal.json", b"{}"),
    "a leftover": _put("site/.patchkit/ledger.json.tmp", b""),
    "the deleted file": _put("site/some_dist/gone.py", b""),
    "a declaration": _put("patches/patchkit.toml", b'select = ["alpha/spare"]\n'),
    "a declaration that says nothing": _put("patches/patchkit.toml", b"\n"),
    "one more variant": _put("patches/some-dist==1.2.4.patch", b""),
    "a broken project": _put("pyproject.toml", b"["),
}
# What makes no difference.
SAME: dict[str, Change] = {
    "another distribution": _entry("third_dist-1.0.dist-info"),
    "pip's leftover": _entry("~ome_dist-1.2.2.dist-info"),
    "an egg beside it is not looked for": _entry("third.egg-info"),
    "a page beside the patches": _put("patches/README.md", b"words\n"),
    "an unpatched file": _put("site/some_dist/data.txt", b"edited\n"),
    "a new module": _put("site/some_dist/added.py", b""),
    "compiled files": _put("site/some_dist/mod.cpython-311.pyc", b""),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_decision_depends_on_is_declined(stage: Stage, what: str) -> None:
    CHANGES[what](stage)
    assert [args for args in RUNS if compare(stage, *args)] == []


@pytest.mark.parametrize("what", SAME)
def test_what_no_decision_depends_on_is_still_answered(stage: Stage, what: str) -> None:
    SAME[what](stage)
    assert all(compare(stage, *args) for args in RUNS)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_is_taken_for_another(stage: Stage, data: st.DataObject) -> None:
    watched = [stage.site / path for path in (MOD, TOOL, MADE, ".patchkit/ledger.json")]
    watched += [stage.patches / "alpha/patchset.toml", stage.patches / "alpha/low.patch", stage.record]
    path = data.draw(st.sampled_from(watched))
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda value: value != whole[place]))
    path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
    try:
        assert answer(stage, "apply") is None and answer(stage, "verify", "--no-checks") is None
    finally:
        path.write_bytes(whole)


def test_another_project_is_declined_and_another_name_of_the_folder_is_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = stage.folder / "elsewhere"
    stage.patches.rename(moved)
    assert find_answer(["apply", "--site-packages", str(stage.site)], os.environ, terminal=False) is None
    assert find_answer(["apply", "--site-packages", str(stage.site), "--patches", str(moved)], {}, terminal=False)
    below = stage.folder / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    monkeypatch.chdir(below)
    assert (
        find_answer(["apply", "--site-packages", str(stage.site), "--patches", str(moved)], {}, terminal=False) is None
    )


# ---- which ledgers are sealed ---------------------------------------------------------------------------------


def seal_of(stage: Stage) -> list[str]:
    return [str(line) for line in stage.ledger().get("settled", [])]


@pytest.mark.parametrize(
    ("keys", "sealed"),
    [
        ({}, True),
        ({"markers": "os_name == 'posix'"}, False),
        ({"shadowed_by": ["other-dist"]}, False),
        ({"check": [{"kind": "symbol", "module": "some_dist.mod", "symbol": "line_5"}]}, True),
    ],
)
def test_a_ledger_is_sealed_where_the_next_run_has_nothing_else_to_say(
    stage: Stage, keys: dict[str, object], sealed: bool
) -> None:
    stage.run("revert", "--all").expect()
    stage.add("alpha", patch("low", edit(5, b"line_5 = 'five'\n"), **keys))
    stage.run("apply", "--no-checks").expect()
    assert bool(seal_of(stage)) is sealed is compare(stage, "apply")
    assert compare(stage, "verify", "--no-checks") is sealed
    assert compare(stage, "verify") is (sealed and "check" not in keys)  # checks that are declared are run


def _make_deep(folder: Path) -> None:
    (folder / "/".join("d" * 80)).mkdir(parents=True)


def _make_many(folder: Path) -> None:
    for number in range(MOST_ENTRIES):
        (folder / f"{number}.txt").touch()


def _make_large(folder: Path) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)


@pytest.mark.parametrize("spread", [_make_deep, _make_many, _make_large])
def test_what_is_out_of_proportion_is_not_digested(stage: Stage, spread: Callable[[Path], None]) -> None:
    spread(stage.patches / "alpha")
    assert answer(stage, "apply") is None
    stage.run("revert", "alpha/low").expect()
    stage.run("apply", "--no-checks").expect()
    assert not seal_of(stage)


def test_every_line_of_a_seal_is_documented(stage: Stage) -> None:
    page = (CHECKOUT / "docs/reference/state.md").read_text("utf-8")
    table = page.partition("## The seal")[2].partition("## `journal.json`")[0]
    documented = {row.split("`")[1].split(" ")[0] for row in table.splitlines() if row.startswith("| `")}
    assert {line.split(" ")[0] for line in seal_of(stage)} == documented


def test_no_seal_where_the_next_apply_would_do_more(stage: Stage) -> None:
    stage.run("revert", "alpha/low").expect()
    assert not seal_of(stage) and answer(stage, "apply") is None
    stage.run("apply", "alpha/low").expect()
    assert seal_of(stage) and compare(stage, "apply") and compare(stage, "verify")
    stage.run("apply", "alpha/spare").expect()
    assert compare(stage, "apply") and compare(stage, "verify", "--no-checks")
    assert not compare(stage, "status") and not compare(stage, "apply", "--exact")  # it is not declared


def test_a_ledger_without_a_seal_takes_the_long_way_and_is_left_as_it_is(stage: Stage) -> None:
    document = stage.ledger()
    del document["settled"]
    stage.ledger_file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    before = stage.tree()
    for args in RUNS:
        assert answer(stage, *args) is None
        stage.run(*args).expect()
    assert stage.tree() == before


def test_another_interpreter_compiles_for_itself(stage: Stage) -> None:
    [line] = [line for line in seal_of(stage) if line.startswith("answers verify-bytes")]
    data = stage.ledger_file.read_bytes()
    assert line.encode() in data
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.implementation.name = 'other'; from patchkit.shortcut import "
        "find_answer; print([find_answer([*words.split(), *sys.argv[2:]], {}, terminal=False) is not None "
        "for words in ('apply', 'verify --no-checks', 'verify')])"
    )
    where = ("--site-packages", stage.site, "--patches", stage.patches)
    assert run(sys.executable, "-c", program, CHECKOUT, *where, cwd=stage.folder).out == "[True, False, False]\n"


# ---- the environment that patchkit runs in --------------------------------------------------------------------


def test_the_own_environment_is_answered_too(
    stage: Stage, make_venv: Callable[..., Venv], pip_install: Callable[..., Finished], tmp_path: Path
) -> None:
    venv = make_venv(tmp_path / "venv", with_pip=False)
    site = venv.site_packages
    shutil.rmtree(stage.site / ".patchkit")
    shutil.copytree(
        stage.install_site(tmp_path / "fresh", *sorted((tmp_path / "wheels").glob("*.whl"))), site, dirs_exist_ok=True
    )
    others = Path(click.__file__).parents[1]
    (site / "own.pth").write_text(f"{CHECKOUT}\n{others}\n")
    stage.add("alpha", patch("low", edit(5, b"line_5 = 'five'\n"), constraints=["other-dist>=2"]))
    full = [venv.python, "-c", "import sys; from patchkit.cli import main; sys.exit(main())"]
    run(*full, "apply", cwd=stage.folder).expect()
    for args in RUNS:
        short = run(venv.python, "-X", "importtime", "-m", "patchkit", *args, cwd=stage.folder).expect()
        assert "click" not in short.err, args
        said = run(*full, *args, cwd=stage.folder).expect()
        assert short.out == said.out and f"environment {site} (Python 3." in said.out


# ---- what a run with nothing to do costs, counted -------------------------------------------------------------

_COUNT = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from patchkit.shortcut import find_answer
ready = len(opened)
assert find_answer(sys.argv[2:], {}, terminal=False)
print(sorted(set(sys.modules) - before))
print([path for path in opened[ready:] if not path.endswith(".pyc")])
"""


@pytest.mark.parametrize("args", RUNS, ids=" ".join)
def test_a_run_with_nothing_to_do_loads_five_modules_and_reads_each_file_once(
    stage: Stage, args: tuple[str, ...]
) -> None:
    where = ("--site-packages", stage.site, "--patches", stage.patches)
    said = run(sys.executable, "-c", _COUNT, CHECKOUT, *args, *where, cwd=stage.folder).expect().out.splitlines()
    modules, opened = (json.loads(line.replace("'", '"')) for line in said)
    own = {name for name in modules if name.startswith("patchkit")}
    assert own == {"patchkit", *(f"patchkit.{name}" for name in ("columns", "inputs", "settled", "shortcut"))}
    assert not {"click", "re", "json", "dataclasses", "packaging", "unidiff", "tomllib", "typing"} & set(modules)
    info = stage.site / "some_dist-1.2.3.dist-info"
    once = [
        *(stage.site / path for path in (MOD, MADE, TOOL)),
        info / "RECORD",
        info / "METADATA",
        info / "direct_url.json",
    ]
    once += [path for path in stage.patches.rglob("*") if path.is_file()] + [stage.folder / "pyproject.toml"]
    twice = [stage.ledger_file] * 2
    assert sorted(opened) == sorted(map(str, [*once, *twice]))


def test_the_full_no_op_loads_neither_the_writer_nor_a_parser_of_diffs(stage: Stage) -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); from patchkit.cli import main"
    program += "; main(sys.argv[2:]); print(sorted(sys.modules))"
    where = ("--site-packages", stage.site, "--patches", stage.patches)
    loaded = run(sys.executable, "-c", program, CHECKOUT, "apply", "-q", *where, cwd=stage.folder).expect().out
    for name in ("unidiff", "patchkit.diff", "patchkit.transaction", "importlib.metadata"):
        assert f"'{name}'" not in loaded, name
