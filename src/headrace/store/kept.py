"""Variables, connections and secrets as rows: whoever seals and opens their documents is elsewhere."""

from __future__ import annotations

from typing import Literal, NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

KeptKind = Literal["variable", "connection", "secret"]

_COLUMNS = "kind, scope, name, document, key_id, description, changed_at"
GET = Sql(f"SELECT {_COLUMNS} FROM kept WHERE kind = :kind AND scope = :scope AND name = :name")
LIST = Sql(f"SELECT {_COLUMNS} FROM kept WHERE kind = :kind AND scope = :scope ORDER BY name")
NAMES = Sql("SELECT name FROM kept WHERE kind = :kind AND scope = :scope ORDER BY name")
SET = Sql(
    f"""
    INSERT INTO kept ({_COLUMNS})
    VALUES (:kind, :scope, :name, :document, :key_id, :description, :changed_at)
    ON CONFLICT (kind, scope, name) DO UPDATE SET document = excluded.document, key_id = excluded.key_id,
      description = COALESCE(excluded.description, kept.description), changed_at = excluded.changed_at
    """
)
DELETE = Sql("DELETE FROM kept WHERE kind = :kind AND scope = :scope AND name = :name")
SEALED_OTHERWISE = Sql(
    f"""
    SELECT {_COLUMNS} FROM kept WHERE key_id IS NULL OR key_id <> :key_id
    ORDER BY kind, scope, name [[postgres: FOR UPDATE]]
    """
)
RESEAL = Sql(
    """
    UPDATE kept SET document = :document, key_id = :key_id WHERE kind = :kind AND scope = :scope AND name = :name
    """
)
KEY_IDS = Sql("SELECT DISTINCT key_id FROM kept WHERE key_id IS NOT NULL ORDER BY key_id")


class KeptRow(NamedTuple):
    """One variable, connection or secret, sealed or not."""

    kind: KeptKind
    scope: str
    name: str
    document: str
    key_id: str | None
    """The key that it is sealed with; None: `document` is JSON as it stands."""
    description: str | None
    changed_at: int


def get_kept(tx: Transaction, kind: KeptKind, scope: str, name: str) -> KeptRow | None:
    rows = tx.run(GET, {"kind": kind, "scope": scope, "name": name})
    return KeptRow(*rows[0]) if rows else None


def list_kept(tx: Transaction, kind: KeptKind, scope: str = "") -> list[KeptRow]:
    return [KeptRow(*row) for row in tx.run(LIST, {"kind": kind, "scope": scope})]


def kept_names(tx: Transaction, kind: KeptKind, scope: str = "") -> list[str]:
    return [row[0] for row in tx.run(NAMES, {"kind": kind, "scope": scope})]


def set_kept(tx: Transaction, row: KeptRow) -> None:
    """Create or replace it; a description of None leaves the old one."""
    tx.change(SET, row._asdict())


def delete_kept(tx: Transaction, kind: KeptKind, scope: str, name: str) -> bool:
    return tx.change(DELETE, {"kind": kind, "scope": scope, "name": name}) == 1


def kept_under_other_keys(tx: Transaction, key_id: str) -> list[KeptRow]:
    """What is not sealed with this key; nobody else changes it until the transaction ends."""
    return [KeptRow(*row) for row in tx.run(SEALED_OTHERWISE, {"key_id": key_id})]


def reseal(tx: Transaction, row: KeptRow) -> None:
    """Write the same thing under another key."""
    tx.change(RESEAL, row._asdict())


def used_key_ids(tx: Transaction) -> set[str]:
    """The keys that something is sealed with."""
    return {row[0] for row in tx.run(KEY_IDS)}
