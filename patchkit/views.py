"""One view of a program: what a caller imports from distributions, and what each callable that it reaches leads to.

A view is of one state of the files. The installed state, and those that patches at hand would make, are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from patchkit.audited import Confidence, Cover, Doubt, Hazard, Place, Step, Unknown
from patchkit.calls import Calls
from patchkit.carriers import Carriers
from patchkit.classes import is_property
from patchkit.facts import Edge, Gap
from patchkit.hazards import HazardTable
from patchkit.importmap import ImportMap, Row, find_named
from patchkit.inference import Inference
from patchkit.loading import find_loaded
from patchkit.programs import Module, Program, Scope, uncollected
from patchkit.reach import Met, Reach, cover_site, covers_around, prefix, reach, step_of
from patchkit.surroundings import Surroundings
from patchkit.values import ClassValue, FunctionValue, Instance, ModuleValue, Unclear, Value

Tick = Callable[[str, int, int], None]
HazardKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Root:
    """A callable of a distribution that the caller reaches: the step there, and what covers all of its sites.

    ``sites`` are the calls that are not covered, all of them where every one is; ``around`` are the graph breaks that
    the functions with these and other calls are behind.
    """

    target: Scope
    step: Step
    cover: Cover | None
    reach: Reach
    sites: tuple[Step, ...] = ()
    around: tuple[Cover, ...] = ()

    @property
    def callable(self) -> str:
        return self.target.symbol

    def hazard(self, met: Met, table: HazardTable) -> Hazard:
        rule = table.rules[met.construct]
        chain = prefix(met, self.step).chain
        return Hazard(self.callable, rule.kind, met.construct, rule.reason, chain, sites=self.sites)

    @property
    def open(self) -> list[Met]:
        return self.reach.open if self.cover is None else []

    @property
    def covered(self) -> list[tuple[Met, Cover]]:
        """The hazards that are covered, with what covers each."""
        if self.cover is not None:
            return [(met, self.cover) for met in (*self.reach.open, *self.reach.covered)]
        return [(met, met.cover) for met in self.reach.covered if met.cover is not None]

    @property
    def breaks(self) -> list[Cover]:
        """The graph breaks that a tracer comes to, the caller's own first."""
        return list(dict.fromkeys([*self.around, *self.inner_breaks]))

    @property
    def inner_breaks(self) -> list[Cover]:
        """Those behind the call: in the distribution."""
        covers = [cover for cover, _ in self.reach.covers] if self.cover is None else []
        return list(dict.fromkeys(cover for cover in covers if cover.effect.breaks_graph))


@dataclass(frozen=True, slots=True)
class View:
    """What there is to see. ``modules`` are the caller's that could be parsed."""

    rows: tuple[Row, ...]
    roots: tuple[Root, ...]
    unknown: tuple[Unknown, ...] = ()


def key_of(callable: str, met: Met) -> HazardKey:
    """What names a hazard in every state of the files: lines move, functions stay."""
    last = met.chain[-1]
    return (callable, met.construct, last.place.path, last.function)


