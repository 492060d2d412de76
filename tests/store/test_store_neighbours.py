"""The run before and the same task in earlier runs, on both databases."""

from __future__ import annotations

from store_bench import flow, node

from headrace.store import count_reschedules, get_run, latest_attempt, previous_attempt_with_task, previous_run


def test_runs_and_tasks_before_by_time_and_state(bench):
    (workflow_id,) = bench.save(flow(node("a"), node("b")))
    ids = [bench.create(workflow_id, f"r{at}", logical_at=at) for at in (10, 20, 30)]
    bench.activate(workflow_id)
    for claimed in bench.claim(bench.agent()):
        failed = claimed.key == "a" and claimed.attempt_id == 1
        bench.end(claimed, "failed" if failed else "success")
    with bench.store.read() as tx:
        assert latest_attempt(tx, ids[0]) == 1
        assert [get_run(tx, run_id).state for run_id in ids] == ["failed", "success", "success"]
        keys = [previous_run(tx, ids[2]), previous_run(tx, ids[2], ["failed", "canceled"])]
        assert [found.run_key for found in keys] == ["r20", "r10"]
        assert previous_run(tx, ids[0]) is None
        wishes = [(), (["failed"],), (["failed"], 10), ((), 15)]
        tasks = [previous_attempt_with_task(tx, ids[2], "a", -1, *wish) for wish in wishes]
        assert [found and found.run_key for found in tasks] == ["r20", "r10", None, "r10"]
        assert previous_attempt_with_task(tx, ids[2], "other", -1) is None


def test_looks_of_the_present_try_are_counted(bench):
    bench.start(flow(node("a")))
    (claimed,) = bench.claim(bench.agent())
    bench.end(claimed, "again", again_after_seconds=5)
    with bench.store.read() as tx:
        assert [count_reschedules(tx, claimed.id, number) for number in (1, 2)] == [1, 0]
