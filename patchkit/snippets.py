"""Pieces to paste into a Containerfile, filled in for the patch sets at hand. Nothing is looked at but these."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from patchkit.errors import NoPatchSets, UsageError
from patchkit.folders import bundled_folder
from patchkit.patchset import Catalog
from patchkit.report import SCHEMA
from patchkit.scene import CatalogNeed, Options, open_catalog
from patchkit.wanted import list_declared

ARCHIVE = "patchkit.pyz"
PLACE = "/tmp/patchkit"
"""Where a build sees the archive and the patch folders, while the step runs."""


@unique
class SnippetKind(Enum):
    CONTAINERFILE = "containerfile"
    HEALTHCHECK = "healthcheck"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a Containerfile. ``required`` are the sets that it insists on, ``sources`` what it mounts."""

    kind: SnippetKind
    text: str
    required: tuple[str, ...]
    sources: tuple[str, ...]
    python: str


def make_snippet(options: Options, kind: SnippetKind) -> Snippet:
    """The snippet for the sets of ``options``; `Options.python` is the interpreter's path in the image.

    The current folder is taken for the build context. Raises `PatchSetError`, and `UsageError` where a patch folder
    lies outside it.
    """
    catalog, _ = open_catalog(options, CatalogNeed.REQUIRED)
    required = tuple(sorted({id.set for id in list_declared(catalog)}))
    if not required:
        raise NoPatchSets(f"no patch of {', '.join(catalog.folders)} is declared", hint="`patchkit list` shows them")
    context = os.path.realpath(os.getcwd())
    python = options.python or _find_python(context)
    archive = _find_archive(context)
    sources = (archive, *_find_sources(catalog, context))
    match kind:
        case SnippetKind.CONTAINERFILE:
            lines = _write_step(catalog, context, sources, required, python)
        case SnippetKind.HEALTHCHECK:
            lines = _write_health(archive, python)
    return Snippet(kind, "".join(f"{line}\n" for line in lines), required, sources, python)


def _find_python(context: str) -> str:
    """Where uv makes the environment of a project in /app, the usual place; else the first on PATH."""
    return "/app/.venv/bin/python" if os.path.isfile(os.path.join(context, "uv.lock")) else "python"


def _find_archive(context: str) -> str:
    """The archive, relative to the context: the one that is running, or where `make zipapp` puts it, or at the top."""
    running = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    places = [os.path.relpath(running, context)] if os.path.isfile(running) else []
    places += [place for place in (os.path.join("dist", ARCHIVE),) if os.path.isfile(os.path.join(context, place))]
    return next((place for place in places if place.split(os.sep)[0] != os.pardir), ARCHIVE)


def _find_sources(catalog: Catalog, context: str) -> Iterable[str]:
    """What is to be mounted, relative to the context: the patch folders, and a pyproject.toml that declares."""
    own = os.path.realpath(bundled_folder())
    places = [os.path.realpath(folder) for folder in catalog.folders]
    places = [place for place in places if place != own]
    declaring = [os.path.realpath(declaration.source) for declaration in catalog.declarations]
    places += [file for file in declaring if os.path.basename(file) == "pyproject.toml"]
    for place in dict.fromkeys(places):
        relative = os.path.relpath(place, context)
        if relative.split(os.sep)[0] == os.pardir:
            raise UsageError(
                f"{place} lies outside the current folder, which is taken for the build context",
                hint="run it in the folder that the build is given",
            )
        if re.search(r"[^\w@%+=:./-]", relative):
            raise UsageError(
                f"{relative} is no name that a mount can be given", hint="rename it, without special characters"
            )
        yield relative


def _write_step(
    catalog: Catalog, context: str, sources: Sequence[str], required: Sequence[str], python: str
) -> Iterable[str]:
    yield "# Behind the step that installs the distributions; nothing of patchkit itself stays in the image."
    targets = [ARCHIVE, *sources[1:]]
    mounts = [
        f"--mount=type=bind,source={source},target={PLACE}/{target}"
        for source, target in zip(sources, targets, strict=True)
    ]
    yield from (f"{'RUN ' if not number else '    '}{mount} \\" for number, mount in enumerate(mounts))
    own = os.path.realpath(bundled_folder())
    folders = [os.path.realpath(folder) for folder in catalog.folders]
    words = [python, f"{PLACE}/{ARCHIVE}", "post-install"]
    words += [word for place in folders if place != own for word in ("--patches", _mounted(place, context))]
    words += ["--bundled"] if own in folders else []
    words += [word for name in required for word in ("--require", name)]
    step = shlex.join(words)
    yield f"    cd {PLACE} && {step}" if "pyproject.toml" in sources else f"    {step}"


def _mounted(place: str, context: str) -> str:
    return os.path.join(PLACE, os.path.relpath(place, context))


def _write_health(archive: str, python: str) -> Iterable[str]:
    words = [python, f"/opt/{ARCHIVE}", "status", "--exit-code", "--quiet"]
    yield "# The image keeps patchkit, to be asked at run time; it reads what was applied, and needs no patch folder."
    yield f"COPY {archive} /opt/{ARCHIVE}"
    yield "HEALTHCHECK --interval=5m --timeout=30s \\"
    yield f"    CMD {json.dumps(words)}"
    yield "# The same as the first line of an entry point that is a shell script:"
    yield f"#     {shlex.join(words)} || exit"


def to_snippet_document(snippet: Snippet) -> dict[str, Any]:
    """The JSON document of ``snippet``."""
    return {
        "schema": SCHEMA,
        "command": "snippet",
        "ok": True,
        "exit_code": 0,
        "kind": snippet.kind.value,
        "text": snippet.text,
        "python": snippet.python,
        "required": list(snippet.required),
        "sources": list(snippet.sources),
        "warnings": [],
    }
