"""`headrace pause`."""

from __future__ import annotations

import click

from headrace.actions.pause import pause
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("pause")
@click.argument("workflow")
@json_option
@store_option
def command(workflow: str, as_json: bool, url: str | None) -> None:
    """Start no more runs and tasks of WORKFLOW; what runs already goes on."""
    with opened(url) as here:
        row = pause(here.store, workflow)
    if as_json:
        print_json({"workflow": row.name, "project": row.project, "is_paused": row.is_paused})
    else:
        click.echo(f"workflow `{row.name}` is paused")
