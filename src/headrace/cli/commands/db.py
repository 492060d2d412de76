"""`headrace db upgrade` and `headrace db check`."""

from __future__ import annotations

import click

from headrace.cli.options import store_option
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
    try:
        version = current_version(database)
        check(database, version)
        with database.read() as tx:
            check_tables(tx)
    finally:
        database.dispose()
    click.echo(f"`{database.display_name}` is at schema {version}, as needed")
