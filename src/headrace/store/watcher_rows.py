"""What files say about who watches their assets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.definition import AssetUse, Watcher, to_json
from headrace.store.database import Transaction
from headrace.store.sql import Sql

FORGET = Sql("DELETE FROM asset_watcher WHERE workflow_id = :workflow_id")
INSERT = Sql(
    """
    INSERT INTO asset_watcher (workflow_id, asset, digest, name, path, arguments)
    SELECT workflow_id, asset, digest, name, path, arguments FROM ROWS(:rows)
    """,
    rows=(
        ("workflow_id", "bigint"), ("asset", "text"), ("digest", "text"), ("name", "text"), ("path", "text"),
        ("arguments", "text"),
    ),
)  # fmt: skip


def save_watchers(tx: Transaction, workflow_id: int, uses: Sequence[AssetUse]) -> None:
    """Remember which watchers a workflow gives to its assets."""
    tx.write(FORGET, {"workflow_id": workflow_id})
    rows = {
        (use.name, digest_of(watcher)): _row(workflow_id, use.name, watcher) for use in uses for watcher in use.watchers
    }
    if rows:
        tx.write_each(INSERT, list(rows.values()))


def digest_of(watcher: Watcher) -> str:
    """The same for watchers that do the same, whatever they are called."""
    return hashlib.sha256(to_json([watcher.trigger, watcher.arguments])).hexdigest()


def _row(workflow_id: int, asset: str, watcher: Watcher) -> dict[str, Any]:
    return {
        "workflow_id": workflow_id,
        "asset": asset,
        "digest": digest_of(watcher),
        "name": watcher.name,
        "path": watcher.trigger,
        "arguments": msgspec.json.encode(watcher.arguments).decode(),
    }
