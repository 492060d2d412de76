"""`headrace schedules`."""

from __future__ import annotations

import click

from headrace.actions.schedules import find_schedules
from headrace.actions.wording import duration
from headrace.cli.blocks import print_block, print_count, shown_time
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import instant, print_json
from headrace.clock import to_micros
from headrace.store import Definitions, ListedSchedule, Transaction, list_schedules


@click.command("schedules")
@click.argument("project", required=False)
@click.argument("workflow", required=False)
@json_option
@store_option
def command(project: str | None, workflow: str | None, as_json: bool, url: str | None) -> None:
    """List schedules: all, of a PROJECT, of its WORKFLOW, or one by its ID."""
    with opened(url) as here, here.store.read() as tx:
        rows = list_schedules(tx) if project is None else find_schedules(tx, project, workflow)
        zones = [zone_of_schedule(tx, row) for row in rows]
        now = to_micros(here.clock.now())
    if as_json:
        print_json({"schedules": [describe_schedule(row) for row in rows]})
        return
    click.echo("Schedules:")
    for row, zone in zip(rows, zones, strict=True):
        print_schedule(row, zone, now)
    print_count(len(rows))


def zone_of_schedule(tx: Transaction, row: ListedSchedule) -> str:
    return tx.shared(Definitions).version(tx, row.version_id).workflow.timezone


def print_schedule(row: ListedSchedule, zone: str, now: int) -> None:
    due = shown_time(row.run_at)
    if row.run_at is not None and row.run_at > now:
        due = f"{due} (in {duration((row.run_at - now) / 1e6)})"
    print_block(
        [
            ("id", row.id),
            ("project", row.project),
            ("workflow", row.workflow),
            ("disabled at", shown_time(row.disabled_at)),
            ("next session time", shown_time(row.logical_at, zone)),
            ("next scheduled to run at", due),
        ]
    )


def describe_schedule(row: ListedSchedule) -> dict[str, object]:
    """A schedule as JSON shows it."""
    return {
        "schedule_id": row.id,
        "project": row.project,
        "workflow": row.workflow,
        "disabled_at": instant(row.disabled_at),
        "is_paused": bool(row.is_paused),
        "next_session_time": instant(row.logical_at),
        "next_run_at": instant(row.run_at),
        "last_session_time": instant(row.last_logical_at),
    }
