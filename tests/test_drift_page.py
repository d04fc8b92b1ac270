"""The HTML report in a real browser: read by eye, by keyboard, by a screen reader, on a telephone and on paper."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from browser import Browser, find_browser, read_png, start_browser
from drifted import CAUSES, World
from patchkit.cli import main
from patchkit.stylesheet import DARK, LIGHT, STYLE

WIDTHS = (1280, 320)
SCHEMES = {"light": LIGHT, "dark": DARK}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with start_browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def page(drifted_world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a world in which every cause of drift was at work."""
    file = tmp_path_factory.mktemp("page") / "drift.html"
    assert main(drifted_world.words("drift", "--format", "html", "--output", str(file), "--quiet")) == 1
    return file


def colour(value: str) -> tuple[int, int, int]:
    return (int(value[1:3], 16), int(value[3:5], 16), int(value[5:7], 16))


# ---- by eye ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_is_drawn_light_and_dark_and_at_every_width(
    scheme: str, width: int, browser: Browser, page: Path
) -> None:
    browser.open(page, width=width, dark=scheme == "dark")
    picture = read_png(browser.screenshot(height=400_000 // width))
    colours = SCHEMES[scheme]
    assert picture.width == width
    ground = picture.share(colour(colours["page"])) + picture.share(colour(colours["card"]))
    assert 0.4 < ground < 0.98, "the ground of the page is there, and more than the ground"
    assert picture.share(colour(colours["ink"])) > 0.002, "there is text"
    for tone in ("loss-ground", "turn-ground", "list-ground"):
        assert picture.share(colour(colours[tone])) > 0.0005
    other = SCHEMES["light" if scheme == "dark" else "dark"]
    assert picture.share(colour(other["page"])) < 0.001


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(width: int, browser: Browser, page: Path) -> None:
    browser.open(page, width=width)
    assert browser.value("document.documentElement.scrollWidth") <= width
    wide = browser.value(
        """[...document.querySelectorAll('main *')].filter(e => e.getClientRects().length
        && !e.closest('thead, caption, .unseen') && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert wide == []


def test_expected_and_found_stand_side_by_side_where_there_is_room_and_one_over_the_other_where_not(
    browser: Browser, page: Path
) -> None:
    tops = """[...document.querySelectorAll('.changed')].map(row => ['.expected', '.found']
        .map(side => Math.round(row.querySelector(side).getBoundingClientRect().top)))"""
    browser.open(page, width=1280)
    wide = browser.value(tops)
    browser.open(page, width=320)
    narrow = browser.value(tops)
    assert len(wide) > 3 and all(expected == found for expected, found in wide)
    assert len(narrow) == len(wide) and all(expected < found for expected, found in narrow)


# ---- by a screen reader, by keyboard --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe(wheel_cache: Callable[..., Path]) -> str:
    """The source of axe-core, which knows the rules of WCAG; a wheel of the index carries it."""
    with zipfile.ZipFile(wheel_cache("0.1.8", "axe-playwright-python")) as archive:
        return archive.read("axe_playwright_python/axe.min.js").decode()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_no_rule_of_accessibility_is_broken(scheme: str, width: int, browser: Browser, page: Path, axe: str) -> None:
    browser.open(page, width=width, dark=scheme == "dark")
    browser.value(f"{axe};0")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    options = json.dumps({"runOnly": tags, "resultTypes": ["violations"]})
    said = browser.value(
        f"""axe.run(document, {options}).then(found => [found.passes.length, found.violations.map(
        rule => rule.id + ': ' + rule.nodes.map(node => node.html.slice(0, 100)).join(' | '))])"""
    )
    assert said[1] == []
    assert said[0] > 25, "so many rules were tried"


def luminance(value: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [part / 255 for part in colour(value)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


GROUNDS = {
    "ink": ("page", "card", "code", "missing", "missing-mark", "extra", "extra-mark", "loss-ground"),
    "soft": ("page", "card", "code"),
    "link": ("page", "card"),
    **{tone: ("card", "page", f"{tone}-ground") for tone in ("loss", "turn", "list", "calm")},
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_stands_out_from_its_ground(scheme: str) -> None:
    colours = SCHEMES[scheme]
    for ink, grounds in GROUNDS.items():
        for ground in grounds:
            high, low = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{ink} on {ground} in {scheme}"
    assert set(re.findall(r"var\(--([a-z-]+)\)", STYLE)) <= colours.keys()


def test_a_screen_reader_gets_landmarks_headings_and_what_the_marks_mean(browser: Browser, page: Path) -> None:
    browser.open(page)
    tree = browser.tree()
    roles = [role for role, _ in tree]
    for landmark in ("banner", "main", "contentinfo"):
        assert roles.count(landmark) == 1
    assert {"Overview", "What was found", "Where nothing drifted"} <= {name for role, name in tree if role == "region"}
    assert {f"{name}/fix" for name in CAUSES} == {name for role, name in tree if role == "article"}
    headers = [name for role, name in tree if role == "columnheader"]
    assert headers[:4] == ["Patch", "Cause", "Distribution", "What happened"]
    assert (
        headers.count("Expected")
        == headers.count("Found")
        == browser.value("document.querySelectorAll('.side').length")
    )
    assert {f"{name}/fix" for name in (*CAUSES, "kept")} == {name for role, name in tree if role == "rowheader"}
    said = " ".join(name for role, name in tree if role == "StaticText")
    assert "except [missing: OSError ] as error:" in re.sub(r" +", " ", said)
    assert "except [found: ConnectionError ] as error:" in re.sub(r" +", " ", said)
    assert {"changed", "extra"} <= {name for role, name in tree if role == "StaticText"}
    levels = browser.value("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert browser.value("document.documentElement.lang") == "en"
    assert browser.value("document.title").startswith("drift: ")


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.press("Tab", 9)
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    reached = []
    for _ in range(len(CAUSES) + 1):
        browser.press("Tab", 9)
        reached.append(browser.value("document.activeElement.textContent"))
    assert reached[:-1] == [*dict.fromkeys(reached[:-1])] and len(reached) == len(CAUSES) + 1
    assert browser.value("document.activeElement.tagName") == "SUMMARY"
    assert browser.value("document.activeElement.parentElement.open")
    browser.press("Enter", 13, "\r")
    assert not browser.value("document.activeElement.parentElement.open")


# ---- on paper -------------------------------------------------------------------------------------------------


def test_on_paper_the_page_is_light_and_whole(browser: Browser, page: Path) -> None:
    browser.open(page, dark=True)
    browser.value("document.querySelectorAll('details').forEach(each => { each.open = false })")
    seen = "[...document.querySelectorAll('.side, .notes')].map(each => each.checkVisibility())"
    on_screen = browser.value(seen)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.ask("Emulation.setEmulatedMedia", media="print", features=[dark])
    browser.ask("Emulation.setDeviceMetricsOverride", width=680, height=900, deviceScaleFactor=1, mobile=False)
    assert not any(on_screen) and all(browser.value(seen)), "what is folded is printed too"
    assert browser.value("getComputedStyle(document.body).color") == f"rgb{colour(LIGHT['ink'])}"
    assert browser.value("document.documentElement.scrollWidth") <= 680
    pdf = browser.print()
    assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", pdf)) > 2


# ---- nothing from outside -------------------------------------------------------------------------------------


def test_the_page_asks_for_nothing_and_runs_nothing(browser: Browser, page: Path) -> None:
    browser.open(page)
    asked = [
        event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked == [page.as_uri()]
    assert browser.value("document.querySelectorAll('script, img, link, iframe, [style], [onerror]').length") == 0
    bad = ("Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")
    assert [event for event in browser.events if event["method"] in bad] == []
    assert browser.value("getComputedStyle(document.querySelector('.counts')).display") == "flex", "the style is let in"


def test_the_policy_lets_no_script_in(browser: Browser, page: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil.html"
    hole = "<script>document.title = 'owned'</script><img src='data:,' onerror=\"document.title = 'owned'\"></body>"
    evil.write_text(page.read_text().replace("</body>", hole))
    browser.open(evil)
    assert browser.value("document.title") != "owned"
    said: list[Any] = [
        event["params"]["entry"]["text"] for event in browser.events if event["method"] == "Log.entryAdded"
    ]
    assert any("Content Security Policy" in text for text in said)


@pytest.mark.parametrize(("state", "words"), [("damaged", "damaged-state (exit 8)"), ("calm", "No drift")])
def test_other_endings_are_drawn_too(
    state: str, words: str, browser: Browser, tmp_path: Path, make_site: Callable[..., Path], axe: str
) -> None:
    from stages import edit, make_stage, patch

    stage = make_stage(tmp_path, make_site, lambda: None)
    stage.add("fix", patch("one", edit(5, b"line_5 = 'five'\n")))
    where = ("--site-packages", str(stage.site), "--patches", str(stage.patches))
    assert main(("apply", "--quiet", *where)) == 0
    if state == "damaged":
        stage.ledger_file.write_bytes(b"{")
    file = tmp_path / "page.html"
    assert main(("drift", "--quiet", "--format", "html", "--output", str(file), *where)) in (0, 8)
    browser.open(file, width=320)
    assert words in browser.value("document.body.innerText")
    assert (("alert", "") in browser.tree()) is (state == "damaged")
    browser.value(f"{axe};0")
    assert browser.value("axe.run().then(found => found.violations.map(rule => rule.id))") == []
