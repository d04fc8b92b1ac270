"""Hostile patch sets: what somebody might put into a patch folder, and the words that it must be refused with.

Each `Attack` lays a patch folder (and sometimes more) on a stage; ``patchkit apply`` must end with its exit code, say
its words, and change nothing. The diffs are made by hand, as no program would write them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from stages import DATA, MOD, Stage, edit, patch, put

FIVE = edit(5, b"line_5 = 'five'\n")
REPEATED = "some_dist/repeated.py"
REPEATS = 20_000
HEAD = b"--- a/%b\n+++ b/%b\n"


@dataclass(frozen=True)
class Attack:
    """What is laid on a stage, and how ``apply`` must end: with this exit code, saying each of these words."""

    lay: Callable[[Stage], object]
    code: int
    words: tuple[str, ...]


# ---- by diffs -------------------------------------------------------------------------------------------------


def diff_of(path: str, old: bytes = b"x = 1\n", new: bytes = b"x = 2\n") -> bytes:
    """A plain diff of a file with one line, of whatever path, as somebody might write it by hand."""
    return HEAD % (path.encode(), path.encode()) + b"@@ -1 +1 @@\n-%b+%b" % (old, new)


def creation_of(path: str) -> bytes:
    return b"--- /dev/null\n+++ b/%b\n@@ -0,0 +1 @@\n+x = 1\n" % path.encode()


def link_to(target: bytes, path: bytes = b"some_dist/l") -> bytes:
    head = b"diff --git a/%b b/%b\nnew file mode 120000\n--- /dev/null\n+++ b/%b\n" % (path, path, path)
    return head + b"@@ -0,0 +1 @@\n+%b\n\\ No newline at end of file\n" % target


def renaming(old: bytes, new: bytes) -> bytes:
    names = (old, new, old, new)
    return b"diff --git a/%b b/%b\nsimilarity index 100%%\nrename from %b\nrename to %b\n" % names


DIFFS: dict[str, tuple[bytes, str]] = {
    "up and out": (diff_of("../secret.py"), "goes up with `..`"),
    "up in the middle": (diff_of("some_dist/../../secret.py"), "goes up with `..`"),
    "up before what strip drops": (b"--- ../some_dist/mod.py\n+++ ../some_dist/mod.py\n@@ -1 +1 @@\n-a\n+b\n", "`..`"),
    "up, C-quoted in octal": (
        b'--- "a/some_dist/\\056\\056/\\056\\056/secret.py"\n+++ "b/some_dist/\\056\\056/\\056\\056/secret.py"\n'
        b"@@ -1 +1 @@\n-a\n+b\n",
        "goes up with `..`",
    ),
    "absolute": (b"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "is absolute"),
    "absolute behind a prefix": (diff_of("/etc/passwd"), "is absolute"),
    "a drive letter": (diff_of("C:/some_dist/mod.py"), "drive letter"),
    "backslashes": (diff_of("some_dist\\mod.py"), "backslash"),
    "an empty component": (diff_of("some_dist//mod.py"), "empty component"),
    "a component that means nothing": (diff_of("some_dist/./mod.py"), "empty component or `.`"),
    "a creation that goes up": (creation_of("../evil.py"), "goes up with `..`"),
    "a script of bin": (diff_of("../../bin/some-tool"), "goes up with `..`"),
    "a .pth of its own": (diff_of("start.pth"), "runs at every start of the interpreter"),
    "a new .pth": (creation_of("evil.pth"), "runs at every start of the interpreter"),
    "a new .PTH": (creation_of("evil.PTH"), "runs at every start of the interpreter"),
    "a rename to a .pth": (renaming(b"some_dist/data.txt", b"evil.pth"), "runs at every start of the interpreter"),
    "sitecustomize": (creation_of("sitecustomize.py"), "outside the folders of some-dist"),
    "its own metadata": (diff_of("some_dist-1.2.3.dist-info/METADATA"), "metadata of an installed distribution"),
    "its own RECORD": (diff_of("some_dist-1.2.3.dist-info/RECORD"), "metadata of an installed distribution"),
    "new metadata": (creation_of("some_dist-9.dist-info/METADATA"), "metadata of an installed distribution"),
    "new entry points": (
        creation_of("some_dist-1.2.3.DIST-INFO/entry_points.txt"),
        "metadata of an installed distribution",
    ),
    "metadata of another": (diff_of("other-1.0.dist-info/METADATA"), "metadata of an installed distribution"),
    "old metadata": (creation_of("some_dist.egg-info/PKG-INFO"), "metadata of an installed distribution"),
    "the state folder": (creation_of(".patchkit/ledger.json"), "patchkit's own state folder"),
    "the file of another": (diff_of("other/mod.py"), "not this distribution's file"),
    "the file of another in its folder": (diff_of("some_dist/plugin.py"), "not this distribution's file"),
    "a file that RECORD does not have": (diff_of("some_dist/stray.py"), "not in the RECORD of some-dist"),
    "a new file beside its folders": (creation_of("evil.py"), "outside the folders of some-dist"),
    "a new file in the folder of another": (creation_of("other/evil.py"), "outside the folders of some-dist"),
    "a new folder": (creation_of("fresh/evil.py"), "outside the folders of some-dist"),
    "compiled code": (creation_of("some_dist/__pycache__/mod.cpython-311.pyc"), "compiled code"),
    "a symbolic link": (link_to(b"/etc"), "symbolic link"),
    "a link and a file behind it": (link_to(b"/var") + creation_of("some_dist/l/evil.py"), "symbolic link"),
    "a file made a link": (
        b"diff --git a/some_dist/mod.py b/some_dist/mod.py\nold mode 100644\nnew mode 120000\n",
        "symbolic link",
    ),
    "a submodule": (
        b"diff --git a/some_dist/s b/some_dist/s\nnew file mode 160000\n--- /dev/null\n+++ b/some_dist/s\n"
        b"@@ -0,0 +1 @@\n+Subproject commit 0123456789012345678901234567890123456789\n",
        "submodule",
    ),
    "a copy": (
        b"diff --git a/some_dist/mod.py b/some_dist/c.py\nsimilarity index 100%\n"
        b"copy from some_dist/mod.py\ncopy to some_dist/c.py\n",
        "copies a file",
    ),
    "binary": (
        b"diff --git a/some_dist/data.txt b/some_dist/data.txt\nindex 1234567..89abcde 100644\n"
        b"Binary files a/some_dist/data.txt and b/some_dist/data.txt differ\n",
        "binary",
    ),
    "one file twice": (diff_of(DATA) + diff_of(DATA, b"x = 2\n", b"x = 3\n"), "has an entry already, in line 2"),
    "one file twice but for case": (diff_of(DATA) + diff_of("some_dist/DATA.txt"), "has an entry already, in line 2"),
    "a file that is a folder too": (
        creation_of("some_dist/a.py") + creation_of("some_dist/a.py/b.py"),
        "is a file in line 2 and a folder here",
    ),
    "a rename out of its folders": (renaming(b"some_dist/mod.py", b"evil.py"), "outside the folders of some-dist"),
    "a rename out of the tree": (renaming(b"some_dist/mod.py", b"../evil.py"), "goes up with `..`"),
    "a rename into the tree": (renaming(b"../secret.py", b"some_dist/secret.py"), "goes up with `..`"),
    "a rename to an absolute path": (renaming(b"some_dist/mod.py", b"/tmp/evil.py"), "is absolute"),
    "a rename of what another owns": (renaming(b"other/mod.py", b"some_dist/m.py"), "not this distribution's file"),
    "a deletion of what another owns": (
        b"--- a/other/mod.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n",
        "not this distribution's file",
    ),
    "headers that name two files": (
        b"diff --git a/some_dist/mod.py b/some_dist/mod.py\n--- a/some_dist/mod.py\n+++ b/../../evil.py\n"
        b"@@ -1 +1 @@\n-a\n+b\n",
        "one.patch:2: ",
    ),
    "NUL in a path": (diff_of("some_dist/mod.py\0.txt"), "NUL"),
    "NUL in a path, C-quoted": (
        b'--- "a/some_dist/mod.py\\000.txt"\n+++ "b/some_dist/mod.py\\000.txt"\n@@ -1 +1 @@\n-a\n+b\n',
        "NUL",
    ),
    "bytes that are no UTF-8 in a path": (diff_of("some_dist/m").replace(b"/m\n", b"/\xff\n"), "UTF-8"),
    "bytes that are no UTF-8, C-quoted": (
        b'--- /dev/null\n+++ "b/some_dist/\\377.py"\n@@ -0,0 +1 @@\n+x = 1\n',
        "UTF-8",
    ),
    "a quotation mark that is not closed": (
        b'--- "a/some_dist/mod.py\n+++ "b/some_dist/mod.py\n@@ -1 +1 @@\n-a\n+b\n',
        "quotation mark",
    ),
    "an unknown escape": (b'--- "a/some_dist/\\q"\n+++ "b/some_dist/\\q"\n@@ -1 +1 @@\n-a\n+b\n', "unknown escape"),
    "a name of 5,000 characters": (creation_of("some_dist/" + "n" * 5000), "longer than 4096 bytes"),
    "a path of 100,000 folders": (creation_of("some_dist/" + "d/" * 100_000 + "x.py"), "longer than 4096 bytes"),
}


def lay_diff(diff: bytes) -> Callable[[Stage], object]:
    return lambda stage: stage.add("fix", patch("one", diff))


# ---- by what stands in the tree -------------------------------------------------------------------------------


def lay_link_in_tree(stage: Stage) -> None:
    """The distribution's folder leads elsewhere, and a patch would change a file in it."""
    elsewhere = stage.folder / "elsewhere"
    (stage.site / "some_dist").rename(elsewhere)
    (stage.site / "some_dist").symlink_to(elsewhere, target_is_directory=True)
    stage.add("fix", patch("one", FIVE))


