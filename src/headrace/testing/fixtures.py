"""pytest fixtures for tests of your own DAGs: put `pytest_plugins = ["headrace.testing.fixtures"]` into `conftest.py`.

Importing this module makes Airflow's import paths available, so that tests can import DAG files as modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.authoring.dag import DAG
from headrace.authoring.dag.compiling import compile_dag
from headrace.authoring.dag.loading import DagFile
from headrace.authoring.dag.values import decode_value, encode_value
from headrace.compat.airflow import install
from headrace.handoff import RETURN_VALUE, MissingError, RunContext, Source, TaskRequest, TaskResult, reusing
from headrace.runner.python_task import run_python_task
from headrace.testing.dag_bag import DagBag
from headrace.testing.dag_run import run_dag as run_dag_to_its_end
from headrace.testing.tested_run import TestedRun

install()


class TaskOutcome:
    """How one try of one task ended."""

    def __init__(self, result: TaskResult) -> None:
        self.outcome: str = result.outcome
        """success, failed, skipped, …"""
        self.error = None if result.error is None else result.error.message
        self.values = {name: decode_value(msgspec.json.decode(value)) for name, value in result.values.items()}
        self.rendered = {name: msgspec.json.decode(value) for name, value in result.rendered.items()}
        self.followed = result.followed
        """What a branch has chosen."""

    @property
    def return_value(self) -> Any:
        return self.values.get(RETURN_VALUE)


class _Given:
    """Answers a task's questions out of what the test gave: results of other tasks."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = {task: msgspec.json.decode(encode_value(value, task)) for task, value in results.items()}

    def ask(self, verb: str, **args: Any) -> Any:
        if verb == "get_values":
            return {task: self._results[task] for task in args["tasks"] if task in self._results}
        if verb == "get_results":
            return [self._described(task) for task in args["tasks"] if task in self._results]
        if verb == "mask":
            return None
        value = self._result(verb, args)
        if verb == "get_length":
            return len(value)
        if verb == "get_element":
            return {"element": value[args["index"]]} if isinstance(value, list) else {"whole": value}
        return value

    def _described(self, task: str) -> dict[str, Any]:
        # The list of a mapped task's results, which the test gives as one, is pulled as one.
        value = self._results[task]
        return {"task": task, "map_index": -1, "is_mapped": False, "name": RETURN_VALUE, "value": value}

    def _result(self, verb: str, args: Mapping[str, Any]) -> Any:
        if verb not in ("get_value", "get_length", "get_element") or args["task"] not in self._results:
            raise MissingError(f"the test gives no answer to `{verb}` with {dict(args)}")
        value = self._results[args["task"]]
        index = args.get("map_index")
        return value[index] if index is not None and isinstance(value, list) else value


@pytest.fixture
def load_dags() -> Callable[..., DagBag]:
    """`load_dags("dags")`: every DAG of a folder or file, with `dags` and `import_errors`."""
    return DagBag


@pytest.fixture
def run_dag() -> Callable[..., TestedRun]:
    """`run_dag(dag, run_conf={"n": 1})`: a whole run in this process; see `dag.test()`."""
    return run_dag_to_its_end


@pytest.fixture
def run_task() -> Callable[..., TaskOutcome]:
    """`run_task(dag, "load", results={"extract": [1, 2]})`: one try of one task, without everything around it."""

    def run(
        dag: DAG,
        task_id: str,
        *,
        results: Mapping[str, Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        logical_date: datetime | None = None,
        map_index: int = -1,
    ) -> TaskOutcome:
        dag.get_task(task_id)
        path = Path(dag.fileloc)
        workflow = compile_dag(dag, path.parent)
        instant = logical_date or datetime.now(UTC)
        request = TaskRequest(
            task_id=0,
            fence=0,
            key=task_id,
            map_index=map_index,
            node=next(node for node in workflow.nodes if node.key == task_id),
            source=Source(root=str(path.parent), file=path.name, language="python"),
            run=RunContext(
                project="test",
                workflow=dag.dag_id,
                run_key=f"manual__{instant.isoformat()}",
                logical_time=instant if instant.tzinfo else instant.replace(tzinfo=UTC),
                params=dict(conf or {}),
            ),
        )
        file = DagFile(path.parent, path.name, (workflow,), {dag.dag_id: dag})
        return TaskOutcome(run_python_task(file, reusing(request), _Given(results or {})))

    return run
