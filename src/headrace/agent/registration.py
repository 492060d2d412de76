"""An agent's row in the store: what others know of it, and until when they believe that it lives."""

from __future__ import annotations

import logging
import os
from collections import Counter

from headrace.agent.options import AgentOptions
from headrace.clock import Clock, to_micros
from headrace.errors import StoreError
from headrace.processes import place
from headrace.store import (
    AgentTurn,
    Store,
    Transaction,
    extend_lease,
    find_agent_turn,
    give_up_dead_neighbours,
    register,
    rescue_everything,
    resign,
)

_log = logging.getLogger("headrace.agent")


class Registration:
    """`announce` takes a new row with a new lease, `extend` makes the lease last longer, `resign` gives both back.

    Once `begin_to_stop` was called, both say that the agent takes no more tasks.
    """

    def __init__(self, store: Store, clock: Clock, name: str, options: AgentOptions) -> None:
        self._store = store
        self._clock = clock
        self._name = name
        self._options = options
        self._lease_micros = round(options.lease_seconds * 1_000_000)
        self._lease_until = 0
        self._stopping_at: int | None = None
        self.id = 0
        self.turn = AgentTurn()
        """As it was when the lease was last renewed."""

    @property
    def has_run_out(self) -> bool:
        """Whether others may believe that the agent is gone."""
        return self._now() > self._lease_until

    def announce(self) -> None:
        """Be a new agent to all others."""
        self.id, self.turn = self._store.transact(self._announce)
        self._lease_until = self._now() + self._lease_micros

    def rescue(self) -> None:
        """Free what those held whom `announce` gave up: without a scheduler, nobody else would."""
        try:
            rescued, _ = rescue_everything(self._store, self._now())
        except StoreError as error:
            later = "a scheduler or the next agent that starts does it"
            _log.warning("could not rescue the tasks of agents that are gone (%s): %s", later, error.message)
            return
        for agent, count in Counter(one.agent for one in rescued).items():
            tasks = "its task" if count == 1 else f"each of its {count} tasks"
            _log.warning("agent `%s` is gone: %s is tried again or fails by its own settings", agent, tasks)

    def extend(self) -> bool:
        """Make the lease last longer. False: others were told that the agent is gone. Any thread may call it."""
        agent_id = self.id
        self._lease_until = self._now() + self._lease_micros
        is_held, self.turn = self._store.transact(lambda tx: self._extend(tx, agent_id))
        # It may have begun anew meanwhile.
        return is_held or agent_id != self.id

    def begin_to_stop(self) -> None:
        """Have others told, from the next renewal on, that the agent takes no more tasks."""
        self._stopping_at = self._now()

    def resign(self) -> None:
        """Tell all others that the agent is gone."""
        self._store.transact(lambda tx: resign(tx, self.id, self._now()))

    def _extend(self, tx: Transaction, agent_id: int) -> tuple[bool, AgentTurn]:
        is_held = extend_lease(tx, agent_id, self._now(), self._lease_micros, self._stopping_at)
        return is_held, find_agent_turn(tx, agent_id, self._now())

    def _announce(self, tx: Transaction) -> tuple[int, AgentTurn]:
        give_up_dead_neighbours(tx, self._now())
        agent_id = register(
            tx,
            kind="agent",
            name=self._name,
            place=place(),
            pid=os.getpid(),
            slots=self._options.slots,
            queues=self._options.queues,
            now=self._now(),
            lease_micros=self._lease_micros,
            stopping_at=self._stopping_at,
        )
        return agent_id, find_agent_turn(tx, agent_id, self._now())

    def _now(self) -> int:
        return to_micros(self._clock.now())
