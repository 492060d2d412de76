"""`headrace db upgrade` and `headrace db check`."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.options import store_option
from headrace.errors import NotFoundError
from headrace.settings import load_settings
from headrace.store import Database
from headrace.store.setup import check, check_tables, current_version, upgrade


@click.group("db")
def command() -> None:
    """Create, upgrade or check the database."""


@command.command("upgrade")
@store_option
def upgrade_command(url: str | None) -> None:
    """Bring the database to the schema that this version needs."""
    database = Database(url or load_settings().store)
    try:
        before, after = upgrade(database)
    finally:
        database.dispose()
    what = "is" if before == after else "was created" if before is None else f"was upgraded from schema {before} and is"
    click.echo(f"`{database.display_name}` {what} at schema {after}")


@command.command("check")
@store_option
def check_command(url: str | None) -> None:
    """Check that the database has the schema that this version needs."""
    database = Database(url or load_settings().store)
    _refuse_missing_file(database)
    try:
        version = current_version(database)
        check(database, version)
        with database.read() as tx:
            check_tables(tx)
    finally:
        database.dispose()
    click.echo(f"`{database.display_name}` is at schema {version}, as needed")


def _refuse_missing_file(database: Database) -> None:
    """A look must not create what it looks for, as SQLite would."""
    path = database.engine.url.database if database.dialect == "sqlite" else None
    if path and path != ":memory:" and not Path(path).exists():
        hint = "`headrace db upgrade` creates it"
        raise NotFoundError(f"the database `{database.display_name}` does not exist", hint=hint)
