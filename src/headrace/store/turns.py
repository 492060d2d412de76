"""Who of several processes answers news of which one answer is enough.

News reach everybody who waits for them. If all answered at once, every task that becomes ready would cost as many
transactions as there are agents, and the one that takes it would wait for all the others. So those whose turn is not
now wait a moment, and look whether anything is left for them.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PLACE = Sql(
    """
    SELECT count(*), coalesce(sum(CASE WHEN id < :id THEN 1 ELSE 0 END), 0) FROM agent
    WHERE kind = :kind AND NOT is_lost AND stopping_at IS NULL AND lease_until >= :now
    """
)

STEP_SECONDS = 0.005
"""How much later each agent looks than the one before it: about as long as it takes to take a task …"""
LAST_SECONDS = 0.025
"""… but however many there are, all of them have looked by then: those who were first may have no slot free."""


class Told(NamedTuple):
    """What a notification says beside its kind."""

    tasks: int | None = None
    """So many were left to be taken; None: nobody has counted."""
    number: int = 0
    """Any, but the same for everybody who hears of it."""


class Turn(NamedTuple):
    """The place of a process in the order that all processes of its kind agree on, as far as they know each other."""

    place: int = 0
    of: int = 1
    """How many there are, itself included."""

    @property
    def is_alone(self) -> bool:
        return self.of == 1

    def seconds_until_look(self, told: Told, slots: int) -> float:
        """How long an agent with so many slots leaves the tasks to others.

        As many agents as the tasks need look at once. The order begins each time with another one.
        """
        if told.tasks is None:
            return 0.0
        agents_needed = -(-told.tasks // slots)
        others_left = (self.place + told.number) % self.of - agents_needed + 1
        return max(0, others_left) * min(STEP_SECONDS, LAST_SECONDS / self.of)


def find_turn(tx: Transaction, kind: str, agent_id: int, now: int) -> Turn:
    """The place of a process among those of its kind that work."""
    ((count, before),) = tx.run(PLACE, {"kind": kind, "id": agent_id, "now": now})
    return Turn(int(before), max(int(count), int(before) + 1))
