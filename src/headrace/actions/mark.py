"""Say how tasks or a whole run ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from headrace.actions.finding import find_run
from headrace.actions.selecting import Chosen, Selection, choose, connected
from headrace.clock import Clock, to_micros
from headrace.errors import UsageError
from headrace.state import State
from headrace.store import RunRow, Store, Transaction, get_run, list_edges, list_tasks, mark_attempt, mark_tasks

Mark = Literal["success", "failed", "skipped"]


class Marked(NamedTuple):
    """What was marked in one run, and what was cleared because of it."""

    run: RunRow
    tasks: list[str]
    cleared: list[str]


def mark(
    store: Store, clock: Clock, state: Mark, name: str, tasks: Sequence[str], selection: Selection | None = None
) -> list[Marked]:
    """Mark the named tasks of a run, as far as the selection reaches; without names the run itself.

    What failed after a marked task is cleared, so that it is decided again.
    """
    now = to_micros(clock.now())

    def work(tx: Transaction) -> list[Marked]:
        run = find_run(tx, name)
        if not tasks:
            return [_mark_run(tx, run, state, now)]
        chosen = choose(tx, run, tasks, selection or Selection())
        # In the order of attempts, as everybody locks them.
        marked = {one.run.id: _mark_tasks(tx, one, state, now) for one in sorted(chosen, key=_attempt)}
        return [marked[one.run.id] for one in chosen]

    return store.transact(work)


def _attempt(chosen: Chosen) -> int:
    return chosen.run.attempt_id


def _mark_run(tx: Transaction, run: RunRow, state: Mark, now: int) -> Marked:
    if state == "skipped":
        raise UsageError("a run cannot be skipped", hint="name the tasks to skip, or mark it success or failed")
    mark_attempt(tx, run.attempt_id, State(state), now)
    return Marked(get_run(tx, run.id) or run, [], [])


def _mark_tasks(tx: Transaction, chosen: Chosen, state: Mark, now: int) -> Marked:
    run, ids = chosen.run, {task.id for task in chosen.tasks}
    every = list_tasks(tx, run.attempt_id)
    after = connected(chosen.tasks, every, list_edges(tx, run.attempt_id)) - ids
    undecided = [task for task in every if task.id in after and task.state in ("failed", "upstream_failed")]
    mark_tasks(tx, run.attempt_id, sorted(ids), State(state), now, [task.id for task in undecided])
    names = [task.name for task in chosen.tasks]
    return Marked(get_run(tx, run.id) or run, names, [task.name for task in undecided])
