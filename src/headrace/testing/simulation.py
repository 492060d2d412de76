"""Seeded simulation of a whole cluster: `python -m headrace.testing.simulation --seeds 2000`.

A seed decides the workflows, who acts when, how tries end and what breaks. The same seed gives the same story.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain, cycle
from pathlib import Path
from random import Random
from typing import NamedTuple

from headrace.clock import from_micros
from headrace.store import Database, Definitions, Store
from headrace.store.schema import metadata
from headrace.store.sql import Sql
from headrace.testing.cluster import Cluster
from headrace.testing.recounting import Violation
from headrace.testing.requests_of_people import People

ACTIONS = 80
_ROUNDS = 600
_CONNECTIONS = 12
_UNSHARED = 2
"""Those of people and of the checker: others have their turns in the middle of a person's transaction."""
UNFINISHED = Sql(
    """
    SELECT run.id, run.state FROM run WHERE run.state IN ('queued', 'running')
    UNION ALL SELECT errand.id, 'errand ' || errand.kind FROM errand WHERE errand.state IN ('waiting', 'running')
    UNION ALL SELECT schedule.workflow_id, 'schedule' FROM schedule WHERE schedule.next_run_at IS NOT NULL
    UNION ALL SELECT trigger.id, 'trigger given up' FROM trigger WHERE trigger.is_given_up
    """
)
WATCHERS = Sql("SELECT id FROM trigger WHERE asset IS NOT NULL")
TIMERS = Sql("SELECT min(due_at) FROM task WHERE due_at > :now")
ERRAND_TIMERS = Sql("SELECT min(due_at) FROM errand WHERE due_at > :now AND state = 'waiting'")
SCHEDULES = Sql("SELECT min(next_run_at) FROM schedule WHERE next_run_at > :now")
TIMEOUTS = Sql("SELECT min(timeout_at) FROM attempt WHERE timeout_at > :now AND state = 'running'")
FAST = Sql("PRAGMA synchronous = OFF")
EMPTY = Sql("SELECT count(*) FROM project")
_CLOCKS = (TIMERS, ERRAND_TIMERS, SCHEDULES, TIMEOUTS)
_STAYING = {"schema_version", "pool", "counter"}
_WIPED = ", ".join(sorted(name for name in metadata.tables if name not in _STAYING))
WIPE = Sql(f"TRUNCATE {_WIPED}")
WIPE_POOLS = Sql("DELETE FROM pool WHERE name <> 'default_pool'")


class Outcome(NamedTuple):
    """What became of one seed."""

    seed: int
    events: int
    problem: str | None
    story: list[str]


OpenDatabase = Callable[[], Database]


class SqliteArena:
    """A fresh SQLite file for each seed, copied from a template; nobody waits for the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = folder / "template.db"
        Store(f"sqlite:///{self._template}").dispose()
        # One connection serves all nodes: they take turns, and no turn ends inside a transaction.
        self._database = Database(f"sqlite:///{folder}/seed.db")

    @contextmanager
    def fresh(self) -> Iterator[OpenDatabase]:
        for name in ("seed.db-wal", "seed.db-shm"):
            (self._folder / name).unlink(missing_ok=True)
        shutil.copyfile(self._template, self._folder / "seed.db")
        with self._database.read() as tx:
            tx.run(FAST)
            tx.shared(Definitions).forget()
        try:
            yield lambda: self._database
        finally:
            self._database.close()

    def close(self) -> None:
        self._database.dispose()


class PostgresArena:
    """A PostgreSQL database that is emptied before each seed; every node has a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._databases: list[Database] = []
        Store(url).dispose()
        with self._database(0).read() as tx:
            if tx.run(EMPTY) != [(0,)]:
                raise SystemExit("expected a database without projects: the simulation deletes everything in it")

    @contextmanager
    def fresh(self) -> Iterator[OpenDatabase]:
        with self._database(0).begin() as tx:
            tx.change(WIPE)
            tx.change(WIPE_POOLS)
        numbers = chain(range(_UNSHARED), cycle(range(_UNSHARED, _CONNECTIONS)))
        yield lambda: self._database(next(numbers))

    def _database(self, number: int) -> Database:
        while len(self._databases) <= number:
            self._databases.append(Database(self._url))
        return self._databases[number]

    def close(self) -> None:
        for database in self._databases:
            database.dispose()


Arena = SqliteArena | PostgresArena


def simulate(seed: int, arena: Arena, actions: int = ACTIONS) -> Outcome:
    """Run one seed to its end."""
    story: list[str] = []
    problem = None
    with _quiet(), arena.fresh() as open_database:
        cluster = Cluster(Random(seed), open_database, story.append)
        try:
            _live(cluster, People(cluster), actions)
        except Exception as error:
            problem = str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
        finally:
            cluster.close()
    return Outcome(seed, cluster.checker.events, problem, story)


