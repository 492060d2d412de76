"""DAG files against the definitions that they compile to."""

from __future__ import annotations

import pytest

from headrace.definition import Length, Node, Place, Retry, Schedule, Workflow
from headrace.errors import CycleError, DefinitionError

SMALL = """
from datetime import datetime, timedelta
from airflow import DAG
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator

with DAG("small", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=True, tags=["b", "a"],
         description="Small", dagrun_timeout=timedelta(hours=1), params={"x": 1}) as dag:
    start = EmptyOperator(task_id="start")
    work = BashOperator(
        task_id="work", bash_command="echo {{ ds }}", retries=2, retry_delay=timedelta(seconds=10),
        execution_timeout=timedelta(seconds=30), pool="p", pool_slots=2, queue="q", doc_md="Works.")
    start >> work
"""


def test_small_file_compiles_to_this_definition(project):
    assert project.workflow(SMALL) == Workflow(
        name="small",
        language="python",
        nodes=(
            Node(key="", kind="group", place=Place(file="flow.py", line=7)),
            Node(
                key="start",
                parent="",
                operator="noop",
                isolation="inline",
                decides=False,
                priority=2,
                place=Place(file="flow.py", line=9),
            ),
            Node(
                key="work",
                parent="",
                upstream=("start",),
                operator="bash",
                config={"bash_command": "echo {{ ds }}"},
                isolation="programs",
                retry=Retry(limit=2, delay_seconds=10.0),
                timeout_seconds=30.0,
                pool="p",
                pool_slots=2,
                queue="q",
                place=Place(file="flow.py", line=10),
                doc="Works.",
            ),
        ),
        params={"x": 1},
        schedule=Schedule(
            type="cron",
            spec={"expression": "0 0 * * *", "timezone": "UTC", "semantics": "airflow", "intervals": False},
            catch_up="all",
            start_at="2026-01-01T00:00:00Z",
        ),
        max_active_runs=16,
        max_active_tasks=16,
        timeout_seconds=3600.0,
        tags=("a", "b"),
        description="Small",
        place=Place(file="flow.py", line=7),
    )


def with_dag(arguments, body="EmptyOperator(task_id='a')"):
    return f"""
import datetime, zoneinfo
from datetime import timedelta
from airflow.sdk import DAG, task, TaskGroup
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
with DAG("d", {arguments}) as dag:
    {body}
"""


CRON = {"timezone": "UTC", "semantics": "airflow", "intervals": False}


@pytest.mark.parametrize(
    ("written", "kind", "spec"),
    [
        ("'*/5 * * * *'", "cron", {"expression": "*/5 * * * *", **CRON}),
        ("'@quarterly'", "cron", {"expression": "0 0 1 */3 *", **CRON}),
        ("timedelta(minutes=90)", "interval", {"seconds": 5400.0, "intervals": False}),
        ("'@once'", "once", {}),
    ],
)
def test_schedules(project, written, kind, spec):
    schedule = project.workflow(with_dag(f"schedule={written}")).schedule
    assert (schedule.type, schedule.spec, schedule.catch_up) == (kind, spec, "latest")


def test_no_schedule_is_none(project):
    assert project.workflow(with_dag("schedule=None")).schedule is None
    assert project.workflow(with_dag("")).schedule is None


@pytest.mark.parametrize("wrong", ["'@dayly'", "'0 0 *'", "'0 25 * * *'", "3", "timedelta(0)"])
def test_wrong_schedules_point_at_the_dag(project, wrong):
    with pytest.raises(DefinitionError, match="schedule of DAG `d`") as raised:
        project.workflow(with_dag(f"schedule={wrong}"))
    assert raised.value.place == "flow.py:7"


def test_cron_runs_in_the_time_zone_of_the_start_date(project):
    zone = "start_date=datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Oslo'))"
    workflow = project.workflow(with_dag(f"schedule='0 3 * * *', {zone}"))
    assert workflow.timezone == workflow.schedule.spec["timezone"] == "Europe/Oslo"
    assert workflow.schedule.start_at == "2025-12-31T23:00:00Z"
    named = "start_date=datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo('GB'))"
    assert project.workflow(with_dag(f"schedule='0 3 * * *', {named}")).timezone == "GB"
    text = project.workflow(with_dag("schedule='@daily', start_date='2026-01-01T00:00:00'"))
    assert (text.timezone, text.schedule.start_at) == ("UTC", "2026-01-01T00:00:00Z")
    offset = "start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(timedelta(hours=9)))"
    assert project.workflow(with_dag(f"schedule='0 3 * * *', {offset}")).timezone == "Etc/GMT-9"


