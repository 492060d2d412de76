"""`headrace mark`."""

from __future__ import annotations

from typing import get_args

import click

from headrace.actions.mark import Mark, mark
from headrace.actions.selecting import Selection
from headrace.cli.opening import opened
from headrace.cli.options import json_option, reaching_options, store_option
from headrace.cli.printing import print_json


@click.command("mark")
@click.argument("state", type=click.Choice(get_args(Mark)))
@click.argument("run")
@click.argument("tasks", nargs=-1)
@reaching_options
@json_option
@store_option
def command(state: Mark, run: str, tasks: tuple[str, ...], as_json: bool, url: str | None, **reach: bool) -> None:
    """Say that TASKS of RUN, or the whole run, ended in STATE.

    A process that works on a marked task is ended. What failed after it is cleared, so that it is decided again.
    """
    with opened(url, may_be_private=True) as here:
        marked = mark(here.store, here.clock, state, run, tasks, Selection(**reach))
    if as_json:
        first, *others = [
            {"run_id": one.run.id, "workflow": one.run.workflow, "state": one.run.state, "tasks": one.tasks,
             "cleared": one.cleared}
            for one in marked
        ]  # fmt: skip
        print_json({**first, "other_runs": others} if others else first)
        return
    for one in marked:
        what = f"{len(one.tasks)} task{'' if len(one.tasks) == 1 else 's'} of run" if tasks else "run"
        click.echo(f"marked {what} {one.run.id} of `{one.run.workflow}` as {state}")
        for name in one.cleared:
            click.echo(f"  cleared {name}")
