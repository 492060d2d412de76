"""Tasks that wait for a person: choosing, approving, filling in, branching."""

from __future__ import annotations

import pytest

from headrace.actions.questions import answer, show_questions
from headrace.actions.why import why
from headrace.definition import Person
from headrace.errors import HeadraceError

HEAD = """
from datetime import timedelta
from airflow.providers.standard.operators.hitl import (
    ApprovalOperator, HITLBranchOperator, HITLEntryOperator, HITLOperator,
)
from airflow.sdk import DAG, BaseNotifier, Param, task
"""


def dag(body, dag_id="flow"):
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{HEAD}\nwith DAG({dag_id!r}, schedule=None):\n{indented}\n"


def start(engine, body, **fields):
    run = engine.start_dag(dag(body), **fields)
    engine.settle()
    return run


def reply(engine, task, *chosen, by="ann", **params):
    answer(engine.store, engine.clock, "latest", task, chosen, params, Person(id=by))
    engine.settle()


def test_a_choice_with_a_form_becomes_the_result(engine):
    run = start(
        engine,
        """
HITLOperator(task_id="ask", subject="How many of {{ ds }}?", options=["few", "many"], multiple=True,
             params={"n": Param(3, type="integer", minimum=1), "why": Param(type="string")}, body="*really*")
""",
        session="2026-01-01",
    )
    assert run.states() == {"ask": "deferred"}
    (row,) = show_questions(engine.store)
    assert (row.question.subject, row.question.body) == ("How many of 2026-01-01?", "*really*")
    reply(engine, "ask", "many", "few", n=5, why="so")
    assert run.story("ask") == [
        "scheduled",
        "queued",
        "running",
        "deferred",
        "scheduled",
        "queued",
        "running",
        "success",
    ]
    assert run.value("ask") | {"responded_at": None} == {
        "chosen_options": ["many", "few"],
        "params_input": {"n": 5, "why": "so"},
        "responded_at": None,
        "responded_by_user": {"id": "ann", "name": "ann"},
    }
    assert "answered by `ann`: many, few" in run.log("ask")


