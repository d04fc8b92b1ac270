"""Modules of the caller that import nothing of a distribution and get something of it all the same: from own modules.

A function of an own module that returns an object of the distribution, a class that keeps one or inherits from it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from patchkit.audited import Doubt, Place, Unknown
from patchkit.bindings import Imported
from patchkit.classes import own_attributes, return_values
from patchkit.inference import Inference
from patchkit.programs import Program, Scope
from patchkit.syntax import excerpt
from patchkit.values import UNCLEAR, ClassValue, FunctionValue, Instance, ModuleValue, Record, Value

_MOST = 400  # attributes of one class that are looked at
_MOST_MODULES = 24  # that get something: where there are more, what these hand on is counted, and not followed


class Carriers:
    """Tells what carries something of the distributions ``subjects`` into modules that import it."""

    def __init__(self, program: Program, inference: Inference, subjects: frozenset[str]) -> None:
        self._program = program
        self._inference = inference
        self._subjects = subjects
        self._known: dict[Value, bool] = {}

    def find(self, bound: Mapping[str, Sequence[Imported]], concerned: Iterable[str]) -> Iterator[str]:
        """Those of the modules in ``bound``, each with its imports, that get something from the ``concerned`` ones.

        Those that get it from these in turn too, where they are few: half of a large caller hangs together so, and
        `unsure` tells of the others.
        """
        fresh = sources = set(concerned)
        waiting = {name for name in bound if name not in sources}
        looked_at: set[str] = set()
        while fresh:
            found = {name for name in waiting if any(self._brings(each, fresh) for each in bound[name])}
            found |= {name for source in sorted(fresh) for name in self._passed(source)} & waiting
            if looked_at and len(looked_at | found) > _MOST_MODULES:
                return
            yield from sorted(found)
            waiting -= found
            looked_at |= found
            fresh = found

    def unsure(self, bound: Mapping[str, Sequence[Imported]], looked_at: Iterable[str]) -> Iterator[Unknown]:
        """Where other modules import from those ``looked_at`` what carries something, or gives nobody knows what."""
        sources = set(looked_at)
        for name, bindings in bound.items():
            for binding in bindings if name not in sources else ():
                for found in self._imports(binding, sources):
                    if self._carries(found) or (isinstance(found, FunctionValue) and self._is_unsure(found.scope)):
                        place = Place(self._program.sources[name].path, binding.line)
                        yield Unknown(place, Doubt.INDIRECT, "", f"{binding.module}.{binding.name}".rstrip("."))
                    elif isinstance(found, Record) and self._has_any(found):
                        place = Place(self._program.sources[name].path, binding.line)
                        yield Unknown(place, Doubt.INDIRECT, "", f"{binding.module}.{binding.name}")

    def kept(self, bound: Mapping[str, Sequence[Imported]], looked_at: Iterable[str]) -> Iterator[Unknown]:
        """Where modules that are ``looked_at`` give something of the distributions to what another own module has:
        put into it, handed to its methods, registered by a decorator of it, or in a class that inherits from it."""
        sources = set(looked_at)
        for name in sorted(sources) if bound.keys() - sources else ():
            module = self._program.module(name)
            others = bound.keys() - {name}
            for scope in module.scopes if module is not None else ():
                for node, _ in scope.nodes:
                    if self._gives(node, scope, others):
                        place = Place(scope.module.source.path, getattr(node, "lineno", 1))
                        yield Unknown(place, Doubt.INDIRECT, scope.runs_in, excerpt(node).partition("\n")[0])

    def _gives(self, node: ast.AST, scope: Scope, others: Collection[str]) -> bool:
        match node:
            case ast.Assign(targets=[ast.Attribute(value=holder) | ast.Subscript(value=holder)], value=value):
                return self._is_of(holder, scope, others) and self._may_carry(value, scope)
            case ast.Call(func=ast.Attribute(value=holder), args=args, keywords=keywords):
                given = [*args, *(keyword.value for keyword in keywords)]
                return self._is_of(holder, scope, others) and any(self._may_carry(each, scope) for each in given)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                made = scope.child(node)
                taking = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else ())]
                itself: Value = ClassValue(made) if made.is_class else FunctionValue(made)
                return any(self._is_of(each, scope, others) for each in taking) and self._carries(itself)
            case _:
                return False

    def _is_of(self, node: ast.expr, scope: Scope, others: Collection[str]) -> bool:
        """Whether what a dotted name begins with is imported from one of ``others``, or of a class of these."""
        root = node
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        holder: Scope | None = scope if isinstance(root, ast.Name) else None
        while holder is not None:
            for binding in holder.namespace.names.get(getattr(root, "id", ""), ()):
                if isinstance(binding, Imported):
                    return binding.module in others or f"{binding.module}.{binding.name}" in others
            holder = holder.parent
        found = [each.value for each in self._inference.infer(root, scope)] if isinstance(root, ast.Name) else []
        return any(isinstance(each, Instance) and each.of.module.name in others for each in found)

    def _may_carry(self, node: ast.expr, scope: Scope) -> bool:
        return any(self._carries(each.value) for each in self._inference.infer(node, scope))

    def _is_unsure(self, scope: Scope) -> bool:
        node = scope.node
        if any(isinstance(each, ast.Yield | ast.YieldFrom) for each, _ in scope.nodes):
            return True
        given = return_values(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
        returned = self._inference.returned(scope)
        return any(not isinstance(each, ast.Constant) for each in given) and (not returned or UNCLEAR in returned)

    def _has_any(self, record: Record) -> bool:
        """Whether a list or table holds something of the distributions, or what is not known."""
        inner = [each for each in ast.iter_child_nodes(record.node) if isinstance(each, ast.expr)]
        return any(self._may_carry(each, record.scope) for each in inner)

    def _imports(self, binding: Imported, sources: set[str]) -> list[Value]:
        inner = f"{binding.module}.{binding.name}"
        if binding.module not in sources and inner not in sources:
            return []
        name = "" if binding.name == "*" else binding.name
        return [found.value for found in self._inference.imported(binding.module, name)]

    def _brings(self, binding: Imported, sources: set[str]) -> bool:
        return any(self._carries(value) for value in self._imports(binding, sources))

    def _passed(self, source: str) -> Iterator[str]:
        """The modules whose functions a module hands something to."""
        module = self._program.module(source)
        for scope in module.scopes if module is not None else ():
            for node, _ in scope.nodes:
                if isinstance(node, ast.Call):
                    targets = {each for each in self._targets(node, scope) if each != source}
                    handed = [*node.args, *(keyword.value for keyword in node.keywords)] if targets else []
                    found = (each.value for value in handed for each in self._inference.infer(value, scope))
                    if any(self._carries(value) for value in found):
                        yield from targets

    def _targets(self, node: ast.Call, scope: Scope) -> Iterator[str]:
        for found in self._inference.infer(node.func, scope):
            if isinstance(found.value, FunctionValue | ClassValue):
                yield found.value.scope.module.name

    def _carries(self, value: Value) -> bool:
        if value not in self._known:
            self._known[value] = False  # where it is asked for again on the way
            self._known[value] = self._is_ours(value) or any(self._carries(each) for each in self._behind(value))
        return self._known[value]

    def _is_ours(self, value: Value) -> bool:
        match value:
            case ModuleValue(name=name):
                return self._program.owner(name) in self._subjects
            case FunctionValue(scope=scope) | ClassValue(scope=scope) | Instance(of=scope):
                return scope.module.source.distribution in self._subjects
            case _:
                return False

    def _behind(self, value: Value) -> Iterator[Value]:
        """What is got from a value: of a function what it returns, of a class what it inherits from and keeps."""
        match value:
            case FunctionValue(scope=scope):
                yield from (found.value for found in self._inference.returned(scope))
            case ClassValue(scope=scope) | Instance(of=scope):
                kin = [each for each in self._inference.lineage.order(scope) if isinstance(each, Scope)]
                yield from (ClassValue(each) for each in kin if each is not scope)
                yield from (FunctionValue(method) for method in scope.inner if method.owner is scope)
                for name in [*own_attributes(scope), *scope.namespace.names][:_MOST]:
                    yield from (found.value for found in self._inference.member(Instance(scope), name))
            case ModuleValue(name=name) if self._program.owner(name) == "":
                module = self._program.module(name)
                for each in module.scope.namespace.names if module is not None else ():
                    yield from (found.value for found in self._inference.imported(name, each))
