"""Messages over a non-blocking socket: what the other side does not take yet waits here."""

from __future__ import annotations

import os
import socket
from collections import deque
from typing import Any, Generic, TypeVar

from headrace.handoff import Reader, frame

T = TypeVar("T")

_RECEIVE_BYTES = 65_536
_MOST_DESCRIPTORS = 253
"""The kernel attaches no more than this to one message."""


class OversizeError(Exception):
    """The other side sends a message that is larger than the limit."""


class Connection(Generic[T]):
    """One end of a socket pair. Sending never blocks and never fails: an end that is gone shows up when receiving."""

    def __init__(self, sock: socket.socket, message_type: Any, limit_bytes: int) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.is_closed = False
        self.is_broken = False
        """Whether the other end was gone when something was sent."""
        self._reader: Reader[T] = Reader(message_type)
        self._limit_bytes = limit_bytes
        self._incomplete_bytes = 0
        self._unsent: deque[memoryview] = deque()

    @property
    def has_unsent(self) -> bool:
        """Whether `flush` should be called when the socket is writable."""
        return bool(self._unsent)

    def send(self, message: Any) -> None:
        """Send now what fits, keep the rest."""
        self._unsent.append(memoryview(frame(message)))
        self.flush()

    def flush(self) -> None:
        """Go on sending what is left."""
        try:
            while self._unsent:
                rest = self._unsent[0][self.socket.send(self._unsent[0]) :]
                if rest:
                    self._unsent[0] = rest
                else:
                    self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self.is_broken = True
            self._unsent.clear()

    def receive(self) -> list[T]:
        """The messages that are complete now. Sets `is_closed` at the end of the stream."""
        try:
            data = self._read()
        except BlockingIOError:
            return []
        except ConnectionError:
            data = b""
        self.is_closed = not data
        messages = self._reader.feed(data)
        self._incomplete_bytes = 0 if messages else self._incomplete_bytes + len(data)
        if self._incomplete_bytes > self._limit_bytes + _RECEIVE_BYTES:
            raise OversizeError
        return messages

    def receive_rest(self) -> list[T]:
        """Everything that a process has sent before it died."""
        messages: list[T] = []
        while not self.is_closed:
            before = self._incomplete_bytes
            batch = self.receive()
            messages += batch
            if not batch and self._incomplete_bytes == before:
                break
        return messages

    def close(self) -> None:
        self.is_closed = True
        self.socket.close()

    def _read(self) -> bytes:
        return self.socket.recv(_RECEIVE_BYTES)


class DescriptorConnection(Connection[T]):
    """A connection whose messages may bring open descriptors with them, in order."""

    def __init__(self, sock: socket.socket, message_type: Any, limit_bytes: int) -> None:
        super().__init__(sock, message_type, limit_bytes)
        self._descriptors: deque[int] = deque()

    def take_descriptor(self) -> int:
        """The next descriptor that arrived. IndexError: this process has no room for more of them."""
        return self._descriptors.popleft()

    def close(self) -> None:
        super().close()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def _read(self) -> bytes:
        data, descriptors, _, _ = socket.recv_fds(self.socket, _RECEIVE_BYTES, _MOST_DESCRIPTORS)
        self._descriptors += descriptors
        return data
