"""What the tasks of a `.dig` workflow go through, in Digdag's words, read from the history of events."""

from __future__ import annotations

from itertools import groupby

import pytest

from headrace.actions.digdag_states import digdag_states, digdag_story
from headrace.authoring.dig import operator_names
from headrace.operators.dig import Job, Outcome, PollAgain, registry
from headrace.store import list_tasks
from headrace.store.sql import Sql
from headrace.testing.engine import Engine

HISTORY = Sql(
    """
    SELECT task.key, task.id, task.kind, event.after FROM event JOIN task ON task.id = event.task_id
    WHERE event.attempt_id = :attempt_id ORDER BY event.id
    """
)
ONCE = "BLOCKED READY RUNNING SUCCESS"


@pytest.fixture
def engine(prepared_url, tmp_path):
    engine = Engine(tmp_path, prepared_url)
    yield engine
    engine.close()


@pytest.fixture
def patience(monkeypatch):
    """An operator `patience>` that asks to be called again after so many seconds, once."""

    def be_patient(job: Job) -> Outcome:
        if not job.state:
            raise PollAgain(job.params.integer("_command"), {"asked": True})
        return Outcome()

    monkeypatch.setattr(operator_names, "_known", {*operator_names.known_operators(), "patience"})
    monkeypatch.setitem(registry._operators, "patience", registry.Registered(be_patient))


def finish(engine, text: str, **options):
    """Run a workflow to its end, however long its waits are."""
    run = engine.start_dig(text, **options)
    engine.settle()
    for _ in range(20):
        if run.state in ("success", "failed", "canceled"):
            return run
        engine.advance(seconds=3600)
        engine.settle()
    raise AssertionError(f"the run is still `{run.state}`: {run.states()}")


def rows(engine, run):
    with engine.store.read() as tx:
        return tx.run(HISTORY, {"attempt_id": run.attempt_id})


def stories(engine, run) -> dict[str, list[str]]:
    """The story of each generation of each task, by the end of its name."""
    told: dict[str, list[str]] = {}
    by_task = sorted(rows(engine, run), key=lambda row: row[1])
    for (key, _, kind), events in groupby(by_task, key=lambda row: row[:3]):
        story = digdag_story([event[3] for event in events], failed_below=kind != "task")
        told.setdefault(key.removeprefix("+main"), []).append(" ".join(state.name for state in story))
    return told


def order(engine, run, state: str) -> list[str]:
    """Names of tasks in the order in which they came to a state."""
    return [key.removeprefix("+main") for key, _, _, after in rows(engine, run) if after == state]


def labels(engine, run) -> dict[str, str]:
    with engine.store.read() as tx:
        tasks = list_tasks(tx, run.attempt_id)
    states = digdag_states(tasks)
    return {task.key.removeprefix("+main"): states[task.id].label for task in tasks}


def test_a_task_goes_from_blocked_to_success(engine):
    run = finish(engine, "+a: {echo>: a}\n+g:\n  +b: {echo>: b}")
    assert stories(engine, run) == {
        "": ["BLOCKED PLANNED SUCCESS"],
        "+a": [ONCE],
        "+g": ["BLOCKED PLANNED SUCCESS"],
        "+g+b": [ONCE],
    }
    assert order(engine, run, "success") == ["+a", "+g+b", "+g", ""]


def test_a_task_with_subtasks_is_planned_until_they_are_done(engine):
    run = finish(engine, "+a:\n  loop>: 2\n  _do: {echo>: '${i}'}\n  _check: {echo>: checked}\n+b: {echo>: b}")
    assert stories(engine, run) == {
        "": ["BLOCKED PLANNED SUCCESS"],
        "+a": ["BLOCKED READY RUNNING PLANNED SUCCESS"],
        "+a^sub": ["BLOCKED PLANNED SUCCESS"],
        "+a^sub+loop-0": [ONCE],
        "+a^sub+loop-1": [ONCE],
        "+a^check": [ONCE],
        "+b": [ONCE],
    }
    assert order(engine, run, "success") == [
        "+a^sub+loop-0", "+a^sub+loop-1", "+a^sub", "+a^check", "+a", "+b", "",
    ]  # fmt: skip


