"""`dag.test()`: one run of a DAG in this process, on a store of its own, with a debugger if one is attached."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import yaml

from headrace.authoring.dag import DAG
from headrace.authoring.dag.compiling import compile_dag
from headrace.authoring.dag.loading import DagFile
from headrace.clock import from_micros
from headrace.errors import UsageError
from headrace.handoff import Channel, TaskRequest, TaskResult
from headrace.runner.python_task import run_python_task
from headrace.store.sql import Sql
from headrace.testing.engine import Engine
from headrace.testing.inline_triggers import InlineTriggers
from headrace.testing.run import Run
from headrace.testing.tested_run import TestedRun

NEXT_TIMER = Sql(
    """
    SELECT min(due_at), count(*), sum(CASE WHEN state = 'up_for_retry' THEN 1 ELSE 0 END) FROM task
    WHERE attempt_id = :attempt_id AND due_at IS NOT NULL AND NOT is_superseded
    """
)
_LONGEST_SLEEP_SECONDS = 1.0


def run_dag(
    dag: DAG,
    *,
    run_conf: Mapping[str, Any] | None = None,
    logical_date: datetime | str | None = None,
    conn_file_path: str | None = None,
    variable_file_path: str | None = None,
    mark_success_pattern: str | re.Pattern[str] | None = None,
    progress: TextIO | None = None,
) -> TestedRun:
    """Run a DAG to its end. Retries follow at once; what waits for the world outside is asked again in real time."""
    instant = _instant(logical_date) or datetime.now(UTC)
    workflow = compile_dag(dag, Path(dag.fileloc).parent)
    tasks = _Tasks(dag, mark_success_pattern, progress or sys.stderr)
    with (
        tempfile.TemporaryDirectory(prefix="headrace-test-") as folder,
        _environment(conn_file_path, variable_file_path),
    ):
        engine = Engine(Path(folder), start=datetime.now(UTC))
        engine.run_tasks_with(workflow.name, tasks.run)
        try:
            run = engine.start(workflow, None, params=dict(run_conf or {}), session=instant.isoformat())
            with InlineTriggers(engine, run.attempt_id, tasks.is_marked) as triggers:
                _work(engine, run, triggers)
            tested = TestedRun(dag.dag_id, run.key, run_conf or {}, instant, run.state)
            tested.read(engine.store, run.attempt_id)
        finally:
            engine.close()
    tasks.say(f"run of `{dag.dag_id}`: {tested.state}")
    return tested


class _Tasks:
    """Runs tasks where the caller is: what they print is seen, and a breakpoint stops them."""

    def __init__(self, dag: DAG, pattern: str | re.Pattern[str] | None, progress: TextIO) -> None:
        path = Path(dag.fileloc)
        self._file = DagFile(path.parent, path.name, (), {dag.dag_id: dag})
        self._pattern = re.compile(pattern) if pattern else None
        self._progress = progress
        self._streams = sys.stdout, sys.stderr

    def run(self, request: TaskRequest, channel: Channel) -> TaskResult:
        name = request.key if request.map_index < 0 else f"{request.key}[{request.map_index}]"
        if self.is_marked(request.key):
            self.say(f"task `{name}`: marked as success")
            return TaskResult(task_id=request.task_id, fence=request.fence, outcome="success")
        started = time.monotonic()
        with self._shown():
            result = run_python_task(self._file, request, channel)
        text = f"task `{name}`: {result.outcome} in {time.monotonic() - started:.1f} s"
        self.say(text if result.error is None else f"{text}: {result.error.message}")
        return result

    def is_marked(self, key: str) -> bool:
        """Whether a task succeeds without being run."""
        return self._pattern is not None and self._pattern.match(key) is not None

    def say(self, text: str) -> None:
        print(text, file=self._progress, flush=True)

    @contextlib.contextmanager
    def _shown(self) -> Iterator[None]:
        """The streams that the caller had, and log lines of tasks on one of them."""
        out, err = self._streams
        handler = logging.StreamHandler(err)
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        logger = logging.getLogger("airflow.task")
        logger.addHandler(handler)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
        finally:
            logger.removeHandler(handler)


def _work(engine: Engine, run: Run, triggers: InlineTriggers) -> None:
    """Settle, and go on from timer to timer and from trigger to trigger, until the run has ended."""
    engine.settle()
    while run.state in ("queued", "running"):
        with engine.store.read() as tx:
            ((due, timers, retries),) = tx.run(NEXT_TIMER, {"attempt_id": run.attempt_id})
        triggers.look()
        if due is None and not triggers.are_open:
            raise UsageError("the run cannot go on: its tasks wait for something that never comes")
        wait = _LONGEST_SLEEP_SECONDS
        if due is not None:
            wait = max(0.0, (from_micros(due) - engine.clock.now()).total_seconds())
        if triggers.are_open or retries < timers:
            # Somebody waits for the world outside, which has a clock of its own.
            began = time.monotonic()
            triggers.fire(min(wait, _LONGEST_SLEEP_SECONDS))
            wait = time.monotonic() - began
        engine.advance(seconds=wait)
        engine.settle()


def _instant(value: datetime | str | None) -> datetime | None:
    if value is None:
        return None
    instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


@contextlib.contextmanager
def _environment(connections: str | None, variables: str | None) -> Iterator[None]:
    """Connections and variables out of files, for as long as the run takes."""
    added = {f"AIRFLOW_CONN_{name.upper()}": _text(value) for name, value in _entries(connections).items()}
    added |= {f"AIRFLOW_VAR_{name.upper()}": _text(value) for name, value in _entries(variables).items()}
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _entries(path: str | None) -> dict[str, Any]:
    """Names and values out of a JSON, YAML or `.env` file."""
    if path is None:
        return {}
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"there is no file `{path}`")
    if file.suffix == ".env":
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
        return {name.strip(): value.strip() for name, _, value in pairs}
    found = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if not isinstance(found, dict):
        raise UsageError(f"expected `{path}` to hold names with values, got: {type(found).__name__}")
    return {str(name): value for name, value in found.items()}
