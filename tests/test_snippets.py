"""What is printed to be pasted: filled in for the project at hand, and true to it."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from stages import edit, make_diff, patch, to_toml
from test_docs import page, read_blocks, read_steps
from worlds import CHECKOUT, Finished, RunPatchkit, tree

FIVE = edit(5, b"line_5 = 'five'\n")


class Project:
    """A folder that a build is given, with patch folders."""

    def __init__(self, folder: Path, patchkit: RunPatchkit) -> None:
        self.folder = folder
        self.patchkit = patchkit
        folder.mkdir()
        self.add("patches", "fix", patch("one", FIVE))

    def add(self, place: str, name: str, *patches: dict[str, object]) -> None:
        folder = self.folder / place / name
        folder.mkdir(parents=True)
        tables = [{key: value for key, value in each.items() if key != "FILES"} for each in patches]
        manifest = {"schema": 1, "name": name, "distribution": "some-dist", "patch": tables}
        (folder / "patchset.toml").write_text(to_toml(manifest), "utf-8")
        for each in patches:
            for file, data in each["FILES"].items():  # type: ignore[attr-defined]
                (folder / file).write_bytes(data)

    def snippet(self, kind: str, *args: str | os.PathLike[str], cwd: Path | None = None) -> Finished:
        return self.patchkit("snippet", kind, *args, cwd=cwd or self.folder)

    def words(self, *args: str | os.PathLike[str]) -> list[str]:
        """The words of the step, without the mounts."""
        text = self.snippet("containerfile", *args).expect().out
        step = text.splitlines()[-1].strip()
        return shlex.split(step)


@pytest.fixture
def project(tmp_path: Path, patchkit: RunPatchkit) -> Project:
    return Project(tmp_path / "project", patchkit)


def test_the_step_mounts_the_archive_and_the_folder_and_requires_what_is_declared(project: Project) -> None:
    project.add("patches", "other", patch("two", FIVE), patch("three", FIVE, default=False))
    project.add("patches", "unwanted", patch("four", FIVE, default=False))
    before = tree(project.folder)
    assert project.snippet("containerfile").expect().out.splitlines()[1:] == [
        "RUN --mount=type=bind,source=patchkit.pyz,target=/tmp/patchkit/patchkit.pyz \\",
        "    --mount=type=bind,source=patches,target=/tmp/patchkit/patches \\",
        "    python /tmp/patchkit/patchkit.pyz post-install"
        " --patches /tmp/patchkit/patches --require fix --require other",
    ]
    assert tree(project.folder) == before


def test_an_archive_that_lies_where_make_puts_it_is_mounted_from_there(project: Project) -> None:
    (project.folder / "dist").mkdir()
    (project.folder / "dist/patchkit.pyz").touch()
    first = project.snippet("containerfile").expect().out.splitlines()[1]
    assert first == "RUN --mount=type=bind,source=dist/patchkit.pyz,target=/tmp/patchkit/patchkit.pyz \\"
    assert "COPY dist/patchkit.pyz /opt/patchkit.pyz" in project.snippet("healthcheck").expect().out


def test_several_folders_and_the_bundled_sets_are_all_named(project: Project) -> None:
    project.add("more/sets", "extra", patch("five", FIVE))
    words = project.words("--patches", "patches", "--patches", "more/sets", "--bundled")
    assert words[2:] == [
        *("post-install", "--patches", "/tmp/patchkit/patches", "--patches", "/tmp/patchkit/more/sets", "--bundled"),
        *("--require", "extra", "--require", "fix", "--require", "flashinfer-dynamo"),
    ]
    document = project.snippet("containerfile", "--bundled", "--json").expect().json()
    assert document["sources"] == ["patchkit.pyz"] and document["required"] == ["flashinfer-dynamo"]


def test_a_pyproject_that_selects_is_mounted_and_read(project: Project) -> None:
    project.add("patches", "other", patch("two", FIVE, default=False))
    (project.folder / "pyproject.toml").write_text('[tool.patchkit]\nselect = ["other/two"]\n', "utf-8")
    text = project.snippet("containerfile").expect().out
    assert "source=pyproject.toml,target=/tmp/patchkit/pyproject.toml" in text
    assert "cd /tmp/patchkit && python" in text and "--require other" in text


def test_the_interpreter_is_the_one_that_is_named_or_where_uv_makes_it(project: Project) -> None:
    assert project.words("--python", "/opt/my env/bin/python")[0] == "/opt/my env/bin/python"
    (project.folder / "uv.lock").touch()
    assert project.words()[0] == "/app/.venv/bin/python"
    assert '["/app/.venv/bin/python", "/opt/patchkit.pyz"' in project.snippet("healthcheck").expect().out


def test_the_health_check_asks_status_for_its_exit_code(project: Project) -> None:
    lines = project.snippet("healthcheck").expect().out.splitlines()
    assert "COPY patchkit.pyz /opt/patchkit.pyz" in lines
    assert '    CMD ["python", "/opt/patchkit.pyz", "status", "--exit-code", "--quiet"]' in lines
    assert lines[-1] == "#     python /opt/patchkit.pyz status --exit-code --quiet || exit"


def test_a_folder_outside_the_build_context_is_an_error(project: Project) -> None:
    inner = project.folder / "image"
    inner.mkdir()
    said = project.snippet("containerfile", "--patches", project.folder / "patches", cwd=inner).expect(2)
    assert "lies outside the current folder" in said.err and said.out == ""


@pytest.mark.parametrize("name", ["my patches", "a,b", "cost$HOME"])
def test_a_folder_whose_name_a_mount_cannot_hold_is_an_error(name: str, project: Project) -> None:
    project.add(name, "extra", patch("five", FIVE))
    said = project.snippet("containerfile", "--patches", name).expect(2)
    assert name in said.err and "rename" in said.err


def test_without_a_patch_set_there_is_nothing_to_print(project: Project) -> None:
    shutil.rmtree(project.folder / "patches" / "fix")
    assert "there is no patch set" in project.snippet("containerfile").expect(3).err
    project.add("patches", "fix", patch("one", make_diff({"a": b"1\n"}, {"a": b"2\n"}), default=False))
    assert "is declared" in project.snippet("containerfile").expect(3).err


def test_another_kind_is_a_usage_error(project: Project) -> None:
    said = project.snippet("compose").expect(2)
    assert "containerfile" in said.err and "healthcheck" in said.err


def test_the_step_in_the_documentation_is_what_is_printed(tmp_path: Path, patchkit: RunPatchkit) -> None:
    shutil.copytree(CHECKOUT / "patches", tmp_path / "patches", ignore=shutil.ignore_patterns("__pycache__"))
    [block] = [block for block in read_blocks(page("docs/how-to/containers.md")) if block.language == "console"]
    [step] = read_steps(block)
    words = shlex.split(step.command)
    assert words[:2] == ["python", "patchkit.pyz"]
    assert patchkit(*words[2:], cwd=tmp_path).expect().out.splitlines() == step.output