def test_paused_only_if_said(project):
    assert project.workflow(with_dag("")).is_paused_at_creation is False
    assert project.workflow(with_dag("is_paused_upon_creation=True")).is_paused_at_creation is True


def test_backoff_retries_are_jittered_and_capped(project):
    options = "task_id='a', retries=3, retry_delay=10, retry_exponential_backoff={}, max_retry_delay={}"
    on = project.nodes(with_dag("", f"EmptyOperator({options.format(True, 60)})"))["a"].retry
    assert on == Retry(limit=3, delay_seconds=10.0, backoff=2.0, jitter=True, max_delay_seconds=60.0)
    triple = project.nodes(with_dag("", f"EmptyOperator({options.format(3, None)})"))["a"].retry
    assert (triple.backoff, triple.max_delay_seconds) == (3.0, 86_400.0)
    off = project.nodes(with_dag("", "EmptyOperator(task_id='a', retries=1)"))["a"].retry
    assert off == Retry(limit=1, delay_seconds=300.0)


def test_empty_operator_with_callbacks_needs_a_process(project):
    body = "EmptyOperator(task_id='a', on_success_callback=print); EmptyOperator(task_id='b', outlets=['x'])"
    nodes = project.nodes(with_dag("", body))
    assert {(node.operator, node.isolation) for node in nodes.values()} == {("empty", "default")}


def test_isolation_of_task_and_dag(project):
    body = "PythonOperator(task_id='a', python_callable=print);"
    body += "PythonOperator(task_id='b', python_callable=print, isolation='process')"
    nodes = project.nodes(with_dag("isolation='reuse'", body))
    assert (nodes["a"].isolation, nodes["b"].isolation) == ("reuse", "process")


BASH = "from airflow.operators.bash import BashOperator; BashOperator(task_id='a', bash_command=':'{})"


@pytest.mark.parametrize("more", ["", ", env={'A': '{{ ds }}'}, cwd='/'", ", retries=3, outlets=['x']"])
def test_a_bash_task_runs_user_code_in_programs_only(project, more):
    assert project.nodes(with_dag("", BASH.format(more)))["a"].isolation == "programs"


@pytest.mark.parametrize(
    ("dag", "more", "isolation"),
    [
        ("", ", on_success_callback=print", "default"),
        ("", ", on_retry_callback=print", "default"),
        ("", ", pre_execute=print", "default"),
        ("", ", output_processor=str", "default"),
        ("user_defined_macros={'f': print}", "", "default"),
        ("user_defined_filters={'f': print}", "", "default"),
        ("", ", isolation='process'", "process"),
        ("isolation='reuse'", "", "reuse"),
    ],
)
def test_a_bash_task_with_code_around_it_does_not(project, dag, more, isolation):
    assert project.nodes(with_dag(dag, BASH.format(more)))["a"].isolation == isolation


def test_operators_derived_from_bash_have_code_of_their_own(project):
    body = """
    from airflow.sdk import task
    from airflow.operators.bash import BashOperator
    class Mine(BashOperator):
        def execute(self, context): return 1
    Mine(task_id="a", bash_command=":")
    @task.bash
    def b(): return ":"
    b()
    """
    assert {node.isolation for node in project.nodes(with_dag("", body)).values()} == {"default"}


def test_only_leaves_decide_and_cleaning_up_does_not(project):
    nodes = project.nodes("""
        from airflow.sdk import DAG, setup, task, teardown
        with DAG("d"):
            @setup
            def prepare(): ...
            @task
            def work(): ...
            @teardown
            def clean(): ...
            p, w, c = prepare(), work(), clean()
            p >> w >> c
            p >> c
    """)
    assert {key for key, node in nodes.items() if node.decides} == {"work"}
    assert nodes["clean"].trigger_rule == "all_done_setup_success"
    assert nodes["clean"].setups == ("prepare",)


def test_teardown_that_may_fail_the_run_decides(project):
    nodes = project.nodes("""
        from airflow.sdk import DAG, task, teardown
        with DAG("d"):
            @task
            def work(): ...
            @teardown(on_failure_fail_dagrun=True)
            def clean(): ...
            work() >> clean()
    """)
    assert {key for key, node in nodes.items() if node.decides} == {"clean"}


def test_priority_sums_distinct_descendants(project):
    source = """
        from airflow.sdk import DAG
        from airflow.operators.empty import EmptyOperator as E
        with DAG("d"):
            a, b, c = E(task_id="a", priority_weight=10), E(task_id="b"), E(task_id="c", priority_weight=5)
            d, u = E(task_id="d"), E(task_id="u", weight_rule="upstream")
            s = E(task_id="s", weight_rule="absolute", priority_weight=2**40)
            a >> [b, c] >> d >> u
            d >> s
    """
    priorities = {key: node.priority for key, node in project.nodes(source).items()}
    assert priorities["u"] == 1 + 1 + 1 + 5 + 10
    assert priorities["s"] == 2**31 - 1
    assert priorities["d"] == 2**31 - 1
    small = {key: node.priority for key, node in project.nodes(source.replace("2**40", "3")).items()}
    assert small == {"a": 10 + 1 + 5 + 1 + 1 + 3, "b": 6, "c": 10, "d": 5, "u": 18, "s": 3}


