"""`headrace trigger`."""

from __future__ import annotations

import click

from headrace.actions.params import typed_params
from headrace.actions.trigger import trigger
from headrace.cli.commands.runs import describe
from headrace.cli.opening import opened
from headrace.cli.options import (
    conf_option,
    json_option,
    params_option,
    parse_conf,
    partition_option,
    session_option,
    store_option,
)
from headrace.cli.printing import print_json


@click.command("trigger")
@click.argument("workflow")
@params_option
@conf_option
@session_option
@click.option("--run-key", "--run-id", "-r", "run_key", metavar="NAME", help="The run's name, unique in its workflow.")
@click.option("--note", help="What there is to say about the run.")
@partition_option
@json_option
@store_option
def command(
    workflow: str,
    params: tuple[str, ...],
    conf: str | None,
    session: str | None,
    run_key: str | None,
    note: str | None,
    partition_key: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """Start a run of WORKFLOW now."""
    given = {**parse_conf(conf), **typed_params(params)}
    with opened(url) as here:
        run = trigger(
            here.store,
            here.clock,
            workflow,
            params=given,
            session=session,
            run_key=run_key,
            note=note,
            partition_key=partition_key,
        )
    if as_json:
        print_json(describe(run))
    else:
        verb = "started" if run.state == "running" else f"is {run.state}"
        click.echo(f"run {run.id} of `{run.workflow}` {verb}")
