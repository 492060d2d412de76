"""Drives a local run for `headrace run`: progress, Ctrl-C, summary, exit code."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import click

from headrace.actions.executors import LateBroker, local_executor
from headrace.actions.local_run import LocalRun
from headrace.actions.local_session import LocalWish
from headrace.actions.neighbours import Neighbours
from headrace.actions.parts import Parts
from headrace.actions.private_projects import folder_name
from headrace.actions.wording import error_line
from headrace.cli.blocks import shown_time
from headrace.cli.interrupts import INTERRUPTED, Interrupts, listening
from headrace.cli.log_lines import LogLines, show_log_lines
from headrace.cli.log_tail import log_file, tail, without_headline
from headrace.cli.opening import is_private_store_meant, private_store
from headrace.cli.parsing import Parsing, choose
from headrace.cli.printing import print_json, seconds
from headrace.cli.progress import Progress, progress_for
from headrace.cli.task_json import describe_tasks
from headrace.cli.task_output import TaskOutput
from headrace.definition import Isolation
from headrace.errors import StoreError
from headrace.executor import LocalExecutor
from headrace.settings import Settings
from headrace.store import RunRow, TaskRow
from headrace.user_environment import without_password

_LOOK_SECONDS = 0.1
_LOOK_SHARE = 20
"""A look at the tasks of a large run takes time; at most one part in this many goes into looking."""
_STILL_SECONDS = 5.0
"""How long nothing may happen before somebody who waits is told why."""
_WORKING = ("queued", "running", "restarting")
_EXIT_CODES = {"success": 0, "canceled": INTERRUPTED}


class Wish(NamedTuple):
    """What was asked for on the command line."""

    workflow: str | None
    local: LocalWish
    slots: int | None
    isolation: Isolation | None
    url: str | None
    as_json: bool


class WarmStart(NamedTuple):
    """An executor that began to load the file before the database was there."""

    executor: LocalExecutor
    broker: LateBroker
    output: TaskOutput | None
    """What tasks print, if it is to be shown."""


def run_to_end(settings: Settings, parsing: Parsing, warm: WarmStart, wish: Wish) -> int:
    """Run, show, and return the exit code."""
    # The scheduler's services also look after runs that other processes left behind: that is no news for this one.
    log_lines = show_log_lines(without=("headrace.scheduler",))
    # Nobody fills the store of private runs: what they ask for by name is in the usual one.
    parts = Parts.open(settings, wish.url or private_store(settings), has_own_vault=wish.url is not None)
    broker = warm.broker.broker = parts.broker()
    parsed = parsing.result()
    workflow = choose(parsed, wish.workflow)
    for warning in (*settings.notices, *workflow.warnings):
        click.echo(f"warning: {warning}", err=True)
    local = LocalRun(parts, warm.executor, is_private=wish.url is None, slots=wish.slots, isolation=wish.isolation)
    if wish.url is None:
        broker.runs.adopt = local.adopt
        broker.runs.discover = Neighbours(parts, parsing.root)
        broker.owner_of_secrets = folder_name
    begin = partial(local.start, parsing.root, parsed, workflow, wish.local)
    return _drive(settings, local, begin, wish.url, log_lines, warm.output, as_json=wish.as_json)


def go_on_to_end(settings: Settings, run: RunRow, *, as_json: bool) -> int:
    """Work on a run that is in the private store, where nobody else would, and return the exit code."""
    log_lines = show_log_lines(without=("headrace.scheduler",))
    parts = Parts.open(settings, private_store(settings))
    broker = parts.broker()
    output = None if as_json else TaskOutput()
    local = LocalRun(parts, local_executor(settings, broker, output=output), is_private=True)
    broker.runs.adopt = local.adopt
    broker.owner_of_secrets = folder_name

    def begin() -> RunRow:
        local.go_on(run)
        return run

    return _drive(settings, local, begin, None, log_lines, output, as_json=as_json)


def _drive(
    settings: Settings,
    local: LocalRun,
    begin: Callable[[], RunRow],
    url: str | None,
    log_lines: LogLines,
    output: TaskOutput | None,
    *,
    as_json: bool,
) -> int:
    with listening() as interrupts:
        try:
            started = begin()
            progress = progress_for(sys.stderr, started)
            log_lines.write = progress.say
            if output is not None:
                output.show_by(progress.say if sys.stdout.isatty() and sys.stderr.isatty() else None)
            _tell_carried_over(local, started, progress)
            _follow(local, progress, interrupts)
            run, tasks, undone = local.row(), local.tasks(), local.undone_callbacks()
        finally:
            local.close()
    progress.end(run, tasks)
    _explain_failures(settings, run, tasks)
    _show_way_to_logs(settings, url, run, tasks)
    if undone:
        _tell_undone(settings, url, run, undone)
    if as_json:
        print_json(_summary(run, tasks))
    return INTERRUPTED if undone else _EXIT_CODES.get(run.state, 1)


def _tell_carried_over(local: LocalRun, run: RunRow, progress: Progress) -> None:
    """Whoever runs the same session again should not wonder why nothing happens."""
    if run.attempt_number == 1:
        return
    done = sum(task.fence == 0 and task.state == "success" and task.kind == "task" for task in local.tasks())
    at = "" if run.logical_at is None else f" for {shown_time(run.logical_at, local.timezone())}"
    what = "1 task was done before and stays so" if done == 1 else f"{done} tasks were done before and stay so"
    again = f"; {what}, `--rerun` runs them again" if done else ""
    progress.say(f"attempt {run.attempt_number} of the session{at}{again}")


def _follow(local: LocalRun, progress: Progress, interrupts: Interrupts) -> None:
    is_stopping = False
    pause = _LOOK_SECONDS
    stillness = Stillness()
    while not local.wait(pause):
        began = time.monotonic()
        try:
            if interrupts.is_told and not is_stopping:
                local.cancel()
                is_stopping = True
                progress.say("stopping the run; once more ends it at once")
            tasks = local.tasks()
            progress.show(tasks)
            if stillness.is_new(tasks, began):
                _say_why(local, progress)
        except StoreError as error:
            pause = local.wait_seconds(error)
        else:
            pause = max(_LOOK_SECONDS, _LOOK_SHARE * (time.monotonic() - began))


class Stillness:
    """Notices, once, that nothing runs and nothing has changed for a while."""

    def __init__(self) -> None:
        self._before: list[tuple[int, str, int]] = []
        self._since = 0.0
        self._is_told = False

    def is_new(self, tasks: list[TaskRow], now: float) -> bool:
        if self._is_told:
            return False
        seen = [(task.id, task.state, task.try_number) for task in tasks]
        if seen != self._before or any(task.state in _WORKING for task in tasks):
            self._before, self._since = seen, now
            return False
        self._is_told = now - self._since >= _STILL_SECONDS
        return self._is_told


def _say_why(local: LocalRun, progress: Progress) -> None:
    reasons = local.why()
    # What waits for another task is held up by what that one waits for.
    chosen = next((one for one in reasons if one.kind not in ("upstream", "group")), reasons[0])
    progress.say(chosen.sentence if chosen.hint is None else f"{chosen.sentence}\nhint: {chosen.hint}")


def _explain_failures(settings: Settings, run: RunRow, tasks: list[TaskRow]) -> None:
    failed = [task for task in tasks if task.state == "failed"]
    parents = {task.parent_id for task in failed}
    for task in failed:
        if task.id in parents:
            continue  # the task below it says why
        click.echo(f"\n`{task.name}` failed: {error_line(task)}", err=True)
        path = log_file(settings.logs_dir, run, task, task.try_number)
        lines = without_headline(tail(path))
        if lines:
            click.echo(f"  log: {path}", err=True)
            for line in lines:
                click.echo(f"  | {line}", err=True)


def _show_way_to_logs(settings: Settings, url: str | None, run: RunRow, tasks: list[TaskRow]) -> None:
    """The command that prints a log: that of the first failure, or of the last task that has one."""
    failed = [task for task in tasks if task.state == "failed"]
    parents = {task.parent_id for task in failed}
    for task in (*(one for one in failed if one.id not in parents), *reversed(tasks)):
        if log_file(settings.logs_dir, run, task, task.try_number).exists():
            words = ["headrace", "logs", str(run.id), task.name, *_store_words(settings, url)]
            click.echo(f"logs: {shlex.join(words)}", err=True)
            return


def _tell_undone(settings: Settings, url: str | None, run: RunRow, count: int) -> None:
    what = "1 callback" if count == 1 else f"{count} callbacks"
    words = ["headrace", "errands", str(run.id), *_store_words(settings, url)]
    click.echo(f"stopped with {what} undone\nhint: `{shlex.join(words)}`", err=True)


def _store_words(settings: Settings, url: str | None) -> list[str]:
    if url is None:
        return [] if is_private_store_meant(settings) else ["--store", private_store(settings)]
    return [] if url == settings.store else ["--store", without_password(url)]


def _summary(run: RunRow, tasks: list[TaskRow]) -> dict[str, object]:
    return {
        "workflow": run.workflow,
        "run_id": run.id,
        "state": run.state,
        "duration_seconds": seconds(run.started_at, run.ended_at),
        "tasks": describe_tasks(tasks),
    }
