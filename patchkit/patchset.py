"""Patch sets, as values: what a manifest declares (docs/reference/manifest.md). Parsed at the door and trusted here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class PatchId:
    """The name of a patch: ``set/patch``."""

    set: str
    patch: str

    def __str__(self) -> str:
        return f"{self.set}/{self.patch}"


@dataclass(frozen=True, slots=True)
class Variant:
    """The diff of a patch for a range of versions (a PEP 440 specifier)."""

    versions: str
    file: str
    strip: int = 1
    directory: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotNeeded:
    versions: str
    why: str


@dataclass(frozen=True, slots=True)
class SymbolCheck:
    """A static check: what must be true of a symbol's source once the patch is applied.

    ``symbol`` is a dotted name in the module ("" is the whole module). ``starts_with`` is the statement that the
    body starts with, ``has`` and ``lacks`` are expressions, ``decorators`` what decorates it, outermost first.
    """

    module: str
    symbol: str = ""
    starts_with: str = ""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    versions: str = ""

    @property
    def name(self) -> str:
        return f"{self.module}:{self.symbol}" if self.symbol else self.module


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """A script that the target interpreter runs: 0 passed, 77 skipped, else failed.

    ``sha256`` names its bytes in the object store ("" until they were read).
    """

    file: str
    needs: tuple[str, ...] = ()
    timeout: float = 60.0
    versions: str = ""
    sha256: str = ""

    @property
    def name(self) -> str:
        return self.file


Check = SymbolCheck | PythonCheck


@dataclass(frozen=True, slots=True)
class Constraint:
    """Another distribution must be at such a version where it is installed (as pip's constraints)."""

    distribution: str
    versions: str

    def __str__(self) -> str:
        return f"{self.distribution}{self.versions}"


@dataclass(frozen=True, slots=True)
class Provenance:
    """DEP-3's fields: where a patch comes from and when it may go."""

    origin: str = ""
    bug: str = ""
    forwarded: str = ""
    applied_upstream: str = ""
    last_update: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """One named change with a purpose. ``place`` is its position in the manifest, from 0."""

    id: PatchId
    distribution: str
    place: int
    summary: str = ""
    default: bool = True
    group: str = ""
    after: tuple[PatchId, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    markers: tuple[str, ...] = ()
    shadowed_by: tuple[str, ...] = ()
    provenance: Provenance = Provenance()
    variants: tuple[Variant, ...] = ()
    not_needed: tuple[NotNeeded, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def ranges(self) -> tuple[str, ...]:
        """The versions of its variants and of those that need none; no two of them meet."""
        return tuple(rule.versions for rules in (self.variants, self.not_needed) for rule in rules)


@dataclass(frozen=True, slots=True)
class PatchSet:
    """A manifest with its patches. ``folder`` is where variants' and checks' files lie.

    ``constraints`` and ``markers`` are those of all patches; each of these has them too, in front of its own.
    """

    name: str
    distribution: str
    summary: str
    folder: str
    patches: tuple[Patch, ...]
    constraints: tuple[Constraint, ...] = ()
    markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What ``select`` and ``deselect`` say, with the file that said it ("" where none did)."""

    select: tuple[str, ...] = ()
    deselect: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Project:
    """What ``[tool.patchkit]`` of a pyproject.toml says; ``patches`` are folders, relative to that file."""

    patches: tuple[str, ...] = ()
    declaration: Declaration = Declaration()


@dataclass(frozen=True, slots=True)
class Catalog:
    """The patch sets at hand, by name, and what the project declares. ``inputs`` are where they were looked for.

    ``digest`` is one sha256 of all that was there to be read ("" where that is too much, or not plain enough).
    """

    folders: tuple[str, ...] = ()
    sets: tuple[PatchSet, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    project: Project = Project()
    digest: str = ""

    @property
    def patches(self) -> dict[PatchId, Patch]:
        return {patch.id: patch for patch_set in self.sets for patch in patch_set.patches}

    def set(self, name: str) -> PatchSet | None:
        return next((patch_set for patch_set in self.sets if patch_set.name == name), None)
