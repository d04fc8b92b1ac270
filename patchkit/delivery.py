"""Delivering a drift report: in the format that was asked for, on standard output or in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from click import unstyle

from patchkit import text
from patchkit.console import echo, mark_changed, tell_json, tell_with
from patchkit.drift_text import render_drift, tell_headline
from patchkit.errors import PatchkitError
from patchkit.escapes import make_legible
from patchkit.formats import Delivery, Format
from patchkit.options import Output
from patchkit.outputs import write_output
from patchkit.report import Report, to_document


def catch(compare: Callable[[], Report]) -> Report:
    """What ``compare`` reports; an error that it raises is a report too, to be told in the format asked for."""
    try:
        return compare()
    except PatchkitError as error:
        return Report("drift", error=error)


def deliver(report: Report, delivery: Delivery, output: Output) -> int:
    """Write ``report`` where it is wanted and return its exit code. Raises what `write_output` raises."""
    if delivery.file is not None:
        document = render_as(report, delivery.format, output)
        write_output(delivery.file, document.encode("utf-8", "backslashreplace"))
        mark_changed(True)
        if not (output.quiet or output.json):
            name = make_legible(delivery.file)
            echo(f"{make_legible(tell_headline(report))}; the report is in {name}", color=output.color)
        return _tell_aside(report, output)
    match delivery.format:
        case Format.TEXT:
            return tell_with(_render_lines(report, verbose=output.verbose), report, output)
        case Format.JSON:
            return tell_json(to_document(report, again=output.again), report)
        case Format.MARKDOWN | Format.JUNIT | Format.HTML:
            echo(render_as(report, delivery.format, output).removesuffix("\n"), color=output.color)
            return _tell_aside(report, output)


def _tell_aside(report: Report, output: Output) -> int:
    """Warnings and errors are in the document; whoever only sees standard error learns of them too."""
    return tell_with((), report, output)


def _render_lines(report: Report, *, verbose: bool) -> Iterator[str]:
    return iter(()) if report.error is not None else render_drift(report, verbose=verbose)


def render_as(report: Report, format: Format, output: Output) -> str:
    """The whole report as one text that ends in a line feed, without colours."""
    match format:
        case Format.TEXT:
            errors = text.render_error(report.error) if report.error is not None else ()
            lines = (*_render_lines(report, verbose=output.verbose), *text.render_notices(report), *errors)
            return "".join(f"{make_legible(unstyle(line))}\n" for line in lines)
        case Format.JSON:
            return f"{json.dumps(to_document(report, again=output.again), indent=2)}\n"
        case Format.MARKDOWN:
            from patchkit.markdown import render_markdown

            return render_markdown(report)
        case Format.JUNIT:
            from patchkit.junit import render_junit

            return render_junit(report)
        case Format.HTML:
            from patchkit.page import render_page

            return render_page(report)
