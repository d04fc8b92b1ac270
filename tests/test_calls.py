"""What the audit reads out of a program's text: imports, calls, covers, and what it cannot know. Nothing is run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from patchkit.audit import read_table
from patchkit.audited import Confidence, DefinitionKind, Doubt, Effect, Use
from patchkit.programs import Program, Source, Texts
from patchkit.views import Root, View, Viewer

TABLE = read_table(None)


def see(files: Mapping[str, str]) -> View:
    """The view of a caller ``app`` on a distribution ``lib``: ``files`` are texts by path."""
    texts = {path: textwrap.dedent(text).encode() for path, text in files.items()}
    sources = {}
    for path in texts:
        package = path.endswith(("__init__.py", "__init__.pyi"))
        name = path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")
        sources[name] = Source(path, path, package, "lib" if path.startswith("lib") else "")
    program = Program(sources, lambda source: texts[source.full], Texts())
    callers = [name for name, source in sources.items() if not source.distribution]
    return Viewer(TABLE, frozenset({"lib"}), callers).look(program)


@dataclass(frozen=True)
class Seen:
    """What one callable leads to: constructs that are open, and those that are covered with the effect of the cover."""

    open: dict[str, Confidence]
    covered: dict[str, Effect]
    doubts: set[Doubt]


def lead(lib: str, *, caller: str = "from lib import f\ndef use(x):\n    return f(x)\n") -> Seen:
    """What ``f`` of a module ``lib`` leads to."""
    view = see({"lib/__init__.py": lib, "app.py": caller})
    [root] = [root for root in view.roots if root.callable == "lib.f"]
    return told(root, view)


def told(root: Root, view: View) -> Seen:
    hazards = [root.hazard(met, TABLE) for met in root.open]
    covered = {met.construct: cover.effect for met, cover in root.covered}
    return Seen(
        {hazard.construct: hazard.confidence for hazard in hazards}, covered, {gap.doubt for gap in view.unknown}
    )


# ---- how a hazard is reached ----------------------------------------------------------------------------------

REACHED = {
    "a call": ("import subprocess\ndef f(x):\n    subprocess.run([])", Confidence.DIRECT),
    "an alias of the module": ("import subprocess as sp\ndef f(x):\n    sp.run([])", Confidence.DIRECT),
    "a name imported from it": ("from subprocess import run as go\ndef f(x):\n    go([])", Confidence.DIRECT),
    "an import in the function": ("def f(x):\n    import subprocess\n    subprocess.run([])", Confidence.DIRECT),
    "a name for the function": ("import subprocess\nrun = subprocess.run\ndef f(x):\n    run([])", Confidence.DIRECT),
    "another function": ("import subprocess\ndef g():\n    subprocess.run([])\ndef f(x):\n    g()", Confidence.DIRECT),
    "a cached function": (
        "import functools, subprocess\n@functools.cache\ndef g():\n    subprocess.run([])\ndef f(x):\n    g()",
        Confidence.DIRECT,
    ),
    "a function made by cache()": (
        "import functools, subprocess\ndef g():\n    subprocess.run([])\nh = functools.cache(g)\ndef f(x):\n    h()",
        Confidence.DIRECT,
    ),
    "a partial": (
        "from functools import partial\nimport subprocess\ndef g(a):\n    subprocess.run([])\n"
        "h = partial(g, 1)\ndef f(x):\n    h()",
        Confidence.DIRECT,
    ),
    "a class that is made": (
        "import subprocess\nclass C:\n    def __init__(self):\n        subprocess.run([])\ndef f(x):\n    C()",
        Confidence.DIRECT,
    ),
    "an inherited __init__": (
        "import subprocess\nclass B:\n    def __init__(self):\n        subprocess.run([])\n"
        "class C(B):\n    pass\ndef f(x):\n    C()",
        Confidence.DIRECT,
    ),
    "a method of a known class": (
        "import subprocess\nclass C:\n    def go(self):\n        subprocess.run([])\ndef f(x):\n    C().go()",
        Confidence.ATTRIBUTE,
    ),
    "a method of self": (
        "import subprocess\nclass C:\n    def go(self):\n        self.on()\n"
        "    def on(self):\n        subprocess.run([])\ndef f(x):\n    c = C()\n    c.go()",
        Confidence.ATTRIBUTE,
    ),
    "a method by super()": (
        "import subprocess\nclass B:\n    def go(self):\n        subprocess.run([])\n"
        "class C(B):\n    def go(self):\n        super().go()\ndef f(x):\n    C().go()",
        Confidence.ATTRIBUTE,
    ),
    "a property": (
        "import subprocess\nclass C:\n    @property\n    def p(self):\n        subprocess.run([])\n"
        "def f(x):\n    C().p",
        Confidence.ATTRIBUTE,
    ),
    "an object that is called": (
        "import subprocess\nclass C:\n    def __call__(self):\n        subprocess.run([])\nc = C()\ndef f(x):\n    c()",
        Confidence.ATTRIBUTE,
    ),
    "a with statement": (
        "import subprocess\nclass C:\n    def __enter__(self):\n        subprocess.run([])\n"
        "    def __exit__(self, *e): pass\ndef f(x):\n    with C():\n        pass",
        Confidence.ATTRIBUTE,
    ),
    "an attribute set in __init__": (
        "import subprocess\nclass D:\n    def go(self):\n        subprocess.run([])\n"
        "class C:\n    def __init__(self):\n        self.d = D()\n    def go(self):\n        self.d.go()\n"
        "def f(x):\n    C().go()",
        Confidence.ATTRIBUTE,
    ),
    "the class of an annotation": (
        "import subprocess\nfrom typing import Optional\nclass C:\n    def go(self):\n        subprocess.run([])\n"
        "def g(c: 'Optional[C]'):\n    c.go()\ndef f(x):\n    g(None)",
        Confidence.ATTRIBUTE,
    ),
    "what a function is said to return": (
        "import subprocess\nclass C:\n    def go(self):\n        subprocess.run([])\ndef g() -> C: ...\n"
        "def f(x):\n    g().go()",
        Confidence.ATTRIBUTE,
    ),
    "what a function returns": (
        "import subprocess\nclass C:\n    def go(self):\n        subprocess.run([])\ndef g():\n    return C()\n"
        "def f(x):\n    g().go()",
        Confidence.ATTRIBUTE,
    ),
    "a function in a namespace": (
        "import subprocess\nfrom types import SimpleNamespace\ndef g():\n    def inner():\n        subprocess.run([])\n"
        "    return SimpleNamespace(go=inner)\ndef f(x):\n    g().go()",
        Confidence.ATTRIBUTE,
    ),
    "a function from a table": (
        "import subprocess\ndef g():\n    subprocess.run([])\nT = {'a': g}\ndef f(x):\n    T[x]()",
        Confidence.NAME,
    ),
    "a function handed on": (
        "import subprocess\ndef g():\n    subprocess.run([])\ndef f(x):\n    sorted([], key=g)",
        Confidence.NAME,
    ),
    "a lambda handed on": (
        "import subprocess\ndef f(x):\n    sorted([], key=lambda y: subprocess.run([]))",
        Confidence.NAME,
    ),
    "a method by its name alone": (
        "import subprocess\nclass C:\n    def build_it(self):\n        subprocess.run([])\ndef f(x):\n    x.build_it()",
        Confidence.NAME,
    ),
    "a decorator's wrapper": (
        "import functools, subprocess\ndef d(g):\n    @functools.wraps(g)\n    def wrapper(*a):\n"
        "        subprocess.run([])\n        return g(*a)\n    return wrapper\n@d\ndef f(x):\n    pass",
        Confidence.DIRECT,
    ),
    "the wrapper of a decorator with arguments": (
        "import subprocess\ndef d(name):\n    def decorator(g):\n"
        "        def wrapper(*a):\n            subprocess.run([])\n        return wrapper\n    return decorator\n"
        "@d('a')\ndef f(x):\n    pass",
        Confidence.DIRECT,
    ),
    "getattr with a written name": (
        "import subprocess\ndef f(x):\n    getattr(subprocess, 'run')([])",
        Confidence.DIRECT,
    ),
    "a choice of two": (
        "import subprocess\ndef g(): pass\ndef h():\n    subprocess.run([])\ndef f(x):\n    (g if x else h)()",
        Confidence.DIRECT,
    ),
    "either branch of an import": (
        "try:\n    from subprocess import run\nexcept ImportError:\n    run = None\ndef f(x):\n    run([])",
        Confidence.DIRECT,
    ),
}


@pytest.mark.parametrize(("lib", "confidence"), REACHED.values(), ids=REACHED)
def test_a_hazard_is_found_behind(lib: str, confidence: Confidence) -> None:
    seen = lead(lib)
    assert seen.open.get("subprocess.run") is confidence


def test_paths_are_known_by_what_makes_them() -> None:
    lib = """
        import pathlib
        from . import env
        HERE = pathlib.Path(__file__).resolve().parents[1] / "data"
        class Spec:
            @property
            def place(self) -> pathlib.Path:
                return env.FOLDER / "a"
        def f(x):
            HERE.mkdir()
            Spec().place.touch()
            env.FOLDER.joinpath("a").with_suffix(".b").unlink()
    """
    view = see(
        {
            "lib/__init__.py": lib,
            "lib/env.py": "import pathlib\nFOLDER: pathlib.Path = find()\n",
            "app.py": "from lib import f\ndef use(x): f(x)\n",
        }
    )
    [root] = view.roots
    assert {"pathlib.Path.mkdir", "pathlib.Path.touch", "pathlib.Path.unlink"} == set(told(root, view).open)


def test_a_chain_names_every_step_with_its_file_line_and_branch() -> None:
    files = {
        "lib/__init__.py": "from .a import f\n",
        "lib/a.py": (
            "from . import b\ndef f(x):\n    if x is None:\n"
            "        try:\n            b.g()\n        finally:\n            pass\n"
        ),
        "lib/b.py": "import os\ndef g():\n    os.getpid()\n",
        "app.py": "import lib\nclass C:\n    def m(self):\n        lib.f(1)\n",
    }
    [root] = see(files).roots
    [met] = root.open
    chain = [(str(step.place), step.function, step.calls, step.branch) for step in root.hazard(met, TABLE).chain]
    assert chain == [
        ("app.py:4", "app.C.m", "lib.a.f", ()),
        ("lib/a.py:5", "lib.a.f", "lib.b.g", ("if x is None", "try")),
        ("lib/b.py:3", "lib.b.g", "os.getpid", ()),
    ]


# ---- what covers it -------------------------------------------------------------------------------------------

HIT = "import os, torch\ndef g(x):\n    os.getpid()\n"
COVERED = {
    "torch.compiler.disable": ("{hit}@torch.compiler.disable\ndef f(x): g(x)", Effect.GRAPH_BREAK),
    "the same with arguments": ("{hit}@torch.compiler.disable(recursive=True)\ndef f(x): g(x)", Effect.GRAPH_BREAK),
    "the same by a name": (
        "{hit}from torch.compiler import disable as off\n@off\ndef f(x): g(x)",
        Effect.GRAPH_BREAK,
    ),
    "the same on what it calls": ("{hit}h = torch.compiler.disable(g)\ndef f(x): h(x)", Effect.GRAPH_BREAK),
    "the same, in place of the function": ("{hit}g = torch.compiler.disable(g)\ndef f(x): g(x)", Effect.GRAPH_BREAK),
    "torch._dynamo.disable": ("{hit}import torch._dynamo\n@torch._dynamo.disable\ndef f(x): g(x)", Effect.GRAPH_BREAK),
    "a custom operator": (
        "{hit}@torch.library.custom_op('a::b', mutates_args=())\ndef f(x): g(x)",
        Effect.OPERATOR,
    ),
    "a decorator with a fallback where torch has none": (
        "{hit}try:\n    from torch.compiler import disable\nexcept ImportError:\n    def disable(fn): return fn\n"
        "@disable\ndef f(x): g(x)",
        Effect.GRAPH_BREAK,
    ),
    "a decorator with and without arguments": (
        "{hit}def off(fn=None, why=''):\n    if fn is None:\n        return lambda fn: off(fn, why)\n"
        "    return torch.compiler.disable(fn)\n@off(why='')\ndef f(x): g(x)",
        Effect.GRAPH_BREAK,
    ),
    "a decorator that ends in torch.library": (
        "{hit}from torch.library import Library\nL = Library('a', 'FRAGMENT')\n"
        "def define(name, function):\n    L.define(name)\n    L.impl(name, function, 'CUDA')\n"
        "def operator(name):\n    def decorator(function):\n        define(name, function)\n        return function\n"
        "    return decorator\n@operator('b')\ndef f(x): g(x)",
        Effect.OPERATOR,
    ),
    "allow_in_graph": ("{hit}torch.compiler.allow_in_graph(g)\ndef f(x): g(x)", Effect.OPERATOR),
    "assume_constant_result": ("{hit}@torch.compiler.assume_constant_result\ndef f(x): g(x)", Effect.OPERATOR),
    "substitute_in_graph": (
        "{hit}@torch.compiler.substitute_in_graph(g)\ndef other(x): pass\ndef f(x): g(x)",
        Effect.OPERATOR,
    ),
    "a condition": ("{hit}def f(x):\n    if not torch.compiler.is_compiling():\n        g(x)", Effect.SKIPPED),
    "a condition that leaves": (
        "{hit}def f(x):\n    if torch.compiler.is_compiling() or x:\n        return\n    g(x)",
        Effect.SKIPPED,
    ),
    "the else of a condition": (
        "{hit}def f(x):\n    if torch.compiler.is_compiling():\n        pass\n    else:\n        g(x)",
        Effect.SKIPPED,
    ),
    "the version of CUDA": (
        "{hit}def f(x):\n    if torch.version.cuda is not None:\n        return 1\n    return g(x)",
        Effect.SKIPPED,
    ),
}


@pytest.mark.parametrize(("lib", "effect"), COVERED.values(), ids=COVERED)
def test_a_hazard_is_covered_by(lib: str, effect: Effect) -> None:
    seen = lead(lib.replace("{hit}", HIT))
    assert not seen.open
    assert seen.covered == {"os.getpid": effect}


NOT_COVERED = {
    "a decorator that gives back what it gets": (
        "{hit}def operator(name):\n    return lambda x: x\n@operator('b')\ndef f(x): g(x)"
    ),
    "a branch that may be taken": (
        "{hit}def f(x):\n    if x or torch.compiler.is_compiling() and x:\n        return\n    g(x)"
    ),
    "the replacement itself": "{hit}def h(x): pass\n@torch.compiler.substitute_in_graph(h)\ndef f(x): g(x)",
    "a second way to it": "{hit}h = torch.compiler.disable(g)\ndef f(x):\n    h(x)\n    g(x)",
    "an operator that is made of it and not called": (
        "{hit}def register(name, function):\n    torch.library.define(name, '()')\nregister('a::b', g)\ndef f(x): g(x)"
    ),
    "a function whose own frame alone is opaque": "{hit}@torch.compiler.disable(recursive=False)\ndef f(x): g(x)",
    "the same by position": "{hit}h = torch.compiler.disable(lambda x: g(x), False)\ndef f(x): h(x)",
    "the same by a value that is not known": "{hit}@torch._dynamo.disable(recursive=DEEP)\ndef f(x): g(x)",
    "the same in a call": ("{hit}def h(x): g(x)\nh = torch.compiler.disable(h, recursive=False)\ndef f(x): h(x)"),
    "the same in two calls": "{hit}def h(x): g(x)\nh = torch.compiler.disable(recursive=False)(h)\ndef f(x): h(x)",
    "the same by a name for the decorator": (
        "{hit}off = torch.compiler.disable(recursive=False)\n@off\ndef f(x): g(x)"
    ),
    "the same by partial": (
        "{hit}from functools import partial\noff = partial(torch.compiler.disable, recursive=False)\n"
        "@off\ndef f(x): g(x)"
    ),
    "the same by a partial that is called": (
        "{hit}from functools import partial\noff = partial(torch.compiler.disable, recursive=False)\n"
        "def h(x): g(x)\nh = off(h)\ndef f(x): h(x)"
    ),
    "the same by a decorator of the program": (
        "{hit}def off(function):\n    return torch.compiler.disable(function, recursive=False)\n@off\ndef f(x): g(x)"
    ),
    "a decorator that makes another function opaque": (
        "{hit}def other(): pass\ndef warm():\n    torch.compiler.disable(other)()\n"
        "def deco(fn):\n    warm()\n    return fn\n@deco\ndef f(x): g(x)"
    ),
    "a decorator that throws away what is opaque": (
        "{hit}def deco(fn):\n    torch.compiler.disable(fn)\n    return fn\n@deco\ndef f(x): g(x)"
    ),
    "a decorator that makes it opaque under a condition": (
        "{hit}def deco(fn):\n    if FLAG:\n        return torch.compiler.disable(fn)\n    return fn\n"
        "@deco\ndef f(x): g(x)"
    ),
    "the same by an argument": (
        "{hit}def maybe(on):\n    def deco(fn):\n        return torch.compiler.disable(fn) if on else fn\n"
        "    return deco\n@maybe(False)\ndef f(x): g(x)"
    ),
    "a decorator of two by a condition": (
        "{hit}if FLAG:\n    off = torch.compiler.disable\nelse:\n    def off(fn): return fn\n@off\ndef f(x): g(x)"
    ),
    "allow_in_graph under a condition": "{hit}if FLAG:\n    torch.compiler.allow_in_graph(g)\ndef f(x): g(x)",
    "a way out that is held up": (
        "{hit}import contextlib\ndef f(x):\n    if torch.compiler.is_compiling():\n"
        "        with contextlib.suppress(ValueError):\n            raise ValueError\n    g(x)"
    ),
    "a fake of an operator": "{hit}@torch.library.register_fake('a::b')\ndef f(x): g(x)",
}


@pytest.mark.parametrize("lib", NOT_COVERED.values(), ids=NOT_COVERED)
def test_a_hazard_is_not_covered_by(lib: str) -> None:
    seen = lead(lib.replace("{hit}", HIT))
    assert set(seen.open) == {"os.getpid"}


NOT_RECURSIVE = {
    "a decorator": "import os, torch\n@torch.compiler.disable(recursive=False)\ndef f(x):\n    os.getpid()",
    "a call": (
        "import os, torch\ndef g(x):\n    os.getpid()\ng = torch.compiler.disable(g, recursive=False)\n"
        "def f(x):\n    g(x)"
    ),
    "a partial": (
        "import functools, os, torch\noff = functools.partial(torch._dynamo.disable, recursive=False)\n"
        "@off\ndef f(x):\n    os.getpid()"
    ),
}


@pytest.mark.parametrize("lib", NOT_RECURSIVE.values(), ids=NOT_RECURSIVE)
def test_a_function_that_is_disabled_without_recursion_covers_what_it_does_itself(lib: str) -> None:
    seen = lead(lib)
    assert not seen.open and seen.covered == {"os.getpid": Effect.NOT_RECURSIVE}


def test_a_function_that_is_disabled_with_and_without_recursion_is_followed_where_it_is_without() -> None:
    seen = lead(
        HIT + "def h(x): g(x)\ndeep = torch.compiler.disable(h)\nown = torch.compiler.disable(h, recursive=False)\n"
        "def f(x):\n    deep(x)\n    own(x)"
    )
    assert set(seen.open) == {"os.getpid"} and not seen.covered


def test_what_a_decorator_runs_outside_of_an_opaque_function_stays_open() -> None:
    lib = """
        import os, time, torch
        def log(g):
            def wrapper(*a):
                time.time()
                return g(*a)
            return wrapper
        @{outer}
        @{inner}
        def f(x):
            os.getpid()
    """
    outside = lead(textwrap.dedent(lib).format(outer="log", inner="torch.compiler.disable"))
    assert set(outside.open) == {"time.time"} and set(outside.covered) == {"os.getpid"}
    inside = lead(textwrap.dedent(lib).format(outer="torch.compiler.disable", inner="log"))
    assert not inside.open and set(inside.covered) == {"time.time", "os.getpid"}


def test_a_caller_covers_what_it_calls_in_a_function_that_it_registers() -> None:
    caller = """
        import torch
        from lib import f
        def register(name, function):
            torch.library.define(name, "(Tensor x) -> Tensor")
        def implementation(x):
            return f(x)
        register("a::b", function=implementation)
    """
    seen = lead("import os\ndef f(x):\n    os.getpid()\n", caller=textwrap.dedent(caller))
    assert not seen.open and seen.covered == {"os.getpid": Effect.OPERATOR}


LEAVING = {
    "a closure that an opaque function returns": (
        "@torch.compiler.disable\ndef make():\n    def go(): f(1)\n    return go\n"
    ),
    "a closure that it keeps": "@torch.compiler.disable\ndef make(it):\n    def go(): f(1)\n    it.go = go\n",
    "a lambda that it adds to a list": (
        "HOOKS = []\n@torch.compiler.disable\ndef make():\n    HOOKS.append(lambda: f(1))\n"
    ),
    "an operator's body that is called by its own name": (
        "def body(x): f(x)\nop = torch.library.custom_op('a::b', body, mutates_args=())\ndef run(): body(1)\n"
    ),
}


@pytest.mark.parametrize("caller", LEAVING.values(), ids=LEAVING)
def test_a_caller_does_not_cover_what_leaves_an_opaque_function(caller: str) -> None:
    seen = lead("import os\ndef f(x): os.getpid()", caller=f"import torch\nfrom lib import f\n{caller}")
    assert set(seen.open) == {"os.getpid"}


STAYING = {
    "a closure that it calls": "def go(): f(1)\n    go()",
    "a key": "return sorted(x, key=lambda each: f(each))",
    "a function that map calls": "def go(each): f(1)\n    return list(map(go, x))",
}


@pytest.mark.parametrize("body", STAYING.values(), ids=STAYING)
def test_a_caller_covers_what_stays_inside_of_an_opaque_function(body: str) -> None:
    caller = f"import torch\nfrom lib import f\n@torch.compiler.disable\ndef make(x):\n    {body}\n"
    seen = lead("import os\ndef f(x): os.getpid()", caller=caller)
    assert not seen.open and seen.covered


def test_a_caller_covers_what_it_calls_inside_an_operator_of_its_own() -> None:
    caller = """
        import torch
        from lib import f
        @torch.library.custom_op("a::b", mutates_args=())
        def operator(x):
            return f(x)
        {more}
    """
    lib = "import os\ndef f(x):\n    os.getpid()\n"
    seen = lead(lib, caller=textwrap.dedent(caller).format(more=""))
    assert not seen.open and seen.covered == {"os.getpid": Effect.OPERATOR}
    assert set(lead(lib, caller=textwrap.dedent(caller).format(more="def other(x): f(x)")).open) == {"os.getpid"}


# ---- the import map -------------------------------------------------------------------------------------------

LIB = {
    "lib/__init__.py": "from .core import f, C as Class\nfrom .more import *\nfrom . import sub\nLIMIT = 3\n",
    "lib/core.py": "def f(x): pass\nclass C:\n    def go(self): pass\n",
    "lib/more.py": "__all__ = ['g']\ndef g(x): pass\ndef hidden(x): pass\n",
    "lib/sub/__init__.py": "from ..core import f as again\n",
    "lib/native.pyi": "def kernel(x): ...\n",
}


def rows(caller: str, **others: str) -> dict[str, tuple[str | None, str | None]]:
    """For each alias in a caller's import map: where it is defined, and what kind of thing it is."""
    files = {**LIB, "app.py": caller, **{f"{name}.py": text for name, text in others.items()}}
    found = [row.found for row in see(files).rows if row.found.place.path == "app.py"]
    return {
        each.alias: (str(each.definition.place), each.definition.kind.value) if each.definition else (None, None)
        for each in found
    }


