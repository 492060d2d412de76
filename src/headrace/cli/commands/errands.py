"""`headrace errands`."""

from __future__ import annotations

import json

import click

from headrace.actions.finding import find_run
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.store import ErrandRow, list_errands


@click.command("errands")
@click.argument("run", required=False)
@limit_option
@click.option("--before", type=int, metavar="ID", help="Begin before this errand: the `next` of the page before.")
@json_option
@store_option
def command(run: str | None, limit: int, before: int | None, as_json: bool, url: str | None) -> None:
    """List callbacks and whatever else runs for a RUN or its tasks without being a task, newest first."""
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        rows = list_errands(tx, None if run is None else find_run(tx, run).id, before, limit)
    if as_json:
        print_json({"errands": [describe(row) for row in rows], "next": rows[-1].id if len(rows) == limit else None})
        return
    print_table(("errand", "run", "task", "kind", "state", "tries", "created", "error"), [_cells(row) for row in rows])


def describe(row: ErrandRow) -> dict[str, object]:
    """An errand as JSON shows it."""
    return {
        "errand_id": row.id,
        "run_id": row.run_id,
        "workflow": row.workflow,
        "task": row.task,
        "try": row.try_number or None,
        "kind": row.kind,
        "payload": json.loads(row.payload),
        "queue": row.queue,
        "state": row.state,
        "tries": row.tries,
        "agent": row.agent,
        "due_at": instant(row.due_at),
        "created_at": instant(row.created_at),
        "started_at": instant(row.started_at),
        "ended_at": instant(row.ended_at),
        "error": None if row.error is None else row.error.message,
        "log": row.log,
    }


def _cells(row: ErrandRow) -> tuple[object, ...]:
    error = "" if row.error is None else row.error.message
    return row.id, row.run_id, row.task, row.kind, row.state, row.tries or "", shown(row.created_at), error
