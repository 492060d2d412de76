"""One try of one task: arguments, context, results and outcomes."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from headrace.authoring.dag.loading import load_dag_file
from headrace.runner.termination import TaskTerminated

FLOW = """
from datetime import date, datetime, timedelta
from airflow.exceptions import *
from airflow.sdk import DAG, Variable, chain, get_current_context, task, task_group, TaskGroup, literal
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator
with DAG("d", params={{"x": 1, "y": 1}}, {options}) as dag:
{body}
"""


@pytest.fixture
def flow(project):
    def load(body, options=""):
        lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
        project.load(FLOW.format(body=lines, options=options))
        return project

    return load


def returning(flow, expression, decorator="@task", signature=""):
    return flow(f"{decorator}\ndef f({signature}):\n    return {expression}\nf()")


def test_returned_value_is_the_result(flow):
    project = returning(flow, "{'a': [1, 2.5, None, True, 'ü']}")
    result = project.run("f")
    assert (result.task_id, result.fence, result.outcome) == (7, 1, "success")
    assert project.value(result) == {"a": [1, 2.5, None, True, "ü"]}
    assert result.lengths == {"return_value": 1}


def test_none_is_not_stored(flow):
    assert returning(flow, "None").run("f").values == {}
    assert returning(flow, "1", "@task(do_xcom_push=False)").run("f").values == {}


def test_values_that_json_lacks_travel_in_envelopes(flow):
    project = flow("""
from decimal import Decimal
from uuid import UUID
VALUE = {
    "at": datetime(2026, 2, 3, 4, 5), "day": date(2026, 2, 3), "for": timedelta(days=1, seconds=2),
    "d": Decimal("1.10"), "id": UUID(int=5), "set": {1, 2}, "frozen": frozenset([1]), "tuple": (1, (2,)),
    3: "int key", "big": 2**80, "inf": float("inf"), "nested": {"__type": "mine"},
}
@task
def give():
    return VALUE
@task
def take(value):
    assert value == VALUE and type(value["tuple"]) is tuple and type(value["frozen"]) is frozenset
    return sorted(map(str, value))
take(give())
""")
    given = project.run("give")
    project.engine.values["give", "return_value"] = project.value(given)
    taken = project.run("take")
    assert taken.outcome == "success", taken.error
    assert len(project.value(taken)) == 12


def test_value_without_json_form_fails_the_try(flow):
    result = returning(flow, "{'a': [object()]}").run("f")
    assert result.outcome == "failed"
    assert result.error.message == "expected the result `return_value` to be made of JSON values, got: builtins.object"


def test_multiple_outputs_store_each_key_and_the_whole(flow):
    project = returning(flow, "{'a': 1, 'b': [1, 2]}", "@task(multiple_outputs=True)")
    result = project.run("f")
    assert {name: project.value(result, name) for name in result.values} == {
        "a": 1,
        "b": [1, 2],
        "return_value": {"a": 1, "b": [1, 2]},
    }
    assert result.lengths == {"b": 2, "return_value": 2}
    assert returning(flow, "[1]", "@task(multiple_outputs=True)").run("f").error.message.endswith("got: list")


def test_multiple_outputs_are_inferred_from_the_annotation(flow):
    project = flow("@task\ndef f() -> dict[str, int]:\n    return {'a': 1}\nf()")
    assert set(project.run("f").values) == {"a", "return_value"}


def test_pushed_values_are_seen_by_the_task_itself_and_stored(flow):
    project = flow("""
@task
def f(ti):
    ti.xcom_push("k", [1, 2])
    ti.xcom_push(key="k", value=[1, 2, 3])
    return ti.xcom_pull(task_ids="f", key="k"), ti.xcom_pull(key="k"), ti.xcom_pull(key="no", default=5)
f()
""")
    result = project.run("f")
    assert project.value(result, "k") == [1, 2, 3]
    assert result.lengths["k"] == 3
    assert project.value(result)["__value"] == [[1, 2, 3], [1, 2, 3], 5]


def test_pulling(flow):
    project = flow("""
