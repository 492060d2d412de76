from __future__ import annotations

from headrace.executor.timers import Timers


def test_what_is_due_is_done_once_and_in_time():
    timers, done = Timers(), []
    timers.set("late", 20.0, lambda: done.append("late"))
    timers.set("early", 10.0, lambda: done.append("early"))
    assert timers.wait_seconds(5.0) == 5.0
    timers.run_due(10.0)
    timers.run_due(10.0)
    assert (done, timers.wait_seconds(15.0)) == (["early"], 5.0)


def test_a_dropped_deadline_does_nothing():
    timers, done = Timers(), []
    timers.set("it", 10.0, lambda: done.append("it"))
    timers.drop("it")
    timers.run_due(11.0)
    assert (done, timers.wait_seconds(11.0)) == ([], None)


def test_a_deadline_can_be_moved():
    timers, done = Timers(), []
    timers.set("it", 10.0, lambda: done.append("it"))
    timers.set("it", 30.0, lambda: done.append("it"))
    timers.run_due(10.0)
    assert (done, timers.wait_seconds(10.0)) == ([], 20.0)


def test_an_action_may_set_the_next_deadline():
    timers, done = Timers(), []
    timers.set("it", 10.0, lambda: timers.set("it", 12.0, lambda: done.append("again")))
    timers.run_due(10.0)
    timers.run_due(12.0)
    assert done == ["again"]
