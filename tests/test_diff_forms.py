"""Every form of a diff once through the whole command, against git; every refusal with its code and line.

`docs/reference/diffs.md` has a table of both, which names the tests; here it is held against them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from patchkit import errors
from patchkit.errors import DiffError
from repositories import Repository, apply_with_git, read_tree, unpack_wheel, write_tree
from stages import DATA, LINES, MOD, Stage, edit, make_diff, make_stage, patch, sample_wheel
from worlds import CHECKOUT, clean_environment

PAGE = CHECKOUT / "docs" / "reference" / "diffs.md"
PLACE = "some_dist/text.txt"
BODY = b"".join(b"row %d\n" % number for number in range(1, 31))


def changed(number: int, line: bytes, body: bytes = BODY) -> bytes:
    """``body`` with another line in the place of a 1-based one."""
    lines = body.split(b"\n")
    lines[number - 1] = line
    return b"\n".join(lines)


NINE = changed(9, b"nine")
ODD = b"-- a/x\n++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n-- \n--- a/x\n+++ b/x"


# ---- how the diff is written ----------------------------------------------------------------------------------

Writer = Callable[[Repository], bytes]


def by_git(*options: str) -> Writer:
    return lambda repository: repository.diff("--text", *options)


def by_mail(*options: str) -> Writer:
    return lambda repository: repository.mail("--text", *options)


def by_show(*options: str) -> Writer:
    return lambda repository: repository.show(*options)


def by_diff(*options: str) -> Writer:
    """GNU diff, with time stamps."""

    def write(repository: Repository) -> bytes:
        folder = Path(mkdtemp(dir=repository.folder.parent))
        write_tree(folder / "new", {path: data for path, (data, _) in read_tree(repository.folder).items()})
        repository.leave("HEAD~", folder / "old")
        words = ["diff", "--text", *options, "old", "new"]
        done = subprocess.run(words, cwd=folder, env=clean_environment(), capture_output=True, check=False)
        assert done.returncode == 1, done.stderr
        return done.stdout

    return write


def with_crlf(writer: Writer) -> Writer:
    """The same, as a checkout with core.autocrlf has it."""
    return lambda repository: writer(repository).replace(b"\n", b"\r\n")


def as_subversion(repository: Repository) -> bytes:
    """What Subversion writes: no a/ and b/, a line that announces the file, words behind the names."""
    plain = re.sub(rb"(?m)^diff --git .*\nindex .*\n", b"", repository.diff("--no-prefix"))
    announced = rb"Index: \1\n" + b"=" * 67 + rb"\n--- \1\t(revision 7)\n+++ \1\t(working copy)\n"
    return re.sub(rb"(?m)^--- (.*)\n\+\+\+ .*\n", announced, plain)


@dataclass(frozen=True)
class Form:
    """A change and how it is written. ``strip`` and ``of_git`` (None: git does not read it) say how it is read."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    write: Writer = field(default_factory=by_git)
    modes: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
    strip: int = 1
    has: bytes = b""
    of_git: tuple[str, ...] | None = ()


def text(before: bytes, after: bytes, **keys: Any) -> Form:
    return Form({PLACE: before}, {PLACE: after}, **keys)


def edited(**keys: Any) -> Form:
    """One line of one file changed."""
    return text(BODY, NINE, **keys)


def line(data: bytes) -> Form:
    """A line with odd bytes: one changed, one as context."""
    body = changed(6, data + b" kept", changed(5, data))
    return text(body, changed(5, data + b"!", body), has=data)


def at(path: str, **keys: Any) -> Form:
    """A file of that name changed, another created beside it."""
    return Form({path: BODY}, {path: NINE, f"{path}.new": BODY}, **keys)


