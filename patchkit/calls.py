"""What one function does when it is called: which functions it calls, which constructs it uses, where that is unknown.

The view is of the text: every branch counts but those that a tracer never comes to, and these are marked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from patchkit.audited import Confidence, Cover, Doubt, Place, weakest
from patchkit.bindings import Imported, Parameter, own_expressions
from patchkit.branches import Block, Branch, Guard, may_fail, walk
from patchkit.classes import is_identity, is_property
from patchkit.facts import Construct, Edge, Facts, Gap, Maker
from patchkit.hazards import HazardTable
from patchkit.inference import Inference
from patchkit.programs import Scope
from patchkit.results import BUILTINS
from patchkit.syntax import excerpt
from patchkit.values import ClassValue, Foreign, Found, FunctionValue, Instance, ModuleValue, Unclear, Wrapping

_KEEPS = ("types.SimpleNamespace", "functools.partial", "functools.wraps", "functools.cache", "functools.lru_cache")
_DEEPEST = 8
_MANY = 3
"""A method's name alone points to a definition while no more classes than this have it."""


ByName = Callable[[str, Scope], tuple[Scope, ...]]


class Calls:
    """The facts of functions, each worked out once. ``by_name`` finds methods by name, for a call in a scope."""

    def __init__(self, inference: Inference, table: HazardTable, by_name: ByName) -> None:
        self.inference = inference
        self.table = table
        self._by_name = by_name
        self._facts: dict[Scope, Facts] = {}
        self._makes: dict[Scope, Maker | None] = {}
        self._marks: dict[Scope, tuple[dict[Scope, Cover], dict[Scope, Cover]]] = {}

    def facts(self, scope: Scope) -> Facts:
        """What the function ``scope`` does when it is called; read once."""
        if scope not in self._facts:
            self._facts[scope] = Facts()  # what it learns if it asks for itself
            reader = _Reader(self, scope)
            reader.read()
            own = Facts(
                tuple(dict.fromkeys(reader.edges)),
                tuple(dict.fromkeys(reader.hazards)),
                tuple(dict.fromkeys(reader.makers)),
                tuple(dict.fromkeys(reader.gaps)),
            )
            self._facts[scope] = own  # its decorators, and what its module does with it, may ask what it does
            around, behind, cover = self._decorated(scope)
            cover = cover or self.marked(scope.module.scope).get(scope)
            self._facts[scope] = replace(own, edges=(*own.edges, *behind), around=around, cover=cover)
        return self._facts[scope]

    def find_methods(self, name: str, scope: Scope) -> tuple[Scope, ...]:
        """The methods that a call by ``name`` alone in ``scope`` may mean; none where the name says too little."""
        if self.is_ordinary(name):
            return ()
        found = self._by_name(name, scope)
        return found if len(found) <= _MANY else ()

    def is_ordinary(self, name: str) -> bool:
        """Whether the name of a method says nothing of the object that it is called on."""
        return name in self.table.ordinary or name in _COMMON or name.startswith("__")

    # ---- what makes a function opaque -------------------------------------------------------------------------

    def _decorated(self, scope: Scope) -> tuple[tuple[Edge, ...], tuple[Edge, ...], Cover | None]:
        """What decorators run outside of the one that makes a function opaque, what they run inside, and that one."""
        around: list[Edge] = []
        behind: list[Edge] = []
        cover: Cover | None = None
        decorators = getattr(scope.node, "decorator_list", ()) if scope.parent is not None else ()
        for decorator in decorators:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            for found in self.inference.infer(called, scope.parent or scope):
                maker = self._maker(found, decorator)
                if maker is not None and maker[0] in self.table.registering:
                    continue
                if maker is not None and not (isinstance(decorator, ast.Call) and maker[0] in self.table.of_argument):
                    place = Place(scope.module.source.path, decorator.lineno)
                    cover = cover or Cover(place, scope.symbol, *maker)
                elif isinstance(found.value, FunctionValue):
                    (around if cover is None else behind).extend(self._wrappers(found.value.scope, decorator))
        return tuple(around), tuple(behind), cover

    def _maker(self, found: Found, node: ast.expr) -> Maker | None:
        """The maker that a decorator is, or comes to, and its effect where ``node`` is its call."""
        match found.value:
            case Foreign(name=name, effect=effect) if name in self.table.opaque:
                given = (node.args, node.keywords) if isinstance(node, ast.Call) else ()
                return name, effect or self.table.effect(name, *given)
            case FunctionValue(scope=scope):
                maker = self.makes(scope)
                return (f"{scope.name} ({maker[0]})", maker[1]) if maker else None
            case _:
                return None

    def _wrappers(self, decorator: Scope, node: ast.expr) -> Iterator[Edge]:
        """The functions that a decorator puts in the place of what it decorates."""
        given = self._functions(decorator)
        if isinstance(node, ast.Call):
            given = [inner for each in given for inner in self._functions(each)]
        inner = {id(each) for one in given for each in self._functions(one)}
        makes_one = [each for each in given if any(id(other) in inner for other in given if other is not each)]
        for scope in given:
            factory = scope in makes_one and bool(self._functions(scope))
            if not factory and not is_identity(scope):
                yield Edge(scope, node.lineno, Confidence.DIRECT, (Block("decorator", node),))

    def _functions(self, scope: Scope) -> list[Scope]:
        returned = [found.value for found in self.inference.returned(scope)]
        return list(dict.fromkeys(value.scope for value in returned if isinstance(value, FunctionValue)))

    def makes(self, scope: Scope) -> Maker | None:
        """The maker that a function comes to when it is called, None where it comes to none."""
        if scope not in self._makes:
            self._makes[scope] = None
            seen, level = {scope}, [scope]
            for _ in range(_DEEPEST):
                for each in level:
                    facts = self.facts(each)
                    if facts.makers:
                        self._makes[scope] = facts.makers[0]
                        return facts.makers[0]
                sure = [edge for each in level for edge in self.facts(each).edges if edge.confidence is not _NAME]
                inner = [one for each in level for one in self._functions(each)]
                level = [one for one in dict.fromkeys([*(edge.target for edge in sure), *inner]) if one not in seen]
                seen |= set(level)
        return self._makes[scope]

    def marked(self, module: Scope) -> dict[Scope, Cover]:
        """The functions that a module's own code marks as opaque where they stand: under every name they are opaque."""
        return self._handed(module)[0]

    def registered(self, module: Scope) -> dict[Scope, Cover]:
        """The functions that it makes operators of: called by the operator's name they are opaque, by their own not."""
        return self._handed(module)[1]

    def _handed(self, module: Scope) -> tuple[dict[Scope, Cover], dict[Scope, Cover]]:
        if module not in self._marks:
            self._marks[module] = ({}, {})
            statements = [placed.node for placed in walk(getattr(module.node, "body", ()))]
            for statement in statements:
                self._note_registered(statement, module)
            for call in (each for statement in statements for each in _calls_in(statement)):
                found = self.inference.infer(call.func, module)
                makers = [maker for maker in (self._maker(each, call) for each in found) if maker]
                handed = [*call.args, *(keyword.value for keyword in call.keywords)] if makers else []
                for value in (each.value for node in handed for each in self.inference.infer(node, module)):
                    if isinstance(value, FunctionValue):
                        place = Place(module.module.source.path, call.lineno)
                        in_place = makers[0][0] in self.table.of_argument
                        self._marks[module][not in_place][value.scope] = Cover(place, value.scope.symbol, *makers[0])
        return self._marks[module]

    def _note_registered(self, statement: ast.stmt, module: Scope) -> None:
        """A function whose decorator makes it the body of an operator."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in statement.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                for maker in (self._maker(each, decorator) for each in self.inference.infer(called, module)):
                    if maker is not None and maker[0] in self.table.registering:
                        scope = module.child(statement)
                        cover = Cover(Place(module.module.source.path, decorator.lineno), scope.symbol, *maker)
                        self._marks[module][1][scope] = cover


_NAME = Confidence.NAME
_COMMON = frozenset(
    name for kind in (str, bytes, int, float, list, tuple, dict, set, frozenset, object, type) for name in dir(kind)
)


def _calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a module's own statements: in expressions and assignments, and decorators with arguments."""
    yield from (each for each in getattr(statement, "decorator_list", ()) if isinstance(each, ast.Call))
    if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        yield from (node for node in own_expressions(statement) if isinstance(node, ast.Call))


