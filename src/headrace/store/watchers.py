"""Which assets are watched, and what their watchers tell.

A watcher is a row of `trigger` that no task waits for: triggerers take it under their lease as they take all others.
It is there as long as something that is not paused is scheduled on its asset, and is the same for all that name it.

A triggerer that got no answer to a commit tells the same events again. It has numbered them, and the store keeps the
last number beside the triggerer's lease rather than in the watcher's row: two triggerers may have something to tell of
the same watcher for a while, and each of them counts for itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.handoff import AssetEvent, Fired
from headrace.store.assets import emit_events
from headrace.store.database import Transaction
from headrace.store.definitions import Definitions, Version
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

WANTED = Sql(
    """
    SELECT asset_watcher.asset, asset_watcher.digest, min(asset_watcher.workflow_id)
    FROM asset_watcher JOIN workflow ON workflow.id = asset_watcher.workflow_id
    WHERE NOT workflow.is_gone AND EXISTS (
      SELECT 1 FROM asset_use
      JOIN workflow AS consumer ON consumer.id = asset_use.workflow_id
      JOIN schedule ON schedule.workflow_id = consumer.id
      WHERE asset_use.key = 'asset:' || asset_watcher.asset AND asset_use.role = 'schedule'
        AND NOT consumer.is_paused AND NOT consumer.is_gone AND schedule.disabled_at IS NULL
    )
    GROUP BY asset_watcher.asset, asset_watcher.digest
    """
)
PRESENT = Sql("SELECT asset, watcher, id FROM trigger WHERE asset IS NOT NULL")
INSERT = Sql(
    """
    INSERT INTO trigger (id, workflow_id, asset, watcher, path, arguments, priority, is_given_up, created_at)
    SELECT CAST(:id AS bigint), workflow_id, asset, digest, path, arguments, 1, false, CAST(:now AS bigint)
    FROM asset_watcher WHERE workflow_id = :workflow_id AND asset = :asset AND digest = :digest
    ON CONFLICT DO NOTHING
    """
)
DELETE = Sql("DELETE FROM trigger WHERE id IN :ids[] AND asset IS NOT NULL")
LAST_TOLD = Sql("SELECT last_told FROM agent WHERE id = :agent_id")
# Travels with the commit, so that one who freezes in the middle does not keep the lease from being renewed or taken.
COUNT = Sql(
    """
    UPDATE agent SET last_told = r.last_told
    FROM (SELECT * FROM ROWS(:rows)) AS r WHERE agent.id = r.id AND agent.last_told = r.before
    """,
    rows=(("id", "bigint"), ("before", "bigint"), ("last_told", "bigint")),
    changes_all=True,
)
WATCHED = Sql("SELECT id, asset FROM trigger WHERE id IN :ids[] AND asset IS NOT NULL")
CURRENT_VERSION = Sql("SELECT current_version_id FROM workflow WHERE id = :workflow_id")
WATCHERS = Sql("SELECT DISTINCT asset, name FROM asset_watcher WHERE asset IN :assets[] ORDER BY asset, name")


def has_watchers_to_change(tx: Transaction) -> bool:
    """Whether something is watched that should not be, or the other way round."""
    return {row[:2] for row in map(tuple, tx.run(WANTED))} != {row[:2] for row in map(tuple, tx.run(PRESENT))}


def keep_watchers(tx: Transaction, now: int) -> int:
    """Have everything watched that is to be, and nothing else; how many watchers were begun or ended."""
    wanted = {(asset, digest): workflow_id for asset, digest, workflow_id in tx.run(WANTED)}
    present = {(asset, digest): trigger_id for asset, digest, trigger_id in tx.run(PRESENT)}
    over = [present[one] for one in present.keys() - wanted.keys()]
    new = sorted(wanted.keys() - present.keys())
    if over:
        tx.change(DELETE, {"ids": over})
    for trigger_id, (asset, digest) in zip(RunGraph(tx, now).new_ids(len(new)), new, strict=True):
        named = {"workflow_id": wanted[asset, digest], "asset": asset, "digest": digest}
        tx.change(INSERT, {"id": trigger_id, "now": now, **named})
    if over or new:
        tx.tell()
    return len(over) + len(new)


def watching_workflow(tx: Transaction, workflow_id: int) -> Version:
    """The workflow whose file a watcher is in."""
    ((version_id,),) = tx.run(CURRENT_VERSION, {"workflow_id": workflow_id})
    return tx.shared(Definitions).version(tx, version_id)


def emit_watched(tx: Transaction, told: Sequence[Fired], agent_id: int, now: int) -> int:
    """Update the assets whose watchers have told something; those that are watched no longer are left alone.

    `agent_id`: the triggerer that tells, and has numbered the events. What it has told before changes nothing.
    """
    events = [fired for fired in told if fired.number and fired.error is None]
    if not events:
        return 0
    rows = tx.run(LAST_TOLD, {"agent_id": agent_id})
    # One that was gone for a day is forgotten, and with it how far it had come.
    last = rows[0][0] if rows else 0
    new = [fired for fired in events if fired.number > last]
    updates = _update_assets(tx, new, now)
    if new and rows:
        tx.write_each(COUNT, [{"id": agent_id, "before": last, "last_told": new[-1].number}])
    return updates


def _update_assets(tx: Transaction, events: Sequence[Fired], now: int) -> int:
    assets = dict(tx.run(WATCHED, {"ids": [fired.trigger_id for fired in events]})) if events else {}
    found = [fired for fired in events if fired.trigger_id in assets]
    if found:
        emit_events(tx, [(_event(assets[fired.trigger_id], fired), None) for fired in found], now)
    return len(found)


def _event(asset: str, fired: Fired) -> AssetEvent:
    return AssetEvent(asset=asset, extra={"from_trigger": True, "payload": fired.event})


def watcher_names(tx: Transaction, assets: Sequence[str]) -> dict[str, list[str]]:
    """What watches these assets, as far as files say so."""
    found: dict[str, list[str]] = {}
    for asset, name in tx.run(WATCHERS, {"assets": list(assets)}):
        found.setdefault(asset, []).append(name)
    return found
