"""`headrace workflows`."""

from __future__ import annotations

import click

from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.store import list_workflows


@click.command("workflows")
@limit_option
@click.option("--after", default=0, metavar="ID", help="Begin after this one: the `next` of the page before.")
@json_option
@store_option
def command(limit: int, after: int, as_json: bool, url: str | None) -> None:
    """List workflows that files define now."""
    with opened(url) as here, here.store.read() as tx:
        rows = list_workflows(tx, after, limit)
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
