"""Files that change or are poison, hosts that are strange, and bursts of schedules."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from sqlalchemy import text

from headrace.store import list_source_errors
from headrace.testing.faults.arena import Arena
from headrace.testing.faults.cluster import NeverHappened
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted

POISONS = {
    "dies": "import os, signal\nfrom airflow.sdk import DAG\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "leaves": "import os\nfrom airflow.sdk import DAG\nos._exit(0)\n",
    "never_ends": "from airflow.sdk import DAG\nwhile True:\n    pass\n",
    "floods": "from airflow.sdk import DAG\nwhile True:\n    print('x' * 10_000)\n",
    "eats_memory": "from airflow.sdk import DAG\nall_of_it = ['x'] * 10**10\n",
    "broken": "from airflow.sdk import DAG\nwith DAG(\n",
}

ONLINE_CHANGES = (
    "ALTER TABLE task ADD COLUMN later_{number} INTEGER",
    "ALTER TABLE run ADD COLUMN later_{number} INTEGER",
    "CREATE INDEX ix_event_later_{number} ON event (task_id, id)",
)
BLOCKED_SECONDS = 2.0


def deploy(arena: Arena) -> Interrupted:
    """Every task of the DAG `mixed` has another name from now on; what runs has the old ones."""
    path = arena.cluster.project / "load_dags.py"
    before = path.read_text()
    after = before.replace("again_", "") if "again_" in before else before.replace('"first_', '"first_again_')
    _replace(path, after)
    return NOBODY


def poison(arena: Arena) -> Interrupted:
    """Files that kill, block or exhaust whoever loads them."""
    names = {f"poison_{name}.py" for name in POISONS}
    for name, code in POISONS.items():
        _replace(arena.cluster.project / f"poison_{name}.py", code)

    def are_known() -> bool:
        with arena.cluster.store.read() as tx:
            return names - {"poison_leaves.py"} <= {row.file for row in list_source_errors(tx)}

    arena.cluster.wait_until(are_known, "the poison is known for what it is")
    for name in names:
        (arena.cluster.project / name).unlink()
    return NOBODY


def upgrade(arena: Arena) -> Interrupted:
    """Columns and indexes are added to tables in use; then one member after the other is replaced."""
    number = len(list(arena.cluster.members()))
    with arena.cluster.store.begin() as tx:
        for change in ONLINE_CHANGES:
            tx.execute(text(change.format(number=number)))
    done = arena.cluster.command("db", "upgrade")
    if done.returncode != 0:
        raise NeverHappened(f"could not upgrade:\n{done.stderr}")
    for kind in ("scheduler", "agent"):
        arena.cluster.running(kind)[0].terminate()
        arena.replenish()
    return NOBODY


def block_logs(arena: Arena) -> Interrupted:
    """For a while no log can be written: where their folder was there is none."""
    logs = _logs(arena)
    aside = logs.with_name("logs-aside")
    logs.rename(aside)
    logs.touch()
    time.sleep(BLOCKED_SECONDS)
    logs.unlink()
    aside.rename(logs)
    return NOBODY


def fill_log_disk(arena: Arena) -> Interrupted:
    """For a while the logs are on a disk without room."""
    logs = _logs(arena)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", logs], check=True)
    try:
        with suppress(OSError), open(logs / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        time.sleep(BLOCKED_SECONDS)
    finally:
        # Lazily, as somebody may still have a log open there.
        subprocess.run(["umount", "-l", logs], check=True)
    return NOBODY


def _logs(arena: Arena) -> Path:
    """The folder of all logs, which is made when there is something to say."""
    folder = arena.cluster.home / "logs"
    folder.mkdir(exist_ok=True)
    return folder


def _may_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def nothing(arena: Arena) -> Interrupted:
    """What is wrong here is wrong from the start."""
    time.sleep(1.0)
    return NOBODY


def _replace(path: Path, text: str) -> None:
    """At once, as a good deployment does."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.rename(path)


DEPLOYMENTS = (
    Fault("a new revision is deployed", "runs go on with the code they began with", deploy),
    Fault("poison files appear", "they are reported, the others go on", poison),
    Fault("the schema is upgraded", "runs in flight go on", upgrade),
    Fault("logs cannot be written", "tasks go on without", block_logs),
    Fault("the disk for logs is full", "tasks go on without", fill_log_disk, is_possible=_may_mount()),
    Fault(
        "results are told twice",
        "the second time changes nothing",
        nothing,
        environment={"HARNESS_BREAK": "repeated_results"},
    ),
    Fault(
        "a host's clock is 5 minutes off",
        "everybody goes by the database's clock",
        nothing,
        stores=("postgres",),
        environment={"HARNESS_CLOCK_SECONDS": "300"},
    ),
)
