"""Finding the modules of a distribution by its RECORD, and those of a caller: a module, a file or a folder. Reads only.

An editable caller (PEP 660) is found through the ``.pth`` files and finders that its installer left in the site root;
these are read as text, never run.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from patchkit.errors import NotReadable, UsageError
from patchkit.installed import Distribution
from patchkit.programs import Source
from patchkit.record import read_record
from patchkit.site import read_plain
from patchkit.syntax import PARSE_ERRORS, parse

_ENDINGS = (".py", ".pyi")
_COMPILED = (".so", ".pyd")
_IMPORT_LINES = re.compile(rb"^[ \t]*(?:from|import)\b.*", re.MULTILINE)
_MARKS = ("pyproject.toml", "setup.py", ".git")


@dataclass(frozen=True, slots=True)
class Caller:
    """What is audited: ``modules`` by name, and ``sources`` of all that belongs to the same distribution.

    ``whole`` is what to name to mean all of these, "" where that is what was named. ``odd`` are those of ``modules``
    that no import statement can name: scripts such as ``run-it.py``, and what lies in folders such as ``my-tools``.
    """

    name: str
    modules: tuple[str, ...]
    sources: dict[str, Source]
    whole: str = ""
    odd: frozenset[str] = frozenset()

    def without(self, names: Collection[str]) -> Caller:
        """The same without the modules ``names``."""
        modules = tuple(each for each in self.modules if each not in names)
        return replace(self, modules=modules, sources={k: v for k, v in self.sources.items() if k not in names})


def read_source(source: Source) -> bytes | None:
    """The bytes of a module's file, None where it is gone or may not be read."""
    try:
        content = read_plain(source.full)
    except NotReadable:
        return None
    return None if content is None else content.data


def find_modules(root: str, distribution: Distribution) -> dict[str, Source]:
    """The modules that a distribution owns by its RECORD and that are there, compiled ones by their names.

    A stub counts where there is no source (PEP 561).
    """
    paths = [path for path in read_record(distribution.record.data) if not path.startswith("../")]
    found: dict[str, Source] = {}
    for path in sorted(path for path in paths if path.endswith((*_ENDINGS, *_COMPILED))):
        full = os.path.join(root, path)
        if os.path.exists(full):
            _add(found, path, full, path, distribution.name)
    return found


def _add(found: dict[str, Source], relative: str, full: str, told: str, owner: str, *, odd: bool = False) -> None:
    """Add the module that the file ``relative`` (to a folder of sys.path) holds; ``odd``: also one of an odd name."""
    stem, ending = os.path.splitext(relative)
    parts = stem.split("/")
    if ending in _COMPILED:
        parts[-1] = parts[-1].partition(".")[0]  # without the tag of the ABI (PEP 3149)
    if parts[0].endswith("-stubs"):
        parts[0] = parts[0].removesuffix("-stubs")
    package = parts[-1] == "__init__"
    parts = parts[:-1] if package else parts
    if ending not in (*_ENDINGS, *_COMPILED) or not parts or not (odd or all(part.isidentifier() for part in parts)):
        return
    name = ".".join(parts)
    if name not in found or (found[name].stub and ending == ".py"):
        found[name] = Source(told, full, package, owner)


# ---- callers --------------------------------------------------------------------------------------------------


def find_caller(asked: str, folders: Sequence[str], cwd: str) -> Caller:
    """The caller that ``asked`` names: a path, or else a module in one of ``folders`` (those of sys.path).

    Raises `UsageError` where there is none.
    """
    if not asked.strip():
        raise UsageError("the caller has no name", hint="name a file, a folder, or a module by its dotted name")
    path = os.path.join(cwd, asked)
    is_path = os.sep in asked or asked.endswith(".py") or asked in (".", "..")
    if is_path or (os.path.exists(path) and not _find_module(asked, folders)):
        return _from_path(asked, os.path.abspath(path), folders, cwd)
    base = _find_module(asked, folders)
    if base is None:
        words = f"{asked} is neither a file or folder nor a module of {', '.join(folders)}"
        raise UsageError(words, hint="name a file, a folder, or a module by its dotted name")
    return _caller(asked, asked, base, folders, cwd)


def _from_path(asked: str, path: str, folders: Sequence[str], cwd: str) -> Caller:
    if not os.path.exists(path):
        raise UsageError(f"{asked}: there is no such file or folder", hint="name a file, a folder, or a module")
    base = _base_of(path, folders)
    relative = os.path.relpath(path, base).replace(os.sep, "/")
    name = "" if relative == "." else relative.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if os.path.isfile(path) and not path.endswith(".py"):
        raise UsageError(f"{asked} is not a Python module", hint="name a .py file, a folder or a module")
    return _caller(asked, name, base, folders, cwd)


def _base_of(path: str, folders: Sequence[str]) -> str:
    """The folder of sys.path that a file is imported from: a known one, or the one above its outermost package."""
    for folder in folders:
        if os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep):
            return folder
    base = folder = path if os.path.isdir(path) else os.path.dirname(path)
    outer = _named_base(folder)
    while True:
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            base = os.path.dirname(folder)
        above = os.path.dirname(folder)
        if above == folder or any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS):
            return outer if len(outer) < len(base) else base
        folder = above


