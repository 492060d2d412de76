"""Python tasks that defer: what they say when they begin to wait, and how they go on."""

from __future__ import annotations

import pytest

from headrace.handoff import TaskError
from headrace.store.sql import Sql
from headrace.testing.engine import Engine

ARGUMENTS = Sql("SELECT arguments FROM trigger")

OPERATORS = """
    from datetime import datetime, timedelta, timezone
    from airflow.sdk import DAG, BaseOperator, TaskGroup
    from airflow.exceptions import TaskDeferred, TaskDeferralError, TaskDeferralTimeout
    from airflow.triggers.base import BaseTrigger, StartTriggerArgs, TriggerEvent

    class Anything(BaseTrigger):
        def __init__(self, **arguments):
            super().__init__()
            self.arguments = arguments
        def serialize(self):
            return "some.where.Anything", self.arguments
        async def run(self):
            yield TriggerEvent(None)

    class Waits(BaseOperator):
        def execute(self, context):
            context["ti"].xcom_push("before", "kept")
            self.left = "lost"
            self.defer(trigger=Anything(), method_name="go_on", kwargs={"more": (1, 2)}, timeout=timedelta(minutes=1))
        def go_on(self, context, event=None, more=None):
            before = context["ti"].xcom_pull(task_ids=self.task_id, key="before")
            return {"event": event, "more": list(more), "before": before, "left": getattr(self, "left", None)}
"""


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.close()


def start(engine: Engine, tasks: str):
    dag = "\n    with DAG('d', schedule=None):\n" + "\n".join(f"        {line}" for line in tasks.strip().splitlines())
    run = engine.start_dag(OPERATORS + dag)
    engine.settle()
    return run


def test_a_task_goes_on_in_a_fresh_operator_with_the_event_and_its_values(engine):
    run = start(engine, "Waits(task_id='t')")
    assert (run.states(), run.tries("t")) == ({"t": "deferred"}, ["deferred"])
    run.fire("t", {"rows": 3})
    engine.settle()
    assert run.value("t") == {"event": {"rows": 3}, "more": [1, 2], "before": "kept", "left": None}
    assert (run.tries("t"), run.task("t").try_number) == (["deferred", "success"], 1)


def test_datetimes_come_through_as_they_are(engine):
    run = start(
        engine,
        """
class Dates(BaseOperator):
    def execute(self, context):
        self.defer(trigger=Anything(), method_name="go_on", kwargs={"at": datetime(2026, 1, 2, tzinfo=timezone.utc)})
    def go_on(self, context, event, at):
        assert isinstance(event, timedelta) and isinstance(at, datetime)
        return str(at + event)
Dates(task_id='t')
""",
    )
    run.fire("t", {"__type": "timedelta", "__value": [1, 0, 0]})
    engine.settle()
    assert run.value("t") == "2026-01-03 00:00:00+00:00"


def test_a_wait_that_takes_too_long_fails_the_task_and_a_retry_begins_with_execute(engine):
    run = start(engine, "Waits(task_id='t', retries=1, retry_delay=timedelta(seconds=5))")
    engine.advance(seconds=61)
    engine.settle()
    assert (run.states(), run.error("t")) == ({"t": "up_for_retry"}, "Trigger timeout")
    engine.advance(seconds=5)
    engine.settle()
    assert (run.states(), run.task("t").try_number) == ({"t": "deferred"}, 2)


def test_a_failed_trigger_fails_the_task_and_calls_its_callbacks(engine):
    run = start(
        engine,
        """
def told(context):
    print("told of", type(context["exception"]).__name__)
Waits(task_id='t', on_failure_callback=told)
""",
    )
    run.fire("t", error=TaskError(type="TaskDeferralError", message="it broke", traceback="Traceback: deep"))
    engine.settle()
    assert (run.states(), run.error("t")) == ({"t": "failed"}, "it broke")
    assert "told of TaskDeferralError" in run.log("t")
    assert "Traceback: deep" in run.log("t")


def test_an_operator_may_catch_what_its_trigger_told(engine):
    run = start(
        engine,
        """
class Forgiving(Waits):
    def resume_execution(self, next_method, next_kwargs, context):
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            return "late"
Forgiving(task_id='t')
""",
    )
    engine.advance(seconds=61)
    engine.settle()
    assert run.value("t") == "late"


