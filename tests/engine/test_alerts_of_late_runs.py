"""A run that took too long tells people, although everything else in it has ended."""

from __future__ import annotations

import json

import pytest

from headrace.scheduler import AgeKeeper
from headrace.settings import NotificationSettings
from headrace.testing.engine import Engine

ALERT = "+main^failure-alert"


@pytest.fixture
def start(prepared_url, tmp_path):
    """Starts runs that may take a minute, in an engine that tells people by a command."""
    engines = []

    def start(text: str, command: str, task_seconds: float | None = None):
        settings = NotificationSettings(type="shell", shell_command=command, min_wait_seconds=600, max_wait_seconds=600)
        engine = Engine(tmp_path, prepared_url, notification=settings)
        engines.append(engine)
        engine.services.append(AgeKeeper(engine.store, run_seconds=60, task_seconds=task_seconds))
        run = engine.start_dig(text)
        engine.settle()
        return engine, run

    yield start
    for engine in engines:
        engine.close()


def be_late(engine, seconds=61):
    engine.advance(seconds=seconds)
    engine.settle()


@pytest.mark.parametrize("retry", ["", "_retry: {limit: 3, interval: 3600}\n"])
def test_people_are_told_of_a_run_that_took_too_long(start, tmp_path, retry):
    engine, run = start(f"{retry}+a: {{wait>: 1h}}\n+b: {{echo>: never}}", f"cat > {tmp_path}/told")
    be_late(engine)
    assert (run.state, run.reason) == ("failed", "timed_out")
    assert run.states() == {"+main+a": "canceled", "+main+b": "canceled", ALERT: "success"}
    assert json.loads((tmp_path / "told").read_text())["session_id"] == run.id


def test_people_are_told_of_a_run_that_waits_for_its_next_try(start, tmp_path):
    engine, run = start("_retry: {limit: 3, interval: 3600}\n+a: {fail>: no}", f"cat > {tmp_path}/told")
    be_late(engine)
    assert (run.state, run.states()[ALERT]) == ("failed", "success")


def test_an_alert_on_its_way_is_not_cut_off_and_the_handler_beside_it_is(start):
    engine, run = start("+a: {fail>: no}\n_error: {wait>: 1d}", "test -e ../../arrives", task_seconds=3000)
    be_late(engine)
    assert (run.state, run.reason) == ("running", "timed_out")
    assert (run.states()["+main^error"], run.states()[ALERT]) == ("canceled", "up_for_reschedule")
    be_late(engine, 700)
    assert run.states()[ALERT] == "up_for_reschedule", "a run is not too old a second time"
    be_late(engine, 3000)
    assert (run.state, run.states()[ALERT]) == ("failed", "canceled"), "but an alert may be"


def test_nobody_is_told_of_a_run_that_somebody_killed(start, tmp_path):
    engine, run = start("+a: {wait>: 1h}", f"cat > {tmp_path}/told")
    run.cancel()
    be_late(engine)
    assert (run.state, run.states()) == ("canceled", {"+main+a": "canceled"})
