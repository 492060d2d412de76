"""`headrace assets list`, `events` and `emit`."""

from __future__ import annotations

import json

import click

from headrace.actions.assets import AssetView, emit, show_assets, show_events
from headrace.actions.wording import instant as shown
from headrace.cli.opening import opened
from headrace.cli.options import json_option, limit_option, parse_conf, store_option
from headrace.cli.printing import instant, print_json, print_table
from headrace.store import AssetEventRow


@click.group("assets")
def command() -> None:
    """List assets and their events, or say that one was updated."""


@command.command("list")
@limit_option
@click.option("--after", default=0, metavar="ID", help="Begin after this one: the `next` of the page before.")
@json_option
@store_option
def list_command(limit: int, after: int, as_json: bool, url: str | None) -> None:
    """List assets with who updates them and who waits for them."""
    with opened(url) as here:
        found = show_assets(here.store, after, limit)
    if as_json:
        following = found[-1].asset.id if len(found) == limit else None
        print_json({"assets": [_describe(one) for one in found], "next": following})
        return
    headers = ("asset", "uri", "updated by", "starts", "events", "last event")
    print_table(headers, [_cells(one) for one in found])


@command.command("events")
@click.argument("asset", required=False)
@limit_option
@click.option("--before", type=int, metavar="ID", help="Begin before this one: the `next` of the page before.")
@json_option
@store_option
def events_command(asset: str | None, limit: int, before: int | None, as_json: bool, url: str | None) -> None:
    """List events, newest first; of one ASSET or of all."""
    with opened(url) as here:
        rows = show_events(here.store, asset, before, limit)
    if as_json:
        following = rows[-1].id if len(rows) == limit else None
        print_json({"events": [_describe_event(row) for row in rows], "next": following})
        return
    headers = ("event", "asset", "partition", "at", "from", "extra")
    cells = [(row.id, row.asset, row.partition_key or "", shown(row.at), _source(row), row.extra) for row in rows]
    print_table(headers, cells)


@command.command("emit")
@click.argument("asset")
@click.option("--extra", metavar="JSON", help="What there is to say about the update, as a JSON object.")
@click.option("--new", "may_be_new", is_flag=True, help="Also if no workflow knows the asset.")
@click.option("--partition-key", metavar="KEY", help="The partition that was updated; without it all of the asset.")
@json_option
@store_option
def emit_command(
    asset: str, extra: str | None, may_be_new: bool, partition_key: str | None, as_json: bool, url: str | None
) -> None:
    """Say that ASSET was updated: what is scheduled on it starts."""
    with opened(url) as here:
        said = parse_conf(extra, "--extra")
        row = emit(here.store, here.clock, asset, said, may_be_new=may_be_new, partition_key=partition_key)
    if as_json:
        print_json(_describe_event(row))
    else:
        part = f"partition `{row.partition_key}` of " if row.partition_key is not None else ""
        click.echo(f"event {row.id}: {part}asset `{row.asset}` was updated")


def _describe(one: AssetView) -> dict[str, object]:
    row = one.asset
    return {
        "id": row.id,
        "name": row.name,
        "uri": row.uri,
        "group": row.group,
        "extra": json.loads(row.extra),
        "updated_by": one.users("outlet"),
        "read_by": one.users("inlet"),
        "starts": one.users("schedule"),
        "watchers": one.watchers,
        "events": row.events,
        "last_event_at": instant(row.last_event_at),
    }


def _cells(one: AssetView) -> tuple[object, ...]:
    row = one.asset
    last = shown(row.last_event_at) if row.last_event_at is not None else ""
    return row.name, row.uri, ", ".join(one.users("outlet")), ", ".join(one.users("schedule")), row.events, last


def _describe_event(row: AssetEventRow) -> dict[str, object]:
    return {
        "id": row.id,
        "asset": row.asset,
        "uri": row.uri,
        "at": instant(row.at),
        "extra": json.loads(row.extra),
        "aliases": json.loads(row.aliases),
        "workflow": row.workflow,
        "run_id": row.run_id,
        "run_key": row.run_key,
        "task": row.task,
        "map_index": row.map_index,
        "partition_key": row.partition_key,
    }


def _source(row: AssetEventRow) -> str:
    return "outside" if row.workflow is None else f"{row.workflow}.{row.task}"
