"""How patches fare on releases that are not installed: every word of the table, and real releases against git apply."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patchkit.coverage import cover
from patchkit.fits import Fit
from patchkit.releases import ReleaseSource
from patchkit.releases import find_wheel as find_release
from patchkit.scene import Options
from servers import LocalIndex, serving
from shelves import MATHS, Shelf, maths
from stages import make_diff, patch, put
from test_docs import COMMANDS, JSON, key_paths, read_first_words
from test_docs import _without_parents as without_parents
from worlds import CHECKOUT, OUTER, Finished, find_wheel

MIDDLE = make_diff({MATHS: maths()}, {MATHS: maths(two="22")})


@pytest.fixture
def shelf(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Shelf(tmp_path, capfd.readouterr)


# ---- every word -----------------------------------------------------------------------------------------------


def test_every_word_of_the_table(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(head="import os\n")})
    shelf.release("1.2", {MATHS: maths(two="20")})
    shelf.release("1.3", {MATHS: maths(two="22")})
    shelf.release("1.4", {MATHS: b"from some_dist.sums import second\n", "some_dist/sums.py": maths()})
    shelf.release("2.0", {MATHS: maths()})
    shelf.release("3.0", {MATHS: maths()})
    put(shelf.wheels / "some_dist-1.5.tar.gz", b"")
    rule = {"versions": ">=3", "why": "another way now"}
    shelf.add("fix", patch("middle", MIDDLE, versions=">=1,<2", not_needed=[rule]))
    document = shelf.json("coverage", "fix", exit_code=1)
    cells = {release["version"]: release["patches"][0] for release in document["releases"]}
    assert {version: cell["result"] for version, cell in cells.items()} == {
        "1.0": "fits",
        "1.1": "offset",
        "1.2": "conflict",
        "1.3": "upstreamed",
        "1.4": "moved",
        "1.5": "no-wheel",
        "2.0": "no-variant",
        "3.0": "not-needed",
    }
    assert {word.value for word in Fit} == {cell["result"] for cell in cells.values()}
    assert cells["1.4"]["moved"] == [{"path": MATHS, "to": "some_dist/sums.py"}]
    assert (cells["2.0"]["would"], cells["2.0"]["variant"]) == ("fits", "middle.patch")
    assert [version for version, cell in cells.items() if not cell["ok"]] == ["1.2", "1.4"]
    assert [version for version, cell in cells.items() if not cell["in_range"]] == ["1.5", "2.0"]
    assert document["releases"][0]["wheel"] == "some_dist-1.0-py3-none-any.whl"


def test_what_upstream_changed_and_deleted_as_the_patch_does_has_not_moved(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    first, rest = maths().split(b"\n\n\n", 1)
    with_change = rest.replace(b"return 3", b"return 33")
    shelf.release("1.1", {MATHS: with_change, "some_dist/old.py": first + b"\n"})
    shelf.add("fix", patch("both", make_diff({MATHS: maths()}, {MATHS: with_change})))
    document = shelf.json("coverage", "fix", exit_code=1)
    cells = {release["version"]: release["patches"][0] for release in document["releases"]}
    assert {version: cell["result"] for version, cell in cells.items()} == {
        "1.0": "fits",
        "1.1": "conflict",
    }
    assert "1 of 2 hunks are upstream, 1 only deletes lines that are gone" in cells["1.1"]["message"]


def test_a_change_that_is_there_more_than_once_is_told_as_what_upstream_may_have(shelf: Shelf) -> None:
    block = "value = 1\nvalue = 2\nvalue = 3\n"
    old = f"a = 1\n{block}b = 1\n".encode()
    shelf.release("1.0", {MATHS: old})
    shelf.release("1.1", {MATHS: 2 * old.replace(b"2", b"22")})
    shelf.add("fix", patch("twice", make_diff({MATHS: old}, {MATHS: old.replace(b"2", b"22")})))
    document = shelf.json("coverage", "fix", exit_code=1)
    cells = {release["version"]: release["patches"][0] for release in document["releases"]}
    assert cells["1.1"]["result"] == "conflict"
    assert "perhaps upstream has it, or the diff is the wrong way round" in cells["1.1"]["message"]


def test_of_diffs_that_fare_alike_that_for_the_nearest_release_is_told_as_rebase_takes_it(shelf: Shelf) -> None:
    two = {"1.0": "20", "1.1": "21", "1.2": "2", "1.3": "23", "1.4": "24"}
    for version, value in two.items():
        shelf.release(version, {MATHS: maths(two=value)})
    diffs = {
        f"{version}.patch": make_diff({MATHS: maths(two=two[version])}, {MATHS: maths(two="7")}) for version in two
    }
    variants = [{"versions": f"=={version}", "file": f"{version}.patch"} for version in ("1.4", "1.0", "1.1", "1.3")]
    shelf.add("fix", patch("middle", MIDDLE, variant=variants) | {"FILES": diffs})
    cell = shelf.json("coverage", "fix", "--versions", "==1.2")["releases"][0]["patches"][0]
    assert (cell["would"], cell["variant"]) == ("conflict", "1.1.patch")
    row = shelf.json("rebase", "fix", "--to", "1.2", "--dry-run", exit_code=5)["patches"][0]
    assert row["base"] == "1.1"


def test_a_release_that_no_range_holds_is_no_failure_and_says_what_would_be(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(head="import os\n")})
    shelf.release("1.2", {MATHS: maths(two="20")})
    shelf.release("1.3", {MATHS: maths(two="22")})
    shelf.release("1.4", {"some_dist/other/maths.py": maths(one="11")})
    shelf.add("fix", patch("middle", MIDDLE, versions="==1.0"))
    document = shelf.json("coverage", "fix")
    cells = {release["version"]: release["patches"][0] for release in document["releases"]}
    assert {version: cell["would"] for version, cell in cells.items()} == {
        "1.0": None,
        "1.1": "offset",
        "1.2": "conflict",
        "1.3": "upstreamed",
        "1.4": "moved",
    }
    assert cells["1.4"]["moved"] == [{"path": MATHS, "to": "some_dist/other/maths.py"}]


def test_every_key_of_the_document_is_documented(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {"some_dist/other/maths.py": maths()})
    check = {"kind": "symbol", "module": "some_dist.maths", "symbol": "second", "has": ["22"]}
    shelf.add("fix", patch("middle", MIDDLE, check=[check]))
    document = shelf.json("coverage", "fix", exit_code=1)
    for release in document["releases"]:
        for cell in release["patches"]:
            cell["files"], cell["checks"] = [], []  # as in `check`
    shared = {"schema", "command", "ok", "exit_code", "warnings[]"}
    assert without_parents(key_paths(document)) == shared | set(read_first_words(JSON["`coverage`"]))


def test_the_words_in_the_table_of_results_are_those_of_the_program() -> None:
    words = [word for word in read_first_words(COMMANDS["`coverage`"]) if not word.startswith("--")]
    assert words == [fit.value for fit in Fit]


def test_the_text_has_a_line_for_releases_that_are_alike_and_names_the_next_command(shelf: Shelf) -> None:
    for number in range(3):
        shelf.release(f"1.{number}", {MATHS: maths(head=f"# {number}\n" * number)})
    shelf.release("2.0", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE, versions=">=1"))
    said = shelf.run("coverage", "fix", "--color", "never").expect(1)
    assert said.out.splitlines() == [
        "fix/middle",
        "  1.0             fits              middle.patch",
        "  1.1 to 1.2 (2)  fits with offset  middle.patch",
        "  2.0             conflict          middle.patch; " + said.out.splitlines()[3].partition("; ")[2],
        "4 releases of some-dist: 2 fits with offset, 1 fits, 1 conflict",
        f"next: patchkit rebase fix/middle --to 2.0 --patches {shelf.patches} --find-links {shelf.wheels}",
    ]
    assert "hunk 1" in said.out
    verbose = shelf.run("coverage", "fix", "--verbose", "--color", "never").expect(1)
    assert "1.2" in verbose.out and "fits at an offset of +2 lines" in verbose.out
    assert not shelf.run("coverage", "fix", "--quiet", "--versions", "<2").expect(0).out


def test_markdown_is_one_table_with_the_newest_release_first(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths(two="20")})
    shelf.add("fix", patch("middle", MIDDLE), patch("other", MIDDLE, versions="==1.0"))
    said = shelf.run("coverage", "fix", "--format", "markdown").expect(1)
    assert said.out.splitlines() == [
        "| some-dist | `middle` | `other` |",
        "| --- | --- | --- |",
        "| 1.1 | **conflict** | no variant, would conflict |",
        "| 1.0 | fits | fits |",
    ]


def test_versions_choose_releases_pre_releases_too(shelf: Shelf) -> None:
    for version in ("1.0", "1.1rc1", "1.1", "2.0"):
        shelf.release(version, {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE))
    assert set(shelf.results("fix", "--versions", ">1.0,<2")) == {"1.1rc1", "1.1"}
    assert shelf.json("coverage", "fix", "--versions", ">=3", exit_code=4)["error"]["code"] == "no-release"
    assert shelf.json("coverage", "fix", "--versions", "new", exit_code=2)["error"]["code"] == "usage"
    assert shelf.json("coverage", "absent", exit_code=3)["error"]["code"] == "unknown-patch"


def test_a_patch_is_tried_on_top_of_those_that_it_comes_after_and_alternatives_apart(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    above = make_diff({MATHS: maths(two="22")}, {MATHS: maths(two="222")})
    shelf.add(
        "fix",
        patch("below", MIDDLE),
        patch("above", above, after=["below"]),
        patch("one", MIDDLE, group="way"),
        patch("two", MIDDLE, group="way", default=False),
    )
    document = shelf.json("coverage", "fix")
    assert [cell["result"] for cell in document["releases"][0]["patches"]] == ["fits"] * 4


def test_what_speaks_of_an_environment_does_not_count(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE, markers="python_version < '3'"), constraints=["packaging<1"])
    assert shelf.results("fix") == {"1.0": "fits"}


def test_a_check_that_fails_with_the_patch_is_told_and_is_a_failure(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    check = {"kind": "symbol", "module": "some_dist.maths", "symbol": "second", "has": ["222"]}
    shelf.add("fix", patch("middle", MIDDLE, check=[check]))
    document = shelf.json("coverage", "fix", exit_code=1)
    cell = document["releases"][0]["patches"][0]
    assert (cell["result"], cell["ok"], cell["checks"][0]["result"]) == ("fits", False, "failed")
    assert "fits (check fails)" in shelf.run("coverage", "fix").out


def test_a_wheel_that_cannot_be_read_is_a_warning_and_the_others_are_read(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    put(shelf.wheels / "some_dist-1.1-py3-none-any.whl", b"no zip file")
    shelf.add("fix", patch("middle", MIDDLE))
    document = shelf.json("coverage", "fix")
    assert [release["patches"][0]["result"] for release in document["releases"]] == ["fits", "no-wheel"]
    [warning] = document["warnings"]
    assert warning["code"] == "unreadable-wheel" and "some_dist-1.1-py3-none-any.whl" in warning["message"]
    said = shelf.run("coverage", "fix").expect()
    assert "warning: some_dist-1.1" in said.err and "no wheel" in said.out


def test_a_broken_diff_is_an_error(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE))
    put(shelf.patches / "fix" / "middle.patch", b"no diff")
    assert shelf.json("coverage", "fix", exit_code=3)["error"]["code"] == "empty-diff"


def test_a_release_where_the_target_belongs_to_nobody_is_a_conflict(shelf: Shelf) -> None:
    shelf.release("1.0", {MATHS: maths()})
    diff = make_diff({}, {"elsewhere/new.py": b"a = 1\n"})
    shelf.add("fix", patch("new", diff))
    document = shelf.json("coverage", "fix", exit_code=1)
    cell = document["releases"][0]["patches"][0]
    assert cell["result"] == "conflict" and "outside the folders of some-dist" in cell["message"]


# ---- what is fetched ------------------------------------------------------------------------------------------


def test_a_yanked_release_is_in_the_table_and_marked(shelf: Shelf, local_index: LocalIndex) -> None:
    for version in ("1.0", "1.1"):
        shelf.release(version, {MATHS: maths()})
    local_index.yanked = frozenset({"some_dist-1.1-py3-none-any.whl"})
    shelf.add("fix", patch("middle", MIDDLE))
    document = shelf.json("coverage", "fix", wheels=False)
    assert [release["yanked"] for release in document["releases"]] == [False, True]
    assert "1.1 (yanked)" in shelf.run("coverage", "fix", "--verbose", wheels=False).out
    assert "| 1.1 (yanked) | fits |" in shelf.run("coverage", "fix", "--format", "markdown", wheels=False).out


@pytest.fixture
def local_index(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalIndex]:
    shelf.wheels.mkdir()
    for name in [*os.environ]:
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with serving(LocalIndex(shelf.wheels)) as index:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


def test_only_the_files_in_question_are_fetched_and_the_second_time_nothing(
    shelf: Shelf, local_index: LocalIndex
) -> None:
    for version in ("1.0", "1.1", "1.2"):
        wheel = shelf.release(version, {MATHS: maths()})
        with zipfile.ZipFile(wheel, "a", zipfile.ZIP_STORED) as archive:
            archive.writestr("some_dist/kernels.bin", bytes(4 << 20))
    shelf.add("fix", patch("middle", MIDDLE))
    first = shelf.json("coverage", "fix", wheels=False)
    assert 0 < first["received_bytes"] == local_index.sent.bytes < 300_000
    again = shelf.json("coverage", "fix", wheels=False)
    assert again["received_bytes"] == 0 and again["releases"] == first["releases"]
    own = shelf.json("coverage", "fix", "--cache", shelf.folder / "own", wheels=False)
    assert own["received_bytes"] == first["received_bytes"] and (shelf.folder / "own" / "releases").is_dir()


@pytest.mark.parametrize("shifted", ["all", "inner"])
def test_a_server_that_sends_other_parts_is_asked_for_the_whole_file(
    shifted: str, shelf: Shelf, local_index: LocalIndex
) -> None:
    wheel = shelf.release("1.0", {MATHS: maths()})
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("some_dist/kernels.bin", bytes(1 << 20))
    local_index.shifted = shifted
    shelf.add("fix", patch("middle", MIDDLE))
    document = shelf.json("coverage", "fix", wheels=False)
    assert document["releases"][0]["patches"][0]["result"] == "fits"
    assert local_index.sent.requests[-1] == "whole"


@pytest.mark.parametrize("field", ["", "sha256=AAAA", "nosuch=AAAA", "sha256=" + "A" * 43])
def test_a_wheel_whose_record_vouches_for_nothing_is_damaged(field: str, shelf: Shelf) -> None:
    damaged = shelf.release("1.0", {MATHS: maths()})
    shelf.release("1.1", {MATHS: maths()})
    with zipfile.ZipFile(damaged) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    [record] = [name for name in members if name.endswith("/RECORD")]
    members[record] = re.sub(rb"(?m)^some_dist/maths.py,[^,]*", f"{MATHS},{field}".encode(), members[record])
    with zipfile.ZipFile(damaged, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    shelf.add("fix", patch("middle", MIDDLE))
    document = shelf.json("coverage", "fix")
    assert [release["patches"][0]["result"] for release in document["releases"]] == ["no-wheel", "fits"]
    assert [(each["code"], MATHS in each["message"]) for each in document["warnings"]] == [("unreadable-wheel", True)]


def test_where_nothing_can_be_looked_into_the_answer_is_not_yes(shelf: Shelf) -> None:
    put(shelf.wheels / "some_dist-1.0-py3-none-any.whl", b"no zip file")
    put(shelf.wheels / "some_dist-1.1.tar.gz", b"")
    shelf.add("fix", patch("middle", MIDDLE))
    assert set(shelf.results("fix", exit_code=1).values()) == {"no-wheel"}


def test_a_cache_that_cannot_be_written_is_said_once(shelf: Shelf) -> None:
    for version in ("1.0", "1.1", "1.2"):
        shelf.release(version, {MATHS: maths()})
    shelf.add("fix", patch("middle", MIDDLE))
    put(shelf.folder / "file", b"")
    error = shelf.json("coverage", "fix", "--cache", shelf.folder / "file" / "cache", exit_code=4)["error"]
    assert error["code"] == "not-writable"


# ---- real releases, and git apply -----------------------------------------------------------------------------

FLASHINFER = ("0.5.0rc1", "0.5.3", "0.6.0", "0.6.3", "0.6.6", "0.6.7", "0.6.8", "0.6.9", "0.6.10", "0.6.12")


def git_takes(git: Callable[..., Finished], tree: Path, diff: bytes, *options: str) -> Fit | None:
    """What git says of a diff on a tree: `FITS`, `OFFSET`, or None where it refuses it."""
    ended = git("apply", "--check", "--verbose", *options, "-", cwd=tree, input=diff)
    if ended.exit_code:
        return None
    return Fit.OFFSET if re.search(r"\(offset -?\d+ line", ended.err) else Fit.FITS


def test_ten_releases_of_flashinfer_fare_as_git_apply_says(
    tmp_path: Path, git: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in FLASHINFER:
        wheel = find_wheel("flashinfer-python", version)
        (wheels / wheel.name).symlink_to(wheel)
    options = Options(patches=(str(CHECKOUT / "patches"),))
    coverage = cover(options, "flashinfer-dynamo", ReleaseSource((str(wheels),)))
    folder = CHECKOUT / "patches" / "flashinfer-dynamo"
    texts = {file.name: file.read_bytes() for file in folder.glob("*.patch")}
    assert [column.version for column in coverage.columns] == list(FLASHINFER) and coverage.exit_code == 0
    seen: set[tuple[Fit, Fit | None]] = set()
    for column in coverage.columns:
        assert column.wheel is not None
        tree = unpack(tmp_path / column.version, wheels / column.wheel, "flashinfer/")
        for cell in column.cells:
            own = {file: text for file, text in texts.items() if file.startswith(f"{cell.id.patch}.")}
            verdicts = {file: git_takes(git, tree, text) for file, text in own.items()}
            if cell.result is Fit.NO_VARIANT:
                assert set(verdicts.values()) == {None} and cell.would is Fit.CONFLICT
            elif cell.result is not Fit.NOT_NEEDED:
                assert cell.result is verdicts[cell.variant or ""], (column.version, cell, verdicts)
            seen.add((cell.result, cell.would))
    assert {result for result, _ in seen} >= {Fit.FITS, Fit.OFFSET, Fit.NO_VARIANT}


def unpack(folder: Path, wheel: Path, top: str) -> Path:
    """The Python files of a wheel that lie in ``top``, or one folder below."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(top) and name.endswith(".py")]
        archive.extractall(folder, [name for name in names if name.removeprefix(top).count("/") < 2])
    return folder


