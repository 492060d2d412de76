"""`python -m benchmarks [--workload W1 …] [--store sqlite postgres] [--mode process reuse]`: JSON lines on stdout."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import airflow_paths, cluster, dig_forms, footprint, history, parsing, workloads
from benchmarks.bench import Bench, scratch, stores, versions

WORKLOADS = ("W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9", "W10", "W11", "W12", "W13")
MODES = ("process", "reuse")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--workload", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--store", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"])
    parser.add_argument("--mode", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("--repeat", type=int, default=5, help="measurements of each; the median is printed")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--history", type=int, default=1_000_000, help="finished task rows for W7")
    parser.add_argument("--schedules", type=int, default=10_000, help="schedules that are due at once for W9")
    arguments = parser.parse_args()
    common = versions()
    with scratch() as folder, stores(arguments.store, folder) as makers:
        for line in _measurements(arguments, folder, makers):
            print(json.dumps({**line, **common}), flush=True)


def _measurements(arguments: argparse.Namespace, folder: Path, makers: Any) -> Iterator[dict[str, Any]]:
    wanted = set(arguments.workload)
    for store, make in makers.items():
        if wanted - {"W5", "W6", "W7", "W9", "W10", "W12"}:
            bench = Bench(make(), folder, arguments.slots)
            yield from _on(bench, store, wanted, arguments)
            if "W11" in wanted:
                yield from dig_forms.measure(bench, store, arguments.repeat)
            if "W13" in wanted:
                for mode in arguments.mode:
                    yield from airflow_paths.measure(bench, store, mode, arguments.repeat)
            bench.close()
        if "W7" in wanted:
            yield from history.measure(make, folder, store, arguments)
        if "W9" in wanted:
            yield from cluster.burst(make, folder, store, arguments.schedules, arguments.slots)
        if "W10" in wanted and store == "postgres":
            for mode in arguments.mode:
                yield from cluster.scale_out(make, folder, mode, arguments.repeat, arguments.slots)
                yield from cluster.crowd(make, folder, mode, arguments.repeat, arguments.slots)
    if "W5" in wanted:
        yield from footprint.cold_starts(folder, arguments.repeat)
    if "W6" in wanted:
        yield from footprint.idle(folder)
    if "W12" in wanted:
        yield from parsing.measure(folder)
    if "W13" in wanted:
        yield from airflow_paths.expansion(folder, arguments.repeat)


def _on(bench: Bench, store: str, wanted: set[str], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for workload, mode, text, runs in _files(wanted, arguments.mode):
        workflow_id = bench.save(text)
        bench.measure(workflow_id)  # the first run loads the file and forks the first processes
        repeat = 1 if workload.startswith("W8") else arguments.repeat
        figures = sorted((bench.measure(workflow_id, runs) for _ in range(repeat)), key=lambda one: one["wall_seconds"])
        yield {"workload": workload, "store": store, "mode": mode, **figures[len(figures) // 2]}


def _files(wanted: set[str], modes: list[str]) -> Iterator[tuple[str, str, str, int]]:
    for mode in modes:
        if "W1" in wanted:
            yield "W1", mode, workloads.python_chain(50, mode), 1
        if "W2" in wanted:
            yield "W2/mapped", mode, workloads.python_fan(500, mode, is_mapped=True), 1
            yield "W2/static", mode, workloads.python_fan(500, mode, is_mapped=False), 1
        if "W3" in wanted:
            yield "W3/light", mode, workloads.python_chain(40, mode, "fibonacci(10)"), 1
            yield "W3/long", mode, workloads.python_chain(10, mode, "fibonacci(33)"), 1
        if "W4" in wanted:
            yield "W4", mode, workloads.python_chain(5, mode), 100
    if "W8" in wanted:
        for count in (1_000, 10_000, 100_000):
            yield f"W8/{count}", "inline", workloads.inline_fan(count), 1


if __name__ == "__main__":
    main()
