"""What the store says after a load: its runs and every execution of every task."""

from __future__ import annotations

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


def count_unfinished(store: Store) -> int:
    """How many runs have not ended."""
    with store.read() as tx:
        return int(tx.run(UNFINISHED)[0][0])
