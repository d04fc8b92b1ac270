"""Where code is compiled as a whole: calls with ``fullgraph=True``, and parameters of that name whose default it is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patchkit.audited import Place, Site, Use
from patchkit.programs import Program, Scope
from patchkit.syntax import excerpt

WORD = b"fullgraph"


def find_compiles(program: Program, names: Iterable[str]) -> Iterator[Site]:
    """All such places in the modules ``names``; only those whose text has the word are parsed."""
    for name in program.mentioning((WORD,), names):
        module = program.module(name)
        if module is not None:
            for scope in module.scopes:
                yield from _in_scope(scope)


def _in_scope(scope: Scope) -> Iterator[Site]:
    path = scope.module.source.path
    for node in _own_nodes(scope.node):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "fullgraph" and _is_true(keyword.value):
                    line = keyword.value.lineno
                    yield Site(Place(path, line), scope.qualname, Use.CALL, f"{excerpt(node.func)}(fullgraph=True)")
    for parameter, default in _defaults(scope.node):
        if parameter.arg == "fullgraph" and _is_true(default):
            yield Site(Place(path, parameter.lineno), scope.qualname, Use.VALUE, f"def {scope.name}(fullgraph=True)")


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes inside it; decorators belong to the scope around."""
    own_decorators = set(map(id, getattr(node, "decorator_list", ())))
    stack = [child for child in ast.iter_child_nodes(node) if id(child) not in own_decorators]
    while stack:
        inner = stack.pop()
        yield inner
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stack += inner.decorator_list
        elif not isinstance(inner, ast.Lambda):
            stack += ast.iter_child_nodes(inner)


def _defaults(node: ast.AST) -> Iterator[tuple[ast.arg, ast.expr]]:
    arguments = getattr(node, "args", None)
    if isinstance(arguments, ast.arguments):
        positional = [*arguments.posonlyargs, *arguments.args]
        yield from zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                yield each, default


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
