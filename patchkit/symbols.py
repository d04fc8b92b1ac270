"""Static checks of a symbol's source: find its definitions, compare as syntax (`syntax`). Nothing of it is run.

**Definitions.** A dotted symbol is looked up scope by scope. In a scope (module, class or function body) a name is
defined by a function, a class or an assignment, also inside ``if``, ``try``, ``with``, ``for``, ``while`` and
``match``. An import does not define it. Of several definitions of one name these are left aside as long as others
remain: stubs (a body of ``...``, ``pass`` or one ``raise``; ``@overload``; a bare annotation; anything under
``if TYPE_CHECKING``), accessors of a property (``@name.setter``), and assignments where a function or class has the
name. *Every* definition that remains must pass: which branch runs is not known here.

**Where is looked.** ``has`` and ``lacks`` speak of the whole definition: decorators, signature, docstring and body.
``starts_with`` speaks of the first statement behind the docstring. ``decorators`` must be there in this order, others
may stand between them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from patchkit.patchset import SymbolCheck
from patchkit.syntax import (
    PARSE_ERRORS,
    Pattern,
    bare,
    excerpt,
    find_keyword,
    parse,
    read_decorator,
    read_pattern,
    short,
    trouble,
    words,
)

_Scope: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


@dataclass(frozen=True, slots=True)
class SymbolVerdict:
    """Whether a check passed; ``message`` says what was looked for, where, and what was found instead."""

    passed: bool
    message: str


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    node: _Scope | ast.stmt
    stub: bool

    @property
    def assigned(self) -> bool:
        return not isinstance(self.node, _Scope)

    @property
    def place(self) -> str:
        return "the module" if isinstance(self.node, ast.Module) else f"{self.name} (line {self.node.lineno})"


# ---- the check as text ----------------------------------------------------------------------------------------


def module_paths(module: str) -> tuple[str, str]:
    """The two files that may hold a module, the one that an import prefers first: a package, then a file."""
    stem = module.replace(".", "/")
    return f"{stem}/__init__.py", f"{stem}.py"


def validate(check: SymbolCheck) -> list[str]:
    """What is wrong with a check's own text, each problem with its key in front; empty where nothing is."""
    problems = []
    if not _is_dotted(check.module):
        problems.append(f'module: "{check.module}" is not a dotted module name')
    if check.symbol and not _is_dotted(check.symbol):
        problems.append(f'symbol: "{check.symbol}" is not a dotted name, such as "Class.method"')
    if not (check.symbol or check.starts_with or check.has or check.lacks):
        problems.append("symbol: name a symbol, or say what the module starts-with, has or lacks")
    if check.decorators and not check.symbol:
        problems.append("decorators: a module has none; name a symbol")
    patterns = [("starts-with", check.starts_with)] if check.starts_with else []
    patterns += _numbered("has", check.has) + _numbered("lacks", check.lacks)
    problems += [f"{key}: {why}" for key, text in patterns if (why := trouble(text, read_pattern))]
    decorators = _numbered("decorators", check.decorators)
    return problems + [f"{key}: {why}" for key, text in decorators if (why := trouble(text, read_decorator))]


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _numbered(key: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"{key}[{index}]", text) for index, text in enumerate(texts)]


# ---- the verdict ----------------------------------------------------------------------------------------------


def evaluate(check: SymbolCheck, source: bytes, *, path: str) -> SymbolVerdict:
    """Whether ``source`` (the bytes of ``path``, in any encoding that Python reads) is as ``check`` says.

    Never raises for what is in ``source``: what the running Python cannot parse has failed. ``check`` must be valid
    (`validate`).
    """
    try:
        problems = _problems(check, parse(source))
    except PARSE_ERRORS as error:
        running = "Python {}.{}.{}".format(*sys.version_info)
        return SymbolVerdict(False, f"{path}: {running} cannot parse it: {words(error)}")
    if problems:
        return SymbolVerdict(False, f"{path}: " + "; ".join(problems))
    return SymbolVerdict(True, f"{path}: {check.symbol or 'the module'} {_claim(check)}")


