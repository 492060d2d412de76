"""`headrace disable`."""

from __future__ import annotations

import click

from headrace.actions.schedules import disable
from headrace.cli.commands.schedules import describe_schedule
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("disable")
@click.argument("project")
@click.argument("workflow", required=False)
@json_option
@store_option
def command(project: str, workflow: str | None, as_json: bool, url: str | None) -> None:
    """Start nothing by the schedules of PROJECT, of one WORKFLOW of it, or by the schedule with an ID."""
    with opened(url) as here:
        rows = disable(here.store, here.clock, project, workflow)
    if as_json:
        print_json({"schedules": [describe_schedule(row) for row in rows]})
        return
    for row in rows:
        click.echo(f"Disabled schedule id: {row.id} (`{row.workflow}` of project `{row.project}`)")
