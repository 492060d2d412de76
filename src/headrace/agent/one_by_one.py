"""Commits results one by one after one of them could not be applied, so that it does not hold up the others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from headrace.errors import StoreError
from headrace.executor.verdicts import unrecorded
from headrace.handoff import errand_id, is_errand
from headrace.store import Report, RunGraph, Store, Transaction, end_errand, record_results

_log = logging.getLogger("headrace.agent")

_MOST_DROPS = 3
"""How often a task is tried whose result cannot be applied before it has failed."""


class OneByOne:
    """Drops what cannot be applied: its task is tried again, a few times."""

    def __init__(self, store: Store, now: Callable[[], int], max_tasks_per_run: int) -> None:
        self._store = store
        self._now = now
        self._max_tasks_per_run = max_tasks_per_run
        self._dropped: Counter[int] = Counter()
        """How many results of a task could not be applied."""

    def commit(self, reports: Sequence[Report]) -> tuple[int, list[Report]]:
        """How many were committed, and those that are left because the store is away."""
        left, committed = list(reports), 0
        while left:
            try:
                self._store.transact(partial(_record_alone, left[0], self._now(), self._max_tasks_per_run))
                committed += 1
            except StoreError:
                break
            except Exception as error:
                task_id = left[0].result.task_id
                _log.exception("task %d: its result could not be applied and is dropped", task_id)
                self._dropped[task_id] += 1
                if self._dropped[task_id] == _MOST_DROPS:
                    # Not dropped once more than this, so that it ends if even its failure cannot be applied.
                    left[0] = left[0]._replace(result=unrecorded(left[0].result, error))
                    continue
            del left[0]
        return committed, left


def _record_alone(report: Report, now: int, max_tasks: int, tx: Transaction) -> None:
    if is_errand(report.result.task_id):
        end_errand(tx, errand_id(report.result.task_id), report.result, report.log, now)
        return
    graph = RunGraph(tx, now)
    record_results(tx, graph, [report], max_tasks)
    graph.flush_events()
    tx.tell()