# ---- one body -------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the body of one function."""

    def __init__(self, calls: Calls, scope: Scope) -> None:
        self.calls = calls
        self.inference = calls.inference
        self.table = calls.table
        self.scope = scope
        self.edges: list[Edge] = []
        self.hazards: list[Construct] = []
        self.makers: list[Maker] = []
        self.gaps: list[Gap] = []

    def read(self) -> None:
        """Take in the whole body of the scope."""
        node = self.scope.node
        if isinstance(node, ast.Lambda):
            for expression in ast.walk(node.body):
                if isinstance(expression, ast.expr):
                    self._expression(expression, (), None)
            return
        for placed in walk(node.body, self.table.assumptions):
            for expression in own_expressions(placed.node):
                self._expression(expression, placed.branch, placed.guard)
            if isinstance(placed.node, ast.With | ast.AsyncWith):
                for item in placed.node.items:
                    self._context(item.context_expr, placed.branch, placed.guard)

    def _expression(self, node: ast.expr, branch: Branch, guard: Guard | None) -> None:
        match node:
            case ast.Call():
                self._call(node, branch, guard)
            case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
                for base in self.inference.infer(value, self.scope):
                    if isinstance(base.value, Instance):
                        method = self.inference.method(base.value.of, name)
                        if method is not None and is_property(method):
                            sure = weakest(base.confidence, Confidence.ATTRIBUTE)
                            self.edges.append(Edge(method, node.lineno, sure, branch, guard))

    def _call(self, node: ast.Call, branch: Branch, guard: Guard | None) -> None:
        answers = self.inference.infer(node.func, self.scope)
        for found in answers:
            self._callee(found, node, branch, guard)
        if not answers:
            self._unresolved(node, branch, guard)
        if not any(isinstance(found.value, Foreign) and self._keeps(found.value.name) for found in answers):
            self._handed_on(node, branch, guard)

    def _keeps(self, name: str) -> bool:
        return name in _KEEPS or name in self.table.opaque

    def _callee(self, found: Found, node: ast.Call, branch: Branch, guard: Guard | None) -> None:
        sure = found.confidence

        def add(scope: Scope | None, confidence: Confidence, wrapping: Wrapping | None = None) -> None:
            if scope is not None:
                self.edges.append(Edge(scope, node.lineno, confidence, branch, guard, wrapping))

        match found.value:
            case FunctionValue(scope=scope, wrapping=wrapping):
                add(scope, sure, wrapping)
            case ClassValue(scope=scope):
                for name in ("__new__", "__init__", "__post_init__"):
                    add(self.inference.method(scope, name), sure)
            case Instance(of=scope):
                call = self.inference.method(scope, "__call__")
                add(call or self.inference.method(scope, "forward"), weakest(sure, Confidence.ATTRIBUTE))
            case Foreign(name=name, effect=effect) if name in self.table.opaque:
                self.makers.append((name, effect or self.table.effect(name, node.args, node.keywords)))
            case Foreign(name=name):
                self._foreign(name, node, sure, branch, guard)
            case Unclear():
                self.gaps.append(Gap(self._doubt(node.func), node.lineno, excerpt(node.func), guard))
            case _:
                self.gaps.append(Gap(Doubt.RESULT, node.lineno, excerpt(node.func), guard))

    def _foreign(self, name: str, node: ast.Call, sure: Confidence, branch: Branch, guard: Guard | None) -> None:
        if construct := self.table.construct(name):
            self.hazards.append(Construct(construct, node.lineno, sure, branch, guard))
        elif name == "getattr" and not _names_its_attribute(node):
            self.gaps.append(Gap(Doubt.GETATTR, node.lineno, excerpt(node), guard))
        elif not self._is_known(name):
            self.gaps.append(Gap(Doubt.FOREIGN, node.lineno, name, guard))

    def _is_known(self, name: str) -> bool:
        """Whether a call of others needs no word: of builtins, of what is traced, or of what a hazard returned."""
        origin = name.partition("()")[0]
        return name.partition(".")[0] in BUILTINS or name.startswith("function.") or self.table.knows(origin)

    def _unresolved(self, node: ast.Call, branch: Branch, guard: Guard | None) -> None:
        func = node.func
        doubt = self._doubt(func)
        if isinstance(func, ast.Attribute) and doubt is Doubt.DISPATCH:
            construct = self.table.methods.get(func.attr)
            if construct is not None:
                self.hazards.append(Construct(construct, node.lineno, _NAME, branch, guard))
            for method in self.calls.find_methods(func.attr, self.scope):
                self.edges.append(Edge(method, node.lineno, _NAME, branch, guard))
        if doubt is Doubt.MISSING and may_fail(branch):
            doubt = Doubt.FALLBACK
        self.gaps.append(Gap(doubt, node.lineno, excerpt(func), guard))

    def _doubt(self, func: ast.expr) -> Doubt:
        """What is not known of a call of ``func``, which leads nowhere."""
        match func:
            case ast.Attribute(value=value):
                bases = [found.value for found in self.inference.infer(value, self.scope)]
                modules = [base.name for base in bases if isinstance(base, ModuleValue)]
                missing = modules and all(self.inference.program.lacks(name, func.attr) for name in modules)
                return Doubt.MISSING if missing else Doubt.DISPATCH
            case ast.Name(id=name):
                return self._doubt_of(name)
            case ast.Subscript():
                return Doubt.SUBSCRIPT
            case _:
                return Doubt.RESULT

    def _doubt_of(self, name: str) -> Doubt:
        """The same of a name; one that nothing binds is a variable of a comprehension."""
        holder: Scope | None = self.scope
        while holder is not None and name not in holder.namespace.names:
            holder = holder.parent
        for binding in holder.namespace.names[name] if holder is not None else ():
            if isinstance(binding, Parameter):
                return Doubt.PARAMETER
            if isinstance(binding, Imported) and self.inference.program.lacks(binding.module, binding.name):
                return Doubt.MISSING
        return Doubt.RESULT

    def _handed_on(self, node: ast.Call, branch: Branch, guard: Guard | None) -> None:
        """A function that is an argument may be called by whoever gets it."""
        for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if isinstance(value, ast.Name | ast.Attribute | ast.Lambda):
                for found in self.inference.infer(value, self.scope):
                    if isinstance(found.value, FunctionValue) and not is_identity(found.value.scope):
                        wrapping = found.value.wrapping
                        self.edges.append(Edge(found.value.scope, node.lineno, _NAME, branch, guard, wrapping))

    def _context(self, node: ast.expr, branch: Branch, guard: Guard | None) -> None:
        for found in self.inference.infer(node, self.scope):
            for name in ("__enter__", "__exit__"):
                if isinstance(found.value, Instance):
                    method = self.inference.method(found.value.of, name)
                    if method is not None:
                        sure = weakest(found.confidence, Confidence.ATTRIBUTE)
                        self.edges.append(Edge(method, node.lineno, sure, branch, guard))
                elif isinstance(found.value, Foreign) and not isinstance(node, ast.Call):
                    construct = self.table.construct(f"{found.value.name}.{name}")
                    if construct:
                        self.hazards.append(Construct(construct, node.lineno, found.confidence, branch, guard))


def _names_its_attribute(node: ast.Call) -> bool:
    match node.args:
        case [_, ast.Constant(value=str()), *_]:
            return True
        case _:
            return False
