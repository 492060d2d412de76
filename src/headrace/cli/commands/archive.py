"""`headrace archive`."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.actions.push import pack_folder
from headrace.errors import LoadError
from headrace.settings import load_settings


@click.command("archive")
@click.option("--project", "folder", default=".", metavar="DIR", help="The folder; without it the current one.")
@click.option("-o", "--output", default="archive.tar.gz", show_default=True, metavar="FILE", help="Where it goes.")
@click.option("--copy-outgoing-symlinks", "copies_links", is_flag=True, help="Take what links outside lead to.")
def command(folder: str, output: str, copies_links: bool) -> None:
    """Put the files of a project into an archive, for `headrace upload`."""
    data = pack_folder(load_settings(), Path(folder), copies_outgoing_links=copies_links)
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise LoadError(f"could not write `{output}`: {error.strerror}") from None
    click.echo(f"wrote {len(data)} bytes to `{output}`")
