"""NUL and halves of surrogate pairs, in everything that user code and people say, on a real PostgreSQL server."""

from __future__ import annotations

import json

DAG_FILE = r"""
import asyncio
from airflow.sdk import DAG, Asset, AssetAlias, BaseOperator, task
from airflow.triggers.base import BaseTrigger, TriggerEvent


class Told(BaseTrigger):
    def __init__(self, payload):
        self.payload = payload

    def serialize(self):
        return "flow.Told", {"payload": self.payload}

    async def run(self):
        if self.payload == "fail":
            print("about to fail \ud800")
            raise ValueError("m\0\ud800")
        yield TriggerEvent(self.payload)


class Waiting(BaseOperator):
    def __init__(self, payload, **kwargs):
        super().__init__(**kwargs)
        self.payload = payload

    def execute(self, context):
        self.defer(trigger=Told(self.payload), method_name="go_on")

    def go_on(self, context, event):
        assert event == self.payload


with DAG("flow", schedule=None):
    Waiting(task_id="told", payload={"e\0": "\0"})
    Waiting(task_id="trigger_fails", payload="fail")

    @task
    def value():
        return {"k\0": ["v\0"]}

    @task
    def same(got):
        assert got == {"k\0": ["v\0"]}, got

    same(value())

    @task
    def named(ti=None):
        ti.xcom_push("n\0", 1)

    @task
    def pulled(ti=None):
        assert ti.xcom_pull(task_ids="named", key="n\0") == 1

    named() >> pulled()

    @task(outlets=[AssetAlias("alias")], map_index_template="{{ label }}")
    def updates(number, *, outlet_events=None):
        from airflow.sdk import get_current_context

        get_current_context()["label"] = "l\0\ud800"
        outlet_events[AssetAlias("alias")].add(Asset("a\0", uri="file:///u\0"), extra={"e\0": "\0"})

    updates.expand(number=[1])

    @task
    def fails():
        print("said \0 and \ud800")
        raise ValueError("m\0\ud800")

    fails()

    @task
    def half():
        return ["\udcff"]

    half()
"""


def test_texts_that_no_database_keeps_cost_nobody_else_anything(headrace, postgres_url):
    file = headrace.write("flow.py", DAG_FILE)
    done = headrace("run", file, "--store", postgres_url)
    assert "could not commit" not in done.err and "Traceback" not in done.err.split("run 1 of")[0]
    tasks = json.loads(headrace("tasks", "latest", "--json", "--store", postgres_url).out)["tasks"]
    states = {name: one["state"] for name, one in tasks.items()}
    failed = {name for name, state in states.items() if state != "success"}
    assert failed == {"trigger_fails", "fails", "half"}, states
    assert "`fails` failed: ValueError: m\ufffd\ufffd" in done.err
    assert "trigger `flow.Told` failed: ValueError: m\ufffd\ufffd" in done.err
    assert r"expected the result `return_value` to hold text that UTF-8 can spell, got: '\udcff'" in done.err


def test_an_argument_that_is_no_utf8_is_refused(headrace):
    file = headrace.dag("@task\ndef hello():\n    pass\n\nhello()")
    done = headrace("run", file, "-p", "x=\udcff")
    assert (done.returncode, done.err) == (2, "error: expected text in UTF-8, got: '\\udcff'\n")


def test_a_file_of_variables_with_half_a_character_is_refused(headrace, tmp_path):
    (tmp_path / "variables.json").write_text(r'{"x": "a\ud800"}')
    done = headrace("variables", "import", str(tmp_path / "variables.json"))
    assert (done.returncode, done.err) == (2, "error: expected text in UTF-8, got: 'a\\ud800'\n")
