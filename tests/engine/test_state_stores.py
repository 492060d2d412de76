"""`task_state_store` and `asset_state_store`: what tasks keep beyond a try."""

from __future__ import annotations

import pytest

HEAD = """
from datetime import timedelta
from airflow.sdk import DAG, Asset, AssetAlias, NEVER_EXPIRE, task
"""


def dag(body, dag_id="flow"):
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{HEAD}\nwith DAG({dag_id!r}, schedule=None):\n{indented}\n"


def test_a_retry_and_a_clear_find_what_was_kept_and_another_run_does_not(engine):
    source = dag("""
@task(retries=1, retry_delay=timedelta(seconds=5))
def work(task_state_store=None, ti=None):
    seen = task_state_store.get("tries", default=[])
    task_state_store.set("tries", [*seen, ti.try_number], retention=NEVER_EXPIRE)
    if ti.try_number == 1:
        raise RuntimeError("the first one fails")
    return seen
work()
""")
    run = engine.start_dag(source, run_key="one")
    engine.settle()
    engine.advance(5)
    engine.settle()
    assert run.value("work") == [1]
    run.clear("work")
    engine.settle()
    assert run.value("work") == [1, 2]
    other = engine.start_dag(source, run_key="two", session="2026-02-01")
    engine.settle()
    engine.advance(5)
    engine.settle()
    assert other.value("work") == [1]


def test_instances_keep_their_own_values_and_forget_them(engine):
    run = engine.start_dag(
        dag("""
@task
def work(x, task_state_store=None):
    store = task_state_store
    store.set("mine", {"x": [x, True, None, 1.5]})
    store.set("gone", 1)
    store.delete("gone")
    store.delete("never there")
    kept = [store.get("mine"), store.get("gone"), store.get("gone", "default")]
    store.clear()
    return [*kept, store.get("mine")]
work.expand(x=[1, 2])
""")
    )
    engine.settle()
    assert run.value("work") == [[{"x": [x, True, None, 1.5]}, None, "default", None] for x in (1, 2)]


def test_values_expire(engine):
    run = engine.start_dag(
        dag("""
@task(retries=1, retry_delay=timedelta(seconds=60))
def work(task_state_store=None, ti=None):
    if ti.try_number == 1:
        task_state_store.set("short", 1, retention=timedelta(seconds=59))
        task_state_store.set("long", 1, retention=timedelta(seconds=61))
        raise RuntimeError
    return [task_state_store.get("short"), task_state_store.get("long")]
work()
""")
    )
    engine.settle()
    engine.advance(60)
    engine.settle()
    assert run.value("work") == [None, 1]


def test_async_code_awaits_them(engine):
    run = engine.start_dag(
        dag("""
@task
async def work(task_state_store=None):
    import asyncio
    store = task_state_store
    await asyncio.gather(*(store.aset(f"n{n}", n, retention=NEVER_EXPIRE) for n in range(4)))
    await store.adelete("n3")
    found = [await store.aget(f"n{n}", default="none") for n in range(4)]
    await store.aclear()
    return [*found, await store.aget("n0")]
work()
""")
    )
    engine.settle()
    assert run.value("work") == [0, 1, 2, "none", None]


def test_assets_keep_values_over_runs_and_dags(engine):
    source = dag("""
ORDERS, SALES = Asset("orders", uri="s3://w/orders"), Asset("sales")
@task(inlets=[ORDERS], outlets=[ORDERS])
def count(asset_state_store=None):
    asset_state_store.set("runs", asset_state_store.get("runs", 0) + 1)
    return asset_state_store[Asset.ref(name="orders")].get("runs")
@task(inlets=[ORDERS, SALES])
def two(asset_state_store=None):
    try:
        asset_state_store.get("runs")
    except ValueError as error:
        return [asset_state_store[ORDERS].get("runs"), asset_state_store[SALES].get("runs"), str(error)]
@task(inlets=[Asset.ref(uri="s3://w/orders")])
def by_uri(asset_state_store=None):
    return asset_state_store.get("runs")
@task
def none(asset_state_store=None):
    return asset_state_store is None
count() >> [two(), by_uri(), none()]
""")
    for key, day in {"one": "2026-01-01", "two": "2026-01-02"}.items():
        run = engine.start_dag(source, run_key=key, session=day)
        engine.settle()
    assert run.value("count") == 2
    assert run.value("two")[:2] == [2, None]
    assert "has 2 assets as inlets and outlets: say which one is meant" in run.value("two")[2]
    assert (run.value("by_uri"), run.value("none")) == (2, True)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("task_state_store.set('x', None)", "cannot keep None under `x`"),
        ("task_state_store.set('x', object())", "expected the value of `x` to be a JSON value"),
        ("task_state_store.set('', 1)", "expected the key of a state store to be a word"),
        ("asset_state_store[Asset('b')].get('x')", "is none of the task's inlets and outlets"),
        ("asset_state_store['a'].get('x')", "expected an asset or a reference to one, got: 'a'"),
    ],
)
def test_mistakes_are_told(engine, statement, sentence):
    run = engine.start_dag(
        dag(f"""
@task(inlets=[Asset("a")])
def work(task_state_store=None, asset_state_store=None):
    {statement}
work()
""")
    )
    engine.settle()
    assert sentence in run.error("work")


def test_the_installation_may_have_them_cleared_when_a_task_succeeds(engine, monkeypatch):
    source = dag("""
@task
def work(task_state_store=None):
    seen = task_state_store.get("x")
    task_state_store.set("x", 1)
    return seen
work()
""")
    run = engine.start_dag(source)
    engine.settle()
    run.clear("work")
    engine.settle()
    assert run.value("work") == 1
    monkeypatch.setenv("AIRFLOW__STATE_STORE__CLEAR_ON_SUCCESS", "True")
    for _ in range(2):
        run.clear("work")
        engine.settle()
    assert run.value("work") is None