a, b, m = EmptyOperator(task_id="a"), EmptyOperator(task_id="b"), EmptyOperator(task_id="m")
@task
def f(ti):
    return {
        "one": ti.xcom_pull("a"), "missing": ti.xcom_pull("zzz", default="d"),
        "key": ti.xcom_pull(task_ids="b", key="k"), "many": ti.xcom_pull(["b", "zzz", "a"]),
        "index": ti.xcom_pull("m", map_indexes=1),
        "indexes": ti.xcom_pull("m", map_indexes=[1, 5, 0], default="-"), "anywhere": ti.xcom_pull(),
    }
chain(a, b, f())
""")
    project.engine.values = {("a", "return_value"): "A", ("b", "k"): "K"}
    project.engine.instances = {("m", "return_value", 0): "m0", ("m", "return_value", 1): "m1"}
    assert project.value(project.run("f")) == {
        "one": "A",
        "missing": "d",
        "key": "K",
        "many": [None, None, "A"],
        "index": "m1",
        "indexes": ["m1", "-", "m0"],
        "anywhere": "A",
    }


def test_pulling_from_another_dag_names_it(flow):
    project = returning(flow, "ti.xcom_pull('a', dag_id='other', run_id='r')", signature="ti")
    project.run("f")
    verb, args = project.engine.asked[-1]
    assert (verb, args["workflow"], args["run_key"]) == ("get_results", "other", "r")


def test_named_result_that_was_never_pushed_fails_its_consumer(flow):
    body = "@task{}\ndef give():\n    return {{}}\n@task\ndef take(x):\n    return str(x)\ntake(give()['k'])"
    assert flow(body.format("")).run("take").error.type == "XComNotFound"
    project = flow(body.format("(multiple_outputs=True)"))
    assert project.value(project.run("take")) == "None"


def test_context_names_are_filled_in(flow):
    project = flow("""
@task
def f(x, ds, ti, ts_nodash, params, dag_run=None, **context):
    same = get_current_context()
    return [x, ds, ti.task_id, ts_nodash, params, dag_run.conf, context["run_id"], same["ds_nodash"], "ds" in context]
f("mine")
""")
    result = project.run("f", conf={"y": 2, "z": 3})
    assert result.outcome == "success", result.error
    assert project.value(result) == [
        "mine",
        "2026-02-03",
        "f",
        "20260203T040506",
        {"x": 1, "y": 2, "z": 3},
        {"y": 2, "z": 3},
        "manual__1",
        "20260203",
        False,
    ]


def test_dates_are_pendulum_objects(flow):
    project = flow("""
@task
def f(logical_date, data_interval_start, execution_date):
    return [logical_date.add(days=1).to_date_string(), data_interval_start == execution_date == logical_date]
f()
""")
    assert project.value(project.run("f")) == ["2026-02-04", True]


def test_context_can_be_copied_with_everything_in_it(flow):
    project = flow("""
@task
def f(ti):
    context = get_current_context()
    copies = [dict(context), {**context}, dict(context.items())]
    return [[copy["logical_date"].year, "macros" in copy, len(copy) == len(context)] for copy in copies]
f()
""")
    assert project.value(project.run("f")) == [[2026, True, True]] * 3


def test_run_without_logical_date_has_no_dates(flow):
    result = returning(flow, "ds", signature="ds").run("f", logical_time=None)
    assert result.outcome == "failed" and "ds" in result.error.message


def test_classic_python_operator_gets_arguments_and_context(flow):
    project = flow("""
def f(a, b, ds=None, templates_dict=None, **kwargs):
    return [a, b, ds, templates_dict, kwargs["task"].task_id]
PythonOperator(task_id="f", python_callable=f, op_args=["{{ ds }}"], op_kwargs={"b": "{{ params.x }}"},
               templates_dict={"t": "{{ run_id }}"})
""")
    assert project.value(project.run("f")) == ["2026-02-03", "1", "2026-02-03", {"t": "manual__1"}, "f"]


def test_async_function_is_run(flow):
    project = flow("@task\nasync def f():\n    return 5\nf()")
    assert project.value(project.run("f")) == 5


def test_dag_function_argument_becomes_the_runs_value(project):
    project.load("""