def lay_link_by_check(stage: Stage) -> None:
    """An earlier patch whose check made a link, and a patch that would create a file behind it."""
    (stage.folder / "elsewhere").mkdir()
    script = f"import os\nos.symlink({str(stage.folder / 'elsewhere')!r}, {str(stage.site / 'some_dist/l')!r})\n"
    check = [{"kind": "python", "file": "c.py"}]
    stage.add("early", patch("one", FIVE, check=check), checks={"c.py": script.encode()})
    stage.process("apply", "--python", sys.executable).expect()
    assert (stage.site / "some_dist/l").is_symlink()
    stage.add("fix", patch("one", creation_of("some_dist/l/evil.py")))


def lay_file_as_folder(stage: Stage) -> None:
    stage.add("fix", patch("one", creation_of("some_dist/mod.py/evil.py")))


TREES: dict[str, Attack] = {
    "a symbolic link in the place of a folder": Attack(lay_link_in_tree, 3, ("lies behind a symbolic link",)),
    "a symbolic link that the check of an earlier patch made": Attack(
        lay_link_by_check, 3, ("lies behind a symbolic link",)
    ),
    "a file in the place of a folder": Attack(lay_file_as_folder, 5, ("not a directory",)),
}


# ---- by hunks -------------------------------------------------------------------------------------------------


