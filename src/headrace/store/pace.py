"""How agents of one machine keep up with their tasks, for those of their neighbours that may leave tasks to them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PACE = Sql(
    """
    SELECT agent.slots,
           (SELECT count(*) FROM task WHERE task.agent_id = agent.id
            AND task.state IN ('queued', 'running', 'restarting') AND task.queued_at < :since),
           (SELECT count(*) FROM task WHERE task.agent_id = agent.id
            AND task.state IN ('queued', 'running', 'restarting') AND task.queued_at >= :since),
           EXISTS (SELECT 1 FROM task WHERE state = 'scheduled' AND queue IN :queues[] AND scheduled_at < :since)
           OR EXISTS (SELECT 1 FROM errand WHERE state = 'waiting' AND queue IN :queues[]
                      AND coalesce(due_at, created_at) < :since)
    FROM agent
    WHERE agent.id IN :ids[] AND NOT agent.is_lost AND agent.stopping_at IS NULL AND agent.lease_until >= :now
    """
)


class Pace(NamedTuple):
    """What an agent has done within the last moment."""

    slots: int
    old: int
    """So many of its tasks were taken before, and …"""
    new: int
    """… so many since."""
    is_work_left: bool
    """Whether something is ready since before and nobody has taken it; a limit may be the reason."""

    @property
    def short_slots(self) -> int:
        """How many slots it has for short tasks."""
        return self.slots - self.old

    @property
    def leaves_work(self) -> bool:
        """Whether it takes nothing although something is there."""
        return self.is_work_left and self.new == 0


def paces(tx: Transaction, agent_ids: Collection[int], queues: Sequence[str], since: int, now: int) -> list[Pace]:
    """Of those of these agents that work. The moment that is looked at began at `since`."""
    parameters = {"ids": list(agent_ids), "queues": list(queues), "since": since, "now": now}
    return [Pace(slots, old, new, bool(is_left)) for slots, old, new, is_left in tx.run(PACE, parameters)]
