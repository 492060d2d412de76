"""The agent: claims tasks under its lease, drives an executor, commits results and advances runs.

One thread does all of that (`step`), so that results which arrive while a transaction is under way share the next
one. Its lease is kept by others, so that no long transaction can cost it, and so that what runs here has ended before
anybody else is given it.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headrace.agent.ahead import Ahead
from headrace.agent.errands import Errands
from headrace.agent.placing import Placing
from headrace.archives.folders import RevisionFolders
from headrace.clock import Clock, to_micros
from headrace.definition import Isolation
from headrace.errors import HeadraceError, StoreError
from headrace.executor import Executor
from headrace.executor.verdicts import not_begun, unrecorded
from headrace.handoff import TaskRequest, TaskResult, errand_id, is_errand
from headrace.logs import log_folder, log_name
from headrace.metrics import tick_ended, tick_failed
from headrace.metrics.catalogue import (
    AGENT_SLOTS,
    AGENT_SLOTS_USED,
    ERRANDS_ENDED,
    RESULTS_WAITING,
    STALE_RESULTS,
    TASK_LAG,
    TRIES_ENDED,
)
from headrace.processes import is_alive, place
from headrace.state import INLINE_QUEUE, Task
from headrace.store import (
    Claim,
    Claiming,
    Committed,
    LeaseKeeper,
    News,
    Report,
    Requests,
    RunGraph,
    Store,
    Transaction,
    apply_results,
    end_errand,
    extend_lease,
    follow_past,
    give_up,
    held_tasks,
    live_processes,
    record_results,
    register,
    resign,
    start_in_place_of,
    tell_of,
)

_log = logging.getLogger("headrace.agent")

INLINE_BATCH = 1000
"""How many tasks without code are finished in one transaction."""


_CROWD = 2
"""With at least so many other tries under way, results that come fast are committed together."""
_GATHER_SECONDS = (0.003, 0.02)
"""For that they are waited for as long as the last transaction took, within these bounds: the more it costs, because
the database is slow or others hold its locks, the more of them share the next one."""


_MOST_DROPS = 3
"""How often a task is tried whose result cannot be applied before it has failed."""
_HELD_UP_SECONDS = 1.0
"""How soon an agent looks again that saw tasks which only limits keep it from taking."""


@dataclass(frozen=True)
class AgentOptions:
    """How an agent behaves."""

    slots: int = 8
    queues: tuple[str, ...] = ("default",)
    lease_seconds: float = 15.0
    renew_seconds: float = 5.0
    poll_seconds: float = 5.0
    """How long it waits for a wake-up before it looks by itself."""
    retry_seconds: float = 0.5
    """Between two attempts to reach a database that is away."""
    kill_grace_seconds: float = 5.0
    errand_timeout_seconds: float = 300.0
    """How long callbacks and other errands may take."""
    attempt_id: int | None = None
    """Serve only this attempt, and what is added by `serve`: a private agent for one run."""
    isolation: Isolation = "process"
    """For tasks that do not say how they want to be isolated."""
    max_tasks_per_run: int = 10_000
    """A result that would add more of them is a failure."""
    max_map_length: int = 100_000
    """How many elements a result may have that tasks are mapped over."""
    revisions_dir: Path | None = None
    """Where pushed revisions are unpacked. None: beside the logs."""
    max_archive_bytes: int = 512 * 1024 * 1024
    name: str = ""


class Agent:
    """`start`, then `step` again and again (or `run`), then `stop`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executor: Executor,
        inline: Executor,
        logs_root: Path,
        options: AgentOptions,
    ) -> None:
        self._store = store
        self._clock = clock
        self._executor = executor
        self._inline = inline
        self._logs_root = logs_root
        self._options = options
        self._attempts = None if options.attempt_id is None else {options.attempt_id}
        self._requests = Requests(options.isolation, max_map_length=options.max_map_length)
        self._errands = Errands(
            self._requests,
            logs_root,
            options.queues,
            self._attempts,
            options.errand_timeout_seconds,
            options.kill_grace_seconds,
        )
        folders = RevisionFolders(options.revisions_dir or logs_root.with_name("revisions"), options.max_archive_bytes)
        self._placing = Placing(store, folders)
        self._running: dict[tuple[int, int], TaskRequest] = {}
        self._undead: set[tuple[int, int]] = set()
        """What ran when the last lease was lost: while any of it lives, it must not be started a second time."""
        self._unreported: list[Report] = []
        self._ahead = Ahead(options.slots)
        self._must_look = threading.Event()
        self._must_check = threading.Event()
        self._stop = threading.Event()
        self._is_draining = False
        self._had_inline = False
        self._committed_at = 0.0
        self._gather_seconds = _GATHER_SECONDS[0]
        self._is_held_up = False
        self._dropped: Counter[int] = Counter()
        """How many results of a task could not be applied."""
        self._has_nudged = False
        self._may_hold_unknown = False
        self._lease_until = 0
        self.on_run_ended: Callable[[int], None] = lambda run_id: None
        """Called with the id of each run whose end this agent has committed."""
        self.id = 0
        self.name = options.name or f"{socket.gethostname()}:{os.getpid()}"
        self._lease = LeaseKeeper(
            store,
            clock,
            kind="agent",
            name=self.name,
            seconds=options.lease_seconds,
            renew_seconds=options.renew_seconds,
            grace_seconds=options.kill_grace_seconds,
            extend=self._extend,
            halt=executor.halt,
            is_exclusive=options.attempt_id is not None,
        )

    # ---- life ----------------------------------------------------------------------------------------------------

    def start(self, *, renews_by_itself: bool = True) -> None:
        """Announce the agent and begin to renew its lease; otherwise whoever moves its clock calls `renew`."""
        self._register()
        self._store.wakeups.subscribe(self._look, News.WORK)
        self._store.wakeups.subscribe(self.wake, News.STOP)
        if renews_by_itself:
            self._lease.start(self.wake)
        self._must_look.set()

    @property
    def is_busy(self) -> bool:
        """Whether something runs here or waits to be reported."""
        return bool(self._running or self._unreported)

    def wake(self) -> None:
        """Have the next step look for work and for tasks to be stopped. Any thread may call it."""
        self._must_check.set()
        self._look()

    def _look(self) -> None:
        self._must_look.set()
        self._executor.wake()

    def serve(self, attempt_id: int) -> None:
        """Have a private agent serve one more attempt. Any thread may call it."""
        if self._attempts is not None:
            self._attempts = {*self._attempts, attempt_id}
            self.wake()

    def run(self, stop: Callable[[], bool]) -> None:
        """Step until told to stop."""
        while not stop():
            self.step(self._options.poll_seconds)

    def stop(self, grace_seconds: float) -> None:
        """Finish what runs if it ends within the grace; hand the rest back without costing a try; resign."""
        self._is_draining = True
        self._cancel(self._executor.waiting())
        deadline = self._seconds() + grace_seconds
        while self._running and self._seconds() < deadline:
            self.step(min(0.2, self._options.poll_seconds))
        self._cancel(list(self._running))
        end = self._options.kill_grace_seconds + 5.0 + self._seconds()
        while self._running and self._seconds() < end:
            self.step(0.2)
        self._stop.set()
        self._lease.stop()
        self._executor.close(0.0)
        self._try_to("resign", lambda tx: resign(tx, self.id, self._now()))

    # ---- one step ------------------------------------------------------------------------------------------------

    def step(self, timeout_seconds: float) -> int:
        """Wait for results or a wake-up, commit, claim, submit. Returns how many results were committed."""
        self._make_sure_of_lease()
        if self._lease.is_lost.is_set():
            self._begin_anew()
        elif not self._lease.is_safe:
            self._stop_everything()
        has_work = self._must_look.is_set() or bool(self._unreported)
        wait = 0.0 if has_work else min(timeout_seconds, self._patience(), self._next_look())
        results = [*self._inline.poll(0.0), *self._executor.poll(wait)]
        if results:
            results += self._gather(len(results))
        self._ahead.ended(((result.task_id, result.fence) for result in results), self._seconds())
        if self._patience() == 0.0:
            self._cancel(self._executor.waiting())
        self._unreported += [self._report(result) for result in results if self._is_awaited(result)]
        must_look = self._must_look.is_set()
        self._must_look.clear()
        try:
            return self._commit_and_claim(must_look)
        except StoreError as error:
            # Nothing is lost: the reports stay here and the claim is made again.
            tick_failed("agent")
            RESULTS_WAITING.set(len(self._unreported))
            self._must_look.set()
            self._must_check.set()
            self._may_hold_unknown = True
            self._stop.wait(self._store.outage.met(error, self._options.retry_seconds))
            return 0
        except Exception:
            tick_failed("agent")
            _log.exception("could not commit %d results at once; each is tried alone", len(self._unreported))
            return self._commit_one_by_one()

    def _patience(self) -> float:
        """For how many seconds what was taken ahead may still wait for a slot before it is handed back."""
        return self._ahead.seconds_left(self._executor.waiting(), self._seconds())

    def _next_look(self) -> float:
        """What frees a limit may be another agent's, which has other queues or no slot to take what waited for it."""
        return _HELD_UP_SECONDS if self._is_held_up and self._free_slots() else float("inf")

    def _gather(self, present: int) -> list[TaskResult]:
        """Under load, wait a moment for results that are about to arrive: one transaction serves them all."""
        under_way, began = len(self._running) - present, time.monotonic()
        if under_way < _CROWD or began - self._committed_at > self._gathering():
            return []
        gathered: list[TaskResult] = []
        while present + len(gathered) < under_way and (left := began + self._gathering() - time.monotonic()) > 0:
            gathered += self._executor.poll(left)
        return gathered

    def _gathering(self) -> float:
        """For how long. With enough taken ahead to keep the slots busy meanwhile, nobody is in a hurry."""
        is_covered = 2 * len(self._executor.waiting()) > self._options.slots
        return _GATHER_SECONDS[1] if is_covered else self._gather_seconds

    def _commit_and_claim(self, must_look: bool) -> int:
        if must_look:
            self._errands.expect()
        if self._must_check.is_set():
            self._must_check.clear()
            self._stop_what_must_stop()
        if self._may_hold_unknown:
            self._hand_back_unknown()
        reports, began = self._unreported, time.perf_counter()
        committed, requests = self._store.transact(lambda tx: self._transact(tx, reports))
        self._unreported = self._unreported[len(reports) :]
        self._gather_seconds = min(max(time.perf_counter() - began, _GATHER_SECONDS[0]), _GATHER_SECONDS[1])
        tick_ended("agent", began, len(reports))
        stale = committed.stale if committed is not None else []
        _count([report for report in reports if report not in stale] if stale else reports)
        for report in stale:
            STALE_RESULTS.add()
            _log.info("task %d: a stale result changed nothing", report.result.task_id)
        self._submit(requests)
        AGENT_SLOTS_USED.set(len(self._running) - len(self._executor.waiting()))
        RESULTS_WAITING.set(len(self._unreported))
        self._committed_at = time.monotonic()
        if self._has_nudged:
            self._follow_past()
        return len(reports)

    def _follow_past(self) -> None:
        """What was committed may be what tasks of later runs wait for."""
        self._store.transact(lambda tx: follow_past(tx, self._now()))
        self._has_nudged = False
        self._must_look.set()

    def _commit_one_by_one(self) -> int:
        """One result that cannot be applied must not hold up the others, nor anything else this agent runs."""
        committed = 0
        while self._unreported:
            report = self._unreported[0]
            try:
                self._store.transact(partial(_record_alone, report, self._now(), self._options.max_tasks_per_run))
                committed += 1
            except StoreError:
                break
            except Exception as error:
                _log.exception("task %d: its result could not be applied and is dropped", report.result.task_id)
                self._dropped[report.result.task_id] += 1
                if self._dropped[report.result.task_id] == _MOST_DROPS:
                    # Not dropped once more than this, so that it ends if even its failure cannot be applied.
                    self._unreported = [report._replace(result=unrecorded(report.result, error)), *self._unreported[1:]]
                    continue
            self._unreported = self._unreported[1:]
        # What was dropped is still held by this agent; it is handed back and tried again, a few times.
        self._may_hold_unknown = True
        self._must_look.set()
        self._stop.wait(self._options.retry_seconds)
        return committed

    def _transact(self, tx: Transaction, reports: Sequence[Report]) -> tuple[Committed | None, list[TaskRequest]]:
        """The one transaction of a step: results in, next tasks out."""
        graph = RunGraph(tx, self._now())
        self._errands.record(tx, [one for one in reports if is_errand(one.result.task_id)], graph.now)
        tries = [one for one in reports if not is_errand(one.result.task_id)]
        claiming = Claiming(tx, graph, self.id, self._attempts)
        may_claim = self._lease.is_safe and not self._is_draining and self._undead.isdisjoint(self._running)
        free = self._free_slots()
        room = free + self._ahead.room(self._executor.waiting())
        ask = partial(self._ask, claiming, room, bool(tries)) if may_claim else _ask_nothing
        committed = self._apply(tx, graph, tries, ask)
        if graph.has_unsent_errands:
            graph.flush()
        errands = self._errands.claim(tx, graph, self.id, free) if may_claim else []
        claims = self._claim(claiming, room - len(errands)) if may_claim else []
        graph.flush()
        graph.flush_events()
        self._has_nudged = graph.has_nudged
        if committed is not None:
            tell_of(tx, graph, refused=claiming.refused)
        self._is_held_up = bool(claiming.refused)
        tx.after_commit += [partial(_note_lag, task, graph.now) for task, _ in claims]
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

    def _free_slots(self) -> int:
        return max(0, min(self._executor.free_slots(), self._options.slots - len(self._running)))

    def _start_waiting_runs(self, tx: Transaction, graph: RunGraph, committed: Committed) -> None:
        """The end of a run may be what the next one waits for."""
        ended = [graph.attempt(attempt_id) for attempt_id in committed.ended_attempts]
        for attempt in ended:
            tx.after_commit.append(partial(self.on_run_ended, attempt.run_id))
        start_in_place_of(tx, graph, ended)

    def _ask(self, claiming: Claiming, room: int, is_likely: bool) -> None:
        for queue in self._options.queues:
            if room > 0:
                claiming.ask(queue, room, is_likely=is_likely)
        # Asked for only when it may be there: most workflows have no task without code that waits in the queue.
        if self._had_inline or not is_likely:
            claiming.ask(INLINE_QUEUE, INLINE_BATCH)

    def _claim(self, claiming: Claiming, room: int) -> list[Claim]:
        claims: list[Claim] = []
        for queue in self._options.queues:
            claims += claiming.take(queue, room - len(claims))
        inline = claiming.take(INLINE_QUEUE, INLINE_BATCH)
        self._had_inline = bool(inline)
        return claims + inline

    def _submit(self, requests: Sequence[TaskRequest]) -> None:
        if not self._lease.is_safe:
            # The answer took so long that others may have been given these tasks.
            self._unreported += [Report(one.run.attempt_id, not_begun(one)) for one in requests]
            return
        inline = [request for request in requests if request.node.isolation == "inline"]
        others = [request for request in requests if request.node.isolation != "inline"]
        self._running.update(((request.task_id, request.fence), request) for request in requests)
        if inline:
            self._inline.submit(inline)
            self._must_look.set()
        if others:
            placed = self._placed(others)
            self._ahead.submitted(((one.task_id, one.fence) for one in placed), self._seconds())
            self._executor.submit(placed)

    def _placed(self, requests: Sequence[TaskRequest]) -> list[TaskRequest]:
        """Those whose code is on this machine now; the others fail."""
        placed = []
        for request in requests:
            found = self._placing.placed(request)
            if isinstance(found, TaskRequest):
                placed.append(found)
            else:
                self._unreported.append(self._report(found))
        return placed

    def _is_awaited(self, result: TaskResult) -> bool:
        """Whether this is the first result of something that was given to an executor."""
        return (result.task_id, result.fence) in self._running

    def _report(self, result: TaskResult) -> Report:
        request = self._running.pop((result.task_id, result.fence))
        log = request.log_path.removeprefix(f"{self._logs_root}/") or None
        return Report(request.run.attempt_id, result, log)

    def _log_paths(self, tx: Transaction, claims: Sequence[Claim]) -> dict[int, str]:
        paths = {}
        for task, _ in claims:
            if task.queue != INLINE_QUEUE:  # what runs no code has nothing to say
                run = self._requests.run(tx, task.attempt_id).context
                folder = log_folder(run.project, run.workflow, run.run_key, run.attempt_number)
                paths[task.id] = f"{self._logs_root}/{folder}/{log_name(task.key, task.map_index, task.try_number)}"
        return paths

    # ---- leases --------------------------------------------------------------------------------------------------

    def _register(self) -> None:
        lease = round(self._options.lease_seconds * 1_000_000)

        def announce(tx: Transaction) -> int:
            _give_up_dead_neighbours(tx, self._now())
            return register(
                tx,
                kind="agent",
                name=self.name,
                place=place(),
                pid=os.getpid(),
                slots=self._options.slots,
                queues=self._options.queues,
                now=self._now(),
                lease_micros=lease,
            )

        began_at = time.monotonic()
        self.id = self._store.transact(announce)
        self._lease_until = self._now() + lease
        self._lease.begin(began_at)
        AGENT_SLOTS.set(self._options.slots)

    def _make_sure_of_lease(self) -> None:
        """With nothing running, a lease that ran out is renewed before it is needed.

        Leases that last shorter than the time between renewals are meant for the tasks that run under them: silence
        costs such a task, but must not keep the agent from taking the next one.
        """
        if not self._running and self._now() > self._lease_until:
            try:
                self._lease.renew()
            except StoreError as error:
                self._store.outage.met(error)

    def renew(self) -> None:
        """Renew the lease once."""
        self._lease.renew()
        self._executor.wake()

    def _extend(self) -> bool:
        agent_id, lease = self.id, round(self._options.lease_seconds * 1_000_000)
        self._lease_until = self._now() + lease
        is_held = self._store.transact(lambda tx: extend_lease(tx, agent_id, self._now(), lease))
        # It may have begun anew meanwhile.
        return is_held or agent_id != self.id

    def _begin_anew(self) -> None:
        """The others gave this agent up: everything that it runs is undead. It ends that and starts as a new agent."""
        if not self._store.outage.is_on:
            _log.warning("agent `%s` lost its lease: its %d tasks are stopped", self.name, len(self._running))
        self._stop_everything()
        self._undead = set(self._running)
        try:
            self._register()
        except StoreError as error:
            self._stop.wait(self._store.outage.met(error, self._options.retry_seconds))

    def _stop_everything(self) -> None:
        self._cancel(self._executor.running())

    def _cancel(self, claims: Sequence[tuple[int, int]]) -> None:
        for task_id, fence in claims:
            self._executor.cancel(task_id, fence)

    def _stop_what_must_stop(self) -> None:
        """Stop what was cancelled or cleared, and what this agent runs without holding it any more (undead)."""
        running = self._executor.running()
        if not running:
            return
        with self._store.read() as tx:
            held = {(one.task_id, one.fence): one.must_stop for one in held_tasks(tx, self.id)}
            if any(is_errand(task_id) for task_id, _ in running):
                held |= dict.fromkeys(self._errands.held(tx, self.id), False)
        self._cancel([claimed for claimed in running if held.get(claimed, True)])

    def _hand_back_unknown(self) -> None:
        """A commit whose answer was lost may have claimed tasks that nobody here knows of."""
        known = {*self._running, *((report.result.task_id, report.result.fence) for report in self._unreported)}
        with self._store.read() as tx:
            held = {(one.task_id, one.fence): one.attempt_id for one in held_tasks(tx, self.id)}
            held |= self._errands.held(tx, self.id)
        for (task_id, fence), attempt_id in held.items():
            if (task_id, fence) not in known:
                result = TaskResult(task_id=task_id, fence=fence, outcome="stopped", has_begun=False)
                self._unreported.append(Report(attempt_id, result))
        self._may_hold_unknown = False

    def _try_to(self, what: str, work: Callable[[Transaction], None]) -> None:
        try:
            self._store.transact(work)
        except HeadraceError as error:
            _log.warning("could not %s: %s", what, error.message)

    def _now(self) -> int:
        return to_micros(self._clock.now())

    def _seconds(self) -> float:
        return self._clock.now().timestamp()


def _give_up_dead_neighbours(tx: Transaction, now: int) -> None:
    """Processes of this place that are dead need no lease to run out before their tasks are rescued."""
    for agent_id, pid in live_processes(tx, place()):
        if pid != os.getpid() and not is_alive(pid):
            give_up(tx, agent_id, now)


def _ask_nothing() -> None:
    """What may not be claimed need not be asked for."""


def _count(reports: Sequence[Report]) -> None:
    for report in reports:
        (ERRANDS_ENDED if is_errand(report.result.task_id) else TRIES_ENDED).add(report.result.outcome)


def _note_lag(task: Task, now: int) -> None:
    if task.scheduled_at is not None:
        TASK_LAG.observe((now - task.scheduled_at) / 1e6, task.queue)


def _record_alone(report: Report, now: int, max_tasks: int, tx: Transaction) -> None:
    if is_errand(report.result.task_id):
        end_errand(tx, errand_id(report.result.task_id), report.result, report.log, now)
        return
    graph = RunGraph(tx, now)
    record_results(tx, graph, [report], max_tasks)
    graph.flush_events()
    tx.tell()
