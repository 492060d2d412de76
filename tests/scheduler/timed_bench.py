"""A store at a time that the test moves, with one line for each thing that a person or an agent does."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select

from headrace.clock import ManualClock, from_micros, to_micros
from headrace.definition import Node, Schedule, Workflow, check_workflow, to_json
from headrace.handoff import TaskError, TaskResult
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.store import (
    NewRun,
    Report,
    RunGraph,
    Store,
    claim_tasks,
    create_run,
    latest_attempt,
    record_results,
    register,
    start_queued_runs,
)
from headrace.store import schema as tables

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Bench:
    def __init__(self, url: str, start: datetime = NOON) -> None:
        self.store = Store(url)
        self.clock = ManualClock(start)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def micros(self) -> int:
        return to_micros(self.now)

    def close(self) -> None:
        self.store.dispose()

    def advance(self, **delta) -> datetime:
        self.clock.advance(timedelta(**delta))
        return self.now

    # ---- what a person does ------------------------------------------------------------------------------------

    def save(self, *flows: Workflow, file: str | None = None) -> list[int]:
        """Save workflows as one file; returns their ids."""
        checked = tuple(check_workflow(one) for one in flows)
        digest = hashlib.sha256(to_json(checked)).hexdigest()
        parsed = ParsedFile(file=file or f"{flows[0].name}.py", digest=digest, workflows=checked)
        (saved,) = save_parsed(self.store, "p", Path("/p"), [parsed], self.now)
        assert saved.error is None, saved.error
        return [one.id for one in saved.workflows]

    def start(self, one: Workflow, key: str = "r1", **fields) -> int:
        """Save a workflow and start a run of it; returns the attempt."""
        (workflow_id,) = self.save(one)
        run_id = self.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, key, **fields), self.micros))
        self.store.transact(lambda tx: start_queued_runs(tx, workflow_id, self.micros))
        with self.store.read() as tx:
            return latest_attempt(tx, run_id)

    # ---- what an agent does ------------------------------------------------------------------------------------

    def agent(
        self, name: str = "worker-3", *, kind: str = "agent", place: str = "elsewhere", pid: int = 1, lease: float = 15
    ) -> int:
        return self.store.transact(
            lambda tx: register(
                tx, kind=kind, name=name, place=place, pid=pid, slots=8, queues=("default",), now=self.micros,
                lease_micros=round(lease * 1e6),
            )
        )  # fmt: skip

    def claim(self, agent_id: int, limit: int = 100):
        def work(tx):
            graph = RunGraph(tx, self.micros)
            claims = claim_tasks(tx, graph, agent_id, "default", limit)
            graph.flush_events()
            return [claim.task for claim in claims]

        return self.store.transact(work)

    def end(self, task, outcome: str = "success", **fields):
        if outcome == "failed":
            fields.setdefault("error", TaskError(type="ValueError", message="boom"))
        result = TaskResult(task_id=task.id, fence=task.fence, outcome=outcome, **fields)

        def work(tx):
            graph = RunGraph(tx, self.micros)
            committed = record_results(tx, graph, [Report(task.attempt_id, result, f"logs/{task.id}.log")])
            graph.flush_events()
            return committed

        return self.store.transact(work)

    def finish_everything(self, agent_id: int) -> None:
        """Run whatever can be run, to success."""
        while tasks := self.claim(agent_id):
            for task in tasks:
                self.end(task)

    # ---- what is true ------------------------------------------------------------------------------------------

    def rows(self, table, *where):
        with self.store.read() as tx:
            return list(tx.execute(select(table).where(*where).order_by(table.c.id if "id" in table.c else None)))

    def count(self, table) -> int:
        with self.store.read() as tx:
            return tx.execute(select(func.count()).select_from(table)).scalar_one()

    def runs(self, name: str | None = None):
        """(logical time, state) of each run, oldest first."""
        query = select(tables.run.c.logical_at, tables.run.c.state).join(tables.workflow)
        if name is not None:
            query = query.where(tables.workflow.c.name == name)
        with self.store.read() as tx:
            rows = list(tx.execute(query.order_by(tables.run.c.logical_at)))
        return [(from_micros(row.logical_at) if row.logical_at is not None else None, row.state) for row in rows]

    def times(self, name: str | None = None) -> list[str]:
        """Logical times of the runs, as `02 12:00`."""
        return [f"{logical:%d %H:%M}" for logical, _ in self.runs(name)]

    def schedule(self, workflow_id: int):
        (row,) = self._schedules(workflow_id)
        return row

    def _schedules(self, workflow_id: int):
        with self.store.read() as tx:
            return list(tx.execute(select(tables.schedule).where(tables.schedule.c.workflow_id == workflow_id)))

    def task(self, attempt_id: int, key: str = "a"):
        where = (tables.task.c.attempt_id == attempt_id, tables.task.c.key == key, ~tables.task.c.is_superseded)
        (row,) = self.rows(tables.task, *where)
        return row

    def attempt(self, attempt_id: int):
        (row,) = self.rows(tables.attempt, tables.attempt.c.id == attempt_id)
        return row


def flow(name: str = "w", *nodes: Node, **fields) -> Workflow:
    """A workflow of nodes under one root; one task `a` unless others are given."""
    nodes = nodes or (node("a"),)
    return Workflow(name=name, language="python", nodes=(Node(key="", kind="group"), *nodes), **fields)


def node(key: str, *upstream: str, **fields) -> Node:
    return Node(**{"key": key, "parent": "", "upstream": upstream, "operator": "work", **fields})


def hourly(**fields) -> Schedule:
    """Due at each full hour, for that hour."""
    spec = {"expression": "0 * * * *", **fields.pop("spec", {})}
    return Schedule(type="cron", spec=spec, **fields)
