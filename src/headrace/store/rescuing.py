"""Takes what processes that are gone still hold. Any process may do it, and any number of them at once."""

from __future__ import annotations

from functools import partial

from headrace.metrics.catalogue import TASKS_RESCUED
from headrace.store.agents import Rescued, has_lost_tasks, rescue_tasks
from headrace.store.database import Transaction
from headrace.store.errands import has_lost_errands, rescue_errands
from headrace.store.run_graph import RunGraph
from headrace.store.store import Store

BATCH_SIZE = 200


def rescue_everything(store: Store, now: int, batch_size: int = BATCH_SIZE) -> tuple[list[Rescued], int]:
    """The tasks, each of which is tried again or fails by its own settings, and how many errands."""
    return _rescue_all_tasks(store, now, batch_size), _rescue_some_errands(store, now, batch_size)


def _rescue_all_tasks(store: Store, now: int, batch_size: int) -> list[Rescued]:
    rescued: list[Rescued] = []
    while True:
        with store.read() as tx:
            if not has_lost_tasks(tx):
                return rescued
        batch = store.transact(partial(_rescue_batch, now=now, batch_size=batch_size))
        rescued += batch
        TASKS_RESCUED.add(count=len(batch))
        if len(batch) < batch_size:
            return rescued


def _rescue_batch(tx: Transaction, now: int, batch_size: int) -> list[Rescued]:
    graph = RunGraph(tx, now)
    rescued, _ = rescue_tasks(tx, graph, batch_size)
    graph.flush_events()
    if rescued:
        tx.tell()
    return rescued


def _rescue_some_errands(store: Store, now: int, batch_size: int) -> int:
    with store.read() as tx:
        if not has_lost_errands(tx):
            return 0
    return store.transact(partial(rescue_errands, now=now, limit=batch_size))
