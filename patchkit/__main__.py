"""``python -m patchkit``: the same as the command ``patchkit``."""

from __future__ import annotations

from patchkit.cli import run

if __name__ == "__main__":
    run()
