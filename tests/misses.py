"""A program: what an audit says of a caller, held against a search in the caller's text, for a check by hand.

    patchkit audit vllm --of flashinfer-python --site-packages site --json >audit.json
    python tests/misses.py site/vllm flashinfer audit.json

The search knows nothing of Python's scopes: import statements, ``module.name(`` and pairs of strings are found by
regular expressions. What it finds and the audit does not list is printed, to be looked at one by one; so are the names
that the audit follows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METHODS = ("plan", "run", "forward", "begin_forward")


def read(folder: Path) -> dict[str, str]:
    """The texts below ``folder`` by the path that an audit tells."""
    files = sorted(folder.rglob("*.py"))
    return {str(file.relative_to(folder.parent)): file.read_text("utf-8", "replace") for file in files}


def imported(text: str, top: str) -> Iterator[tuple[int, str]]:
    """The names of import statements that speak of ``top``, each with the line of its statement."""
    taken = rf"from[ \t]+({top}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)"
    whole = rf"import[ \t]+([^\n#]*\b{top}\b[^\n#]*)"
    for match in re.finditer(rf"^[ \t]*(?:{taken}|{whole})", text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        if match[3]:
            yield from ((line, part.strip()) for part in match[3].split(",") if part.strip().startswith(top))
        else:
            names = re.sub(r"#[^\n]*", "", match[2]).strip("() \n").split(",")
            yield from ((line, f"{match[1]}.{name.split(maxsplit=1)[0]}") for name in names if name.strip())


def strings(text: str, top: str) -> Iterator[tuple[int, str]]:
    """Pairs of strings that name a module of ``top`` and something in it."""
    for match in re.finditer(rf"""["']({top}(?:\.[\w.]+)?)["'],\s*["'](\w+)["']""", text):
        yield text.count("\n", 0, match.start()) + 1, f"{match[1]}.{match[2]}"


def calls(text: str, top: str) -> Iterator[tuple[int, str]]:
    """Calls of ``top.name(``, and of methods that a wrapper has, in texts that speak of ``top``."""
    if top not in text:
        return
    names = "|".join(METHODS)
    for match in re.finditer(rf"\b{top}\.[\w.]+(?=\()|\b[\w.\]\[]*[wW]rapper[\w.\]\[]*\.(?:{names})(?=\()", text):
        line = text.count("\n", 0, match.start()) + 1
        if "#" not in text.splitlines()[line - 1].split(match[0])[0]:
            yield line, match[0]


def main(arguments: list[str]) -> int:
    """Print what the search finds and the audit does not have."""
    folder, top, document = Path(arguments[0]), arguments[1], json.loads(Path(arguments[2]).read_text())
    texts = read(folder)
    known = {(row["path"], row["name"] or row["module"]) for row in document["imports"]}
    reached = [each for kind in ("hazards", "covered") for each in document[kind]]
    sites = {(site["path"], site["line"]) for each in (*reached, *document["imports"]) for site in each["sites"]}
    counted = {(place["path"], place["line"]) for place in document["unknown"]["places"]}
    _tell("names of import statements", imported, texts, top, lambda path, line, name: _is_known(known, path, name))
    _tell("pairs of strings", strings, texts, top, lambda path, line, name: False, counted)
    _tell("calls", calls, texts, top, lambda path, line, name: (path, line) in sites, counted)
    for kind in ("hazards", "covered"):
        names = sorted({each["callable"] for each in document[kind]})
        print(f"\n{kind}: {len(document[kind])}, of {len(names)} callables\n  " + "\n  ".join(names))
    print(f"\nnot known: {document['unknown']['count']}")
    for found in document["unknown"]["kinds"]:
        print(f"  {found['kind']} {found['count']}")
    return 0


def _is_known(known: set[tuple[str, str]], path: str, name: str) -> bool:
    return (path, name.rpartition(".")[2]) in known or (path, name.split(maxsplit=1)[0]) in known


def _tell(what: str, search: Any, texts: dict[str, str], top: str, is_known: Any, counted: Any = frozenset()) -> None:
    found = [(path, line, name) for path, text in texts.items() for line, name in search(text, top)]
    missed = [(path, line, name) for path, line, name in found if not is_known(path, line, name)]
    print(f"\n{what}: {len(found)} in the text, {len(found) - len(missed)} in the audit")
    for path, line, name in missed:
        print(f"  {path}:{line}  {name}{' (counted as not known)' if (path, line) in counted else ''}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
