"""The python checks of the patch set for FlashInfer, run: PyTorch's CPU build, real releases, no GPU and no nvcc.

PyTorch and what FlashInfer imports lie once in the cache folder of `worlds`, and every environment here links to them.
"""

from __future__ import annotations

import difflib
import hashlib
import shutil
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import worlds
from test_flagship import CUDA, DEFAULTS, DISABLE, KEYWORD, LOG, NAMES, OPERATOR, PATCHES, SET, variants
from worlds import OUTER, Finished, RunPatchkit, Venv, cache_folder, tree, without_bytecode

RELEASES = ("0.5.3", "0.6.3", "0.6.18.post1", "0.7.4")
BY_PIP = {"0.5.3", "0.6.3", "0.6.18.post1"}  # of 0.7.4 it would install 600 MB, most of it CUDA sources
# A local version, for else the index gives a build with gigabytes of CUDA libraries; on macOS its only build is this.
TORCH = "torch==2.13.0" if sys.platform == "darwin" else "torch==2.13.0+cpu"
LIGHT = ("numpy", "packaging", "requests", "tqdm", "nvidia-ml-py", "apache-tvm-ffi>=0.1.6,<0.2")
UNUSED = ("einops", "tabulate", "click", "ninja")  # FlashInfer requires these too; importing it does not need them
MUST_RUN = bool(OUTER.get("CI")) and sys.version_info[:2] == (3, 11)
SCRIPTS = {name: PATCHES / SET / "checks" / f"{name.replace('-', '_')}.py" for name in NAMES}

every_release = pytest.mark.parametrize("version", RELEASES)


# ---- environments ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def libraries() -> Path:
    """A folder with PyTorch and what FlashInfer imports, made once by pip; whole or not at all."""
    wanted = (TORCH, *LIGHT, *UNUSED)
    made_for = "\n".join((*wanted, sys.implementation.cache_tag, sysconfig.get_platform()))
    folder = cache_folder() / f"torch-{hashlib.sha256(made_for.encode()).hexdigest()[:16]}"
    if not folder.exists():
        _install_libraries(folder, wanted)
    return folder


