"""A project on disk, and a stand-in for the engine's side of the channel."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime

import msgspec
import pytest

from headrace.authoring.dag.loading import load_dag_file
from headrace.handoff import MissingError, RunContext, Source, TaskRequest, reusing
from headrace.runner.python_task import prepare, run_python_task


class FakeEngine:
    """Answers questions out of memory. `values` maps (task, name) to JSON values; mapped tasks have lists."""

    def __init__(self):
        self.values = {}
        self.instances = {}
        self.mapped = set()
        self.masked = []
        self.variables = {}
        self.connections = {}
        self.asked = []

    def ask(self, verb, **args):
        self.asked.append((verb, args))
        return getattr(self, f"_{verb}")(**args)

    def _get_value(self, task, name="return_value", map_index=None, run_key=None, workflow=None):
        source = self.values if map_index is None else self.instances
        key = (task, name) if map_index is None else (task, name, map_index)
        if key not in source:
            raise MissingError(f"no {name} of {task}")
        return source[key]

    def _get_values(self, tasks, name="return_value"):
        return {task: self.values[(task, name)] for task in tasks if (task, name) in self.values}

    def _get_results(self, tasks, name="return_value", run_key=None, workflow=None, include_prior=False):
        """A list under (task, name) in `mapped` stands for the instances of a mapped task."""
        found = []
        for task in tasks:
            is_mapped = (task, name) in self.mapped
            values = enumerate(self.values[(task, name)]) if is_mapped else [(-1, self.values.get((task, name)))]
            found += [
                {"task": task, "map_index": index, "is_mapped": False, "name": name, "value": value}
                for index, value in values
                if is_mapped or (task, name) in self.values
            ]
            found += [
                {"task": task, "map_index": index, "is_mapped": False, "name": one, "value": value}
                for (key, one, index), value in self.instances.items()
                if (key, one) == (task, name)
            ]
            found.append({"task": task, "map_index": -1, "is_mapped": is_mapped})
        return found

    def _mask(self, values, name=None):
        self.masked += [(value, name) for value in values]

    def _get_length(self, task):
        return len(self._get_value(task))

    def _get_element(self, task, index):
        value = self._get_value(task)
        if isinstance(value, dict):
            return {"whole": value} if "__type" in value else {"pair": list(value.items())[index]}
        if index >= len(value):
            raise MissingError(f"{task} has no element {index}")
        return {"element": value[index]}

    def _get_variable(self, name):
        if name not in self.variables:
            raise MissingError(name)
        return self.variables[name]

    def _set_variable(self, name, value):
        self.variables[name] = value

    def _delete_variable(self, name):
        del self.variables[name]

    def _get_connection(self, name):
        if name not in self.connections:
            raise MissingError(name)
        return self.connections[name]

    def _get_previous_run(self, is_success=False):
        raise MissingError("previous run")

    def _get_triggering_events(self):
        return []


class Project:
    """One Python file that is written, loaded and whose tasks are run one try at a time."""

    def __init__(self, folder):
        self.folder = folder
        self.engine = FakeEngine()
        self.file = None

    def write(self, source, name="flow.py"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return path

    def load(self, source, name="flow.py"):
        self.write(source, name)
        self.file = load_dag_file(self.folder, name)
        prepare(self.file)
        return self.file

    def workflow(self, source):
        (workflow,) = self.load(source).workflows
        return workflow

    def nodes(self, source):
        return {node.key: node for node in self.workflow(source).nodes[1:]}

    def run(
        self, task, *, conf=None, logical_time=datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC), run_type="manual", **fields
    ):
        (workflow,) = self.file.workflows
        node = next(node for node in workflow.nodes if node.key == task)
        request = TaskRequest(
            task_id=7,
            fence=1,
            key=task,
            node=node,
            source=Source(root=str(self.folder), file=self.file.file, language="python"),
            run=RunContext(
                project="p",
                workflow=workflow.name,
                run_key="manual__1",
                run_type=run_type,
                logical_time=logical_time,
                params=conf or {},
            ),
            **fields,
        )
        return run_python_task(self.file, reusing(request), self.engine)

    def value(self, result, name="return_value"):
        return msgspec.json.decode(result.values[name])


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)
