"""How long sensors wait, and what happens when that is too long: the real engine with a clock that the test moves."""

from __future__ import annotations

import pytest

ONCE = ["scheduled", "queued", "running"]

# What each poke does is told by a file with one word a line: no, yes, slow, break, fail, skip.
PROBE = """
    import time
    from datetime import timedelta
    from pathlib import Path

    from airflow.exceptions import *
    from airflow.sdk import DAG, BaseSensorOperator, PokeReturnValue

    PLAN = Path(__file__).with_name("plan.txt")

    class Probe(BaseSensorOperator):
        def poke(self, context):
            word, *rest = PLAN.read_text().split()
            PLAN.write_text(" ".join(rest or [word]))
            if word == "slow":
                time.sleep(5)
            if word == "break":
                raise ValueError("broken")
            if word == "fail":
                raise AirflowFailException("no use")
            if word == "skip":
                raise AirflowSkipException("not needed")
            return PokeReturnValue(word == "yes", "found it")

    with DAG("d"):
        Probe(task_id="probe", {arguments})
"""


@pytest.fixture
def start(engine):
    def start(plan, arguments):
        engine.write("plan.txt", plan)
        run = engine.start_dag(PROBE.replace("{arguments}", arguments))
        engine.settle()
        return run

    return start


SERIES = 'mode="reschedule", poke_interval=600, timeout=3600, retries=2, retry_delay=timedelta(seconds=60)'
LIMITED = f"{SERIES}, execution_timeout=timedelta(seconds=0.05)"


def test_rescheduling_ends_the_process_and_keeps_the_try(engine, start):
    run = start("no no yes", SERIES)
    assert run.story("probe") == [*ONCE, "up_for_reschedule"]
    assert not engine.agent.is_busy
    engine.advance(599)
    assert run.states() == {"probe": "up_for_reschedule"}
    engine.advance(1)
    engine.settle()
    engine.advance(600)
    engine.settle()
    assert run.story("probe") == [*ONCE, "up_for_reschedule", *ONCE, "up_for_reschedule", *ONCE, "success"]
    assert run.task("probe").try_number == 1
    assert run.value("probe") == "found it"


def test_a_poke_over_its_execution_timeout_is_tried_again(engine, start):
    run = start("slow no yes", LIMITED)
    assert run.story("probe") == [*ONCE, "up_for_retry"]
    assert "execution_timeout" in run.error("probe")
    engine.advance(60)
    engine.settle()
    assert (run.states(), run.task("probe").try_number) == ({"probe": "up_for_reschedule"}, 2)
    engine.advance(600)
    engine.settle()
    assert (run.state, run.task("probe").try_number) == ("success", 2)


def test_slow_pokes_use_up_the_tries(engine, start):
    run = start("slow", LIMITED)
    for _ in range(2):
        engine.advance(60)
        engine.settle()
    assert run.tries("probe") == ["failed"] * 3
    assert run.state == "failed"


def test_the_timeout_of_the_series_fails_at_once_whatever_tries_are_left(engine, start):
    run = start("no", SERIES)
    for _ in range(5):
        engine.advance(600)
        engine.settle()
    assert run.states() == {"probe": "up_for_reschedule"}
    engine.advance(600)
    engine.settle()
    assert (run.state, run.task("probe").try_number) == ("failed", 1)
    assert run.error("probe") == "sensor `probe` found nothing within its timeout of 3600 s"


def test_a_retry_does_not_give_the_series_more_time(engine, start):
    run = start("slow no", LIMITED)
    engine.advance(3000)
    engine.settle()
    assert (run.states(), run.task("probe").try_number) == ({"probe": "up_for_reschedule"}, 2)
    engine.advance(601)
    engine.settle()
    assert (run.state, run.tries("probe")[-1]) == ("failed", "failed")
    assert "timeout of 3600 s" in run.error("probe")


def test_clearing_begins_a_new_series(engine, start):
    run = start("no", "mode='reschedule', poke_interval=600, timeout=1000")
    engine.advance(600)
    engine.settle()
    engine.advance(600)
    engine.settle()
    assert run.state == "failed"
    run.clear("probe")
    engine.settle()
    assert run.states() == {"probe": "up_for_reschedule"}


def test_waiting_holds_no_slot(engine, start):
    start("no", SERIES)
    other = engine.start_dag("""
        from airflow.sdk import DAG, task
        with DAG("other", max_active_tasks=1):
            @task(pool_slots=128)
            def wide():
                pass
            wide()
    """)
    engine.settle()
    assert other.state == "success"


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
@pytest.mark.parametrize(
    ("plan", "arguments", "state"),
    [
        ("no", "", "failed"),
        ("no", "soft_fail=True", "skipped"),
        ("no", "never_fail=True", "failed"),
        ("slow", "execution_timeout=timedelta(seconds=0.05)", "up_for_retry"),
        ("slow", "execution_timeout=timedelta(seconds=0.05), soft_fail=True", "skipped"),
        ("slow", "execution_timeout=timedelta(seconds=0.05), never_fail=True", "skipped"),
        ("fail", "", "failed"),
        ("fail", "soft_fail=True", "skipped"),
        ("fail", "never_fail=True", "skipped"),
        ("skip", "", "skipped"),
        ("break", "", "up_for_retry"),
        ("break", "soft_fail=True", "up_for_retry"),
        ("break", "never_fail=True", "skipped"),
        ("break", "silent_fail=True", "failed"),
        ("break", "silent_fail=True, soft_fail=True", "skipped"),
    ],
)
def test_every_way_to_end_without_finding(start, mode, plan, arguments, state):
    run = start(plan, f"mode={mode!r}, timeout=0, poke_interval=0, retries=1, {arguments}")
    assert run.states() == {"probe": state}


def test_there_is_always_one_poke(start):
    assert start("yes", "timeout=0").state == "success"


def test_poke_mode_looks_again_in_the_same_process(engine, start):
    run = start("no no yes", "poke_interval=0.01")
    assert run.story("probe") == [*ONCE, "success"]


def test_growing_pauses_are_remembered_by_the_time_that_went_by(engine, start):
    run = start("no", 'mode="reschedule", poke_interval=60, timeout=100000, exponential_backoff=True')
    pauses = []
    for _ in range(5):
        pause = (run.task("probe").due_at - engine_micros(engine)) / 1_000_000
        pauses.append(pause)
        engine.advance(pause + 1.0)  # more than what a busy machine takes for a poke
        engine.settle()
    least = [30, 60, 120, 240, 480]
    assert all(low - 1 <= pause < 2 * low for low, pause in zip(least, pauses, strict=True)), pauses


def test_growing_pauses_end_at_the_longest_that_is_allowed(engine, start):
    run = start("no", 'mode="reschedule", poke_interval=600, exponential_backoff=True, max_wait=timedelta(seconds=90)')
    pause = (run.task("probe").due_at - engine_micros(engine)) / 1_000_000
    assert 89 < pause <= 90


def engine_micros(engine):
    return round(engine.clock.now().timestamp() * 1_000_000)
