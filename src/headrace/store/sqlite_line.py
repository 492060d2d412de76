"""A line to SQLite: there is no way to save, so every statement runs at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from headrace.definition import storable
from headrace.errors import ConflictError
from headrace.store.sql import Sql

_json = msgspec.json.Encoder()
_PLAIN = {int, bool, type(None)}


def _bound(value: Any) -> Any:
    """The value as the driver takes it: documents are text."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        value = [storable(text) for text in value]
    return _json.encode(value).decode() if isinstance(value, msgspec.Raw | dict | list | tuple) else value


def _storable_rows(rows: Iterable[Sequence[Any]], texts_at: Sequence[int]) -> Iterator[Sequence[Any]]:
    for row in rows:
        for at in texts_at:
            text = row[at]
            # Asked here, where most answers are no, because a call would cost more than the question.
            if text is not None and ("\0" in text or not text.isascii()):
                row = [_bound(value) for value in row]
                break
        yield row


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
        text = statement.sqlite
        if statement.lists and all(len(parameters[name]) == 1 for name in statement.lists):
            # The most common case, which is spared the reading of lists.
            text = statement.sqlite_for_ones
            parameters = {**parameters, **{name: parameters[name][0] for name in statement.lists}}
        self._cursor.execute(
            text,
            {name: value if type(value) in _PLAIN else _bound(value) for name, value in parameters.items()},
        )
        return SqliteReply(self._cursor.fetchall() if statement.has_rows else [], self._cursor.rowcount)

    def ask_each(self, statement: Sql, rows: Sequence[Any]) -> SqliteReply:
        """Run a statement once for each row: prepared once, it is faster than one that reads rows from JSON."""
        if isinstance(rows[0], Mapping):
            values: Iterable[Any] = ([_bound(row.get(name)) for name in statement.columns] for row in rows)
        else:
            values = _storable_rows(map(attrgetter(*statement.columns), rows), statement.texts_at)
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
