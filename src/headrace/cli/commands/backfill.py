"""`headrace backfill create`, `list`, `pause`, `unpause` and `cancel`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from uuid import uuid4

import click

from headrace.actions.backfill import (
    REPROCESS,
    Backfilled,
    BackfillRequest,
    Filled,
    cancel_backfill,
    create_backfill,
    pause_backfill,
    unpause_backfill,
)
from headrace.actions.finding import find_workflow
from headrace.actions.params import typed_params
from headrace.actions.schedules import find_schedules
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import conf_option, json_option, limit_option, params_option, parse_conf, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.clock import iso
from headrace.errors import NotFoundError, UsageError
from headrace.store import BackfillRow, ListedSchedule, Transaction, list_backfills, workflows_named

_OUTCOMES = {
    "created": "a new run",
    "again": "its run is run again",
    "exists": "left out: it has a run",
    "in_flight": "left out: its run has not ended",
}


_OF_SCHEDULE = "of-schedule"


class _OrSchedule(click.Group):
    """Whatever is not one of its commands is a project or a schedule, as in Digdag's `backfill PROJECT NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not any(arg in self.commands or arg in ctx.help_option_names for arg in args):
            args = [_OF_SCHEDULE, *args]
        return super().parse_args(ctx, args)


@click.group("backfill", cls=_OrSchedule)
def command() -> None:
    """Run a workflow for times in the past that its schedule names.

    `headrace backfill PROJECT WORKFLOW --from TIME` (or with a schedule's ID) runs the times from then on one after
    the other, those that have a run once more.
    """


@command.command("create")
@click.argument("workflow")
@click.option("--from", "start", required=True, metavar="TIME", help="The first logical time.")
@click.option("--to", "end", metavar="TIME", help="The last logical time, included.")
@click.option("--count", type=click.IntRange(1), help="How many times, in place of the last one.")
@click.option(
    "--reprocess-behavior", "reprocess", type=click.Choice(REPROCESS), default="none", show_default=True,
    help="Which of the times that have a run already are run again: none, the failed ones, or all that have ended.",
)  # fmt: skip
@click.option("--run-backwards", "is_backwards", is_flag=True, help="Begin with the newest time.")
@click.option(
    "--max-active-runs", type=click.IntRange(1), default=10, show_default=True,
    help="How many of its runs may be active at once, beside those that the workflow allows for others.",
)  # fmt: skip
@params_option
@conf_option
@click.option("--name", default="", help="A name for the attempts.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Say what would be done and do nothing.")
@json_option
@store_option
def create_command(
    params: tuple[str, ...], conf: str | None, name: str, as_json: bool, url: str | None, **given: Any
) -> None:
    """Create a run of WORKFLOW for each time of its schedule in a range."""
    if (given["end"] is None) == (given["count"] is None):
        raise UsageError("expected the backfill to have either `--to` or `--count`")
    request = BackfillRequest(params={**parse_conf(conf), **typed_params(params)}, attempt_name=name, **given)
    with opened(url) as here:
        done = create_backfill(here.store, here.clock, request)
    _show_created(done, request, as_json)


@command.command(_OF_SCHEDULE, hidden=True)
@click.argument("project")
@click.argument("workflow", required=False)
@click.option("-f", "--from", "start", required=True, metavar="TIME", help="The first time.")
@click.option("--count", type=click.IntRange(1), help="How many times; else up to the schedule's next one.")
@click.option("--name", default="", help="A name for the attempts.")
@click.option("-d", "--dry-run", "is_dry_run", is_flag=True, help="Say what would be done and do nothing.")
@json_option
@store_option
def of_schedule_command(
    project: str, workflow: str | None, name: str, as_json: bool, url: str | None, **given: Any
) -> None:
    """Run the times of the schedule of WORKFLOW of PROJECT, or of the schedule with an ID, one after the other."""
    with opened(url) as here:
        with here.store.read() as tx:
            found = _schedules(tx, project, workflow)
        if len(found) > 1:
            names = ", ".join(f"`{row.workflow}`" for row in found)
            raise UsageError(f"project `{project}` has several schedules: {names}", hint="name the workflow, too")
        request = BackfillRequest(
            workflow=f"{found[0].project}/{found[0].workflow}",
            attempt_name=name or str(uuid4()),
            reprocess="completed",
            max_active_runs=1,
            **given,
        )
        done = create_backfill(here.store, here.clock, request)
    _show_created(done, request, as_json)


def _schedules(tx: Transaction, project: str, workflow: str | None) -> list[ListedSchedule]:
    try:
        return find_schedules(tx, project, workflow)
    except NotFoundError as error:
        if workflow is None and any(not row.is_gone for row in workflows_named(tx, project)):
            hint = f"`headrace backfill create {project} …` is for times of the workflow `{project}`"
            raise NotFoundError(error.message, hint=hint) from None
        raise


