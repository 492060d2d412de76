"""A line to SQLite: there is no way to save, so every statement runs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from headrace.errors import ConflictError
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()


def _bound(value: Any) -> Any:
    """The value as the driver takes it: documents are text."""
    return _json.encode(value).decode() if isinstance(value, msgspec.Raw | dict | list | tuple) else value


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

    def ask(self, statement: Sql, parameters: Mapping[str, Any]) -> SqliteReply:
        """Run a statement."""
        self._cursor.execute(
            statement.sqlite,
            {
                name: _json.encode(value).decode() if type(value) in (list, tuple) else value
                for name, value in parameters.items()
            },
        )
        return SqliteReply(self._cursor.fetchall() if statement.has_rows else [], self._cursor.rowcount)

    def ask_each(self, statement: Sql, rows: Sequence[Any]) -> SqliteReply:
        """Run a statement once for each row: prepared once, it is faster than one that reads rows from JSON."""
        if isinstance(rows[0], Mapping):
            values: Iterable[Any] = ([_bound(row.get(name)) for name in statement.columns] for row in rows)
        else:
            values = map(attrgetter(*statement.columns), rows)
        if statement.has_rows:
            answers = [self._cursor.execute(statement.sqlite, one).fetchall() for one in values]
            reply = SqliteReply([row for answer in answers for row in answer], sum(map(len, answers)))
        else:
            self._cursor.executemany(statement.sqlite, values)
            reply = SqliteReply([], self._cursor.rowcount)
        if statement.changes_all and reply.changed() != len(rows):
            missed = len(rows) - reply.changed()
            raise ConflictError(f"somebody else was first: {missed} of {len(rows)} rows were changed meanwhile")
        return reply

    def forget(self) -> None:
        """Nothing is ever kept back."""

    def flush(self) -> None:
        """Nothing is ever kept back."""
