"""`headrace reschedule`."""

from __future__ import annotations

import click

from headrace.actions.schedules import Later, reschedule
from headrace.cli.commands.schedules import describe_schedule, print_schedule, zone_of_schedule
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json
from headrace.clock import to_micros


@click.command("reschedule")
@click.argument("project")
@click.argument("workflow", required=False)
@click.option("-s", "--skip", type=click.IntRange(1), metavar="N", help="Leave out the next N times.")
@click.option("-t", "--skip-to", "to", metavar="TIME", help="Go on with the first time that is due at TIME, or `now`.")
@click.option("-a", "--run-at", metavar="TIME", help="When the next run is due, whatever the schedule says.")
@click.option("-d", "--dry-run", "is_dry", is_flag=True, help="Say where it would stand and change nothing.")
@json_option
@store_option
def command(
    project: str,
    workflow: str | None,
    skip: int | None,
    to: str | None,
    run_at: str | None,
    is_dry: bool,
    as_json: bool,
    url: str | None,
) -> None:
    """Leave out times of the schedule of WORKFLOW of PROJECT, or of the schedule with an ID."""
    with opened(url) as here:
        row = reschedule(here.store, here.clock, project, workflow, Later(skip, to, run_at), is_dry=is_dry)
        with here.store.read() as tx:
            zone = zone_of_schedule(tx, row)
        now = to_micros(here.clock.now())
    if as_json:
        print_json(describe_schedule(row))
        return
    click.echo("Would be rescheduled to:" if is_dry else "Rescheduled to:")
    print_schedule(row, zone, now)
