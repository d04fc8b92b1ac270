"""The import map of a caller: the names it takes from a distribution, where these are defined, where it uses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchkit.audited import Doubt, Import, Place, Site, Unknown, Use
from patchkit.bindings import Imported, bindings_of
from patchkit.branches import may_fail, told, walk
from patchkit.definitions import Located, locate_all
from patchkit.loading import import_statements
from patchkit.outlines import defined_names
from patchkit.programs import Module, Program, Scope
from patchkit.syntax import excerpt


@dataclass(frozen=True, slots=True)
class Row:
    """An import statement's name, with the scope that it binds the name in."""

    found: Import
    located: Located | None
    scope: Scope


class ImportMap:
    """Which imports of modules lead to the distributions ``subjects``; each is followed once."""

    def __init__(self, program: Program, subjects: frozenset[str]) -> None:
        self.program = program
        self.subjects = subjects
        self.lost: set[Unknown] = set()
        self.bound: dict[str, list[Imported]] = {}
        self._concerned: dict[str, bool] = {}
        self._starred: dict[str, frozenset[str]] = {}
        self._leads: dict[tuple[str, str], bool] = {}
        self._outlines: dict[str, frozenset[bytes]] = {}

    def concerns(self, name: str) -> bool:
        """Whether a module imports anything of them. What it is parsed for is not kept: most modules do not."""
        waiting, seen = [name], {name}
        while waiting:
            each = waiting.pop()
            if each not in self._concerned:
                self._concerned[each], self._starred[each] = self._look_at(each)
            if self._concerned[each]:
                self._concerned[name] = True
                return True
            fresh = self._starred[each] - seen
            seen |= fresh
            waiting += fresh
        return False

    def _look_at(self, name: str) -> tuple[bool, frozenset[str]]:
        """Whether a module names anything of them, and the modules that it takes all names of."""
        if name not in self.program.sources:
            return False, frozenset()
        tree, package = self.program.glance(name), self.program.sources[name].package
        if tree is None:
            return False, frozenset()
        bound = [pair for node in import_statements(tree) for pair in bindings_of(node, name, package=package)]
        self.bound[name] = [binding for _, binding in bound]
        stars = frozenset(each.module for alias, each in bound if alias == "*")
        if any(self.program.owner(binding.module) in self.subjects for _, binding in bound):
            return True, stars
        return any(self._leads_to(each.module, each.name) for alias, each in bound if alias != "*"), stars

    def rest(self, name: str, asked: frozenset[str]) -> Iterator[Unknown]:
        """Where a module imports from other modules of its own package than those ``asked`` for: a line a module."""
        tree, source = self.program.glance(name), self.program.sources[name]
        for node in import_statements(tree) if tree else ():
            for _, binding in bindings_of(node, name, package=source.package):
                inner = f"{binding.module}.{binding.name}"
                module = inner if inner in self.program.sources else binding.module
                if self.program.owner(module) == "" and module not in asked:
                    yield Unknown(Place(source.path, node.lineno), Doubt.OWN, "", module)

    def rows(self, module: Module) -> list[Row]:
        """All imports of their names in ``module``, with their alternatives, by line."""
        rows: list[Row] = []
        wanted: dict[tuple[Scope, str], None] = {}
        for scope, name, binding in _statements(module):
            if self._is_lost(binding):
                doubt = Doubt.FALLBACK if may_fail(binding.branch) else Doubt.MISSING
                text = f"{binding.module}.{binding.name}".removesuffix(".*").removesuffix(".")
                self.lost.add(Unknown(Place(module.source.path, binding.line), doubt, scope.qualname, text))
            elif name == "*":
                rows += self._star_rows(scope, binding)
            elif name and self._leads_to(binding.module, binding.name):
                wanted[scope, name] = None
        for scope, alias in wanted:
            imported = [each for each in scope.namespace.names.get(alias, ()) if isinstance(each, Imported)]
            rows += [self._row(scope, alias, each) for each in imported]
        return sorted(rows, key=lambda row: (row.found.place, row.found.alias))

    def _is_lost(self, binding: Imported) -> bool:
        """Whether an import asks a distribution for a module or a name that it does not have."""
        asked, name = binding.module, "" if binding.name == "*" else binding.name
        holder = asked
        while holder and not self.program.has(holder):
            holder = holder.rpartition(".")[0]
        if self.program.owner(holder) not in self.subjects or self.program.is_opaque(holder):
            return False
        if holder != asked:
            return True
        return bool(name) and self.program.lacks(asked, name)

    def _leads_to(self, module: str, name: str) -> bool:
        key = (module, name)
        if key not in self._leads:
            self._leads[key] = self._follow(module, name)
        return self._leads[key]

    def _follow(self, module: str, name: str) -> bool:
        owner = self.program.owner(module)
        if not name:
            return owner in self.subjects
        if owner is None or (owner not in self.subjects and name.encode() in self._outline(module)):
            return False
        return any(where.distribution in self.subjects for where in locate_all(self.program, module, name))

    def _outline(self, module: str) -> frozenset[bytes]:
        """The names that the text of a module, unparsed, defines at its left edge and nowhere imports."""
        if module not in self._outlines:
            self._outlines[module] = defined_names(self.program.data(module) or b"")
        return self._outlines[module]

    def _row(self, scope: Scope, alias: str, binding: Imported) -> Row:
        places = list(locate_all(self.program, binding.module, binding.name))
        ours = [each for each in places if each.distribution in self.subjects]
        where = next(iter(ours or places), None)
        own = bool(ours)
        found = Import(
            place=Place(scope.module.source.path, binding.line),
            module=binding.module,
            name=binding.name,
            alias=alias,
            branch=(*_around(scope), *told(binding.branch)),
            distribution=where.distribution if own and where is not None else None,
            definition=where.definition() if where is not None else None,
            sites=tuple(sorted(set(_sites(scope, alias)))),
        )
        return Row(found, where if own else None, scope)

    def _star_rows(self, scope: Scope, star: Imported) -> Iterator[Row]:
        """A star import, name by name, as far as the names are used here."""
        parsed = self.program.module(star.module)
        if parsed is None:
            return
        used = {node.id for node in ast.walk(scope.module.tree) if isinstance(node, ast.Name)}
        for name in sorted(used - scope.namespace.names.keys()):
            if parsed.scope.namespace.exports(name) and self._leads_to(star.module, name):
                yield self._row(scope, name, Imported(star.module, name, star.line, star.branch))


