"""RECORD: which files a distribution owns, and their digests (PEP 376, PEP 627, the wheel format's PEP 427).

Rows are ``path,algorithm=digest,size``. Installers write the digest in urlsafe base64 without padding; with padding,
in standard base64 and in hex (Debian) it is read as well. Text is UTF-8 with surrogateescape, so that any path of a
POSIX file system comes back as it was.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchkit.errors import NoRecord
from patchkit.installed import Digest, RecordRow

_REINSTALL = "reinstall the distribution with pip or uv, which write a RECORD"
_NOT_MODULES = ("__pycache__", "", ".")


@dataclass(frozen=True, slots=True, eq=False)
class Record(Mapping[str, RecordRow]):
    """The rows of a RECORD by path, in its order.

    ``rest`` maps each path to what follows it in its row. A row's digest is parsed when the row is asked for: a
    RECORD may have ten thousand rows, of which a run needs a few.
    """

    rest: Mapping[str, str]

    def __getitem__(self, path: str) -> RecordRow:
        field = self.rest[path].partition(",")[0]
        return RecordRow(path, read_digest(field), field)

    def __contains__(self, path: object) -> bool:
        return path in self.rest

    def __iter__(self) -> Iterator[str]:
        return iter(self.rest)

    def __len__(self) -> int:
        return len(self.rest)


def read_record(data: bytes, *, path: str = "RECORD") -> Record:
    """The rows of a RECORD; ``path`` is what a message calls it.

    Rows without a path are left out, missing columns count as empty, and of several rows for one path the last
    counts (an installer that appends means the later one). Raises NoRecord where ``data`` is not CSV at all.
    """
    if b"\0" in data:
        raise NoRecord(f"{path} is not CSV: it contains a NUL byte", hint=_REINSTALL)
    text = data.decode("utf-8", "surrogateescape")
    rest = dict(_quoted_pairs(text, path) if '"' in text else _plain_pairs(text))
    rest.pop("", None)
    return Record(rest)


def _plain_pairs(text: str) -> Iterable[tuple[str, str]]:
    # Without quotes CSV is lines and commas; this takes a tenth of the csv module's time.
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [(parts[0], parts[2]) for parts in [line.partition(",") for line in text.split("\n")]]


def _quoted_pairs(text: str, path: str) -> Iterator[tuple[str, str]]:
    # strict: a quote that never closes would otherwise swallow all rows behind it without a word.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield row[0], row[1] if len(row) > 1 else ""
    except csv.Error as error:
        raise NoRecord(f"{path} is not CSV: line {reader.line_num}: {error}", hint=_REINSTALL) from None


def read_digest(field: str) -> Digest | None:
    """The digest that a RECORD's second column states, as in ``sha256=47DEQpj8...``.

    None where it is empty or of no use: an algorithm that hashlib lacks or that has no fixed size, text that is
    neither base64 nor hex, or a value of another length than the algorithm's.
    """
    algorithm, _, text = field.strip().partition("=")
    algorithm = algorithm.strip().lower()
    try:
        size = hashlib.new(algorithm).digest_size
    except (ValueError, TypeError):  # TypeError: a name that is not UTF-8
        return None
    value = _read_value(text.strip(), size)
    return Digest(algorithm, value) if value and len(value) == size else None


def _read_value(text: str, size: int) -> bytes | None:
    try:
        # The lengths tell the spellings apart: hex takes two characters a byte, base64 four for three bytes.
        if len(text) == 2 * size:
            return binascii.unhexlify(text)
        bare = text.rstrip("=").replace("+", "-").replace("/", "_")
        return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None


def append_rows(record: bytes, rows: Sequence[str]) -> bytes:
    """``record`` with the texts of `make_row` behind its last row, in the line ends that most of RECORD has.

    Where its last line has no end, that line gets one and the last new row has none instead, so that `remove_rows`
    finds the way back.
    """
    if not rows:
        return record
    end = _line_end(record)
    added = end.join(text.encode("utf-8", "surrogateescape") for text in rows)
    closed = not record or record.endswith((b"\n", b"\r"))
    return record + added + end if closed else record + end + added


def make_row(path: str, data: bytes) -> str:
    """The text of the row for a file with the content ``data``, without a line end."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")
    line = io.StringIO(newline="")
    # Older csv modules quote a line break in a path only where it is one of the terminator's characters.
    csv.writer(line, lineterminator="\r\n").writerow((path, f"sha256={digest}", len(data)))
    return line.getvalue().removesuffix("\r\n")


def row_path(row: str) -> str:
    """The path in the text of a row."""
    return next(csv.reader([row]))[0]


def _line_end(record: bytes) -> bytes:
    crlf = record.count(b"\r\n")
    return b"\r\n" if crlf * 2 > record.count(b"\n") else b"\n"


def remove_rows(record: bytes, rows: Sequence[str]) -> bytes:
    """``record`` without the lines that are exactly one of ``rows``, wherever they stand.

    All other bytes stay. If the last line goes and had no line end, the new last line loses its own: this undoes what
    `append_rows` did to such a RECORD.
    """
    texts = {row.encode("utf-8", "surrogateescape") for row in rows}
    lines = list(_lines(record))
    kept = [line for line in lines if line.rstrip(b"\r\n") not in texts]
    if kept and kept[-1] is not lines[-1] and not lines[-1].endswith((b"\n", b"\r")):
        kept[-1] = kept[-1].removesuffix(b"\n").removesuffix(b"\r")
    return b"".join(kept)


def _lines(record: bytes) -> Iterator[bytes]:
    """The lines of ``record`` with their ends; a quoted path may hold line breaks of its own."""
    whole: list[bytes] = []
    quotes = 0
    for line in record.splitlines(keepends=True):
        whole.append(line)
        quotes += line.count(b'"') if whole[0].startswith(b'"') else 0
        if quotes % 2 == 0:
            yield b"".join(whole)
            whole.clear()
            quotes = 0
    if whole:
        yield b"".join(whole)


def top_level_folders(paths: Iterable[str]) -> frozenset[str]:
    """The folders directly below the site root that hold files of these rows.

    Left out are metadata (``*.dist-info``, ``*.data``), ``__pycache__``, and rows outside the site root.
    """
    first = {path.partition("/")[0] for path in paths if "/" in path}
    return frozenset(
        name for name in first if name not in _NOT_MODULES and not name.startswith("..") and not _is_metadata(name)
    )


def _is_metadata(name: str) -> bool:
    return name.endswith((".dist-info", ".data"))
