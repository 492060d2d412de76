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
from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.agent.ahead import Ahead
from headrace.agent.errands import Errands
from headrace.agent.exchange import Exchange, Taker
from headrace.agent.gathering import Gathering
from headrace.agent.giving_way import MOMENT_SECONDS, GivingWay
from headrace.agent.one_by_one import OneByOne
from headrace.agent.options import AgentOptions
from headrace.agent.placing import Placing
from headrace.agent.processors import IdleProcessors, Processors
from headrace.agent.registration import Registration
from headrace.archives.folders import RevisionFolders
from headrace.clock import Clock, to_micros
from headrace.errors import HeadraceError, StoreError
from headrace.executor import Executor
from headrace.executor.verdicts import not_begun
from headrace.handoff import TaskRequest, TaskResult, is_errand
from headrace.metrics import tick_ended, tick_failed
from headrace.metrics.catalogue import (
    AGENT_GIVES_WAY,
    AGENT_SLOTS,
    AGENT_SLOTS_USED,
    ERRANDS_ENDED,
    RESULTS_WAITING,
    STALE_RESULTS,
    TRIES_ENDED,
)
from headrace.state import INLINE_QUEUE
from headrace.store import (
    LeaseKeeper,
    News,
    Pace,
    Report,
    Requests,
    Store,
    Told,
    follow_past,
    held_tasks,
    is_anything_waiting,
    paces,
)

_log = logging.getLogger("headrace.agent")

