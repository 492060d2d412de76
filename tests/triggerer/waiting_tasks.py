"""A store with tasks that wait for triggers of a test's own project, and a triggerer that a test steps."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from headrace.agent import Broker
from headrace.clock import SystemClock, to_micros
from headrace.definition import Deferral, Node, Workflow
from headrace.handoff import Resume
from headrace.logs import log_path
from headrace.store import (
    NewRun,
    Store,
    cancel_attempt,
    clear_tasks,
    create_run,
    ensure_project,
    get_run,
    latest_attempt,
    list_tasks,
    save_file,
    start_queued_runs,
)
from headrace.store.sql import Sql
from headrace.triggerer import Triggerer, TriggererOptions

RESUME = Sql("SELECT resume FROM task WHERE id = :id")
TRIGGERS = Sql("SELECT count(*) FROM trigger")

MODULE = """
    import asyncio, os, sys, time
    from airflow.sdk import Variable
    from airflow.triggers.base import *

    class Act(BaseTrigger):
        def __init__(self, do, **more):
            super().__init__()
            self.do, self.more = do, more
        def serialize(self):
            return "acting.Act", {"do": self.do, **self.more}
        async def run(self):
            print("begins", self.do)
            async for event in getattr(self, self.do)(**self.more):
                yield event
        async def fire(self, payload=None):
            yield TriggerEvent(payload)
            yield TriggerEvent("never seen")
        async def fail(self):
            raise ValueError("boom")
            yield
        async def end_silently(self):
            return
            yield
        async def yield_nonsense(self):
            yield 7
        async def leave(self):
            sys.exit(3)
            yield
        async def wait(self):
            await asyncio.sleep(3600)
            yield TriggerEvent()
        async def block(self, seconds):
            time.sleep(seconds)
            yield TriggerEvent()
        async def ask(self, name):
            known = Variable.get(name)
            in_thread = await asyncio.to_thread(Variable.get, name)
            yield TriggerEvent([known, in_thread])
        async def succeed(self):
            yield TaskSuccessEvent(xcoms={"return_value": [1, 2]})
        async def die_once(self, file):
            if not os.path.exists(file):
                open(file, "w").close()
                os._exit(9)
            yield TriggerEvent("survived")
        async def await_file(self, file):
            while not os.path.exists(file):
                await asyncio.sleep(0.05)
            yield TriggerEvent("there")
        async def who(self):
            t = self.task_instance
            yield TriggerEvent([t.dag_id, t.task_id, t.run_id, t.map_index, t.try_number, self.trigger_id > 0])
        async def cleanup(self):
            print("cleaned up", self.do)
        async def on_kill(self):
            await asyncio.sleep(0.05)
            print("killed", self.do)
"""


class Waiting:
    """Tasks by name, each with its own trigger."""

    def __init__(self, folder: Path, url: str) -> None:
        self.store = Store(url)
        self.clock = SystemClock()
        self.logs = folder / "logs"
        self.project = folder / "project"
        self.project.mkdir(exist_ok=True)
        (self.project / "acting.py").write_text(textwrap.dedent(MODULE))
        self.run_id = self.attempt_id = 0

    def start(self, path: str = "acting.Act", **acts: dict[str, Any]) -> None:
        """Begin a run of tasks that wait: `a={"do": "fire"}`."""
        waiting = [
            Node(key=key, parent="", operator="work", deferral=Deferral(trigger=path, arguments=arguments))
            for key, arguments in acts.items()
        ]
        root = Node(key="", kind="group")
        flow = Workflow(name="w", language="python", nodes=(root, *waiting))

        def work(tx: Any) -> int:
            project_id = ensure_project(tx, "p", str(self.project), self.now)
            (saved,) = save_file(tx, project_id, "w.py", "1", [flow], self.now)
            run_id = create_run(tx, NewRun(saved.id, "r1"), self.now)
            start_queued_runs(tx, saved.id, self.now)
            tx.tell()
            return run_id or 0

        self.run_id = self.store.transact(work)
        with self.store.read() as tx:
            self.attempt_id = latest_attempt(tx, self.run_id)

    @property
    def now(self) -> int:
        return to_micros(self.clock.now())

    def triggerer(self, **options: Any) -> Triggerer:
        given = TriggererOptions(**{"poll_seconds": 0.2, "lease_seconds": 15.0, **options})
        return Triggerer(self.store, self.clock, Broker(self.store), self.logs, given)

    def states(self) -> dict[str, str]:
        with self.store.read() as tx:
            return {row.key: row.state for row in list_tasks(tx, self.attempt_id) if row.parent_id is not None}

    def resume(self, key: str) -> Resume:
        with self.store.read() as tx:
            task = next(row for row in list_tasks(tx, self.attempt_id) if row.key == key)
            ((document,),) = tx.run(RESUME, {"id": task.id})
        return msgspec.json.decode(document, type=Resume)

    def log(self, key: str) -> str:
        path = log_path(self.logs, "w", "r1", key, project="p")
        return path.read_text() if path.exists() else ""

    def count_triggers(self) -> int:
        with self.store.read() as tx:
            return int(tx.run(TRIGGERS)[0][0])

    def cancel(self) -> None:
        self.store.transact(lambda tx: cancel_attempt(tx, self.attempt_id, self.now))

    def clear(self, key: str) -> None:
        with self.store.read() as tx:
            ids = [row.id for row in list_tasks(tx, self.attempt_id) if row.key == key]
        self.store.transact(lambda tx: clear_tasks(tx, self.attempt_id, ids, self.now))

    def run_state(self) -> str:
        with self.store.read() as tx:
            run = get_run(tx, self.run_id)
        return "" if run is None else run.state


def step_until(triggerer: Triggerer, is_so: Callable[[], object], seconds: float = 30.0) -> None:
    """Let the triggerer work until something is so."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise AssertionError(f"not so after {seconds} s")
        triggerer.step(0.05)
