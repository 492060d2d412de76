"""The one transaction of a step: results in, next tasks out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headrace.agent.errands import Errands
from headrace.agent.options import AgentOptions
from headrace.handoff import TaskRequest, is_errand
from headrace.logs import log_folder, log_name
from headrace.metrics.catalogue import TASK_LAG
from headrace.state import INLINE_QUEUE, Task
from headrace.store import (
    Claim,
    Claiming,
    Committed,
    Report,
    Requests,
    RunGraph,
    Transaction,
    apply_results,
    start_in_place_of,
    tell_of,
)

INLINE_BATCH = 1000
"""How many tasks without code are finished in one transaction."""


class Taker(NamedTuple):
    """Who takes what comes next, and how much of it."""

    agent_id: int
    attempts: Collection[int] | None
    """Only of these; None: of all."""
    may_take: bool
    free_slots: int
    """So many errands, and …"""
    room: int
    """… so many tasks, with those that are taken ahead of a slot."""
    looks_for_inline: bool
    """Whether tasks without code may wait in the queue."""


class Exchange:
    """Applies results, advances their runs and claims what fits into the free slots."""

    def __init__(
        self,
        requests: Requests,
        errands: Errands,
        logs_root: Path,
        options: AgentOptions,
        on_run_ended: Callable[[int], None],
    ) -> None:
        """`on_run_ended` is called with the id of each run whose end was committed."""
        self._requests = requests
        self._errands = errands
        self._logs_root = logs_root
        self._options = options
        self._on_run_ended = on_run_ended
        self._had_inline = False
        self.is_held_up = False
        """Whether the last one saw tasks which only limits kept it from taking."""
        self.has_nudged = False
        """Whether something in the last one may be what tasks of later runs wait for."""

    def transact(
        self, tx: Transaction, now: int, reports: Sequence[Report], taker: Taker
    ) -> tuple[Committed | None, list[TaskRequest]]:
        """What was committed, if anything was reported of tasks, and what was taken."""
        graph = RunGraph(tx, now)
        self._errands.record(tx, [one for one in reports if is_errand(one.result.task_id)], now)
        tries = [one for one in reports if not is_errand(one.result.task_id)]
        claiming = Claiming(tx, graph, taker.agent_id, taker.attempts)
        ask = partial(self._ask, tx, claiming, taker, now, bool(tries)) if taker.may_take else _ask_nothing
        committed = self._apply(tx, graph, tries, ask)
        if graph.has_unsent_errands:
            graph.flush()
        errands = self._claim_errands(tx, graph, taker) if taker.may_take else []
        claims = self._claim(claiming, taker.room - len(errands)) if taker.may_take else []
        graph.flush()
        graph.flush_events()
        self.has_nudged = graph.has_nudged
        if committed is not None:
            tell_of(tx, graph, refused=claiming.refused)
        self.is_held_up = bool(claiming.refused)
        tx.after_commit += [partial(_note_lag, task, now) for task, _ in claims]
        self._requests.learn_runs(tx, graph, (task.attempt_id for task, _ in claims))
        requests = self._requests.build(tx, claims, self._log_paths(tx, claims), self._options.kill_grace_seconds)
        return committed, [*errands, *requests]

    def _apply(
        self, tx: Transaction, graph: RunGraph, tries: Sequence[Report], ask: Callable[[], None]
    ) -> Committed | None:
        """Results in. What the rest of the transaction wants to know is asked for beside them."""
        if not tries:
            ask()
            return None
        committed = apply_results(tx, graph, tries, self._options.max_tasks_per_run, ask)
        self._start_waiting_runs(tx, graph, committed)
        return committed

    def _start_waiting_runs(self, tx: Transaction, graph: RunGraph, committed: Committed) -> None:
        """The end of a run may be what the next one waits for."""
        ended = [graph.attempt(attempt_id) for attempt_id in committed.ended_attempts]
        for attempt in ended:
            tx.after_commit.append(partial(self._on_run_ended, attempt.run_id))
        start_in_place_of(tx, graph, ended)

    def _ask(self, tx: Transaction, claiming: Claiming, taker: Taker, now: int, is_likely: bool) -> None:
        for queue in self._options.queues:
            if taker.room > 0:
                claiming.ask(queue, taker.room, is_likely=is_likely)
        # Asked for only when it may be there: most workflows have no task without code that waits in the queue.
        if self._had_inline or taker.looks_for_inline:
            claiming.ask(INLINE_QUEUE, INLINE_BATCH)
        self._errands.ask(tx, now, taker.free_slots, taker.attempts)
        self._requests.ask(tx, is_likely=is_likely)

    def _claim_errands(self, tx: Transaction, graph: RunGraph, taker: Taker) -> list[TaskRequest]:
        return self._errands.claim(tx, graph, taker.agent_id, taker.free_slots, taker.attempts)

    def _claim(self, claiming: Claiming, room: int) -> list[Claim]:
        claims: list[Claim] = []
        for queue in self._options.queues:
            claims += claiming.take(queue, room - len(claims))
        inline = claiming.take(INLINE_QUEUE, INLINE_BATCH)
        self._had_inline = bool(inline)
        return claims + inline

    def _log_paths(self, tx: Transaction, claims: Sequence[Claim]) -> dict[int, str]:
        paths = {}
        for task, _ in claims:
            if task.queue != INLINE_QUEUE:  # what runs no code has nothing to say
                run = self._requests.run(tx, task.attempt_id).context
                folder = log_folder(run.project, run.workflow, run.run_key, run.attempt_number)
                paths[task.id] = f"{self._logs_root}/{folder}/{log_name(task.key, task.map_index, task.try_number)}"
        return paths


def _ask_nothing() -> None:
    """What may not be claimed need not be asked for."""


def _note_lag(task: Task, now: int) -> None:
    if task.scheduled_at is not None:
        TASK_LAG.observe((now - task.scheduled_at) / 1e6, task.queue)
