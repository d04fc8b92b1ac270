"""What code puts in the place of attributes from outside (monkey-patching): ``module.f = g``, ``setattr(C, "go", g)``.

Found in the text of all modules looked into, whether anything calls it or not. Where the name is written, those who
look the attribute up are told of it; where it is made at run time, nobody can know what it changes.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from patchkit.bindings import Assigned, Imported
from patchkit.classes import first_parameter, last_name
from patchkit.programs import Module, Scope
from patchkit.surroundings import Surroundings
from patchkit.syntax import excerpt

_NAMESPACES = ("globals", "vars", "locals")
_MANGLED = re.compile("_[A-Za-z][A-Za-z0-9]*(__[A-Za-z0-9_]*[A-Za-z0-9])$")
"""A private name of a class as it is written outside of it (the Python reference, "Private name mangling")."""
_PLAIN = ("__name__", "__doc__", "__module__", "__qualname__", "__annotations__", "__signature__", "__wrapped__")


@dataclass(frozen=True, slots=True)
class Substitution:
    """An assignment to the attribute of ``base``, in ``scope``; ``value`` is None where it is no expression's."""

    base: ast.expr
    value: ast.expr | None
    scope: Scope


@dataclass(frozen=True, slots=True)
class Borrowing:
    """A method of the class ``base`` that objects of other classes get: ``taker`` is such an object, or its class, and
    None where it is the class ``scope`` itself that takes it over."""

    base: ast.expr
    taker: ast.expr | None
    scope: Scope


@dataclass(frozen=True, slots=True)
class Untold:
    """A place that changes what cannot be told: a name that is made at run time, or what a class is made of."""

    scope: Scope
    line: int
    text: str
    base: ast.expr | None = None


