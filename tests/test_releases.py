"""Releases and their wheels: where they are looked for, what is fetched of them, and what is refused."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from patchkit.archives import Archive, group_releases, pick_release, pick_wheel
from patchkit.errors import IndexUnreachable, MissingExtra, NoRelease, NoWheel, UsageError, WrongWheel
from patchkit.indexes import DEFAULT_INDEX, Indexes, read_indexes
from patchkit.pristine import open_pristine
from patchkit.releases import find_wheel, list_releases
from patchkit.remote import Index, open_index
from servers import LocalIndex, serving
from stages import LINES, MOD, SHIPPED, sample_wheel
from worlds import make_wheel

BIG = 100 << 20


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    for version in ("1.0", "1.1rc1", "1.1"):
        sample_wheel(tmp_path / "wheels", version)
    return tmp_path / "wheels"


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """A folder with a wheel of 100 MB, most of it one binary file."""
    wheel = sample_wheel(tmp_path / "big")
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("some_dist/kernels.bin", bytes(BIG))
    return wheel.parent


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [*os.environ]:
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def index_of(local: LocalIndex, cache: Path) -> Index:
    return Index(Indexes(urls=(local.url,)), str(cache))


# ---- configuration --------------------------------------------------------------------------------------------


def test_the_default_index_is_pypi() -> None:
    assert read_indexes({"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}, "/").urls == (DEFAULT_INDEX,)


@pytest.mark.parametrize(
    ("variables", "urls"),
    [
        ({"PIP_INDEX_URL": "https://pip/simple"}, ("https://pip/simple",)),
        ({"UV_INDEX_URL": "https://uv/simple"}, ("https://uv/simple",)),
        ({"UV_DEFAULT_INDEX": "own=https://uv/simple"}, ("https://uv/simple",)),
        ({"PIP_INDEX_URL": "https://pip/", "UV_DEFAULT_INDEX": "https://uv/"}, ("https://pip/",)),
        ({"UV_INDEX": "a=https://a/ https://b/?c=d"}, (DEFAULT_INDEX, "https://a/", "https://b/?c=d")),
        ({"PIP_EXTRA_INDEX_URL": "https://a/\nhttps://b/"}, (DEFAULT_INDEX, "https://a/", "https://b/")),
        ({"PIP_NO_INDEX": "1", "PIP_INDEX_URL": "https://pip/"}, ()),
    ],
)
def test_variables_of_pip_and_uv_name_the_index(variables: dict[str, str], urls: tuple[str, ...]) -> None:
    assert read_indexes({"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", **variables}, "/").urls == urls


def test_files_of_pip_are_read_as_pip_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://one/\nextra-index-url =\n    https://two/\n    https://three/\n"
        "find-links = /wheels\ntrusted-host = one\ncert = /ca.pem\n[download]\nindex-url = https://four/\n"
    )
    found = read_indexes({"PIP_CONFIG_FILE": str(file), "HOME": str(tmp_path), "UV_NO_CONFIG": "1"}, "/")
    assert found.urls[0] == "https://four/" and {"https://two/", "https://three/"} <= set(found.urls)
    assert "/wheels" in found.find_links and "one" in found.trusted_hosts and found.certificates == "/ca.pem"


def test_files_of_uv_are_read_from_the_project_and_the_user(tmp_path: Path) -> None:
    project, home = tmp_path / "project" / "below", tmp_path / "home"
    project.mkdir(parents=True)
    (home / ".config" / "uv").mkdir(parents=True)
    (project.parent / "pyproject.toml").write_text(
        "[[tool.uv.index]]\nname = 'own'\nurl = 'https://own/'\ndefault = true\n"
        "[[tool.uv.index]]\nurl = 'https://more/'\n"
        "[[tool.uv.index]]\nurl = 'https://pinned/'\nexplicit = true\n"
    )
    (home / ".config" / "uv" / "uv.toml").write_text("index-url = 'https://user/'\nfind-links = ['wheels']\n")
    found = read_indexes({"PIP_CONFIG_FILE": os.devnull, "HOME": str(home)}, str(project))
    assert found.urls == ("https://own/", "https://more/")
    assert found.find_links == (str(home / ".config" / "uv" / "wheels"),)


def test_broken_configuration_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.uv\n")
    (tmp_path / "pip.conf").write_text("index-url = outside\n\0")
    found = read_indexes({"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "HOME": "/none"}, str(tmp_path))
    assert DEFAULT_INDEX in found.urls


# ---- releases -------------------------------------------------------------------------------------------------


def archives(*files: str) -> list[Archive]:
    return [Archive(file.split("-")[1].removesuffix(".tar.gz"), file, f"/wheels/{file}") for file in files]


def test_releases_come_in_the_order_of_their_versions() -> None:
    files = [f"some_dist-{version}-py3-none-any.whl" for version in ("1.10", "1.9", "1.9rc1", "1.9.post1", "1!0.1")]
    found = group_releases("some-dist", archives(*files))
    assert [release.version for release in found] == ["1.9rc1", "1.9", "1.9.post1", "1.10", "1!0.1"]


def test_one_wheel_of_a_release_is_read_whatever_the_machine() -> None:
    stem = "some_dist-1.0-cp311-cp311"
    order = [f"{stem}-manylinux_2_17_x86_64.whl", f"{stem}-manylinux_2_17_aarch64.whl", f"{stem}-macosx_11_0_arm64.whl"]
    for files in (order, order[::-1]):
        [release] = group_releases("some-dist", archives(*files))
        assert [wheel.file for wheel in release.wheels] == order
    [release] = group_releases("some-dist", archives(*order, "some_dist-1.0-py3-none-any.whl"))
    assert pick_wheel(release).file == "some_dist-1.0-py3-none-any.whl"
    assert pick_wheel(release, frozenset({"cp311-cp311-macosx_11_0_arm64"})).file == order[2]
    with pytest.raises(NoWheel, match="no wheel of some-dist==1.0 is for cp312-cp312-win32"):
        pick_wheel(release, frozenset({"cp312-cp312-win32"}))


def test_a_source_distribution_is_no_wheel_and_that_is_said() -> None:
    [release] = group_releases("some-dist", archives("some_dist-1.0.tar.gz"))
    with pytest.raises(NoWheel, match="source distribution only") as caught:
        pick_wheel(release)
    assert "pip wheel --no-deps some-dist==1.0" in caught.value.hint


def test_a_folder_answers_without_an_index(wheels: Path, tmp_path: Path) -> None:
    (wheels / "some_dist-0.9.tar.gz").write_bytes(b"")
    (wheels / "other-1.0-py3-none-any.whl").write_bytes(b"")
    (wheels / "not-a-wheel.whl").write_bytes(b"")
    nowhere = Index(Indexes(urls=()), str(tmp_path))
    found = list_releases("some-dist", [str(wheels)], nowhere)
    assert [(release.version, len(release.wheels)) for release in found] == [
        ("0.9", 0),
        ("1.0", 1),
        ("1.1rc1", 1),
        ("1.1", 1),
    ]
    assert find_wheel("some-dist", "1.0.0", find_links=[str(wheels)]) == wheels / "some_dist-1.0-py3-none-any.whl"
    with pytest.raises(NoRelease, match="there is no some-dist 1.2") as caught:
        find_wheel("some-dist", "1.2", find_links=[str(wheels)])
    assert "1.1" in caught.value.hint
    with pytest.raises(NoRelease, match="there is no release of absent in"):
        list_releases("absent", [str(wheels)], nowhere)
    with pytest.raises(NoRelease, match="cannot be listed"):
        list_releases("some-dist", [str(tmp_path / "absent")], nowhere)
    with pytest.raises(UsageError, match="is no version"):
        pick_release(found, "some-dist", "new")


# ---- the index ------------------------------------------------------------------------------------------------


@pytest.fixture
def serve() -> Iterator[Callable[..., LocalIndex]]:
    """``serve(folder, ranges=True, ...)``: an index of the wheels in a folder."""
    running = []

    def start(folder: Path, **how: object) -> LocalIndex:
        running.append(serving(LocalIndex(folder, **how)))  # type: ignore[arg-type]
        return running[-1].__enter__()

    yield start
    for each in running:
        each.__exit__(None, None, None)


def test_yanked_and_pre_releases_are_listed_and_marked(wheels: Path, serve: Callable[..., LocalIndex]) -> None:
    local = serve(wheels, yanked=frozenset({"some_dist-1.0-py3-none-any.whl"}))
    with closing(index_of(local, wheels.parent / "cache")) as index:
        found = list_releases("some-dist", (), index)
    assert [(release.version, release.yanked) for release in found] == [
        ("1.0", True),
        ("1.1rc1", False),
        ("1.1", False),
    ]
    assert {len(release.wheels[0].digests) for release in found} == {1}


def test_a_wheel_is_downloaded_once_by_the_users_configuration(
    wheels: Path, serve: Callable[..., LocalIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    local = serve(wheels)
    monkeypatch.setenv("PIP_INDEX_URL", local.url)
    paths = [find_wheel("some-dist", "1.1") for _ in range(2)]
    assert paths[0] == paths[1] and local.sent.requests == ["whole"]
    assert paths[0].read_bytes() == (wheels / paths[0].name).read_bytes()
    assert str(paths[0]).startswith(os.environ["XDG_CACHE_HOME"])


def test_a_wheel_that_is_not_what_the_index_says_is_not_kept(
    wheels: Path, serve: Callable[..., LocalIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = serve(wheels, lies=frozenset({"some_dist-1.1-py3-none-any.whl"}))
    monkeypatch.setenv("UV_INDEX_URL", local.url)
    with pytest.raises(WrongWheel, match="its sha256 is .*, and the index says 000"):
        find_wheel("some-dist", "1.1", cache=str(tmp_path / "own"))
    assert not [path for path in (tmp_path / "own").rglob("*") if path.is_file()]


def test_an_index_that_does_not_answer_is_told_from_one_that_has_nothing(
    wheels: Path, serve: Callable[..., LocalIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", serve(wheels).url)
    with pytest.raises(NoRelease, match="there is no release of absent at http://127.0.0.1"):
        find_wheel("absent", "1.0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple/")
    with pytest.raises(IndexUnreachable, match="cannot be reached") as caught:
        find_wheel("some-dist", "1.0")
    assert "secret" not in caught.value.message


def test_without_the_extra_the_index_is_out_of_reach_and_the_error_says_how_to_get_it(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "unearth"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "unearth", None)
    with pytest.raises(MissingExtra) as caught:
        find_wheel("some-dist", "1.0")
    assert "pip install 'site-patchkit[authoring]'" in caught.value.hint
    assert "in a checkout of patchkit `pip install '.[authoring]'`" in caught.value.hint
    assert find_wheel("some-dist", "1.0", find_links=[str(wheels)]).is_file()


# ---- parts of wheels ------------------------------------------------------------------------------------------


def read_two_files(local: LocalIndex, cache: Path) -> dict[str, bytes]:
    with closing(index_of(local, cache)) as index:
        [release] = list_releases("some-dist", (), index)
        with open_pristine(index, release.wheels[0], "some-dist") as pristine:
            pristine.supply([MOD, "some_dist/tool.py", "some_dist/absent.py"])
            root = Path(pristine.root)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_two_files_of_a_wheel_of_100_mb_cost_no_100_mb(
    big: Path, serve: Callable[..., LocalIndex], tmp_path: Path
) -> None:
    local = serve(big)
    files = read_two_files(local, tmp_path / "cache")
    assert files[MOD] == b"".join(LINES) and files["some_dist/tool.py"] == SHIPPED["some_dist/tool.py"]
    assert set(files) == {MOD, "some_dist/tool.py", "some_dist-1.2.3.dist-info/RECORD"}
    assert local.sent.bytes < 100_000 and "whole" not in local.sent.requests
    before = local.sent.bytes
    assert read_two_files(local, tmp_path / "cache") == files
    assert local.sent.bytes == before  # all of it is in the cache


@pytest.mark.parametrize("how", [{"ranges": False}, {"suffixes": False}], ids=str)
def test_without_range_requests_the_wheel_is_fetched_once_as_a_whole(
    how: dict[str, bool], wheels: Path, serve: Callable[..., LocalIndex], tmp_path: Path
) -> None:
    (one,) = (path for path in wheels.iterdir() if "1.1rc1" in path.name)
    alone = tmp_path / "alone"
    alone.mkdir()
    one.rename(alone / one.name)
    local = serve(alone, **how)
    assert read_two_files(local, tmp_path / "cache")[MOD] == b"".join(LINES)
    again = read_two_files(local, tmp_path / "cache")
    assert again[MOD] == b"".join(LINES) and local.sent.requests.count("whole") <= 2
    assert (tmp_path / "cache" / "wheels").is_dir()


def test_a_server_that_fails_once_is_asked_again(
    wheels: Path, serve: Callable[..., LocalIndex], tmp_path: Path
) -> None:
    for name in ("some_dist-1.0-py3-none-any.whl", "some_dist-1.1-py3-none-any.whl"):
        (wheels / name).unlink()
    local = serve(wheels, failures=1)
    assert read_two_files(local, tmp_path / "cache")[MOD] == b"".join(LINES)
    local.failures = 99
    with pytest.raises(IndexUnreachable, match="the server answers 503"):
        read_two_files(local, tmp_path / "other")


def test_a_file_that_is_not_as_record_says_is_refused(tmp_path: Path, serve: Callable[..., LocalIndex]) -> None:
    wheel = sample_wheel(tmp_path / "wheels")
    data = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content + b"# edited\n" if name == MOD else content)
    assert wheel.read_bytes() != data
    with pytest.raises(WrongWheel, match=f"{MOD} is not what its RECORD says"):
        read_two_files(serve(wheel.parent), tmp_path / "cache")


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "cannot be read"), (b"PK\5\6" + bytes(18), "has no RECORD"), (b"no zip file", "cannot be read")],
)
def test_what_is_no_wheel_is_refused(data: bytes, why: str, tmp_path: Path, serve: Callable[..., LocalIndex]) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "some_dist-1.0-py3-none-any.whl").write_bytes(data)
    with pytest.raises((WrongWheel, IndexUnreachable), match=why):
        read_two_files(serve(tmp_path / "wheels"), tmp_path / "cache")


def test_a_record_that_leads_out_of_the_site_root_writes_nothing_there(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "some-dist", "1.0", {"../../../escaped.py": b"", "some_dist/a.py": b""})
    with open_index(str(tmp_path / "cache")) as index:
        [release] = list_releases("some-dist", [str(wheel.parent)], index)
        with (
            open_pristine(index, release.wheels[0], "some-dist") as pristine,
            pytest.raises(WrongWheel, match="leaves"),
        ):
            pristine.supply(["../../../escaped.py"])
    assert not list(tmp_path.rglob("escaped.py"))


def test_files_of_purelib_lie_where_an_installer_puts_them(tmp_path: Path) -> None:
    files = {"some_dist-1.0.data/purelib/some_dist/a.py": b"a = 1\n", "some_dist-1.0.data/scripts/run": b"#!python\n"}
    wheel = make_wheel(tmp_path / "wheels", "some-dist", "1.0", files, modes={next(iter(files)): 0o755})
    with open_index(str(tmp_path / "cache")) as index:
        [release] = list_releases("some-dist", [str(wheel.parent)], index)
        with open_pristine(index, release.wheels[0], "some-dist") as pristine:
            content = pristine.read("some_dist/a.py")
            assert content is not None and (content.data, content.mode) == (b"a = 1\n", 0o755)
            assert not any("scripts" in path for path in pristine.rows)


def test_a_wheel_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    for data in (b"a = 1\n", b"a = 22\n"):
        wheel = make_wheel(tmp_path / "wheels", "some-dist", "1.0", {"some_dist/a.py": data})
        with open_index(str(tmp_path / "cache")) as index:
            [release] = list_releases("some-dist", [str(wheel.parent)], index)
            with open_pristine(index, release.wheels[0], "some-dist") as pristine:
                content = pristine.read("some_dist/a.py")
                assert content is not None and content.data == data
