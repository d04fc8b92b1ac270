"""What is left of applied patches in a file: their hunks, looked for backwards; and the text that was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from patchkit.applied import LedgerFile
from patchkit.drift import HunkTrace, Trace
from patchkit.fold import Layer, Tree, fold
from patchkit.hunks import apply_hunks
from patchkit.installed import Stamp
from patchkit.model import EntryKind, FileDiff, HunkResult


def trace_hunks(layer: Layer, path: str, content: bytes | None, written: bytes | None) -> tuple[HunkTrace, ...]:
    """Each hunk that ``layer`` has for ``path``: there, when it would come out of ``content`` again; else gone.

    In ``written``, the text that was written (None: unknown), all of them are, also those that a later patch covers.
    """
    traces = (trace for diff in layer.diffs if diff.path == path for trace in _trace(diff, content))
    if content is not None and content == written:
        return tuple(HunkTrace(trace.number, trace.line, Trace.THERE) for trace in traces)
    return tuple(traces)


def _trace(diff: FileDiff, content: bytes | None) -> Iterable[HunkTrace]:
    undone = diff.reversed()
    if diff.kind is EntryKind.DELETE:
        return ()
    outcomes = apply_hunks(content or b"", undone).outcomes
    return (
        HunkTrace(outcome.number, outcome.line, Trace.THERE)
        if outcome.result is HunkResult.FITS and content is not None
        else HunkTrace(
            outcome.number,
            outcome.line,
            Trace.GONE,
            _shown(hunk.new),
            outcome.found if content is not None else (),
            outcome.nearest,
        )
        for hunk, outcome in zip(diff.hunks, outcomes, strict=False)
    )


def _shown(side: bytes) -> tuple[str, ...]:
    text = side.removesuffix(b"\n").decode("utf-8", "backslashreplace")
    return tuple(line.removesuffix("\r") for line in text.split("\n")) if side else ()


def fold_again(files: Sequence[LedgerFile], layers: Sequence[Layer], saved: Tree) -> dict[str, bytes]:
    """The texts that were written, by path: those patches on those bases, where the digest proves the result.

    ``saved`` are the bases that are still at hand.
    """
    needed = {path for layer in layers for path in layer.paths}
    result = fold({path: saved.get(path) for path in needed}, layers).tree
    written: Mapping[str, Stamp | None] = {file.path: file.written for file in files}
    return {
        path: content.data
        for path, content in result.items()
        if content is not None and (stamp := written.get(path)) is not None and Stamp.of(content).sha256 == stamp.sha256
    }
