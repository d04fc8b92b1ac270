"""The style sheet of the HTML report: light and dark, narrow and wide, and printed. ASCII, so that its hash is stable.

Every colour of a text is at least 4.5 to 1 on its ground (WCAG 2.2, 1.4.3), and none is the only sign of anything.
"""

from __future__ import annotations

LIGHT = {
    "page": "#f6f7f9",
    "card": "#ffffff",
    "ink": "#1b2330",
    "soft": "#525c6b",
    "line": "#d5dae1",
    "strong-line": "#767f8c",
    "link": "#0b57b7",
    "code": "#eef1f5",
    "loss": "#a3161e",
    "loss-ground": "#fdecec",
    "turn": "#7a4a00",
    "turn-ground": "#fdf2dc",
    "list": "#0b57b7",
    "list-ground": "#e6f0fc",
    "calm": "#1a6334",
    "calm-ground": "#e5f5ea",
    "missing": "#fde9e9",
    "missing-mark": "#f7b9bb",
    "extra": "#e3f4e8",
    "extra-mark": "#a5dcb5",
    "code-ink": "#1b2330",
}
DARK = {
    "page": "#12161d",
    "card": "#1a202a",
    "ink": "#e4e8ee",
    "soft": "#a3adbb",
    "line": "#333c4a",
    "strong-line": "#7d8796",
    "link": "#86b7ff",
    "code": "#242c38",
    "loss": "#ff9ea0",
    "loss-ground": "#43191d",
    "turn": "#f5c469",
    "turn-ground": "#3b2c0c",
    "list": "#93c0ff",
    "list-ground": "#15304f",
    "calm": "#86d7a0",
    "calm-ground": "#143522",
    "missing": "#361b20",
    "missing-mark": "#7a2a30",
    "extra": "#15301f",
    "extra-mark": "#1f6338",
    "code-ink": "#e4e8ee",
}

