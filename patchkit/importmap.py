"""The import map of a caller: the names it takes from a distribution, where these are defined, where it uses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchkit.audited import Definition, DefinitionKind, Doubt, Import, Place, Site, Unknown, Use
from patchkit.bindings import Assigned, Binding, Defined, Imported, bindings_of
from patchkit.branches import may_fail, walk
from patchkit.programs import Module, Program, Scope
from patchkit.syntax import excerpt


@dataclass(frozen=True, slots=True)
class Located:
    """A definition behind all re-exports: the module it stands in, what binds it there (None: the module itself)."""

    module: Module
    name: str
    binding: Binding | None

    @property
    def distribution(self) -> str:
        return self.module.source.distribution

    @property
    def scope(self) -> Scope | None:
        """The function or class that it is, None for other values."""
        return self.module.scope.child(self.binding.node) if isinstance(self.binding, Defined) else None

    def definition(self) -> Definition:
        line = self.binding.line if self.binding is not None else 1
        symbol = f"{self.module.name}.{self.name}" if self.name else self.module.name
        return Definition(Place(self.module.source.path, line), symbol, self._kind())

    def _kind(self) -> DefinitionKind:
        match self.binding:
            case _ if self.module.source.stub:
                return DefinitionKind.STUB
            case None:
                return DefinitionKind.MODULE
            case Defined(node=ast.ClassDef()):
                return DefinitionKind.CLASS
            case Defined():
                return DefinitionKind.FUNCTION
            case _:
                return DefinitionKind.VALUE


def locate_all(program: Program, module: str, name: str, seen: set[tuple[str, str]] | None = None) -> Iterator[Located]:
    """All that ``name`` of ``module`` may be ("" is the module): each of its bindings, behind re-exports and plain
    assignments, definitions first, then the latest. Nothing where that is not in the program.

    A fallback (``name = None``, a ``def`` in ``except ImportError``) is one alternative, the import beside it another.
    """
    seen = set() if seen is None else seen
    if (module, name) in seen:
        return
    seen.add((module, name))
    parsed = program.module(module)
    if parsed is None or not name:
        inner = f"{module}.{name}"
        if parsed is not None:
            yield Located(parsed, "", None)
        elif name and program.has(inner):
            yield from locate_all(program, inner, "", seen)
        return
    anything = False
    for found in _bound_to(program, parsed, name, seen):
        anything = True
        yield found
    for star in parsed.scope.namespace.stars if not anything else ():
        source = program.module(star.module)
        if source is not None and source.scope.namespace.exports(name):
            for found in locate_all(program, star.module, name, seen):
                anything = True
                yield found
    if not anything and program.has(f"{module}.{name}"):
        yield from locate_all(program, f"{module}.{name}", "", seen)


def _bound_to(program: Program, module: Module, name: str, seen: set[tuple[str, str]]) -> Iterator[Located]:
    """What the bindings of a module's name lead to: definitions first, the latest first."""
    latest_first = list(reversed(module.scope.namespace.names.get(name, [])))
    for binding in sorted(latest_first, key=lambda each: not isinstance(each, Defined)):
        match binding:
            case Imported(module=source, name=there):
                yield from locate_all(program, source, there, seen)
            case Assigned(value=ast.Name() | ast.Attribute() as value):
                behind = list(_named(program, module, value, seen))
                yield from behind or [Located(module, name, binding)]
            case _:
                yield Located(module, name, binding)


def _named(program: Program, module: Module, node: ast.expr, seen: set[tuple[str, str]]) -> Iterator[Located]:
    """What a name or a dotted name of a module stands for, as far as the dots lead through modules."""
    match node:
        case ast.Name(id=name):
            yield from locate_all(program, module.name, name, seen)
        case ast.Attribute(value=value, attr=name):
            for base in _named(program, module, value, seen):
                if base.binding is None:
                    yield from locate_all(program, base.module.name, name, seen)


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
        self._leads: dict[tuple[str, str], bool] = {}
        self._outlines: dict[str, frozenset[bytes]] = {}

    def concerns(self, name: str) -> bool:
        """Whether a module imports anything of them. What it is parsed for is not kept: most modules do not."""
        tree, package = self.program.glance(name), self.program.sources[name].package
        if tree is None:
            return False
        statements = (node for node in _walk_statements(tree) if isinstance(node, ast.Import | ast.ImportFrom))
        bound = [pair for node in statements for pair in bindings_of(node, name, package=package)]
        self.bound[name] = [binding for _, binding in bound]
        if any(self.program.owner(binding.module) in self.subjects for _, binding in bound):
            return True
        return any(self._leads_to(each.module, each.name if alias != "*" else "") for alias, each in bound)

    def rest(self, name: str, asked: frozenset[str]) -> Iterator[Unknown]:
        """Where a module imports from other modules of its own package than those ``asked`` for: a line a module."""
        tree, source = self.program.glance(name), self.program.sources[name]
        statements = (
            (node for node in _walk_statements(tree) if isinstance(node, ast.Import | ast.ImportFrom)) if tree else ()
        )
        for node in statements:
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
        parsed = self.program.module(asked)
        makes_up = parsed is not None and "__getattr__" in parsed.scope.namespace.names
        return bool(name) and not makes_up and next(locate_all(self.program, asked, name), None) is None

    def _leads_to(self, module: str, name: str) -> bool:
        key = (module, name)
        if key not in self._leads:
            self._leads[key] = self._follow(module, name)
        return self._leads[key]

    def _follow(self, module: str, name: str) -> bool:
        owner = self.program.owner(module)
        if owner is None or (owner not in self.subjects and name.encode() in self._outline(module)):
            return False
        return any(where.distribution in self.subjects for where in locate_all(self.program, module, name))

    def _outline(self, module: str) -> frozenset[bytes]:
        """The names that the text of a module, unparsed, defines at its left edge and nowhere imports."""
        if module not in self._outlines:
            data = self.program.data(module) or b""
            imported = {word for line in _IMPORTS.findall(data) for word in _WORDS.findall(line)}
            self._outlines[module] = frozenset(_DEFINITIONS.findall(data)) - imported
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
            branch=(*_around(scope), *map(str, binding.branch)),
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
_DEFINITIONS = re.compile(rb"^(?:class|def|async def) +(\w+)", re.MULTILINE)
_IMPORTS = re.compile(rb"^[ \t]*(?:from\b.*|import\b.*|\w+(?: as \w+)?,?[ \t]*(?:#.*)?)$", re.MULTILINE)
_WORDS = re.compile(rb"\w+")


def _around(scope: Scope) -> tuple[str, ...]:
    """The functions and classes that a scope lies in, and it, outermost first."""
    words: list[str] = []
    holder: Scope | None = scope
    while holder is not None and holder.qualname:
        words.insert(0, f"{'class' if holder.is_class else 'def'} {holder.name}")
        holder = holder.parent
    return tuple(words)


def _walk_statements(tree: ast.Module) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += _children(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The statements right inside ``node``; expressions are not looked into."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(node, field, None)
        if isinstance(children, list):
            yield from children


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
