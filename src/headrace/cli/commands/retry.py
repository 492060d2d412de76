"""`headrace retry`."""

from __future__ import annotations

import click

from headrace.actions.retry import retry
from headrace.cli.commands.runs import describe
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json


@click.command("retry")
@click.argument("run")
@click.option("--all", "is_all", is_flag=True, help="Run every task again, also those that succeeded.")
@json_option
@store_option
def command(run: str, is_all: bool, as_json: bool, url: str | None) -> None:
    """Run RUN again as a new attempt that carries over what succeeded."""
    with opened(url, may_be_private=True) as here:
        row = retry(here.store, here.clock, run, is_resuming=not is_all)
    if as_json:
        print_json(describe(row))
    else:
        click.echo(f"run {row.id} of `{row.workflow}` is {row.state}, attempt {row.attempt_number}")
