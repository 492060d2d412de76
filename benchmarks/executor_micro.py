"""What the local executor costs by itself: no store, no user code, a log file per try.

Prints one JSON line per measurement: a chain of tries, each started when the one before has ended, and as many parallel
tries as there are slots; with a fresh process per try and with processes that are used again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headrace.definition import Isolation, Node
from headrace.executor import LocalExecutor, LocalOptions, Program
from headrace.handoff import Answer, Ask, RunContext, Source, TaskRequest

PROGRAMS = {"nothing": Program("nothing_language:load", "nothing_language:run")}


def request(number: int, isolation: Isolation, folder: Path) -> TaskRequest:
    return TaskRequest(
        task_id=number,
        fence=1,
        key=f"task_{number}",
        node=Node(key=f"task_{number}", operator="nothing", isolation=isolation),
        source=Source(root=str(folder), file="nothing.nothing", language="nothing"),
        run=RunContext(project="bench", workflow="nothing"),
        log_path=str(folder / "logs" / f"{isolation}" / f"{number}.log"),
    )


def chain(executor: LocalExecutor, count: int, isolation: Isolation, folder: Path) -> None:
    for number in range(count):
        executor.submit([request(number, isolation, folder)])
        results = executor.poll(None)
        assert [result.outcome for result in results] == ["success"], results


def parallel(executor: LocalExecutor, count: int, isolation: Isolation, folder: Path) -> None:
    submitted = finished = 0
    while finished < count:
        free = min(executor.free_slots(), count - submitted)
        executor.submit([request(submitted + offset, isolation, folder) for offset in range(free)])
        submitted += free
        finished += len(executor.poll(None))


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(
    name: str, work: Callable[[LocalExecutor, int, Isolation, Path], None], count: int, isolation: Isolation, slots: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        executor = LocalExecutor(nobody, slots, LocalOptions(environment=environment), PROGRAMS)
        chain(executor, 10, isolation, Path(folder))
        before = time.perf_counter(), cpu_seconds()
        work(executor, count, isolation, Path(folder))
        wall = time.perf_counter() - before[0]
        executor.close(0)
        cpu = cpu_seconds() - before[1]
    print(
        json.dumps(
            {
                "workload": name,
                "isolation": isolation,
                "slots": slots,
                "tries": count,
                "wall_seconds": round(wall, 4),
                "per_try_ms": round(wall / count * 1000, 3),
                "tries_per_second": round(count / wall),
                "cpu_ms_per_try": round(cpu / count * 1000, 3),
            }
        ),
        flush=True,
    )


def nobody(request: TaskRequest, ask: Ask) -> Answer:
    return Answer(id=ask.id, error="a task that does nothing asks nothing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chain", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=8)
    arguments = parser.parse_args()
    for isolation in ("process", "reuse"):
        measure("chain", chain, arguments.chain, isolation, arguments.slots)
        measure("parallel", parallel, arguments.parallel, isolation, arguments.slots)


if __name__ == "__main__":
    main()
