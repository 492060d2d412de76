"""How often a group is tried may be a parameter: it is evaluated when the group has failed."""

from __future__ import annotations

import pytest

from headrace.testing.engine import Engine

FAILS_UNTIL = (
    "sh>: \"echo >> ${task_name.replace(/.*[+]/, '')}; test $(wc -l < ${task_name.replace(/.*[+]/, '')}) -gt %d\""
)


@pytest.fixture
def engine(prepared_url, tmp_path):
    engine = Engine(tmp_path, prepared_url)
    yield engine
    engine.close()


def group(retry: str, failures: int, more: str = "") -> str:
    return f"""
+g:
  _retry: {retry}
  +a: {{echo>: again}}
  +b: {{{FAILS_UNTIL % failures}}}
{more}"""


def test_a_group_is_tried_as_often_as_a_parameter_says(engine):
    run = engine.start_dig(group("${n}", 2), params={"n": 2})
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("success", 3)
    assert set(run.states()) == {"+main+g", "+main+g+a", "+main+g+b"}, "answered questions are gone"


def test_when_its_tries_are_used_up_its_handlers_run(engine):
    run = engine.start_dig(group("${n}", 9, "  _error: {echo>: '${error.message}'}\n"), params={"n": 1})
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("failed", 2)
    assert run.states()["+main+g^error"] == "success"


def test_waits_may_be_evaluated_too(engine):
    retry = "{limit: '${n}', interval: '${n * 10}', interval_type: exponential}"
    run = engine.start_dig(group(retry, 2), params={"n": 2})
    engine.settle()
    stages = []
    for seconds in (19, 1, 39, 1):
        engine.advance(seconds=seconds)
        engine.settle()
        stages.append(run.task("+g").try_number)
    assert (stages, run.state) == ([1, 2, 2, 3], "success")


def test_it_sees_exports_and_what_was_stored_before_the_group(engine):
    engine.write("counts.py", 'import digdag\ndef put():\n    digdag.env.store({"n": 1})\n')
    text = "+first: {py>: counts.put}\n" + group("${n + m}", 2, "  _export: {m: 1}\n")
    run = engine.start_dig(text)
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("success", 3)


def test_in_a_loop_each_round_has_its_own(engine):
    run = engine.start_dig("""
        +loop:
          for_each>: {n: [0, 1, 2]}
          _parallel: true
          _do:
            _retry: ${n}
            +x: {fail>: no}
    """)
    engine.settle()
    tries = {
        name[-1]: run.task(name).try_number
        for name in run.states()
        if "+for-" in name and name[-2:] in ("=0", "=1", "=2")
    }
    assert list(tries.values()) == [1, 2, 3]


def test_a_workflow_asks_too(engine):
    run = engine.start_dig("_retry: ${n}\n+b: {" + FAILS_UNTIL % 1 + "}", params={"n": 1})
    engine.settle()
    assert run.state == "success"


def test_a_question_that_cannot_be_answered_is_seen_and_the_group_fails(engine):
    run = engine.start_dig(group("${nobody}", 9))
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("failed", 1)
    assert run.states()["+main+g^retry"] == "failed"
    assert "nobody" in run.error("+g^retry")


def test_an_answer_that_is_no_number_is_named(engine):
    run = engine.start_dig(group("${n}", 9), params={"n": "often"})
    engine.settle()
    assert run.error("+g^retry") == "expected parameter `_retry>` to be a whole number, got: `often`"


def test_a_clear_grants_the_whole_number_again(engine):
    run = engine.start_dig(group("${n}", 5), params={"n": 2})
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("failed", 3)
    run.clear("+g")
    engine.settle()
    assert (run.state, run.task("+g").try_number) == ("success", 6)


def test_no_file_can_name_the_operator_that_answers(engine):
    with pytest.raises(Exception, match="unknown operator `_retry>`"):
        engine.start_dig("+a: {_retry>: 3}")
