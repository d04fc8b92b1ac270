"""What a module's source does, read from its syntax: which modules it imports, and where it could change a file.

Nothing is imported or run. Names are followed through the module's own imports (``from os import unlink as drop``);
what an object's methods do is told by their names, as Path.unlink.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

PACKAGE = "patchkit"


class Import(NamedTuple):
    """An import of ``module`` (absolute), on ``line``; ``lazy``: inside a function."""

    module: str
    line: int
    lazy: bool


class Finding(NamedTuple):
    """A place in a source, and what is there."""

    line: int
    what: str


def parse(source: str) -> ast.Module:
    return ast.parse(source)


# ---- imports --------------------------------------------------------------------------------------------------


def find_imports(tree: ast.AST, *, lazy: bool = False) -> Iterator[Import]:
    """Every import, also inside functions and under TYPE_CHECKING; ``from a import b`` counts as a and as a.b."""
    for node in ast.iter_child_nodes(tree):
        inside = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for module in _imported(node):
            yield Import(module, getattr(node, "lineno", 0), inside)
        yield from find_imports(node, lazy=inside)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = ".".join(filter(None, (PACKAGE if node.level else "", node.module)))
        return [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return []


def is_within(module: str, name: str) -> bool:
    """Whether ``module`` is ``name`` or something in it."""
    return module == name or module.startswith(f"{name}.")


def neighbours(tree: ast.AST, known: frozenset[str]) -> dict[str, int]:
    """The modules of the package that are imported, among the ``known`` ones, each with its first line."""
    found: dict[str, int] = {}
    for item in find_imports(tree):
        name = item.module.removeprefix(f"{PACKAGE}.")
        if name != item.module and name in known:
            found.setdefault(name, item.line)
    return found


# ---- dotted names ---------------------------------------------------------------------------------------------


def find_uses(tree: ast.AST) -> Iterator[Finding]:
    """Every dotted name that is used, called or not, followed through the imports: ``os.path.join``, ``open``."""
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            name = _dotted(node, aliases)
            if name:
                yield Finding(node.lineno, name)


def _aliases(tree: ast.AST) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _dotted(node: ast.AST, aliases: dict[str, str]) -> str:
    """The dotted name of an expression that begins with an imported or built-in name; "" for any other expression."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, aliases)
        return f"{base}.{node.attr}" if base else ""
    return ""


# ---- writes to the file system ---------------------------------------------------------------------------------

_OS_WRITES = re.compile(
    r"os\.(l?chflags|[fl]?ch(mod|own)|link|symlink|mk(dir|fifo|nod)|makedirs|remove(dirs|xattr)?|renames?|replace|rmdir"
    r"|unlink|utime|f?truncate|p?writev?|fdopen|copy_file_range|posix_fallocate|sendfile|setxattr|splice"
    r"|system|popen|(exec|spawn|posix_spawn)\w*)"
)
_READS = frozenset({"shutil.which", "shutil.get_terminal_size", "shutil.disk_usage", "tempfile.gettempdir"})
_OPENERS = re.compile(r"open|io\.(open|FileIO)|(codecs|gzip|bz2|lzma|tarfile)\.open|(\w+\.)*(ZipFile|TarFile)")
_METHODS = re.compile(
    r"l?chmod|mkdir|rmdir|rename|unlink|touch|(symlink|hardlink|link)_to|write_(bytes|text)|move|(move|copy)_into|extract(all)?"
)
_READING_FLAG = re.compile(r"os\.O_(RDONLY|CLOEXEC|DIRECTORY|NOATIME|NOCTTY|NOFOLLOW|NONBLOCK|PATH)")
_READING_MODE = re.compile(r"[rbtU]*(:.*)?")
_ANY_MODE = re.compile(r"[rwxabtU+]{1,4}")


def find_writes(tree: ast.AST) -> Iterator[Finding]:
    """Every place that could change a file or a folder, or start a program that does.

    Functions are found where they are named, called or not (``undo = os.unlink``); methods where they are called.
    A call of ``open`` counts where its mode is not seen to be one for reading.
    """
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        what = _names_a_writer(node, aliases) or (isinstance(node, ast.Call) and _call_writes(node, aliases))
        if what:
            yield Finding(getattr(node, "lineno", 0), what)


def _names_a_writer(node: ast.AST, aliases: dict[str, str]) -> str:
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return f"from {node.module} import *"
    if not isinstance(node, (ast.Attribute, ast.Name)):
        return ""
    name = _dotted(node, aliases)
    if _OS_WRITES.fullmatch(name):
        return name
    return name if name.startswith(("shutil.", "tempfile.")) and name not in _READS else ""


def _call_writes(call: ast.Call, aliases: dict[str, str]) -> str:
    name = _dotted(call.func, aliases)
    if name == "getattr" and call.args and _dotted(call.args[0], aliases) in ("os", "shutil", "tempfile"):
        return "getattr on a module that writes"
    if name == "os.open":
        return "" if _flags_read(_argument(call, 1, "flags"), aliases) else "os.open with flags not for reading"
    if _OPENERS.fullmatch(name):
        return "" if _mode_reads(_argument(call, 1, "mode")) else f"{name} with a mode that is not for reading"
    if isinstance(call.func, ast.Attribute) and not name.startswith("os."):
        return _method_writes(call, call.func.attr, name)
    return ""


def _method_writes(call: ast.Call, method: str, name: str) -> str:
    if method == "open" and _is_writing_mode(_argument(call, 0, "mode")):
        return "open with a mode that is not for reading"
    if method == "replace" and len(call.args) == 1 and not call.keywords and name != "dataclasses.replace":
        return "replace with one argument, as Path has it"  # str and bytes take two, dates take keywords only
    return method if _METHODS.fullmatch(method) else ""


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    named = next((item.value for item in call.keywords if item.arg == keyword), None)
    return call.args[position] if len(call.args) > position else named


def _flags_read(flags: ast.expr | None, aliases: dict[str, str]) -> bool:
    if isinstance(flags, ast.BinOp) and isinstance(flags.op, ast.BitOr):
        return _flags_read(flags.left, aliases) and _flags_read(flags.right, aliases)
    return flags is not None and bool(_READING_FLAG.fullmatch(_dotted(flags, aliases)))


def _mode_reads(mode: ast.expr | None) -> bool:
    if mode is None:
        return True
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(_READING_MODE.fullmatch(mode.value))


def _is_writing_mode(mode: ast.expr | None) -> bool:
    """For a method ``open``, whose first argument may be a mode (Path) or a member's name (ZipFile)."""
    text = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else ""
    return bool(_ANY_MODE.fullmatch(text)) and not _READING_MODE.fullmatch(text)
