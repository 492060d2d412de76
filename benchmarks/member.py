"""`python -m benchmarks.member scheduler|agent STORE FOLDER SLOTS`: one process of a measured cluster.

It says `ready` on stdout, begins with the first line on stdin, answers each other line with one of JSON that tells what
it has asked of the store and cost since, and ends when stdin is closed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.cost import cost_so_far
from headrace.actions.serving import AgentServer, SchedulerServer, Server
from headrace.agent import Agent, AgentOptions, Broker, MachineProcessors
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
    before = _cost(store)
    member.start()
    store.wakeups.start()
    for _ in sys.stdin:
        print(json.dumps({key: value - before[key] for key, value in _cost(store).items()}), flush=True)
    member.stop()
    store.dispose()


def _cost(store: Store) -> dict[str, float]:
    return {
        **cost_so_far()._asdict(),
        "statements": store.database.statements,
        "commits": store.database.commits,
    }


def _member(role: str, store: Store, folder: Path, slots: int) -> Server:
    if role == "scheduler":
        return SchedulerServer(Scheduler(store, SystemClock()))
    broker = Broker(store)
    executor = LocalExecutor(broker, slots, contents=broker.content)
    inline, options = InlineExecutor(broker), AgentOptions(slots=slots)
    logs = folder / "logs"
    agent = Agent(store, SystemClock(), executor, inline, logs, options, MachineProcessors())
    return AgentServer(agent, drain_seconds=0.0)


if __name__ == "__main__":
    main()
