"""Watchers of assets in DAG files."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace.authoring.dag.assets import Asset, AssetWatcher
from headrace.authoring.dag.loading import load_dag_file
from headrace.definition import Watcher
from headrace.operators.triggers import DirectoryFileDeleteTrigger, TimeDeltaTrigger

FILE = """
from airflow.providers.standard.triggers.file import DirectoryFileDeleteTrigger, FileDeleteTrigger
from airflow.sdk import DAG, Asset, AssetWatcher, task

flags = Asset("flags", watchers=[
    AssetWatcher(name="one", trigger=FileDeleteTrigger("/tmp/x")),
    AssetWatcher(name="two", trigger=DirectoryFileDeleteTrigger(directory="/tmp", filename="y", poke_interval=2.0)),
])

with DAG("w", schedule=[flags]):
    @task
    def work(): ...
    work()
"""


def test_the_definition_says_who_watches(tmp_path):
    (tmp_path / "w.py").write_text(FILE)
    (workflow,) = load_dag_file(tmp_path, "w.py").workflows
    (use,) = workflow.assets
    module = "airflow.providers.standard.triggers.file"
    assert use.watchers == (
        Watcher(
            name="one", trigger=f"{module}.FileDeleteTrigger", arguments={"filepath": "/tmp/x", "poke_interval": 5.0}
        ),
        Watcher(
            name="two",
            trigger=f"{module}.DirectoryFileDeleteTrigger",
            arguments={"directory": "/tmp", "filename": "y", "poke_interval": 2.0},
        ),
    )
    assert workflow.warnings == ()


def test_only_triggers_that_can_watch_watch():
    with pytest.raises(ValueError, match="expected the trigger of watcher `w` to be a BaseEventTrigger, got: <"):
        Asset("a", watchers=[AssetWatcher("w", TimeDeltaTrigger(timedelta(seconds=1)))])


def test_a_file_of_a_folder_is_found_and_deleted(tmp_path):
    path = tmp_path / "flag"
    path.touch()
    trigger = DirectoryFileDeleteTrigger(directory=str(tmp_path), filename="flag", poke_interval=0.01)

    async def first():
        return await anext(trigger.run())

    assert asyncio.run(first()).payload == {"filepath": str(path)}
    assert not path.exists()
