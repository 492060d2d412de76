"""Asks a real Airflow how random DAGs end and keeps the answers in `recorded.json`.

The tests only read that file. To record anew, for another version of Airflow or other descriptions:

    python -m venv scratch && scratch/bin/pip install apache-airflow apache-airflow-providers-standard
    scratch/bin/python tests/differential/record.py --count 480

Descriptions that Airflow refuses are left out. It takes a second for each DAG; `--first` helps to share the work.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import real_airflow
from real_airflow import Outcome

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=480, help="how many descriptions")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, default=HERE / "recorded.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="airflow-") as home, arguments.out.open("w") as out:
        for number, record in enumerate(_records(arguments.first, arguments.count, Path(home))):
            out.write(("[\n" if number == 0 else ",\n") + json.dumps(record, separators=(",", ":")))
            out.flush()
        out.write("\n]\n")


def _records(first: int, count: int, folder: Path) -> Iterator[dict[str, Any]]:
    real_airflow.prepare(folder, folder)
    dags = dict(_dags(first, count, folder))
    real_airflow.save((dag for _, dag in dags.values()), folder)
    for name, (description, dag) in dags.items():
        outcome: Outcome = real_airflow.run(dag)
        print(f"{name}: {outcome['run']}", file=sys.stderr, flush=True)
        yield {**description, **outcome}


def _dags(first: int, count: int, folder: Path) -> Iterator[tuple[str, tuple[dict[str, Any], Any]]]:
    """Descriptions that Airflow accepts, with their DAGs."""
    from building import build  # which imports Airflow
    from generating import describe_many

    for description in describe_many(first, count):
        try:
            dag = build(description)
            dag.validate()
            dag.check_cycle()
        except Exception as error:
            print(f"left out {description['id']}: {error}", file=sys.stderr)
            continue
        dag.fileloc, dag.relative_fileloc = str(folder / "generated.py"), "generated.py"
        yield description["id"], (description, dag)


if __name__ == "__main__":
    main()
