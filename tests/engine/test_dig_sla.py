"""`sla:` of `.dig` workflows: tasks that a run gets when its time has passed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.errors import DefinitionError
from headrace.settings import NotificationSettings
from headrace.store import list_misses
from headrace.testing.engine import Engine

SLOW = """
+slow:
  sh>: test -e go
  _retry: {limit: 1, interval: 600}
"""


def start(engine, sla, tasks=SLOW, head=""):
    run = engine.start_dig(f"{head}\nsla: {sla}\n{tasks}")
    engine.settle()
    return run


def test_tasks_are_added_when_the_time_has_passed(engine):
    run = start(engine, "{duration: '00:05', alert: false, +notice: {echo>: late}}")
    engine.advance(minutes=4)
    engine.settle()
    assert list(run.states()) == ["+main+slow"]
    engine.advance(minutes=1)
    engine.settle()
    assert run.states() == {
        "+main+slow": "up_for_retry",
        "+main^sla": "success",
        "+main^sla+notice": "success",
    }
    with engine.store.read() as tx:
        assert [(row.workflow, row.task, row.name) for row in list_misses(tx)] == [("main", "", "sla")]
    engine.write("go", "")
    engine.advance(minutes=10)
    engine.settle()
    assert (run.state, run.states()["+main+slow"]) == ("success", "success")


def test_fail_lets_the_rest_go_on_and_the_run_end_as_failed(engine):
    run = start(engine, "{duration: '00:00:10', fail: true, alert: false}", f"{SLOW}\n+b: {{echo>: x}}")
    engine.advance(seconds=10)
    engine.settle()
    assert run.states()["+main^sla^fail"] == "failed"
    assert (run.state, run.states()["+main+slow"]) == ("running", "up_for_retry")
    engine.write("go", "")
    engine.advance(minutes=10)
    engine.settle()
    assert (run.states()["+main+b"], run.state) == ("success", "failed")


def test_alert_is_on_by_default_and_tells_people(tmp_path):
    file = tmp_path / "told.json"
    settings = NotificationSettings(type="shell", shell_command=f"cat > {file}")
    engine = Engine(tmp_path, notification=settings)
    run = start(engine, "{duration: '00:01'}")
    engine.advance(minutes=1)
    engine.settle()
    assert run.states()["+main^sla^alert"] == "success"
    assert '"message": "SLA violation"' in file.read_text()
    engine.close()


def test_a_time_is_one_of_the_workflows_zone(tmp_path):
    engine = Engine(tmp_path, start=datetime(2026, 2, 3, 14, 59, tzinfo=UTC))
    run = start(engine, "{time: '00:00', alert: false, +notice: {echo>: late}}", head="timezone: Asia/Tokyo")
    engine.advance(seconds=59)
    assert list(run.states()) == ["+main+slow"]
    engine.advance(seconds=1)
    engine.settle()
    assert run.states()["+main^sla"] == "success"
    engine.close()


def test_a_run_that_has_ended_gets_nothing(engine):
    run = start(engine, "{duration: '00:05', fail: true}", "+a: {echo>: done}")
    engine.advance(minutes=10)
    engine.settle()
    assert (run.state, list(run.states())) == ("success", ["+main+a"])


def test_a_run_whose_handlers_run_still_gets_its_tasks(engine):
    tasks = "_error: {sh>: test -e go, _retry: {limit: 1, interval: 600}}\n+a: {fail>: no}"
    run = start(engine, "{duration: '00:05', alert: false, +notice: {echo>: late}}", tasks)
    engine.advance(minutes=5)
    engine.settle()
    assert run.states()["+main^sla+notice"] == "success"
    engine.advance(minutes=6)
    engine.settle()
    assert run.state == "failed"
    run.clear("+main+a")
    assert "+main^error" not in run.states(), "clearing what failed forgets its handlers, and nothing else"
    assert run.states()["+main^sla+notice"] == "success"


def test_a_root_between_two_tries_gets_them_in_the_next(engine):
    tasks = "_retry: {limit: 1, interval: 600}\n+a: {fail>: no}"
    run = start(engine, "{duration: '00:05', alert: false, +notice: {echo>: late}}", tasks)
    engine.advance(minutes=5)
    engine.settle()
    assert "+main^sla" not in run.states()
    engine.advance(minutes=5)
    engine.settle()
    assert run.states()["+main^sla+notice"] == "success"
    assert run.state == "failed"


def test_another_attempt_has_its_own_time(engine):
    run = start(engine, "{duration: '00:05', alert: false, +notice: {echo>: late}}", "+a: {fail>: no}")
    assert run.state == "failed"
    engine.advance(minutes=10)
    run.retry()
    engine.settle()
    assert (run.state, list(run.states())) == ("failed", ["+main+a", "+main^failure-alert"])


@pytest.mark.parametrize(
    ("sla", "message"),
    [
        ("{fail: true}", "either a `time` or a `duration`, got: neither"),
        ("{time: '10:00', duration: '10:00'}", "either a `time` or a `duration`, got: both"),
        ("{time: '24:00'}", "expected `time` of the `sla` of workflow `main` to be HH:MM or HH:MM:SS, got: 24:00"),
        ("{duration: 5m}", "expected `duration` of the `sla` of workflow `main` to be HH:MM or HH:MM:SS, got: 5m"),
        ("10:00", "expected `sla` of workflow `main` to be a map"),
        ("{time: '10:00', fail: maybe}", "expected `fail` of the `sla` of workflow `main`"),
        ("{time: '10:00', +a: {shh>: x}}", "shh"),
    ],
)
def test_mistakes_are_told(engine, sla, message):
    with pytest.raises(DefinitionError, match=message):
        start(engine, sla)


def test_clock_times_need_no_quotes(engine):
    run = start(engine, "{duration: 00:05, alert: false, +notice: {echo>: late}}")
    engine.advance(minutes=5)
    engine.settle()
    assert run.states()["+main^sla"] == "success"