class Substitutions:
    """All of those in the surroundings: ``named`` by the attribute, ``untold``, ``borrowed`` by the method."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.named: dict[str, list[Substitution]] = {}
        self.untold: list[Untold] = []
        self.borrowed: dict[str, list[Borrowing]] = {}
        for module in surroundings.modules:
            found = module.learn("substitutions", _Found)
            self.untold += found.untold
            for name, changes in found.named.items():
                self.named.setdefault(name, []).extend(changes)
            for name, borrowings in found.borrowed.items():
                self.borrowed.setdefault(name, []).extend(borrowings)


class _Found:
    """Those of one module."""

    def __init__(self, module: Module) -> None:
        self.named: dict[str, list[Substitution]] = {}
        self.untold: list[Untold] = []
        self.borrowed: dict[str, list[Borrowing]] = {}
        self._kept: dict[str, ast.expr] = {}
        for scope in module.scopes:
            self._read(scope)

    def _read(self, scope: Scope) -> None:
        own = first_parameter(scope) if scope.owner is not None else ""
        self._kept = _kept_namespaces(scope)
        for node, around in scope.nodes:
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._target(target, value, scope, own)
                        self._take_over(target, value, scope, own)
                case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
                    self._target(target, value, scope, own)
                case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                    self._target(target, None, scope, "")
                case ast.withitem(optional_vars=ast.expr() as target):
                    self._target(target, None, scope, "")
                case ast.Delete(targets=targets):
                    for target in targets:
                        self._target(target, None, scope, "")
                case ast.Name(id="setattr") | ast.Attribute(value=ast.Name(id="builtins"), attr="setattr") if not (
                    isinstance(around, ast.Call) and around.func is node
                ):  # kept or handed on
                    self.untold.append(Untold(scope, node.lineno, excerpt(around)))
                case ast.Call():
                    self._call(node, scope)
                    self._hand_over(node, scope)

    def _take_over(self, target: ast.expr, value: ast.expr, scope: Scope, own: str) -> None:
        """``run = A.run`` in another class, ``run = partialmethod(A.run)``, ``B.run = A.run``."""
        taker = target.value if isinstance(target, ast.Attribute) else None
        if (taker is None and not scope.is_class) or (isinstance(taker, ast.Name) and taker.id == own):
            return
        for each in (value, *value.args) if isinstance(value, ast.Call) else (value,):
            match each:
                case ast.Attribute(value=ast.Name() | ast.Attribute() as base, attr=name):
                    self.borrowed.setdefault(name, []).append(Borrowing(base, taker, scope))

    def _hand_over(self, node: ast.Call, scope: Scope) -> None:
        """``A.run(b)``: a method that is asked for over its class, and handed an object."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as base, attr=name), args=[given, *_]):
                is_own = isinstance(given, ast.Name) and given.id == first_parameter(scope)
                if last_name(base)[:1].isupper() and not is_own:
                    self.borrowed.setdefault(name, []).append(Borrowing(base, given, scope))

    def _target(self, target: ast.expr, value: ast.expr | None, scope: Scope, own: str) -> None:
        match target:
            case ast.Attribute(value=ast.Name(id=name)) if name == own and own:
                pass  # what a method gives its own object is an attribute like others
            case ast.Attribute(value=base, attr=attr):
                self._attribute(base, attr, value, scope, target)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(elements) else None
                for index, element in enumerate(elements):
                    self._target(element, values[index] if values else None, scope, "")
            case ast.Starred(value=inner):
                self._target(inner, None, scope, "")
            case ast.Subscript(value=holder) if _is_namespace(holder := self._kept.get(last_name(holder), holder)):
                self.untold.append(Untold(scope, target.lineno, excerpt(target), _owner_of(holder)))

    def _attribute(self, base: ast.expr, attr: str, value: ast.expr | None, scope: Scope, node: ast.expr) -> None:
        if attr.startswith("__") and attr.endswith("__"):
            if attr not in _PLAIN:
                self.untold.append(Untold(scope, node.lineno, excerpt(node), base))
        else:
            mangled = _MANGLED.match(attr)
            for name in (attr, *mangled.groups()) if mangled else (attr,):
                self.named.setdefault(name, []).append(Substitution(base, value, scope))

    def _call(self, node: ast.Call, scope: Scope) -> None:
        match node:
            case (
                ast.Call(func=ast.Name(id="setattr"), args=[base, ast.Constant(value=str(name)), *rest])
                | ast.Call(
                    func=ast.Attribute(attr="setattr" | "__setattr__"),
                    args=[base, ast.Constant(value=str(name)), *rest],
                )
            ):
                self._attribute(base, name, rest[0] if rest else None, scope, node)
            case ast.Call(func=ast.Name(id="setattr"), args=[base, *_]):
                self.untold.append(Untold(scope, node.lineno, excerpt(node), base))
            case ast.Call(func=ast.Attribute(attr="setattr" | "__setattr__"), args=[base, _, *_]):
                own = base if last_name(node.func) == "setattr" or len(node.args) > 2 else None
                self.untold.append(Untold(scope, node.lineno, excerpt(node), own))
            case ast.Call(func=ast.Attribute(value=holder, attr="update" | "setdefault")) if _is_namespace(
                holder := self._kept.get(last_name(holder), holder)
            ):
                self.untold.append(Untold(scope, node.lineno, excerpt(node), _owner_of(holder)))
            case ast.Call(func=ast.Name(id="exec")):
                self.untold.append(Untold(scope, node.lineno, excerpt(node)))
            case ast.Call(func=ast.Name() | ast.Attribute() as func) if _is_mock(func, scope):
                self.untold.append(Untold(scope, node.lineno, excerpt(node)))


def _kept_namespaces(scope: Scope) -> dict[str, ast.expr]:
    """The names of a scope that namespaces are bound to: ``names = globals()``, ``from sys import modules``."""
    found: dict[str, ast.expr] = {}
    for name, bound in scope.namespace.names.items():
        for binding in bound:
            match binding:
                case Assigned(value=ast.expr() as value) if _is_namespace(value):
                    found[name] = value
                case Imported(module="sys", name="modules"):
                    found[name] = ast.Attribute(ast.Name("sys", ast.Load()), "modules", ast.Load())
    return found


def _is_mock(func: ast.expr, scope: Scope) -> bool:
    """Whether a call is one of ``unittest.mock.patch`` or ``patch.object``, which replace what they are told."""
    if isinstance(func, ast.Attribute) and func.attr in ("object", "multiple"):
        func = func.value
    return last_name(func) == "patch" and b"mock" in scope.module.data


def _owner_of(holder: ast.expr) -> ast.expr | None:
    """Whose names those are: of ``x.__dict__`` and ``vars(x)`` it is ``x``, of ``globals()`` the module."""
    match holder:
        case ast.Attribute(value=value, attr="__dict__") | ast.Call(args=[value]):
            return value
        case _:
            return None


def _is_namespace(node: ast.expr) -> bool:
    """Whether an expression is what an object or a module keeps its names in."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _NAMESPACES
        case ast.Attribute(attr="__dict__" | "__globals__") | ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
            return True
        case _:
            return False
