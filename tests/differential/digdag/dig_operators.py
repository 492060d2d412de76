"""The operators of the compared workflows, as `Operators.java` has them for Digdag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.operators.dig import Job, OperatorError, Outcome, PollAgain


def work(job: Job) -> Outcome:
    """Do what the parameters say, and write down what they are; `_retry` covers its own failure."""
    params = job.params.everything()
    story = job.root / f"{job.run.workflow}.jsonl"
    _write(story, {"task": job.key, "sees": _seen(params)})
    polled = job.state.get("polled", 0)
    if polled < int(params.get("polls", 0)):
        raise PollAgain(0, {"polled": polled + 1})
    if params.get("_command") == "fail" or ("fails" in params and _failures(story, job.key) < int(params["fails"])):
        _write(story, {"failed": job.key})
        raise OperatorError(f"failed on purpose: {job.key}")
    return Outcome(
        subtasks=params.get("_do"),
        export=_prefixed(params, "export_"),
        store=_prefixed(params, "store_"),
        reset=tuple(params.get("resets", ())),
    )


class Plain:
    """The same without `_retry` for itself."""

    obeys_retry = False

    def __init__(self, job: Job) -> None:
        self._job = job

    def run(self) -> Outcome:
        return work(self._job)


def _seen(params: dict[str, Any]) -> dict[str, Any]:
    seen = {key: value for key, value in params.items() if len(key) == 1}
    if "error" in params:
        message = params["error"].get("message", "")
        seen["error"] = message if message.startswith("failed on purpose") else "in words of the engine"
    return seen


def _prefixed(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in params.items() if key.startswith(prefix)}


def _write(story: Path, entry: dict[str, Any]) -> None:
    with story.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _failures(story: Path, key: str) -> int:
    return sum(json.loads(line).get("failed") == key for line in story.read_text().splitlines())
