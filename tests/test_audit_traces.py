"""The static view against real runs: libraries do their work, and every call that was seen is known or counted."""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import worlds
from patchkit.audit import read_table
from patchkit.calls import Calls
from patchkit.codebase import find_caller, read_source
from patchkit.inference import Inference
from patchkit.operations import is_implicit
from patchkit.programs import Program, Scope, Texts
from patchkit.reach import reach
from patchkit.results import PROTOCOL
from patchkit.surroundings import Surroundings

TABLE = read_table(None)
PROGRAM = Path(__file__).with_name("traces.py")
LIBRARIES = {
    "jinja2": (("jinja2", "3.1.6"), ("markupsafe", "3.0.4")),
    "tomlkit": (("tomlkit", "0.13.3"),),
    "docutils": (("docutils", "0.22"),),
    "pyparsing": (("pyparsing", "3.2.3"),),
    "rich": (("rich", "14.1.0"), ("pygments", "2.19.2"), ("markdown-it-py", "3.0.0"), ("mdurl", "0.1.2")),
}
Call = tuple[str, str, int, int, str, str, int]


@dataclass
class Known:
    """What a program's text says, asked by what a running program shows of itself."""

    program: Program
    calls: Calls
    _scopes: dict[str, dict[tuple[str, int], Scope]] = field(default_factory=dict)
    _elsewhere: set[Scope] = field(default_factory=set)

    @classmethod
    def of(cls, site: Path, package: str) -> Known:
        caller = find_caller(package, [str(site)], str(site))
        sources = {name: replace(source, distribution=package) for name, source in caller.sources.items()}
        program = Program(sources, read_source, Texts())
        inference = Inference(program, TABLE, Surroundings(program, list(sources)))
        calls = Calls(inference, TABLE, lambda name, _: inference.surroundings.methods(name))
        return cls(program, calls)

    def scope(self, site: Path, path: str, name: str, line: int) -> Scope | None:
        """The function whose code object has this name and first line."""
        if path not in self._scopes:
            told = {os.path.relpath(source.full, site): each for each, source in self.program.sources.items()}
            module = self.program.module(told[path]) if path in told else None
            self._scopes[path] = {
                (getattr(scope.node, "name", "<lambda>"), first): scope
                for scope in (module.scopes if module is not None else ())
                if scope.is_function
                for first in (scope.line, *(each.lineno for each in getattr(scope.node, "decorator_list", ())))
            }
        return self._scopes[path].get((name, line))

    def is_called_where_made(self, callee: Scope) -> bool:
        """Whether it is a special method that is known where an object of its class is made."""
        lineage = self.calls.inference.lineage
        if not self._elsewhere:
            for module in self.calls.inference.surroundings.modules:
                for facts in (self.calls.facts(scope) for scope in module.scopes if scope.is_deferred):
                    kin = {each for made in facts.made for each in lineage.order(made)}
                    self._elsewhere |= {edge.target for edge in facts.edges if edge.target.owner in kin}
        return callee in self._elsewhere and (is_implicit(callee.name) or callee.name in PROTOCOL)

    def verdict(self, caller: Scope, callee: Scope) -> str:
        """What the view says of a call: ``known``, ``counted``, or ``harmless`` for what leads to nothing."""
        facts = self.calls.facts(caller)
        called = [edge.target for edge in (*facts.edges, *facts.around)]
        if callee in called or any(edge.target is callee for each in called for edge in self.calls.facts(each).around):
            return "known"
        if is_generator(callee) or self.is_called_where_made(callee):  # a frame that goes on is no call
            return "where it is made"
        if facts.gaps:
            return "counted"
        behind = reach(callee, self.calls)
        return "silent" if behind.open or behind.unknown or behind.covers else "harmless"


def is_generator(scope: Scope) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node, _ in scope.nodes)


def run(site: Path, package: str) -> Sequence[Call]:
    """The calls inside a library that does its work."""
    done = worlds.run(sys.executable, "-B", PROGRAM, site, package, cwd=site)
    return [tuple(each) for each in done.expect().json()]


@pytest.mark.parametrize("package", LIBRARIES)
def test_every_call_that_is_seen_at_work_is_known_or_counted(tmp_path: Path, package: str) -> None:
    site = tmp_path / "site"
    for distribution, version in LIBRARIES[package]:
        worlds.unpack_site(site, worlds.find_wheel(distribution, version))
    known = Known.of(site, package)
    verdicts: Counter[str] = Counter()
    silent = []
    for path, name, first, line, into, callee, start in run(site, package):
        one = known.scope(site, f"{package}/{path}", name, first)
        other = known.scope(site, f"{package}/{into}", callee, start)
        if one is None or other is None:
            verdicts["generated"] += 1
            continue
        verdict = known.verdict(one, other)
        verdicts[verdict] += 1
        if verdict == "silent":
            silent.append(f"{path}:{line} {one.qualname} -> {other.qualname}")
    assert verdicts["known"] > 50
    assert not silent, f"{verdicts}\n" + "\n".join(silent)
