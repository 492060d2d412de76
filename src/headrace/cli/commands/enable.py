"""`headrace enable`."""

from __future__ import annotations

import click

from headrace.actions.schedules import enable
from headrace.cli.commands.schedules import describe_schedule
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("enable")
@click.argument("project")
@click.argument("workflow", required=False)
@json_option
@store_option
def command(project: str, workflow: str | None, as_json: bool, url: str | None) -> None:
    """Let the schedules of PROJECT, of one WORKFLOW of it, or the schedule with an ID go on."""
    with opened(url) as here:
        rows = enable(here.store, project, workflow)
    if as_json:
        print_json({"schedules": [describe_schedule(row) for row in rows]})
        return
    for row in rows:
        click.echo(f"Enabled schedule id: {row.id} (`{row.workflow}` of project `{row.project}`)")
