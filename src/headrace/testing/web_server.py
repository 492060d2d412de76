"""A web server for tests: answers as a function says, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


Reply = int | tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""A status, perhaps a body (bytes and texts as they are, everything else as JSON), perhaps headers."""


class WebServer:
    """A server on a free port of this machine."""

    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        self.asked: list[Asked] = []
        self.answer = answer
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, url.path, dict(parse_qsl(url.query)), dict(self.headers), body)
                owner.asked.append(asked)
                status, content, headers = _complete(owner.answer(asked))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def _complete(reply: Reply) -> tuple[int, bytes, dict[str, str]]:
    status, content, headers = (*reply, {})[:3] if isinstance(reply, tuple) else (reply, b"", {})
    if isinstance(content, bytes):
        return status, content, headers
    if isinstance(content, str):
        return status, content.encode(), {"Content-Type": "text/plain; charset=utf-8", **headers}
    return status, json.dumps(content).encode(), {"Content-Type": "application/json", **headers}
