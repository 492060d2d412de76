"""Triggerers take triggers under their lease and tell what these had to tell. Each wait ends exactly once.

A trigger may run in two places for a while, as when the lease of a triggerer ran out that still lives. Whoever tells
first wins: the row goes with the task's move, in the transaction that holds the attempt's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.handoff import Fired, TaskResult
from headrace.state import Advance, State, Task, is_ended_by
from headrace.store.database import Transaction
from headrace.store.news import News
from headrace.store.results import Committed, settle_and_flush, tell_of, try_row, write_tries, write_values
from headrace.store.run_graph import RunGraph
from headrace.store.sql import Sql

_LOST = "SELECT id FROM agent WHERE kind = 'triggerer' AND (is_lost OR lease_until < :now)"
_OF_ATTEMPTS = "AND attempt_id IN :attempts[]"
_IS_FREE = f"""
    SELECT 1 FROM trigger WHERE agent_id IS NULL {{scope}}
    UNION ALL SELECT 1 FROM trigger WHERE agent_id IN ({_LOST}) {{scope}} LIMIT 1
    """
IS_FREE = Sql(_IS_FREE.format(scope=""))
IS_FREE_OF_ATTEMPTS = Sql(_IS_FREE.format(scope=_OF_ATTEMPTS))
RELEASE = Sql(
    f"""
    UPDATE trigger SET agent_id = NULL WHERE id IN (
      SELECT id FROM trigger WHERE agent_id IN ({_LOST}) ORDER BY id [[postgres: FOR UPDATE SKIP LOCKED]]
    )
    """
)
_CLAIM = """
    UPDATE trigger SET agent_id = :agent_id WHERE id IN (
      SELECT id FROM trigger WHERE agent_id IS NULL {scope}
      ORDER BY priority DESC, id LIMIT :limit [[postgres: FOR UPDATE SKIP LOCKED]]
    ) AND EXISTS (SELECT 1 FROM agent WHERE agent.id = :agent_id AND NOT agent.is_lost)
    RETURNING id, task_id, attempt_id, path, arguments, is_given_up, workflow_id, asset
    """
CLAIM = Sql(_CLAIM.format(scope=""))
CLAIM_OF_ATTEMPTS = Sql(_CLAIM.format(scope=_OF_ATTEMPTS))
NAMES = Sql("SELECT id, key, map_index, try_number, fence FROM task WHERE id IN :ids[]")
HELD = Sql("SELECT id, is_given_up FROM trigger WHERE agent_id = :agent_id")
ATTEMPTS = Sql("SELECT attempt_id FROM trigger WHERE id IN :ids[] AND task_id IS NOT NULL AND NOT is_given_up")
# Locked, so that nobody claims one whose end is being told: who runs it has to hear of that.
WAITING = Sql(
    """
    SELECT id, task_id, agent_id FROM trigger WHERE id IN :ids[] AND task_id IS NOT NULL AND NOT is_given_up
    ORDER BY id [[postgres: FOR UPDATE]]
    """
)
FORGET = Sql("DELETE FROM trigger WHERE id IN :ids[] AND is_given_up")
OF_TASK = Sql(
    """
    SELECT trigger.path, trigger.created_at, holder.name, holder.stopping_at
    FROM trigger LEFT JOIN agent AS holder
      ON holder.id = trigger.agent_id AND NOT holder.is_lost AND holder.lease_until >= :now
    WHERE trigger.task_id = :task_id AND NOT trigger.is_given_up
    """
)
GIVE_BACK = Sql("UPDATE trigger SET agent_id = NULL WHERE id IN :ids[] AND agent_id = :agent_id AND is_given_up")
LET_GO = Sql("UPDATE trigger SET agent_id = NULL WHERE agent_id = :agent_id AND NOT (id IN :known[])")


class ClaimedTrigger(NamedTuple):
    """A trigger that a triggerer took, with what names the task that waits for it, or the asset that it watches."""

    id: int
    task_id: int
    attempt_id: int
    path: str
    arguments: dict[str, Any]
    is_given_up: bool
    """Nobody waits any more; its work outside is still to be ended."""
    key: str
    map_index: int
    try_number: int
    fence: int
    workflow_id: int = 0
    """watcher: whose file it is in."""
    asset: str = ""
    """watcher: what it watches; empty: a task waits for it."""


class AwaitedTrigger(NamedTuple):
    """What a deferred task waits for."""

    path: str
    since: int
    triggerer: str | None
    """Who holds it; None: nobody at present."""
    stopping_at: int | None
    """Since when who holds it does not run it, but has it clean up."""


def awaited_trigger(tx: Transaction, task_id: int, now: int) -> AwaitedTrigger | None:
    """What a task waits for; None if it waits for no trigger."""
    rows = tx.run(OF_TASK, {"task_id": task_id, "now": now})
    return AwaitedTrigger(*rows[0]) if rows else None


def has_free_triggers(tx: Transaction, now: int, attempt_ids: Collection[int] | None = None) -> bool:
    """Whether claiming is worth while."""
    statement = IS_FREE if attempt_ids is None else IS_FREE_OF_ATTEMPTS
    return bool(tx.run(statement, {"now": now, "attempts": sorted(attempt_ids or ())}))


def claim_triggers(
    tx: Transaction, agent_id: int, limit: int, now: int, attempt_ids: Collection[int] | None = None
) -> list[ClaimedTrigger]:
    """Take up to `limit` triggers that nobody runs, or whose triggerer is gone; with `attempt_ids` only of these."""
    tx.write(RELEASE, {"now": now})
    statement = CLAIM if attempt_ids is None else CLAIM_OF_ATTEMPTS
    rows = tx.run(statement, {"agent_id": agent_id, "limit": limit, "attempts": sorted(attempt_ids or ())})
    if not rows:
        return []
    tasks = sorted({row[1] for row in rows if row[1] is not None})
    names = {row[0]: row[1:] for row in (tx.run(NAMES, {"ids": tasks}) if tasks else ())}
    names[None] = ("", -1, 1, 0)
    in_order = sorted(rows, key=lambda row: row[0])
    return [_claimed(row, names[row[1]]) for row in in_order if row[1] in names]


def _claimed(row: Sequence[Any], names: Sequence[Any]) -> ClaimedTrigger:
    trigger_id, task_id, attempt_id, path, arguments, is_given_up, workflow_id, asset = row
    key, map_index, try_number, fence = names
    decoded = msgspec.json.decode(arguments)
    told = (trigger_id, task_id or 0, attempt_id or 0, path, decoded, bool(is_given_up))
    return ClaimedTrigger(*told, key, map_index, try_number, fence, workflow_id or 0, asset or "")


def held_triggers(tx: Transaction, agent_id: int) -> dict[int, bool]:
    """What the store says that a triggerer runs, and whether that was given up. What it runs beyond this is over."""
    return {trigger_id: bool(is_given_up) for trigger_id, is_given_up in tx.run(HELD, {"agent_id": agent_id})}


def let_go_of_triggers(tx: Transaction, agent_id: int, known: Sequence[int] = ()) -> int:
    """Have others go on with what a triggerer holds, except with those that it knows it runs."""
    return tx.change(LET_GO, {"agent_id": agent_id, "known": list(known)})


def forget_triggers(tx: Transaction, ids: Sequence[int]) -> None:
    """The work outside of triggers that were given up is ended."""
    tx.write(FORGET, {"ids": list(ids)})


def fire_triggers(
    tx: Transaction, graph: RunGraph, told: Sequence[Fired], agent_id: int | None, logs: Mapping[int, str]
) -> Committed:
    """Have the tasks go on, or end, as their triggers say. A trigger that nobody waits for changes nothing.

    `agent_id`: the triggerer that tells; another one that runs such a trigger by now is woken.
    `logs`: by trigger, the log in which the triggerer wrote.
    """
    ids = {"ids": [fired.trigger_id for fired in told]}
    graph.lock(attempt_id for (attempt_id,) in tx.run(ATTEMPTS, ids))
    # Asked only now that nobody can take the wait away any more.
    rows = tx.run(WAITING, ids)
    waiting = {trigger_id: task_id for trigger_id, task_id, _ in rows}
    if any(holder_id not in (None, agent_id) for _, _, holder_id in rows):
        tx.tell(News.TRIGGERS)
    tasks = {task.id: task for task in graph.load_with_parents(sorted(waiting.values()))}
    advance, unheard = Advance(graph), []
    for fired in told:
        task = tasks.get(waiting.pop(fired.trigger_id, 0))
        if task is not None and task.state is State.DEFERRED:
            _write(tx, task, fired, agent_id, logs.get(fired.trigger_id), graph.now)
            advance.fire(task, fired)
        else:
            unheard.append(fired.trigger_id)
    committed = settle_and_flush(advance, graph)
    if unheard and agent_id is not None:
        # One whose wait was given up, perhaps just here, has ended; its work outside is still to be ended.
        tx.write(GIVE_BACK, {"ids": unheard, "agent_id": agent_id})
    tell_of(tx, graph, [committed])
    return committed


def _write(tx: Transaction, task: Task, fired: Fired, agent_id: int | None, log: str | None, now: int) -> None:
    """What a trigger that ends its task leaves behind: values, and the record of an execution."""
    if not fired.outcome:
        return
    result = TaskResult(
        task_id=task.id, fence=task.fence, outcome=fired.outcome, values=fired.values, lengths=fired.lengths
    )
    write_values(tx, [(task, result)])
    if is_ended_by(task, fired):
        # An execution of its own, after the one that began to wait.
        task.fence += 1
        row = try_row(task, State(fired.outcome), fired.error, log, now)
        write_tries(tx, [{**row, "agent_id": agent_id}])
