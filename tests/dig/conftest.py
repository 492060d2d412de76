"""A project on disk and a way to run single tasks of it, without an engine."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.authoring.dig import DigFile, load_dig_file
from headrace.definition import Node, Workflow
from headrace.handoff import MissingError, RunContext, Source, TaskRequest, TaskResult
from headrace.runner.dig_task import run_dig_task
from headrace.testing.web_server import WebServer

TIME = datetime(2026, 2, 3, 15, 5, 6, tzinfo=UTC)


class Answers:
    """A channel that knows the project's secrets, variables and connections, and remembers what it has to mask."""

    def __init__(self, secrets: dict[str, str]) -> None:
        self.secrets = secrets
        self.variables: dict[str, Any] = {}
        self.connections: dict[str, Any] = {}
        self.masked: list[str] = []

    def ask(self, verb: str, **args: Any) -> Any:
        if verb == "mask":
            self.masked += args["values"]
            return None
        if verb == "set_variable":
            self.variables[args["name"]] = args["value"]
            return None
        known = {"get_secret": self.secrets, "get_variable": self.variables, "get_connection": self.connections}[verb]
        if args["name"] not in known:
            raise MissingError(args["name"])
        return known[args["name"]]


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.answers = Answers({})

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def load(self, text: str, file: str = "wf.dig") -> DigFile:
        self.write(file, text)
        return load_dig_file(self.root, file)

    def compile(self, text: str) -> Workflow:
        return self.load(text).workflows[0]

    def nodes(self, text: str) -> dict[str, Node]:
        return {node.key: node for node in self.compile(text).nodes}

    def run(self, text: str, key: str = "+wf+t", **request: Any) -> TaskResult:
        """One try of one task of a file that has no time zone or schedule unless the text says so."""
        file = self.load(text)
        node = next(node for node in file.workflows[0].nodes if node.key == key)
        return self.run_node(file, node, **request)

    def run_node(self, file: DigFile, node: Node, run: dict[str, Any] | None = None, **request: Any) -> TaskResult:
        workflow = file.workflows[0]
        context = {"project": "p", "workflow": workflow.name, "logical_time": TIME, "timezone": workflow.timezone}
        request.setdefault("params", {})
        # The engine hands the node's own export over with the parameters.
        request["params"] = {**request["params"], **node.export}
        return run_dig_task(
            file,
            TaskRequest(
                task_id=7,
                fence=3,
                key=node.key,
                node=node,
                source=Source(root=str(self.root), file=file.file, language="dig"),
                run=RunContext(**{**context, **(run or {})}),
                **request,
            ),
            self.answers,
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def web():
    """Starts web servers that answer as a function says."""
    servers: list[WebServer] = []

    def serve(answer):
        servers.append(WebServer(answer))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()
