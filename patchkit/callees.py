"""What a call comes to: a function, a class that is made, something of others, or nothing that is known."""

from __future__ import annotations

import ast
from typing import Protocol

from patchkit.accessors import Access
from patchkit.audited import Confidence, Doubt, weakest
from patchkit.bindings import Assigned, Imported, Parameter
from patchkit.branches import may_fail
from patchkit.handing import Handing, is_known
from patchkit.hazards import HazardTable
from patchkit.hooks import Hooks
from patchkit.inference import Inference
from patchkit.notes import Notes
from patchkit.operands import Operands
from patchkit.operations import CONSTRUCTION
from patchkit.programs import Scope
from patchkit.results import BUILTINS, CALLED, HOLDING, REFLECTIVE, called_positions
from patchkit.syntax import excerpt
from patchkit.values import UNCLEAR, ClassValue, Foreign, Found, FunctionValue, Instance, ModuleValue, Unclear

_ACCESSES = {"getattr": Access.READ, "hasattr": Access.READ, "setattr": Access.SET, "delattr": Access.DELETE}
_NAME = Confidence.NAME


class Known(Protocol):
    """What is known of the program's functions (`Calls`)."""

    inference: Inference
    table: HazardTable

    def find_methods(self, name: str, scope: Scope) -> tuple[Scope, ...]: ...


