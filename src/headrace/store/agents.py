"""Who is alive: agents and schedulers hold a lease each, and an agent's lease covers every task that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from headrace.handoff import TaskError
from headrace.processes import is_alive, place
from headrace.release import VERSION
from headrace.state import HELD, Actor, Task
from headrace.store.database import Transaction
from headrace.store.results import Committed, fail_tasks
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

_NO_PROJECTS: Mapping[str, str] = MappingProxyType({})

REGISTER = Sql(
    """
    INSERT INTO agent (
        kind, name, place, pid, slots, queues, started_at, renewed_at, lease_until, is_lost, stopping_at, version,
        projects
    )
    VALUES (:kind, :name, :place, :pid, :slots, :queues, :now, :now, :until, :no, :stopping_at, :version,
            :projects)
    RETURNING id
    """
)
# A renewal that began before the process was told to stop may come after the one that says so.
RENEW = Sql(
    """
    UPDATE agent SET renewed_at = :now, lease_until = :until, stopping_at = coalesce(:stopping_at, stopping_at)
    WHERE id = :id AND NOT is_lost
    """
)
RESIGN = Sql("UPDATE agent SET is_lost = :yes, lease_until = :now WHERE id = :id")
GIVE_UP = Sql("UPDATE agent SET is_lost = :yes, lost_at = :now WHERE id = :id AND NOT is_lost")
HELD_BY = Sql(
    """
    SELECT task.id, task.fence, task.state, attempt.is_cancel_requested, task.attempt_id
    FROM task JOIN attempt ON attempt.id = task.attempt_id
    WHERE task.agent_id = :agent_id AND task.state IN ('queued', 'running', 'restarting')
    """
)
IS_EXPIRED = Sql("SELECT 1 FROM agent WHERE NOT is_lost AND lease_until < :now LIMIT 1")
# One statement, so that an agent which renews at the same moment is not given up.
EXPIRE = Sql(
    """
    UPDATE agent SET is_lost = :yes, lost_at = :now WHERE NOT is_lost AND lease_until < :now
    RETURNING id, kind, name, renewed_at, lease_until
    """
)
LOST_TASKS = Sql(
    """
    SELECT task.id, task.attempt_id, task.agent_id FROM task JOIN agent ON agent.id = task.agent_id
    WHERE agent.is_lost AND task.state IN ('queued', 'running', 'restarting')
    ORDER BY task.id LIMIT :limit
    """
)
NAMES = Sql("SELECT id, name, lost_at IS NULL FROM agent WHERE id IN :ids[]")
IS_HELD_BY_LOST = Sql(
    """
    SELECT 1 FROM task JOIN agent ON agent.id = task.agent_id
    WHERE agent.is_lost AND task.state IN ('queued', 'running', 'restarting') LIMIT 1
    """
)
PROCESSES = Sql("SELECT id, kind, name, pid FROM agent WHERE NOT is_lost AND place = :place")
FORGET = Sql(
    """
    DELETE FROM agent WHERE is_lost AND renewed_at < :before
      AND NOT EXISTS (SELECT 1 FROM task WHERE task.agent_id = agent.id)
      AND NOT EXISTS (SELECT 1 FROM errand WHERE errand.agent_id = agent.id)
    """
)


class LiveProcess(NamedTuple):
    """A process that is believed to live."""

    id: int
    kind: str
    name: str
    pid: int


class LostProcess(NamedTuple):
    """A process that was given up because it was silent for too long."""

    id: int
    kind: str
    name: str
    silent_seconds: float
    limit_seconds: float


class Rescued(NamedTuple):
    """A task that was taken from an agent that is gone."""

    agent_id: int
    agent: str
    has_resigned: bool
    """Whether the agent itself said that it leaves; otherwise others gave it up."""
    task: Task
    """As it is now."""


class Held(msgspec.Struct, frozen=True):
    """A task that the store says an agent holds."""

    task_id: int
    fence: int
    must_stop: bool
    """Cleared or cancelled: its process is to be stopped."""
    attempt_id: int


def register(
    tx: Transaction, *, kind: str, name: str, place: str, pid: int, slots: int, queues: tuple[str, ...], now: int,
    lease_micros: int, stopping_at: int | None = None, projects: Mapping[str, str] = _NO_PROJECTS,
) -> int:  # fmt: skip
    """Announce a process and give it its first lease. Every start of a process is a new entry.

    `projects` are those that it saves from folders, each with its folder: nobody else saves them from another one.
    """
    parameters = {
        "kind": kind, "name": name, "place": place, "pid": pid, "slots": slots, "now": now,
        "queues": msgspec.json.encode(queues).decode(), "until": now + lease_micros, "no": False, "version": VERSION,
        "stopping_at": stopping_at,
        "projects": msgspec.json.encode(dict(projects)).decode(),
    }  # fmt: skip
    ((agent_id,),) = tx.run(REGISTER, parameters)
    return int(agent_id)


def extend_lease(tx: Transaction, agent_id: int, now: int, lease_micros: int, stopping_at: int | None = None) -> bool:
    """Renew everything that the agent holds in one statement. False: it was given up for lost meanwhile.

    `stopping_at`: since then it takes nothing more.
    """
    until = now + lease_micros
    return tx.change(RENEW, {"id": agent_id, "now": now, "until": until, "stopping_at": stopping_at}) == 1


def resign(tx: Transaction, agent_id: int, now: int) -> None:
    """A process stops cleanly; whatever it still holds is rescued at once."""
    tx.change(RESIGN, {"id": agent_id, "now": now, "yes": True})


def give_up(tx: Transaction, agent_id: int, now: int) -> None:
    """A process was found dead; whatever it held is rescued at once."""
    tx.change(GIVE_UP, {"id": agent_id, "now": now, "yes": True})


def held_tasks(tx: Transaction, agent_id: int) -> list[Held]:
    """What an agent holds, as the store sees it. What the agent runs beyond this is undead."""
    rows = tx.run(HELD_BY, {"agent_id": agent_id})
    return [Held(row[0], row[1], row[2] == "restarting" or bool(row[3]), row[4]) for row in rows]


def has_expired_leases(tx: Transaction, now: int) -> bool:
    """Whether somebody is to be given up."""
    return bool(tx.run(IS_EXPIRED, {"now": now}))


def expire_leases(tx: Transaction, now: int) -> list[LostProcess]:
    """Give up processes whose lease ran out."""
    rows = tx.run(EXPIRE, {"now": now, "yes": True})
    return [
        LostProcess(agent_id, kind, name, (now - renewed_at) / 1e6, (lease_until - renewed_at) / 1e6)
        for agent_id, kind, name, renewed_at, lease_until in sorted(rows)
    ]


def live_processes(tx: Transaction, place: str) -> list[LiveProcess]:
    """Everybody who is believed to live in this place."""
    return [LiveProcess(*row) for row in tx.run(PROCESSES, {"place": place})]


def give_up_dead_neighbours(tx: Transaction, now: int) -> None:
    """Processes of this place that are dead need no lease to run out before others get what they held."""
    for one in live_processes(tx, place()):
        if not is_alive(one.pid):
            give_up(tx, one.id, now)


def has_lost_tasks(tx: Transaction) -> bool:
    """Whether a process that is gone still holds tasks."""
    return bool(tx.run(IS_HELD_BY_LOST))


def rescue_tasks(tx: Transaction, graph: RunGraph, limit: int = 200) -> tuple[list[Rescued], Committed | None]:
    """End the tries of agents that are gone: each task is tried again or fails by its own settings."""
    rows = tx.run(LOST_TASKS, {"limit": limit})
    if not rows:
        return [], None
    graph.lock(attempt_id for _, attempt_id, _ in rows)
    agents = tx.run(NAMES, {"ids": sorted({agent_id for _, _, agent_id in rows})})
    names = {agent_id: (name, bool(has_resigned)) for agent_id, name, has_resigned in agents}
    found = graph.load_with_parents([task_id for task_id, _, _ in rows])
    held = [(task, task.agent_id or 0) for task in found if task.agent_id in names and task.state in HELD]
    lost = ", ".join(sorted({f"`{names[agent_id][0]}`" for _, agent_id in held}))
    error = TaskError(type="LeaseLost", message=f"lost: agent {lost} is gone")
    committed = fail_tasks(tx, graph, [task for task, _ in held], error, Actor.RESCUER)
    return [Rescued(agent_id, *names[agent_id], task) for task, agent_id in held], committed


def forget_agents(tx: Transaction, before: int) -> int:
    """Delete entries of processes that are long gone."""
    return tx.change(FORGET, {"before": before})
