"""Manifests: what is read, and for everything that is wrong the file, the key path and what to write instead."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchkit.errors import BadManifest, ExitCode, OrderCycle, PatchkitError, Several
from patchkit.manifest import file_sets, read_manifest, read_patchkit_toml, read_pyproject
from patchkit.patchset import (
    Constraint,
    Declaration,
    NotNeeded,
    Patch,
    PatchId,
    PatchSet,
    Project,
    Provenance,
    PythonCheck,
    SymbolCheck,
    Variant,
)
from patchkit.versions import common_version, contains, read_patch_name, specifier_trouble, variant_for

WHOLE = """
schema = 1
name = "flashinfer-dynamo"
distribution = "FlashInfer_Python"
summary = "Code that calls the FP4 quantiser can be traced by torch.compile"
constraints = ["torch>=2.4", "numpy >= 1.26, <3"]
markers = "platform_system == 'Linux'"

[[patch]]
name = "cuda-version-from-torch"
summary = "Ask torch for its CUDA version before any compiler"
default = true
group = "cuda-version"
after = ["opaque-operator", "other-set/first"]
origin = "vendor"
bug = "https://example.org/bugs/1"
forwarded = "not-needed"
applied-upstream = "0.8.0"
last-update = 2025-11-30
shadowed-by = ["FlashInfer.JIT_cache"]
constraints = ["nvidia-ml-py==12.*"]
markers = "python_version >= '3.10'"

[[patch.variant]]
versions = ">=0.2.14.post1,<0.4.0.dev0"
file = "cuda-version-from-torch.0.2.14.patch"

[[patch.variant]]
versions = ">=0.4.0.dev0,<=0.7.4"
file = "diffs/cuda-version-from-torch.0.4.0.patch"
strip = 2
directory = "flashinfer/data"
include = ["flashinfer/**"]
exclude = ["tests/**", "docs/*"]

[[patch.not-needed]]
versions = ">=0.8"
why = "fixed upstream in 0.8.0"

[[patch.check]]
versions = ">=0.4"
kind = "symbol"
module = "flashinfer.jit.cpp_ext"
symbol = "get_cuda_version"
starts-with = "if torch.version.cuda is not None"
has = "torch.version.cuda"
lacks = ["subprocess.check_output(x)", "nvcc"]
decorators = ["functools.cache"]

[[patch.check]]
kind = "python"
file = "checks/cuda_version.py"
needs = ["Torch"]
timeout = 30

[[patch]]
name = "opaque-operator"
default = false

