"""A plan cannot leave the site root, and what cannot be written is said before anything is (DESIGN, section 6)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from patchkit.errors import (
    DamagedState,
    ExitCode,
    NotWritable,
    PatchkitError,
)
from patchkit.installed import Content, sha256
from patchkit.transaction import preflight
from plans import (
    NEW,
    OLD,
    PLAIN,
    edited_during_the_check,
    in_child,
    lay_out,
    make_plan,
    needs_root,
    run,
    undo,
    write,
)
from worlds import tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "site-packages")


# ---- a patch cannot leave the site root -----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../out.py", "/tmp/out.py", "pkg/../../out.py", ".patchkit/ledger.json", "pkg//x"])
def test_a_path_that_leaves_the_root_is_refused_before_any_write(root: Path, path: str) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    bad = replace(plan.changes[0], path=path, before=replace(plan.changes[0].before, content=None))
    before = tree(root.parent)
    for hostile in (replace(plan, changes=(bad,)), replace(plan, drop_directories=(path,))):
        with pytest.raises(NotWritable):
            run(root, hostile)
        assert [type(error) for error in preflight(root, hostile)] == [NotWritable]
    assert tree(root.parent) == before


def test_a_symlinked_directory_is_not_written_through(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/mod.py", OLD)
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    plan = make_plan(root, {"linked/mod.py": Content(NEW, PLAIN)})
    with pytest.raises(NotWritable, match="linked"):
        run(root, plan)
    assert [error.exit_code for error in preflight(root, plan)] == [ExitCode.ENVIRONMENT]
    assert (tmp_path / "elsewhere/mod.py").read_bytes() == OLD


def test_a_journal_does_not_lead_an_undo_through_a_symlinked_directory(root: Path, tmp_path: Path) -> None:
    plan = make_plan(root, {"pkg/mod.py": Content(NEW, PLAIN)})
    edited_during_the_check(root, plan, lambda: write(root / "pkg/mod.py", b"an edit\n"))
    (root / "pkg").rename(tmp_path / "elsewhere")
    (root / "pkg").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "elsewhere/mod.py", NEW)
    with pytest.raises(DamagedState, match=r"journal\.json.*pkg"):
        undo(root)
    assert (tmp_path / "elsewhere/mod.py").read_bytes() == NEW


@pytest.mark.parametrize("name", ["", "objects"])
def test_a_state_folder_that_leads_elsewhere_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    precious = write(tmp_path / "elsewhere" / sha256(OLD), OLD)
    link = root / ".patchkit" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedState, match="is not a directory"):
        undo(root)
    assert precious.exists()


def test_a_damaged_journal_is_neither_followed_nor_rewritten(root: Path) -> None:
    write(root / ".patchkit/journal.json", b"{}")
    with pytest.raises(DamagedState):
        undo(root)
    assert (root / ".patchkit/journal.json").read_bytes() == b"{}"


# ---- not writable ---------------------------------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path: Path, root: Path) -> Path:
    """The root, with every folder above it open to other users."""
    for folder in (root, *root.parents):
        if folder == Path(tmp_path.anchor) or folder.stat().st_uid != os.geteuid() or folder == Path("/tmp"):
            break
        folder.chmod(0o755)
    return root


def messages(errors: list[PatchkitError]) -> list[str]:
    assert all(error.exit_code is ExitCode.ENVIRONMENT for error in errors)
    return [error.message for error in errors]


@needs_root
def test_directories_that_cannot_be_written_are_named_before_any_write(opened: Path) -> None:
    plan = make_plan(opened, {"pkg/new/a.py": Content(NEW, PLAIN)}, make=("pkg/new",))
    before = tree(opened)

    def child() -> None:
        said = messages(preflight(opened, plan))
        why = "is not writable for user 4321, or its file system is read-only"
        assert said == [f"{folder} {why}" for folder in (opened, opened / "pkg")]
        with pytest.raises(NotWritable, match=r"\.patchkit: Permission denied"):
            run(opened, plan)

    in_child(child, user=4321)
    assert tree(opened) == before


@needs_root
def test_a_file_whose_owner_cannot_be_kept_is_named_before_any_write(opened: Path) -> None:
    for folder in (opened, opened / "pkg"):
        os.chown(folder, 4321, 4321)
    os.chown(opened / "pkg/other.py", 4321, 99)
    wanted = {"pkg/mod.py": Content(NEW, PLAIN), "pkg/other.py": Content(NEW, PLAIN), "pkg/new.py": Content(NEW, PLAIN)}
    plan = make_plan(opened, wanted)

    def child() -> None:
        said = messages(preflight(opened, plan))
        assert [text.split(",")[0] for text in said] == [
            f"{opened}/pkg/mod.py belongs to 0:0",
            f"{opened}/pkg/other.py belongs to 4321:99",
        ]

    in_child(child, user=4321)


@needs_root
def test_an_ordinary_user_may_patch_what_is_their_own(opened: Path) -> None:
    for path in (opened, opened / "pkg", opened / "pkg/mod.py"):
        os.chown(path, 4321, 4321)
    plan = make_plan(opened, {"pkg/mod.py": Content(NEW, PLAIN), "pkg/a/b.py": Content(NEW, PLAIN)}, make=("pkg/a",))

    def child() -> None:
        assert preflight(opened, plan) == []
        run(opened, plan)

    in_child(child, user=4321)
    assert (opened / "pkg/mod.py").read_bytes() == NEW


def test_a_preflight_of_what_can_be_written_says_nothing_and_writes_nothing(root: Path) -> None:
    before = tree(root)
    assert preflight(root, make_plan(root, {"pkg/x/y.py": Content(NEW, PLAIN)}, make=("pkg/x",))) == []
    assert tree(root) == before


@needs_root
def test_an_unwritable_cache_of_compiled_files_is_named(opened: Path) -> None:
    for path in (opened, opened / "pkg", opened / "pkg/mod.py"):
        os.chown(path, 4321, 4321)
    write(opened / "pkg/__pycache__/mod.cpython-311.pyc", b"code")

    def child() -> None:
        (said,) = messages(preflight(opened, make_plan(opened, {"pkg/mod.py": Content(NEW, PLAIN)})))
        assert said.startswith(f"{opened}/pkg/__pycache__ is not writable")

    in_child(child, user=4321)
