"""A real headless Chromium, spoken to through a pipe by its DevTools protocol: pages as people get them."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from worlds import clean_environment

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMIT = 30.0
"""Seconds that one answer may take."""


def find_browser() -> str | None:
    """The program, where there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser with one tab."""

    def __init__(self, process: subprocess.Popen[bytes], to_browser: int, from_browser: int) -> None:
        self.process = process
        self.to_browser = to_browser
        self.from_browser = from_browser
        self.numbers = count(1)
        self.unread = b""
        self.events: list[Any] = []
        self.session: str | None = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **values: Any) -> Any:
        """The result of a method of the protocol; what it refuses is an AssertionError."""
        number = next(self.numbers)
        said = {"id": number, "method": method, "params": values}
        if self.session is not None:
            said["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(said).encode() + b"\0")
        while True:
            message = self._read()
            if message.get("id") == number:
                assert "error" not in message, (method, message)
                return message["result"]
            self.events.append(message)

    def _read(self) -> Any:
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.from_browser], [], [], LIMIT)
            assert ready, "the browser does not answer"
            data = os.read(self.from_browser, 1 << 20)
            assert data, "the browser has ended"
            self.unread += data
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def open(self, page: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Load a file into a window that is ``width`` pixels wide."""
        self.events.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media="", features=scheme)
        mobile = width < 500
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=mobile)
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page. It is the browser's own, so no policy forbids it."""
        got = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def tree(self) -> list[tuple[str, str]]:
        """What a screen reader is given, in its order: roles and names."""
        nodes = {node["nodeId"]: node for node in self.ask("Accessibility.getFullAXTree")["nodes"]}
        root = next(node for node in nodes.values() if "parentId" not in node)
        return [
            (node["role"]["value"], str(node.get("name", {}).get("value", "")))
            for node in _walk(root, nodes)
            if not node.get("ignored") and "role" in node
        ]

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key; ``text`` is what it types."""
        keys = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **keys, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **keys)

    def screenshot(self, *, height: int) -> bytes:
        """The first ``height`` pixels of the page as a PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height), "scale": 1}
        taken = self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(taken["data"])

    def print(self) -> bytes:
        """The page on paper as a PDF."""
        printed = self.ask("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(printed["data"])


def _walk(node: Any, nodes: Mapping[str, Any]) -> Iterator[Any]:
    yield node
    for id in node.get("childIds", ()):
        if id in nodes:
            yield from _walk(nodes[id], nodes)


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, out of the way of the descriptors that the browser is given."""
    ends = os.pipe()
    high = (fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, 10), fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, 10))
    for end in ends:
        os.close(end)
    return high


@contextmanager
def start_browser(program: str, profile: Path) -> Iterator[Browser]:
    """Start ``program`` with an empty ``profile``; it ends with the block."""
    read_here, written_there = _pipe()
    read_there, written_here = _pipe()
    options = ["--headless=new", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage"]
    options += ["--no-sandbox"] * (os.geteuid() == 0)  # its sandbox refuses root
    # The protocol is read from descriptor 3 and written to 4.
    script = f'exec "$@" 3<&{read_there} 4>&{written_there}'
    words = ["bash", "-c", script, "bash", program, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        words,
        pass_fds=(read_there, written_there),
        env=clean_environment({"HOME": str(profile)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_there)
    os.close(written_there)
    try:
        yield Browser(process, written_here, read_here)
    finally:
        os.close(written_here)
        os.close(read_here)
        process.terminate()
        process.wait(timeout=LIMIT)


# ---- pictures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """A decoded PNG: how many of its pixels have which colour (red, green, blue)."""

    width: int
    height: int
    colours: Mapping[tuple[int, int, int], int]

    def share(self, colour: tuple[int, int, int]) -> float:
        """How much of the picture has exactly this colour, from 0 to 1."""
        return self.colours.get(colour, 0) / (self.width * self.height)


def read_png(data: bytes) -> Picture:
    """Count the colours of a picture of 8 bits a channel (PNG, 3rd edition, sections 9 and 11)."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6)
    size = 3 if kind == 2 else 4
    packed, place = b"", 8
    while place < len(data):
        length, name = struct.unpack(">I4s", data[place : place + 8])
        packed += data[place + 8 : place + 8 + length] if name == b"IDAT" else b""
        place += 12 + length
    return Picture(width, height, _count(zlib.decompress(packed), width * size, size))


def _count(raw: bytes, stride: int, size: int) -> Mapping[tuple[int, int, int], int]:
    counts: Counter[tuple[int, int, int]] = Counter()
    above = bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        line = _unfilter(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), above, size)
        counts.update(zip(line[0::size], line[1::size], line[2::size], strict=True))
        above = line
    return counts


def _unfilter(kind: int, line: bytearray, above: bytearray, size: int) -> bytearray:
    match kind:
        case 0:
            return line
        case 2:
            return bytearray((part + up) & 255 for part, up in zip(line, above, strict=True))
        case _:
            for n in range(len(line)):
                left, corner = (line[n - size], above[n - size]) if n >= size else (0, 0)
                line[n] = (line[n] + _predict(kind, left, above[n], corner)) & 255
            return line


def _predict(kind: int, left: int, up: int, corner: int) -> int:
    match kind:
        case 1:
            return left
        case 3:
            return (left + up) // 2
        case _:
            return min((left, up, corner), key=lambda value: abs(left + up - corner - value))
