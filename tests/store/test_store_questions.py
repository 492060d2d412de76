"""What tasks ask people: a question is open as long as its task waits, and is answered once."""

from __future__ import annotations

from store_bench import SECOND, flow, node

from headrace.definition import Deferral, Question, Retry
from headrace.handoff import Resume
from headrace.state import answer_event
from headrace.store import RunGraph, answer_question, clear_tasks, list_questions, open_question, wake_due_tasks

ASKED = Question(subject="which?", options=("a", "b"), defaults=("b",), params={"n": 1})


def ask(bench, question=ASKED, timeout=None, **fields):
    """A task that waits for a person."""
    bench.start(flow(node("t", **fields)))
    (task,) = bench.claim(bench.agent())
    deferral = Deferral(question=question, method="go_on", timeout_seconds=timeout)
    bench.end(task, "deferred", deferral=deferral)
    return task


def questions(bench, **chosen):
    with bench.store.read() as tx:
        return list_questions(tx, **chosen)


def answer(bench, row, event=None):
    with bench.store.begin() as tx:
        return answer_question(tx, RunGraph(tx, bench.now), row, event or answer_event(["a"], {}, None, None))


def resume_of(bench, task):
    return bench.claim_requests(bench.agent())[task.key].resume


def test_a_task_goes_on_with_the_answer_and_the_question_is_history(bench):
    task = ask(bench)
    (row,) = questions(bench)
    assert (row.question, row.task, row.workflow, row.due_at) == (ASKED, "t", "w", None)
    with bench.store.read() as tx:
        assert open_question(tx, task.id) == row
    event = answer_event(["a"], {"n": 2}, None, "2026-02-03T00:00:00Z")
    assert answer(bench, row, event)
    assert questions(bench) == []
    (closed,) = questions(bench, with_closed=True)
    assert (closed.outcome, closed.answer, closed.closed_at) == ("answered", event, bench.now)
    assert resume_of(bench, task) == Resume(
        method="go_on", event=event, default=answer_event(["b"], {"n": 1}, None, None)
    )


def test_only_the_first_answer_counts(bench):
    ask(bench)
    (row,) = questions(bench)
    assert answer(bench, row)
    assert not answer(bench, row, answer_event(["b"], {}, None, None))
    (closed,) = questions(bench, with_closed=True)
    assert closed.answer["chosen"] == ["a"]


def test_when_nobody_answers_in_time_the_defaults_count(bench):
    task = ask(bench, timeout=60)
    (row,) = questions(bench)
    assert row.due_at == bench.now + 60 * SECOND
    bench.now += 60 * SECOND
    with bench.store.begin() as tx:
        wake_due_tasks(tx, bench.now, 10)
    (closed,) = questions(bench, with_closed=True)
    assert (closed.outcome, closed.answer) == ("timed_out", None)
    assert not answer(bench, row)
    assert resume_of(bench, task).event == {"chosen": ["b"], "params": {"n": 1}, "by": None, "at": None}


def test_without_defaults_the_task_is_told_that_nobody_answered(bench):
    task = ask(bench, Question(subject="which?", options=("a",)), timeout=60)
    bench.now += 60 * SECOND
    with bench.store.begin() as tx:
        wake_due_tasks(tx, bench.now, 10)
    assert resume_of(bench, task).error.type == "TaskDeferralTimeout"


def test_a_cleared_task_asks_again_and_the_old_question_is_withdrawn(bench):
    task = ask(bench, retry=Retry(limit=1))
    (old,) = questions(bench)
    with bench.store.begin() as tx:
        clear_tasks(tx, task.attempt_id, [task.id], bench.now)
    assert questions(bench) == []
    (again,) = bench.claim(bench.agent())
    bench.end(again, "deferred", deferral=Deferral(question=ASKED, method="go_on"))
    assert not answer(bench, old)
    (new,) = questions(bench)
    assert answer(bench, new)
    outcomes = [row.outcome for row in questions(bench, with_closed=True)]
    assert outcomes == ["answered", "withdrawn"]


def test_lists_are_of_one_attempt_or_of_all_and_come_in_pages(bench):
    first = ask(bench)
    bench.start(flow(node("u"), name="other"), key="r2")
    (other,) = bench.claim(bench.agent())
    bench.end(other, "deferred", deferral=Deferral(question=ASKED, method="go_on"))
    assert [row.key for row in questions(bench)] == ["u", "t"]
    assert [row.key for row in questions(bench, attempt_id=first.attempt_id)] == ["t"]
    (newest,) = questions(bench, limit=1)
    assert [row.key for row in questions(bench, below=newest.id)] == ["t"]
