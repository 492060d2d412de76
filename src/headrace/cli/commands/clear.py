"""`headrace clear`."""

from __future__ import annotations

import click

from headrace.actions.clear import clear
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("clear")
@click.argument("run")
@click.argument("tasks", nargs=-1)
@click.option("--downstream", is_flag=True, help="Also everything that waits for them, directly or not.")
@click.option("--failed", is_flag=True, help="Only what did not succeed.")
@json_option
@store_option
def command(run: str, tasks: tuple[str, ...], downstream: bool, failed: bool, as_json: bool, url: str | None) -> None:
    """Give TASKS of RUN, or all of them, a new series of tries."""
    with opened(url, may_be_private=True) as here:
        row, names = clear(here.store, here.clock, run, tasks, with_downstream=downstream, only_failed=failed)
    if as_json:
        print_json({"run_id": row.id, "workflow": row.workflow, "state": row.state, "tasks": names})
        return
    click.echo(f"cleared {len(names)} task{'' if len(names) == 1 else 's'} of run {row.id} of `{row.workflow}`:")
    for name in names:
        click.echo(f"  {name}")
