"""Who is there, and who was given up: for people and their monitoring."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headrace.store.database import Transaction
from headrace.store.sql import Sql

PRESENT = Sql(
    """
    SELECT agent.kind, agent.name, agent.place, agent.pid, agent.version, agent.slots, agent.queues, agent.started_at,
           agent.renewed_at, agent.lease_until, agent.stopping_at,
           (SELECT count(*) FROM task
            WHERE task.agent_id = agent.id AND task.state IN ('queued', 'running', 'restarting'))
           + (SELECT count(*) FROM trigger WHERE trigger.agent_id = agent.id)
    FROM agent WHERE NOT agent.is_lost ORDER BY agent.kind, agent.name, agent.id
    """
)
KINDS = Sql(
    """
    SELECT kind, count(*) - count(stopping_at), count(stopping_at) FROM agent
    WHERE NOT is_lost AND lease_until >= :now GROUP BY kind
    """
)
GIVEN_UP = Sql(
    """
    SELECT kind, name, place, renewed_at, lost_at FROM agent WHERE lost_at >= :since
    ORDER BY lost_at DESC, id DESC LIMIT :limit
    """
)
ORPHANED = Sql(
    """
    SELECT agent.kind, agent.name, coalesce(agent.lost_at, agent.lease_until), count(*)
    FROM task JOIN agent ON agent.id = task.agent_id
    WHERE agent.is_lost AND task.state IN ('queued', 'running', 'restarting')
    GROUP BY agent.id, agent.kind, agent.name, agent.lost_at, agent.lease_until ORDER BY agent.id LIMIT :limit
    """
)


class Present(NamedTuple):
    """A process that nobody has given up. Instants are microseconds since 1970."""

    kind: str
    """agent, scheduler or triggerer"""
    name: str
    host: str
    pid: int
    version: str | None
    slots: int
    """Of a triggerer: how many triggers it can run."""
    queues: tuple[str, ...]
    started_at: int
    renewed_at: int
    lease_until: int
    stopping_at: int | None
    """Since when it only ends what it holds, and takes nothing more."""
    used: int
    """How many of the slots are taken."""


class Living(NamedTuple):
    """How many processes of a kind have a lease."""

    working: int
    stopping: int
    """They only end what they hold."""


class GivenUp(NamedTuple):
    """A process that others found dead or silent."""

    kind: str
    name: str
    host: str
    renewed_at: int
    lost_at: int


class Orphaned(NamedTuple):
    """Tasks of a process that is gone which nobody has taken over."""

    kind: str
    name: str
    since: int
    number: int


def present_processes(tx: Transaction) -> list[Present]:
    """Everybody who has not left and was not given up; a lease may have run out all the same."""
    rows = [Present(*row) for row in tx.run(PRESENT)]
    return [one._replace(host=_host(one.host), queues=tuple(msgspec.json.decode(str(one.queues)))) for one in rows]


def count_live_processes(tx: Transaction, now: int) -> dict[str, Living]:
    """How many of each kind have a lease."""
    found = {kind: Living(working, stopping) for kind, working, stopping in tx.run(KINDS, {"now": now})}
    return {**dict.fromkeys(("agent", "scheduler", "triggerer"), Living(0, 0)), **found}


def given_up_processes(tx: Transaction, since: int, limit: int = 20) -> list[GivenUp]:
    """Who was given up lately, the last one first."""
    rows = [GivenUp(*row) for row in tx.run(GIVEN_UP, {"since": since, "limit": limit})]
    return [one._replace(host=_host(one.host)) for one in rows]


def orphaned_tasks(tx: Transaction, limit: int = 20) -> list[Orphaned]:
    """What processes that are gone still hold."""
    return [Orphaned(*row) for row in tx.run(ORPHANED, {"limit": limit})]


def _host(place: str) -> str:
    return place.partition("/")[0]
