"""A real image: a Debian root, built by buildah in stages, patched by the zipapp in the step that `snippet` prints.

It needs root, debootstrap and buildah (no engine: chroot isolation, vfs storage), and a mirror of Debian; the Debian
root is made once and kept beside the downloaded wheels. Everything else goes away with the test run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import worlds
from stages import to_toml
from worlds import CHECKOUT, OUTER, Finished

SUITE = "bookworm"
DISTRIBUTION = "flashinfer-python"
VERSION = "0.6.3"
SET = "flashinfer-dynamo"
VENV = "/opt/venv"
PLACE = "/srv/app/venv"  # where the last stage has the environment: another path than the one that built it
SECONDS = 600
WITHOUT = ("var/cache", "var/lib/apt", "usr/share/locale", "usr/share/doc", "usr/share/man")  # half of its size

STACK = f"""
FROM localhost/debian
RUN --mount=type=bind,source=wheels,target=/tmp/wheels \\
    python3 -m venv {VENV} && \\
    {VENV}/bin/python -m pip install --quiet --no-deps --no-compile --no-index --find-links /tmp/wheels \\
        {DISTRIBUTION}=={VERSION}
"""
SITE = "lib/python3.11/site-packages"
USER = "1000:1000"
LAST_STAGE = f"""
FROM localhost/debian
COPY --from=build {VENV} {PLACE}
USER 1000
"""


@dataclass(frozen=True)
class Buildah:
    """Real buildah on a storage of its own, with a build context."""

    folder: Path

    @property
    def context(self) -> Path:
        return self.folder / "context"

    def run(self, *args: str | os.PathLike[str]) -> Finished:
        where = ("--root", self.folder / "storage", "--runroot", self.folder / "run", "--storage-driver", "vfs")
        return worlds.run("buildah", *where, *args, cwd=self.folder, timeout=SECONDS)

    def build(self, name: str, containerfile: str, *, context: Path | None = None) -> Finished:
        """Build the image ``name``; what its steps print is in the output."""
        file = self.folder / f"{name}.containerfile"
        file.write_text(containerfile.lstrip(), "utf-8")
        how = ("--isolation", "chroot", "--format", "docker", "--pull-never", "--layers=false")
        return self.run("build", *how, "--tag", name, "--file", file, context or self.context)

    def start(self, image: str) -> Container:
        """A container of the image: its file system, with nothing running in it."""
        name = self.run("from", "--pull-never", f"localhost/{image}").expect().out.strip()
        return Container(self, name, Path(self.run("mount", name).expect().out.strip()))


@dataclass(frozen=True)
class Container:
    buildah: Buildah
    name: str
    root: Path

    def run(self, *words: str, user: str = "0:0", options: Sequence[str] = ()) -> Finished:
        """Run a program in it."""
        how = ("--isolation", "chroot", "--user", user, *options)
        return self.buildah.run("run", *how, self.name, "--", *words)


def make_debian_root() -> Path:
    """A tar archive of a small Debian with Python, made once by debootstrap; in the cache of the downloads."""
    archive = worlds.cache_folder() / f"debian-{SUITE}-python3-slim.tar"
    if not archive.is_file():
        archive.parent.mkdir(parents=True, exist_ok=True)
        root = archive.with_name(f".debian.{os.getpid()}")
        staged = archive.with_name(f".{archive.name}.{os.getpid()}")
        try:
            words = ("debootstrap", "--variant=minbase", "--include=python3,python3-venv", SUITE, root)
            ended = worlds.run(*words, cwd="/", env=OUTER | {"DPKG_FORCE": "unsafe-io"}, timeout=SECONDS)
            if ended.exit_code:
                pytest.skip(f"debootstrap cannot make a Debian root here: {ended.out.strip().splitlines()[-1:]}")
            for path in WITHOUT:
                shutil.rmtree(root / path)
            worlds.run("tar", "--create", "--file", staged, "--directory", root, ".", cwd="/").expect()
            staged.replace(archive)
        finally:
            shutil.rmtree(root, ignore_errors=True)
            staged.unlink(missing_ok=True)
    return archive


@pytest.fixture(scope="module")
def buildah(
    tmp_path_factory: pytest.TempPathFactory, zipapp: Path, wheel_cache: Callable[..., Path]
) -> Iterator[Buildah]:
    """buildah with the images ``debian`` and ``stack``: a system with Python; FlashInfer in an environment on it."""
    missing = [program for program in ("buildah", "debootstrap") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            f"an image is built by root, with buildah and debootstrap (missing: {', '.join(missing) or 'root'})"
        )
    buildah = Buildah(tmp_path_factory.mktemp("image"))
    (buildah.context / "wheels").mkdir(parents=True)
    shutil.copy(wheel_cache(VERSION), buildah.context / "wheels")
    shutil.copy(zipapp, buildah.context / "patchkit.pyz")
    shutil.copytree(CHECKOUT / "patches", buildah.context / "patches", ignore=shutil.ignore_patterns("__pycache__"))
    archive = make_debian_root()
    try:
        buildah.build("debian", f"FROM scratch\nADD {archive.name} /\n", context=archive.parent).expect()
        buildah.build("stack", STACK).expect()
        yield buildah
    finally:
        shutil.rmtree(buildah.folder, ignore_errors=True)  # pytest would keep it for three more runs


def step(buildah: Buildah, kind: str = "containerfile", *options: str, python: str = VENV) -> str:
    """What `patchkit snippet` prints in the build context."""
    words = (*worlds.patchkit_command(), "snippet", kind, "--python", f"{python}/bin/python", *options)
    return worlds.run(*words, cwd=buildah.context).expect().out


@pytest.fixture(scope="module")
def app(buildah: Buildah) -> Finished:
    """The image ``app`` in stages: patched in one, copied to another path in the last; the log of its build."""
    health = step(buildah, "healthcheck", python=PLACE)
    return buildah.build("app", f"FROM localhost/stack AS build\n{step(buildah)}{LAST_STAGE}{health}").expect()


@pytest.fixture(scope="module")
def container(buildah: Buildah, app: Finished) -> Container:
    """A container of ``app``."""
    return buildah.start("app")


def test_the_build_says_in_its_log_what_was_patched_and_that_it_was_verified(app: Finished) -> None:
    log = app.out + app.err
    assert f"environment {VENV}/{SITE}" in log
    assert re.search(rf"^applied +{SET}/cuda-version-from-torch +{DISTRIBUTION} {VERSION}", log, re.MULTILINE)
    assert "2 declared, 2 applicable, 2 applied, 0 upstreamed" in log and "verified: yes" in log


def test_another_user_verifies_it_in_the_last_stage_at_its_other_path(container: Container) -> None:
    for words in (["verify"], ["status", "--exit-code"]):
        command = (f"{PLACE}/bin/python", "/opt/patchkit.pyz", *words, "--json")
        said = container.run(*command, user=USER).expect().json()
        assert said["environment"]["site_root"] == f"{PLACE}/{SITE}"
        assert [row["state"] for row in said["patches"]] == ["applied", "applied"]


def test_the_health_check_of_the_image_is_the_one_that_snippet_prints(buildah: Buildah, container: Container) -> None:
    image = buildah.run("inspect", "--type", "image", "localhost/app").expect().json()
    kind, *words = image["Docker"]["config"]["Healthcheck"]["Test"]
    assert kind == "CMD"
    container.run(*words, user=USER).expect()
    line = step(buildah, "healthcheck", python=PLACE).splitlines()[-1].lstrip("# ")
    assert container.run("sh", "-c", f"{line}; echo started", user=USER).expect().out == "started\n"


def test_nothing_of_the_build_stays_in_the_image_but_what_was_patched_and_its_state(container: Container) -> None:
    assert not list(container.root.glob("tmp/*"))
    state = container.root / PLACE.lstrip("/") / SITE / ".patchkit"
    assert {path.name for path in state.iterdir()} == {"ledger.json", "lock", "objects"}
    assert not [path for path in state.rglob("*") if not path.stat().st_mode & 0o004]


# ---- builds that must not pass --------------------------------------------------------------------------------


def make_set(folder: Path, **keys: object) -> None:
    """A patch folder with the real diff for FlashInfer in a manifest of our own."""
    target = folder / SET
    shutil.copytree(CHECKOUT / "patches" / SET, target, ignore=shutil.ignore_patterns("__pycache__"))
    variant = {"versions": keys.pop("versions", ">=0.6"), "file": "cuda-version-from-torch.0.4.0.patch"}
    table = {"name": "cuda-version-from-torch", "variant": [variant], **keys}
    manifest = {"schema": 1, "name": SET, "distribution": DISTRIBUTION, "patch": [table]}
    (target / "patchset.toml").write_text(to_toml(manifest), "utf-8")


def test_a_version_out_of_range_fails_the_build_with_4(buildah: Buildah) -> None:
    make_set(buildah.context / "ranges", versions="<0.6")
    said = buildah.build("no", f"FROM localhost/stack\n{step(buildah, 'containerfile', '--patches', 'ranges')}").expect(
        4
    )
    assert f"{DISTRIBUTION} {VERSION}" in said.out + said.err


def test_a_check_that_fails_fails_the_build_with_7(buildah: Buildah) -> None:
    folder = buildah.context / "checked"
    make_set(folder, check=[{"kind": "python", "file": "checks/no.py"}])
    (folder / SET / "checks" / "no.py").write_text("raise SystemExit('the driver is too old')\n", "utf-8")
    said = buildah.build(
        "no", f"FROM localhost/stack\n{step(buildah, 'containerfile', '--patches', 'checked')}"
    ).expect(7)
    assert "the driver is too old" in said.out + said.err


def test_a_folder_that_is_missing_fails_the_build_with_3(buildah: Buildah) -> None:
    words = step(buildah)
    without = "".join(line for line in words.splitlines(True) if "source=patches" not in line)
    assert without != words
    said = buildah.build("no", f"FROM localhost/stack\n{without}").expect(3)
    assert "is it copied into this layer?" in said.out + said.err


# ---- overlays, as container engines mount them ------------------------------------------------------------------


@pytest.fixture(scope="module")
def below(buildah: Buildah) -> Path:
    """The file system of ``stack``, as the lower layer of overlays."""
    return buildah.start("stack").root


def on_overlay(buildah: Buildah, below: Path, folder: Path, *commands: str) -> Finished:
    """Shell commands on an overlay as an engine mounts it, at ``$root``; what they change lands in ``folder/upper``."""
    for name in ("upper", "work", "root"):
        (folder / name).mkdir(parents=True)
    layers = f"lowerdir={below},upperdir={folder}/upper,workdir={folder}/work"
    script = [
        f"root={folder}/root; patchkit='{VENV}/bin/python /mnt/patchkit.pyz'",
        f"mount -t overlay overlay -o {layers} $root || exit 77",
        f"mount --bind {shlex.quote(str(buildah.context))} $root/mnt",
        *commands,
    ]
    ended = worlds.run("unshare", "--mount", "sh", "-c", "\n".join(script), cwd=folder)
    if ended.exit_code == 77:
        pytest.skip(f"no overlay can be mounted here: {ended.err.strip()}")
    return ended.expect()


APPLY = "chroot $root $patchkit post-install --patches /mnt/patches || exit 1"


def test_two_builds_on_overlays_write_the_same_layer_and_nothing_else(
    buildah: Buildah, below: Path, tmp_path: Path
) -> None:
    """In content, modes and names; the times are the build tool's affair."""
    layers = []
    for name in ("first", "second"):
        on_overlay(buildah, below, tmp_path / name, APPLY)
        layers.append(worlds.tree(tmp_path / name / "upper"))
    assert layers[0] == layers[1]
    site = f"{VENV}/{SITE}".lstrip("/")
    files = {path.removeprefix(f"{site}/") for path, entry in layers[0].items() if entry.kind == "file"}
    assert {path for path in files if not path.startswith(".patchkit/objects/")} == {
        *(".patchkit/ledger.json", ".patchkit/lock"),
        *("flashinfer/fp4_quantization.py", "flashinfer/jit/cpp_ext.py"),
    }


def test_where_the_root_is_read_only_another_user_runs_it_again_verifies_and_asks(
    buildah: Buildah, below: Path, tmp_path: Path
) -> None:
    said = on_overlay(
        buildah,
        below,
        tmp_path / "overlay",
        APPLY,
        "mount -o remount,ro $root || exit 77",
        f"! chroot $root touch {VENV}/probe 2>/dev/null || exit 2",
        "as_user='chroot --userspec=1000:1000'",
        "$as_user $root $patchkit post-install --patches /mnt/patches || exit 3",
        "$as_user $root $patchkit verify --patches /mnt/patches || exit 4",
        "$as_user $root $patchkit status --exit-code --patches /mnt/patches --json || exit 5",
    )
    assert "already applied" in said.out and json.loads(said.out[said.out.index("{") :])["ok"]
