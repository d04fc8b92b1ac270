"""Running what a target interpreter must answer: the python checks of patches, and whether a source compiles.

A script runs in the target interpreter, in a process group of its own, without writing bytecode. Exit 0 is passed, 77
skipped (the last line of its output says why), anything else failed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchkit.installed import Environment
from patchkit.model import CheckOutcome, CheckResult
from patchkit.patchset import PythonCheck

if TYPE_CHECKING:
    import subprocess  # most runs start no process, and do without it

SKIPPED = 77
SHOWN_LINES = 12
KEPT_BYTES = 1 << 16
POLL_SECONDS = 0.05
SHARED_BYTES = 4 << 20
"""Of sources: a processor compiles some 14 MB a second, and another process is ready after some 0.05 s."""
MOST_PROCESSES = 4


# Runs a script as if it had been named, with a folder on its path that the interpreter does not have on its own: before
# the site-packages, whose copy is not the one meant, and behind the standard library.
_RUN_WITH = """
import runpy, site, sys
root, script = sys.argv[1:]
size = len(sys.path)
site.addsitedir(root)
added, sys.path[size:] = sys.path[size:], []
ends = ("site-packages", "dist-packages")
place = next((number for number, path in enumerate(sys.path) if path.endswith(ends)), size)
sys.path[place:place] = added
sys.path[0], sys.argv = script.rpartition("/")[0], [script]
runpy.run_path(script, run_name="__main__")
"""


def run_python_check(
    check: PythonCheck, script: str, environment: Environment, root: str, is_installed: Callable[[str], bool]
) -> CheckOutcome:
    """Run the script at the path ``script``; without an interpreter it is skipped.

    The site root is added to the script's path where it is not on the interpreter's own.
    """
    missing = [name for name in check.needs if not is_installed(name)]
    if missing:
        return _skip(check, f"{', '.join(missing)} is not installed")
    if environment.executable is None:
        return _skip(check, "only a folder was named: --python PATH runs it")
    import subprocess

    seen = {os.path.realpath(folder) for folder in environment.visible}
    words = [script] if os.path.realpath(root) in seen else ["-c", _RUN_WITH, root, script]
    with subprocess.Popen(
        [environment.executable, "-B", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
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
    import selectors

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
    if process.returncode is None:
        process.returncode = _reap(process.pid)


def _reap(pid: int) -> int:
    """The exit code of a child that was killed.

    Not by Popen.wait: a signal that comes while Popen.poll holds its lock leaves it held, and wait would never return.
    """
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # reaped, and the signal came before that was noted
        return -signal.SIGKILL


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


def compiles_here(environment: Environment) -> bool:
    """Whether the running interpreter says what compiles: it is the target, of its version, or the only one at hand."""
    own = ".".join(map(str, sys.version_info[:2]))
    return environment.executable is None or (environment.python or "").startswith(f"{own}.")


def compile_sources(sources: Mapping[str, bytes], environment: Environment) -> dict[str, str]:
    """Those of ``sources`` (path to bytes) that do not compile for the target interpreter, with the reason.

    The running interpreter answers where it is the target, of the target's version, or the only one at hand. Nothing of
    the sources is run.
    """
    if compiles_here(environment):
        answers = _compile_shared(sources)
    else:
        assert environment.executable is not None  # nothing else would compile there
        answers = _collect(_begin_compiling(sources, environment.executable)) if sources else {}
    return {path: words for path, words in answers.items() if words}


_COMPILE = """
import base64, json, sys
answers = {}
for path, source in json.load(sys.stdin).items():
    try:
        compile(base64.b64decode(source), path, "exec", dont_inherit=True)
    except Exception as error:
        answers[path] = str(error)
json.dump(answers, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class _Compiling:
    """Another process that compiles ``sources``."""

    process: subprocess.Popen[bytes]
    executable: str
    sources: Mapping[str, bytes]


def _begin_compiling(sources: Mapping[str, bytes], executable: str) -> _Compiling:
    """One start of the interpreter ``executable`` for all ``sources``; it has read them when this returns."""
    import base64
    import json
    import subprocess

    question = json.dumps({path: base64.b64encode(source).decode("ascii") for path, source in sources.items()})
    command = [executable, "-I", "-S", "-B", "-W", "ignore", "-c", _COMPILE]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:  # where it ended early, what it says tells why
        pipe.write(question.encode("ascii"))
    process.stdin = None
    return _Compiling(process, executable, sources)


def _collect(compiling: _Compiling) -> dict[str, str]:
    import json

    with compiling.process as process:
        out, err = process.communicate()
    if process.returncode:
        words = err.decode("utf-8", "replace").strip().splitlines() or [f"exit {process.returncode}"]
        return dict.fromkeys(compiling.sources, f"{compiling.executable} did not answer: {words[-1]}")
    return {str(path): str(words) for path, words in json.loads(out).items()}


def _compile_shared(sources: Mapping[str, bytes]) -> dict[str, str]:
    """In this process; of so much that it would be waited for, other processes of this interpreter take their share."""
    shares = [dict(sources)]
    if sum(map(len, sources.values())) >= SHARED_BYTES and sys.executable:
        count = min(os.cpu_count() or 1, MOST_PROCESSES)
        shares = [dict([*sources.items()][number::count]) for number in range(count)]
    others = [_begin_compiling(share, sys.executable) for share in shares[1:] if share]
    answers = {path: _compile_here(source, path) for path, source in shares[0].items()}
    for other in others:
        answers |= _collect(other)
    return answers


def _compile_here(source: bytes, path: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return str(error)
    return ""