def test_a_task_may_defer_again(engine):
    run = start(
        engine,
        """
class Twice(BaseOperator):
    def execute(self, context, event=None):
        if event == 2:
            return "done"
        self.defer(trigger=Anything(), method_name="execute")
Twice(task_id='t')
""",
    )
    for event in (1, 2):
        run.fire("t", event)
        engine.settle()
    assert (run.value("t"), run.tries("t")) == ("done", ["deferred", "deferred", "success"])


@pytest.mark.parametrize(
    ("defer", "problem"),
    [
        ("trigger=Anything(), method_name='go_off'", "is to go on with `go_off`, but Bad has no such method"),
        ("trigger=Anything(), method_name='go_om'", "did you mean `go_on`?"),
        ("trigger=Anything(x=object()), method_name='go_on'", "cannot wait for trigger `some.where.Anything`"),
        ("trigger=Anything(), method_name='go_on', kwargs={'x': object()}", "builtins.object"),
        ("trigger='soon', method_name='go_on'", "expected the trigger of task `t` to be a BaseTrigger, got: 'soon'"),
    ],
)
def test_a_wait_that_cannot_be_is_told_at_once(engine, defer, problem):
    run = start(
        engine,
        f"""
class Bad(Waits):
    def execute(self, context):
        self.defer({defer})
Bad(task_id='t')
""",
    )
    assert run.states() == {"t": "failed"}
    assert problem in run.error("t")


def test_a_trigger_may_end_the_task(engine):
    run = start(engine, "Waits(task_id='t') >> Waits(task_id='after')")
    run.fire("t", outcome="success")
    engine.settle()
    assert (run.states(), run.tries("t")) == ({"t": "success", "after": "deferred"}, ["deferred", "success"])


def test_a_task_with_callbacks_hears_of_the_end_that_its_trigger_gave_it(engine):
    run = start(
        engine,
        """
def told(context):
    print("told")
Waits(task_id='good', on_success_callback=told)
Waits(task_id='skipped', on_skipped_callback=told)
Waits(task_id='bad', on_failure_callback=told)
""",
    )
    run.fire("good", outcome="success")
    run.fire("skipped", outcome="skipped")
    run.fire("bad", outcome="failed")
    engine.settle()
    assert run.states() == {"good": "success", "skipped": "skipped", "bad": "failed"}
    assert ["told\n" in run.log(key) for key in run.states()] == [True, True, True]


STARTS = """
class Starts(BaseOperator):
    start_from_trigger = True
    template_fields = ("where",)
    def __init__(self, *, where="here", **kwargs):
        super().__init__(**kwargs)
        self.where = where
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls="some.where.Anything", next_method="go_on", trigger_kwargs={"where": where},
            next_kwargs={"n": 1}, timeout=timedelta(minutes=1))
    def go_on(self, context, event, n):
        return [event, n]
"""


def test_a_task_may_begin_by_waiting(engine):
    run = start(engine, STARTS + "Starts(task_id='t')")
    assert (run.story("t"), run.tries("t")) == (["deferred"], [])
    run.fire("t", "go")
    engine.settle()
    assert (run.value("t"), run.story("t")) == (["go", 1], ["deferred", "scheduled", "queued", "running", "success"])


def test_templates_of_what_it_begins_to_wait_for_are_rendered_by_a_process(engine):
    run = start(engine, STARTS + "Starts(task_id='t', where='{{ dag.dag_id }}')")
    assert run.story("t") == ["scheduled", "queued", "running", "deferred"]
    with engine.store.read() as tx:
        assert tx.run(ARGUMENTS) == [('{"where":"d"}',)]


def test_each_instance_of_a_mapped_task_waits_for_itself(engine):
    run = start(engine, STARTS + "Starts.partial(task_id='t').expand(where=['a', 'b'])")
    assert run.states() == {"t": "planned", "t[0]": "deferred", "t[1]": "deferred"}
    run.fire("t[1]", "go")
    engine.settle()
    assert run.states()["t[1]"] == "success"


def test_clearing_a_deferred_task_begins_anew(engine):
    run = start(engine, "Waits(task_id='t')")
    run.clear("t")
    engine.settle()
    assert (run.states(), run.task("t").try_number) == ({"t": "deferred"}, 2)


def test_execution_timeout_counts_the_waits(engine):
    run = start(engine, "Waits(task_id='t', execution_timeout=timedelta(seconds=30))")
    engine.advance(seconds=30)
    engine.settle()
    assert (run.states(), run.error("t")) == ({"t": "failed"}, "Trigger timeout")
