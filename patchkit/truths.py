"""Whether an expression is true, as far as text tells: constants, and what only constants are bound to.

Three answers: true, false, and None where that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from patchkit.bindings import Assigned, Binding, Imported, Parameter, in_force, own_expressions
from patchkit.branches import Block, Branch, walk
from patchkit.classes import first_parameter, own_attributes
from patchkit.definitions import locate_all
from patchkit.inference import Inference
from patchkit.programs import Scope
from patchkit.syntax import excerpt
from patchkit.values import ClassValue, Instance, ModuleValue

_DEEPEST = 20


class Truths:
    """Answers for one program."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._depth = 0

    def of(self, node: ast.expr, scope: Scope) -> bool | None:
        """Whether ``node``, which stands in ``scope``, is true."""
        if self._depth > _DEEPEST:
            return None
        self._depth += 1
        try:
            return self._of(node, scope)
        finally:
            self._depth -= 1

    def _of(self, node: ast.expr, scope: Scope) -> bool | None:
        match node:
            case ast.Constant(value=value):
                return bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.of(operand, scope)
                return None if inner is None else not inner
            case ast.BoolOp(op=op, values=values):
                decisive = isinstance(op, ast.Or)
                found = [self.of(each, scope) for each in values]
                return decisive if decisive in found else None if None in found else not decisive
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = self.of(test, scope)
                chosen = (body, orelse) if truth is None else (body,) if truth else (orelse,)
                return agreed(self.of(each, scope) for each in chosen)
            case ast.NamedExpr(value=value) | ast.Call(func=ast.Name(id="bool"), args=[value], keywords=[]):
                return self.of(value, scope)
            case ast.Name() | ast.Attribute():
                return agreed(None if each is None else self.of(*each) for each in self.values(node, scope))
            case _:
                return None

    def of_key(self, node: ast.expr, scope: Scope, key: str) -> bool | None:
        """Whether what the mapping ``node`` has for ``key`` is true; false where it has no such key."""
        if self._depth > _DEEPEST:
            return None
        self._depth += 1
        try:
            found = list(self._entries(node, scope, key))
        finally:
            self._depth -= 1
        return agreed(found) if found else False

    def _entries(self, node: ast.expr, scope: Scope, key: str) -> Iterator[bool | None]:
        """What ``key`` may be in a mapping, one answer for each way; nothing: it is not in it."""
        match node:
            case ast.Dict(keys=keys, values=values):
                found: list[bool | None] = []
                for name, value in zip(keys, values, strict=True):
                    if name is None:
                        found = list(self._entries(value, scope, key)) or found
                    elif not isinstance(name, ast.Constant):
                        found = [None]
                    elif name.value == key:
                        found = [self.of(value, scope)]
                yield from found
            case ast.Call(func=ast.Name(id="dict"), args=args, keywords=keywords):
                found = [each for one in args for each in self._entries(one, scope, key)]
                for keyword in keywords:
                    if keyword.arg == key:
                        found = [self.of(keyword.value, scope)]
                    elif keyword.arg is None:
                        found = list(self._entries(keyword.value, scope, key)) or found
                yield from found
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                yield from list(self._entries(right, scope, key)) or self._entries(left, scope, key)
            case ast.IfExp(body=left, orelse=right) | ast.BoolOp(values=[left, right]):
                yield self.of_key(left, scope, key)
                yield self.of_key(right, scope, key)
            case ast.Name() | ast.Attribute():
                put = list(
                    self._put(node.id, scope, key) if isinstance(node, ast.Name) else self._put_in(node, scope, key)
                )
                yield from (self.of(value, holder) for value, holder, _ in put)
                if all(branch for _, _, branch in put):
                    for each in self.values(node, scope):
                        yield None if each is None else self.of_key(*each, key)
            case _:
                yield None

    def _put(self, name: str, scope: Scope, key: str) -> Iterator[tuple[ast.expr, Scope, Branch]]:
        """What the scope that binds ``name`` puts into it for ``key``: ``name[key] = value``, ``name.update(...)``."""
        holder = holder_of(name, scope)
        if holder is not None:
            yield from _filled(name, holder, key)

    def _put_in(self, node: ast.Attribute, scope: Scope, key: str) -> Iterator[tuple[ast.expr, Scope, Branch]]:
        """The same for an attribute, in all methods of its class: when each runs is not known, so nothing is sure."""
        for base in (found.value for found in self._inference.infer(node.value, scope)):
            of = base.of if isinstance(base, Instance) else base.scope if isinstance(base, ClassValue) else None
            for kin in self._inference.ancestors(of) if of is not None else ():
                for method in kin.inner if isinstance(kin, Scope) else ():
                    text = f"{first_parameter(method)}.{node.attr}"
                    yield from ((value, holder, _SOMETIMES) for value, holder, _ in _filled(text, method, key))

    # ---- names ------------------------------------------------------------------------------------------------

    def values(self, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[tuple[ast.expr, Scope] | None]:
        """The expressions that a name or an attribute is bound to, each with its scope; None: to something else."""
        match node:
            case ast.Name(id=name):
                holder = holder_of(name, scope)
                bound = holder.namespace.names[name] if holder is not None else ()
                if holder is None or name in holder.module.declared_outer:
                    yield None
                    return
                for binding in bound if holder.is_function else in_force(bound, lambda value: False):
                    yield from self._bound(binding, holder)
            case ast.Attribute(value=value, attr=name):
                bases = [found.value for found in self._inference.infer(value, scope)]
                if not bases:
                    yield None
                for base in bases:
                    match base:
                        case ModuleValue(name=module):
                            yield from self._of_module(module, name)
                        case Instance(of=of) | ClassValue(scope=of):
                            yield from self._of_class(of, name)
                        case _:
                            yield None

    def _bound(self, binding: Binding, holder: Scope) -> Iterator[tuple[ast.expr, Scope] | None]:
        match binding:
            case Assigned(value=ast.expr() as value, element=False):
                yield value, holder
            case Assigned(value=None, annotation=ast.expr()):
                return
            case Imported(module=module, name=name):
                yield from self._of_module(module, name)
            case _:
                yield None

    def _of_module(self, module: str, name: str) -> Iterator[tuple[ast.expr, Scope] | None]:
        found = list(locate_all(self._inference.program, module, name))
        if not found:
            yield None
        for each in found:
            match each.binding:
                case Assigned(value=ast.expr() as value, element=False):
                    yield value, each.module.scope
                case _:
                    yield None

    def _of_class(self, scope: Scope, name: str) -> Iterator[tuple[ast.expr, Scope] | None]:
        """What a class and its methods bind an attribute to; an annotated one may be set by whoever makes an object."""
        anything = False
        for each in self._inference.ancestors(scope):
            if isinstance(each, Scope):
                for binding in each.namespace.names.get(name, ()):
                    anything = True
                    is_field = isinstance(binding, Assigned) and binding.annotation is not None
                    yield from (None,) if is_field else self._bound(binding, each)
                for method, value, _ in own_attributes(each).get(name, ()):
                    anything = True
                    yield None if value is None else (value, method)
        if not anything:
            yield None


_SOMETIMES: Branch = (Block("method"),)


def _filled(text: str, holder: Scope, key: str) -> Iterator[tuple[ast.expr, Scope, Branch]]:
    """What ``holder`` puts for ``key`` into the mapping that it writes as ``text``."""
    for placed in walk(getattr(holder.node, "body", ())) if not isinstance(holder.node, ast.Lambda) else ():
        match placed.node:
            case ast.Assign(targets=[ast.Subscript(value=target, slice=ast.Constant(value=written))], value=value) if (
                written == key and excerpt(target) == text
            ):
                yield value, holder, placed.branch
            case ast.Delete(targets=[ast.Subscript(value=target, slice=ast.Constant(value=written))]) if (
                written == key and excerpt(target) == text
            ):
                yield ast.Constant(value=False), holder, _SOMETIMES  # it may be used before
            case ast.AugAssign(target=target, op=ast.BitOr(), value=value) if excerpt(target) == text:
                yield from ((each, holder, placed.branch) for each in _of_pairs(value, key))
        for call in own_expressions(placed.node):
            match call:
                case ast.Call(func=ast.Attribute(value=target, attr="update" | "setdefault")) if (
                    excerpt(target) == text
                ):
                    given = [keyword.value for keyword in call.keywords if keyword.arg == key]
                    match call.args:
                        case [ast.Constant(value=written), value] if written == key:
                            given.append(value)
                        case [value]:
                            given += _of_pairs(value, key)
                    yield from ((value, holder, placed.branch) for value in given)


def _of_pairs(node: ast.expr, key: str) -> list[ast.expr]:
    """What a display has for ``key``: a mapping, or pairs of keys and values."""
    match node:
        case ast.Dict(keys=keys, values=values):
            return [value for one, value in zip(keys, values, strict=True) if getattr(one, "value", None) == key]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            pairs = (each.elts for each in elements if isinstance(each, ast.Tuple | ast.List) and len(each.elts) == 2)
            return [value for one, value in pairs if getattr(one, "value", None) == key]
        case _:
            return []


def agreed(found: Iterable[bool | None]) -> bool | None:
    """The one answer that all give, None where they differ or there is none."""
    answers = set(found)
    return answers.pop() if len(answers) == 1 else None


def holder_of(name: str, scope: Scope) -> Scope | None:
    """The scope that binds ``name`` for ``scope``: scopes of classes are not seen from below."""
    holder: Scope | None = scope
    while holder is not None:
        bound = name in holder.namespace.names and name not in holder.namespace.outer
        if bound and (not holder.is_class or holder is scope):
            return holder
        holder = holder.parent
    return None


def parameter_of(node: ast.expr, scope: Scope) -> tuple[Scope, str] | None:
    """The function and its parameter that a name stands for, None where it stands for anything else as well."""
    if not isinstance(node, ast.Name):
        return None
    holder = holder_of(node.id, scope)
    bound = holder.namespace.names[node.id] if holder is not None else ()
    is_parameter = len(bound) == 1 and isinstance(bound[0], Parameter)
    return (holder, node.id) if holder is not None and is_parameter else None