from airflow.sdk import dag, task
@dag
def d(city="Oslo"):
    @task
    def f(place):
        return place
    f(city)
d()
""")
    assert project.value(project.run("f")) == "Oslo"
    assert project.value(project.run("f", conf={"city": "Rome"})) == "Rome"


# Templates


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("no markers { }", "no markers { }"),
        ("{{ ds }}/{{ ds_nodash }}/{{ ts }}", "2026-02-03/20260203/2026-02-03T04:05:06+00:00"),
        ("{{ logical_date.format('YYYY') }}", "2026"),
        ("{{ logical_date | ts_nodash }}", "20260203T040506"),
        ("{{ macros.ds_add(ds, 5) }} {{ yesterday_ds }}", "2026-02-08 2026-02-02"),
        ("{{ var.value.town }} {{ var.json.conf.deep }} {{ var.value.get('no', 'd') }}", "Oslo 1 d"),
        ("{{ conn.db.host }}:{{ conn.db.extra_dejson.k }}", "h:v"),
        ("{{ ti.xcom_pull(task_ids='up') }} {{ params.y }}", "UP 1"),
        ("{% for i in range(2) %}{{ i }}{% endfor %}{# no #}", "01"),
        ("{{ double(4) }} {{ 'a' | twice }}", "8 aa"),
        ("{{ task_instance_key_str }}", "d__f__20260203"),
    ],
)
def test_templates(flow, template, rendered):
    options = "user_defined_macros={'double': lambda x: 2 * x}, user_defined_filters={'twice': lambda x: x + x}"
    project = flow(f"@task\ndef f(x):\n    return x\nf({template!r})", options)
    project.engine.variables = {"town": "Oslo", "conf": '{"deep": 1}'}
    project.engine.connections = {"db": {"conn_type": "x", "host": "h", "extra": '{"k": "v"}'}}
    project.engine.values = {("up", "return_value"): "UP"}
    result = project.run("f")
    assert result.outcome == "success", result.error
    assert project.value(result) == rendered


def test_unknown_name_in_a_template_fails_with_the_field(flow):
    result = flow("BashOperator(task_id='b', bash_command='echo {{ nope }}')").run("b")
    assert result.outcome == "failed"
    assert result.error.message == "could not render `bash_command` of task `b`: 'nope' is undefined (UndefinedError)"


def test_sandbox_keeps_templates_out_of_python(flow):
    result = flow("BashOperator(task_id='b', bash_command='{{ ti.__class__.__mro__ }}')").run("b")
    assert result.outcome == "failed" and "SecurityError" in result.error.message


def test_template_file_is_found_beside_the_dag(flow, project, capfd):
    project.write("echo {{ ds }}", "cmd.sh")
    project = flow("BashOperator(task_id='b', bash_command='cmd.sh')\nBashOperator(task_id='n', bash_command='no.sh')")
    assert project.value(project.run("b")) == "2026-02-03"
    assert "no template file `no.sh`" in project.run("n").error.message


def test_literal_and_native_values(flow):
    project = flow("@task\ndef f(a, b):\n    return [a, b]\nf(literal('{{ ds }}'), '{{ 1 + 1 }}')")
    assert project.value(project.run("f")) == ["{{ ds }}", "2"]
    project = flow(
        "@task\ndef f(a):\n    return a\nf('{{ [1, params.x] }}')", options="render_template_as_native_obj=True"
    )
    assert project.value(project.run("f")) == [1, 1]


def test_task_without_templates_needs_no_jinja(flow, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    project = returning(flow, "1")
    assert project.run("f").outcome == "success"


# Outcomes


@pytest.mark.parametrize(
    ("statement", "outcome", "is_retryable"),
    [
        ("raise AirflowSkipException('no')", "skipped", True),
        ("raise AirflowFailException('no')", "failed", False),
        ("raise AirflowSensorTimeout('no')", "failed", False),
        ("raise AirflowException('no')", "failed", True),
        ("raise KeyboardInterrupt", "failed", True),
        ("import sys; sys.exit()", "success", True),
        ("import sys; sys.exit(0)", "success", True),
        ("import sys; sys.exit(3)", "failed", True),
        ("1 / 0", "failed", True),
    ],
)
def test_exceptions_become_outcomes(flow, statement, outcome, is_retryable):
    result = flow(f"@task\ndef f():\n    {statement}\nf()").run("f")
    assert (result.outcome, result.is_retryable) == (outcome, is_retryable)


def test_reschedule_asks_to_be_called_again(flow):
    body = "from datetime import UTC\n@task\ndef f():\n"
    body += "    raise AirflowRescheduleException(datetime.now(UTC) + timedelta(seconds=60))\nf()"
    result = flow(body).run("f")
    assert result.outcome == "again" and 50 < result.again_after_seconds <= 60


def test_error_shows_the_users_frames_only(flow):
    result = flow("@task\ndef f():\n    return {}['missing']\nf()").run("f")
    assert (result.error.type, result.error.message) == ("KeyError", "'missing'")
    assert "flow.py" in result.error.traceback and "{}['missing']" in result.error.traceback
    assert "python_task.py" not in result.error.traceback and "operators" not in result.error.traceback


def test_values_pushed_before_a_failure_are_kept(flow):
    project = flow("@task\ndef f(ti):\n    ti.xcom_push('k', 1)\n    raise ValueError\nf()")
    result = project.run("f")
    assert result.outcome == "failed" and project.value(result, "k") == 1


def test_timeout_stops_the_task_and_calls_on_kill(flow, capfd):
    body = """
