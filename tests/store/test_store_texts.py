"""What no database keeps, in every way in which a text reaches the store: it is replaced, and spoils nothing."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import insert, select
from store_bench import flow, node, report

from headrace.definition import check_nodes
from headrace.errors import DefinitionError
from headrace.handoff import AssetEvent, TaskError
from headrace.store import list_asset_events, task_values
from headrace.store.schema import event, pool, run
from headrace.store.sql import Sql
from headrace.store.task_rows import INSERT_EVENTS

ECHO = Sql("SELECT CAST(:text AS text), CAST(:text AS text) IN :texts[]")
UNKEPT = {"a\0b": "a\ufffdb", "a\ud800b": "a\ufffdb", "é\udcff\0": "é\ufffd\ufffd"}


@pytest.mark.parametrize("text", UNKEPT)
def test_a_parameter_of_any_statement_is_made_storable(bench, text):
    with bench.store.begin() as tx:
        tx.execute(insert(pool), [{"name": text, "slots": 1}])
        tx.write_each(INSERT_EVENTS, [_event(text), _event("plain")])
        assert [tuple(row) for row in tx.run(ECHO, {"text": text, "texts": ["x", text]})] == [(UNKEPT[text], True)]
        assert tx.execute(select(pool.c.name).where(pool.c.name == text)).scalar_one() == UNKEPT[text]
    assert [row.reason for row in bench.rows(event)] == [UNKEPT[text], "plain"]


def _event(reason: str) -> dict[str, object]:
    return {"attempt_id": 1, "task_id": 1, "before": None, "after": "x", "actor": "a", "try_number": 1, "at": 1,
            "reason": reason}  # fmt: skip


@pytest.mark.parametrize("document", ['"a\\u0000b"', '{"\\u0000": "\\\\u0000"}'])
def test_a_value_keeps_its_nul(bench, document):
    attempt_id = bench.start(flow(node("a")))
    (a,) = bench.claim(bench.agent())
    bench.end(a, values={"na\0me": document.encode()}, export={"k\0": "v\0"})
    with bench.store.read() as tx:
        assert task_values(tx, attempt_id, ["a"], "na\0me")["a"].documents == [document]
    assert bench.values(a.id)["na\ufffdme"] == document
    assert msgspec.json.decode(bench.values(a.id)[""]) == {"k\0": "v\0"}


def test_names_of_one_task_do_not_spoil_the_results_of_others(bench):
    attempt_id = bench.start(flow(node("a"), node("b"), node("c")))
    a, b, c = bench.claim(bench.agent())
    updated = AssetEvent(asset="as\0set", uri="u\0", aliases=("ali\0as",), partition_key="p\0", extra={"e\0": "f\0"})
    bench.record(
        report(a, values={"x\0": b"1", "x\ufffd": b"[2]"}, lengths={"x\ufffd": 1}, events=(updated,), label="l\0"),
        report(b, "failed", error=TaskError(type="E\0", message="m\0\ud800", traceback="t\udcff")),
        report(c, values={"return_value": b"3"}),
    )
    assert bench.states(attempt_id) == {"a": "success", "b": "failed", "c": "success"}
    assert bench.values(a.id)["x\ufffd"] == "[2]"
    assert '"m\ufffd\ufffd"' in bench.tasks(attempt_id)["b"].error
    with bench.store.read() as tx:
        (emitted,) = list_asset_events(tx, asset="as\0set", alias="ali\0as")
    assert (emitted.asset, emitted.uri, emitted.partition_key) == ("as\ufffdset", "u\ufffd", "p\ufffd")
    assert msgspec.json.decode(emitted.extra) == {"e\0": "f\0"}


def test_a_run_is_known_by_what_is_kept_of_its_name(bench):
    (workflow_id,) = bench.save(flow(node("a")))
    assert bench.create(workflow_id, "r\0", note="n\0\ud800") is not None
    assert bench.create(workflow_id, "r\ufffd") is None
    assert [(row.key, row.note) for row in bench.rows(run)] == [("r\ufffd", "n\ufffd\ufffd")]


def test_a_task_cannot_be_called_so():
    with pytest.raises(DefinitionError, match=r"key of task 'a\\x00b' of flow holds a character"):
        check_nodes([node("a\0b")], "flow", is_fragment=True)