def hunk(header: bytes, body: bytes = b"-one\n+uno\n") -> bytes:
    return HEAD % (DATA.encode(), DATA.encode()) + header + b"\n" + body


HUNKS: dict[str, tuple[int, bytes, str]] = {
    "a start of twenty digits": (3, hunk(b"@@ -99999999999999999999 +1 @@"), "no file has lines for"),
    "a count of twenty digits": (3, hunk(b"@@ -1,99999999999999999999 +1 @@"), "no file has lines for"),
    "a count of 5,000 digits": (3, hunk(b"@@ -1," + b"9" * 5000 + b" +1 @@"), "no file has lines for"),
    "a count of nine digits": (3, hunk(b"@@ -1,999999999 +1,999999999 @@"), "cut off"),
    "a start of nine digits": (5, hunk(b"@@ -999999999 +999999999 @@"), DATA),
    "a negative start": (3, hunk(b"@@ --1 +1 @@"), "not a hunk header"),
    "lines from line 0": (3, hunk(b"@@ -0,1 +1 @@"), "line 0"),
    "too few lines": (3, hunk(b"@@ -1,9 +1,9 @@"), "states more lines"),
    "too many lines": (3, hunk(b"@@ -1 +1 @@", b"-one\n+uno\n+due\n"), "more lines than its header states"),
    "a hunk that changes nothing": (3, hunk(b"@@ -1 +1 @@", b" one\n"), "changes nothing"),
    "hunks that overlap": (3, hunk(b"@@ -1 +1 @@") + b"@@ -1 +1 @@\n-one\n+uno\n", "overlaps hunk 1"),
    "hunks out of order": (3, hunk(b"@@ -3 +3 @@", b"-three\n+tre\n") + b"@@ -1 +1 @@\n-one\n+uno\n", "stands before"),
    "only additions": (3, hunk(b"@@ -2,0 +3 @@", b"+evil = 1\n"), "no context"),
    "the end of the file in the middle": (
        3,
        hunk(b"@@ -1,2 +1,2 @@", b"-one\n\\ No newline at end of file\n+uno\n two\n"),
        "not behind the last line",
    ),
    "an unknown marker": (3, hunk(b"@@ -1 +1 @@", b"-one\n\\ evil\n+uno\n"), "begins with a backslash"),
    "the lines of another file": (5, hunk(b"@@ -1 +1 @@", b"-eins\n+uno\n"), DATA),
    "text behind an entry": (3, FIVE + b"evil words\n", "belongs to no entry"),
    "nothing": (3, b"", "the diff is empty"),
    "nothing but NUL": (3, b"\0" * 4096, "no entry of a unified diff"),
    "an ed script": (3, b"1c\nuno\n.\n!touch evil\n", "no entry of a unified diff"),
}


