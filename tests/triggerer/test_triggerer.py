"""A triggerer runs triggers in a process of its own and tells the store what comes of them."""

from __future__ import annotations

import os
import signal

import pytest
from waiting_tasks import step_until

from headrace.logs import MaskingRules
from headrace.processes import is_alive
from headrace.secrets import Vault
from headrace.store import resign


@pytest.fixture
def triggerer(waiting):
    triggerer = waiting.triggerer()
    triggerer.start()
    yield triggerer
    triggerer.stop()


def test_each_task_goes_on_with_what_its_trigger_told(waiting, triggerer):
    moment = {"__type": "datetime", "__value": "2026-02-03T04:05:06+00:00"}
    Vault(waiting.store).set_variable("api_token", "hunter22")
    waiting.start(
        fires={"do": "fire", "payload": moment},
        fails={"do": "fail"},
        silent={"do": "end_silently"},
        nonsense={"do": "yield_nonsense"},
        leaves={"do": "leave"},
        asks={"do": "ask", "name": "api_token"},
        blocks={"do": "block", "seconds": 0.3},
        succeeds={"do": "succeed"},
        who={"do": "who"},
        unknown={"do": "no_such_thing"},
        waits={"do": "wait"},
    )
    step_until(triggerer, lambda: list(waiting.states().values()).count("deferred") == 1)
    errors = {key: waiting.resume(key).error for key in ("fails", "silent", "nonsense", "leaves", "unknown")}
    assert waiting.states() == {
        **dict.fromkeys(waiting.states(), "scheduled"),
        "succeeds": "success",
        "waits": "deferred",
    }
    assert waiting.resume("fires").event == moment
    assert errors["fails"].message == "trigger `acting.Act` failed: ValueError: boom"
    assert 'raise ValueError("boom")' in errors["fails"].traceback
    assert "headrace/runner" not in errors["fails"].traceback
    assert errors["silent"].message == "trigger `acting.Act` ended without an event"
    assert errors["nonsense"].message == "expected trigger `acting.Act` to yield a TriggerEvent, got: 7"
    assert errors["leaves"].message == "trigger `acting.Act` failed: SystemExit: 3"
    assert "no attribute 'no_such_thing'" in errors["unknown"].message
    assert waiting.resume("asks").event == ["hunter22", "hunter22"]
    assert waiting.resume("who").event == ["w", "who", "r1", -1, 1, True]


def test_what_a_trigger_prints_is_in_the_log_of_its_task_without_secrets(waiting, triggerer):
    (waiting.project / "talking.py").write_text(
        "from acting import *\n"
        "class Talk(Act):\n"
        "    async def fire(self):\n"
        "        print(Variable.get('password'), end='')\n"
        "        self.log.info('logged')\n"
        "        yield TriggerEvent()\n"
    )
    Vault(waiting.store).set_variable("password", "hunter22")
    waiting.start(path="talking.Talk", a={"do": "fire"})
    step_until(triggerer, lambda: triggerer.running == 0 and waiting.states() == {"a": "scheduled"})
    log = waiting.log("a")
    assert log.startswith("begins fire\n***")
    assert "INFO talking.Talk: logged\n" in log
    assert log.endswith("cleaned up fire\n")


def test_the_installation_says_what_is_a_secret_in_a_trigger(waiting):
    (waiting.project / "talking.py").write_text(
        "from acting import *\n"
        "class Talk(Act):\n"
        "    async def fire(self):\n"
        "        print(Variable.get('harbour'))\n"
        "        raise ValueError(Variable.get('harbour'))\n"
        "        yield\n"
    )
    Vault(waiting.store).set_variable("harbour", "hunter22")
    waiting.start(path="talking.Talk", a={"do": "fire"})
    triggerer = waiting.triggerer(masking=MaskingRules(names=("harbour",)))
    triggerer.start()
    try:
        step_until(triggerer, lambda: triggerer.running == 0 and waiting.states() == {"a": "scheduled"})
    finally:
        triggerer.stop()
    assert waiting.log("a").startswith("begins fire\n***\n")
    error = waiting.resume("a").error
    assert error.message == "trigger `talking.Talk` failed: ValueError: ***"
    assert "hunter22" not in error.traceback


def test_a_step_that_blocks_the_others_is_told(waiting, triggerer):
    waiting.start(a={"do": "block", "seconds": 0.3}, b={"do": "fire"})
    step_until(triggerer, lambda: triggerer.id and triggerer.running == 0)
    assert "blocked all other triggers for 0.3" in waiting.log("a")
    assert "blocked" not in waiting.log("b")


def test_a_trigger_that_never_lets_go_fails_and_the_others_go_on(waiting):
    triggerer = waiting.triggerer(stuck_seconds=0.5)
    triggerer.start()
    waiting.start(stuck={"do": "block", "seconds": 3600}, other={"do": "wait"})
    step_until(triggerer, lambda: waiting.states()["stuck"] == "scheduled")
    message = waiting.resume("stuck").error.message
    assert message.startswith("the trigger was given up: it blocked all other triggers for")
    assert "acting.py:" in message
    step_until(triggerer, lambda: waiting.log("other").count("begins") >= 1 and triggerer.child_pid is not None)
    assert waiting.states()["other"] == "deferred"
    triggerer.stop()


