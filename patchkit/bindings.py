"""The names of one scope: what binds each, at which line, in which branch (the Python reference, "Naming and binding").

Nothing is resolved here: an import is kept as the absolute module and name that it asks for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from patchkit.branches import PERHAPS, Branch, Placed, walk

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ScopeNode: TypeAlias = ast.Module | ast.ClassDef | FunctionNode


@dataclass(frozen=True, slots=True)
class Imported:
    """``from module import name``; ``name`` "" binds the module itself."""

    module: str
    name: str
    line: int
    branch: Branch


@dataclass(frozen=True, slots=True)
class Defined:
    """A function or a class."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    branch: Branch

    @property
    def line(self) -> int:
        return self.node.lineno


@dataclass(frozen=True, slots=True)
class Assigned:
    """A variable. ``value`` is None where it is not one expression's (part of a tuple); ``element``: it is one of its
    elements (a loop's target); ``entered``: what its ``__enter__`` gives (the target of ``with``)."""

    value: ast.expr | None
    annotation: ast.expr | None
    line: int
    branch: Branch
    element: bool = False
    entered: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; ``first`` is the first positional one, ``default`` what it is where nothing is handed in."""

    annotation: ast.expr | None
    first: bool
    line: int
    branch: Branch = ()
    default: ast.expr | None = None


Binding: TypeAlias = Imported | Defined | Assigned | Parameter


@dataclass(slots=True)
class Namespace:
    """What the names of one scope are bound to, in the order of the source; ``stars`` are its star imports,
    ``augmented`` the names that ``+=`` and its like bind anew.

    ``exported`` is ``__all__`` where it is written out, else None; ``computed``: it is not all written out.
    """

    names: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[Imported] = field(default_factory=list)
    outer: set[str] = field(default_factory=set)
    augmented: set[str] = field(default_factory=set)
    exported: tuple[str, ...] | None = None
    computed: bool = False

    def exports(self, name: str) -> bool:
        """Whether a star import brings ``name``, or may."""
        if self.computed:
            return True
        return not name.startswith("_") if self.exported is None else name in self.exported


def collect(node: ScopeNode, module: str, *, package: bool, walrus: bool = True) -> Namespace:
    """The namespace of a scope of ``module``; ``package`` says how its relative imports are counted (PEP 328).

    ``walrus`` False: the text has no assignment expression (PEP 572), so none is looked for.
    """
    found = Namespace()
    if isinstance(node, ast.Lambda):
        _add_parameters(found, node)
        return found
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        _add_parameters(found, node)
    for placed in walk(node.body):
        for name, binding in _bindings(placed.node, placed.branch, module, package):
            if name == "*" and isinstance(binding, Imported):
                found.stars.append(binding)
            else:
                found.names.setdefault(name, []).append(binding)
        if walrus:
            _add_walruses(found, placed)
        if isinstance(placed.node, ast.Global | ast.Nonlocal):
            found.outer |= set(placed.node.names)
        if isinstance(placed.node, ast.AugAssign) and isinstance(placed.node.target, ast.Name):
            found.augmented.add(placed.node.target.id)
        _note_exports(found, placed.node)
    return found


def _add_parameters(found: Namespace, node: FunctionNode) -> None:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    others = [*arguments.kwonlyargs, *(each for each in (arguments.vararg, arguments.kwarg) if each is not None)]
    defaults: dict[ast.arg, ast.expr | None] = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    defaults.update(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
    for index, argument in enumerate([*positional, *others]):
        first = index == 0 and bool(positional)
        star = argument in (arguments.vararg, arguments.kwarg)
        annotation = None if star else argument.annotation
        default = defaults.get(argument)
        found.names[argument.arg] = [Parameter(annotation, first, getattr(argument, "lineno", 0), (), default)]


def bindings_of(
    node: ast.Import | ast.ImportFrom, module: str, *, package: bool, branch: Branch = ()
) -> Iterator[tuple[str, Imported]]:
    """The names that an import statement of ``module`` binds; "*" stands for those of a star import."""
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                top = alias.name.partition(".")[0]
                target = alias.name if alias.asname else top
                yield alias.asname or top, Imported(target, "", node.lineno, branch)
        case ast.ImportFrom(names=aliases):
            source = absolute(module, node.module or "", node.level, package=package)
            for alias in aliases:
                yield alias.asname or alias.name, Imported(source, alias.name, alias.lineno, branch)


def _bindings(node: ast.stmt, branch: Branch, module: str, package: bool) -> Iterator[tuple[str, Binding]]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from bindings_of(node, module, package=package, branch=branch)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            if not _is_overload(node):
                yield node.name, Defined(node, branch)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value, None, node.lineno, branch)
        case ast.AnnAssign(target=target, annotation=annotation, value=value):
            yield from _targets(target, value, annotation, node.lineno, branch)
        case ast.For() | ast.AsyncFor():
            yield from loop_targets(node.target, node.iter, (*branch, PERHAPS))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _entered(item.optional_vars, item.context_expr, branch)
        case ast.Match(cases=cases):
            for name in (name for case in cases for name in _captured(case.pattern)):
                yield name, Assigned(None, None, node.lineno, (*branch, PERHAPS))
        case _:
            for handler in getattr(node, "handlers", ()):  # of try, and of the try of exception groups (PEP 654)
                if handler.name:
                    yield handler.name, Assigned(None, None, handler.lineno, (*branch, PERHAPS))


def _entered(target: ast.expr, context: ast.expr, branch: Branch) -> Iterator[tuple[str, Binding]]:
    for name, binding in _targets(target, context, None, target.lineno, branch):
        yield name, replace(binding, entered=True) if isinstance(binding, Assigned) else binding


def _captured(pattern: ast.AST) -> Iterator[str]:
    """The names that a pattern binds (PEP 634)."""
    for node in ast.walk(pattern):
        name = node.rest if isinstance(node, ast.MatchMapping) else getattr(node, "name", None)
        if isinstance(node, ast.MatchAs | ast.MatchStar | ast.MatchMapping) and name is not None:
            yield name


def _add_walruses(found: Namespace, placed: Placed) -> None:
    for node in own_expressions(placed.node):
        if isinstance(node, ast.NamedExpr):
            branch = (*placed.branch, PERHAPS)
            found.names.setdefault(node.target.id, []).append(Assigned(node.value, None, node.lineno, branch))


def _targets(
    target: ast.expr, value: ast.expr | None, annotation: ast.expr | None, line: int, branch: Branch
) -> Iterator[tuple[str, Binding]]:
    match target:
        case ast.Name(id=name):
            yield name, Assigned(value, annotation, line, branch)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(elements) else None
            for index, element in enumerate(elements):
                yield from _targets(element, values[index] if values else None, None, line, branch)
        case ast.Starred(value=inner):
            yield from _targets(inner, None, None, line, branch)


def loop_targets(target: ast.expr, over: ast.expr, branch: Branch = ()) -> Iterator[tuple[str, Assigned]]:
    """The names that a loop or a comprehension over ``over`` binds; of ``enumerate`` and ``items`` the second."""
    match target, over:
        case ast.Name(id=name), _:
            yield name, Assigned(over, None, target.lineno, branch, element=True)
        case (
            ast.Tuple(elts=[first, second]),
            ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_])
            | ast.Call(func=ast.Attribute(attr="items", value=inner)),
        ):
            yield from ((name, replace(each, value=None)) for name, each in loop_targets(first, over, branch))
            yield from loop_targets(second, inner, branch)
        case ast.Tuple(elts=elements) | ast.List(elts=elements), _:
            for each in elements:
                yield from ((name, replace(found, value=None)) for name, found in loop_targets(each, over, branch))


def find_comprehended(node: ScopeNode) -> dict[str, list[Assigned]]:
    """The variables of the comprehensions that stand in a function or lambda (PEP 709 gives them no frame either)."""
    found: dict[str, list[Assigned]] = {}
    stack: list[ast.AST] = [*(node.body if isinstance(node.body, list) else [node.body])]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.comprehension):
            for name, binding in loop_targets(inner.target, inner.iter):
                found.setdefault(name, []).append(binding)
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack += ast.iter_child_nodes(inner)
    return found


def own_expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement without those of the statements and the scopes inside it; lambdas are scopes."""
    stack: list[ast.AST] = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.stmt):
            continue
        if isinstance(inner, ast.expr):
            yield inner
        if isinstance(inner, ast.Lambda):
            stack += [*inner.args.defaults, *(each for each in inner.args.kw_defaults if each is not None)]
            continue
        stack += reversed(list(ast.iter_child_nodes(inner)))


