"""A folder with one toy file, requests for its tasks, and executors that run them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil
import toy_language

from headrace.definition import Node
from headrace.executor import InlineExecutor, LocalExecutor, LocalOptions, Program
from headrace.handoff import RETURN_VALUE, Answer, Ask, RunContext, Source, TaskRequest, TaskResult, content_digest

LONG_SECONDS = 30.0
"""How long a test waits for something that takes milliseconds before it calls it lost."""

PROGRAMS = {"toy": Program("toy_language:load", "toy_language:run")}


class Project:
    """`write` the file, then ask for `request`s."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = "flow.toy"
        self.revision = ""
        self._next_id = 0

    def write(self, text: str) -> None:
        (self.root / self.file).write_text(dedent(text))
        self.revision = content_digest(dedent(text).encode())

    def request(self, operator: str, *, file: str | None = None, **changes: Any) -> TaskRequest:
        self._next_id += 1
        node_fields = {
            name: changes.pop(name) for name in ("isolation", "timeout_seconds", "config") if name in changes
        }
        fields: dict[str, Any] = {
            "task_id": self._next_id,
            "fence": 1,
            "key": operator,
            "node": Node(key=operator, operator=operator, **node_fields),
            "source": Source(root=str(self.root), file=file or self.file, language="toy", revision=self.revision),
            "run": RunContext(project="p", workflow="w"),
            "log_path": str(self.root / "logs" / f"{self._next_id}.log"),
        }
        return TaskRequest(**(fields | changes))

    def has_log(self, request: TaskRequest) -> bool:
        return Path(request.log_path).exists()

    def log(self, request: TaskRequest) -> str:
        return Path(request.log_path).read_text()


def nobody(request: TaskRequest, ask: Ask) -> Answer:
    return Answer(id=ask.id, error="nobody is there to answer")


def local_executor(broker: Any = nobody, slots: int = 4, contents: Any = None, **options: Any) -> LocalExecutor:
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return LocalExecutor(
        broker, slots, LocalOptions(environment={**os.environ, "PYTHONPATH": path}, **options), PROGRAMS, contents
    )


def inline_executor(broker: Any = nobody) -> InlineExecutor:
    return InlineExecutor(broker, toy_language.load_and_run)


def run_all(executor: Any, *requests: TaskRequest) -> list[TaskResult]:
    """The results in the order of the requests."""
    executor.submit(requests)
    return collect(executor, requests)


def collect(executor: Any, requests: Any) -> list[TaskResult]:
    found: dict[int, TaskResult] = {}
    until = time.monotonic() + LONG_SECONDS
    while len(found) < len(requests) and time.monotonic() < until:
        for result in executor.poll(until - time.monotonic()):
            assert result.task_id not in found, "two results for one request"
            found[result.task_id] = result
    return [found[request.task_id] for request in requests]


def value_of(result: TaskResult) -> Any:
    assert result.outcome == "success", result.error
    return json.loads(bytes(result.values[RETURN_VALUE]))


def wait_until(executor: Any, condition: Callable[[], bool]) -> None:
    """Let the executor work until something is true of the world outside."""
    until = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < until, "waited too long"
        assert executor.poll(0.01) == []


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_gone(*pids: int) -> None:
    """Return when these processes, whoever's children they are, have ended."""
    until = time.monotonic() + LONG_SECONDS
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"still running: {running}"
        psutil.wait_procs([psutil.Process(running[0])] if psutil.pid_exists(running[0]) else [], timeout=0.01)


def wait_for_file(path: Path) -> str:
    """The text of a file that another process is about to write whole."""
    until = time.monotonic() + LONG_SECONDS
    while not path.exists():
        assert time.monotonic() < until, f"no file {path}"
        os.sched_yield()
    return path.read_text()
