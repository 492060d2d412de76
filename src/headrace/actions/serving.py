"""The parts that run until they are told to stop: agent, scheduler, project sync; each alone or all together."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol

from headrace.actions.executors import LoadingAnswers
from headrace.actions.parts import Parts
from headrace.actions.wording import span
from headrace.agent import Agent
from headrace.clock import to_micros
from headrace.errors import HeadraceError, SchemaError, StoreError
from headrace.processes import is_alive, place
from headrace.projects.syncing import ProjectSync
from headrace.projects.timetable_teller import TimetableTeller
from headrace.scheduler import Scheduler, SchedulerOptions
from headrace.settings import ProjectFolder
from headrace.store.namesakes import Namesake, namesakes
from headrace.store.setup import check_tables
from headrace.triggerer import Triggerer

_log = logging.getLogger("headrace.serving")
_leaving = threading.Lock()
"""Never given back: several loops may meet the same at once, and one of them says it."""

_PATIENCE_SECONDS = 5.0
"""Agents that come back look for the database at least every few seconds."""


class Server(Protocol):
    """Something that works in a thread of its own."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """End it in good order, and return when that is done."""
        ...


class AgentServer:
    """An agent in a thread. It finishes what runs within `drain_seconds` and hands the rest back."""

    def __init__(self, agent: Agent, drain_seconds: float) -> None:
        self._agent = agent
        self._drain_seconds = drain_seconds
        self._must_end = threading.Event()
        live = partial(_live_or_leave, "agent", self._live)
        self._thread = threading.Thread(target=live, name="headrace-agent", daemon=True)

    def start(self) -> None:
        self._agent.start()
        self._thread.start()

    def stop(self) -> None:
        self._must_end.set()
        self._agent.wake()
        self._thread.join()

    def _live(self) -> None:
        # Executors belong to one thread, so that the end must happen here, too.
        self._agent.run(self._must_end.is_set)
        self._agent.stop(self._drain_seconds)


class SchedulerServer:
    """A scheduler in a thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        live = partial(_live_or_leave, "scheduler", scheduler.run)
        self._thread = threading.Thread(target=live, name="headrace-scheduler", daemon=True)

    def start(self) -> None:
        self._scheduler.start()
        self._thread.start()

    def stop(self) -> None:
        self._scheduler.stop()
        self._thread.join()


class TriggererServer:
    """A triggerer in a thread."""

    def __init__(self, triggerer: Triggerer, *, is_announced: bool = False) -> None:
        self._triggerer = triggerer
        self._is_announced = is_announced
        self._must_end = threading.Event()
        live = partial(_live_or_leave, "triggerer", self._live)
        self._thread = threading.Thread(target=live, name="headrace-triggerer", daemon=True)

    def start(self) -> None:
        self._triggerer.start(is_announced=self._is_announced)
        self._thread.start()

    def stop(self) -> None:
        self._must_end.set()
        self._triggerer.interrupt()
        self._thread.join()

    def _live(self) -> None:
        self._triggerer.run(self._must_end.is_set)
        # Child processes and descriptors belong to this thread.
        self._triggerer.stop()


class ProjectServer:
    """Workflow files, followed in one thread and asked for their times in another.

    A scheduler that announces the folders is to be started first.
    """

    def __init__(self, sync: ProjectSync, teller: TimetableTeller) -> None:
        self._sync = sync
        self._servers = (sync, teller)

    def check(self) -> None:
        """Raise StateError for a folder whose project is served from another one, before anything is started."""
        self._sync.check()

    def start(self) -> None:
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        for server in reversed(self._servers):
            server.stop()


class Serving:
    """Starts servers in their order and stops them in the opposite one, on one store."""

    def __init__(self, parts: Parts, servers: Sequence[Server]) -> None:
        self._parts = parts
        self._servers = servers
        self.notices = parts.settings.notices

    def start(self) -> None:
        # A statement that meets a wrong table may come only after hours, when there is a first trigger, say.
        with self._parts.store.read() as tx:
            check_tables(tx)
        for server in self._servers:
            if isinstance(server, ProjectServer):
                server.check()
        for server in self._servers:
            server.start()
        self._parts.store.wakeups.start()
        self._warn_of_namesakes()

    def stop(self) -> None:
        """Drain, then let go of the store."""
        for server in reversed(self._servers):
            server.stop()
        self._parts.store.dispose()

    def _warn_of_namesakes(self) -> None:
        """Not refused: one that replaces another, on another machine or in another container, may have its name."""
        now = to_micros(self._parts.clock.now())
        found: list[Namesake] = []
        # A database that is away by now is the servers' concern.
        with suppress(StoreError), self._parts.store.read() as tx:
            found = namesakes(tx, place(), os.getpid(), now)
        for one in found:
            is_here = one.place == place()
            if is_here and not is_alive(one.pid):
                continue
            end = "" if is_here else f"; if the other was killed, it is forgotten within {span(now, one.lease_until)}"
            _log.warning(
                "another %s `%s` is alive on host `%s` (process %d): nobody can tell the two apart by their name"
                " (hint: give each a `--name` of its own%s)",
                one.kind, one.name, one.host, one.pid, end,
            )  # fmt: skip


