"""Assets, the events that say they were updated, and the events that wait for a workflow's schedule.

Whoever emits an event queues it for the workflows that are scheduled on its asset and has their schedules looked at.
Whoever holds a schedule takes everything that is queued for it: an event is taken once, and none is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.definition import AssetUse
from headrace.handoff import AssetEvent
from headrace.store.database import Transaction
from headrace.store.news import News
from headrace.store.sql import Sql
from headrace.store.watcher_rows import save_watchers

_json = msgspec.json.Encoder()

DEFINE = Sql(
    """
    INSERT INTO asset (name, uri, asset_group, extra, created_at)
    SELECT name, uri, asset_group, extra, created_at FROM ROWS(:rows) WHERE true
    ON CONFLICT (name) DO UPDATE SET uri = excluded.uri, asset_group = excluded.asset_group, extra = excluded.extra
    """,
    rows=(("name", "text"), ("uri", "text"), ("asset_group", "text"), ("extra", "text"), ("created_at", "bigint")),
)
ENSURE = Sql(
    """
    INSERT INTO asset (name, uri, asset_group, extra, created_at)
    SELECT name, uri, asset_group, extra, created_at FROM ROWS(:rows) WHERE true
    ON CONFLICT (name) DO NOTHING
    """,
    rows=(("name", "text"), ("uri", "text"), ("asset_group", "text"), ("extra", "text"), ("created_at", "bigint")),
)
FORGET_USES = Sql("DELETE FROM asset_use WHERE workflow_id = :workflow_id")
INSERT_USES = Sql(
    """
    INSERT INTO asset_use (workflow_id, key, role, task, by_partition)
    SELECT workflow_id, key, role, task, by_partition FROM ROWS(:rows)
    """,
    rows=(("workflow_id", "bigint"), ("key", "text"), ("role", "text"), ("task", "text"), ("by_partition", "boolean")),
)
FORGET_PARTITIONS = Sql("DELETE FROM partition_event WHERE workflow_id = :workflow_id AND rules <> :rules")
INSERT_EVENT = Sql(
    """
    INSERT INTO asset_event (asset_id, at, extra, aliases, run_id, workflow, run_key, task, map_index, partition_key,
                             partition_at)
    SELECT asset.id, CAST(:now AS bigint), CAST(:extra AS text), CAST(:aliases AS text), run.id, workflow.name, run.key,
           CAST(:task AS text), CAST(:map_index AS integer), coalesce(CAST(:partition_key AS text), run.partition_key),
           CASE WHEN coalesce(CAST(:partition_key AS text), run.partition_key) = run.partition_key
                THEN run.partition_at END
    FROM asset
    LEFT JOIN attempt ON attempt.id = :attempt_id
    LEFT JOIN run ON run.id = attempt.run_id
    LEFT JOIN workflow ON workflow.id = run.workflow_id
    WHERE asset.name = :asset
    RETURNING id, partition_key
    """
)
# The order in which everybody locks schedules.
CONSUMERS = Sql(
    """
    SELECT schedule.workflow_id FROM schedule JOIN workflow ON workflow.id = schedule.workflow_id
    WHERE NOT workflow.is_paused AND NOT workflow.is_gone AND schedule.disabled_at IS NULL AND schedule.workflow_id IN (
      SELECT workflow_id FROM asset_use WHERE key IN :keys[] AND role = 'schedule'
    )
    ORDER BY schedule.workflow_id [[postgres: FOR UPDATE OF schedule]]
    """
)
QUEUE = Sql(
    """
    INSERT INTO asset_queue (workflow_id, event_id, key)
    SELECT workflow_id, CAST(:event_id AS bigint), key FROM asset_use
    WHERE key IN :keys[] AND role = 'schedule' AND workflow_id IN :workflow_ids[] AND by_partition = :by_partition
    """
)
WAKE = Sql(
    """
    UPDATE schedule SET next_run_at = :now
    WHERE workflow_id IN :workflow_ids[] AND (next_run_at IS NULL OR next_run_at > :now)
    """
)
QUEUED = Sql(
    """
    SELECT asset_queue.event_id, asset_queue.key, asset_event.at
    FROM asset_queue JOIN asset_event ON asset_event.id = asset_queue.event_id
    WHERE asset_queue.workflow_id = :workflow_id ORDER BY asset_queue.event_id
    """
)
TAKE = Sql("DELETE FROM asset_queue WHERE workflow_id = :workflow_id AND event_id IN :event_ids[]")
ATTACH = Sql(
    """
    INSERT INTO run_asset_event (run_id, event_id)
    SELECT CAST(:run_id AS bigint), id FROM asset_event WHERE id IN :event_ids[]
    """
)
_EVENT = """
    SELECT asset_event.id, asset.name, asset.uri, asset.asset_group, asset_event.extra, asset_event.at,
           asset_event.aliases, asset_event.run_id, asset_event.workflow, asset_event.run_key, asset_event.task,
           asset_event.map_index, asset_event.partition_key
    FROM asset_event JOIN asset ON asset.id = asset_event.asset_id
