"""Where a definition went: which symbols a patch changes, and the file of a new tree that defines them now.

Static: sources are parsed and never run. A file that only imports a name does not define it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from patchkit.hunks import apply_hunks
from patchkit.model import FileDiff, HunkResult
from patchkit.symbols import defines
from patchkit.syntax import PARSE_ERRORS, parse

_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def changed_symbols(source: bytes, diff: FileDiff) -> tuple[str, ...]:
    """The definitions of ``source`` that the hunks of ``diff`` change: top-level names, methods as ``Class.method``.

    A line between two definitions (a decorator to be added) belongs to the one that follows. Empty where the
    source cannot be parsed or the hunks do not fit.
    """
    try:
        module = parse(source)
    except PARSE_ERRORS:
        return ()
    outcomes = apply_hunks(source, diff).outcomes
    found: dict[str, None] = {}
    for hunk, outcome in zip(diff.hunks, outcomes, strict=False):
        if outcome.result is HunkResult.FITS:
            begin = outcome.line + hunk.leading
            end = max(outcome.line + hunk.old_count - hunk.trailing, begin + 1)
            found |= dict.fromkeys(_definitions_at(module, begin, end))
    return tuple(found)


def _definitions_at(module: ast.Module, begin: int, end: int) -> Iterable[str]:
    """The names of the definitions that the lines from ``begin`` up to ``end`` (not included) meet."""
    for node in ast.iter_child_nodes(module):
        if isinstance(node, _Named) and _meets(node, begin, end):
            methods = [child for child in node.body if isinstance(child, _Named) and _meets(child, begin, end)]
            inside = isinstance(node, ast.ClassDef) and methods
            yield from (f"{node.name}.{method.name}" for method in methods) if inside else (node.name,)


def _meets(node: _Named, begin: int, end: int) -> bool:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return begin <= (node.end_lineno or node.lineno) and end > first


def find_moved(symbols: Iterable[str], old_path: str, sources: Mapping[str, bytes]) -> dict[str, tuple[str, ...]]:
    """For each symbol that ``old_path`` does not define any more, the other files of ``sources`` that do.

    ``sources`` are the Python files of the new tree by path; each is read only where the name stands in it.
    """
    moved: dict[str, tuple[str, ...]] = {}
    for symbol in symbols:
        if _holds(sources, old_path, symbol):
            continue
        name = symbol.rpartition(".")[2].encode()
        likely = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+" + re.escape(name) + rb"\b", re.MULTILINE)
        places = [
            path
            for path in sources
            if path != old_path
            and path.endswith(".py")
            and likely.search(sources[path])
            and _holds(sources, path, symbol)
        ]
        if places:
            moved[symbol] = tuple(sorted(places, key=lambda path: (_distance(old_path, path), path)))
    return moved


def _holds(sources: Mapping[str, bytes], path: str, symbol: str) -> bool:
    try:
        return path in sources and defines(parse(sources[path]), symbol)
    except PARSE_ERRORS:
        return False


def _distance(old: str, new: str) -> int:
    """How many parts of the path differ: the nearest place is named first."""
    one, other = old.removesuffix(".py").split("/"), new.removesuffix(".py").split("/")
    return len(set(one) ^ set(other))
