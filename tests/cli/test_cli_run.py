"""`headrace run`: one workflow to its end."""

from __future__ import annotations

import signal
import time

HELLO = """
    @task
    def hello():
        print("good morning")

    hello()
"""


def test_a_python_dag_succeeds_with_one_json_object(headrace):
    file = headrace.dag(
        """
        @task
        def numbers():
            return [1, 2]

        @task
        def double(n):
            return 2 * n

        double.expand(n=numbers())
        """
    )
    result, code = headrace.json("run", file)
    assert code == 0
    assert (result["workflow"], result["state"]) == ("flow", "success")
    assert sorted(result["tasks"]) == ["double[0]", "double[1]", "numbers"]
    assert set(result["tasks"]["numbers"]) == {"state", "tries", "started_at", "ended_at", "duration_seconds", "error"}


def test_a_dig_workflow_with_tasks_that_add_tasks(headrace):
    file = headrace.write("main.dig", "+each:\n  for_each>: {n: [1, 2]}\n  _do:\n    sh>: echo ${n} ${who}\n")
    result, code = headrace.json("run", file, "-p", "who=me")
    assert code == 0
    assert {task["state"] for task in result["tasks"].values()} == {"success"}
    assert len([name for name in result["tasks"] if name.startswith("+main+each^sub+for")]) == 2


def test_a_failed_task_is_named_with_its_error_and_the_end_of_its_log(headrace):
    file = headrace.dag(
        '@task\ndef bad():\n    print("the last words")\n    raise ValueError("no such table")\n\nbad()'
    )
    done = headrace("run", file)
    assert done.returncode == 1
    assert "`bad` failed: ValueError: no such table" in done.err
    assert "| the last words" in done.err
    assert "try=1.log" in done.err


def test_an_exporter_of_traces_that_is_not_there_leaves_no_run_behind(headrace):
    file = headrace.write("main.dig", "+a:\n  echo>: hello\n")
    done = headrace("run", file, OTEL_TRACES_EXPORTER="nonsense")
    assert done.returncode == 2 and "got: `nonsense`" in done.err
    runs, _ = headrace.json("runs")
    assert runs["runs"] == []


def test_a_retry_is_waited_for(headrace):
    file = headrace.dag(
        """
        @task(retries=1, retry_delay=0.3)
        def second_time(ti=None):
            if ti.try_number == 1:
                raise ValueError("once")

        second_time()
        """
    )
    result, code = headrace.json("run", file)
    assert (code, result["tasks"]["second_time"]["tries"]) == (0, 2)


def test_two_runs_share_a_store_and_keep_to_their_own_tasks(headrace):
    file = headrace.dag("@task\ndef who(params=None):\n    print(os.environ['WHO'])\n\nwho()")
    processes = [headrace.start("run", file, "--json", WHO=name) for name in ("ann", "bob")]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    logs = sorted(path.read_text().splitlines()[0] for path in headrace.home.rglob("*.log"))
    assert logs == ["ann", "bob"]


def test_the_same_date_can_be_run_twice(headrace):
    file = headrace.dag(HELLO)
    codes = [headrace("run", file, "--logical-date", "2026-01-01").returncode for _ in range(2)]
    assert codes == [0, 0]


def test_ctrl_c_cancels_the_run_and_stops_its_tasks(headrace):
    ready = headrace.folder / "ready"
    file = headrace.dag(
        f"@task\ndef slow():\n    open({str(ready)!r}, 'w').write(str(os.getpid()))\n    time.sleep(60)\n\nslow()"
    )
    process = headrace.start("run", file, "--json")
    headrace.read_until(process, "running")
    for _ in range(5):  # one wish: a wrapper may hand on what the whole group has got
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert '"state": "canceled"' in out


def test_several_workflows_must_be_told_apart(headrace):
    file = headrace.write(
        "two.py",
        """
        from airflow.sdk import DAG
        from airflow.providers.standard.operators.empty import EmptyOperator
        for name in ("first", "second"):
            with DAG(name, schedule=None):
                EmptyOperator(task_id="nothing")
        """,
    )
    done = headrace("run", file)
    assert (done.returncode, "`first`, `second`" in done.err) == (2, True)
    done = headrace("run", file, "secnd")
    assert (done.returncode, "did you mean `second`?" in done.err) == (2, True)
    assert headrace("run", file, "second").returncode == 0


def test_assets_of_the_file_are_known_without_a_scheduler(headrace):
    file = headrace.write(
        "assets.py",
        """
from airflow.sdk import asset

@asset(uri="s3://bucket/raw", schedule=None)
def raw():
    pass

@asset(schedule=None)
def clean(context, raw):
    print(list(context["inlet_events"][raw]), raw.uri)
""",
    )
    result, code = headrace.json("run", file, "clean")
    assert (code, result["state"]) == (0, "success")


def test_runs_of_namesakes_are_listed_with_their_projects(headrace):
    for folder in ("north", "south"):
        assert headrace("run", headrace.write(f"{folder}/etl.dig", "+a: {echo>: hello}")).returncode == 0
    assert headrace("run", headrace.write("north/other.dig", "+a: {echo>: hello}")).returncode == 0
    lines = headrace("runs").out.splitlines()[1:]
    assert [line.split()[1] for line in lines] == ["other", "south/etl", "north/etl"]
