"""Creating, checking and upgrading the schema."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import insert, inspect, select

from headrace.errors import SchemaError, StoreUnreachableError
from headrace.store.database import Database, Transaction
from headrace.store.schema import VERSIONS, counter, metadata, pool, schema_for, schema_version
from headrace.store.schema_difference import version_error
from headrace.store.sql import Sql

MIGRATIONS = Path(__file__).parent / "migrations"
DEFAULT_POOL = "default_pool"
CREATE_SEQUENCE = Sql("CREATE SEQUENCE IF NOT EXISTS task_id_seq")
LOCK_SETUP = Sql("SELECT pg_advisory_xact_lock(7235)")


def prepare(database: Database, default_pool_slots: int = 128) -> None:
    """Create the schema in an empty database; otherwise check that it is the one that this version needs."""
    if database.dialect == "sqlite":
        _create_folder(database)
    version = current_version(database)
    if version is None:
        database.transact(lambda tx: _create(tx, default_pool_slots))
    else:
        check(database, version)


def upgrade(database: Database) -> tuple[str | None, str]:
    """Bring a database to the schema that this version needs. Returns the versions before and after."""
    if database.dialect == "sqlite":
        _create_folder(database)
    return database.transact(_upgrade)


def current_version(database: Database) -> str | None:
    """The schema version of a database; None if it is empty."""
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
    if version is None:
        raise SchemaError(
            f"the database `{database.display_name}` is empty", hint="`headrace db upgrade` creates the schema"
        )
    raise version_error(database.display_name, version)


def _create_folder(database: Database) -> None:
    path = database.engine.url.database
    if not path or path == ":memory:" or path.startswith("file:"):
        return
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnreachableError(
            f"could not create the folder of the database `{database.display_name}`: {error.strerror}",
            hint="name another place with `--store` or the `store` setting",
        ) from error


def _create(tx: Transaction, default_pool_slots: int) -> None:
    if tx.dialect == "postgres":
        tx.run(LOCK_SETUP)
        tx.change(CREATE_SEQUENCE)
    if current_version_in(tx) is not None:
        return  # another process created it while we waited for the lock
    _refuse_strangers(tx)
    # Otherwise each table would be looked for by itself.
    schema_for(tx.connection.dialect.name).create_all(tx.connection, checkfirst=False)
    tx.execute(insert(schema_version).values(version_num=VERSIONS[-1]))
    tx.execute(insert(counter).values(name="task", next=1))
    tx.execute(insert(pool).values(name=DEFAULT_POOL, slots=default_pool_slots))


def _refuse_strangers(tx: Transaction) -> None:
    """Our tables come with a version, all in one transaction: those without one are somebody else's."""
    found = sorted(metadata.tables.keys() & set(inspect(tx.connection).get_table_names()))
    if found:
        raise SchemaError(
            f"the database `{tx.database.display_name}` holds tables of another program: {', '.join(found)}",
            hint="name an empty database with `--store` or the `store` setting",
        )


def _upgrade(tx: Transaction) -> tuple[str | None, str]:
    # Only upgrades pay for this import; everything else starts without Alembic.
    from alembic import command
    from alembic.config import Config

    if tx.dialect == "postgres":
        tx.run(LOCK_SETUP)
    before = current_version_in(tx)
    if before is not None and before not in VERSIONS:
        raise version_error(tx.database.display_name, before)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = tx.connection
    command.upgrade(config, VERSIONS[-1])
    check_tables(tx)
    return before, VERSIONS[-1]


def current_version_in(tx: Transaction) -> str | None:
    """The version as a transaction sees it."""
    if not inspect(tx.connection).has_table(schema_version.name):
        return None
    row = tx.execute(select(schema_version.c.version_num)).fetchone()
    return None if row is None else str(row[0])