FORMS: dict[str, Form] = {
    "several-files-and-hunks": Form(
        {PLACE: BODY, "some_dist/b.cu": BODY, "some_dist/c.h": BODY},
        {PLACE: changed(3, b"three", changed(25, b"a\nb\nc")), "some_dist/b.cu": NINE, "some_dist/c.h": BODY[7:]},
    ),
    "create": Form({}, {"some_dist/deep/er/new.txt": BODY}, has=b"new file mode 100644"),
    "create-executable": Form({}, {"some_dist/run": BODY}, modes=({}, {"some_dist/run": 0o755}), has=b"mode 100755"),
    "create-empty": Form({}, {"some_dist/py.typed": b""}, has=b"new file mode"),
    "delete": Form({PLACE: BODY}, {}, has=b"deleted file mode"),
    "delete-empty": Form({"some_dist/py.typed": b""}, {}, has=b"deleted file mode"),
    "delete-executable": Form({"some_dist/run": BODY}, {}, modes=({"some_dist/run": 0o755}, {}), has=b"mode 100755"),
    "fill-an-empty-file": text(b"", BODY, has=b"@@ -0,0 +1,30 @@"),
    "empty-a-file": text(BODY, b"", has=b"@@ -1,30 +0,0 @@"),
    "rename": Form({PLACE: BODY}, {"some_dist/sub/moved.txt": BODY}, by_git("-M"), has=b"similarity index 100%"),
    "rename-and-edit": Form({PLACE: BODY}, {"some_dist/moved.txt": NINE}, by_git("-M"), has=b"rename from"),
    "rename-edit-and-mode": Form(
        {PLACE: BODY}, {"some_dist/moved": NINE}, by_git("-M"), ({}, {"some_dist/moved": 0o755}), has=b"old mode"
    ),
    "executable-on": text(BODY, BODY, modes=({}, {PLACE: 0o755}), has=b"new mode 100755"),
    "executable-off": text(BODY, BODY, modes=({PLACE: 0o755}, {}), has=b"new mode 100644"),
    "executable-and-edit": edited(modes=({}, {PLACE: 0o755}), has=b"old mode 100644"),
    "executable-kept": edited(modes=({PLACE: 0o755}, {PLACE: 0o755}), has=b" 100755\n"),
    "crlf-file": text(BODY.replace(b"\n", b"\r\n"), NINE.replace(b"\n", b"\r\n"), has=b"+nine\r\n"),
    "mixed-line-ends": text(changed(8, b"x\r"), changed(9, b"nine\r", changed(8, b"x\r")), has=b"+nine\r\n"),
    "line-ends-changed": text(BODY, BODY.replace(b"\n", b"\r\n"), has=b"+row 1\r\n"),
    "newline-at-end-kept": text(BODY, changed(30, b"end"), has=b"+end\n"),
    "newline-at-end-added": text(BODY[:-1], BODY, has=b"\\ No newline at end of file\n+"),
    "newline-at-end-removed": text(BODY, BODY[:-1], has=b"+row 30\n\\ No"),
    "newline-at-end-missing": text(BODY[:-1], changed(30, b"end", BODY[:-1]), has=b"+end\n\\ No"),
    "newline-at-end-missing-in-context": text(BODY[:-1], changed(29, b"end", BODY[:-1]), has=b" row 30\n\\ No"),
    "not-utf-8": line(b"\xff\xfe\xe4\xf6"),
    "utf-8": line("d\u00e9j\u00e0 \u6f22".encode()),
    "bom": text(b"\xef\xbb\xbf" + BODY, changed(1, b"\xef\xbb\xbfone"), has=b"-\xef\xbb\xbfrow 1\n"),
    "form-feed": line(b"a\x0cb\x0b"),
    "u+2028": line("a\u2028b\u2029c\u0085d".encode()),
    "separators": line(b"a\x1cb\x1dc\x1ed"),
    "lone-cr": line(b"a\rb"),
    "nul": line(b"a\0b"),
    "200-kb-line": line(b"x" * 200_000),
    "looks-like-a-diff": text(changed(5, ODD), changed(5, ODD[::-1] + ODD), has=b"\n--- a/x\n"),
    "path-with-spaces": at("some_dist/with a b/some name.txt"),
    "path-with-quotes": at("some_dist/a \"quoted' name.txt", has=rb"\""),
    "path-with-tab": at("some_dist/a\tb.txt", has=rb"a\tb"),
    "path-c-quoted": at("some_dist/d\u00e9j\u00e0.txt", has=rb'"a/some_dist/d\303\251j\303\240.txt"'),
    "path-not-ascii": Form(
        {"some_dist/d\u00e9j\u00e0.txt": BODY},
        {"some_dist/d\u00e9j\u00e0.txt": NINE},
        lambda repository: repository.diff(config="core.quotePath=false"),
        has="a/some_dist/d\u00e9j\u00e0.txt".encode(),
    ),
    "no-prefix": edited(write=by_git("--no-prefix"), strip=0, has=b"--- some_dist/", of_git=("-p0",)),
    "other-prefixes": text(
        BODY, NINE, write=by_git("--src-prefix=x/y/", "--dst-prefix=z/w/"), strip=2, has=b"--- x/y/", of_git=("-p2",)
    ),
    "full-index": edited(write=by_git("--full-index")),
    "one-line-of-context": edited(write=by_git("-U1")),
    "whole-function-as-context": edited(write=by_git("-W", "-U9")),
    "mail": Form(
        {PLACE: BODY, "some_dist/old.txt": BODY},
        {PLACE: NINE, "some_dist/new.txt": changed(2, b"two"), "some_dist/py.typed": b""},
        by_mail("-M"),
        has=b"\n-- \n",
    ),
    "mail-with-base": edited(write=by_mail("--signoff", "--to=a@example.org", "--base=HEAD~"), has=b"\nbase-commit: "),
    "git-show": edited(write=by_show(), has=b"\n    words\n"),
    "rewritten": text(BODY * 9, b"all\nof it\nnew\n" * 99, write=by_git("-B"), has=b"dissimilarity index"),
    "other-way-round": Form(
        {PLACE: BODY, "some_dist/b.txt": BODY},
        {PLACE: NINE},
        lambda repository: repository.diff("-R", range=("HEAD", "HEAD~")),
        has=b"--- b/some_dist/text.txt\n+++ a/",
    ),
    "gnu-diff": edited(write=by_diff("-u", "-r"), has=b"--- old/some_dist/text.txt\t20"),
    "gnu-diff-with-functions": text(BODY, changed(25, b"x"), write=by_diff("-u", "-r", "-p", "-U1")),
    "gnu-diff-new-and-gone": Form(
        {"some_dist/a.txt": BODY, "some_dist/b.txt": BODY},
        {"some_dist/a.txt": BODY[7:], "some_dist/c.txt": BODY},
        by_diff("-r", "-u", "-N"),
        has=b"\t1970-01-01",
    ),
    "gnu-diff-path-with-spaces": at("some_dist/some name.txt", write=by_diff("-u", "-r", "-N"), has=b"some name.txt"),
    "subversion": edited(write=as_subversion, strip=0, has=b"Index: ", of_git=("-p0",)),
    "crlf-patch-file": edited(write=with_crlf(by_git()), has=b" @@ row 5\r\n", of_git=None),
    "crlf-patch-file-of-crlf-file": text(
        BODY.replace(b"\n", b"\r\n"),
        NINE.replace(b"\n", b"\r\n"),
        write=lambda repository: re.sub(rb"\r*\n", b"\r\n", repository.diff()),
        has=b" @@ row 5\r\n",
        of_git=None,
    ),
    "crlf-mail": edited(write=with_crlf(by_mail()), has=b"\r\n-- \r\n", of_git=None),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_applied_as_git_does_and_reverted(
    name: str, tmp_path: Path, make_tree: Callable[..., Stage]
) -> None:
    form = FORMS[name]
    repository = Repository(tmp_path / "repository")
    repository.commit(form.before, form.modes[0])
    repository.commit(form.after, form.modes[1], message="words\n\n- a list\n+ of words\n--- and dashes")
    diff = form.write(repository)
    assert form.has in diff

    stage = make_tree(form.before, form.modes[0])
    variant = {"versions": ">=1", "file": "form.patch", "strip": form.strip}
    stage.add("alpha", patch("form", diff, variant=[variant]))
    shipped = stage.tree()
    assert stage.states("check") == {"alpha/form": "pending"}
    assert stage.actions("apply") == {"alpha/form": "applied"}
    expected = {path: (data, bool(form.modes[1].get(path, 0) & 0o100)) for path, data in form.after.items()}
    assert read_tree(stage.site) == expected | ALWAYS
    if form.of_git is not None:
        root = write_tree(tmp_path / "by-git", form.before, form.modes[0])
        assert apply_with_git(root, diff, *form.of_git) == expected
    applied = stage.tree()
    assert stage.actions("apply") == {"alpha/form": "none"}
    assert stage.states("verify") == {"alpha/form": "applied"}
    assert stage.tree() == applied
    stage.run("revert", "--all").expect()
    assert stage.tree() == shipped


ALWAYS = {"some_dist/__init__.py": (b"", False)}


@pytest.fixture
def make_tree(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Stage]:
    """``make_tree(files, modes)``: a stage with these files alone, as the wheel has them."""

    def make(files: Mapping[str, bytes], modes: Mapping[str, int]) -> Stage:
        wheel = sample_wheel(tmp_path / "wheels", files={"some_dist/__init__.py": b"", **files}, modes=modes)
        return make_stage(tmp_path, unpack_wheel, capfd.readouterr, wheel)

    return make


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capfd: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capfd.readouterr)


