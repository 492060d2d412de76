"""W9 and W10: schedulers and agents as processes of their own, with everything that they cost added up."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import text

from benchmarks import workloads
from benchmarks.comparing import measure_in_turns, middle, ratios
from benchmarks.cost import machine_so_far
from headrace.clock import to_micros
from headrace.projects import parse_file
from headrace.projects.saving import save_parsed
from headrace.store import NewRun, News, Store, create_run

_LONGEST_SECONDS = 600.0
_PER_FILE = 100
_CROWD = 8
"""So many of each are more than the work needs."""
_WARM_UPS = 5
_SINGLE_RUNS = 20
_REST_SECONDS = 0.05
"""Longer than anybody who is told of something waits for others to do it."""
_numbers = itertools.count(1)


class Cluster:
    """Processes that share a store. They are ready when it is made, and begin with `go`."""

    def __init__(self, url: str, folder: Path, *, schedulers: int, agents: int, slots: int) -> None:
        """`slots` are those of each agent."""
        roles = ["scheduler"] * schedulers + ["agent"] * agents
        self._members = [_launch(role, url, folder, slots) for role in roles]
        for member in self._members:
            _line(member)

    def go(self) -> None:
        self._tell("go")

    def cost(self) -> dict[str, float]:
        """What all of them have cost together since they began."""
        self._tell("cost")
        told = [json.loads(_line(member)) for member in self._members]
        return {key: sum(one[key] for one in told) for key in told[0]}

    def kill(self) -> None:
        for member in self._members:
            member.kill()
            member.wait()

    def _tell(self, word: str) -> None:
        for member in self._members:
            member.stdin.write(f"{word}\n")  # type: ignore[union-attr]
            member.stdin.flush()  # type: ignore[union-attr]


@contextmanager
def cluster(url: str, folder: Path, *, schedulers: int, agents: int, slots: int) -> Iterator[Cluster]:
    one = Cluster(url, folder, schedulers=schedulers, agents=agents, slots=slots)
    try:
        yield one
    finally:
        one.kill()


def burst(make: Callable[[], str], folder: Path, store: str, schedules: int, slots: int) -> Iterator[dict[str, Any]]:
    """W9: many schedules due at once, with one scheduler and with two; every run is there once and has ended well."""
    for schedulers in (1, 2):
        url = make()
        opened = Store(url)
        save_due_schedules(opened, folder, schedules)
        with cluster(url, folder, schedulers=schedulers, agents=1, slots=slots) as processes:
            machine, began = machine_so_far(), time.perf_counter()
            processes.go()
            _wait(opened, schedules)
            wall, stolen = time.perf_counter() - began, machine_so_far().stolen_since(machine)
            cost = processes.cost()
        _check_once_each(opened, schedules)
        opened.dispose()
        shape = {"workload": "W9", "store": store, "mode": "inline", "schedulers": schedulers, "agents": 1}
        yield {**shape, **_figures(wall, schedules, cost, stolen)}


def save_due_schedules(store: Store, folder: Path, count: int) -> None:
    """Workflows with one empty task each, whose last daily run is due since midnight."""
    root = folder / f"burst{next(_numbers)}"
    root.mkdir()
    (root / "bench.py").write_text(workloads.daily_nothing())
    parsed = parse_file(root, "bench.py", timeout_seconds=60, memory_mb=4096)
    (workflow,) = parsed.workflows
    files = [
        msgspec.structs.replace(
            parsed,
            file=f"bench{first}.py",
            workflows=tuple(
                msgspec.structs.replace(workflow, name=f"due{number}")
                for number in range(first, min(first + _PER_FILE, count))
            ),
        )
        for first in range(0, count, _PER_FILE)
    ]
    save_parsed(store, root.name, root, files, datetime.now(UTC))


def scale_out(make: Callable[[], str], folder: Path, mode: str, rounds: int, slots: int) -> Iterator[dict[str, Any]]:
    """W10: W2 and W4 on PostgreSQL by two schedulers and two agents, with as many slots in all and with as many each.

    They take turns with one of each.
    """
    sizes = [_Size(1, slots), _Size(2, max(1, slots // 2)), _Size(2, slots)]
    for name, source, runs in (
        ("W2/mapped", workloads.python_fan(500, mode, is_mapped=True), 1),
        ("W2/static", workloads.python_fan(500, mode, is_mapped=False), 1),
        ("W4", workloads.python_chain(5, mode), 100),
    ):
        with ExitStack() as stack:
            shapes = {str(size): stack.enter_context(_shape(make(), folder, source, runs, size)) for size in sizes}
            found = measure_in_turns({text: shape.measure for text, shape in shapes.items()}, rounds)
        single = found[str(sizes[0])]
        for size in sizes:
            figures = found[str(size)]
            line = {"workload": f"W10/{name}", "store": "postgres", "mode": mode, **size._asdict(), **middle(figures)}
            yield line if size is sizes[0] else {**line, "against": 1, **ratios(figures, single)}


def crowd(make: Callable[[], str], folder: Path, mode: str, rounds: int, slots: int) -> Iterator[dict[str, Any]]:
    """W10: runs of one task, one after the other, by many schedulers and agents of which one of each would do."""
    sizes = [_Size(1, slots), _Size(2, slots), _Size(_CROWD, slots)]
    source = workloads.python_chain(1, mode)
    with ExitStack() as stack:
        shapes = {str(size): stack.enter_context(_shape(make(), folder, source, 1, size)) for size in sizes}
        for size in sizes:
            shapes[str(size)].warm_up(size)
        found = measure_in_turns({text: shape.measure_singly for text, shape in shapes.items()}, rounds)
    single = found[str(sizes[0])]
    for size in sizes:
        line = {
            "workload": "W10/singly",
            "store": "postgres",
            "mode": mode,
            **size._asdict(),
            **middle(found[str(size)]),
        }
        yield line if size is sizes[0] else {**line, "against": 1, **ratios(found[str(size)], single)}


class _Size(NamedTuple):
    of_each: int
    """So many schedulers, and so many agents."""
    slots: int
    """Of each agent."""


class _Shape:
    """A cluster with a database and a workflow of its own, which it has run once."""

    def __init__(self, processes: Cluster, store: Store, workflow_id: int, runs: int) -> None:
        self._processes = processes
        self._store = store
        self._workflow_id = workflow_id
        self._runs = runs
        self._done = 0
        self._run(1)  # loads the file and forks the first processes

    def warm_up(self, size: _Size) -> None:
        """Until every agent has most likely loaded the file."""
        for _ in range(_WARM_UPS):
            self._run(2 * size.of_each * size.slots)

    def measure(self) -> dict[str, Any]:
        """Have all runs done once more."""
        return self._measured(lambda: self._run(self._runs))

    def measure_singly(self) -> dict[str, Any]:
        """Have some runs done, each when the one before it has ended and everybody has come to rest."""

        def work() -> None:
            for _ in range(_SINGLE_RUNS):
                self._run(1)
                time.sleep(_REST_SECONDS)

        figures = self._measured(work)
        resting = _SINGLE_RUNS * _REST_SECONDS
        wall = figures["wall_seconds"] - resting
        return figures | {"wall_seconds": wall, "per_task_ms": round(wall / figures["tasks"] * 1000, 3)}

    def _measured(self, work: Callable[[], None]) -> dict[str, Any]:
        tasks, cost = _count_tasks(self._store), self._processes.cost()
        machine, began = machine_so_far(), time.perf_counter()
        work()
        wall, stolen = time.perf_counter() - began, machine_so_far().stolen_since(machine)
        later = self._processes.cost()
        spent = {key: later[key] - cost[key] for key in cost}
        return _figures(wall, _count_tasks(self._store) - tasks, spent, stolen)

    def _run(self, runs: int) -> None:
        _trigger(self._store, self._workflow_id, runs)
        self._done += runs
        _wait(self._store, self._done)


@contextmanager
def _shape(url: str, folder: Path, source: str, runs: int, size: _Size) -> Iterator[_Shape]:
    store = Store(url)
    workflow_id = _save(store, folder, source)
    with cluster(url, folder, schedulers=size.of_each, agents=size.of_each, slots=size.slots) as processes:
        processes.go()
        yield _Shape(processes, store, workflow_id, runs)
    store.dispose()


def _save(store: Store, folder: Path, source: str) -> int:
    root = folder / f"scaled{next(_numbers)}"
    root.mkdir()
    (root / "bench.py").write_text(source)
    parsed = parse_file(root, "bench.py", timeout_seconds=60, memory_mb=4096)
    (saved,) = save_parsed(store, root.name, root, [parsed], datetime.now(UTC))
    if saved.error is not None:
        raise SystemExit(f"benchmark file: {saved.error.message}")
    return saved.workflows[0].id


def _trigger(store: Store, workflow_id: int, runs: int) -> None:
    """Each in a transaction of its own, as people and programs ask for them; a scheduler starts them."""
    for _ in range(runs):
        now = to_micros(datetime.now(UTC))
        with store.begin() as tx:
            create_run(tx, NewRun(workflow_id=workflow_id, key=f"scaled{next(_numbers)}"), now)
            tx.tell(News.PLANS)


def _wait(store: Store, runs: int) -> None:
    """Until so many runs have ended."""
    until = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < until:
        time.sleep(0.005 if runs < 1000 else 0.2)
        with store.read() as tx:
            ((open_, due),) = tx.execute(text(_LEFT), {"now": to_micros(datetime.now(UTC))}).fetchall()
            if open_ == 0 and due == 0 and tx.execute(text("SELECT count(*) FROM run")).scalar_one() >= runs:
                return
    raise SystemExit(f"not every run has ended within {_LONGEST_SECONDS:.0f} s")


# By their indexes, so that waiting costs those who work nothing.
_LEFT = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM run WHERE state IN ('queued', 'running') LIMIT 1) AS active),
       (SELECT count(*) FROM (SELECT 1 FROM schedule WHERE next_run_at < :now LIMIT 1) AS late)
"""


