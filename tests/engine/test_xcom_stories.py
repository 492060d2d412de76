"""XCom through the whole engine: runs, instances, earlier runs, backends, files."""

from __future__ import annotations

import json

import pytest

HEAD = """
import os
from airflow.sdk import DAG, XCom, task, get_current_context
from airflow.exceptions import AirflowException
"""


def dag(body, dag_id="flow"):
    indented = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{HEAD}\nwith DAG({dag_id!r}, schedule=None):\n{indented}\n"


def test_every_way_to_pull(engine):
    run = engine.start_dag(
        dag(
            """
@task
def give():
    get_current_context()["ti"].xcom_push("named", {"a": (1, 2)})
    return "g"
@task
def twice(x):
    return x * 2
@task
def take(ti=None):
    return [
        ti.xcom_pull("give"),
        ti.xcom_pull("give", key="named"),
        ti.xcom_pull("twice"),
        ti.xcom_pull("twice", map_indexes=1),
        ti.xcom_pull("twice", map_indexes=[2, 0, 9], default="d"),
        ti.xcom_pull(["give", "twice", "nope"]),
        ti.xcom_pull(["give", "nope"], default="d"),
        ti.xcom_pull("nope", default="d"),
        ti.xcom_pull("give", key=None),
        ti.xcom_pull("give", map_indexes=-1),
        ti.xcom_pull("give", run_id="another", default="d"),
        ti.xcom_pull(key="named"),
        XCom.get_one(task_id="give", key="named"),
        XCom.get_all(task_id="twice"),
        XCom.get_all(task_id="nope"),
    ]
[give(), twice.expand(x=[1, 2, 3])] >> take()
"""
        )
    )
    engine.settle()
    named = {"a": {"__type": "tuple", "__value": [1, 2]}}
    assert run.value("take") == [
        "g", named, [2, 4, 6], 4, [6, 2, "d"], ["g", 2, 4, 6, None], ["g", "d"], "d", "g", "g", "d", named, named,
        [2, 4, 6], None,
    ]  # fmt: skip


def test_earlier_runs_and_other_dags(engine):
    source = dag(
        """
@task
def give(ti=None, params=None, dag_run=None):
    return dag_run.conf.get("value")
@task
def take(ti=None):
    return [
        ti.xcom_pull("give", include_prior_dates=True),
        ti.xcom_pull("give"),
        ti.xcom_pull(["give", "nope"], include_prior_dates=True),
        ti.xcom_pull("give", run_id="first"),
        ti.xcom_pull("give", dag_id="flow", run_id="first"),
    ]
give() >> take()
"""
    )
    days = {"first": "2026-01-01", "third": "2026-01-03", "second": "2026-01-02"}
    values = {"first": "one", "third": "three"}
    runs = {}
    for key, day in days.items():
        params = {"value": values[key]} if key in values else {}
        runs[key] = engine.start_dag(source, run_key=key, session=day, params=params)
        engine.settle()
    assert runs["second"].value("take") == ["one", None, ["one", None], "one", "one"]
    assert runs["third"].value("take")[0] == "three"


def test_a_task_sets_and_deletes_its_own_results_at_once(engine):
    run = engine.start_dag(
        dag(
            """
@task
def work(ti=None):
    XCom.set("early", [1, 2])
    seen = XCom.get_one(task_id="work", key="early")
    ti.xcom_push("late", 1)
    XCom.delete("early")
    gone = XCom.get_one(task_id="work", key="early")
    try:
        XCom.set("x", 1, task_id="other")
    except AirflowException as error:
        refused = str(error)
    XCom.clear()
    return [seen, gone, refused, ti.xcom_pull("work", key="late")]
work()
"""
        )
    )
    engine.settle()
    refusal = "a task can change its own results only, not those of `other`"
    assert run.value("work") == [[1, 2], None, refusal, None]
    assert run.value("work", "late") is None


def test_results_are_gone_when_a_task_is_tried_again(engine):
    run = engine.start_dag(
        dag(
            """
@task(retries=1, retry_delay=0)
def flaky(ti=None):
    before = XCom.get_one(task_id="flaky", key="mark")
    XCom.set("mark", "first")
    if ti.try_number == 1:
        raise AirflowException("again")
    return before
@task(trigger_rule="all_done")
def look(ti=None):
    return ti.xcom_pull("flaky", default="nothing")
flaky() >> look()
"""
        ).replace("retry_delay=0", "retry_delay=__import__('datetime').timedelta(0)")
    )
    engine.settle()
    assert run.states() == {"flaky": "success", "look": "success"}
    assert run.value("look") == "nothing"


BACKEND = """
import json
from airflow.sdk.bases.xcom import BaseXCom

class Shouting(BaseXCom):
    @staticmethod
    def serialize_value(value, *, key=None, task_id=None, dag_id=None, run_id=None, map_index=None):
        return BaseXCom.serialize_value({"stored": value, "by": f"{dag_id}.{task_id}[{map_index}].{key}"})
    @staticmethod
    def deserialize_value(result):
        return BaseXCom.deserialize_value(result)["stored"]

class Old(BaseXCom):
    @staticmethod
    def serialize_value(value):
        return json.dumps({"old": value}).encode()
    @staticmethod
    def deserialize_value(result):
        return result.value["old"]
"""

