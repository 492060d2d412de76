"""`headrace rendered`."""

from __future__ import annotations

import json

import click

from headrace.actions.finding import find_run, find_task
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json
from headrace.store import rendered_arguments


@click.command("rendered")
@click.argument("run")
@click.argument("task")
@json_option
@store_option
def command(run: str, task: str, as_json: bool, url: str | None) -> None:
    """Print what the templates in the arguments of TASK were rendered to in RUN.

    Shown is the newest execution; secrets are replaced and long values are cut.
    """
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        found = find_run(tx, run)
        row = find_task(tx, found, task)
        rendered = rendered_arguments(tx, row.id)
    if as_json:
        print_json({"run_id": found.id, "task": row.name, "rendered": rendered})
        return
    for name, value in rendered.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        click.echo(f"{name}:")
        click.echo("\n".join(f"  {line}" for line in text.splitlines()))
    if not rendered:
        click.echo("nothing was rendered: its arguments have no templates, or it has not run yet", err=True)
