"""Entries are put into manifests: what was there stays, line by line, and the new text says the entry and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from patchkit.errors import BadManifest
from patchkit.manifest import read_manifest
from patchkit.manifesttext import new_manifest, with_not_needed, with_patch, with_range, with_variant
from patchkit.patchset import NotNeeded, Patch, PatchId, PatchSet, Provenance, Variant
from worlds import CHECKOUT

PLAIN = """\
# Words that are wrong.
schema = 1
name = "words"   # the folder
distribution = "inflection"

# The first.
[[patch]]
name = "software"

[[patch.variant]]
versions = "==0.5.1"   # the newest
file = "software.patch"
# the end of it

[[patch.check]]
kind = "symbol"
module = "inflection"
symbol = "UNCOUNTABLES"

# The second, which has no check.
[[patch]]
name = "hardware"
[[patch.variant]]
versions = ">=0.5.0,<=0.5.1"
file = "hardware.patch"
"""
TIGHT = PLAIN.replace("\n\n", "\n")
FORMS = {
    "plain": PLAIN,
    "without empty lines": TIGHT,
    "crlf": PLAIN.replace("\n", "\r\n"),
    "no newline at the end": PLAIN.rstrip("\n"),
    "empty lines at the end": PLAIN + "\n\n\n",
    "spaces in headers": PLAIN.replace("[[patch.variant]]", "  [[ patch . variant ]]  # a diff"),
    "headers in a text": PLAIN.replace('name = "hardware"', 'name = "hardware"\nsummary = """a\n[[patch]]\n"""'),
    "a comment at the end": PLAIN + "\n# end\n",
}
VARIANT = Variant("==0.6", "software.0.6.patch", 2, "d", ("d/**",), ("d/x",))
FOLDER = "patches/words"


def read(text: str) -> PatchSet:
    return read_manifest(text.encode(), folder=FOLDER, file="patchset.toml")


def a_patch(name: str) -> Patch:
    after = (PatchId("words", "software"), PatchId("other", "one"))
    source = Provenance(origin='upstream, "x"', bug="https://example.org/1")
    return Patch(
        PatchId("words", name),
        "inflection",
        0,
        'A "line" \\ \u00e4',
        after=after,
        provenance=source,
        variants=(VARIANT,),
    )


Change = Callable[[str, PatchSet], tuple[str, PatchSet]]
CHANGES: dict[str, Change] = {
    "a patch": lambda text, found: with_patch(text, found, a_patch("new")),
    "a variant of the first": lambda text, found: with_variant(text, found, "software", VARIANT),
    "a variant of the last": lambda text, found: with_variant(text, found, "hardware", VARIANT),
    "not needed": lambda text, found: with_not_needed(text, found, "software", NotNeeded(">=0.6", "it is upstream")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_entry_is_added_and_every_line_stays_as_it_is(form: str, change: str) -> None:
    text = FORMS[form]
    after, said = CHANGES[change](text, read(text))
    assert read(after) == said != read(text)
    assert is_part(text.splitlines(keepends=True), (after + "\n").splitlines(keepends=True)) or not text.endswith("\n")
    assert is_part(
        [line.rstrip("\r\n") for line in text.splitlines()], [line.rstrip("\r\n") for line in after.splitlines()]
    )
    assert ("\r\n" in text) is ("\r\n" in after) and after.count("\r\n") in (0, after.count("\n"))


def is_part(lines: list[str], of: list[str]) -> bool:
    """Whether ``lines`` are among those of ``of`` in their order; empty ones aside."""
    rest = iter(of)
    return all(line in rest for line in lines if line.strip())


def test_the_comment_of_the_next_patch_stays_with_it() -> None:
    after, _ = with_not_needed(PLAIN, read(PLAIN), "software", NotNeeded(">=0.6", "no"))
    assert "# The second, which has no check.\n[[patch]]\n" in after
    assert '# the end of it\n\n[[patch.not-needed]]\nversions = ">=0.6"\nwhy = "no"\n\n[[patch.check]]' in after


def test_a_range_is_widened_where_it_stands() -> None:
    found = read(PLAIN)
    after, said = with_range(PLAIN, found, "hardware", found.patches[1].variants[0], ">=0.5.0,<=0.6")
    assert after == PLAIN.replace('">=0.5.0,<=0.5.1"', '">=0.5.0,<=0.6"')
    assert said.patches[1].variants[0].versions == ">=0.5.0,<=0.6"
    assert 'versions = "==0.5.1"   # the newest' in after


INLINE = """\
schema = 1
name = "words"
distribution = "inflection"
patch = [{name = "software", variant = [{versions = "==0.5.1", file = "software.patch"}]}]
"""


@pytest.mark.parametrize("change", ["a patch", "a variant of the first", "not needed"])
def test_where_no_entry_can_be_put_the_lines_are_told(change: str) -> None:
    with pytest.raises(BadManifest) as raised:
        CHANGES[change](INLINE, read(INLINE))
    assert "patches/words/patchset.toml" in raised.value.message
    assert "add by hand:\n[[patch" in raised.value.hint


def test_a_range_that_cannot_be_changed_is_told() -> None:
    found = read(INLINE)
    with pytest.raises(BadManifest, match="no entry can be put into"):
        with_range(INLINE, found, "software", found.patches[0].variants[0], ">=0.5")


def test_an_entry_that_would_overlap_is_refused() -> None:
    with pytest.raises(BadManifest, match="overlaps"):
        with_variant(PLAIN, read(PLAIN), "software", replace(VARIANT, versions=">=0.5"))


def test_a_new_manifest_says_what_it_is_made_of() -> None:
    patch = replace(a_patch("new"), after=(), default=False, group="g", not_needed=(NotNeeded(">=1", "\x7f\n\t"),))
    patch_set = PatchSet("words", "inflection", "in a line", FOLDER, (patch,))
    assert read(new_manifest(patch_set)) == patch_set


def test_the_flagship_manifest_takes_a_variant_for_each_patch() -> None:
    folder = CHECKOUT / "patches" / "flashinfer-dynamo"
    text = (folder / "patchset.toml").read_text("utf-8")
    found = read_manifest(text.encode(), folder=str(folder), file="a")
    for patch in found.patches:
        text, found = with_variant(text, found, patch.id.patch, Variant("==99", "new.patch"))
    old = (folder / "patchset.toml").read_text("utf-8").splitlines()
    assert is_part(old, text.splitlines()) and len(text.splitlines()) == len(old) + 4 * len(found.patches)
