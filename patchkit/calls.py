"""What one function does when it is called: which functions it calls, which constructs it uses, where that is unknown.

The view is of the text: every branch counts but those that a tracer never comes to, and these are marked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from patchkit.accessors import Accessors
from patchkit.audited import Confidence, Cover, Doubt, Place
from patchkit.bindings import Parameter, own_expressions
from patchkit.bodies import Body
from patchkit.branches import Block, walk
from patchkit.classes import is_identity
from patchkit.facts import Edge, Facts, Gap, Maker
from patchkit.hazards import HazardTable
from patchkit.inference import Inference
from patchkit.opacity import Opacity, is_fallback, returned
from patchkit.operations import is_implicit
from patchkit.programs import Scope
from patchkit.registrations import Registrations
from patchkit.syntax import excerpt
from patchkit.values import UNCLEAR, ClassValue, Foreign, Found, FunctionValue, Instance, ModuleValue

_DEEPEST = 8
_MANY = 3
"""A method's name alone points to a definition while no more classes than this have it."""


ByName = Callable[[str, Scope], tuple[Scope, ...]]


class Calls:
    """The facts of functions, each worked out once. ``by_name`` finds methods by name, for a call in a scope.

    ``made`` are the symbols of the classes of which objects are made at import, where that is known already.
    """

    def __init__(
        self, inference: Inference, table: HazardTable, by_name: ByName, made: frozenset[str] | None = None
    ) -> None:
        self.inference = inference
        self.table = table
        self.accessors = Accessors(inference)
        self._by_name = by_name
        self._registrations = Registrations(inference)
        self._opacity = Opacity(inference, table, self.makes)
        self.made_at_import: frozenset[Scope] = frozenset()
        self._facts: dict[Scope, Facts] = {}
        self._makes: dict[Scope, Maker | None] = {}
        self._marks: dict[Scope, tuple[dict[Scope, Cover], dict[Scope, Cover]]] = {}
        if made is not None:
            self.made_at_import = frozenset(each for each in inference.surroundings.classes if each.symbol in made)
            return
        self.made_at_import = self._find_made()
        for answers in (self._facts, self._makes, self._marks):  # what was asked before that was known
            answers.clear()

    def facts(self, scope: Scope) -> Facts:
        """What the function ``scope`` does when it is called; read once."""
        if scope not in self._facts:
            self._facts[scope] = Facts()  # what it learns if it asks for itself
            own = Body(self, scope).read()
            given = tuple(Edge(each, each.line, _NAME) for each in self._registrations.of(scope))
            own = replace(own, edges=(*own.edges, *given))
            self._facts[scope] = own  # its decorators, and what its module does with it, may ask what it does
            wrapped = self._decorated(scope)
            cover = wrapped.cover or self.marked(scope.module.scope).get(scope)
            edges, gaps = (*own.edges, *wrapped.edges), (*own.gaps, *wrapped.gaps)
            self._facts[scope] = replace(own, edges=edges, gaps=gaps, around=wrapped.around, cover=cover)
        return self._facts[scope]

    def _find_made(self) -> frozenset[Scope]:
        """The classes of which an object may be made while modules are imported: such an object may be anywhere."""
        made: dict[Scope, None] = {}
        waiting = [module.scope for module in self.inference.surroundings.modules]
        seen = set(waiting)
        while waiting:
            facts = self.facts(waiting.pop())
            fresh = [each for each in facts.made if each not in made]
            made |= dict.fromkeys(fresh)
            methods = [method for each in fresh for method in each.inner if method.is_function]
            targets = [*(edge.target for edge in (*facts.edges, *facts.around)), *methods]
            waiting += [each for each in dict.fromkeys(targets) if each not in seen]
            seen |= set(targets)
        return frozenset(made)

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

    def _decorated(self, scope: Scope) -> Facts:
        """What decorators run outside of the one that makes a function opaque, what they run inside, and that one."""
        around: list[Edge] = []
        behind: list[Edge] = []
        gaps: list[Gap] = []
        cover: Cover | None = None
        decorators = getattr(scope.node, "decorator_list", ()) if scope.parent is not None and scope.is_function else ()
        for decorator in decorators:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            answers = self.inference.infer(called, scope.parent or scope)
            makers = {each: self._maker(each, decorator) for each in answers}
            is_sure = all(maker is not None or is_fallback(each) for each, maker in makers.items())
            for found in answers or (UNCLEAR,):
                maker = makers.get(found)
                if maker is not None and not is_sure:
                    gaps.append(Gap(Doubt.RESULT, decorator.lineno, excerpt(decorator)))
                    continue
                if maker is not None and maker[0] in self.table.registering:
                    continue
                if maker is not None and not (isinstance(decorator, ast.Call) and maker[0] in self.table.of_argument):
                    place = Place(scope.module.source.path, decorator.lineno)
                    cover = cover or Cover(place, scope.symbol, *maker)
                elif maker is None:
                    edges, known = self._wrapped(found, decorator)
                    (around if cover is None else behind).extend(edges)
                    if not known and cover is None:
                        gaps.append(Gap(Doubt.RESULT, decorator.lineno, excerpt(decorator)))
        return Facts(edges=tuple(behind), gaps=tuple(gaps), around=tuple(around), cover=cover)

    def _wrapped(self, found: Found, node: ast.expr) -> tuple[list[Edge], bool]:
        """What the decorator ``found`` makes a call of the function run, and whether that is all known."""
        if isinstance(found.value, FunctionValue):
            edges = list(self._wrappers(found.value.scope, node))
            for made in self.inference.returned(found.value.scope):
                if isinstance(made.value, Instance) and isinstance(node, ast.Call):
                    edges += self._wrapped(made, node.func)[0]
                elif isinstance(made.value, Instance):
                    called = self._special(made.value, "__call__")
                    edges += [Edge(each.scope, node.lineno, _NAME, (Block("decorator", node),)) for each in called]
            return edges, self._tells(found.value.scope, node)
        if not isinstance(found.value, ClassValue | Instance):
            return [], isinstance(found.value, Foreign | ModuleValue)
        is_class = isinstance(found.value, ClassValue)
        one = Instance(found.value.scope, exact=True) if isinstance(found.value, ClassValue) else found.value
        given = [each.value for each in self.inference.methods(one, "__call__")]
        scopes = [each.scope for each in given if isinstance(each, FunctionValue)]
        if is_class and not isinstance(node, ast.Call):
            scopes += [each.scope for name in ("__get__",) for each in self._special(one, name)]
            edges = [Edge(each, node.lineno, Confidence.ATTRIBUTE, (Block("decorator", node),)) for each in scopes]
            return edges, UNCLEAR.value not in given
        edges = [
            edge
            for scope in scopes
            for edge in self._wrappers(scope, node.func if is_class and isinstance(node, ast.Call) else node)
        ]
        kin = [each for each in self.inference.lineage.order(one.of) if isinstance(each, Scope)]
        names = [name for each in kin for name in each.namespace.names if is_implicit(name)]
        hooks = [each.scope for name in names for each in self._special(one, name)]
        edges += [Edge(each, node.lineno, _NAME, (Block("decorator", node),)) for each in hooks]
        return edges, bool(given) and UNCLEAR.value not in given

    def _special(self, made: Instance, name: str) -> Iterator[FunctionValue]:
        found = (each.value for each in self.inference.methods(made, name))
        yield from (each for each in found if isinstance(each, FunctionValue))

    def _tells(self, decorator: Scope, node: ast.expr) -> bool:
        """Whether it is known what a decorator puts in the place of what it decorates."""
        given = [decorator]
        if isinstance(node, ast.Call):
            given += self._functions(decorator)
        return all(self._is_told(each, value) for each in given[-1:] for value in returned(each))

    def _is_told(self, scope: Scope, value: ast.expr) -> bool:
        if isinstance(value, ast.Name) and value.id in _parameters(scope):
            return True
        found = self.inference.infer(value, scope)
        return bool(found) and UNCLEAR not in found

    def _maker(self, found: Found, node: ast.expr, *, handed: bool = False) -> Maker | None:
        """The maker that a decorator is, or comes to, and its effect where ``node`` is its call.

        ``handed``: the call hands the function over itself, it does not make what gets it.
        """
        called = isinstance(node, ast.Call) and not handed
        match found.value:
            case Foreign(name=name, effect=effect) if name in self.table.opaque:
                given = (node.args, node.keywords) if isinstance(node, ast.Call) else ()
                return name, effect or self.table.effect(name, *given)
            case FunctionValue(scope=scope):
                maker = self._opacity.maker(scope, called=called)
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

    def operator(self, scope: Scope) -> Cover | None:
        """What makes an operator of a function that nobody calls by its own name."""
        cover = self.registered(scope.module.scope).get(scope)
        return None if cover is None or self._is_called_itself(scope) else cover

    def _is_called_itself(self, scope: Scope) -> bool:
        """Whether the caller calls a function by its own name where a tracer comes to it."""
        word = scope.name.encode()
        modules = [each for each in self.inference.surroundings.modules if not each.source.distribution]
        scopes = (each for module in modules if word in module.data for each in module.scopes if each is not scope)
        return any(
            edge.target is scope and edge.confidence is not _NAME and edge.wrapping is None and edge.guard is None
            for each in scopes
            if self.facts(each).cover is None
            for edge in self.facts(each).edges
        )

    def _handed(self, module: Scope) -> tuple[dict[Scope, Cover], dict[Scope, Cover]]:
        if module not in self._marks:
            self._marks[module] = ({}, {})
            placed = list(walk(getattr(module.node, "body", ())))
            for each in placed:
                self._note_registered(each.node, module)
            for call, branch in ((call, each.branch) for each in placed for call in _calls_in(each.node)):
                found = self.inference.infer(call.func, module)
                makers = [maker for maker in (self._maker(each, call, handed=True) for each in found) if maker]
                handed = [*call.args, *(keyword.value for keyword in call.keywords)] if makers else []
                for value in (each.value for node in handed for each in self.inference.infer(node, module)):
                    if isinstance(value, FunctionValue):
                        place = Place(module.module.source.path, call.lineno)
                        in_place = makers[0][0] in self.table.of_argument
                        if in_place and any("if" in block.word or block.word == "case" for block in branch):
                            continue  # it may not come to it
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


def _parameters(scope: Scope) -> set[str]:
    bound = scope.namespace.names.items()
    return {name for name, bindings in bound if any(isinstance(each, Parameter) for each in bindings)}


_NAME = Confidence.NAME
_COMMON = frozenset(
    name for kind in (str, bytes, int, float, list, tuple, dict, set, frozenset, object, type) for name in dir(kind)
)


def _calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a module's own statements: in expressions and assignments, and decorators with arguments."""
    yield from (each for each in getattr(statement, "decorator_list", ()) if isinstance(each, ast.Call))
    if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        yield from (node for node in own_expressions(statement) if isinstance(node, ast.Call))
