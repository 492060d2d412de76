"""Hot statements: plain SQL text with bound parameters, written once and rendered once per database.

Three things are spelled differently by the two databases, and only these are rendered: `IN :ids[]` takes a list
parameter; `ROWS(:rows)` reads a list of rows as a table, or on SQLite one of them at a time; `[[postgres: …]]` is left
out on SQLite. There, an UPDATE from rows `r` takes the columns that it names as parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LIST = re.compile(r"IN :(\w+)\[\]")
_FROM_ROWS = re.compile(r"\s*FROM \(SELECT \* FROM ROWS\(:rows\)\) AS r\b")
_OF_ROW = re.compile(r"\br\.(\w+)")
_ONLY = re.compile(r"\[\[(sqlite|postgres): (.*?)\]\]", re.DOTALL)
_WITHOUT_ROWS = re.compile(r"\s*(BEGIN|COMMIT|ROLLBACK|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|ANALYZE|SET)\b")
# Looked at by the server, so that the commit may travel with it: what fails is not followed by what was sent after it.
_CHECKED = """
    WITH changed AS ({} RETURNING 1)
    SELECT 1 / CAST((SELECT count(*) FROM changed) = CAST(:row_count AS bigint) AS integer)
    """
CHECK_FAILED = "22012"
"""PostgreSQL's code for a division by zero. No other statement divides."""
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


class Sql:
    """One statement in both dialects."""

    def __init__(self, text: str, *, rows: Sequence[tuple[str, str]] = (), changes_all: bool = False) -> None:
        """`rows` names the columns of `ROWS(:rows)` with their PostgreSQL types.

        `changes_all`: it must change one row for each of them, or else the transaction fails with a ConflictError.
        """
        # Known here, because asking a driver for it makes it describe every column of every answer.
        self.has_rows = _WITHOUT_ROWS.match(text) is None or "RETURNING" in text
        self.changes_all = changes_all
        sqlite, self.columns = _for_sqlite(text, rows)
        """Which columns of a row are parameters for SQLite, in their order."""
        types = dict(rows)
        self.texts_at = tuple(at for at, name in enumerate(self.columns) if types[name] == "text")
        """Which of these columns hold texts."""
        self.sqlite = _LIST.sub(r"IN (SELECT value FROM json_each(:\1))", sqlite)
        self.sqlite_for_ones = _LIST.sub(r"= :\1", sqlite)
        """If each of its lists has one element."""
        self.lists = tuple(dict.fromkeys(_LIST.findall(sqlite)))
        """Which parameters are lists, for SQLite."""
        text = _CHECKED.format(text) if changes_all else text
        self.postgres, self.postgres_parameters = _for_postgres(text, rows)

    def render(self, dialect: str) -> str:
        return self.sqlite if dialect == "sqlite" else self.postgres


def _keep_only(text: str, dialect: str) -> str:
    return _ONLY.sub(lambda match: match[2] if match[1] == dialect else "", text)


def _for_sqlite(text: str, rows: Sequence[tuple[str, str]]) -> tuple[str, tuple[str, ...]]:
    """The text, but for its lists, and the columns of a row that are its parameters, in their order."""
    text = _keep_only(text, "sqlite")
    if text.lstrip().startswith("UPDATE") and _FROM_ROWS.search(text):
        # By a join with the row, SQLite would write down first which rows are to be changed, and how.
        text = _FROM_ROWS.sub("", text)
        return _OF_ROW.sub("?", text), tuple(_OF_ROW.findall(text))
    columns = ", ".join(f'? AS "{name}"' for name, _ in rows)
    return text.replace("ROWS(:rows)", f"(SELECT {columns})"), tuple(name for name, _ in rows)


def _for_postgres(text: str, rows: Sequence[tuple[str, str]]) -> tuple[str, tuple[str, ...]]:
    """The text with numbered parameters, and their names in that order."""
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in rows)
    text = text.replace("ROWS(:rows)", f"json_to_recordset(CAST(:rows AS json)) AS rows_of({columns})")
    text = _LIST.sub(r"= ANY(:\1)", _keep_only(text, "postgres"))
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    return _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", text), names
