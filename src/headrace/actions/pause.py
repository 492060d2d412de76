"""Pause a workflow, or let it go on."""

from __future__ import annotations

from headrace.actions.finding import find_workflow
from headrace.clock import Clock, to_micros
from headrace.store import Store, Transaction, WorkflowRow, set_paused, start_queued_runs


def pause(store: Store, name: str) -> WorkflowRow:
    """No new run and no new task of the workflow starts; what runs already goes on."""

    def work(tx: Transaction) -> WorkflowRow:
        row = find_workflow(tx, name)
        set_paused(tx, row.id, True)
        return row._replace(is_paused=True)

    return store.transact(work)


def unpause(store: Store, clock: Clock, name: str) -> WorkflowRow:
    """Runs that waited start now, as many as the workflow's limits allow."""

    def work(tx: Transaction) -> WorkflowRow:
        row = find_workflow(tx, name)
        set_paused(tx, row.id, False)
        start_queued_runs(tx, row.id, to_micros(clock.now()))
        return row._replace(is_paused=False)

    return store.transact(work)
