"""`dag.test()`, `dag.cli()`, `DagBag` and the fixtures for tests of people's own DAGs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from headrace import DAG, BaseOperator, BashOperator, Connection, Param, TimeDeltaSensor, Variable, task, task_group
from headrace.authoring.dag.triggers import BaseTrigger, TriggerEvent
from headrace.errors import UsageError
from headrace.operators.triggers import DateTimeTrigger
from headrace.testing.dag_command import dag_command

pytest_plugins = ["headrace.testing.fixtures"]

with DAG("flow", params={"n": Param(2, type="integer")}) as flow:

    @task
    def numbers(params):
        print("counting")
        return list(range(params["n"]))

    @task(retries=1, retry_delay=timedelta(hours=1), map_index_template="{{ task.op_kwargs.x }}")
    def double(x, ti):
        if x == 1 and ti.try_number == 1:
            raise ValueError("not at first")
        return x * 2

    @task
    def total(xs, ds):
        return [sum(xs), ds]

    @task_group
    def each(x):
        double.override(task_id="again")(x)

    total(double.expand(x=numbers()))


def test_a_whole_run_in_this_process(run_dag, capsys):
    run = run_dag(flow, logical_date=datetime(2026, 2, 3, tzinfo=UTC), run_conf={"n": 3})
    assert run.state == "success"
    names = ("numbers", "total", "double[0]", "double[1]", "double[2]")
    assert run.states == dict.fromkeys(names, "success")
    assert (run.value("double"), run.value("total")) == ([0, 2, 4], [6, "2026-02-03"])
    second = run.get_task_instance("double", map_index=1)
    assert (second.try_number, second.rendered_map_index, second.return_value) == (2, "1", 2)
    printed = capsys.readouterr()
    assert "counting" in printed.out
    assert "task `double[1]`: failed in" in printed.err and "not at first" in printed.err


def test_dag_test_gives_the_run_and_leaves_a_failure_to_the_caller():
    with DAG("broken") as dag:
        BashOperator(task_id="no", bash_command="exit 3")
    run = dag.test()
    assert (run.state, run.get_task_instances("failed")[0].task_id) == ("failed", "no")
    assert run.get_task_instance("other") is None


def test_tasks_can_be_marked_as_success_and_files_give_variables_and_connections(tmp_path):
    (tmp_path / "variables.json").write_text('{"city": "Graz", "map": {"a": 1}}')
    (tmp_path / "connections.yaml").write_text("db: {conn_type: postgres, host: example.com}\n")
    with DAG("outside") as dag:

        @task
        def read():
            return [Variable.get("city"), Variable.get("map", deserialize_json=True), Connection.get("db").host]

        @task
        def expensive():
            raise AssertionError("not in a test")

        [expensive(), read()]
    run = dag.test(
        mark_success_pattern="exp.*",
        variable_file_path=str(tmp_path / "variables.json"),
        conn_file_path=str(tmp_path / "connections.yaml"),
    )
    assert run.state == "success"
    assert run.value("read") == ["Graz", {"a": 1}, "example.com"]


class Patience(BaseTrigger):
    def __init__(self, name, fails=False):
        self.name, self.fails = name, fails

    def serialize(self):
        return f"{__name__}.Patience", {"name": self.name, "fails": self.fails}

    async def run(self):
        await asyncio.sleep(0.01)
        if self.fails:
            raise ValueError("lost it")
        yield TriggerEvent([self.name, await asyncio.to_thread(Variable.get, "city")])


class Waits(BaseOperator):
    def __init__(self, fails=False, **options):
        super().__init__(**options)
        self.fails = fails

    def execute(self, context):
        self.defer(trigger=Patience(self.task_id, self.fails), method_name="go_on")

    def go_on(self, context, event):
        return event


def test_deferred_tasks_wait_in_this_process(monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_CITY", "Graz")
    with DAG("patient") as dag:
        [Waits(task_id="a"), Waits(task_id="b")] >> TimeDeltaSensor(
            task_id="soon", delta=timedelta(seconds=0), deferrable=True
        )
        Waits(task_id="lost", fails=True)
        Waits(task_id="marked", fails=True)
    run = dag.test(mark_success_pattern="mark.*")
    assert run.states == {"a": "success", "b": "success", "soon": "success", "lost": "failed", "marked": "success"}
    assert (run.value("a"), run.value("b")) == (["a", "Graz"], ["b", "Graz"])
    assert "lost it" in run.get_task_instance("lost").error


def test_a_wait_that_takes_too_long_ends():
    class Forever(Waits):
        def execute(self, context):
            moment = datetime(9999, 1, 1, tzinfo=UTC)
            self.defer(trigger=DateTimeTrigger(moment), method_name="go_on", timeout=timedelta(seconds=0.2))

    with DAG("impatient") as dag:
        Forever(task_id="never")
    run = dag.test()
    assert (run.state, run.states) == ("failed", {"never": "failed"})


def test_wrong_parameters_are_refused():
    with pytest.raises(UsageError, match="parameter `n` of workflow `flow` is not valid: expected integer, got: 'x'"):
        flow.test(run_conf={"n": "x"})


def test_one_task_alone(run_task):
    assert run_task(flow, "numbers", conf={"n": 1}).return_value == [0]
    assert run_task(flow, "total", results={"double": [1, 2]}, logical_date=datetime(2026, 2, 3)).return_value == [
        3,
        "2026-02-03",
    ]
    failed = run_task(flow, "double", results={"numbers": [5, 1]}, map_index=1)
    assert (failed.outcome, failed.error) == ("failed", "not at first")


FILE = """
from airflow.sdk import DAG, task
with DAG("mine") as dag:
    @task
    def one(): return 1
    @task
    def two(x): return x + 1
    two(one())
if __name__ == "__main__":
    dag.cli()
"""


def test_a_folder_of_dags_as_objects(load_dags, tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "broken.py").write_text("from airflow.sdk import DAG\nimport nothing_like_that\n")
    bag = load_dags(tmp_path)
    assert (bag.dag_ids, bag.size(), bag.get_dag("mine").task_ids) == (["mine"], 1, ["one", "two"])
    ((path, error),) = bag.import_errors.items()
    assert path.endswith("broken.py") and "nothing_like_that" in error


def test_a_dag_file_as_a_program(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    command = [sys.executable, "-m", "headrace.testing", "mine.py", "test", "2026-02-03"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "run of `mine`: success" in done.stderr) == (0, True), done.stderr


def test_commands_of_a_dag(capsys):
    assert dag_command(flow, ["tasks"]) == 0
    assert capsys.readouterr().out.split() == ["numbers", "double", "total"]
    assert dag_command(flow, ["test", "--conf", '{"n": "x"}']) == 2
    assert "parameter `n`" in capsys.readouterr().err
