"""Where code is compiled as a whole, so that a graph break is an error: calls that say so, and those that may.

The table of hazards names the functions and the arguments that decide. A value is looked for behind names, imports,
mappings (``**options``) and parameters; where it is not known, the place is told as one that may be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchkit.audited import Compile, Place, Site, Use
from patchkit.bindings import Imported
from patchkit.classes import has_decorator
from patchkit.hazards import Argument, HazardTable, Whole
from patchkit.inference import Inference
from patchkit.programs import Module, Program, Scope, uncollected
from patchkit.syntax import excerpt
from patchkit.truths import Truths, holder_of, parameter_of
from patchkit.values import Foreign

Tick = Callable[[str, int, int], None]


def find_compiles(program: Program, names: Iterable[str], table: HazardTable, tick: Tick) -> list[Compile]:
    """All such places in the modules ``names``, sure ones first; only modules whose text may have one are parsed."""
    if not table.wholes:
        return []
    with uncollected():
        return sorted(set(_Finder(program, tuple(names), table).find(tick)))


@dataclass(frozen=True, slots=True)
class _Call:
    """A call, with ``partial(f, ...)`` taken as a call of ``f``."""

    node: ast.Call
    func: ast.expr
    args: Sequence[ast.expr]
    scope: Scope

    @property
    def name(self) -> str:
        return _last(self.func)

    @property
    def stars(self) -> list[ast.expr]:
        """What is handed in as ``**mapping``."""
        return [keyword.value for keyword in self.node.keywords if keyword.arg is None]

    def given(self, argument: Argument) -> list[tuple[ast.expr, str]]:
        """What is handed in for ``argument``; with a key where it is a mapping that may have it."""
        value = argument.given(self.args, self.node.keywords)
        return [(value, "")] if value is not None else [(star, argument.name) for star in self.stars]

    def site(self, argument: str, value: ast.expr, key: str = "") -> Site:
        place = Place(self.scope.module.source.path, value.lineno)
        text = f"**{excerpt(value)}" if key else f"{argument}={excerpt(value)}"
        return Site(place, self.scope.qualname, Use.CALL, f"{excerpt(self.func)}({text})")


class _Mention:
    """What a text has at the least that compiles something with a function of the table."""

    def __init__(self, name: str, whole: Whole) -> None:
        *path, last = (re.escape(part.encode()) for part in name.split("."))
        top, argument = path[0], whole.argument
        always = argument is None or argument.position is not None
        self._words = (name.partition(".")[0].encode(), name.rpartition(".")[2].encode())
        self._deciding = () if always or argument is None else (argument.name.encode(), b"**")
        self._named = argument.name.encode() if argument is not None and whole.by_name else b""
        self._patterns = [
            re.compile(rb"%b[ \t]*\.[ \t]*%b\b" % (path[-1], last)),
            re.compile(rb"from[ \t]+%b\b[\w.]*[ \t]+import\b(?:[ \t]*\([^)]*|[^\n]*)\b%b\b" % (top, last)),
            re.compile(rb"\.%b\([^()\n]*\*\*" % last),
        ]
        self._renamed = re.compile(rb"%b\b[\w.]*[ \t]+(?:import[ \t]+\w+[ \t]+)?as\b" % top)

    def is_in(self, data: bytes) -> bool:
        if self._named and self._named in data and re.search(rb"\b%b\b" % re.escape(self._named), data):
            return True
        if not all(word in data for word in self._words):
            return False
        if self._deciding and not any(word in data for word in self._deciding):
            return False
        return any(pattern.search(data) for pattern in self._patterns) or bool(
            b"." + self._words[1] in data and self._renamed.search(data)
        )


class _Finder:
    def __init__(self, program: Program, names: Sequence[str], table: HazardTable) -> None:
        self.program = program
        self.names = names
        self.table = table
        self.inference = Inference(program, table)
        self.truths = Truths(self.inference)
        self.by_name = {each.argument.name for each in table.wholes.values() if each.by_name and each.argument}
        self.arguments = {each.argument.name for each in table.wholes.values() if each.argument}
        self.lasts = {name.rpartition(".")[2] for name in table.wholes}
        self._asked: set[tuple[Scope, str]] = set()

    def find(self, tick: Tick) -> Iterator[Compile]:
        mentions = [_Mention(name, whole) for name, whole in self.table.wholes.items()]
        for index, name in enumerate(self.names):
            tick("looking for compile calls", index, len(self.names))
            data = self.program.data(name) or b""
            if any(each.is_in(data) for each in mentions):
                module = self.program.module(name)
                for scope in module.scopes if module is not None else ():
                    yield from self._in_scope(scope)

    def _in_scope(self, scope: Scope) -> Iterator[Compile]:
        path = scope.module.source.path
        for node in own_nodes(scope.node):
            if isinstance(node, ast.Call):
                yield from self._in_call(self._read(node, scope))
            elif isinstance(node, ast.Dict):
                yield from self._in_mapping(node, scope)
        for parameter, default in _defaults(scope.node):
            if parameter.arg in self.by_name and self.truths.of(default, scope.parent or scope):
                text = f"def {scope.name}({parameter.arg}={excerpt(default)})"
                yield Compile(Site(Place(path, parameter.lineno), scope.qualname, Use.VALUE, text), sure=True)

    def _read(self, node: ast.Call, scope: Scope) -> _Call:
        if node.args and self._is_partial(node.func, scope):
            return _Call(node, node.args[0], node.args[1:], scope)
        return _Call(node, node.func, node.args, scope)

    def _is_partial(self, func: ast.expr, scope: Scope) -> bool:
        names = {Foreign("functools.partial"), Foreign("functools.partialmethod")}
        return _last(func).startswith("partial") and any(
            each.value in names for each in self.inference.infer(func, scope)
        )

    def _in_mapping(self, node: ast.Dict, scope: Scope) -> Iterator[Compile]:
        """A mapping that has the argument: handed to some call, perhaps to one that compiles."""
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in self.by_name and self.truths.of(value, scope) is True:
                text = f"{{{key.value!r}: {excerpt(value)}}}"
                place = Place(scope.module.source.path, value.lineno)
                yield Compile(Site(place, scope.qualname, Use.VALUE, text), sure=False)

    # ---- calls ------------------------------------------------------------------------------------------------

    def _in_call(self, call: _Call) -> Iterator[Compile]:
        for keyword in call.node.keywords:
            if keyword.arg in self.by_name and self.truths.of(keyword.value, call.scope):
                yield Compile(call.site(keyword.arg, keyword.value), sure=True)
        for whole in self._wholes(call):
            yield from self._in_known_call(call, whole)

    def _wholes(self, call: _Call) -> list[Whole]:
        """What the table says of the function that is called; of an unknown object the method's name is enough."""
        keywords = {each.arg for each in call.node.keywords}
        if call.name not in self.lasts and not self._is_alias(call) and not (keywords & self.arguments):
            return []
        found = self.inference.infer(call.func, call.scope)
        names = {each.value.name for each in found if isinstance(each.value, Foreign)} & self.table.wholes.keys()
        if not found and isinstance(call.func, ast.Attribute) and keywords & self.by_name:
            names = {name for name in self.table.wholes if name.rpartition(".")[2] == call.name}
        return list({id(whole): whole for whole in map(self.table.wholes.__getitem__, sorted(names))}.values())

    def _is_alias(self, call: _Call) -> bool:
        if not isinstance(call.func, ast.Name):
            return False
        holder = holder_of(call.func.id, call.scope)
        bound = holder.namespace.names[call.func.id] if holder is not None else ()
        return any(not isinstance(each, Imported) or each.name in self.lasts for each in bound) and bool(
            call.stars or any(keyword.arg in self.arguments for keyword in call.node.keywords)
        )

    def _in_known_call(self, call: _Call, whole: Whole) -> Iterator[Compile]:
        argument = whole.argument
        if argument is None:
            place = Place(call.scope.module.source.path, call.node.lineno)
            yield Compile(Site(place, call.scope.qualname, Use.CALL, f"{excerpt(call.func)}()"), sure=True)
            return
        for value, key in call.given(argument):
            yield from self._told(call, argument.name, value, key)

    def _told(self, call: _Call, name: str, value: ast.expr, key: str) -> Iterator[Compile]:
        """What a call comes to that has ``value`` for ``name``, or for a mapping whose ``key`` counts."""
        answer = self._truth(value, call.scope, key)
        if answer:
            yield Compile(call.site(name, value, key), sure=True)
        elif answer is None:
            handed = self._handed_in(value, call.scope, key)
            yield from [Compile(call.site(name, value, key), sure=False)] if handed is None else handed

    def _truth(self, value: ast.expr, scope: Scope, key: str) -> bool | None:
        return self.truths.of_key(value, scope, key) if key else self.truths.of(value, scope)

    # ---- parameters -------------------------------------------------------------------------------------------

    def _handed_in(self, value: ast.expr, scope: Scope, key: str) -> list[Compile] | None:
        """Where the program says what ``value``, a parameter, is; None: it is none, or nothing says it."""
        parameter = parameter_of(value, scope)
        if parameter is None:
            return None
        if parameter in self._asked:
            return []
        self._asked.add(parameter)
        function, own = parameter
        if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        rest = function.node.args.kwarg
        is_rest = rest is not None and rest.arg == own
        found: list[Compile] = []
        calls = list(self._calls_of(function))
        for call, shift in calls:
            argument = Argument(key) if is_rest else Argument(own, _position(function.node, own, shift))
            for given, inner in call.given(argument):
                found += self._told(call, argument.name, given, inner if is_rest else inner or key)
        for each, default in _defaults(function.node):
            if each.arg == own and self._truth(default, function.parent or function, key):
                place = Place(function.module.source.path, each.lineno)
                text = f"def {function.name}({own}={excerpt(default)})"
                found.append(Compile(Site(place, function.qualname, Use.VALUE, text), sure=True))
        return found if calls or found else None

    def _calls_of(self, function: Scope) -> Iterator[tuple[_Call, int]]:
        """The calls in the program that go by the name of ``function``, each with the parameters that it leaves out."""
        owner = function.owner
        is_made = owner is not None and function.name in ("__init__", "__new__")
        is_bound = owner is not None and not has_decorator(function, "staticmethod")
        name = owner.name if owner is not None and is_made else function.name
        if name.startswith("__"):
            return
        word = re.escape(name.encode())
        called = re.compile(rb"(?<!\bre\.)\b%b[ \t]*\(|\bpartial\w*\([^()]*\b%b\b" % (word, word))
        is_local = function.parent is not None and function.parent.is_function
        for each in (function.module.name,) if is_local else self.names:
            if called.search(self.program.data(each) or b""):
                module = self.program.module(each)
                for call in self._calls_in(module) if module is not None else ():
                    if call.name == name:
                        yield call, int(is_made or (is_bound and isinstance(call.func, ast.Attribute)))

    def _calls_in(self, module: Module) -> Iterator[_Call]:
        for scope in module.scopes:
            for node in own_nodes(scope.node):
                if isinstance(node, ast.Call):
                    yield self._read(node, scope)


def _position(node: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str, shift: int) -> int | None:
    """Where a call hands a parameter in without its name; ``shift`` parameters in front are left out (``self``)."""
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)][shift:]
    return positional.index(parameter) if parameter in positional else None


def _last(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes inside it; decorators belong to the scope around."""
    own_decorators = set(map(id, getattr(node, "decorator_list", ())))
    stack = [child for child in ast.iter_child_nodes(node) if id(child) not in own_decorators]
    while stack:
        inner = stack.pop()
        yield inner
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stack += inner.decorator_list
        elif not isinstance(inner, ast.Lambda):
            stack += ast.iter_child_nodes(inner)


def _defaults(node: ast.AST) -> Iterator[tuple[ast.arg, ast.expr]]:
    arguments = getattr(node, "args", None)
    if isinstance(arguments, ast.arguments):
        positional = [*arguments.posonlyargs, *arguments.args]
        yield from zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                yield each, default
