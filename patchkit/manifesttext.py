"""The text of a patchset.toml: made anew, or with an entry more; comments, order and line ends stay as they are.

An entry goes where the others of its kind are: as a table with a header, or into an inline array. Every new text is
proved: it is read again, and must say what it said before and the new entry, no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from patchkit.errors import BadManifest, PatchkitError
from patchkit.manifest import SCHEMA, read_manifest
from patchkit.outline import Block, Outline, Path, Span, outline
from patchkit.patchset import NotNeeded, Patch, PatchSet, Variant

Pairs = list[tuple[str, str]]
"""The keys of a table with their values, as TOML writes them."""

_COMMA = re.compile(r"(?:[ \t\r\n]|#[^\n]*\n)*,")


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
    """``text``, which says ``patch_set``, with a patch more at its end; and what it says then.

    The new patch has what the set says of all its patches, too. Raises `BadManifest`, with the lines to add, where it
    cannot be one of the set.
    """
    added = _render_patch(patch)
    whole = replace(
        patch,
        place=len(patch_set.patches),
        constraints=patch_set.constraints + patch.constraints,
        markers=patch_set.markers + patch.markers,
    )
    wanted = replace(patch_set, patches=(*patch_set.patches, whole))
    found = outline(text)
    if ("patch",) in found.values:
        return _prove(_insert_element(text, found, ("patch",), _inline_patch(patch)), wanted, added), wanted
    return _prove(_insert(text, len(text), added), wanted, added), wanted


def with_variant(text: str, patch_set: PatchSet, name: str, variant: Variant) -> tuple[str, PatchSet]:
    """``text`` with a variant more behind those of the patch ``name``; and what it says then."""
    place = _find(patch_set, name)
    patch = patch_set.patches[place]
    wanted = _with(patch_set, place, replace(patch, variants=(*patch.variants, variant)))
    return _add_rule(text, place, "variant", _variant_pairs(variant), wanted), wanted


def with_not_needed(text: str, patch_set: PatchSet, name: str, rule: NotNeeded) -> tuple[str, PatchSet]:
    """``text`` with one ``not-needed`` more for the patch ``name``; and what it says then."""
    place = _find(patch_set, name)
    patch = patch_set.patches[place]
    wanted = _with(patch_set, place, replace(patch, not_needed=(*patch.not_needed, rule)))
    return _add_rule(text, place, "not-needed", _not_needed_pairs(rule), wanted), wanted


def with_range(text: str, patch_set: PatchSet, name: str, variant: Variant, versions: str) -> tuple[str, PatchSet]:
    """``text`` with another range for a ``variant`` of the patch ``name``; and what it says then."""
    return _exchange(text, patch_set, name, variant, "versions", replace(variant, versions=versions))


def with_file(text: str, patch_set: PatchSet, name: str, variant: Variant, file: str) -> tuple[str, PatchSet]:
    """``text`` with another diff for a ``variant`` of the patch ``name``; and what it says then."""
    return _exchange(text, patch_set, name, variant, "file", replace(variant, file=file))


def _exchange(text: str, patch_set: PatchSet, name: str, old: Variant, key: str, new: Variant) -> tuple[str, PatchSet]:
    place = _find(patch_set, name)
    patch = patch_set.patches[place]
    number = patch.variants.index(old)
    variants = (*patch.variants[:number], new, *patch.variants[number + 1 :])
    wanted = _with(patch_set, place, replace(patch, variants=variants))
    span = outline(text).values[("patch", place, "variant", number, key)]
    value = dict(_variant_pairs(new))[key]
    return _prove(text[: span.begin] + value + text[span.end :], wanted, f"{key} = {value}"), wanted


def _find(patch_set: PatchSet, name: str) -> int:
    return next(place for place, patch in enumerate(patch_set.patches) if patch.id.patch == name)


def _with(patch_set: PatchSet, place: int, patch: Patch) -> PatchSet:
    return replace(patch_set, patches=(*patch_set.patches[:place], patch, *patch_set.patches[place + 1 :]))


def _prove(text: str, wanted: PatchSet, added: str) -> str:
    file = f"{wanted.folder}/patchset.toml"
    try:
        found = read_manifest(text.encode(), folder=wanted.folder, file=file)
    except PatchkitError as error:
        raise BadManifest(
            f"{file} would be wrong with one entry more: {error.message}", hint=f"it is:\n{added}"
        ) from error
    if found != wanted:
        words = f"{file} is written in a way that no entry can be put into"
        raise BadManifest(words, hint=f"add by hand:\n{added}")
    return text


# ---- where an entry goes --------------------------------------------------------------------------------------


def _add_rule(text: str, place: int, key: str, pairs: Pairs, wanted: PatchSet) -> str:
    found = outline(text)
    own: Path = ("patch", place)
    added = _block(f"patch.{key}", pairs)
    if (*own, key) in found.values:
        return _prove(_insert_element(text, found, (*own, key), _inline(pairs)), wanted, added)
    if own in found.values:
        end = max(span.end for path, span in found.values.items() if path[:-1] == own)
        return _prove(f"{text[:end]}, {key} = [{_inline(pairs)}]{text[end:]}", wanted, added)
    return _prove(_insert(text, _end_of_rules(text, found, own, key), added), wanted, added)


def _end_of_rules(text: str, found: Outline, own: Path, key: str) -> int:
    """Behind the tables of the same kind; for want of any behind its other rules, or what the patch begins with."""
    blocks = [block for block in found.blocks if block.path[:2] == own]
    rules = [block for block in blocks if block.path[2:3] in (("variant",), ("not-needed",))]
    variants = [block for block in rules if block.path[2] == "variant"]
    return _above_comments(text, (variants if key == "variant" and variants else rules or blocks[:1])[-1])


def _above_comments(text: str, block: Block) -> int:
    """Where a block really ends: comments right above the next header belong to that one."""
    floor, at = _next_line(text, block.body), block.end
    if at < len(text):
        while at > floor and text[_line_before(text, at) : at].lstrip().startswith("#"):
            at = _line_before(text, at)
    while at > floor and not text[_line_before(text, at) : at].strip():
        at = _line_before(text, at)
    return at


def _next_line(text: str, at: int) -> int:
    return (text.find("\n", at) + 1) or len(text)


def _line_before(text: str, at: int) -> int:
    """Where the line begins that ends at ``at``."""
    return text.rfind("\n", 0, at - 1) + 1


def _insert(text: str, at: int, added: str) -> str:
    """``added`` between empty lines; as many as separate what is there."""
    end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    above, below = text[:at], text[at:]
    if above and not above.endswith("\n"):
        above += end
    while above.endswith(end * 2):
        above = above.removesuffix(end)
    body = end.join(added.split("\n")) + end
    separator = end if below and below.lstrip(" \t")[:1] not in ("\r", "\n") else ""
    return above + (end if above else "") + body + separator + below


def _insert_element(text: str, found: Outline, path: Path, element: str) -> str:
    """One more element at the end of an inline array: on a line of its own where the others have one each."""
    array, elements = found.values[path], found.elements(path)
    if not elements:
        return f"{text[: array.begin + 1]}{element}{text[array.begin + 1 :]}"
    last = elements[-1]
    comma = _COMMA.match(text, last.end, array.end)
    line = text.find("\n", comma.end() if comma is not None else last.end, array.end)
    if line < 0:
        return f"{text[: last.end]}, {element}{text[last.end :]}"
    above, mark = (text[last.end : line], ",") if comma is not None else (f",{text[last.end : line]}", "")
    end = "\r\n" if text[line - 1] == "\r" else "\n"
    return f"{text[: last.end]}{above}\n{_indent(text, last)}{element}{mark}{end}{text[line + 1 :]}"


def _indent(text: str, element: Span) -> str:
    """What stands in front of an element on its line, if it is the first one there."""
    before = text[text.rfind("\n", 0, element.begin) + 1 : element.begin]
    return before if not before.strip(" \t") else "    "


# ---- entries as text ------------------------------------------------------------------------------------------


def _render_patch(patch: Patch) -> str:
    variants = [_block("patch.variant", _variant_pairs(variant)) for variant in patch.variants]
    unneeded = [_block("patch.not-needed", _not_needed_pairs(rule)) for rule in patch.not_needed]
    return "\n\n".join([_block("patch", _patch_pairs(patch)), *variants, *unneeded])


def _inline_patch(patch: Patch) -> str:
    variants = [_inline(_variant_pairs(variant)) for variant in patch.variants]
    unneeded = [_inline(_not_needed_pairs(rule)) for rule in patch.not_needed]
    rules = [("variant", variants), ("not-needed", unneeded)]
    return _inline(_patch_pairs(patch) + [(key, f"[{', '.join(tables)}]") for key, tables in rules if tables])


def _block(header: str, pairs: Pairs) -> str:
    return "\n".join([f"[[{header}]]", *(f"{key} = {value}" for key, value in pairs)])


def _inline(pairs: Pairs) -> str:
    return f"{{{', '.join(f'{key} = {value}' for key, value in pairs)}}}"


def _patch_pairs(patch: Patch) -> Pairs:
    source = patch.provenance
    after = [str(id) if id.set != patch.id.set else id.patch for id in patch.after]
    pairs = [("name", _quote(patch.id.patch))]
    pairs += [("summary", _quote(patch.summary))] if patch.summary else []
    pairs += [] if patch.default else [("default", "false")]
    pairs += [("after", _quote_all(after))] if after else []
    rows = [
        ("group", patch.group),
        ("origin", source.origin),
        ("bug", source.bug),
        ("forwarded", source.forwarded),
        ("applied-upstream", source.applied_upstream),
        ("last-update", source.last_update),
    ]
    return pairs + [(key, _quote(value)) for key, value in rows if value]


def _variant_pairs(variant: Variant) -> Pairs:
    pairs = [("versions", _quote(variant.versions)), ("file", _quote(variant.file))]
    pairs += [("strip", str(variant.strip))] if variant.strip != 1 else []
    pairs += [("directory", _quote(variant.directory))] if variant.directory else []
    pairs += [("include", _quote_all(variant.include))] if variant.include else []
    pairs += [("exclude", _quote_all(variant.exclude))] if variant.exclude else []
    return pairs


def _not_needed_pairs(rule: NotNeeded) -> Pairs:
    return [("versions", _quote(rule.versions)), ("why", _quote(rule.why))]


def _quote(text: str) -> str:
    """A basic string of TOML, which JSON's strings are but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _quote_all(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_quote, texts))}]"
