"""Real things for tests: wheels, environments, trees, processes. The fixtures in conftest bind them to a test."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Any, Literal, NamedTuple, Protocol

CHECKOUT = Path(__file__).resolve().parent.parent
OUTER = dict(os.environ)  # as it was before the guard of conftest: only downloads may use it
LinkMode = Literal["clone", "copy", "hardlink", "symlink"]

# Variables that would change what a child process does, and that a developer's shell may hold.
_LEAKS = re.compile(
    r"PATCHKIT_|PYTHON|PIP_|UV_|CONDA_|GIT_|PYTEST_|VIRTUAL_ENV|_OLD_VIRTUAL|NO_COLOR$|FORCE_COLOR$|CLICOLOR|COLUMNS$|LINES$"
    r"|LC_|LANG|POSIXLY_CORRECT$|SOURCE_DATE_EPOCH$|SIMPLE_BACKUP_SUFFIX$|VERSION_CONTROL$|PATCH_"
)


# ---- processes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finished:
    """A process that has ended, with all that it said."""

    args: tuple[str, ...]
    exit_code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as one JSON document; anything else on it is an error."""
        return json.loads(self.out)

    def expect(self, exit_code: int = 0) -> Finished:
        """Itself, where it ended with ``exit_code``; else an AssertionError that shows what it said."""
        said = f"\n{' '.join(self.args)}: exit {self.exit_code}, not {exit_code}\n{self.out}\n{self.err}"
        assert self.exit_code == exit_code, said
        return self


def clean_environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The variables for a child process: none that would lead it elsewhere, then ``changes`` (None: unset)."""
    values = {name: value for name, value in os.environ.items() if not _LEAKS.match(name)}
    values |= {"LC_ALL": "C.UTF-8"}
    for name, value in (changes or {}).items():
        values.pop(name, None)
        if value is not None:
            values[name] = value
    return values


def run(
    *args: str | os.PathLike[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,
    timeout: float = 120,
) -> Finished:
    """Run a program to its end. ``env`` is its whole environment; `clean_environment` where none is given."""
    words = tuple(os.fspath(arg) for arg in args)
    given = input.encode() if isinstance(input, str) else input
    ended = subprocess.run(
        words,
        cwd=cwd,
        env=clean_environment() if env is None else dict(env),
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Finished(
        words, ended.returncode, *(s.decode("utf-8", "backslashreplace") for s in (ended.stdout, ended.stderr))
    )


def patchkit_command(python: str | os.PathLike[str] = sys.executable) -> tuple[str, ...]:
    """The words that start patchkit in the interpreter ``python``.

    Where it is not installed there it is run from the checkout, and not by way of PYTHONPATH: the interpreters that
    patchkit starts would inherit that, and take the checkout for a site root.
    """
    if os.fspath(python) != sys.executable or _is_installed():
        return (os.fspath(python), "-m", "patchkit")
    path = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})"
    return (sys.executable, "-c", f"{path}; import runpy; runpy.run_module('patchkit', run_name='__main__')")


def _is_installed() -> bool:
    try:
        return bool(metadata.version("site-patchkit"))
    except metadata.PackageNotFoundError:
        return False


def git(*args: str | os.PathLike[str], cwd: str | os.PathLike[str], input: str | bytes | None = None) -> Finished:
    """Run the real git, with no configuration but this."""
    person = {f"GIT_{who}_{what}": "tests" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    config = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CEILING_DIRECTORIES": str(Path(cwd).parent),
    }
    return run("git", *args, cwd=cwd, env=clean_environment(person | config), input=input)


# ---- trees ----------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """What stands at a path: its kind, its permission bits, and sha256 (a file) or target (a link); "" for a folder."""

    kind: Literal["file", "directory", "link", "other"]
    mode: int
    content: str


def tree(root: str | os.PathLike[str]) -> dict[str, Entry]:
    """Everything below ``root`` by POSIX path relative to it. Links are not followed; their mode is 0."""
    found: dict[str, Entry] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = _entry(path)
    return dict(sorted(found.items()))


def _entry(path: Path) -> Entry:
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Entry("link", 0, os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return Entry("directory", mode, "")
    if stat.S_ISREG(status.st_mode):
        return Entry("file", mode, hashlib.sha256(path.read_bytes()).hexdigest())
    return Entry("other", mode, "")


def without_bytecode(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """``entries`` without compiled files and the folders that hold them."""
    return {
        path: entry
        for path, entry in entries.items()
        if "__pycache__" not in path.split("/") and not path.endswith((".pyc", ".pyo"))
    }


# ---- wheels ---------------------------------------------------------------------------------------------------


def make_wheel(
    folder: str | os.PathLike[str],
    name: str,
    version: str,
    files: Mapping[str, bytes | str],
    *,
    modes: Mapping[str, int] | None = None,
    requires: Sequence[str] = (),
) -> Path:
    """Write a wheel that pip and uv install, and return its path.

    ``files`` are by path in the wheel (so ``NAME-VERSION.dist-info/entry_points.txt`` and ``NAME-VERSION.data/...``
    work as well), text as UTF-8; ``modes`` are permission bits, 0o644 where absent; ``requires`` are PEP 508 lines.
    """
    stem = f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}"
    info = f"{stem}.dist-info"
    described = "".join(f"Requires-Dist: {line}\n" for line in requires)
    members = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{described}".encode()
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD")
    wheel = Path(folder, f"{stem}-py3-none-any.whl")
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in members.items():
            member = zipfile.ZipInfo(path, (2020, 2, 2, 2, 2, 2))
            member.external_attr = (stat.S_IFREG | (modes or {}).get(path, 0o644)) << 16
            archive.writestr(member, data)
    return wheel


def _record(members: Mapping[str, bytes], path: str) -> bytes:
    rows = [f"{_quoted(member)},{record_digest(data)},{len(data)}" for member, data in members.items()]
    return "".join(f"{row}\n" for row in (*rows, f"{path},,")).encode()


def _quoted(path: str) -> str:
    return '"' + path.replace('"', '""') + '"' if set(path) & set(',"') else path


def record_digest(data: bytes) -> str:
    """The digest field of a row of RECORD, as wheels have it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def cache_folder() -> Path:
    """Where downloads are kept from one run to the next: ``patchkit-tests`` in XDG_CACHE_HOME or ~/.cache."""
    home = Path(OUTER.get("HOME", "~"), ".cache").expanduser()
    return Path(OUTER.get("XDG_CACHE_HOME") or home, "patchkit-tests")