def test_a_class_that_cannot_be_imported_fails_the_task(waiting, triggerer):
    (waiting.project / "acting.py").write_text("class Actor: pass\n")
    waiting.start(a={"do": "fire"})
    step_until(triggerer, lambda: waiting.states() == {"a": "scheduled"})
    assert "module `acting` has no `Act`, did you mean `Actor`?" in waiting.resume("a").error.message


def test_no_process_runs_before_there_is_a_trigger_nor_long_after_the_last(waiting):
    triggerer = waiting.triggerer(idle_seconds=0.1)
    triggerer.start()
    triggerer.step(0.0)
    assert (triggerer.child_pid, triggerer.id) == (None, 0)
    waiting.start(a={"do": "fire"})
    step_until(triggerer, lambda: waiting.states() == {"a": "scheduled"})
    step_until(triggerer, lambda: triggerer.child_pid is None)
    triggerer.stop()


def test_a_wait_that_was_given_up_ends_its_work_outside(waiting, triggerer):
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    waiting.cancel()
    step_until(triggerer, lambda: triggerer.running == 0 and waiting.count_triggers() == 0)
    assert waiting.log("a") == "begins wait\nkilled wait\ncleaned up wait\n"
    assert waiting.run_state() == "canceled"


def test_a_triggerer_that_stops_ends_the_work_of_what_was_given_up_first(waiting):
    triggerer = waiting.triggerer()
    triggerer.start()
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    waiting.cancel()
    triggerer.stop()
    assert waiting.log("a") == "begins wait\nkilled wait\ncleaned up wait\n"
    assert waiting.count_triggers() == 0


def test_a_cleared_task_waits_anew_after_its_first_trigger_was_ended(waiting, triggerer):
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    waiting.clear("a")
    step_until(triggerer, lambda: waiting.count_triggers() == 1 and triggerer.running == 1)
    assert "killed wait\ncleaned up wait\n" in waiting.log("a")
    assert waiting.states() == {"a": "deferred"}


def test_stopping_cleans_up_and_lets_others_go_on(waiting):
    first = waiting.triggerer()
    first.start()
    waiting.start(a={"do": "wait"})
    step_until(first, lambda: "begins" in waiting.log("a"))
    pid = first.child_pid
    first.stop()
    assert waiting.log("a") == "begins wait\ncleaned up wait\n"
    assert not is_alive(pid)
    second = waiting.triggerer()
    second.start()
    step_until(second, lambda: waiting.log("a").count("begins") == 2)
    second.stop()


def test_a_wait_that_is_given_up_while_there_is_no_process_does_not_begin_anew(waiting, triggerer):
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    os.kill(triggerer.child_pid, signal.SIGKILL)
    step_until(triggerer, lambda: triggerer.child_pid is None)
    waiting.cancel()
    step_until(triggerer, lambda: waiting.count_triggers() == 0)
    assert waiting.log("a") == "begins wait\nkilled wait\ncleaned up wait\n"


def test_the_triggers_of_a_process_that_died_go_on_in_another(waiting, triggerer, tmp_path):
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    os.kill(triggerer.child_pid, signal.SIGKILL)
    step_until(triggerer, lambda: waiting.log("a").count("begins") == 2)
    assert waiting.states() == {"a": "deferred"}


def test_a_trigger_that_takes_its_process_along_is_tried_again(waiting, triggerer, tmp_path):
    waiting.start(a={"do": "die_once", "file": str(tmp_path / "died")})
    step_until(triggerer, lambda: waiting.states() == {"a": "scheduled"})
    assert waiting.resume("a").event == "survived"


def test_there_is_room_for_so_many(waiting):
    triggerer = waiting.triggerer(capacity=2)
    triggerer.start()
    waiting.start(a={"do": "wait"}, b={"do": "wait"}, c={"do": "wait"})
    step_until(triggerer, lambda: triggerer.running == 2)
    triggerer.wake()
    triggerer.step(0.0)
    assert triggerer.running == 2
    triggerer.stop()


def test_a_triggerer_that_lost_its_lease_stops_its_triggers_and_begins_anew(waiting):
    triggerer = waiting.triggerer(renew_seconds=3600)
    triggerer.start()
    waiting.start(a={"do": "wait"})
    step_until(triggerer, lambda: "begins" in waiting.log("a"))
    before = triggerer.id
    waiting.store.transact(lambda tx: resign(tx, before, waiting.now))
    triggerer.renew()
    step_until(triggerer, lambda: triggerer.id != before and waiting.log("a").count("begins") == 2)
    assert "cleaned up wait" in waiting.log("a")
    triggerer.stop()