def test_retries_never_pass_through_an_error(engine):
    run = finish(engine, """
        +a:
          sh>: "echo >> tries; test $(wc -l < tries) -gt 2"
          _retry: {limit: 2, interval: 10}
          _error: {echo>: never}
    """)  # fmt: skip
    again = "RETRY_WAITING READY RUNNING"
    assert stories(engine, run)["+a"] == [f"BLOCKED READY RUNNING {again} {again} SUCCESS"]
    assert "+a^error" not in stories(engine, run)


def test_the_handler_of_a_failure_is_added_after_the_last_retry_and_the_task_ends_in_error(engine):
    run = finish(engine, "+a:\n  sh>: exit 1\n  _retry: 1\n  _error: {echo>: '${error.message}'}\n+b: {echo>: never}")
    assert stories(engine, run) == {
        "": ["BLOCKED PLANNED GROUP_ERROR"],
        "+a": ["BLOCKED READY RUNNING RETRY_WAITING READY RUNNING PLANNED ERROR"],
        "+a^error": [ONCE],
        "+b": ["BLOCKED"],
        "^failure-alert": [ONCE],
    }
    assert labels(engine, run)["+b"] == "blocked"
    assert "Command failed with code 1" in run.log("^error")


def test_a_task_that_polls_waits_for_its_next_call(engine, patience):
    run = finish(engine, "+a: {patience>: 60}")
    assert stories(engine, run)["+a"] == ["BLOCKED READY RUNNING RETRY_WAITING READY RUNNING SUCCESS"]


def test_a_group_that_is_retried_runs_all_its_tasks_again_as_a_new_generation(engine):
    run = finish(engine, """
        +g:
          _retry: 3
          +a: {sh>: "echo a >> order"}
          +b: {sh>: "echo b >> order; test $(wc -l < order) -ge 8"}
        +c: {echo>: c}
    """)  # fmt: skip
    failed, well = "BLOCKED READY RUNNING ERROR", ONCE
    again = "GROUP_RETRY_WAITING PLANNED"
    assert stories(engine, run) == {
        "": ["BLOCKED PLANNED SUCCESS"],
        "+g": [f"BLOCKED PLANNED {again} {again} {again} SUCCESS"],
        "+g+a": [well] * 4,
        "+g+b": [failed, failed, failed, well],
        "+c": [well],
    }
    assert (engine.folder / "project" / "order").read_text().split() == ["a", "b"] * 4


def test_a_task_whose_subtasks_fail_runs_its_operator_again(engine):
    run = finish(engine, """
        +a:
          loop>: 2
          _retry: 1
          _do: {sh>: "echo ${i} >> order; test ${i} -eq 0 || test $(wc -l < order) -gt 2"}
    """)  # fmt: skip
    assert stories(engine, run)["+a"] == ["BLOCKED READY RUNNING PLANNED RETRY_WAITING READY RUNNING PLANNED SUCCESS"]
    assert len(stories(engine, run)["+a^sub+loop-0"]) == 2
    assert (engine.folder / "project" / "order").read_text().split() == ["0", "1"] * 2


def test_retries_work_inside_of_called_files_and_loops_and_nested_groups(engine):
    engine.write("called.dig", """
        _retry: 1
        +inner:
          _retry: 1
          +x: {sh>: "echo x >> order; test $(wc -l < order) -gt 3"}
    """)  # fmt: skip
    run = finish(engine, """
        +call: {call>: called}
        +each:
          for_each>: {n: [1, 2]}
          _do:
            _retry: 2
            +y: {sh>: "echo ${n} >> each; test $(grep -c ${n} each) -gt 2"}
    """)  # fmt: skip
    assert run.state == "success"
    # Two tries of the inner group in each of two tries of the outer one.
    assert (engine.folder / "project" / "order").read_text().split() == ["x"] * 4
    assert (engine.folder / "project" / "each").read_text().split() == ["1", "1", "1", "2", "2", "2"]


def test_operators_that_are_not_retried_for_themselves_are_retried_with_their_group(engine):
    run = finish(engine, "+g:\n  _retry: 1\n  +a: {fail>: no, _retry: 5}")
    assert stories(engine, run)["+g+a"] == ["BLOCKED READY RUNNING ERROR"] * 2


