"""Runs a workflow file on a store with an agent in this process and measures what it cost."""

from __future__ import annotations

import itertools
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.cost import cost_so_far, machine_so_far
from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import SystemClock, to_micros
from headrace.executor import InlineExecutor, LocalExecutor
from headrace.projects import parse_file
from headrace.store import NewRun, Store, create_run, ensure_project, save_file, start_queued_runs
from headrace.testing.postgres import PostgresServer

_numbers = itertools.count(1)


class Bench:
    """One store with one agent, ready to be measured."""

    def __init__(self, url: str, folder: Path, slots: int) -> None:
        self.folder = folder
        self.store = Store(url)
        self.clock = SystemClock()
        broker = Broker(self.store)
        options = AgentOptions(slots=slots)
        executor = LocalExecutor(broker, slots, contents=broker.content)
        self.agent = Agent(self.store, self.clock, executor, InlineExecutor(broker), folder / "logs", options)
        self._ended: set[int] = set()
        self.agent.on_run_ended = self._ended.add
        self.agent.start()

    @property
    def now(self) -> int:
        return to_micros(self.clock.now())

    def save(self, text: str, name: str = "bench.py") -> int:
        """Write a workflow file and save what it defines. Returns the workflow's id."""
        root = self.folder / f"project{next(_numbers)}"
        root.mkdir()
        (root / name).write_text(text)
        (root / "tasks.py").write_text(workloads.DIG_TASKS)
        parsed = parse_file(root, name, timeout_seconds=60, memory_mb=4096)
        if parsed.error is not None:
            raise SystemExit(f"benchmark file: {parsed.error}")
        with self.store.begin() as tx:
            project_id = ensure_project(tx, root.name, str(root), self.now)
            (saved,) = save_file(tx, project_id, name, parsed.digest, parsed.workflows, self.now, parsed.content)
        return saved.id

    def start(self, workflow_id: int, runs: int = 1) -> list[int]:
        """Trigger runs, each in a transaction of its own."""
        ids = []
        for _ in range(runs):
            with self.store.begin() as tx:
                run_id = create_run(tx, NewRun(workflow_id=workflow_id, key=f"bench{next(_numbers)}"), self.now)
                assert run_id is not None
                ids.append(run_id)
                start_queued_runs(tx, workflow_id, self.now)
            self.agent.wake()
        return ids

    def finish(self, run_ids: list[int]) -> None:
        """Step the agent until these runs have ended."""
        while not self._ended.issuperset(run_ids):
            self.agent.step(1.0)

    def measure(self, workflow_id: int, runs: int = 1) -> dict[str, Any]:
        """Run and tell what it took."""
        database = self.store.database
        statements, commits, before = database.statements, database.commits, cost_so_far()
        machine, began = machine_so_far(), time.perf_counter()
        run_ids = self.start(workflow_id, runs)
        self.finish(run_ids)
        wall, stolen = time.perf_counter() - began, machine_so_far().stolen_since(machine)
        cost = cost_so_far().since(before)
        statements, commits = database.statements - statements, database.commits - commits
        tasks = self.count_tasks(run_ids)
        return {
            "wall_seconds": round(wall, 4),
            "tasks": tasks,
            "tasks_per_second": round(tasks / wall, 1),
            "per_task_ms": round(wall / tasks * 1000, 3),
            "cpu_seconds": round(cost.cpu_seconds, 3),
            "page_faults": cost.page_faults,
            "statements_per_task": round(statements / tasks, 2),
            "commits_per_task": round(commits / tasks, 3),
            "stolen": round(stolen, 3),
        }

    def count_tasks(self, run_ids: list[int]) -> int:
        """How many tasks ran, and that all went well."""
        from sqlalchemy import text

        with self.store.read() as tx:
            rows = tx.execute(
                text(
                    # In this order, by indexes: reading a long history would leave the next measurement a cold cache.
                    "SELECT task.state, count(*) FROM attempt CROSS JOIN task"
                    " WHERE attempt.run_id BETWEEN :low AND :high AND task.attempt_id = attempt.id"
                    " AND NOT task.is_superseded AND task.kind = 'task' GROUP BY task.state"
                ),
                {"low": min(run_ids), "high": max(run_ids)},
            ).fetchall()
        states = {row[0]: row[1] for row in rows}
        if set(states) != {"success"}:
            raise SystemExit(f"a measured run did not succeed: {states}")
        return int(states["success"])

    def close(self) -> None:
        self.agent.stop(0.0)
        self.store.dispose()


@contextmanager
def stores(names: list[str], folder: Path) -> Iterator[dict[str, Callable[[], str]]]:
    """Makers of fresh store URLs. PostgreSQL keeps its defaults: fsync and synchronous_commit on."""
    makers: dict[str, Callable[[], str]] = {}
    if "sqlite" in names:
        makers["sqlite"] = lambda: f"sqlite:///{folder}/store{next(_numbers)}.db"
    if "postgres" not in names:
        yield makers
        return
    with PostgresServer(is_durable=True) as server:
        makers["postgres"] = server.new_database
        yield makers


def versions() -> dict[str, str]:
    return {
        "headrace": version("headrace"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlalchemy": version("sqlalchemy"),
        "platform": sys.platform,
    }


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name:
        yield Path(name)