# ---- refusals -------------------------------------------------------------------------------------------------

NAMES = b"--- a/some_dist/data.txt\n+++ b/some_dist/data.txt\n"
ONE = NAMES + b"@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
MAIL = b"From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001\nSubject: words\n\n"
GIT = b"diff --git a/some_dist/x b/some_dist/x\n"
ADDED = b"--- /dev/null\n+++ b/some_dist/x\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"

REFUSED: dict[str, tuple[str, int, bytes]] = {
    "binary": ("binary-diff", 9, ONE + GIT + b"Binary files a/some_dist/x and b/some_dist/x differ\n"),
    "binary-literal": ("binary-diff", 10, ONE + GIT + b"new file mode 100644\nGIT binary patch\nliteral 0\n\n"),
    "symbolic-link": ("symlink-diff", 9, ONE + GIT + b"new file mode 120000\n" + ADDED),
    "link-out-of-a-file": ("symlink-diff", 10, ONE + GIT + b"old mode 100644\nnew mode 120000\n"),
    "submodule": ("submodule-diff", 9, ONE + GIT + b"new file mode 160000\n" + ADDED),
    "copy": ("copy-diff", 9, ONE + GIT + b"copy from some_dist/mod.py\ncopy to some_dist/x\n"),
    "absolute": ("unsafe-path", 1, ONE.replace(b"a/some_dist", b"/some_dist").replace(b"b/some_dist", b"/some_dist")),
    "goes-up": ("unsafe-path", 1, ONE.replace(b"some_dist", b"some_dist/../../some_dist")),
    "drive-letter": ("unsafe-path", 1, ONE.replace(b"some_dist", b"C:")),
    "backslash": ("unsafe-path", 1, ONE.replace(b"some_dist/", b"some_dist\\")),
    "path-not-utf-8": ("unsafe-path", 1, ONE.replace(b"data", b"\xff")),
    "two-entries-for-one-file": ("duplicate-entry", 8, ONE + ONE),
    "differs-only-in-case": ("duplicate-entry", 8, ONE + ONE.replace(b"data.txt", b"DATA.txt")),
    "several-mails-for-one-file": ("duplicate-entry", 17, MAIL + ONE + b"-- \n2.39.5\n\n" + MAIL + ONE),
    "text-behind-a-hunk": ("text-outside-entry", 9, ONE + b"\nsome words\n"),
    "text-behind-a-signature": ("text-outside-entry", 8, ONE + b"-- \n2.39.5\n\nsome words\n"),
    "text-behind-a-base": ("text-outside-entry", 9, ONE + b"\nbase-commit: " + b"0" * 40 + b"\nsome words\n"),
    "commits-of-git-log": ("text-outside-entry", 8, ONE + b"commit " + b"0" * 40 + b"\n\n    words\n\n" + GIT),
    "only-in": ("text-outside-entry", 8, ONE + b"Only in b/some_dist: new.txt\n"),
    "only-additions": ("no-context", 3, NAMES + b"@@ -2,0 +3 @@\n+new\n"),
    "too-few-lines": ("malformed-diff", 3, ONE.replace(b"-1,3 +1,3", b"-1,4 +1,4")),
    "too-many-lines": ("malformed-diff", 7, ONE.replace(b"-1,3 +1,3", b"-1,2 +1,2")),
    "overlapping-hunks": ("malformed-diff", 8, ONE + b"@@ -2,2 +2,2 @@\n-two\n+2\n three\n"),
    "changes-nothing": ("malformed-diff", 3, NAMES + b"@@ -1,2 +1,2 @@\n one\n two\n"),
    "cut-off": ("malformed-diff", 7, ONE[:-1]),
    "mail-attachment": ("malformed-diff", 9, ONE + b"\n--------------2.39.5--\n"),
    "merge": ("malformed-diff", 8, ONE + b"diff --cc some_dist/x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1 -1 +1 @@@\n"),
    "number-too-large": ("diff-too-large", 3, ONE.replace(b"-1,3", b"-1234567890,3")),
    "no-entry": ("empty-diff", 1, b"words\n"),
    "nothing": ("empty-diff", 1, b""),
    "context-diff": ("empty-diff", 1, b"*** a/m\n--- b/m\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n"),
    "not-in-record": ("not-owned", 8, ONE + ONE.replace(b"data", b"stray")),
    "metadata": ("not-owned", 1, ONE.replace(b"some_dist/data.txt", b"some_dist-1.2.3.dist-info/METADATA")),
    "start-file": ("not-owned", 8, ONE + ADDED.replace(b"some_dist/x", b"x.pth")),
    "compiled": ("not-owned", 8, ONE + ADDED.replace(b"some_dist/x", b"some_dist/__pycache__/mod.pyc")),
    "own-state": ("not-owned", 8, ONE + ADDED.replace(b"some_dist/x", b".patchkit/ledger.json")),
    "outside-own-folders": ("not-owned", 8, ONE + ADDED.replace(b"some_dist/x", b"other/x")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_every_refusal_has_its_code_and_its_line_and_writes_nothing(name: str, stage: Stage) -> None:
    code, line, diff = REFUSED[name]
    stage.write("some_dist/stray.txt", b"one\ntwo\nthree\n")
    stage.add("alpha", patch("form", diff), patch("sound", edit(5, b"line_5 = 'five'\n")))
    before = stage.tree()
    for command in ("check", "apply"):
        error = stage.json(command, exit_code=3)["error"]
        assert error["code"] == code, error
        assert re.search(rf"alpha/form\.patch:{line}: ", error["message"]), error["message"]
    assert stage.tree() == before


def test_a_diff_over_64_mib_is_refused(stage: Stage) -> None:
    folder = stage.add("alpha", patch("form", ONE))
    with (folder / "form.patch").open("ab") as file:
        file.truncate(65 * 1024 * 1024)
    error = stage.json("apply", exit_code=3)["error"]
    assert (error["code"], "64 MiB" in error["message"]) == ("diff-too-large", True), error


def test_the_refusals_of_one_run_are_all_told(stage: Stage) -> None:
    chosen = ("binary", "symbolic-link", "copy", "goes-up", "only-additions", "outside-own-folders")
    stage.add("alpha", *(patch(name, REFUSED[name][2]) for name in chosen[:3]))
    stage.add("beta", *(patch(name, REFUSED[name][2]) for name in chosen[3:]))
    error = stage.json("apply", exit_code=3)["error"]
    told = {name for name in chosen if re.search(rf"{name}\.patch:{REFUSED[name][1]}: ", error["message"])}
    assert told >= set(chosen[:5]), error["message"]


# ---- conflicts ------------------------------------------------------------------------------------------------


def test_all_conflicts_of_a_selection_come_in_one_run_with_all_that_is_needed_to_mend_them(stage: Stage) -> None:
    """Two sets, three patches, three files, five hunks of which four do not fit; nothing is written."""
    other = b"".join(LINES).replace(b"line_5 = 5\n", b"line_5 = 'new'\n").replace(b"line_30 = 30\n", b"line_30  = 30\n")
    stage.ship(MOD, other)
    pristine = b"".join(LINES)
    wanted = pristine
    for number in (5, 18, 30):
        wanted = wanted.replace(b"line_%d = %d\n" % (number, number), b"line_%d = 'patched'\n" % number)
    stage.add(
        "alpha",
        patch("mod", make_diff({MOD: pristine}, {MOD: wanted})),
        patch("data", make_diff({DATA: b"uno\ndue\ntre\n"}, {DATA: b"uno\n2\ntre\n"})),
    )
    stage.add("beta", patch("gone", make_diff({PLACE: BODY}, {PLACE: NINE})))
    before = stage.tree()
    said = stage.json("apply", exit_code=5)
    assert stage.tree() == before
    files = {(row["patch"], file["path"]): file for row in said["patches"] for file in row["files"]}
    hunks = {key: file["hunks"] for key, file in files.items()}
    assert [hunk["result"] for hunk in hunks["mod", MOD]] == ["conflict", "fits", "conflict"]
    first, _, third = hunks["mod", MOD]
    assert (first["number"], first["line"], first["nearest"]) == (1, 2, 2)
    assert first["expected"] == [f"line_{number} = {number}" for number in range(2, 9)]
    assert first["found"] == [line.replace("line_5 = 5", "line_5 = 'new'") for line in first["expected"]]
    assert (third["number"], third["nearest"]) == (3, 27)
    assert third["found"][3] == "line_30  = 30"
    [data] = hunks["data", DATA]
    assert (data["expected"], data["found"], data["nearest"]) == (["uno", "due", "tre"], ["one", "two", "three"], None)
    message = said["error"]["message"]
    assert all(words in message for words in (MOD, DATA, PLACE, "alpha/mod", "alpha/data", "beta/gone"))
    assert f"{PLACE}" in message and "does not exist" in message
    shown = " ".join(stage.run("apply", "--verbose").expect(5).out.split())  # sentences may be broken between words
    for words in ("expected | line_5 = 5", "found near line 2 | line_5 = 'new'", "only in white space", "| due", PLACE):
        assert words in shown


# ---- the table in the documentation ---------------------------------------------------------------------------


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below ``heading`` of the page, without its head."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[2:]]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_form_is_in_the_table_and_every_test_that_it_names_is_there() -> None:
    tests = {name for file in (CHECKOUT / "tests").glob("test_*.py") for name in functions(file)}
    told = [name for row in rows("Accepted") for name in named(row[-1])]
    assert all(named(row[-1]) for row in rows("Accepted"))
    assert {name for name in told if not name.startswith("test_")} == FORMS.keys()
    assert {name for name in told if name.startswith("test_")} <= tests
    told = [name for row in rows("Refused") for name in named(row[2])]
    assert {name for name in told if not name.startswith("test_")} == REFUSED.keys()
    assert {name for name in told if name.startswith("test_")} <= tests


def functions(file: Path) -> list[str]:
    return re.findall(r"(?m)^def (test_\w+)", file.read_text("utf-8"))


def test_every_refusal_is_in_the_table_under_its_code_and_every_code_has_one() -> None:
    own = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DiffError)}
    told = {code for row in rows("Refused") for code in named(row[1])}
    assert told == own - {DiffError.code}
    for row in rows("Refused"):
        cases = [name for name in named(row[-1]) if name in REFUSED]
        assert {REFUSED[name][0] for name in cases} <= set(named(row[1])), row
