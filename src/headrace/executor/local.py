"""Runs each try in a process of its own on this machine, forked from a warm parent that has the user's file loaded.

This file follows a try from its submission to its result; `fleet.py` looks after the warm parents.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from headrace.definition import NOOP
from headrace.executor import verdicts
from headrace.executor.connection import OversizeError
from headrace.executor.contract import Broker, Contents, Later, Questions
from headrace.executor.fleet import Fleet
from headrace.executor.loop import Loop
from headrace.executor.options import LocalOptions, Program
from headrace.executor.questions import PATIENCE_SECONDS, answer_now
from headrace.executor.shown import without_secrets
from headrace.executor.workers import StopReason, Try, Worker, signal_group
from headrace.executor.zygotes import Zygote
from headrace.handoff import Answer, Ask, Done, FromTask, Source, Start, TaskRequest, TaskResult, may_reuse
from headrace.logs import LogPump, LogStream

_EXIT_SECONDS = 5.0
"""A child that has nothing more to do gets this long to leave by itself."""
_HANG_UP_SECONDS = 1.0
"""A process whose socket is closed is dead or will never report; its end should be known by then."""
_CORES = os.cpu_count() or 1
"""With more tries than this under way nobody has the time to rehearse: what a rehearsal takes, tries would use."""
_REUSABLE_OUTCOMES = ("success", "skipped", "again", "deferred")


class LocalExecutor:
    """Any number of slots, one thread, one result per request whatever happens to the processes."""

    def __init__(
        self,
        broker: Broker,
        slots: int,
        options: LocalOptions | None = None,
        programs: Mapping[str, Program] | None = None,
        contents: Contents | None = None,
        questions: Questions | None = None,
    ) -> None:
        self._broker = broker
        self._slots = slots
        self._options = options or LocalOptions()
        self._loop = Loop()
        self._timers = self._loop.timers
        self._pump = LogPump(self._options.output)
        self._tries: dict[tuple[int, int], Try] = {}
        self._backlog: deque[Try] = deque()
        self._admitted = 0
        self._results: list[TaskResult] = []
        self._fleet = Fleet(self, self._loop, self._options, programs or {}, contents, questions)

    # What an agent calls

    def free_slots(self) -> int:
        return max(0, self._slots - len(self._tries))

    def submit(self, requests: Sequence[TaskRequest]) -> None:
        for request in requests:
            if request.node.operator == NOOP:
                self._results.append(verdicts.succeeded(request))
                continue
            attempt = Try(request, self._options.masking)
            if attempt.key in self._tries:
                raise ValueError(f"task {request.task_id} with fence {request.fence} is submitted already")
            self._tries[attempt.key] = attempt
            self._backlog.append(attempt)
        self._admit()

    def poll(self, timeout_seconds: float | None) -> list[TaskResult]:
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            wait = None if until is None else max(0.0, until - time.monotonic())
            is_woken = self._loop.step(0.0 if self._results else wait)
            self._admit()
            if self._results or is_woken or wait == 0.0:
                results, self._results = self._results, []
                return results

    def wake(self) -> None:
        self._loop.wake()

    def cancel(self, task_id: int, fence: int) -> None:
        attempt = self._tries.get((task_id, fence))
        if attempt is None or attempt.stop_reason is not None:
            return
        if attempt.worker is not None:
            self._stop(attempt, attempt.worker, "cancel")
        elif attempt in self._backlog:
            self._backlog.remove(attempt)
            self._admitted += 1
            self._report(attempt, verdicts.not_begun(attempt.request))
        else:
            self._fleet.zygote_of(attempt.request.source).waiting.remove(attempt)
            self._report(attempt, verdicts.not_begun(attempt.request))

    def halt(self, number: signal.Signals) -> int:
        return self._fleet.halt(number)

    def running(self) -> list[tuple[int, int]]:
        return [*self._tries, *((result.task_id, result.fence) for result in self._results)]

    def waiting(self) -> list[tuple[int, int]]:
        return [attempt.key for attempt in self._backlog]

    def close(self, grace_seconds: float) -> None:
        self._backlog.clear()
        self._fleet.forget_waiting()
        until = time.monotonic() + grace_seconds
        for attempt in list(self._tries.values()):
            if attempt.worker is None:
                del self._tries[attempt.key]
            elif grace_seconds > 0 and attempt.stop_reason is None:
                self._stop(attempt, attempt.worker, "cancel")
        while self._tries and (rest := until - time.monotonic()) > 0:
            self._loop.step(rest)
        self._fleet.close()
        self._tries.clear()
        self._results.clear()
        self._pump.close()
        self._loop.close()

    def prepare(self, source: Source) -> None:
        """Load this file ahead of its first task."""
        self._fleet.zygote_of(source)

    # What a try goes through

    def _admit(self) -> None:
        touched: dict[Zygote, None] = {}
        while self._backlog and self._admitted < self._slots:
            attempt = self._backlog.popleft()
            self._admitted += 1
            try:
                zygote = self._fleet.zygote_of(attempt.request.source)
            except OSError as error:
                self._report(attempt, verdicts.not_started(attempt.request, str(error)))
                continue
            zygote.waiting.append(attempt)
            touched[zygote] = None
        for zygote in touched:
            self.dispatch(zygote)

    def dispatch(self, zygote: Zygote) -> None:
        """Start the tries that wait for a child of this warm parent, as far as there are children."""
        if not zygote.is_loaded:
            return
        zygote.used_at = time.monotonic()
        while zygote.waiting and (worker := zygote.take(may_reuse(zygote.waiting[0].request))) is not None:
            self._start(zygote, zygote.waiting.popleft(), worker)
        zygote.order_children(self._slots, is_crowded=len(self._tries) > _CORES)
        self._loop.update(zygote.control)

    def _start(self, zygote: Zygote, attempt: Try, worker: Worker) -> None:
        request = attempt.request
        worker.current = attempt
        attempt.worker = worker
        attempt.started_at = time.monotonic()
        attempt.masker.include(zygote.masker)
        attempt.stream = self._pump.start(worker.output, request.log_path, attempt.masker)
        worker.connection.send(Start(request=request))
        if worker.connection.is_broken:
            self._take_back(zygote, attempt, worker, attempt.stream)
            return
        self._loop.update(worker.connection)
        if request.node.timeout_seconds is not None:
            until = attempt.started_at + request.node.timeout_seconds + self._options.timeout_grace_seconds
            self._timers.set(attempt.key, until, partial(self._stop, attempt, worker, "timeout"))

    def _take_back(self, zygote: Zygote, attempt: Try, worker: Worker, stream: LogStream) -> None:
        """The child was dead before it could be asked: nothing has happened yet, so another child may try."""
        self._pump.finish(stream)
        worker.current = attempt.worker = None
        zygote.waiting.appendleft(attempt)
        self.retire(zygote, worker)

    def _stop(self, attempt: Try, worker: Worker, reason: StopReason) -> None:
        attempt.stop_reason = reason
        signal_group(worker.pid, signal.SIGTERM)
        until = time.monotonic() + attempt.request.kill_grace_seconds
        self._timers.set(attempt.key, until, partial(signal_group, worker.pid, signal.SIGKILL))

    def hear(self, zygote: Zygote, worker: Worker) -> None:
        """Something came from a child."""
        if worker.is_closed:
            return
        try:
            for message in worker.connection.receive():
                self._take(zygote, worker, message)
        except OversizeError:
            self._refuse(worker)
        if worker.connection.is_closed and not worker.is_closed:
            self._hung_up(zygote, worker)

    def _take(self, zygote: Zygote, worker: Worker, message: FromTask) -> None:
        attempt = worker.current
        if attempt is None:
            return
        if isinstance(message, Done):
            worker.is_leaving = message.is_leaving
            self._end(zygote, attempt, worker, self._judged(attempt, message.result))
        else:
            self._answer(attempt, worker, message, time.monotonic() + PATIENCE_SECONDS)

    def _answer(self, attempt: Try, worker: Worker, ask: Ask, until: float) -> None:
        """Answer a question of a task, which has one at a time, now or later. Nobody else waits meanwhile."""
        if worker.current is not attempt or worker.is_closed:
            return
        try:
            reply = answer_now(self._broker, attempt.request, ask, attempt.masker)
        except Later as later:
            now = time.monotonic()
            if now < until:
                again = partial(self._answer, attempt, worker, ask, until)
                self._timers.set(("ask", attempt.key), now + later.seconds, again)
                return
            reply = Answer(id=ask.id, error=str(later))
        worker.connection.send(reply)
        self._loop.update(worker.connection)

    def _judged(self, attempt: Try, result: TaskResult) -> TaskResult:
        """The child's own result, unless the try was being stopped."""
        if attempt.stop_reason == "halt" and result.outcome in _REUSABLE_OUTCOMES:
            return result  # it was done by then, or has finished all the same
        if attempt.stop_reason is not None:
            return self._stopped_result(attempt)
        if result.outcome == "stopped":
            # SIGTERM came from somebody else.
            return verdicts.died(attempt.request, -signal.SIGTERM, time.monotonic() - attempt.started_at)
        if (result.task_id, result.fence) != attempt.key:
            return msgspec.structs.replace(result, task_id=attempt.key[0], fence=attempt.key[1])
        return result

    def _stopped_result(self, attempt: Try) -> TaskResult:
        if attempt.stop_reason == "timeout":
            return verdicts.timed_out(attempt.request)
        if attempt.stop_reason == "oversize":
            return verdicts.oversize(attempt.request, self._options.limit_bytes)
        return verdicts.stopped(attempt.request)

    def _end(self, zygote: Zygote, attempt: Try, worker: Worker, result: TaskResult) -> None:
        if attempt.stream is not None:
            self._pump.finish(attempt.stream, verdicts.last_words(result))
        self._timers.drop(attempt.key)
        worker.current = None
        worker.served += 1
        zygote.used_at = time.monotonic()
        self._report(attempt, result)
        if self._may_serve_again(attempt, worker, result):
            zygote.idle.append(worker)
            if zygote.waiting:
                self.dispatch(zygote)
        else:
            self.retire(zygote, worker)

    def _report(self, attempt: Try, result: TaskResult) -> None:
        del self._tries[attempt.key]
        self._admitted -= 1
        self._results.append(without_secrets(result, attempt.masker))

    # What becomes of a child

    def _may_serve_again(self, attempt: Try, worker: Worker, result: TaskResult) -> bool:
        return (
            may_reuse(attempt.request)
            and result.outcome in _REUSABLE_OUTCOMES
            and not worker.is_leaving
            and not worker.connection.is_closed
            and worker.served < self._options.tries_per_process
            and not worker.has_grown_by(self._options.growth_limit_bytes)
        )

    def retire(self, zygote: Zygote, worker: Worker) -> None:
        """Give a child no more work. It leaves by itself; if it does not, it is killed."""
        zygote.forget(worker)
        self._loop.forget(worker.connection.socket)
        worker.close()
        if worker.pid in zygote.children:
            kill = partial(signal_group, worker.pid, signal.SIGKILL)
            self._timers.set(worker.exit_key, time.monotonic() + _EXIT_SECONDS, kill)

    def exited(self, zygote: Zygote, worker: Worker, code: int | None) -> None:
        """A child is gone; what it said before still counts."""
        self._timers.drop(worker.exit_key)
        if worker.current is not None:
            self._hear_last_words(zygote, worker)
        if worker.current is not None:
            attempt = worker.current
            seconds = time.monotonic() - attempt.started_at
            is_stopped = attempt.stop_reason is not None
            result = self._stopped_result(attempt) if is_stopped else verdicts.died(attempt.request, code, seconds)
            self._end(zygote, attempt, worker, result)
        elif not worker.is_closed:
            self.retire(zygote, worker)

    def _hear_last_words(self, zygote: Zygote, worker: Worker) -> None:
        try:
            messages = worker.connection.receive_rest()
        except OversizeError:
            self._refuse(worker)
            return
        finally:
            # A process that it forked may still hold the other end; nobody is there all the same.
            worker.connection.is_closed = True
        for message in messages:
            self._take(zygote, worker, message)

    def _hung_up(self, zygote: Zygote, worker: Worker) -> None:
        """The socket is closed: the process is dead, and the warm parent tells how in a moment."""
        if worker.current is None:
            self.retire(zygote, worker)
            return
        self._loop.forget(worker.connection.socket)
        kill = partial(signal_group, worker.pid, signal.SIGKILL)
        self._timers.set(worker.exit_key, time.monotonic() + _HANG_UP_SECONDS, kill)

    def _refuse(self, worker: Worker) -> None:
        if worker.current is not None and worker.current.stop_reason is None:
            worker.current.stop_reason = "oversize"
        self._loop.forget(worker.connection.socket)
        signal_group(worker.pid, signal.SIGKILL)

    # What becomes of tries without a child

    def give_up(self, attempts: Sequence[Try], result_of: verdicts.Verdict) -> None:
        """There is no process for these tries: each fails with what `result_of` makes of its request."""
        for attempt in attempts:
            self._report(attempt, result_of(attempt.request))

    def wait_again(self, attempts: Sequence[Try]) -> None:
        """These tries lost their warm parent before they began: they go to the head of the queue."""
        self._admitted -= len(attempts)
        self._backlog.extendleft(reversed(attempts))
