"""`headrace download`."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.archives.unpacking import unpack
from headrace.cli.opening import opened
from headrace.cli.options import store_option
from headrace.errors import StoreError, UsageError
from headrace.store import archive_content, find_archive, find_project


@click.command("download")
@click.argument("project")
@click.option("-o", "--output", metavar="DIR", help="A folder that is empty or not there; without it PROJECT.")
@click.option("-r", "--revision", help="Which revision; without it the newest.")
@store_option
def command(project: str, output: str | None, revision: str | None, url: str | None) -> None:
    """Fetch the files of a pushed PROJECT."""
    target = Path(output or project)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"expected an empty folder, but `{target}` holds something", hint="name another one with `-o`")
    with opened(url) as here, here.store.read() as tx:
        row = find_archive(tx, find_project(tx, project), revision)
        data = archive_content(tx, row.digest)
        limit = here.settings.limits.max_archive_bytes
    if data is None:
        raise StoreError(f"the archive of revision `{row.name}` is not in the store any more")
    target.mkdir(parents=True, exist_ok=True)
    unpack(data, target, max_bytes=limit)
    click.echo(f"revision `{row.name}` of project `{project}` is in `{target}`")
