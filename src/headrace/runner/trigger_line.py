"""The line between the process of triggers and its triggerer: a thread listens, anybody may speak and ask."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from threading import Lock
from typing import Any

import msgspec

from headrace.handoff import (
    Answer,
    Ask,
    Asked,
    ChannelError,
    FromTriggers,
    MissingError,
    Reader,
    ToTriggers,
    frame,
)

_RECEIVE_BYTES = 65_536

current_trigger: ContextVar[int] = ContextVar("current_trigger", default=0)
"""The trigger to which the running code belongs; 0: to none. Threads of `asyncio.to_thread` inherit it."""


class TriggerLine:
    """Whole messages over a blocking socket, from any thread. It implements `handoff.Channel` for triggers' code."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = Lock()
        self._reader: Reader[ToTriggers] = Reader(ToTriggers)
        self._waiting: dict[int, Future[Answer]] = {}
        self._asked = 0

    def send(self, message: FromTriggers) -> None:
        """Send one message. If nobody is there to hear it, there is nothing left to do for this process."""
        data = frame(message)
        try:
            with self._sending:
                self._socket.sendall(data)
        except OSError:
            os._exit(1)

    def listen(self, patience_seconds: float) -> Iterator[list[ToTriggers]]:
        """What the triggerer says, as it comes; an empty list when it was silent for so long. Ends when it hangs up."""
        self._socket.settimeout(None)
        while True:
            if not self._has_news(patience_seconds):
                yield []
                continue
            data = self._receive()
            if not data:
                break
            yield [message for message in self._reader.feed(data) if not self._is_answered(message)]
        for future in list(self._waiting.values()):
            future.set_exception(ChannelError("could not ask: the triggerer is gone"))

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(_RECEIVE_BYTES)
        except ConnectionError:
            return b""  # it was killed before it had read everything

    def ask(self, verb: str, **args: Any) -> Any:
        """The decoded JSON answer. Raises MissingError or ChannelError. It blocks: ask from a thread if you can."""
        answer = self._ask(verb, args).result()
        if answer.is_missing:
            raise MissingError(answer.error or f"`{verb}` found nothing")
        if answer.error is not None:
            raise ChannelError(answer.error)
        return msgspec.json.decode(answer.value)

    def _ask(self, verb: str, args: dict[str, Any]) -> Future[Answer]:
        future: Future[Answer] = Future()
        with self._sending:
            self._asked += 1
            number = self._asked
        self._waiting[number] = future
        try:
            self.send(Asked(trigger_id=current_trigger.get(), ask=Ask(id=number, verb=verb, args=args)))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            del self._waiting[number]
            raise ChannelError(f"could not ask for `{verb}`: its arguments must be JSON values: {error}") from error
        return future

    def _is_answered(self, message: ToTriggers) -> bool:
        if not isinstance(message, Answer):
            return False
        future = self._waiting.pop(message.id, None)
        if future is not None:
            future.set_result(message)
        return True

    def _has_news(self, patience_seconds: float) -> bool:
        # Not a timeout of the socket, which would hold for sending, too.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(patience_seconds * 1000))
