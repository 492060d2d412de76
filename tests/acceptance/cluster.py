"""Real schedulers and agents as processes, for tests that kill them: started, watched through the store, cleaned up."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

from headrace.clock import SystemClock, to_micros
from headrace.errors import HeadraceError
from headrace.store import RunRow, Store, TaskRow, TryRow, get_run, list_tasks, list_tries, live_agents, workflow_names

T = TypeVar("T")

WORKFLOWS = Path(__file__).parent / "workflows"
LEASE_SECONDS = 2.0
LONG_SECONDS = 40.0
"""How long a test waits for something that takes a second or two before it calls it lost."""
FAST = {
    "HEADRACE_AGENT__LEASE_SECONDS": str(LEASE_SECONDS),
    "HEADRACE_AGENT__KILL_GRACE_SECONDS": "0.5",
    "HEADRACE_AGENT__SLOTS": "4",
    "HEADRACE_SCHEDULER__POLL_SECONDS": "0.5",
}
_LOOK_SECONDS = 0.01
_GONE_SECONDS = 10.0
_STDERR_TAIL = 4_000
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


class Member:
    """One process of the cluster, with everything that it starts."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self.name = name
        self.process = process
        self.pid = process.pid
        self._stderr = stderr

    @property
    def stderr(self) -> str:
        return self._stderr.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> float:
        """Send a signal to this process alone; when that was, on the clock that all processes share."""
        at = time.monotonic()
        os.kill(self.pid, number)
        return at

    def kill(self) -> float:
        """Kill -9, and wait until it is gone; when the signal was sent."""
        at = self.signal(signal.SIGKILL)
        self.process.wait(LONG_SECONDS)
        return at

    def kill_tree(self) -> float:
        """Kill -9 of the process and of everything below it."""
        below = self.below()
        at = self.signal(signal.SIGKILL)
        for one in below:
            kill(one.pid)
        self.process.wait(LONG_SECONDS)
        return at

    def terminate(self) -> int:
        """Ask it to stop, and wait until it has; its exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(LONG_SECONDS)

    def below(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def zygotes(self) -> list[int]:
        """Process ids of its warm parents."""
        return [one.pid for one in self.below() if "headrace.runner.zygote" in _command_line(one) and _leads(one)]


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

    def bring(self, *names: str) -> None:
        """Copy workflows of this test folder into the project."""
        for name in names:
            shutil.copy(WORKFLOWS / name, self.project)

    def start(self, kind: str, *arguments: str, **environment: str) -> Member:
        """Start `headrace KIND …`; it is not ready yet when this returns."""
        name = f"{kind}-{len(self._members) + 1}"
        stderr = self.home / f"{name}.stderr"
        with open(stderr, "wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace.cli", kind, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**self._environment, **environment},
                preexec_fn=_die_with_the_test(),
            )
        self._members.append(Member(name, process, stderr))
        return self._members[-1]

    def standalone(self, *arguments: str, **environment: str) -> Member:
        return self.start("standalone", str(self.project), *arguments, **environment)

    def scheduler(self, **environment: str) -> Member:
        return self.start("scheduler", "--projects", f"project={self.project}", **environment)

    def agent(self, *arguments: str, **environment: str) -> Member:
        return self.start("agent", *arguments, **environment)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        with subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
            preexec_fn=_die_with_the_test(),
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=LONG_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
                raise AssertionError(f"{arguments} did not end:\n{stdout}\n{stderr}\n{self.stderr()}") from None
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def ask(self, *arguments: str) -> Any:
        """What a command that must succeed says as JSON."""
        done = self.command(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def trigger(self, workflow: str, *arguments: str) -> int:
        """Start a run of a workflow as soon as a member has saved it; the run's id."""
        self.wait_until(lambda: self._has_workflow(workflow), f"workflow `{workflow}` is saved")
        return int(self.ask("trigger", workflow, *arguments)["run_id"])

    # ---- what the store says -------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """For looking only."""
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
            assert time.monotonic() < until, f"waited {seconds:.0f} s in vain until {what}\n{self.stderr()}"
            time.sleep(_LOOK_SECONDS)

    def wait_for_members(self, agents: int, schedulers: int = 0) -> None:
        """Until so many are announced in the store."""

        def are_there() -> bool:
            with self.store.read() as tx:
                kinds = [one.kind for one in live_agents(tx, to_micros(SystemClock().now()))]
            return kinds.count("agent") >= agents and kinds.count("scheduler") >= schedulers

        self.wait_until(are_there, f"{agents} agents and {schedulers} schedulers are there")

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
            if member.process.poll() is None:
                member.kill()
        left = self._wait_for_silence()
        for pid in left:
            kill(pid)
        if self._opened is not None:
            self._opened.dispose()
        print(self.stderr())
        assert not left, f"processes outlived their cluster: {left}"

    def processes(self) -> list[int]:
        """Everything that was started with this home folder, whoever its parent is now."""
        mark = f"\0HEADRACE_HOME={self.home}\0".encode()
        return [pid for pid in psutil.pids() if mark in _environment_of(pid)]

    def _wait_for_silence(self) -> list[int]:
        until = time.monotonic() + _GONE_SECONDS
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return left

    def _has_workflow(self, name: str) -> bool:
        with self.store.read() as tx:
            return name in workflow_names(tx)


def kill(pid: int) -> float:
    """Kill -9 of any process, which may be gone already; when the signal was sent."""
    at = time.monotonic()
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return at


def _environment_of(pid: int) -> bytes:
    try:
        return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _leads(process: psutil.Process) -> bool:
    """Whether it is a warm parent, and not a child that has its command line from it."""
    try:
        parent = process.parent()
    except psutil.Error:
        return False
    return parent is not None and "headrace.runner.zygote" not in _command_line(parent)


def _die_with_the_test() -> Callable[[], None]:
    """What a member does before it becomes itself: have the kernel kill it when the test process is gone."""
    parent = os.getpid()

    def ask_kernel() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel
