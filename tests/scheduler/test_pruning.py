"""Old runs go with everything that belongs to them; whatever is active or young stays whole."""

from __future__ import annotations

import itertools

from timed_bench import flow, node

from headrace.actions.serving import delete_logs
from headrace.definition import Node, Retry
from headrace.scheduler import Pruner, Waker
from headrace.store import (
    MemoOwner,
    NewRun,
    add_archive,
    add_attempt,
    clear_tasks,
    create_run,
    delete_run,
    ensure_project,
    resign,
    save_file,
    set_memo,
    set_value,
    start_queued_runs,
    sweep_leftovers,
)
from headrace.store import schema as tables
from headrace.store.pruning_definitions import DELETE_VERSIONS, OLD_VERSIONS

BELONGINGS = (
    *(tables.attempt, tables.task, tables.edge, tables.try_, tables.value, tables.event, tables.memo),
    tables.leftover,
)


def run_to_the_end(bench, one, key="r1"):
    attempt = bench.start(one, key)
    bench.finish_everything(bench.agent(lease=1e6))
    return attempt


def test_old_runs_leave_nothing_behind(bench):
    attempt = bench.start(flow("w", node("a", retry=Retry(limit=1)), node("b", "a")))
    agent = bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    bench.store.transact(lambda tx: set_value(tx, task.id, attempt, "x", "1", None))
    owner = MemoOwner("task", bench.attempt(attempt).run_id, "a")
    bench.store.transact(lambda tx: set_memo(tx, owner, "x", "1", 0, None))
    bench.end(task, "failed")
    bench.finish_everything(agent)
    assert all(bench.count(table) for table in BELONGINGS if table not in (tables.value, tables.leftover))
    deleted = []
    pruner = Pruner(bench.store, retention_days=7, delete_logs=deleted.extend)
    assert pruner.tick(bench.advance(days=6)) == 0
    assert pruner.tick(bench.advance(days=2)) == 1
    assert {table.name: bench.count(table) for table in (*BELONGINGS, tables.run)} == dict.fromkeys(
        [table.name for table in (*BELONGINGS, tables.run)], 0
    )
    assert len(deleted) == 2
    assert bench.count(tables.workflow) == 1


def test_superseded_tasks_go_too(bench):
    group = Node(key="g", parent="", kind="group", retry=Retry(limit=1, delay_seconds=5))
    attempt = bench.start(flow("w", group, Node(key="g.a", parent="g", operator="work")))
    agent = bench.agent(lease=1e6)
    (task,) = bench.claim(agent)
    bench.end(task, "failed")
    Waker(bench.store).tick(bench.advance(seconds=5))
    bench.finish_everything(agent)
    assert bench.attempt(attempt).state == "success"
    assert [row for row in bench.rows(tables.task) if row.is_superseded]
    assert Pruner(bench.store, retention_days=1).tick(bench.advance(days=2)) == 1
    assert bench.count(tables.task) == 0


def test_active_and_young_runs_stay_whole(bench):
    cleared = run_to_the_end(bench, flow("cleared"))
    old = run_to_the_end(bench, flow("other"), "old")
    task_id = bench.task(cleared).id
    bench.store.transact(lambda tx: clear_tasks(tx, cleared, [task_id], bench.micros))
    going = bench.start(flow("going"))
    queued = bench.start(flow("going", max_active_runs=1), "r2")
    bench.advance(days=30)
    young = run_to_the_end(bench, flow("young"))
    before = {attempt: belongings(bench, attempt) for attempt in (cleared, going, queued, young)}
    assert Pruner(bench.store, retention_days=7).tick(bench.now) == 1
    assert {row.id for row in bench.rows(tables.attempt)} == before.keys()
    assert belongings(bench, old) == (0, 0)
    assert {attempt: belongings(bench, attempt) for attempt in before} == before


def belongings(bench, attempt):
    """How many tasks and events an attempt has."""
    tasks = bench.rows(tables.task, tables.task.c.attempt_id == attempt)
    return len(tasks), len(bench.rows(tables.event, tables.event.c.attempt_id == attempt))


def test_run_with_a_new_attempt_stays(bench):
    (workflow_id,) = bench.save(flow())
    run_id = bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
    bench.store.transact(lambda tx: start_queued_runs(tx, workflow_id, bench.micros))
    bench.finish_everything(bench.agent(lease=1e6))
    bench.advance(days=30)
    bench.store.transact(lambda tx: add_attempt(tx, run_id, workflow_id, None, "again", bench.micros))
    assert Pruner(bench.store, retention_days=7).tick(bench.now) == 0
    assert not bench.store.transact(lambda tx: delete_run(tx, run_id, bench.micros)), "nor if it was chosen before"
    assert bench.count(tables.run) == 1


def test_processes_that_are_long_gone_are_forgotten(bench):
    gone, there = bench.agent("gone"), bench.agent("there")
    bench.store.transact(lambda tx: resign(tx, gone, bench.micros))
    assert Pruner(bench.store, retention_days=None).tick(bench.advance(days=2)) == 1
    assert [row.id for row in bench.rows(tables.agent)] == [there]


def test_runs_are_kept_forever_without_a_retention(bench):
    run_to_the_end(bench, flow())
    Pruner(bench.store, retention_days=None).tick(bench.advance(days=10_000))
    assert bench.count(tables.run) == 1


def test_logs_that_cannot_be_deleted_keep_their_run(bench):
    run_to_the_end(bench, flow())

    def refuse(paths):
        raise OSError("read-only file system")

    assert Pruner(bench.store, retention_days=1, delete_logs=refuse).tick(bench.advance(days=2)) == 0
    assert bench.count(tables.run) == 1


