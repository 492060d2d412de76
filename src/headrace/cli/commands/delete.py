"""`headrace delete`."""

from __future__ import annotations

from functools import partial

import click

from headrace.cli.opening import opened
from headrace.cli.options import store_option
from headrace.clock import to_micros
from headrace.store import (
    ProjectRow,
    Transaction,
    delete_project,
    find_project,
    give_up_dead_neighbours,
    refuse_deletion,
)


@click.command("delete")
@click.argument("project")
@click.option("--force", is_flag=True, help="Do not ask.")
@store_option
def command(project: str, force: bool, url: str | None) -> None:
    """Delete PROJECT: its workflows start no more runs and its name is free. What runs goes on, its history stays.

    A server that watches the project's folder is to be stopped first.
    """
    with opened(url) as here:
        now = to_micros(here.clock.now())
        here.store.transact(partial(give_up_dead_neighbours, now=now))
        with here.store.read() as tx:
            found = find_project(tx, project)
            refuse_deletion(tx, found.name, found.root, now)
        if not force:
            click.confirm(f"delete project `{found.name}`?", abort=True, err=True)

        def work(tx: Transaction) -> ProjectRow:
            row = find_project(tx, project)
            delete_project(tx, row.id, to_micros(here.clock.now()))
            tx.tell()
            return row

        row = here.store.transact(work)
    click.echo(f"project `{row.name}` is deleted")
