"""What is applied, as one golden file; and an environment held against one. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from patchkit.applied import Applied
from patchkit.assess import is_in_place
from patchkit.bases import Facts
from patchkit.catalog import read_set_file
from patchkit.causes import find_causes
from patchkit.drift import Cause, Drift, DriftedFile
from patchkit.errors import AmbiguousDistribution, BadExport, Drifted, ExitCode, PatchkitError
from patchkit.golden import Golden, GoldenFile, GoldenPatch, read_golden, take
from patchkit.installed import Content, FileState, Observed, Stamp, sha256
from patchkit.memory import Owner
from patchkit.model import Notice
from patchkit.patchset import PatchId, Variant
from patchkit.report import Report
from patchkit.scene import CatalogNeed, Options, Scene, open_scene, read_steadily
from patchkit.site import observe, read_plain
from patchkit.verification import read_applied_facts
from patchkit.versions import is_older, is_same_version, variant_for

_NOTHING = Notice("nothing-applied", "nothing is applied here: the file holds no patch")


def export(options: Options) -> tuple[Golden, Report]:
    """What is applied, and what there is to say of it.

    Raises `Drifted` where the bytes are not there: such a file would be no gold.
    """
    return read_steadily(lambda: open_scene(options, CatalogNeed.OPTIONAL), _export)


def _export(scene: Scene) -> tuple[Golden, Report]:
    facts = read_applied_facts(scene, scene.ledger.applied)
    gone = [str(applied.id) for applied in scene.ledger.applied if not _is_whole(scene, applied, facts)]
    if gone:
        raise Drifted(f"{', '.join(gone)}: recorded as applied on {scene.root}, and not there as recorded")
    notices = scene.notices if scene.ledger.applied else (*scene.notices, _NOTHING)
    return take(scene.ledger), Report("export", scene.root, scene.environment.python, notices=notices)


def _is_whole(scene: Scene, applied: Applied, facts: Mapping[str, Facts]) -> bool:
    version = Owner.find(scene, applied.distribution).version
    return is_in_place(applied, facts) and version is not None and is_same_version(version, applied.version)


# ---- against a golden file ------------------------------------------------------------------------------------


def compare_with(options: Options, file: str, *, again: str = "") -> Report:
    """The report of ``drift --against FILE``: every difference from it, by the same causes."""
    content = read_plain(file)
    if content is None:
        raise BadExport(f"{file} is not a file", hint="`patchkit export --output FILE` writes one, where all is well")
    golden = read_golden(content.data, file=file)
    return read_steadily(
        lambda: open_scene(options, CatalogNeed.OPTIONAL), lambda scene: _compare_with(scene, golden, file, again)
    )


def _compare_with(scene: Scene, golden: Golden, file: str, again: str) -> Report:
    comparison = _Comparison(scene, golden, file, again)
    rows = (*_find_differences(comparison), *_find_surplus(comparison))
    words = f"against {file}: " + (_tell_differences(len(rows)) if rows else _tell_agreement(golden))
    return Report(
        "drift",
        scene.root,
        scene.environment.python,
        notices=(*scene.notices, *_mention_doubt(comparison)),
        answer=ExitCode.NO if rows else ExitCode.DONE,
        summary=words,
        drift=rows,
    )


def _tell_differences(count: int) -> str:
    return "1 difference" if count == 1 else f"{count} differences"


def _tell_agreement(golden: Golden) -> str:
    match len(golden.patches):
        case 0:
            return "it holds no patch, and none is applied here"
        case 1:
            return "its one patch is here as there"
        case count:
            return f"all {count} patches are here as there"


@dataclass(frozen=True, slots=True)
class _Comparison:
    """An environment and the golden file that it is held against; ``again`` are the options for the remedies."""

    scene: Scene
    golden: Golden
    file: str
    again: str

    def owner(self, distribution: str) -> Owner:
        return Owner.find(self.scene, distribution)

    def at_hand(self, patch: GoldenPatch) -> str | None:
        """The digest of the diff that a patch folder has for the version of ``patch``; None where none has one."""
        catalog = self.scene.catalog
        found, patch_set = catalog.patches.get(patch.id), catalog.set(patch.id.set)
        variant = variant_for(found, patch.version) if found is not None else None
        if patch_set is None or not isinstance(variant, Variant):
            return None
        try:
            return sha256(read_set_file(patch_set.folder, variant.file))
        except PatchkitError:
            return None

    def is_stacked_otherwise(self, patch: GoldenPatch) -> bool:
        """Whether ``patch`` itself is not here as there, so that what shares its files cannot be either."""
        applied = self.scene.ledger.patch(patch.id)
        return applied is None or applied.text.sha256 != patch.sha256

    def tell_consequences(self, id: PatchId, paths: Iterable[str]) -> str:
        """Which other patches have files that differ for no other reason than ``id``."""
        shared = {
            other.id
            for other in self.golden.patches
            if other.id != id and set(other.paths) & set(paths) and not self.is_stacked_otherwise(other)
        }
        return f"; what it shares with {', '.join(map(str, sorted(shared)))} differs for that" if shared else ""


def _mention_doubt(comparison: _Comparison) -> Iterator[Notice]:
    for name in sorted({patch.distribution for patch in comparison.golden.patches}):
        owner = comparison.owner(name)
        if owner.ambiguous:
            yield Notice(AmbiguousDistribution.code, owner.trouble)


def _find_differences(comparison: _Comparison) -> Iterator[Drift]:
    golden = comparison.golden
    owners = {name: comparison.owner(name) for name in {patch.distribution for patch in golden.patches}}
    files = {file.path: file for file in golden.files}
    observed = observe(comparison.scene.root, files)
    for patch in golden.patches:
        wrong = [files[path] for path in patch.paths if not _agrees(files[path], observed[path].content)]
        told = tuple(_describe(file, observed[file.path]) for file in wrong)
        yield from _compare_patch(comparison, patch, owners[patch.distribution], told)


def _compare_patch(
    comparison: _Comparison, patch: GoldenPatch, owner: Owner, wrong: tuple[DriftedFile, ...]
) -> Iterator[Drift]:
    def row(cause: Cause, detail: str, remedy: str) -> Drift:
        about = (patch.distribution, patch.version, owner.version)
        return Drift(patch.id, cause, detail, remedy, *about, files=wrong)

    scene = comparison.scene
    install = scene.install_command(f"{patch.distribution}=={patch.version}")
    applied = scene.ledger.patch(patch.id)
    if owner.ambiguous:
        if wrong:
            yield replace(row(Cause.EDITED, f"its files are not as there; {owner.trouble}", ""), files=())
    elif owner.version is None:
        yield row(Cause.UNINSTALLED, owner.trouble or f"{patch.distribution} is not installed here", install)
    elif not is_same_version(owner.version, patch.version):
        cause = Cause.DOWNGRADED if is_older(owner.version, patch.version) else Cause.UPGRADED
        yield row(cause, f"{owner.version} is installed here, not {patch.version}", install)
    elif applied is None or applied.text.sha256 != patch.sha256:
        words, remedy = _tell_other_diff(comparison, patch)
        if applied is not None:
            words = f"another diff is applied here than {comparison.file} has" + words
            yield row(Cause.PATCH_CHANGED, words, remedy)
        else:
            there = "its files agree, and no ledger here says why"
            yield row(
                Cause.NOT_APPLIED, ("it is not applied here" if wrong or not patch.paths else there) + words, remedy
            )
    elif wrong:
        yield from _explain(comparison, patch, applied, owner, row)


def _tell_other_diff(comparison: _Comparison, patch: GoldenPatch) -> tuple[str, str]:
    """What follows from a diff that is not the one applied here, and the remedy: none where `apply` has another one."""
    words = comparison.tell_consequences(patch.id, patch.paths)
    at_hand = comparison.at_hand(patch)
    if at_hand == patch.sha256:
        return words, f"patchkit apply {patch.id}{comparison.again}"
    if at_hand is None:
        return f"; no patch folder at hand has it for {patch.version} (--patches DIR){words}", ""
    return f"; the patch folder at hand has another diff than {comparison.file}{words}", ""


def _explain(
    comparison: _Comparison,
    patch: GoldenPatch,
    applied: Applied,
    owner: Owner,
    row: Callable[[Cause, str, str], Drift],
) -> Iterator[Drift]:
    """Why files of a patch that is recorded here too are not the golden ones."""
    facts = read_applied_facts(comparison.scene, [applied])
    causes = find_causes(applied, owner.version, facts, record_kept=owner.record_kept)
    words = {
        Cause.REINSTALLED: "what was shipped is back",
        Cause.UPGRADED: f"it was patched as {applied.version} here, and not since",
        Cause.DOWNGRADED: f"it was patched as {applied.version} here, and not since",
        Cause.EDITED: "its files were changed since",
    }
    found = next((cause for cause in words if cause in causes), None)
    if found is not None:
        discard = " --discard-edits" if found is Cause.EDITED else ""
        yield row(found, words[found], f"patchkit apply {patch.id}{discard}{comparison.again}")
    elif not _follows(comparison, applied):
        yield row(Cause.EDITED, "its files were made from another base, or in another order, here", "")


def _follows(comparison: _Comparison, applied: Applied) -> bool:
    """Whether another patch that is not here as there changes files of ``applied``: then that one is told, not this."""
    golden, ledger = comparison.golden, comparison.scene.ledger
    paths = set(applied.paths)
    rivals = [patch.paths for patch in golden.patches if comparison.is_stacked_otherwise(patch)]
    surplus = [other.paths for other in ledger.applied if golden.patch(other.id) is None]
    return any(paths & set(others) for others in (*rivals, *surplus))


def _agrees(file: GoldenFile, content: Content | None) -> bool:
    return _is(file.after, content)


def _is(stamp: Stamp | None, content: Content | None) -> bool:
    if stamp is None or content is None:
        return stamp is None and content is None
    found = Stamp.of(content)
    return (found.sha256, found.executable) == (stamp.sha256, stamp.executable)


def _describe(file: GoldenFile, observed: Observed) -> DriftedFile:
    content = observed.content
    pristine = not observed.obstacle and _is(file.before, content)
    state = FileState.MISSING if content is None else FileState.PRISTINE if pristine else FileState.FOREIGN
    words = {
        FileState.PRISTINE: "holds what was shipped",
        FileState.MISSING: observed.obstacle or "is missing",
        FileState.FOREIGN: observed.obstacle or _tell_difference(file, content),
    }
    return DriftedFile(
        file.path,
        state,
        None if file.after is None else file.after.sha256,
        None if content is None else Stamp.of(content).sha256,
        words[state],
        content=None if content is None else content.data,
    )


def _tell_difference(file: GoldenFile, content: Content | None) -> str:
    same = content is not None and file.after is not None and Stamp.of(content).sha256 == file.after.sha256
    return "has another executable bit" if same else "has other content"


def _find_surplus(comparison: _Comparison) -> Iterator[Drift]:
    for applied in comparison.scene.ledger.applied:
        if comparison.golden.patch(applied.id) is None:
            version = comparison.owner(applied.distribution).version
            words = f"it is applied here, and not in {comparison.file}"
            words += comparison.tell_consequences(applied.id, applied.paths)
            remedy = f"patchkit revert {applied.id}{comparison.again}"
            about = (applied.distribution, applied.version, version)
            yield Drift(applied.id, Cause.PATCH_REMOVED, words, remedy, *about)
