"""Where subclasses, methods and changes from outside are looked for: those modules of the distributions looked
into that may be imported, and those of the caller that have to do with them. All of them are parsed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from patchkit.programs import Module, Program, Scope


class Surroundings:
    """The modules ``names`` of a program, with an index of what their classes have.

    What is looked for by its name alone is looked for in the distributions, and not in the caller: every function of
    the caller is looked at anyway.
    """

    def __init__(self, program: Program, names: Iterable[str]) -> None:
        self.program = program
        self.names = tuple(dict.fromkeys(names))

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        found = (self.program.module(name) for name in self.names)
        return tuple(each for each in found if each is not None)

    @cached_property
    def classes(self) -> tuple[Scope, ...]:
        """All classes, also those inside functions."""
        return tuple(scope for module in self.modules for scope in module.scopes if scope.is_class)

    @cached_property
    def holders(self) -> dict[str, tuple[Scope, ...]]:
        """By name the classes of the distributions whose body binds it."""
        found: dict[str, list[Scope]] = {}
        for scope in self.classes:
            if scope.module.source.distribution:
                for name in scope.namespace.names:
                    found.setdefault(name, []).append(scope)
        return {name: tuple(scopes) for name, scopes in found.items()}

    def methods(self, name: str) -> tuple[Scope, ...]:
        """The methods of that name of all classes of the distributions."""
        return tuple(each for holder in self.holders.get(name, ()) for each in holder.inner if each.name == name)
