"""A run as a test looks at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from headrace.clock import Clock, to_micros
from headrace.handoff import RETURN_VALUE, Fired
from headrace.state import State
from headrace.store import (
    RunGraph,
    Store,
    TaskRow,
    Transaction,
    add_attempt,
    cancel_attempt,
    clear_tasks,
    fire_triggers,
    latest_attempt,
    list_tasks,
    list_tries,
    mark_attempt,
    mark_tasks,
    start_queued_runs,
    task_values,
)
from headrace.store.sql import Sql

RUN = Sql("SELECT state, reason, workflow_id, key FROM run WHERE id = :id")
STORY = Sql("SELECT after FROM event WHERE attempt_id = :attempt_id AND task_id = :task_id ORDER BY id")
TRIGGER = Sql("SELECT id FROM trigger WHERE task_id = :task_id AND NOT is_given_up")
RUN_STORY = Sql("SELECT after FROM event WHERE attempt_id = :attempt_id AND task_id IS NULL ORDER BY id")


class Run:
    """Tasks are named by their key, with the index of an instance (`load[2]`), or by the end of a `.dig` key."""

    def __init__(self, store: Store, clock: Clock, run_id: int, logs: Path) -> None:
        self.id = run_id
        self._store = store
        self._clock = clock
        self._logs = logs

    @property
    def state(self) -> str:
        return str(self._row()[0])

    @property
    def reason(self) -> str | None:
        """Why it ended as it did, if there is more to say: `timed_out`, `deadlocked`."""
        reason: str | None = self._row()[1]
        return reason

    @property
    def key(self) -> str:
        """The run's name, unique in its workflow."""
        return str(self._row()[3])

    @property
    def attempt_id(self) -> int:
        """The newest attempt, which everything here is about."""
        with self._store.read() as tx:
            return latest_attempt(tx, self.id)

    def states(self) -> dict[str, str]:
        """Every live task below the root, in file order."""
        return {task.name: task.state for task in self._tasks() if task.parent_id is not None}

    def story(self, name: str | None = None) -> list[str]:
        """The states that a task has been through; without a name those of the run."""
        with self._store.read() as tx:
            if name is None:
                return [row[0] for row in tx.run(RUN_STORY, {"attempt_id": self.attempt_id})]
            parameters = {"attempt_id": self.attempt_id, "task_id": self.task(name).id}
            return [row[0] for row in tx.run(STORY, parameters)]

    def value(self, name: str, of: str = RETURN_VALUE) -> Any:
        """A named result of a task; for a mapped task the list of its instances' results. None: there is none."""
        task = self.task(name)
        with self._store.read() as tx:
            values = task_values(tx, self.attempt_id, [task.key], of)[task.key]
        if values.is_mapped and task.map_index < 0:
            return [msgspec.json.decode(document) for document in values.documents]
        document = values.by_index.get(task.map_index)
        return None if document is None else msgspec.json.decode(document)

    def tries(self, name: str) -> list[str]:
        """How each execution of a task ended, oldest first."""
        with self._store.read() as tx:
            return [row.state for row in list_tries(tx, self.task(name).id)]

    def error(self, name: str) -> str | None:
        """The message of a task's newest failure."""
        with self._store.read() as tx:
            errors = [row.error_json for row in list_tries(tx, self.task(name).id) if row.error_json]
        return msgspec.json.decode(errors[-1])["message"] if errors else None

    def log(self, name: str) -> str:
        """The log of a task's newest execution that has one."""
        with self._store.read() as tx:
            paths = [row.log for row in list_tries(tx, self.task(name).id) if row.log]
        path = self._logs / paths[-1] if paths else None
        return path.read_text() if path is not None and path.exists() else ""

    def task(self, name: str) -> TaskRow:
        """The live task with this name."""
        tasks = self._tasks()
        found = [task for task in tasks if task.name == name] or [task for task in tasks if task.name.endswith(name)]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} tasks are called `{name}`, there are: {[task.name for task in tasks]}")
        return found[0]

    # ---- what a person may ask for -----------------------------------------------------------------------------------

    def cancel(self) -> None:
        self._store.transact(lambda tx: cancel_attempt(tx, self.attempt_id, self._now))

    def clear(self, *names: str) -> None:
        """Give tasks a new series of tries."""
        ids = [self.task(name).id for name in names]
        self._store.transact(lambda tx: clear_tasks(tx, self.attempt_id, ids, self._now))

    def mark(self, state: str, *names: str) -> None:
        """Say how tasks ended; without names how the run did."""
        if not names:
            self._store.transact(lambda tx: mark_attempt(tx, self.attempt_id, State(state), self._now))
            return
        ids = [self.task(name).id for name in names]
        self._store.transact(lambda tx: mark_tasks(tx, self.attempt_id, ids, State(state), self._now, []))

    def retry(self, *, is_resuming: bool = True) -> None:
        """Go on with a new attempt, which carries over what succeeded."""
        resumes, (_, _, workflow_id, _) = self.attempt_id if is_resuming else None, self._row()

        def work(tx: Transaction) -> None:
            add_attempt(tx, self.id, workflow_id, resumes, "", self._now)
            start_queued_runs(tx, workflow_id, self._now)

        self._store.transact(work)

    def fire(self, name: str, event: Any = None, **told: Any) -> None:
        """The trigger that a task waits for has this to tell; `error`, `outcome` and `values` as in `handoff.Fired`."""
        task_id = self.task(name).id

        def work(tx: Transaction) -> None:
            ((trigger_id,),) = tx.run(TRIGGER, {"task_id": task_id})
            fire_triggers(tx, RunGraph(tx, self._now), [Fired(trigger_id=trigger_id, event=event, **told)], None, {})

        self._store.transact(work)

    @property
    def _now(self) -> int:
        return to_micros(self._clock.now())

    def _row(self) -> tuple[Any, ...]:
        with self._store.read() as tx:
            return tx.run(RUN, {"id": self.id})[0]

    def _tasks(self) -> list[TaskRow]:
        with self._store.read() as tx:
            return list_tasks(tx, self.attempt_id)