def test_cycle_is_refused_with_its_path(project):
    with pytest.raises(CycleError, match=r"`a` → `b` → `a`|`b` → `a` → `b`"):
        project.workflow(with_dag("", "a, b = EmptyOperator(task_id='a'), EmptyOperator(task_id='b'); a >> b >> a"))


def test_groups_leave_no_nodes_and_order_is_file_order(project):
    nodes = project.nodes("""
        from airflow.sdk import DAG, TaskGroup
        from airflow.operators.empty import EmptyOperator as E
        with DAG("d"):
            z = E(task_id="z")
            with TaskGroup("g") as g:
                E(task_id="b"), E(task_id="a")
            last = E(task_id="last")
            g >> last
            z >> last
    """)
    assert list(nodes) == ["z", "g.b", "g.a", "last"]
    assert nodes["last"].upstream == ("z", "g.b", "g.a")


MAPPED = """
from airflow.sdk import DAG, task
from airflow.operators.bash import BashOperator
with DAG("d"):
    @task
    def names(): return ["a", "b"]
    @task
    def up(name, n=0): return name
    {body}
"""


def literal(length):
    return Length(op="literal", length=length)


def result(key):
    return Length(op="result", task=key)


@pytest.mark.parametrize(
    ("body", "length"),
    [
        ("up.expand(name=[1, 2, 3])", literal(3)),
        ("up.expand(name={'a': 1, 'b': 2})", literal(2)),
        ("up.expand(name=names())", result("names")),
        ("up.expand(name=names(), n=[1, 2])", Length(op="product", parts=(result("names"), literal(2)))),
        ("up.expand_kwargs([{'name': 1}, {'name': 2}])", literal(2)),
        ("up.expand_kwargs(names())", result("names")),
        ("up.expand(name=names().map(str))", result("names")),
        (
            "up.expand(name=names().zip(names()))",
            Length(op="zip_shortest", parts=(result("names"), result("names__1"))),
        ),
        (
            "up.expand(name=names().zip(names(), fillvalue=None))",
            Length(op="zip_longest", parts=(result("names"), result("names__1"))),
        ),
        ("up.expand(name=names().concat(names()))", Length(op="concat", parts=(result("names"), result("names__1")))),
        ("up.override(task_id='up').expand(name=up.override(task_id='first').expand(name=names()))", result("first")),
        ("BashOperator.partial(task_id='up', env={'A': names()}).expand(bash_command=['x', 'y'])", literal(2)),
    ],
)
def test_lengths_of_mapped_tasks(project, body, length):
    node = project.nodes(MAPPED.format(body=body))["up"]
    assert (node.kind, node.expand) == ("mapped", length)


def test_mapped_task_waits_for_what_it_is_made_of(project):
    nodes = project.nodes(MAPPED.format(body="up.partial(n=names()).expand(name=names())"))
    assert nodes["up"].upstream == ("names", "names__1")


def test_mapped_task_has_the_settings_of_its_partial(project):
    body = "BashOperator.partial(task_id='up', retries=2, retry_delay=1, pool='p').expand(bash_command=['x'])"
    node = project.nodes(MAPPED.format(body=body))["up"]
    assert (node.operator, node.pool, node.retry) == ("bash", "p", Retry(limit=2, delay_seconds=1.0))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("up.expand()", "TypeError"),
        ("up.expand(name='abc')", "ValueError"),
        ("up.expand(name=3)", "ValueError"),
        ("up.expand(nome=[1])", "did you mean `name`"),
        ("up.partial(name=1).expand(name=[1])", "both in partial"),
        ("up.expand(name=names()['key'])", "only over what it returns"),
        ("BashOperator.partial(task_id='x').expand(retries=[1])", "cannot be mapped over `retries`"),
        ("BashOperator.partial(task_id='x', bash_commnd='x')", "did you mean `bash_command`"),
        ("up.override(trigger_rule='always').expand(name=names())", "cannot be `always`"),
    ],
)
def test_mapping_mistakes_are_found_when_the_file_is_loaded(project, body, error):
    from headrace.errors import HeadraceError

    with pytest.raises(HeadraceError, match=error):
        project.nodes(MAPPED.format(body=body))
