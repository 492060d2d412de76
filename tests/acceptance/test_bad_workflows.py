"""Workflows that are broken or misbehave, in the folder of a standalone that others rely on."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.logs import log_path
from headrace.processes import is_alive

GOOD = """
from airflow.sdk import DAG, task

with DAG("good", schedule=None):

    @task
    def hello():
        print("hello")

    hello()
"""
EMPTY = "from airflow.operators.empty import EmptyOperator\nfrom airflow.sdk import DAG\n"
BROKEN = {
    "cycle.py": (
        EMPTY + 'with DAG("d"):\n    a, b = EmptyOperator(task_id="a"), EmptyOperator(task_id="b")\n    a >> b >> a\n',
        "waits for itself",
    ),
    "duplicate.py": (EMPTY + 'with DAG("d"):\n    [EmptyOperator(task_id="a") for _ in range(2)]\n', "`a`"),
    "missing.dig": ("_parallel: true\n+a: {echo>: 1}\n+b: {echo>: 1, _after: [+nowhere]}\n", "+nowhere"),
    "import_error.py": ("from airflow.sdk import DAG\nimport nothing_like_this\n", "nothing_like_this"),
    "leaves.py": ("from airflow.sdk import DAG\nimport sys\nsys.exit(3)\n", "sys.exit(3)"),
    "endless.py": ("from airflow.sdk import DAG\nwhile True:\n    pass\n", "took longer than 1 s"),
    "segfault.py": ("from airflow.sdk import DAG\nimport ctypes\nctypes.string_at(0)\n", "signal 11"),
}
MISBEHAVING = """
import os, signal, sys, time
from airflow.sdk import DAG, task

with DAG("stubborn", schedule=None):

    @task
    def stubborn():
        "Ignores SIGTERM, as do its children."
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.fork() and os.fork()
        with open(os.environ["PIDS"], "a") as file:
            file.write(f"{os.getpid()}\\n")
        while True:
            time.sleep(60)

    stubborn()

with DAG("loud", schedule=None):

    @task
    def loud():
        for _ in range(100):
            sys.stdout.write("x" * 1_000_000)

    loud()
"""


@pytest.fixture
def cluster(make_cluster, tmp_path):
    """A cluster with a good workflow and two that misbehave."""
    cluster = make_cluster(settings={"HEADRACE_PARSER__TIMEOUT_SECONDS": "1", "PIDS": str(tmp_path / "pids")})
    (cluster.project / "good.py").write_text(GOOD)
    (cluster.project / "misbehaving.py").write_text(MISBEHAVING)
    return cluster


def test_broken_files_are_named_and_stop_nobody(cluster):
    for name, (text, _) in BROKEN.items():
        (cluster.project / name).write_text(text)
    server = cluster.standalone()
    assert cluster.wait_for_end(cluster.trigger("good")).state == "success"

    def errors():
        found = {error["file"]: error["message"] for error in cluster.ask("errors")["errors"]}
        return found if len(found) >= len(BROKEN) else None

    found = cluster.wait_until(errors, "all broken files are known")
    assert found.keys() == BROKEN.keys()
    for name, (_, words) in BROKEN.items():
        assert words in found[name], found[name]
    # A mistake that is mended is forgotten.
    (cluster.project / "segfault.py").write_text(GOOD.replace("good", "mended"))
    assert cluster.wait_for_end(cluster.trigger("mended")).state == "success"
    assert "segfault.py" not in {error["file"] for error in cluster.ask("errors")["errors"]}
    assert server.terminate() == 0 and "Traceback" not in server.stderr


def test_a_task_that_ignores_sigterm_is_gone_after_kill(cluster, tmp_path):
    cluster.standalone()
    run_id = cluster.trigger("stubborn")

    def pids():
        found = (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else []
        return [int(pid) for pid in found] if len(found) == 3 else None

    family = cluster.wait_until(pids, "the task and its children are there")
    assert cluster.command("kill", str(run_id)).returncode == 0
    assert cluster.wait_for_end(run_id).state == "canceled"
    assert [pid for pid in family if is_alive(pid)] == []
    assert cluster.tasks(run_id)["stubborn"].state == "canceled"


def test_a_log_line_of_a_hundred_megabytes_and_a_full_disk_hurt_nobody(cluster):
    server = cluster.standalone()
    on_full_disk = log_path(cluster.home / "logs", "loud", "full", "loud", project="project")
    on_full_disk.parent.mkdir(parents=True)
    on_full_disk.symlink_to("/dev/full")
    for key in ("roomy", "full"):
        assert cluster.wait_for_end(cluster.trigger("loud", run_key=key)).state == "success"
    log = log_path(cluster.home / "logs", "loud", "roomy", "loud", project="project")
    assert log.stat().st_size >= 100_000_000
    assert f"could not write the log `{on_full_disk}`: No space left on device" in server.stderr
    peak = peak_megabytes(server.pid)
    print(f"the process with the agent took {peak:.0f} MB at most")
    assert peak < 150


def peak_megabytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
