"""`headrace check`."""

from __future__ import annotations

import click

from headrace.cli.checking import Checked, check_paths, describe
from headrace.cli.options import json_option
from headrace.cli.printing import print_json
from headrace.settings import load_settings


@click.command("check")
@click.argument("paths", nargs=-1, metavar="[FILES]...")
@click.option("--project", default=".", metavar="DIR", help="The folder that is loaded without FILES.")
@json_option
def command(paths: tuple[str, ...], project: str, as_json: bool) -> int:
    """Load workflow FILES (or every workflow file of a folder) and say what would be saved, without saving it.

    Each file is loaded in a process of its own. Leaves with 0 if all of them are fine, else with 1.
    """
    files = list(check_paths(paths or (project,), load_settings().parser))
    if as_json:
        print_json({"files": [describe(one) for one in files]})
    else:
        for one in files:
            _print(one)
        broken = sum(one.parsed.error is not None for one in files)
        click.echo(f"{len(files)} files, {broken} with errors", err=True)
    return 1 if any(one.parsed.error is not None for one in files) else 0


def _print(one: Checked) -> None:
    error = one.parsed.error
    if error is not None:
        place = f"{one.root / error.file}" if error.file else one.shown
        click.echo(f"{place}{f':{error.line}' if error.line else ''}: error: {error.message}")
        if error.detail:
            click.echo("\n".join(f"  {line}" for line in error.detail.rstrip().splitlines()))
        if error.hint:
            click.echo(f"  hint: {error.hint}")
        return
    for workflow in one.parsed.workflows:
        tasks = sum(node.kind != "group" for node in workflow.nodes)
        schedule = "no schedule" if workflow.schedule is None else f"schedule {workflow.schedule.type}"
        click.echo(f"{one.shown}: workflow `{workflow.name}`: {tasks} tasks, {schedule}")
        for warning in workflow.warnings:
            click.echo(f"  warning: {warning}")
