"""The text of a patchset.toml: made anew, or with an entry more; comments, order and line ends stay as they are.

Entries go in by lines, and every new text is proved: it is read again, and must say what it said before and the new
entry, no more. Where it does not (the tables are written inline, say), the lines to add are told instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from patchkit.errors import BadManifest, PatchkitError
from patchkit.manifest import SCHEMA, read_manifest
from patchkit.patchset import NotNeeded, Patch, PatchSet, Variant

_HEADER = re.compile(r"[ \t]*\[(\[)?[ \t]*([A-Za-z0-9_-]+(?:[ \t]*\.[ \t]*[A-Za-z0-9_-]+)*)[ \t]*\]?\][ \t]*(?:#.*)?")
_VERSIONS = re.compile(r"""([ \t]*versions[ \t]*=[ \t]*)(?:"[^"\\]*"|'[^']*')""")
_FENCES = ('"""', "'''")


def new_manifest(patch_set: PatchSet) -> str:
    """The text of a manifest that says what ``patch_set`` says; checks, constraints and markers are not written."""
    head = [
        f"schema = {SCHEMA}",
        f"name = {_quote(patch_set.name)}",
        f"distribution = {_quote(patch_set.distribution)}",
    ]
    head += [f"summary = {_quote(patch_set.summary)}"] if patch_set.summary else []
    blocks = ["\n".join(head), *map(_render_patch, patch_set.patches)]
    return _prove("\n\n".join(blocks) + "\n", patch_set, "")


def with_patch(text: str, patch_set: PatchSet, patch: Patch) -> tuple[str, PatchSet]:
    """``text``, which says ``patch_set``, with a ``[[patch]]`` more at its end; and what it says then.

    Raises `BadManifest`, with the lines to add, where that cannot be done.
    """
    added = _render_patch(patch)
    wanted = replace(patch_set, patches=(*patch_set.patches, replace(patch, place=len(patch_set.patches))))
    lines = _split(text)
    return _prove(_insert(text, lines, len(lines), added), wanted, added), wanted


def with_variant(text: str, patch_set: PatchSet, name: str, variant: Variant) -> tuple[str, PatchSet]:
    """``text`` with a ``[[patch.variant]]`` more behind those of the patch ``name``; and what it says then."""
    place = _find(patch_set, name)
    patch = patch_set.patches[place]
    wanted = _with(patch_set, place, replace(patch, variants=(*patch.variants, variant)))
    added = _render_variant(variant)
    return _add_rule(text, place, added, wanted), wanted


def with_not_needed(text: str, patch_set: PatchSet, name: str, rule: NotNeeded) -> tuple[str, PatchSet]:
    """``text`` with a ``[[patch.not-needed]]`` more for the patch ``name``; and what it says then."""
    place = _find(patch_set, name)
    patch = patch_set.patches[place]
    wanted = _with(patch_set, place, replace(patch, not_needed=(*patch.not_needed, rule)))
    return _add_rule(text, place, _render_not_needed(rule), wanted), wanted


def with_range(text: str, patch_set: PatchSet, name: str, variant: Variant, versions: str) -> tuple[str, PatchSet]:
    """``text`` with another range for a ``variant`` of the patch ``name``; and what it says then."""
    place = _find(patch_set, name)
    patch = patch_set.patches[place]
    number = patch.variants.index(variant)
    changed = tuple(replace(each, versions=versions) if each == variant else each for each in patch.variants)
    wanted = _with(patch_set, place, replace(patch, variants=changed))
    lines = _split(text)
    blocks = [block for block in _blocks_of(lines, place) if block.key == "patch.variant"]
    words = f"versions = {_quote(versions)}   # of {variant.file}"
    if number < len(blocks):
        for index in range(blocks[number].begin, blocks[number].end):
            lines[index], done = _VERSIONS.subn(lambda found: found[1] + _quote(versions), lines[index], count=1)
            if done:
                break
    return _prove("".join(lines), wanted, words), wanted


def _find(patch_set: PatchSet, name: str) -> int:
    return next(place for place, patch in enumerate(patch_set.patches) if patch.id.patch == name)


def _with(patch_set: PatchSet, place: int, patch: Patch) -> PatchSet:
    return replace(patch_set, patches=(*patch_set.patches[:place], patch, *patch_set.patches[place + 1 :]))


def _prove(text: str, wanted: PatchSet, added: str) -> str:
    file = f"{wanted.folder}/patchset.toml"
    try:
        found = read_manifest(text.encode(), folder=wanted.folder, file=file)
    except PatchkitError as error:
        raise _refuse(file, added, f": {error.message}") from error
    if found != wanted:
        raise _refuse(file, added, "")
    return text