def test_small_batches_are_enough_for_many_runs(bench):
    for number in range(5):
        run_to_the_end(bench, flow(), f"r{number}")
    pruner = Pruner(bench.store, retention_days=1, batch_size=2)
    assert [pruner.tick(bench.advance(days=2)) for _ in range(4)] == [2, 2, 1, 0]


def test_a_large_run_is_deleted_in_pieces_while_another_one_goes_on(bench):
    large = [node(f"n{number}") for number in range(30)]
    old = run_to_the_end(bench, flow("large", *large))
    bench.advance(days=2)
    going = bench.start(flow("going", *chain(12)))
    agent = bench.agent(lease=1e6)
    (run_id,) = [row.id for row in bench.rows(tables.run) if row.state == "success"]

    assert bench.store.transact(lambda tx: delete_run(tx, run_id, bench.micros, limit=7))
    assert [row.id for row in bench.rows(tables.attempt)] == [going], "nobody can begin anything with it any more"
    sizes = [belongings(bench, old)]
    while bench.store.transact(lambda tx: sweep_leftovers(tx, limit=7)):
        sizes.append(belongings(bench, old))
        for task in bench.claim(agent):
            bench.end(task)
    assert sizes[-1] == (0, 0)
    steps = [(before[0] - after[0], before[1] - after[1]) for before, after in itertools.pairwise(sizes)]
    assert max(map(max, steps)) <= 7
    assert bench.count(tables.leftover) == 0
    bench.finish_everything(agent)
    assert bench.attempt(going).state == "success"


def chain(length):
    return [node("a0"), *(node(f"a{i}", f"a{i - 1}") for i in range(1, length))]


def test_what_a_dead_scheduler_left_of_a_run_is_swept_up_by_the_next(bench):
    old = run_to_the_end(bench, flow("w", *(node(f"n{number}") for number in range(30))))
    bench.advance(days=2)
    (run,) = bench.rows(tables.run)
    bench.store.transact(lambda tx: delete_run(tx, run.id, bench.micros, limit=7))
    assert belongings(bench, old)[0] > 0
    Pruner(bench.store, retention_days=None).tick(bench.now)
    assert belongings(bench, old) == (0, 0)
    assert bench.count(tables.leftover) == 0


def save_version(bench, number, archive=None):
    """Another version of the same file, and of the workflow in it."""

    def save(tx):
        project_id = ensure_project(tx, "p", "/p" if archive is None else "", bench.micros)
        archive_id = None if archive is None else add_archive(tx, project_id, archive, archive, b"x", bench.micros)
        one = flow("w", description=f"version {number}")
        return save_file(tx, project_id, "w.py", f"digest{number}", [one], bench.micros, b"text", archive_id)[0].id

    return bench.store.transact(save)


def test_versions_and_revisions_that_no_run_needs_are_forgotten(bench):
    workflow_id = save_version(bench, 1)
    bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))
    bench.store.transact(lambda tx: start_queued_runs(tx, workflow_id, bench.micros))
    for number in (2, 3, 4):
        save_version(bench, number)
    pruner = Pruner(bench.store, retention_days=7)
    assert pruner.tick(bench.advance(days=6)) == 0
    assert pruner.tick(bench.advance(days=2)) == 4, "two versions with their revisions"
    assert [row.digest for row in bench.rows(tables.revision)] == ["digest1", "digest4"]
    assert bench.count(tables.workflow_version) == 2, "one has a run, one is the present one"
    bench.finish_everything(bench.agent(lease=1e6))
    pruner.tick(bench.advance(days=8))
    assert [row.digest for row in bench.rows(tables.revision)] == ["digest4"]


def test_pushed_archives_that_no_run_needs_are_forgotten(bench):
    for number, name in enumerate(("first", "second", "third")):
        workflow_id = save_version(bench, number, archive=name)
        if name == "second":
            bench.store.transact(lambda tx: create_run(tx, NewRun(workflow_id, "r1"), bench.micros))  # noqa: B023
    Pruner(bench.store, retention_days=7).tick(bench.advance(days=8))
    assert [row.name for row in bench.rows(tables.archive)] == ["second", "third"]
    assert bench.count(tables.archive_chunk) == 2
    assert bench.count(tables.run) == 1, "it has not even begun"


def test_a_version_that_a_run_begins_to_use_meanwhile_stays(bench):
    workflow_id = save_version(bench, 1)
    (old,) = bench.rows(tables.workflow_version)
    save_version(bench, 2)
    bench.advance(days=8)
    with bench.store.begin() as tx:
        chosen = [row[0] for row in tx.run(OLD_VERSIONS, {"project_id": 1, "before": bench.micros, "limit": 10})]
        create_run(tx, NewRun(workflow_id, "r1", version_id=old.id), bench.micros)
        assert (chosen, tx.change(DELETE_VERSIONS, {"ids": chosen})) == ([old.id], 0)
    assert bench.count(tables.run) == 1


def test_the_folders_of_a_run_go_with_its_last_log(tmp_path):
    for path in ("w/old/attempt=1/a.log", "w/old/attempt=2/a.log", "w/new/attempt=1/a.log"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("text")
    delete_logs(tmp_path, ["w/old/attempt=1/a.log", "w/old/attempt=2/a.log", "w/gone/attempt=1/a.log"])
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "w",
        "w/new",
        "w/new/attempt=1",
        "w/new/attempt=1/a.log",
    ]