MAPPED = dag(
    """
@task
def give():
    return [1, 2, 3]
@task
def twice(x):
    return x * 2
@task
def total(xs, ti=None):
    return [sum(xs), ti.xcom_pull("give"), ti.xcom_pull(["give", "twice"])]
total(twice.expand(x=give()))
"""
)


@pytest.mark.parametrize("name", ["Shouting", "Old"])
def test_a_backend_of_the_installation_keeps_the_results(engine, monkeypatch, name):
    engine.write("my_xcom_backend.py", BACKEND)
    monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", f"my_xcom_backend.{name}")
    run = engine.start_dag(MAPPED)
    engine.settle()
    assert run.states()["total"] == "success", run.error("total")
    stored = run.value("total")
    kept = {"Shouting": {"stored": [12, [1, 2, 3], [[1, 2, 3], 2, 4, 6]], "by": "flow.total[-1].return_value"}}
    assert stored == kept.get(name, {"old": [12, [1, 2, 3], [[1, 2, 3], 2, 4, 6]]})


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_large_results_become_files(engine, monkeypatch, tmp_path, compression):
    path = "airflow.providers.common.io.xcom.backend.XComObjectStorageBackend"
    monkeypatch.setenv("AIRFLOW__CORE__XCOM_BACKEND", path)
    monkeypatch.setenv("AIRFLOW__COMMON_IO__XCOM_OBJECTSTORAGE_PATH", f"file://{tmp_path}/xcom")
    monkeypatch.setenv("AIRFLOW__COMMON_IO__XCOM_OBJECTSTORAGE_THRESHOLD", "200")
    monkeypatch.setenv("AIRFLOW__COMMON_IO__XCOM_OBJECTSTORAGE_COMPRESSION", compression)
    run = engine.start_dag(
        dag(
            """
@task
def give(size):
    return ["x" * size, (1,)]
@task
def take(big, small):
    return [len(big[0]), big[1] == (1,), small]
take(give(1000), give.override(task_id="tiny")(1))
"""
        )
    )
    engine.settle()
    assert run.value("take")[:2] == [1000, True], run.error("take")
    reference = run.value("give")["xcom_objectstorage"]
    assert reference.startswith(f"file://{tmp_path}/xcom/flow/") and reference.endswith(".gz" if compression else "")
    assert run.value("tiny")[0] == "x"
    (file,) = [one for one in (tmp_path / "xcom").rglob("*") if one.is_file()]
    assert (file.read_bytes()[:1] == b"[") is (compression == "")
    if not compression:
        assert len(json.loads(file.read_text())[0]) == 1000


def test_a_reference_to_another_place_is_not_followed(monkeypatch, tmp_path):
    from headrace.authoring.dag.exceptions import AirflowException
    from headrace.authoring.dag.object_storage import XComObjectStorageBackend
    from headrace.authoring.dag.xcom import Stored

    monkeypatch.setenv("AIRFLOW__COMMON_IO__XCOM_OBJECTSTORAGE_PATH", f"file://{tmp_path}/xcom")
    for url in ("file:///etc/passwd", f"file://{tmp_path}/xcom/../x"):
        with pytest.raises(AirflowException, match="which is not below"):
            XComObjectStorageBackend.deserialize_value(Stored("k", {"xcom_objectstorage": url}))


def test_an_error_shows_no_secret_and_no_log_does(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_DB", "http://u:pass-word@h")
    run = engine.start_dag(
        dag(
            """
@task
def leak():
    from airflow.hooks.base import BaseHook
    from airflow.sdk.log import mask_secret
    mask_secret(["one-secret", {"deep": "not-by-name"}])
    os.environ["SHOWN"] = BaseHook.get_connection("db").password
    os.write(1, b"")
    print("plain one-secret", os.environ["SHOWN"])
    raise ValueError("pass-word in an error, and one-secret")
leak()
"""
        )
    )
    engine.settle()
    assert run.error("leak") == "*** in an error, and ***"
    (log,) = (engine.folder / "logs").rglob("leak*.log")
    assert "plain *** ***" in log.read_text() and "pass-word" not in log.read_text()


def test_dig_tasks_get_secrets_under_other_names(engine):
    from headrace.secrets import Vault

    vault = Vault(engine.store)
    vault.set_secret("project", "warehouse.password", "w-secret")
    vault.set_secret("project", "shared", "s-secret")
    run = engine.start_dig(
        """
        +renamed:
          _secrets: {pg: warehouse}
          sh>: test "${secret:pg.password}" = w-secret
        +exact:
          _secrets: {pg: {password: shared, user: true}}
          sh>: test "${secret:pg.password}" = s-secret
        +inherited:
          _export: {_secrets: {pg: warehouse}}
          sh>: test "${secret:pg.password}" = w-secret && echo ${secret:pg.password}
        +missing:
          _secrets: {pg: nowhere}
          sh>: test "${secret:pg.password}" = w-secret
        """
    )
    engine.settle()
    states = {name.rpartition("+")[2]: state for name, state in run.states().items() if "^" not in name}
    assert states == {"renamed": "success", "exact": "success", "inherited": "success", "missing": "failed"}
    assert run.error("+missing").startswith("the project has no secret `pg.password`\nhint: `headrace secrets")
