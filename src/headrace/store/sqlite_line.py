"""A line to SQLite: there is no way to save, so every statement runs at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.store.sql import Check, Sql

_json = msgspec.json.Encoder()


class SqliteReply:
    """The answer to one statement."""

    def __init__(self, rows: list[tuple[Any, ...]], changed: int) -> None:
        self._rows = rows
        self._changed = changed

    def rows(self) -> list[tuple[Any, ...]]:
        return self._rows

    def changed(self) -> int:
        return self._changed


class SqliteLine:
    """Statements on one connection, in order."""

    has_answered = True

    def __init__(self, connection: Any) -> None:
        self._cursor = connection.cursor()

    def ask(self, statement: Sql, parameters: Mapping[str, Any], check: Check | None = None) -> SqliteReply:
        """Run a statement. `check` is told how many rows it changed."""
        self._cursor.execute(
            statement.sqlite,
            {
                name: _json.encode(value).decode() if type(value) in (list, tuple) else value
                for name, value in parameters.items()
            },
        )
        reply = SqliteReply(self._cursor.fetchall() if statement.has_rows else [], self._cursor.rowcount)
        if check is not None:
            check(reply.changed())
        return reply

    def settle(self) -> None:
        """Nothing is ever kept back."""

    def forget(self) -> None:
        """Nothing is ever kept back."""

    def flush(self) -> None:
        """Nothing is ever kept back."""
