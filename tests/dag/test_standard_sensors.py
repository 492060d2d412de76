"""What each sensor waits for, one poke at a time, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.authoring.dag.exceptions import TaskDeferred
from headrace.handoff import MissingError

FLOW = """
from datetime import datetime, time, timedelta, timezone
from airflow.exceptions import *
from airflow.sdk import DAG, BaseSensorOperator, PokeReturnValue, task
from airflow.sdk.bases.sensor import poke_mode_only
from airflow.providers.standard.sensors.bash import BashSensor
from airflow.providers.standard.sensors.date_time import DateTimeSensor, DateTimeSensorAsync
from airflow.providers.standard.sensors.external_task import ExternalTaskMarker, ExternalTaskSensor
from airflow.providers.standard.sensors.filesystem import FileSensor
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.providers.standard.sensors.time import TimeSensor, TimeSensorAsync
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor, TimeDeltaSensorAsync, WaitSensor
from airflow.providers.standard.sensors.weekday import DayOfWeekSensor
from airflow.utils.weekday import WeekDay
with DAG("d"{options}) as dag:
{body}
"""
ONE_LOOK = "task_id='s', mode='reschedule'"
"""The outcome `again` says that nothing was found."""


@pytest.fixture
def flow(project):
    def load(body, options=""):
        lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
        project.load(FLOW.replace("{body}", lines).replace("{options}", options))
        return project

    return load


def outcome(project):
    result = project.run("s")
    return result.outcome if result.error is None else f"{result.outcome}: {result.error.message}"


# ---- functions and commands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("True", "success"),
        ("[]", "again"),
        ("PokeReturnValue(True, 1)", "success"),
        ("PokeReturnValue(False, 1)", "again"),
    ],
)
def test_a_function_says_when(flow, returned, expected):
    assert outcome(flow(f"PythonSensor({ONE_LOOK}, python_callable=lambda ds: {returned})")) == expected
    assert outcome(flow(f"@task.sensor(mode='reschedule')\ndef s(ds):\n    return {returned}\ns()")) == expected


def test_a_function_gets_arguments_and_its_value_is_the_result(flow):
    project = flow("""
@task.sensor(poke_interval=0)
def s(given, ds, params):
    return PokeReturnValue(is_done=True, xcom_value=[given, ds, params])
s("x")
""")
    assert project.value(project.run("s")) == ["x", "2026-02-03", {}]
    project = flow("""
def check(a, b, templates_dict):
    return PokeReturnValue(True, [a, b, templates_dict])