[[patch.variant]]
versions = "==0.6.*"
file = "op.patch"
"""


def read(text: str, name: str = "flashinfer-dynamo") -> PatchSet:
    return read_manifest(text.encode(), folder=f"patches/{name}", file="patchset.toml")


def words(text: str, name: str = "flashinfer-dynamo") -> list[str]:
    """The messages of all that is wrong, without the file in front."""
    with pytest.raises(PatchkitError) as caught:
        read(text, name)
    for error in caught.value.all():
        assert isinstance(error, BadManifest | OrderCycle)
        assert error.exit_code is ExitCode.PATCH_SET
        assert error.message.startswith("patchset.toml:")
    return [error.message.removeprefix("patchset.toml:").lstrip() for error in caught.value.all()]


def small(
    *,
    top: str = "",
    patch: str = "",
    variant: str = "",
    check: str | None = None,
    more: str = "",
    versions: str = ">=1,<2",
) -> str:
    """A valid manifest of one patch with lines added."""
    checks = "" if check is None else f"[[patch.check]]\n{check}\n"
    return (
        textwrap.dedent(
            f"""\
        schema = 1
        name = "s"
        distribution = "d"
        {top}
        [[patch]]
        name = "p"
        {patch}
        [[patch.variant]]
        versions = "{versions}"
        file = "p.patch"
        {variant}
        """
        )
        + f"{checks}{more}"
    )


def only_word(**lines: str) -> str:
    (word,) = words(small(**lines), "s")  # type: ignore[arg-type]
    return word


# ---- what is read ---------------------------------------------------------------------------------------------


def test_a_whole_manifest_is_read_into_values() -> None:
    set_constraints = (Constraint("torch", ">=2.4"), Constraint("numpy", ">=1.26,<3"))
    linux = "platform_system == 'Linux'"
    cuda = Patch(
        id=PatchId("flashinfer-dynamo", "cuda-version-from-torch"),
        distribution="flashinfer-python",
        place=0,
        summary="Ask torch for its CUDA version before any compiler",
        default=True,
        group="cuda-version",
        after=(PatchId("flashinfer-dynamo", "opaque-operator"), PatchId("other-set", "first")),
        constraints=(*set_constraints, Constraint("nvidia-ml-py", "==12.*")),
        markers=(linux, "python_version >= '3.10'"),
        shadowed_by=("flashinfer-jit-cache",),
        provenance=Provenance("vendor", "https://example.org/bugs/1", "not-needed", "0.8.0", "2025-11-30"),
        variants=(
            Variant(">=0.2.14.post1,<0.4.0.dev0", "cuda-version-from-torch.0.2.14.patch"),
            Variant(
                ">=0.4.0.dev0,<=0.7.4",
                "diffs/cuda-version-from-torch.0.4.0.patch",
                2,
                "flashinfer/data",
                ("flashinfer/**",),
                ("tests/**", "docs/*"),
            ),
        ),
        not_needed=(NotNeeded(">=0.8", "fixed upstream in 0.8.0"),),
        checks=(
            SymbolCheck(
                module="flashinfer.jit.cpp_ext",
                symbol="get_cuda_version",
                starts_with="if torch.version.cuda is not None",
                has=("torch.version.cuda",),
                lacks=("subprocess.check_output(x)", "nvcc"),
                decorators=("functools.cache",),
                versions=">=0.4",
            ),
            PythonCheck("checks/cuda_version.py", ("torch",), 30.0),
        ),
    )
    operator = Patch(
        id=PatchId("flashinfer-dynamo", "opaque-operator"),
        distribution="flashinfer-python",
        place=1,
        default=False,
        constraints=set_constraints,
        markers=(linux,),
        variants=(Variant("==0.6.*", "op.patch"),),
    )
    assert read(WHOLE) == PatchSet(
        name="flashinfer-dynamo",
        distribution="flashinfer-python",
        summary="Code that calls the FP4 quantiser can be traced by torch.compile",
        folder="patches/flashinfer-dynamo",
        patches=(cuda, operator),
        constraints=set_constraints,
        markers=(linux,),
    )


def test_what_may_be_absent_has_its_default() -> None:
    (patch,) = read(small(), "s").patches
    assert patch == Patch(PatchId("s", "p"), "d", 0, variants=(Variant(">=1,<2", "p.patch"),))
    assert patch.default and patch.variants[0].strip == 1


def test_crlf_and_comments_are_toml_too() -> None:
    assert read(("# a comment\n" + small()).replace("\n", "\r\n"), "s") == read(small(), "s")


def test_a_patch_that_is_never_needed_is_one() -> None:
    text = 'schema = 1\nname = "s"\ndistribution = "d"\n[[patch]]\nname = "p"\n[[patch.not-needed]]\n'
    assert read(f'{text}versions = ">=1"\nwhy = "gone"\n', "s").patches[0].not_needed == (NotNeeded(">=1", "gone"),)


@pytest.mark.parametrize("folder", ["s", "/etc/patches/s", "patches/s/", "./s"])
def test_the_name_is_that_of_the_folder(folder: str) -> None:
    assert read_manifest(small().encode(), folder=folder, file="x").folder == folder


@pytest.mark.parametrize(("written", "text"), [("2025-11-30", "2025-11-30"), ('"last week"', "last week")])
def test_last_update_may_be_a_date_or_text(written: str, text: str) -> None:
    assert read(small(patch=f"last-update = {written}"), "s").patches[0].provenance.last_update == text


# ---- what is wrong with the file as a whole -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"schema = = 1", "f.toml: it is not TOML: "),
        (b"schema = 1\nschema = 1", "f.toml: it is not TOML: "),
        (b"a = 1\nb = '\xff'", "f.toml:2: it is not UTF-8 (byte 0xff); save it as UTF-8"),
        (b"\xef\xbb\xbfschema = 1", "f.toml: it begins with a byte order mark; save it as UTF-8 without one"),
        (b"#" * 50_000_000, "f.toml: 50000000 bytes are too many; the limit is 1048576"),
        (b"a = " + b"[" * 100_000, "f.toml: it is n"),
        (b"a = " + b"{b=" * 100_000, "f.toml: it is n"),
        (b"a = " + b"9" * 10_000, "f.toml: "),
        (b"d = 2025-13-45", "f.toml: it is not TOML: "),
        (b"", "f.toml: name: is missing"),
        (b"\0", "f.toml: it is not TOML: "),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_words(data: bytes, start: str) -> None:
    with pytest.raises(PatchkitError) as caught:
        read_manifest(data, folder="s", file="f.toml")
    messages = [error.message for error in caught.value.all()]
    assert any(message.startswith(start) for message in messages), messages
    assert all(isinstance(error, BadManifest) for error in caught.value.all())
    if data:
        with pytest.raises(PatchkitError):
            read_patchkit_toml(data, file="f.toml")


@pytest.mark.parametrize("dot", [".", " . "])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "[[{}]]", "a = {{ {} = 1 }}", '"=".{} = 1'])
def test_an_endless_key_is_refused_before_it_costs_minutes(form: str, dot: str) -> None:
    expected = "it has a key of more than 256 parts, which is nested too deeply"
    assert words(small() + form.format(dot.join("a" * 50_000)), "s") == [expected]


def test_many_dots_in_sentences_are_no_endless_key() -> None:
    summary = "One. Two, three. " * 300
    assert read(small(top=f'summary = "{summary}"'), "s").summary == summary


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "schema: is missing; write schema = 1"),
        ("schema = 0", "schema: must be 1, not 0"),
        ('schema = "1"', "schema: must be 1, not a string"),
        ("schema = true", "schema: must be 1, not a boolean"),
        ("schema = 1.0", "schema: must be 1, not 1.0"),
        ("schema = 2", "schema: 2 is newer than this patchkit knows (1); use a newer patchkit"),
        (
            "schema = 0x" + "f" * 5000,
            "schema: a huge integer is newer than this patchkit knows (1); use a newer patchkit",
        ),
    ],
)
def test_another_schema_is_refused(line: str, expected: str) -> None:
    assert words(small().replace("schema = 1", line), "s") == [expected]


def test_of_a_newer_schema_nothing_else_is_said() -> None:
    assert len(words("schema = 2\nnew-key = 3\n")) == 1


VALUES = (
    b"1",
    b"-1.5",
    b"true",
    b"nan",
    b"[]",
    b"[[]]",
    b"[{}]",
    b"{}",
    b"2025-01-01",
    b'""',
    b'"x"',
    b'["x", 1]',
    b"'\\'",
    b"=",
    b"\xff",
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 79), st.sampled_from([*VALUES, None])), min_size=1, max_size=3))
def test_whatever_a_line_is_replaced_by_there_is_a_set_or_an_error_in_words(
    changes: list[tuple[int, bytes | None]],
) -> None:
    lines = WHOLE.encode().splitlines(keepends=True)
    for number, value in changes:
        index = number % len(lines)
        key, equals, _ = lines[index].partition(b"=")
        lines[index] = b"" if value is None else key.rstrip(b"\n") + (equals or b" = ") + b" " + value + b"\n"
    problems: tuple[PatchkitError, ...] = ()
    try:
        read_manifest(b"".join(lines), folder="flashinfer-dynamo", file="f.toml")
    except PatchkitError as error:
        problems = error.all()
    assert all(problem.message.startswith("f.toml:") for problem in problems)


# ---- what is wrong with single keys ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            {"top": "sumary = 'x'"},
            'sumary: unknown key; did you mean "summary"?; known are constraints, distribution, ',
        ),
        ({"patch": "depends = []"}, "patch[0].depends: unknown key; known are after, applied-upstream, bug, "),
        ({"patch": "shadowed_by = []"}, 'patch[0].shadowed_by: unknown key; did you mean "shadowed-by"?'),
        ({"variant": "version = '1'"}, 'patch[0].variant[0].version: unknown key; did you mean "versions"?'),
        (
            {"check": 'kind = "python"\nfile = "a"\nmodule = "m"'},
            "patch[0].check[0].module: unknown key; known are file, ",
        ),
        (
            {"check": 'kind = "symbol"\nmodule = "m"\nsymbol = "s"\nstarts_with = "x"'},
            'patch[0].check[0].starts_with: unknown key; did you mean "starts-with"?',
        ),
        (
            {"more": '[[patch.not-needed]]\nversions = ">3"\nwhy = "x"\nfile = "y"'},
            "patch[0].not-needed[0].file: unknown key",
        ),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_known_one(lines: dict[str, str], expected: str) -> None:
    assert only_word(**lines).startswith(expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"top": "summary = 1"}, "summary: must be a string, not an integer"),
        ({"top": "summary = ''"}, "summary: must not be empty; leave the key out instead"),
        ({"top": "summary = '  '"}, "summary: must not be empty; leave the key out instead"),
        ({"top": "constraints = 'torch>=2'"}, 'constraints: must be a list of strings, such as ["..."], not a string'),
        ({"top": "markers = ['a']"}, "markers: must be a string, not an array"),
        ({"patch": "default = 1"}, "patch[0].default: must be true or false, not an integer"),
        ({"patch": "default = 'false'"}, "patch[0].default: must be true or false, not a string"),
        ({"patch": "after = 'x'"}, 'patch[0].after: must be a list of strings, such as ["..."], not a string'),
        ({"patch": "after = [1]"}, "patch[0].after[0]: must be a string, not an integer"),
        ({"patch": "bug = {}"}, "patch[0].bug: must be a string, not a table"),
        ({"patch": "forwarded = false"}, "patch[0].forwarded: must be a string, not a boolean"),
        ({"patch": "last-update = 20251130"}, "patch[0].last-update: must be a string, not an integer"),
        ({"patch": "origin = 2025-11-30"}, "patch[0].origin: must be a string, not a date or time"),
        ({"patch": "group = 1.5"}, "patch[0].group: must be a string, not a float"),
        ({"variant": "strip = -1"}, "patch[0].variant[0].strip: must be an integer from 0 to 64, not -1"),
        ({"variant": "strip = 65"}, "patch[0].variant[0].strip: must be an integer from 0 to 64, not 65"),
        ({"variant": "strip = true"}, "patch[0].variant[0].strip: must be an integer from 0 to 64, not a boolean"),
        ({"variant": "strip = '1'"}, "patch[0].variant[0].strip: must be an integer from 0 to 64, not a string"),
        ({"variant": "include = ['']"}, "patch[0].variant[0].include[0]: must not be empty"),
        (
            {"variant": "exclude = 'x'"},
            'patch[0].variant[0].exclude: must be a list of strings, such as ["..."], not a string',
        ),
        ({"patch": "check = 3"}, "patch[0].check: must be an array of tables, not an integer; write [[patch.check]]"),
        ({"patch": "check = [3]"}, "patch[0].check[0]: must be a table, not an integer; write [[patch.check]]"),
        (
            {"patch": "not-needed = {}"},
            "patch[0].not-needed: must be an array of tables, not a table; write [[patch.not-needed]]",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_the_right_one(lines: dict[str, str], expected: str) -> None:
    assert only_word(**lines) == expected


@pytest.mark.parametrize("name", ["-p", ".p", "a/b", "p q", "\u00e4", "p\\n", "_p", "..", "p:1"])
def test_names_are_plain(name: str) -> None:
    (word,) = words(small().replace('"p"', f'"{name}"'), "s")
    assert word.startswith('patch[0].name: "')
    assert word.endswith("is not a name; write letters, digits, '.', '_' and '-', a letter or digit first")


@pytest.mark.parametrize("name", ["p", "0", "P.1_2-3", "0.6.3"])
def test_plain_names_are_accepted(name: str) -> None:
    assert read(small().replace('"p"', f'"{name}"'), "s").patches[0].id == PatchId("s", name)


def test_the_name_must_be_that_of_the_folder() -> None:
    assert words(small(), "other") == [
        'name: "s" is not the name of its folder; write name = "other", or rename the folder'
    ]


@pytest.mark.parametrize("name", ["a b", "-a", "a-", "a==1", "a[b]", "\u00e4"])
def test_a_distribution_has_a_name_of_its_kind(name: str) -> None:
    (word,) = words(small().replace('"d"', f'"{name}"'), "s")
    assert word == f'distribution: "{name}" is not the name of a distribution, such as "flashinfer-python"'
    assert "is not the name of a distribution" in only_word(patch=f'shadowed-by = ["{name}"]')
    assert "is not the name of a distribution" in only_word(check=f'kind = "python"\nfile = "f"\nneeds = ["{name}"]')


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/p.patch", "is absolute"),
        ("C:/p.patch", "is absolute"),
        ("../p.patch", 'leaves its folder by ".."'),
        ("a/../p.patch", 'leaves its folder by ".."'),
        ("a\\\\p.patch", "has a backslash, which separates nothing here"),
        ("a//p.patch", 'has an empty or "." component'),
        ("./p.patch", 'has an empty or "." component'),
        ("a/", 'has an empty or "." component'),
        ("a\\u0000b", "has a control character"),
        ("a\\nb", "has a control character"),
    ],
)
def test_paths_stay_in_their_folder(path: str, why: str) -> None:
    end = f'{why}; write a relative path such as "fixes/a.patch"'
    (word,) = words(small().replace("p.patch", path), "s")
    assert word.startswith('patch[0].variant[0].file: "') and word.endswith(end)
    assert only_word(check=f'kind = "python"\nfile = "{path}"').endswith(end)
    assert only_word(variant=f'directory = "{path}"').startswith("patch[0].variant[0].directory: ")


@pytest.mark.parametrize(
    "text",
    [
        "torch",
        "torch[cuda]>=2",
        "torch>=2; python_version>'3'",
        "torch @ https://example.org/x.whl",
        "torch=2",
        ">=2",
        "t>2,<1",
    ],
)
def test_a_constraint_is_a_name_and_a_specifier(text: str) -> None:
    tail = 'is not a constraint: a name and a specifier, without extras, markers or URLs, such as "torch>=2.4"'
    assert only_word(top=f'constraints = ["numpy>1", "{text}"]') == f'constraints[1]: "{text}" {tail}'
    assert only_word(patch=f'constraints = ["{text}"]') == f'patch[0].constraints[0]: "{text}" {tail}'


@pytest.mark.parametrize("text", ["linux", "platform_system = 'Linux'", "os_name == 'posix' and", "(" * 3000])
def test_a_marker_is_that_of_pep_508(text: str) -> None:
    expected = f"`{text}` is not a PEP 508 marker; write for example \"platform_system == 'Linux'\""
    assert only_word(top=f'markers = "{text}"') == f"markers: {expected}"
    assert only_word(patch=f'markers = "{text}"') == f"patch[0].markers: {expected}"


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("", "kind: is missing"),
        ('kind = "shell"', 'kind: "shell" is not a kind of check; write "symbol" or "python"'),
        ('kind = "symbol"\nsymbol = "f"', "module: is missing"),
        ('kind = "symbol"\nmodule = "m"', "symbol: name a symbol, or say what the module starts-with, has or lacks"),
        (
            'kind = "symbol"\nmodule = "m.py"\nsymbol = "f g"',
            'symbol: "f g" is not a dotted name, such as "Class.method"',
        ),
        ('kind = "symbol"\nmodule = "m"\nsymbol = "f"\nhas = "a b"', "has[0]: `a b` cannot be read as Python: "),
        ('kind = "symbol"\nmodule = "m"\nsymbol = "f"\nhas = ["a", "b c"]', "has[1]: `b c` cannot be read as Python: "),
        ('kind = "symbol"\nmodule = "m"\nsymbol = "f"\nstarts-with = "elif x"', "starts-with: `elif x` cannot be read"),
        (
            'kind = "symbol"\nmodule = "m"\nsymbol = "f"\nlacks = 3',
            "lacks: must be a string or a list of strings, such as",
        ),
        (
            'kind = "symbol"\nmodule = "m"\nsymbol = "f"\nversions = "2"',
            'versions: "2" is not a PEP 440 specifier; write',
        ),
        ('kind = "python"', "file: is missing"),
        ('kind = "python"\nfile = "f"\ntimeout = 0', "timeout: must be a number above 0, up to 3600, not 0"),
        ('kind = "python"\nfile = "f"\ntimeout = 3601', "timeout: must be a number above 0, up to 3600, not 3601"),
        ('kind = "python"\nfile = "f"\ntimeout = nan', "timeout: must be a number above 0, up to 3600, not nan"),
        ('kind = "python"\nfile = "f"\ntimeout = inf', "timeout: must be a number above 0, up to 3600, not inf"),
        ('kind = "python"\nfile = "f"\ntimeout = true', "timeout: must be a number above 0, up to 3600, not a boolean"),
        ('kind = "python"\nfile = "f"\ntimeout = "60"', "timeout: must be a number above 0, up to 3600, not a string"),
        ('kind = "python"\nfile = "f"\nneeds = "torch"', "needs: must be a list of strings, such as"),
    ],
)
def test_a_check_says_what_it_lacks(check: str, expected: str) -> None:
    assert only_word(check=check).startswith(f"patch[0].check[0].{expected}")


@pytest.mark.parametrize("key", ["has", "lacks", "decorators"])
def test_one_text_is_a_list_of_one(key: str) -> None:
    check = 'kind = "symbol"\nmodule = "m"\nsymbol = "f"\n'
    one, many = (read(small(check=f"{check}{key} = {value}"), "s") for value in ('"x"', '["x"]'))
    assert one == many
    assert read(small(check='kind = "python"\nfile = "f"\ntimeout = 0.5'), "s").patches[0].checks == (
        PythonCheck("f", timeout=0.5),
    )


# ---- what is wrong between keys -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["patch: a patch set needs at least one patch; write [[patch]]"]),
        ("patch = []", ["patch: a patch set needs at least one patch; write [[patch]]"]),
        ("patch = 1", ["patch: must be an array of tables, not an integer; write [[patch]]"]),
        (
            '[[patch]]\nname = "p"',
            ["patch[0].variant: a patch needs a diff, or the versions that need none; write [[patch.variant]]"],
        ),
        (
            '[[patch]]\nname = "p"\nvariant = []',
            ["patch[0].variant: a patch needs a diff, or the versions that need none; write [[patch.variant]]"],
        ),
        (
            "[[patch]]\n[[patch.variant]]\n[[patch.not-needed]]",
            [
                "patch[0].name: is missing",
                "patch[0].variant[0].versions: is missing",
                "patch[0].variant[0].file: is missing",
                "patch[0].not-needed[0].versions: is missing",
                "patch[0].not-needed[0].why: is missing",
            ],
        ),
    ],
)
def test_what_is_missing_is_named(text: str, expected: list[str]) -> None:
    assert words(f'schema = 1\nname = "s"\ndistribution = "d"\n{text}\n', "s") == expected


def another(name: str, lines: str = "") -> str:
    return f'\n[[patch]]\nname = "{name}"\n{lines}\n[[patch.variant]]\nversions = ">=1"\nfile = "{name}.patch"\n'


def test_names_of_patches_are_unique() -> None:
    assert only_word(more=another("p")) == (
        'patch[1].name: "p" is also the name of patch[0]; names are unique in a set'
    )


def test_a_group_has_at_most_one_default() -> None:
    word = only_word(patch='group = "g"', more=another("q", 'group = "g"'))
    assert word == (
        'patch[1].default: "q" and "p" are both defaults of the group "g"; '
        "write default = false for all but one (true where absent)"
    )
    read(small(patch='group = "g"', more=another("q", 'group = "g"\ndefault = false')), "s")
    read(small(patch='group = "g"', more=another("q", 'group = "h"')), "s")


@pytest.mark.parametrize("name", ["q", "s/q"])
def test_after_a_patch_that_is_not_there_is_an_error(name: str) -> None:
    assert only_word(patch=f'after = ["{name}"]') == 'patch[0].after: there is no patch "q" in this set'


def test_after_a_patch_of_another_set_is_for_others_to_judge() -> None:
    assert read(small(patch='after = ["t/q", "t/q"]'), "s").patches[0].after == (PatchId("t", "q"),)


@pytest.mark.parametrize("name", ["p", "s/p"])
def test_nothing_comes_after_itself(name: str) -> None:
    assert only_word(patch=f'after = ["{name}"]') == 'patch[0].after: "p" cannot come after itself'


@pytest.mark.parametrize("name", ["a/b/c", "/q", "q/", "a b"])
def test_after_takes_names_of_patches(name: str) -> None:
    assert only_word(patch=f'after = ["{name}"]') == (
        f'patch[0].after[0]: "{name}" is not the name of a patch; write "PATCH" or "SET/PATCH"'
    )


def test_a_circle_of_after_is_an_order_cycle() -> None:
    text = small(
        patch='after = ["q"]',
        more=another("q", 'after = ["r"]') + another("r", 'after = ["p"]') + another("t", 'after = ["p"]'),
    )
    with pytest.raises(OrderCycle) as caught:
        read(text, "s")
    assert caught.value.message == "patchset.toml: `after` goes in a circle: p after q after r after p"
    read(small(patch='after = ["q", "r"]', more=another("q", 'after = ["r"]') + another("r")), "s")


def test_all_problems_come_at_once_each_with_its_place() -> None:
    text = small(top="sumary = 1", patch="default = 3", variant="strip = 99", check='kind = "x"', versions="1")
    with pytest.raises(Several) as caught:
        read(text, "other")
    places = [error.message.split(": ")[1] for error in caught.value.errors]
    assert sorted(places) == [
        "name",
        "patch[0].check[0].kind",
        "patch[0].default",
        "patch[0].variant[0].strip",
        "patch[0].variant[0].versions",
        "sumary",
    ]
    assert caught.value.first.exit_code is ExitCode.PATCH_SET


# ---- versions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["1.0", "^1.0", ">=1.0 <2", "latest", ">=1.*", "~=1", "===foo", ">=", ">=1;<2", "==1.0+"]
)
def test_a_range_is_a_specifier(text: str) -> None:
    assert only_word(versions=text) == (
        f'patch[0].variant[0].versions: "{text}" is not a PEP 440 specifier; write for example ">=0.4.0.dev0,<0.5.dev0"'
    )


@pytest.mark.parametrize(
    "text", [">=2,<1", "<0", ">=1,<1", "==1.0,!=1.0", "==1.*,!=1.*", ">1.0,<=1.0.post5", "<1.0,>=1.0rc1"]
)
def test_an_empty_range_is_an_error(text: str) -> None:
    assert only_word(versions=text) == (
        f'patch[0].variant[0].versions: "{text}" holds no version at all; write for example ">=0.4.0.dev0,<0.5.dev0"'
    )


@pytest.mark.parametrize("text", [",", " , "])
def test_a_range_of_no_clause_is_an_error(text: str) -> None:
    assert "names no version" in only_word(versions=text)


def test_digits_without_end_are_no_version() -> None:
    assert "is not a PEP 440 specifier" in specifier_trouble(">=" + "9" * 10_000)


def variants(*ranges: str) -> str:
    tables = "".join(f'[[patch.variant]]\nversions = "{text}"\nfile = "{n}.patch"\n' for n, text in enumerate(ranges))
    return f'schema = 1\nname = "s"\ndistribution = "d"\n[[patch]]\nname = "p"\n{tables}'


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (">=0.4,<=0.6", ">=0.5", "0.6"),
        (">=0.5", ">=0.4,<=0.6", "0.5"),
        ("==1.0", "==1.0+cu130", "1.0+cu130"),
        ("==1.0", "==1.0.0", "1.0"),
        (">1.0", "<1.0.1", "1.0.0.1"),
        (">1.0.post1", "<1.0.post3", "1.0.post2"),
        ("==1.*", "==1.2.*", "1.2"),
        ("==1.*", "<=1.dev5", "1.dev5"),
        ("~=1.4.5", ">1.4.9", "1.4.9.0.1"),
        ("<=1.0", ">=1.0", "1.0"),
        ("!=1.0", "!=2.0", "2.0"),
        (">1.0rc1", "<1.0rc3", "1.0rc2"),
        (">=1.0.dev0", "<1.1", "1.0.dev0"),
    ],
)
def test_ranges_of_one_patch_must_not_overlap(one: str, other: str, common: str) -> None:
    (word,) = words(variants(one, other), "s")
    assert word.startswith(
        f'patch[0].variant[1].versions: "{other}" overlaps patch[0].variant[0].versions "{one}": both hold '
    )
    shared = word.partition("both hold ")[2].partition(";")[0]
    assert Version(shared) == Version(common) or (contains(one, shared) and contains(other, shared))
    assert word.endswith("; write ranges that share no version")


@pytest.mark.parametrize(
    "ranges",
    [
        (">=0.4.dev0,<0.5.dev0", ">=0.5.dev0,<0.6.dev0", ">=0.6.dev0,<=0.7.4"),
        ("<1.0", ">=1.0"),
        ("<1.0", ">=1.0.dev0"),
        ("<=1.0", ">1.0"),
        ("==1.*", "==2.*", "==3.0"),
        ("~=1.4.5", ">=1.5.dev0"),
        ("==1.0+cu130", "==1.0,!=1.0+cu130"),
        ("!=1.*", "==1.2"),
        (">=1,<2,!=1.5", "==1.5"),
    ],
)
def test_ranges_that_touch_are_fine(ranges: tuple[str, ...]) -> None:
    assert len(read(variants(*ranges), "s").patches[0].variants) == len(ranges)


def test_not_needed_must_not_overlap_a_variant_either() -> None:
    word = only_word(more='[[patch.not-needed]]\nversions = ">=1.5"\nwhy = "x"\n')
    assert word.startswith(
        'patch[0].not-needed[0].versions: ">=1.5" overlaps patch[0].variant[0].versions ">=1,<2": both hold 1.5'
    )


numbers = st.integers(0, 3)
releases = st.builds(lambda parts: ".".join(map(str, parts)), st.lists(numbers, min_size=1, max_size=3))
suffixes = st.sampled_from(["", ".dev1", "a1", "rc1", "rc2.dev1", ".post1", ".post2.dev0", "rc1.post1"])
all_versions = st.builds("{}{}".format, releases, suffixes)
clauses = st.one_of(
    st.builds("{}{}".format, st.sampled_from([">=", "<=", ">", "<", "==", "!="]), all_versions),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), releases),
    st.builds("~={}.{}".format, numbers, all_versions),
)
specifiers = st.builds(",".join, st.lists(clauses, min_size=1, max_size=3))


@settings(max_examples=300, deadline=None)
@given(specifiers, specifiers, all_versions, st.sampled_from(["", "+cu130"]))
def test_a_version_that_two_ranges_share_is_always_noticed(one: str, other: str, version: str, local: str) -> None:
    in_one, in_other = contains(one, version + local), contains(other, version + local)
    assert not (in_one and specifier_trouble(one))
    common = common_version(one, other)
    assert common is not None or not (in_one and in_other)
    assert common is None or (contains(one, common) and contains(other, common))


PATCH = read(WHOLE).patches[0]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.2.14", None),
        ("0.2.14.post1", PATCH.variants[0]),
        ("0.3.99rc1", PATCH.variants[0]),
        ("0.4.0.dev0", PATCH.variants[1]),
        ("0.4.0rc1", PATCH.variants[1]),
        ("0.6.12+cu130", PATCH.variants[1]),
        ("0.7.4+cu130", PATCH.variants[1]),
        ("0.7.4.post1", None),
        ("0.8rc1", None),
        ("0.8.0", PATCH.not_needed[0]),
        ("1.0.dev3", PATCH.not_needed[0]),
        ("not a version", None),
        ("", None),
    ],
)
def test_a_version_gets_the_variant_whose_range_holds_it(version: str, expected: Variant | NotNeeded | None) -> None:
    assert variant_for(PATCH, version) == expected


def test_pre_releases_and_local_versions_always_count() -> None:
    assert contains("<=0.7.4", "0.7.4rc1") and contains("!=1", "2rc1") and contains(">=1", "2.dev0")
    assert contains("==1.0", "1.0+cu130") and not contains("==1.0+cu130", "1.0")
    assert SpecifierSet("<=0.7.4").contains("0.7.4+cu130", prereleases=True) is contains("<=0.7.4", "0.7.4+cu130")


# ---- select, deselect, [tool.patchkit] ------------------------------------------------------------------------


def test_patchkit_toml_selects_and_deselects() -> None:
    data = b'select = ["s/p", "s/q"]\ndeselect = ["t/r"]\n'
    assert read_patchkit_toml(data, file="patchkit.toml") == Declaration(("s/p", "s/q"), ("t/r",), "patchkit.toml")


def test_a_file_that_says_nothing_is_no_source() -> None:
    assert read_patchkit_toml(b"# nothing yet\n", file="patchkit.toml") == Declaration()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("selekt = []", 'selekt: unknown key; did you mean "select"?; known are deselect, select'),
        ('patches = "x"', "patches: unknown key; known are deselect, select"),
        ('select = "s/p"', 'select: must be a list of strings, such as ["..."], not a string'),
        ('select = ["s"]', 'select[0]: "s" is not the name of a patch; write "SET/PATCH"'),
        ('deselect = ["a/b", "a/b/c"]', 'deselect[1]: "a/b/c" is not the name of a patch; write "SET/PATCH"'),
        ('select = ["a/b"]\ndeselect = ["a/b"]', 'deselect: "a/b" is also in select; keep it in one of them'),
    ],
)
def test_a_wrong_declaration_is_refused_in_both_files(text: str, expected: str) -> None:
    with pytest.raises(BadManifest) as caught:
        read_patchkit_toml(text.encode(), file="f.toml")
    assert caught.value.message == f"f.toml: {expected}"
    if "patches" not in text:
        with pytest.raises(BadManifest) as caught:
            read_pyproject(f"[tool.patchkit]\n{text}\n".encode(), file="f.toml")
        assert caught.value.message.startswith(f"f.toml: tool.patchkit.{expected.partition(';')[0]}")


@pytest.mark.parametrize(("written", "folders"), [('"fixes"', ("fixes",)), ('["a", "../b"]', ("a", "../b"))])
def test_a_pyproject_names_the_folders(written: str, folders: tuple[str, ...]) -> None:
    data = f'[project]\nname = "x"\n[tool.patchkit]\npatches = {written}\nselect = ["s/p"]\n'.encode()
    assert read_pyproject(data, file="pyproject.toml") == Project(folders, Declaration(("s/p",), (), "pyproject.toml"))


def test_an_empty_table_is_still_one() -> None:
    assert read_pyproject(b"[tool.patchkit]\n", file="f") == Project()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[project]\nname = 'x'\n",
        b"broken = = toml\n",
        b"[project]\nname = 'x'\ndependencies = ['patchkit']\n",
        b"tool = 3 # patchkit\n",
        b"[tool.other]\npatchkit = 1\n",
    ],
)
def test_a_pyproject_that_does_not_speak_of_patchkit_says_nothing(data: bytes) -> None:
    assert read_pyproject(data, file="pyproject.toml") is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"[tool]\npatchkit = 3\n", "f.toml: tool.patchkit: must be a table; write [tool.patchkit]"),
        (
            b"[tool.patchkit]\npatches = 3\n",
            "f.toml: tool.patchkit.patches: must be a string or a list of strings, such as",
        ),
        (b"[tool.patchkit]\npatches = ['']\n", "f.toml: tool.patchkit.patches[0]: must not be empty"),
        (b"[tool.patchkit]\npatch = 'x'\n", 'f.toml: tool.patchkit.patch: unknown key; did you mean "patches"?'),
        (b"[tool.patchkit\n", "f.toml: it is not TOML: "),
    ],
)
def test_a_wrong_table_in_a_pyproject_is_refused(data: bytes, expected: str) -> None:
    with pytest.raises(BadManifest) as caught:
        read_pyproject(data, file="f.toml")
    assert caught.value.message.startswith(expected)


# ---- patch files without manifest -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("some-dist==1.2.3.patch", ("some-dist", "1.2.3")),
        ("some-dist@1.2.3.patch", ("some-dist", "1.2.3")),
        ("some-dist+1.2.3.patch", ("some-dist", "1.2.3")),
        ("Some_Dist.x==1.2.3.patch", ("some-dist-x", "1.2.3")),
        ("flashinfer-python==0.6.12+cu130.patch", ("flashinfer-python", "0.6.12+cu130")),
        ("flashinfer-python+0.6.12+cu130.patch", ("flashinfer-python", "0.6.12+cu130")),
        ("d@1!2.0rc1.post2.dev3.patch", ("d", "1!2.0rc1.post2.dev3")),
    ],
)
def test_the_name_of_a_patch_file_states_distribution_and_version(file: str, expected: tuple[str, str]) -> None:
    assert read_patch_name(file) == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("fix.patch", "fix.patch: the name states no version; write DISTRIBUTION==VERSION.patch"),
        ("d==1.0.diff", "d==1.0.diff: the name states no version; write DISTRIBUTION==VERSION.patch"),
        ("==1.0.patch", "==1.0.patch: the name states no version; write DISTRIBUTION==VERSION.patch"),
        ("-d==1.0.patch", '-d==1.0.patch: "-d" is not the name of a distribution; write some-dist==1.2.3.patch'),
        ("d==latest.patch", 'd==latest.patch: "latest" is not a version (PEP 440); write d==1.2.3.patch'),
        ("d==.patch", 'd==.patch: "" is not a version (PEP 440); write d==1.2.3.patch'),
        ("d== 1.0.patch", 'd== 1.0.patch: " 1.0" is not a version (PEP 440); write d==1.2.3.patch'),
        ("d==1.*.patch", 'd==1.*.patch: "1.*" is not a version (PEP 440); write d==1.2.3.patch'),
        ("d>=1.0.patch", "d>=1.0.patch: the name states no version; write DISTRIBUTION==VERSION.patch"),
    ],
)
def test_a_name_that_states_neither_is_refused(file: str, expected: str) -> None:
    with pytest.raises(BadManifest) as caught:
        read_patch_name(file)
    assert caught.value.message == expected


def test_all_files_of_one_distribution_are_one_set() -> None:
    files = ["some_dist@1.10.patch", "some-dist==1.9.patch", "Some.Dist+1.9rc1.patch", "other==1.0+cu130.patch"]
    other, some = file_sets(files, folder="patches")
    assert other == PatchSet(
        "other",
        "other",
        "",
        "patches",
        (Patch(PatchId("other", "default"), "other", 0, variants=(Variant("==1.0+cu130", "other==1.0+cu130.patch"),)),),
    )
    assert [(one.versions, one.file) for one in some.patches[0].variants] == [
        ("==1.9rc1", "Some.Dist+1.9rc1.patch"),
        ("==1.9", "some-dist==1.9.patch"),
        ("==1.10", "some_dist@1.10.patch"),
    ]
    assert variant_for(some.patches[0], "1.10.0") == Variant("==1.10", "some_dist@1.10.patch")
    assert file_sets([], folder="patches") == ()


def test_two_files_for_one_version_and_wrong_names_are_refused_at_once() -> None:
    with pytest.raises(Several) as caught:
        file_sets(["d==1.0.patch", "d@1.0.0.patch", "fix.patch", "e==1.patch", "e==1+cu.patch"], folder="patches")
    assert [error.message for error in caught.value.errors] == [
        "patches/fix.patch: the name states no version; write DISTRIBUTION==VERSION.patch",
        "patches: d==1.0.patch and d@1.0.0.patch are both for d 1.0; keep one, or write a patchset.toml",
        "patches: e==1.patch and e==1+cu.patch are both for e 1+cu; keep one, or write a patchset.toml",
    ]


# ---- what a run that changes nothing pays ---------------------------------------------------------------------


def test_a_plain_manifest_imports_neither_markers_nor_difflib_nor_requirements() -> None:
    program = textwrap.dedent(
        """
        import sys
        from patchkit.manifest import read_manifest
        read_manifest(sys.stdin.buffer.read(), folder="s", file="f")
        slow = {"difflib", "packaging.markers", "packaging.requirements", "unidiff", "importlib.metadata"}
        sys.exit(" ".join(sorted(slow & set(sys.modules))) or 0)
        """
    )
    check = 'kind = "symbol"\nmodule = "m"\nsymbol = "f"\nhas = "x"'
    done = subprocess.run(
        [sys.executable, "-c", program], input=small(check=check).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
