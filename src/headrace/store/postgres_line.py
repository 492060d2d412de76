"""A line to PostgreSQL that sends many statements at once and waits once.

Most statements of a transaction need no answer before the next one is known. They are kept back and travel together
with the first one that does, each as a prepared statement: a round trip costs more than the statement that it carries.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.definition import storable
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()
_NUL = rb"\u0000"
_Sent = tuple[str, list[bytes | None], "PostgresReply"]

_CONNECTION_OK = 0
_TUPLES_OK = 2
_FAILED = (6, 7)
_PIPELINE_ABORTED = 11
"""As libpq numbers them: the driver is an extra, so it cannot be asked at import time."""
SILENT_SECONDS = 5.0
"""A server that is there and has not answered for so long is told of: its disk may be stuck, or a lock held."""


class PostgresReply:
    """The answer to one statement. Asking for it sends whatever was kept back, unless it is there already."""

    def __init__(self, line: PostgresLine) -> None:
        self._line = line
        self._is_here = False
        self._changed = 0
        self._rows: list[tuple[Any, ...]] = []

    def rows(self) -> list[tuple[Any, ...]]:
        self._wait()
        return self._rows

    def changed(self) -> int:
        self._wait()
        return self._changed

    def _wait(self) -> None:
        if not self._is_here:
            self._line.flush()

    def take(self, result: Any, transformer: Any) -> None:
        """Keep what the server answered."""
        self._is_here = True
        self._changed = result.command_tuples or 0
        if result.status == _TUPLES_OK:
            transformer.set_pgresult(result)
            self._rows = transformer.load_rows(0, result.ntuples, tuple)


class PostgresLine:
    """Statements on one connection, in order."""

    def __init__(self, connection: Any, on_silence: Callable[[], None]) -> None:
        """`on_silence` is called each time that the server has kept silent for long; to give it up, it raises."""
        import psycopg  # an extra: installed where PostgreSQL is used

        self._driver = psycopg
        self._pgconn = connection.pgconn
        self._transformer = psycopg.adapt.Transformer(connection)
        self._on_silence = on_silence
        self._prepared: dict[str, bytes] = {}
        self._waiting: list[_Sent] = []
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        self.has_answered = False
        """Whether the server has reacted to anything since `forget`."""

    def ask(self, statement: Sql, parameters: Mapping[str, Any]) -> PostgresReply:
        """Send a statement, at the latest when its answer is asked for."""
        reply = PostgresReply(self)
        values = [self._encoded(parameters[name]) for name in statement.postgres_parameters]
        self._waiting.append((statement.postgres, values, reply))
        return reply

    def ask_each(self, statement: Sql, rows: Sequence[Any]) -> PostgresReply:
        """Send a statement that reads these rows, at the latest when an answer is asked for."""
        named = [row._asdict() for row in rows] if isinstance(rows[0], tuple) else rows
        return self.ask(statement, {"rows": _encoded_rows(named).decode(), "row_count": len(rows)})

    def forget(self) -> None:
        """Send nothing of what was kept back."""
        self._waiting.clear()
        self.has_answered = False

    def flush(self) -> None:
        """Send what was kept back and take the answers."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            failure = self._exchange(waiting)
        except BaseException:
            # Answers may still be on their way, and nobody could tell them from those to the next statements.
            self._pgconn.finish()
            raise
        if failure is not None:
            raise failure

    def _exchange(self, waiting: Sequence[_Sent]) -> Exception | None:
        """The first failure among the answers, all of which are taken."""
        self._pgconn.enter_pipeline_mode()
        fresh = [self._send(text, values) for text, values, _ in waiting]
        self._pgconn.pipeline_sync()
        self._push()
        failures = []
        for (text, _, reply), is_fresh in zip(waiting, fresh, strict=True):
            if is_fresh:
                failures.append(self._prepared_as_hoped(text))
            failures.append(self._take(reply))
        self._next_result()  # the end of the pipeline
        self._pgconn.exit_pipeline_mode()
        return next((failure for failure in failures if failure is not None), None)

    def _send(self, text: str, values: Sequence[bytes | None]) -> bool:
        """Whether the statement had to be prepared first."""
        name = self._prepared.get(text)
        is_fresh = name is None
        if name is None:
            name = b"headrace_%d" % len(self._prepared)
            self._pgconn.send_prepare(name, text.encode())
            self._prepared[text] = name
        self._pgconn.send_query_prepared(name, values)
        return is_fresh

    def _push(self) -> None:
        while self._pgconn.flush():
            # The server may have to say something before it can listen again.
            self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
            self._wait_for_server()
            self._poll.modify(self._pgconn.socket, select.POLLIN)

    def _prepared_as_hoped(self, text: str) -> Exception | None:
        result, failure = self._result()
        if failure is not None or result.status == _PIPELINE_ABORTED:
            del self._prepared[text]
        return failure

    def _take(self, reply: PostgresReply) -> Exception | None:
        result, failure = self._result()
        if failure is None and result.status != _PIPELINE_ABORTED:
            reply.take(result, self._transformer)
        return failure

    def _result(self) -> tuple[Any, Exception | None]:
        """The result of the next statement of the pipeline, and what is wrong with it."""
        result = self._next_result()
        if result is None:
            raise self._driver.OperationalError("the server closed the connection")
        if self._next_result() is not None:
            raise self._driver.OperationalError("the server answered more than it was asked")
        if result.status in _FAILED:
            return result, self._driver.errors.error_from_result(result, encoding="utf-8")
        self.has_answered = True
        return result, None

    def _next_result(self) -> Any:
        while self._pgconn.is_busy():
            self._wait_for_server()
        return self._pgconn.get_result()

    def _wait_for_server(self) -> None:
        while not self._poll.poll(SILENT_SECONDS * 1000):
            self._on_silence()
        self._pgconn.consume_input()

    def _encoded(self, value: Any) -> bytes | None:
        """A parameter as PostgreSQL reads it in text form; the statement tells the server its type."""
        if value is None:
            return None
        if isinstance(value, str):
            return storable(value).encode()
        if isinstance(value, bool):
            return b"t" if value else b"f"
        if isinstance(value, (list, tuple)):
            return b"{%s}" % b",".join(self._element(one) for one in value)
        if isinstance(value, bytes):
            return b"\\x" + value.hex().encode()
        return str(value).encode()

    def _element(self, value: Any) -> bytes:
        encoded = self._encoded(value)
        if encoded is None:
            return b"NULL"
        if isinstance(value, str):
            return b'"%s"' % encoded.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return encoded


def _encoded_rows(rows: Sequence[Any]) -> bytes:
    try:
        encoded = _json.encode(rows)
    except UnicodeEncodeError:
        return _json.encode(_storable(msgspec.to_builtins(rows)))
    # Looked for where it is cheap: a document that spells it has a second backslash, and loses nothing below.
    return encoded if _NUL not in encoded else _json.encode(_storable(msgspec.to_builtins(rows)))


def _storable(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: storable(value) if isinstance(value, str) else value for name, value in row.items()} for row in rows]
