"""Sentences for situations in which nobody works on a run."""

from __future__ import annotations

import pytest

from headrace.actions.pause import pause
from headrace.actions.retry import Again, retry
from headrace.actions.run_journal import RunJournal
from headrace.actions.why import why
from headrace.definition import Node
from headrace.errors import StateError


def started(world):
    world.save(Node(key="a", operator="python"))
    run = world.trigger()
    world.join(name="run-20")
    world.claim()
    return run


def test_a_task_of_a_silent_agent_is_said_to_wait_for_a_rescue(world):
    started(world)
    world.pass_seconds(19)
    (reason,) = why(world.store, world.clock, "latest").reasons
    assert reason.kind == "silent_agent"
    assert "its agent `run-20` is silent since 19 s: it will be rescued by a scheduler (none" in reason.sentence
    world.join(kind="scheduler", name="s")
    (reason,) = why(world.store, world.clock, "latest").reasons
    assert reason.sentence.endswith("rescued by a scheduler")


def test_a_run_that_succeeded_is_retried_only_as_a_whole(world):
    run = started(world)
    world.finish("a")
    with pytest.raises(StateError, match="nothing to retry") as caught:
        retry(world.store, world.clock, "latest")
    assert caught.value.hint == f"`headrace retry {run.id} --all` runs everything again"
    world.pass_seconds(1)
    assert retry(world.store, world.clock, "latest", Again(is_resuming=False)).attempt_number == 2


def test_a_paused_workflow_is_said_to_be_paused_whatever_its_run_does(world):
    started(world)
    pause(world.store, "flow")
    assert why(world.store, world.clock, "flow").reasons[0].kind == "paused"
    world.finish("a")
    assert why(world.store, world.clock, "flow").reasons[0].kind == "paused"


def test_the_journal_tells_each_start_and_end_once(world):
    world.save(Node(key="a", operator="python"))
    journal = RunJournal(world.store)
    run = world.trigger()
    assert journal.look() == [f"run {run.id} of `flow` started"]
    world.join()
    world.claim()
    assert journal.look() == []
    world.finish("a", "failed")
    assert journal.look() == [f"run {run.id} of `flow` ended: failed: `a`: ValueError: boom"]
