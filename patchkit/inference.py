"""What an expression may be, found without running anything: a function, a class, an instance, a name of others.

The rules are few and each is exact as far as it goes: bindings of names, imports through re-exports, attributes of
modules and classes, annotations, what ``return`` gives. Where none applies the answer is empty, which callers count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from patchkit.annotations import named_by
from patchkit.audited import Confidence
from patchkit.bindings import Assigned, Binding, Defined, Imported, Parameter, find_comprehended, in_force
from patchkit.classes import Attribute, has_decorator, is_property, own_attributes
from patchkit.contents import TAKING, elements, is_nothing
from patchkit.hazards import HazardTable
from patchkit.narrowing import Narrowings
from patchkit.programs import Program, Scope
from patchkit.results import BUILTINS, TYPES, VAGUE
from patchkit.returns import Returns
from patchkit.values import (
    UNCLEAR,
    Answers,
    ClassValue,
    Container,
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

    def __init__(self, program: Program, table: HazardTable) -> None:
        self.program = program
        self.table = table
        self._returns = Returns(self)
        self._answers: dict[tuple[int, int], Answers] = {}
        self._attributes: dict[Scope, dict[str, list[Attribute]]] = {}
        self._comprehended: dict[Scope, dict[str, list[Assigned]]] = {}
        self._narrowings = Narrowings()
        self._busy: set[object] = set()
        self._cut: set[object] = set()
        self._depth = 0
        self._steps = 0

    # ---- expressions ------------------------------------------------------------------------------------------

    def infer(self, node: ast.expr, scope: Scope) -> Answers:
        """What ``node``, which stands in ``scope``, may be. Empty: not known."""
        key = (id(node), id(scope))
        if key in self._answers:
            return self._answers[key]
        if key in self._busy or self._depth > _DEEPEST:
            self._cut.add(key)
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
        if not self._cut or not self._depth or self._steps > _LONGEST:
            self._answers[key] = answers
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
            case ast.Attribute(value=value, attr=name):
                for base in self.infer(value, scope):
                    yield from lowered(self.member(base.value, name), base.confidence)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=args) if name in TAKING and (
                held := self.elements(value, scope)
            ):
                yield from joined([held, *(self.infer(each, scope) for each in args[1:2] if not is_nothing(each))])
            case ast.Call(func=func):
                for callee in self.infer(func, scope):
                    yield from lowered(self._returns.result(callee.value, node, scope), callee.confidence)
            case ast.IfExp(body=body, orelse=orelse):
                yield from joined(None if is_nothing(each) else self.infer(each, scope) for each in (body, orelse))
            case ast.BoolOp(values=values):
                yield from joined(None if is_nothing(each) else self.infer(each, scope) for each in values)
            case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
                yield from self.infer(value, scope)
            case ast.Subscript(value=value, slice=ast.Slice()):
                yield from self.infer(value, scope)
            case ast.Subscript(value=value):
                yield from self.elements(value, scope)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                found = (*self.infer(left, scope), *self.infer(right, scope))
                yield from (each for each in found if each.value == Foreign("pathlib.Path", instance=True))
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
        return elements(container, scope, self.infer, self.annotated)

    def _narrowed(self, node: ast.expr, scope: Scope) -> Answers:
        """What ``isinstance`` says of an expression of which nothing else is known."""
        asked = self._narrowings.of(node, scope)
        found = tuple(each for one in asked for each in self._instances(one.of, None, scope))
        return found if any(each.sure for each in asked) else (*found, UNCLEAR) if found else ()

    # ---- names ------------------------------------------------------------------------------------------------

    def look_up(self, name: str, scope: Scope) -> Answers:
        """What ``name`` may be bound to where ``scope`` asks for it (scopes of classes are not seen from below)."""
        holder: Scope | None = scope
        while holder is not None:
            bound = holder.namespace.names.get(name, [])
            seen = not holder.is_class or holder is scope
            if bound and seen and name not in holder.namespace.outer:
                return joined(self._alternatives(name, bound, holder))
            held = self._in_comprehension(name, scope) if holder is scope else ()
            if held:
                return held
            holder = holder.parent
        starred = self._starred(name, scope.module.scope)
        if starred:
            return starred
        return (Found(Foreign(name)),) if name in BUILTINS else ()

    def _in_force(self, bound: Sequence[Binding], holder: Scope) -> Sequence[Binding]:
        return bound if holder.is_function else in_force(bound, lambda value: (id(value), id(holder)) in self._busy)

    def _alternatives(self, name: str, bound: Sequence[Binding], holder: Scope) -> Iterator[Answers | None]:
        """What each binding of a name gives; None: nothing that could be called, or it is being asked for."""
        for binding in self._in_force(bound, holder):
            yield self._alternative(binding, holder)
        for function in holder.module.declared_outer.get(name, ()):
            if function is not holder and function.qualname.startswith(holder.qualname):
                for binding in function.namespace.names.get(name, ()):
                    yield self._alternative(binding, function)

    def _alternative(self, binding: Binding, holder: Scope) -> Answers | None:
        found = self._bound(binding, holder)
        match binding:
            case Assigned(value=value) if not found and value is not None:
                return None if is_nothing(value) or (id(value), id(holder)) in self._busy else ()
            case Assigned(annotation=annotation) if not found and annotation is not None:
                return None
            case Imported():
                return found or None
            case _:
                return found

    def _in_comprehension(self, name: str, scope: Scope) -> Answers:
        """What a variable of a comprehension may be; these are scopes of their own, and short."""
        if scope not in self._comprehended:
            self._comprehended[scope] = find_comprehended(scope.node) if scope.is_function else {}
        return tuple(each for one in self._comprehended[scope].get(name, ()) for each in self._bound(one, scope))

    def _bound(self, binding: Binding, holder: Scope) -> Answers:
        match binding:
            case Imported(module=module, name=name):
                return self.imported(module, name)
            case Defined(node=node):
                child = holder.child(node)
                return (Found(ClassValue(child) if child.is_class else FunctionValue(child)),)
            case Assigned(value=ast.expr() as container, element=True):
                return self.elements(container, holder)
            case Assigned(value=value, annotation=annotation):
                found = self.annotated(annotation, holder) if annotation is not None else ()
                return found or (self.infer(value, holder) if value is not None else ())
            case Parameter(annotation=annotation, first=first, default=default):
                if first and holder.owner is not None and not has_decorator(holder, "staticmethod"):
                    is_class = has_decorator(holder, "classmethod") or holder.name == "__new__"
                    return (Found(ClassValue(holder.owner) if is_class else Instance(holder.owner)),)
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

    def _starred(self, name: str, scope: Scope) -> Answers:
        for star in scope.namespace.stars:
            module = self.program.module(star.module)
            if module is not None and module.scope.namespace.exports(name):
                found = self.member(ModuleValue(star.module), name)
                if found:
                    return found
        return ()

    # ---- members ----------------------------------------------------------------------------------------------

    def member(self, base: Value, name: str) -> Answers:
        """What the attribute ``name`` of ``base`` may be."""
        key = (base, name)
        if key in self._busy:
            self._cut.add(key)
            return ()
        self._busy.add(key)
        try:
            match base:
                case ModuleValue(name=module):
                    return self._module_member(module, name)
                case ClassValue(scope=scope):
                    return lowered(self._class_member(scope, name, of_instance=False), Confidence.ATTRIBUTE)
                case Instance(of=scope):
                    return lowered(self._class_member(scope, name, of_instance=True), Confidence.ATTRIBUTE)
                case Foreign(name=owner, instance=instance):
                    if instance and owner == "pathlib.Path" and name == "parent":
                        return (Found(base),)
                    return (Found(Foreign(f"{owner}.{name}")),)
                case Unclear():
                    return (UNCLEAR,)
                case Container(name=owner):
                    return (Found(Foreign(f"{owner}.{name}")),)
                case Record(node=ast.Call(keywords=keywords), scope=scope):
                    values = [keyword.value for keyword in keywords if keyword.arg == name]
                    found = tuple(each for value in values for each in self.infer(value, scope))
                    return lowered(found, Confidence.ATTRIBUTE)
                case Record(node=node):
                    return (Found(Foreign(f"{TYPES[type(node)]}.{name}")),)
                case FunctionValue():
                    return (Found(Foreign(f"function.{name}")),)
        finally:
            self._end(key)

    def _module_member(self, module: str, name: str) -> Answers:
        parsed = self.program.module(module)
        if parsed is not None:
            bound = parsed.scope.namespace.names.get(name, [])
            if bound:
                answers = joined(self._alternatives(name, bound, parsed.scope))
                if answers:  # none: `from . import name` in a package binds what the import system puts there
                    return answers
            starred = self._starred(name, parsed.scope)
            if starred:
                return starred
        inner = f"{module}.{name}"
        return (Found(ModuleValue(inner)),) if self.program.has(inner) else ()

    def _class_member(self, scope: Scope, name: str, *, of_instance: bool) -> Answers:
        foreign: list[Found] = []
        for each in self.ancestors(scope):
            if isinstance(each, Foreign):
                foreign.append(Found(Foreign(f"{each.name}.{name}")))
                continue
            own = [self._alternative(binding, each) for binding in each.namespace.names.get(name, [])]
            if of_instance:
                own = [None if found is None else self._read(found) for found in own]
                own += self._set_on_self(each, name)
            found = joined(own)
            if found:
                return found
        return tuple(foreign[:1])

    def _read(self, found: Answers) -> Answers:
        """What an instance shows: of a property its result."""
        return tuple(
            result
            for each in found
            for result in (
                self.returned(each.value.scope)
                if isinstance(each.value, FunctionValue) and is_property(each.value.scope)
                else (each,)
            )
        )

    def _set_on_self(self, scope: Scope, name: str) -> Iterator[Answers | None]:
        if scope not in self._attributes:
            self._attributes[scope] = own_attributes(scope)
        for method, value, annotation in self._attributes[scope].get(name, ()):
            yield self._alternative(Assigned(value, annotation, 0, ()), method)

    def ancestors(self, scope: Scope) -> Iterator[Scope | Foreign]:
        """A class and those it inherits from, in the order of their bases, each once."""
        seen: set[object] = set()
        waiting: list[Scope | Foreign] = [scope]
        while waiting:
            each = waiting.pop(0)
            if each in seen:
                continue
            seen.add(each)
            yield each
            if isinstance(each, Scope) and isinstance(each.node, ast.ClassDef) and each.parent is not None:
                bases = [found.value for base in each.node.bases for found in self.infer(base, each.parent)]
                waiting += [base.scope for base in bases if isinstance(base, ClassValue)]
                waiting += [base for base in bases if isinstance(base, Foreign)]

    def method(self, scope: Scope, name: str) -> Scope | None:
        """The method that an instance of a class would call by ``name``, if it is defined here."""
        for found in self._class_member(scope, name, of_instance=False):
            if isinstance(found.value, FunctionValue):
                return found.value.scope
        return None

    # ---- calls ------------------------------------------------------------------------------------------------

    def returned(self, scope: Scope) -> Answers:
        """What a function gives back, by its annotation, else by its ``return`` statements."""
        return self._returns.returned(scope)

    def annotated(self, node: ast.expr, scope: Scope) -> Answers:
        """The instances that an annotation speaks of (PEP 484); those that say nothing are left out."""
        return tuple(found for name, held in named_by(node) for found in self._instances(name, held, scope))

    def _instances(self, node: ast.expr, held: ast.expr | None, scope: Scope) -> Iterator[Found]:
        for found in self.infer(node, scope):
            match found.value:
                case Foreign(name="type" | "typing.Type"):
                    yield from self.infer(held, scope) if held is not None else ()
                case Foreign(name=name) if held is not None and name not in VAGUE:
                    yield Found(Container(name, held, scope), found.confidence)
                case ClassValue(scope=of):
                    yield Found(Instance(of), found.confidence)
                case Foreign(name=name) if name not in VAGUE:
                    yield Found(Foreign(name, instance=True), found.confidence)