def _install_libraries(folder: Path, wanted: tuple[str, ...]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(mkdtemp(prefix=".torch-", dir=folder.parent))
    options = ("--disable-pip-version-check", "--no-input", "--only-binary", ":all:", "--target", scratch / "new")
    try:
        ended = worlds.run(
            sys.executable, "-m", "pip", "install", *options, *wanted, cwd=scratch, env=OUTER, timeout=1800
        )
        if ended.exit_code:
            (pytest.fail if MUST_RUN else pytest.skip)(
                f"pip cannot install {TORCH} and what FlashInfer imports; PIP_FIND_LINKS can name a folder that has "
                f"its wheel, PIP_EXTRA_INDEX_URL PyTorch's own index of CPU builds: {ended.err[-300:]}"
            )
        if not folder.exists():
            (scratch / "new").rename(folder)
    finally:
        shutil.rmtree(scratch)


def link_libraries(venv: Venv, libraries: Path, without: str = "") -> None:
    """Let ``venv`` have the libraries as its own distributions, each file or folder at the top a link."""
    for entry in libraries.iterdir():
        is_code = entry.name not in ("bin", "share", "__pycache__") and entry.suffix != ".pth"
        if is_code and not (without and entry.name.startswith(without)):
            (venv.site_packages / entry.name).symlink_to(entry)


MakeVenv = Callable[..., Venv]


@pytest.fixture(scope="module")
def new_venv(tmp_path_factory: pytest.TempPathFactory, libraries: Path, wheel_cache: Callable[..., Path]) -> MakeVenv:
    """``new_venv(version, by_pip=False, without="")``: an environment with a release, and the libraries but one."""

    def make(version: str, *, by_pip: bool = False, without: str = "") -> Venv:
        venv = worlds.make_venv(tmp_path_factory.mktemp(version) / "venv", with_pip=False)
        link_libraries(venv, libraries, without)
        if by_pip:
            worlds.pip_install(venv, "--no-compile", wheel_cache(version))
        else:
            worlds.unpack_code(venv.site_packages, wheel_cache(version))
        return venv

    return make


def compile_modules(venv: Venv, surroundings: Mapping[str, str | None]) -> Venv:
    """``venv``, with the modules of FlashInfer compiled that an import needs: checks run with -B and compile none."""
    venv.run("-c", "import flashinfer", env=worlds.clean_environment(surroundings)).expect()
    return venv


@pytest.fixture(scope="module")
def shared(new_venv: MakeVenv, surroundings: Mapping[str, str | None]) -> Callable[[str], Venv]:
    """``shared(version)``: an environment with a release, made once."""
    made: dict[str, Venv] = {}

    def find(version: str) -> Venv:
        if version not in made:
            made[version] = compile_modules(new_venv(version, by_pip=version in BY_PIP), surroundings)
        return made[version]

    return find


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str | None]:
    """Variables by which no program is found, a CUDA toolkit least of all, and caches go away with the tests."""
    folder = tmp_path_factory.mktemp("surroundings")
    caches = {"FLASHINFER_WORKSPACE_BASE": "flashinfer", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TMPDIR": "tmp"}
    (folder / "tmp").mkdir()
    empty = {"PATH": str(folder / "bin"), "CUDA_HOME": str(folder / "no-toolkit"), "CUDA_PATH": None}
    return {name: str(folder / place) for name, place in caches.items()} | empty | {"OMP_NUM_THREADS": "1"}


On = Callable[..., Callable[..., Finished]]


@pytest.fixture
def on(patchkit: RunPatchkit, surroundings: Mapping[str, str | None]) -> Iterator[On]:
    """``on(venv, patches=..., env={})(*args)``: patchkit on an environment, which is as it was when the test ends."""
    used: dict[Venv, Any] = {}

    def bind(
        venv: Venv, patches: Path = PATCHES, env: Mapping[str, str | None] | None = None
    ) -> Callable[..., Finished]:
        used.setdefault(venv, code(venv))
        where = ("--python", venv.python, "--patches", patches)
        return lambda *args: patchkit(*args, *where, env={**surroundings, **(env or {})}, timeout=900)

    yield bind
    for venv, before in used.items():
        patchkit("revert", "--all", "--python", venv.python, env=surroundings)
        assert code(venv) == before


def code(venv: Venv) -> dict[str, Any]:
    """The tree of FlashInfer and of patchkit's state; the libraries are left aside."""
    found: dict[str, Any] = {}
    for folder in sorted(venv.site_packages.iterdir()):
        if folder.is_dir() and not folder.is_symlink():
            found |= {f"{folder.name}/{path}": entry for path, entry in tree(folder).items()}
    return without_bytecode(found)


def python_checks(ended: Finished) -> dict[str, tuple[str, str]]:
    """The result and the message of each patch's python check."""
    rows = ended.json()["patches"]
    found = {row["patch"]: [check for check in row["checks"] if check["kind"] == "python"] for row in rows}
    return {name: (checks[0]["result"], checks[0]["message"]) for name, checks in found.items() if checks}


def states(ended: Finished) -> dict[str, str]:
    return {row["patch"]: row["state"] for row in ended.json()["patches"]}


# ---- each check, with the patch and without --------------------------------------------------------------------


@every_release
def test_each_python_check_fails_on_the_release_as_shipped(
    version: str, shared: Callable[[str], Venv], surroundings: Mapping[str, str | None]
) -> None:
    venv = shared(version)
    environment = worlds.clean_environment(surroundings)

    def run(name: str) -> Finished:
        return worlds.run(venv.python, "-B", SCRIPTS[name], cwd=venv.root, env=environment, timeout=300)

    with ThreadPoolExecutor(2) as pool:
        ended = dict(zip(variants(version), pool.map(run, variants(version)), strict=True))
    words = {
        CUDA: "asks for nvcc before it asks PyTorch",
        DISABLE: "fp4_quantize is not disabled for torch.compile",
        OPERATOR: "is not registered",
        LOG: "",  # PyTorch's own words on what it cannot trace
        KEYWORD: "enable_pdl=True arrives as is_global_scale_inversed",
    }
    for name, answer in ended.items():
        answer.expect(1)
        assert words[name] in answer.out + answer.err
        assert "cannot be imported" not in answer.out


@every_release
def test_each_python_check_passes_where_its_patch_is_applied(
    version: str, shared: Callable[[str], Venv], on: On
) -> None:
    run = on(shared(version))
    applied = run("apply", "--json", "--strict").expect()
    assert states(applied) == dict.fromkeys(DEFAULTS, "applied")
    checks = python_checks(applied)
    assert {name: result for name, (result, _) in checks.items()} == dict.fromkeys(DEFAULTS, "passed")
    assert "this PyTorch has no CUDA" in checks[CUDA][1]

    others = [name for name in variants(version) if name not in DEFAULTS]
    applied = run("apply", "--json", *(f"{SET}/{name}" for name in others)).expect()
    checks = python_checks(applied)
    assert {name: checks[name][0] for name in others} == dict.fromkeys(others, "passed")
    assert "fullgraph=True traces fp4_quantize as one operator" in checks[OPERATOR][1]


def test_verify_runs_the_python_checks_again(shared: Callable[[str], Venv], on: On) -> None:
    venv = shared("0.6.3")
    run = on(venv)
    run("apply", "--no-checks").expect()
    verified = run("verify", "--json").expect()
    assert {result for result, _ in python_checks(verified).values()} == {"passed"}
    assert python_checks(verified).keys() == set(DEFAULTS)


@pytest.mark.parametrize("other", [None, "0.5.3"], ids=["no other copy", "another copy"])
def test_where_a_folder_is_named_its_copy_is_checked_with_the_torch_of_the_interpreter(
    other: str | None,
    shared: Callable[[str], Venv],
    libraries: Path,
    patchkit: RunPatchkit,
    surroundings: Mapping[str, str | None],
    tmp_path: Path,
    wheel_cache: Callable[..., Path],
) -> None:
    if other is None:
        venv = worlds.make_venv(tmp_path / "venv", with_pip=False)
        link_libraries(venv, libraries)
    else:
        venv = shared(other)
    site = worlds.unpack_code(tmp_path / "site", wheel_cache("0.6.3"))
    where = ("--site-packages", site, "--python", venv.python, "--patches", PATCHES)
    applied = patchkit("apply", f"{SET}/{CUDA}", "--json", *where, env=surroundings, timeout=300).expect()
    assert python_checks(applied)[CUDA][0] == "passed"


def test_a_python_check_is_skipped_in_words_where_flashinfer_cannot_be_imported(new_venv: MakeVenv, on: On) -> None:
    run = on(new_venv("0.6.3", without="requests"))
    applied = run("apply", "--json").expect()
    assert states(applied) == dict.fromkeys(DEFAULTS, "applied")
    for result, message in python_checks(applied).values():
        assert result == "skipped"
        assert message == "flashinfer cannot be imported here: ModuleNotFoundError: No module named 'requests'"


# ---- a diff that fits and is wrong -----------------------------------------------------------------------------


@pytest.fixture
def wrong_variant(tmp_path: Path, wheel_cache: Callable[..., Path], git: Callable[..., Finished]) -> Path:
    """The set with its operator for 0.6.7 given to 0.6.18.post1, as a diff with the usual three lines of context.

    In between the kernel got another argument, which stands below those three lines.
    """
    path = "flashinfer/quantization/fp4_quantization.py"
    site = worlds.unpack_code(tmp_path / "site", wheel_cache("0.6.7"))
    before = (site / path).read_text().splitlines(keepends=True)
    git("apply", PATCHES / SET / f"{OPERATOR}.0.6.7.patch", cwd=site).expect()
    after = (site / path).read_text().splitlines(keepends=True)

    folder = Path(shutil.copytree(PATCHES, tmp_path / "wrong"))
    wrong = "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", n=3))
    (folder / SET / f"{OPERATOR}.0.6.7.patch").write_text(wrong)
    manifest = folder / SET / "patchset.toml"
    text = manifest.read_text()
    ranges = ('">=0.6.7.dev0,<0.6.11.dev0"', '">=0.6.11.dev0,<0.7.1.dev0"            # the kernel also takes')
    assert all(text.count(words) == 1 for words in ranges)
    text = text.replace(ranges[1], '"==0.7.0"  # the kernel also takes')
    manifest.write_text(text.replace(ranges[0], '">=0.6.7.dev0,<=0.6.18.post1"'))
    return folder