@pytest.fixture
def real_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index that the developer's own configuration names."""
    for name, value in OUTER.items():
        if name.startswith(("PIP_", "UV_", "HTTP", "SSL_")) or name in ("HOME", "NO_PROXY"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_upstream_change_of_another_distribution_fares_as_git_apply_says_on_the_live_index(
    real_index: None, tmp_path: Path, git: Callable[..., Finished]
) -> None:
    """What humanize changed in one module in 4.9.0, tried on the releases around."""
    path = "humanize/filesize.py"

    def release(version: str) -> Path:
        tree = tmp_path / version
        return tree if tree.exists() else unpack(tree, find_release("humanize", version), "humanize/")

    before, after = ((release(version) / path).read_bytes() for version in ("4.8.0", "4.9.0"))
    diff = make_diff({path: before}, {path: after})
    put(tmp_path / "patches" / "up" / "filesize.patch", diff)
    text = 'schema = 1\nname = "up"\ndistribution = "humanize"\n[[patch]]\nname = "filesize"\n'
    text += '[[patch.variant]]\nversions = ">=4"\nfile = "filesize.patch"\n'
    put(tmp_path / "patches" / "up" / "patchset.toml", text.encode())
    options = Options(patches=(str(tmp_path / "patches"),))
    coverage = cover(options, "up", ReleaseSource(), versions=">=4.4,<4.13")
    assert len(coverage.columns) >= 9 and coverage.received > 0
    seen: dict[Fit, list[str]] = {}
    for column, cell in coverage.cells_of(coverage.patches[0]):
        fits = cell.result if cell.result in (Fit.FITS, Fit.OFFSET) else None
        assert git_takes(git, release(column.version), diff) is fits, (column.version, cell)
        if cell.result is Fit.UPSTREAMED:
            assert git_takes(git, release(column.version), diff, "--reverse") is not None
        seen.setdefault(cell.result, []).append(column.version)
    assert "4.8.0" in seen[Fit.FITS] and "4.9.0" in seen[Fit.UPSTREAMED] and seen[Fit.CONFLICT], seen
