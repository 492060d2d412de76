"""Stop a run."""

from __future__ import annotations

from headrace.actions.finding import find_run
from headrace.clock import Clock, from_micros, iso, to_micros
from headrace.errors import StateError
from headrace.store import RunRow, Store, Transaction, cancel_attempt, get_run


def kill(store: Store, clock: Clock, name: str) -> RunRow:
    """Ask a run to stop: tasks that run are stopped by their agents, everything else ends now."""

    def work(tx: Transaction) -> RunRow:
        run = find_run(tx, name)
        if not run.is_active:
            ended = iso(from_micros(run.ended_at)) if run.ended_at is not None else "an unknown time"
            raise StateError(f"cannot stop run {run.id}: it already ended as `{run.state}` at {ended}")
        cancel_attempt(tx, run.attempt_id, to_micros(clock.now()))
        return get_run(tx, run.id) or run

    return store.transact(work)
