"""Elements of XML and HTML, made of text that is never markup: escaping is not a thing to be remembered."""

from __future__ import annotations

from xml.etree import ElementTree as tree
from xml.etree.ElementTree import Element

from patchkit.escapes import make_legible

_BLOCKS = frozenset(
    ("section", "article", "details", "p", "li", "div", "h2", "h3", "tr", "properties", "testcase", "testsuite")
)
"""The elements that end a line of the source; white space behind them means nothing."""


def make(tag: str, *children: Element | str, **attributes: str) -> Element:
    """An element with ``children`` in their order. A trailing ``_`` of an attribute's name is dropped (``class_``).

    Other underscores stand for ``-`` (``aria_label``). Text and values are made legible first (`escapes`).
    """
    element = Element(
        tag, {name.rstrip("_").replace("_", "-"): make_legible(each) for name, each in attributes.items()}
    )
    last: Element | None = None
    for child in children:
        if not isinstance(child, str):
            element.append(child)
            last = child
        elif last is None:
            element.text = (element.text or "") + make_legible(child)
        else:
            last.tail = (last.tail or "") + make_legible(child)
    if tag in _BLOCKS:
        element.tail = "\n"
    return element


def write_html(root: Element) -> str:
    """A page as text in ASCII, so that it is right in every encoding."""
    return f"<!DOCTYPE html>\n{tree.tostring(root, encoding='us-ascii', method='html').decode()}\n"


def write_xml(root: Element) -> str:
    """An XML document as text in ASCII."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tree.tostring(root, encoding="us-ascii").decode()}\n'
