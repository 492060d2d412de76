"""Messages on a stream socket: four bytes of length, then JSON."""

from __future__ import annotations

import socket
import struct
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

_HEADER = struct.Struct(">I")
_encoder = msgspec.json.Encoder()
_RECEIVE_BYTES = 262_144

T = TypeVar("T")


def frame(message: Any) -> bytes:
    """A message with its length in front."""
    body = _encoder.encode(message)
    return _HEADER.pack(len(body)) + body


def send(sock: socket.socket, message: Any) -> None:
    """Send one message on a blocking socket."""
    sock.sendall(frame(message))


@lru_cache(maxsize=32)
def decoder_of(message_type: Any) -> msgspec.json.Decoder[Any]:
    """Made once for all streams of a type: making it takes longer than decoding a message."""
    return msgspec.json.Decoder(message_type)


class Reader(Generic[T]):
    """Cuts a byte stream back into messages of one type; usable with blocking and non-blocking sockets."""

    def __init__(self, message_type: Any, decoder: msgspec.json.Decoder[T] | None = None) -> None:
        """A decoder that is given need not be looked for, which is to compare types with all their parts."""
        self._decoder: msgspec.json.Decoder[T] = decoder_of(message_type) if decoder is None else decoder
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[T]:
        """Take what arrived and return the messages that are complete now."""
        self._buffer += data
        messages: list[T] = []
        start = 0
        while len(self._buffer) - start >= _HEADER.size:
            (length,) = _HEADER.unpack_from(self._buffer, start)
            end = start + _HEADER.size + length
            if len(self._buffer) < end:
                break
            # msgspec.Raw fields point into the decoded buffer, so the body gets bytes of its own.
            messages.append(self._decoder.decode(bytes(self._buffer[start + _HEADER.size : end])))
            start = end
        del self._buffer[:start]
        return messages

    def receive(self, sock: socket.socket) -> T | None:
        """Block until one message is complete. None: the other side closed the stream."""
        messages = self.feed(b"")
        while not messages:
            data = sock.recv(_RECEIVE_BYTES)
            if not data:
                return None
            messages = self.feed(data)
        if len(messages) > 1:
            raise RuntimeError("a request channel carries one message at a time in each direction")
        return messages[0]
