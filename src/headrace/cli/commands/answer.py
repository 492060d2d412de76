"""`headrace answer`."""

from __future__ import annotations

import getpass

import click

from headrace.actions.params import parse_params
from headrace.actions.questions import answer
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json
from headrace.definition import Person


@click.command("answer")
@click.argument("run")
@click.argument("task")
@click.argument("options", nargs=-1, metavar="[OPTION]...")
@click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE",
    help="Something to fill in. A value that is JSON (5, true, [1], \"5\") is taken as such, others are strings.",
)  # fmt: skip
@click.option("--by", metavar="NAME", help="Who answers; else the name of your login.")
@json_option
@store_option
def command(
    run: str,
    task: str,
    options: tuple[str, ...],
    params: tuple[str, ...],
    by: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """Answer what TASK of RUN asks by choosing an OPTION, or several; the task goes on.

    One that is the only option need not be named. `headrace questions` lists what is asked.
    """
    person = Person(id=by or getpass.getuser())
    with opened(url, may_be_private=True) as here:
        row = answer(here.store, here.clock, run, task, options, parse_params(params), person)
    if as_json:
        print_json({"question_id": row.id, "run_id": row.run_id, "task": row.task, "by": person.id})
    else:
        click.echo(f"task `{row.task}` of run {row.run_id} of `{row.workflow}` goes on")
