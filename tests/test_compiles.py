"""Where code is compiled as a whole, read out of a program's text: what says so, what may, and what does not."""

from __future__ import annotations

import textwrap

import pytest

from patchkit.audit import read_table
from patchkit.compiles import find_compiles
from patchkit.programs import Program, Source, Texts

TABLE = read_table(None)

Told = tuple[str, str, bool]


def compiles(**modules: str) -> list[Told]:
    """The places of a program: file and line, text, and whether it is sure."""
    texts = {f"{name}.py": textwrap.dedent(text).lstrip().encode() for name, text in modules.items()}
    sources = {path.removesuffix(".py"): Source(path, path, False, "") for path in texts}
    program = Program(sources, lambda source: texts[source.full], Texts())
    found = find_compiles(program, sources, TABLE, lambda doing, done, total: None)
    return [(str(each.site.place), each.site.text, each.sure) for each in found]


HEAD = "import functools, os, torch\n"
SURE = {
    "the keyword": ("torch.compile(f, fullgraph=True)", "torch.compile(fullgraph=True)"),
    "1": ("torch.compile(f, fullgraph=1)", "torch.compile(fullgraph=1)"),
    "not False": ("torch.compile(f, fullgraph=not False)", "torch.compile(fullgraph=not False)"),
    "bool(1)": ("torch.compile(f, fullgraph=bool(1))", "torch.compile(fullgraph=bool(1))"),
    "an alternative that is always taken": (
        "torch.compile(f, fullgraph=os.name or True)",
        "torch.compile(fullgraph=os.name or True)",
    ),
    "a choice between two truths": (
        "torch.compile(f, fullgraph=1 if f else True)",
        "torch.compile(fullgraph=1 if f else True)",
    ),
    "a constant": ("WHOLE = True\ntorch.compile(f, fullgraph=WHOLE)", "torch.compile(fullgraph=WHOLE)"),
    "a mapping": ('K = {"fullgraph": True}\ntorch.compile(f, **K)', "torch.compile(**K)"),
    "a mapping in place": ('torch.compile(f, **{"fullgraph": True})', "torch.compile(**{'fullgraph': True})"),
    "a mapping that dict() makes": ("K = dict(fullgraph=True)\ntorch.compile(f, **K)", "torch.compile(**K)"),
    "a mapping that is filled": ('K = {}\nK["fullgraph"] = True\ntorch.compile(f, **K)', "torch.compile(**K)"),
    "a mapping that is updated": ("K = {}\nK.update(fullgraph=True)\ntorch.compile(f, **K)", "torch.compile(**K)"),
    "a mapping that is updated with pairs": (
        'K = {}\nK.update([("fullgraph", True)])\ntorch.compile(f, **K)',
        "torch.compile(**K)",
    ),
    "a mapping that is joined with another": (
        'K = {}\nK |= {"fullgraph": True}\ntorch.compile(f, **K)',
        "torch.compile(**K)",
    ),
    "optimize_assert by where it is defined": (
        "from torch._dynamo.eval_frame import optimize_assert\noptimize_assert('eager')(f)",
        "optimize_assert()",
    ),
    "a mapping of mappings": (
        'K = {"fullgraph": True}\ntorch.compile(f, **{**K, "mode": "a"})',
        "torch.compile(**{**K, 'mode': 'a'})",
    ),
    "mappings joined": (
        'torch.compile(f, **({"mode": 1} | {"fullgraph": True}))',
        "torch.compile(**{'mode': 1} | {'fullgraph': True})",
    ),
    "a decorator": ("@torch.compile(fullgraph=True)\ndef g(x): pass", "torch.compile(fullgraph=True)"),
    "an alias": ("from torch import compile as c\n@c(fullgraph=True)\ndef g(x): pass", "c(fullgraph=True)"),
    "an alias with a mapping": (
        'from torch import compile as c\nK = {"fullgraph": True}\nc(f, **K)',
        "c(**K)",
    ),
    "a name for it": ('c = torch.compile\nK = {"fullgraph": True}\nc(f, **K)', "c(**K)"),
    "partial": ("functools.partial(torch.compile, fullgraph=True)(f)", "torch.compile(fullgraph=True)"),
    "partial with a mapping": (
        'K = {"fullgraph": True}\nfunctools.partial(torch.compile, **K)(f)',
        "torch.compile(**K)",
    ),
    "the method of a module": ("def go(model):\n    model.compile(fullgraph=True)", "model.compile(fullgraph=True)"),
    "the method of a class of the program": (
        'class M(torch.nn.Module):\n    pass\nK = {"fullgraph": True}\nM().compile(**K)',
        "M().compile(**K)",
    ),
    "optimize": ("torch._dynamo.optimize('eager', nopython=True)(f)", "torch._dynamo.optimize(nopython=True)"),
    "optimize with no backend": ("torch._dynamo.optimize(nopython=True)(f)", "torch._dynamo.optimize(nopython=True)"),
    "optimize by a name": (
        "from torch._dynamo import optimize as o\no(nopython=True)(f)",
        "o(nopython=True)",
    ),
    "optimize_assert": ("torch._dynamo.optimize_assert('eager')(f)", "torch._dynamo.optimize_assert()"),
    "Dynamo's export": ("torch._dynamo.export(f)", "torch._dynamo.export()"),
    "strict export": ("torch.export.export(f, (), strict=True)", "torch.export.export(strict=True)"),
    "strict export by its name": (
        "from torch.export import export\nexport(f, (), strict=True)",
        "export(strict=True)",
    ),
    "error_on_graph_break": (
        "with torch._dynamo.error_on_graph_break(True):\n    pass",
        "torch._dynamo.error_on_graph_break(error_on_graph_break=True)",
    ),
    "a default": ("def comp(f, fullgraph=True): pass", "def comp(fullgraph=True)"),
    "a wrapper of its own": (
        "def comp(f, **rest):\n    return torch.compile(f, **rest)\ncomp(f, fullgraph=True)",
        "comp(fullgraph=True)",
    ),
    "a wrapper with another name for it": (
        "def comp(f, whole):\n    return torch.compile(f, fullgraph=whole)\ncomp(f, whole=True)",
        "comp(whole=True)",
    ),
    "a wrapper by position": (
        "def comp(f, whole):\n    return torch.compile(f, fullgraph=whole)\ncomp(f, True)",
        "comp(whole=True)",
    ),
    "a wrapper's default": (
        "def comp(f, whole=True):\n    return torch.compile(f, fullgraph=whole)",
        "def comp(whole=True)",
    ),
    "a wrapper of a wrapper": (
        "def comp(f, whole):\n    return torch.compile(f, fullgraph=whole)\n"
        "def outer(f, all_of_it):\n    return comp(f, all_of_it)\nouter(f, True)",
        "outer(all_of_it=True)",
    ),
    "a wrapper that gets a mapping": (
        "def comp(f, options):\n    return torch.compile(f, **options)\ncomp(f, dict(fullgraph=1))",
        "comp(**dict(fullgraph=1))",
    ),
    "a wrapper of nopython": (
        "def comp(f, **rest):\n    return torch._dynamo.optimize(**rest)(f)\ncomp(f, nopython=True)",
        "comp(nopython=True)",
    ),
    "a method that wraps": (
        "class C:\n    def comp(self, f, whole):\n        torch.compile(f, fullgraph=whole)\nC().comp(f, True)",
        "C().comp(whole=True)",
    ),
    "an object that keeps it": (
        "class C:\n    def __init__(self):\n        self.whole = True\n"
        "    def go(self, f):\n        torch.compile(f, fullgraph=self.whole)",
        "torch.compile(fullgraph=self.whole)",
    ),
}