# ---- by manifests ---------------------------------------------------------------------------------------------

TOP = 'schema = 1\nname = "fix"\ndistribution = "some-dist"\n'
ONE = '[[patch]]\nname = "one"\n'
VARIANT = '[[patch.variant]]\nversions = ">=1"\nfile = "one.patch"\n'
WHOLE = TOP + ONE + VARIANT


def lay_manifest(data: str | bytes) -> Callable[[Stage], object]:
    """A patch set with this patchset.toml, and a diff that fits."""

    def lay(stage: Stage) -> None:
        stage.add("fix", patch("one", FIVE))
        text = data.encode() if isinstance(data, str) else data
        put(stage.patches / "fix/patchset.toml", text)

    return lay


def file_named(path: str) -> str:
    return WHOLE.replace("one.patch", path)


def check_of(lines: str) -> str:
    return f"{WHOLE}[[patch.check]]\n{lines}\n"


MANIFESTS: dict[str, tuple[str | bytes, str]] = {
    "a diff above the folder": (file_named("../one.patch"), 'leaves its folder by ".."'),
    "a diff above the folder, half way": (file_named("sub/../../one.patch"), 'leaves its folder by ".."'),
    "a diff at an absolute path": (file_named("/etc/passwd"), "is absolute"),
    "a diff behind a backslash": (file_named("..\\\\one.patch"), "backslash"),
    "a diff with NUL in its name": (file_named("one\\u0000.patch"), "control character"),
    "a diff that is not there": (file_named("two.patch"), "there is no such file"),
    "a diff that is the folder": (file_named("."), 'an empty or "." component'),
    "a check above the folder": (check_of('kind = "python"\nfile = "../c.py"'), 'leaves its folder by ".."'),
    "a check at an absolute path": (check_of('kind = "python"\nfile = "/bin/sh"'), "is absolute"),
    "a check without end": (check_of('kind = "python"\nfile = "one.patch"\ntimeout = inf'), "must be a number"),
    "a check for no number of seconds": (check_of('kind = "python"\nfile = "one.patch"\ntimeout = nan'), "a number"),
    "a check of an unknown kind": (check_of('kind = "shell"\nfile = "one.patch"'), "is not a kind of check"),
    "a module above the root": (check_of('kind = "symbol"\nmodule = "../../os"\nhas = "x"'), "module"),
    "an expression nested too deeply": (
        check_of(f'kind = "symbol"\nmodule = "some_dist.mod"\nhas = "{"(" * 5000}x{")" * 5000}"'),
        "has",
    ),
    "a chain of 20,000 operators": (
        check_of(f'kind = "symbol"\nmodule = "some_dist.mod"\nhas = "{"-" * 20000}x"'),
        "has",
    ),
    "a folder above the root": (WHOLE + 'directory = "../.."\n', 'leaves its folder by ".."'),
    "a folder at an absolute path": (WHOLE + 'directory = "/etc"\n', "is absolute"),
    "a strip below zero": (WHOLE + "strip = -1\n", "strip: must be"),
    "a strip without end": (WHOLE + "strip = 99999999999999999999\n", "strip: must be"),
    "a strip that is infinite": (WHOLE + "strip = inf\n", "strip: must be"),
    "a strip that is true": (WHOLE + "strip = true\n", "strip: must be"),
    "1,001 patches": (TOP + ONE * 1001, "1001 tables are too many"),
    "51 variants": (TOP + ONE + VARIANT * 51, "51 tables are too many"),
    "65 patterns": (WHOLE + f"include = {['**'] * 65}\n", "65 patterns are too many"),
    "a pattern of 1,025 characters": (WHOLE + f'exclude = ["{"*a" * 512}b"]\n', "1025 characters are too many"),
    "variants that overlap": (TOP + ONE + VARIANT * 2, "overlaps"),
    "a range that is none": (file_named("one.patch").replace(">=1", ">=evil"), "versions"),
    "a range of 10,001 clauses": (
        file_named("one.patch").replace(">=1", ",".join(f">={n}" for n in range(10_000, 20_000)) + ",<1"),
        "10001 clauses are too many",
    ),
    "a marker that is none": (
        TOP + "markers = \"import os; os.system('evil')\"\n" + ONE + VARIANT,
        "not a PEP 508 marker",
    ),
    "a marker nested too deeply": (
        TOP + f"markers = \"{'(' * 20000}os_name == 'x'{')' * 20000}\"\n" + ONE + VARIANT,
        "not a PEP 508 marker",
    ),
    "a constraint with a URL": (
        TOP + 'constraints = ["torch @ https://example.org/torch.whl"]\n' + ONE + VARIANT,
        "is not a constraint",
    ),
    "a name that is a path": (WHOLE.replace('"one"', '"../one"'), "is not a name"),
    "the name of another folder": (WHOLE.replace('"fix"', '"other"'), "is not the name of its folder"),
    "a distribution that is a path": (WHOLE.replace('"some-dist"', '"../some-dist"'), "not the name of a distribution"),
    "a circle of patches": (
        TOP + "".join(ONE.replace("one", n) + f'after = ["{m}"]\n' + VARIANT for n, m in ("ab", "ba")),
        "circle",
    ),
    "an unknown key": (WHOLE + 'run = "touch evil"\n', "unknown key"),
    "an unknown table": (WHOLE + "[install]\n", "unknown key"),
    "a text that is a number": (WHOLE.replace('"one.patch"', "1"), "must be a string, not an integer"),
    "a text that is an array": (WHOLE.replace('"one.patch"', "[[[1]]]"), "must be a string, not an array"),
    "a text that is a table": (WHOLE.replace('"one.patch"', "{ a = 1 }"), "must be a string, not a table"),
    "a text that is a date": (WHOLE.replace('"one.patch"', "1979-05-27T07:32:00Z"), "not a date or time"),
    "a text that is not a number": (WHOLE.replace('"one.patch"', "nan"), "must be a string, not a float"),
    "patches that are no tables": (TOP + "patch = [1, []]\n", "must be a table"),
    "patches by dotted keys": (TOP + 'patch.name = "one"\n', "must be an array of tables"),
    "a schema of tomorrow": (WHOLE.replace("schema = 1", "schema = 2"), "newer than this patchkit knows"),
    "a huge integer": (WHOLE.replace("schema = 1", "schema = " + "9" * 4000), "schema"),
    "an integer beyond Python's own limit": (WHOLE.replace("schema = 1", "schema = " + "9" * 10_000), "patchset.toml"),
    "a key twice": (WHOLE.replace("schema = 1", "schema = 1\nschema = 1"), "it is not TOML"),
    "a table twice": (WHOLE + "[a]\n[a]\n", "it is not TOML"),
    "a key of 50,000 parts": (WHOLE + ".".join("a" * 50_000) + " = 1\n", "nested too deeply"),
    "arrays nested 100,000 deep": (WHOLE + "a = " + "[" * 100_000 + "]" * 100_000, "patchset.toml: it is n"),
    "tables nested 100,000 deep": (WHOLE + "a = " + "{b=" * 100_000, "patchset.toml: it is n"),
    "5,000 wrong keys": (WHOLE + "".join(f"k{number} = 1\n" for number in range(5000)), "more problems"),
    "NUL bytes": (WHOLE.encode() + b"\0" * 100, "it is not TOML"),
    "a byte order mark": (b"\xef\xbb\xbf" + WHOLE.encode(), "byte order mark"),
    "UTF-16": (WHOLE.encode("utf-16"), "UTF-8"),
    "bytes that are no UTF-8": (WHOLE.encode() + b'summary = "\xff"\n', "it is not UTF-8"),
    "a lone surrogate": (WHOLE + 'summary = "\\ud800"\n', "it is not TOML"),
    "over a mebibyte": (WHOLE + "#" * (1 << 20), "bytes are too many"),
    "no text at all": (b"", "is missing"),
    "JSON": (b'{"schema": 1}', "it is not TOML"),
}