IMPORTS = {
    "a name": ("from lib import f", {"f": ("lib/core.py:1", "function")}),
    "an alias": ("from lib import f as g", {"g": ("lib/core.py:1", "function")}),
    "a class by another name": ("from lib import Class", {"Class": ("lib/core.py:2", "class")}),
    "a name behind a star": ("from lib import g", {"g": ("lib/more.py:2", "function")}),
    "a module": ("import lib", {"lib": ("lib/__init__.py:1", "module")}),
    "a module below": ("import lib.core as core", {"core": ("lib/core.py:1", "module")}),
    "a folder": ("from lib import sub", {"sub": ("lib/sub/__init__.py:1", "module")}),
    "a relative re-export": ("from lib.sub import again", {"again": ("lib/core.py:1", "function")}),
    "a constant": ("from lib import LIMIT", {"LIMIT": ("lib/__init__.py:4", "value")}),
    "a stub": ("from lib.native import kernel", {"kernel": ("lib/native.pyi:1", "stub")}),
    "a star": ("from lib import *\nf(1)", {"f": ("lib/core.py:1", "function")}),
    "an import in a function": ("def use():\n    from lib import f\n    f(1)", {"f": ("lib/core.py:1", "function")}),
    "an import for type checkers": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lib import f",
        {"f": ("lib/core.py:1", "function")},
    ),
    "another distribution's": ("from os import path", {}),
    "a name that a star does not bring": ("from lib.more import *\nhidden(1)", {}),
}


