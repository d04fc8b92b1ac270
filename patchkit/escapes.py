"""Text made fit to be shown: what would drive a terminal, reorder a line or break XML is written as an escape."""

from __future__ import annotations

import re

# Control characters but tab and line feed; invisible and bidirectional format characters, which make a line look like
# another (Unicode TR36); line separators that are none to us; and what XML 1.0 forbids.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def make_legible(text: str) -> str:
    """``text`` with every such character as ``\\x1b``, ``\\u202e`` or ``\\U000e0001``.

    A byte that was no text (PEP 383) becomes ``\\xff``. The result is well-formed Unicode whose only control
    characters are tab and line feed, so XML 1.0 can hold it.
    """
    return _UNFIT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # PEP 383: a byte that could not be decoded
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
