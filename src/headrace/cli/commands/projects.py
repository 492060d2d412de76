"""`headrace projects`."""

from __future__ import annotations

import click

from headrace.cli.blocks import print_block, print_count, shown_time
from headrace.cli.opening import opened
from headrace.cli.options import json_option, store_option
from headrace.cli.printing import instant, print_json
from headrace.store import ArchiveRow, ProjectRow, find_project, list_archives, list_projects


@click.command("projects")
@click.argument("name", required=False)
@json_option
@store_option
def command(name: str | None, as_json: bool, url: str | None) -> None:
    """List projects, or show one by its NAME, with its revisions."""
    with opened(url) as here, here.store.read() as tx:
        rows = list_projects(tx) if name is None else [find_project(tx, name)]
        revisions = list_archives(tx, rows[0].id) if name is not None else []
    if as_json:
        described = [_describe(row) for row in rows]
        if name is not None:
            described[0]["revisions"] = [_describe_revision(one) for one in revisions]
        print_json({"projects": described} if name is None else described[0])
        return
    click.echo("Projects:")
    for row in rows:
        print_block(_pairs(row))
    if revisions:
        click.echo("Revisions:")
        for one in revisions:
            click.echo(f"  {one.name}  {shown_time(one.created_at)}  {one.size} bytes")
        click.echo()
    print_count(len(rows))


def _pairs(row: ProjectRow) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = [("name", row.name), ("id", row.id)]
    if row.revision is None:
        pairs.append(("folder", row.root))
    else:
        pairs += [("revision", row.revision.name), ("archive type", "db")]
    pairs.append(("project created at", shown_time(row.created_at)))
    if row.revision is not None:
        pairs.append(("revision updated at", shown_time(row.revision.created_at)))
    return pairs


def _describe(row: ProjectRow) -> dict[str, object]:
    revision = None if row.revision is None else _describe_revision(row.revision)
    folder = row.root or None
    return {
        "project_id": row.id,
        "name": row.name,
        "folder": folder,
        "created_at": instant(row.created_at),
        "revision": revision,
    }


def _describe_revision(row: ArchiveRow) -> dict[str, object]:
    return {"name": row.name, "digest": row.digest, "bytes": row.size, "pushed_at": instant(row.created_at)}
