"""Memos: small values that outlive a try. A task keeps them for its run, an asset over all runs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

_OWNER = "kind = :kind AND owner_id = :owner_id AND task = :task AND map_index = :map_index"
GET = Sql(f"SELECT document FROM memo WHERE {_OWNER} AND name = :name AND (expires_at IS NULL OR expires_at > :now)")
LIST = Sql(
    f"""
    SELECT name, document, changed_at, expires_at FROM memo
    WHERE {_OWNER} AND (expires_at IS NULL OR expires_at > :now) ORDER BY name
    """
)
SET = Sql(
    """
    INSERT INTO memo (kind, owner_id, task, map_index, name, document, changed_at, expires_at)
    VALUES (:kind, :owner_id, :task, :map_index, :name, :document, :now, :expires_at)
    ON CONFLICT (kind, owner_id, task, map_index, name)
    DO UPDATE SET document = excluded.document, changed_at = excluded.changed_at, expires_at = excluded.expires_at
    """
)
DELETE = Sql(f"DELETE FROM memo WHERE {_OWNER} AND (CAST(:name AS text) IS NULL OR name = :name)")
FORGET_EXPIRED = Sql("DELETE FROM memo WHERE expires_at <= :now")
# By its name first. A reference by uri leaves a row behind whose name is the uri; it stands for the real one.
ASSET = Sql(
    """
    SELECT id FROM asset WHERE name = :name OR uri = :name
    ORDER BY CASE WHEN name <> uri AND name = :name THEN 0 WHEN name <> uri THEN 1 ELSE 2 END, id
    """
)


class MemoOwner(NamedTuple):
    """Whose memos they are: those of one task (or instance) in a run, over all its tries, or those of an asset."""

    kind: Literal["task", "asset"]
    owner_id: int
    """task: its run · asset: the asset."""
    task: str = ""
    map_index: int = -1


class MemoRow(NamedTuple):
    """One memo as lists show it."""

    name: str
    document: str
    changed_at: int
    expires_at: int | None


def asset_owner(tx: Transaction, name: str) -> MemoOwner | None:
    """The asset with this name or, if none has it, with this uri."""
    rows = tx.run(ASSET, {"name": name})
    return MemoOwner("asset", rows[0][0]) if rows else None


def get_memo(tx: Transaction, owner: MemoOwner, name: str, now: int) -> str | None:
    """The JSON document that is kept under a name and has not expired."""
    rows = tx.run(GET, {**owner._asdict(), "name": name, "now": now})
    return rows[0][0] if rows else None


def list_memos(tx: Transaction, owner: MemoOwner, now: int) -> list[MemoRow]:
    """Everything that is kept there, by name."""
    return [MemoRow(*row) for row in tx.run(LIST, {**owner._asdict(), "now": now})]


def set_memo(tx: Transaction, owner: MemoOwner, name: str, document: str, now: int, expires_at: int | None) -> None:
    """Keep a JSON document under a name, in place of what was there."""
    fields: dict[str, Any] = {"name": name, "document": document, "now": now, "expires_at": expires_at}
    tx.change(SET, owner._asdict() | fields)


def delete_memos(tx: Transaction, owner: MemoOwner, name: str | None = None) -> int:
    """Forget what is kept under a name, or everything; how many there were."""
    return tx.change(DELETE, {**owner._asdict(), "name": name})


def forget_expired_memos(tx: Transaction, now: int) -> int:
    return tx.change(FORGET_EXPIRED, {"now": now})
