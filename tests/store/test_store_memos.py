"""What tasks and assets keep beyond a try."""

from __future__ import annotations

from store_bench import SECOND, flow, node

from headrace.definition import AssetUse
from headrace.store import (
    MemoOwner,
    asset_owner,
    delete_memos,
    forget_expired_memos,
    get_memo,
    list_memos,
    save_asset_uses,
    set_memo,
)

TASK = MemoOwner("task", 1, "a", 0)


def keep(bench, owner, name, document, expires_at=None):
    with bench.store.begin() as tx:
        set_memo(tx, owner, name, document, bench.now, expires_at)


def names(bench, owner):
    with bench.store.read() as tx:
        return [row.name for row in list_memos(tx, owner, bench.now)]


def test_a_memo_is_replaced_and_belongs_to_one_instance_of_one_run(bench):
    keep(bench, TASK, "x", "1")
    keep(bench, TASK, "x", "2")
    others = [MemoOwner("task", 1, "a", 1), MemoOwner("task", 2, "a", 0), MemoOwner("task", 1, "b", 0)]
    with bench.store.read() as tx:
        assert get_memo(tx, TASK, "x", bench.now) == "2"
        assert [get_memo(tx, other, "x", bench.now) for other in [*others, MemoOwner("asset", 1)]] == [None] * 4


def test_deleting_one_leaves_the_others_and_deleting_all_leaves_other_owners(bench):
    other = MemoOwner("task", 1, "a", 1)
    for owner in (TASK, other):
        keep(bench, owner, "x", "1")
        keep(bench, owner, "y", "1")
    with bench.store.begin() as tx:
        assert delete_memos(tx, TASK, "x") == 1
        assert delete_memos(tx, TASK, "missing") == 0
    assert names(bench, TASK) == ["y"]
    with bench.store.begin() as tx:
        assert delete_memos(tx, TASK) == 1
    assert (names(bench, TASK), names(bench, other)) == ([], ["x", "y"])


def test_what_has_expired_is_not_seen_and_then_forgotten(bench):
    keep(bench, TASK, "short", "1", bench.now + SECOND)
    keep(bench, TASK, "long", "1")
    assert names(bench, TASK) == ["long", "short"]
    bench.now += SECOND
    assert names(bench, TASK) == ["long"]
    with bench.store.begin() as tx:
        assert get_memo(tx, TASK, "short", bench.now) is None
        assert forget_expired_memos(tx, bench.now) == 1
        assert forget_expired_memos(tx, bench.now) == 0


def test_an_asset_is_found_by_its_name_before_its_uri(bench):
    uses = (
        AssetUse(name="orders", role="outlet", task="a", uri="s3://orders"),
        AssetUse(name="s3://orders", role="outlet", task="a", uri="s3://other"),
        AssetUse(name="s3://sales", role="inlet", task="a"),
        AssetUse(name="sales", role="outlet", task="a", uri="s3://sales"),
    )
    (workflow_id,) = bench.save(flow(node("a")))
    with bench.store.begin() as tx:
        save_asset_uses(tx, workflow_id, uses, bench.now)
    with bench.store.read() as tx:
        by_uri = asset_owner(tx, "s3://sales")
        assert by_uri is not None and by_uri == asset_owner(tx, "sales")
        assert asset_owner(tx, "s3://orders") != asset_owner(tx, "orders")
        assert asset_owner(tx, "nobody") is None
