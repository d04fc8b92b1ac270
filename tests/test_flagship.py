"""The patch set for FlashInfer on releases of the index: both sides of every range's ends, by patchkit itself."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import worlds
from patchkit.cli import main
from worlds import CHECKOUT, tree

SET = "flashinfer-dynamo"
PATCHES = CHECKOUT / "patches"
STATE = ".patchkit"
NEWEST = "0.7.4"

CUDA, DISABLE, OPERATOR, LOG, KEYWORD = NAMES = (
    "cuda-version-from-torch",
    "fp4-quantize-compiler-disable",
    "fp4-quantize-custom-op",
    "api-log-not-in-graph",
    "upstream-op-keyword",
)
DEFAULTS = (CUDA, DISABLE)
NONE, NOT_NEEDED = "", "not needed"

# The diff that fits a release, by the version in its file's name, in the order of NAMES. A test below tries every diff
# on every one of these, without the manifest's ranges. Between two groups the code changed; they begin and end with
# the releases next to the change, release candidates among them.
FITTING = {
    "0.2.8": (NONE, NONE, NONE, NONE, NONE),
    #
    "0.2.9rc1": (NONE, "0.2.9", NONE, NONE, NONE),
    "0.2.14": (NONE, "0.2.9", NONE, NONE, NONE),
    #
    "0.2.14.post1": ("0.2.14.post1", "0.2.9", NONE, NONE, NONE),
    "0.4.0rc3": ("0.2.14.post1", "0.2.9", NONE, NONE, NONE),
    #
    "0.4.0rc4": ("0.4.0", "0.2.9", "0.4.0", NONE, NONE),
    "0.5.3": ("0.4.0", "0.2.9", "0.4.0", NONE, NONE),
    #
    "0.6.0rc1": ("0.4.0", "0.6.0", "0.4.0", "0.6.0", NONE),
    "0.6.3": ("0.4.0", "0.6.0", "0.4.0", "0.6.0", NONE),
    "0.6.6": ("0.4.0", "0.6.0", "0.4.0", "0.6.0", NONE),
    #
    "0.6.7": ("0.4.0", "0.6.7", "0.6.7", "0.6.0", NONE),
    "0.6.9": ("0.4.0", "0.6.7", "0.6.7", "0.6.0", NONE),
    #
    "0.6.10rc1": ("0.4.0", "0.6.10", "0.6.7", "0.6.0", NONE),
    "0.6.10.post1": ("0.4.0", "0.6.10", "0.6.7", "0.6.0", NONE),
    #
    "0.6.11rc1": ("0.4.0", "0.6.10", "0.6.11", "0.6.0", NONE),
    "0.6.11.post3": ("0.4.0", "0.6.10", "0.6.11", "0.6.0", NONE),
    #
    "0.6.12rc1": ("0.4.0", "0.6.10", "0.6.11", "0.6.0", "0.6.12"),
    "0.6.18.post1": ("0.4.0", "0.6.10", "0.6.11", "0.6.0", "0.6.12"),
    "0.7.0.post1": ("0.4.0", "0.6.10", "0.6.11", "0.6.0", "0.6.12"),
    #
    "0.7.1rc1": ("0.4.0", "0.6.10", "0.7.1", "0.6.0", NOT_NEEDED),
    NEWEST: ("0.4.0", "0.6.10", "0.7.1", "0.6.0", NOT_NEEDED),
}
BUILT = {"0.2.8", "0.2.9rc1", "0.2.14", "0.2.14.post1", "0.4.0rc3", "0.4.0rc4"}  # the index has no wheels of these
BY_PIP = {"0.2.14.post1", "0.5.3", "0.6.6", "0.6.9", "0.6.18.post1"}  # of the others only the Python code is unpacked

every_release = pytest.mark.parametrize("version", FITTING)


def variants(version: str) -> dict[str, str]:
    """The diff of each patch that fits ``version``."""
    fitting = zip(NAMES, FITTING[version], strict=True)
    return {name: f"{name}.{since}.patch" for name, since in fitting if since not in (NONE, NOT_NEEDED)}


# ---- releases -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``shipped(version)``: a site root with a release, made once."""
    made: dict[str, Path] = {}

    def find(version: str) -> Path:
        if version not in made:
            wheel = worlds.find_wheel("flashinfer-python", version, built=version in BUILT)
            site = tmp_path_factory.mktemp(version) / "site"
            made[version] = worlds.unpack_site(site, wheel) if version in BY_PIP else worlds.unpack_code(site, wheel)
        return made[version]

    return find


