"""The seal of a ledger: what a later run has to find as it was, to know without deciding that nothing is to be done.

To decide is a pure function of what is read. So whoever writes a ledger and foresees that the next bare ``apply`` has
nothing to do, seals it: with one digest of all that such a decision is made from and that the ledger does not hold
itself. A run that finds the same digest, the same ledger, and in every patched file the bytes that were written, would
decide the same. There is no time stamp and no cache in this: every byte counts each time.

The seal is a list of plain strings at the end of ledger.json (docs/reference/state.md), so that reading it takes no
JSON parser. Like `inputs` this module is loaded first, and imports next to nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256

from patchkit import __version__
from patchkit.inputs import DEFAULT_FOLDER, Doubt, Sum, digest_folders, find_project, place_folders, read_regular

SETTLED = "settled"
_BEGIN = f'\n "{SETTLED}": [\n'.encode("ascii")
_END = b"\n ]\n}\n"
_UNSEALED_END = b"\n}\n"
_STATE = ".patchkit"
_METADATA = (".dist-info", ".egg-info", ".egg-link")
_SEPARATORS = str.maketrans("_.", "--")


class Answer:
    """The questions that a seal may answer: what it lists holds for them."""

    APPLY = "apply"
    APPLY_EXACT = "apply-exact"
    STATUS = "status"
    VERIFY_BYTES = "verify-bytes"
    VERIFY = "verify"


class Seal:
    """The words of a seal: each line is a kind and what it says. Both are printable ASCII without blanks in a word."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._said: dict[str, list[str]] = {}
        for line in lines:
            kind, _, words = line.partition(" ")
            self._said.setdefault(kind, []).append(words)

    def all(self, kind: str) -> list[str]:
        return self._said.get(kind, [])

    def one(self, kind: str) -> str:
        """The only line of that kind. Raises `Doubt` where there is none, or more than one."""
        if len(self.all(kind)) != 1:
            raise Doubt(f"the seal does not say {kind}")
        return self.all(kind)[0]


def is_plain(words: str) -> bool:
    """Whether a line of a seal may hold ``words``: they stand in JSON as they are."""
    return words.isascii() and words.isprintable() and not set('"\\') & set(words)


# ---- reading --------------------------------------------------------------------------------------------------


def open_seal(data: bytes) -> Seal:
    """The seal in the bytes of a ledger. Raises `Doubt` where there is none, or where a byte of either was changed."""
    head, begin, tail = data.rpartition(_BEGIN)
    body, end, rest = tail.partition(_END)
    if not (begin and end) or rest or not head.endswith(b","):
        raise Doubt("the ledger has no seal")
    lines = [_unquote(line) for line in body.decode("ascii", "replace").split("\n")]
    if lines.pop() != f"sum {_sum(head[:-1], lines)}":
        raise Doubt("the ledger or its seal was changed")
    return Seal(lines)


def _unquote(line: str) -> str:
    text = line.removesuffix(",")
    if not (text.startswith('  "') and text.endswith('"') and is_plain(text[3:-1])):
        raise Doubt("the ledger has no such seal")
    return text[3:-1]


def close_seal(unsealed: bytes, lines: Sequence[str]) -> tuple[str, ...]:
    """``lines`` with the sum that binds them to each other and to the ledger whose bytes without a seal are given."""
    return (*lines, f"sum {_sum(unsealed.removesuffix(_UNSEALED_END), lines)}")


def _sum(head: bytes, lines: Sequence[str]) -> str:
    return sha256(head + b"\n" + "\n".join(lines).encode("ascii")).hexdigest()


def find_seal(
    root: str, *, folders: Sequence[str] = (), bundled: bool = False, cwd: str, elsewhere: bool = False
) -> Seal:
    """The seal of the site root ``root``, where all that it speaks of is as it was. Raises `Doubt` or OSError else.

    ``inputs`` and ``bundled`` say which patch folders are meant; ``elsewhere``: the environment imports from other
    folders than the site root too.
    """
    ledger, moment = _read_ledger(root)
    seal = open_seal(ledger)
    if digest_inputs(root, seal, digest_catalog(seal, folders, bundled=bundled, cwd=cwd)) != seal.one("inputs"):
        raise Doubt("something that was decided from has changed")
    if elsewhere and seal.all("absent"):
        raise Doubt("a distribution that is asked for may be installed elsewhere")
    _check_files(root, seal)
    if _read_ledger(root) != (ledger, moment):
        raise Doubt("the ledger changed meanwhile")
    return seal


