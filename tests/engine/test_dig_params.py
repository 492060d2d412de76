"""Which parameters the tasks of a `.dig` workflow see: stores, exports, built-ins, and what a failure tells."""

from __future__ import annotations

import pytest

from headrace.store import list_runs
from headrace.testing.engine import Engine
from headrace.testing.run import Run

STORE = """
    import digdag

    def put(key, value):
        digdag.env.store({key: value})

    def give(value):
        digdag.env.export({"given": value})
        digdag.env.add_subtask({"echo>": "given=${given}"})

    def fail(value):
        digdag.env.store({"lost": value})
        raise ValueError(value)
"""


@pytest.fixture
def echoed(tmp_path):
    """Runs a workflow and gives what its `echo>` tasks printed, by the ends of their names."""
    engines = []

    def run(text: str, **options) -> dict[str, str]:
        engine = Engine(tmp_path)
        engines.append(engine)
        engine.write("param_steps.py", STORE)
        run = engine.start_dig(text, **options)
        for _ in range(5):
            engine.settle()
            engine.advance(seconds=60)
        assert run.state in ("success", "failed")
        names = [name for name, state in run.states().items() if state == "success"]
        return {
            name.removeprefix("+main"): line.removeprefix("[").rpartition("] ")[2]
            for name in names
            for line in run.log(name).splitlines()
            if "=" in line and "echo>" not in line
        }

    yield run
    for engine in engines:
        engine.close()


def test_a_join_sees_the_branch_that_is_last_in_the_file(echoed):
    assert echoed("""
        +prepare: {py>: param_steps.put, key: x, value: prepared}
        +fork:
          _parallel: true
          +a: {py>: param_steps.put, key: x, value: a}
          +b: {py>: param_steps.put, key: x, value: b}
          +c: {echo>: "x=${x}"}
        +join: {echo>: "x=${x}"}
    """) == {"+fork+c": "x=prepared", "+join": "x=b"}


def test_stores_follow_after_edges(echoed):
    assert echoed("""
        _parallel: true
        +a: {py>: param_steps.put, key: x, value: a}
        +b: {py>: param_steps.put, key: x, value: b}
        +c: {py>: param_steps.put, key: y, value: c}
        +d: {echo>: "${x}=${typeof y}", _after: [+a]}
        +e: {echo>: "${x}=${y}", _after: [+a, +c]}
        +f: {echo>: "${x}=${y}", _after: [+b, +e]}
    """) == {"+d": "a=undefined", "+e": "a=c", "+f": "a=c"}


def test_an_inner_export_wins_over_earlier_stores_and_loses_against_inner_ones(echoed):
    assert echoed("""
        +a: {py>: param_steps.put, key: x, value: stored}
        +g:
          _export: {x: exported}
          +b: {echo>: "x=${x}"}
          +c: {py>: param_steps.put, key: x, value: inner}
          +d: {echo>: "x=${x}"}
          +e: {echo>: "x=${x}", _export: {x: own}}
        +h: {echo>: "x=${x}"}
    """) == {"+g+b": "x=exported", "+g+d": "x=inner", "+g+e": "x=own", "+h": "x=inner"}


def test_what_the_run_was_given_is_the_lowest_layer(echoed):
    assert echoed(
        """
        _export: {x: exported}
        +a: {echo>: "${x}=${y}"}
        """,
        params={"x": "given", "y": "given"},
    ) == {"+a": "exported=given"}


def test_maps_grow_together_over_all_layers(echoed):
    assert echoed("""
        _export: {m: {a: 1, l: [1]}}
        +a: {py>: param_steps.put, key: m, value: {b: 2, l: [2]}}
        +b: {echo>: "m=${m}", _export: {m: {c: 3}}}
    """) == {"+b": 'm={"a":1,"l":[2],"b":2,"c":3}'}


def test_subtasks_see_what_their_operator_exported_and_nobody_else(echoed):
    assert echoed("""
        +a: {py>: param_steps.give, value: 5}
        +b: {echo>: "given=${typeof given}"}
    """) == {"+a^sub+subtask0": "given=5", "+b": "given=undefined"}


def test_stores_made_inside_of_called_tasks_and_loops_are_seen_afterwards(echoed):
    assert echoed("""
        +a:
          for_each>: {n: [1, 2]}
          _do: {py>: param_steps.put, key: last, value: "${n}"}
        +b: {echo>: "last=${last}"}
    """) == {"+b": "last=2"}


