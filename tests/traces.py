"""A program: libraries at work, and which of their functions called which, as the interpreter saw it.

    python tests/traces.py SITE PACKAGE     the calls inside PACKAGE, imported from the folder SITE, as JSON

A call is ``[file, function, first line, line of the call, file, function, first line]``: the caller's, then the
callee's. Files are relative to SITE; first lines are those of the code object, which is the first decorator's where
there is one. Comprehensions count as the function that they stand in, code of a module or class is left out.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from types import FrameType
from typing import Any

_INNER = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # frames of their own up to Python 3.11, or for ever


def work_jinja2(jinja2: Any) -> None:
    texts = {
        "base": "<a>{% block x %}{% endblock %}</a>{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}",
        "page": "{% extends 'base' %}{% from 'base' import m %}{% block x %}{% for i in items|sort %}{{ loop.index }}"
        "{{ i|upper }}{% if i is string %}{{ m(i) }}{% endif %}{% endfor %}{{ super() }}{% set y = 3 %}{{ y ~ 'a' }}"
        "{{ {'a': 1}['a'] + 2 }}{% include 'part' %}{% endblock %}",
        "part": "{{ items|map('length')|list }}{% call(u) q() %}{{ u }}{% endcall %}",
    }
    extensions = [f"jinja2.ext.{name}" for name in ("do", "loopcontrols", "i18n")]
    environment = jinja2.Environment(loader=jinja2.DictLoader(texts), autoescape=True, extensions=extensions)
    environment.globals["q"] = lambda caller: caller(1)
    assert "<a>1A" in environment.get_template("page").render(items=["a", "b"])
    try:
        environment.from_string("{% if %}")
    except jinja2.TemplateSyntaxError as error:
        str(error)
    environment.from_string("{{ a.b.c }}{{ x|default(3) }}{{ 'a<b'|e }}{{ '%s'|format(2) }}").render(a={"b": {"c": 1}})


def work_tomlkit(tomlkit: Any) -> None:
    text = 'a = 1\n# c\n[b]\nx = "y"\nl = [1, 2, {z = 1}]\nd = 1979-05-27T07:32:00Z\n[[t]]\nn = 1\n[[t]]\nn = 2\n'
    document = tomlkit.parse(f"{text}[q.w]\ne = 1.5\n")
    document["b"]["x"] = "z"
    document["b"]["new"] = [1, 2]
    document.add("k", tomlkit.table())
    document["k"]["v"] = {"a": 1}
    del document["a"]
    document["t"].append({"n": 3})
    document["b"]["l"].append(4)
    document.update({"p": True})
    assert tomlkit.parse(tomlkit.dumps(document)) == document.unwrap()
    try:
        tomlkit.parse("a =")
    except tomlkit.exceptions.ParseError as error:
        str(error)


def work_docutils(docutils: Any) -> None:
    text = (
        "Title\n=====\n\n* a\n* b\n\n.. note:: x\n\n*em* **st** ``lit`` `a <http://x>`_\n\n== ==\na  b\n== ==\n1  2\n"
        "== ==\n\n.. image:: x.png\n\nfoo [1]_\n\n.. [1] bar\n"
    )
    core = importlib.import_module("docutils.core")
    assert b"<em>em</em>" in core.publish_string(text, writer_name="html", settings_overrides={"report_level": 5})


def work_pyparsing(pp: Any) -> None:
    number = pp.Word(pp.nums).set_parse_action(lambda tokens: int(tokens[0]))
    sums = pp.infix_notation(number, [("*", 2, pp.OpAssoc.LEFT), ("+", 2, pp.OpAssoc.LEFT)])
    assert sums.parse_string("1+2*3").as_list() == [[1, "+", [2, "*", 3]]]
    pair = pp.Word(pp.alphas)("k") + pp.Suppress("=") + (pp.QuotedString('"') | pp.Word(pp.nums))("v")
    assert pp.OneOrMore(pp.Group(pair)).parse_string('a="b" c=3')[1]["v"] == "3"
    try:
        pair.parse_string("??")
    except pp.ParseException as error:
        error.explain()
    list(pair.scan_string("a=1 b=2"))
    str(sums)


def work_rich(rich: Any) -> None:
    load = {name: importlib.import_module(f"rich.{name}") for name in ("console", "table", "tree", "panel", "progress")}
    out = io.StringIO()
    console = load["console"].Console(file=out, force_terminal=True, width=80)
    table = load["table"].Table(title="x")
    table.add_column("a", justify="right")
    table.add_column("b")
    table.add_row("1", "[b]2[/b]")
    console.print(table)
    tree = load["tree"].Tree("root")
    tree.add("b").add("c")
    console.print(tree)
    console.print(load["panel"].Panel("x"))
    with load["progress"].Progress(console=console) as progress:
        task = progress.add_task("x", total=3)
        progress.advance(task)
    console.print("[red]hello[/red] :smile:", style="bold on blue")
    console.rule("x")
    assert "hello" in out.getvalue()


WORK = {name.removeprefix("work_"): work for name, work in list(globals().items()) if name.startswith("work_")}


class Trace:
    """The calls from one function below ``folder`` to another."""

    def __init__(self, folder: str) -> None:
        self._prefix = folder.rstrip(os.sep) + os.sep
        self.calls: set[tuple[str, str, int, int, str, str, int]] = set()

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """What `sys.setprofile` calls."""
        code, back = frame.f_code, frame.f_back
        if event != "call" or not self._is_function(frame) or back is None:
            return
        line = back.f_lineno
        while back is not None and back.f_code.co_name in _INNER:
            back = back.f_back
        if back is not None and self._is_function(back):
            caller = back.f_code
            self.calls.add((*self._place(caller), line, *self._place(code)))

    def _is_function(self, frame: FrameType) -> bool:
        """Functions have local variables of their own; modules and classes have not (inspect.CO_NEWLOCALS)."""
        code = frame.f_code
        is_function = bool(code.co_flags & 1) and code.co_name not in _INNER
        return is_function and code.co_filename.startswith(self._prefix)

    def _place(self, code: Any) -> tuple[str, str, int]:
        return code.co_filename[len(self._prefix) :], code.co_name, code.co_firstlineno


def main(site: str, package: str) -> None:
    sys.path.insert(0, site)
    module = importlib.import_module(package)
    trace = Trace(os.path.join(site, package))
    sys.setprofile(trace.note)
    try:
        WORK[package](module)
    finally:
        sys.setprofile(None)
    sys.stdout.write(json.dumps(sorted(trace.calls)))


if __name__ == "__main__":
    main(*sys.argv[1:])
