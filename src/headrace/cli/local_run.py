"""Drives a local run for `headrace run`: progress, Ctrl-C, summary, exit code."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click

from headrace.actions.executors import LateBroker
from headrace.actions.local_run import LocalRun
from headrace.actions.params import parse_params
from headrace.actions.parts import Parts
from headrace.actions.wording import error_line
from headrace.agent import Broker
from headrace.cli.log_tail import log_file, tail
from headrace.cli.parsing import Parsing, choose
from headrace.cli.printing import print_json, seconds
from headrace.cli.progress import Progress, progress_for
from headrace.cli.task_json import describe_tasks
from headrace.definition import Isolation
from headrace.executor import LocalExecutor
from headrace.settings import Settings
from headrace.store import RunRow, TaskRow

_LOOK_SECONDS = 0.1
_LOOK_SHARE = 20
"""A look at the tasks of a large run takes time; at most one part in this many goes into looking."""
_EXIT_CODES = {"success": 0, "canceled": 130}


class Wish(NamedTuple):
    """What was asked for on the command line."""

    workflow: str | None
    params: tuple[str, ...]
    session: str | None
    slots: int | None
    isolation: Isolation | None
    url: str | None
    as_json: bool


class WarmStart(NamedTuple):
    """An executor that began to load the file before the database was there."""

    executor: LocalExecutor
    broker: LateBroker


class Interrupts:
    """Counts Ctrl-C and SIGTERM; the second one ends everything."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _number: int, _frame: object) -> None:
        self.count += 1
        if self.count > 1:
            # The warm parents see their sockets close and kill every process below them.
            os._exit(130)


def run_to_end(settings: Settings, parsing: Parsing, warm: WarmStart, wish: Wish) -> int:
    """Run, show, and return the exit code."""
    params = parse_params(wish.params)
    parts = Parts.open(settings, wish.url or f"sqlite:///{settings.home}/run.db")
    warm.broker.broker = Broker(parts.store)
    parsed = parsing.result()
    workflow = choose(parsed, wish.workflow)
    local = LocalRun(parts, warm.executor, is_private=wish.url is None, slots=wish.slots, isolation=wish.isolation)
    with _listening() as interrupts:
        try:
            started = local.start(parsing.root, parsed, workflow, params, wish.session)
            progress = progress_for(sys.stderr, started)
            _follow(local, progress, interrupts)
            run, tasks = local.row(), local.tasks()
        finally:
            local.close()
    progress.end(run, tasks)
    _explain_failures(settings, run, tasks)
    if wish.as_json:
        print_json(_summary(run, tasks))
    return _EXIT_CODES.get(run.state, 1)


@contextmanager
def _listening() -> Iterator[Interrupts]:
    interrupts = Interrupts()
    before = {number: signal.signal(number, interrupts) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(local: LocalRun, progress: Progress, interrupts: Interrupts) -> None:
    is_stopping = False
    pause = _LOOK_SECONDS
    while not local.wait(pause):
        if interrupts.count and not is_stopping:
            is_stopping = True
            click.echo("stopping the run; once more ends it at once", err=True)
            local.cancel()
        began = time.monotonic()
        progress.show(local.tasks())
        pause = max(_LOOK_SECONDS, _LOOK_SHARE * (time.monotonic() - began))


def _explain_failures(settings: Settings, run: RunRow, tasks: list[TaskRow]) -> None:
    failed = [task for task in tasks if task.state == "failed"]
    parents = {task.parent_id for task in failed}
    for task in failed:
        if task.id in parents:
            continue  # the task below it says why
        click.echo(f"\n`{task.name}` failed: {error_line(task)}", err=True)
        path = log_file(settings.logs_dir, run, task, task.try_number)
        lines = tail(path)
        if lines:
            click.echo(f"  log: {path}", err=True)
            for line in lines:
                click.echo(f"  | {line}", err=True)


def _summary(run: RunRow, tasks: list[TaskRow]) -> dict[str, object]:
    return {
        "workflow": run.workflow,
        "run_id": run.id,
        "state": run.state,
        "duration_seconds": seconds(run.started_at, run.ended_at),
        "tasks": describe_tasks(tasks),
    }
