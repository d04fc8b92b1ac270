"""What `make demo` shows: a real distribution is patched, verified and brought back, byte for byte.

Run by the interpreter that patchkit is installed for. Each command is shown as it would be typed, with its exit code;
the demo fails where one is not the expected one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from worlds import CHECKOUT, Entry, tree, without_bytecode

DISTRIBUTION = "flashinfer-python==0.6.3"
DEMO = CHECKOUT / ".demo"
PYTHON = ".demo/bin/python"

# A developer's own variables would show something else.
VARIABLES = {
    name: value for name, value in os.environ.items() if not name.startswith(("PATCHKIT_", "VIRTUAL_ENV", "CONDA_"))
}
VARIABLES |= {"PATCHKIT_PYTHON": PYTHON, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def say(words: str = "") -> None:
    print(words, flush=True)


def run(command: str, *, expected: int = 0) -> None:
    """Show a command, run it, show its exit code; SystemExit where that is not the ``expected`` one."""
    say(f"\n$ {command}")
    words = [sys.executable if word == "python3" else word for word in command.split()]
    exit_code = subprocess.run(words, cwd=CHECKOUT, env=VARIABLES, check=False).returncode
    say(f"[exit code {exit_code}]")
    if exit_code != expected:
        sys.exit(f"this should have ended with exit code {expected}")


def look() -> dict[str, Entry]:
    """Everything in the site root but compiled files: path, kind, mode, and digest or target."""
    [site] = DEMO.glob("lib/python*/site-packages")
    return without_bytecode(tree(site))


def show_difference(before: dict[str, Entry], after: dict[str, Entry]) -> None:
    """Print one line for each path at which the trees differ; a folder that differs stands for all in it."""
    differing = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    for path in differing:
        if str(Path(path).parent) not in differing:
            sign = "+" if path not in before else "-" if path not in after else "M"
            folder = "/" if (before | after)[path].kind == "directory" else ""
            say(f"  {sign} {path}{folder}")


def demonstrate() -> None:
    say(f"# 1. An environment of its own, with {DISTRIBUTION} as it was released.")
    run("python3 -m venv .demo")
    run(f"{PYTHON} -m pip --disable-pip-version-check install --quiet --no-deps {DISTRIBUTION}")
    pristine = look()

    say(
        f"\n# 2. Would the patches fit? Then apply, and verify. (The environment is named by PATCHKIT_PYTHON={PYTHON}.)"
    )
    run("patchkit check")
    run("patchkit apply")
    patched = look()
    run("patchkit verify")
    say("# What is different on disk now:")
    show_difference(pristine, patched)
    if patched == pristine:
        sys.exit("nothing was patched")

    say("\n# 3. Applied again, it finds nothing to do.")
    run("patchkit apply")
    if look() != patched:
        sys.exit("the second apply changed something")

    say("\n# 4. Back to what was released.")
    run("patchkit revert --all")
    reverted = look()
    if reverted != pristine:
        show_difference(pristine, reverted)
        sys.exit("the tree is not as it was before")
    say(f"{len(reverted)} paths compared (kind, mode, sha256): the tree is byte for byte as it was before.")


def main() -> None:
    shutil.rmtree(DEMO, ignore_errors=True)
    try:
        demonstrate()
    finally:
        shutil.rmtree(DEMO, ignore_errors=True)


if __name__ == "__main__":
    main()