CALLS = """
    import sys, types, warnings
    warnings.simplefilter("ignore")
    import torch, flashinfer
    module = sys.modules[flashinfer.fp4_quantize.__module__]
    def kernel(x, *others):
        return torch.zeros(x.shape[0], x.shape[1] // 2, dtype=torch.uint8), torch.zeros(1024, dtype=torch.uint8)
    module.get_compute_capability = lambda device: (10, 0)
    module.get_fp4_quantization_module = lambda name: types.SimpleNamespace(fp4_quantize_sm100=kernel)
    x, scale = torch.ones(100, 128, dtype=torch.bfloat16), torch.ones(1)
    print("eager", *map(list, (one.shape for one in flashinfer.fp4_quantize(x, scale))))
    torch.compile(flashinfer.fp4_quantize, fullgraph=True, backend="eager")(x, scale)
    print("compiled")
"""


def test_a_diff_that_fits_and_fails_only_when_compiled_is_rolled_back(
    wrong_variant: Path, shared: Callable[[str], Venv], on: On, surroundings: Mapping[str, str | None]
) -> None:
    venv = shared("0.6.18.post1")
    run, pristine, operand = on(venv, wrong_variant), code(venv), f"{SET}/{OPERATOR}"
    assert states(run("check", operand, "--json").expect()) == {OPERATOR: "pending"}

    refused = run("apply", "--json", operand).expect(7).json()
    [row] = refused["patches"]
    assert {check["result"] for check in row["checks"] if check["kind"] == "symbol"} == {"passed"}
    [check] = [check for check in row["checks"] if check["kind"] == "python"]
    assert check["result"] == "failed" and "fp4_quantize cannot be traced" in check["message"]
    assert row["state"] == "pending"
    assert code(venv) == pristine

    run("apply", "--no-checks", operand).expect()
    calls = venv.run("-c", textwrap.dedent(CALLS), env=worlds.clean_environment(surroundings)).expect(1)
    assert calls.out.startswith("eager [100, 64]") and "compiled" not in calls.out
    assert python_checks(run("verify", "--json").expect(1))[OPERATOR][0] == "failed"


