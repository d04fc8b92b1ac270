"""The formats of a drift report, and what they all say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique

from patchkit.drift import Drift
from patchkit.drift_text import summarise
from patchkit.report import Report


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


def tell_headline(report: Report) -> str:
    """One line for the whole report."""
    if report.error is not None:
        return f"drift cannot be told: {report.error.message.splitlines()[0]}"
    return report.summary or summarise(report)


def name_row(row: Drift) -> str:
    """The patch that a row is about; a row without one is about the whole site root."""
    return "(all)" if row.id is None else str(row.id)