def _named_base(folder: str) -> str:
    """The folder that the modules in ``folder`` are imported from by their own statements (PEP 420), else it."""
    lines = b"\n".join(line for file in _entries(folder) if file.endswith(".py") for line in _imports(folder, file))
    base, outer, name = folder, folder, ""
    while not any(os.path.exists(os.path.join(outer, mark)) for mark in _MARKS) and os.path.dirname(outer) != outer:
        name = os.path.basename(outer) + (f".{name}" if name else "")
        outer = os.path.dirname(outer)
        if re.search(rb"\b(?:from|import)[ \t]+%b\b" % re.escape(name.encode()), lines):
            base = outer
    return base


def _imports(folder: str, file: str) -> list[bytes]:
    content = read_plain(os.path.join(folder, file))
    return _IMPORT_LINES.findall(content.data) if content is not None else []


def _caller(asked: str, name: str, base: str, folders: Sequence[str], cwd: str) -> Caller:
    top = name.partition(".")[0]
    sources: dict[str, Source] = {}
    for relative in sorted(_walk(base, top)):
        full = os.path.join(base, relative)
        _add(sources, relative, full, _tell(full, relative, base, folders, cwd), "", odd=True)
    modules = tuple(each for each in sources if not name or each == name or each.startswith(f"{name}."))
    if not modules:
        raise UsageError(f"{asked}: there is no Python module in it", hint="name a .py file, a folder or a module")
    odd = frozenset(each for each in modules if not all(part.isidentifier() for part in each.split(".")))
    odd = odd if odd < set(modules) else frozenset()
    if len(modules) == len(sources):
        return Caller(asked, modules, sources, odd=odd)
    whole = os.path.join(base, top)
    if base not in folders:
        whole = os.path.relpath(whole, cwd) if whole.startswith(cwd.rstrip(os.sep) + os.sep) else whole
    return Caller(asked, modules, sources, top if base in folders else whole, odd)


def _walk(base: str, top: str) -> Iterator[str]:
    """The Python files below ``base``, of the package or module ``top`` where one is given."""
    if top and os.path.isfile(os.path.join(base, f"{top}.py")):
        yield f"{top}.py"
    start = os.path.join(base, top) if top else base
    linked: set[str] = set()
    for folder, inner, files in os.walk(start, followlinks=True):
        inner[:] = [each for each in inner if _is_code(folder, each, linked)]
        for file in files:
            if file.endswith(_ENDINGS):
                yield os.path.relpath(os.path.join(folder, file), base).replace(os.sep, "/")


def _is_code(folder: str, name: str, linked: set[str]) -> bool:
    """Whether a folder may hold code of the caller: no environment, nothing hidden, no link to what is around it.

    ``linked`` are the folders that links led to already: each is looked into once.
    """
    path = os.path.join(folder, name)
    if name.startswith(".") or name in _FOREIGN or name.endswith((".dist-info", ".egg-info")):
        return False
    if os.path.islink(path):
        target = os.path.realpath(path)
        is_around = os.path.join(os.path.realpath(folder), "").startswith(os.path.join(target, ""))
        is_fresh = not is_around and target not in linked
        linked.add(target)
        return is_fresh
    return not os.path.exists(os.path.join(path, "pyvenv.cfg"))


_FOREIGN = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})


def _tell(full: str, relative: str, base: str, folders: Sequence[str], cwd: str) -> str:
    """A path as it is told: relative to the site root or to the current folder where it lies below, else whole."""
    if base in folders[:1]:
        return relative
    return os.path.relpath(full, cwd) if full.startswith(cwd.rstrip(os.sep) + os.sep) else full


def _find_module(name: str, folders: Sequence[str]) -> str | None:
    """The folder of sys.path that has the module ``name``."""
    relative = name.replace(".", os.sep)
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    for folder in [*folders, *_editable_folders(folders)]:
        place = os.path.join(folder, relative)
        if os.path.isfile(f"{place}.py") or os.path.isdir(place):
            return folder
    return None


def _editable_folders(folders: Sequence[str]) -> Iterator[str]:
    """Where the editable installs of ``folders`` keep their code, by .pth files and setuptools' finders."""
    for folder in folders:
        for entry in _entries(folder):
            full = os.path.join(folder, entry)
            if entry.endswith(".pth"):
                content = read_plain(full)
                lines = content.data.decode("utf-8", "replace").splitlines() if content is not None else []
                places = (os.path.join(folder, line.strip()) for line in lines if line.strip()[:7] != "import ")
                yield from (place for place in places if os.path.isdir(place) and place != os.path.join(folder, ""))
            elif entry.startswith("__editable__") and entry.endswith("_finder.py"):
                yield from _mapped(full)


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # what cannot be listed cannot be imported from
        return []


def _mapped(finder: str) -> Iterator[str]:
    content = read_plain(finder)
    try:
        tree = parse(content.data if content is not None else b"")
    except PARSE_ERRORS:
        return
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == "MAPPING" and isinstance(value, ast.Dict):
            for each in value.values:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield os.path.dirname(each.value)