given = {"op_args": [1], "op_kwargs": {"b": "{{ ds }}"}, "templates_dict": {"d": "{{ ds }}"}}
PythonSensor(task_id="s", python_callable=check, **given)
""")
    assert project.value(project.run("s")) == [1, "2026-02-03", {"d": "2026-02-03"}]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("bash_command='exit 0'", "success"),
        ("bash_command='exit 3'", "again"),
        ("bash_command='exit 3', retry_exit_code=3", "again"),
        (
            "bash_command='exit 4', retry_exit_code=3",
            "failed: the command of sensor `s` exited with 4, expected 0 or 3",
        ),
        ("bash_command='test $X = 2026-02-03', env={'X': '{{ ds }}'}", "success"),
    ],
)
def test_a_command_says_when(flow, arguments, expected):
    assert outcome(flow(f"BashSensor({ONE_LOOK}, {arguments})")) == expected


def test_a_command_that_fails_for_good_is_not_tried_again(flow):
    project = flow(f"BashSensor({ONE_LOOK}, bash_command='exit 4', retry_exit_code=3)")
    assert project.run("s", try_number=1, max_tries=2).is_retryable is False


# ---- files --------------------------------------------------------------------------------------------------------


def test_a_file_or_a_folder_with_files_is_found(flow, tmp_path):
    def look(pattern, extra=""):
        return outcome(flow(f"FileSensor({ONE_LOOK}, filepath={str(tmp_path / pattern)!r}, {extra})"))

    (tmp_path / "empty" / "below").mkdir(parents=True)
    assert look("day-*.csv") == "again"
    assert look("empty") == "again"
    (tmp_path / "empty" / "below" / "x").touch()
    assert look("empty") == "success"
    assert look("day-{{ ds }}.csv") == "again"
    (tmp_path / "day-2026-02-03.csv").touch()
    assert look("day-{{ ds }}.csv") == "success"
    assert look("day-*.csv") == "success"
    assert look("**/below/x") == "success"
    (tmp_path / "empty" / "below" / "deep").mkdir()
    (tmp_path / "empty" / "below" / "deep" / "y").touch()
    assert look("**/y") == "again"
    assert look("**/y", "recursive=True") == "success"


def test_a_relative_path_begins_at_the_folder_of_the_connection(flow, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x").touch()
    project = flow(f"FileSensor({ONE_LOOK}, filepath='x', fs_conn_id='mine')")
    assert outcome(project) == "failed: there is no connection `mine`"
    project.engine.connections["mine"] = {"conn_type": "fs", "extra": f'{{"path": "{tmp_path}/in"}}'}
    assert outcome(project) == "success"


# ---- moments ------------------------------------------------------------------------------------------------------

PAST = "datetime(2020, 1, 1, tzinfo=timezone.utc)"
FUTURE = "datetime(2100, 1, 1, tzinfo=timezone.utc)"


@pytest.mark.parametrize(
    ("sensor", "expected"),
    [
        (f"DateTimeSensor({ONE_LOOK}, target_time={PAST})", "success"),
        (f"DateTimeSensor({ONE_LOOK}, target_time={FUTURE})", "again"),
        (f"DateTimeSensor({ONE_LOOK}, target_time='{{{{ logical_date.add(years=50) }}}}')", "again"),
        (f"DateTimeSensor({ONE_LOOK}, target_time='{{{{ ds }}}}')", "success"),
        (f"TimeSensor({ONE_LOOK}, target_time=time(0, 0))", "success"),
        (f"TimeSensor({ONE_LOOK}, target_time=time(23, 59, 59, 999999))", "again"),
        (f"TimeDeltaSensor({ONE_LOOK}, delta=timedelta(hours=1))", "success"),
        (f"TimeDeltaSensor({ONE_LOOK}, delta=timedelta(days=36500))", "again"),
        (f"TimeDeltaSensor({ONE_LOOK}, delta='{{{{ 60 * 24 * 36500 }}}}')", "again"),
        (f"DayOfWeekSensor({ONE_LOOK}, week_day=list(WeekDay))", "success"),
        (f"DayOfWeekSensor({ONE_LOOK}, week_day='Tuesday', use_task_logical_date=True)", "success"),
        (f"DayOfWeekSensor({ONE_LOOK}, week_day={{'monday', 'SUNDAY'}}, use_task_logical_date=True)", "again"),
        (f"DayOfWeekSensor({ONE_LOOK}, week_day=WeekDay.TUESDAY, use_task_execution_day=True)", "success"),
        ("WaitSensor(task_id='s', time_to_wait=timedelta(milliseconds=5))", "success"),
    ],
)
def test_moments(flow, sensor, expected):
    assert outcome(flow(sensor)) == expected


def test_a_time_of_day_is_of_the_day_on_which_the_wait_began(flow):
    project = flow(
        f"TimeSensor({ONE_LOOK}, target_time=time(23, 59))", ", start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)"
    )
    assert project.run("s", first_started_at=datetime.now(UTC) - timedelta(days=1)).outcome == "success"


@pytest.mark.parametrize(
    ("sensor", "trigger"),
    [
        (f"DateTimeSensorAsync(task_id='s', target_time={FUTURE})", "DateTimeTrigger"),
        ("TimeSensorAsync(task_id='s', target_time=time(23, 59, 59, 999999))", "DateTimeTrigger"),
        ("TimeDeltaSensorAsync(task_id='s', delta=timedelta(days=36500))", "DateTimeTrigger"),
        ("TimeDeltaSensor(task_id='s', delta=timedelta(days=36500), deferrable=True)", "DateTimeTrigger"),
        ("WaitSensor(task_id='s', time_to_wait=5, deferrable=True)", "TimeDeltaTrigger"),
        ("FileSensor(task_id='s', filepath='/nowhere/x', deferrable=True)", "FileTrigger"),
        ("ExternalTaskSensor(task_id='s', external_dag_id='o', deferrable=True)", "WorkflowTrigger"),
    ],
)
def test_deferrable_sensors_wait_in_a_trigger(flow, sensor, trigger):
    project = flow(sensor)
    operator = project.file.dags["d"].get_task("s")
    context = Context(project)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context)
    assert type(deferred.value.trigger).__name__ == trigger
    assert deferred.value.method_name == "execute_complete"
    assert hasattr(operator, "execute_complete")


def test_a_wait_in_a_trigger_that_fails_is_told_like_one_in_pokes(flow):
    project = flow(f"""