def _claim(check: SymbolCheck) -> str:
    claims = [f"starts with `{short(check.starts_with)}`"] if check.starts_with else []
    claims += [f"has `{short(text)}`" for text in check.has]
    claims += [f"lacks `{short(text)}`" for text in check.lacks]
    claims += [f"is decorated with `{short(text)}`" for text in check.decorators]
    return ", ".join(claims) or "is defined"


def _problems(check: SymbolCheck, module: ast.Module) -> list[str]:
    definitions, absence = _find(module, check.symbol)
    if absence:
        return [absence]
    starts = [read_pattern(check.starts_with)] if check.starts_with else []
    has, lacks = [read_pattern(text) for text in check.has], [read_pattern(text) for text in check.lacks]
    decorators = [read_decorator(text) for text in check.decorators]
    problems: list[str] = []
    for definition in definitions:
        problems += [_wrong_start(definition, pattern) for pattern in starts]
        problems += [_not_there(definition, pattern) for pattern in has]
        problems += [_still_there(definition, pattern) for pattern in lacks]
        problems.append(_wrong_decorators(definition, decorators))
    return [problem for problem in problems if problem]


def _wrong_start(definition: _Definition, pattern: Pattern) -> str:
    wanted = f"{definition.place} should start with `{short(pattern.text)}`"
    if not isinstance(definition.node, _Scope):
        return f"{wanted}, but it is an assignment, which has no body"
    body = _behind_docstring(definition.node)
    if not body:
        return f"{wanted}, but its body is empty"
    return "" if pattern.matches(bare(body[0])) else f"{wanted}, but starts with `{excerpt(body[0])}`"


def _not_there(definition: _Definition, pattern: Pattern) -> str:
    if any(pattern.matches(node) for node in ast.walk(definition.node)):
        return ""
    told = f"`{short(pattern.text)}` is not in {definition.place}, where it should be"
    call = find_keyword(pattern, definition.node)
    if call is None:
        return told
    return f"{told}: it is read as an assignment, and a keyword argument is written with its call, `{excerpt(call)}`"


def _still_there(definition: _Definition, pattern: Pattern) -> str:
    for node in ast.walk(definition.node):
        if pattern.matches(node):
            line = f", at line {node.lineno}" if isinstance(node, ast.expr | ast.stmt) else ""
            return f"`{short(pattern.text)}` is in {definition.place}{line}, where it should not be"
    return ""


def _wrong_decorators(definition: _Definition, patterns: Sequence[Pattern]) -> str:
    found = _decorators(definition.node)
    rest = iter(found)
    if all(any(pattern.matches(node) for node in rest) for pattern in patterns):
        return ""
    wanted = ", ".join(f"`@{short(pattern.text)}`" for pattern in patterns)
    instead = ", ".join(f"`@{excerpt(node)}`" for node in found) or "nothing"
    order = " in this order" if len(patterns) > 1 else ""
    return f"{definition.place} should be decorated by {wanted}{order}, but is decorated by {instead}"


# ---- definitions ----------------------------------------------------------------------------------------------


def defines(module: ast.Module, symbol: str) -> bool:
    """Whether ``symbol`` (dotted) has a definition in ``module`` that is neither a stub nor an assignment."""
    definitions, _ = _find(module, symbol)
    return any(not one.stub and not one.assigned for one in definitions)


def _find(module: ast.Module, symbol: str) -> tuple[list[_Definition], str]:
    """The definitions of ``symbol`` that count, or in words why there is none."""
    found, name = [_Definition("", module, stub=False)], ""
    for part in symbol.split(".") if symbol else ():
        name = f"{name}.{part}" if name else part
        scopes = [one.node for one in found if isinstance(one.node, _Scope)]
        definitions = [
            _Definition(name, statement, typing_only or _is_stub(statement))
            for scope in scopes
            for statement, typing_only in _statements(scope)
            if part in _names(statement)
        ]
        if not definitions:
            return [], f"{name} is not defined: " + _absence(scopes, found[0].place, part)
        found = _that_count(definitions, part)
    return found, ""


