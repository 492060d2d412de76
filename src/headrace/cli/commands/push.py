"""`headrace push`."""

from __future__ import annotations

import uuid
from pathlib import Path

import click

from headrace.actions.push import Pushed, pack_folder, push
from headrace.actions.sessions import parse_instant
from headrace.cli.blocks import print_block, shown_time
from headrace.cli.opening import opened_or_begun
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import instant, print_json

revision_option = click.option("-r", "--revision", help="What the revision is called; without it by a random name.")
schedule_options = (
    click.option("--schedule-from", metavar="TIME", help="From when on new schedules start; without it from now on."),
    click.option("--clear-schedule", multiple=True, metavar="WORKFLOW", help="Begin its schedule anew."),
    click.option("--clear-schedule-all", is_flag=True, help="Begin all schedules anew."),
)


@click.command("push")
@click.argument("project")
@click.option("--project", "folder", default=".", metavar="DIR", help="The folder; without it the current one.")
@revision_option
@schedule_options[0]
@schedule_options[1]
@schedule_options[2]
@click.option("--copy-outgoing-symlinks", "copies_links", is_flag=True, help="Take what links outside lead to.")
@json_option
@store_option
def command(
    project: str,
    folder: str,
    revision: str | None,
    schedule_from: str | None,
    clear_schedule: tuple[str, ...],
    clear_schedule_all: bool,
    copies_links: bool,
    as_json: bool,
    url: str | None,
) -> None:
    """Make a folder the newest revision of PROJECT: files, workflows and schedules, all at once or not at all."""
    with opened_or_begun(url) as here:
        data = pack_folder(here.settings, Path(folder), copies_outgoing_links=copies_links)
        pushed = push(
            here.store,
            here.clock,
            here.settings,
            project,
            revision or str(uuid.uuid4()),
            data,
            schedule_from=None if schedule_from is None else parse_instant(schedule_from),
            cleared_schedules=None if clear_schedule_all else clear_schedule,
        )
    report(pushed, as_json)


def report(pushed: Pushed, as_json: bool) -> None:
    """Say what was pushed."""
    for warning in pushed.warnings:
        click.echo(f"warning: {warning}", err=True)
    project, revision = pushed.project, pushed.project.revision
    assert revision is not None, "pushed a moment ago"
    if as_json:
        print_json(
            {
                "project": project.name,
                "project_id": project.id,
                "revision": revision.name,
                "digest": revision.digest,
                "bytes": revision.size,
                "pushed_at": instant(revision.created_at),
                "workflows": pushed.workflows,
            }
        )
        return
    click.echo("Uploaded:")
    print_block(
        [
            ("id", project.id),
            ("name", project.name),
            ("revision", revision.name),
            ("archive type", "db"),
            ("project created at", shown_time(project.created_at)),
            ("revision updated at", shown_time(revision.created_at)),
            ("workflows", ", ".join(pushed.workflows)),
        ]
    )
