"""`headrace logs`."""

from __future__ import annotations

import sys
import time

import click

from headrace.actions.finding import find_run, find_task
from headrace.cli.log_tail import log_file
from headrace.cli.many_logs import show_logs
from headrace.cli.opening import Opened, opened
from headrace.cli.options import store_option
from headrace.errors import NotFoundError, UsageError
from headrace.logs import follow, read_log
from headrace.store import RunRow, TaskRow, list_tries, task_keys

_WAIT_SECONDS = 0.2
_WAITING = ("none", "scheduled")


@click.command("logs")
@click.argument("run")
@click.argument("task", required=False)
@click.option("--try", "number", type=click.IntRange(1), metavar="N", help="Which try; without it the newest.")
@click.option("-v", "--verbose", is_flag=True, help="Print everything, as without it.")
@click.option("-f", "--follow", "is_following", is_flag=True, help="Go on until the try has ended.")
@store_option
def command(run: str, task: str | None, number: int | None, verbose: bool, is_following: bool, url: str | None) -> None:
    """Print the log of TASK in RUN, or the logs of all its tasks in the order in which they began.

    RUN is an id, `latest`, a workflow's name for its newest run, or `ID.NUMBER` for one attempt. A TASK with `+` may
    also be the beginning of names.
    """
    with opened(url, may_be_private=True) as here:
        if task is None or _is_beginning(here, run, task):
            show_logs(here, run, task or "", number, is_following)
            return
        found, row = _find(here, run, task)
        if row.kind == "mapped" and row.children:
            raise UsageError(f"`{row.key}` is mapped: name one instance", hint=f"such as `{row.key}[0]`")
        tried = number or max(1, row.try_number)
        path = log_file(here.settings.logs_dir, found, row, tried)
        if not is_following and (tried > row.try_number or not path.exists()):
            raise _no_log(here, found, row, tried)
        chunks = (
            follow(path, lambda: _has_ended(here, str(found.id), row.name, tried), lambda: time.sleep(_WAIT_SECONDS))
            if is_following
            else read_log(path)
        )
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()


def _no_log(here: Opened, run: RunRow, task: TaskRow, tried: int) -> NotFoundError:
    with here.store.read() as tx:
        has_ended = any(one.try_number == tried for one in list_tries(tx, task.id))
    why = " has not begun"
    if has_ended:
        why = " has ended: it printed nothing, or its log is on another machine or was deleted"
    elif tried <= task.begun_tries:
        why = " has printed nothing"
    message = f"there is no log of try {tried} of `{task.name}` in run {run.id}: the try{why}"
    return NotFoundError(message, hint=f"`headrace why {run.id} {task.name}` says more")


def _is_beginning(here: Opened, run: str, task: str) -> bool:
    """Whether the name of no task ends like this, but some begin like it."""
    with here.store.read() as tx:
        keys = task_keys(tx, find_run(tx, run).attempt_id)
    return not any(key.endswith(task) for key in keys) and any(key.startswith(task) for key in keys)


def _find(here: Opened, run: str, task: str) -> tuple[RunRow, TaskRow]:
    with here.store.read() as tx:
        found = find_run(tx, run)
        return found, find_task(tx, found, task)


def _has_ended(here: Opened, run: str, task: str, number: int) -> bool:
    found, row = _find(here, run, task)
    if row.try_number > number or not found.is_active:
        return True
    return row.try_number == number and row.state not in (*_WAITING, "queued", "running", "restarting")