def nodes_of(node: ScopeNode) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes of a scope, each with the one around it, without those of the scopes inside it.

    Decorators, defaults and bases of a definition belong to the scope that it stands in.
    """
    body = node.body if isinstance(node.body, list) else [node.body]
    stack: list[tuple[ast.AST, ast.AST]] = [(each, node) for each in reversed(body)]
    while stack:
        inner, around = stack.pop()
        yield inner, around
        below = inner.body if isinstance(inner, ScopeNode) else ()
        apart = {id(each) for each in (below if isinstance(below, list) else [below])}
        stack += [(each, inner) for each in reversed(list(ast.iter_child_nodes(inner))) if id(each) not in apart]


def in_force(bound: Sequence[Binding], is_asked: Callable[[ast.expr], bool]) -> list[Binding]:
    """Of a module's bindings of one name those that may be the last to be made.

    A binding whose value ``is_asked`` for right now (``f = wrap(f)``) is left aside: it asks for what was there before.
    """
    chosen: list[Binding] = []
    for binding in reversed(bound):
        value = binding.value if isinstance(binding, Assigned) else None
        if value is None or not is_asked(value):
            chosen.insert(0, binding)
            if not binding.branch:
                break
    return chosen


def absolute(module: str, asked: str, level: int, *, package: bool) -> str:
    """The absolute name of a module that ``module`` asks for with ``level`` leading dots."""
    if level == 0:
        return asked
    parts = module.split(".")
    base = parts if package else parts[:-1]
    base = base[: len(base) - (level - 1)] if level > 1 else base
    return ".".join([*base, *([asked] if asked else [])])


def _is_overload(node: ast.stmt) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(getattr(each, "id", getattr(each, "attr", "")) == "overload" for each in decorators)


def _note_exports(found: Namespace, node: ast.stmt) -> None:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=elements) | ast.Tuple(elts=elements))
            | ast.AugAssign(target=ast.Name(id="__all__"), value=ast.List(elts=elements) | ast.Tuple(elts=elements))
        ):
            names = [each.value for each in elements if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            found.exported = (*(found.exported or ()), *names)
            found.computed = found.computed or len(names) != len(elements)
        case (
            ast.Assign(targets=[ast.Name(id="__all__")])
            | ast.AnnAssign(target=ast.Name(id="__all__"))
            | ast.AugAssign(target=ast.Name(id="__all__"))
            | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__"))))
        ):
            found.computed = True
