"""The logs of many tasks, one after the other as their tries began."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from headrace.actions.finding import find_run
from headrace.cli.log_tail import log_file
from headrace.cli.opening import Opened
from headrace.logs import read_log
from headrace.store import RunRow, TaskRow, list_tasks

_WAIT_SECONDS = 0.3


def show_logs(here: Opened, run: str, beginning: str, number: int | None, is_following: bool) -> None:
    """Print the logs of tasks whose names begin so; with `is_following`, go on until the run has ended."""
    shown = ShownLogs()
    while True:
        found, tasks = _tasks(here, run, beginning)
        for task in tasks:
            for tried in (number,) if number is not None else range(1, task.try_number + 1):
                path = log_file(here.settings.logs_dir, found, task, tried)
                if path.exists():
                    shown.show(path, f"{task.name}, try {tried}")
        if not is_following or not found.is_active:
            break
        time.sleep(_WAIT_SECONDS)
    if not shown.lengths:
        click.echo(f"no task of run {found.id} has written a log; `headrace why {found.id}` says more", err=True)


def _tasks(here: Opened, run: str, beginning: str) -> tuple[RunRow, list[TaskRow]]:
    with here.store.read() as tx:
        found = find_run(tx, run)
        rows = [task for task in list_tasks(tx, found.attempt_id) if task.is_listed and task.try_number]
    chosen = [task for task in rows if task.name.startswith(beginning)]
    return found, sorted(chosen, key=lambda task: (task.started_at or 0, task.id))


class ShownLogs:
    """What was printed of which log."""

    def __init__(self) -> None:
        self.lengths: dict[Path, int] = {}
        self._last: Path | None = None

    def show(self, path: Path, title: str) -> None:
        """Print what was written since the last look, under a heading unless the lines before are of the same log."""
        before = self.lengths.get(path, 0)
        data = b"".join(read_log(path))
        if len(data) <= before:
            return
        if path != self._last:
            click.echo(f"--- {title} goes on" if before else f"--- {title}")
        sys.stdout.flush()
        sys.stdout.buffer.write(data[before:])
        sys.stdout.buffer.flush()
        self.lengths[path], self._last = len(data), path
