"""`${…}`: where expressions begin and end, what they see, what their results become, and what stops them."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.template.javascript import Evaluator, Expression, ExpressionError, merge, split

PARAMS = {"x": "5", "n": 3, "list": [1, "a"], "map": {"k": "v"}, "nothing": None, "yes": True}
evaluator = Evaluator()


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("${x}", "5"),
        ("a${x}b${ n }c", "a5b3c"),
        ("${n + 1}", "4"),
        ("${1}", "1"),
        ("${true}", "true"),
        ("${[1]}", "[1]"),
        ("${map}", '{"k":"v"}'),
        ("${map.k}", "v"),
        ("${list[1]}", "a"),
        ("${null}${nothing}${undefined}", ""),
        ("${map.missing}", ""),
        ("a${}b", "ab"),
        ("${this.missing}", ""),
        ("${typeof missing}", "undefined"),
        ("${function(){}}", ""),
        ("${list.map(function(v){return v+'!'})}", '["1!","a!"]'),
        ("${'}'}${\"{\"}", "}{"),
        ("${x.replace(/'/g, '')} it's", "5 it's"),
        ("${`a${n}b`}", "a3b"),
        ("${n // a comment\n}", "3"),
        ("${print('a', 1)}", "a1"),
        ("${n > 2 ? 'big' : 'small'}", "big"),
        ("${JSON.stringify(map)}", '{"k":"v"}'),
        ("$", "$"),
        ("$$", "$"),
        ("$$$", "$$"),
        ("$HOME $$x", "$HOME $x"),
        ("$${x}", "$5"),
        ("$$${x}", "$5"),
        ("${x", "${x"),
        ("${ {a: 1 ", "${ {a: 1 "),
        ("${x ${n}", "${x 3"),
        ("${secret:a.b}", "${secret:a.b}"),
        ("${secret:${map.k}}", "${secret:v}"),
        ("{x}", "{x}"),
        ("é${'\\u00e9'}😀${'😀'.length}", "éé😀2"),
        ("${'a\\u0000b'}", "a\0b"),
        ("${'\\ud83d'}", "\ufffd"),
    ],
)
def test_one_text(template, text):
    assert evaluator.render(template, PARAMS) == text


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("${missing}", "could not evaluate `${missing}` of `text:1`: ReferenceError: missing is not defined"),
        ("${missing.x}", "ReferenceError: missing is not defined"),
        ("${map.missing.x}", "TypeError: "),
        ("${ }", "SyntaxError: "),
        ("${x y}", "SyntaxError: "),
        ("${(function(){ throw new Error('mine') })()}", "Error: mine"),
        ("${(function f(){ return f() })()}", "RangeError: "),
        ("${require('fs')}", "ReferenceError: require is not defined"),
    ],
)
def test_expressions_that_fail(template, message):
    with pytest.raises(ExpressionError) as caught:
        evaluator.render(template, PARAMS)
    assert message in caught.value.message


def test_a_misspelt_name_is_suggested():
    with pytest.raises(ExpressionError) as caught:
        evaluator.render("${fruits}", {"fruit": 1})
    assert caught.value.hint == "did you mean `fruit`?"


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        ("(function(){ while (true) {} })()", "it took longer than 0.05 s"),
        ("/(a+)+$/.test('a'.repeat(60) + 'b')", "it took longer than 0.05 s"),
        ("'x'.repeat(5e8)", "it needed more than 8 MB of memory"),
        (
            "(function(){ Math.a = []; while (true) Math.a.push('x' + Math.a.length) })()",
            "it needed more than 8 MB of memory",
        ),
    ],
)
def test_limits_and_life_after_them(expression, limit):
    limited = Evaluator(time_limit_seconds=0.05 if "longer" in limit else 5.0, memory_limit_bytes=8 * 1024 * 1024)
    with pytest.raises(ExpressionError, match=limit):
        limited.render(f"${{{expression}}}", {})
    assert limited.render("${'x'.repeat(4e6).length}", {}) == "4000000"


def test_an_assignment_leaves_nothing_behind():
    assert evaluator.render("${leak = 5}${typeof leak}", {}) == "5undefined"


def test_earlier_keys_are_seen_evaluated_and_later_ones_raw():
    found = evaluator.evaluate({"b": "x", "a": "${b}y", "late": "${later}", "later": "${b}"})
    assert found == {"b": "x", "a": "xy", "late": "${b}", "later": "x"}


def test_nested_values_see_evaluated_outer_keys_and_their_own_earlier_siblings():
    found = evaluator.evaluate({"a": "1", "d": "${a}-${a}", "f": {"g": "${d}", "h": "${g}!", "deep": [{"i": "${d}"}]}})
    assert found["f"] == {"g": "1-1", "h": "1-1!", "deep": [{"i": "1-1"}]}


def test_own_parameters_see_inherited_ones_and_win():
    found = evaluator.evaluate({"a": "${x}", "x": "1"}, {"_command": "${x}${a}", "x": "2", "y": "${x}"})
    # `x` keeps its inherited position but has its own value when its turn comes.
    assert found == {"a": "1", "x": "2", "_command": "21", "y": "2"}


def test_own_parameters_are_not_seen_before_their_turn():
    with pytest.raises(ExpressionError, match="`_command`: ReferenceError: late is not defined"):
        evaluator.evaluate({}, {"_command": "${late}", "late": 1})


def test_bodies_stay_raw_and_handlers_are_removed():
    body = {"sh>": "${undefined_here}"}
    found = evaluator.evaluate({}, {"_do": body, "_else_do": body, "_check": body, "_error": body, "m": {"_do": body}})
    assert found == {"_do": body, "_else_do": body, "m": {"_do": body}}


def test_one_undefined_export_fails_whoever_inherits_it():
    with pytest.raises(ExpressionError, match="`${nope}` of `unrelated.list\\[1\\]`".replace("$", r"\$")):
        evaluator.evaluate({"unrelated": {"list": [1, "${nope}"]}}, {"_command": "hi"})


def test_maps_grow_together():
    assert merge({"a": {"x": 1, "y": [1]}, "b": 1}, {"a": {"y": [2], "z": 3}}) == {
        "a": {"x": 1, "y": [2], "z": 3},
        "b": 1,
    }


def test_a_parameter_may_have_any_name():
    assert evaluator.render("${this['__proto__']}${this['a-b']}", {"__proto__": "p", "a-b": "q"}) == "pq"


def test_an_expression_with_nothing_in_it_is_nothing():
    assert split("a${}b${x}${}") == ["ab", Expression("x"), ""]


@given(st.text(alphabet="ab ${}'\"\\\n", max_size=30))
def test_no_literal_text_is_lost(template):
    """Putting the parts together again gives the template, but for dollars that were doubled and empty expressions."""
    assume("${}" not in template)
    parts = split(template)
    again = "".join(part if isinstance(part, str) else f"${{{part.source}}}" for part in parts)
    assert again.replace("$", "") == template.replace("$", "")
    if "$$" not in template:
        assert again == template
    assert all(isinstance(part, str) for part in parts[::2])
    assert all(isinstance(part, Expression) for part in parts[1::2])


@given(st.text(), st.text())
def test_values_are_inserted_unchanged(value, around):
    around = around.replace("$", "")
    assert evaluator.render(f"{around}${{v}}{around}", {"v": value}) == f"{around}{value}{around}"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text("ab{}$", max_size=4), st.lists, max_leaves=6))
def test_evaluation_keeps_everything_but_texts(value):
    safe = {"key": value, "map": {"k": value}}
    try:
        found = evaluator.evaluate(safe)
    except ExpressionError:
        return
    assert shape(found) == shape(safe)


def shape(value):
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return str if isinstance(value, str) else value


def test_two_hundred_parameters_and_twenty_expressions_take_less_than_five_milliseconds():
    params: dict[str, object] = {f"p{n}": {"number": n, "list": [1, 2]} if n % 2 else f"text {n}" for n in range(190)}
    params |= {f"made{n}": f"${{p2}} and ${{p{2 * n + 1}.number + 1}}" for n in range(5)}
    local = {f"own{n}": "${made1} and ${p1.list.map(function (x) { return x * 2 })}" for n in range(5)}
    evaluator.evaluate(params, local)
    took = []
    for _ in range(20):
        began = time.thread_time()
        evaluated = evaluator.evaluate(params, local)
        took.append(time.thread_time() - began)
    assert evaluated["own4"] == "text 2 and 4 and [2,4]"
    assert min(took) < 0.005