def find_wheel(distribution: str, version: str, *, built: bool = False) -> Path:
    """The wheel of a release from the index: from ``PATCHKIT_WHEELS``, or the cache, or downloaded into the cache once.

    A wheel appears in the cache whole or not at all, so test runs may share it. ``built``: the index has the source
    distribution only, and pip builds the wheel from it.
    """
    pattern = f"{re.sub(r'[-_.]+', '_', distribution).lower()}-{version}-*.whl"
    folders = [Path(folder) for folder in (OUTER.get("PATCHKIT_WHEELS"),) if folder]
    found = [wheel for folder in (*folders, cache_folder()) for wheel in sorted(folder.glob(pattern))]
    return found[0] if found else _download(distribution, version, cache_folder(), built=built)


def _download(distribution: str, version: str, cache: Path, *, built: bool) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(prefix=".download-", dir=cache))
    download = ("download", "--only-binary", ":all:", "--dest", folder)
    build = ("wheel", "--no-binary", distribution, "--wheel-dir", folder)
    options = (*(build if built else download), "--no-deps", "--disable-pip-version-check", "--no-input")
    try:
        pip = (sys.executable, "-m", "pip")
        ended = run(*pip, *options, f"{distribution}=={version}", cwd=folder, env=OUTER, timeout=600)
        assert ended.exit_code == 0, (
            f"{distribution} {version} cannot be downloaded; a folder that has the wheel can be named by "
            f"PATCHKIT_WHEELS\n{ended.out}{ended.err}"
        )
        [wheel] = folder.glob("*.whl")
        return wheel.replace(cache / wheel.name)
    finally:
        shutil.rmtree(folder)


def build_zipapp(path: Path, variables: Mapping[str, str] | None = None) -> Path:
    """Build patchkit.pyz from the checkout; its dependencies come from the index. ``variables`` are set beside ours."""
    program = CHECKOUT / "tools" / "build_zipapp.py"
    run(sys.executable, "-B", program, path, cwd=path.parent, env=OUTER | (variables or {}), timeout=600).expect()
    return path


# ---- environments ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Venv:
    """A real virtual environment."""

    root: Path
    python: Path
    site_packages: Path

    def run(
        self, *args: str, cwd: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> Finished:
        """Run its interpreter with ``args``."""
        return run(self.python, *args, cwd=cwd or self.root, env=env)


def make_venv(
    path: str | os.PathLike[str],
    *,
    with_pip: bool = True,
    system_site_packages: bool = False,
    python: str | os.PathLike[str] = sys.executable,
) -> Venv:
    """Make a virtual environment at ``path``; without pip it is faster, and `pip_install` works as well."""
    options = ["--without-pip"] * (not with_pip) + ["--system-site-packages"] * system_site_packages
    root = Path(path).absolute()
    root.parent.mkdir(parents=True, exist_ok=True)
    run(python, "-m", "venv", *options, root, cwd=root.parent).expect()
    own = root / "bin" / "python"
    purelib = run(own, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=root).expect()
    return Venv(root, own, Path(purelib.out.strip()))


def pip(venv: Venv, *args: str | os.PathLike[str]) -> Finished:
    """Run the tests' pip on ``venv``; it must end well."""
    words = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
    return run(*words, "--python", venv.python, *args, cwd=venv.root, timeout=300).expect()


def pip_install(venv: Venv, *args: str | os.PathLike[str]) -> Finished:
    """Install wheels into ``venv`` with pip: no index, no dependencies. ``args`` may hold options of pip install."""
    return pip(venv, "install", "--no-index", "--no-deps", *args)


def pip_uninstall(venv: Venv, *names: str) -> Finished:
    """Uninstall distributions from ``venv`` with pip."""
    return pip(venv, "uninstall", "--yes", *names)


def unpack_site(path: str | os.PathLike[str], *wheels: Path) -> Path:
    """Make a site root at ``path`` as ``pip install --target`` does, without compiled files, and return it."""
    words = (
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--quiet",
    )
    root = Path(path)
    run(sys.executable, "-m", "pip", *words, "--target", root, *wheels, cwd=root.parent, timeout=300).expect()
    return root


def unpack_code(site: Path, wheel: Path) -> Path:
    """A site root at ``site`` with the Python code and the dist-info folder of FlashInfer's wheel, no CUDA sources."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            parts = PurePosixPath(name).parts
            is_code = name.endswith(".py") and parts[:2] != ("flashinfer", "data")
            if is_code or parts[0].endswith(".dist-info"):
                archive.extract(name, site)
    return site


# ---- types of the fixtures of conftest that are called ---------------------------------------------------------


class UvInstall(Protocol):
    def __call__(self, venv: Venv, *args: str | os.PathLike[str], link_mode: LinkMode = "hardlink") -> Finished: ...


class RunPatchkit(Protocol):
    def __call__(
        self,
        *args: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | None] | None = None,
        input: str | bytes | None = None,
        python: str | os.PathLike[str] = sys.executable,
        timeout: float = 120,
    ) -> Finished: ...
