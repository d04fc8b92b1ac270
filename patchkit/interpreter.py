"""What an interpreter says of its own environment.

This file runs twice: imported by patchkit for the interpreter it runs in, and as a program of its own in any other
(``python -c SOURCE``), which prints the answer as JSON. So it uses the standard library only, and nothing newer than
Python 3.8 but in annotations, which are not evaluated.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig


def describe(markers: bool = True) -> dict[str, str | list[str] | dict[str, str]]:
    """The version, the site roots (those of the environment, and those it only sees), and PEP 508's values."""
    virtual = sys.prefix != sys.base_prefix
    candidates = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    named = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    inside = [path for path in candidates if not virtual or _lies_below(path, sys.prefix)]
    outside = [path for path in candidates if path not in inside and path in sys.path]
    return {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "prefix": sys.prefix,
        "roots": _existing(inside + ([] if virtual else users) + named),
        "outside": _existing(outside + (users if virtual else [])),
        "visible": _existing([path for path in sys.path if path]),
        "markers": _marker_values() if markers else {},
    }


def _lies_below(path: str, prefix: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(prefix) + os.sep)


def _existing(paths: list[str]) -> list[str]:
    """The folders among ``paths``, each once, by their real path (lib64 is often a link to lib)."""
    found: dict[str, str] = {}
    for path in paths:
        if os.path.isdir(path):
            found.setdefault(os.path.realpath(path), os.path.abspath(path))
    return list(found.values())


def _marker_values() -> dict[str, str]:
    """The environment of PEP 508's markers."""
    import platform

    info = sys.implementation.version
    kind = info.releaselevel
    implementation = "%d.%d.%d" % (info.major, info.minor, info.micro)
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": implementation + ("" if kind == "final" else kind[0] + str(info.serial)),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "platform_python_implementation": platform.python_implementation(),
        "python_version": "%d.%d" % sys.version_info[:2],
        "sys_platform": sys.platform,
    }


if __name__ == "__main__":
    import json

    print(json.dumps(describe()))
