"""The triggers that come with the engine, run by themselves on an event loop."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module

import pytest

from headrace.authoring.dag.context import Context, enter_task, leave_task
from headrace.authoring.dag.exceptions import TaskDeferralError, TaskDeferralTimeout, TaskDeferred
from headrace.authoring.dag.operator import BaseOperator
from headrace.authoring.dag.triggers import (
    BaseTrigger,
    TaskFailedEvent,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)
from headrace.authoring.dag.values import decode_value, encode_value
from headrace.compat.airflow import install
from headrace.operators.triggers import (
    DagStateTrigger,
    DateTimeTrigger,
    FileDeleteTrigger,
    FileTrigger,
    TimeDeltaTrigger,
    WorkflowTrigger,
)


def first_event(trigger: BaseTrigger) -> TriggerEvent:
    async def wait() -> TriggerEvent:
        return await asyncio.wait_for(anext(aiter(trigger.run())), 10)

    return asyncio.run(wait())


def made_again(trigger: BaseTrigger) -> BaseTrigger:
    """As a triggerer makes it: from its path and its arguments, which went through JSON."""
    install()
    path, arguments = trigger.serialize()
    module, name = path.rsplit(".", 1)
    text = encode_value(arguments, "arguments")
    return getattr(import_module(module), name)(**decode_value(json.loads(text)))


def test_a_moment_that_has_passed_fires_at_once():
    moment = datetime(2026, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    event = first_event(made_again(DateTimeTrigger(moment)))
    assert event == TriggerEvent(datetime(2026, 2, 3, 3, 5, tzinfo=UTC))


def test_a_moment_is_waited_for():
    before = datetime.now(UTC)
    event = first_event(made_again(TimeDeltaTrigger(timedelta(seconds=0.2))))
    assert datetime.now(UTC) >= event.payload >= before + timedelta(seconds=0.2)


def test_a_moment_may_end_the_task():
    assert first_event(made_again(TimeDeltaTrigger(timedelta(0), end_from_trigger=True))) == TaskSuccessEvent()


def test_a_moment_may_be_given_as_text():
    trigger = made_again(DateTimeTrigger(target_time="2026-02-03T04:05:06Z"))
    assert first_event(trigger).payload == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize("arguments", [{}, {"moment": datetime(2026, 1, 1, tzinfo=UTC), "target_time": "2026-01-01"}])
def test_a_moment_is_given_once(arguments):
    with pytest.raises(TypeError, match="either `moment` or `target_time`"):
        DateTimeTrigger(**arguments)


def test_a_moment_without_a_time_zone_is_refused():
    with pytest.raises(ValueError, match="expected `moment` to have a time zone, got: 2026-01-01T00:00:00"):
        DateTimeTrigger(datetime(2026, 1, 1))


def test_a_file_is_waited_for(tmp_path):
    trigger = made_again(FileTrigger(str(tmp_path / "*.csv"), poke_interval=0.01))

    async def wait() -> TriggerEvent:
        waiting = asyncio.ensure_future(anext(aiter(trigger.run())))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        (tmp_path / "data.csv").touch()
        return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(wait()) == TriggerEvent(True)


def test_a_folder_counts_when_a_file_is_in_it(tmp_path):
    (tmp_path / "inbox" / "deep").mkdir(parents=True)

    async def looks_in_vain() -> bool:
        waiting = anext(aiter(FileTrigger(str(tmp_path / "inbox"), poke_interval=0.01).run()))
        try:
            await asyncio.wait_for(waiting, 0.1)
        except TimeoutError:
            return True
        return False

    assert asyncio.run(looks_in_vain())
    (tmp_path / "inbox" / "deep" / "file").touch()
    assert first_event(FileTrigger(str(tmp_path / "inbox"))) == TriggerEvent(True)


def test_a_flag_file_is_deleted(tmp_path):
    (tmp_path / "flag").touch()
    assert first_event(made_again(FileDeleteTrigger(str(tmp_path / "flag")))) == TriggerEvent(True)
    assert not (tmp_path / "flag").exists()


class Runs:
    """Stands for the line to the engine: answers what it was told to."""

    def __init__(self, answers: list[object]) -> None:
        self.asked: list[tuple[str, dict[str, object]]] = []
        self._answers = answers

    def ask(self, verb: str, **args: object) -> object:
        self.asked.append((verb, args))
        return self._answers.pop(0)


@pytest.fixture
def answering():
    def enter(*answers: object) -> Runs:
        runs = Runs(list(answers))
        enter_task(Context({}, {}), runs)
        return runs

    yield enter
    leave_task()


def test_runs_are_waited_for_until_all_are_there(answering):
    runs = answering([{"state": "running"}], [{"state": "success"}], [{"state": "success"}, {"state": "success"}])
    dates = [datetime(2026, 2, day, tzinfo=UTC) for day in (1, 2)]
    trigger = made_again(WorkflowTrigger("load", logical_dates=dates, allowed_states=["success"], poke_interval=0.01))
    assert first_event(trigger) == TriggerEvent({"status": "success"})
    times = ["2026-02-01T00:00:00+00:00", "2026-02-02T00:00:00+00:00"]
    assert runs.asked == [("get_runs", {"workflow": "load", "logical_times": times})] * 3


def test_a_failed_task_of_another_run_is_told(answering):
    answering([{"tasks": {"a": {"success": 1}, "b": {"failed": 1}}}])
    trigger = WorkflowTrigger("load", run_ids=["r"], external_task_ids=["a", "b"], failed_states=["failed"])
    assert first_event(made_again(trigger)) == TriggerEvent({"status": "failed"})


def test_a_skipped_task_of_another_run_is_told(answering):
    answering([{"tasks": {"a": {"skipped": 1}}}])
    trigger = WorkflowTrigger("load", run_ids=["r"], external_task_ids=["a"], skipped_states=["skipped"])
    assert first_event(trigger) == TriggerEvent({"status": "skipped"})


def test_every_task_that_is_waited_for_must_be_there(answering):
    answering([{"tasks": {"a": {"success": 2}}}], [{"tasks": {"a": {"success": 2}, "b": {"success": 1}}}])
    trigger = WorkflowTrigger("load", run_ids=["r"], external_task_ids=["a", "b"], poke_interval=0.01)
    assert first_event(trigger) == TriggerEvent({"status": "success"})


def test_a_group_is_waited_for(answering):
    runs = answering([{"tasks": {"g.a": {"success": 1}, "g.b": {"running": 1}}}], [{"tasks": {"g.a": {"success": 1}}}])
    trigger = WorkflowTrigger("load", run_ids=["r"], external_task_group_id="g", poke_interval=0.01)
    assert first_event(trigger) == TriggerEvent({"status": "success"})
    assert runs.asked[0][1]["group"] == "g"


def test_states_of_runs_are_told(answering):
    answering([], [{"run_key": "r", "state": "failed"}])
    trigger = made_again(DagStateTrigger("load", ["success", "failed"], run_ids=["r"], poll_interval=0.01))
    path, told = first_event(trigger).payload
    assert path == "airflow.providers.standard.triggers.external_task.DagStateTrigger"
    assert told["r"] == "failed"


def test_a_run_that_was_stopped_has_failed(answering):
    answering([{"run_key": "r", "state": "canceled"}], [{"run_key": "r", "state": "canceled"}])
    _, told = first_event(DagStateTrigger("load", ["failed"], run_ids=["r"])).payload
    assert told["r"] == "failed"
    trigger = WorkflowTrigger("load", run_ids=["r"], failed_states=["failed"])
    assert first_event(trigger) == TriggerEvent({"status": "failed"})


def test_the_old_and_the_new_path_name_the_same_class():
    install()
    for new, old, name in [
        ("airflow.providers.standard.triggers.temporal", "airflow.triggers.temporal", "DateTimeTrigger"),
        ("airflow.providers.standard.triggers.file", "airflow.triggers.file", "FileTrigger"),
        ("airflow.providers.standard.triggers.external_task", "airflow.triggers.external_task", "DagStateTrigger"),
    ]:
        assert getattr(import_module(new), name) is getattr(import_module(old), name)


def test_events_that_end_the_task_carry_its_results():
    event = TaskSuccessEvent(xcoms={"return_value": 1})
    assert (event.payload, event.xcoms) == ("success", {"return_value": 1})
    assert [TaskFailedEvent().payload, TaskSkippedEvent().payload] == ["failed", "skipped"]


class Waits(BaseOperator):
    def go_on(self, context, event=None, **kwargs):
        return event, kwargs


def test_an_operator_defers_by_an_exception_that_a_broad_except_does_not_catch():
    trigger = TimeDeltaTrigger(timedelta(hours=1))
    with pytest.raises(TaskDeferred) as raised:
        try:
            Waits(task_id="t").defer(trigger=trigger, method_name="go_on", kwargs={"a": 1}, timeout=timedelta(1))
        except Exception:
            pytest.fail("it was caught")
    deferred = raised.value
    assert (deferred.trigger, deferred.method_name, deferred.kwargs, deferred.timeout) == (
        trigger, "go_on", {"a": 1}, timedelta(1),
    )  # fmt: skip


def test_an_operator_goes_on_with_the_event():
    assert Waits(task_id="t").resume_execution("go_on", {"event": 1, "a": 2}, Context({}, {})) == (1, {"a": 2})


def test_a_failed_trigger_fails_the_operator():
    with pytest.raises(TaskDeferralError, match="Trigger failure") as raised:
        Waits(task_id="t").resume_execution("__fail__", {"error": "Trigger failure"}, Context({}, {}))
    assert not isinstance(raised.value, TaskDeferralTimeout)
    with pytest.raises(TaskDeferralTimeout):
        Waits(task_id="t").resume_execution("__fail__", {"error": "Trigger timeout"}, Context({}, {}))
