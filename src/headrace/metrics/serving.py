"""Answers `GET /metrics`, one reader after the other, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from headrace.errors import UsageError
from headrace.metrics.catalogue import FAMILIES
from headrace.metrics.exposition import CONTENT_TYPE, exposition
from headrace.metrics.instruments import Reading
from headrace.metrics.this_process import process_readings

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, HTTPServer

_log = logging.getLogger("headrace.metrics")

_PATIENCE_SECONDS = 5.0
"""How long a reader may take to ask; the next one waits."""

Readings = Callable[[], Iterable[Reading]]
"""Looks numbers up when somebody asks. Always called on the same thread."""


def all_readings(more: Iterable[Readings] = ()) -> list[Reading]:
    """Every number of this process and what else can be looked up, in the order of the catalogue."""
    kept = [Reading(family, list(family.samples())) for family in FAMILIES]
    looked_up = [reading for read in more for reading in read()]
    order = {family: number for number, family in enumerate(FAMILIES)}
    return sorted([*kept, *looked_up, *process_readings()], key=lambda reading: order[reading.family])


class MetricsServer:
    """`start`, then read from `url`, then `stop`."""

    def __init__(
        self, host: str, port: int, more: Iterable[Readings] = (), on_end: Callable[[], None] = lambda: None
    ) -> None:
        """Port 0: any free one. `on_end` is called at the end, on the thread that read."""
        self._host = host
        self._port = port
        self._more = tuple(more)
        self._on_end = on_end
        self._server: HTTPServer | None = None
        self._thread = threading.Thread(target=self._live, name="headrace-metrics", daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/metrics"

    def start(self) -> None:
        """Begin to answer. Raises a UsageError if the address is taken."""
        try:
            self._server = _http_server(self._host, self._port, self._text)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"could not serve metrics on port {self._port} of `{self._host}`: {error}",
                hint="give each process on a machine a port of its own: `--metrics-port`",
            ) from None
        self._port = self._server.server_port
        self._thread.start()
        _log.info("metrics are at %s", self.url)

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def _live(self) -> None:
        assert self._server is not None, "started"
        self._server.serve_forever(poll_interval=0.2)
        self._on_end()

    def _text(self) -> str:
        return exposition(all_readings(self._more))


def _http_server(host: str, port: int, text: Callable[[], str]) -> HTTPServer:
    # Imported here: most processes serve no metrics, and should not wait for this.
    import socket
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS
        server_version, sys_version = "headrace", ""

        def do_GET(self) -> None:
            _answer(self, text)

        def log_message(self, format: str, *args: object) -> None:
            _log.debug(format, *args)

    class Server(HTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            # Not HTTPServer's, which asks the name service who we are.
            super(HTTPServer, self).server_bind()
            self.server_name, self.server_port = host, self.server_address[1]

        def handle_error(self, request: object, client_address: object) -> None:
            _log.debug("a reader of metrics went away", exc_info=True)

    return Server((host, port), Handler)


def _answer(handler: BaseHTTPRequestHandler, text: Callable[[], str]) -> None:
    if handler.path.partition("?")[0] != "/metrics":
        handler.send_error(HTTPStatus.NOT_FOUND, explain="metrics are at /metrics")
        return
    try:
        body = text().encode()
    except Exception:
        _log.exception("could not read the metrics")
        handler.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
        return
    handler.send_response(HTTPStatus.OK)
    handler.send_header("Content-Type", CONTENT_TYPE)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
