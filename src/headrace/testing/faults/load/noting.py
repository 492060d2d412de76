"""What every task of the load calls: it writes down that it starts and ends, and notices who else is there.

The kernel keeps the locks: they are gone with their process however that ended, so that what is noticed is true at
that very moment and no clock is involved.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

FOLDER = Path(os.environ["LOAD_FOLDER"])
SECONDS = float(os.environ["LOAD_SECONDS"])


@contextmanager
def noted(
    workflow: str,
    run: object,
    task: str,
    number: int = 0,
    limits: Mapping[str, int] | None = None,
    revision: int = 0,
) -> Iterator[None]:
    """Around the work of one execution. `limits` says how many may be inside at the same time, by name."""
    who = {"workflow": workflow, "run": str(run), "task": task, "number": number, "revision": revision}
    with ExitStack() as held:
        note("start", **who)
        if not _take(held, f"task {workflow} {run} {task}", 1):
            note("overlap", **who)
        for name, count in (limits or {}).items():
            if not _take(held, f"limit {name}", count):
                note("exceeded", limit=name, **who)
        yield
        note("end", **who)


def work(number: int = 0) -> None:
    """Takes its time, or until the harness lets tries of this number end."""
    if os.environ.get("LOAD_IS_STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while os.environ.get("LOAD_IS_HELD") and not (FOLDER / f"let go {number}").exists():
        time.sleep(0.01)
    time.sleep(SECONDS)
    print(f"worked for {SECONDS} s")


def note(what: str, **said: object) -> None:
    """One line in one write, so that lines of many processes do not mix."""
    line = {"what": what, "pid": os.getpid(), "at": time.monotonic(), "wall": time.time(), **said}
    descriptor = os.open(FOLDER / "record", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def _take(held: ExitStack, name: str, count: int) -> bool:
    """Whether one of so many places was free; it is held until the end."""
    for place in range(count):
        path = FOLDER / f"{name} {place}".replace("/", "_")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        held.callback(os.close, descriptor)
        return True
    return False