"""
TRIGGERING = Sql(
    f"""
    {_EVENT} JOIN run_asset_event ON run_asset_event.event_id = asset_event.id
    WHERE run_asset_event.run_id = :run_id ORDER BY asset_event.id
    """
)
EVENTS = Sql(
    f"""
    {_EVENT} WHERE (:asset = '' OR asset.name = :asset) AND asset_event.id < :below
      AND asset_event.at >= :after AND asset_event.at <= :before
      AND (:alias = '' OR asset_event.aliases LIKE :alias_pattern ESCAPE '!')
    ORDER BY asset_event.id DESC LIMIT :limit
    """
)
ASSETS = Sql(
    """
    SELECT asset.id, asset.name, asset.uri, asset.asset_group, asset.extra,
           (SELECT count(*) FROM asset_event WHERE asset_event.asset_id = asset.id),
           (SELECT max(asset_event.at) FROM asset_event WHERE asset_event.asset_id = asset.id)
    FROM asset WHERE asset.id > :after AND (:name = '' OR asset.name = :name) ORDER BY asset.id LIMIT :limit
    """
)
USES = Sql(
    """
    SELECT asset_use.key, asset_use.role, workflow.name, asset_use.task
    FROM asset_use JOIN workflow ON workflow.id = asset_use.workflow_id
    WHERE NOT workflow.is_gone AND asset_use.key IN :keys[] ORDER BY workflow.name, asset_use.task
    """
)
NAMES = Sql("SELECT name FROM asset")
FORGET_EVENTS = Sql(
    """
    DELETE FROM asset_event WHERE id IN (
      SELECT id FROM asset_event
      WHERE at < :before
        AND NOT EXISTS (SELECT 1 FROM asset_queue WHERE asset_queue.event_id = asset_event.id)
        AND NOT EXISTS (SELECT 1 FROM partition_event WHERE partition_event.event_id = asset_event.id)
        AND NOT EXISTS (SELECT 1 FROM run_asset_event WHERE run_asset_event.event_id = asset_event.id)
      ORDER BY id LIMIT :limit
    )
    """
)
LAST_INSTANT = 2**62


class AssetRow(NamedTuple):
    """An asset as lists show it."""

    id: int
    name: str
    uri: str
    group: str
    extra: str
    events: int
    last_event_at: int | None


class AssetEventRow(NamedTuple):
    """An update of an asset, with what caused it."""

    id: int
    asset: str
    uri: str
    group: str
    extra: str
    at: int
    aliases: str
    run_id: int | None
    workflow: str | None
    run_key: str | None
    task: str | None
    map_index: int | None
    partition_key: str | None


class AssetUseRow(NamedTuple):
    """Who is scheduled on an asset, updates it or reads it."""

    key: str
    role: str
    workflow: str
    task: str


class QueuedEvent(NamedTuple):
    """An event that waits until a workflow's schedule takes it, under one of the names that the schedule uses."""

    event_id: int
    key: str
    at: int


class Cause(NamedTuple):
    """The task that has updated an asset; without it somebody from outside has."""

    attempt_id: int
    task: str
    map_index: int


def event_key(kind: str, name: str) -> str:
    """What schedules know an event by: the asset itself, or an alias through which it came."""
    return f"{kind}:{name}"


def save_asset_uses(tx: Transaction, workflow_id: int, uses: Sequence[AssetUse], now: int) -> None:
    """Remember which assets a workflow names, and what its file says about them."""
    defined = {use.name: use for use in uses if use.kind == "asset" and use.uri}
    named = {use.name: use for use in uses if use.kind == "asset" and use.name not in defined}
    if defined:
        tx.write_each(DEFINE, [_asset_row(use, now) for _, use in sorted(defined.items())])
    if named:
        tx.write_each(ENSURE, [_asset_row(use, now) for _, use in sorted(named.items())])
    tx.write(FORGET_USES, {"workflow_id": workflow_id})
    rows = {(event_key(use.kind, use.name), use.role, use.task): use.by_partition for use in uses}
    if rows:
        tx.write_each(INSERT_USES, [_use_row(workflow_id, *row, by_partition) for row, by_partition in rows.items()])
    if not any(use.by_partition for use in uses):
        tx.write(FORGET_PARTITIONS, {"workflow_id": workflow_id, "rules": ""})
    save_watchers(tx, workflow_id, uses)