@pytest.mark.parametrize(("caller", "found"), IMPORTS.values(), ids=IMPORTS)
def test_an_import_map_has(caller: str, found: dict[str, tuple[str, str]]) -> None:
    assert rows(caller) == found
    assert {kind.value for kind in DefinitionKind} >= {kind for _, kind in found.values()}


def test_an_import_through_another_module_of_the_caller_is_followed() -> None:
    assert rows("from helper import quantise", helper="from lib import f as quantise\n") == {
        "quantise": ("lib/core.py:1", "function")
    }
    assert rows("from helper import own", helper="from lib import f\ndef own(x): f(x)\n") == {}


def test_each_branch_that_binds_a_name_is_listed_with_the_others() -> None:
    caller = """
        try:
            if supported():
                try:
                    from lib import f
                except ImportError:
                    from other import g as f
            elif perhaps():
                from third import f
            else:
                from other import g as f
        except (ImportError, OSError):
            f = None

        def use(x):
            return f(x)
    """
    found = [row.found for row in see({**LIB, "app.py": caller}).rows]
    assert [(each.module, each.name, each.distribution, each.branch) for each in found] == [
        ("lib", "f", "lib", ("try", "if supported()", "try")),
        ("other", "g", None, ("try", "if supported()", "except ImportError")),
        ("third", "f", None, ("try", "elif perhaps()")),
        ("other", "g", None, ("try", "else of if perhaps()")),
    ]
    assert {site.place.line for each in found for site in each.sites} == {16}


