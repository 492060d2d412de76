"""How the schema of a database differs from the one that this version knows, be it only in its tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, Table, select, text

from headrace.errors import NoSchemaError, SchemaError
from headrace.store.schema import VERSIONS, metadata, schema_version

# SQLite's words and the beginnings of PostgreSQL's codes: something has another name or another form, is missing, or
# must have a value that nobody gives.
_SQLITE = ("no such table", "no such column", "has no column named", "ON CONFLICT clause", "NOT NULL constraint failed")
_POSTGRES = ("42", "23502")
_NO_TABLE = (_SQLITE[0], "42P01")
# Each at once for all tables: SQLAlchemy asks for one after the other, and a process that serves asks when it starts.
_COLUMNS = {
    "sqlite": """
        SELECT tables.name, columns.name, NOT columns."notnull", columns.dflt_value IS NOT NULL
        FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'
        """,
    "postgresql": """
        SELECT tables.relname, columns.attname, NOT columns.attnotnull, columns.atthasdef OR columns.attidentity <> ''
        FROM pg_namespace AS schemas JOIN pg_class AS tables ON tables.relnamespace = schemas.oid
        JOIN pg_attribute AS columns ON columns.attrelid = tables.oid
        WHERE schemas.nspname = current_schema() AND tables.relkind IN ('r', 'p')
          AND columns.attnum > 0 AND NOT columns.attisdropped
        """,
}
_HAS_VERSION = {
    "sqlite": "SELECT 1 FROM pragma_table_info('schema_version') WHERE name = 'version_num'",
    "postgresql": """
        SELECT 1 FROM pg_attribute
        WHERE attrelid = to_regclass('schema_version') AND attname = 'version_num' AND NOT attisdropped
        """,
}
_INDEXES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index'",
    "postgresql": "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()",
}


class _Column(NamedTuple):
    """A column that a database has."""

    may_be_null: bool
    has_default: bool


def may_come_from_other_tables(error: BaseException) -> bool:
    """Whether a statement failed in a way in which it does on tables that are not the ones it was written for."""
    code = getattr(error, "sqlstate", None)
    return code.startswith(_POSTGRES) if code else any(words in str(error) for words in _SQLITE)


def is_table_missing(error: BaseException) -> bool:
    """Whether a statement failed because there is no such table."""
    return _NO_TABLE[0] in str(error) or getattr(error, "sqlstate", None) == _NO_TABLE[1]


def has_version(connection: Connection) -> bool:
    """Whether there is our table of the version: other programs have tables of this name, with other columns."""
    return connection.execute(text(_HAS_VERSION[connection.dialect.name])).first() is not None


def schema_error_of(connection: Connection, database_name: str) -> SchemaError | None:
    """What is wrong with a schema, by its version or by its tables; None: nothing, or it is not ours."""
    if not has_version(connection):
        return None
    version = connection.execute(select(schema_version.c.version_num)).scalar()
    if version is not None and version != VERSIONS[-1]:
        return version_error(database_name, version)
    difference = _first_difference(connection)
    if difference is None:
        return None
    return SchemaError(
        f"the database `{database_name}` was made by a version between two releases: {difference}",
        hint="no upgrade leads on from there: name another database with `--store` or the `store` setting,"
        " or delete this one and begin anew",
    )


def gone_error(database_name: str, what: str) -> NoSchemaError:
    """The error about a database that was there when the process began."""
    return NoSchemaError(
        f"there is no Headrace database any more at `{database_name}`: {what}",
        hint="stop every process that uses it and restore a backup (on SQLite without the old `-wal` and `-shm` files),"
        " or start them again with an empty one",
    )


def version_error(database_name: str, version: str) -> SchemaError:
    """The error about a schema version that is not the one this version needs."""
    message = f"the database `{database_name}` is at schema {version}, this version needs {VERSIONS[-1]}"
    if version in VERSIONS:
        return SchemaError(message, hint="`headrace db upgrade`")
    return SchemaError(message, hint="a newer Headrace has upgraded it: install that version here, too")


def _first_difference(connection: Connection) -> str | None:
    found = _columns(connection)
    indexes = set(connection.execute(text(_INDEXES[connection.dialect.name])).scalars())
    for table in metadata.sorted_tables:
        if table.name not in found:
            return f"it has no table `{table.name}`"
        for difference in _of_table(found[table.name], table, indexes):
            return f"its table `{table.name}` {difference}"
    return None


def _columns(connection: Connection) -> dict[str, dict[str, _Column]]:
    """What every table of a database consists of."""
    tables: defaultdict[str, dict[str, _Column]] = defaultdict(dict)
    for table, column, may_be_null, has_default in connection.execute(text(_COLUMNS[connection.dialect.name])):
        tables[table][column] = _Column(bool(may_be_null), bool(has_default))
    return tables


def _of_table(found: Mapping[str, _Column], table: Table, indexes: set[str]) -> Iterator[str]:
    for column in table.columns:
        if column.name not in found:
            yield f"has no column `{column.name}`"
        elif found[column.name].may_be_null != column.nullable:
            yield f"{'may not' if column.nullable else 'may'} have a NULL in column `{column.name}`"
    for name, column_found in found.items():
        if name not in table.columns and not column_found.may_be_null and not column_found.has_default:
            yield f"needs a value in column `{name}`, which is not known here"
    for index in sorted(str(index.name) for index in table.indexes):
        if index not in indexes:
            yield f"has no index `{index}`"