DateTimeSensorAsync(task_id="s", target_time={FUTURE})
DateTimeSensorAsync(task_id="soft", target_time={FUTURE}, soft_fail=True)
""")
    tasks = project.file.dags["d"].task_dict

    def resume(task_id, error):
        with pytest.raises(Exception) as raised:
            tasks[task_id].resume_execution("__fail__", {"error": error}, Context(project))
        return type(raised.value).__name__

    assert resume("s", "Trigger timeout") == "AirflowSensorTimeout"
    assert resume("s", "broken") == "TaskDeferralError"
    assert resume("soft", "Trigger timeout") == "AirflowSkipException"
    assert resume("soft", "broken") == "AirflowSkipException"


def test_deferring_may_be_the_default(flow, monkeypatch):
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    project = flow("FileSensor(task_id='s', filepath='/x')\nFileSensor(task_id='no', filepath='/x', deferrable=False)")
    tasks = project.file.dags["d"].task_dict
    assert (tasks["s"].deferrable, tasks["no"].deferrable) == (True, False)


class Context(dict):
    """Enough of a context for an operator that only defers."""

    def __init__(self, project):
        now = datetime.now(UTC)
        instance = type("Instance", (), {"first_started_at": now, "started_at": now, "waited_seconds": 0.0})()
        super().__init__(ti=instance, logical_date=now, data_interval_end=now)


# ---- other DAGs ---------------------------------------------------------------------------------------------------


class OtherDag:
    """Answers like the engine for runs that the test describes: {logical time: (run state, {task: {state: n}})}."""

    def __init__(self, engine):
        self.runs = {}
        self.tasks = ["t1", "t2", "g.t3"]
        engine._get_runs = self._get_runs
        engine._get_task_states = self._get_task_states
        engine._get_workflow = self._get_workflow

    def _get_runs(self, workflow, logical_times):
        assert workflow == "other"
        return [{"run_key": time, "state": self.runs[time][0]} for time in logical_times if time in self.runs]

    def _get_task_states(self, workflow, logical_times, tasks, group):
        found = {time: self.runs[time][1] for time in logical_times if time in self.runs}
        wanted = tasks or [key for key in self.tasks if key.startswith(f"{group}.")]
        return [
            {"run_key": time, "tasks": {key: states[key] for key in wanted if key in states}}
            for time, states in found.items()
        ]

    def _get_workflow(self, workflow):
        if workflow != "other":
            raise MissingError(f"there is no workflow `{workflow}`")
        return {"tasks": self.tasks}


@pytest.fixture
def other(project):
    return OtherDag(project.engine)


OWN = "2026-02-03T04:05:06+00:00"
BEFORE = "2026-02-02T04:05:06+00:00"
EXTERNAL = f"ExternalTaskSensor({ONE_LOOK}, external_dag_id='other'"


@pytest.mark.parametrize(
    ("arguments", "runs", "expected"),
    [
        ("", {}, "again"),
        ("", {OWN: ("running", {})}, "again"),
        ("", {OWN: ("success", {})}, "success"),
        ("", {OWN: ("failed", {})}, "again"),
        ("failed_states=['failed']", {OWN: ("failed", {})}, "failed: DAG `other` ended as failed"),
        ("failed_states=['failed']", {OWN: ("canceled", {})}, "failed: DAG `other` ended as failed"),
        ("failed_states=['failed'], soft_fail=True", {OWN: ("failed", {})}, "skipped"),
        ("allowed_states=['success', 'failed']", {OWN: ("failed", {})}, "success"),
        ("execution_delta=timedelta(days=1)", {OWN: ("success", {})}, "again"),
        ("execution_delta=timedelta(days=1)", {BEFORE: ("success", {})}, "success"),
        ("execution_date_fn=lambda d: [d, d - timedelta(days=1)]", {OWN: ("success", {})}, "again"),
        (
            "execution_date_fn=lambda d, ds: [d, d - timedelta(days=1)]",
            {OWN: ("success", {}), BEFORE: ("success", {})},
            "success",
        ),
        ("external_task_id='t1'", {OWN: ("running", {"t1": {"success": 1}})}, "success"),
        ("external_task_id='t1'", {OWN: ("running", {"t1": {"running": 1}})}, "again"),
        ("external_task_id='t1'", {OWN: ("running", {})}, "again"),
        ("external_task_id='t1'", {OWN: ("running", {"t1": {"success": 2, "running": 1}})}, "again"),
        ("external_task_id='t1'", {OWN: ("running", {"t1": {"success": 3}})}, "success"),
        ("external_task_ids=['t1', 't2']", {OWN: ("running", {"t1": {"success": 1}})}, "again"),
        ("external_task_ids=['t1', 't2']", {OWN: ("x", {"t1": {"success": 1}, "t2": {"success": 1}})}, "success"),
        (
            "external_task_ids=['t1', 't2'], failed_states=['failed']",
            {OWN: ("x", {"t1": {"success": 1}, "t2": {"failed": 1}})},
            "failed: `t1`, `t2` of DAG `other` ended as failed",
        ),
        (
            "external_task_id='t1', skipped_states=['skipped']",
            {OWN: ("x", {"t1": {"skipped": 1}})},
            "skipped",
        ),
        (
            "external_task_ids=['t1', 't2'], skipped_states=['skipped'], failed_states=['failed']",
            {OWN: ("x", {"t1": {"skipped": 1}, "t2": {"failed": 1}})},
            "failed: `t1`, `t2` of DAG `other` ended as failed",
        ),
        ("external_task_group_id='g'", {OWN: ("x", {"g.t3": {"success": 1}})}, "success"),
        ("external_task_group_id='g'", {OWN: ("x", {"g.t3": {"queued": 1}})}, "again"),
        ("external_task_group_id='g'", {OWN: ("x", {})}, "again"),
        ("external_task_id='t{{ 1 }}'", {OWN: ("running", {"t1": {"success": 1}})}, "success"),
        ("check_existence=True, external_task_id='t1'", {}, "again"),
        ("check_existence=True, external_task_id='t9'", {}, "failed: DAG `other` has no task `t9`"),
        ("check_existence=True, external_task_group_id='h'", {}, "failed: DAG `other` has no group `h`"),
    ],
)
def test_other_dags(flow, other, arguments, runs, expected):
    other.runs = runs
    assert outcome(flow(f"{EXTERNAL}, {arguments})")) == expected


def test_a_dag_that_must_exist(flow, other):
    project = flow(f"ExternalTaskSensor({ONE_LOOK}, external_dag_id='no', check_existence=True)")
    result = project.run("s")
    assert (result.error.type, result.error.message) == ("ExternalDagNotFoundError", "there is no workflow `no`")


def test_a_task_may_ask_for_itself(flow, other):
    other.runs = {OWN: ("canceled", {"t1": {"success": 2, "running": 1}, "t2": {"skipped": 1}})}
    project = flow("""