def test_own_parameters_stay_their_own(echoed):
    assert echoed("""
        +a: {x: mine, echo>: "x=${x}"}
        +b: {echo>: "x=${typeof x}"}
    """) == {"+a": "x=mine", "+b": "x=undefined"}


def test_a_groups_handler_sees_what_was_stored_below_and_the_last_error_of_the_file(echoed):
    assert echoed("""
        +g:
          _parallel: true
          +a: {py>: param_steps.put, key: x, value: stored}
          +h:
            +b: {py>: param_steps.put, key: y, value: deep}
            +c: {fail>: second}
          +d: {fail>: first}
          _error:
            +e: {echo>: "${x}=${y}=${error.message}"}
    """) == {"+g^error+e": "stored=deep=first"}


def test_the_last_error_of_the_file_counts_however_deep_it_is_and_whenever_it_came(echoed):
    assert echoed("""
        _error: {echo>: "e=${error.message}"}
        +g:
          _parallel: true
          +h:
            _parallel: true
            +a: {echo>: 1}
            +b: {+x: {echo>: 1}, +y: {fail>: late}, _after: [+a]}
            +c: {fail>: early but last}
          +d: {echo>: 1}
    """) == {"^error": "e=early but last"}


def test_the_error_of_a_handler_comes_after_the_one_that_it_handles(echoed):
    assert echoed("""
        _error: {echo>: "e=${error.message}"}
        +g: {+a: {fail>: first, _error: {fail>: "second after ${error.message}"}}}
    """) == {"^error": "e=second after first"}


def test_what_was_stored_below_wins_over_what_the_handler_exports(echoed):
    assert echoed("""
        +g:
          _error: {_export: {x: own, y: own, error: own}, echo>: "${x}=${y}=${error.message}"}
          +a: {py>: param_steps.put, key: x, value: stored}
          +b: {fail>: no}
    """) == {"+g^error": "stored=own=no"}


def test_handlers_run_from_the_inside_to_the_outside_each_with_the_error(echoed):
    assert list(echoed("""
        _error: {echo>: "root=${error.message}"}
        +g:
          _error: {echo>: "group=${error.message}"}
          +a: {fail>: no, _error: {echo>: "task=${error.message}"}}
    """).items()) == [("+g+a^error", "task=no"), ("+g^error", "group=no"), ("^error", "root=no")]  # fmt: skip


def test_a_try_that_failed_stores_nothing(echoed):
    assert echoed("""
        +g:
          _parallel: true
          +a: {py>: param_steps.fail, value: gone}
          _error: {echo>: "lost=${typeof lost}"}
    """) == {"+g^error": "lost=undefined"}


def test_a_generated_task_that_is_resumed_has_stored_what_it_did(tmp_path):
    engine = Engine(tmp_path)
    engine.write("param_steps.py", STORE)
    run = engine.start_dig("""
        +l:
          loop>: 1
          _do:
            +a: {py>: param_steps.put, key: x, value: stored}
            +b: {fail>: "x is ${x}"}
    """)
    engine.settle()
    run.retry()
    engine.settle()
    assert (run.tries("+a"), run.error("+b")) == ([], "x is stored")
    engine.close()


def test_a_generation_that_was_replaced_has_stored_nothing(echoed):
    assert echoed("""
        +g:
          _retry: {limit: 1, interval: 30}
          +a: {py>: param_steps.put, key: x, value: "${task_name}"}
          +b: {sh>: "test -e marker || { touch marker; exit 1; }"}
        +c: {echo>: "x=${x}"}
    """) == {"+c": "x=+main+g+a"}


def test_a_scheduled_run_knows_the_one_that_the_schedule_started_before_it(tmp_path):
    engine = Engine(tmp_path)
    engine.start_dig(
        'timezone: Asia/Tokyo\nschedule: {daily>: "00:00:00"}\n+a: {echo>: "last=${last_executed_session_time}"}'
    )
    engine.settle()
    for _ in range(2):
        engine.advance(days=1)
        engine.settle()
    with engine.store.read() as tx:
        runs = sorted(list_runs(tx, limit=10), key=lambda run: run.id)
    logs = [Run(engine.store, engine.clock, run.id, tmp_path / "logs").log("+a") for run in runs]
    engine.close()
    # The first one was started by hand, and the second is the first of the schedule.
    assert [log.rpartition("last=")[2].strip() for log in logs] == ["", "", "2026-02-04T00:00:00+09:00"]
