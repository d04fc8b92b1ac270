"""patchkit keeps the installed files of Python distributions in a declared, checked, patched state."""

from __future__ import annotations

__version__ = "0.1.0"