def lay_link_as_diff(stage: Stage) -> None:
    put(stage.folder / "secret.patch", FIVE)
    stage.add("fix", patch("one", FIVE))
    (stage.patches / "fix/one.patch").unlink()
    (stage.patches / "fix/one.patch").symlink_to(stage.folder / "secret.patch")


def lay_linked_folder(stage: Stage) -> None:
    put(stage.folder / "elsewhere/one.patch", FIVE)
    lay_manifest(file_named("sub/one.patch"))(stage)
    (stage.patches / "fix/sub").symlink_to(stage.folder / "elsewhere", target_is_directory=True)


def lay_linked_check(stage: Stage) -> None:
    put(stage.folder / "secret.py", b"")
    check = [{"kind": "python", "file": "c.py"}]
    stage.add("fix", patch("one", FIVE, check=check), checks={"c.py": b""})
    (stage.patches / "fix/c.py").unlink()
    (stage.patches / "fix/c.py").symlink_to(stage.folder / "secret.py")


def lay_device(stage: Stage) -> None:
    stage.add("fix", patch("one", FIVE))
    (stage.patches / "fix/one.patch").unlink()
    (stage.patches / "fix/one.patch").symlink_to("/dev/zero")


def lay_two_sets(stage: Stage) -> None:
    stage.add("some-dist", patch("one", FIVE))
    put(stage.patches / "some-dist==1.2.3.patch", FIVE)


