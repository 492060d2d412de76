"""Digdag's names and numbers for what the engine calls by its own."""

from __future__ import annotations

import pytest

from headrace.actions.digdag_states import DigdagState, digdag_state, digdag_states, digdag_story
from headrace.state import State
from headrace.store import list_tasks
from headrace.testing.engine import Engine


@pytest.fixture
def engine(tmp_path):
    engine = Engine(tmp_path)
    yield engine
    engine.close()


def labels(engine, run) -> dict[str, str]:
    with engine.store.read() as tx:
        tasks = list_tasks(tx, run.attempt_id)
    states = digdag_states(tasks)
    return {task.key: states[task.id].label for task in tasks}


def test_numbers_are_those_of_digdag():
    assert [(state.value, state.label) for state in DigdagState] == list(
        enumerate("blocked ready retry_waiting group_retry_waiting running planned group_error success error canceled"
                  .split())
    )  # fmt: skip
    assert [state.label for state in DigdagState if state.is_done] == ["group_error", "success", "error", "canceled"]


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_view(state):
    assert digdag_state(state) in DigdagState
    assert digdag_state(state, failed_below=True) in DigdagState


def test_own_failures_differ_from_failures_below(engine):
    run = engine.start_dig("""
        _parallel: true
        +own:
          +a: {fail>: no}
          +b: {echo>: never}
        +handled:
          fail>: no
          _error: {echo>: handled}
        +below:
          if>: true
          _do: {fail>: no}
        +below_handled:
          if>: true
          _do: {fail>: no}
          _error: {echo>: handled}
        +checked:
          echo>: fine
          _check: {fail>: no}
        +waits:
          wait>: 1h
        +retried:
          _retry: {limit: 1, interval: 3600}
          +c: {fail>: no}
        +again:
          sh>: exit 1
          _retry: {limit: 1, interval: 3600}
        +again_below:
          loop>: 1
          _do: {fail>: no}
          _retry: {limit: 1, interval: 3600}
    """)
    engine.settle()
    assert labels(engine, run) == {
        "+main": "planned",
        "+main+own": "group_error",
        "+main+own+a": "error",
        "+main+own+b": "blocked",
        "+main+handled": "error",
        "+main+handled^error": "success",
        "+main+below": "group_error",
        "+main+below^sub": "error",
        "+main+below_handled": "group_error",
        "+main+below_handled^sub": "error",
        "+main+below_handled^error": "success",
        "+main+checked": "group_error",
        "+main+checked^check": "error",
        "+main+waits": "retry_waiting",
        "+main+retried": "group_retry_waiting",
        "+main+retried+c": "error",
        "+main+again": "retry_waiting",
        "+main+again_below": "group_retry_waiting",
        "+main+again_below^sub": "group_error",
        "+main+again_below^sub+loop-0": "error",
    }


def test_a_killed_attempt_is_canceled_down_to_what_never_began(engine):
    run = engine.start_dig("""
        +a: {wait>: 1h}
        +g:
          +b: {echo>: never}
    """)
    engine.settle()
    run.cancel()
    engine.settle()
    assert set(labels(engine, run).values()) == {"canceled"}


def test_a_story_has_no_repetitions():
    states = ["scheduled", "queued", "running", "up_for_retry", "scheduled", "queued", "running", "planned", "success"]
    assert [state.name for state in digdag_story(states)] == [
        "BLOCKED", "READY", "RUNNING", "RETRY_WAITING", "READY", "RUNNING", "PLANNED", "SUCCESS",
    ]  # fmt: skip
