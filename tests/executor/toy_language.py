"""A language for the tests of executors: a file is Python text, an operator is the name of a function in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from headrace.handoff import RETURN_VALUE, Channel, TaskRequest, TaskResult


def load(root: Path, file: str, content: bytes | None = None) -> dict[str, Any]:
    path = root / file
    names: dict[str, Any] = {"__file__": str(path), "__name__": "toy"}
    exec(compile(path.read_bytes() if content is None else content, str(path), "exec"), names)
    return names


def run(names: dict[str, Any], request: TaskRequest, channel: Channel) -> TaskResult:
    value = names[request.node.operator](request, channel)
    if isinstance(value, TaskResult):
        return value
    raw = msgspec.Raw(msgspec.json.encode(value))
    return TaskResult(
        task_id=request.task_id, fence=request.fence, outcome="success", values={RETURN_VALUE: raw} if value else {}
    )


def load_and_run(request: TaskRequest, channel: Channel) -> TaskResult:
    return run(load(Path(request.source.root), request.source.file), request, channel)
