"""`headrace why`."""

from __future__ import annotations

import click

from headrace.actions.why import why
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json


@click.command("why")
@click.argument("run")
@click.argument("task", required=False)
@limit_option
@json_option
@store_option
def command(run: str, task: str | None, limit: int, as_json: bool, url: str | None) -> None:
    """Say why RUN, or one TASK of it, waits, runs or has ended."""
    with opened(url, may_be_private=True) as here:
        row, reasons = why(here.store, here.clock, run, task)
    if as_json:
        shown = [
            {**reason._asdict(), "since": instant(reason.since), "due_at": instant(reason.due_at)} for reason in reasons
        ]
        print_json({"run_id": row.id, "workflow": row.workflow, "state": row.state, "reasons": shown})
        return
    for reason in reasons[:limit]:
        click.echo(reason.sentence)
        if reason.hint:
            click.echo(f"hint: {reason.hint}", err=True)
    if len(reasons) > limit:
        click.echo(f"and {len(reasons) - limit} more")
