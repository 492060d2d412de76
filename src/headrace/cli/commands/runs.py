"""`headrace runs`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import click

from headrace.actions.finding import find_backfill, find_workflow
from headrace.actions.sessions import parse_time
from headrace.actions.wording import instant as shown
from headrace.actions.wording import span
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json, print_table, seconds
from headrace.handoff import session_uuid
from headrace.store import RUN_STATES, RunChoice, RunRow, choose_runs


@click.command("runs")
@click.argument("workflow", required=False)
@click.option("--state", type=click.Choice(RUN_STATES), help="Only runs in this state.")
@click.option("--type", "type_", metavar="TYPE", help="Only `manual`, `scheduled`, `backfill` … runs.")
@click.option("--backfill", type=int, metavar="ID", help="Only runs of this backfill.")
@click.option("--partition-key", metavar="KEY", help="Only runs for this partition.")
@click.option("--from", "since", metavar="TIME", help="Only runs for this logical time and later ones.")
@click.option("--to", "until", metavar="TIME", help="Only runs for this logical time and earlier ones.")
@limit_option
@click.option("--before", type=int, metavar="ID", help="Begin before this run: the `next` of the page before.")
@json_option
@store_option
def command(
    workflow: str | None,
    state: str | None,
    type_: str | None,
    backfill: int | None,
    partition_key: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    before: int | None,
    as_json: bool,
    url: str | None,
) -> None:
    """List runs, newest first; of one WORKFLOW or of all."""
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        if backfill is not None:
            find_backfill(tx, backfill)
        choice = RunChoice(
            workflow_id=0 if workflow is None else find_workflow(tx, workflow, may_be_gone=True).id,
            state=state or "",
            type=type_ or "",
            backfill_id=backfill or 0,
            partition_key=partition_key or "",
            since=parse_time(since),
            until=parse_time(until),
        )
        rows = choose_runs(tx, choice, before, limit)
    if as_json:
        print_json({"runs": [describe(row) for row in rows], "next": rows[-1].id if len(rows) == limit else None})
        return
    headers = ("run", "workflow", "state", "logical time", "started", "took")
    names = _names(rows)
    cells = [_cells(row, names[row.project, row.workflow]) for row in rows]
    if any(row.partition_key is not None for row in rows):
        with_partitions = [(*line, row.partition_key or "") for line, row in zip(cells, rows, strict=True)]
        print_table((*headers, "partition"), with_partitions)
        return
    print_table(headers, cells)


def describe(row: RunRow) -> dict[str, object]:
    """A run as JSON shows it."""
    return {
        "run_id": row.id,
        "workflow": row.workflow,
        "project": row.project,
        "key": row.key,
        "uuid": session_uuid(row.project, row.workflow, row.key),
        "type": row.type,
        "state": row.state,
        "reason": row.reason,
        "attempt": row.attempt_number,
        "logical_time": instant(row.logical_at),
        "created_at": instant(row.created_at),
        "started_at": instant(row.started_at),
        "ended_at": instant(row.ended_at),
        "duration_seconds": seconds(row.started_at, row.ended_at),
        "params": json.loads(row.params),
        "note": row.note,
        "partition_key": row.partition_key,
        "partition_time": instant(row.partition_at),
    }


def _names(rows: Sequence[RunRow]) -> dict[tuple[str, str], str]:
    """By which commands know the workflows: with its project where another one here has a workflow of that name."""
    workflows = {(row.project, row.workflow) for row in rows}
    projects = Counter(name for _, name in workflows)
    return {(project, name): f"{project}/{name}" if projects[name] > 1 else name for project, name in workflows}


def _cells(row: RunRow, name: str) -> tuple[object, ...]:
    started = shown(row.started_at) if row.started_at is not None else ""
    logical = shown(row.logical_at) if row.logical_at is not None else ""
    return row.id, name, row.state, logical, started, span(row.started_at, row.ended_at)
