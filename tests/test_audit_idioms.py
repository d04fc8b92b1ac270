"""The audit's rule, tried on many idioms: a caller that really reaches a hazard is told of it, or of the doubt."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from idioms import IDIOMS, UNSEEN, Idiom
from patchkit.audit import read_table
from patchkit.audited import Audit, Subject
from patchkit.programs import Program, Source, Texts
from patchkit.views import Viewer

TABLE = read_table(None)
BY_NAME = {idiom.name: idiom for idiom in IDIOMS}
OBSERVER = """
import asyncio, gc, importlib, json, os, subprocess, sys

reached = []

class Popen(subprocess.Popen):
    def __init__(self, *args, **kwargs):
        reached.append(1)

    def __del__(self):
        pass

subprocess.Popen, subprocess.run = Popen, lambda *args, **kwargs: reached.append(1)
told = {}
for folder in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("lib", "app")]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        caller = importlib.import_module("app.c")
        reached.clear()
        try:
            caller.run()
        except Exception as error:
            told[folder] = repr(error)
        gc.collect()
        if reached:
            told[folder] = ""
        told.setdefault(folder, "it is not reached")
    except Exception as error:
        told[folder] = repr(error)
    sys.path.remove(folder)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By idiom what keeps the caller from reaching the hazard when it is really run: nothing."""
    root = tmp_path_factory.mktemp("idioms")
    for number, idiom in enumerate(IDIOMS):
        for path, text in idiom.files.items():
            place = root / str(number) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    folders = [str(root / str(number)) for number in range(len(IDIOMS))]
    ran = subprocess.run([sys.executable, "-c", OBSERVER, *folders], capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout.splitlines()[-1])
    return {idiom.name: told[folder] for idiom, folder in zip(IDIOMS, folders, strict=True)}


def look(idiom: Idiom) -> Audit:
    """What the audit of the caller ``app.c`` and all beside it says."""
    texts = {path: text.encode() for path, text in idiom.files.items()}
    sources = {}
    for path in texts:
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sources[name] = Source(path, path, path.endswith("__init__.py"), "lib" if path.startswith("lib") else "")
    program = Program(sources, lambda source: texts[source.full], Texts())
    callers = tuple(name for name, source in sources.items() if not source.distribution)
    view = Viewer(TABLE, frozenset({"lib"}), callers).look(program)
    hazards = tuple(root.hazard(met, TABLE) for root in view.roots for met in root.open)
    files = tuple(sources[name].path for name in callers)
    imports = tuple(row.found for row in view.rows)
    return Audit("app", files, (Subject("lib", "1"),), TABLE.name, imports, hazards, unknown=view.unknown)


def test_the_names_of_idioms_are_unique() -> None:
    assert len(BY_NAME) == len(IDIOMS)


@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_reached_at_run_time_is_told_or_counted(name: str, observed: dict[str, str]) -> None:
    idiom = BY_NAME[name]
    assert observed[name] == "", f"the idiom itself does not come to the hazard: {observed[name]}"
    audit = look(idiom)
    told = [hazard for hazard in audit.hazards if hazard.construct in ("subprocess.run", "subprocess.Popen")]
    assert told or not idiom.found, f"not found; exit {int(audit.exit_code)}, unknown {list(map(str, audit.unknown))}"
    assert told or audit.unknown or int(audit.exit_code), "passed over in silence"


@pytest.mark.parametrize("idiom", UNSEEN, ids=[idiom.name for idiom in UNSEEN])
def test_what_stops_a_tracer_and_starts_no_process_is_told_or_counted(idiom: Idiom) -> None:
    audit = look(idiom)
    assert audit.unknown or int(audit.exit_code), "passed over in silence"
