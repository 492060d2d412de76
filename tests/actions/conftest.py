"""A store with a workflow in it, moved by hand: no process runs, no time passes unless a test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from headrace.actions.trigger import trigger
from headrace.clock import ManualClock, to_micros
from headrace.definition import Node, Workflow
from headrace.handoff import TaskError, TaskResult
from headrace.store import (
    Report,
    RunGraph,
    Store,
    claim_tasks,
    claim_triggers,
    ensure_project,
    extend_lease,
    get_run,
    list_tasks,
    record_results,
    register,
    save_file,
)

START = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


class World:
    """The store, a clock, and the moves that agents would make."""

    def __init__(self, url):
        self.store = Store(url)
        self.clock = ManualClock(START)
        self.agent_id = 0
        self.claims = {}

    @property
    def now(self):
        return to_micros(self.clock.now())

    def pass_seconds(self, seconds):
        self.clock.advance(timedelta(seconds=seconds))

    def save(self, *tasks, name="flow", project="shop", **settings):
        root = Node(key="", kind="group")
        children = tuple(task if task.parent is not None else _under_root(task) for task in tasks)
        workflow = Workflow(name=name, language="python", nodes=(root, *children), **settings)
        with self.store.begin() as tx:
            project_id = ensure_project(tx, project, f"/{project}", self.now)
            save_file(tx, project_id, f"{name}.py", f"digest of {name}", [workflow], self.now)

    def trigger(self, name="flow", **given):
        return trigger(self.store, self.clock, name, **given)

    def run(self, run_id):
        with self.store.read() as tx:
            return get_run(tx, run_id)

    def states(self, run):
        with self.store.read() as tx:
            return {task.name: task.state for task in list_tasks(tx, self.run(run.id).attempt_id) if task.is_listed}

    def join(self, slots=4, queues=("default",), kind="agent", name="worker-1", seconds=15, projects=()):
        """An agent (or a scheduler, or a triggerer) begins to live."""
        with self.store.begin() as tx:
            self.agent_id = register(
                tx, kind=kind, name=name, place="here", pid=1, slots=slots, queues=queues, now=self.now,
                lease_micros=seconds * 1_000_000, projects=dict(projects),
            )  # fmt: skip

    def begin_to_stop(self):
        """Whoever joined last has a lease of 15 seconds, and takes nothing more."""
        with self.store.begin() as tx:
            assert extend_lease(tx, self.agent_id, self.now, 15_000_000, stopping_at=self.now)

    def claim(self, limit=1, queue="default"):
        """The agent takes tasks; returns their names."""
        with self.store.begin() as tx:
            graph = RunGraph(tx, self.now)
            claims = claim_tasks(tx, graph, self.agent_id, queue, limit)
            graph.flush_events()
        self.claims.update({claim.task.name: claim.task for claim in claims})
        return [claim.task.name for claim in claims]

    def claim_triggers(self):
        """The triggerer that joined last takes what there is; returns how many that are."""
        return len(self.store.transact(lambda tx: claim_triggers(tx, self.agent_id, 10, self.now)))

    def finish(self, name, outcome="success", message="boom", **given):
        task = self.claims.pop(name)
        error = TaskError(type="ValueError", message=message) if outcome == "failed" else None
        result = TaskResult(task_id=task.id, fence=task.fence, outcome=outcome, error=error, **given)
        with self.store.begin() as tx:
            graph = RunGraph(tx, self.now)
            record_results(tx, graph, [Report(task.attempt_id, result)])
            graph.flush_events()


def _under_root(task):
    return msgspec.structs.replace(task, parent="")


@pytest.fixture
def world(prepared_url):
    """The same on SQLite and PostgreSQL."""
    world = World(prepared_url)
    yield world
    world.store.dispose()
