"""Callbacks, notifiers, e-mails and retry policies of tasks, in the order in which a try meets them."""

from __future__ import annotations

import json

import pytest

from headrace.store.sql import Sql
from headrace.testing.mail_box import MailBox

HEAD = """
import json
from datetime import timedelta
from pathlib import Path
from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.notifications.basenotifier import BaseNotifier
from airflow.sdk import DAG, ExceptionRetryPolicy, RetryAction, RetryRule, task

def write(*words):
    with Path(__file__).with_name("told.jsonl").open("a") as file:
        print(json.dumps([str(word) for word in words]), file=file)

def tell(name):
    return lambda context: write(name, context["ti"].state, context.get("exception"))

def broken(context):
    raise RuntimeError("the callback itself")

class Shout(BaseNotifier):
    template_fields = ("text",)
    def __init__(self, text):
        super().__init__()
        self.text = text
    def notify(self, context):
        write("shout", self.text)

ALL = {f"on_{name}_callback": [tell(name), broken, tell(name + "2")]
       for name in ("execute", "success", "failure", "retry", "skipped")}
"""


@pytest.fixture
def told(engine):
    def read() -> list[list[str]]:
        path = engine.folder / "project" / "told.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read


def run(engine, options: str, body: str):
    source = f"""{HEAD}
with DAG("flow"):
    @task({options})
    def work(ti=None):
        {body}
    work()
"""
    run = engine.start_dag(source)
    engine.settle()
    return run


@pytest.mark.parametrize(
    ("body", "event", "state", "exception"),
    [
        ("return 1", "success", "success", "None"),
        ("raise ValueError('boom')", "failure", "failed", "boom"),
        ("raise AirflowSkipException", "skipped", "skipped", "None"),
    ],
)
def test_each_end_calls_its_callbacks_in_order_and_a_broken_one_changes_nothing(
    engine, told, body, event, state, exception
):
    one = run(engine, "**ALL", body)
    assert one.states() == {"work": state}
    assert told() == [
        ["execute", "running", "None"], ["execute2", "running", "None"],
        [event, state, exception], [f"{event}2", state, exception],
    ]  # fmt: skip
    assert "the callback itself" in one.log("work")


def test_a_retry_calls_back_as_such_and_the_last_failure_as_failure(engine, told):
    run(engine, "retries=1, retry_delay=0, on_retry_callback=tell('r'), on_failure_callback=tell('f')", "1 / 0")
    assert [(who, state) for who, state, _ in told()] == [("r", "up_for_retry"), ("f", "failed")]


def test_the_hooks_around_execute_come_in_their_order(engine, told):
    options = (
        "pre_execute=lambda c: write('pre'), post_execute=lambda c, r: write('post', r), "
        "on_execute_callback=lambda c: write('execute'), on_success_callback=lambda c: write('success')"
    )
    run(engine, options, "write('work'); return 7")
    assert told() == [["pre"], ["execute"], ["work"], ["post", "7"], ["success"]]


def test_a_notifier_is_rendered_for_each_call(engine, told):
    run(engine, "on_success_callback=Shout('{{ ti.task_id }} of {{ dag.dag_id }} is {{ ti.state }}')", "return 1")
    assert told() == [["shout", "work of flow is success"]]


@pytest.mark.parametrize(
    ("rule", "tries", "story_end"),
    [
        ("RetryRule(ValueError, RetryAction.FAIL, reason='no use')", 1, "failed"),
        ("RetryRule('KeyError', RetryAction.FAIL)", 1, "up_for_retry"),
        ("RetryRule([KeyError, Exception], RetryAction.FAIL)", 1, "failed"),
        ("RetryRule(Exception, RetryAction.FAIL, match_subclasses=False)", 1, "up_for_retry"),
        ("RetryRule(ValueError, retry_delay=timedelta(0))", 3, "failed"),
    ],
)
def test_a_retry_policy_decides_by_the_exception(engine, rule, tries, story_end):
    one = run(engine, f"retries=2, retry_policy=ExceptionRetryPolicy([{rule}])", "raise ValueError('boom')")
    assert (len(one.tries("work")), one.story("work")[-1]) == (tries, story_end)


def test_a_policy_that_fails_itself_decides_nothing(engine):
    one = run(engine, "retries=1, retry_policy=3", "raise ValueError('boom')")
    assert one.story("work")[-1] == "up_for_retry"
    assert "the retry policy of task `work` failed" in one.log("work")


def test_failures_are_mailed_to_who_asked_for_it(engine, monkeypatch):
    box = MailBox()
    for name, value in box.environment.items():
        monkeypatch.setenv(name, value)
    run(engine, "email='ann@example.com', email_on_retry=False, retries=1, retry_delay=0", "raise ValueError('<boom>')")
    box.close()
    (message,) = box.messages
    assert message["To"] == "ann@example.com"
    assert message["Subject"].strip().startswith("Airflow alert: <TaskInstance flow.work")
    assert "Try 2 out of 2" in message.get_body(("html",)).get_content()
    assert "&lt;boom&gt;" in message.get_body(("html",)).get_content()


def test_a_mail_that_cannot_be_sent_changes_nothing(engine, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_PORT", "1")
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_MAIL_FROM", "a@example.com")
    one = run(engine, "email='ann@example.com'", "raise ValueError('boom')")
    assert one.error("work") == "boom"
    assert "could not send an e-mail about task `work`" in one.log("work")


def test_a_strategy_of_ones_own_gives_priorities(engine):
    one = engine.start_dag("""
        from airflow.sdk import DAG, task
        from airflow.task.priority_strategy import PriorityWeightStrategy

        class Twice(PriorityWeightStrategy):
            def get_weight(self, ti):
                return 2 * ti.priority_weight + len(ti.task_id)

        with DAG("flow"):
            @task(weight_rule=Twice(), priority_weight=10)
            def work():
                return 1
            work()
    """)
    engine.settle()
    with engine.store.read() as tx:
        assert tx.run(Sql("SELECT priority FROM task WHERE key = 'work'")) == [(24,)]
    assert one.state == "success"
