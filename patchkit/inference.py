"""What an expression may be, found without running anything: a function, a class, an instance, a name of others.

The rules are few and each is exact as far as it goes: bindings of names, imports through re-exports, attributes of
modules and classes, annotations, what ``return`` gives. Where none applies the answer is empty, which callers count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from patchkit.annotations import instances, instances_of
from patchkit.bindings import Assigned, Binding, Defined, Imported, Parameter, find_comprehended, in_force
from patchkit.classes import has_decorator, is_field, is_nothing
from patchkit.contents import TAKING, elements
from patchkit.definitions import star_givers
from patchkit.hazards import HazardTable
from patchkit.lineage import Lineage
from patchkit.members import Members
from patchkit.mutations import Mutations
from patchkit.narrowing import Narrowings
from patchkit.programs import Program, Scope
from patchkit.results import BUILTINS, TYPES
from patchkit.returns import Returns
from patchkit.substitutions import Substitutions
from patchkit.surroundings import Surroundings
from patchkit.values import (
    UNCLEAR,
    Answers,
    ClassValue,
    Foreign,
    Found,
    FunctionValue,
    Instance,
    ModuleValue,
    Record,
    Unclear,
    Value,
    handed_in,
    joined,
    lowered,
)

_DEEPEST = 40
_LONGEST = 2000  # steps of one question after which half answers are kept: what asks in circles must come to an end
_MOST = 24  # things that an expression may be; where it may be more, it is not known what it is


class Inference:
    """Answers for one program, each worked out once."""

    def __init__(self, program: Program, table: HazardTable, surroundings: Surroundings | None = None) -> None:
        surroundings = surroundings or Surroundings(program, ())
        self.program = program
        self.table = table
        self.surroundings = surroundings
        self.substitutions = Substitutions(surroundings)
        self.mutations = Mutations(surroundings)
        self.lineage = Lineage(self.infer, surroundings)
        self.members = Members(self)
        self._returns = Returns(self)
        self._answers: dict[tuple[int, int], Answers] = {}
        self._elements: dict[object, Answers] = {}
        self._comprehended: dict[Scope, dict[str, list[Assigned]]] = {}
        self._narrowings = Narrowings()
        self._busy: set[object] = set()
        self._cut: set[object] = set()
        self._is_half = False
        self._depth = 0
        self._steps = 0
        self.lineage.prepare()

    # ---- expressions ------------------------------------------------------------------------------------------

    def infer(self, node: ast.expr, scope: Scope) -> Answers:
        """What ``node``, which stands in ``scope``, may be. Empty: not known."""
        key = (id(node), id(scope))
        if key in self._answers:
            return self._answers[key]
        if key in self._busy or self._depth > _DEEPEST:
            self._cut.add(key)
            self._is_half = self._is_half or key not in self._busy
            return ()
        self._busy.add(key)
        self._steps = self._steps + 1 if self._depth else 0
        self._depth += 1
        try:
            answers = tuple(dict.fromkeys(self._infer(node, scope)))
            if not answers and isinstance(node, ast.Name | ast.Attribute):
                answers = self._narrowed(node, scope)
        finally:
            self._end(key)
            self._depth -= 1
        answers = answers if len(answers) <= _MOST else ()
        too_long = self._steps > _LONGEST and bool(self._cut)
        if (self._is_half or too_long) and answers and UNCLEAR not in answers:
            answers = (*answers, UNCLEAR)
        if not self._cut or not self._depth or too_long:
            self._answers[key] = answers
        if not self._depth:
            self._is_half = False
        return answers

    def _end(self, key: object) -> None:
        """An answer is whole when nothing in it waits for a question that is still being asked."""
        self._busy.discard(key)
        self._cut.discard(key)
        if not self._busy:
            self._cut.clear()

    def _infer(self, node: ast.expr, scope: Scope) -> Iterator[Found]:
        match node:
            case ast.Name(id=name):
                yield from self.look_up(name, scope)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")) as call, attr=name) if scope.enclosing_class:
                yield from joined(self.members.above(each, name) for each in self._returns.supers(call, scope))
            case ast.Attribute(value=value, attr=name):
                bases = self.infer(value, scope)
                yield from joined(lowered(self.member(base.value, name), base.confidence) for base in bases)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=args) if name in TAKING and (
                held := self.elements(value, scope)
            ):
                yield from joined([held, *(self.infer(each, scope) for each in args[1:2] if not is_nothing(each))])
            case ast.Call(func=func):
                callees = self.infer(func, scope)
                yield from joined(lowered(self.result(each.value, node, scope), each.confidence) for each in callees)
            case ast.IfExp(body=body, orelse=orelse):
                yield from joined(None if is_nothing(each) else self.infer(each, scope) for each in (body, orelse))
            case ast.BoolOp(values=values):
                yield from joined(None if is_nothing(each) else self.infer(each, scope) for each in values)
            case ast.NamedExpr(value=value) | ast.Starred(value=value):
                yield from self.infer(value, scope)
            case ast.Await(value=value):
                yield from self._returns.awaited(value, scope)
            case ast.Subscript(value=value, slice=ast.Slice()):
                yield from self._returns.shown(value, scope, "__getitem__")
            case ast.Subscript(value=value):
                yield from self.elements(value, scope)
            case ast.BinOp(left=left, op=op, right=right):
                found = (*self.infer(left, scope), *self.infer(right, scope))
                path = Found(Foreign("pathlib.Path", instance=True))
                yield from (each for each in found if isinstance(op, ast.Div) and each.value == path.value)
            case ast.Lambda():
                yield Found(FunctionValue(scope.child(node)))
            case ast.Dict() | ast.List() | ast.Tuple() | ast.Set() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                yield Found(Record(node, scope))
            case ast.Constant(value=value) if value is not None and value is not ...:
                yield Found(Foreign(type(value).__name__, instance=True))
            case _ if type(node) in TYPES:
                yield Found(Foreign(TYPES[type(node)], instance=True))

    def elements(self, container: ast.expr, scope: Scope) -> Answers:
        """What an element of ``container`` may be."""
        key = ("element", id(container), id(scope))
        if key in self._elements:
            return self._elements[key]
        if key in self._busy or self._depth > _DEEPEST:
            self._cut.add(key)
            self._is_half = self._is_half or key not in self._busy
            return ()
        self._busy.add(key)
        self._depth += 1
        try:
            found = elements(container, scope, self)
        finally:
            self._end(key)
            self._depth -= 1
        if not self._cut:
            self._elements[key] = found
        return found

    def _narrowed(self, node: ast.expr, scope: Scope) -> Answers:
        """What ``isinstance`` says of an expression of which nothing else is known."""
        asked = self._narrowings.of(node, scope)
        found = joined(instances_of(kind, (), scope, self) for one in asked for kind in one.kinds)
        is_sure = any(one.is_sure(node.lineno) for one in asked)
        kinds = [each.value.of for each in found if isinstance(each.value, Instance)]
        is_sure = is_sure and not any(self.lineage.is_open(each) for each in kinds)
        return found if is_sure or not found else joined([found, ()])

    # ---- names ------------------------------------------------------------------------------------------------

    def look_up(self, name: str, scope: Scope) -> Answers:
        """What ``name`` may be bound to where ``scope`` asks for it (scopes of classes are not seen from below)."""
        holder: Scope | None = scope
        while holder is not None:
            bound: list[Binding] = [*holder.namespace.names.get(name, []), *self._in_comprehension(name, holder)]
            seen = not holder.is_class or holder is scope
            if bound and seen and name not in holder.namespace.outer:
                before = _runs_with(scope, holder)
                found = joined(self._alternatives(name, bound, holder, before=before))
                if name in holder.namespace.augmented and any(isinstance(each.value, Instance) for each in found):
                    found = joined([found, ()])  # what `__iadd__` and its like give is not looked for
                if found or not holder.is_class:  # `f = f` in a class takes the name from around it
                    return found if holder.parent else self._of_module(name, holder, found)
            holder = holder.parent
        starred = self.starred(name, scope.module.scope)
        if starred:
            return starred
        return (Found(Foreign(name)),) if name in BUILTINS else ()

    def bound(self, name: str, holder: Scope) -> Iterator[Answers | None]:
        """What each binding of a name in ``holder`` gives."""
        yield from self._alternatives(name, holder.namespace.names.get(name, []), holder)

    def _of_module(self, name: str, holder: Scope, found: Answers) -> Answers:
        """``found``, or what a star import or other code puts in its place."""
        starred = self.starred(name, holder)
        return self.members.replaced(ModuleValue(holder.module.name), name, joined([found or None, starred or None]))

    def _in_force(self, bound: Sequence[Binding], holder: Scope) -> Sequence[Binding]:
        return bound if holder.is_function else in_force(bound, lambda value: (id(value), id(holder)) in self._busy)

    def _alternatives(
        self, name: str, bound: Sequence[Binding], holder: Scope, *, before: bool = False
    ) -> Iterator[Answers | None]:
        """What each binding of a name gives; None: nothing that could be called, or it is being asked for.

        ``before``: also what it was bound to before the last time.
        """
        for binding in bound if before else self._in_force(bound, holder):
            yield self.alternative(binding, holder)
        for function in holder.module.declared_outer.get(name, ()):
            if function is not holder and function.qualname.startswith(holder.qualname):
                for binding in function.namespace.names.get(name, ()):
                    yield self.alternative(binding, function)

    def alternative(self, binding: Binding, holder: Scope) -> Answers | None:
        """What one binding gives; None: nothing that could be called, or it is being asked for."""
        found = self._bound(binding, holder)
        match binding:
            case Assigned(value=value) if not found and value is not None:
                return None if is_nothing(value) or (id(value), id(holder)) in self._busy else ()
            case Assigned(annotation=annotation) if not found and annotation is not None:
                return None
            case Imported(module=module):
                return found if found or self.program.is_opaque(module) else None
            case _:
                return found

    def _in_comprehension(self, name: str, scope: Scope) -> list[Assigned]:
        """What binds a variable of a comprehension; these are scopes of their own, and short."""
        if scope not in self._comprehended:
            has_any = b"for" in scope.module.data
            self._comprehended[scope] = find_comprehended(scope.node) if has_any else {}
        return self._comprehended[scope].get(name, [])

    def _bound(self, binding: Binding, holder: Scope) -> Answers:
        match binding:
            case Imported(module=module, name=name):
                return self.imported(module, name)
            case Defined(node=node):
                child = holder.child(node)
                if not child.is_class:
                    return (Found(FunctionValue(child)),)
                return joined([(Found(ClassValue(child)),), *self._returns.put_in_place(node.decorator_list, holder)])
            case Assigned(value=ast.expr() as container, element=True):
                return self.elements(container, holder)
            case Assigned(value=ast.expr() as context, entered=True):
                return self._returns.entered(context, holder)
            case Assigned(value=value, annotation=annotation):
                found = self.annotated(annotation, holder) if annotation is not None else ()
                given = self.infer(value, holder) if value is not None else ()
                ours = [each for each in given if not isinstance(each.value, Foreign | Unclear)]
                if given and not found and annotation is not None and is_field(holder, annotation):
                    return joined([given, ()])
                return tuple(dict.fromkeys((*found, *ours))) if found else given
            case Parameter(annotation=annotation, first=first, default=default):
                if first and holder.owner is not None and not has_decorator(holder, "staticmethod"):
                    is_class = has_decorator(holder, "classmethod") or holder.name == "__new__"
                    if is_class:
                        return (Found(ClassValue(holder.owner, exact=False)),)
                    return joined([(Found(Instance(holder.owner)),), *self.members.borrowing(holder, holder.owner)])
                found = self.annotated(annotation, holder.parent or holder) if annotation is not None else ()
                return found or (handed_in(self.infer(default, holder.parent or holder)) if default is not None else ())

    def imported(self, module: str, name: str) -> Answers:
        """What ``from module import name`` gives, behind all re-exports; ``name`` "": the module itself."""
        if not name:
            return (Found(ModuleValue(module) if self.program.has(module) else Foreign(module)),)
        if not self.program.has(module):
            is_ours = self.program.has(module.partition(".")[0])
            return () if is_ours else (Found(Foreign(f"{module}.{name}")),)
        return self.member(ModuleValue(module), name)

    def starred(self, name: str, scope: Scope) -> Answers:
        givers = star_givers(self.program, scope.module, name) if scope.namespace.stars else ()
        return joined(self.member(ModuleValue(giver), name) or None for giver in givers)

    # ---- members ----------------------------------------------------------------------------------------------

    def member(self, base: Value, name: str) -> Answers:
        """What the attribute ``name`` of ``base`` may be."""
        key = (base, name)
        if key in self._busy:
            self._cut.add(key)
            return ()
        self._busy.add(key)
        try:
            return self.members.member(base, name)
        finally:
            self._end(key)

    def methods(self, base: ClassValue | Instance, name: str) -> Answers:
        """What stands under ``name`` in the class of ``base`` and, where it may be one of these, in its subclasses."""
        return self.members.raw(base, name)

    def ancestors(self, scope: Scope) -> Iterator[Scope | Foreign]:
        """A class and those it inherits from, in the order in which attributes are looked for."""
        yield from (each for each in self.lineage.order(scope) if not isinstance(each, Unclear))

    def method(self, scope: Scope, name: str) -> Scope | None:
        """The method that an object of exactly this class would call by ``name``, if it is defined here."""
        found = (each.value for each in self.methods(ClassValue(scope), name))
        return next((value.scope for value in found if isinstance(value, FunctionValue)), None)

    # ---- calls ------------------------------------------------------------------------------------------------

    def result(self, callee: Value, call: ast.Call, scope: Scope) -> Answers:
        """What a call of ``callee`` gives."""
        return self._returns.result(callee, call, scope)

    def returned(self, scope: Scope) -> Answers:
        """What a function gives back, by its annotation, else by its ``return`` statements."""
        return self._returns.returned(scope)

    def annotated(self, node: ast.expr, scope: Scope) -> Answers:
        """The instances that an annotation speaks of (PEP 484); those that say nothing are left out."""
        return instances(node, scope, self)


def _runs_with(scope: Scope, holder: Scope) -> bool:
    """Whether ``scope`` runs while ``holder`` does, so that it sees names before they are bound anew."""
    inner: Scope | None = scope
    while inner is not None and inner is not holder and inner.is_class:
        inner = inner.parent
    return inner is holder
