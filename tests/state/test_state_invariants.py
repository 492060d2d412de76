"""Whatever happens to a run, in whatever order: its counters are right, its moves legal, and it ends."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_graph import Engine
from random_runs import ORDERLY_RULES, clearable, end_somehow, final_states, finish_everything, fire_somehow, workflows

from headrace.handoff import TaskError, TaskResult
from headrace.state import FINISHED, HELD, Actor, State

fuzz = settings(
    max_examples=100,
    deadline=timedelta(seconds=5),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@fuzz
@given(data=st.data(), flow=workflows())
def test_counters_moves_and_events_hold_after_everything_that_can_happen(data, flow):
    engine = Engine(flow)
    for _ in range(data.draw(st.integers(0, 25), label="steps")):
        _something_happens(data.draw, engine)
    finish_everything(engine)
    assert engine.attempt.state in ("success", "failed", "canceled")
    assert all(task.state in FINISHED for task in engine.graph.all.values())


def _something_happens(draw, engine: Engine) -> None:
    event = draw(
        st.sampled_from(["end"] * 8 + ["claim", "batch", "time", "clear", "clear", "rescue", "stop", "fire", "fire"])
    )
    reachable = [*engine.claimable, *engine.held]
    if event == "end" and reachable:
        end_somehow(draw, engine, draw(st.sampled_from(reachable)))
    elif event == "claim" and engine.claimable:
        engine.claim(draw(st.sampled_from(engine.claimable)))
    elif event == "batch" and reachable:
        _several_things_happen_at_once(draw, engine)
    elif event == "time":
        engine.advance(seconds=draw(st.sampled_from([1, 10, 100])))
    elif event == "clear" and clearable(engine):
        engine.clear(*draw(st.lists(st.sampled_from(clearable(engine)), min_size=1, max_size=3)))
    elif event == "rescue" and engine.held:
        _agent_is_lost(engine, draw(st.sampled_from(engine.held)))
    elif event == "fire" and any(task.state is State.DEFERRED for task in engine.waiting):
        waiting = [task for task in engine.waiting if task.state is State.DEFERRED]
        fire_somehow(draw, engine, draw(st.sampled_from(waiting)))
    elif event == "stop" and engine.attempt.state == "running":
        _attempt_is_stopped(draw, engine)


def _several_things_happen_at_once(draw, engine: Engine) -> None:
    """A transaction takes several results, wakes and clears tasks before it settles."""
    for task in draw(st.lists(st.sampled_from(engine.claimable), unique_by=id, max_size=3)) if engine.claimable else ():
        engine.claim(task)
    outcomes = [draw(st.sampled_from(["success", "failed", "skipped"])) for _ in engine.held]
    woken = draw(st.lists(st.sampled_from(engine.waiting), max_size=2)) if engine.waiting else []
    cleared = draw(st.lists(st.sampled_from(clearable(engine)), max_size=2))

    def apply(advance):
        for task, outcome in zip(engine.held, outcomes, strict=True):
            if task.state in HELD:
                advance.complete(task, TaskResult(task_id=task.id, fence=task.fence, outcome=outcome))
        for task in woken:
            advance.wake(task)
        if cleared:
            advance.clear(cleared)

    advance = engine.do(apply)
    assert all(task.state is State.SCHEDULED for task in advance.scheduled)


def _agent_is_lost(engine: Engine, task) -> None:
    if task.state is State.QUEUED:
        engine.do(lambda advance: advance.hand_back(task, Actor.RESCUER))
    else:
        error = TaskError(type="LostLease", message="its agent is gone")
        engine.do(lambda advance: advance.fail(task, error, Actor.RESCUER))


def _attempt_is_stopped(draw, engine: Engine) -> None:
    how = draw(st.sampled_from(["cancel", "skip", "cancel_rest", "no"]))
    if how == "cancel":
        engine.cancel()
    elif how == "skip":
        engine.time_out(State.SKIPPED)
    elif how == "cancel_rest":
        engine.time_out(State.CANCELED)


@fuzz
@given(data=st.data(), flow=workflows(rules=ORDERLY_RULES, is_simple=True))
def test_the_order_in_which_tasks_end_does_not_change_how_they_end(data, flow):
    outcomes: dict[tuple[str, int], str] = {}
    results = []
    for _ in range(2):
        engine = Engine(flow)
        while engine.attempt.state == "running":
            _end_one(data.draw, engine, outcomes)
        results.append(final_states(engine))
    assert results[0] == results[1]


def _end_one(draw, engine: Engine, outcomes: dict[tuple[str, int], str]) -> None:
    if not engine.claimable:
        engine.advance(seconds=1_000)
        return
    task = draw(st.sampled_from(engine.claimable))
    outcome = st.sampled_from(["success", "success", "failed"])
    fate = (task.name, task.try_number)
    if fate not in outcomes:
        outcomes[fate] = draw(outcome)
    engine.end(task, outcomes[fate], length=2)