def test_the_sites_of_an_import_are_told_by_what_is_done_with_the_name() -> None:
    caller = """
        import lib
        from lib import f, Class

        TABLE = {"f": f}
        f(1)

        class D(Class):
            @f
            def m(self, f):
                return f(1)

        def use(x):
            def inner():
                return f(x)
            return lib.core.f(inner)
    """
    found = {row.found.alias: row.found.sites for row in see({**LIB, "app.py": caller}).rows}
    told = {(site.place.line, site.function, site.use, site.text) for sites in found.values() for site in sites}
    assert told == {
        (5, "", Use.VALUE, "f"),
        (6, "", Use.CALL, "f"),
        (8, "", Use.BASE, "Class"),
        (9, "D", Use.DECORATOR, "f"),
        (15, "use.inner", Use.CALL, "f"),
        (16, "use", Use.CALL, "lib.core.f"),
    }


def test_two_uses_on_one_line_are_two_sites() -> None:
    [row] = see({**LIB, "app.py": "from lib import f\ndef use(x):\n    return f(f)\n"}).rows
    assert [(site.place.line, site.use) for site in row.found.sites] == [(3, Use.CALL), (3, Use.VALUE)]


def test_methods_of_an_imported_class_are_followed_from_where_the_caller_keeps_its_instance() -> None:
    caller = """
        from lib import Wrapper
        class Layer:
            def __init__(self):
                self.wrapper = Wrapper()
            def forward(self, x):
                return self.wrapper.plan(x)
        def other(w):
            w.finish()
    """
    lib = """
        import os, time
        class Wrapper:
            def __init__(self): pass
            def plan(self, x): os.getpid()
            def finish(self): time.time()
    """
    view = see({"lib/__init__.py": lib, "app.py": caller})
    found = {root.callable: told(root, view).open for root in view.roots}
    assert found["lib.Wrapper.plan"] == {"os.getpid": Confidence.ATTRIBUTE}
    assert found["lib.Wrapper.finish"] == {"time.time": Confidence.NAME}


