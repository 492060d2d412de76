"""What the store says after a load: its runs and every execution of every task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.store import Store
from headrace.store.sql import Sql

RUNS = Sql(
    """
    SELECT run.id, workflow.name, run.key, run.type, run.state, run.logical_at, attempt.id
    FROM run JOIN workflow ON workflow.id = run.workflow_id JOIN attempt ON attempt.run_id = run.id ORDER BY run.id
    """
)
TASKS = Sql(
    """
    SELECT task.id, task.attempt_id, task.key, task.map_index, task.state, task.operator, task.isolation, task.kind,
           task.fence, task.is_superseded
    FROM task ORDER BY task.id
    """
)
EXECUTIONS = Sql("SELECT task_id, fence, try_number, state FROM try ORDER BY task_id, fence")
OFFERED = Sql(
    """
    SELECT min(at) FROM event
    WHERE attempt_id IN :attempts[] AND task_id IN :tasks[] AND after = 'scheduled' AND at > :after
    """
)
UNFINISHED = Sql("SELECT count(*) FROM run WHERE state IN ('queued', 'running')")


class SeenRun(NamedTuple):
    id: int
    workflow: str
    key: str
    type: str
    state: str
    logical_at: int | None
    attempt_id: int


class SeenTask(NamedTuple):
    id: int
    attempt_id: int
    key: str
    map_index: int
    state: str
    operator: str
    isolation: str
    kind: str
    fence: int
    is_superseded: bool

    @property
    def name(self) -> str:
        return self.key if self.map_index < 0 else f"{self.key}[{self.map_index}]"


class Execution(NamedTuple):
    task_id: int
    fence: int
    number: int
    state: str


class History(NamedTuple):
    """Everything in the store that the tasks' record is compared with."""

    runs: list[SeenRun]
    tasks: list[SeenTask]
    executions: list[Execution]

    @classmethod
    def read(cls, store: Store) -> History:
        with store.read() as tx:
            return cls(
                [SeenRun(*row) for row in tx.run(RUNS)],
                [SeenTask(*row) for row in tx.run(TASKS)],
                [Execution(*row) for row in tx.run(EXECUTIONS)],
            )

    def tasks_named(self, workflow: str, run: str, task: str) -> list[SeenTask]:
        """Tasks of Python DAGs know their run by its key, tasks of `.dig` workflows by its attempt."""
        runs = (one for one in self.runs if one.workflow == workflow)
        attempts = {one.attempt_id for one in runs if run in (one.key, str(one.attempt_id))}
        return [one for one in self.tasks if one.attempt_id in attempts and one.name == task]


def offered_at(store: Store, tasks: Sequence[SeenTask], after: int) -> int | None:
    """When one of these tasks could be claimed again, in microseconds by the database's clock."""
    ids = {"attempts": [task.attempt_id for task in tasks], "tasks": [task.id for task in tasks]}
    with store.read() as tx:
        at: int | None = tx.run(OFFERED, {**ids, "after": after})[0][0]
    return at


def count_unfinished(store: Store) -> int:
    """How many runs have not ended."""
    with store.read() as tx:
        return int(tx.run(UNFINISHED)[0][0])
