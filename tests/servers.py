"""A package index on this machine that counts what it sends: with range requests, or without."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote


@dataclass
class Sent:
    """What a server has sent: bytes of files, and the requests for them."""

    bytes: int = 0
    requests: list[str] = field(default_factory=list)
    turn: Any = field(default_factory=threading.Lock)


@dataclass
class LocalIndex:
    """An index (PEP 503) of the wheels in ``folder``; ``lies`` are files whose stated digest is wrong."""

    folder: Path
    url: str = ""
    sent: Sent = field(default_factory=Sent)
    ranges: bool = True
    suffixes: bool = True
    yanked: frozenset[str] = frozenset()
    lies: frozenset[str] = frozenset()
    shifted: str = ""  # parts begin elsewhere than asked: "all", or "inner" for those that are not the end of the file
    failures: int = 0  # so many of the first requests for files are answered with 503

    def page(self, name: str) -> bytes:
        files = [path for path in sorted(self.folder.iterdir()) if normalise(path.name.split("-")[0]) == name]
        return "".join(self.link(path) for path in files).encode()

    def link(self, path: Path) -> str:
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.name not in self.lies else "0" * 64
        yanked = ' data-yanked="broken"' if path.name in self.yanked else ""
        return f'<a href="/files/{path.name}#sha256={digest}"{yanked}>{path.name}</a>\n'


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, index: LocalIndex, *args: Any) -> None:
        self.index = index
        super().__init__(*args)

    def log_message(self, *args: Any) -> None:
        """Nothing: what was asked for is in `Sent`."""

    def do_GET(self) -> None:
        path = unquote(self.path)
        if path.startswith("/simple/"):
            page = self.index.page(path.split("/")[2])
            self.answer(200 if page else 404, page, {"Content-Type": "text/html"})
        elif path.startswith("/files/") and (file := self.index.folder / path.removeprefix("/files/")).is_file():
            self.send_file(file)
        else:
            self.answer(404, b"", {})

    def send_file(self, file: Path) -> None:
        if self.index.failures:
            self.index.failures -= 1
            return self.answer(503, b"", {})
        data, wanted = file.read_bytes(), self.headers.get("Range", "")
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
        if found is None or not self.index.ranges:
            self.count(len(data), "whole")
            self.answer(200, data, {"Content-Type": "application/octet-stream"})
        elif not found[1] and not self.index.suffixes:
            self.answer(501, b"", {})
        else:
            begin = int(found[1]) if found[1] else max(len(data) - int(found[2]), 0)
            end = min(int(found[2]) + 1, len(data)) if found[1] and found[2] else len(data)
            if found[1] and self.index.shifted:
                begin = 0
            if self.index.shifted == "all":
                end -= 1
            self.count(end - begin, wanted)
            self.answer(206, data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"})

    def count(self, size: int, wanted: str) -> None:
        with self.index.sent.turn:
            self.index.sent.bytes += size
            self.index.sent.requests.append(wanted)

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@contextmanager
def serving(index: LocalIndex) -> Iterator[LocalIndex]:
    """Serve ``index``; its ``url`` is that of its simple API."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, index)) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        index.url = f"http://127.0.0.1:{server.server_port}/simple/"
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
