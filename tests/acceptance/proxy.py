"""A line to a PostgreSQL server that a test can cut: what is under way hangs, and nobody gets through."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import make_url

_CHUNK = 65_536
_LOOK_SECONDS = 0.02


class Proxy:
    """Copies bytes between its clients and a server on loopback, on a thread of its own."""

    def __init__(self, url: str) -> None:
        target = make_url(url)
        self._target = (target.host or "127.0.0.1", target.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._peers: dict[socket.socket, socket.socket] = {}
        self._is_cut = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        own = target.set(host="127.0.0.1", port=self._listener.getsockname()[1])
        self.url = own.render_as_string(hide_password=False)

    def cut(self) -> None:
        """From now on nothing gets through, and nobody is told: connections stay open and silent."""
        self._is_cut.set()

    def mend(self) -> None:
        """Everything gets through again, what was held up first."""
        self._is_cut.clear()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for one in [*self._peers, self._listener]:
            one.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._is_cut.is_set():
                self._stop.wait(_LOOK_SECONDS)
                continue
            for key, _ in self._selector.select(_LOOK_SECONDS):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._copy(key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(self._target)
        for one, other in ((client, server), (server, client)):
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _copy(self, source: socket.socket) -> None:
        if source not in self._peers:
            return
        try:
            data = source.recv(_CHUNK)
            if data:
                self._peers[source].sendall(data)
                return
        except OSError:
            pass
        for one in (source, self._peers[source]):
            del self._peers[one]
            self._selector.unregister(one)
            one.close()


@contextmanager
def proxy_to(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
