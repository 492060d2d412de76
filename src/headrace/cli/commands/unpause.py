"""`headrace unpause`."""

from __future__ import annotations

import click

from headrace.actions.pause import unpause
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("unpause")
@click.argument("workflow")
@json_option
@store_option
def command(workflow: str, as_json: bool, url: str | None) -> None:
    """Let WORKFLOW go on; runs that waited start as its limits allow."""
    with opened(url) as here:
        row = unpause(here.store, here.clock, workflow)
    if as_json:
        print_json({"workflow": row.name, "project": row.project, "is_paused": row.is_paused})
    else:
        click.echo(f"workflow `{row.name}` goes on")
