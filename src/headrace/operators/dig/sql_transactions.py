"""Statements that happen once, however often a task is tried: a table of the database remembers what was done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from headrace.operators.dig.sql_names import quoted, quoted_table


class Busy(Exception):
    """Another process is working on the same statement."""


class StatusTable(Protocol):
    """How a database remembers what was done."""

    def run_once(self, connection: Any, identity: str, work: Callable[[], None]) -> bool:
        """Do the work and remember it, in one transaction; False: it was done before. Raises Busy."""
        ...


class RowPerStatement(NamedTuple):
    """PostgreSQL: one table with a row for each statement, locked while that runs."""

    table: str
    schema: str | None
    keeps: timedelta
    """How long a statement is remembered."""

    def run_once(self, connection: Any, identity: str, work: Callable[[], None]) -> bool:
        import psycopg  # an extra, which only SQL operators need

        table = quoted_table(self.table, self.schema)
        with connection.transaction():
            # Two sessions that create a table at once may collide in the catalogue in spite of IF NOT EXISTS.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (table,))
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (query_id text NOT NULL UNIQUE,"
                " created_at timestamptz NOT NULL, completed_at timestamptz)"
            )
            connection.execute(
                f"INSERT INTO {table} (query_id, created_at) VALUES (%s, now()) ON CONFLICT DO NOTHING", (identity,)
            )
        try:
            with connection.transaction():
                lock = f"SELECT completed_at FROM {table} WHERE query_id = %s FOR UPDATE NOWAIT"
                found = connection.execute(lock, (identity,)).fetchone()
                if found is None or found[0] is not None:
                    return False
                work()
                connection.execute(f"UPDATE {table} SET completed_at = now() WHERE query_id = %s", (identity,))
        except psycopg.errors.LockNotAvailable:
            raise Busy from None
        self._forget_old(connection, table)
        return True

    def _forget_old(self, connection: Any, table: str) -> None:
        with connection.transaction():
            connection.execute(
                f"DELETE FROM {table} WHERE query_id IN (SELECT query_id FROM {table}"
                " WHERE completed_at < now() - %s FOR UPDATE SKIP LOCKED)",
                (self.keeps,),
            )


class TablePerStatement(NamedTuple):
    """Redshift, which locks no rows: one small table for each statement."""

    table: str
    schema: str | None
    keeps: timedelta

    def run_once(self, connection: Any, identity: str, work: Callable[[], None]) -> bool:
        name = f"{self.table}_{identity.replace('-', '')}"
        table = quoted_table(name, self.schema)
        with connection.transaction():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (created_at timestamp, completed_at timestamp)")
        with connection.transaction():
            connection.execute(f"LOCK TABLE {table}")
            if connection.execute(f"SELECT completed_at FROM {table}").fetchone() is not None:
                return False
            work()
            connection.execute(f"INSERT INTO {table} VALUES (getdate(), getdate())")
        self._forget_old(connection)
        return True

    def _forget_old(self, connection: Any) -> None:
        schema = self.schema or connection.execute("SELECT current_schema()").fetchone()[0]
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE %s ORDER BY tablename LIMIT 20",
            (schema, self.table.replace("_", "\\_") + "\\_%"),
        ).fetchall()
        for (name,) in names:
            table = f"{quoted(schema)}.{quoted(name)}"
            age = f"SELECT extract(epoch from getdate()) - extract(epoch from max(completed_at)) FROM {table}"
            seconds = connection.execute(age).fetchone()[0]
            if seconds is not None and seconds > self.keeps.total_seconds():
                connection.execute(f"DROP TABLE IF EXISTS {table}")
