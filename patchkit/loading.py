"""Which modules are there once others were imported: those that import statements and strings name, and their packages.

Code that is never imported is no part of what a program does: a distribution may carry copies of others' as data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from patchkit.bindings import absolute, bindings_of
from patchkit.programs import Module, Program

_QUOTED = re.compile(rb"""["'](\.*)([A-Za-z_][\w.]*)["']""")
_BY_HAND = re.compile(rb"""\b(?:import_module|__import__)\(\s*[^\s"']|\b(?:iter_modules|walk_packages)\b""")


def find_loaded(program: Program, starts: Iterable[str], owned: Iterable[str]) -> tuple[str, ...]:
    """Those of the modules ``owned`` that may be imported once the modules ``starts`` are, in the order of ``owned``.

    Imports count wherever they stand, also in a function. A name that is made at run time may be that of any module
    right inside the package whose code makes it.
    """
    wanted = dict.fromkeys(owned)
    loaded: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in loaded:
            loaded.add(name)
            module = program.module(name) if name in program.sources else None
            waiting += [each for each in _named(program, name, module) if each in wanted and each not in loaded]
    return tuple(name for name in wanted if name in loaded)


def _named(program: Program, name: str, module: Module | None) -> Iterator[str]:
    """The modules that ``name`` makes the import system look for: the packages around it, and what its text names."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts)))
    if module is None:
        return
    for node in import_statements(module.tree):
        for _, binding in bindings_of(node, name, package=module.source.package):
            yield from _with_packages(binding.module, binding.name)
        if isinstance(node, ast.Import):
            yield from (each for alias in node.names for each in _with_packages(alias.name, ""))
    data = program.data(name) or b""
    for dots, word in _QUOTED.findall(data):
        if dots or b"." in word:
            path = absolute(name, word.decode(), len(dots), package=module.source.package)
            yield from _with_packages(path.rstrip("."), "")
    if _BY_HAND.search(data):
        package = name if module.source.package else name.rpartition(".")[0]
        yield from (each for each in program.sources if each.rpartition(".")[0] == package)


def _with_packages(module: str, name: str) -> Iterator[str]:
    """A module, the packages that it lies in, and what may be a module of that ``name`` in it."""
    parts = [*module.split("."), *([name] if name else [])]
    yield from (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def import_statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """All import statements of a module, in functions too; expressions are not looked into."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            children = getattr(node, field, None)
            if isinstance(children, list):
                stack += children
