"""Who of several processes answers news of which one answer is enough.

News reach everybody who waits for them. If all answered at once, every task that becomes ready would cost as many
transactions as there are agents, and the one that takes it would wait for all the others. So those whose turn is not
now wait a moment, and look whether anything is left for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PLACE = Sql(
    """
    SELECT count(*), coalesce(sum(CASE WHEN id < :id THEN 1 ELSE 0 END), 0) FROM agent
    WHERE kind = :kind AND NOT is_lost AND stopping_at IS NULL AND lease_until >= :now
    """
)
WORKING = Sql(
    """
    SELECT id, place, queues FROM agent
    WHERE kind = 'agent' AND NOT is_lost AND stopping_at IS NULL AND lease_until >= :now ORDER BY id
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
    """The place of a scheduler in the order that all schedulers agree on, as far as they know each other."""

    place: int = 0
    of: int = 1
    """How many there are, itself included."""


class AgentTurn(NamedTuple):
    """The place of an agent in the order that all agents agree on, as far as they know each other.

    Machines take turns to be the first. Of the agents of one machine that serve the same queues the earliest comes
    first, so that the others have little to do while it has room: they would only load the same files again.
    """

    neighbours: tuple[int, ...] = ()
    """Those of its machine and its queues that come before it, the earliest first."""
    before: int = 0
    """So many come before it whichever machine is the first, …"""
    place: int = 0
    """… and its place is this one among those that take turns with it, …"""
    peers: int = 1
    """… which are so many, itself included."""
    of: int = 1
    """How many agents there are."""

    @property
    def is_alone(self) -> bool:
        return self.of == 1

    def seconds_until_look(self, told: Told, slots: int) -> float:
        """How long an agent with so many slots leaves the tasks to others.

        As many agents as the tasks need look at once. The order begins each time with another machine.
        """
        if told.tasks is None:
            return 0.0
        agents_needed = -(-told.tasks // slots)
        others_left = self.before + (self.place + told.number) % self.peers - agents_needed + 1
        return max(0, others_left) * min(STEP_SECONDS, LAST_SECONDS / self.of)


def agent_turn(agent_id: int, agents: Sequence[tuple[int, str, str]]) -> AgentTurn:
    """The place of an agent among these: their ids in order, each with its machine and its queues.

    One that was given up and does not know it is not among them, and the first.
    """
    homes: dict[tuple[str, str], list[int]] = defaultdict(list)
    for other_id, place, queues in agents:
        homes[place, queues].append(other_id)
    own = next((ids for ids in homes.values() if agent_id in ids), None)
    if own is None:
        return AgentTurn(of=len(agents) + 1)
    rank = own.index(agent_id)
    peers = sorted(ids[rank] for ids in homes.values() if len(ids) > rank)
    before = sum(min(len(ids), rank) for ids in homes.values())
    return AgentTurn(tuple(own[:rank]), before, peers.index(agent_id), len(peers), len(agents))


def find_agent_turn(tx: Transaction, agent_id: int, now: int) -> AgentTurn:
    """The place of an agent among those that work."""
    return agent_turn(agent_id, [(row[0], row[1], row[2]) for row in tx.run(WORKING, {"now": now})])


def find_turn(tx: Transaction, kind: str, agent_id: int, now: int) -> Turn:
    """The place of a process among those of its kind that work."""
    ((count, before),) = tx.run(PLACE, {"kind": kind, "id": agent_id, "now": now})
    return Turn(int(before), max(int(count), int(before) + 1))