_RULES = r"""
*, ::before, ::after { box-sizing: border-box; }
html { background: var(--page); color: var(--ink); -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 0 1.25rem 3rem; max-width: 88rem; font: 1rem/1.5 system-ui, sans-serif; }
h1, h2, h3, h4, p, ul, dl { margin: 0; }
h1 { font-size: 1.75rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.25rem; }
h3 { font-size: 1.0625rem; }
h4 { display: inline; font-size: .9375rem; font-weight: 600; }
h1, h3, h4, p, li, dd, td, th { overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; border-radius: .2rem; }
code, .side { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .875em; }
code { padding: .1em .35em; border-radius: .25rem; background: var(--code); }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: .5rem; padding: .5rem 1rem; background: var(--card); z-index: 1; }
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; user-select: none; }

header { padding: 2rem 0 0; }
header .title { color: var(--soft); font-size: .875rem; letter-spacing: .04em; }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; margin: 1rem 0 0; list-style: none; }
.cause { display: inline-block; padding: .1rem .6rem; border: 1px solid currentColor; border-radius: 1rem;
  font-size: .875rem; font-weight: 600; line-height: 1.4; white-space: nowrap; }
.loss { color: var(--loss); background: var(--loss-ground); }
.turn { color: var(--turn); background: var(--turn-ground); }
.list { color: var(--list); background: var(--list-ground); }
.calm { color: var(--calm); background: var(--calm-ground); }
.idle { color: var(--soft); background: var(--code); }
.facts { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1.25rem 0 0; }
.facts dt { color: var(--soft); font-size: .8125rem; }
.facts dd { margin: 0; }
.said { padding: 1rem 1.25rem; border: 1px solid var(--loss); border-left-width: .5rem; border-radius: .5rem;
  background: var(--loss-ground); margin-top: 1rem; }
.said p, .warnings li { white-space: pre-wrap; }
.warnings { padding-left: 1.25rem; }

.rows { width: 100%; table-layout: fixed; border-collapse: collapse; background: var(--card);
  border: 1px solid var(--line); }
.rows .name { width: 24%; }
.rows .word { width: 10rem; }
.rows .distribution { width: 20%; }
.rows th, .rows td { padding: .5rem .75rem; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
.rows thead th { color: var(--soft); font-size: .8125rem; border-top: 0; }
.rows tbody th { font-weight: 600; }

article { margin: 0 0 1.25rem; padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
article > .head { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; }
article .what { margin: .5rem 0 0; }
.remedy { margin: .75rem 0 0; color: var(--soft); font-size: .875rem; }
.remedy code { display: block; margin-top: .25rem; padding: .5rem .75rem; border: 1px solid var(--line);
  color: var(--ink); font-size: 1em; white-space: pre-wrap; overflow-wrap: anywhere; user-select: all; }
details { margin: 1rem 0 0; border-top: 1px solid var(--line); padding: .75rem 0 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
.notes { margin: .5rem 0 0; padding-left: 1.25rem; color: var(--soft); font-size: .875rem; }
.where { margin: .75rem 0 0; color: var(--soft); font-size: .875rem; }

.side { width: 100%; margin: .5rem 0 0; border-collapse: collapse; table-layout: fixed; line-height: 1.45;
  border: 1px solid var(--line); color: var(--code-ink); tab-size: 4; }
.side .sign { width: 2rem; }
.side .number { width: 3.75rem; }
.side th { padding: .3rem .5rem; font: 600 .8125rem/1.4 system-ui, sans-serif; text-align: left;
  color: var(--soft); border-bottom: 1px solid var(--line); }
.side td { padding: 0 .5rem; vertical-align: top; }
.side td.sign { padding: 0; text-align: center; color: var(--ink); font-weight: 700; }
.side td.number { text-align: right; color: var(--soft); font-size: .9em; user-select: none; overflow-wrap: normal; }
.side td.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.side td.found-number { border-left: 1px solid var(--line); }
.side td.expected.differs { background: var(--missing); }
.side td.found.differs { background: var(--extra); }
.side td.none { background: repeating-linear-gradient(-45deg, transparent 0 4px, var(--line) 4px 5px); }
.side .gap td { padding: .15rem .5rem; color: var(--soft); background: var(--code); text-align: center;
  font: .8125rem/1.4 system-ui, sans-serif; }
del, ins { border-radius: .15rem; color: inherit; }
del { background: var(--missing-mark); text-decoration: underline dotted 2px; text-underline-offset: .2em; }
ins { background: var(--extra-mark); text-decoration: underline solid 1px; text-underline-offset: .2em; }
del::before, del::after, ins::before, ins::after { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap; }
del::before { content: " [missing: "; }
ins::before { content: " [found: "; }
del::after, ins::after { content: "] "; }
.sample { padding: 0 .3em; color: var(--ink); }
footer { margin: 3rem 0 0; padding: 1rem 0 0; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .875rem; }

@media screen and (max-width: 48rem) {
  body { padding: 0 .75rem 2rem; }
  h1 { font-size: 1.375rem; }
  article { padding: .75rem; }
  .rows thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .rows, .rows tbody, .rows tr, .rows th, .rows td { display: block; }
  .rows tr { padding: .5rem 0; border-top: 1px solid var(--line); }
  .rows tr:first-child { border-top: 0; }
  .rows tbody th, .rows td { padding: .15rem .75rem; border: 0; }
  .rows td:empty { display: none; }
  .rows td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); font-size: .8125rem; }
}
@media (max-width: 48rem) {
  .side thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .side, .side tbody { display: block; }
  .side tr { display: grid; grid-template-columns: 1.25rem 2.75rem minmax(0, 1fr); }
  .side .gap { grid-template-columns: 1fr; }
  .side td.number, .side td.sign { width: auto; }
  .side td { padding: 0 .25rem; }
  .side td.sign { grid-row: 1 / span 2; }
  .side td.found-number, .side td.found { border-left: 0; }
  .side td.found-number { grid-column: 2; }
  .side td.none, .side .same td.found, .side .same td.found-number { display: none; }
}
@page { margin: 14mm; }
@media print {
  :root { color-scheme: light; %LIGHT% }
  html, body { background: none; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .skip { display: none; }
  .rows .name { width: 20%; }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; }
  article, .side tr, .rows tr, .said { break-inside: avoid; }
  article:has(.side) { break-inside: auto; }
  h2, h3, summary, .where { break-after: avoid; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""


def _declare(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


STYLE = (
    f"\n:root {{ color-scheme: light dark; {_declare(LIGHT)} }}"
    f"\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {_declare(DARK)} }} }}"
    f"{_RULES.replace('%LIGHT%', _declare(LIGHT))}"
)
