"""What stands in front of a commit's diff: who made it and why (git-format-patch(1), git-show(1))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAIL = re.compile(rb"^From ([0-9a-f]{40}(?:[0-9a-f]{24})?) .*\d:\d\d", re.MULTILINE)
_SHOWN = re.compile(rb"^commit ([0-9a-f]{40}(?:[0-9a-f]{24})?)\b.*$", re.MULTILINE)
_ENTRY = re.compile(rb"^(?:diff --git |--- |Index: )", re.MULTILINE)
_TAG = re.compile(r"^\s*(?:\[[^\]]*\]\s*)+")
_LARGEST_HEADER = 64 << 10  # bytes in front of a diff that are looked at


@dataclass(frozen=True, slots=True)
class Letter:
    """The commits of a diff by their hashes, and the subject of the first; "" where nothing states it."""

    commits: tuple[str, ...] = ()
    subject: str = ""

    @property
    def origin(self) -> str:
        """The commits as DEP-3's field ``Origin`` has them."""
        return f"upstream, commit:{', '.join(self.commits)}" if self.commits else ""


def read_letter(data: bytes) -> Letter:
    """What a diff says of its commits, in the form of mails or of ``git show``; other text says nothing."""
    for form, subject_of in ((_MAIL, _mail_subject), (_SHOWN, _shown_subject)):
        found = list(form.finditer(data))
        first = _ENTRY.search(data)
        if found and (first is None or found[0].start() < first.start()):
            header = data[found[0].start() :][:_LARGEST_HEADER]
            return Letter(tuple(dict.fromkeys(match[1].decode() for match in found)), subject_of(header))
    return Letter()


def _mail_subject(header: bytes) -> str:
    from email import message_from_bytes
    from email.policy import default

    message = message_from_bytes(header.partition(b"\n")[2], policy=default)
    try:
        subject = str(message["Subject"] or "")
    except (ValueError, LookupError, IndexError, AttributeError):  # the email package trips over some broken headers
        return ""
    return _plain(_TAG.sub("", " ".join(subject.split())))


def _shown_subject(header: bytes) -> str:
    """The first line of the message, which ``git show`` indents by four spaces."""
    return _plain(next(_indented(header), ""))


def _indented(header: bytes) -> Iterator[str]:
    for line in header.splitlines():
        if line.startswith(b"diff --git "):
            return
        if line.startswith(b"    ") and line.strip():
            yield line.strip().decode("utf-8", "replace")


def _plain(text: str) -> str:
    """``text`` without what is no character of a line."""
    return "".join(character for character in text if character.isprintable()).strip()
