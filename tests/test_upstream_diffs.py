"""Diffs between real releases, laid out as their upstream's repositories are, against the real wheels.

A commit upstream carries tests, documentation and pictures, and its sources lie below `src/` or elsewhere than in the
wheel. What is installed after `apply` must be the other release's files, byte for byte, and what git makes of them.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import worlds
from repositories import Blobs, Repository, apply_with_git, read_tree, write_tree
from stages import Stage, make_stage, patch
from worlds import OUTER, cache_folder, find_wheel, unpack_code

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\2\0\1H\xaf\xa4q"


@dataclass(frozen=True)
class Step:
    """A distribution that goes from one release to another; ``below`` is where upstream keeps its sources."""

    distribution: str
    old: str
    new: str
    below: str
    binary: str = ""  # how names of files end that are in the wheel and no text

    def __str__(self) -> str:
        return f"{self.distribution}-{self.old}-{self.new}"


STEPS = [
    Step("inflection", "0.4.0", "0.5.0", ""),
    Step("inflection", "0.5.1", "0.5.0", "src"),
    Step("humanize", "4.12.2", "4.12.3", "src", ".mo"),
    Step("humanize", "4.12.3", "4.12.2", "src", ".mo"),
    Step("rich", "13.9.2", "13.9.4", "python"),
    Step("attrs", "24.3.0", "25.1.0", "src"),
]


def shipped(distribution: str, version: str) -> dict[str, bytes]:
    """The files of a wheel, without its metadata."""
    with zipfile.ZipFile(find_wheel(distribution, version)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def upstream(files: Blobs, below: str, *, version: str) -> dict[str, bytes]:
    """A repository's files: the sources where upstream keeps them, and what no wheel has."""
    lead = below and f"{below}/"
    others = {
        "README.md": f"# Version {version}\n".encode(),
        "docs/logo.png": PNG + version.encode(),
        "tests/test_it.py": f"def test_it():\n    assert '{version}'\n".encode(),
        f"{lead}setup.cfg": f"[metadata]\nversion = {version}\n".encode(),
    }
    return {**others, **{lead + path: data for path, data in files.items()}}


