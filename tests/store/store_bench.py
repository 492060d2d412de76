"""The store's verbs in one line each, at a time that the test moves."""

from __future__ import annotations

from sqlalchemy import insert, select, update

from headrace.definition import Node, Workflow, check_workflow
from headrace.handoff import TaskError, TaskResult
from headrace.state import Task
from headrace.store import (
    Committed,
    NewRun,
    Report,
    Requests,
    RunGraph,
    Store,
    claim_tasks,
    create_run,
    ensure_project,
    expire_leases,
    latest_attempt,
    record_results,
    register,
    rescue_tasks,
    save_file,
    start_queued_runs,
)
from headrace.store.agents import LostProcess
from headrace.store.schema import event, pool, task, try_, value, workflow
from headrace.store.task_rows import to_task

SECOND = 1_000_000


class Bench:
    """One store with its agents; every verb is a transaction of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = Store(url)
        self.now = 1_800_000_000 * SECOND
        self.requests = Requests()

    def close(self) -> None:
        self.store.dispose()

    # ---- what there is -----------------------------------------------------------------------------------------

    def save(self, *flows: Workflow, file: str = "flows.py", digest: str = "1", project: str = "p") -> list[int]:
        """Save workflows as one file and return their ids."""
        with self.store.begin() as tx:
            project_id = ensure_project(tx, project, "/p", self.now)
            saved = save_file(tx, project_id, file, digest, [check_workflow(flow) for flow in flows], self.now)
        return [one.id for one in saved]

    def create(self, workflow_id: int, key: str = "r1", **fields) -> int | None:
        with self.store.begin() as tx:
            return create_run(tx, NewRun(workflow_id, key, **fields), self.now)

    def activate(self, workflow_id: int) -> Committed | None:
        with self.store.begin() as tx:
            return start_queued_runs(tx, workflow_id, self.now)

    def start(self, flow: Workflow, key: str = "r1", **fields) -> int:
        """Save a workflow and start a run of it; returns the attempt."""
        (workflow_id,) = self.save(flow, file=f"{flow.name}.py")
        run_id = self.create(workflow_id, key, **fields)
        assert run_id is not None
        self.activate(workflow_id)
        with self.store.read() as tx:
            return latest_attempt(tx, run_id)

    def pool(self, name: str, slots: int, **fields) -> None:
        with self.store.begin() as tx:
            tx.execute(insert(pool).values(name=name, slots=slots, **fields))

    def pause(self, workflow_id: int, is_paused: bool = True) -> None:
        with self.store.begin() as tx:
            tx.execute(update(workflow).where(workflow.c.id == workflow_id).values(is_paused=is_paused))

    # ---- agents ------------------------------------------------------------------------------------------------

    def agent(self, name: str = "one", lease_seconds: float = 15) -> int:
        with self.store.begin() as tx:
            return register(
                tx, kind="agent", name=name, place="here", pid=1, slots=8, queues=("default",), now=self.now,
                lease_micros=round(lease_seconds * SECOND),
            )  # fmt: skip

    def claim(self, agent_id: int, limit: int = 100, queue: str = "default") -> list[Task]:
        with self.store.begin() as tx:
            graph = RunGraph(tx, self.now)
            claims = claim_tasks(tx, graph, agent_id, queue, limit)
            graph.flush_events()
            return [claim.task for claim in claims]

    def claim_requests(self, agent_id: int, limit: int = 100):
        """Claim and build the requests, as an agent does."""
        with self.store.begin() as tx:
            graph = RunGraph(tx, self.now)
            claims = claim_tasks(tx, graph, agent_id, "default", limit)
            graph.flush_events()
            return {request.key: request for request in self.requests.build(tx, claims, {}, 5.0)}

    def record(self, *reports: Report) -> Committed:
        def work(tx):
            graph = RunGraph(tx, self.now)
            committed = record_results(tx, graph, reports)
            graph.flush_events()
            return committed

        return self.store.transact(work)

    def end(self, claimed: Task, outcome: str = "success", **fields) -> Committed:
        return self.record(report(claimed, outcome, **fields))

    def rescue(self) -> list[LostProcess]:
        """Give up agents whose lease is over, and end their tries."""
        with self.store.begin() as tx:
            lost = expire_leases(tx, self.now)
            graph = RunGraph(tx, self.now)
            rescue_tasks(tx, graph)
            graph.flush_events()
            return lost

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    # ---- what is true ------------------------------------------------------------------------------------------

    def tasks(self, attempt_id: int) -> dict[str, Task]:
        """Live tasks by name."""
        columns = [task.c[name] for name in Task.__struct_fields__]
        with self.store.read() as tx:
            rows = tx.execute(select(*columns).where(task.c.attempt_id == attempt_id, ~task.c.is_superseded))
            return {one.name: one for one in (to_task(tuple(row)) for row in rows)}

    def states(self, attempt_id: int) -> dict[str, str]:
        return {name: str(one.state) for name, one in self.tasks(attempt_id).items() if one.parent_id is not None}

    def state(self, attempt_id: int, name: str) -> str:
        return str(self.tasks(attempt_id)[name].state)

    def events(self, attempt_id: int) -> list[tuple[int | None, str, str]]:
        with self.store.read() as tx:
            rows = tx.execute(select(event).where(event.c.attempt_id == attempt_id).order_by(event.c.id))
            return [(row.task_id, row.before, row.after) for row in rows]

    def rows(self, table, *where):
        """Every row of a table that meets the conditions."""
        with self.store.read() as tx:
            return list(tx.execute(select(table).where(*where)))

    def tries(self, task_id: int) -> list[tuple[int, str]]:
        return [(row.fence, row.state) for row in self.rows(try_, try_.c.task_id == task_id)]

    def values(self, task_id: int) -> dict[str, str]:
        return {row.name: row.document for row in self.rows(value, value.c.task_id == task_id)}


def report(claimed: Task, outcome: str = "success", **fields) -> Report:
    if outcome == "failed":
        fields.setdefault("error", TaskError(type="ValueError", message="boom"))
    result = TaskResult(task_id=claimed.id, fence=claimed.fence, outcome=outcome, **fields)
    return Report(claimed.attempt_id, result)


def flow(*nodes: Node, name: str = "w", export: dict | None = None, **fields) -> Workflow:
    """A workflow of nodes under one root."""
    root = Node(key="", kind="group", export=export or {})
    return Workflow(name=name, language="python", nodes=(root, *nodes), **fields)


def node(key: str, *upstream: str, parent: str = "", **fields) -> Node:
    fields = {"operator": "work", **fields}
    return Node(key=key, parent=parent, upstream=upstream, **fields)


def group(key: str, *upstream: str, parent: str = "", **fields) -> Node:
    return Node(key=key, parent=parent, upstream=upstream, kind="group", **fields)
