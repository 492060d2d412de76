"""A run of a DAG that a test looks at after it has ended: plain data, as much like a `DagRun` as tests need."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from headrace.authoring.dag.dates import to_pendulum
from headrace.authoring.dag.values import decode_value
from headrace.handoff import RETURN_VALUE
from headrace.store import Store, TaskRow, instance_labels, list_tasks
from headrace.store.sql import Sql

VALUES = Sql("SELECT task_id, name, document FROM value WHERE attempt_id = :attempt_id AND kind = 'result'")


class TestedTask:
    """One task, or one instance of a mapped task."""

    __test__ = False  # no class of tests, whatever its name says to pytest

    def __init__(self, row: TaskRow, values: Mapping[str, Any], label: str | None) -> None:
        self.task_id = row.key
        self.map_index = row.map_index
        self.name = row.name
        self.state = row.state
        self.try_number = row.try_number
        self.rendered_map_index = label
        self.error = None if row.error is None else row.error.message
        self.values = dict(values)
        """Its results by name."""

    @property
    def return_value(self) -> Any:
        """What the task returned; None if it returned nothing."""
        return self.values.get(RETURN_VALUE)

    def xcom_pull(self, task_ids: Any = None, key: str = RETURN_VALUE) -> Any:
        """A named result of this task."""
        return self.values.get(key)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.state}>"


class TestedRun:
    """How a run ended, and each of its tasks."""

    __test__ = False

    def __init__(self, dag_id: str, run_id: str, conf: Mapping[str, Any], logical_date: datetime, state: str) -> None:
        self.dag_id = dag_id
        self.run_id = run_id
        self.conf = dict(conf)
        self.logical_date = to_pendulum(logical_date)
        self.state = state
        self.task_instances: list[TestedTask] = []

    def read(self, store: Store, attempt_id: int) -> TestedRun:
        """Take in what the store knows, which may be gone afterwards."""
        values: dict[int, dict[str, Any]] = {}
        with store.read() as tx:
            rows, labels = list_tasks(tx, attempt_id), instance_labels(tx, attempt_id)
            for task_id, name, document in tx.run(VALUES, {"attempt_id": attempt_id}):
                values.setdefault(task_id, {})[name] = decode_value(msgspec.json.decode(document))
        self.task_instances = [
            TestedTask(row, values.get(row.id, {}), labels.get(row.id)) for row in rows if row.is_listed
        ]
        return self

    @property
    def states(self) -> dict[str, str]:
        """`{"extract": "success", "load[0]": "failed", …}`"""
        return {one.name: one.state for one in self.task_instances}

    def value(self, task_id: str, key: str = RETURN_VALUE) -> Any:
        """What a task returned; of a mapped task the list of what its instances returned."""
        found = [one for one in self.task_instances if one.task_id == task_id]
        if len(found) == 1 and found[0].map_index < 0:
            return found[0].values.get(key)
        return [one.values[key] for one in sorted(found, key=lambda one: one.map_index) if key in one.values]

    def get_task_instances(self, state: Any = None) -> list[TestedTask]:
        """All tasks, or those in one state or in one of several."""
        wanted = None if state is None else {state} if isinstance(state, str) else set(state)
        return [one for one in self.task_instances if wanted is None or one.state in wanted]

    def get_task_instance(self, task_id: str, map_index: int = -1) -> TestedTask | None:
        """The task with that id; None if the run has none."""
        found = (one for one in self.task_instances if (one.task_id, one.map_index) == (task_id, map_index))
        return next(found, None)

    def __repr__(self) -> str:
        return f"<DagRun {self.dag_id} {self.run_id}: {self.state}>"
