"""Entries are put into manifests: what was there stays, line by line, and the new text says the entry and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import BadManifest
from patchkit.manifest import read_manifest
from patchkit.manifesttext import new_manifest, with_not_needed, with_patch, with_range, with_variant
from patchkit.patchset import NotNeeded, Patch, PatchId, PatchSet, Provenance, Variant
from test_manifest import WHOLE
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
IN_LINES = """\
schema = 1
name = "words"
distribution = "inflection"
"patch" = [
  {name = "software", 'variant' = [
    {"versions" = "==0.5.1", file = "software.patch"}   # the first, without a comma
  ], not-needed = []},   # the last
  # end
]
"""


def test_a_patch_goes_behind_the_last_inline_one_and_comments_stay_where_they_are() -> None:
    after, _ = with_patch(
        IN_LINES, read(IN_LINES), Patch(PatchId("words", "new"), "inflection", 0, variants=(VARIANT,))
    )
    line = IN_LINES.splitlines()[6]
    assert f'{line}\n  {{name = "new", variant = [{{versions = "==0.6", ' in after and after.endswith(
        "},\n  # end\n]\n"
    )


def test_a_variant_goes_behind_the_last_inline_one() -> None:
    after, _ = with_variant(IN_LINES, read(IN_LINES), "software", Variant("==0.6", "b.patch"))
    line = '    {"versions" = "==0.5.1", file = "software.patch"},   # the first, without a comma\n'
    assert line + '    {versions = "==0.6", file = "b.patch"}\n  ], not-needed' in after
    after, _ = with_variant(INLINE, read(INLINE), "software", Variant("==0.6", "b.patch"))
    assert after == INLINE.replace('.patch"}]', '.patch"}, {versions = "==0.6", file = "b.patch"}]')


def test_an_inline_patch_gets_the_key_that_it_lacks() -> None:
    after, _ = with_not_needed(INLINE, read(INLINE), "software", NotNeeded(">=0.6", "no"))
    assert after == INLINE.replace('.patch"}]', '.patch"}], not-needed = [{versions = ">=0.6", why = "no"}]')
    after, _ = with_not_needed(IN_LINES, read(IN_LINES), "software", NotNeeded(">=0.6", "no"))
    assert after == IN_LINES.replace("not-needed = []", 'not-needed = [{versions = ">=0.6", why = "no"}]')


@pytest.mark.parametrize(
    "line",
    [
        '"versions" = "==0.5.1"   # the newest',
        '# old versions = ">=0.9"\nversions = "==0.5.1"',
        "versions = '''\n==0.5.1'''",
        '"\\u0076ersions"="==0.5.1"#c',
    ],
)
def test_a_range_is_found_however_it_is_written(line: str) -> None:
    text = PLAIN.replace('versions = "==0.5.1"   # the newest', line)
    found = read(text)
    after, _ = with_range(text, found, "software", found.patches[0].variants[0], "<=0.6")
    old = line.split("=", 1)[1].strip().removesuffix("   # the newest").removesuffix("#c") if line[0] != "#" else "=="
    assert '"<=0.6"' in after
    assert after == text.replace(old, '"<=0.6"', 1) or after == text.replace('"==0.5.1"', '"<=0.6"', 1)


def test_what_a_set_says_of_all_its_patches_is_true_of_a_new_one_too() -> None:
    """The manifest of the reference, with constraints and a marker of the set."""
    found = read_manifest(WHOLE.encode(), folder="patches/flashinfer-dynamo", file="patchset.toml")
    assert found.constraints and found.markers
    own = replace(Patch(PatchId(found.name, "new"), found.distribution, 0, variants=(VARIANT,)), markers=())
    after, said = with_patch(WHOLE, found, own)
    assert said.patches[-1].constraints == found.constraints and said.patches[-1].markers == found.markers
    assert after.startswith(WHOLE.rstrip("\n")) and read_manifest(after.encode(), folder=said.folder, file="a") == said


# ---- every manifest that the loader takes ---------------------------------------------------------------------

COMMENTS = ("", "# [[patch]]", '# versions = ">=0.9"', '# """', "# it's, {[", "# ], }", "#")
TEXTS = (
    '"a # b"',
    "'[[patch]]'",
    '"""\n[[patch]]\n# x"""',
    "'''it's ]\n\n# y'''",
    '"\\"}] \\\\"',
    '"""a\\"\n""b"""',
    '"""q"""""',
)


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """Manifests of two or three patches in the many ways that TOML has to write one."""
    choose = lambda *of: draw(st.sampled_from(of))  # noqa: E731
    key = lambda name: choose(name, f'"{name}"', f"'{name}'", f'"\\u{ord(name[0]):04x}{name[1:]}"')  # noqa: E731
    comment = lambda: choose(*COMMENTS)  # noqa: E731

    def pair(name: str, value: str) -> str:
        return key(name) + choose("=", " = ", "=\t") + value

    def array(tables: list[str]) -> str:
        if not tables:
            return choose("[]", "[ # none\n]")
        if draw(st.booleans()):
            return f"[{choose('', ' ')}{', '.join(tables)}{choose('', ',', ' , ')}]"
        rows = [f"  {table}{choose(',', ' ,')} {comment()}" for table in tables[:-1]]
        rows += [f"{choose('  ', '')}{table}{choose('', ',')} {comment()}" for table in tables[-1:]]
        return "\n".join(["[" + comment(), *rows, f"{comment()}", "]"])

    def rules(patch: int, kind: str) -> list[list[str]]:
        low = "0.0" if kind == "variant" else "0.1"
        value = ("file", f'"{patch}.patch"') if kind == "variant" else ("why", choose(*TEXTS))
        count = choose(0, 1, 2) if kind != "variant" else choose(1, 2)
        return [[pair("versions", choose(f'"=={low}.{n}"', f"'=={low}.{n}'")), pair(*value)] for n in range(count)]

    inline = draw(st.booleans())
    lines = [pair("schema", "1"), comment(), pair("name", '"words"'), pair("distribution", '"inflection"')]
    lines += [pair("summary", choose(*TEXTS))] if draw(st.booleans()) else []
    lines += [pair("constraints", '["torch>=2.4", # ]\n]')] if draw(st.booleans()) else []
    lines += [pair("markers", "\"platform_system == 'Linux'\"")] if draw(st.booleans()) else []
    tables: list[str] = []
    for patch, name in enumerate(("software", "hardware", "more")[: choose(2, 3)]):
        own = [pair("name", f'"{name}"')]
        own += [pair("summary", choose(*TEXTS))] if draw(st.booleans()) else []
        if inline:
            kinds = [
                (kind, [f"{{{', '.join(row)}}}" for row in rules(patch, kind)]) for kind in ("variant", "not-needed")
            ]
            own += [pair(kind, array(rows)) for kind, rows in kinds if rows or draw(st.booleans())]
            tables.append(f"{{{', '.join(own)}}}")
            continue
        headed: list[str] = []
        for kind in draw(st.permutations(["variant", "not-needed"])):
            rows = rules(patch, kind)
            if draw(st.booleans()):
                own.append(pair(kind, array([f"{{{', '.join(row)}}}" for row in rows])))
                continue
            header = f"[[{choose('', ' ')}{key('patch')}{choose('.', ' . ')}{key(kind)} ]]"
            headed += [line for row in rows for line in (comment(), f"{header} {comment()}", *row, comment())]
        lines += [comment(), f"[[{key('patch')}]]{comment()}", *own, comment(), *headed]
    lines += [pair("patch", array(tables))] if inline else []
    text = "\n".join([*lines, *draw(st.lists(st.sampled_from(COMMENTS), max_size=2))]) + choose("", "\n", "\n\n")
    return text.replace("\n", choose("\n", "\r\n"))


@settings(max_examples=300, deadline=None)
@given(manifests(), st.sampled_from(sorted(CHANGES)))
def test_an_entry_can_be_added_to_every_manifest_that_the_loader_takes(text: str, change: str) -> None:
    found = read(text)
    own = Variant("==0.6", "software.0.6.patch", 2, "d", ("d/**",), ("d/x",))
    after, said = CHANGES[change](text, found)
    assert read(after) == said
    assert is_part([each for each in text if each.strip()], [each for each in after if each.strip()])
    if "variant" in change:
        after, said = with_range(after, said, "software", said.patches[0].variants[0], "==77")
        assert read(after) == said and said.patches[0].variants[0].versions == "==77" and own.versions in after


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
