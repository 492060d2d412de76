"""W13: what it costs to write a DAG by Airflow's import paths, and how long a mapped task takes to expand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import workloads
from benchmarks.bench import Bench
from benchmarks.comparing import Form, compare
from headrace.testing.engine import Engine

_CHAIN = 200
"""Four times as long as W1: what takes a tenth of a second differs by a tenth from one time to the next."""
_INSTANCES = 1000

_MAPPED = f"""
from airflow.sdk import DAG, task

with DAG("mapped"):
    @task
    def numbers():
        return list(range({_INSTANCES}))

    @task
    def work(number):
        pass

    work.expand(number=numbers())
"""


def measure(bench: Bench, store: str, mode: str, rounds: int) -> Iterator[dict[str, Any]]:
    """W1 and W2 by Airflow's paths, each against its form by ours."""
    files = {
        "chain": workloads.python_chain(_CHAIN, mode),
        "fan": workloads.python_fan(500, mode, is_mapped=True),
    }
    for name, text in files.items():
        forms = {"ours": Form(bench, text), name: Form(bench, workloads.by_airflow_paths(text))}
        for form, figures in compare(forms, rounds):
            if form != "ours":
                yield {"workload": f"W13/{form}", "store": store, "mode": mode, **figures}


def expansion(folder: Path, repeat: int) -> Iterator[dict[str, Any]]:
    """How long the transaction takes that ends the source and makes the instances."""
    seconds = []
    for number in range(repeat):
        engine = Engine(folder / f"expansion{number}")
        run = engine.start_dag(_MAPPED)
        while len(run.states()) == 2:
            began = time.perf_counter()
            engine.tick()
            engine.agent.wake()
            engine.agent.step(0.0)
            took = time.perf_counter() - began
        assert len(run.states()) == 2 + _INSTANCES
        seconds.append(took)
        engine.close()
    yield {"workload": f"W13/expand-{_INSTANCES}", "store": "sqlite", "wall_seconds": round(median(seconds), 4)}
