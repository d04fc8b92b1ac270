"""The modules of a program that are looked into, by dotted name: parsed when they are asked for, and never run."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

from patchkit.bindings import FunctionNode, Namespace, ScopeNode, collect, nodes_of
from patchkit.installed import sha256
from patchkit.syntax import PARSE_ERRORS, parse, words

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """A file that holds a module. ``path`` is how it is told, ``full`` where it lies."""

    path: str
    full: str
    package: bool
    distribution: str

    @property
    def stub(self) -> bool:
        return self.path.endswith(".pyi")

    @property
    def compiled(self) -> bool:
        """Whether it is an extension module, which has no text."""
        return not self.path.endswith((".py", ".pyi"))


class Texts:
    """Syntax trees by the digest of their text: the same text is parsed once, however many programs have it."""

    def __init__(self) -> None:
        self._trees: dict[str, ast.Module | str] = {}

    def tree(self, data: bytes) -> ast.Module | str:
        """The tree of ``data``, or in words why there is none."""
        digest = sha256(data)
        if digest not in self._trees:
            self._trees[digest] = read_tree(data)
        return self._trees[digest]


def read_tree(data: bytes) -> ast.Module | str:
    """The syntax tree of a text, or in words why there is none."""
    try:
        return parse(data)
    except PARSE_ERRORS as error:
        return words(error)


class Scope:
    """A module, a class, a function or a lambda: a place where names are bound. There is one a node and program."""

    def __init__(self, module: Module, node: ScopeNode, qualname: str, parent: Scope | None) -> None:
        self.module = module
        self.node = node
        self.qualname = qualname
        self.parent = parent
        self._children: dict[int, Scope] = {}

    def __repr__(self) -> str:
        return f"<Scope {self.symbol}:{self.line}>"

    @property
    def symbol(self) -> str:
        return f"{self.module.name}.{self.qualname}" if self.qualname else self.module.name

    @property
    def name(self) -> str:
        return self.qualname.rpartition(".")[2]

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", 1)

    @property
    def runs_in(self) -> str:
        """The function whose call runs the code right in this scope, "" where it runs when the module is imported."""
        holder: Scope | None = self
        while holder is not None and not holder.is_function:
            holder = holder.parent
        return holder.symbol if holder is not None else ""

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, FunctionNode)

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @cached_property
    def namespace(self) -> Namespace:
        module = self.module
        return collect(self.node, module.name, package=module.source.package, walrus=module.has_walrus)

    @cached_property
    def owner(self) -> Scope | None:
        """The class whose method this is."""
        return self.parent if self.is_function and self.parent is not None and self.parent.is_class else None

    @property
    def enclosing_class(self) -> Scope | None:
        """The class of the method that this is, or stands in."""
        return self.owner or (self.parent.enclosing_class if self.is_function and self.parent is not None else None)

    @cached_property
    def is_deferred(self) -> bool:
        """Whether it runs when something is called: a function, or a class inside of one."""
        return self.is_function or (self.is_class and self.parent is not None and self.parent.is_deferred)

    @cached_property
    def nodes(self) -> tuple[tuple[ast.AST, ast.AST], ...]:
        """Its nodes, each with the one around it (`nodes_of`); several look at all of them."""
        return tuple(nodes_of(self.node))

    @cached_property
    def inner(self) -> tuple[Scope, ...]:
        """The functions, classes and lambdas that stand right in this scope, in the order of the source."""
        found: list[Scope] = []
        stack: list[ast.AST] = list(ast.iter_child_nodes(self.node))[::-1]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                found.append(self.child(node))
            else:
                stack += list(ast.iter_child_nodes(node))[::-1]
        return tuple(found)

    def child(self, node: ScopeNode) -> Scope:
        """The scope of a function, class or lambda that stands right in this one."""
        if id(node) not in self._children:
            name = f"<lambda:{node.lineno}>" if isinstance(node, ast.Lambda) else getattr(node, "name", "")
            qualname = f"{self.qualname}.{name}" if self.qualname else name
            self._children[id(node)] = Scope(self.module, node, qualname, self)
        return self._children[id(node)]


class Module:
    """A parsed module."""

    def __init__(self, name: str, source: Source, tree: ast.Module, data: bytes) -> None:
        self.name = name
        self.source = source
        self.tree = tree
        self.data = data
        self.has_walrus = b":=" in data
        self.scope = Scope(self, tree, "", None)
        self._learnt: dict[str, object] = {}

    def learn(self, key: str, find: Callable[[Module], T]) -> T:
        """What ``find`` finds in the text of this module alone, found once: programs share their modules."""
        if key not in self._learnt:
            self._learnt[key] = find(self)
        return cast(T, self._learnt[key])

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """The module's own scope and all functions, classes and lambdas in it."""
        found = [self.scope]
        for scope in found:
            found += scope.inner
        return tuple(found)

    @cached_property
    def declared_outer(self) -> dict[str, tuple[Scope, ...]]:
        """The functions that declare a name ``global`` or ``nonlocal``: they bind it for the scopes around them."""
        found: dict[str, tuple[Scope, ...]] = {}
        if b"global " in self.data or b"nonlocal " in self.data:
            for scope in self.scopes:
                for name in scope.namespace.outer if scope.is_function else ():
                    found[name] = (*found.get(name, ()), scope)
        return found


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the search for garbage: trees are large and stay, and looking takes four times as long as parsing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


