"""The texts of wanted patches: read from the patch folder or the object store, parsed into layers of the fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from patchkit.applied import Applied
from patchkit.choices import Candidate, Choice, checks_for
from patchkit.errors import DamagedState, PatchkitError, raise_all
from patchkit.fold import Layer
from patchkit.installed import sha256
from patchkit.model import DiffText, FileDiff
from patchkit.patchset import Check, Patch, PatchId, PythonCheck, SymbolCheck, Variant
from patchkit.scene import Scene
from patchkit.state import read_object
from patchkit.versions import by_nearness


def read_candidate(scene: Scene, choice: Choice) -> Candidate:
    """The text that is meant: the diff at hand, or the one that the ledger keeps. Parses nothing."""
    assert choice.installed is not None
    if choice.variant is None or choice.patch is None:
        assert choice.applied is not None
        return Candidate(choice, replace(choice.applied, reason=choice.reason), None, {})
    diff = scene.read_set_file(choice.id, choice.variant.file)
    scripts: dict[str, bytes] = {}
    meant = checks_for(choice.patch.checks, choice.installed.version)
    checks = tuple(_with_script(scene, choice.id, check, scripts) for check in meant)
    record = _to_record(choice, choice.patch, choice.variant, choice.installed.version, diff, checks)
    return Candidate(choice, record, diff, scripts)


def _with_script(scene: Scene, id: PatchId, check: Check, scripts: dict[str, bytes]) -> Check:
    match check:
        case PythonCheck():
            data = scene.read_set_file(id, check.file)
            scripts[sha256(data)] = data
            return replace(check, sha256=sha256(data))
        case SymbolCheck():
            return check


def _to_record(
    choice: Choice, patch: Patch, variant: Variant, version: str, diff: bytes, checks: tuple[Check, ...]
) -> Applied:
    text = text_of(variant, diff)
    applied = choice.applied
    return Applied(
        id=choice.id,
        distribution=patch.distribution,
        version=version,
        variant=variant.file,
        versions=variant.versions,
        text=text,
        place=patch.place,
        after=patch.after,
        group=patch.group,
        reason=choice.reason,
        summary=patch.summary,
        provenance=patch.provenance,
        shadowed_by=patch.shadowed_by,
        checks=checks,
        paths=applied.paths if applied is not None and applied.text == text else (),
    )


def text_of(variant: Variant, diff: bytes) -> DiffText:
    return DiffText(sha256(diff), variant.strip, variant.directory, variant.include, variant.exclude)


# ---- parsing --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedTrial:
    """A variant whose range does not hold the installed version, parsed; ``layer`` is None where that failed."""

    variant: Variant
    layer: Layer | None
    problem: PatchkitError | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """The layers of the candidates. ``files`` says what to call the diff of each in messages."""

    layers: Mapping[PatchId, Layer]
    files: Mapping[PatchId, str]
    trials: Mapping[PatchId, tuple[ParsedTrial, ...]] = field(default_factory=dict)


def parse_candidates(scene: Scene, candidates: Mapping[PatchId, Candidate]) -> Parsed:
    """Parse all diffs; raises everything that is wrong with any of them, at once."""
    layers: dict[PatchId, Layer] = {}
    files = {id: name_diff(scene, candidate.record, candidate.choice) for id, candidate in candidates.items()}
    problems: list[PatchkitError] = []
    for id, candidate in candidates.items():
        try:
            diff = candidate.diff if candidate.diff is not None else read_kept_diff(scene.root, candidate.record)
            layers[id] = Layer(id, parse(diff, candidate.record.text, files[id]))
        except PatchkitError as error:
            problems.append(error)
    raise_all(problems)
    return Parsed(layers, files)


def name_diff(scene: Scene, record: Applied, choice: Choice | None = None) -> str:
    if choice is not None and choice.variant is not None:
        return f"{scene.folder_of(record.id)}/{record.variant}"
    return f"{record.id} (as applied)"


def parse(diff: bytes, text: DiffText, file: str) -> tuple[FileDiff, ...]:
    # Imported here, for it brings unidiff with it, and a no-op parses nothing.
    from patchkit.diff import read_diff

    return read_diff(diff, text, file=file)


def read_kept_diff(root: str, record: Applied) -> bytes:
    """The diff of an applied patch from the object store. Raises `DamagedState` where it is gone."""
    data = read_object(root, record.text.sha256)
    if data is None:
        raise DamagedState(
            f"{record.id}: its diff is not in the object store of {root}",
            hint="with the patch folder at hand, `patchkit apply` puts it back; else reinstall the distribution",
        )
    return data


def parse_trials(scene: Scene, choice: Choice) -> tuple[ParsedTrial, ...]:
    """All variants of a patch that has none for the installed version, the nearest first; a broken one is no error."""
    if choice.patch is None:
        return () if choice.applied is None else (_parse_kept(scene, choice.applied),)
    variants = choice.patch.variants
    version = "" if choice.installed is None else choice.installed.version
    places = by_nearness([variant.versions for variant in variants], version)
    return tuple(_parse_trial(scene, choice.id, variants[place]) for place in places)


def _parse_kept(scene: Scene, applied: Applied) -> ParsedTrial:
    """The text that the ledger keeps, as a variant."""
    text = applied.text
    variant = Variant(applied.versions, applied.variant, text.strip, text.directory, text.include, text.exclude)
    try:
        diff = parse(read_kept_diff(scene.root, applied), text, name_diff(scene, applied))
        return ParsedTrial(variant, Layer(applied.id, diff))
    except PatchkitError as error:
        return ParsedTrial(variant, None, error)


def _parse_trial(scene: Scene, id: PatchId, variant: Variant) -> ParsedTrial:
    folder = scene.folder_of(id)
    try:
        diff = scene.read_set_file(id, variant.file)
        return ParsedTrial(variant, Layer(id, parse(diff, text_of(variant, diff), f"{folder}/{variant.file}")))
    except PatchkitError as error:
        return ParsedTrial(variant, None, error)