@pytest.fixture
def release(tmp_path: Path, shipped: Callable[[str], Path]) -> Iterator[Callable[[str], Path]]:
    """``release(version)``: a site root of the test's own, its files hard links to the shipped ones as uv makes them.

    The shipped files must be the same afterwards: nothing may have been written in place.
    """
    used: dict[Path, Any] = {}

    def copy(version: str) -> Path:
        model = shipped(version)
        used[model] = tree(model)
        return Path(shutil.copytree(model, tmp_path / version, copy_function=os.link))

    yield copy
    for model, before in used.items():
        assert tree(model) == before


# ---- commands -------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    exit_code: int
    document: Any
    err: str

    def expect(self, exit_code: int) -> Answer:
        assert self.exit_code == exit_code, f"exit {self.exit_code}, not {exit_code}\n{self.document}\n{self.err}"
        return self

    @property
    def states(self) -> dict[str, str]:
        return {row["patch"]: row["state"] for row in self.document["patches"]}

    @property
    def actions(self) -> dict[str, str]:
        return {row["patch"]: row["action"] for row in self.document["patches"]}

    def row(self, patch: str) -> Any:
        [row] = (row for row in self.document["patches"] if row["patch"] == patch)
        return row


Command = Callable[..., Answer]


@pytest.fixture
def on(capsys: pytest.CaptureFixture[str]) -> Callable[..., Command]:
    """``on(site, patches=...)(*args)``: patchkit, in this process, on a site root."""

    def bind(site: Path, patches: Path | None = PATCHES) -> Command:
        where = ["--site-packages", str(site), *(["--patches", str(patches)] if patches is not None else [])]

        def command(*args: str) -> Answer:
            capsys.readouterr()
            exit_code = main([*args, *where, "--json"])
            said = capsys.readouterr()
            return Answer(exit_code, json.loads(said.out), said.err)

        return command

    return bind


def results(row: Any, kind: str) -> list[str]:
    return [check["result"] for check in row["checks"] if check["kind"] == kind]