Read = Callable[[Source], bytes | None]


class Program:
    """Modules by name. ``overlay`` replaces the text of files by path; None: the file is not there."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        read: Read,
        texts: Texts,
        overlay: Mapping[str, bytes | None] | None = None,
    ) -> None:
        self.sources = dict(sources)
        self.unparsed: dict[str, str] = {}
        self._read = read
        self._texts = texts
        self._overlay = dict(overlay or {})
        self.exports: dict[tuple[str, str], bool] = {}  # what `definitions` found out of modules that are not parsed
        self._modules: dict[str, Module | None] = {}
        self._stars: dict[str, tuple[str, ...]] = {}
        self._data: dict[str, bytes | None] = {}
        self._folders: dict[str, str] = {}
        for name, source in self.sources.items():
            while name := name.rpartition(".")[0]:
                self._folders.setdefault(name, source.distribution)

    def over(self, overlay: Mapping[str, bytes | None]) -> Program:
        """The same program with other texts, which lie over those that this one has already; other files are shared."""
        other = Program(self.sources, self._read, self._texts, {**self._overlay, **overlay})
        changed = {name for name, source in self.sources.items() if source.path in overlay}
        other._data = {name: data for name, data in self._data.items() if name not in changed}
        other._modules = {name: found for name, found in self._modules.items() if name not in changed}
        other.unparsed = {name: why for name, why in self.unparsed.items() if name not in changed}
        return other

    def has(self, name: str) -> bool:
        """Whether ``name`` is a module here, or a folder of modules (PEP 420)."""
        return name in self.sources or name in self._folders

    def is_opaque(self, name: str) -> bool:
        """Whether a module is here and its names are not known: compiled, or not to be parsed."""
        source = self.sources.get(name)
        return source is not None and (source.compiled or (self.module(name) is None and name in self.unparsed))

    def owner(self, name: str) -> str | None:
        """The distribution of a module or a folder of modules, None where it is not in the program."""
        source = self.sources.get(name)
        return source.distribution if source is not None else self._folders.get(name)

    def lacks(self, module: str, name: str) -> bool:
        """Whether a distribution that is looked into has no such name in ``module``, as far as text tells (PEP 562)."""
        return all(self._is_without(each, name) for each in (self._starring(module) if name else (module,)))

    def _is_without(self, module: str, name: str) -> bool:
        """Whether ``module`` itself, without what its star imports bring, has no such name."""
        if not self.owner(module.partition(".")[0]) or self.has(f"{module}.{name}") or self.is_opaque(module):
            return False
        parsed = self.module(module)
        if parsed is None:
            return not self.has(module) or bool(name)
        names = parsed.scope.namespace.names
        return name not in names and "__getattr__" not in names

    def _starring(self, module: str) -> tuple[str, ...]:
        """A module and those whose names it has by star imports, also of star imports: each once."""
        if module not in self._stars:
            found = {module: None}
            waiting = [module]
            while waiting:
                parsed = self.module(waiting.pop())
                stars = parsed.scope.namespace.stars if parsed is not None else ()
                fresh = dict.fromkeys(star.module for star in stars if star.module not in found)
                found |= fresh
                waiting += fresh
            self._stars[module] = tuple(found)
        return self._stars[module]

    def data(self, name: str) -> bytes | None:
        """The bytes of a module's file, None where it has none."""
        if name not in self._data:
            source = self.sources.get(name)
            found = None
            if source is not None and not source.compiled:
                found = self._overlay[source.path] if source.path in self._overlay else self._read(source)
                if found is None and source.path not in self._overlay:
                    self.unparsed[name] = "it may not be read"
            self._data[name] = found
        return self._data[name]

    def glance(self, name: str) -> ast.Module | None:
        """The tree of a module that is not to be kept, None where there is none."""
        if name in self._modules:
            module = self._modules[name]
            return None if module is None else module.tree
        data = self.data(name)
        tree = read_tree(data) if data is not None else None
        if isinstance(tree, str):
            self.unparsed[name] = tree
            return None
        return tree

    def module(self, name: str) -> Module | None:
        """The module called ``name``; None where it is not here or cannot be parsed (`unparsed` says why)."""
        if name not in self._modules:
            self._modules[name] = self._parse(name)
        return self._modules[name]

    def _parse(self, name: str) -> Module | None:
        data = self.data(name)
        if data is None:
            return None
        tree = self._texts.tree(data)
        if isinstance(tree, str):
            self.unparsed[name] = tree
            return None
        return Module(name, self.sources[name], tree, data)

    def mentioning(self, words: Iterable[bytes], names: Iterable[str]) -> Iterator[str]:
        """Those of the modules ``names`` whose text has one of ``words``, without parsing any."""
        wanted = tuple(words)
        for name in names:
            data = self.data(name)
            if data is not None and any(word in data for word in wanted):
                yield name
