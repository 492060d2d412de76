"""`headrace next`."""

from __future__ import annotations

import click

from headrace.actions.upcoming import Upcoming, upcoming
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json, print_table
from headrace.clock import iso


@click.command("next")
@click.argument("workflow")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many times to show.")
@json_option
@store_option
def command(workflow: str, count: int, as_json: bool, url: str | None) -> None:
    """Show when WORKFLOW runs next by itself, and why then or why not."""
    with opened(url) as here:
        found = upcoming(here.store, here.clock, workflow, count)
    if as_json:
        print_json(_describe(found))
        return
    lines = {
        "workflow": f"{found.row.name} (project {found.row.project}, file {found.row.file})",
        "schedule": found.schedule,
        "next run": found.reason,
    }
    for name, text in lines.items():
        click.echo(f"{name + ':':<10} {text}")
    if found.times:
        about = "logical time" if found.times[0].partition_key is None else "partition"
        print_table(
            (about, "due at"), [(one.partition_key or iso(one.logical_time), iso(one.run_at)) for one in found.times]
        )


def _describe(found: Upcoming) -> dict[str, object]:
    times = [
        {
            "logical_time": iso(one.logical_time),
            "run_at": iso(one.run_at),
            "interval_start": iso(one.interval_start),
            "interval_end": iso(one.interval_end),
            "partition_key": one.partition_key,
        }
        for one in found.times
    ]
    return {
        "workflow": found.row.name,
        "project": found.row.project,
        "is_paused": bool(found.row.is_paused),
        "timezone": found.workflow.timezone,
        "schedule": found.schedule,
        "reason": found.reason,
        "times": times,
    }