def serve_agent(
    parts: Parts,
    *,
    slots: int | None = None,
    queues: tuple[str, ...] | None = None,
    name: str = "",
    drain_seconds: float | None = None,
) -> AgentServer:
    """An agent with processes on this machine, as the settings want it where nothing else is said."""
    agent = parts.agent(parts.local_executor(slots), slots=slots, queues=queues, name=name)
    return AgentServer(agent, parts.settings.agent.drain_seconds if drain_seconds is None else drain_seconds)


def serve_scheduler(parts: Parts, name: str = "", folders: Sequence[ProjectFolder] = ()) -> SchedulerServer:
    """A scheduler as the settings want it. It tells others which folders its process serves."""
    given, lease = parts.settings.scheduler, parts.settings.agent
    options = SchedulerOptions(
        name=name,
        projects={folder.name: folder.root for folder in folders},
        poll_seconds=given.poll_seconds,
        lease_seconds=lease.lease_seconds,
        renew_seconds=lease.lease_seconds / 3,
        rescue_seconds=given.rescue_seconds,
        patience_seconds=min(_PATIENCE_SECONDS, lease.lease_seconds),
        retention_days=given.retention_days,
        max_runs_per_tick=given.max_runs_per_tick,
        check_slas=given.check_slas,
        run_seconds=parts.settings.limits.run_seconds,
        task_seconds=parts.settings.limits.task_seconds,
    )
    delete_old_logs = partial(delete_logs, parts.settings.logs_dir)
    return SchedulerServer(Scheduler(parts.store, parts.clock, options, delete_old_logs))


def serve_triggerer(parts: Parts, name: str = "", *, is_announced: bool = False) -> TriggererServer:
    """A triggerer as the settings want it; announced: people see it before it has anything to do."""
    return TriggererServer(parts.triggerer(name=name), is_announced=is_announced)


def serve_projects(parts: Parts, folders: Sequence[ProjectFolder]) -> ProjectServer:
    """What the project folders say, saved as it changes, and the times that only they can tell."""
    parser, answers = parts.settings.parser, LoadingAnswers(parts.settings, parts.broker())
    return ProjectServer(
        ProjectSync(parts.store, parts.clock, folders, parser, answers=answers),
        TimetableTeller(parts.store, parts.clock, parser, answers),
    )


def _live_or_leave(name: str, live: Callable[[], None]) -> None:
    """Run a loop to its end. What ends it early, such as a mistake of ours, ends the whole process.

    The rest of it would look alive and keep the leases, and nobody would be given the work.
    """
    try:
        live()
    except BaseException as error:
        _leave(name, error)


def leave_with_thread(ended: threading.ExceptHookArgs) -> None:
    """As a hook for threads: one that a wrong database ends, such as what renews a lease, ends the whole process."""
    if ended.thread is None or not isinstance(ended.exc_value, SchemaError):
        threading.__excepthook__(ended)
    else:
        _leave(f"thread `{ended.thread.name}`", ended.exc_value)


def _leave(name: str, error: BaseException) -> NoReturn:
    _leaving.acquire()
    if isinstance(error, HeadraceError):
        _log.critical("the %s cannot go on, and its process ends: %s", name, error)
        os._exit(error.exit_code)
    _log.critical("the %s cannot go on, and its process ends", name, exc_info=error)
    os._exit(1)


def delete_logs(folder: Path, paths: Sequence[str]) -> None:
    """Delete the logs of a run, given as paths below the folder for logs, with the folders that held nothing else."""
    folders: set[Path] = set()
    for path in paths:
        # One that is gone or cannot be deleted must not keep the history from being pruned.
        with suppress(OSError):
            (folder / path).unlink()
        folders.update(Path(path).parents[:2])
    # Those of the attempts, then that of the run. Nobody writes there any more; what others have put there stays.
    for parent in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        with suppress(OSError):
            (folder / parent).rmdir()