def test_an_import_without_a_call_is_looked_at_all_the_same() -> None:
    view = see({"lib/__init__.py": "import os\ndef f(x): os.getpid()\n", "app.py": "from lib import f\n"})
    [root] = view.roots
    assert told(root, view).open == {"os.getpid": Confidence.DIRECT}
    assert root.step.function == "" and str(root.step.place) == "app.py:1"


# ---- what is not known ----------------------------------------------------------------------------------------

DOUBTS = {
    Doubt.DISPATCH: "def f(x):\n    x.something_of_its_own()",
    Doubt.PARAMETER: "def f(x):\n    x(1)",
    Doubt.SUBSCRIPT: "def f(x):\n    x[0](1)",
    Doubt.RESULT: "def g(): return unknown\ndef f(x):\n    g()(1)",
    Doubt.GETATTR: "def f(x):\n    getattr(x, x.name)",
    Doubt.FOREIGN: "import numpy\ndef f(x):\n    numpy.linalg.norm(x)",
    Doubt.MISSING: "from .gone import g\ndef f(x):\n    g(1)",
}


@pytest.mark.parametrize(("doubt", "lib"), DOUBTS.items(), ids=[doubt.value for doubt in DOUBTS])
def test_where_the_view_ends_is_said(doubt: Doubt, lib: str) -> None:
    assert doubt in lead(lib).doubts


