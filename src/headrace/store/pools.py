"""Pools: named numbers of slots that the tasks of all workflows share."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.store.database import Transaction
from headrace.store.sql import Sql

UNLIMITED = -1
"""The slots of a pool that never holds a task back."""

SET = Sql(
    """
    INSERT INTO pool (name, slots, includes_deferred)
    VALUES (:name, :slots, coalesce(CAST(:includes_deferred AS boolean), :no))
    ON CONFLICT (name) DO UPDATE SET slots = excluded.slots,
      includes_deferred = coalesce(CAST(:includes_deferred AS boolean), pool.includes_deferred)
    """
)
ADD = Sql("INSERT INTO pool (name, slots, includes_deferred) VALUES (:name, :slots, :no) ON CONFLICT (name) DO NOTHING")
DELETE = Sql("DELETE FROM pool WHERE name = :name")


def set_pool(tx: Transaction, name: str, slots: int, includes_deferred: bool | None = None) -> None:
    """Create a pool or give it another number of slots; below zero: without limit.

    `includes_deferred`: whether tasks that wait for a trigger take slots; None leaves it as it is, at first False.
    """
    tx.change(SET, {"name": name, "slots": slots, "includes_deferred": includes_deferred, "no": False})
    tx.tell()


def add_missing_pools(tx: Transaction, names: Iterable[str]) -> None:
    """Create those of these pools that do not exist, without a limit."""
    for name in sorted(set(names)):
        tx.change(ADD, {"name": name, "slots": UNLIMITED, "no": False})


def delete_pool(tx: Transaction, name: str) -> bool:
    """Delete a pool. Tasks that name it wait until it is there again. False: there was none."""
    return tx.change(DELETE, {"name": name}) == 1