def _refuse(file: str, added: str, why: str) -> BadManifest:
    return BadManifest(f"{file} is written in a way that no entry can be put into{why}", hint=f"add by hand:\n{added}")


# ---- where lines go -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Block:
    """A table from its header line up to the next one's, 0-based; ``key`` as in ``patch.variant``."""

    key: str
    begin: int
    end: int


def _split(text: str) -> list[str]:
    """The lines with their ends; nothing but a line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    heads = [*_headers(lines), (len(lines), "")]
    for (begin, key), (end, _) in pairwise(heads):
        yield _Block(key, begin, end)


def _headers(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    fence = ""
    for index, line in enumerate(lines):
        found = None if fence else _HEADER.fullmatch(line.rstrip("\r\n"))
        if found is not None:
            yield index, re.sub(r"[ \t]", "", found[2])
        for mark in _FENCES:
            if mark in line and fence in ("", mark) and line.count(mark) % 2:
                fence = "" if fence else mark


def _blocks_of(lines: Sequence[str], place: int) -> list[_Block]:
    """The blocks of one patch, its own first; none where the manifest has no such header."""
    blocks = list(_blocks(lines))
    starts = [index for index, block in enumerate(blocks) if block.key == "patch"]
    if place >= len(starts):
        return []
    stop = starts[place + 1] if place + 1 < len(starts) else len(blocks)
    return blocks[starts[place] : stop]


def _add_rule(text: str, place: int, added: str, wanted: PatchSet) -> str:
    lines = _split(text)
    blocks = _blocks_of(lines, place)
    if not blocks:
        raise _refuse(f"{wanted.folder}/patchset.toml", added, "")
    rules = [block for block in blocks if block.key in ("patch.variant", "patch.not-needed")]
    variants = [block for block in rules if block.key == "patch.variant"]
    at = (variants if "[[patch.variant]]" in added and variants else rules or blocks[:1])[-1].end
    return _prove(_insert(text, lines, _above_comments(lines, at), added), wanted, added)


def _above_comments(lines: Sequence[str], at: int) -> int:
    """Where the block that ends at ``at`` really ends: comments right above the next header belong to that one."""
    if at < len(lines):
        while lines[at - 1].lstrip().startswith("#"):
            at -= 1
    while at and not lines[at - 1].strip():
        at -= 1
    return at


def _insert(text: str, lines: Sequence[str], at: int, added: str) -> str:
    """``added`` between empty lines; as many as separate what is there."""
    end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    above, below = "".join(lines[:at]), "".join(lines[at:])
    if above and not above.endswith("\n"):
        above += end
    while above.endswith(end * 2):
        above = above.removesuffix(end)
    body = end.join(added.split("\n")) + end
    separator = end if below and below.lstrip(" \t")[:1] not in ("\r", "\n") else ""
    return above + (end if above else "") + body + separator + below


# ---- entries as text ------------------------------------------------------------------------------------------


def _render_patch(patch: Patch) -> str:
    source = patch.provenance
    after = [str(id) if id.set != patch.id.set else id.patch for id in patch.after]
    rows = [
        ("summary", patch.summary),
        ("group", patch.group),
        ("origin", source.origin),
        ("bug", source.bug),
        ("forwarded", source.forwarded),
        ("applied-upstream", source.applied_upstream),
        ("last-update", source.last_update),
    ]
    lines = ["[[patch]]", f"name = {_quote(patch.id.patch)}"]
    lines += [f"{key} = {_quote(value)}" for key, value in rows[:1] if value]
    lines += [] if patch.default else ["default = false"]
    lines += [f"after = {_quote_all(after)}"] if after else []
    lines += [f"{key} = {_quote(value)}" for key, value in rows[1:] if value]
    blocks = ["\n".join(lines), *map(_render_variant, patch.variants), *map(_render_not_needed, patch.not_needed)]
    return "\n\n".join(blocks)


def _render_variant(variant: Variant) -> str:
    lines = ["[[patch.variant]]", f"versions = {_quote(variant.versions)}", f"file = {_quote(variant.file)}"]
    lines += [f"strip = {variant.strip}"] if variant.strip != 1 else []
    lines += [f"directory = {_quote(variant.directory)}"] if variant.directory else []
    lines += [f"include = {_quote_all(variant.include)}"] if variant.include else []
    lines += [f"exclude = {_quote_all(variant.exclude)}"] if variant.exclude else []
    return "\n".join(lines)


def _render_not_needed(rule: NotNeeded) -> str:
    return f"[[patch.not-needed]]\nversions = {_quote(rule.versions)}\nwhy = {_quote(rule.why)}"


def _quote(text: str) -> str:
    """A basic string of TOML, which JSON's strings are but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quote_all(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quote, texts))}]"