from airflow.sdk import BaseOperator
class Slow(BaseOperator):
    def execute(self, context):
        try:
            while True:
                pass
        except Exception:
            print("swallowed")
    def on_kill(self):
        print("killed")
Slow(task_id="f", execution_timeout=timedelta(seconds=0.05))
"""
    result = flow(body).run("f")
    assert (result.outcome, result.error.type, result.is_retryable) == ("failed", "AirflowTaskTimeout", True)
    assert "0.05 s" in result.error.message
    assert capfd.readouterr().out == "killed\n"


def test_request_to_stop_calls_on_kill_and_goes_on_up(flow, capfd):
    body = """
from headrace.runner.termination import TaskTerminated
from airflow.sdk import BaseOperator
class Slow(BaseOperator):
    def execute(self, context):
        raise TaskTerminated
    def on_kill(self):
        print("killed")
Slow(task_id="f")
"""
    with pytest.raises(TaskTerminated):
        flow(body).run("f")
    assert capfd.readouterr().out == "killed\n"


def test_task_that_left_the_file_fails_with_a_sentence(flow):
    project = returning(flow, "1")
    del project.file.dags["d"]._tasks["f"]
    result = project.run("f")
    assert result.outcome == "failed" and "`f` of DAG `d` is not in `flow.py`" in result.error.message


HOOKS = """
seen = []
def note(event):
    return lambda context: seen.append((event, type(context.get("exception")).__name__))
def broken(context):
    raise RuntimeError("callback")
events = ["execute", "success", "failure", "retry", "skipped"]
callbacks = {{f"on_{{event}}_callback": [broken, note(event)] for event in events}}
@task(pre_execute=note("pre"), post_execute=lambda context, result: seen.append(("post", result)), **callbacks)
def f():
    {statement}
f()
"""


@pytest.mark.parametrize(
    ("statement", "fields", "events"),
    [
        ("return 1", {}, [("pre", "NoneType"), ("execute", "NoneType"), ("post", 1), ("success", "NoneType")]),
        ("1 / 0", {}, [("pre", "NoneType"), ("execute", "NoneType"), ("failure", "ZeroDivisionError")]),
        ("1 / 0", {"max_tries": 1}, [("pre", "NoneType"), ("execute", "NoneType"), ("retry", "ZeroDivisionError")]),
        (
            "1 / 0",
            {"max_tries": 1, "try_number": 2},
            [("pre", "NoneType"), ("execute", "NoneType"), ("failure", "ZeroDivisionError")],
        ),
        (
            "raise AirflowFailException",
            {"max_tries": 1},
            [("pre", "NoneType"), ("execute", "NoneType"), ("failure", "AirflowFailException")],
        ),
        ("raise AirflowSkipException", {}, [("pre", "NoneType"), ("execute", "NoneType"), ("skipped", "NoneType")]),
    ],
)
def test_callbacks_run_in_order_and_their_failures_change_nothing(flow, statement, fields, events, caplog):
    project = flow(HOOKS.format(statement=statement))
    with caplog.at_level(logging.ERROR):
        result = project.run("f", **fields)
    seen = project.file.dags["d"].get_task("f").python_callable.__globals__["seen"]
    assert seen == events
    assert result.outcome in ("success", "failed", "skipped") and "callback" in caplog.text


# Mapping


def test_instance_gets_its_element(flow):
    project = flow("""