def test_a_file_that_cannot_be_parsed_is_said() -> None:
    files = {
        "lib/__init__.py": "from .broken import g\ndef f(x): g(x)\n",
        "lib/broken.py": "def g(:\n",
        "app.py": "from lib import f\ndef use(x): f(x)\n",
    }
    unknown = {(gap.doubt, gap.place.path) for gap in see(files).unknown}
    assert (Doubt.UNPARSED, "lib/broken.py") in unknown


def test_a_call_that_may_be_of_an_imported_class_is_said() -> None:
    caller = "from lib import Class\ndef use(things):\n    things[0].go()\n    things[0].other()\n"
    unknown = [(str(gap.place), gap.text) for gap in see({**LIB, "app.py": caller}).unknown]
    assert unknown == [("app.py:3", "things[0].go"), ("app.py:4", "things[0].other")]


def test_a_module_that_the_caller_names_in_a_string_is_said() -> None:
    caller = """
        import importlib
        def find(name):
            return getattr(importlib.import_module("lib.core"), name)
        other = "library"
    """
    unknown = [
        (gap.place.line, gap.text) for gap in see({**LIB, "app.py": caller}).unknown if gap.doubt is Doubt.STRING
    ]
    assert unknown == [(4, "lib.core")]


def test_nothing_is_unknown_in_a_function_that_is_covered() -> None:
    lib = "import torch\n@torch.compiler.disable\ndef f(x):\n    x.something_of_its_own()\n"
    assert not lead(lib).doubts


HOSTILE = {
    "functions that call each other": "def f(x): g(x)\ndef g(x): f(x)",
    "a name that is itself": "f = f",
    "a class that is its own base": "class C(C): pass\ndef f(x): C().go()",
    "two classes that are each other's base": "class A(B): pass\nclass B(A): pass\ndef f(x): A().go()",
    "properties that ask each other": "class C:\n"
    + "".join(
        f"    @property\n    def p{n}(self):\n"
        f"        return self.p{(n + 1) % 40} or self.p{n * 7 % 40} or self.p{n * 3 % 40}\n"
        for n in range(40)
    )
    + "def f(x): C().p1.p2()",
    "imports in a circle": "from . import f\n",
    "a star import of itself": "from lib import *\ndef f(x): pass",
    "a property that is itself": "class C:\n    @property\n    def p(self): return self.p.p\ndef f(x): C().p.p()",
    "a deep expression": "def f(x):\n    return " + "x" + ".a" * 3000 + "()",
    "a deep condition": "def f(x):\n    if x" + ".a" * 900 + ":\n        return x" + ".a" * 900 + "()",
    "a deep nesting": "def f(x):\n    return " + "(" * 150 + "x" + ")" * 150,
    "a null character": "def f(x): pass\0",
    "relative imports above the top": "from .....x import y\ndef f(x): y()",
}


@pytest.mark.parametrize("lib", HOSTILE.values(), ids=HOSTILE)
def test_odd_code_ends_no_view(lib: str) -> None:
    see({"lib/__init__.py": lib, "app.py": "from lib import f\ndef use(x): f(x)\n"})


# ---- ways to a callable that are easily lost ------------------------------------------------------------------

HAZARD = "import os\ndef f(x):\n    os.getpid()\nclass W:\n    def run(self, x):\n        os.getpid()\n"
FOLLOWED = {
    "an element of an annotated list": "import lib\ndef use(ws: list[lib.W], i, x):\n    return ws[i].run(x)",
    "an element of a list that is made": (
        "import lib\nclass A:\n    def __init__(self):\n        self.ws = [lib.W() for _ in range(2)]\n"
        "    def use(self, i, x):\n        return self.ws[i].run(x)"
    ),
    "a loop over a list": "import lib\nWS = [lib.W()]\ndef use(x):\n    for i, w in enumerate(WS):\n        w.run(x)",
    "an assertion of the class": "import lib\ndef use(w, x):\n    assert isinstance(w, lib.W)\n    w.run(x)",
    "a question for the class": "import lib\ndef use(w, x):\n    if isinstance(w, lib.W):\n        w.run(x)",
    "get of a table": "import lib\nT = {'a': lib.f}\ndef use(k, x):\n    return T.get(k)(x)",
    "a global that a function binds": (
        "import lib\nF = None\ndef init():\n    global F\n    F = lib.f\ndef use(x):\n    return F(x)"
    ),
    "a module that a function gives": (
        "def get():\n    import lib\n    return lib\nM = None\n"
        "def use(x):\n    global M\n    M = get()\n    return M.f(x)"
    ),
    "a module that is imported by a string": (
        "import importlib\nM = importlib.import_module('lib')\ndef use(x):\n    return M.f(x)"
    ),
    "a default": "import lib\ndef use(x, fn=lib.f):\n    return fn(x)",
    "a loop over functions": "import lib\ndef use(x):\n    for fn in (lib.f, print):\n        fn(x)",
    "a comprehension": "import lib\ndef use(x):\n    return [fn(x) for fn in (lib.f,)]",
}


@pytest.mark.parametrize("caller", FOLLOWED.values(), ids=FOLLOWED)
def test_a_caller_is_followed_through(caller: str) -> None:
    view = see({"lib/__init__.py": HAZARD, "app.py": f"{caller}\n"})
    assert {met.construct for root in view.roots for met in root.open} == {"os.getpid"}
    assert any(root.step.function.startswith("app.") for root in view.roots)


