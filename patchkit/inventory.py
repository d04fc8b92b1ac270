"""What is applied, as one golden file; and an environment held against one. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchkit.applied import Applied
from patchkit.assess import is_in_place
from patchkit.bases import Facts
from patchkit.causes import find_causes
from patchkit.drift import Cause, Drift, DriftedFile
from patchkit.errors import BadExport, Drifted, ExitCode
from patchkit.golden import Golden, GoldenFile, GoldenPatch, read_golden, take
from patchkit.installed import Content, FileState, Observed, Stamp
from patchkit.memory import Owner
from patchkit.model import Notice
from patchkit.report import Report
from patchkit.scene import CatalogNeed, Options, Scene, open_scene, read_steadily
from patchkit.site import observe, read_plain
from patchkit.verification import read_applied_facts
from patchkit.versions import is_older, is_same_version

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
    rows = (*_find_differences(scene, golden, again), *_find_surplus(scene, golden, file, again))
    words = f"against {file}: " + (_tell_differences(len(rows)) if rows else _tell_agreement(golden))
    return Report(
        "drift",
        scene.root,
        scene.environment.python,
        notices=scene.notices,
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


def _find_differences(scene: Scene, golden: Golden, again: str) -> Iterator[Drift]:
    owners = {name: Owner.find(scene, name) for name in {patch.distribution for patch in golden.patches}}
    files = {file.path: file for file in golden.files}
    observed = observe(scene.root, files)
    for patch in golden.patches:
        owner = owners[patch.distribution]
        wrong = [
            files[path] for path in patch.paths if path in files and not _agrees(files[path], observed[path].content)
        ]
        told = tuple(_describe(file, observed[file.path]) for file in wrong)
        yield from _compare_patch(scene, patch, owner, told, again)


def _compare_patch(
    scene: Scene, patch: GoldenPatch, owner: Owner, wrong: tuple[DriftedFile, ...], again: str
) -> Iterator[Drift]:
    def row(cause: Cause, detail: str, remedy: str) -> Drift:
        about = (patch.distribution, patch.version, owner.version)
        return Drift(patch.id, cause, detail, remedy, *about, files=wrong)

    install = scene.install_command(f"{patch.distribution}=={patch.version}")
    applied = scene.ledger.patch(patch.id)
    if owner.version is None:
        yield row(Cause.UNINSTALLED, owner.trouble or f"{patch.distribution} is not installed here", install)
    elif not is_same_version(owner.version, patch.version):
        cause = Cause.DOWNGRADED if is_older(owner.version, patch.version) else Cause.UPGRADED
        yield row(cause, f"{owner.version} is installed here, not {patch.version}", install)
    elif applied is None:
        words = "it is not applied here" if wrong or not patch.paths else "its files agree, and no ledger here says why"
        yield row(Cause.NOT_APPLIED, words, f"patchkit apply {patch.id}{again}")
    elif applied.text.sha256 != patch.sha256:
        yield row(Cause.PATCH_CHANGED, "another diff is applied here", f"patchkit apply {patch.id}{again}")
    elif wrong:
        cause, words = _explain(scene, applied, owner)
        discard = " --discard-edits" if cause is Cause.EDITED else ""
        yield row(cause, words, f"patchkit apply {patch.id}{discard}{again}")


def _explain(scene: Scene, applied: Applied, owner: Owner) -> tuple[Cause, str]:
    """Why files of a patch that is recorded here too are not the golden ones."""
    facts = read_applied_facts(scene, [applied])
    causes = find_causes(applied, owner.version, facts, record_kept=owner.record_kept)
    words = {
        Cause.REINSTALLED: "what was shipped is back",
        Cause.UPGRADED: f"it was patched as {applied.version} here, and not since",
        Cause.DOWNGRADED: f"it was patched as {applied.version} here, and not since",
        Cause.EDITED: "its files were changed since",
    }
    found = next((cause for cause in words if cause in causes), None)
    return (found, words[found]) if found else (Cause.EDITED, "its files were made from another base here")


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


def _find_surplus(scene: Scene, golden: Golden, file: str, again: str) -> Iterator[Drift]:
    for applied in scene.ledger.applied:
        if golden.patch(applied.id) is None:
            version = Owner.find(scene, applied.distribution).version
            remedy = f"patchkit revert {applied.id}{again}"
            about = (applied.distribution, applied.version, version)
            yield Drift(applied.id, Cause.PATCH_REMOVED, f"it is applied here, and not in {file}", remedy, *about)
