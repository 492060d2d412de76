"""Assets: look at them, and say from outside that one was updated."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.clock import Clock, to_micros
from headrace.errors import NotFoundError, UsageError, did_you_mean
from headrace.handoff import AssetEvent
from headrace.store import (
    AssetEventRow,
    AssetRow,
    AssetUseRow,
    Store,
    Transaction,
    asset_names,
    asset_uses,
    emit_events,
    list_asset_events,
    list_assets,
    watcher_names,
)
from headrace.timetable import KeyMistake, check_key


class AssetView(NamedTuple):
    """An asset with who updates it, who waits for it and what watches it."""

    asset: AssetRow
    uses: list[AssetUseRow]
    watchers: list[str]

    def users(self, role: str) -> list[str]:
        """Names of the workflows, and of their tasks, that use it in this role."""
        found = [use for use in self.uses if use.role == role]
        return [f"{use.workflow}.{use.task}" if use.task else use.workflow for use in found]


def show_assets(store: Store, after: int = 0, limit: int = 50) -> list[AssetView]:
    """Assets by id, beginning after one."""
    with store.read() as tx:
        rows = list_assets(tx, after, limit)
        names = [row.name for row in rows]
        uses = asset_uses(tx, names) if rows else []
        watchers = watcher_names(tx, names) if rows else {}
    return [
        AssetView(row, [use for use in uses if use.key == f"asset:{row.name}"], watchers.get(row.name, []))
        for row in rows
    ]


def show_events(store: Store, name: str | None, before: int | None = None, limit: int = 50) -> list[AssetEventRow]:
    """Events of one asset or of all, newest first."""
    with store.read() as tx:
        if name is not None:
            _check_known(tx, name)
        return list_asset_events(tx, asset=name or "", below=before, limit=limit)


def emit(
    store: Store,
    clock: Clock,
    name: str,
    extra: dict[str, Any],
    *,
    may_be_new: bool = False,
    partition_key: str | None = None,
) -> AssetEventRow:
    """Say that an asset, or a partition of it, was updated.

    What is scheduled on it starts at once, if that is all it waits for.
    """
    event = AssetEvent(asset=name, extra=extra, partition_key=_checked(partition_key))

    def work(tx: Transaction) -> AssetEventRow:
        if not may_be_new:
            _check_known(tx, name)
        emit_events(tx, [(event, None)], to_micros(clock.now()))
        return list_asset_events(tx, asset=name, limit=1)[0]

    return store.transact(work)


def _checked(partition_key: str | None) -> str | None:
    try:
        return None if partition_key is None else check_key(partition_key)
    except KeyMistake as mistake:
        raise UsageError(str(mistake)) from None


def _check_known(tx: Transaction, name: str) -> None:
    if not list_assets(tx, name=name, limit=1):
        hint = did_you_mean(name, asset_names(tx)) or "`headrace assets list` lists them"
        raise NotFoundError(f"there is no asset `{name}`", hint=hint)
