"""`python -m benchmarks.member scheduler|agent STORE FOLDER SLOTS`: one process of a measured cluster.

It says `ready` on stdout, begins with the first line on stdin, ends when stdin is closed, and then tells in one JSON
line what it asked of the store and what it cost.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from benchmarks.cost import cost_so_far
from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import SystemClock
from headrace.executor import InlineExecutor, LocalExecutor
from headrace.scheduler import Scheduler
from headrace.store import Store


def main() -> None:
    role, url, folder, slots = sys.argv[1:]
    store = Store(url)
    member = AgentMember(store, Path(folder), int(slots)) if role == "agent" else SchedulerMember(store)
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, statements, commits = cost_so_far().cpu_seconds, store.database.statements, store.database.commits
    member.start()
    store.wakeups.start()
    sys.stdin.read()
    member.stop()
    statements, commits = store.database.statements - statements, store.database.commits - commits
    print(
        json.dumps({"cpu_seconds": cost_so_far().cpu_seconds - cpu, "statements": statements, "commits": commits}),
        flush=True,
    )
    store.dispose()


class SchedulerMember:
    """A scheduler as an installation has it."""

    def __init__(self, store: Store) -> None:
        self._scheduler = Scheduler(store, SystemClock())
        self._thread = threading.Thread(target=self._scheduler.run)

    def start(self) -> None:
        self._scheduler.start()
        self._thread.start()

    def stop(self) -> None:
        self._scheduler.stop()
        self._thread.join()


class AgentMember:
    """An agent with processes on this machine."""

    def __init__(self, store: Store, folder: Path, slots: int) -> None:
        self._store, self._folder, self._slots = store, folder, slots
        self._must_end = threading.Event()
        self._is_started = threading.Event()
        self._thread = threading.Thread(target=self._live)

    def start(self) -> None:
        self._thread.start()
        self._is_started.wait()

    def stop(self) -> None:
        self._must_end.set()
        self._agent.wake()
        self._thread.join()

    def _live(self) -> None:
        broker = Broker(self._store)
        executor = LocalExecutor(broker, self._slots, contents=broker.content)
        inline, options = InlineExecutor(broker), AgentOptions(slots=self._slots)
        self._agent = Agent(self._store, SystemClock(), executor, inline, self._folder / "logs", options)
        self._agent.start()
        self._is_started.set()
        self._agent.run(self._must_end.is_set)
        self._agent.stop(0.0)


if __name__ == "__main__":
    main()
