"""`headrace kill`."""

from __future__ import annotations

import click

from headrace.actions.kill import kill
from headrace.cli.commands.runs import describe
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("kill")
@click.argument("run")
@json_option
@store_option
def command(run: str, as_json: bool, url: str | None) -> None:
    """Stop RUN: an id, `latest`, or a workflow's name for its newest run."""
    with opened(url, may_be_private=True) as here:
        row = kill(here.store, here.clock, run)
    if as_json:
        print_json(describe(row))
    else:
        verb = "is being stopped" if row.is_active else f"ended as {row.state}"
        click.echo(f"run {row.id} of `{row.workflow}` {verb}")
