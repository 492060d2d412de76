"""A cluster on which everything goes wrong keeps its promises; and if a guard is taken away, the simulation tells."""

from __future__ import annotations

from copy import copy
from itertools import count
from types import SimpleNamespace

import pytest

from headrace.agent import Agent
from headrace.handoff import Fired
from headrace.state import HELD
from headrace.store import (
    RunGraph,
    Store,
    agents,
    assets,
    candidates,
    claims,
    ensure_project,
    new_runs,
    partitions,
    results,
    runs,
    schedules,
    task_rows,
    timers,
    trigger_rows,
    triggers,
    use,
    watchers,
)
from headrace.store.news import NOTHING
from headrace.testing.simulation import SqliteArena, main, simulate, simulate_all, tell
from headrace.triggerer import Triggerer

SEEDS = 60


def first_problem(seeds: range, store_url: str | None = None) -> str | None:
    for outcome in simulate_all(seeds, store_url):
        if outcome.problem is not None:
            return outcome.problem
    return None


def is_told(words: str, seeds: range, store_url: str | None = None) -> bool:
    """Whether one of the seeds has this problem; others may have others that come of the same mistake."""
    return any(outcome.problem and words in outcome.problem for outcome in simulate_all(seeds, store_url))


def test_no_seed_breaks_a_promise():
    for outcome in simulate_all(range(SEEDS)):
        if outcome.problem is not None:
            tell(outcome)
        assert outcome.problem is None, f"seed {outcome.seed}: {outcome.problem}"
        assert outcome.events > 0


def test_no_seed_breaks_a_promise_on_postgresql(prepared_postgres_url):
    for outcome in simulate_all(range(8), prepared_postgres_url):
        assert outcome.problem is None, f"seed {outcome.seed}: {outcome.problem}"


def test_a_seed_always_tells_the_same_story(tmp_path):
    arena = SqliteArena(tmp_path)
    first, second = simulate(7, arena), simulate(7, arena)
    arena.close()
    assert first == second
    assert len(first.story) > 20


# ---- it can fail -------------------------------------------------------------------------------------------------


def test_it_tells_when_results_are_taken_whatever_their_fence(monkeypatch):
    monkeypatch.setattr(results, "accepts", lambda task, fence: task.state in HELD)
    assert "still runs, yet its end is told" in first_problem(range(200))


def test_it_tells_when_results_are_taken_whatever_the_state(monkeypatch):
    monkeypatch.setattr(results, "accepts", lambda task, fence: task.fence == fence)
    assert first_problem(range(100)) is not None


def test_it_tells_when_a_running_task_can_be_claimed_again(monkeypatch):
    patch_sql(
        monkeypatch, candidates, "CANDIDATES", "task.state = 'scheduled'", "task.state IN ('scheduled', 'running')"
    )
    monkeypatch.setattr(claims, "is_open", lambda candidate: True)
    monkeypatch.setattr("headrace.state.claiming.check_move", lambda *_: None)
    assert "an illegal move" in first_problem(range(50))


def test_it_tells_when_tasks_are_taken_from_living_agents(monkeypatch):
    patch_sql(monkeypatch, agents, "LOST_TASKS", "agent.is_lost AND", "")
    patch_sql(monkeypatch, agents, "IS_HELD_BY_LOST", "agent.is_lost AND", "")
    assert "which lives" in first_problem(range(50))


def test_it_tells_when_a_limit_is_not_kept(monkeypatch):
    monkeypatch.setattr(use.Use, "_pool_has_room", lambda one, *_: one._load() is not None)
    assert "slots," in first_problem(range(300))


def test_it_tells_when_a_run_starts_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(runs, "_room", lambda *_: None)
    assert "the limit is" in first_problem(range(200))


def test_it_tells_when_a_change_has_no_event(monkeypatch):
    write = task_rows.insert_events
    monkeypatch.setattr(
        "headrace.store.run_graph.insert_events",
        lambda tx, events: write(tx, [event for event in events if event.after != "up_for_retry"]),
    )
    assert first_problem(range(50)) is not None


def test_it_tells_when_consequences_are_not_followed(monkeypatch):
    monkeypatch.setattr("headrace.state.agenda.Agenda._credit_parent", lambda *_: None)
    assert "wrong counters" in first_problem(range(20))


def test_it_tells_when_a_logical_time_gets_two_runs(monkeypatch):
    row, numbers = new_runs._run_row, count()
    changed = {"unique_at": None}
    monkeypatch.setattr(
        new_runs,
        "_run_row",
        lambda new, *rest: {**row(new, *rest), **changed, "key": f"{new.key}{next(numbers)}"},
    )
    monkeypatch.setattr(
        "headrace.scheduler.run_starter.move_schedules",
        lambda tx, rows: schedules.move_schedules(tx, [row for row in rows if row.logical_at is None]),
    )
    assert "more than one run" in first_problem(range(100))


def test_it_tells_when_an_agent_forgets_what_it_claimed_in_a_commit_whose_answer_was_lost(monkeypatch):
    monkeypatch.setattr(Agent, "_hand_back_unknown", lambda self: None)
    assert "runs do not end" in first_problem(range(200))


