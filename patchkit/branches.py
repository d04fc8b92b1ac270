"""The statements of a block with the branches they stand in, and which of them a tracer never comes to.

A condition may be known to hold, or not, while code is traced (the assumptions of a hazard table). What stands in the
other branch is guarded, and so is what follows a branch that is taken and does not come back.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchkit.syntax import excerpt


@dataclass(frozen=True, slots=True)
class Block:
    """A block that statements stand in: a word, and the expression that decides about it."""

    word: str
    node: ast.AST | None = None

    def __str__(self) -> str:
        return self.word if self.node is None else f"{self.word} {excerpt(self.node)}"


Branch = tuple[Block, ...]
PERHAPS = Block("")
"""A block that stands under no condition that could be told, and may not run, or not to its end: of a loop, of ``with``
(which may suppress an exception)."""


def told(branch: Branch) -> tuple[str, ...]:
    """The conditions of a branch, in words."""
    return tuple(str(block) for block in branch if block is not PERHAPS)


def may_fail(branch: Branch) -> bool:
    """Whether ``branch`` is prepared for a name that is not there: a ``try``, or a question by ``hasattr``."""
    return any(block.word == "try" or "hasattr(" in str(block) for block in branch)


@dataclass(frozen=True, slots=True)
class Guard:
    """The condition that keeps a tracer away: it comes to ``truth`` while code is traced."""

    line: int
    test: ast.expr
    truth: bool

    def __str__(self) -> str:
        return f"`{excerpt(self.test)}` is {'true' if self.truth else 'false'} while code is traced"


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement, the blocks around it (outermost first), and what keeps a tracer away from it."""

    node: ast.stmt
    branch: Branch
    guard: Guard | None


_TYPING = ("typing", "typing_extensions", "t", "_t", "tp", "_typing")  # as what the module is imported


class Assumptions:
    """Conditions whose value is known, compared as syntax (by `ast.dump`)."""

    def __init__(self, values: Mapping[str, bool], hidden: Collection[str] = ()) -> None:
        self._texts = dict(values)
        self._hidden = frozenset(hidden)
        trees = {text: ast.parse(text, mode="eval").body for text in values}
        self.roots = frozenset(
            name.id for tree in trees.values() for name in ast.walk(tree) if isinstance(name, ast.Name)
        )
        self._values = {
            ast.dump(trees[text]): value for text, value in values.items() if not self._is_hidden(trees[text])
        }

    def _is_hidden(self, test: ast.expr) -> bool:
        return any(isinstance(node, ast.Name) and node.id in self._hidden for node in ast.walk(test))

    def without(self, names: Collection[str]) -> Assumptions:
        """Those that do not speak of ``names``, which mean something else where the condition stands."""
        return Assumptions(self._texts, names) if names else self

    def truth(self, test: ast.expr) -> bool | None:
        """What ``test`` comes to while code is traced, or None where that is not known."""
        match test:
            case ast.Constant(value=bool(value)):
                return value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.truth(operand)
                return None if inner is None else not inner
            case ast.BoolOp(op=op, values=values):
                return _join([self.truth(value) for value in values], isinstance(op, ast.Or))
            case ast.Attribute(value=ast.Name(id=owner), attr="TYPE_CHECKING") if owner in _TYPING:
                return False
            case ast.Name(id="TYPE_CHECKING") if not self._is_hidden(test):
                return False
            case ast.Call() | ast.Attribute() | ast.Compare() | ast.Name():
                return self._look_up(test)
            case _:
                return None

    def _look_up(self, test: ast.expr) -> bool | None:
        try:
            return self._values.get(ast.dump(test)) if self._values else None
        except RecursionError:  # nested more deeply than anything that is assumed
            return None


def _join(values: Sequence[bool | None], decisive: bool) -> bool | None:
    if decisive in values:
        return decisive
    return None if None in values else not decisive


NOTHING = Assumptions({})


def walk(body: Sequence[ast.stmt], assumed: Assumptions = NOTHING) -> Iterator[Placed]:
    """All statements of one scope in order; functions and classes (scopes of their own) are not looked into."""
    return _walk(body, assumed, (), None)


def _walk(body: Sequence[ast.stmt], assumed: Assumptions, branch: Branch, guard: Guard | None) -> Iterator[Placed]:
    for node in body:
        yield Placed(node, branch, guard)
        yield from _inside(node, assumed, branch, guard)
        if isinstance(node, ast.If) and guard is None:
            truth = assumed.truth(node.test)
            taken = node.body if truth else node.orelse
            if truth is not None and _leaves(taken):
                guard = Guard(node.lineno, node.test, truth)


def _inside(node: ast.stmt, assumed: Assumptions, branch: Branch, guard: Guard | None) -> Iterator[Placed]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            truth = assumed.truth(test)
            never = Guard(node.lineno, test, truth) if truth is not None else None
            yield from _walk(body, assumed, (*branch, Block("if", test)), guard or (never if not truth else None))
            is_elif = len(orelse) == 1 and isinstance(orelse[0], ast.If) and orelse[0].col_offset == node.col_offset
            inner = branch if is_elif else (*branch, Block("else of if", test))
            below = guard or (never if truth else None)
            yield from (_elif(orelse, assumed, inner, below) if is_elif else _walk(orelse, assumed, inner, below))
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            yield from _walk(body, assumed, (*branch, Block("try")), guard)
            for handler in handlers:
                yield from _walk(handler.body, assumed, (*branch, Block("except", handler.type)), guard)
            yield from _walk(orelse, assumed, (*branch, Block("else of try")), guard)
            yield from _walk(finalbody, assumed, (*branch, Block("finally")), guard)
        case ast.For() | ast.AsyncFor() | ast.While():
            yield from _walk(node.body, assumed, (*branch, PERHAPS), guard)
            yield from _walk(node.orelse, assumed, (*branch, PERHAPS), guard)
        case ast.With() | ast.AsyncWith():
            yield from _walk(node.body, assumed, (*branch, PERHAPS), guard)
        case ast.Match(cases=cases):
            for case in cases:
                yield from _walk(case.body, assumed, (*branch, Block("case", case.pattern)), guard)
        case _ if type(node).__name__ == "TryStar":  # ast.TryStar came with Python 3.11
            for block in ("body", "orelse", "finalbody"):
                yield from _walk(getattr(node, block), assumed, (*branch, Block("try")), guard)
            for handler in getattr(node, "handlers", ()):
                yield from _walk(handler.body, assumed, (*branch, Block("except*", handler.type)), guard)


def _elif(orelse: Sequence[ast.stmt], assumed: Assumptions, branch: Branch, guard: Guard | None) -> Iterator[Placed]:
    for placed in _walk(orelse, assumed, branch, guard):
        depth = len(branch)
        words = placed.branch[depth:]
        if words and words[0].word == "if":
            words = (Block("elif", words[0].node), *words[1:])
        yield Placed(placed.node, (*branch, *words), placed.guard)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether control never comes out at the end of ``body``."""
    if not body:
        return False
    match body[-1]:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If(body=inner, orelse=orelse):
            return _leaves(inner) and _leaves(orelse)
        case ast.With(items=items, body=inner):
            return _leaves(inner) and not _may_swallow(items, inner[-1])
        case _:
            return False


def _may_swallow(items: Sequence[ast.withitem], last: ast.stmt) -> bool:
    """Whether a context manager may take what leaves its block, so that control comes out behind it after all."""
    managers = [each.context_expr for each in items]
    called = [each.func if isinstance(each, ast.Call) else each for each in managers]
    return isinstance(last, ast.Raise) or any(excerpt(each).endswith("suppress") for each in called)
