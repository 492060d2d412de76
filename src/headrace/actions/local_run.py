"""One workflow from its file to its end, with everything that moves it in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from headrace.actions.local_session import LocalWish, abandon_orphans, begin_local_run
from headrace.actions.parts import Parts
from headrace.actions.private_projects import ensure_private_project
from headrace.actions.serving import Server, TriggererServer
from headrace.actions.timekeeper import Timekeeper
from headrace.actions.why import why
from headrace.actions.why_task import Reason
from headrace.agent import Agent
from headrace.clock import to_micros
from headrace.definition import Isolation, Node, Workflow
from headrace.errors import StateError, StoreError
from headrace.executor import Executor
from headrace.projects import ParsedFile
from headrace.store import (
    Definitions,
    RunRow,
    TaskRow,
    Transaction,
    add_missing_pools,
    cancel_attempt,
    count_open_errands,
    ensure_project,
    get_run,
    list_tasks,
    save_asset_uses,
    save_file,
    version_of_attempt,
)
from headrace.trace_context import is_tracing_wanted
from headrace.triggerer import Triggerer


class LocalRun:
    """`start`, then `wait` until it returns True, then `close`. `cancel` and `kill` may be called in between."""

    def __init__(
        self,
        parts: Parts,
        executor: Executor,
        *,
        is_private: bool,
        slots: int | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        """A private run has an agent that serves it alone: several `headrace run` share a store and nothing else."""
        self._parts = parts
        self._executor = executor
        self._is_private = is_private
        self._slots = slots
        self._isolation = isolation
        self._ended = threading.Event()
        self._must_end = threading.Event()
        self._is_stopping = False
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._wake: Any = lambda: None
        self._served_by: tuple[Agent | Triggerer, ...] = ()
        self._adopted: list[int] = []
        self._traces: list[Server] = []
        self.run_id = 0

    def start(self, root: Path, parsed: ParsedFile, workflow: Workflow, wish: LocalWish) -> RunRow:
        """Save the file, create the run or another attempt of its session, and begin to work on it."""
        # Before there is a run: one that cannot be traced as somebody wants it must not be left behind.
        self._begin_traces()

        def work(tx: Transaction) -> RunRow:
            now = self._parts.clock.now()
            at, content = to_micros(now), parsed.content
            project_id = self._ensure_project(tx, root, at)
            rows = save_file(tx, project_id, parsed.file, parsed.digest, parsed.workflows, at, content)
            for saved, defined in zip(rows, parsed.workflows, strict=True):
                if saved.is_changed or saved.is_new:
                    save_asset_uses(tx, saved.id, defined.assets, at)
            (row,) = (one for one in rows if one.name == workflow.name)
            if self._is_private:
                abandon_orphans(tx, row.id, to_micros(now))
                # Nobody has set up pools for it, and there is nobody with whom it would have to share them.
                add_missing_pools(tx, (node.pool for node in _every(workflow.nodes)))
            return begin_local_run(tx, row.id, workflow, wish, now, is_private=self._is_private)

        run = self._parts.store.transact(work)
        if run.is_paused and not self._is_private:
            self._parts.store.transact(lambda tx: cancel_attempt(tx, run.attempt_id, self._now()))
            hint = f"`headrace unpause {run.workflow}`"
            raise StateError(f"workflow `{run.workflow}` is paused in this store", hint=hint)
        served = {"default", *(node.queue for node in _every(workflow.nodes))}
        queues = ("default",) if self._is_private else tuple(sorted(served))
        self.go_on(run, queues)
        return run

    def _ensure_project(self, tx: Transaction, root: Path, now: int) -> int:
        if self._is_private:
            return ensure_private_project(tx, root, now)
        return ensure_project(tx, root.name or "root", str(root), now)

    def go_on(self, run: RunRow, queues: tuple[str, ...] = ("default",)) -> None:
        """Begin to work on a run that is there."""
        self.run_id = run.id
        self._thread = threading.Thread(target=self._live, args=(run, queues), name="headrace-run", daemon=True)
        self._thread.start()

    def timezone(self) -> str:
        """Where the workflow's sessions are local."""
        attempt_id = self.row().attempt_id
        with self._parts.store.read() as tx:
            version_id = version_of_attempt(tx, attempt_id)
            return tx.shared(Definitions).version(tx, version_id).workflow.timezone

    def wait(self, seconds: float | None = None) -> bool:
        """Whether the run has ended, after at most so long."""
        is_ended = self._ended.wait(seconds)
        if is_ended and self._failure is not None:
            raise self._failure
        return is_ended

    def cancel(self) -> None:
        """Stop the run cleanly, and wait for no callback any more; it has ended when `wait` says so."""
        for run in [one for one in self._runs() if one.is_active]:
            self._parts.store.transact(partial(cancel_attempt, attempt_id=run.attempt_id, now=self._now()))
        self._is_stopping = True
        # A run that had ended before has no news of it.
        self._wake()

    def adopt(self, run_id: int, attempt_id: int) -> None:
        """Work on a run that one of the run's own tasks has started, and do not end before it."""

        def add_pools(tx: Transaction) -> None:
            version = tx.shared(Definitions).version(tx, version_of_attempt(tx, attempt_id))
            add_missing_pools(tx, (node.pool for node in _every(version.workflow.nodes)))

        self._parts.store.transact(add_pools)
        self._adopted.append(run_id)
        for server in self._served_by:
            server.serve(attempt_id)

    def kill(self) -> None:
        """Stop working at once."""
        self._must_end.set()
        self._wake()

    def close(self) -> None:
        """Let go of all processes and of the store."""
        self.kill()
        if self._thread is not None:
            self._thread.join()
        self._parts.store.dispose()

    def wait_seconds(self, error: StoreError) -> float:
        """How long to wait before the database, which has just failed, is asked again."""
        return self._parts.store.outage.met(error)

    def row(self) -> RunRow:
        with self._parts.store.read() as tx:
            run = get_run(tx, self.run_id)
        assert run is not None, "created by this object"
        return run

    def tasks(self) -> list[TaskRow]:
        """The tasks as people count them, in the order of the file."""
        with self._parts.store.read() as tx:
            run = get_run(tx, self.run_id)
            rows = list_tasks(tx, run.attempt_id) if run is not None else []
        return [task for task in rows if task.is_listed]

    def undone_callbacks(self) -> int:
        """How many callbacks of the run, and of those that its tasks have started, are still to be called."""
        runs = self._runs()
        with self._parts.store.read() as tx:
            return sum(count_open_errands(tx, run.attempt_id) for run in runs)

    def why(self) -> list[Reason]:
        """What each task of the run waits for."""
        return why(self._parts.store, self._parts.clock, str(self.run_id)).reasons

    # ---- on the thread that works ------------------------------------------------------------------------------

    def _live(self, run: RunRow, queues: tuple[str, ...]) -> None:
        try:
            self._work(run, queues)
        except BaseException as error:
            self._failure = error
        finally:
            self._parts.store.close()
            self._ended.set()

    def _work(self, run: RunRow, queues: tuple[str, ...]) -> None:
        agent = self._parts.agent(
            self._executor,
            slots=self._slots,
            queues=queues,
            attempt_id=run.attempt_id if self._is_private else None,
            isolation=self._isolation,
            name=f"run-{run.id}",
        )
        triggerer = self._parts.triggerer(attempt_id=run.attempt_id if self._is_private else None, name=f"run-{run.id}")
        triggers = TriggererServer(triggerer)
        given = self._parts.settings.scheduler
        timekeeper = Timekeeper(self._parts.store, self._parts.clock, given.poll_seconds, check_slas=given.check_slas)
        self._begin_traces()
        self._insist(agent.start)
        triggers.start()
        self._wake, self._served_by = agent.wake, (agent, triggerer)
        self._parts.store.wakeups.start()
        try:
            while not self._must_end.is_set():
                try:
                    if (timekeeper.tick() or self._is_stopping) and self._is_over():
                        break
                except StoreError as error:
                    self._must_end.wait(self.wait_seconds(error))
                agent.step(timekeeper.wait_seconds())
        finally:
            triggers.stop()
            # Tasks of other runs, which a store with several agents may have given us, end in peace.
            agent.stop(0.0 if self._is_private or self._must_end.is_set() else float("inf"))
            for server in self._traces:
                server.stop()

    def _begin_traces(self) -> None:
        """Start what sends a trace of the run, if somebody wants one."""
        if self._traces or not is_tracing_wanted(os.environ):
            return
        # Only then: a run of one small task should not wait for it.
        exporter = import_module("headrace.tracing").trace_exporter(self._parts.store, os.environ)
        if exporter is not None:
            exporter.start()
            self._traces.append(exporter)

    def _insist(self, work: Callable[[], None]) -> None:
        """The run is there, and nobody else would work on it because the database was away for a moment."""
        while True:
            try:
                return work()
            except StoreError as error:
                if self._must_end.wait(self.wait_seconds(error)):
                    raise

    def _is_over(self) -> bool:
        """Whether the run has ended, and with it what it started and what is to be called about it."""
        if any(run.is_active for run in self._runs()):
            return False
        # Callbacks are part of a run: somebody who runs one workflow has nobody else to run them. Somebody who stops it
        # may do so because one of them cannot be run.
        return self._is_stopping or not self.undone_callbacks()

    def _runs(self) -> list[RunRow]:
        """The run, and those that its tasks have started."""
        with self._parts.store.read() as tx:
            runs = [get_run(tx, run_id) for run_id in (self.run_id, *self._adopted)]
        return [run for run in runs if run is not None]

    def _now(self) -> int:
        return to_micros(self._parts.clock.now())


def _every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _every(node.on_failure)
