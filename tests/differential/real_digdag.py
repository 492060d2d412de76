"""Asks the engine of a real Digdag, through `digdag/RealDigdag.java`, how workflows end."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HARNESS = Path(__file__).parent / "digdag"
OPTIONS = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),  # much is loaded and little is run often
    "-Dio.digdag.limits.maxAttempts=100000",
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),  # for the reflection of Digdag's libraries, which are older
)

Project = dict[str, Any]
"""`id`, which is also the name of the workflow, `files` by their names, perhaps `params` of the run, and whether it is
`resumed` if it failed."""
Outcome = dict[str, Any]
"""`refused`; or `success`, `tasks`, `upstream` and `story`, and the same of the attempt that resumed it as `then`."""


def run(projects: Iterable[Project]) -> Iterator[tuple[str, Outcome]]:
    """Run all projects at the same time; their outcomes by id."""
    lines = "".join(json.dumps(project) + "\n" for project in projects)
    with tempfile.TemporaryDirectory(prefix="digdag-") as folder:
        command = _compile(Path(folder))
        answer = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    for line in answer.stdout.strip().split("\n"):  # not `splitlines`: JSON may hold other ends of lines
        told = json.loads(line)
        yield told["id"], ({"refused": _reason(told["refused"])} if "refused" in told else _outcomes(told))


def _compile(folder: Path) -> list[str]:
    """Compile the harness; returns the command that runs it."""
    list_file = folder / "classpath"
    subprocess.run(
        ["mvn", "-q", "-f", str(HARNESS / "pom.xml"), "dependency:build-classpath", f"-Dmdep.outputFile={list_file}"],
        check=True,
    )
    libraries = list_file.read_text().strip()
    sources = [str(path) for path in HARNESS.rglob("*.java")]
    subprocess.run(["javac", "-nowarn", "-cp", libraries, "-d", str(folder), *sources], check=True)
    return ["java", *OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", f"{folder}:{libraries}", "RealDigdag"]


def _reason(text: str) -> str:
    """Without the folder in which the project was."""
    return " ".join(part for part in text.split() if not part.startswith(tempfile.gettempdir()))


def _outcomes(told: Outcome) -> Outcome:
    first, *then = [_outcome(attempt, f"+{told['id']}") for attempt in told["attempts"]]
    return first | ({"then": then[0]} if then else {})


def _outcome(told: Outcome, workflow: str) -> Outcome:
    """Tasks are named without the workflow, whose own name is left empty."""
    if not told["done"]:
        raise RuntimeError(f"Digdag did not finish {workflow}: {told}")
    live = _live(told["tasks"])
    story: dict[str, list[Any]] = {}
    for entry in told["story"]:
        story.setdefault(entry["task"], []).append(entry["sees"])
    return {
        "success": told["success"],
        "tasks": {task["name"].removeprefix(workflow): task["state"] for task in live},
        "upstream": {
            task["name"].removeprefix(workflow): sorted(name.removeprefix(workflow) for name in task["upstream"])
            for task in live
            if task["upstream"]
        },
        "story": {name.removeprefix(workflow): calls for name, calls in story.items()},
    }


def _live(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest row of each name, unless it is below a row that another one has replaced."""
    newest = {row["name"]: row["id"] for row in rows}
    live: dict[int | None, dict[str, Any]] = {}
    for row in rows:
        if newest[row["name"]] == row["id"] and (row["parent"] is None or row["parent"] in live):
            live[row["id"]] = row
    return list(live.values())
