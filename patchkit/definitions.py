"""Where a name of a module is really defined, behind re-exports, aliases and star imports (PEP 328)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patchkit.audited import Definition, DefinitionKind, Place
from patchkit.bindings import Assigned, Binding, Defined, Imported, absolute
from patchkit.outlines import may_export, star_imports
from patchkit.programs import Module, Program, Scope


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
            case _ if self.module.source.compiled and self.name:
                return DefinitionKind.COMPILED
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
    source = program.sources.get(module)
    if source is not None and source.compiled:
        yield Located(Module(module, source, ast.Module([], []), b""), name, None)
        return
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
    for giver in star_givers(program, parsed, name) if name not in parsed.scope.namespace.names else ():
        for found in locate_all(program, giver, name, seen):
            anything = True
            yield found
    if not anything and program.has(f"{module}.{name}"):
        yield from locate_all(program, f"{module}.{name}", "", seen)


def star_givers(program: Program, module: Module, name: str) -> Iterator[str]:
    """The modules that ``module`` may have ``name`` of by star imports, also of star imports; each is asked once."""
    waiting, seen = list(module.scope.namespace.stars), {module.name}
    while waiting:
        star = waiting.pop(0).module
        if star in seen:
            continue
        seen.add(star)
        giver = program.module(star) if may_bind(program, star, name) else None
        if giver is not None and giver.scope.namespace.exports(name):
            if name in giver.scope.namespace.names or not giver.scope.namespace.stars:
                yield star
            else:
                waiting += giver.scope.namespace.stars


def may_bind(program: Program, module: str, name: str) -> bool:
    """Whether the text of a module, unparsed, may have the name for others, or that of those it takes all names of."""
    waiting, seen = [module], {module}
    while waiting:
        each = waiting.pop()
        key = (each, name)
        if key not in program.exports:
            program.exports[key] = may_export(program.data(each) or b"", name)
        if program.exports[key]:
            return True
        fresh = set(_starred(program, each)) - seen
        seen |= fresh
        waiting += fresh
    return False


def _starred(program: Program, module: str) -> Iterator[str]:
    """The modules that the text of one, unparsed, takes all names of."""
    package = module in program.sources and program.sources[module].package
    for dots, rest in star_imports(program.data(module) or b""):
        yield absolute(module, rest, dots, package=package)


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