def test_waits_grow_exponentially_up_to_their_maximum(engine):
    run = engine.start_dig(
        "+a:\n  sh>: exit 1\n  _retry: {limit: 4, interval: 10, interval_type: exponential, max_interval: 30}"
    )
    engine.settle()
    waits = []
    while run.state == "running":
        due = run.task("+a").due_at
        waits.append((due - round(engine.clock.now().timestamp() * 1_000_000)) / 1_000_000)
        engine.advance(seconds=waits[-1])
        engine.settle()
    assert waits == [10, 20, 30, 30]


def test_siblings_of_a_parallel_group_finish_before_it_fails(engine, patience):
    run = finish(engine, """
        +g:
          _parallel: true
          _error: {echo>: told}
          +a: {fail>: no}
          +b: {patience>: 60}
        +c: {echo>: never}
    """)  # fmt: skip
    assert labels(engine, run) == {
        "": "group_error", "+g": "group_error", "+g+a": "error", "+g+b": "success", "+c": "blocked",
        "+g^error": "success", "^failure-alert": "success",
    }  # fmt: skip
    assert order(engine, run, "success")[:2] == ["+g+b", "+g^error"]


def test_a_failure_in_a_chunk_blocks_all_later_chunks(engine):
    run = finish(engine, """
        _parallel: {limit: 2}
        +a: {fail>: no}
        +b: {echo>: b}
        +c: {echo>: never}
        +d: {echo>: never}
        +e: {echo>: never}
    """)  # fmt: skip
    assert list(labels(engine, run).values())[1:6] == ["error", "success", "blocked", "blocked", "blocked"]


def test_background_tasks_start_with_their_group(engine):
    run = engine.start_dig("""
        +a: {wait>: 1h}
        +b: {echo>: b, _background: true}
        +c: {echo>: c}
    """)
    engine.settle()
    assert labels(engine, run) == {"": "planned", "+a": "retry_waiting", "+b": "success", "+c": "blocked"}


def test_a_check_that_fails_is_a_failure_below_its_task(engine):
    run = finish(engine, "+a: {echo>: a, _check: {fail>: wrong}, _error: {echo>: '${error.message}'}}")
    assert labels(engine, run) == {
        "": "group_error", "+a": "group_error", "+a^check": "error", "+a^error": "success",
        "^failure-alert": "success",
    }  # fmt: skip


def test_a_killed_run_cancels_everything_and_calls_no_handler(engine):
    run = engine.start_dig("""
        _error: {echo>: never}
        +a: {wait>: 1h}
        +g:
          _retry: 5
          +b: {echo>: never}
    """)
    engine.settle()
    run.cancel()
    engine.settle()
    assert (run.state, labels(engine, run)) == (
        "canceled", {"": "canceled", "+a": "canceled", "+g": "canceled", "+g+b": "canceled"},
    )  # fmt: skip


def test_a_handler_with_several_tasks_runs_all_of_them_in_order(engine):
    run = finish(engine, """
        +a:
          fail>: no
          _error:
            +one: {echo>: "${error.message}"}
            +two: {echo>: two}
    """)  # fmt: skip
    assert order(engine, run, "success")[:3] == ["+a^error+one", "+a^error+two", "+a^error"]
    assert labels(engine, run)["+a"] == "error"


def test_a_handler_that_fails_changes_nothing_about_the_error(engine):
    run = finish(engine, "+a: {fail>: first, _error: {fail>: second}}")
    assert (labels(engine, run)["+a"], run.task("+main+a").error.message) == ("error", "first")


def test_a_disabled_task_is_an_empty_group(engine):
    run = finish(engine, "+a: {fail>: no, _disable: true}\n+b: {echo>: b}")
    assert stories(engine, run)["+a"] == ["BLOCKED PLANNED SUCCESS"]
    assert run.state == "success"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(function () { for (;;); })()", "took longer than"),
        ("(function () { var all = []; for (;;) all.push(new Array(10000).join(all.length)); })()", "MB of memory"),
        ("nobody", "ReferenceError: nobody is not defined"),
    ],
)
def test_an_expression_without_end_fails_its_task_with_a_sentence(engine, monkeypatch, expression, reason):
    monkeypatch.setattr("headrace.runner.dig_task._evaluator._time_limit_seconds", 0.2)
    monkeypatch.setattr("headrace.runner.dig_task._evaluator._machine", None)
    run = finish(engine, f'+a:\n  echo>: "${{{expression}}}"\n  _retry: 3')
    assert run.tries("+main+a") == ["failed"]
    assert reason in run.error("+main+a")
