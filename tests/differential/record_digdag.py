"""Asks a real Digdag how workflows end and keeps the answers in `recorded_digdag.json`.

The tests only read that file; `digdag/README.md` says what it takes to record anew:

    python tests/differential/record_digdag.py --count 240
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import real_digdag
from dig_generating import generate_many, generate_resumed
from dig_traps import traps
from real_digdag import Project

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=240, help="how many random workflows")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--resumed", type=int, default=48, help="how many more, which are resumed")
    parser.add_argument("--out", type=Path, default=HERE / "recorded_digdag.json")
    arguments = parser.parse_args()
    projects = [*traps(), *_random(arguments.first, arguments.count), *_resumed(arguments.resumed)]
    outcomes = dict(real_digdag.run(projects))
    records = [{**project, **outcomes[project["id"]]} for project in projects]
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    arguments.out.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _random(first: int, count: int) -> Iterator[Project]:
    for name, text in generate_many(first, count):
        yield {"id": name, "files": {f"{name}.dig": text}}


def _resumed(count: int) -> Iterator[Project]:
    for seed in range(count):
        name, text = generate_resumed(seed)
        yield {"id": name, "files": {f"{name}.dig": text}, "resumed": True}


if __name__ == "__main__":
    main()
