"""Finds processes that go by the same name: nothing depends on names but people, who cannot tell the two apart."""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

NAMESAKES = Sql(
    """
    SELECT DISTINCT other.kind, other.name, other.place, other.pid, other.lease_until
    FROM agent AS mine JOIN agent AS other ON other.kind = mine.kind AND other.name = mine.name
    WHERE mine.place = :place AND mine.pid = :pid AND NOT mine.is_lost
      AND NOT (other.place = :place AND other.pid = :pid)
      AND NOT other.is_lost AND other.lease_until >= :now AND other.stopping_at IS NULL
    ORDER BY other.kind, other.place, other.pid
    """
)


class Namesake(NamedTuple):
    """Another process of the same kind and name."""

    kind: str
    name: str
    place: str
    pid: int
    lease_until: int

    @property
    def host(self) -> str:
        return self.place.partition("/")[0]


def namesakes(tx: Transaction, place: str, pid: int, now: int) -> list[Namesake]:
    """Who has a lease and the kind and name of something in this process, apart from those that are stopping."""
    return [Namesake(*row) for row in tx.run(NAMESAKES, {"place": place, "pid": pid, "now": now})]