@task
def f(x, y, z="z"):
    return [x, y, z]
f.partial(z="{{ ds }}").expand(x=[1, 2], y={"a": "{{ run_id }}", "b": 0})
""")
    values = [project.value(project.run("f", map_index=index)) for index in range(4)]
    assert [value[0] for value in values] == [1, 1, 2, 2]
    assert values[0] == [1, {"__type": "tuple", "__value": ["a", "manual__1"]}, "2026-02-03"]
    assert values[3][1]["__value"] == ["b", 0]


def test_elements_from_other_tasks_are_not_rendered(flow):
    project = flow("""
@task
def give(): ...
@task
def f(x):
    return x
f.expand(x=give())
""")
    project.engine.values = {("give", "return_value"): ["a", "{{ ds }}"]}
    assert project.value(project.run("f", map_index=1)) == "{{ ds }}"


def test_map_zip_and_concat_are_resolved_per_element(flow):
    project = flow("""
@task
def a(): ...
@task
def b(): ...
def keep_small(x):
    if x > 1:
        raise AirflowSkipException
    return x * 10
@task
def f(x):
    return x
A, B = a(), b()
f.expand(x=A.map(keep_small))
f.override(task_id="z").expand(x=A.zip(B, fillvalue="-"))
f.override(task_id="c").expand(x=A.concat(B))
f.override(task_id="all")(A.map(lambda x: -x))
""")
    project.engine.values = {("a", "return_value"): [1, 2, 3], ("b", "return_value"): ["x"]}
    assert project.value(project.run("f", map_index=0)) == 10
    assert project.run("f", map_index=1).outcome == "skipped"
    assert [project.value(project.run("z", map_index=i))["__value"] for i in range(3)] == [[1, "x"], [2, "-"], [3, "-"]]
    assert project.value(project.run("c", map_index=3)) == "x"
    assert project.value(project.run("all")) == [-1, -2, -3]


def test_expand_kwargs_of_a_classic_operator(flow, capfd):
    project = flow("""
@task
def give(): ...
BashOperator.partial(task_id="b", append_env=True).expand_kwargs(give())
""")
    project.engine.values = {("give", "return_value"): [{"bash_command": "echo $A", "env": {"A": "1"}}, {"retries": 3}]}
    assert project.value(project.run("b", map_index=0)) == "1"
    assert project.run("b", map_index=1).error.type == "TypeError"


def test_index_beyond_the_data_is_explained(flow):
    result = flow("@task\ndef f(x): ...\nf.expand(x=[1])").run("f", map_index=1)
    assert "there is no data for instance 1" in result.error.message


@pytest.mark.parametrize(
    ("expression", "error"),
    [("[1, 2]", None), ("{'a': 1}", None), ("None", "XComForMappingNotPushed"), ("'abc'", "UnmappableXComTypePushed")],
)
def test_task_that_others_are_mapped_over_must_return_elements(flow, expression, error):
    result = returning(flow, expression).run("f", has_map_consumers=True)
    assert (result.error and result.error.type) == error
    assert returning(flow, expression).run("f", has_map_consumers=True, map_index=0).outcome == "success"


# Branching

BRANCHES = """
def choose():
    return {choice!r}
branch = BranchPythonOperator(task_id="branch", python_callable=choose)
a, b, join = EmptyOperator(task_id="a"), EmptyOperator(task_id="b"), EmptyOperator(task_id="join")
with TaskGroup("g") as g:
    EmptyOperator(task_id="one"), EmptyOperator(task_id="two")
