"""`headrace workflows`."""

from __future__ import annotations

import json

import click

from headrace.actions.finding import find_workflow_of
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.definition import to_json
from headrace.store import Definitions, Transaction, current_version_of, find_project, list_workflows


@click.command("workflows")
@click.argument("project", required=False)
@click.argument("workflow", required=False)
@limit_option
@click.option("--after", default=0, metavar="ID", help="Begin after this one: the `next` of the page before.")
@json_option
@store_option
def command(project: str | None, workflow: str | None, limit: int, after: int, as_json: bool, url: str | None) -> None:
    """List workflows that files define now: of all projects or of a PROJECT, or show the definition of one WORKFLOW."""
    with opened(url) as here, here.store.read() as tx:
        if project is not None and workflow is not None:
            _show_definition(tx, project, workflow)
            return
        rows = list_workflows(tx, after, limit, None if project is None else find_project(tx, project).id)
    following = rows[-1].id if len(rows) == limit else None
    if as_json:
        workflows = [{**row._asdict(), "next_run_at": instant(row.next_run_at)} for row in rows]
        print_json({"workflows": workflows, "next": following})
        return
    headers = ("workflow", "project", "file", "paused", "next run", "last run")
    print_table(
        headers,
        [
            (
                row.name,
                row.project,
                row.file,
                "yes" if row.is_paused else "",
                shown(row.next_run_at) if row.next_run_at else "",
                row.last_run_id,
            )
            for row in rows
        ],
    )


def _show_definition(tx: Transaction, project: str, workflow: str) -> None:
    row = find_workflow_of(tx, project, workflow)
    version = tx.shared(Definitions).version(tx, current_version_of(tx, row.id))
    click.echo(json.dumps(json.loads(to_json(version.workflow)), ensure_ascii=False, indent=2))