COUNTED = {
    "an attribute that is set from outside": (
        "import lib\ndef init(a):\n    a.norm = lib.f\ndef use(a, x):\n    return a.norm(x)",
        Doubt.DISPATCH,
    ),
    "what is handed in beside a default": ("import lib\ndef use(x, fn=lib.f):\n    fn(x)", Doubt.PARAMETER),
    "one of two that is not known": (
        "import lib\nfrom other import pick\ndef use(x, cb):\n    fn = lib.f if x else cb\n    fn(x)",
        Doubt.RESULT,
    ),
    "a name that is not there": ("from lib import gone", Doubt.MISSING),
    "an attribute that is not there": ("import lib\ndef use(x):\n    lib.gone(x)", Doubt.MISSING),
    "a module that is not there": ("import lib.gone", Doubt.MISSING),
    "a name that is not there, in try": ("try:\n    from lib import gone\nexcept ImportError: pass", Doubt.FALLBACK),
}


@pytest.mark.parametrize(("caller", "doubt"), COUNTED.values(), ids=COUNTED)
def test_a_caller_that_is_not_followed_is_counted(caller: str, doubt: Doubt) -> None:
    view = see({"lib/__init__.py": HAZARD, "app.py": f"{caller}\n"})
    assert doubt in {each.doubt for each in view.unknown if each.place.path == "app.py"}


@pytest.mark.parametrize("fallback", ["f = None", "def f(x): pass", "pass"])
def test_a_fallback_beside_an_import_does_not_hide_it(fallback: str) -> None:
    ops = f"try:\n    from lib import f\nexcept ImportError:\n    {fallback}\nact = f\n"
    for name in ("f", "act"):
        user = f"from ..ops import {name}\ndef use(x):\n    return {name}(x)\n"
        files = {"app/__init__.py": "", "app/ops.py": ops, "app/sub/__init__.py": "", "app/sub/m.py": user}
        [root] = see({"lib/__init__.py": HAZARD, **files}).roots
        assert str(root.step.place) == "app/sub/m.py:3"


def test_every_call_of_a_callable_is_a_site() -> None:
    caller = "from lib import f\ndef load(x):\n    return f(x)\ndef forward(x):\n    return f(x)\n"
    [root] = see({"lib/__init__.py": HAZARD, "app.py": caller}).roots
    assert [(step.place.line, step.function) for step in root.sites] == [(3, "app.load"), (5, "app.forward")]


BODIES = {
    "by decorator": "@torch.library.impl('a::b', 'cuda')\ndef body(x):\n    return f(x)\n",
    "by a library": (
        "L = torch.library.Library('a', 'FRAGMENT')\ndef body(x):\n    return f(x)\nL.impl('b', body, 'CUDA')\n"
    ),
}


@pytest.mark.parametrize("text", BODIES.values(), ids=BODIES)
def test_the_body_of_an_operator_is_opaque(text: str) -> None:
    [root] = see({"lib/__init__.py": HAZARD, "app.py": f"import torch\nfrom lib import f\n{text}"}).roots
    assert not root.open and root.cover is not None and root.cover.effect is Effect.OPERATOR


def test_a_name_of_an_extension_module_is_in_the_map_and_not_missing() -> None:
    lib = "from .native import Tokenizer\nfrom torch import Tensor\n"
    files = {"lib/__init__.py": lib, "lib/native.so": "", "app.py": "from lib import Tensor, Tokenizer\n"}
    view = see(files)
    [row] = view.rows
    assert row.found.name == "Tokenizer" and row.found.definition is not None
    assert row.found.definition.kind is DefinitionKind.COMPILED
    assert row.found.definition.place.path == "lib/native.so"
    assert not [each for each in view.unknown if each.doubt is Doubt.MISSING]


STARS = {
    "a module of the caller": {"app/gate.py": "from lib import f\n", "app/use.py": "from .gate import *\n"},
    "two modules of the caller": {
        "app/gate.py": "from lib import f\n",
        "app/door.py": "from .gate import *\n",
        "app/use.py": "from app.door import *\n",
    },
    "a name of several lines": {"app/gate.py": "from lib import (\n    f,\n)\n", "app/use.py": "from .gate import *\n"},
    "an alias": {"app/gate.py": "from lib import g as f\n", "app/use.py": "from .gate import *\n"},
    "an assignment": {"app/gate.py": "import lib\nf = lib.f\n", "app/use.py": "from .gate import *\n"},
    "what is exported": {"app/gate.py": "from lib import f\n__all__ = ['f']\n", "app/use.py": "from .gate import *\n"},
    "a list that is made": {
        "app/gate.py": "from lib import f\n__all__ = [each for each in 'f']\n",
        "app/use.py": "from .gate import *\n",
    },
    "a circle": {
        "app/gate.py": "from .use import *\nfrom lib import f\n",
        "app/use.py": "from .gate import *\n",
    },
}


@pytest.mark.parametrize("files", STARS.values(), ids=STARS)
def test_a_star_import_is_followed_through(files: dict[str, str]) -> None:
    lib = "import os\ndef f(x):\n    os.getpid()\ndef g(x):\n    os.getpid()\n"
    texts = {"app/__init__.py": "", "lib/__init__.py": lib, **files}
    texts["app/use.py"] += "def use(x):\n    return f(x)\n"
    places = {site.place.path for root in see(texts).roots for site in root.sites}
    assert places == {"app/use.py"}


@pytest.mark.parametrize("around", [False, True], ids=["each of all before it", "each of all others"])
def test_modules_that_star_import_each_other_are_each_asked_once(around: bool) -> None:
    def text(index: int) -> str:
        others = [each for each in range(60 if around else index) if each != index]
        return "".join(f"from lib.s{each} import *\n" for each in others) + f"def q{index}(): pass\n"

    files = {f"lib/s{index}.py": text(index) for index in range(60)}
    files |= {
        "lib/__init__.py": "",
        "lib/m.py": "import subprocess\nfrom lib.s59 import *\ndef f(): subprocess.run(q0())",
    }
    files["app.py"] = "from lib.m import f, q1, q99\ndef use():\n    f(); q1()\n"
    view = see(files)
    assert {root.callable for root in view.roots} == {"lib.m.f", "lib.s1.q1"}
    assert [each.text for each in view.unknown if each.doubt is Doubt.MISSING] == ["lib.m.q99"]


