"""Finding the environment that is meant, and its site roots. Reads only.

In this order: what the command line names, ``VIRTUAL_ENV``, the virtual environment that patchkit runs in,
``CONDA_PREFIX``, the interpreter that patchkit runs in.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from patchkit.errors import NoEnvironment, UnsupportedSystem
from patchkit.installed import Environment

ANSWER_SECONDS = 60.0


def find_environment(python: str | None, site_packages: str | None, environ: Mapping[str, str]) -> Environment:
    """The environment that ``--python`` and ``--site-packages`` name, or the one in force.

    Raises `NoEnvironment` where it is not there or does not answer, `UnsupportedSystem` on other systems than Linux
    and macOS.
    """
    if os.name != "posix":
        raise UnsupportedSystem(
            f"patchkit runs on Linux and macOS; this is {sys.platform}", hint="on Windows, use it inside WSL"
        )
    if site_packages is not None:
        return _name_root(site_packages, python)
    if python is not None:
        return ask_interpreter(python)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variable == "CONDA_PREFIX" and sys.prefix != sys.base_prefix:
            break
        prefix = environ.get(variable)
        if prefix and not _is_same_file(prefix, sys.prefix):
            return ask_interpreter(_interpreter_of(prefix, variable))
    return _describe_own()


def _is_same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _interpreter_of(prefix: str, variable: str) -> str:
    path = os.path.join(prefix, "bin", "python")
    if not os.path.exists(path):
        raise NoEnvironment(f"{variable} names {prefix}, and there is no {path}")
    return path


def _name_root(site_packages: str, python: str | None) -> Environment:
    if not os.path.isdir(site_packages):
        raise NoEnvironment(
            f"--site-packages {site_packages}: there is no such folder", hint="name the folder that holds *.dist-info"
        )
    root = os.path.abspath(site_packages)
    if python is None:
        return Environment(roots=(root,))
    answer = ask_interpreter(python)
    return replace(answer, roots=(root,), outside=())


def _describe_own() -> Environment:
    from patchkit.interpreter import describe

    return _to_environment(describe(markers=False), sys.executable)


def ask_interpreter(python: str) -> Environment:
    """What the interpreter at the path (or command name) ``python`` says of its environment."""
    import subprocess
    from importlib import resources
    from shutil import which

    inside = os.path.join(python, "bin", "python")  # the folder of a virtual environment is meant so
    executable = which(inside if os.path.isfile(inside) else python)
    if executable is None:
        raise NoEnvironment(f"--python {python}: there is no such interpreter", hint="name an executable file")
    source = resources.files("patchkit").joinpath("interpreter.py").read_text(encoding="utf-8")
    try:
        answer = subprocess.run(
            [executable, "-B", "-c", source],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
        if answer.returncode:
            words = answer.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {answer.returncode}"]
            raise NoEnvironment(f"{executable} did not say what its environment is: {words[-1]}")
        return _to_environment(json.loads(answer.stdout), executable)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        raise NoEnvironment(f"{executable} did not say what its environment is: {error}") from error


def _to_environment(answer: Mapping[str, object], executable: str) -> Environment:
    roots, outside, visible, markers = (answer[key] for key in ("roots", "outside", "visible", "markers"))
    assert isinstance(roots, list) and isinstance(outside, list)
    assert isinstance(visible, list) and isinstance(markers, dict)
    if not roots:
        raise NoEnvironment(f"{executable} has no site root: none of its site-packages folders exists")
    version = str(answer["version"])
    return Environment(tuple(roots), tuple(outside), tuple(visible), executable, version, markers)


def marker_values(environment: Environment) -> Mapping[str, str]:
    """PEP 508's values of the target interpreter; of the running one where only a folder was named."""
    if environment.markers:
        return environment.markers
    if environment.executable is not None and not _is_same_file(environment.executable, sys.executable):
        return ask_interpreter(environment.executable).markers
    from patchkit.interpreter import describe

    values = describe()["markers"]
    assert isinstance(values, dict)
    return values
