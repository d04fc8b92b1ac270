"""`import`: upstream commits, as mails and diffs, against real wheels; git says what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchkit.mail import read_letter
from patchkit.manifest import read_manifest
from patchkit.patchset import PatchId, PatchSet
from repositories import Repository, apply_with_git, read_tree, write_tree
from stages import LINES, MOD, SHIPPED, TOOL, Stage, edit, make_diff, make_stage, patch, put, sample_wheel, with_line
from test_upstream_diffs import DATA, FLASHINFER, PNG, Step, checkout, flashinfer_stage, shipped, sources, upstream
from worlds import RunPatchkit, find_wheel, tree

SUBJECT = "Say what is meant, and 'quote' \"it\" twice"
FIVE = with_line(5, b"line_5 = 5.0\n")


@pytest.fixture
def stage_of(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Callable[..., Stage]:
    """``stage_of(*wheels)``: a stage; some-dist where no wheel is named."""
    return lambda *wheels: make_stage(tmp_path, make_site, capfd.readouterr, *wheels)


def manifest(stage: Stage, name: str) -> PatchSet:
    folder = stage.patches / name
    return read_manifest((folder / "patchset.toml").read_bytes(), folder=str(folder), file="patchset.toml")


def imported(stage: Stage, diff: bytes, *words: str, distribution: str = "some-dist", exit_code: int = 0) -> Any:
    file = put(stage.folder / "commit.diff", diff)
    return stage.json("import", file, "--distribution", distribution, *words, exit_code=exit_code)


def commit(folder: Path, before: dict[str, bytes], after: dict[str, bytes], message: str = SUBJECT) -> Repository:
    repository = Repository(folder)
    repository.commit(before)
    repository.commit(after, message=message)
    return repository


def files_of(stage: Stage) -> dict[str, bytes]:
    return {path: data for path, (data, _) in read_tree(stage.site).items()}


@pytest.mark.parametrize("words", [{"constraints": ["pip>=1"]}, {"markers": "python_version >= '3'"}])
def test_a_set_with_constraints_or_markers_of_its_own_takes_one_more_patch(
    stage_of: Callable[..., Stage], words: Any
) -> None:
    stage = stage_of()
    stage.add("fix", patch("nine", edit(9, b"line_9 = 9.0\n")), **words)
    said = imported(stage, edit(5, b"line_5 = 5.0\n"), "--set", "fix", "--patch", "five")
    assert said["patches"][0]["state"] == "pending"
    nine, five = manifest(stage, "fix").patches
    assert (five.constraints, five.markers) == (nine.constraints, nine.markers) and (five.constraints or five.markers)
    stage.run("apply").expect()
    assert b"line_5 = 5.0" in stage.read(MOD)


@pytest.mark.parametrize("name", ["fix", "aaa", "zzz"])
def test_what_fits_only_on_top_of_an_applied_patch_comes_after_that_one(
    name: str, stage_of: Callable[..., Stage]
) -> None:
    stage = stage_of()
    stage.add("fix", patch("five", edit(5, b"line_5 = 5.0\n")), patch("nine", edit(9, b"line_9 = 9.0\n")))
    stage.run("apply").expect()
    said = imported(stage, edit(5, b"line_5 = 55\n", FIVE), "--set", name, "--patch", "more")
    assert said["patches"][0]["state"] == "pending"
    [notice] = [each["message"] for each in said["warnings"] if each["code"] == "on-top"]
    assert "fits only on top of fix/five, which is applied: its `after` says so" in notice
    assert manifest(stage, name).patches[-1].after == (PatchId("fix", "five"),)
    stage.run("apply", f"{name}/more").expect()
    assert b"line_5 = 55\n" in stage.read(MOD)


def test_a_patch_that_is_there_is_told_which_one_it_has_to_come_after(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of()
    old = patch("more", edit(9, b"line_9 = 9.0\n"), versions="==0.9")
    stage.add("fix", patch("five", edit(5, b"line_5 = 5.0\n")), old)
    stage.run("apply", "fix/five").expect()
    said = imported(stage, edit(5, b"line_5 = 55\n", FIVE), "--set", "fix", "--patch", "more")
    [notice] = [each["message"] for each in said["warnings"] if each["code"] == "on-top"]
    assert "write fix/five into its `after`" in notice


def test_a_file_that_an_applied_patch_created_may_be_changed_by_another(stage_of: Callable[..., Stage]) -> None:
    stage, new = stage_of(), "some_dist/new.py"
    stage.add("fix", patch("new", make_diff({new: None}, {new: b"n = 1\n"})))
    stage.run("apply").expect()
    said = imported(
        stage, make_diff({f"src/{new}": b"n = 1\n"}, {f"src/{new}": b"n = 2\n"}), "--set", "fix", "--patch", "two"
    )
    assert said["patches"][0]["state"] == "pending" and [each["path"] for each in said["edits"]] == [new]
    assert manifest(stage, "fix").patches[-1].after == (PatchId("fix", "new"),)
    stage.run("apply").expect()
    assert stage.read(new) == b"n = 2\n"
    stage.run("revert", "--all").expect()
    assert not (stage.site / new).exists()


# ---- releases as commits --------------------------------------------------------------------------------------

STEPS = [
    Step("inflection", "0.4.0", "0.5.0", ""),
    Step("inflection", "0.5.1", "0.5.0", "src"),
    Step("humanize", "4.12.2", "4.12.3", "src", ".mo"),
    Step("rich", "13.9.2", "13.9.4", "python/lib"),
]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_commit_finds_its_files_and_makes_the_one_release_of_the_other(
    step: Step, stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    old, new = shipped(step.distribution, step.old), shipped(step.distribution, step.new)
    before, after = (
        upstream(files, step.below, version=version) for files, version in ((old, step.old), (new, step.new))
    )
    mail = commit(tmp_path / "upstream", before, after).mail("--binary", "-M")
    stage = stage_of(find_wheel(step.distribution, step.old))
    exclude = ["--exclude", f"**/*{step.binary}"] if step.binary else []
    said = imported(stage, mail, *exclude, distribution=step.distribution)

    left_out = {each["path"] for each in said["left_out"]}
    assert {"README.md", "docs/logo.png", "tests/test_it.py"} <= left_out
    [row] = said["patches"]
    assert (row["state"], row["variant"]) == ("pending", f"{said['patch']}.{step.old}.patch")
    [variant] = manifest(stage, step.distribution).patches[0].variants
    assert variant.strip == 1 + len(step.below.split("/") if step.below else [])
    assert variant.versions == f"=={step.old}"
    assert Path(said["file"]).read_bytes() == mail  # as upstream wrote it

    kept = {path: data for path, data in old.items() if step.binary and path.endswith(step.binary)}
    wanted = {path: data for path, data in new.items() if not (step.binary and path.endswith(step.binary))} | kept
    pristine = stage.tree()
    stage.run("apply", "--no-checks").expect()
    assert files_of(stage) == wanted
    stage.run("revert", "--all").expect()
    assert stage.tree() == pristine


def test_the_mail_says_what_the_patch_is_called_what_it_is_for_and_where_it_comes_from(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    repository = commit(tmp_path / "upstream", dict(texts()), dict(texts()) | {MOD: FIVE})
    stage = stage_of()
    said = imported(stage, repository.mail())
    [patch] = manifest(stage, "some-dist").patches
    hash = read_letter(repository.mail()).commits[0]
    assert (said["set"], said["patch"]) == ("some-dist", "say-what-is-meant-and-quote-it-twice")
    assert (patch.summary, patch.provenance.origin) == (SUBJECT, f"upstream, commit:{hash}")
    assert said["origin"] == patch.provenance.origin and said["warnings"] == []
    assert said["next"].startswith(f"patchkit apply {patch.id} --site-packages ")
    assert stage.states("apply") == {str(patch.id): "applied"}


def test_what_is_left_out_is_listed_up_to_a_number(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of()
    many = {f"tests/test_{number}.py": b"a = 1\n" for number in range(30)}
    file = put(stage.folder / "commit.diff", make_diff({MOD: texts()[MOD]}, {MOD: FIVE} | many))
    words = ("import", file, "--distribution", "some-dist", "--dry-run")
    shown = stage.run(*words).expect()
    assert shown.out.count("left out") == 21 and "... and 10 more left out" in shown.out
    assert "or write `origin`" not in shown.err and not (stage.patches / "some-dist").exists()
    assert stage.run(*words, "--verbose").expect().out.count("left out") == 30


def test_an_error_names_the_hunk_that_does_not_fit_and_what_is_there(
    stage_of: Callable[..., Stage], patchkit: RunPatchkit
) -> None:
    stage = stage_of()
    text = texts()[MOD]
    old = text.replace(LINES[4], b"line_5 = 'old'\n").replace(LINES[-3], b"gone = 1\n" + LINES[-3])
    words = ("import", "-", "--distribution", "some-dist", "--site-packages", stage.site)
    said = patchkit(*words, input=make_diff({MOD: old}, {MOD: text}), cwd=stage.folder).expect(5)
    assert "some_dist/mod.py: hunk 2" in said.err and "1 of 2 hunks are upstream, 1 only deletes lines" in said.err
    assert "patchkit check" not in said.err and not (stage.patches / "some-dist").exists()
    link = make_diff({MOD: text}, {MOD: FIVE}).replace(b"--- a", b"old mode 100644\nnew mode 120000\n--- a", 1)
    said = patchkit(*words, input=link, cwd=stage.folder).expect(3)
    assert "error: standard input:" in said.err and ".patch:" not in said.err


def texts() -> dict[str, bytes]:
    return {path: data for path, data in SHIPPED.items() if data is not None}


def test_the_real_source_of_attrs_is_imported_from_its_whole_diff(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    repository = commit(tmp_path / "upstream", sources("attrs", "24.3.0"), sources("attrs", "25.1.0"))
    stage = stage_of(find_wheel("attrs", "24.3.0"))
    said = imported(stage, repository.diff("-M"), distribution="attrs")
    assert {each["path"].split("/")[0] for each in said["left_out"]} >= {"tests", "docs", "CHANGELOG.md"}
    [variant] = manifest(stage, "attrs").patches[0].variants
    assert (variant.strip, variant.include) == (2, ("attr/**",))
    assert [notice["code"] for notice in said["warnings"]] == ["no-origin"]
    stage.run("apply").expect()
    assert files_of(stage) == shipped("attrs", "25.1.0")


# ---- FlashInfer: one commit, two places -----------------------------------------------------------------------


def with_change(text: bytes, comment: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join([*lines[:40], comment + b" a change of our own\n", *lines[40:], comment + b" end\n"])


@pytest.mark.parametrize("paths", ["csrc", "both"])
def test_a_commit_of_flashinfer_lands_in_its_data_and_in_its_code(
    paths: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel, header, code = f"{DATA}/csrc/norm.cu", f"{DATA}/include/flashinfer/norm.cuh", "flashinfer/norm.py"
    old, installed = checkout("0.6.3", {kernel, header, code, "flashinfer/__init__.py"}.__contains__)
    new = old | {name: with_change(old[name], b"//") for name in ("csrc/norm.cu", "include/flashinfer/norm.cuh")}
    new |= {"csrc/own.cu": b"// a new kernel\n", "docs/csrc.rst": b"..\n", "benchmarks/norm.py": b"a = 1\n"}
    if paths == "both":
        new |= {"flashinfer/norm.py": with_change(old["flashinfer/norm.py"], b"#"), "flashinfer/own.py": b"a = 1\n"}
    mail = commit(tmp_path / "upstream", old | {"tests/a.py": b"1\n"}, new | {"tests/a.py": b"2\n"}).mail("--binary")

    stage = flashinfer_stage(tmp_path, capfd.readouterr, "0.6.3", installed)
    said = imported(stage, mail, distribution=FLASHINFER)
    assert {each["path"] for each in said["left_out"]} == {"tests/a.py", "docs/csrc.rst", "benchmarks/norm.py"}
    [variant] = manifest(stage, FLASHINFER).patches[0].variants
    stays = Path(said["file"]).read_bytes() == mail
    assert (variant.strip, variant.directory, stays) == ((1, DATA, True) if paths == "csrc" else (1, "", False))

    rest = files_of(stage)
    own = write_tree(tmp_path / "by-git", rest)
    of_git = apply_with_git(own, mail, f"--directory={DATA}", f"--include={DATA}/csrc/*", f"--include={DATA}/include/*")
    if paths == "both":
        of_git = apply_with_git(own, mail, "--include=flashinfer/*")
    stage.run("apply").expect()
    assert read_tree(stage.site) == of_git
    assert f"{DATA}/csrc/own.cu" in of_git
    stage.run("revert", "--all").expect()
    assert files_of(stage) == rest


def test_a_new_kernel_that_lies_beside_no_other_change_goes_into_the_folder_of_its_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel, code = f"{DATA}/csrc/norm.cu", "flashinfer/norm.py"
    old, installed = checkout("0.6.3", {kernel, code, "flashinfer/__init__.py"}.__contains__)
    new = old | {"csrc/own.cu": b"// new\n", code: with_change(old[code], b"#"), "tests/csrc/own.py": b"a = 1\n"}
    mail = commit(tmp_path / "upstream", old, new).mail()
    stage = flashinfer_stage(tmp_path, capfd.readouterr, "0.6.3", installed)
    said = imported(stage, mail, distribution=FLASHINFER)
    assert {each["path"]: each["edit"] for each in said["edits"]} == {
        code: "modified",
        f"{DATA}/csrc/own.cu": "created",
    }
    assert [notice["code"] for notice in said["warnings"]] == ["placed-by-folder"]
    assert [each["path"] for each in said["left_out"]] == ["tests/csrc/own.py"]
    stage.run("apply").expect()
    assert (stage.site / DATA / "csrc/own.cu").read_bytes() == b"// new\n"


# ---- forms ----------------------------------------------------------------------------------------------------

FORMS: dict[str, Callable[[Repository], bytes]] = {
    "mail": lambda repository: repository.mail(),
    "show": lambda repository: repository.show(),
    "diff": lambda repository: repository.diff(),
    "no prefix": lambda repository: repository.diff("--no-prefix"),
    "other prefixes": lambda repository: repository.diff("--src-prefix=x/y/", "--dst-prefix=x/z/"),
    "crlf": lambda repository: repository.mail().replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_strip_level_is_found_for_every_form_of_a_diff(
    form: str, stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    before = {f"src/{path}": data for path, data in texts().items()} | {"setup.py": b"1\n"}
    after = before | {
        f"src/{MOD}": with_line(5, b"line_5 = 5.0\n"),
        "src/some_dist/new.py": b"a = 1\n",
        "setup.py": b"2\n",
    }
    diff = FORMS[form](commit(tmp_path / "upstream", before, after))
    stage = stage_of()
    said = imported(stage, diff)
    assert [each["path"] for each in said["left_out"] if "setup.py" in each["path"]]
    assert [each["edit"] for each in said["edits"]] == ["modified", "created"]
    stage.run("apply").expect()
    assert files_of(stage) == {path.removeprefix("src/"): data for path, data in after.items() if path != "setup.py"}


def test_a_diff_comes_from_standard_input_too(stage_of: Callable[..., Stage], tmp_path: Path, patchkit: Any) -> None:
    after = texts() | {MOD: FIVE}
    mail = commit(tmp_path / "upstream", texts(), after).mail()
    stage = stage_of()
    words = ("--distribution", "some.Dist", "--set", "own", "--patch", "five", "--bug", "https://example.org/5")
    said = patchkit("import", "-", *words, "--site-packages", stage.site, input=mail).expect()
    assert "own/five  pending  some-dist 1.2.3  five.1.2.3.patch" in said.out
    assert f"    modified  {MOD}" in said.out
    assert f"\nnext: patchkit apply own/five --site-packages {stage.site}" in said.out
    [patch] = manifest(stage, "own").patches
    assert patch.provenance.bug == "https://example.org/5"


def test_where_the_manifest_has_no_room_for_all_paths_the_diff_is_cut_to_them(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    files = {f"some_dist/f{number}.py": b"a = 1\n" for number in range(70)}
    before = files | {"some_dist/not_shipped.py": b"a = 1\n"}
    after = dict.fromkeys(before, b"a = 2\n")
    mail = commit(tmp_path / "upstream", before, after).mail()
    stage = stage_of(sample_wheel(tmp_path / "wheels", files=files))
    said = imported(stage, mail, "--exclude", "some_dist/not_shipped.py")
    assert [each["path"] for each in said["left_out"]] == ["some_dist/not_shipped.py"]
    assert manifest(stage, "some-dist").patches[0].variants[0].include == ()
    stage.run("apply").expect()
    assert files_of(stage) == dict.fromkeys(files, b"a = 2\n")


# ---- what is not written --------------------------------------------------------------------------------------


def refused(stage: Stage, diff: bytes, *words: str, exit_code: int, distribution: str = "some-dist") -> Any:
    """The document of an import after which nothing has changed."""
    before = stage.tree(), tree(stage.patches)
    said = imported(stage, diff, *words, distribution=distribution, exit_code=exit_code)
    assert (stage.tree(), tree(stage.patches)) == before
    return said


def test_what_does_not_fit_is_shown_hunk_by_hunk_and_nothing_is_written(stage_of: Callable[..., Stage]) -> None:
    elsewhere = LINES[4].replace(b"=", b"==").join([b"".join(LINES[:4]), b"".join(LINES[5:])])
    said = refused(stage_of(), make_diff({MOD: elsewhere}, {MOD: FIVE}), exit_code=5)
    [row] = said["patches"]
    assert (row["state"], said["error"]["code"], said["written"]) == ("conflict", "conflict", [])
    [hunk] = row["files"][0]["hunks"]
    assert hunk["result"] == "conflict" and "line_5 == 5" in hunk["expected"]


def test_a_file_in_doubt_is_not_left_out_in_silence(stage_of: Callable[..., Stage]) -> None:
    before = {MOD: b"".join(LINES), "lib/some_dist/data.txt": b"another\ntext\n"}
    diff = make_diff(before, {MOD: FIVE, "lib/some_dist/data.txt": b"another\nword\n"})
    stage = stage_of()
    said = refused(stage, diff, exit_code=5)
    assert "lib/some_dist/data.txt may be some_dist/data.txt" in said["error"]["message"]
    said = imported(stage, diff, "--exclude", "lib/some_dist/data.txt")
    assert {"path": "lib/some_dist/data.txt", "reason": "excluded"} in said["left_out"]


OLD, NEW = "some_dist/fast.py", "some_dist/ops/kernels.py"
KERNELS = b"".join(b"kernel_%d = %d\n" % (number, number) for number in range(30))
FASTER = KERNELS.replace(b"_7 = 7\n", b"_7 = 8\n")
NEWER = {MOD: b"".join(LINES), NEW: KERNELS}
LACKS: dict[str, tuple[dict[str, bytes], str]] = {
    "changed": ({MOD: FIVE, NEW: FASTER}, NEW),
    "deleted": ({MOD: FIVE}, NEW),
    "renamed": ({MOD: FIVE, "some_dist/ops/faster.py": KERNELS}, "some_dist/ops/kernels.py"),
    "renamed from outside": ({MOD: FIVE, "some_dist/core.py": b"".join(LINES[:9])}, "some_dist/core.py"),
}


@pytest.mark.parametrize("case", LACKS)
@pytest.mark.parametrize("below", ["", "src/"])
def test_a_file_that_the_distribution_should_have_and_has_not_is_not_left_out_unasked(
    below: str, case: str, stage_of: Callable[..., Stage]
) -> None:
    after, meant = LACKS[case]
    outside = {"attic/core.py": b"".join(LINES[:9])} if case == "renamed from outside" else {}
    before = NEWER | outside if case != "renamed from outside" else {MOD: NEWER[MOD]} | outside
    diff = make_diff(*({f"{below}{path}": data for path, data in side.items()} for side in (before, after)))
    stage = stage_of()
    said = refused(stage, diff, exit_code=5)
    assert said["error"]["code"] == "conflict" and f"some-dist 1.2.3 has no {meant}" in said["error"]["message"]
    [_, exclude] = said["error"]["hint"].split("--exclude ")
    said = imported(stage, diff, "--exclude", exclude.split()[0])
    assert [each["reason"] for each in said["left_out"]] == ["excluded"]
    assert [each["path"] for each in said["edits"]] == [MOD]


def test_where_the_text_of_a_missing_file_is_another_file_that_is_offered_and_taken(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    stage = stage_of(sample_wheel(tmp_path / "wheels", files={MOD: NEWER[MOD], OLD: KERNELS}))
    mail = commit(tmp_path / "upstream", NEWER | {"tests/a.py": b"1\n"}, {MOD: FIVE, NEW: FASTER}).mail()
    hint = refused(stage, mail, exit_code=5)["error"]["hint"]
    assert f"its text is in {OLD}: --moved {NEW}={OLD} takes it there" in hint
    said = imported(stage, mail, *hint[hint.index("--moved ") :].split()[:2])
    assert {each["path"]: each["edit"] for each in said["edits"]} == {MOD: "modified", OLD: "modified"}
    assert [each["path"] for each in said["left_out"]] == ["tests/a.py"]
    stage.run("apply").expect()
    assert (stage.read(MOD), stage.read(OLD)) == (FIVE, FASTER)


def test_a_file_that_became_a_forwarder_is_taken_where_its_text_is(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    files = {MOD: NEWER[MOD], OLD: b"from some_dist.ops.kernels import *\n", NEW: KERNELS}
    stage = stage_of(sample_wheel(tmp_path / "wheels", files=files))
    said = refused(stage, make_diff({OLD: KERNELS}, {OLD: FASTER}), exit_code=5)
    [warning] = said["warnings"]
    assert warning["code"] == "perhaps-moved" and f"--moved {OLD}={NEW} takes it there" in warning["message"]
    imported(stage, make_diff({OLD: KERNELS}, {OLD: FASTER}), "--moved", f"{OLD}={NEW}")
    stage.run("apply").expect()
    assert stage.read(NEW) == FASTER


def test_tests_and_documents_in_a_package_that_was_built_without_them_are_left_out(
    stage_of: Callable[..., Stage],
) -> None:
    inside = ("some_dist/tests/test_a.py", "some_dist/sub/tests/data/b.py", "some_dist/README.md", "other/c.py")
    old = {MOD: NEWER[MOD]} | dict.fromkeys(inside[:3], b"1\n2\n3\n")
    new = {MOD: FIVE} | dict.fromkeys((*inside, "some_dist/tests/new.py"), b"1\n2\n4\n")
    said = imported(stage_of(), make_diff(old, new))
    assert {each["path"] for each in said["left_out"]} == {*inside, "some_dist/tests/new.py"}
    assert [each["path"] for each in said["edits"]] == [MOD]


def test_a_kernel_that_the_wheel_lacks_is_missed_although_nothing_else_shows_the_way(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "flashinfer/norm.py"
    old, installed = checkout("0.6.3", {f"{DATA}/csrc/norm.cu", code, "flashinfer/__init__.py"}.__contains__)
    new = old | {code: with_change(old[code], b"#"), "csrc/gone.cu": b"// new\n"}
    stage = flashinfer_stage(tmp_path, capfd.readouterr, "0.6.3", installed)
    said = refused(stage, make_diff(old | {"csrc/gone.cu": b"// old\n"}, new), distribution=FLASHINFER, exit_code=5)
    assert f"has no {DATA}/csrc/gone.cu (csrc/gone.cu)" in said["error"]["message"]


def test_a_copy_is_refused_with_its_line(stage_of: Callable[..., Stage]) -> None:
    copy = b"diff --git a/some_dist/mod.py b/some_dist/more.py\nsimilarity index 100%\n"
    copy += b"copy from some_dist/mod.py\ncopy to some_dist/more.py\n"
    said = refused(stage_of(), make_diff({MOD: NEWER[MOD]}, {MOD: FIVE}) + copy, exit_code=3)
    assert said["error"]["code"] == "copy-diff" and "commit.diff:16: copies" in said["error"]["message"]


def test_an_error_in_a_diff_with_new_paths_names_the_line_of_the_one_that_was_given(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    files = {MOD: NEWER[MOD], OLD: KERNELS, "some_dist/k.py": KERNELS}
    stage = stage_of(sample_wheel(tmp_path / "wheels", files=files))
    diff = make_diff(NEWER, {MOD: FIVE, NEW: FASTER}) + make_diff({OLD: KERNELS}, {"attic/k.py": KERNELS})
    line = diff[: diff.rindex(b"diff --git")].count(b"\n") + 1
    said = refused(stage, diff, "--moved", f"{NEW}=some_dist/k.py", exit_code=3)
    assert f"commit.diff:{line}: attic/k.py is to be created outside" in said["error"]["message"]
    said = refused(stage, diff, "--moved", f"{NEW}={MOD}", exit_code=2)
    assert f"changes {MOD} itself" in said["error"]["message"]


def test_a_file_that_was_edited_in_place_is_told_with_ways_out_that_import_has(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of()
    stage.write(MOD, with_line(30, b"line_30 = 'thirty'\n"))
    error = refused(stage, make_diff({MOD: NEWER[MOD]}, {MOD: FIVE}), exit_code=5)["error"]
    assert error["code"] == "foreign-file" and "--accept-modified" not in error["hint"]
    assert "`patchkit capture some-dist` makes a patch of the edit first" in error["hint"]
    assert "`pip install --force-reinstall --no-deps some-dist==1.2.3`" in error["hint"]


@pytest.mark.parametrize(
    "glob", ["src/some_dist/mod.py", "src/some_dist/new_mod.py", MOD, "some_dist/new_mod.py", "**/mod.py"]
)
def test_a_renamed_file_is_left_out_by_its_old_path_and_by_its_new_one(
    glob: str, stage_of: Callable[..., Stage]
) -> None:
    old = {f"src/{TOOL}": SHIPPED[TOOL], f"src/{MOD}": SHIPPED[MOD]}
    diff = make_diff(old, {f"src/{TOOL}": b"# changed\n", "src/some_dist/new_mod.py": FIVE})
    assert b"rename from" in diff
    stage = stage_of()
    said = imported(stage, diff, "--exclude", glob)
    assert [each["path"] for each in said["edits"]] == [TOOL]
    assert said["left_out"] == [{"path": "src/some_dist/new_mod.py", "reason": "excluded"}]
    assert [notice["code"] for notice in said["warnings"]] == ["no-origin"]


def test_a_glob_that_leaves_out_nothing_is_told(stage_of: Callable[..., Stage]) -> None:
    said = imported(stage_of(), edit(5, b"line_5 = 5.0\n"), "--exclude", "some_dist/modd.py", "--exclude", "tests/**")
    idle = [notice["message"] for notice in said["warnings"] if notice["code"] == "idle-exclude"]
    assert ["modd.py" in idle[0], "tests/**" in idle[1]] == [True, True]


def test_leaving_out_every_file_is_told_as_that(stage_of: Callable[..., Stage]) -> None:
    error = refused(stage_of(), edit(5, b"line_5 = 5.0\n"), "--exclude", "**", exit_code=3)["error"]
    assert "--exclude leaves out all of" in error["message"] and MOD in error["message"]
    assert "is some-dist the distribution" not in error["hint"]


MOVES = {
    "no pair": ("some_dist/mod.py", "is not OLD=NEW"),
    "no such file in the diff": (f"some_dist/gone.py={MOD}", "has no file some_dist/gone.py"),
    "no such file installed": (f"{MOD}=some_dist/gone.py", "the distribution has no file some_dist/gone.py"),
    "a new file": (f"some_dist/new.py={MOD}", "creates, renames or copies it"),
}


@pytest.mark.parametrize("case", MOVES)
def test_a_move_that_cannot_be_is_refused(case: str, stage_of: Callable[..., Stage]) -> None:
    word, said = MOVES[case]
    diff = make_diff({MOD: NEWER[MOD]}, {MOD: FIVE, "some_dist/new.py": b"a = 1\n"})
    assert said in refused(stage_of(), diff, "--moved", word, exit_code=2)["error"]["message"]


def test_a_path_is_shown_as_the_repository_has_it_with_or_without_prefixes(stage_of: Callable[..., Stage]) -> None:
    diff = make_diff({MOD: NEWER[MOD], "tests/a.py": b"1\n"}, {MOD: FIVE, "tests/a.py": b"2\n"})
    bare = diff.replace(b" a/", b" ").replace(b" b/", b" ")
    stage = stage_of()
    for text in (diff, bare):
        assert [each["path"] for each in imported(stage, text, "--dry-run")["left_out"]] == ["tests/a.py"]


def test_what_the_version_has_already_is_said_and_not_written(stage_of: Callable[..., Stage]) -> None:
    older = b"".join([*LINES[:4], b"line_5 = 'five'\n", *LINES[5:]])
    said = refused(stage_of(), make_diff({MOD: older}, {MOD: b"".join(LINES)}), exit_code=0)
    assert (said["patches"][0]["state"], said["file"], said["next"]) == ("upstreamed", None, None)


def test_a_diff_of_something_else_is_refused_with_its_files(stage_of: Callable[..., Stage]) -> None:
    said = refused(stage_of(), make_diff({"other/a.py": b"1\n"}, {"other/a.py": b"2\n"}), exit_code=3)
    assert said["error"]["code"] == "no-matching-file"
    assert "other/a.py" in said["error"]["message"]


def test_a_binary_file_that_the_wheel_has_is_refused_unless_it_is_excluded(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    before = texts() | {"some_dist/a.png": PNG}
    mail = commit(tmp_path / "upstream", before, before | {MOD: FIVE, "some_dist/a.png": PNG + b"more"}).mail(
        "--binary"
    )
    stage = stage_of(sample_wheel(tmp_path / "wheels", files=before))
    said = refused(stage, mail, exit_code=3)
    assert said["error"]["code"] == "binary-diff"
    assert imported(stage, mail, "--exclude", "**/*.png")["patches"][0]["state"] == "pending"


def test_the_same_diff_is_not_imported_twice_but_may_get_a_variant_for_another_version(
    stage_of: Callable[..., Stage], tmp_path: Path
) -> None:
    stage, diff = stage_of(), make_diff({MOD: b"".join(LINES)}, {MOD: FIVE})
    imported(stage, diff, "--patch", "five")
    said = refused(stage, diff, "--patch", "other", exit_code=3)
    assert (said["error"]["code"], "--patch five" in said["error"]["hint"]) == ("variant-exists", True)
    imported(stage, diff, "--patch", "five")  # again is no harm
    stage.reinstall(sample_wheel(tmp_path / "wheels", "2.0"))
    imported(stage, diff, "--patch", "five")
    [patch] = manifest(stage, "some-dist").patches
    assert [variant.versions for variant in patch.variants] == ["==1.2.3", "==2.0"]
    assert stage.states("apply") == {"some-dist/five": "applied"}


REFUSALS = {
    "no diff": (b"words\n", (), 3, "no entry of a unified diff"),
    "a damaged diff": (b"--- a/some_dist/mod.py\n+++ b/some_dist/mod.py\n@@ -1,3 +1,3 @@\n a\n", (), 3, "hunk"),
    "a name that is none": (b"", ("--set", "a b"), 2, "--set 'a b' is not a name"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_refused_in_words(case: str, stage_of: Callable[..., Stage]) -> None:
    diff, words, code, said = REFUSALS[case]
    diff = diff or make_diff({MOD: b"".join(LINES)}, {MOD: FIVE})
    assert said in refused(stage_of(), diff, *words, exit_code=code)["error"]["message"]


def test_what_is_not_there_is_refused_in_words(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of()
    said = stage.json("import", "gone.patch", "--distribution", "some-dist", exit_code=2)
    assert "gone.patch cannot be read" in said["error"]["message"]
    diff = make_diff({MOD: b"".join(LINES)}, {MOD: FIVE})
    assert refused(stage, diff, distribution="absent", exit_code=4)["error"]["code"] == "not-installed"


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(stage_of: Callable[..., Stage]) -> None:
    diff = make_diff({MOD: b"".join(LINES)}, {MOD: FIVE})
    said = refused(stage_of(), diff, "--dry-run", "--patch", "five", exit_code=0)
    assert said["dry_run"] and [Path(path).name for path in said["written"]] == ["five.1.2.3.patch", "patchset.toml"]


# ---- mails ----------------------------------------------------------------------------------------------------

HASH = "0123456789abcdef0123456789abcdef01234567"
LETTERS = {
    "folded": (f"From {HASH} Mon Sep 17 00:00:00 2001\nSubject: [PATCH 1/2] A long\n line\n\n---\n", "A long line", 1),
    "encoded": (
        f"From {HASH} Mon Sep 17 00:00:00 2001\nSubject: =?UTF-8?q?[PATCH]_Gr=C3=BC=C3=9Fe?=\n\n",
        "Gr\u00fc\u00dfe",
        1,
    ),
    "shown": (f"commit {HASH} (HEAD -> main)\nAuthor: A\nDate: x\n\n    The subject\n\n    more\n\n", "The subject", 1),
    "nothing": ("Just a note\n\n", "", 0),
    "a broken header": (f"From {HASH} Mon Sep 17 00:00:00 2001\n\xff\n", "", 1),
}


@pytest.mark.parametrize("case", LETTERS)
def test_a_letter_is_read_for_its_commit_and_its_subject(case: str) -> None:
    text, subject, commits = LETTERS[case]
    letter = read_letter(text.encode("latin-1" if case == "a broken header" else "utf-8") + b"diff --git a/x b/x\n")
    assert (letter.subject, len(letter.commits)) == (subject, commits)


def test_a_hash_behind_the_first_entry_is_no_origin() -> None:
    assert read_letter(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ncommit {HASH}\n".encode()).origin == ""