@task
def s(ti, logical_date):
    which = {"dag_id": "other", "logical_dates": [logical_date]}
    return [
        ti.get_dr_count(**which), ti.get_dr_count(**which, states=["success"]),
        ti.get_ti_count(**which, task_ids=["t1", "t2"]), ti.get_ti_count(**which, task_ids=["t1"], states=["success"]),
        list(ti.get_task_states(**which, task_ids=["t1", "t2"]).values()),
    ]
s()
""")
    assert project.value(project.run("s")) == [1, 0, 4, 2, [{"t1": "running", "t2": "skipped"}]]


def test_a_marker_does_nothing_by_itself(flow):
    project = flow("ExternalTaskMarker(task_id='s', external_dag_id='o', external_task_id='t')")
    assert outcome(project) == "success"


# ---- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("BaseSensorOperator(task_id='s', mode='pok')", "`mode` of sensor `s` to be poke or reschedule, got: 'pok'"),
        ("BaseSensorOperator(task_id='s', poke_interval=-1)", "`poke_interval` of sensor `s` to be a timedelta or"),
        ("BaseSensorOperator(task_id='s', timeout='1h')", "`timeout` of sensor `s` to be a timedelta or a number"),
        ("BaseSensorOperator(task_id='s', soft_fail=True, never_fail=True)", "both soft_fail and never_fail"),
        ("DayOfWeekSensor(task_id='s', week_day='Mondai')", "no day of the week `Mondai`, did you mean `MONDAY`?"),
        ("TimeSensor(task_id='s', target_time='12:00')", "`target_time` of sensor `s` to be a time, got: '12:00'"),
        (f"{EXTERNAL}, external_task_id='a', external_task_ids=['b'])", "got more than one of external_task_id"),
        (f"{EXTERNAL}, execution_delta=timedelta(1), execution_date_fn=print)", "both execution_delta and"),
        (f"{EXTERNAL}, failed_states=['success'])", "a state in more than one of"),
        (f"{EXTERNAL}, failed_states=['skipped'])", "some of queued, running, success, failed, got: `skipped`"),
        ("poke_mode_only(int)", "decorates sensors"),
        ("ExternalTaskMarker(task_id='s', external_dag_id='o', external_task_id='t', recursion_depth=0)", "positive"),
    ],
)
def test_arguments_that_make_no_sense(flow, line, words):
    with pytest.raises(Exception) as raised:
        flow(line)
    assert words in str(raised.value)


def test_a_sensor_that_keeps_something_cannot_be_rescheduled(flow):
    body = """
@poke_mode_only
class Counting(BaseSensorOperator):
    count = 0
    def poke(self, context):
        self.count += 1
        return self.count == 3
Counting(task_id='s', poke_interval=0{mode})
"""
    assert outcome(flow(body.replace("{mode}", ""))) == "success"
    with pytest.raises(Exception, match="to be poke, got: 'reschedule'"):
        flow(body.replace("{mode}", ", mode='reschedule'"))


def test_a_sensor_may_be_mapped(flow, tmp_path):
    (tmp_path / "b").touch()
    project = flow(
        "FileSensor.partial(task_id='s', mode='reschedule').expand("
        f"filepath=[{str(tmp_path / 'a')!r}, {str(tmp_path / 'b')!r}])"
    )
    assert [project.run("s", map_index=index).outcome for index in (0, 1)] == ["again", "success"]