def _use_row(workflow_id: int, key: str, role: str, task: str, by_partition: bool) -> dict[str, Any]:
    return {"workflow_id": workflow_id, "key": key, "role": role, "task": task, "by_partition": by_partition}


def _asset_row(use: AssetUse | AssetEvent, now: int) -> dict[str, Any]:
    is_use = isinstance(use, AssetUse)
    name = use.name if isinstance(use, AssetUse) else use.asset
    return {
        "name": name,
        "uri": use.uri or name,
        "asset_group": use.group,
        "extra": _json.encode(use.extra).decode() if is_use else "{}",
        "created_at": now,
    }


def emit_events(tx: Transaction, events: Sequence[tuple[AssetEvent, Cause | None]], now: int) -> list[int]:
    """Record that assets were updated, and have the schedules looked at that wait for them. Returns the events' ids."""
    assets = {event.asset: event for event, _ in events}
    tx.write_each(ENSURE, [_asset_row(event, now) for _, event in sorted(assets.items())])
    keys = {key for event, _ in events for key in _keys(event)}
    consumers = [row[0] for row in tx.run(CONSUMERS, {"keys": sorted(keys)})]
    ids = [_emit(tx, event, cause, consumers, now) for event, cause in events]
    if consumers:
        tx.write(WAKE, {"workflow_ids": consumers, "now": now})
        tx.tell(News.PLANS)
    return ids


def _emit(tx: Transaction, event: AssetEvent, cause: Cause | None, consumers: list[int], now: int) -> int:
    parameters = {
        "asset": event.asset,
        "now": now,
        "extra": _json.encode(event.extra).decode(),
        "aliases": _json.encode(event.aliases).decode(),
        "attempt_id": cause.attempt_id if cause else 0,
        "task": cause.task if cause else None,
        "map_index": cause.map_index if cause else None,
        "partition_key": event.partition_key,
    }
    ((event_id, partition_key),) = tx.run(INSERT_EVENT, parameters)
    if consumers:
        queued = {"event_id": event_id, "keys": _keys(event), "workflow_ids": consumers}
        tx.write(QUEUE, {**queued, "by_partition": partition_key is not None})
    return int(event_id)


def _keys(event: AssetEvent) -> list[str]:
    return [event_key("asset", event.asset), *(event_key("alias", name) for name in event.aliases)]


def queued_events(tx: Transaction, workflow_id: int) -> list[QueuedEvent]:
    """What has come for a workflow's schedule and was not taken yet, oldest first."""
    return [QueuedEvent(*row) for row in tx.run(QUEUED, {"workflow_id": workflow_id})]


def take_events(tx: Transaction, workflow_id: int, event_ids: Sequence[int], run_id: int) -> None:
    """Give queued events to a run. The caller has locked the workflow's schedule."""
    ids = sorted(set(event_ids))
    tx.write(TAKE, {"workflow_id": workflow_id, "event_ids": ids})
    tx.write(ATTACH, {"run_id": run_id, "event_ids": ids})


def triggering_events(tx: Transaction, run_id: int) -> list[AssetEventRow]:
    """The events that started a run, oldest first."""
    return [AssetEventRow(*row) for row in tx.run(TRIGGERING, {"run_id": run_id})]


def list_asset_events(
    tx: Transaction,
    *,
    asset: str = "",
    alias: str = "",
    after: int = 0,
    before: int = LAST_INSTANT,
    below: int | None = None,
    limit: int = 50,
) -> list[AssetEventRow]:
    """Events, newest first: of one asset or of all, within a span of time, with ids below one."""
    escaped = "".join(f"!{letter}" if letter in "!%_" else letter for letter in _json.encode(alias).decode())
    parameters = {
        "asset": asset,
        "alias": alias,
        "alias_pattern": f"%{escaped}%",
        "after": after,
        "before": before,
        "below": below or LAST_INSTANT,
        "limit": limit,
    }
    return [AssetEventRow(*row) for row in tx.run(EVENTS, parameters)]


def list_assets(tx: Transaction, after: int = 0, limit: int = 50, name: str = "") -> list[AssetRow]:
    """Assets by id, beginning after one; or the one with this name."""
    return [AssetRow(*row) for row in tx.run(ASSETS, {"after": after, "limit": limit, "name": name})]


def asset_uses(tx: Transaction, names: Sequence[str]) -> list[AssetUseRow]:
    """Who uses these assets."""
    keys = [event_key("asset", name) for name in names]
    return [AssetUseRow(*row) for row in tx.run(USES, {"keys": keys})]


def asset_names(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.run(NAMES)]


def forget_events(tx: Transaction, before: int, limit: int) -> int:
    """Delete events that are older than an instant, unless a run was started by them or they still wait."""
    return tx.change(FORGET_EVENTS, {"before": before, "limit": limit})
