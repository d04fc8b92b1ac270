"""A little of `sweep` on every run: the changes of a real distribution's releases, held against git."""

from __future__ import annotations

from pathlib import Path

from sweep import sweep

VERSIONS = ("4.8.0", "4.9.0", "4.10.0", "4.11.0", "4.12.0", "4.12.3")


def test_coverage_rebase_and_import_agree_with_git_on_real_releases(tmp_path: Path) -> None:
    done = sweep("humanize", VERSIONS, count=10, seed=1, folder=tmp_path / "sweep")
    assert not done.wrong, "\n".join(done.wrong)
    counted = done.figures
    assert counted["coverage"]["fits, git: fits"] > 10
    assert counted["coverage"]["upstreamed, git: there"] > 10
    assert counted["rebase"]["clean, git: merges"] > 2
    assert counted["import"]["imported, git: fits"] > 1