def lay_selection(text: str) -> Callable[[Stage], object]:
    def lay(stage: Stage) -> None:
        stage.add("fix", patch("one", FIVE))
        put(stage.patches / "patchkit.toml", text.encode())

    return lay


FOLDERS: dict[str, Attack] = {
    "a diff that is a link out of the folder": Attack(lay_link_as_diff, 3, ("leads out of its patch set",)),
    "a diff in a folder that is a link": Attack(lay_linked_folder, 3, ("leads out of its patch set",)),
    "a check that is a link out of the folder": Attack(lay_linked_check, 3, ("leads out of its patch set",)),
    "a diff that is a device": Attack(lay_device, 3, ("one.patch",)),
    "two sets of one name": Attack(lay_two_sets, 3, ("are called some-dist",)),
    "a selection of nothing": Attack(lay_selection('select = ["fix/two"]\n'), 3, ("fix/two",)),
    "a selection that is a path": Attack(lay_selection('select = ["../fix/one"]\n'), 3, ("not the name of a patch",)),
    "a selection that is no text": Attack(lay_selection("select = [1979-05-27]\n"), 3, ("must be a string",)),
    "a selection nested too deeply": Attack(lay_selection("select = " + "[" * 100_000), 3, ("patchkit.toml: it is n",)),
}


