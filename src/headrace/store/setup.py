"""Creating, checking and upgrading the schema."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import insert, select

from headrace.errors import NoSchemaError, SchemaError, StoreUnreachableError
from headrace.store.database import Database, Transaction
from headrace.store.schema import VERSIONS, counter, metadata, pool, schema_for, schema_version
from headrace.store.schema_difference import has_version, version_error
from headrace.store.sql import Sql

MIGRATIONS = Path(__file__).parent / "migrations"
DEFAULT_POOL = "default_pool"
CREATE_SEQUENCE = Sql("CREATE SEQUENCE IF NOT EXISTS task_id_seq")
LOCK_SETUP = Sql("SELECT pg_advisory_xact_lock(7235)")
# What extensions bring along, such as `spatial_ref_sys`, is nobody's data.
TABLES = Sql(
    """
    [[sqlite: SELECT name FROM sqlite_master
    WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name]]
    [[postgres: SELECT CAST(relname AS text) FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT EXISTS (
        SELECT 1 FROM pg_depend
        WHERE classid = CAST('pg_class' AS regclass) AND objid = pg_class.oid AND deptype = 'e')
    ORDER BY relname]]
    """
)
_SETTING = "`--store` or the `store` setting"
_BESIDE = "`headrace db upgrade` creates the tables of Headrace beside them"
_FILE_MODE = 0o600
_SHOWN = 5
"""How many tables of another program are named."""


def prepare(database: Database, default_pool_slots: int = 128, *, must_exist: bool = False) -> None:
    """Check that the schema is the one that this version needs; an empty database gets it, unless it must exist."""
    version = current_version(database)
    if version is None and not must_exist:
        _create_file(database)
        database.transact(lambda tx: _create(tx, default_pool_slots))
    else:
        check(database, version)
    if database.dialect == "sqlite":
        # The file remembers it, and so it is not for every connection: one that only looks may look at a stranger's.
        with database.read() as tx:
            tx.connection.exec_driver_sql("PRAGMA journal_mode = WAL")


def upgrade(database: Database) -> tuple[str | None, str]:
    """Bring a database to the schema that this version needs. Returns the versions before and after."""
    _create_file(database)
    return database.transact(_upgrade)


def current_version(database: Database) -> str | None:
    """The schema version of a database; None if it has none. A file that is not there is not made by the look."""
    if _is_missing(database):
        return None
    with database.read() as tx:
        return current_version_in(tx)


def check_tables(tx: Transaction) -> None:
    """Raise SchemaError unless the tables of a database with the right version are those that this version needs."""
    error = tx.database.schema_error_of(tx.connection)
    if error is not None:
        raise error


def check(database: Database, version: str | None) -> None:
    """Raise SchemaError unless the database has exactly the schema version that this version needs."""
    needed = VERSIONS[-1]
    if version == needed:
        return
    raise _no_schema(database) if version is None else version_error(database.display_name, version)


def _no_schema(database: Database) -> NoSchemaError:
    message = f"there is no Headrace database at `{database.display_name}`"
    creates = f"`headrace db upgrade` creates one there; if there should be one, check {_SETTING}"
    if _is_missing(database):
        return NoSchemaError(f"{message}: the file does not exist", hint=creates)
    with database.read() as tx:
        strangers = _strangers(tx)
    if not strangers:
        return NoSchemaError(f"{message}: it is empty", hint=creates)
    hint = f"check {_SETTING}" + ("" if _ours(strangers) else f"; {_BESIDE}")
    return NoSchemaError(f"{message}, but tables of another program: {_listed(strangers)}", hint=hint)


def _is_missing(database: Database) -> bool:
    return database.file is not None and not database.file.exists()


def _create_file(database: Database) -> None:
    """Make the file, empty, before SQLite would: for its owner alone, since parameters and results will be in it.

    SQLite gives the files beside it (`-wal`, `-shm`) the same mode.
    """
    if not _is_missing(database) or database.engine.url.query.get("mode") in ("ro", "rw"):
        return
    assert database.file is not None, "what is missing is a file"
    _create_folder(database, database.file)
    # What keeps it from being made, SQLite meets as well, and it is told then. Never a file that is there already:
    # closing it would take away the locks that this process has on it.
    with contextlib.suppress(OSError):
        os.close(os.open(database.file.resolve(), os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE_MODE))


def _create_folder(database: Database, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnreachableError(
            f"could not create the folder of the database `{database.display_name}`: {error.strerror}",
            hint="name another place with `--store` or the `store` setting",
        ) from error


def _create(tx: Transaction, default_pool_slots: int) -> None:
    if tx.dialect == "postgres":
        tx.run(LOCK_SETUP)
    if current_version_in(tx) is not None:
        return  # another process created it while we waited for the lock
    strangers = _strangers(tx)
    if strangers:
        raise _held_by_strangers(tx, strangers)
    if tx.dialect == "postgres":
        tx.change(CREATE_SEQUENCE)
    # Otherwise each table would be looked for by itself.
    schema_for(tx.connection.dialect.name).create_all(tx.connection, checkfirst=False)
    tx.execute(insert(schema_version).values(version_num=VERSIONS[-1]))
    tx.execute(insert(counter).values(name="task", next=1))
    tx.execute(insert(pool).values(name=DEFAULT_POOL, slots=default_pool_slots))


def _strangers(tx: Transaction) -> list[str]:
    """Our tables come with a version, all in one transaction: in a database without one, all are somebody else's."""
    return [name for (name,) in tx.run(TABLES)]


def _ours(names: Iterable[str]) -> list[str]:
    """Those that are called as tables of ours are."""
    return [name for name in names if name in metadata.tables]


def _held_by_strangers(tx: Transaction, names: list[str]) -> SchemaError:
    in_the_way = _ours(names)
    return SchemaError(
        f"the database `{tx.database.display_name}` holds tables of another program: {_listed(in_the_way or names)}",
        hint=f"name an empty database with {_SETTING}" + ("" if in_the_way else f"; {_BESIDE}"),
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _upgrade(tx: Transaction) -> tuple[str | None, str]:
    # Only upgrades pay for this import; everything else starts without Alembic.
    from alembic import command
    from alembic.config import Config

    if tx.dialect == "postgres":
        tx.run(LOCK_SETUP)
    before = current_version_in(tx)
    if before is not None and before not in VERSIONS:
        raise version_error(tx.database.display_name, before)
    if before is None and _ours(strangers := _strangers(tx)):
        raise _held_by_strangers(tx, strangers)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = tx.connection
    command.upgrade(config, VERSIONS[-1])
    check_tables(tx)
    return before, VERSIONS[-1]


def current_version_in(tx: Transaction) -> str | None:
    """The version as a transaction sees it."""
    if not has_version(tx.connection):
        return None
    row = tx.execute(select(schema_version.c.version_num)).fetchone()
    return None if row is None else str(row[0])
