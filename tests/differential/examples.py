"""Runs the example DAGs that come with Airflow here and there, unmodified, and prints how they end as a table.

    python -m venv scratch && scratch/bin/pip install apache-airflow apache-airflow-providers-standard
    python tests/differential/examples.py scratch/bin/python > table.md

The argument is the interpreter in which Airflow is installed; the script itself runs where Headrace is. Each DAG gets
`--seconds` on either side: some wait for a person, for another DAG or for the afternoon.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDERS = ("airflow/example_dags", "airflow/providers/standard/example_dags")

Outcome = dict[str, Any]
"""`run` and `tasks`, the states; or `error`, why there are none."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", help="the interpreter in which Airflow is installed")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit for each DAG")
    parser.add_argument("--only", nargs="*", default=[""], help="only files whose names contain one of these")
    parser.add_argument("--at", help="the logical date of the runs on both sides; else now")
    parser.add_argument("--real", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    at = arguments.at or datetime.now(UTC).isoformat(timespec="seconds")
    if arguments.real:
        _run_there(Path(arguments.real), arguments.seconds, arguments.only, at)
        return
    site = _output(arguments.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    print("| file | DAG | Airflow | Headrace | task instances |\n| --- | --- | --- | --- | --- |")
    for folder in (Path(site) / name for name in FOLDERS):
        options = ("--seconds", str(arguments.seconds), "--at", at, "--only", *arguments.only)
        command = [arguments.python, __file__, arguments.python, "--real", str(folder), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as real:
            for record in (json.loads(line) for line in real.stdout or () if line.startswith('{"file"')):
                ours = _run_here(folder / record["file"], record["dag"], arguments.seconds, at)
                print(_row(record, ours), flush=True)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- on Headrace ---------------------------------------------------------------------------------------------------


def _run_here(file: Path, dag: str, seconds: float, at: str) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="headrace-") as home:
        command = [sys.executable, "-m", "headrace.cli", "run", str(file), dag, "--json", "--logical-date", at]
        environment = {**os.environ, "HEADRACE_HOME": home}
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
            return {"error": f"still going after {seconds:g} s"}
    if not out.startswith("{"):
        return {"error": err.strip().splitlines()[0] if err.strip() else f"left with {process.returncode}"}
    result = json.loads(out)
    states = {name: task["state"] for name, task in result["tasks"].items()}
    expanded = {name.rpartition("[")[0] for name in states if name.endswith("]")}
    return {"run": result["state"], "tasks": {name: state for name, state in states.items() if name not in expanded}}


# ---- on Airflow ----------------------------------------------------------------------------------------------------


def _run_there(folder: Path, seconds: float, only: list[str], at: str) -> None:
    """Print one JSON line for each DAG of a folder."""
    sys.path.insert(0, str(HERE))
    import real_airflow

    with tempfile.TemporaryDirectory(prefix="airflow-") as home:
        real_airflow.prepare(Path(home), folder)
        dags = {name: dag for name, dag in _load(folder) if real_airflow.can_be_saved(dag)}
        real_airflow.save(dags.values(), folder)
        signal.signal(signal.SIGALRM, _out_of_time)
        for (file, name), dag in sorted(dags.items()):
            if any(part in file for part in only):
                print("\n" + json.dumps({"file": file, "dag": name, **_outcome_there(dag, seconds, at)}), flush=True)


def _outcome_there(dag: Any, seconds: float, at: str) -> Outcome:
    import real_airflow

    # Again and again, should somebody swallow it.
    signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)
    try:
        outcome: Outcome = real_airflow.run(dag, patience_seconds=seconds, logical_date=datetime.fromisoformat(at))
    except OutOfTime:
        outcome = {"error": f"still going after {seconds:g} s"}
    except BaseException as error:  # whatever an example does, the others have their turn
        outcome = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome


class OutOfTime(BaseException):
    """Passes through whatever a task or a trigger catches."""


def _out_of_time(*_: object) -> None:
    raise OutOfTime


def _load(folder: Path) -> Iterator[tuple[tuple[str, str], Any]]:
    from airflow.dag_processing.dagbag import BundleDagBag

    bag = BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="dags-folder")
    for file, error in bag.import_errors.items():
        print(f"{file}: {error.strip().splitlines()[-1]}", file=sys.stderr)
    for name, dag in bag.dags.items():
        yield (Path(dag.fileloc).relative_to(folder).as_posix(), name), dag


# ---- the table -----------------------------------------------------------------------------------------------------


def _row(theirs: Outcome, ours: Outcome) -> str:
    cells = [f"`{theirs['file']}`", f"`{theirs['dag']}`", _said(theirs), _said(ours), _compared(theirs, ours)]
    return "| " + " | ".join(cells) + " |"


def _said(outcome: Outcome) -> str:
    return outcome.get("run") or outcome["error"].replace("|", "\\|")


def _compared(theirs: Outcome, ours: Outcome) -> str:
    if "tasks" not in theirs or "tasks" not in ours:
        return "–"
    names = {*theirs["tasks"], *ours["tasks"]}
    different = [
        f"`{name}` {ours['tasks'].get(name)}, in Airflow {theirs['tasks'].get(name)}"
        for name in sorted(names)
        if ours["tasks"].get(name) != theirs["tasks"].get(name)
    ]
    return "; ".join(different) or f"{len(names)} the same"


if __name__ == "__main__":
    main()
