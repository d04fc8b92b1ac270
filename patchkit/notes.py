"""What is noted while a body is read: calls, uses of what others have, and where it is not known what is called."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patchkit.audited import Confidence, Doubt, weakest
from patchkit.branches import Branch, Guard
from patchkit.facts import Construct, Edge, Facts, Gap, Maker
from patchkit.inference import Inference
from patchkit.operations import is_implicit
from patchkit.programs import Scope
from patchkit.results import PROTOCOL
from patchkit.syntax import excerpt
from patchkit.values import ClassValue, Foreign, Found, FunctionValue, Instance, Unclear, Wrapping


class Notes:
    """Notes on one body; ``branch`` and ``guard`` are those of the statement that is being read."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self.branch: Branch = ()
        self.guard: Guard | None = None
        self.makers: list[Maker] = []
        self.made: list[Scope] = []
        self._edges: dict[Edge, None] = {}
        self._hazards: dict[Construct, None] = {}
        self._gaps: dict[Gap, None] = {}

    def facts(self) -> Facts:
        makers, made = tuple(dict.fromkeys(self.makers)), tuple(dict.fromkeys(self.made))
        return Facts(tuple(self._edges), tuple(self._hazards), makers, tuple(self._gaps), made=made)

    def add(self, scope: Scope, line: int, confidence: Confidence, wrapping: Wrapping | None = None) -> None:
        """``scope`` is called."""
        self._edges[Edge(scope, line, confidence, self.branch, self.guard, wrapping)] = None

    def use(self, construct: str, line: int, confidence: Confidence) -> None:
        """Something of others is used."""
        self._hazards[Construct(construct, line, confidence, self.branch, self.guard)] = None

    def gap(self, doubt: Doubt, node: ast.expr | ast.stmt, text: str = "") -> None:
        """It is not known what is called."""
        self._gaps[Gap(doubt, node.lineno, text or excerpt(node), self.guard)] = None

    def run(self, found: Iterable[Found], node: ast.expr | ast.stmt, confidence: Confidence) -> None:
        """What stands under the name of a special method is called."""
        for each in found:
            match each.value:
                case FunctionValue(scope=scope):
                    self.add(scope, node.lineno, weakest(each.confidence, confidence))
                case Instance():
                    self.run(self._inference.methods(each.value, "__call__"), node, confidence)
                case Unclear():
                    self.gap(Doubt.DISPATCH, node)

    def implicit(self, value: ClassValue | Instance, node: ast.expr) -> None:
        """The methods of an object that others may call without naming them: when it is compared, printed, let go."""
        scope = value.of if isinstance(value, Instance) else value.scope
        below = () if value.exact else self._inference.lineage.descendants(scope)
        order = self._inference.lineage.order(scope)
        others = any(isinstance(kin, Foreign) for kin in order)  # such as io.TextIOBase, which closes itself
        for kin in (*order, *below):
            for name in kin.namespace.names if isinstance(kin, Scope) else ():
                if is_implicit(name) or (others and name in PROTOCOL):
                    self.run(self._inference.methods(ClassValue(scope, value.exact), name), node, Confidence.NAME)
