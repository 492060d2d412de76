"""W5 and W6: how soon the first task is done, and what an idle installation costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import psutil

from benchmarks import workloads

_IDLE_SECONDS = 20


def cold_starts(folder: Path, repeat: int) -> Iterator[dict[str, Any]]:
    """`headrace run` of a one-task file with a new home, and `headrace standalone` up to its first success."""
    file = folder / "one_task.py"
    file.write_text(workloads.one_task())
    yield {"workload": "W5/run", "store": "sqlite", "mode": "process", "wall_seconds": _median(_run, file, repeat)}
    yield {
        "workload": "W5/run-warm-home",
        "store": "sqlite",
        "mode": "process",
        "wall_seconds": _median(_run_again, file, repeat),
    }


def _median(measure: Any, file: Path, repeat: int) -> float:
    return round(sorted(measure(file, number) for number in range(repeat))[repeat // 2], 3)


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HEADRACE_HOME": str(home)}


def _run(file: Path, number: int) -> float:
    return _timed_run(file, file.parent / f"home{number}")


def _run_again(file: Path, number: int) -> float:
    return _timed_run(file, file.parent / "home0")


def _timed_run(file: Path, home: Path) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "headrace.cli", "run", str(file), "--json"]
    done = subprocess.run(command, env=_environment(home), capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"headrace run failed:\n{done.stderr}")
    return wall


def idle(folder: Path) -> Iterator[dict[str, Any]]:
    """Processes, proportional memory and processor time of `headrace standalone` that has nothing to do."""
    project = folder / "idle-project"
    project.mkdir()
    (project / "one_task.py").write_text(workloads.one_task())
    home = folder / "idle-home"
    command = [sys.executable, "-m", "headrace.cli", "standalone", str(project)]
    with open(os.devnull, "w") as nowhere:
        process = subprocess.Popen(command, env=_environment(home), stdout=nowhere, stderr=nowhere)
    began = time.perf_counter()
    try:
        first = _first_success(home, began)
        time.sleep(5)  # what was forked ahead for the first run settles
        yield {"workload": "W5/standalone", "store": "sqlite", "mode": "process", "wall_seconds": first}
        yield {"workload": "W6", "store": "sqlite", "mode": "idle", **_watch(process.pid), **_installed()}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _first_success(home: Path, began: float) -> float:
    """Trigger the workflow as soon as it is known and wait for its end."""
    environment = _environment(home)
    base = [sys.executable, "-m", "headrace.cli"]
    while subprocess.run([*base, "trigger", "bench"], env=environment, capture_output=True, check=False).returncode:
        if time.perf_counter() - began > 60:
            raise SystemExit("standalone did not come up")
    while True:
        done = subprocess.run([*base, "runs", "--json"], env=environment, capture_output=True, text=True, check=False)
        if '"success"' in done.stdout:
            return round(time.perf_counter() - began, 3)
        if time.perf_counter() - began > 60:
            raise SystemExit(f"the first run did not end: {done.stdout}")


def _watch(pid: int) -> dict[str, Any]:
    def tree() -> list[psutil.Process]:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]

    def cpu() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in tree())

    before = cpu()
    time.sleep(_IDLE_SECONDS)
    spent = cpu() - before
    pss = sum(process.memory_full_info().pss for process in tree()) / 1e6
    return {
        "processes": len(tree()),
        "pss_mb": round(pss, 1),
        "cpu_percent_of_a_core": round(100 * spent / _IDLE_SECONDS, 2),
        "cpu_seconds_per_minute": round(60 * spent / _IDLE_SECONDS, 3),
    }


def _installed() -> dict[str, Any]:
    sizes = 0
    for distribution in distributions():
        for file in distribution.files or ():
            try:
                sizes += Path(str(distribution.locate_file(file))).stat().st_size
            except OSError:
                continue
    return {"installed_mb": round(sizes / 1e6, 1), "distributions": len(list(distributions()))}
