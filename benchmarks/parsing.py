"""W12: how long it takes until what is written in files is known to the engine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import workloads
from headrace.clock import SystemClock
from headrace.projects import find_files, parse_files
from headrace.projects.saving import save_parsed
from headrace.store import Store

_FILES = 1000
_SAMPLE = 40


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Parse and save 1,000 files from cold, then one that was touched."""
    root = folder / "many"
    root.mkdir()
    for number in range(_FILES):
        (root / f"dag{number}.py").write_text(workloads.one_task().replace('"bench"', f'"bench{number}"'))
    store = Store(f"sqlite:///{folder}/many.db")
    clock = SystemClock()
    began = time.perf_counter()
    saved = save_parsed(store, "many", root, parse_files(root, find_files(root)), clock.now())
    wall = time.perf_counter() - began
    if len(saved) != _FILES:
        raise SystemExit(f"{len(saved)} of {_FILES} files were saved")
    yield {"workload": "W12/cold", "store": "sqlite", "mode": "parse", "wall_seconds": round(wall, 3), "files": _FILES}
    alone = _alone(root)
    ratio = round(wall / alone, 4)
    yield {"workload": "W12/alone", "mode": "parse", "wall_seconds": round(alone, 1), "files": _FILES, "ratio": ratio}
    (root / "dag7.py").write_text(workloads.one_task().replace('"bench"', '"bench7"').replace("hello", "hi"))
    began = time.perf_counter()
    save_parsed(store, "many", root, parse_files(root, ["dag7.py"]), clock.now())
    wall = time.perf_counter() - began
    yield {"workload": "W12/touched", "store": "sqlite", "mode": "parse", "wall_seconds": round(wall, 3), "files": 1}
    store.dispose()


def _alone(root: Path) -> float:
    """How long all files would take if each was imported by a Python of its own; measured on some of them."""
    began = time.perf_counter()
    for number in range(_SAMPLE):
        subprocess.run([sys.executable, str(root / f"dag{number}.py")], check=True)
    return (time.perf_counter() - began) * _FILES / _SAMPLE
