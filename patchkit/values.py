"""What an expression may come to, as values, and how sure that is."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from patchkit.audited import Confidence, Effect, weakest
from patchkit.programs import Scope

Display: TypeAlias = ast.Dict | ast.List | ast.Tuple | ast.Set | ast.ListComp | ast.SetComp | ast.DictComp


@dataclass(frozen=True, slots=True)
class ModuleValue:
    name: str


@dataclass(frozen=True, slots=True)
class Wrapping:
    """A call that made a function opaque: ``maker`` at ``line`` of ``path``."""

    maker: str
    effect: Effect
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function; ``wrapping`` is what was put around it where this value was made."""

    scope: Scope
    wrapping: Wrapping | None = None


@dataclass(frozen=True, slots=True)
class ClassValue:
    """A class; ``exact`` False: or a subclass of it, as ``cls`` is."""

    scope: Scope
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class; ``exact`` False: or of a subclass, as ``self`` and all that an annotation tells of."""

    of: Scope
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something of another distribution, by its dotted name; ``instance`` says that it is an object of that class.

    ``effect`` is what it makes of a function where arguments that decide about that were handed in before (`partial`).
    """

    name: str
    instance: bool = False
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A ``SimpleNamespace(name=value)``, a display or a comprehension: its node, and the scope it stands in."""

    node: ast.Call | Display
    scope: Scope


@dataclass(frozen=True, slots=True)
class Container:
    """An object annotated as ``list[X]`` or ``tuple[X, Y]``: its class by name, and the annotations of its elements."""

    name: str
    elements: tuple[ast.expr, ...]
    scope: Scope


@dataclass(frozen=True, slots=True)
class Unclear:
    """One of several things that an expression may be, and nothing is known of it (a binding that leads nowhere)."""


Value: TypeAlias = ModuleValue | FunctionValue | ClassValue | Instance | Foreign | Record | Container | Unclear


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that an expression may be, and how sure that is."""

    value: Value
    confidence: Confidence = Confidence.DIRECT


Answers: TypeAlias = tuple[Found, ...]


UNCLEAR = Found(Unclear())


def joined(alternatives: Iterable[Answers | None]) -> Answers:
    """What one of several alternatives may be; one without an answer is not lost beside others: it is `Unclear`.

    None stands for an alternative that is nothing to call (``None``, a constant).
    """
    told = [each for each in alternatives if each is not None]
    found = tuple(dict.fromkeys(answer for each in told for answer in each))
    return (*found, UNCLEAR) if found and not all(told) and UNCLEAR not in found else found


def handed_in(default: Answers) -> Answers:
    """What a parameter may be: its default, or anything else that is handed in. Of a plain value nothing is said."""
    is_value = any(isinstance(each.value, Record) or getattr(each.value, "instance", False) for each in default)
    return (*default, UNCLEAR) if default and not is_value else ()


def lowered(found: Iterable[Found], confidence: Confidence) -> Answers:
    """The same answers, none surer than ``confidence``."""
    return tuple(replace(each, confidence=weakest(each.confidence, confidence)) for each in found)
