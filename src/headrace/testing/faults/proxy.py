"""A network of the harness's own on loopback: it carries connections to a database, until somebody cuts it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any

from sqlalchemy import make_url

_CHUNK_BYTES = 65_536


class Proxy:
    """Forwards to the database of a URL. `freeze` lets everything vanish on its way, `heal` carries on.

    A frozen network refuses nothing and closes nothing: whoever waits for an answer only hears silence. `cut` closes
    what is open, as a machine does that has lost its connections.
    """

    def __init__(self, url: str) -> None:
        self.url = ""
        """How the database is reached by way of this network."""
        self._target = make_url(url)
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="harness-proxy", daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def freeze(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.clear)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.set)

    def cut(self) -> None:
        self._do(self._drop_all())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        self._flows.set()
        self._server = await asyncio.start_server(self._welcome, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = self._target.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # by `_close`; some versions of asyncio print each one that they see
            await self._carry(reader, writer)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._flows.wait()
            there, back = await asyncio.open_connection(self._target.host, self._target.port)
        except OSError:
            self._drop(writer)
            return
        self._writers.add(back)
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK_BYTES):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self._drop(writer)

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()

    async def _drop_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
            self._writers.discard(writer)

    async def _close(self) -> None:
        self._server.close()
        await self._drop_all()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
