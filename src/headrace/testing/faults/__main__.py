"""`python -m headrace.testing.faults`: each fault in a cluster of its own, and a table of what came of it."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence

from headrace.testing.faults.arena import open_arena
from headrace.testing.faults.bursts import MANY, burst
from headrace.testing.faults.checker import Wrong
from headrace.testing.faults.cluster import NeverHappened
from headrace.testing.faults.databases import DATABASES
from headrace.testing.faults.deployments import DEPLOYMENTS
from headrace.testing.faults.fault import Fault, Outcome, suffer
from headrace.testing.faults.kills import KILLS
from headrace.testing.faults.load_driver import EVERY_SECONDS
from headrace.testing.faults.table import table

FAULTS = (*KILLS, *DATABASES, *DEPLOYMENTS)
STORES = ("postgres", "sqlite")
_TIMES = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every promise was kept."""
    options = _parser().parse_args(arguments)
    known = [*FAULTS, burst(options.schedules)]
    outcomes = []
    for store in options.store or STORES:
        for fault in (fault for fault in _chosen(known, options.fault) if store in fault.stores):
            if not fault.is_possible:
                print(f"{fault.name} ({store}): left out, it needs the rights of root", file=sys.stderr, flush=True)
                continue
            outcomes.append(bring_about(fault, store, options.minutes))
            _tell(outcomes[-1])
    print(table(outcomes))
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def bring_about(fault: Fault, store: str, minutes: float | None = None) -> Outcome:
    """One fault in a fresh cluster, a few times or for so long."""
    name = f"{fault.name} ({store})"
    ticks = _TIMES if minutes is None else int(minutes * 60 / EVERY_SECONDS)
    rounds = range(1 if fault.is_long else _TIMES) if minutes is None else _until(time.monotonic() + minutes * 60)
    try:
        with open_arena(store, environment=fault.environment, task_seconds=fault.task_seconds, ticks=ticks) as arena:
            return suffer(arena, [fault], rounds)._replace(name=name)
    except NeverHappened as error:
        return _failed(name, str(error))
    except Exception:
        # What is wrong with one of them must not cost the results of the others.
        return _failed(name, traceback.format_exc())


def _failed(name: str, what: str) -> Outcome:
    wrong = Wrong("stuck", what)
    return Outcome(name, 0, 0, 0, [wrong], [wrong], [])


def _until(end: float) -> Iterator[None]:
    while time.monotonic() < end:
        yield


def _chosen(known: Sequence[Fault], names: Sequence[str]) -> Iterable[Fault]:
    chosen = [fault for fault in known if not names or any(name in fault.name for name in names)]
    if not chosen:
        listed = ", ".join(f"`{fault.name}`" for fault in known)
        sys.exit(
            f"error: expected names of faults, or parts of them, got: {', '.join(names)}\nhint: there are {listed}"
        )
    return chosen


def _tell(outcome: Outcome) -> None:
    """How it went, while the others are still to come."""
    print(f"{outcome.name}: {'FAILED' if outcome.failures else 'ok'}", file=sys.stderr, flush=True)
    for wrong in outcome.wrongs:
        print(f"  {wrong.kind}: {wrong.what}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.faults", description=__doc__)
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME", help="only faults with this in the name"
    )
    parser.add_argument("--store", action="append", choices=STORES, help="on which database; both, if none is named")
    parser.add_argument("--minutes", type=float, help=f"how long each fault goes on; else it happens {_TIMES} times")
    parser.add_argument("--schedules", type=int, default=MANY, help="how many schedules are due at once")
    return parser


if __name__ == "__main__":
    sys.exit(main())
