"""How a distribution is found in an environment, and which ones are refused."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import worlds
from stages import MOD, Stage, edit, make_diff, make_stage, patch, put, sample_wheel
from worlds import CHECKOUT, RunPatchkit, run

FIVE = edit(5, b"line_5 = 'five'\n")


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.add("fix", patch("one", FIVE))
    return stage


@pytest.mark.parametrize("asked", ["Foo.Bar_baz", "foo-bar-baz", "FOO__bar.-BAZ"])
@pytest.mark.parametrize("folder", ["foo_bar_baz-1.2.3", "Foo.Bar_baz-1.2.3", "foo-bar-baz-1.2.3"])
def test_names_are_compared_in_normalised_form(asked: str, folder: str, stage: Stage) -> None:
    (stage.site / "some_dist-1.2.3.dist-info").rename(stage.site / f"{folder}.dist-info")
    stage.add("fix", patch("one", FIVE), distribution=asked)
    [row] = stage.json("apply")["patches"]
    assert (row["distribution"], row["installed"], row["state"]) == ("foo-bar-baz", "1.2.3", "applied")


def test_a_name_that_another_begins_with_is_another(stage: Stage) -> None:
    for other in ("some_dist_extra-9.dist-info", "some-9.dist-info", "some_dist2-9.dist-info"):
        put(stage.site / other / "METADATA", b"Name: x\nVersion: 9\n")
    [row] = stage.json("check")["patches"]
    assert row["installed"] == "1.2.3"


def test_what_pip_leaves_of_a_broken_uninstall_is_ignored(stage: Stage) -> None:
    for left in ("~ome_dist-1.2.2.dist-info", "~-me_dist-1.2.3.dist-info", "~some_dist-1.2.2.dist-info"):
        put(stage.site / left / "RECORD", b"")
    [row] = stage.json("apply")["patches"]
    assert row["installed"] == "1.2.3"


def test_two_folders_of_one_name_are_refused_with_both_paths_and_the_stale_one(stage: Stage) -> None:
    record = stage.record.read_bytes()
    stale = put(
        stage.site / "some_dist-1.2.2.dist-info" / "RECORD", re.sub(rb"(mod.py,sha256=)....", rb"\1AAAA", record)
    )
    before = stage.tree()
    for command in (["check"], ["apply"]):
        said = stage.run(*command).expect(4)
        assert (
            f"some-dist is installed twice: {stale.parent} and {stage.site / 'some_dist-1.2.3.dist-info'}" in said.err
        )
        assert "some_dist-1.2.2.dist-info is stale" in said.err
    assert stage.tree() == before


def test_two_folders_of_which_neither_is_known_to_be_stale_are_refused_without_a_guess(stage: Stage) -> None:
    shutil.copytree(stage.record.parent, stage.site / "some_dist-1.2.2.dist-info")
    said = stage.run("apply").expect(4)
    assert "is installed twice" in said.err and "stale" not in said.err.splitlines()[0]


def two_roots(stage: Stage) -> tuple[Path, Path, Mapping[str, str]]:
    """Two site roots of one interpreter, both with some-dist: its own, and one that PYTHONPATH names."""
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    shutil.copytree(stage.site, venv.site_packages, symlinks=True, dirs_exist_ok=True)
    other = Path(shutil.copytree(stage.site, stage.folder / "other"))
    return venv.site_packages, other, {"VIRTUAL_ENV": str(venv.root), "PYTHONPATH": str(other)}


def test_copies_on_two_site_roots_are_refused_with_both_paths(stage: Stage, patchkit: RunPatchkit) -> None:
    one, other, env = two_roots(stage)
    said = patchkit("apply", "--patches", stage.patches, env=env).expect(4)
    assert "some-dist is installed on 2 site roots" in said.err
    assert str(one) in said.err and str(other) in said.err and "--site-packages DIR" in said.err
    assert not (one / ".patchkit").exists() and not (other / ".patchkit").exists()
    patchkit("apply", "--patches", stage.patches, "--site-packages", other, env=env).expect(0)
    assert b"five" in (other / MOD).read_bytes() and b"five" not in (one / MOD).read_bytes()


def test_a_command_writes_to_one_site_root(stage: Stage, patchkit: RunPatchkit, make_site: Callable[..., Path]) -> None:
    one, other, env = two_roots(stage)
    shutil.rmtree(other)
    make_site(other, sample_wheel(stage.folder / "wheels", name="second", files={"second/mod.py": b"x = 1\n"}))
    stage.add(
        "more",
        patch("p", make_diff({"second/mod.py": b"x = 1\n"}, {"second/mod.py": b"x = 2\n"})),
        distribution="second",
    )
    said = patchkit("apply", "--patches", stage.patches, env=env).expect(4)
    assert "one command writes to one site root" in said.err and "--site-packages DIR" in said.err
    patchkit("apply", "fix", "--patches", stage.patches, env=env).expect(0)
    assert b"five" in (one / MOD).read_bytes()


BACKEND = """
import zipfile


