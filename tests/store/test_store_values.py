"""Named results, and which parameters a task sees."""

from __future__ import annotations

import msgspec
import pytest
from store_bench import flow, group, node

from headrace.definition import Length, Node, Retry
from headrace.store import Elements, RunGraph, claim_tasks, clear_tasks, set_value, task_values


def values(bench, attempt_id: int, key: str, name: str = "return_value"):
    with bench.store.read() as tx:
        return task_values(tx, attempt_id, [key], name)[key]


def test_a_result_is_kept_by_name_and_a_second_one_replaces_it(bench):
    attempt_id = bench.start(flow(node("a")))
    (a,) = bench.claim(bench.agent())
    with bench.store.begin() as tx:
        set_value(tx, a.id, attempt_id, "early", "1", None)
        set_value(tx, a.id, attempt_id, "early", "2", None)
        set_value(tx, a.id, attempt_id, "other", '"x"', None)
    bench.end(a, values={"early": b"3", "return_value": b'{"k": [1]}'}, lengths={"return_value": 1})
    assert bench.values(a.id) == {"early": "3", "other": '"x"', "return_value": '{"k": [1]}'}


def test_instances_give_a_list_in_their_order_without_those_that_have_none(bench):
    expand = Length(op="literal", length=4)
    attempt_id = bench.start(flow(Node(key="m", parent="", kind="mapped", operator="work", expand=expand)))
    claimed = bench.claim(bench.agent())
    for one in reversed(claimed):
        fields = {} if one.map_index == 2 else {"values": {"return_value": str(one.map_index).encode()}}
        bench.end(one, **fields)
    found = values(bench, attempt_id, "m")
    assert (found.is_mapped, found.documents) == (True, ["0", "1", "3"])
    assert found.by_index[3] == "3"


def test_the_length_of_a_result_decides_how_many_instances_there_are(bench):
    expand = Length(op="result", task="a")
    attempt_id = bench.start(
        flow(node("a"), Node(key="m", parent="", kind="mapped", operator="work", upstream=("a",), expand=expand))
    )
    (a,) = bench.claim(bench.agent())
    bench.end(a, values={"return_value": b"[7, 8, 9]"}, lengths={"return_value": 3})
    assert [name for name in bench.states(attempt_id) if "[" in name] == ["m[0]", "m[1]", "m[2]"]


def test_a_new_try_begins_without_the_results_of_the_one_before(bench):
    attempt_id = bench.start(flow(node("a", retry=Retry(limit=1))))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    with bench.store.begin() as tx:
        set_value(tx, a.id, attempt_id, "early", "1", None)
    bench.end(a, "failed")
    assert bench.values(a.id) == {"early": "1"}
    bench.claim(agent_id)
    assert bench.values(a.id) == {}


def test_a_cleared_task_loses_its_results_when_it_runs_again(bench):
    attempt_id = bench.start(flow(node("a")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(a, values={"return_value": b"1"}, store={"x": 1})
    with bench.store.begin() as tx:
        clear_tasks(tx, attempt_id, [a.id], bench.now)
    bench.claim(agent_id)
    assert bench.values(a.id) == {}


# ---- parameters --------------------------------------------------------------------------------------------------


def params_of(bench, agent_id: int, key: str) -> dict:
    return bench.claim_requests(agent_id)[key].params


def test_a_run_overrides_the_defaults_of_its_workflow(bench):
    bench.start(flow(node("a"), params={"x": 1, "y": 1}), params={"y": 2, "z": 3})
    assert params_of(bench, bench.agent(), "a") == {"x": 1, "y": 2, "z": 3}


def test_objects_are_merged_and_everything_else_is_replaced(bench):
    bench.start(
        flow(
            group("g", export={"o": {"a": 2, "b": 2}, "l": [2]}),
            node("g.a", parent="g", export={"o": {"b": 3}, "l": [3]}),
            params={"o": {"a": 1, "c": 1}, "l": [1, 1]},
        )
    )
    assert params_of(bench, bench.agent(), "g.a") == {"o": {"a": 2, "b": 3, "c": 1}, "l": [3]}


def test_an_export_is_never_overridden_by_the_run(bench):
    bench.start(flow(node("a"), export={"x": "export"}), params={"x": "run", "y": "run"})
    assert params_of(bench, bench.agent(), "a") == {"x": "export", "y": "run"}


def test_a_store_reaches_everything_after_it_and_nothing_beside_it(bench):
    bench.start(flow(node("a"), node("beside"), node("b", "a"), node("c", "b")))
    agent_id = bench.agent()
    a, beside = bench.claim(agent_id)
    bench.end(a, store={"x": 1})
    bench.end(beside, store={"y": 1})
    assert params_of(bench, agent_id, "b") == {"x": 1}
    bench.end(next(iter(bench.tasks(a.attempt_id)[key] for key in ("b",))))
    assert params_of(bench, agent_id, "c") == {"x": 1}


def test_at_a_join_the_later_one_in_the_file_wins_whoever_ended_last(bench):
    bench.start(flow(node("a"), node("b"), node("c", "a", "b")))
    agent_id = bench.agent()
    a, b = bench.claim(agent_id)
    bench.end(b, store={"x": "b"})
    bench.end(a, store={"x": "a", "only": "a"})
    assert params_of(bench, agent_id, "c") == {"x": "b", "only": "a"}


def test_a_tasks_own_export_beats_every_store(bench):
    bench.start(flow(node("a"), node("b", "a", export={"x": "export"})))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], store={"x": "store", "y": "store"})
    assert params_of(bench, agent_id, "b") == {"x": "export", "y": "store"}