@command.command("list")
@click.argument("workflow", required=False)
@limit_option
@click.option("--before", type=int, metavar="ID", help="Begin before this one: the `next` of the page before.")
@json_option
@store_option
def list_command(workflow: str | None, limit: int, before: int | None, as_json: bool, url: str | None) -> None:
    """List backfills, newest first; of one WORKFLOW or of all."""
    with opened(url) as here, here.store.read() as tx:
        workflow_id = None if workflow is None else find_workflow(tx, workflow, may_be_gone=True).id
        rows = list_backfills(tx, workflow_id, before, limit)
    if as_json:
        following = rows[-1].id if len(rows) == limit else None
        print_json({"backfills": [describe(row) for row in rows], "next": following})
        return
    headers = ("backfill", "workflow", "state", "from", "to", "queued", "running", "succeeded", "failed", "canceled")
    print_table(headers, [_cells(row) for row in rows])


@command.command("pause")
@click.argument("backfill", type=int)
@json_option
@store_option
def pause_command(backfill: int, as_json: bool, url: str | None) -> None:
    """Start no more runs of BACKFILL; those that run go on."""
    with opened(url) as here:
        _report(pause_backfill(here.store, backfill), as_json)


@command.command("unpause")
@click.argument("backfill", type=int)
@json_option
@store_option
def unpause_command(backfill: int, as_json: bool, url: str | None) -> None:
    """Let a paused BACKFILL go on."""
    with opened(url) as here:
        _report(unpause_backfill(here.store, here.clock, backfill), as_json)


@command.command("cancel")
@click.argument("backfill", type=int)
@json_option
@store_option
def cancel_command(backfill: int, as_json: bool, url: str | None) -> None:
    """Cancel the runs of BACKFILL that have not started; those that run go on."""
    with opened(url) as here:
        _report(cancel_backfill(here.store, here.clock, backfill), as_json)


def _show_created(done: Backfilled, request: BackfillRequest, as_json: bool) -> None:
    if as_json:
        print_json(_describe_created(done))
        return
    print_table(("logical time", "what happens"), [(iso(one.slot.logical_time), _what(one)) for one in done.times])
    click.echo(_summary(done, request.is_dry_run))


def describe(row: BackfillRow) -> dict[str, object]:
    """A backfill as JSON shows it."""
    return {
        "backfill_id": row.id,
        "workflow": row.workflow,
        "project": row.project,
        "state": row.state,
        "from": instant(row.from_at),
        "to": instant(row.to_at),
        "reprocess_behavior": row.reprocess,
        "run_backwards": bool(row.is_backwards),
        "max_active_runs": row.max_active_runs,
        "params": json.loads(row.params),
        "created_at": instant(row.created_at),
        "canceled_at": instant(row.canceled_at),
        "runs": {
            "queued": row.queued,
            "running": row.running,
            "succeeded": row.succeeded,
            "failed": row.failed,
            "canceled": row.canceled,
        },
    }


def _describe_created(done: Backfilled) -> dict[str, object]:
    times = [
        {
            "logical_time": iso(one.slot.logical_time),
            "partition_key": one.slot.partition_key,
            "run_after": iso(one.slot.run_at),
            "outcome": one.outcome,
            "run_id": one.run_id,
        }
        for one in done.times
    ]
    return {"backfill": None if done.backfill is None else describe(done.backfill), "times": times}


def _what(one: Filled) -> str:
    return _OUTCOMES[one.outcome] + (f" (run {one.run_id})" if one.run_id is not None else "")


def _summary(done: Backfilled, is_dry_run: bool) -> str:
    counts = Counter(one.outcome for one in done.times)
    text = f"{counts['created']} new, {counts['again']} again, {counts['exists'] + counts['in_flight']} left out"
    if is_dry_run:
        return f"a dry run, nothing was done: {text}"
    return f"nothing to do: {text}" if done.backfill is None else f"backfill {done.backfill.id}: {text}"


def _cells(row: BackfillRow) -> tuple[object, ...]:
    counts = (row.queued, row.running, row.succeeded, row.failed, row.canceled)
    return row.id, row.workflow, row.state, shown(row.from_at), shown(row.to_at), *counts


def _report(row: BackfillRow, as_json: bool) -> None:
    if as_json:
        print_json(describe(row))
    else:
        waiting = "1 run waits" if row.queued == 1 else f"{row.queued} runs wait"
        running = "1 is running" if row.running == 1 else f"{row.running} are running"
        click.echo(f"backfill {row.id} of `{row.workflow}` is {row.state}: {waiting}, {running}")