@pytest.mark.parametrize(("text", "told"), SURE.values(), ids=SURE)
def test_code_is_compiled_as_a_whole_by(text: str, told: str) -> None:
    assert (told, True) in {(words, sure) for _, words, sure in compiles(app=HEAD + text)}


def test_constants_and_mappings_of_other_modules_are_read() -> None:
    options = "WHOLE = True\nK = {'fullgraph': WHOLE}\n"
    app = "import torch\nimport options as o\nfrom options import K\ntorch.compile(f, **K)\n"
    app += "torch.compile(f, fullgraph=o.WHOLE)\n"
    assert compiles(app=app, options=options)[:2] == [
        ("app.py:4", "torch.compile(**K)", True),
        ("app.py:5", "torch.compile(fullgraph=o.WHOLE)", True),
    ]


def test_a_wrapper_is_followed_into_other_modules() -> None:
    lib = "import torch\ndef comp(f, whole=False):\n    return torch.compile(f, fullgraph=whole)\n"
    app = "from lib import comp\n\ncomp(1, whole=True)\ncomp(2)\n"
    assert compiles(lib=lib, app=app) == [("app.py:3", "comp(whole=True)", True)]


PERHAPS = {
    "a mapping that it is taken out of": (
        "K = {}\nK['fullgraph'] = True\ndel K['fullgraph']\ntorch.compile(f, **K)",
        "torch.compile(**K)",
    ),
    "a mapping of an object that a method fills": (
        "class C:\n    def __init__(self):\n        self.kw = {'dynamic': False}\n        self.kw['fullgraph'] = True\n"
        "    def go(self, f):\n        torch.compile(f, **self.kw)",
        "torch.compile(**self.kw)",
    ),
    "the environment": (
        "torch.compile(f, fullgraph=os.environ.get('A') == '1')",
        "torch.compile(fullgraph=os.environ.get('A') == '1')",
    ),
    "a configuration": ("def go(c):\n    torch.compile(f, fullgraph=c.whole)", "torch.compile(fullgraph=c.whole)"),
    "a parameter that nobody hands in": (
        "def comp(f, whole):\n    torch.compile(f, fullgraph=whole)",
        "torch.compile(fullgraph=whole)",
    ),
    "a rest that nobody hands in": (
        "def comp(f, **rest):\n    torch.compile(f, **rest)",
        "torch.compile(**rest)",
    ),
    "what a wrapper is handed": (
        "def comp(f, whole):\n    torch.compile(f, fullgraph=whole)\ncomp(f, os.name)",
        "comp(whole=os.name)",
    ),
    "two values": (
        "if os.name:\n    WHOLE = True\nelse:\n    WHOLE = False\ntorch.compile(f, fullgraph=WHOLE)",
        "torch.compile(fullgraph=WHOLE)",
    ),
    "a field with a default": (
        "class C:\n    whole: bool = False\n    def go(self, f):\n        torch.compile(f, fullgraph=self.whole)",
        "torch.compile(fullgraph=self.whole)",
    ),
    "a method of what is not known": (
        "def go(model, c):\n    model.compile(fullgraph=c.whole)",
        "model.compile(fullgraph=c.whole)",
    ),
    "a mapping that goes somewhere": ("NAMED = {'fullgraph': True}", "{'fullgraph': True}"),
}


