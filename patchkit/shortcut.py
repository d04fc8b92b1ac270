"""The short way for runs that have nothing to do: ``apply``, ``verify`` and ``status`` of what is settled.

It says what the commands say, in their words, or declines; then the commands themselves are run. A test holds the two
against each other. What is imported here decides how long the most common run of all takes, so neither click nor
anything else of patchkit is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from patchkit.columns import Cell, lay_out
from patchkit.inputs import Doubt
from patchkit.settled import Answer, Seal, describe_python, find_seal

# What each command says of a patch that is applied, and what it may be told that makes no difference to it then.
_WORDS = {"apply": "already applied", "verify": "verified", "status": "applied"}
_FLAGS = {
    "apply": ("--exact", "--no-checks", "--strict", "--skip-unmatched", "--allow-empty"),
    "verify": ("--no-checks",),
    "status": ("--exit-code",),
}
_VARIABLES = {"PATCHKIT_SITE_PACKAGES": "--site-packages", "PATCHKIT_PATCHES": "--patches"}


class _Wish:
    """What was asked for on the command line and in the environment. Raises `Doubt` for all that is not simple."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.command = arguments[0] if arguments else ""
        if self.command not in _WORDS:
            raise Doubt("not a command that may have nothing to do")
        self.values: dict[str, list[str]] = {"--site-packages": [], "--patches": [], "--color": []}
        self.flags: set[str] = set()
        words = iter(arguments[1:])
        for word in words:
            name, sign, value = word.partition("=")
            if name in self.values:
                self.values[name].append(value if sign else next(words, ""))
            elif word in (*_FLAGS[self.command], "--quiet", "-q", "--bundled"):
                self.flags.add(word)
            else:
                raise Doubt(f"{word} asks for more")
        self._take_variables(environ)
        if any(not all(values) for values in self.values.values()) or len(self.values["--site-packages"]) > 1:
            raise Doubt("an option that wants looking at")

    def _take_variables(self, environ: Mapping[str, str]) -> None:
        for variable, value in environ.items():
            if variable.startswith(("PATCHKIT_", "_PATCHKIT_")) and value:
                option = _VARIABLES.get(variable)
                if option is None:
                    raise Doubt(f"{variable} asks for more")
                if not self.values[option]:
                    self.values[option] = value.split(os.pathsep) if option == "--patches" else [value]

    @property
    def quiet(self) -> bool:
        return not self.flags.isdisjoint(("--quiet", "-q"))

    @property
    def question(self) -> str:
        match self.command:
            case "apply":
                return Answer.APPLY_EXACT if "--exact" in self.flags else Answer.APPLY
            case "verify":
                return Answer.VERIFY_BYTES if "--no-checks" in self.flags else Answer.VERIFY
            case _:
                return Answer.STATUS


def find_answer(arguments: Sequence[str], environ: Mapping[str, str], *, terminal: bool) -> str | None:
    """All that the command prints, where it has nothing to do and ends with 0; None where that is not certain.

    ``terminal``: standard output is one, and gets colours.
    """
    try:
        wish = _Wish(arguments, environ)
        root, python, elsewhere = _find_root(wish, environ)
        folders, bundled = wish.values["--patches"], "--bundled" in wish.flags
        seal = find_seal(root, folders=folders, bundled=bundled, cwd=os.getcwd(), elsewhere=elsewhere)
        if not _is_answered(wish.question, seal.all("answers")):
            return None
        text = _render(wish.command, root, python, seal, color=_wants_color(wish, terminal=terminal))
        return "" if wish.quiet else text
    except (Doubt, OSError, ValueError):
        return None


def _is_answered(question: str, answers: Sequence[str]) -> bool:
    if question in (Answer.VERIFY, Answer.VERIFY_BYTES) and f"{Answer.VERIFY_BYTES} {describe_python()}" not in answers:
        return False  # another interpreter may take a source for wrong that this one compiles
    return question == Answer.VERIFY_BYTES or question in answers


def _find_root(wish: _Wish, environ: Mapping[str, str]) -> tuple[str, str, bool]:
    """The site root, the version of its interpreter ("" where only a folder was named), and whether there are more."""
    if os.name != "posix":
        raise Doubt("another system")
    if wish.values["--site-packages"]:
        [named] = wish.values["--site-packages"]
        return _plain(os.path.abspath(named)), "", False
    _refuse_others(environ)
    from patchkit.interpreter import describe

    answer = describe(markers=False)
    roots, version = answer["roots"], answer["version"]
    if not (isinstance(roots, list) and isinstance(version, str)) or len(roots) != 1:
        raise Doubt("there are several site roots")
    return _plain(roots[0]), version, True


def _refuse_others(environ: Mapping[str, str]) -> None:
    """Raise `Doubt` unless the environment in force is that of this interpreter (`patchkit.environment`)."""
    variables = ["VIRTUAL_ENV"] + (["CONDA_PREFIX"] if sys.prefix == sys.base_prefix else [])
    for variable in variables:
        prefix = environ.get(variable)
        if prefix and os.path.realpath(prefix) != os.path.realpath(sys.prefix):
            raise Doubt(f"{variable} names another environment")


def _plain(root: str) -> str:
    if not (root.isascii() and root.isprintable()):
        raise Doubt("a name that may not be shown as it is")
    return root


def _wants_color(wish: _Wish, *, terminal: bool) -> bool:
    wanted = {"always": True, "never": False, "auto": terminal}
    color = (wish.values["--color"] or ["auto"])[-1]
    if color not in wanted:
        raise Doubt("a mistake, to be told in full")
    return wanted[color]


def _render(command: str, root: str, python: str, seal: Seal, *, color: bool) -> str:
    word = _WORDS[command]
    rows = [line.split(" ", 3) for line in seal.all("row")]
    said = Cell(word, f"\x1b[32m{word}\x1b[0m" if color else "")
    cells = [
        (Cell(name), said, Cell(f"{owner} {installed}"), Cell(variant)) for name, owner, installed, variant in rows
    ]
    where = f"environment {root}" + (f" (Python {python})" if python else "")
    lines = [f"\x1b[2m{where}\x1b[0m" if color else where]
    lines += [line for laid in lay_out(cells) for line in laid]
    lines.append(f"{'nothing to do: ' if command == 'apply' else ''}{len(rows)} {word}")
    return "".join(f"{line}\n" for line in lines)