def _read_ledger(root: str) -> tuple[bytes, tuple[int, int]]:
    """The bytes of ledger.json and what tells it from any other, where no transaction left or has anything to do."""
    names = os.listdir(f"{root}/{_STATE}")
    if "journal.json" in names or any(name.endswith(".tmp") for name in names):
        raise Doubt("there is something to recover")
    path = f"{root}/{_STATE}/ledger.json"
    status = os.stat(path)
    return read_regular(path)[0], (status.st_ino, status.st_mtime_ns)


def _check_files(root: str, seal: Seal) -> None:
    """Every file that patches touch holds what was written last: its bytes, its executable bit, no link on the way."""
    real = os.path.realpath(root)
    parents: set[str] = set()
    for line in seal.all("file"):
        bit, digest, path = line.split(" ", 2)
        _check_parents(real, path, parents)
        data, mode = read_regular(f"{real}/{path}")
        if bit != mode_word(mode) or sha256(data).hexdigest() != digest:
            raise Doubt(f"{path} is not as it was written")
    for line in seal.all("record"):
        digest, path = line.split(" ", 1)
        if sha256(read_regular(f"{real}/{path}")[0]).hexdigest() != digest:
            raise Doubt(f"{path} is not as it was")
    for path in seal.all("gone"):
        _check_parents(real, path, parents)
        if os.path.lexists(f"{real}/{path}"):
            raise Doubt(f"{path} is there again")


def _check_parents(root: str, path: str, known: set[str]) -> None:
    parent = path.rpartition("/")[0]
    while parent and parent not in known:
        full = f"{root}/{parent}"
        if os.path.lexists(full) and not stat.S_ISDIR(os.lstat(full).st_mode):
            raise Doubt(f"{full} is not a folder")
        known.add(parent)
        parent = parent.rpartition("/")[0]


def mode_word(mode: int) -> str:
    """The executable bit, which is all of a mode that decides."""
    return "x" if mode & 0o100 else "-"


# ---- the inputs -----------------------------------------------------------------------------------------------


def digest_catalog(seal: Seal, folders: Sequence[str], *, bundled: bool, cwd: str) -> str:
    """The digest of the patch folders that are meant, and of what the project declares."""
    source = find_project(cwd)
    project = read_regular(source)[0] if source else None
    places = place_folders(
        folders,
        bundled=_find_bundled() if bundled else "",
        cwd=cwd,
        home=os.path.dirname(source),
        named=seal.all("named"),
        declares=seal.one("declares") == "yes",
    )
    return digest_folders(places, project)


def _find_bundled() -> str:
    """The folder of the sets that come with patchkit (`patchkit.folders`), where this package is one on disk."""
    package = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(package, "bundled")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), DEFAULT_FOLDER)


def digest_inputs(root: str, seal: Seal, catalog: str) -> str:
    """One digest of all that is decided from and is neither in the ledger nor in a patched file.

    Of the site root that is which metadata folders there are of the distributions that ``seal`` speaks of, and what
    says the version and the origin of those that are patched. Reads one directory listing.
    """
    whole = Sum()
    whole.add("patchkit", __version__)
    whole.add("catalog", catalog)
    names = tuple(seal.all("watch"))
    for entry in sorted(os.listdir(root)):
        if entry.endswith(_METADATA) and flatten(entry).startswith(names):
            whole.add("entry", entry)
    for line in seal.all("record"):
        folder = os.path.dirname(line.split(" ", 1)[1])
        for name in ("METADATA", "direct_url.json"):
            there = os.path.lexists(f"{root}/{folder}/{name}")
            whole.add(
                "metadata" if there else "no-metadata",
                name,
                read_regular(f"{root}/{folder}/{name}")[0] if there else b"",
            )
    return whole.hexdigest()


def flatten(entry: str) -> str:
    """A name of a metadata folder so that it begins with the normalised name (PEP 503) of its distribution."""
    text = entry.translate(_SEPARATORS)
    while "--" in text:
        text = text.replace("--", "-")
    return text.lower()


def describe_python() -> str:
    """The running interpreter, as far as it decides whether a source compiles."""
    return f"{sys.implementation.name}-{'.'.join(map(str, sys.version_info))}"