@pytest.mark.parametrize(("text", "told"), PERHAPS.values(), ids=PERHAPS)
def test_code_may_be_compiled_as_a_whole_by(text: str, told: str) -> None:
    assert [(words, sure) for _, words, sure in compiles(app=HEAD + text)] == [(told, False)]


NOT = {
    "False": "torch.compile(f, fullgraph=False)",
    "0": "torch.compile(f, fullgraph=0)",
    "no word of it": "torch.compile(f)",
    "a mapping without it": 'K = {"mode": "a"}\ntorch.compile(f, **K)',
    "a mapping that says no": 'K = {"fullgraph": False}\ntorch.compile(f, **K)',
    "another compiler": "import numba\n@numba.jit(nopython=True)\ndef g(x): pass",
    "export as it is by default": "torch.export.export(f, ())",
    "export that is not strict": "torch.export.export(f, (), strict=False)",
    "another function that is strict": "list(zip([], [], strict=True))",
    "a regular expression": "import re\nre.compile('fullgraph=True')",
    "a comment": "# torch.compile(f, fullgraph=True)",
    "a wrapper that is handed no": (
        "def comp(f, whole):\n    torch.compile(f, fullgraph=whole)\ncomp(f, False)\ncomp(f, whole=0)"
    ),
    "graph breaks that are allowed": "with torch._dynamo.error_on_graph_break(False):\n    pass",
}


@pytest.mark.parametrize("text", NOT.values(), ids=NOT)
def test_code_is_not_compiled_as_a_whole_by(text: str) -> None:
    assert compiles(app=HEAD + text) == []


ODD = {
    "itself": "WHOLE = WHOLE\ntorch.compile(f, fullgraph=WHOLE)",
    "a circle": "A = B\nB = A\ntorch.compile(f, fullgraph=A)",
    "a mapping of itself": "K = {**K}\ntorch.compile(f, **K)",
    "a wrapper that calls itself": (
        "def comp(f, whole):\n    comp(f, whole)\n    torch.compile(f, fullgraph=whole)\ncomp(f, os.name)"
    ),
    "a lambda": "comp = lambda f, whole: torch.compile(f, fullgraph=whole)",
    "nothing at all": "torch.compile(**{})\nfunctools.partial()\ntorch._dynamo.error_on_graph_break()",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_code_ends_no_search(text: str) -> None:
    assert not [told for told in compiles(app=HEAD + text) if told[2]]
