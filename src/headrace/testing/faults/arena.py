"""A cluster under load, with everything that a fault needs to get at."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headrace.testing.faults.cluster import FAST, LAUNCHER, Cluster
from headrace.testing.faults.load_driver import Load
from headrace.testing.faults.members import Member
from headrace.testing.faults.proxy import Proxy
from headrace.testing.faults.record import Line
from headrace.testing.postgres import PostgresServer

SIZE = {"scheduler": 2, "agent": 2, "triggerer": 1}
SMALL_SIZE = {"scheduler": 1, "agent": 2}
QUICK_SETTINGS = {"HEADRACE_PARSER__TIMEOUT_SECONDS": "5", "HEADRACE_SCHEDULER__RESCUE_SECONDS": "0.5"}


@dataclass
class Arena:
    """Each member lives on a host of its own, so that only its silence tells that it is gone."""

    cluster: Cluster
    load: Load
    server: PostgresServer | None = None
    proxy: Proxy | None = None
    """Between one of the agents and the database."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For the members on every second host."""
    size: Mapping[str, int] = field(default_factory=lambda: SIZE)
    """How many of each kind there are."""
    _hosts: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def start(self) -> None:
        """Bring the workflows and start everybody."""
        self.load.bring(self.cluster)
        self.replenish()
        self.load.wait_for_workflows(self.cluster)
        self.cluster.wait_for_members(self.size["agent"], self.size["scheduler"])

    def replenish(self) -> None:
        """Start somebody new for each who is gone, as whatever supervises processes would."""
        for kind, size in self.size.items():
            for _ in range(size - len(self.cluster.running(kind))):
                self._start(kind)

    def agents_at_work(self) -> list[tuple[Member, list[Line]]]:
        """Each agent with the executions that are under way below it, the busiest first."""
        lines = self.load.record.under_way()
        below = [(agent, {one.pid for one in agent.below()}) for agent in self.cluster.running("agent")]
        busy = [(agent, [line for line in lines if line.pid in pids]) for agent, pids in below]
        return sorted(((agent, own) for agent, own in busy if own), key=lambda one: -len(one[1]))

    def wait_for_work(self) -> tuple[Member, list[Line]]:
        """An agent that has something under way, and what."""
        return self.cluster.wait_until(self.agents_at_work, "an agent has work")[0]

    def _start(self, kind: str) -> Member:
        arguments = {
            "scheduler": ("--projects", f"project={self.cluster.project}"),
            "agent": ("--drain-seconds", "5"),
        }.get(kind, ())
        host = next(self._hosts)
        environment = {"HARNESS_HOST": f"host-{host}", **(self.environment if host % 2 else {})}
        if self.proxy is not None and kind == "agent" and not self.cluster.running("agent"):
            environment["HEADRACE_STORE"] = self.proxy.url
        return self.cluster.start(kind, *arguments, program=LAUNCHER, **environment)


@contextmanager
def open_arena(
    store: str,
    *,
    environment: Mapping[str, str] | None = None,
    task_seconds: float = 0.2,
    ticks: int = 5,
    size: Mapping[str, int] = SIZE,
    server: PostgresServer | None = None,
    **settings: str,
) -> Iterator[Arena]:
    """A cluster on PostgreSQL (`postgres`) or on a file (`sqlite`), of which nothing is left.

    `environment` is for half of its members, `settings` are for all of them; without a `server` it gets its own.
    """
    with ExitStack() as opened:
        folder = _passing_folder(opened)
        proxy = None
        url = f"sqlite:///{folder}/headrace.db"
        if store == "postgres":
            server = server or opened.enter_context(PostgresServer())
            url = server.new_database()
            proxy = opened.enter_context(Proxy(url))
        load = Load(folder / "load", task_seconds=task_seconds, ticks=ticks)
        cluster = _cluster(opened, folder, url, load, **settings)
        arena = Arena(cluster, load, server if store == "postgres" else None, proxy, environment or {}, size)
        arena.start()
        yield arena


@contextmanager
def open_quiet_arena(settings: Mapping[str, str], task_seconds: float) -> Iterator[Arena]:
    """A small cluster with these settings and no others, in which one task is under way at a time."""
    with ExitStack() as opened:
        folder = _passing_folder(opened)
        load = Load(folder / "load", task_seconds=task_seconds, ticks=1, is_small=True)
        url = opened.enter_context(PostgresServer()).new_database()
        cluster = Cluster(folder / "home", url, {**load.settings, **settings}, without=FAST)
        opened.callback(cluster.close)
        arena = Arena(cluster, load, size=SMALL_SIZE)
        arena.start()
        yield arena


@contextmanager
def open_broken_arena(guarantee: str, *, task_seconds: float, ticks: int = 1) -> Iterator[Arena]:
    """A small cluster in which one of the engine's guarantees is taken away from everybody."""
    with ExitStack() as opened:
        folder = _passing_folder(opened)
        load = Load(folder / "load", task_seconds=task_seconds, ticks=ticks, is_small=True, is_stubborn=True)
        cluster = _cluster(opened, folder, f"sqlite:///{folder}/headrace.db", load, HARNESS_BREAK=guarantee)
        arena = Arena(cluster, load, size=SMALL_SIZE)
        arena.start()
        yield arena


def _passing_folder(opened: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="headrace-faults-"))
    opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _cluster(opened: ExitStack, folder: Path, url: str, load: Load, **environment: str) -> Cluster:
    cluster = Cluster(folder / "home", url, {**QUICK_SETTINGS, **load.settings, **environment})
    opened.callback(cluster.close)
    return cluster
