"""A cluster under load, with everything that a fault needs to get at."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from headrace.testing.faults.cluster import FAST, LAUNCHER, Cluster, NeverHappened
from headrace.testing.faults.load_driver import Load
from headrace.testing.faults.members import Member
from headrace.testing.faults.proxy import Proxy
from headrace.testing.faults.record import Line
from headrace.testing.postgres import PostgresServer

T = TypeVar("T")

DRAIN_SECONDS = 1.0
SIZE = {"scheduler": 2, "agent": 2, "triggerer": 1}
SMALL_SIZE = {"scheduler": 1, "agent": 2}
QUICK_SETTINGS = {"HEADRACE_PARSER__TIMEOUT_SECONDS": "5", "HEADRACE_SCHEDULER__RESCUE_SECONDS": "0.5"}
_WAVES = 8
_WAVE_SECONDS = 5.0


@dataclass
class Arena:
    """Each member lives on a host of its own, so that only its silence tells it is gone; or all on one machine."""

    cluster: Cluster
    load: Load
    server: PostgresServer | None = None
    proxy: Proxy | None = None
    """Between one of the agents and the database."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For one member of each kind, whoever takes its place included."""
    size: Mapping[str, int] = field(default_factory=lambda: SIZE)
    """How many of each kind there are."""
    behind_proxy: Member | None = None
    """The agent that reaches the database by way of the proxy."""
    is_one_machine: bool = False
    _strange: set[str] = field(default_factory=set)
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

    def wait_for_proxied_work(self) -> Member:
        """The agent behind the proxy, as soon as it has something under way."""
        agent = self.behind_proxy
        assert agent is not None
        self.wait_under_load(lambda: agent in [one for one, _ in self.agents_at_work()], f"{agent.name} has work")
        return agent

    def wait_under_load(self, condition: Callable[[], T | None], what: str) -> T:
        """What the condition gives once it is true; there is more work every few seconds until then."""
        for _ in range(_WAVES):
            with suppress(NeverHappened):
                found = self.cluster.wait_until(condition, what, _WAVE_SECONDS)
                if found is not None:
                    return found
            self.load.wave(self.cluster)
        raise NeverHappened(f"brought {_WAVES} waves in vain until {what}\n{self.cluster.stderr()}")

    def work_on(self, seconds: float) -> None:
        """Have work for so long."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            self.load.wave(self.cluster)
            time.sleep(min(rest, _WAVE_SECONDS))

    def times_said(self, words: str) -> int:
        """How often the members said this."""
        return sum(member.stderr.count(words) for member in self.cluster.members())

    def _start(self, kind: str) -> Member:
        arguments = {
            "scheduler": ("--projects", f"project={self.cluster.project}"),
            "agent": ("--drain-seconds", str(DRAIN_SECONDS)),
        }.get(kind, ())
        is_strange = not any(member.name in self._strange for member in self.cluster.running(kind))
        host = {} if self.is_one_machine else {"HARNESS_HOST": f"host-{next(self._hosts)}"}
        environment = {**host, **(self.environment if is_strange else {})}
        is_proxied = kind == "agent" and not (self.behind_proxy and self.behind_proxy.is_running)
        if self.proxy is not None and is_proxied:
            environment["HEADRACE_STORE"] = self.proxy.url
        member = self.cluster.start(kind, *arguments, program=LAUNCHER, **environment)
        self.behind_proxy = member if is_proxied else self.behind_proxy
        self._strange |= {member.name} if is_strange else set()
        return member


@contextmanager
def open_arena(
    store: str,
    *,
    environment: Mapping[str, str] | None = None,
    task_seconds: float = 0.2,
    ticks: int = 5,
    size: Mapping[str, int] = SIZE,
    server: PostgresServer | None = None,
    is_one_machine: bool = False,
    **settings: str,
) -> Iterator[Arena]:
    """A cluster on PostgreSQL (`postgres`) or on a file (`sqlite`), of which nothing is left.

    `environment` is for one member of each kind, `settings` are for all of them; without a `server` it gets its own.
    On one machine members know of each other that they are neighbours, no network is between them and the database, and
    what is not in `settings` is as it is by default.
    """
    with ExitStack() as opened:
        folder = _passing_folder(opened)
        proxy = None
        url = f"sqlite:///{folder}/headrace.db"
        if store == "postgres":
            server = server or opened.enter_context(PostgresServer())
            url = server.new_database()
            proxy = None if is_one_machine else opened.enter_context(Proxy(url))
        load = Load(folder / "load", task_seconds=task_seconds, ticks=ticks)
        chosen = settings if is_one_machine else {**FAST, **QUICK_SETTINGS, **settings}
        cluster = Cluster(folder / "home", url, {**load.settings, **chosen}, without=FAST)
        opened.callback(cluster.close)
        own_server = server if store == "postgres" else None
        arena = Arena(cluster, load, own_server, proxy, environment or {}, size, is_one_machine=is_one_machine)
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
def open_broken_arena(
    guarantee: str, *, task_seconds: float = 0.0, ticks: int = 1, is_held: bool = False, **environment: str
) -> Iterator[Arena]:
    """A small cluster in which one of the engine's guarantees is taken away from everybody."""
    with ExitStack() as opened:
        folder = _passing_folder(opened)
        load = Load(
            folder / "load", task_seconds=task_seconds, ticks=ticks, is_small=True, is_stubborn=True, is_held=is_held
        )
        environment = {"HARNESS_BREAK": guarantee, **environment}
        cluster = _cluster(opened, folder, f"sqlite:///{folder}/headrace.db", load, **environment)
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