def _that_count(definitions: list[_Definition], name: str) -> list[_Definition]:
    own = [one for one in definitions if not _is_accessor(one.node, name)] or definitions
    real = [one for one in own if not one.stub] or own
    return [one for one in real if not one.assigned] or real


def _absence(scopes: Sequence[_Scope], place: str, name: str) -> str:
    if not scopes:
        return f"{place} is an assignment, which has no body"
    statements = [statement for scope in scopes for statement, _ in _statements(scope)]
    imported = next((statement for statement in statements if _imports(statement, name)), None)
    if imported is not None:
        return f"only imported here, at line {imported.lineno} (`{excerpt(imported)}`)"
    return f"there is no {name} in {place}" + _closest(statements, name)


def _closest(statements: Sequence[ast.stmt], name: str) -> str:
    import difflib  # only for a message

    names = sorted({known for statement in statements for known in _names(statement)})
    close = difflib.get_close_matches(name, names, n=1)
    return f"; the closest name is {close[0]}" if close else ""


def _statements(scope: _Scope) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements of one scope in order, each with whether it is for type checkers only.

    Compound statements are looked into, functions and classes (scopes of their own) are not.
    """
    stack: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(scope.body)]
    while stack:
        node, typing_only = stack.pop()
        if isinstance(node, ast.stmt):
            yield node, typing_only
        if isinstance(node, _Scope):
            continue
        inner: list[tuple[ast.AST, bool]] = []
        for block in _BLOCKS:
            only = typing_only or (block == "body" and _is_for_type_checkers(node))
            children = getattr(node, block, None)
            inner += [(child, only) for child in children] if isinstance(children, list) else []
        stack += reversed(inner)


def _names(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement defines by ``def``, ``class``, assignment or ``type``."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return frozenset({name})
        case ast.Assign(targets=targets):
            return frozenset(name for target in targets for name in _target_names(target))
        case ast.AnnAssign(target=target):
            return frozenset(_target_names(target))
        case _ if type(statement).__name__ == "TypeAlias":  # ast.TypeAlias came with Python 3.12
            return frozenset(_target_names(getattr(statement, "name", None)))
        case _:
            return frozenset()


def _target_names(target: object) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _target_names(element)
        case ast.Starred(value=value):
            yield from _target_names(value)


def _imports(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return any((alias.asname or alias.name.partition(".")[0]) == name for alias in aliases)
        case _:
            return False


def _is_stub(statement: ast.stmt) -> bool:
    match statement:
        case ast.AnnAssign(value=None):
            return True
        case ast.FunctionDef(decorator_list=decorators) | ast.AsyncFunctionDef(decorator_list=decorators):
            overload = any(_last_name(decorator) == "overload" for decorator in decorators)
            return overload or _does_nothing(_behind_docstring(statement))
        case _:
            return False


def _does_nothing(body: Sequence[ast.stmt]) -> bool:
    match body:
        case [] | [ast.Pass()] | [ast.Raise()]:
            return True
        case [ast.Expr(value=ast.Constant(value=value))]:
            return value is ...
        case _:
            return False


def _is_accessor(node: ast.AST, name: str) -> bool:
    owners = [decorator.value for decorator in _decorators(node) if isinstance(decorator, ast.Attribute)]
    return any(isinstance(owner, ast.Name) and owner.id == name for owner in owners)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING"


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _decorators(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.decorator_list
        case _:
            return []


def _behind_docstring(scope: _Scope) -> list[ast.stmt]:
    return scope.body if ast.get_docstring(scope, clean=False) is None else scope.body[1:]