def _check_once_each(store: Store, schedules: int) -> None:
    with store.read() as tx:
        runs, workflows, times = tx.execute(
            text("SELECT count(*), count(DISTINCT workflow_id), count(DISTINCT logical_at) FROM run")
        ).one()
        well = tx.execute(text("SELECT count(*) FROM task WHERE kind = 'task' AND state = 'success'")).scalar_one()
    if (runs, workflows, times, well) != (schedules, schedules, 1, schedules):
        raise SystemExit(f"expected {schedules} runs, found {runs} of {workflows} workflows, {well} tasks done")


def _count_tasks(store: Store) -> int:
    with store.read() as tx:
        states = tx.execute(text("SELECT state, count(*) FROM task WHERE kind = 'task' GROUP BY state")).fetchall()
    if [row[0] for row in states] != ["success"]:
        raise SystemExit(f"a measured run did not succeed: {states}")
    return int(states[0][1])


def _figures(wall: float, tasks: int, cost: dict[str, float], stolen: float) -> dict[str, Any]:
    return {
        "wall_seconds": round(wall, 4),
        "tasks": tasks,
        "tasks_per_second": round(tasks / wall, 1),
        "per_task_ms": round(wall / tasks * 1000, 3),
        "cpu_seconds": round(cost["cpu_seconds"], 3),
        "page_faults": round(cost["page_faults"]),
        "statements_per_task": round(cost["statements"] / tasks, 2),
        "commits_per_task": round(cost["commits"] / tasks, 3),
        "stolen": round(stolen, 3),
    }


def _launch(role: str, url: str, folder: Path, slots: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.member", role, url, str(folder), str(slots)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _line(member: subprocess.Popen[str]) -> str:
    line: str = member.stdout.readline()  # type: ignore[union-attr]
    if not line:
        raise SystemExit(f"a process of the cluster ended with exit code {member.wait()}")
    return line
