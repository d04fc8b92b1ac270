"""What the operating system refuses, in words: what happened and where, and what to do about it."""

from __future__ import annotations

import errno

from patchkit.errors import NotWritable, PatchkitError, RolledBack

DENIED = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
"""What says that this is no place to write to; anything else is a failure in a place that would do."""

_ADVICE = {
    errno.EACCES: "run as a user who may write there",
    errno.EPERM: "run as a user who may write there; perhaps the file itself is locked against changes (lsattr)",
    errno.EROFS: "mount it so that it can be written",
    errno.ENOSPC: "make room on that file system",
    errno.EDQUOT: "free some of your quota there",
    errno.EFBIG: "raise the limit for the size of files (ulimit -f)",
    errno.EMFILE: "raise the limit for open files (ulimit -n)",
    errno.ENOENT: "see what else changes files there at the same time",
    errno.ENOTDIR: "see what else changes files there at the same time",
    errno.EIO: "look into the log of the system: the disk may be failing",
}


def words(error: OSError) -> str:
    """The path and what the system says."""
    place = error.filename2 or error.filename
    said = error.strerror or str(error)
    return f"{place}: {said}" if place else said


def advise(error: OSError, then: str) -> str:
    """What to do about ``error`` before ``then`` is done."""
    advice = _ADVICE.get(error.errno or 0)
    return f"{advice}, then {then}" if advice else then


def explain(error: OSError) -> PatchkitError:
    """An error that came before anything was changed: `NotWritable` for a place that will not do, else `RolledBack`."""
    kind = NotWritable if error.errno in DENIED else RolledBack
    return kind(f"{words(error)}; nothing was changed", hint=advise(error, "run the command again"))
