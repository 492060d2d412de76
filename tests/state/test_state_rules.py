"""The thirteen trigger rules over every small tally, against a second statement of the table."""

from __future__ import annotations

import itertools

import pytest
from memory_graph import start, task

from headrace.definition import TRIGGER_RULES
from headrace.state import RULES, Tally, Verdict, decide

# rule: (first match of these, then the condition to run). n expected, s success, k skipped, f failed,
# u upstream_failed, r removed, d ended; i a mapped index; e setups, es and ek: succeeded and skipped ones of them.
TABLE = {
    "all_success": (
        [("f or u", "upstream_failed"), ("k", "skipped"), ("r and s and i >= s", "removed")],
        "n - s - r <= 0",
    ),
    "all_failed": ([("s or k", "skipped")], "n - f - u - r <= 0"),
    "all_done": ([], "d >= n"),
    "all_done_min_one_success": (
        [("k > 0", "skipped"), ("d >= n and s == 0", "upstream_failed")],
        "k == 0 and s + f + u >= n - r and s > 0",
    ),
    "all_skipped": ([("s or f or u", "skipped")], "k == n"),
    "one_success": ([("d >= n and k == d", "skipped"), ("d >= n and s == 0", "upstream_failed")], "s > 0"),
    "one_failed": ([("d >= n and not (f or u)", "skipped")], "f or u"),
    "one_done": ([("d >= n and not (s or f)", "skipped")], "s + f > 0"),
    "none_failed": ([("f or u", "upstream_failed")], "n - s - k - r <= 0"),
    "none_failed_min_one_success": (
        [("f or u", "upstream_failed"), ("k == n", "skipped"), ("d >= n and s == 0", "upstream_failed")],
        "n - s - k - r <= 0 and s > 0",
    ),
    "none_skipped": ([("k", "skipped")], "d >= n and k == 0"),
    "always": ([], "True"),
    "all_done_setup_success": (
        [("d >= n and e and ek == e", "skipped"), ("d >= n and e and not es", "upstream_failed")],
        "d >= n and (not e or es >= 1)",
    ),
}


def expected_verdict(rule: str, tally: Tally) -> str:
    if tally.expected == 0:
        return "run"
    names = dict(zip(["n", "s", "k", "f", "u", "r", "e", "es", "ek", "i"], tally, strict=True)) | {"d": tally.ended}
    marks, runs = TABLE[rule]
    for condition, state in marks:
        if eval(condition, names):
            return state
    return "run" if eval(runs, names) else "wait"


def small_tallies(largest: int):
    for counts in itertools.product(range(largest + 1), repeat=5):
        for expected in range(sum(counts), largest + 1):
            yield from _with_setups(Tally(expected, *counts))


def _with_setups(tally: Tally):
    for map_index in (-1, 0, 2):
        yield tally._replace(map_index=map_index)
    for setups in range(1, tally.expected + 1):
        for succeeded in range(min(setups, tally.succeeded) + 1):
            for skipped in range(min(setups - succeeded, tally.skipped) + 1):
                yield tally._replace(setups=setups, setups_succeeded=succeeded, setups_skipped=skipped)


def test_every_rule_is_in_the_definition_in_the_code_and_in_the_table():
    assert set(TABLE) == set(RULES) == set(TRIGGER_RULES)


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_rule_decides_every_small_tally_as_the_table_says(rule):
    for tally in small_tallies(largest=4):
        assert decide(rule, tally).value == expected_verdict(rule, tally), tally


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_no_rule_waits_once_everything_has_ended(rule):
    ended = [tally for tally in small_tallies(largest=4) if tally.is_done and not tally.removed]
    assert all(decide(rule, tally) is not Verdict.WAIT for tally in ended)


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_a_task_that_waits_for_nothing_runs_under_every_rule(rule):
    assert decide(rule, Tally(0)) is Verdict.RUN


def test_all_success_is_marked_upstream_failed_while_other_upstream_tasks_still_run():
    run = start(task("a"), task("b"), task("c", "a", "b"))
    run.claim("b")
    run.fail("a")
    assert run.states() == {"a": "failed", "b": "running", "c": "upstream_failed"}


@pytest.mark.parametrize(
    ("rule", "outcome", "expected"),
    [
        ("one_success", "success", "scheduled"),
        ("one_failed", "failed", "scheduled"),
        ("one_done", "success", "scheduled"),
        ("one_done", "failed", "scheduled"),
        ("one_done", "skipped", "none"),
        ("none_failed", "success", "none"),
        ("all_done", "success", "none"),
        ("none_skipped", "skipped", "skipped"),
        ("all_failed", "success", "skipped"),
    ],
)
def test_rule_waits_or_not_after_the_first_of_two_upstream_tasks(rule, outcome, expected):
    run = start(task("a"), task("b"), task("c", "a", "b", trigger_rule=rule))
    run.end("a", outcome)
    assert run.state("c") == expected


@pytest.mark.parametrize(("rule", "expected"), [("one_failed", "scheduled"), ("all_failed", "scheduled")])
def test_upstream_failed_counts_as_a_failure(rule, expected):
    run = start(task("a"), task("b", "a"), task("c", "b", trigger_rule=rule))
    run.fail("a")
    assert run.states() == {"a": "failed", "b": "upstream_failed", "c": expected}


@pytest.mark.parametrize(
    ("rule", "expected"), [("none_failed", "scheduled"), ("none_failed_min_one_success", "skipped")]
)
def test_all_skipped_upstream_tasks_are_fine_for_none_failed_only(rule, expected):
    run = start(task("a"), task("b"), task("c", "a", "b", trigger_rule=rule))
    run.skip("a", "b")
    assert run.state("c") == expected


def test_always_runs_at_once():
    run = start(task("a"), task("b", "a", trigger_rule="always"))
    assert run.state("b") == "scheduled"


def test_a_teardown_runs_after_a_failure_if_its_setup_succeeded():
    run = start(
        task("setup"),
        task("work", "setup"),
        task("teardown", "setup", "work", setups=("setup",), trigger_rule="all_done_setup_success"),
    )
    run.succeed("setup")
    run.fail("work")
    assert run.state("teardown") == "scheduled"


@pytest.mark.parametrize(("outcome", "expected"), [("skipped", "skipped"), ("failed", "upstream_failed")])
def test_a_teardown_shares_the_fate_of_its_setup(outcome, expected):
    run = start(
        task("setup"),
        task("work", "setup"),
        task("teardown", "setup", "work", setups=("setup",), trigger_rule="all_done_setup_success"),
    )
    run.end("setup", outcome)
    assert run.state("teardown") == expected