@contextmanager
def _quiet() -> Iterator[None]:
    """Everything that the engine warns of happens on purpose here."""
    logger = logging.getLogger("headrace")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _live(cluster: Cluster, people: People, actions: int) -> None:
    people.bring_workflows()
    for _ in range(actions):
        if cluster.random.random() < 0.08:
            people.act()
        else:
            cluster.act()
        cluster.check_quiet()
    cluster.heal()
    people.settle()
    _drain(cluster, people)
    cluster.checker.check_everything()
    people.check_schedules()
    cluster.check_assets()
    cluster.check_watchers()


def _drain(cluster: Cluster, people: People) -> None:
    """Without further faults every run ends, unless an earlier one holds it up."""
    for _ in range(_ROUNDS):
        if not cluster.round(is_thorough=False) and not cluster.round(is_thorough=True):
            cluster.check_quiet()
            if not _unfinished(cluster):
                return
            if not _wait_for_something(cluster):
                people.stop_held_up()
    raise Violation(f"runs do not end (run, state): {_unfinished(cluster)}")


def _unfinished(cluster: Cluster) -> list[tuple[int, str]]:
    with cluster.user.store.database.read() as tx:
        unfinished = [(row[0], row[1]) for row in tx.run(UNFINISHED)]
        running = cluster.running_triggers()
        unwatched = [(row[0], "watcher that does not run") for row in tx.run(WATCHERS) if row[0] not in running]
    return [*unfinished, *unwatched]


def _wait_for_something(cluster: Cluster) -> bool:
    """Let time pass until the next thing is due. False: nothing is."""
    with cluster.user.store.database.read() as tx:
        due = [tx.run(statement, {"now": cluster.now})[0][0] for statement in _CLOCKS]
    moments = [from_micros(at) for at in due if at is not None]
    moments += [end for end in (cluster.next_end(),) if end is not None]
    # Clocks of nodes may be behind, so what is due now is due for everybody a little later.
    target = min(moments, default=cluster.clock.now()) + timedelta(seconds=5)
    cluster.wait(max(1.0, min(20.0, (target - cluster.clock.now()).total_seconds())))
    return bool(moments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    first, count = (options.start, options.seeds) if options.seed is None else (options.seed, 1)
    seeds = range(first, first + count)
    jobs = 1 if options.store else max(1, min(options.jobs, count // 10))
    began, events, failed = time.monotonic(), 0, 0
    for outcome in _outcomes(seeds, jobs, options.store):
        events += outcome.events
        if outcome.problem is not None:
            failed += 1
            tell(outcome)
        elif options.verbose:
            print("\n".join(outcome.story))
    seconds = time.monotonic() - began
    rate = len(seeds) / max(seconds, 1e-9)
    print(f"{len(seeds)} seeds, {events} events, {failed} failed, {seconds:.1f} s ({rate:.0f} seeds/s)")
    return 1 if failed else 0


def _outcomes(seeds: range, jobs: int, store_url: str | None) -> Iterator[Outcome]:
    if jobs == 1:
        yield from simulate_all(seeds, store_url)
        return
    chunks = [seeds[start : start + 10] for start in range(0, len(seeds), 10)]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for outcomes in pool.imap(_simulate_chunk, chunks):
            yield from outcomes


def _simulate_chunk(seeds: range) -> list[Outcome]:
    return list(simulate_all(seeds))


def simulate_all(seeds: Iterable[int], store_url: str | None = None) -> Iterator[Outcome]:
    """Run seeds one after the other, on SQLite files or on an empty PostgreSQL database."""
    with tempfile.TemporaryDirectory(prefix="headrace-simulation-") as folder:
        arena = PostgresArena(store_url) if store_url else SqliteArena(Path(folder))
        try:
            for seed in seeds:
                yield simulate(seed, arena)
        finally:
            arena.close()


def tell(outcome: Outcome, lines: int = 60) -> None:
    """Print what went wrong, how to see it again, and what led to it."""
    print(f"seed {outcome.seed}: {outcome.problem}")
    print(f"  replay: python -m headrace.testing.simulation --seed {outcome.seed} -v")
    print("\n".join(f"  | {line}" for line in outcome.story[-lines:]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, metavar="N", help="how many seeds")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the first of them")
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="only this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="how many processes")
    parser.add_argument("--store", metavar="URL", help="an empty PostgreSQL database instead of SQLite files")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell the story of every seed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
