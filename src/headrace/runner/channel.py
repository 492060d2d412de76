"""The task process's line to its supervisor: questions of user code and their answers."""

from __future__ import annotations

import os
import select
import socket
from collections import deque
from threading import Lock
from typing import Any

from headrace.handoff import Answer, Ask, ChannelError, Reader, Start, ToTask, decoder_of, frame, value_of
from headrace.runner.termination import Shielded

_RECEIVE_BYTES = 65_536
_decoder = decoder_of(ToTask)


class Line:
    """Whole messages over a blocking socket."""

    def __init__(self, sock: socket.socket, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._socket = sock
        self._reader: Reader[ToTask] = Reader(ToTask, _decoder)
        self._received: deque[ToTask] = deque()
        self._is_closed = False

    def send(self, data: bytes) -> None:
        """Send one framed message."""
        self._socket.sendall(data)

    def receive(self) -> ToTask | None:
        """Block until a message is complete. None: the supervisor is gone."""
        while not self._received and not self._is_closed:
            self._take()
        return self._received.popleft() if self._received else None

    def send_whole(self, data: bytes) -> None:
        """Like `send`, while a signal handler may raise an exception at any moment."""
        with Shielded():
            self._socket.sendall(data)

    def receive_whole(self) -> ToTask | None:
        """Like `receive`, while a signal handler may raise an exception at any moment."""
        while not self._received and not self._is_closed:
            # The waiting may be interrupted, the reading not: an interrupted recv would lose what it took.
            select.select([self._socket], [], [])
            with Shielded():
                self._take()
        return self._received.popleft() if self._received else None

    def _take(self) -> None:
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except ConnectionError:
            data = b""  # the other side was killed before it had read everything
        self._is_closed = not data
        self._received += self._reader.feed(data)


class SocketChannel:
    """Answers the questions of one try by asking its supervisor. Threads of the task take turns."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._lock = Lock()
        self._asked = 0
        self._owner = os.getpid()

    def ask(self, verb: str, **args: Any) -> Any:
        """The decoded JSON answer. Raises MissingError or ChannelError."""
        if os.getpid() != self._owner:
            raise ChannelError(f"could not ask for `{verb}`: only the task's own process may ask, not one it forked")
        with self._lock:
            self._asked += 1
            self._line.send_whole(self._framed(Ask(id=self._asked, verb=verb, args=args)))
            answer = self._answer(self._asked, verb)
        return value_of(answer, verb)

    def _framed(self, ask: Ask) -> bytes:
        try:
            data = frame(ask)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ChannelError(f"could not ask for `{ask.verb}`: its arguments must be JSON values: {error}") from error
        if len(data) > self._line.limit_bytes:
            raise ChannelError(
                f"could not ask for `{ask.verb}`: its arguments take {len(data)} bytes,"
                f" the limit is {self._line.limit_bytes}"
            )
        return data

    def _answer(self, number: int, verb: str) -> Answer:
        while True:
            message = self._line.receive_whole()
            if message is None:
                raise ChannelError(f"could not ask for `{verb}`: the supervisor is gone")
            # An answer with another number belongs to a question that was given up when a signal interrupted it.
            if not isinstance(message, Start) and message.id == number:
                return message