branch >> [a, b, join, g]
[a, b] >> join
"""


@pytest.mark.parametrize(
    ("choice", "followed"),
    [
        ("a", ("a", "join")),
        (["a", "b"], ("a", "b", "join")),
        ("join", ("join",)),
        ("g", ("g.one", "g.two")),
        (None, ()),
    ],
)
def test_branch_follows_the_chosen_and_what_comes_after_them(flow, choice, followed):
    project = flow(BRANCHES.format(choice=choice))
    result = project.run("branch")
    assert (result.outcome, result.followed) == ("success", followed)
    assert project.value(result, "skipmixin_key") == {"followed": list(followed)}
    assert choice is None or project.value(result) == choice


@pytest.mark.parametrize("choice", ["nope", 3, ["a", None]])
def test_branch_to_nowhere_fails(flow, choice):
    result = flow(BRANCHES.format(choice=choice)).run("branch")
    assert result.outcome == "failed" and "branch `branch`" in result.error.message


CIRCUIT = """
short = ShortCircuitOperator(task_id="short", python_callable=lambda: {value}, {options})
a, b = EmptyOperator(task_id="a"), EmptyOperator(task_id="b", trigger_rule="all_done")
clean = EmptyOperator(task_id="clean").as_teardown()
short >> a >> b >> clean
"""


@pytest.mark.parametrize(
    ("value", "options", "skipped"),
    [("1", "", ()), ("0", "", ("a", "b")), ("[]", "ignore_downstream_trigger_rules=False", ("a",))],
)
def test_short_circuit(flow, value, options, skipped):
    result = flow(CIRCUIT.format(value=value, options=options)).run("short")
    assert (result.outcome, result.skipped, result.followed) == ("success", skipped, None)


def test_branch_and_short_circuit_as_functions(flow):
    project = flow("""
@task.branch
def pick(ds):
    return "a"
@task.short_circuit
def stop():
    return False
a, b = EmptyOperator(task_id="a"), EmptyOperator(task_id="b")
pick() >> [a, b]
stop() >> b
""")
    assert project.run("pick").followed == ("a",)
    assert project.run("stop").skipped == ("b",)


# Variables


def test_variables_come_from_the_environment_then_from_the_engine(flow, monkeypatch):
    project = flow("""
@task
def f():
    Variable.set("written", {"a": 1}, serialize_json=True)
    try:
        Variable.get("missing")
    except KeyError as error:
        text = str(error)
    return [Variable.get("town"), Variable.get("json", deserialize_json=True), Variable.get("no", default_var=1),
            Variable.get("written", deserialize_json=True), text]
f()
""")
    monkeypatch.setenv("AIRFLOW_VAR_TOWN", "Rome")
    project.engine.variables = {"town": "Oslo", "json": "[1]"}
    assert project.value(project.run("f")) == ["Rome", [1], 1, {"a": 1}, "there is no variable `missing`"]


def test_example_runs_from_end_to_end(project, capfd):
    """Each task gets what the tasks before it returned, as the engine would hand it over."""
    folder = Path(__file__).parents[2] / "examples"
    project.file = load_dag_file(folder, "hello_python.py")
    values = project.engine.values

    def run(task, **fields):
        result = project.run(task, **fields)
        assert result.outcome == "success", result.error
        return project.value(result) if result.values else None

    values["list_people", "return_value"] = run("list_people", has_map_consumers=True)
    values["greet", "return_value"] = [run("greet", map_index=index) for index in range(3)]
    values["join", "return_value"] = run("join")
    values["count", "return_value"] = run("count")
    assert run("report") is None
    assert capfd.readouterr().out.endswith(
        f"the greetings have {len('Hello, Ada! Hello, Grace! Hello, Linus!')} characters\n"
    )


def test_what_templates_became_is_told_and_long_values_are_cut(flow):
    project = flow("""
