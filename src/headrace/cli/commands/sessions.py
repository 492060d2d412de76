"""`headrace sessions`."""

from __future__ import annotations

import click

from headrace.actions.finding import find_workflow_of
from headrace.cli.blocks import print_block, print_count, shown_time, status_of
from headrace.cli.commands.runs import describe
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json
from headrace.errors import NotFoundError
from headrace.handoff import session_uuid
from headrace.store import (
    Definitions,
    RunRow,
    Transaction,
    find_project,
    get_run,
    list_runs,
    list_runs_of_project,
    version_of_attempt,
)


@click.command("sessions")
@click.argument("project", required=False)
@click.argument("workflow", required=False)
@click.option("-i", "--last-id", type=int, metavar="ID", help="Begin before this session.")
@click.option("-s", "--page-size", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many.")
@json_option
@store_option
def command(
    project: str | None, workflow: str | None, last_id: int | None, page_size: int, as_json: bool, url: str | None
) -> None:
    """List runs with their newest attempts: of all projects, of a PROJECT, of its WORKFLOW, or one by its ID."""
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        rows = _rows(tx, project, workflow, last_id, page_size)
        zones = [_zone(tx, row) for row in rows]
    if as_json:
        print_json({"sessions": [describe(row) for row in rows]})
        return
    click.echo("Sessions:")
    for row, zone in zip(rows, zones, strict=True):
        print_block(_pairs(row, zone))
    print_count(len(rows))


def _rows(tx: Transaction, project: str | None, workflow: str | None, before: int | None, limit: int) -> list[RunRow]:
    if project is None:
        return list_runs(tx, before=before, limit=limit)
    if workflow is not None:
        return list_runs(tx, find_workflow_of(tx, project, workflow, may_be_gone=True).id, before, limit)
    if project.isdigit():
        row = get_run(tx, int(project)) if len(project) < 19 else None
        if row is None:
            raise NotFoundError(f"there is no session {project}", hint="`headrace sessions` lists them")
        return [row]
    return list_runs_of_project(tx, find_project(tx, project).id, before, limit)


def _zone(tx: Transaction, row: RunRow) -> str:
    return tx.shared(Definitions).version(tx, version_of_attempt(tx, row.attempt_id)).workflow.timezone


def _pairs(row: RunRow, zone: str) -> list[tuple[str, object]]:
    status = status_of(row.state, is_cancel_requested=bool(row.is_cancel_requested))
    return [
        ("session id", row.id),
        ("attempt id", f"{row.id}.{row.attempt_number}"),
        ("uuid", session_uuid(row.project, row.workflow, row.key)),
        ("project", row.project),
        ("workflow", row.workflow),
        ("session time", shown_time(row.logical_at, zone)),
        ("params", row.params),
        ("created at", shown_time(row.created_at)),
        ("kill requested", str(bool(row.is_cancel_requested)).lower()),
        ("status", "error" if status == "killed" else status),
    ]
