"""Static symbol checks: which definitions count, how code is compared, and what the verdict says."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from patchkit.patchset import SymbolCheck
from patchkit.symbols import SymbolVerdict, evaluate, module_paths, validate

PATCHED = '''
"""Where CUDA comes from."""
import functools
import torch
from packaging.version import Version
from elsewhere import borrowed

@functools.cache
def get_cuda_version() -> Version:
    """The version of CUDA."""
    if torch.version.cuda is not None:
        return Version(torch.version.cuda)
    return ask_nvcc(timeout=(60))
'''

UNPATCHED = """
import functools

@functools.cache
def get_cuda_version():
    try:
        return ask_nvcc()
    except OSError:
        return None
"""


def check(symbol: str = "", **criteria: object) -> SymbolCheck:
    made = SymbolCheck(module="pkg.mod", symbol=symbol, **criteria)  # type: ignore[arg-type]
    assert validate(made) == []
    return made


def verdict(source: str, symbol: str = "", **criteria: object) -> SymbolVerdict:
    return evaluate(check(symbol, **criteria), textwrap.dedent(source).encode(), path="pkg/mod.py")


def passes(source: str, symbol: str = "", **criteria: object) -> bool:
    return verdict(source, symbol, **criteria).passed


def words_of_failure(source: str, symbol: str = "", **criteria: object) -> str:
    found = verdict(source, symbol, **criteria)
    assert not found.passed
    assert found.message.startswith("pkg/mod.py: ")
    return found.message.removeprefix("pkg/mod.py: ")


def test_a_module_lies_in_one_of_two_files() -> None:
    assert module_paths("a.b") == ("a/b/__init__.py", "a/b.py")
    assert module_paths("single") == ("single/__init__.py", "single.py")


# ---- starts-with ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "if torch.version.cuda is not None",
        "if torch.version.cuda is not None:",
        "if (torch.version.cuda   is not None) : ",
        "if torch.version.cuda is not None:\n    return Version(torch.version.cuda)",
        "if torch.version.cuda is not None: return Version(torch.version.cuda)",
    ],
)
def test_the_statement_behind_the_docstring_is_compared_as_syntax(text: str) -> None:
    assert passes(PATCHED, "get_cuda_version", starts_with=text)


@pytest.mark.parametrize(
    "text",
    [
        "if torch.version.cuda is None",
        "if torch.version.hip is not None",
        "while torch.version.cuda is not None",
        "if torch.version.cuda is not None: return torch.version.cuda",
        "if torch.version.cuda is not None:\n  return Version(torch.version.cuda)\nelse:\n  pass",
        "torch.version.cuda is not None",
        "return ask_nvcc(timeout=60)",
    ],
)
def test_another_first_statement_fails(text: str) -> None:
    assert not passes(PATCHED, "get_cuda_version", starts_with=text)


def test_a_wrong_start_says_what_was_wanted_where_and_what_is_there() -> None:
    words = words_of_failure(UNPATCHED, "get_cuda_version", starts_with="if torch.version.cuda is not None")
    assert words == (
        "get_cuda_version (line 5) should start with `if torch.version.cuda is not None`, but starts with `try: ...`"
    )


def test_a_passed_check_says_what_was_found() -> None:
    found = verdict(
        PATCHED,
        "get_cuda_version",
        starts_with="if torch.version.cuda is not None",
        has=("ask_nvcc",),
        lacks=("subprocess",),
        decorators=("functools.cache",),
    )
    assert found == SymbolVerdict(
        True,
        "pkg/mod.py: get_cuda_version starts with `if torch.version.cuda is not None`, has `ask_nvcc`, "
        "lacks `subprocess`, is decorated with `functools.cache`",
    )
    assert verdict(PATCHED, "get_cuda_version").message == "pkg/mod.py: get_cuda_version is defined"


@pytest.mark.parametrize(
    ("header", "statement"),
    [
        ("for x in range(3)", "for x in range(3):\n    print(x)\nelse:\n    pass"),
        ("while True:", "while True:\n    break"),
        ("with open(p) as f", "with open(p) as f:\n    pass"),
        ("try", "try:\n    pass\nexcept OSError:\n    pass"),
        ("try:", "try:\n    pass\nfinally:\n    pass"),
        ("def inner(a, *, b=1) -> int", "@wraps\ndef inner(a, *, b=1) -> int:\n    return a"),
        ("class Inner(Base)", "class Inner(Base):\n    x = 1"),
        ("match value", "match value:\n    case 1:\n        pass"),
    ],
)
def test_headers_of_every_compound_statement_are_compared_without_their_bodies(header: str, statement: str) -> None:
    source = "def f():\n" + textwrap.indent(statement, "    ")
    assert passes(source, "f", starts_with=header)
    assert not passes("def f():\n    return 1\n", "f", starts_with=header)


@pytest.mark.parametrize(
    ("header", "statement"),
    [
        ("for x in range(3)", "for y in range(3):\n    pass"),
        ("with open(p) as f", "with open(p) as g:\n    pass"),
        ("with open(p) as f", "async with open(p) as f:\n    pass"),
        ("def inner(a)", "def inner(b):\n    pass"),
        ("class Inner(Base)", "class Inner(Other):\n    pass"),
    ],
)
def test_another_header_fails(header: str, statement: str) -> None:
    assert not passes("async def f():\n" + textwrap.indent(statement, "    "), "f", starts_with=header)


def test_a_module_and_a_class_start_behind_their_docstrings_too() -> None:
    assert passes(PATCHED, starts_with="import functools")
    assert passes('class A:\n    """Doc."""\n    slots = ()\n', "A", starts_with="slots = ()")


def test_a_body_of_a_docstring_only_is_empty() -> None:
    words = words_of_failure('def f():\n    """Doc."""\n', "f", starts_with="pass")
    assert words == "f (line 1) should start with `pass`, but its body is empty"


def test_an_assignment_has_no_body() -> None:
    words = words_of_failure("LIMIT = 3\n", "LIMIT", starts_with="pass")
    assert words == "LIMIT (line 1) should start with `pass`, but it is an assignment, which has no body"


# ---- has, lacks, decorators -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "torch.version.cuda",
        "Version( torch.version.cuda )",
        "ask_nvcc(timeout=60)",
        "return Version(torch.version.cuda)",
        "if torch.version.cuda is not None",
        "functools.cache",
        "'The version of CUDA.'",
        "Version",
    ],
)
def test_expressions_and_statements_are_found_anywhere_in_the_definition(text: str) -> None:
    assert passes(PATCHED, "get_cuda_version", has=(text,))
    assert not passes(PATCHED, "get_cuda_version", lacks=(text,))


@pytest.mark.parametrize("text", ["torch.version", "1", "'60'", "60.0", "True", "ask_nvcc()", "borrowed", "return"])
def test_what_is_not_there_is_not_found(text: str) -> None:
    wanted = text == "torch.version"  # a part of a longer name is an expression, too
    assert passes(PATCHED, "get_cuda_version", has=(text,)) is wanted
    assert passes(PATCHED, "get_cuda_version", lacks=(text,)) is not wanted


def test_constants_of_different_types_are_different() -> None:
    assert not passes("x = 1\n", "x", has=("True",))
    assert not passes("x = 1\n", "x", has=("1.0",))
    assert not passes("x = 'a'\n", "x", has=("b'a'",))
    assert passes("x = 'a' 'b'\n", "x", has=('"ab"',))
    assert passes("x = 0x10\n", "x", has=("16",))


def test_it_does_not_matter_whether_a_name_is_loaded_or_stored() -> None:
    assert passes("def f(self):\n    self.cuda = 1\n", "f", has=("self.cuda",))


def test_comments_are_not_code() -> None:
    assert not passes("def f():\n    # torch.version.cuda\n    return 1\n", "f", has=("torch.version.cuda",))


def test_the_words_for_has_and_lacks_name_the_line() -> None:
    assert words_of_failure(PATCHED, "get_cuda_version", has=("subprocess.run",)) == (
        "`subprocess.run` is not in get_cuda_version (line 9), where it should be"
    )
    assert words_of_failure(PATCHED, "get_cuda_version", lacks=("ask_nvcc",)) == (
        "`ask_nvcc` is in get_cuda_version (line 9), at line 13, where it should not be"
    )
    assert words_of_failure(PATCHED, has=("subprocess",)) == "`subprocess` is not in the module, where it should be"


def test_a_keyword_argument_that_is_taken_for_an_assignment_is_told_with_its_call() -> None:
    source = "def f(a):\n    return a.isoformat(sep='T')\n"
    told = "`sep='T'` is not in f (line 1), where it should be"
    more = "it is read as an assignment, and a keyword argument is written with its call, `a.isoformat(sep='T')`"
    assert words_of_failure(source, "f", has=("sep='T'",)) == f"{told}: {more}"
    assert words_of_failure(source.replace("sep=", "timespec="), "f", has=("sep='T'",)) == told
    assert passes(source, "f", has=("a.isoformat(sep='T')",))


def test_all_that_fails_is_said_at_once() -> None:
    words = words_of_failure(PATCHED, "get_cuda_version", has=("a", "b"), lacks=("ask_nvcc",), decorators=("c",))
    assert len(words.split("; ")) == 4


DECORATED = """
@outer
@torch.compiler.disable(recursive=True)
@inner
def f(): ...
"""


@pytest.mark.parametrize(
    "wanted",
    [
        ("outer",),
        ("@inner",),
        ("outer", "inner"),
        ("torch.compiler.disable(recursive = True)", "inner"),
        ("outer", "torch.compiler.disable(recursive=True)", "inner"),
    ],
)
def test_decorators_are_there_in_order_with_others_between(wanted: tuple[str, ...]) -> None:
    assert passes(DECORATED, "f", decorators=wanted)


@pytest.mark.parametrize(
    "wanted", [("inner", "outer"), ("torch.compiler.disable",), ("torch.compiler.disable()",), ("outer", "outer")]
)
def test_other_decorators_or_another_order_fail(wanted: tuple[str, ...]) -> None:
    assert not passes(DECORATED, "f", decorators=wanted)


def test_the_words_for_decorators_say_what_is_there() -> None:
    assert words_of_failure(DECORATED, "f", decorators=("inner", "outer")) == (
        "f (line 5) should be decorated by `@inner`, `@outer` in this order, but is decorated by "
        "`@outer`, `@torch.compiler.disable(recursive=True)`, `@inner`"
    )
    assert words_of_failure("def f(): ...\n", "f", decorators=("cache",)) == (
        "f (line 1) should be decorated by `@cache`, but is decorated by nothing"
    )
    assert words_of_failure("x = 1\n", "x", decorators=("cache",)).endswith("but is decorated by nothing")


# ---- definitions ----------------------------------------------------------------------------------------------

EVERYWHERE = """
def plain(): return 1
async def later(): return 1
class Class:
    attribute = 1
    annotated: int = 1
    def method(self):
        def nested(): return 1
    class Inner:
        def deep(self): return 1
    if True:
        def conditional(self): return 1