_HELD_UP_SECONDS = 1.0
"""How soon an agent looks again that saw tasks which only limits keep it from taking."""


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
        processors: Processors | None = None,
    ) -> None:
        """With `processors`, it leaves tasks to another agent of its machine that keeps those busy by itself."""
        self._store = store
        self._clock = clock
        self._executor = executor
        self._inline = inline
        self._logs_root = logs_root
        self._options = options
        self._attempts = None if options.attempt_id is None else {options.attempt_id}
        requests = Requests(options.isolation, max_map_length=options.max_map_length)
        self._errands = Errands(requests, logs_root, options)
        self._exchange = Exchange(requests, self._errands, logs_root, options, self._tell_of_run)
        self._gathering = Gathering(executor, options.slots, options.gather_seconds)
        self._one_by_one = OneByOne(store, self._now, options.max_tasks_per_run)
        folders = RevisionFolders(options.revisions_dir or logs_root.with_name("revisions"), options.max_archive_bytes)
        self._placing = Placing(store, folders)
        self._running: dict[tuple[int, int], TaskRequest] = {}
        self._undead: set[tuple[int, int]] = set()
        """What ran when the last lease was lost: while any of it lives, it must not be started a second time."""
        self._unreported: list[Report] = []
        self._ahead = Ahead(options.slots)
        self._way = GivingWay(processors or IdleProcessors())
        self._must_look = threading.Event()
        self._must_look_for_inline = threading.Event()
        self._has_room = True
        self._must_check = threading.Event()
        self._stop = threading.Event()
        self._is_draining = False
        self._may_hold_unknown = False
        self.on_run_ended: Callable[[int], None] = lambda run_id: None
        """Called with the id of each run whose end this agent has committed."""
        self.name = options.name or f"{socket.gethostname()}:{os.getpid()}"
        self._registration = Registration(store, clock, self.name, options)
        self._lease = LeaseKeeper(
            store,
            clock,
            kind="agent",
            name=self.name,
            seconds=options.lease_seconds,
            renew_seconds=options.renew_seconds,
            grace_seconds=options.kill_grace_seconds,
            extend=self._registration.extend,
            halt=executor.halt,
            is_exclusive=options.attempt_id is not None,
        )

    # ---- life ----------------------------------------------------------------------------------------------------

    def start(self, *, renews_by_itself: bool = True) -> None:
        """Announce the agent and begin to renew its lease; otherwise whoever moves its clock calls `renew`."""
        self._register()
        self._store.wakeups.subscribe(self._look, News.WORK, self._wait_for_turn)
        self._store.wakeups.subscribe(self._look_for_inline, News.INLINE)
        self._store.wakeups.subscribe(self.wake, News.STOP)
        if renews_by_itself:
            self._lease.start(self.wake)
        self._registration.rescue()
        self._look_again()

    @property
    def id(self) -> int:
        """By which the store knows it; another one after it lost its lease."""
        return self._registration.id

    @property
    def is_busy(self) -> bool:
        """Whether something runs here or waits to be reported."""
        return bool(self._running or self._unreported)

    def wake(self) -> None:
        """Have the next step look for work and for tasks to be stopped. Any thread may call it."""
        self._must_check.set()
        self._must_look.set()
        self._look_for_inline()

    def _look(self) -> None:
        """There are tasks for a free slot. Without one, the next result is soon enough to look for them."""
        self._must_look.set()
        self._way.hear()
        if self._has_room or self._way.is_on:
            self._executor.wake()

    def _wait_for_turn(self, told: Told) -> float:
        if not self._is_public:
            return 0.0
        if self._way.is_on:
            return MOMENT_SECONDS
        return self._registration.turn.seconds_until_look(told, self._options.slots)

    @property
    def _is_public(self) -> bool:
        """Whether it takes what others could take as well."""
        return self._attempts is None

    def _look_for_inline(self) -> None:
        self._must_look_for_inline.set()
        self._way.hear()
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
        deadline = self._seconds() + grace_seconds
        self._cancel(self._executor.waiting())
        self._tell_stopping()
        while self._running and self._seconds() < deadline:
            self.step(min(0.2, self._options.poll_seconds))
        self._cancel(list(self._running))
        end = self._options.kill_grace_seconds + 5.0 + self._seconds()
        while self._running and self._seconds() < end:
            self.step(0.2)
        self._stop.set()
        self._lease.stop()
        self._executor.close(0.0)
        self._resign()

    # ---- one step ------------------------------------------------------------------------------------------------

    def step(self, timeout_seconds: float) -> int:
        """Wait for results or a wake-up, commit, claim, submit. Returns how many results were committed."""
        self._make_sure_of_lease()
        if self._lease.is_lost.is_set():
            self._begin_anew()
        elif not self._lease.is_safe:
            self._stop_everything()
        wait = 0.0 if self._has_work() else min(timeout_seconds, self._patience(), self._next_look())
        results = [*self._inline.poll(0.0), *self._executor.poll(wait)]
        if results:
            results += self._gathering.more(len(results), len(self._running) - len(results))
        ended = [(result.task_id, result.fence) for result in results]
        self._ahead.ended(ended, self._seconds())
        if self._patience() == 0.0:
            self._cancel(self._executor.waiting())
        self._unreported += [self._report(result) for result in results if self._is_awaited(result)]
        try:
            return self._commit_and_claim()
        except StoreError as error:
            # Nothing is lost: the reports stay here and the claim is made again.
            tick_failed("agent")
            RESULTS_WAITING.set(len(self._unreported))
            self._look_again()
            self._must_check.set()
            self._may_hold_unknown = True
            self._stop.wait(self._store.outage.met(error, self._options.retry_seconds))
            return 0
        except Exception:
            tick_failed("agent")
            _log.exception("could not commit %d results at once; each is tried alone", len(self._unreported))
            return self._commit_one_by_one()

    def _has_work(self) -> bool:
        """Whether there is something to do before the next result is there."""
        can_look = self._must_look.is_set() and self._has_room
        return can_look or self._must_look_for_inline.is_set() or bool(self._unreported)

    def _patience(self) -> float:
        """For how many seconds what was taken ahead may still wait for a slot before it is handed back."""
        return self._ahead.seconds_left(self._executor.waiting(), self._seconds())

    def _next_look(self) -> float:
        """What frees a limit may be another agent's, which has other queues or no slot to take what waited for it."""
        if self._way.is_on:
            return self._way.seconds_left(self._seconds())
        return _HELD_UP_SECONDS if self._exchange.is_held_up and self._free_slots() else float("inf")

    def _commit_and_claim(self) -> int:
        self._decide_whether_to_give_way()
        if self._must_look.is_set() and self._room() > 0:
            self._must_look.clear()
            self._errands.expect()
        # Without results this is a look from time to time, which finds what a lost wake-up has missed.
        looks_for_inline = self._must_look_for_inline.is_set() or not self._unreported
        self._must_look_for_inline.clear()
        if self._must_check.is_set():
            self._must_check.clear()
            self._stop_what_must_stop()
        if self._may_hold_unknown:
            self._hand_back_unknown()
        if not self._unreported and (self._way.is_on or self._others_were_faster()):
            self._exchange.is_held_up = False
            self._has_room = self._has_room and not self._way.is_on
            return 0
        reports, began = self._unreported, time.perf_counter()
        committed, requests = self._store.transact(
            lambda tx: self._exchange.transact(tx, self._now(), reports, self._taker(looks_for_inline))
        )
        self._unreported = self._unreported[len(reports) :]
        self._gathering.took(time.perf_counter() - began)
        tick_ended("agent", began, len(reports))
        stale = committed.stale if committed is not None else []
        _count([report for report in reports if report not in stale] if stale else reports)
        for report in stale:
            STALE_RESULTS.add()
            _log.info("task %d: a stale result changed nothing", report.result.task_id)
        self._submit(requests)
        self._has_room = self._room() > 0
        AGENT_SLOTS_USED.set(len(self._running) - len(self._executor.waiting()))
        RESULTS_WAITING.set(len(self._unreported))
        self._gathering.ended()
        if self._exchange.has_nudged:
            self._follow_past()
        return len(reports)

    def _decide_whether_to_give_way(self) -> None:
        """An earlier agent of the same machine may do all that the machine can."""
        was_on = self._way.is_on
        if self._is_public and self._registration.turn.neighbours:
            self._way.look(self._seconds(), self._paces_of_neighbours)
        else:
            self._way.stop()
        if was_on and not self._way.is_on:
            self._look_again()
        AGENT_GIVES_WAY.set(self._way.is_on)

    def _paces_of_neighbours(self) -> Sequence[Pace]:
        now = self._now()
        since = now - round(MOMENT_SECONDS * 1_000_000)
        queues = (INLINE_QUEUE, *self._options.queues)
        with self._store.read() as tx:
            return paces(tx, self._registration.turn.neighbours, queues, since, now)

    def _others_were_faster(self) -> bool:
        """One question without a lock spares the transaction, for which all others would wait."""
        if not self._is_public or self._registration.turn.is_alone:
            return False
        queues = (INLINE_QUEUE, *(self._options.queues if self._room() > 0 else ()))
        with self._store.read() as tx:
            return not is_anything_waiting(tx, queues, self._now())

    def _follow_past(self) -> None:
        """What was committed may be what tasks of later runs wait for."""
        self._store.transact(lambda tx: follow_past(tx, self._now()))
        self._exchange.has_nudged = False
        self._look_again()

    def _look_again(self) -> None:
        self._has_room = True
        self._must_look.set()
        self._must_look_for_inline.set()

    def _commit_one_by_one(self) -> int:
        committed, self._unreported = self._one_by_one.commit(self._unreported)
        # What was dropped is still held by this agent; it is handed back and tried again, a few times.
        self._may_hold_unknown = True
        self._look_again()
        self._stop.wait(self._options.retry_seconds)
        return committed

    def _taker(self, looks_for_inline: bool) -> Taker:
        is_able = self._lease.is_safe and not self._is_draining and self._undead.isdisjoint(self._running)
        may_take = is_able and not self._way.is_on
        return Taker(self.id, self._attempts, may_take, self._free_slots(), self._room(), looks_for_inline)

    def _room(self) -> int:
        """How many tasks may be taken, with those ahead of a slot."""
        if self._way.is_on:
            return 0
        return self._free_slots() + self._ahead.room(self._executor.waiting())

    def _free_slots(self) -> int:
        return max(0, min(self._executor.free_slots(), self._options.slots - len(self._running)))

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
            self._must_look_for_inline.set()
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

    # ---- leases --------------------------------------------------------------------------------------------------

    def _register(self) -> None:
        began_at = time.monotonic()
        self._registration.announce()
        self._lease.begin(began_at)
        AGENT_SLOTS.set(self._options.slots)

    def _make_sure_of_lease(self) -> None:
        """With nothing running, a lease that ran out is renewed before it is needed.

        Leases that last shorter than the time between renewals are meant for the tasks that run under them: silence
        costs such a task, but must not keep the agent from taking the next one.
        """
        if not self._running and self._registration.has_run_out:
            try:
                self._lease.renew()
            except StoreError as error:
                self._store.outage.met(error)

    def renew(self) -> None:
        """Renew the lease once."""
        self._lease.renew()
        self._executor.wake()

    def _begin_anew(self) -> None:
        """The others gave this agent up: everything that it runs is undead. It ends that and starts as a new agent."""
        if not self._store.outage.is_on:
            _log.warning("agent `%s` lost its lease: its %d tasks are stopped", self.name, len(self._running))
        self._stop_everything()
        self._undead = set(self._running)
        try:
            self._register()
            self._registration.rescue()
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

    def _tell_stopping(self) -> None:
        """Others must not count on an agent that only ends what it runs. One that runs nothing resigns at once."""
        self._registration.begin_to_stop()
        if self._running:
            try:
                self._lease.renew()
            except StoreError as error:
                # The next renewal tells it.
                self._store.outage.met(error)

    def _resign(self) -> None:
        try:
            self._registration.resign()
        except HeadraceError as error:
            _log.warning("could not resign: %s", error.message)

    def _tell_of_run(self, run_id: int) -> None:
        self.on_run_ended(run_id)

    def _now(self) -> int:
        return to_micros(self._clock.now())

    def _seconds(self) -> float:
        return self._clock.now().timestamp()


def _count(reports: Sequence[Report]) -> None:
    for report in reports:
        (ERRANDS_ENDED if is_errand(report.result.task_id) else TRIES_ENDED).add(report.result.outcome)
