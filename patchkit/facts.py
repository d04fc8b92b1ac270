"""What one function does when it is called, as values: calls, uses of what others have, calls that lead nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from patchkit.audited import Confidence, Cover, Doubt, Effect
from patchkit.branches import Branch, Guard
from patchkit.programs import Scope
from patchkit.values import Wrapping


@dataclass(frozen=True, slots=True)
class Edge:
    """A call of ``target`` at ``line``; ``wrapping`` made it opaque where the value was made."""

    target: Scope
    line: int
    confidence: Confidence
    branch: Branch = ()
    guard: Guard | None = None
    wrapping: Wrapping | None = None


@dataclass(frozen=True, slots=True)
class Construct:
    """A use of something of others, by its dotted name."""

    name: str
    line: int
    confidence: Confidence
    branch: Branch = ()
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """A call that leads to nothing known."""

    doubt: Doubt
    line: int
    text: str
    guard: Guard | None = None


Maker: TypeAlias = tuple[str, Effect]
"""What makes a function opaque, and to what effect."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All of that. ``cover`` is what makes the function opaque, ``around`` what decorators outside of it run, ``made``
    are the classes of which it makes objects."""

    edges: tuple[Edge, ...] = ()
    hazards: tuple[Construct, ...] = ()
    makers: tuple[Maker, ...] = ()
    gaps: tuple[Gap, ...] = ()
    around: tuple[Edge, ...] = ()
    cover: Cover | None = None
    made: tuple[Scope, ...] = ()
