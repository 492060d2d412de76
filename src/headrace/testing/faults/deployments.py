"""Files that change or are poison, and hosts that are strange."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from functools import partial
from pathlib import Path

from sqlalchemy import text

from headrace.store import list_source_errors
from headrace.testing.faults.arena import Arena
from headrace.testing.faults.checker import Wrong
from headrace.testing.faults.cluster import NeverHappened
from headrace.testing.faults.fault import NOBODY, Fault, Interrupted
from headrace.testing.faults.sightings import count_versions, has_old_runs, times_happened

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
NO_LOG = "could not write the log"
_SOME_LINES = 10
_CAP_SYS_ADMIN = 21
_REVISION = re.compile(r"REVISION = (\d+)")


def deploy(arena: Arena) -> Interrupted:
    """Some tasks of the DAG `mixed` have another name from now on; what runs has the old ones."""
    path = arena.cluster.project / "load_dags.py"

    def is_deployed() -> bool:
        before = path.read_text()
        number = int(_REVISION.findall(before)[0])
        after = before.replace("again_", "") if "again_" in before else before.replace('"first_', '"first_again_')
        versions = count_versions(arena.cluster.store, "mixed")
        _replace(path, _REVISION.sub(f"REVISION = {number + 1}", after))
        is_saved = partial(_is_saved, arena, versions)
        arena.cluster.wait_until(is_saved, "the new revision is saved")
        return has_old_runs(arena.cluster.store, "mixed")

    arena.wait_under_load(is_deployed, "a revision is saved while a run of an older one goes on")
    return NOBODY


def _is_saved(arena: Arena, versions: int) -> bool:
    return count_versions(arena.cluster.store, "mixed") > versions


def no_run_mixes_revisions(arena: Arena) -> list[Wrong]:
    """The tasks of a run say themselves which code they are."""
    revisions: dict[tuple[str, str], set[int]] = defaultdict(set)
    for line in arena.load.record.lines():
        revisions[line.workflow, line.run].add(line.revision)
    return [
        Wrong("illegal", f"run {run} ran the code of {len(of)} revisions")
        for run, of in revisions.items()
        if len(of) > 1
    ]


def poison(arena: Arena) -> Interrupted:
    """Files that kill, block or exhaust whoever loads them."""
    names = {f"poison_{name}.py" for name in POISONS}
    for name, code in POISONS.items():
        _replace(arena.cluster.project / f"poison_{name}.py", code)

    def are_known() -> bool:
        with arena.cluster.store.read() as tx:
            return names <= {row.file for row in list_source_errors(tx)}

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
    for member in [one for kind in arena.size for one in arena.cluster.running(kind)]:
        member.terminate()
        arena.replenish()
        arena.cluster.wait_for_members(**{f"{kind}s": size for kind, size in arena.size.items()})
    return NOBODY


def block_logs(arena: Arena) -> Interrupted:
    """For a while no log can be written: where their folder was there is none."""
    logs = _logs(arena)
    aside = logs.with_name("logs-aside")
    logs.rename(aside)
    logs.touch()
    try:
        return _missed_logs(arena)
    finally:
        logs.unlink()
        aside.rename(logs)


def fill_log_disk(arena: Arena) -> Interrupted:
    """For a while the logs are on a disk without room."""
    logs = _logs(arena)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", logs], check=True)
    try:
        with suppress(OSError), open(logs / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        return _missed_logs(arena)
    finally:
        # Lazily, as somebody may still have a log open there.
        subprocess.run(["umount", "-l", logs], check=True)


def _missed_logs(arena: Arena) -> Interrupted:
    before = arena.times_said(NO_LOG)
    arena.wait_under_load(lambda: arena.times_said(NO_LOG) > before, "a log is missed")
    return Interrupted((), 0.0, times=arena.times_said(NO_LOG) - before)


def _logs(arena: Arena) -> Path:
    """The folder of all logs, which is made when there is something to say."""
    folder = arena.cluster.home / "logs"
    folder.mkdir(exist_ok=True)
    return folder


def _may_mount() -> bool:
    """In containers also root may have lost the right to."""
    if not sys.platform.startswith("linux") or shutil.which("mount") is None:
        return False
    status = Path("/proc/self/status").read_text()
    rights = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(rights, 16) >> _CAP_SYS_ADMIN & 1)


def happens_by_itself(arena: Arena) -> Interrupted:
    """One member of each kind does it to itself, and counts."""
    folder = arena.load.record.folder
    before = times_happened(folder)
    arena.wait_under_load(lambda: times_happened(folder) > before, "it happens")
    return Interrupted((), 0.0, times=times_happened(folder) - before)


def keep_wrong_clock(arena: Arena) -> Interrupted:
    """Some hosts are wrong from the start: what counts is that there is work on them."""
    before = len(arena.load.record.lines())
    arena.wait_under_load(lambda: len(arena.load.record.lines()) > before + _SOME_LINES, "there is work")
    return NOBODY


def _replace(path: Path, text: str) -> None:
    """At once, as a good deployment does."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.rename(path)


DEPLOYMENTS = (
    Fault(
        "a new revision is deployed",
        "runs go on with the code they began with",
        deploy,
        task_seconds=0.5,
        check=no_run_mixes_revisions,
    ),
    Fault("poison files appear", "they are reported, the others go on", poison),
    Fault("the schema is upgraded", "runs in flight go on", upgrade),
    Fault("logs cannot be written", "tasks go on without", block_logs),
    Fault("the disk for logs is full", "tasks go on without", fill_log_disk, is_possible=_may_mount()),
    Fault(
        "results are told twice",
        "the second time changes nothing",
        happens_by_itself,
        environment={"HARNESS_BREAK": "repeated_results"},
    ),
    Fault(
        "answers to commits are lost",
        "what was done is done once, what was taken is given back",
        happens_by_itself,
        stores=("postgres",),
        environment={"HARNESS_BREAK": "lost_answers"},
    ),
    Fault(
        "a host's clock is 5 minutes off",
        "everybody goes by the database's clock",
        keep_wrong_clock,
        stores=("postgres",),
        environment={"HARNESS_CLOCK_SECONDS": "300"},
    ),
)
