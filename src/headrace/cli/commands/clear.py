"""`headrace clear`."""

from __future__ import annotations

import click

from headrace.actions.clear import clear
from headrace.actions.selecting import Selection
from headrace.cli.local_run import go_on_to_end
from headrace.cli.opening import opened
from headrace.cli.options import json_option, reaching_options, store_option
from headrace.cli.printing import print_json


@click.command("clear")
@click.argument("run")
@click.argument("tasks", nargs=-1)
@reaching_options
@click.option("--failed", "--only-failed", "only_failed", is_flag=True, help="Only what did not succeed.")
@click.option("--running", "--only-running", "only_running", is_flag=True, help="Only what an agent works on.")
@json_option
@store_option
def command(run: str, tasks: tuple[str, ...], as_json: bool, url: str | None, **reach: bool) -> int:
    """Give TASKS of RUN, or all of them, a new series of tries."""
    with opened(url, may_be_private=True) as here:
        cleared = clear(here.store, here.clock, run, tasks, Selection(**reach))
    if as_json and not here.is_private:
        first, *others = [
            {"run_id": row.id, "workflow": row.workflow, "state": row.state, "tasks": names} for row, names in cleared
        ]
        print_json({**first, "other_runs": others} if others else first)
        return 0
    for row, names in cleared:
        count = f"{len(names)} task{'' if len(names) == 1 else 's'}"
        click.echo(f"cleared {count} of run {row.id} of `{row.workflow}`:", err=here.is_private)
        for name in names:
            click.echo(f"  {name}", err=here.is_private)
    if not here.is_private:
        return 0
    return max(go_on_to_end(here.settings, row, as_json=as_json) for row, _ in cleared)
