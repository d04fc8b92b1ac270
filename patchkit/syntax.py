"""Pieces of Python code, compared as syntax; text of an unknown program is parsed and never run.

Two pieces are equal if their syntax trees (`ast`) are: white space, comments, quotes and parentheses without meaning
do not count, nor does whether a name is loaded or stored.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)  # all that `ast.parse` raises for bad input

_HEADER_TAILS = (":\n pass", ":\n pass\nfinally:\n pass", ":\n case _:\n  pass")
_BODY_FIELDS = frozenset({"body", "orelse", "handlers", "finalbody", "cases", "decorator_list"})
_FREE_FIELDS = frozenset({"ctx", "type_comment", "kind"})
_LONGEST_EXCERPT = 100


@dataclass(frozen=True, slots=True)
class Pattern:
    """A piece of code to be found; ``header`` leaves the bodies of a compound statement out of the comparison."""

    text: str
    node: ast.AST
    header: bool

    def matches(self, node: ast.AST) -> bool:
        return _same(self.node, node, skip=_BODY_FIELDS if self.header else frozenset())


_ONE_AT_A_TIME = Lock()
"""CPython (3.11, at least) counts the depth of all trees that are being made in one place: two threads can end in a
SystemError."""


def parse(source: bytes | str) -> ast.Module:
    """The syntax tree of a file or a text. Raises one of PARSE_ERRORS; warns of nothing. Threads may call it."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def read_pattern(text: str) -> Pattern:
    """One expression, one statement, or the header of a compound statement with or without its colon.

    Raises one of PARSE_ERRORS.
    """
    try:
        return Pattern(text, _read_one(text), header=False)
    except SyntaxError:
        for tail in _HEADER_TAILS:
            try:
                return Pattern(text, _read_one(text.strip().removesuffix(":") + tail), header=True)
            except SyntaxError:
                continue
        raise


def read_decorator(text: str) -> Pattern:
    """The expression of a decorator, with or without its ``@``. Raises one of PARSE_ERRORS."""
    expression = text.strip().removeprefix("@")
    match _read_one(expression):
        case ast.expr() as node:
            return Pattern(expression, node, header=False)
        case _:
            raise ValueError("write an expression")


def _read_one(text: str) -> ast.AST:
    body = parse(text.strip()).body
    if len(body) != 1:
        raise ValueError("write one expression or one statement")
    return bare(body[0])


def bare(statement: ast.stmt) -> ast.AST:
    """The expression that a statement consists of, or else the statement."""
    return statement.value if isinstance(statement, ast.Expr) else statement


def trouble(text: str, read: Callable[[str], Pattern]) -> str:
    """Why ``read`` cannot read ``text``, in words; "" if it can."""
    try:
        read(text)
    except PARSE_ERRORS as error:
        return f"`{short(text)}` cannot be read as Python: {words(error)}"
    return ""


def assigned_name(pattern: Pattern) -> str:
    """The plain name that ``pattern`` assigns to, and that may be meant as a keyword argument; "" where it does not."""
    match pattern.node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""


def find_keyword(pattern: Pattern, node: ast.AST) -> ast.Call | None:
    """The first call in ``node`` with a keyword argument of the name that ``pattern`` assigns to."""
    name = assigned_name(pattern)
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call)) if name else ()
    return next((call for call in calls if any(keyword.arg == name for keyword in call.keywords)), None)


def _same(one: object, other: object, *, skip: frozenset[str] = frozenset()) -> bool:
    """Whether two trees are equal; ``skip`` names fields of the topmost node that do not count."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        fields = (field for field in one._fields if field not in _FREE_FIELDS and field not in skip)
        return all(_same(getattr(one, field, None), getattr(other, field, None)) for field in fields)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def excerpt(node: ast.AST) -> str:
    """The first line of a node's code, for a message."""
    try:
        return short(ast.unparse(node))
    except RecursionError:
        return "code that is nested too deeply to be shown"


def short(text: str) -> str:
    """The first line of ``text``, cut to a readable length."""
    whole = text.strip()
    first = whole.partition("\n")[0][:_LONGEST_EXCERPT].rstrip()
    return first if first == whole else f"{first} ..."


def words(error: BaseException) -> str:
    """One of PARSE_ERRORS in words."""
    match error:
        case SyntaxError(msg=message, lineno=line):
            return f"{message} (line {line})" if line else message
        case RecursionError() | MemoryError():
            return "it is nested too deeply"
        case _:
            return str(error)
