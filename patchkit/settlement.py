"""Sealing a ledger that is about to be written: foreseeing that the next bare ``apply`` will have nothing to do.

What is written here is read by `patchkit.settled`, which says what a seal is for. A ledger gets one where everything
that is declared is applied, and where nothing else has to be said: no warning, no patch that is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from patchkit.account import account_for
from patchkit.applied import Ledger
from patchkit.checks import compile_sources, compiles_here
from patchkit.decision import Decision, foresee
from patchkit.errors import PatchkitError
from patchkit.examination import find_changed
from patchkit.inputs import Doubt
from patchkit.installed import Environment
from patchkit.model import PatchState
from patchkit.report import PatchReport
from patchkit.settled import Answer, Seal, close_seal, describe_python, digest_inputs, is_plain, mode_word
from patchkit.site import find_distribution, list_root, observe
from patchkit.state import State
from patchkit.wanted import list_declared, want_apply


def seal_ledger(decision: Decision, ledger: Ledger, unsealed: bytes) -> tuple[str, ...]:
    """The seal of ``ledger``, to be written because of ``decision``, ``unsealed`` so far; empty where it has none."""
    scene = decision.scene
    if not (scene.catalog.sets and scene.catalog.digest):
        return ()
    try:
        # Like a run that is told of this one folder only: it must not depend on what else is seen from here.
        alone = Environment(roots=(scene.root,))
        later = replace(scene, environment=alone, listings=(list_root(scene.root),), state=State(ledger, None, None))
        settled = foresee(later, want_apply(later.catalog, ledger))
        rows = () if settled is None else account_for(settled, {}, done=True)
        if settled is None or not _says_nothing_else(settled, rows):
            return ()
        lines = [*_describe_inputs(settled), *_describe_files(ledger), *map(_describe_row, rows)]
        lines += [f"answers {answer}" for answer in _find_answers(decision, settled)]
        lines.append(f"inputs {digest_inputs(scene.root, Seal(lines), scene.catalog.digest)}")
        if not all(map(is_plain, lines)) or _has_changed(settled):
            return ()
        return close_seal(unsealed, lines)
    except (Doubt, PatchkitError, OSError):
        return ()


def _has_changed(settled: Decision) -> bool:
    """Whether what is installed is not what was decided from any more: then the digest may be of something else."""
    before = settled.scene
    listing = list_root(before.root)
    owners = {name: find_distribution(listing, name, before.environment) for name in settled.owners}
    return listing != before.listing or owners != settled.owners


def _says_nothing_else(settled: Decision, rows: Sequence[PatchReport]) -> bool:
    """Whether the report on ``settled`` is one plain row a patch."""
    return (
        all(row.state is PatchState.APPLIED and not (row.message or row.next or row.failed) for row in rows)
        and not any(choice.patch is not None and choice.patch.markers for choice in settled.choices.values())
        and not any(settled.scene.version_of(name) is not None for name in _list_shadows(settled))
    )


def _list_shadows(settled: Decision) -> Iterator[str]:
    for choice in settled.choices.values():
        yield from choice.patch.shadowed_by if choice.patch is not None else ()


def _describe_inputs(settled: Decision) -> Iterator[str]:
    """Which distributions were looked for, and what decides where the patch folders are."""
    patches = [choice.patch for choice in settled.choices.values() if choice.patch is not None]
    asked = {constraint.distribution for patch in patches for constraint in patch.constraints}
    asked |= {*_list_shadows(settled)}
    yield from (f"watch {name}" for name in sorted({*settled.owners, *asked}))
    yield from (f"absent {name}" for name in sorted(asked) if settled.scene.version_of(name) is None)
    project = settled.scene.catalog.project
    yield f"declares {'yes' if project != type(project)() else 'no'}"
    yield from (f"named {folder}" for folder in project.patches)


def _describe_files(ledger: Ledger) -> Iterator[str]:
    for file in ledger.files:
        if file.written is None:
            yield f"gone {file.path}"
        else:
            yield f"file {mode_word(file.written.mode)} {file.written.sha256} {file.path}"
    yield from (f"record {record.written.sha256} {record.path}" for record in ledger.records)


def _describe_row(row: PatchReport) -> str:
    words = (str(row.id), row.distribution, str(row.installed))
    if any(" " in word for word in words):
        raise Doubt(f"{row.id}: a name with a blank in it")
    return f"row {' '.join(words)} {row.variant}"


def _find_answers(decision: Decision, settled: Decision) -> Iterator[str]:
    """The questions that the seal answers."""
    scene = settled.scene
    declared = list_declared(scene.catalog)
    yield Answer.APPLY
    if declared == settled.wanted.reasons:
        yield Answer.APPLY_EXACT
    if settled.choices.keys() <= declared.keys():
        yield Answer.STATUS
    if _all_compile(decision, scene.ledger):
        yield f"{Answer.VERIFY_BYTES} {describe_python()}"
        if not any(applied.checks for applied in scene.ledger.applied):
            yield Answer.VERIFY


def _all_compile(decision: Decision, ledger: Ledger) -> bool:
    """Whether all patched sources compile in this interpreter; those that this run changes were compiled before."""
    if not compiles_here(decision.scene.environment):
        return False
    sources = {file.path for file in ledger.files if file.written is not None and file.path.endswith(".py")}
    rest = sources - find_changed(decision).keys()
    tree = decision.stacked.result.tree if decision.stacked is not None else {}
    found = {path: tree[path] for path in rest & tree.keys()}
    found |= {path: seen.content for path, seen in observe(decision.scene.root, rest - tree.keys()).items()}
    texts = {path: content.data for path, content in found.items() if content is not None}
    return texts.keys() == rest and not compile_sources(texts, decision.scene.environment)
