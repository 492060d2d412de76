"""Run a run again as a new attempt that carries over what succeeded."""

from __future__ import annotations

from headrace.actions.finding import find_run
from headrace.clock import Clock, to_micros
from headrace.errors import StateError
from headrace.store import RunRow, Store, Transaction, add_attempt, get_run, start_queued_runs


def retry(store: Store, clock: Clock, name: str, *, is_resuming: bool = True) -> RunRow:
    """A new attempt with the newest version of the workflow; without `is_resuming` every task runs again."""

    def work(tx: Transaction) -> RunRow:
        run = find_run(tx, name)
        now = to_micros(clock.now())
        if run.is_active:
            hint = f"`headrace kill {run.id}` stops it"
            raise StateError(f"cannot retry run {run.id}: it is still `{run.state}`", hint=hint)
        if run.state == "success" and is_resuming:
            hint = f"`headrace retry {run.id} --all` runs everything again"
            raise StateError(f"run {run.id} of `{run.workflow}` succeeded: there is nothing to retry", hint=hint)
        add_attempt(tx, run.id, run.workflow_id, run.attempt_id if is_resuming else None, "", now)
        start_queued_runs(tx, run.workflow_id, now)
        tx.should_notify = True
        return get_run(tx, run.id) or run

    return store.transact(work)