class Callees:
    """Calls of one body, told to its ``notes``. ``kept`` is a call whose object is only ever used by its name."""

    def __init__(self, known: Known, scope: Scope, notes: Notes, operands: Operands) -> None:
        self.known = known
        self.inference = known.inference
        self.table = known.table
        self.scope = scope
        self.notes = notes
        self.operands = operands
        self.hooks = Hooks(known.inference.lineage, notes)
        self.handing = Handing(known.inference, known.table, scope, notes)
        self.kept: ast.expr | None = None

    def call(self, node: ast.Call) -> None:
        """What a call calls, and what it hands on."""
        answers = self.inference.infer(node.func, self.scope)
        for found in answers:
            self.callee(found, node)
        if not answers:
            self.unresolved(node)
        others = [each.value.name for each in answers if isinstance(each.value, Foreign)]
        if others:
            self._hooked(node, others)
        self.handing.hand_on(node, others)
        handed = [each.value for each in node.keywords if each.arg in CALLED] if others else []
        positions = {place for name in others for place in called_positions(name, len(node.args))}
        handed += [each for place, each in enumerate(node.args) if place in positions]
        for value in (each for each in handed if not isinstance(each, ast.Constant | ast.Starred)):
            self._called_by_others(value, node)

    def _called_by_others(self, value: ast.expr, node: ast.Call) -> None:
        """``value`` is handed to others that call it: where it is not known what it is, or what that does."""
        known = [each.value for each in self.inference.infer(value, self.scope)]
        if not known or UNCLEAR.value in known:
            self.notes.gap(self._doubt(value), node, excerpt(value))
        for each in known:
            if isinstance(each, Foreign) and not each.instance and not is_known(self.table, each.name):
                self.notes.gap(Doubt.FOREIGN, node, each.name)

    def callee(self, found: Found, node: ast.Call) -> None:
        """What a call of ``found`` does, told to the notes."""
        sure = found.confidence
        match found.value:
            case FunctionValue(scope=scope, wrapping=wrapping):
                self.notes.add(scope, node.lineno, sure, wrapping)
            case ClassValue():
                self.construct(found.value, node, sure)
            case Instance():
                called = self.inference.methods(found.value, "__call__")
                is_module = all(isinstance(each.value, Foreign) for each in called)
                called = (is_module and self.inference.member(found.value, "forward")) or called
                self.notes.run(called, node, weakest(sure, Confidence.ATTRIBUTE))
                if is_module and called:
                    self.hooks.call(found.value.of, node)
                if not called or Foreign("type.__call__") in [each.value for each in called]:  # a class, too
                    self.notes.gap(Doubt.DISPATCH, node, excerpt(node.func))
            case Foreign(name=name, effect=effect) if name in self.table.opaque:
                if not self._is_of_another(node):
                    self.notes.makers.append((name, effect or self.table.effect(name, node.args, node.keywords)))
            case Foreign(name=name, instance=instance):
                self._foreign(name, node, sure)
                if instance and name in HOLDING and not _is_made_here(node):
                    self.notes.gap(Doubt.DISPATCH, node)
            case Unclear():
                self.notes.gap(self._doubt(node.func), node, excerpt(node.func))
            case _:
                self.notes.gap(Doubt.RESULT, node, excerpt(node.func))

    def _is_of_another(self, node: ast.Call) -> bool:
        """Whether a call hands over a function that is known: none that the caller of this one hands in."""
        handed = [each.value for value in node.args for each in self.inference.infer(value, self.scope)]
        scopes = [each.scope for each in handed if isinstance(each, FunctionValue)]
        return any(each.parent is None or not each.parent.is_function for each in scopes)

    def construct(self, value: ClassValue, node: ast.expr, sure: Confidence) -> None:
        """An object is made."""
        lineage = self.inference.lineage
        if node is not self.kept:
            self.notes.made += [value.scope, *(() if value.exact else lineage.descendants(value.scope))]
        metaclass = lineage.metaclass(value.scope)
        if metaclass is not None:
            self.notes.run(self.inference.methods(Instance(metaclass), "__call__"), node, sure)
        for name in CONSTRUCTION:
            self.notes.run(self.inference.methods(value, name), node, sure)
        made = self.inference.methods(value, "__init__")
        if not any(isinstance(each.value, FunctionValue) for each in made):
            for kin in lineage.order(value.scope):
                if isinstance(kin, Foreign):
                    self._foreign(kin.name, node, sure)
            self.hooks.call(value.scope, node)
        self.notes.implicit(value, node)
        for kin in (each for each in lineage.order(value.scope) if isinstance(each, Scope)):
            for binding in (each for bound in kin.namespace.names.values() for each in bound):
                call = binding.value if isinstance(binding, Assigned) else None
                if isinstance(call, ast.Call) and not self.handing.is_accessor(call, kin):  # field(default_factory=f)
                    self.handing.from_class_body(call, kin, node)

    def _foreign(self, name: str, node: ast.expr, sure: Confidence) -> None:
        name = name.removesuffix(".__init__").removesuffix(".__new__")
        if construct := self.table.construct(name):
            self.notes.use(construct, node.lineno, sure)
        elif name in REFLECTIVE or (isinstance(node, ast.Call) and _is_made_up(name, node)):
            self.notes.gap(Doubt.GETATTR, node)
        elif name in ("isinstance", "issubclass") and isinstance(node, ast.Call) and len(node.args) == 2:
            self.operands.operate(node.args[1], ("__instancecheck__", "__subclasscheck__", "__subclasshook__"))
        elif name in _ACCESSES and isinstance(node, ast.Call) and isinstance(node.args[1], ast.Constant):
            self.operands.access(node.args[0], str(node.args[1].value), _ACCESSES[name], node)
        elif not is_known(self.table, name) or self._was_made_elsewhere(name, node):
            owner = name.partition(".")[0]
            self.notes.gap(Doubt.DISPATCH if owner in BUILTINS else Doubt.FOREIGN, node, name)

    def _was_made_elsewhere(self, name: str, node: ast.expr) -> bool:
        """Whether a method is called of what a hazard gave, and not here: such as a file that was opened at import."""
        func = node.func if isinstance(node, ast.Call) else node
        return "()" in name and isinstance(func, ast.Attribute) and self.operands.is_from_outside(func.value)

    def _hooked(self, node: ast.Call, others: list[str]) -> None:
        """A method that a class inherits from others may call those that the class has."""
        func, lineage, owner = node.func, self.inference.lineage, self.scope.enclosing_class
        if not isinstance(func, ast.Attribute):
            return self._hooked_by_name(node, others)
        if _is_super(func.value):
            return self.hooks.call(owner, node) if owner is not None else None
        bases = [each.value for each in self.inference.infer(func.value, self.scope)]
        for base in bases:
            if isinstance(base, Instance | ClassValue):
                scope = base.of if isinstance(base, Instance) else base.scope
                if any(
                    isinstance(kin, Foreign) and f"{kin.name}.{func.attr}" in others for kin in lineage.order(scope)
                ):
                    self.hooks.call_all(scope, node)
            elif isinstance(base, Foreign):
                for heir in lineage.descendants(Foreign(base.name)):
                    self.notes.run(self.inference.methods(Instance(heir), func.attr), node, _NAME)
        if all(isinstance(base, ModuleValue) for base in bases):
            self._hooked_by_name(node, others)
        return None

    def _hooked_by_name(self, node: ast.Call, others: list[str]) -> None:
        """The same of a method that was taken from its class before, as in ``apply = Function.apply``."""
        for name in others:
            for heir in self.inference.lineage.descendants(Foreign(name.rpartition(".")[0])):
                self.hooks.call_all(heir, node)

    def unresolved(self, node: ast.Call) -> None:
        func = node.func
        doubt = self._doubt(func)
        if isinstance(func, ast.Attribute) and doubt is Doubt.DISPATCH:
            construct = self.table.methods.get(func.attr)
            if construct is not None:
                self.notes.use(construct, node.lineno, _NAME)
            for method in self.known.find_methods(func.attr, self.scope):
                self.notes.add(method, node.lineno, _NAME)
        if doubt is Doubt.MISSING and may_fail(self.notes.branch):
            doubt = Doubt.FALLBACK
        self.notes.gap(doubt, node, excerpt(func))

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


def _is_made_up(name: str, node: ast.Call) -> bool:
    """Whether a call asks for an attribute, or makes a class, whose name or bases are made at run time."""
    if name == "type":
        return len(node.args) == 3
    if name not in _ACCESSES:
        return False
    return len(node.args) < 2 or not (isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str))


def _is_made_here(node: ast.expr) -> bool:
    """Whether a call is of what another call has just given."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Call)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
