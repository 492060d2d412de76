"""`headrace check`."""

from __future__ import annotations

import json
from typing import Any

import click

from headrace.actions.params import settled
from headrace.authoring import language_of
from headrace.cli.blocks import shown_time
from headrace.cli.checking import Checked, check_paths, describe, first_slot, with_mistakes, with_params
from headrace.cli.options import given_params, json_option, params_file_option, params_option
from headrace.cli.printing import print_json
from headrace.clock import SystemClock, to_micros
from headrace.settings import load_settings


@click.command("check")
@click.argument("paths", nargs=-1, metavar="[FILES]...")
@click.option("--project", default=".", metavar="DIR", help="The folder of FILES, which is loaded without any.")
@params_option
@params_file_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[str, ...],
    project: str,
    params: tuple[str, ...],
    params_file: str | None,
    as_json: bool,
) -> int:
    """Load workflow FILES (or every workflow file of a folder) and say what would be saved, without saving it.

    Each file is loaded in a process of its own. Files of one folder may not define the same workflow. Parameters are
    compared with what the workflows ask for. Leaves with 0 if all of them are fine, else with 1.
    """
    given = given_params(context, params, params_file)
    loaded = list(check_paths(paths or (project,), project, load_settings().parser))
    files = [with_params(one, given) for one in with_mistakes(loaded)]
    given = _shown(given, files)
    if as_json:
        print_json({"files": [describe(one) for one in files], "params": given})
    else:
        for one in files:
            _print(one)
        if given:
            click.echo(f"parameters: {json.dumps(given, ensure_ascii=False)}")
        broken = sum(one.parsed.error is not None for one in files)
        click.echo(f"{len(files)} {'file' if len(files) == 1 else 'files'}, {broken} with errors", err=True)
    return 1 if any(one.parsed.error is not None for one in files) else 0


def _shown(given: dict[str, Any], files: list[Checked]) -> dict[str, Any]:
    """What was given, as the workflows of the first file take it."""
    return settled(language_of(files[0].shown).name, given) if files else given


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
        click.echo(f"{one.shown}: workflow `{workflow.name}`: {tasks} {'task' if tasks == 1 else 'tasks'}, {schedule}")
        first = first_slot(workflow, SystemClock().now())
        if first is not None:
            session, run = (shown_time(to_micros(at), workflow.timezone) for at in (first.logical_time, first.run_at))
            click.echo(f"  first session time: {session}, first run: {run}")
        for warning in workflow.warnings:
            click.echo(f"  warning: {warning}")