@dataclass(slots=True)
class Viewer:
    """Looks at programs; ``subjects`` are the distributions looked into, ``tops`` the names they are imported by."""

    table: HazardTable
    subjects: frozenset[str]
    callers: Sequence[str]
    concerned: tuple[str, ...] = ()
    made: frozenset[str] | None = None
    tick: Tick = field(default=lambda doing, done, total: None)

    def look(self, program: Program) -> View:
        """The view of ``program``. Modules that cannot be parsed are among the unknown."""
        with uncollected():
            return self._look(program)

    def _look(self, program: Program) -> View:
        imports = ImportMap(program, self.subjects)
        rows = self._rows(program, imports)
        named = set(find_named(program, self.callers, self.subjects))
        modules = importing = self._modules(program, rows, named)
        self.concerned = tuple(module.name for module in modules)
        inference = Inference(program, self.table, self._surroundings(program))
        carriers = Carriers(program, inference, self.subjects)
        others = list(carriers.find(imports.bound, self.concerned))
        if others:
            modules = [*importing, *(module for module in map(program.module, others) if module is not None)]
            self.concerned = tuple(module.name for module in modules)
            inference = Inference(program, self.table, self._surroundings(program))
            carriers = Carriers(program, inference, self.subjects)
        classes = _classes_by_module(rows)

        def by_name(method: str, scope: Scope) -> tuple[Scope, ...]:
            if scope.module.source.distribution in self.subjects:
                return inference.surroundings.methods(method)
            own = classes.get(scope.module.name, ())
            found = (inference.method(each, method) for each in own)
            return tuple(dict.fromkeys(each for each in found if each is not None))

        calls = Calls(inference, self.table, by_name)
        self.made = frozenset(each.symbol for each in calls.made_at_import)
        roots = tuple(self._roots(rows, modules, calls, classes))
        unknown = {gap for root in roots if root.cover is None for gap in root.reach.unknown}
        unknown |= set(self._unfollowed(importing, calls, self._counts)) | named | imports.lost
        unknown |= set(self._unfollowed(modules[len(importing) :], calls, _is_of_ours))
        unknown |= set(carriers.unsure(imports.bound, self.concerned)) | set(_replaced(inference))
        unknown |= set(carriers.kept(imports.bound, self.concerned))
        asked = frozenset(self.callers)
        unknown |= {each for name in self.callers for each in imports.rest(name, asked)}
        unknown |= {
            Unknown(Place(program.sources[name].path, 1), Doubt.UNPARSED, "", why)
            for name, why in program.unparsed.items()
        }
        return View(tuple(rows), roots, tuple(sorted(unknown)))

    def look_again(self, program: Program, roots: Sequence[Root]) -> tuple[Root, ...]:
        """The same callables in another state of the distributions' files; those that are gone there are left out."""
        with uncollected():
            return tuple(self._look_again(program, roots))

    def _look_again(self, program: Program, roots: Sequence[Root]) -> Iterator[Root]:
        inference = Inference(program, self.table, self._surroundings(program))
        calls = Calls(inference, self.table, lambda method, _: inference.surroundings.methods(method), self.made)
        for root in roots:
            module = program.module(root.target.module.name)
            scopes = module.scopes if module is not None else ()
            same = [scope for scope in scopes if scope.qualname == root.target.qualname]
            if same:
                yield replace(root, target=same[-1], reach=reach(same[-1], calls))

    def _rows(self, program: Program, imports: ImportMap) -> list[Row]:
        """The import map, module by module."""
        found: list[Row] = []
        for index, name in enumerate(self.callers):
            self.tick("reading imports", index, len(self.callers))
            module = program.module(name) if imports.concerns(name) else None
            found += imports.rows(module) if module is not None else []
        return found

    def _modules(self, program: Program, rows: Sequence[Row], named: set[Unknown]) -> list[Module]:
        """The caller's modules that have to do with the distributions: by an import, or by a string that names one."""
        paths = {each.place.path for each in named}
        found = [program.module(name) for name in self.callers if program.sources[name].path in paths]
        return list(dict.fromkeys([*(row.scope.module for row in rows), *(each for each in found if each is not None)]))

    def _unfollowed(self, modules: Sequence[Module], calls: Calls, counts: Counts) -> Iterator[Unknown]:
        """The calls of these modules that lead to nothing known, where a tracer comes to them."""
        for scope in (each for module in modules for each in module.scopes):
            gaps = [gap for gap in calls.facts(scope).gaps if gap.guard is None and counts(gap, calls)]
            if gaps and cover_site(scope, None, calls) is None:
                for gap in gaps:
                    yield Unknown(Place(scope.module.source.path, gap.line), gap.doubt, scope.runs_in, gap.text)

    def _counts(self, gap: Gap, calls: Calls) -> bool:
        """Whether a call in the caller may lead into the distributions.

        Other distributions are not asked for; a method that everything has counts where a class of these has it too.
        """
        if gap.doubt is not Doubt.DISPATCH:
            return gap.doubt is not Doubt.FOREIGN
        name = gap.text.rpartition(".")[2]
        return not calls.is_ordinary(name) or _has_method(name, calls)

    def _surroundings(self, program: Program) -> Surroundings:
        subjects = [name for name, source in program.sources.items() if source.distribution in self.subjects]
        return Surroundings(program, [*find_loaded(program, self.concerned, subjects), *self.concerned])

    # ---- roots ------------------------------------------------------------------------------------------------

    def _roots(self, rows: Sequence[Row], modules: Sequence[Module], calls: Calls, classes: Classes) -> Iterator[Root]:
        sites = self._sites(modules, calls, classes)
        imported: dict[Scope, Row] = {}
        for row in rows:
            scope = row.located.scope if row.located is not None else None
            if scope is not None and scope.is_class:
                scope = calls.inference.method(scope, "__init__")
            if scope is not None and scope.module.source.distribution in self.subjects:
                imported.setdefault(scope, row)
        targets = list(dict.fromkeys([*imported, *sites]))
        for index, target in enumerate(targets):
            self.tick("following calls", index, len(targets))
            yield self._root(target, sites.get(target, []), imported.get(target), calls)

    def _sites(
        self, modules: Sequence[Module], calls: Calls, classes: Classes
    ) -> dict[Scope, list[tuple[Scope, Edge]]]:
        """The calls of the caller that lead into the distributions, in functions and where a module is imported."""
        sites: dict[Scope, list[tuple[Scope, Edge]]] = {}
        for scope in (each for module in modules for each in module.scopes):
            facts = calls.facts(scope)
            for edge in (*facts.edges, *facts.around):
                if edge.target.module.source.distribution in self.subjects and not _is_guess(scope, edge, classes):
                    sites.setdefault(edge.target, []).append((scope, edge))
        return sites

    def _root(self, target: Scope, sites: list[tuple[Scope, Edge]], row: Row | None, calls: Calls) -> Root:
        found = reach(target, calls)
        covered = [(scope, edge, cover_site(scope, edge.guard, calls)) for scope, edge in sites]
        chosen = sorted(covered, key=_clearest_first)
        if chosen:
            around = [cover for scope, edge in sites for cover in covers_around(scope, edge.guard, calls)]
            cover = chosen[0][2]
            steps = [
                step_of(scope, edge.line, target.symbol, edge.confidence, edge.branch)
                for scope, edge, covering in chosen
                if covering is None or cover is not None
            ]
            places = {step.place: step for step in reversed(steps)}
            breaks = tuple(dict.fromkeys(each for each in around if each.effect.breaks_graph))
            return Root(target, steps[0], cover, found, tuple(places[place] for place in sorted(places)), breaks)
        assert row is not None
        step = Step(row.found.place, "", target.symbol, Confidence.DIRECT, row.found.branch)
        return Root(target, step, None, found)


