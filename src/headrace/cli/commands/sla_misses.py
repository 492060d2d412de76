"""`headrace sla-misses`."""

from __future__ import annotations

import click

from headrace.actions.finding import find_workflow
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.store import MissRow, list_misses


@click.command("sla-misses")
@click.argument("workflow", required=False)
@limit_option
@click.option("--before", type=int, metavar="ID", help="Begin before this miss: the `next` of the page before.")
@json_option
@store_option
def command(workflow: str | None, limit: int, before: int | None, as_json: bool, url: str | None) -> None:
    """List tasks and runs, of a WORKFLOW or of all, that were not done by their deadlines, newest first."""
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        workflow_id = None if workflow is None else find_workflow(tx, workflow, may_be_gone=True).id
        rows = list_misses(tx, workflow_id, before, limit)
    if as_json:
        print_json({"misses": [describe(row) for row in rows], "next": rows[-1].id if len(rows) == limit else None})
        return
    print_table(("miss", "workflow", "task", "deadline", "run", "due", "told", "mailed"), [_cells(row) for row in rows])


def describe(row: MissRow) -> dict[str, object]:
    """A miss as JSON shows it."""
    return {
        "miss_id": row.id,
        "workflow": row.workflow,
        "task": row.task or None,
        "deadline": row.name,
        "run_id": row.run_id,
        "run_key": row.run_key,
        "logical_time": instant(row.logical_at),
        "due_at": instant(row.due_at),
        "missed_at": instant(row.missed_at),
        "notification_sent": bool(row.is_told),
        "email_sent": bool(row.is_mailed),
    }


def _cells(row: MissRow) -> tuple[object, ...]:
    told, mailed = ("yes" if flag else "" for flag in (row.is_told, row.is_mailed))
    return row.id, row.workflow, row.task, row.name, row.run_id, shown(row.due_at), told, mailed
