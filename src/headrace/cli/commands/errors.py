"""`headrace errors`."""

from __future__ import annotations

import click

from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json
from headrace.store import list_source_errors


@click.command("errors")
@limit_option
@json_option
@store_option
def command(limit: int, as_json: bool, url: str | None) -> None:
    """List files that could not be loaded."""
    with opened(url) as here, here.store.read() as tx:
        rows = list_source_errors(tx, limit=limit)
    if as_json:
        following = rows[-1].id if len(rows) == limit else None
        print_json({"errors": [{**row._asdict(), "at": instant(row.at)} for row in rows], "next": following})
        return
    for row in rows:
        place = f"{row.root}/{row.file}" + (f":{row.line}" if row.line else "")
        click.echo(f"{place}: {row.message}")
        if row.hint:
            click.echo(f"  hint: {row.hint}")
