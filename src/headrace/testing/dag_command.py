"""`dag.cli()`: a DAG file as a command of its own, `python flow.py test 2026-02-03 --conf '{"n": 1}'`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace.authoring.dag import DAG
from headrace.authoring.dag.compiling import compile_dag
from headrace.definition import to_json
from headrace.errors import HeadraceError
from headrace.testing.dag_run import run_dag


def dag_command(dag: DAG, arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says with this DAG; returns the exit code."""
    options = _parser(dag).parse_args(arguments)
    try:
        if options.action == "tasks":
            print("\n".join(dag.topological_ids()))
        elif options.action == "show":
            print(to_json(compile_dag(dag, Path(dag.fileloc).parent)).decode())
        else:
            run = run_dag(dag, run_conf=options.conf, logical_date=options.logical_date)
            return 0 if run.state == "success" else 1
    except HeadraceError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser(dag: DAG) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f"DAG `{dag.dag_id}`")
    actions = parser.add_subparsers(dest="action", required=True)
    test = actions.add_parser("test", help="run it once in this process")
    test.add_argument("logical_date", nargs="?", help="ISO 8601; without it the present")
    test.add_argument("--conf", type=json.loads, default={}, metavar="JSON", help="parameters of the run")
    actions.add_parser("tasks", help="list its tasks in the order of execution")
    actions.add_parser("show", help="print its definition as JSON")
    return parser