def find_named(program: Program, names: Iterable[str], subjects: frozenset[str]) -> Iterator[Unknown]:
    """Where the modules ``names`` name a module of ``subjects`` in a string: imported at run time, perhaps.

    A dotted name counts anywhere, a plain one (which may be any word) as an argument of what speaks of imports.
    """
    tops = {name.partition(".")[0] for name, source in program.sources.items() if source.distribution in subjects}
    quoted = [quote + top.encode() for top in tops for quote in (b"'", b'"')]
    for name in program.mentioning(quoted, names):
        tree, path = program.glance(name), program.sources[name].path
        for node in ast.walk(tree) if tree is not None else ():
            match node:
                case ast.Constant(value=str(value)) if "." in value and program.owner(value) in subjects:
                    yield Unknown(Place(path, node.lineno), Doubt.STRING, "", value)
                case ast.Call(func=func) if _IMPORTERS.search(excerpt(func)):
                    for each in node.args:
                        if isinstance(each, ast.Constant) and each.value in tops:
                            yield Unknown(Place(path, each.lineno), Doubt.STRING, "", str(each.value))


_IMPORTERS = re.compile(r"import|spec|module|package", re.IGNORECASE)


def _around(scope: Scope) -> tuple[str, ...]:
    """The functions and classes that a scope lies in, and it, outermost first."""
    words: list[str] = []
    holder: Scope | None = scope
    while holder is not None and holder.qualname:
        words.insert(0, f"{'class' if holder.is_class else 'def'} {holder.name}")
        holder = holder.parent
    return tuple(words)


def _statements(module: Module) -> Iterator[tuple[Scope, str, Imported]]:
    """The names that import statements bind, each with the scope it stands in; "" for the whole of ``import a.b``."""
    scopes = [module.scope]
    while scopes:
        scope = scopes.pop()
        for placed in walk(getattr(scope.node, "body", ())):
            node = placed.node
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                scopes.append(scope.child(node))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for name, found in bindings_of(node, module.name, package=module.source.package, branch=placed.branch):
                    yield scope, name, found
            if isinstance(node, ast.Import):
                dotted = (each.name for each in node.names if "." in each.name and not each.asname)
                yield from ((scope, "", Imported(name, "", node.lineno, placed.branch)) for name in dotted)


# ---- sites ----------------------------------------------------------------------------------------------------


def _sites(scope: Scope, alias: str) -> Iterator[Site]:
    """Where ``alias``, bound in ``scope``, is used: in it and in the scopes inside that do not bind it anew."""
    yield from _uses(scope.node, scope, alias)
    for inner in scope.inner:
        hidden = alias in inner.namespace.names and alias not in inner.namespace.outer
        if not hidden:
            yield from _sites(inner, alias)
        elif inner.is_class:
            yield from (site for below in inner.inner for site in _sites(below, alias))


def _uses(node: ast.AST, scope: Scope, alias: str) -> Iterator[Site]:
    """The uses in a scope's own nodes; each with what is done with the longest dotted name around it."""
    own = set(map(id, getattr(node, "decorator_list", ()))) | set(map(id, getattr(node, "bases", ())))
    stack: list[tuple[ast.AST, Use]] = [
        (child, Use.VALUE) for child in ast.iter_child_nodes(node) if id(child) not in own
    ]
    while stack:
        inner, use = stack.pop()
        root = inner
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id == alias and isinstance(root.ctx, ast.Load):
            yield Site(Place(scope.module.source.path, root.lineno), scope.qualname, use, excerpt(inner))
            continue
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                stack += [(each, Use.DECORATOR) for each in inner.decorator_list]
                stack += [(each, Use.BASE) for each in getattr(inner, "bases", ())]
            case ast.Lambda():
                pass
            case ast.Call(func=func):
                called = use if use is Use.DECORATOR else Use.CALL
                stack.append((func, called))
                stack += [(each, Use.VALUE) for each in ast.iter_child_nodes(inner) if each is not func]
            case _:
                stack += [(each, Use.VALUE) for each in ast.iter_child_nodes(inner)]