# ---- by volume ------------------------------------------------------------------------------------------------


def hunks_of(path: str, count: int, body: bytes, *, off: int = 0) -> bytes:
    """Hunks of three lines, five lines apart; ``off`` sets their second line number beside the first."""
    lines = range(5, 5 + 5 * count, 5)
    return HEAD % (path.encode(), path.encode()) + b"".join(
        b"@@ -%d,3 +%d,3 @@\n%b" % (line, line + off, body) for line in lines
    )


def lay_bomb(stage: Stage) -> None:
    """Patterns that a matcher with second thoughts would never be done with."""
    variant = [{"versions": ">=1", "file": "one.patch", "include": ["*a" * 500 + "b"]}]
    stage.add("fix", patch("one", creation_of("some_dist/" + "a" * 4000), variant=variant))


VOLUMES: dict[str, Attack] = {
    "over 64 MiB": Attack(lay_diff(b"words " * 11_200_000), 3, ("is over 64 MiB",)),
    "over a million lines": Attack(lay_diff(b"\n" * 1_000_001), 3, ("the diff has over 1,000,000 lines",)),
    "over 20,000 files": Attack(
        lay_diff(b"".join(creation_of(f"some_dist/{number}.py") for number in range(20_001))),
        3,
        ("the diff names over 20,000 files",),
    ),
    "20,000 refused files": Attack(
        lay_diff(b"".join(creation_of(f"../{number}.py") for number in range(20_000))), 3, ("19900 more problems",)
    ),
    "5,000 files that are not there": Attack(
        lay_diff(b"".join(diff_of(f"some_dist/{number}.py") for number in range(5000))), 5, ("does not exist",)
    ),
    "20,000 hunks that fit nowhere": Attack(
        lay_diff(hunks_of(MOD, 20_000, b" a\n-b\n+c\n d\n")), 5, ("no place in the file has these lines",)
    ),
    "20,000 hunks that almost fit everywhere": Attack(
        lay_diff(hunks_of(REPEATED, 20_000, b" x = 1\n-x = 2\n+y = 1\n x = 1\n")), 5, (REPEATED,)
    ),
    "hunks that fit at every line, and contradict themselves": Attack(
        lay_diff(hunks_of(REPEATED, 3900, b" x = 1\n-x = 1\n+y = 1\n x = 1\n", off=900)), 5, ("contradict each other",)
    ),
    "a hunk of 300,000 equal lines": Attack(
        lay_diff(
            HEAD % (REPEATED.encode(), REPEATED.encode()) + b"@@ -1,300000 +1 @@\n" + b"-x = 1\n" * 300_000 + b"+y\n"
        ),
        5,
        (REPEATED,),
    ),
    "a line of 30 MB": Attack(lay_diff(hunk(b"@@ -1 +1 @@", b"-" + b"a" * 30_000_000 + b"\n+uno\n")), 5, (DATA,)),
    "patterns that match in every way": Attack(lay_bomb, 3, ("leave no file of this diff",)),
}


def _refused(diffs: dict[str, tuple[bytes, str]]) -> dict[str, Attack]:
    return {name: Attack(lay_diff(diff), 3, ("one.patch", words)) for name, (diff, words) in diffs.items()}


GROUPS: dict[str, dict[str, Attack]] = {
    "paths and kinds of files in a diff": _refused(
        {name: (b"a word\n" + diff, words) for name, (diff, words) in DIFFS.items()}
    ),
    "links in the tree": TREES,
    "hunks": {name: Attack(lay_diff(diff), code, (words,)) for name, (code, diff, words) in HUNKS.items()},
    "manifests": {
        name: Attack(lay_manifest(data), 3, (words, "patchset.toml")) for name, (data, words) in MANIFESTS.items()
    },
    "patch folders": FOLDERS,
    "volume": VOLUMES,
}
