"""Triggers of a run that a test looks at: they run in this process, in a thread with an event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import msgspec

from headrace.agent import Broker
from headrace.authoring.dag.context import Context, enter_task, leave_task
from headrace.clock import to_micros
from headrace.definition import Node
from headrace.handoff import Ask, Fired, RunTrigger, TaskRequest, value_of
from headrace.runner.trigger_run import clean_up, failure_of, first_event, make
from headrace.store import Requests, RunGraph, fire_triggers
from headrace.store.sql import Sql
from headrace.testing.engine import Engine

WAITING = Sql(
    """
    SELECT trigger.id, trigger.path, trigger.arguments, task.id, task.key, task.map_index, task.try_number, task.fence
    FROM trigger JOIN task ON task.id = trigger.task_id
    WHERE trigger.attempt_id = :attempt_id AND NOT trigger.is_given_up ORDER BY trigger.id
    """
)


class InlineTriggers:
    """`look` for what tasks wait for, then `fire` what has happened meanwhile; both on the thread of the run."""

    def __init__(self, engine: Engine, attempt_id: int, is_marked: Callable[[str], bool]) -> None:
        """`is_marked`: tasks that are to succeed without waiting, by their keys."""
        self._engine = engine
        self._attempt_id = attempt_id
        self._is_marked = is_marked
        self._known: set[int] = set()
        self._open = 0
        self._told: queue.SimpleQueue[Fired] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="headrace-test-triggers", daemon=True)

    def __enter__(self) -> InlineTriggers:
        enter_task(Context({}, {}), _Questions(self._engine, self._request()))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        leave_task()

    @property
    def are_open(self) -> bool:
        """Whether some trigger has not told anything yet."""
        return self._open > 0

    def look(self) -> None:
        """Begin to run what tasks have begun to wait for."""
        with self._engine.store.read() as tx:
            rows = [row for row in tx.run(WAITING, {"attempt_id": self._attempt_id}) if row[0] not in self._known]
        for trigger_id, path, arguments, task_id, key, map_index, try_number, fence in rows:
            self._known.add(trigger_id)
            self._open += 1
            if self._is_marked(key):
                self._told.put(Fired(trigger_id=trigger_id, outcome="success"))
                continue
            request = self._request(task_id, fence, key, map_index, try_number)
            order = RunTrigger(id=trigger_id, path=path, arguments=msgspec.json.decode(arguments), request=request)
            asyncio.run_coroutine_threadsafe(self._run_one(order), self._loop)

    def fire(self, seconds: float) -> None:
        """Let tasks go on whose triggers have something to tell, after waiting for a first one for so long."""
        told = []
        try:
            told.append(self._told.get(timeout=seconds))
            while True:
                told.append(self._told.get_nowait())
        except queue.Empty:
            pass
        if told:
            self._open -= len(told)
            now = to_micros(self._engine.clock.now())
            self._engine.store.transact(lambda tx: fire_triggers(tx, RunGraph(tx, now), told, None, {}))

    def _request(
        self, task_id: int = 0, fence: int = 0, key: str = "", map_index: int = -1, try_number: int = 1
    ) -> TaskRequest:
        with self._engine.store.read() as tx:
            run = Requests().run(tx, self._attempt_id)
        return TaskRequest(
            task_id=task_id,
            fence=fence,
            key=key,
            map_index=map_index,
            try_number=try_number,
            node=Node(key=key),
            source=run.source,
            run=run.context,
        )

    # ---- on the loop's thread --------------------------------------------------------------------------------------

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self._engine.store.close()

    async def _run_one(self, order: RunTrigger) -> None:
        trigger = None
        try:
            trigger = await make(order)
            self._told.put(await first_event(order, trigger))
        except Exception as error:
            self._told.put(failure_of(order, error))
        finally:
            if trigger is not None:
                await clean_up(trigger)


class _Questions:
    """Asks the broker what the code of triggers asks."""

    def __init__(self, engine: Engine, request: TaskRequest) -> None:
        self._broker = Broker(engine.store, engine.clock)
        self._request = request

    def ask(self, verb: str, **args: Any) -> Any:
        return value_of(self._broker(self._request, Ask(id=1, verb=verb, args=args)), verb)
