"""One thread that waits for everything at once: sockets, pipes, deadlines, and being woken by another thread."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.executor.connection import Connection
from headrace.executor.timers import Timers

Handler = Callable[[], None]
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Loop:
    """All methods but `wake` belong to one thread."""

    def __init__(self) -> None:
        self.timers = Timers()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._is_woken = False
        self._selector.register(self._wake_read, _READ, self._drain_wakes)

    def watch(self, descriptor: int, handler: Handler) -> None:
        """Call this whenever there is something to read."""
        self._selector.register(descriptor, _READ, handler)

    def watch_connection(self, connection: Connection[Any], handler: Handler) -> None:
        """Call this whenever a message may have come; sending what could not be sent at once needs no handler."""
        self._selector.register(connection.socket, _READ, handler)
        self.update(connection)

    def update(self, connection: Connection[Any]) -> None:
        """Wait for a connection to become writable if it has something left to send. Call it after sending."""
        if not connection.has_unsent:
            return
        key = self._selector.get_map().get(connection.socket)
        if key is not None and not key.events & _WRITE:
            handler = partial(self._send_or_hear, connection, key.data)
            self._selector.modify(connection.socket, _READ | _WRITE, handler)

    def forget(self, source: int | socket.socket) -> None:
        """Stop watching. Call it before closing; nothing happens if it was not watched."""
        try:
            self._selector.unregister(source)
        except (KeyError, ValueError):
            return

    def wake(self) -> None:
        """Make the present or the next `step` return at once. Any thread may call it."""
        try:
            self._wake_write.send(b"!")
        except OSError:
            # Full: it is awake already. Closed: nobody waits any more.
            return

    def step(self, timeout_seconds: float | None) -> bool:
        """Wait once, handle what came and what is due. Whether somebody called `wake`."""
        due = self.timers.wait_seconds(time.monotonic())
        if due is not None:
            timeout_seconds = due if timeout_seconds is None else min(due, timeout_seconds)
        for key, _ in self._selector.select(timeout_seconds):
            key.data()
        self.timers.run_due(time.monotonic())
        is_woken, self._is_woken = self._is_woken, False
        return is_woken

    def close(self) -> None:
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()

    def _drain_wakes(self) -> None:
        self._is_woken = True
        self._wake_read.recv(4096)

    def _send_or_hear(self, connection: Connection[Any], handler: Handler) -> None:
        if connection.is_closed:
            return
        connection.flush()
        if not connection.has_unsent:
            self._selector.modify(connection.socket, _READ, handler)
        handler()
