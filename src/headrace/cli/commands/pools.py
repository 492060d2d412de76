"""`headrace pools`, `headrace pools set` and `headrace pools delete`."""

from __future__ import annotations

import click

from headrace.actions.pools import change_pool, remove_pool
from headrace.cli.opening import opened, opened_or_begun
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.store import PoolRow, list_pools


@click.group("pools", invoke_without_command=True)
@json_option
@store_option
@click.pass_context
def command(context: click.Context, as_json: bool, url: str | None) -> None:
    """List pools with their slots and how many are taken; or set or delete one."""
    context.obj = url
    if context.invoked_subcommand is not None:
        return
    with opened(url) as here, here.store.read() as tx:
        rows = list_pools(tx)
    if as_json:
        print_json({"pools": [row._asdict() for row in rows]})
    else:
        print_table(("pool", "slots", "taken"), [(row.name, _slots(row), row.used) for row in rows])


# Otherwise `-1` would be taken for an option.
@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("slots", type=click.IntRange(-1))
@click.option(
    "--include-deferred/--exclude-deferred",
    "includes_deferred",
    default=None,
    help="Whether tasks that wait for a trigger take slots; at first they do not.",
)
@json_option
@store_option
@click.pass_obj
def set_command(
    outer: str | None, name: str, slots: int, includes_deferred: bool | None, as_json: bool, url: str | None
) -> None:
    """Create pool NAME with so many SLOTS, or change them; -1 is without limit."""
    with opened_or_begun(url or outer) as here:
        row = change_pool(here.store, name, slots, includes_deferred)
    if as_json:
        print_json(row._asdict())
    else:
        deferred = ", deferred tasks included" if row.includes_deferred else ""
        click.echo(f"pool `{row.name}` has {_slots(row)} slot{'' if row.slots == 1 else 's'}{deferred}")


@command.command("delete")
@click.argument("name")
@store_option
@click.pass_obj
def delete_command(outer: str | None, name: str, url: str | None) -> None:
    """Delete pool NAME. Tasks that name it wait until it is there again."""
    with opened(url or outer) as here:
        remove_pool(here.store, name)
    click.echo(f"pool `{name}` is deleted")


def _slots(row: PoolRow) -> object:
    return row.slots if row.slots >= 0 else "unlimited"