def test_it_tells_when_a_service_raises(monkeypatch):
    monkeypatch.setattr("headrace.store.timers.fail_tasks", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in first_problem(range(40, 300))


FORGOTTEN = {
    "retries": ("SELECT min(due_at) FROM task WHERE due_at IS NOT NULL", "NULL", "the waker"),
    "schedules": ("SELECT min(next_run_at) FROM schedule WHERE next_run_at IS NOT NULL", "NULL", "the run starter"),
    "time limits": ("timeout_at IS NOT NULL AND state = 'running'", "false", "the deadline keeper"),
    "deadlines": ("SELECT min(due_at) FROM deadline WHERE missed_at IS NULL", "NULL", "the deadline keeper"),
    "nudges": ("EXISTS (SELECT 1 FROM nudge)", "false", "the past follower"),
    "runs for later": ("state = 'queued' AND id > 0", "false", "the run activator"),
    "queued runs": ("WHERE NOT workflow.is_paused AND", "WHERE false AND", "the run activator"),
}


@pytest.mark.parametrize("kind", FORGOTTEN)
def test_it_tells_when_a_scheduler_does_not_see_what_is_due(monkeypatch, kind):
    old, new, service = FORGOTTEN[kind]
    patch_sql(monkeypatch, timers, "OUTLOOK", old, new)
    assert is_told(service, range(100))


def test_it_tells_when_nobody_sees_that_a_run_could_start(monkeypatch):
    for name in ("OUTLOOK", "WAITING_WORKFLOWS"):
        patch_sql(monkeypatch, timers, name, "WHERE NOT workflow.is_paused AND", "WHERE false AND")
    assert "could start, and nothing told a scheduler so" in first_problem(range(100))


def test_it_tells_when_a_commit_does_not_wake_a_scheduler(monkeypatch):
    monkeypatch.setattr(RunGraph, "has_timers", False)
    assert "made work for schedulers and told none of them" in first_problem(range(100))


def test_it_tells_when_a_commit_does_not_wake_agents(monkeypatch):
    monkeypatch.setattr(RunGraph, "scheduled", lambda self: [])
    assert "to take and told no agent" in first_problem(range(100))


# ---- deferred tasks ------------------------------------------------------------------------------------------------


def test_it_tells_when_a_wait_ends_and_its_trigger_stays(monkeypatch):
    patch_sql(monkeypatch, trigger_rows, "DELETE", "AND NOT is_given_up", "AND is_given_up")
    assert "wait for triggers or answers" in first_problem(range(50))


def test_it_tells_when_a_task_goes_on_whose_own_trigger_has_told_nothing(monkeypatch):
    def fire_all(tx, graph, told, agent_id, logs):
        others = [Fired(trigger_id=one) for one in triggers.held_triggers(tx, agent_id)]
        return triggers.fire_triggers(tx, graph, [*told, *others], agent_id, logs)

    monkeypatch.setattr("headrace.triggerer.triggerer.fire_triggers", fire_all)
    assert "which has told nothing" in first_problem(range(100))


def test_it_tells_when_two_waits_have_the_same_trigger(monkeypatch):
    insert = trigger_rows.insert_triggers
    monkeypatch.setattr(
        "headrace.store.run_graph.insert_triggers",
        lambda tx, deferred, ids, now: insert(tx, deferred, [task.id for task, _ in deferred], now),
    )
    assert "had ended, and is there again" in first_problem(range(100))


def test_it_tells_when_the_work_of_a_wait_that_was_given_up_is_not_ended(monkeypatch):
    monkeypatch.setattr(trigger_rows, "_has_ended", lambda event: True)
    assert "gone before its work was ended" in first_problem(range(100))


def test_it_tells_when_a_trigger_that_was_given_up_begins_anew(monkeypatch):
    monkeypatch.setattr(Triggerer, "_forget_what_was_stopped", lambda self: None)
    assert "gone before its work was ended" in first_problem(range(200, 300))


def test_it_tells_when_nobody_ends_the_work_of_a_trigger_that_fired_too_late(monkeypatch):
    patch_sql(monkeypatch, triggers, "GIVE_BACK", "agent_id = NULL", "agent_id = agent_id")
    assert "trigger given up" in first_problem(range(100, 300))


def test_it_tells_when_a_triggerer_forgets_what_it_claimed_in_a_commit_whose_answer_was_lost(monkeypatch):
    monkeypatch.setattr(Triggerer, "_let_go_of_unknown", lambda self: None)
    assert "runs do not end" in first_problem(range(20, 200))


def test_it_tells_when_a_commit_does_not_wake_triggerers(monkeypatch):
    monkeypatch.setattr(trigger_rows, "News", SimpleNamespace(TRIGGERS=NOTHING))
    assert "told no triggerer" in first_problem(range(50))


def test_it_tells_when_a_triggerer_tells_the_end_of_what_another_one_runs_and_does_not_wake_it(monkeypatch):
    monkeypatch.setattr(triggers, "News", SimpleNamespace(TRIGGERS=NOTHING))
    assert "told no triggerer" in first_problem(range(50, 250))


# ---- assets --------------------------------------------------------------------------------------------------------

MISPLACED = {
    "lost": ("QUEUE", "role = 'schedule'", "role = 'inlet'"),
    "given to one run and kept for the next": ("TAKE", "AND event_id", "AND event_id < 0 AND event_id"),
    "not given to their run": ("ATTACH", "WHERE id", "WHERE id < 0 AND id"),
}


@pytest.mark.parametrize("how", MISPLACED)
def test_it_tells_when_events_of_assets_are_misplaced(monkeypatch, how):
    name, old, new = MISPLACED[how]
    patch_sql(monkeypatch, assets, name, old, new)
    assert "events are not where they belong" in first_problem(range(50))


def test_it_tells_when_events_are_kept_for_a_partition_whose_run_has_them(monkeypatch):
    patch_sql(monkeypatch, partitions, "START", "WHERE workflow_id", "WHERE false AND workflow_id")
    assert "events are not where they belong" in first_problem(range(100))


def test_it_tells_when_a_partition_that_is_complete_gets_no_run(monkeypatch):
    monkeypatch.setattr("headrace.scheduler.partition_runs._start", lambda *_: False)
    assert "has all it needs, and no run" in first_problem(range(100))


def test_it_tells_when_a_run_begins_before_all_its_assets_were_updated(monkeypatch):
    monkeypatch.setattr("headrace.scheduler.event_runs.is_met", lambda condition, present: bool(present))
    assert "began before all that it needs had come" in first_problem(range(100))


def test_it_tells_when_nobody_looks_at_a_schedule_whose_assets_were_updated(monkeypatch):
    patch_sql(monkeypatch, assets, "WAKE", "next_run_at IS NULL OR", "")
    assert "is due, and its schedule is looked at at None" in first_problem(range(100))


def test_it_tells_when_an_update_of_an_asset_does_not_wake_a_scheduler(monkeypatch):
    monkeypatch.setattr(assets, "News", SimpleNamespace(PLANS=NOTHING))
    assert "made work for schedulers and told none of them" in first_problem(range(50))


def test_it_tells_when_assets_are_not_watched(monkeypatch):
    patch_sql(monkeypatch, watchers, "WANTED", "AND NOT consumer.is_paused", "AND consumer.is_paused")
    assert "these should be watched" in first_problem(range(50))


def test_it_tells_when_a_watcher_that_ended_is_forgotten(monkeypatch):
    has_stopped = Triggerer._has_stopped

    def forget(self, held):
        has_stopped(self, held)
        self._may_hold_unknown = False

    monkeypatch.setattr(Triggerer, "_has_stopped", forget)
    assert "watcher that does not run" in first_problem(range(100))


def test_it_tells_when_a_watcher_is_heard_twice(monkeypatch):
    monkeypatch.setattr(
        "headrace.triggerer.triggerer.emit_watched",
        lambda tx, told, agent_id, now: [watchers.emit_watched(tx, told, one, now) for one in (agent_id, 0)],
    )
    assert "some came too often" in first_problem(range(50))


def test_it_tells_when_an_event_of_a_watcher_is_not_known_that_is_told_again(monkeypatch):
    patch_sql(monkeypatch, watchers, "LAST_TOLD", "WHERE id", "WHERE false AND id")
    assert "some came too often" in first_problem(range(260, 360))


def test_it_tells_when_writes_do_not_name_the_version_that_they_were_decided_for(monkeypatch, prepared_postgres_url):
    patch_sql(monkeypatch, task_rows, "UPDATE_TASKS", "AND task.version = ", "AND -1 < ")
    assert is_told("left `scheduled`, but it was in `running`", range(100, 160), prepared_postgres_url)


def patch_sql(monkeypatch, module, name: str, old: str, new: str) -> None:
    """Take a condition out of a hot statement."""
    before = getattr(module, name)
    changed = copy(before)
    assert old in before.sqlite and old in before.postgres
    for form in ("sqlite", "sqlite_for_ones", "postgres"):
        setattr(changed, form, getattr(before, form).replace(old, new))
    monkeypatch.setattr(module, name, changed)


def test_a_failing_seed_tells_how_to_see_it_again(monkeypatch, capsys):
    monkeypatch.setattr("headrace.state.agenda.Agenda._credit_parent", lambda *_: None)
    assert main(["--seeds", "3", "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert "replay: python -m headrace.testing.simulation --seed 0 -v" in printed
    assert "3 seeds" in printed and "3 failed" in printed


def test_the_story_of_a_good_seed_is_told_on_request(capsys):
    assert main(["--seed", "1", "-v"]) == 0
    printed = capsys.readouterr().out
    assert "scheduled → queued by claim" in printed and "0 failed" in printed


def test_a_database_with_projects_is_left_alone(prepared_postgres_url):
    store = Store(prepared_postgres_url)
    with store.begin() as tx:
        ensure_project(tx, "p", "/p", 0)
    store.dispose()
    with pytest.raises(SystemExit, match="expected a database without projects"):
        next(simulate_all([0], prepared_postgres_url))
