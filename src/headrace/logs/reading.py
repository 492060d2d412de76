"""Reading a try's log back, whole or while it is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

_CHUNK = 65_536


def read_log(path: str | Path, offset: int = 0, limit: int | None = None) -> Iterator[bytes]:
    """The bytes from `offset` on, at most `limit` of them, in chunks. Nothing if the try has no log."""
    try:
        file = open(path, "rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        while limit is None or limit > 0:
            data = file.read(_CHUNK if limit is None else min(_CHUNK, limit))
            if not data:
                return
            yield data
            if limit is not None:
                limit -= len(data)


def follow(
    path: str | Path, is_finished: Callable[[], bool], wait: Callable[[], None], offset: int = 0
) -> Iterator[bytes]:
    """The log as it grows: call `wait` when there is nothing new, end after `is_finished` and the last byte.

    The file may appear later than its reader.
    """
    while True:
        # Asked before reading: what was written before the end is then sure to be read.
        was_finished = is_finished()
        for data in read_log(path, offset):
            offset += len(data)
            yield data
        if was_finished:
            return
        wait()
