"""The Python interface: what docs/reference/python.md shows, run for real."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit import service
from patchkit.errors import ExitCode, NoPatchSets
from patchkit.model import Action, PatchState
from patchkit.report import to_document
from stages import LINES, MOD, Stage, edit, make_stage, patch
from worlds import CHECKOUT, clean_environment

PRISTINE = b"".join(LINES)


@pytest.fixture
def stage(tmp_path: Path, make_site: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> Stage:
    return make_stage(tmp_path, make_site, capsys.readouterr)


def five() -> bytes:
    return edit(5, b"line_5 = 'five'\n")


def options_of(stage: Stage) -> service.Options:
    return service.Options(site_packages=str(stage.site), patches=(str(stage.patches),))


def test_the_functions_do_what_the_commands_do(stage: Stage) -> None:
    stage.add("alpha", patch("low", five()))
    options = options_of(stage)
    assert [row.state for row in service.check(options).patches] == [PatchState.PENDING]
    told: list[tuple[str, int, int]] = []
    applied = service.apply(options, progress=lambda *step: told.append(step))
    assert [(str(row.id), row.action) for row in applied.patches] == [("alpha/low", Action.APPLIED)]
    assert told == [("writing", 1, 1), ("checking", 0, 1)]
    assert service.verify(options).exit_code is ExitCode.DONE
    assert to_document(service.status(options)) == stage.json("status")
    assert [row.action for row in service.revert(options, ["alpha"]).patches] == [Action.REVERTED]
    assert (stage.site / MOD).read_bytes() == PRISTINE


def test_what_stands_in_the_way_is_in_the_report_and_what_leaves_nothing_to_say_is_raised(stage: Stage) -> None:
    stage.add("alpha", patch("low", edit(5, b"line_5 = 'five'\n", PRISTINE.replace(b"line_4 =", b"line_x ="))))
    report = service.apply(options_of(stage))
    assert report.error is not None
    assert report.exit_code is ExitCode.CONFLICT
    with pytest.raises(NoPatchSets):
        service.apply(service.Options(site_packages=str(stage.site), patches=(str(stage.folder / "nowhere"),)))


def test_the_example_of_the_docs_runs(stage: Stage) -> None:
    stage.add("alpha", patch("low", five()))
    page = (CHECKOUT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    program = found[1].replace("/srv/app/lib/python3.11/site-packages", str(stage.site))
    program = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\n" + program.replace(
        '"patches"', repr(str(stage.patches))
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=clean_environment(), check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "alpha/low applied applied\n", "")


def test_importing_the_package_costs_nothing() -> None:
    program = "import sys; import patchkit; print(sorted(m for m in sys.modules if m.startswith('patchkit')))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=CHECKOUT, check=True)
    assert ended.stdout == "['patchkit']\n"
