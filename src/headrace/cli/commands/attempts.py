"""`headrace attempts`."""

from __future__ import annotations

import click

from headrace.actions.finding import find_run
from headrace.cli.blocks import describe_attempt, print_attempt, print_count
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import print_json
from headrace.store import AttemptRow, Definitions, RunRow, Transaction, list_attempts, list_runs


@click.command("attempts")
@click.argument("run", required=False)
@click.option("-i", "--last-id", type=int, metavar="ID", help="Begin before this run.")
@click.option(
    "-s", "--page-size", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many runs."
)
@json_option
@store_option
def command(run: str | None, last_id: int | None, page_size: int, as_json: bool, url: str | None) -> None:
    """List the attempts of RUN, the one attempt `RUN.NUMBER`, or without it the newest attempt of each run."""
    with opened(url, may_be_private=True) as here, here.store.read() as tx:
        found = _of_all(tx, last_id, page_size) if run is None else _of_one(tx, run)
        zones = [tx.shared(Definitions).version(tx, one.version_id).workflow.timezone for _, one in found]
    if as_json:
        print_json({"attempts": [_describe(row, one) for row, one in found]})
        return
    click.echo("Session attempts:")
    for (row, attempt), zone in zip(found, zones, strict=True):
        print_attempt(row, attempt, zone)
    print_count(len(found))


def _of_all(tx: Transaction, before: int | None, limit: int) -> list[tuple[RunRow, AttemptRow]]:
    return [(row, list_attempts(tx, row.id)[0]) for row in list_runs(tx, before=before, limit=limit)]


def _of_one(tx: Transaction, name: str) -> list[tuple[RunRow, AttemptRow]]:
    row = find_run(tx, name)
    return [(row, one) for one in list_attempts(tx, row.id) if "." not in name or one.id == row.attempt_id]


def _describe(row: RunRow, attempt: AttemptRow) -> dict[str, object]:
    return {"project": row.project, "workflow": row.workflow, **describe_attempt(attempt)}
