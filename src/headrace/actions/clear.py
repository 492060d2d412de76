"""Give tasks of a run a new series of tries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.actions.clear_marked import clear_marked
from headrace.actions.finding import find_run
from headrace.actions.selecting import Selection, choose, with_downstream
from headrace.clock import Clock, to_micros
from headrace.errors import StateError
from headrace.store import RunRow, Store, Transaction, clear_tasks, get_run, task_keys


class Cleared(NamedTuple):
    """The tasks of one run that were cleared."""

    run: RunRow
    tasks: list[str]


def clear(
    store: Store, clock: Clock, name: str, tasks: Sequence[str] = (), selection: Selection | None = None
) -> list[Cleared]:
    """Clear the named tasks of a run, or all, as far as the selection reaches; the run itself comes first."""
    wanted = selection or Selection()

    def work(tx: Transaction) -> list[Cleared]:
        run = find_run(tx, name)
        if run.state == "queued" and not task_keys(tx, run.attempt_id):
            hint = f"`headrace why {run.id}` says what it waits for"
            raise StateError(f"cannot clear run {run.id} of `{run.workflow}`: it has not started", hint=hint)
        chosen = choose(tx, run, tasks, wanted)
        if not any(one.tasks for one in chosen):
            kind = "failed " if wanted.only_failed else "running " if wanted.only_running else ""
            raise StateError(f"run {run.id} of `{run.workflow}` has no {kind}task to clear")
        # In the order of attempts, as everybody locks them.
        for one in sorted(chosen, key=lambda each: each.run.attempt_id):
            if one.tasks:
                clear_tasks(tx, one.run.attempt_id, [task.id for task in one.tasks], to_micros(clock.now()))
                clear_marked(tx, one.run, one.tasks, to_micros(clock.now()), with_downstream)
        return [Cleared(get_run(tx, one.run.id) or one.run, [task.name for task in one.tasks]) for one in chosen]

    return store.transact(work)