BashOperator(task_id="b", bash_command="{{ 'x' * 5000 }}", env={"a": "plain", "b": "{{ params.x }}"})
BashOperator(task_id="plain", bash_command="true")
""")
    shown = project.run("b").rendered
    assert msgspec.json.decode(shown["env"]) == {"a": "plain", "b": "1"}
    assert msgspec.json.decode(shown["bash_command"]).endswith("xxx … (cut)")
    assert project.run("plain").rendered == {}


def test_a_source_with_too_many_elements_fails(flow):
    project = flow("""
@task
def many(): return [1, 2, 3]
@task
def use(x): pass
use.expand(x=many())
""")
    result = project.run("many", has_map_consumers=True, max_map_length=2)
    assert "returned 3 elements" in result.error.message and "`limits.max_map_length` allows 2" in result.error.message


def test_a_name_for_an_instance_may_come_from_inside_the_task(flow):
    project = flow("""
@task(map_index_template="{{ name }}")
def f(x):
    get_current_context()["name"] = f"number {x}"
    if x == 2: raise ValueError("no")
@task(map_index_template="{{ missing }}")
def g(x): pass
f.expand(x=[1, 2])
g.expand(x=[1])
""")
    assert [project.run("f", map_index=index).label for index in (0, 1)] == ["number 1", "number 2"]
    assert (project.run("g", map_index=0).label, project.run("g", map_index=0).outcome) == ("", "success")


def test_dates_of_neighbouring_runs_follow_the_schedule(flow):
    project = flow(
        """
@task
def f(prev_ds, next_ds, next_ds_nodash, prev_execution_date, next_execution_date):
    return [prev_ds, next_ds, next_ds_nodash, str(prev_execution_date.date()), str(next_execution_date.date())]
f()
""",
        "schedule='@daily', start_date=datetime(2026, 1, 1)",
    )
    midnight = datetime(2026, 2, 3, tzinfo=UTC)
    assert project.value(project.run("f", logical_time=midnight, run_type="scheduled")) == [
        "2026-02-02", "2026-02-04", "20260204", "2026-02-02", "2026-02-04",
    ]  # fmt: skip
    assert project.value(project.run("f", logical_time=midnight))[:2] == ["2026-02-03", "2026-02-03"]


def test_macros_are_those_that_templates_expect(flow):
    project = flow("""
BashOperator(task_id="b", bash_command="echo {{ macros.time.strftime('%Y', macros.time.gmtime(0)) }} "
    "{{ 0 <= macros.random() < 1 }} {{ macros.ds_add(ds, 2) }} {{ macros.ds_format(ds, '%Y-%m-%d', '%d') }} "
    "{{ macros.uuid.UUID(int=1) }} {{ macros.json.dumps([1]) }} {{ logical_date | ds_nodash }}")
""")
    result = project.run("b")
    expected = "echo 1970 True 2026-02-05 03 00000000-0000-0000-0000-000000000001 [1] 20260203"
    assert msgspec.json.decode(result.rendered["bash_command"]) == expected


def test_a_function_in_place_of_a_templated_value_gets_the_context(flow):
    project = flow("""
def command(context, jinja_env):
    return "echo " + jinja_env.from_string("{{ x }}").render(x=context["ds"])
BashOperator(task_id="b", bash_command=command)
""")
    assert project.value(project.run("b")) == "2026-02-03"


def test_an_instance_can_tell_how_many_there_are(flow):
    project = flow("""
@task
def f(x, y, expanded_ti_count): return expanded_ti_count
@task
def g(expanded_ti_count): return [expanded_ti_count]
f.expand(x=[1, 2], y=[1, 2, 3])
g()
""")
    assert project.value(project.run("f", map_index=0)) == 6
    assert project.value(project.run("g")) == [None]


def test_operators_can_render_what_they_make_up_themselves(flow):
    project = flow("""
from airflow.sdk import BaseOperator
class Late(BaseOperator):
    template_fields = ("text",)
    def __init__(self, text, **kwargs):
        super().__init__(**kwargs)
        self.text = text
    def execute(self, context):
        self.text = "{{ ds }}"
        self.render_template_fields(context)
        return [self.text, self.render_template(["{{ params.x }}"], context)]
Late(task_id="late", text="x")
""")
    assert project.value(project.run("late")) == ["2026-02-03", ["1"]]
