"""Real schedulers, agents and triggerers as processes: started, watched through the store, cleaned up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from headrace.actions.trigger import trigger
from headrace.clock import SystemClock, to_micros
from headrace.errors import HeadraceError
from headrace.store import RunRow, Store, TaskRow, TryRow, get_run, list_tasks, list_tries, live_agents, workflow_names
from headrace.testing.faults.members import Member, die_with_parent, kill, processes_with

T = TypeVar("T")

LEASE_SECONDS = 2.0
LONG_SECONDS = 40.0
"""How long to wait for something that takes a second or two before it is called lost."""
FAST = {
    "HEADRACE_AGENT__LEASE_SECONDS": str(LEASE_SECONDS),
    "HEADRACE_AGENT__KILL_GRACE_SECONDS": "0.5",
    "HEADRACE_AGENT__SLOTS": "4",
    "HEADRACE_SCHEDULER__POLL_SECONDS": "0.5",
}
LAUNCHER = "headrace.testing.faults.launcher"
_LOOK_SECONDS = 0.01
_GONE_SECONDS = 10.0
_STDERR_TAIL = 4_000


class NeverHappened(AssertionError):
    """What the cluster should have done has not happened in time."""


class Cluster:
    """A store, a home folder and any number of members. Leaves nothing behind, or complains."""

    def __init__(
        self, home: Path, url: str, settings: Mapping[str, str] | None = None, without: Collection[str] = ()
    ) -> None:
        """`settings` are variables of the environment; `without` are those of the fast ones that are left out."""
        self.home = home
        self.project = home / "project"
        self.project.mkdir(parents=True)
        self.url = url
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")},
            "HEADRACE_HOME": str(home),
            "HEADRACE_STORE": url,
            **{name: value for name, value in FAST.items() if name not in without},
            **(settings or {}),
        }
        self._members: list[Member] = []
        self._opened: Store | None = None

    # ---- processes -----------------------------------------------------------------------------------------------

    def start(self, kind: str, *arguments: str, program: str = "headrace.cli", **environment: str) -> Member:
        """Start `headrace KIND …`; it is not ready yet when this returns."""
        name = f"{kind}-{len(self._members) + 1}"
        stderr = self.home / f"{name}.stderr"
        with open(stderr, "wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", program, kind, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**self._environment, **environment},
                preexec_fn=die_with_parent(),
            )
        self._members.append(Member(name, kind, process, stderr))
        return self._members[-1]

    def standalone(self, *arguments: str, **environment: str) -> Member:
        return self.start("standalone", str(self.project), *arguments, **environment)

    def scheduler(self, **environment: str) -> Member:
        return self.start("scheduler", "--projects", f"project={self.project}", **environment)

    def agent(self, *arguments: str, **environment: str) -> Member:
        return self.start("agent", *arguments, **environment)

    def triggerer(self, **environment: str) -> Member:
        return self.start("triggerer", **environment)

    def running(self, kind: str) -> list[Member]:
        """The members of a kind that have not ended, oldest first."""
        return [member for member in self._members if member.kind == kind and member.is_running]

    def members(self) -> Iterator[Member]:
        """Everybody who was ever started."""
        yield from self._members

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
            preexec_fn=die_with_parent(),
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=LONG_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
                raise NeverHappened(f"{arguments} did not end:\n{stdout}\n{stderr}\n{self.stderr()}") from None
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def ask(self, *arguments: str) -> Any:
        """What a command that must succeed says as JSON."""
        done = self.command(*arguments, "--json")
        if done.returncode != 0:
            raise NeverHappened(f"{arguments} failed:\n{done.stderr}")
        return json.loads(done.stdout)

    def trigger(self, workflow: str, run_key: str | None = None) -> int:
        """Start a run of a workflow as soon as a member has saved it; the run's id."""
        self.wait_for_workflows(workflow)
        return trigger(self.store, SystemClock(), workflow, run_key=run_key).id

    # ---- what the store says -------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The store as somebody outside of the cluster sees it."""
        if self._opened is None:
            self._opened = Store(self.url)
        return self._opened

    def wait_until(self, condition: Callable[[], T], what: str, seconds: float = LONG_SECONDS) -> T:
        """What the condition gives once it is true; the database may be away meanwhile."""
        until = time.monotonic() + seconds
        while True:
            try:
                if found := condition():
                    return found
            except HeadraceError:
                pass
            if time.monotonic() > until:
                raise NeverHappened(f"waited {seconds:.0f} s in vain until {what}\n{self.stderr()}")
            time.sleep(_LOOK_SECONDS)

    def wait_for_members(self, agents: int, schedulers: int = 0, triggerers: int = 0) -> None:
        """Until so many are announced in the store."""
        wanted = {"agent": agents, "scheduler": schedulers, "triggerer": triggerers}

        def are_there() -> bool:
            with self.store.read() as tx:
                kinds = [one.kind for one in live_agents(tx, to_micros(SystemClock().now()))]
            return all(kinds.count(kind) >= count for kind, count in wanted.items())

        self.wait_until(are_there, f"{agents} agents and {schedulers} schedulers are there")

    def wait_for_workflows(self, *names: str) -> None:
        def are_saved() -> bool:
            with self.store.read() as tx:
                return set(names) <= set(workflow_names(tx))

        self.wait_until(are_saved, f"the workflows {names} are saved")

    def run(self, run_id: int) -> RunRow:
        with self.store.read() as tx:
            run = get_run(tx, run_id)
        assert run is not None
        return run

    def wait_for_end(self, run_id: int) -> RunRow:
        self.wait_until(lambda: not self.run(run_id).is_active, f"run {run_id} ends")
        return self.run(run_id)

    def tasks(self, run_id: int) -> dict[str, TaskRow]:
        attempt_id = self.run(run_id).attempt_id
        with self.store.read() as tx:
            return {task.name: task for task in list_tasks(tx, attempt_id) if task.is_listed}

    def tries(self, run_id: int) -> dict[str, list[TryRow]]:
        tasks = self.tasks(run_id)
        with self.store.read() as tx:
            return {name: list_tries(tx, task.id) for name, task in tasks.items()}

    def stderr(self) -> str:
        """What the members said last, for a failure's message."""
        return "\n".join(f"--- {member.name} ---\n{member.stderr[-_STDERR_TAIL:]}" for member in self._members)

    # ---- the end -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Kill every member. What they started must be gone soon after, by itself."""
        for member in self._members:
            if member.is_running:
                member.kill()
        left = self._wait_for_silence()
        for pid in left:
            kill(pid)
        if self._opened is not None:
            self._opened.dispose()
        if left:
            raise NeverHappened(f"processes outlived their cluster: {left}\n{self.stderr()}")

    def _wait_for_silence(self) -> list[int]:
        until = time.monotonic() + _GONE_SECONDS
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return left

    def processes(self) -> list[int]:
        """Everything that was started with this home folder, whoever its parent is now."""
        return processes_with(f"HEADRACE_HOME={self.home}")