def build_editable(folder, config_settings=None, metadata_directory=None):
    name, info = "some_dist-1.2.3-py3-none-any.whl", "some_dist-1.2.3.dist-info"
    members = {
        "some_dist.pth": SOURCE,
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: some-dist\\nVersion: 1.2.3\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{member},,\\n" for member in (*members, f"{info}/RECORD"))
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return name
"""


def test_an_editable_install_is_refused_with_the_path_of_the_checkout(stage: Stage, patchkit: RunPatchkit) -> None:
    checkout = stage.folder / "my checkout"
    shutil.copytree(stage.site / "some_dist", checkout / "some_dist")
    put(checkout / "backend.py", f"SOURCE = {str(checkout)!r}\n{BACKEND}".encode())
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    put(checkout / "pyproject.toml", f'{system}[project]\nname = "some-dist"\nversion = "1.2.3"\n'.encode())
    venv = worlds.make_venv(stage.folder / "venv", with_pip=False)
    worlds.pip_install(venv, "--editable", checkout)
    for command in (["check"], ["apply"]):
        said = patchkit(*command, "--patches", stage.patches, "--python", venv.python).expect(4)
        assert f"some-dist is an editable install of {checkout}" in said.err
    assert b"five" not in (checkout / MOD).read_bytes()
    assert not (venv.site_packages / ".patchkit").exists()


def test_an_egg_link_is_an_editable_install_too(stage: Stage) -> None:
    shutil.rmtree(stage.record.parent)
    put(stage.site / "some-dist.egg-link", b"/home/me/checkout\n.")
    assert "some-dist is an editable install of /home/me/checkout" in stage.run("apply").expect(4).err


@pytest.mark.parametrize("folder", [True, False])
def test_an_egg_info_alone_is_refused(folder: bool, stage: Stage) -> None:
    shutil.rmtree(stage.record.parent)
    egg = stage.site / "some_dist-1.2.3-py3.11.egg-info"
    put(egg / "PKG-INFO" if folder else egg, b"Name: some-dist\nVersion: 1.2.3\n")
    said = stage.run("apply").expect(4)
    assert str(egg) in said.err and "without a RECORD" in said.err and "pip or uv" in said.err
    assert not (stage.site / ".patchkit").exists()


def test_an_egg_info_on_another_site_root_is_refused_too(stage: Stage, patchkit: RunPatchkit) -> None:
    one, other, env = two_roots(stage)
    shutil.rmtree(one / "some_dist-1.2.3.dist-info")
    shutil.rmtree(other / "some_dist-1.2.3.dist-info")
    put(one / "some_dist-1.2.3.egg-info", b"Name: some-dist\nVersion: 1.2.3\n")
    said = patchkit("apply", "--patches", stage.patches, env=env).expect(4)
    assert "without a RECORD" in said.err


def test_a_distribution_without_record_is_refused(stage: Stage) -> None:
    folder = stage.record.parent
    stage.record.unlink()
    said = stage.run("apply").expect(4)
    assert f"{folder} has no RECORD" in said.err and "install some-dist with pip or uv" in said.err


@pytest.mark.parametrize("how", ["no file", "no version in it", "not UTF-8"])
def test_where_metadata_says_nothing_the_folder_tells_the_version(how: str, stage: Stage) -> None:
    path = stage.record.with_name("METADATA")
    if how == "no file":
        path.unlink()
    else:
        path.write_bytes(b"Name: some-dist\n\nVersion: 9\n" if how == "no version in it" else b"\xff\xfe\x00")
    [row] = stage.json("apply")["patches"]
    assert row["installed"] == "1.2.3"


def test_a_distribution_outside_the_environment_is_refused(stage: Stage, patchkit: RunPatchkit) -> None:
    inner = worlds.make_venv(stage.folder / "inner", with_pip=False, system_site_packages=True)
    outer = Path(run(inner.python, "-c", "import pip; print(pip.__file__)", cwd=stage.folder).expect().out.strip())
    stage.add("pip", patch("p", FIVE), distribution="pip")
    said = patchkit("apply", "pip", "--patches", stage.patches, "--python", inner.python).expect(4)
    assert f"pip is installed in {outer.parent.parent}, outside the environment" in said.err
    assert "--site-packages" in said.err


@pytest.mark.parametrize(
    ("version", "versions", "fits"),
    [
        ("1.0rc1", ">=1.0.dev0", True),
        ("1.0rc1", ">=0.9,<1.0", False),
        ("1.0rc1", ">=1.0", False),
        ("1.0.dev3", "<1.0", False),
        ("1.0.dev3", ">=1.0.dev0,<=1.0", True),
        ("1.0+cu130", "==1.0", True),
        ("1.0+cu130", "==1.0+cu128", False),
        ("1.0+cu130", "<=1.0", True),
        ("1.0.post1", "==1.0", False),
        ("1.0.post1", ">=1.0,<1.1.dev0", True),
        ("1!1.0", ">=1.0", True),
    ],
)
def test_versions_are_compared_as_pep_440_says(
    version: str,
    versions: str,
    fits: bool,
    tmp_path: Path,
    make_site: Callable[..., Path],
    capfd: pytest.CaptureFixture[str],
) -> None:
    stage = make_stage(tmp_path, make_site, capfd.readouterr)
    stage.record.parent.rename(stage.site / f"some_dist-{version}.dist-info")
    metadata_file = stage.record.with_name("METADATA")
    metadata_file.write_text(metadata_file.read_text().replace("Version: 1.2.3", f"Version: {version}"))
    stage.add("fix", patch("one", FIVE, versions=versions))
    [row] = stage.json("check", exit_code=0 if fits else 1)["patches"]
    assert (row["installed"], row["state"]) == (version, "pending" if fits else "no-variant")


WATCH = """
import json, os, sys
seen = []
def watch(event, args):
    if event in ("open", "os.listdir", "os.scandir"):
        seen.append((event, os.fspath(args[0]) if args and isinstance(args[0], (str, bytes, os.PathLike)) else None))
sys.addaudithook(watch)
sys.path.insert(0, {checkout!r})
from patchkit.cli import main
code = main({args!r})
print(json.dumps([code, seen]), file=sys.stderr)
"""


@pytest.mark.parametrize("command", ["check", "apply", "status"])
def test_finding_one_distribution_lists_one_folder_and_opens_no_other_metadata(command: str, stage: Stage) -> None:
    for number in range(30):
        put(stage.site / f"other_{number}-1.0.dist-info" / "METADATA", b"Name: other\nVersion: 1.0\n")
        put(stage.site / f"other_{number}-1.0.dist-info" / "RECORD", b"")
    if command == "apply":
        stage.run("apply").expect(0)
    args = [command, "--site-packages", str(stage.site), "--patches", str(stage.patches), "--no-checks"]
    code = WATCH.format(checkout=str(CHECKOUT), args=args[: None if command == "apply" else -1])
    said = run(sys.executable, "-c", code, cwd=stage.folder).expect()
    ended, seen = json.loads(said.err)
    below = [(event, path) for event, path in seen if path and str(path).startswith(str(stage.site))]
    assert ended == 0
    assert [path for event, path in below if event != "open" and ".patchkit" not in path] == [str(stage.site)]
    opened = {Path(path).relative_to(stage.site).parts[0] for event, path in below if event == "open"}
    assert opened <= {"some_dist", "some_dist-1.2.3.dist-info", ".patchkit"} and opened
