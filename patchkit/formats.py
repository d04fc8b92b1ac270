"""The formats of a drift report, and where one is to go."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique


@unique
class Format(Enum):
    """How a report is written (docs/reference/drift.md)."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Delivery:
    """In which format a report is wanted, and in which file; None: on standard output."""

    format: Format = Format.TEXT
    file: str | None = None