def test_modules_of_the_caller_that_star_import_each_other_are_all_concerned() -> None:
    stars = {"app/a.py": "from app.c import *\nfrom app.b import *", "app/b.py": "from app.a import *\ndef use(): f(1)"}
    view = see({"lib/__init__.py": "def f(x): pass", **stars, "app/c.py": "from lib import *\n"})
    assert ("app/b.py", "f") in {(row.found.place.path, row.found.alias) for row in view.rows}


NO_STAR = {
    "prose": "# f is of lib\nimport lib\n",
    "a list without it": "from lib import f\n__all__ = ['g']\ng = 1\n",
    "a private name": "from lib import f as _f\n",
}


@pytest.mark.parametrize("gate", NO_STAR.values(), ids=NO_STAR)
def test_a_star_import_brings_nothing_of(gate: str) -> None:
    lib = "import os\ndef f(x):\n    os.getpid()\n"
    texts = {"app/__init__.py": "", "lib/__init__.py": lib, "app/gate.py": gate}
    texts["app/use.py"] = "from .gate import *\ndef use(x):\n    return f(x)\n"
    assert "app/use.py" not in {site.place.path for root in see(texts).roots for site in root.sites}


GUESSES = {
    "an operation": "a + b",
    "an access": "a.size_of_it",
    "a call that prints": "str(a)",
}


@pytest.mark.parametrize("expression", GUESSES.values(), ids=GUESSES)
def test_an_operation_on_what_is_not_known_is_not_one_of_a_class_that_the_caller_never_imports(expression: str) -> None:
    lib = (
        "import os\nclass Number:\n    def __add__(self, other):\n        os.getpid()\n"
        "    def __str__(self):\n        os.getpid()\n"
        "    @property\n    def size_of_it(self):\n        os.getpid()\n"
        "ONE = Number()\ndef f(x):\n    return x\n"
    )
    view = see({"lib/__init__.py": lib, "app.py": f"from lib import f\ndef use(a, b):\n    return {expression}\n"})
    assert [root.callable for root in view.roots] == ["lib.f"]


# ---- what runs when a module is imported ----------------------------------------------------------------------

LIB_OS = "import os\ndef f(x):\n    os.getpid()\nclass C:\n    def m(self):\n        os.getpid()\n"
AT_IMPORT = {
    "a name": "from lib import f\nf(1)\n",
    "an attribute of the module": "import lib\nlib.f(1)\n",
    "under the name of the program": "import lib\nif __name__ == '__main__':\n    lib.f(1)\n",
    "the body of a class": "import lib\nclass A:\n    a = lib.f(1)\n",
    "a default": "import lib\ndef g(a=lib.f(1)): pass\n",
    "a decorator with arguments": "import lib\n@lib.f(1)\ndef g(): pass\n",
    "a value that is kept": "import lib\nA = [lib.f(1)]\n",
}


@pytest.mark.parametrize("caller", AT_IMPORT.values(), ids=AT_IMPORT)
def test_a_call_that_runs_when_a_module_is_imported_is_a_site_of_no_function(caller: str) -> None:
    [root] = see({"lib/__init__.py": LIB_OS, "app.py": caller}).roots
    assert [met.construct for met in root.open] == ["os.getpid"]
    [site] = root.sites
    assert site.function == "" and "f(1)" in caller.splitlines()[site.place.line - 1]


def test_a_method_that_runs_when_a_module_is_imported_is_followed() -> None:
    [root] = see({"lib/__init__.py": LIB_OS, "app.py": "from lib import C\nc = C()\nc.m()\n"}).roots
    assert root.callable == "lib.C.m" and [site.place.line for site in root.sites] == [3]


def test_what_a_module_hands_to_the_compiler_when_it_is_imported_is_a_site() -> None:
    caller = "import lib, torch\nc = torch.compile(lib.f, fullgraph=True)\n"
    [root] = see({"lib/__init__.py": LIB_OS, "app.py": caller}).roots
    assert root.open and root.step.place.line == 2


def test_a_chain_begins_in_a_function_where_one_has_the_call() -> None:
    [root] = see({"lib/__init__.py": LIB_OS, "app.py": "import lib\nlib.f(1)\ndef g():\n    lib.f(2)\n"}).roots
    assert root.step.function == "app.g" and [site.place.line for site in root.sites] == [2, 4]


# ---- graph breaks of the caller -------------------------------------------------------------------------------

OWN_BREAK = {
    "its function": "import lib, torch\n@torch.compiler.disable\ndef g(x):\n    lib.f(x)\n",
    "its function alone": "import lib, torch\n@torch.compiler.disable(recursive=False)\ndef g(x):\n    lib.f(x)\n",
    "a function around": (
        "import lib, torch\n@torch.compiler.disable\ndef g(x):\n    def h():\n        lib.f(x)\n    h()\n"
    ),
    "one of two functions": (
        "import lib, torch\n@torch.compiler.disable\ndef g(x):\n    lib.f(x)\ndef h(x):\n    lib.f(x)\n"
    ),
}


@pytest.mark.parametrize("caller", OWN_BREAK.values(), ids=OWN_BREAK)
def test_a_graph_break_of_the_caller_is_told(caller: str) -> None:
    [root] = see({"lib/__init__.py": LIB_OS, "app.py": caller}).roots
    assert [(each.maker, each.place.path) for each in root.breaks] == [("torch.compiler.disable", "app.py")]


def test_a_graph_break_inside_an_operator_of_the_caller_is_none() -> None:
    caller = "import lib, torch\n@torch.library.custom_op('a::b', mutates_args=())\ndef g(x):\n    lib.f(x)\n"
    lib = "import os, torch\n@torch.compiler.disable\ndef f(x):\n    os.getpid()\n"
    [root] = see({"lib/__init__.py": lib, "app.py": caller}).roots
    assert root.breaks == []
