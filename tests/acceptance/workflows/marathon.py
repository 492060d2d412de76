"""Many tasks in 20 chains. Each try writes down its start and its end, and notices if another try of it is running."""

import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, task

FOLDER = Path(os.environ["MARATHON_FOLDER"])
SECONDS = float(os.environ["MARATHON_SECONDS"])
TASKS = int(os.environ["MARATHON_TASKS"])
SLOW = "step_040"
SLOW_SECONDS = [float(seconds) for seconds in os.environ["MARATHON_SLOW_SECONDS"].split()]
"""How long the first tries of one task take, so that a test can catch them in the middle."""


def seconds_of(name, number):
    is_slow = name == SLOW and number <= len(SLOW_SECONDS) and not (FOLDER / "hurry").exists()
    return SLOW_SECONDS[number - 1] if is_slow else SECONDS


def note(what, name, number):
    """One line in one write, so that lines of many processes do not mix."""
    line = f"{what} {name} {number} {os.getpid()} {time.monotonic()}\n"
    descriptor = os.open(FOLDER / "record", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


with DAG("marathon", schedule=None, default_args={"retries": 3, "retry_delay": timedelta(0)}):

    @task
    def step(ti=None):
        # The kernel lets go of the lock when the process is gone, however it went.
        lock = os.open(FOLDER / f"{ti.task_id}.lock", os.O_RDWR | os.O_CREAT)
        note("start", ti.task_id, ti.try_number)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("overlap", ti.task_id, ti.try_number)
        time.sleep(seconds_of(ti.task_id, ti.try_number))
        note("end", ti.task_id, ti.try_number)

    steps = [step.override(task_id=f"step_{number:03}")() for number in range(TASKS)]
    for before, after in zip(steps, steps[20:], strict=False):
        before >> after
