"""What an expression may come to, as values, and how sure that is."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from patchkit.audited import Confidence, Effect, weakest
from patchkit.programs import Scope


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
    scope: Scope


@dataclass(frozen=True, slots=True)
class Instance:
    of: Scope


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something of another distribution, by its dotted name; ``instance`` says that it is an object of that class."""

    name: str
    instance: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A ``SimpleNamespace(name=value)`` or a dict display: its call or display, and the scope it stands in."""

    node: ast.Call | ast.Dict
    scope: Scope


Value: TypeAlias = ModuleValue | FunctionValue | ClassValue | Instance | Foreign | Record


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that an expression may be, and how sure that is."""

    value: Value
    confidence: Confidence = Confidence.DIRECT


Answers: TypeAlias = tuple[Found, ...]


def lowered(found: Iterable[Found], confidence: Confidence) -> Answers:
    """The same answers, none surer than ``confidence``."""
    return tuple(replace(each, confidence=weakest(each.confidence, confidence)) for each in found)
