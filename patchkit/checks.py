"""Running what a target interpreter must answer: the python checks of patches, and whether a source compiles.

A script runs in the target interpreter, in a process group of its own, without writing bytecode. Exit 0 is passed, 77
skipped (the last line of its output says why), anything else failed.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

from patchkit.installed import Environment
from patchkit.model import CheckOutcome, CheckResult
from patchkit.patchset import PythonCheck

SKIPPED = 77
SHOWN_LINES = 12
KEPT_BYTES = 1 << 16
POLL_SECONDS = 0.05


def run_python_check(
    check: PythonCheck, script: str, executable: str | None, root: str, is_installed: Callable[[str], bool]
) -> CheckOutcome:
    """Run the script at the path ``script``; ``executable`` None means that no interpreter was named.

    The site root comes first on the script's path, for a root that was named need not be on the interpreter's own.
    """
    missing = [name for name in check.needs if not is_installed(name)]
    if missing:
        return _skip(check, f"{', '.join(missing)} is not installed")
    if executable is None:
        return _skip(check, "only a folder was named: --python PATH runs it")
    search = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": search}
    with subprocess.Popen(
        [executable, "-B", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output = _watch(process, check.timeout)
        finally:
            _kill_group(process)
    if output is None:
        return CheckOutcome("python", check.name, CheckResult.FAILED, f"still running after {check.timeout:g} s")
    return _judge(check, process.returncode, output.replace(os.fsencode(script), os.fsencode(check.file)))


def _watch(process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
    """The end of what a process prints until it ends, None where it does not end in time.

    A child that it leaves behind may hold its output open: that is not waited for.
    """
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            ended = process.poll() is not None
            ready = selector.select(0 if ended else POLL_SECONDS)
            if ready and (chunk := os.read(process.stdout.fileno(), 1 << 16)):
                output = (output + chunk)[-KEPT_BYTES:]
                continue
            if ready:
                selector.unregister(process.stdout)
            if ended:
                return output
    return None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and all of its group; a group of which nothing is left is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _skip(check: PythonCheck, why: str) -> CheckOutcome:
    return CheckOutcome("python", check.name, CheckResult.SKIPPED, why)


def _judge(check: PythonCheck, code: int, output: bytes) -> CheckOutcome:
    lines = [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    if code == 0:
        return CheckOutcome("python", check.name, CheckResult.PASSED, lines[-1] if lines else "")
    if code == SKIPPED:
        return _skip(check, lines[-1] if lines else "the script did not say why")
    ending = f"exit {code}" if code >= 0 else f"killed by signal {-code}"
    return CheckOutcome("python", check.name, CheckResult.FAILED, "\n".join([ending, *lines[-SHOWN_LINES:]]))


def compile_source(source: bytes, path: str, environment: Environment) -> str:
    """Why ``source`` does not compile for the target interpreter, "" where it does. Nothing of it is run.

    The running interpreter answers where it is the target, of the target's version, or the only one at hand.
    """
    own = ".".join(map(str, sys.version_info[:2]))
    if environment.executable is None or (environment.python or "").startswith(f"{own}."):
        return _compile_here(source, path)
    program = "import sys; compile(sys.stdin.buffer.read(), sys.argv[1], 'exec', dont_inherit=True)"
    command = [environment.executable, "-I", "-S", "-B", "-W", "ignore", "-c", program, path]
    answer = subprocess.run(command, input=source, capture_output=True, check=False)
    if answer.returncode == 0:
        return ""
    words = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    return words[-1] if words else f"exit {answer.returncode}"


def _compile_here(source: bytes, path: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return str(error)
    return ""
