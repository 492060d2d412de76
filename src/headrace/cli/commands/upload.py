"""`headrace upload`."""

from __future__ import annotations

import uuid
from pathlib import Path

import click

from headrace.actions.push import push
from headrace.actions.sessions import parse_instant
from headrace.cli.commands.push import report, revision_option, schedule_options
from headrace.cli.opening import opened_or_begun
from headrace.cli.options import json_option, store_option
from headrace.errors import LoadError


@click.command("upload")
@click.argument("file")
@click.argument("project")
@revision_option
@schedule_options[0]
@json_option
@store_option
def command(
    file: str, project: str, revision: str | None, schedule_from: str | None, as_json: bool, url: str | None
) -> None:
    """Make FILE, an archive, the newest revision of PROJECT."""
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise LoadError(f"could not read `{file}`: {error.strerror}") from None
    since = None if schedule_from is None else parse_instant(schedule_from)
    with opened_or_begun(url) as here:
        name = revision or str(uuid.uuid4())
        pushed = push(here.store, here.clock, here.settings, project, name, data, schedule_from=since)
    report(pushed, as_json)