def test_a_groups_export_beats_stores_before_it_and_loses_to_stores_inside(bench):
    bench.start(
        flow(
            node("a"),
            group("g", "a", export={"x": "export", "z": "export"}),
            node("g.a", parent="g"),
            node("g.b", "g.a", parent="g"),
        )
    )
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], store={"x": "before", "z": "before"})
    (inner,) = bench.claim(agent_id)
    bench.end(inner, store={"x": "inside"})
    assert params_of(bench, agent_id, "g.b") == {"x": "inside", "z": "export"}


def test_stores_inside_a_group_are_seen_after_it(bench):
    bench.start(flow(group("g"), node("g.a", parent="g"), node("b", "g")))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], store={"x": 1})
    assert params_of(bench, agent_id, "b") == {"x": 1}


def test_a_reset_deletes_before_its_store_is_merged(bench):
    bench.start(flow(node("a"), node("b", "a"), node("c", "b")))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], store={"http": {"last": 1, "kept": 1}})
    bench.end(bench.claim(agent_id)[0], reset=("http.last", "http.missing.deep"), store={"http": {"new": 2}})
    assert params_of(bench, agent_id, "c") == {"http": {"kept": 1, "new": 2}}


def test_what_a_task_exports_is_for_what_it_grew_and_nobody_else(bench):
    bench.start(flow(node("a", export={"x": "static"}), node("b", "a")))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(a, export={"x": "result", "y": "result"}, growth=(Node(key="a^sub", operator="work", export={"z": 1}),))
    assert params_of(bench, agent_id, "a^sub") == {"x": "result", "y": "result", "z": 1}
    bench.end(bench.tasks(a.attempt_id)["a^sub"])
    assert params_of(bench, agent_id, "b") == {}


def test_grown_tasks_see_the_exports_above_them_even_when_nobody_stored_anything(bench):
    bench.start(flow(group("g", export={"x": 1}), node("g.a", parent="g", export={"y": 2})))
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(
        a, growth=(Node(key="g.a^sub", kind="group", export={"z": 3}), Node(key="s", parent="g.a^sub", operator="w"))
    )
    assert params_of(bench, agent_id, "s") == {"x": 1, "y": 2, "z": 3}


def test_siblings_do_not_change_each_others_parameters(bench):
    bench.start(flow(node("a", export={"o": {"x": 1}}), node("b"), export={"o": {"y": 1}}))
    requests = bench.claim_requests(bench.agent())
    assert requests["a"].params == {"o": {"y": 1, "x": 1}}
    assert requests["b"].params == {"o": {"y": 1}}


def test_a_store_of_a_failed_try_is_not_seen(bench):
    bench.start(flow(node("a"), node("b", "a", trigger_rule="all_done")))
    agent_id = bench.agent()
    bench.end(bench.claim(agent_id)[0], "failed")
    assert params_of(bench, agent_id, "b") == {}


@pytest.mark.parametrize(
    ("document", "length", "answers"),
    [
        (b"[7, [8]]", 2, [{"element": 7}, {"element": [8]}]),
        (b'{"a": 1, "b": null}', 2, [{"pair": ["a", 1]}, {"pair": ["b", None]}]),
        (b'{"__type": "set", "__value": [1, 2]}', 2, [{"whole": {"__type": "set", "__value": [1, 2]}}] * 2),
    ],
)
def test_each_instance_is_told_its_own_element(bench, document, length, answers):
    expand = Length(op="result", task="a")
    bench.start(
        flow(node("a"), Node(key="m", parent="", kind="mapped", operator="work", upstream=("a",), expand=expand))
    )
    agent_id = bench.agent()
    (a,) = bench.claim(agent_id)
    bench.end(a, values={"return_value": document}, lengths={"return_value": length})
    with bench.store.begin() as tx:
        graph = RunGraph(tx, bench.now)
        claims = claim_tasks(tx, graph, agent_id, "default", 100)
        requests = bench.requests.build(tx, claims, {}, 5.0)
    assert [msgspec.json.decode(request.elements["a"]) for request in requests] == answers


def test_an_instance_mapped_over_instances_is_told_the_result_of_its_own(bench):
    first = Node(key="m", parent="", kind="mapped", operator="work", expand=Length(op="literal", length=3))
    second = Node(
        key="n", parent="", kind="mapped", operator="work", upstream=("m",), expand=Length(op="result", task="m")
    )
    attempt_id = bench.start(flow(first, second))
    agent_id = bench.agent()
    for one in bench.claim(agent_id):
        bench.end(one, values={} if one.map_index == 1 else {"return_value": str(one.map_index).encode()})
    with bench.store.begin() as tx:
        found = Elements().elements(tx, attempt_id, "m", [0, 1, 2])
    assert {index: msgspec.json.decode(one) for index, one in found.items()} == {0: {"element": 0}, 1: {"element": 2}}