# ---- PyTorch and nvcc of different CUDA versions ---------------------------------------------------------------


@pytest.fixture(scope="module")
def with_cuda(new_venv: MakeVenv, libraries: Path, surroundings: Mapping[str, str | None]) -> Callable[[str], Venv]:
    """``with_cuda(version)``: an environment in which PyTorch, the CPU build, states CUDA 12.6 as its own."""
    made: dict[str, Venv] = {}

    def find(version: str) -> Venv:
        if version not in made:
            venv = new_venv(version, without="torch")
            for entry in libraries.glob("torch-*"):
                (venv.site_packages / entry.name).symlink_to(entry)
            torch = venv.site_packages / "torch"
            torch.mkdir()
            for entry in (libraries / "torch").iterdir():
                (torch / entry.name).symlink_to(entry)
            (torch / "version.py").unlink()
            (torch / "__pycache__").unlink()
            text = (libraries / "torch" / "version.py").read_text()
            stated = text.replace("cuda: Optional[str] = None", "cuda: Optional[str] = '12.6'")
            assert stated != text
            (torch / "version.py").write_text(stated)
            (venv.site_packages / "torchgen").symlink_to(libraries / "torchgen")
            made[version] = compile_modules(venv, surroundings)
        return made[version]

    return find


def make_toolkit(folder: Path, release: str) -> Path:
    """A CUDA toolkit as far as FlashInfer asks: an nvcc that prints its release."""
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
    nvcc.chmod(0o755)
    (nvcc.parent / "which").symlink_to(str(shutil.which("which")))
    return folder


@pytest.mark.parametrize(
    ("version", "by"), [*((version, "CUDA_HOME") for version in RELEASES), ("0.6.3", "PATH")], ids=str
)
def test_a_toolkit_that_would_build_something_else_is_refused_and_nothing_is_applied(
    version: str, by: str, with_cuda: Callable[[str], Venv], on: On, tmp_path: Path
) -> None:
    venv = with_cuda(version)
    toolkit = make_toolkit(tmp_path / "cuda", "13.0")
    found = {"CUDA_HOME": str(toolkit)} if by == "CUDA_HOME" else {"CUDA_HOME": None, "PATH": str(toolkit / "bin")}
    run, pristine = on(venv, env=found), code(venv)
    refused = run("apply", "--json", f"{SET}/{CUDA}").expect(7)
    result, words = python_checks(refused)[CUDA]
    assert result == "failed"
    assert "PyTorch is built for CUDA 12.6 and nvcc is 13.0" in words
    assert "silently leave out" in words and "-DENABLE_FP4" in words
    assert f'deselect = ["{SET}/{CUDA}"]' in words
    assert states(refused) == {CUDA: "pending"}
    assert code(venv) == pristine


def test_a_mismatch_holds_back_the_other_default_too_until_the_patch_is_deselected(
    with_cuda: Callable[[str], Venv], on: On, tmp_path: Path
) -> None:
    venv = with_cuda("0.6.3")
    run, pristine = on(venv, env={"CUDA_HOME": str(make_toolkit(tmp_path / "cuda", "13.0"))}), code(venv)
    assert set(states(run("apply", "--json").expect(7)).values()) == {"pending"}
    assert code(venv) == pristine
    (tmp_path / "pyproject.toml").write_text(f'[tool.patchkit]\ndeselect = ["{SET}/{CUDA}"]\n')
    applied = run("apply", "--json").expect()
    assert states(applied) == {DISABLE: "applied"}
    assert python_checks(applied)[DISABLE][0] == "passed"


@every_release
def test_a_toolkit_that_agrees_or_none_is_accepted(
    version: str, with_cuda: Callable[[str], Venv], on: On, tmp_path: Path
) -> None:
    venv = with_cuda(version)
    agreeing = make_toolkit(tmp_path / "cuda", "12.6")
    for env, words in (({"CUDA_HOME": str(agreeing)}, "nvcc 12.6 build the same"), ({}, "no nvcc here")):
        run = on(venv, env=env)
        result, message = python_checks(run("apply", "--json", f"{SET}/{CUDA}").expect())[CUDA]
        assert result == "passed" and words in message
        run("revert", "--all").expect()