@pytest.fixture
def stage_of(
    tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> Callable[[Step], Stage]:
    return lambda step: make_stage(tmp_path, make_site, capfd.readouterr, find_wheel(step.distribution, step.old))


def go_to_and_fro(stage: Stage, expected: Blobs, of_git: dict[str, tuple[bytes, bool]], patches: int = 1) -> None:
    """Apply, twice, verify and revert; in between the files are the ``expected`` ones and those of git."""
    before = stage.tree()
    said = stage.json("apply", "--no-checks")
    assert [row["state"] for row in said["patches"]] == ["applied"] * patches
    after = read_tree(stage.site)
    assert after == of_git
    assert {path: data for path, (data, _) in after.items()} == expected
    assert stage.states("verify") == dict.fromkeys(stage.states(), "applied")
    whole = stage.tree()
    assert set(stage.actions("apply", "--no-checks").values()) == {"none"}
    assert stage.tree() == whole
    stage.run("revert", "--all").expect()
    assert stage.tree() == before


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_release_becomes_the_other_one_by_the_mail_of_its_upstream(
    step: Step, stage_of: Callable[[Step], Stage], tmp_path: Path
) -> None:
    old, new = shipped(step.distribution, step.old), shipped(step.distribution, step.new)
    repository = Repository(tmp_path / "upstream")
    repository.commit(upstream(old, step.below, version=step.old))
    repository.commit(upstream(new, step.below, version=step.new), message="A release\n\n- words\n+ and more")
    mail = repository.mail("--binary", "-M")
    assert b"GIT binary patch" in mail and b"tests/test_it.py" in mail

    stage = stage_of(step)
    exclude = [f"**/*{step.binary}"] if step.binary else []
    chosen = variant("mail.patch", strip=2 if step.below else 1, include=globs(old, "**"), exclude=exclude)
    stage.add("up", patch("mail", mail, variant=[chosen]), distribution=step.distribution)
    kept = {path: data for path, data in old.items() if step.binary and path.endswith(step.binary)}
    wanted = {path: data for path, data in new.items() if not (step.binary and path.endswith(step.binary))} | kept
    assert wanted != old
    go_to_and_fro(stage, wanted, by_git(tmp_path / "by-git", step, mail))


def by_git(folder: Path, step: Step, diff: bytes) -> dict[str, tuple[bytes, bool]]:
    """What git makes of the old release where its upstream keeps it; -p2 would choke on the files at the top."""
    old, lead = shipped(step.distribution, step.old), step.below and f"{step.below}/"
    write_tree(folder, {lead + path: data for path, data in old.items()})
    include = [f"--include={lead}{glob}" for glob in globs(old, "*")]
    done = apply_with_git(folder, diff, *([f"--exclude=*{step.binary}"] if step.binary else []), *include)
    return {path.removeprefix(lead): entry for path, entry in done.items()}


def globs(files: Blobs, rest: str) -> list[str]:
    """What matches everything in the top-level folders of a wheel, and its top-level modules."""
    return sorted({f"{path.split('/')[0]}/{rest}" if "/" in path else path for path in files})


def variant(file: str, **keys: Any) -> dict[str, Any]:
    """One ``[[patch.variant]]`` for every version; what is empty is left out."""
    return {"versions": ">=0", "file": file, **{key: value for key, value in keys.items() if value not in ("", [])}}


def test_a_commit_that_turns_a_module_into_a_folder_leaves_what_the_distribution_owns(
    stage_of: Callable[[Step], Stage], tmp_path: Path
) -> None:
    step = Step("inflection", "0.5.0", "0.5.1", "")
    repository = Repository(tmp_path / "upstream")
    repository.commit(shipped(step.distribution, step.old))
    repository.commit(shipped(step.distribution, step.new))
    stage = stage_of(step)
    stage.add("up", patch("mail", repository.mail(), versions=">=0"), distribution=step.distribution)
    before = stage.tree()
    error = stage.json("apply", exit_code=3)["error"]
    assert "inflection/__init__.py is to be created outside the folders of inflection" in error["message"]
    assert stage.tree() == before


# ---- source distributions: the real tests and documentation ----------------------------------------------------


def find_sdist(distribution: str, version: str) -> Path:
    """The source distribution of a release, from the cache, or downloaded into it once."""
    folders = [Path(folder) for folder in (OUTER.get("PATCHKIT_WHEELS"),) if folder]
    for folder in (*folders, cache_folder()):
        if (file := folder / f"{distribution}-{version}.tar.gz").is_file():
            return file
    cache_folder().mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(prefix=".download-", dir=cache_folder()))
    options = ("--no-deps", "--no-binary", distribution, "--disable-pip-version-check", "--no-input", "--dest", folder)
    try:
        words = (sys.executable, "-m", "pip", "download", *options, f"{distribution}=={version}")
        worlds.run(*words, cwd=folder, env=OUTER, timeout=600).expect()
        [file] = folder.glob("*.tar.gz")
        return file.replace(cache_folder() / file.name)
    finally:
        shutil.rmtree(folder)


def sources(distribution: str, version: str) -> dict[str, bytes]:
    """The files of a source distribution, without the folder that holds them all."""
    found: dict[str, bytes] = {}
    with tarfile.open(find_sdist(distribution, version)) as archive:
        for member in archive.getmembers():
            if member.isfile():
                file = archive.extractfile(member)
                assert file is not None
                found[member.name.partition("/")[2]] = file.read()
    return found


def test_the_whole_source_of_attrs_takes_the_wheel_to_the_next_release(
    stage_of: Callable[[Step], Stage], tmp_path: Path
) -> None:
    step = Step("attrs", "24.3.0", "25.1.0", "src")
    repository = Repository(tmp_path / "upstream")
    repository.commit(sources(step.distribution, step.old) | {"docs/_static/new.png": PNG})
    repository.commit(sources(step.distribution, step.new) | {"docs/_static/new.png": PNG + b"more"})
    diff = repository.diff("-M")
    assert all(words in diff for words in (b"a/tests/", b"a/docs/", b"Binary files ", b"a/src/attr/"))

    stage = stage_of(step)
    chosen = variant("diff.patch", strip=2, include=["attr/**", "attrs/**"])
    stage.add("up", patch("diff", diff, variant=[chosen]), distribution="attrs")
    go_to_and_fro(stage, shipped("attrs", step.new), by_git(tmp_path / "by-git", step, diff))


# ---- FlashInfer: sources that the wheel has elsewhere ----------------------------------------------------------

FLASHINFER = "flashinfer-python"
DATA = "flashinfer/data"


