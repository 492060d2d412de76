"""Which parameters a task sees, as a function of the tree, its edges and what each task left."""

from __future__ import annotations

from headrace.definition import Node
from headrace.state import Layers, Left, Position


def layers(positions, left=None, exports=None, base=(), looking_back=()):
    def node_of(task_id):
        return Node(key=str(task_id), export=(exports or {}).get(task_id, {}), sees_siblings=task_id in looking_back)

    return Layers(base, positions, left or {}, node_of)


def stored(**params):
    return Left(store=params)


CHAIN = {1: Position(None), 2: Position(1), 3: Position(1, (2,)), 4: Position(1, (3,))}


def test_stores_travel_along_edges_however_far():
    found = layers(CHAIN, {2: stored(x=2, y=2), 3: stored(x=3)})
    assert [found.visible(task_id) for task_id in (2, 3, 4)] == [{}, {"x": 2, "y": 2}, {"x": 3, "y": 2}]


def test_a_reset_deletes_what_came_before_and_nothing_of_its_own():
    left = {2: stored(http={"last": 1, "kept": 1}), 3: Left(store={"http": {"new": 1}}, reset=("http.last", "no.such"))}
    assert layers(CHAIN, left).visible(4) == {"http": {"kept": 1, "new": 1}}
    assert layers(CHAIN, left).visible(3) == {"http": {"last": 1, "kept": 1}}


def test_what_is_below_an_earlier_task_counts_as_well_in_file_order():
    positions = {1: Position(None), 2: Position(1), 3: Position(2), 4: Position(2), 5: Position(1, (2,))}
    assert layers(positions, {4: stored(x=4), 3: stored(x=3), 2: stored(x=2)}).visible(5) == {"x": 4}


def test_what_a_task_generated_is_in_its_place_though_it_is_younger():
    positions = {
        1: Position(None),
        2: Position(1),
        3: Position(2),
        4: Position(2),
        5: Position(1, (2,)),
        6: Position(3),
    }
    assert layers(positions, {6: stored(x="generated"), 4: stored(x="written")}).visible(5) == {"x": "written"}


def test_what_an_upstream_task_waits_for_comes_right_before_it():
    positions = {1: Position(None), 2: Position(1), 3: Position(1), 4: Position(1, (2,)), 5: Position(1, (3, 4))}
    assert layers(positions, {2: stored(x=2), 3: stored(x=3)}).visible(5) == {"x": 2}


def test_exports_go_down_and_stores_of_the_parent_win_over_them():
    positions = {1: Position(None), 2: Position(1), 3: Position(2)}
    left = {2: Left(exported={"a": "exported", "b": "exported"}, store={"b": "stored"})}
    found = layers(positions, left, exports={1: {"a": 1, "c": 1}, 3: {"c": 3}}, base=({"c": 0, "d": 0}, {"d": 1}))
    assert found.visible(2) == {"a": 1, "c": 1, "d": 1}
    assert found.visible(3) == {"a": "exported", "b": "stored", "c": 3, "d": 1}


def test_one_that_looks_back_sees_all_siblings_before_it():
    positions = {1: Position(None), 2: Position(1), 3: Position(1), 4: Position(1), 5: Position(4)}
    left = {2: stored(x=2), 3: stored(y=3), 5: stored(z=5)}
    assert layers(positions, left, looking_back={4}).visible(5) == {"x": 2, "y": 3}
    assert layers(positions, left).visible(5) == {}


def test_one_that_looks_back_sees_stores_over_its_own_export():
    positions = {1: Position(None), 2: Position(1), 3: Position(1)}
    found = layers(positions, {2: stored(x=2)}, exports={3: {"x": 3, "y": 3}}, looking_back={3})
    assert found.visible(3) == {"x": 2, "y": 3}


def test_questions_do_not_disturb_each_other():
    left = {2: stored(m={"a": 1}), 3: Left(reset=("m.a",), store={"m": {"b": 1}})}
    found = layers(CHAIN, left, base=({"m": {"c": 1}},))
    for _ in range(2):
        assert found.visible(4) == {"m": {"c": 1, "b": 1}}
        assert found.visible(3) == {"m": {"c": 1, "a": 1}}


def test_what_was_left_by_a_task_that_is_gone_is_not_seen():
    assert layers({1: Position(None), 3: Position(1, (2,))}, {2: stored(x=1)}).visible(3) == {}
