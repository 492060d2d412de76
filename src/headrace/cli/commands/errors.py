"""`headrace errors`."""

from __future__ import annotations

import click

from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, store_option
from headrace.cli.printing import instant, print_json
from headrace.clock import to_micros
from headrace.store import SourceErrorRow, UnsavedFolder, list_source_errors, unsaved_folders


@click.command("errors")
@limit_option
@json_option
@store_option
def command(limit: int, as_json: bool, url: str | None) -> None:
    """List files that could not be loaded, and folders that are not saved."""
    with opened(url) as here, here.store.read() as tx:
        folders = [_as_error(one) for one in unsaved_folders(tx, to_micros(here.clock.now()))]
        rows = list_source_errors(tx, limit=limit)
    if as_json:
        following = rows[-1].id if len(rows) == limit else None
        errors = [{**row._asdict(), "at": instant(row.at)} for row in (*folders, *rows)]
        print_json({"errors": errors, "next": following})
        return
    for row in (*folders, *rows):
        place = (f"{row.root}/{row.file}" if row.file else row.root) + (f":{row.line}" if row.line else "")
        click.echo(f"{place}: {row.message}")
        if row.hint:
            click.echo(f"  hint: {row.hint}")


def _as_error(unsaved: UnsavedFolder) -> SourceErrorRow:
    """A whole folder, as a file without a name. It is no row of the store: it is over when its server stops."""
    folder, error = unsaved
    return SourceErrorRow(0, folder.project, folder.root, "", None, error.message, error.hint, None, folder.since)