Counts: TypeAlias = Callable[[Gap, Calls], bool]


def _is_of_ours(gap: Gap, calls: Calls) -> bool:
    """Whether a method that is called on what is not known has the name of one of the distributions'.

    So much counts in a module that imports nothing of them and only gets something from modules that do.
    """
    _, dotted, name = gap.text.rpartition(".")
    return gap.doubt is Doubt.DISPATCH and bool(dotted) and not calls.is_ordinary(name) and _has_method(name, calls)


def _has_method(name: str, calls: Calls) -> bool:
    """Whether a class of the distributions has a method of that name."""
    return any(each.module.source.distribution for each in calls.inference.surroundings.methods(name))


Classes: TypeAlias = Mapping[str, Sequence[Scope]]
"""The classes of distributions that modules import."""


def _is_guess(scope: Scope, edge: Edge, classes: Classes) -> bool:
    """Whether a call is an operation or an access on what is not known, of a class that the module does not import.

    By the name alone every `+` of a caller would be one of the distribution's, and every `super().__init__()` too.
    """
    target = edge.target
    is_implicit = is_property(target) or (target.name.startswith("__") and target.name != "__call__")
    if edge.confidence is not Confidence.NAME or target.owner is None or not is_implicit:
        return False
    return target.owner not in classes.get(scope.module.name, ())


def _clearest_first(site: tuple[Scope, Edge, Cover | None]) -> tuple[bool, bool, bool]:
    """Calls that are not covered come first, of these such in functions, of these such that are sure."""
    scope, edge, cover = site
    return (cover is not None, not scope.runs_in, edge.confidence is Confidence.NAME)


def _replaced(inference: Inference) -> Iterator[Unknown]:
    """Where code changes what names stand for in a way that nobody can follow, unless it is something else's names."""
    for each in inference.substitutions.untold:
        owners = [found.value for found in inference.infer(each.base, each.scope)] if each.base is not None else []
        if not owners or any(_is_followed(owner, inference) for owner in owners):
            yield Unknown(
                Place(each.scope.module.source.path, each.line), Doubt.REPLACED, each.scope.runs_in, each.text
            )


def _is_followed(owner: Value, inference: Inference) -> bool:
    """Whether the names of ``owner`` are looked up: it is a module, class or object of a distribution, or may be."""
    match owner:
        case ModuleValue() | Unclear():
            return True
        case ClassValue(scope=scope) | Instance(of=scope):
            kin = [each for each in inference.lineage.order(scope) if isinstance(each, Scope)]
            return any(each.module.source.distribution for each in kin)
        case FunctionValue(scope=scope):
            return bool(scope.module.source.distribution)
        case _:
            return False


def _classes_by_module(rows: Sequence[Row]) -> dict[str, list[Scope]]:
    found: dict[str, list[Scope]] = {}
    for row in rows:
        scope = row.located.scope if row.located is not None else None
        if scope is not None and scope.is_class:
            found.setdefault(row.scope.module.name, []).append(scope)
    return found
