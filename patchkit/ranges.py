"""A remote wheel as a file that can be read anywhere: only what is read comes over the wire."""

from __future__ import annotations

import io

from patchkit.archives import Archive
from patchkit.remote import Index

TAIL_BYTES = 64 << 10
"""What is asked for first: the end of a zip file, where its directory is."""
LEAST_BYTES = 4 << 10
"""No request asks for less, unless the file ends."""


class RangeFile(io.RawIOBase):
    """``wheel`` for `zipfile`. Raises `NoRanges` where the server sends whole files only, and as `Index` does."""

    def __init__(self, index: Index, wheel: Archive) -> None:
        self.index = index
        self.wheel = wheel
        begin, data, self.size = index.read_range(wheel, -TAIL_BYTES)
        self.pieces = [(begin, data)]
        self.position = 0

    def fetch(self, begin: int, end: int) -> None:
        """Have the bytes from ``begin`` up to before ``end`` at hand, in one request."""
        end = min(end, self.size)
        if begin < end and self._held(begin) < end - begin:
            start, data, _ = self.index.read_range(self.wheel, begin, end)
            self.pieces.insert(0, (start, data))

    def _held(self, begin: int) -> int:
        """How many bytes from ``begin`` on one piece holds."""
        return max((start + len(data) - begin for start, data in self.pieces if start <= begin), default=0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        self.position = max(origin + offset, 0)
        return self.position

    def read(self, size: int | None = -1, /) -> bytes:
        """``size`` bytes, or all that follow; fewer only at the end of the file."""
        end = self.size if size is None or size < 0 else min(self.position + size, self.size)
        if self.position >= end:
            return b""
        if self._held(self.position) < end - self.position:
            self.fetch(self.position, max(end, self.position + LEAST_BYTES))
        start, data = max(
            (piece for piece in self.pieces if piece[0] <= self.position), key=lambda piece: piece[0] + len(piece[1])
        )
        found = data[self.position - start : end - start]
        self.position += len(found)
        return found