def checkout(version: str, chosen: Callable[[str], bool]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of FlashInfer that are ``chosen`` by path in the wheel, as its repository and as the wheel has them."""
    with zipfile.ZipFile(find_wheel(FLASHINFER, version)) as archive:
        wheel = {name: archive.read(name) for name in archive.namelist() if chosen(name)}
    return {path.removeprefix(f"{DATA}/"): data for path, data in wheel.items()}, wheel


def flashinfer_stage(tmp_path: Path, capture: Callable[[], Any], version: str, files: Blobs) -> Stage:
    """A site root with ``files`` of the release, and all its Python code and metadata."""
    site = unpack_code(tmp_path / "site", find_wheel(FLASHINFER, version))
    write_tree(site, files)
    (tmp_path / "patches").mkdir()
    return Stage(tmp_path, site, tmp_path / "patches", shutil.copytree, capture)


def both_halves(stage: Stage, mail: bytes) -> None:
    """One mail as two patches: the Python code as it lies, and the CUDA sources below `flashinfer/data`."""
    kernels = variant(
        "commit.patch", directory=DATA, include=[f"{DATA}/csrc/**", f"{DATA}/include/**"], exclude=["**/*.md"]
    )
    code = variant("commit.patch", include=["flashinfer/**"])
    first = patch("kernels", None, variant=[kernels])
    first["FILES"] = {"commit.patch": mail}
    stage.add("up", first, patch("code", None, variant=[code]), distribution=FLASHINFER)


def test_a_commit_to_csrc_of_flashinfer_lands_in_its_data(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kernel, header, code = f"{DATA}/csrc/norm.cu", f"{DATA}/include/flashinfer/norm.cuh", "flashinfer/norm.py"
    old, installed = checkout("0.6.3", {kernel, header, code, "flashinfer/__init__.py"}.__contains__)
    assert {"csrc/norm.cu", "include/flashinfer/norm.cuh", code} < old.keys()
    new = dict(old)
    for path, comment in (("csrc/norm.cu", b"//"), ("include/flashinfer/norm.cuh", b"//"), (code, b"#")):
        lines = old[path].splitlines(keepends=True)
        middle = len(lines) // 2
        while lines[middle].strip():
            middle += 1
        new[path] = b"".join(
            [*lines[:middle], comment + b" a change of our own\n", *lines[middle:], comment + b" end\n"]
        )
    new["csrc/own.cu"] = b"// a new kernel\n"
    repository = Repository(tmp_path / "upstream")
    repository.commit(old | {"tests/test_norm.py": b"a = 1\n", "csrc/README.md": b"one\n", "docs/a.png": PNG})
    repository.commit(new | {"tests/test_norm.py": b"a = 2\n", "csrc/README.md": b"two\n", "docs/a.png": PNG + b"!"})
    mail = repository.mail("--binary")

    stage = flashinfer_stage(tmp_path, capfd.readouterr, "0.6.3", installed)
    both_halves(stage, mail)
    rest = {path: data for path, (data, _) in read_tree(stage.site).items()}
    own = write_tree(tmp_path / "by-git", rest)
    apply_with_git(own, mail, f"--directory={DATA}", f"--include={DATA}/csrc/*.cu", f"--include={DATA}/include/*")
    of_git = apply_with_git(own, mail, "--include=flashinfer/*")
    expected = rest | {kernel: new["csrc/norm.cu"], header: new["include/flashinfer/norm.cuh"], code: new[code]}
    go_to_and_fro(stage, expected | {f"{DATA}/csrc/own.cu": b"// a new kernel\n"}, of_git, patches=2)


def test_flashinfer_goes_from_one_release_to_the_next_by_one_mail(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """325 files, some 110,000 lines of diff: Python code, kernels, headers; created, deleted and renamed ones too."""

    def chosen(name: str) -> bool:
        parts = name.split("/")
        return parts[0] == "flashinfer" and (parts[1] != "data" or parts[2] in ("csrc", "include"))

    (old, installed), (new, next_installed) = checkout("0.5.3", chosen), checkout("0.6.3", chosen)
    repository = Repository(tmp_path / "upstream")
    repository.commit(old | {"tests/test_norm.py": b"a = 1\n"})
    repository.commit(new | {"tests/test_norm.py": b"a = 2\n"})
    mail = repository.mail("-M")
    assert mail.count(b"\ndiff --git ") > 300

    stage = flashinfer_stage(tmp_path, capfd.readouterr, "0.5.3", installed)
    both_halves(stage, mail)
    rest = {path: data for path, (data, _) in read_tree(stage.site).items()}
    own = write_tree(tmp_path / "by-git", rest)
    apply_with_git(own, mail, f"--directory={DATA}", f"--include={DATA}/csrc/*", f"--include={DATA}/include/*")
    of_git = apply_with_git(own, mail, "--include=flashinfer/*")
    others = {path: data for path, data in rest.items() if path not in installed}
    go_to_and_fro(stage, next_installed | others, of_git, patches=2)