constant = 1
annotated: int = 1
first, (second, *rest) = 1, (1, 1)
chained = also = 1
if X:
    def in_if(): return 1
elif Y:
    def in_elif(): return 1
else:
    in_else = 1
try:
    def in_try(): return 1
except OSError:
    in_except = 1
else:
    in_try_else = 1
finally:
    in_finally = 1
with a as b:
    def in_with(): return 1
for c in d:
    in_for = 1
while e:
    in_while = 1
match g:
    case 1:
        in_match = 1
"""


# fmt: off
SYMBOLS = [
    "plain", "later", "Class", "Class.attribute", "Class.annotated", "Class.method", "Class.method.nested",
    "Class.Inner", "Class.Inner.deep", "Class.conditional", "constant", "annotated", "first", "second", "rest",
    "chained", "also", "in_if", "in_elif", "in_else", "in_try", "in_except", "in_try_else", "in_finally",
    "in_with", "in_for", "in_while", "in_match",
]
# fmt: on


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_symbol_is_found_wherever_it_is_defined(symbol: str) -> None:
    assert passes(EVERYWHERE, symbol)
    assert passes(EVERYWHERE, symbol, has=("1",))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement came with Python 3.12")
def test_a_type_statement_defines_its_name() -> None:
    assert passes("type Pair = tuple[int, int]\n", "Pair", has=("tuple[int, int]",))


def test_a_missing_symbol_is_named_with_the_closest_one() -> None:
    assert words_of_failure(PATCHED, "get_cuda_versions") == (
        "get_cuda_versions is not defined: there is no get_cuda_versions in the module; "
        "the closest name is get_cuda_version"
    )
    assert words_of_failure("class A:\n    pass\n", "A.run") == "A.run is not defined: there is no run in A (line 1)"
    assert words_of_failure("", "f") == "f is not defined: there is no f in the module"
    assert words_of_failure("A = 1\n", "A.run") == (
        "A.run is not defined: A (line 1) is an assignment, which has no body"
    )


def test_a_missing_symbol_fails_even_where_something_must_be_lacking() -> None:
    assert not passes(PATCHED, "absent", lacks=("anything",))


def test_a_name_used_or_defined_elsewhere_is_no_definition() -> None:
    source = "class A:\n    def f(self): ...\ndef g():\n    f = 1\nprint(f)\nf += 1\n"
    assert not passes(source, "f")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from x import f", "f"),
        ("from x import g as f", "f"),
        ("import f", "f"),
        ("import f.g", "f"),
        ("if X:\n    from x import f", "f"),
    ],
)
def test_a_name_that_is_only_imported_is_not_defined_here(line: str, name: str) -> None:
    words = words_of_failure(line + "\n", name)
    assert words.startswith(f"{name} is not defined: only imported here, at line {1 + line.count(chr(10))} (`")


def test_an_import_beside_a_definition_does_not_count() -> None:
    assert passes("try:\n    from fast import f\nexcept ImportError:\n    def f(): return 1\n", "f", has=("1",))


BRANCHES = """
if NEW:
    def f(): return torch.version.cuda
