"""`python -m benchmarks.member scheduler|agent STORE FOLDER SLOTS`: one process of a measured cluster.

It says `ready` on stdout, begins with the first line on stdin, ends when stdin is closed, and then tells in one JSON
line what it asked of the store and what it cost.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.cost import cost_so_far
from headrace.actions.serving import AgentServer, SchedulerServer, Server
from headrace.agent import Agent, AgentOptions, Broker
from headrace.clock import SystemClock
from headrace.executor import InlineExecutor, LocalExecutor
from headrace.scheduler import Scheduler
from headrace.store import Store


def main() -> None:
    role, url, folder, slots = sys.argv[1:]
    store = Store(url)
    member = _member(role, store, Path(folder), int(slots))
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


def _member(role: str, store: Store, folder: Path, slots: int) -> Server:
    if role == "scheduler":
        return SchedulerServer(Scheduler(store, SystemClock()))
    broker = Broker(store)
    executor = LocalExecutor(broker, slots, contents=broker.content)
    inline, options = InlineExecutor(broker), AgentOptions(slots=slots)
    return AgentServer(Agent(store, SystemClock(), executor, inline, folder / "logs", options), drain_seconds=0.0)


if __name__ == "__main__":
    main()
