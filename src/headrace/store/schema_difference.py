"""How the tables of a database differ from those that this version knows, although both say the same schema version."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Inspector, Table, inspect, text

from headrace.store.schema import metadata, schema_version

# SQLite's words and the beginnings of PostgreSQL's codes: something has another name or another form, is missing, or
# must have a value that nobody gives.
_SQLITE = ("no such table", "no such column", "has no column named", "ON CONFLICT clause", "NOT NULL constraint failed")
_POSTGRES = ("42", "23502")
# By name only: SQLAlchemy does not tell of indexes over expressions on SQLite.
_INDEXES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index'",
    "postgresql": "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()",
}


def may_come_from_other_tables(error: BaseException) -> bool:
    """Whether a statement failed in a way in which it does on tables that are not the ones it was written for."""
    code = getattr(error, "sqlstate", None)
    return code.startswith(_POSTGRES) if code else any(words in str(error) for words in _SQLITE)


def first_difference(connection: Connection) -> str | None:
    """The end of a sentence: which thing is not as this version needs it. None: all is, or is not ours."""
    found = inspect(connection)
    present = set(found.get_table_names())
    if schema_version.name not in present:
        return None
    indexes = set(connection.execute(text(_INDEXES[connection.dialect.name])).scalars())
    for table in metadata.sorted_tables:
        if table.name not in present:
            return f"it has no table `{table.name}`"
        for difference in _of_table(found, table, indexes):
            return f"its table `{table.name}` {difference}"
    return None


def _of_table(found: Inspector, table: Table, indexes: set[str]) -> Iterator[str]:
    columns = {column["name"]: column for column in found.get_columns(table.name)}
    for column in table.columns:
        if column.name not in columns:
            yield f"has no column `{column.name}`"
        elif columns[column.name]["nullable"] != column.nullable:
            yield f"{'may not' if column.nullable else 'may'} have a NULL in column `{column.name}`"
    for name, column_found in columns.items():
        if name not in table.columns and not column_found["nullable"] and column_found.get("default") is None:
            yield f"needs a value in column `{name}`, which is not known here"
    for index in sorted(str(index.name) for index in table.indexes):
        if index not in indexes:
            yield f"has no index `{index}`"