else:
    def f(): return nvcc()
"""


def test_every_definition_must_pass_for_the_branch_that_runs_is_not_known() -> None:
    assert not passes(BRANCHES, "f", has=("torch.version.cuda",))
    assert passes(BRANCHES.replace("nvcc()", "torch.version.cuda"), "f", has=("torch.version.cuda",))
    assert (
        words_of_failure(BRANCHES, "f", lacks=("nvcc()",))
        == "`nvcc()` is in f (line 5), at line 5, where it should not be"
    )


@pytest.mark.parametrize(
    "aside",
    [
        "if TYPE_CHECKING:\n    def f(x: int) -> int: return 0",
        "if typing.TYPE_CHECKING:\n    f: Callable",
        "@overload\ndef f(x: int) -> int: return 0",
        "@typing.overload\ndef f(x: int) -> int: return 0",
        "def f(): ...",
        "def f(): pass",
        "async def f():\n    '''Doc.'''",
        "def f():\n    '''Doc.'''\n    raise ImportError('no CUDA')",
        "f: Callable",
        "f = None",
    ],
)
def test_stubs_overloads_fallbacks_and_assignments_are_left_aside(aside: str) -> None:
    real = "def f():\n    return torch.version.cuda\n"
    for source in (f"{aside}\n{real}", f"{real}{aside}\n"):
        assert passes(source, "f", has=("torch.version.cuda",))
        assert not passes(source.replace("cuda", "hip"), "f", has=("torch.version.cuda",))


def test_a_stub_is_looked_at_where_there_is_nothing_else() -> None:
    assert passes("def f(): ...\n", "f", has=("...",))
    assert passes("class P:\n    x: int\n", "P.x", has=("int",))
    assert passes("if TYPE_CHECKING:\n    X = int\n", "X", has=("int",))


def test_the_else_of_type_checking_is_real() -> None:
    source = "if TYPE_CHECKING:\n    def f(): return 0\nelse:\n    def f(): return 1\n"
    assert passes(source, "f", has=("1",), lacks=("0",))


def test_accessors_of_a_property_are_left_aside() -> None:
    source = """
    class A:
        @property
        def x(self): return self._x
        @x.setter
        def x(self, value): self._y = value
    """
    assert passes(source, "A.x", has=("self._x",), lacks=("self._y",), decorators=("property",))
    assert passes(source, "A", has=("self._y",))


# ---- sources of every kind ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfdef f():\n    return 'x'\n",
        b"# -*- coding: latin-1 -*-\ndef f():\n    return 'x', '\xe9'\n",
        b"def f():\r\n    return 'x'\r\n",
        b"\x0cdef f():\n    return 'x'\n\x0c",
        b"def f():\n    return 'x'",
        b"def f():\n\treturn 'x', '\\d'\n",
    ],
)
def test_any_encoding_line_end_or_form_feed_that_python_reads_is_read(source: bytes) -> None:
    assert evaluate(check("f", has=("'x'",)), source, path="f.py").passed


@pytest.mark.filterwarnings("error")
def test_a_target_with_dubious_escapes_causes_no_warning() -> None:
    assert evaluate(check("f"), b"def f():\n    return '\\d' is 1\n", path="f.py").passed


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"def f(:\n", "(line 1)"),
        (b"def f():\n    return 1\n  oops\n", "(line 3)"),
        (b"def f():\n    return 1\0\n", "null bytes"),
        (b"# coding: latin-99\ndef f(): ...\n", "latin-99"),
        (b"def f():\n    return '\xff'\n", "utf-8"),
        (b"f = " + b"(" * 5000 + b")" * 5000, ""),
        (b"f = " + b"-" * 200_000 + b"1", "nested too deeply"),
        (b"f = " + b"9" * 10_000, ""),
    ],
)
def test_what_cannot_be_parsed_has_failed_in_words(source: bytes, words: str) -> None:
    found = evaluate(check("f"), source, path="pkg/f.py")
    if not found.passed:
        version = ".".join(map(str, sys.version_info[:3]))
        assert found.message.startswith(f"pkg/f.py: Python {version} cannot parse it: ")
        assert words in found.message
    else:  # some Python versions have no limit on digits
        assert source.startswith(b"f = 9")


def test_long_chains_of_elif_are_walked() -> None:
    branches = "".join(f"elif x == {number}:\n    g = {number}\n" for number in range(80))
    assert passes(f"if x:\n    pass\n{branches}else:\n    def f(): return 1\n", "f", has=("1",))


def test_every_module_of_the_standard_library_can_be_judged() -> None:
    for file in sorted(Path(textwrap.__file__).parent.glob("*.py"))[:60]:
        found = evaluate(check("no_such_name"), file.read_bytes(), path=file.name)
        assert not found.passed and "no_such_name" in found.message


def test_a_real_function_of_the_standard_library_is_judged() -> None:
    source = Path(textwrap.__file__).read_bytes()
    assert evaluate(check("TextWrapper.wrap", has=("self._split_chunks(text)",)), source, path="textwrap.py").passed


def test_nothing_of_the_target_is_run(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    source = f"open({str(witness)!r}, 'w').close()\n@open({str(witness)!r}, 'w').close\ndef f(): return 1\n"
    assert passes(source, "f", has=("1",))
    assert not witness.exists()


# ---- the text of a check --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (SymbolCheck("a-b", "f"), 'module: "a-b" is not a dotted module name'),
        (SymbolCheck("a..b", "f"), 'module: "a..b" is not a dotted module name'),
        (SymbolCheck("a/b.py", "f"), 'module: "a/b.py" is not a dotted module name'),
        (SymbolCheck("a", "f()"), 'symbol: "f()" is not a dotted name, such as "Class.method"'),
        (SymbolCheck("a"), "symbol: name a symbol, or say what the module starts-with, has or lacks"),
        (SymbolCheck("a", has=("x",), decorators=("d",)), "decorators: a module has none; name a symbol"),
    ],
)
def test_a_check_that_names_nothing_useful_is_refused(made: SymbolCheck, problem: str) -> None:
    assert validate(made) == [problem]


@pytest.mark.parametrize(
    ("made", "start"),
    [
        (SymbolCheck("a", "f", starts_with="if x is not"), "starts-with: `if x is not` cannot be read as Python: "),
        (SymbolCheck("a", "f", starts_with="else:"), "starts-with: `else:` cannot be read as Python: "),
        (SymbolCheck("a", "f", has=("ok", "a b")), "has[1]: `a b` cannot be read as Python: "),
        (SymbolCheck("a", "f", lacks=("(",)), "lacks[0]: `(` cannot be read as Python: "),
        (SymbolCheck("a", "f", lacks=("x\0",)), "lacks[0]: "),
        (SymbolCheck("a", "f", has=("x = 1; y = 2",)), "has[0]: `x = 1; y = 2` cannot be read as Python: write one"),
        (SymbolCheck("a", "f", has=("# only a comment",)), "has[0]: "),
        (SymbolCheck("a", "f", has=("-" * 200_000 + "1",)), "has[0]: "),
        (SymbolCheck("a", "f", decorators=("x = 1",)), "decorators[0]: `x = 1` cannot be read as Python: write an exp"),
    ],
)
def test_text_that_is_not_python_is_refused_with_its_key(made: SymbolCheck, start: str) -> None:
    (problem,) = validate(made)
    assert problem.startswith(start)
    assert len(problem) < 400


def test_all_problems_of_a_check_come_at_once() -> None:
    made = SymbolCheck("1", "2", starts_with="(", has=("(",), lacks=("(",), decorators=("(",))
    assert [problem.partition(":")[0] for problem in validate(made)] == [
        "module",
        "symbol",
        "starts-with",
        "has[0]",
        "lacks[0]",
        "decorators[0]",
    ]