def differing(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return {path for path in paths if path.partition("/")[0] != STATE}


# ---- to and fro -----------------------------------------------------------------------------------------------


@every_release
def test_each_patch_with_a_variant_goes_on_and_comes_off_byte_for_byte(
    version: str, release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(version)
    run, pristine = on(site), tree(site)
    for name, variant in variants(version).items():
        checked = run("check", f"{SET}/{name}").expect(0)
        assert checked.states == {name: "pending"}
        assert (checked.row(name)["variant"], checked.row(name)["installed"]) == (variant, version)
    assert tree(site) == pristine

    for name, variant in variants(version).items():
        operand = f"{SET}/{name}"
        row = run("apply", operand).expect(0).row(name)
        assert (row["state"], row["action"], row["variant"]) == ("applied", "applied", variant)
        assert set(results(row, "symbol")) == {"passed"}
        assert results(row, "python") == ["skipped"]
        [changed] = differing(pristine, tree(site))
        assert [file["path"] for file in row["files"]] == [changed]
        assert run("verify", operand).expect(0).states == {name: "applied"}
        assert run("status").expect(0).states[name] == "applied"

        assert run("revert", operand).expect(0).actions == {name: "reverted"}
        assert tree(site) == pristine


@every_release
def test_all_patches_of_a_release_stand_together_and_leave_nothing_behind(
    version: str, release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(version)
    run, pristine = on(site), tree(site)
    names = [name for name in variants(version) if name != DISABLE] or [*variants(version)]
    if not names:
        assert run("apply").expect(4).document["error"]["code"] == "no-variant"
        assert tree(site) == pristine
        return
    run("apply", *(f"{SET}/{name}" for name in reversed(names))).expect(0)
    together = tree(site)
    assert run("verify").expect(0).states == dict.fromkeys(names, "applied")
    run("revert", "--all").expect(0)
    assert tree(site) == pristine
    for name in names:
        run("apply", f"{SET}/{name}").expect(0)
    assert differing(together, tree(site)) == set()
    for name in names:
        run("revert", f"{SET}/{name}").expect(0)
    assert tree(site) == pristine


@every_release
def test_the_defaults_go_on_where_both_have_a_variant_and_not_by_half(
    version: str, release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(version)
    run, pristine = on(site), tree(site)
    fitting = [name for name in DEFAULTS if name in variants(version)]
    expected = {name: "pending" if name in fitting else "no-variant" for name in DEFAULTS}
    assert run("check").states == expected
    if len(fitting) == len(DEFAULTS):
        run("apply").expect(0)
        assert run("status", "--exit-code").expect(0).states.items() >= dict.fromkeys(DEFAULTS, "applied").items()
        before = tree(site)
        assert set(run("apply").expect(0).actions.values()) == {"none"}
        assert tree(site) == before
    else:
        assert run("apply").expect(4).states == expected
        assert tree(site) == pristine
        run("apply", "--skip-unmatched").expect(0 if fitting else 4)
        assert run("verify").expect(0 if fitting else 1).states.items() >= dict.fromkeys(fitting, "applied").items()
    run("revert", "--all").expect(0)
    assert tree(site) == pristine


# ---- ranges ---------------------------------------------------------------------------------------------------


@every_release
def test_a_patch_without_a_variant_is_refused_in_words_and_nothing_is_written(
    version: str, release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(version)
    run, pristine = on(site), tree(site)
    for name, since in zip(NAMES, FITTING[version], strict=True):
        if since == NONE:
            operand = f"{SET}/{name}"
            assert run("check", operand).expect(1).states == {name: "no-variant"}
            answer = run("apply", operand).expect(4)
            assert (answer.states, answer.row(name)["variant"]) == ({name: "no-variant"}, None)
            error = answer.document["error"]
            assert error["code"] == "no-variant"
            assert f"{operand}: no range holds flashinfer-python {version}" in error["message"]
            assert "none of its diffs fits this version" in error["message"]
            assert "--skip-unmatched" in error["hint"]
        elif since == NOT_NEEDED:
            answer = run("apply", f"{SET}/{name}").expect(0)
            assert (answer.states, answer.actions) == ({name: "not-needed"}, {name: "none"})
            assert "since 0.7.1" in answer.row(name)["message"]
    assert tree(site) == pristine


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A patch folder in which each diff of the set is a patch of its own, said to fit every version."""
    folder = tmp_path_factory.mktemp("unbounded") / "patches" / "any"
    folder.mkdir(parents=True)
    manifest = 'schema = 1\nname = "any"\ndistribution = "flashinfer-python"\nsummary = "each diff, wherever it fits"\n'
    for diff in sorted((PATCHES / SET).glob("*.patch")):
        shutil.copy(diff, folder)
        name = diff.name.removesuffix(".patch").replace(".", "-")
        manifest += f'\n[[patch]]\nname = "{name}"\nsummary = "{name}"\n'
        manifest += f'[[patch.variant]]\nversions = ">=0.dev0"\nfile = "{diff.name}"\n'
    (folder / "patchset.toml").write_text(manifest)
    return folder.parent


@every_release
def test_without_ranges_each_diff_fits_the_releases_of_its_range_and_no_other(
    version: str, release: Callable[[str], Path], on: Callable[..., Command], unbounded: Path
) -> None:
    run = on(release(version), unbounded)
    fitting = set()
    for diff in (unbounded / "any").glob("*.patch"):
        name = diff.name.removesuffix(".patch").replace(".", "-")
        answer = run("check", f"any/{name}")
        if answer.exit_code == 0:
            assert answer.states == {name: "pending"}
            fitting.add(diff.name)
        else:
            assert answer.expect(1).states == {name: "conflict"}
    assert fitting == set(variants(version).values())


def test_a_release_newer_than_what_was_tried_is_refused_though_the_diffs_would_fit(
    release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(NEWEST)
    info = (site / f"flashinfer_python-{NEWEST}.dist-info").rename(site / "flashinfer_python-0.7.5.dist-info")
    metadata = (info / "METADATA").read_text()
    (info / "METADATA").unlink()  # a hard link to the shipped one
    (info / "METADATA").write_text(metadata.replace(f"\nVersion: {NEWEST}\n", "\nVersion: 0.7.5\n", 1))
    run, before = on(site), tree(site)
    answer = run("apply").expect(4)
    assert answer.states == dict.fromkeys(DEFAULTS, "no-variant")
    for name, variant in ((CUDA, f"{CUDA}.0.4.0.patch"), (DISABLE, f"{DISABLE}.0.6.10.patch")):
        words = answer.row(name)["message"]
        assert "no range holds flashinfer-python 0.7.5" in words
        assert f"{variant} would fit" in words and f'versions = "==0.7.5"\nfile = "{variant}"' in words
    assert tree(site) == before


# ---- symbol checks --------------------------------------------------------------------------------------------


@pytest.fixture
def hollow(tmp_path: Path) -> Callable[[Path], Path]:
    """``hollow(site)``: the set of this checkout, but each diff only adds a comment to the file that it is for."""

    def make(site: Path) -> Path:
        folder = Path(shutil.copytree(PATCHES, tmp_path / "hollow"))
        for diff in (folder / SET).glob("*.patch"):
            [path] = re.findall(r"^\+\+\+ b/(\S+)", diff.read_text(), re.MULTILINE)
            if (site / path).is_file():
                lines = (site / path).read_text().splitlines()
                shown = "".join(f" {line}\n" for line in lines[-3:])
                place = f"@@ -{len(lines) - 2},3 +{len(lines) - 2},4 @@"
                diff.write_text(f"--- a/{path}\n+++ b/{path}\n{place}\n{shown}+# a comment\n")
        return folder

    return make


@every_release
def test_symbol_checks_fail_where_the_patch_does_not_do_its_work(
    version: str, release: Callable[[str], Path], on: Callable[..., Command], hollow: Callable[[Path], Path]
) -> None:
    site = release(version)
    run, pristine = on(site, hollow(site)), tree(site)
    for name in variants(version):
        for command, exit_code in (("check", 1), ("apply", 7)):
            row = run(command, f"{SET}/{name}").expect(exit_code).row(name)
            assert set(results(row, "symbol")) == {"failed"}
            assert row["state"] == "pending"
    assert tree(site) == pristine


# ---- alternatives ---------------------------------------------------------------------------------------------

both = pytest.mark.parametrize("version", ["0.4.0rc4", "0.6.3", "0.6.9", "0.6.18.post1", NEWEST])


@both
def test_the_operator_and_the_graph_break_replace_one_another(
    version: str, release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(version)
    run = on(site)
    module = site / run("check", f"{SET}/{OPERATOR}").expect(0).row(OPERATOR)["files"][0]["path"]
    run("apply").expect(0)
    assert "@torch.compiler.disable" in module.read_text()

    answer = run("apply", f"{SET}/{OPERATOR}").expect(0)
    assert answer.actions == {DISABLE: "reverted", OPERATOR: "applied"}
    assert "@torch.compiler.disable" not in module.read_text() and "custom_op" in module.read_text()
    assert run("verify").expect(0).states == {CUDA: "applied", OPERATOR: "applied"}
    assert run("apply").expect(0).actions.keys() == {CUDA, OPERATOR}  # what was chosen by name stays

    answer = run("apply", f"{SET}/{DISABLE}").expect(0)
    assert answer.actions == {DISABLE: "applied", OPERATOR: "reverted"}
    assert run("verify").expect(0).states == {CUDA: "applied", DISABLE: "applied"}


@both
def test_the_operator_and_the_graph_break_cannot_both_be_asked_for(
    version: str, release: Callable[[str], Path], on: Callable[..., Command]
) -> None:
    site = release(version)
    run, pristine = on(site), tree(site)
    error = run("apply", f"{SET}/{DISABLE}", f"{SET}/{OPERATOR}").expect(3).document["error"]
    assert error["code"] == "group-clash"
    assert f"{SET}/{DISABLE} and {SET}/{OPERATOR} are alternatives" in error["message"]
    assert tree(site) == pristine


@both
def test_a_project_selects_the_operator(
    version: str,
    release: Callable[[str], Path],
    on: Callable[..., Command],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = release(version)
    run, pristine = on(site, None), tree(site)
    (tmp_path / "project").mkdir()
    project = tmp_path / "project" / "pyproject.toml"
    monkeypatch.chdir(project.parent)
    table = f'[tool.patchkit]\npatches = "{PATCHES}"\n'

    project.write_text(table)
    run("apply").expect(0)
    project.write_text(f'{table}select = ["{SET}/{OPERATOR}"]\n')
    run("status", "--exit-code").expect(1)
    run("apply").expect(0)
    states = run("status", "--exit-code").expect(0).states
    assert states.items() >= {CUDA: "applied", OPERATOR: "applied"}.items()
    assert run("verify").expect(0).states == {CUDA: "applied", OPERATOR: "applied"}

    project.write_text(f'{table}select = ["{SET}/{OPERATOR}"]\ndeselect = ["{SET}/{CUDA}"]\n')
    assert run("apply", "--exact").expect(0).actions[CUDA] == "reverted"
    assert run("verify").expect(0).states == {OPERATOR: "applied"}
    project.write_text(f'{table}select = ["{SET}/{OPERATOR}", "{SET}/{DISABLE}"]\n')
    assert run("apply").expect(3).document["error"]["code"] == "group-clash"
    run("revert", "--all").expect(0)
    assert tree(site) == pristine