@pytest.mark.parametrize(
    ("chosen", "params", "by", "sentence"),
    [
        ([], {}, "ann", "the question has several options: `few`, `many`"),
        (["fw"], {}, "ann", "the question has no option `fw`"),
        (["few", "many"], {}, "ann", "expected one option, got 2"),
        (["few"], {"m": 1}, "ann", "the question does not ask for `m`"),
        (["few"], {"n": "x"}, "ann", "`n` is not valid: expected integer, got: 'x'"),
        (["few"], {}, "ann", "`n` is not valid: it has no value"),
        (["few"], {"n": 1}, "bob", "`bob` may not answer: `Ann` may"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_and_the_task_waits_on(engine, chosen, params, by, sentence):
    run = start(
        engine,
        """
HITLOperator(task_id="ask", subject="?", options=["few", "many"], params={"n": Param(type="integer")},
             assigned_users={"id": "ann", "name": "Ann"})
""",
    )
    with pytest.raises(HeadraceError) as error:
        reply(engine, "ask", *chosen, by=by, **params)
    assert error.value.message == sentence
    assert run.states() == {"ask": "deferred"}
    reply(engine, "ask", "few", by="Ann", n=1)
    assert run.state == "success"


def test_what_asks_nothing_cannot_be_answered(engine):
    start(engine, 'HITLEntryOperator(task_id="ask", subject="?")')
    reply(engine, "ask")
    with pytest.raises(HeadraceError, match="task `ask` of run 1 asks nothing: it is `success`"):
        reply(engine, "ask")


def test_nobody_in_time_means_the_default_or_a_failure(engine):
    run = start(
        engine,
        """
HITLOperator(task_id="default", subject="?", options=["a", "b"], defaults="b", response_timeout=timedelta(minutes=5))
HITLOperator(task_id="none", subject="?", options=["a", "b"], response_timeout=timedelta(minutes=5))
""",
    )
    engine.advance(299)
    engine.settle()
    assert set(run.states().values()) == {"deferred"}
    engine.advance(1)
    engine.settle()
    assert run.states() == {"default": "success", "none": "failed"}
    assert run.value("default")["chosen_options"] == ["b"]
    assert run.value("default")["responded_by_user"] is None
    assert run.error("none") == "nobody has answered in time, and there is no default"


def test_a_rejection_skips_what_follows_or_fails(engine):
    run = start(
        engine,
        """
@task
def one(): ...
@task(trigger_rule="all_done")
def last(): ...
ApprovalOperator(task_id="mild", subject="ok?") >> one() >> last()
ApprovalOperator(task_id="strict", subject="ok?", fail_on_reject=True)
ApprovalOperator(task_id="wide", subject="ok?", ignore_downstream_trigger_rules=True) >> one.override(
    task_id="two")() >> last.override(task_id="end")()
ApprovalOperator(task_id="fine", subject="ok?") >> one.override(task_id="three")()
""",
    )
    for name in ("mild", "strict", "wide"):
        reply(engine, name, "Reject")
    reply(engine, "fine", "Approve")
    assert run.states() == {
        "mild": "success", "one": "skipped", "last": "success", "strict": "failed", "wide": "success",
        "two": "skipped", "end": "skipped", "fine": "success", "three": "success",
    }  # fmt: skip
    assert run.error("strict") == "it was rejected"


def test_a_person_chooses_the_branch(engine):
    run = start(
        engine,
        """
@task
def work(): ...
ask = HITLBranchOperator(task_id="ask", subject="?", options=["one", "two", "three"], multiple=True,
                         options_mapping={"one": "first"})
ask >> [work.override(task_id=name)() for name in ("first", "two", "three")]
""",
    )
    reply(engine, "ask", "one", "three")
    assert run.states() == {"ask": "success", "first": "success", "two": "skipped", "three": "success"}


def test_notifiers_are_told_what_is_asked_and_the_instances_of_a_mapped_task_ask_each(engine):
    run = start(
        engine,
        """
class Tell(BaseNotifier):
    template_fields = ("text",)
    def __init__(self, text):
        self.text = text
    def notify(self, context):
        link = HITLOperator.generate_link_to_ui_from_context(context=context, base_url="http://here:8080/x")
        print(self.text, link)
HITLEntryOperator.partial(task_id="ask", notifiers=[Tell("asks {{ task.subject }}")]).expand(subject=["a", "b"])
""",
    )
    assert "asks b http://here:8080/dags/flow/runs/" in run.log("ask[1]")
    assert run.log("ask[1]").count("required_actions?map_index=1") == 1
    reply(engine, "ask[1]")
    assert run.states() == {"ask": "planned", "ask[0]": "deferred", "ask[1]": "success"}


def test_why_says_who_is_waited_for_and_a_canceled_run_asks_no_longer(engine):
    run = start(engine, 'HITLOperator(task_id="ask", subject="Ready? ", options=["yes"])')
    (reason,) = why(engine.store, engine.clock, "latest", "ask").reasons
    assert "waits since 2026" in reason.sentence and "for the answer of a person to `Ready?`" in reason.sentence
    assert (reason.kind, reason.hint) == ("question", "`headrace answer 1 ask OPTION` answers it")
    run.cancel()
    engine.settle()
    assert run.states() == {"ask": "canceled"}
    assert [row.outcome for row in show_questions(engine.store, with_closed=True)] == ["withdrawn"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ('HITLOperator(task_id="t", subject="", options=[])', "to name at least one, got none"),
        (
            'HITLOperator(task_id="t", subject="", options=["a"], defaults="b")',
            "to be among its options ['a'], got: 'b'",
        ),
        ('HITLOperator(task_id="t", subject="", options=["a", "b"], defaults=["a", "b"])', "has several defaults"),
        ('HITLOperator(task_id="t", subject="", options=["a"], params={"_options": 1})', "the name is reserved"),
        ('ApprovalOperator(task_id="t", subject="", options=["a"])', "has its own `options`"),
        ('HITLBranchOperator(task_id="t", subject="", options=["a"], options_mapping={"b": "c"})', "got: 'b'"),
    ],
)
def test_mistakes_are_told_when_the_file_is_loaded(engine, call, sentence):
    with pytest.raises(HeadraceError) as error:
        engine.start_dag(dag(call))
    assert sentence in str(error.value)
