"""The triggerer: claims triggers under its lease, has them run in one process, and commits what they have to tell.

Like an agent it does all of that on one thread (`step`), and others keep the lease. Any number of triggerers share a
store. Until there is a first trigger it is a thread that sleeps: no process, no lease.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

import msgspec

from headrace.clock import Clock, to_micros
from headrace.errors import HeadraceError, StoreError
from headrace.executor.contract import Broker
from headrace.executor.loop import Loop
from headrace.executor.questions import answer
from headrace.handoff import Asked, Fired, FromTriggers, Logged, Stopped, StopTrigger, TaskError, ToTriggers
from headrace.logs import USUAL_RULES, Masker, MaskingRules
from headrace.metrics import tick_ended, tick_failed
from headrace.metrics.catalogue import (
    TRIGGER_PROCESSES_DIED,
    TRIGGERS_FIRED,
    TRIGGERS_RUNNING,
)
from headrace.processes import place
from headrace.store import (
    ClaimedTrigger,
    LeaseKeeper,
    News,
    Requests,
    RunGraph,
    Store,
    Transaction,
    claim_triggers,
    emit_watched,
    extend_lease,
    fire_triggers,
    forget_triggers,
    has_free_triggers,
    held_triggers,
    let_go_of_triggers,
    register,
    resign,
    watching_workflow,
)
from headrace.triggerer.held_trigger import NOBODY, HeldTrigger, held_trigger, held_watcher
from headrace.triggerer.trigger_child import TriggerChild

_log = logging.getLogger("headrace.triggerer")

_BATCH = 100
"""How many triggers are claimed at once, so that several triggerers share a crowd."""
_STOP_SECONDS = 40.0
"""How long the process may take to clean up: `on_kill` of a trigger has 30 seconds."""


@dataclass(frozen=True)
class TriggererOptions:
    """How a triggerer behaves."""

    capacity: int = 1000
    """How many triggers it runs at the same time."""
    lease_seconds: float = 15.0
    renew_seconds: float = 5.0
    poll_seconds: float = 5.0
    """How long it waits for a wake-up before it looks by itself."""
    gather_seconds: float = 0.02
    """Wake-ups come in swarms while agents are busy; one look answers all that came within this time."""
    retry_seconds: float = 0.5
    """Between two attempts to reach a database that is away."""
    idle_seconds: float = 60.0
    """How long a process without triggers is kept; a new one loads changed code anew."""
    stuck_seconds: float = 60.0
    """A trigger that does not let the others run for so long fails; they go on in a new process."""
    attempt_id: int | None = None
    """Serve only this attempt: a private triggerer for one run."""
    masking: MaskingRules = USUAL_RULES
    """What is a secret by its name."""
    name: str = ""


class Child(Protocol):
    """Where triggers run. `TriggerChild` tells more about what is asked of it."""

    @property
    def is_running(self) -> bool: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def pause_seconds(self) -> float: ...
    def start(self) -> None: ...
    def send(self, message: ToTriggers) -> None: ...
    def halt(self, number: signal.Signals) -> bool: ...
    def stop(self, grace_seconds: float) -> None: ...


MakeChild = Callable[[Loop, Callable[[FromTriggers], None], Callable[[int], None], float], Child]
"""With who hears what it says, who hears of its end, and after how long a trigger is stuck."""


class Triggerer:
    """`start`, then `step` again and again (or `run`), then `stop`; the last three on one thread."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        broker: Broker,
        logs_root: Path,
        options: TriggererOptions,
        make_child: MakeChild = TriggerChild,
    ) -> None:
        self._store = store
        self._clock = clock
        self._broker = broker
        self._logs_root = logs_root
        self._options = options
        self._attempts = None if options.attempt_id is None else {options.attempt_id}
        self._requests = Requests("process")
        self._loop = Loop()
        self._child = make_child(self._loop, self._hear, self._child_died, options.stuck_seconds)
        self._running: dict[int, HeldTrigger] = {}
        self._told: list[Fired] = []
        self._numbers = count(1)
        """Of the events of watchers, so that those which are told again are known."""
        self._logs: dict[int, str] = {}
        self._forgotten: list[int] = []
        self._must_look = threading.Event()
        self._stop = threading.Event()
        self._may_hold_unknown = False
        self._renews_by_itself = True
        self._busy_at = 0.0
        self._stopping_at: int | None = None
        self.id = 0
        """0 until it has a lease."""
        self.name = options.name or f"{socket.gethostname()}:{os.getpid()}"
        self._lease = LeaseKeeper(
            store,
            clock,
            kind="triggerer",
            name=self.name,
            seconds=options.lease_seconds,
            renew_seconds=options.renew_seconds,
            grace_seconds=_STOP_SECONDS,
            extend=self._extend,
            halt=self._halt,
        )

    # ---- life ------------------------------------------------------------------------------------------------------

    def start(self, *, is_announced: bool = False, renews_by_itself: bool = True) -> None:
        """Begin to listen to wake-ups; announced: take a lease before there is a first trigger.

        Unless it renews its lease by itself, whoever moves its clock calls `renew`.
        """
        self._renews_by_itself = renews_by_itself
        self._store.wakeups.subscribe(self.wake, News.TRIGGERS)
        self._must_look.set()
        if is_announced:
            self._register()

    @property
    def running(self) -> int:
        """How many triggers it runs."""
        return len(self._running)

    @property
    def child_pid(self) -> int | None:
        return self._child.pid

    def wake(self) -> None:
        """Have the next step look for triggers. Any thread may call it."""
        self._must_look.set()
        self._loop.wake()

    def serve(self, attempt_id: int) -> None:
        """Have a private triggerer serve one more attempt. Any thread may call it."""
        if self._attempts is not None:
            self._attempts = {*self._attempts, attempt_id}
            self.wake()

    def interrupt(self) -> None:
        """Have the present step return soon. Any thread may call it."""
        self._loop.wake()

    def run(self, stop: Callable[[], bool]) -> None:
        """Step until told to stop."""
        while not stop():
            self.step(self._options.poll_seconds)

    def stop(self) -> None:
        """End what was given up, let go of everything else and resign; closes the thread's connection to the store."""
        self._tell_stopping()
        self._attempt(self._stop_what_is_over)
        self._child.stop(_STOP_SECONDS)
        self._attempt(self._commit)
        self._stop.set()
        self._lease.stop()
        if self.id:
            self._attempt(lambda: self._store.transact(self._resign))
        self._loop.close()
        self._store.close()

    # ---- one step --------------------------------------------------------------------------------------------------

    def step(self, timeout_seconds: float) -> None:
        """Wait for the process or a wake-up, commit what was told, claim."""
        if self._lease.is_lost.is_set():
            self._begin_anew()
        elif not self._lease.is_safe:
            self._stop_everything()
        self._loop.step(0.0 if self._must_look.is_set() or self._told else timeout_seconds)
        if self._must_look.is_set():
            self._stop.wait(self._options.gather_seconds)
        began = time.perf_counter()
        try:
            fired = self._commit()
            self._look()
            tick_ended("triggerer", began, fired)
        except StoreError as error:
            tick_failed("triggerer")
            self._must_look.set()
            self._may_hold_unknown = True
            self._stop.wait(self._store.outage.met(error, self._options.retry_seconds))
        TRIGGERS_RUNNING.set(len(self._running))
        self._mind_the_child()

    def _look(self) -> None:
        self._must_look.clear()
        if self._may_hold_unknown and self.id:
            self._let_go_of_unknown()
        self._stop_what_is_over()
        self._claim()

    def _let_go_of_unknown(self) -> None:
        """A claim whose answer was lost may have taken triggers that nobody here knows of."""
        known = [*self._running, *self._forgotten, *(fired.trigger_id for fired in self._told)]
        self._store.transact(lambda tx: let_go_of_triggers(tx, self.id, known))
        self._may_hold_unknown = False

    def _claim(self) -> None:
        free = min(_BATCH, self._options.capacity - len(self._running))
        if free <= 0 or self._child.pause_seconds or not self._lease.is_safe:
            return
        with self._store.read() as tx:
            if not has_free_triggers(tx, self._now(), self._attempts):
                return
        if not self.id:
            self._register()
        claimed = self._store.transact(partial(self._take, limit=free))
        for held in claimed:
            self._run_trigger(held)
        if len(claimed) == free:
            self._must_look.set()

    def _take(self, tx: Transaction, limit: int) -> list[HeldTrigger]:
        claimed = claim_triggers(tx, self.id, limit, self._now(), self._attempts)
        return [self._held(tx, one) for one in claimed]

    def _held(self, tx: Transaction, claimed: ClaimedTrigger) -> HeldTrigger:
        masker = Masker(rules=self._options.masking)
        if claimed.asset:
            return held_watcher(claimed, watching_workflow(tx, claimed.workflow_id), self._logs_root, masker)
        return held_trigger(claimed, self._requests.run(tx, claimed.attempt_id), self._logs_root, masker)

    def _run_trigger(self, held: HeldTrigger) -> None:
        if held.order.id in self._running:
            self._running[held.order.id].successor = held
            return
        self._running[held.order.id] = held
        self._busy_at = time.monotonic()
        if self._child.is_running:
            self._child.send(held.order)

    def _stop_what_is_over(self) -> None:
        """Stop what nobody waits for any more, and what somebody else runs by now."""
        if not self._running:
            return
        with self._store.read() as tx:
            store_says = held_triggers(tx, self.id)
        for trigger_id, held in self._running.items():
            is_given_up = store_says.get(trigger_id)
            if is_given_up is not False and not held.is_stopping and not held.order.is_given_up:
                held.is_stopping, held.is_given_up = True, bool(is_given_up)
                self._child.send(StopTrigger(id=trigger_id, is_given_up=bool(is_given_up)))

    def _commit(self) -> int:
        """Returns how many events were committed."""
        told, forgotten = list(self._told), list(self._forgotten)
        if not told and not forgotten:
            return 0
        try:
            self._store.transact(partial(self._record, told=told, forgotten=forgotten))
        except StoreError:
            raise
        except Exception:
            _log.exception("could not commit %d events at once; each is tried alone", len(told))
            self._commit_one_by_one(told)
        self._told, self._forgotten = self._told[len(told) :], self._forgotten[len(forgotten) :]
        for fired in told:
            self._logs.pop(fired.trigger_id, None)
        TRIGGERS_FIRED.add(count=len(told))
        return len(told)

    def _record(self, tx: Transaction, told: list[Fired], forgotten: list[int]) -> None:
        if told:
            graph = RunGraph(tx, self._now())
            fire_triggers(tx, graph, told, self.id or None, self._logs)
            emit_watched(tx, told, self.id, self._now())
        if forgotten:
            forget_triggers(tx, forgotten)

    def _commit_one_by_one(self, told: list[Fired]) -> None:
        """One event that cannot be applied must not hold up the others; its task is told that the trigger failed."""
        for fired in told:
            try:
                self._store.transact(partial(self._record, told=[fired], forgotten=[]))
            except StoreError:
                raise
            except Exception as error:
                _log.exception("trigger %d: its event could not be applied", fired.trigger_id)
                reason = TaskError(type="TaskDeferralError", message=f"its event could not be applied: {error}")
                failed = Fired(trigger_id=fired.trigger_id, error=reason)
                self._store.transact(partial(self._record, told=[failed], forgotten=[]))

    # ---- the process -----------------------------------------------------------------------------------------------

    def _mind_the_child(self) -> None:
        if not self._child.is_running:
            self._forget_what_was_stopped()
        if self._running:
            if not self._child.is_running and not self._child.pause_seconds and self._lease.is_safe:
                self._start_child()
        elif self._child.is_running and time.monotonic() - self._busy_at > self._options.idle_seconds:
            self._child.stop(1.0)

    def _start_child(self) -> None:
        self._child.start()
        for held in self._running.values():
            self._child.send(held.order)

    def _child_died(self, code: int) -> None:
        TRIGGER_PROCESSES_DIED.add()
        how = f"was killed by signal {-code}" if code < 0 else f"left with {code}"
        _log.warning("the process of %d triggers %s; another one goes on with them", len(self._running), how)

    def _forget_what_was_stopped(self) -> None:
        """There is no process: what one was told to stop, or was about to be told, does not begin anew in the next."""
        for trigger_id, held in list(self._running.items()):
            if held.is_given_up:
                # What it had to clean up has gone with it; its work outside has not.
                order = msgspec.structs.replace(held.order, is_given_up=True)
                self._running[trigger_id] = HeldTrigger(order, held.log)
            elif held.is_stopping:
                self._has_stopped(held)

    def _hear(self, message: FromTriggers) -> None:
        if isinstance(message, Asked):
            held = self._running.get(message.trigger_id)
            request = NOBODY if held is None else held.order.request
            masker = Masker(rules=self._options.masking) if held is None else held.log.masker
            self._child.send(answer(self._broker, request, message.ask, masker))
        elif isinstance(message, Fired):
            self._fired(message)
        elif message.trigger_id in self._running:
            self._hear_of(self._running[message.trigger_id], message)

    def _fired(self, message: Fired) -> None:
        held = self._running.get(message.trigger_id)
        if held is not None and held.order.asset:
            self._told.append(msgspec.structs.replace(message, number=next(self._numbers)))
            if message.error is not None:
                _log.warning("a watcher of asset `%s` failed: %s", held.order.asset, message.error.message)
        elif held is not None and not held.is_stopping:
            held.is_stopping = True
            self._told.append(held.without_secrets(message))
            self._logs[message.trigger_id] = held.log.path.removeprefix(f"{self._logs_root}/")

    def _hear_of(self, held: HeldTrigger, message: Stopped | Logged) -> None:
        if isinstance(message, Logged):
            held.write(message.text)
            return
        if held.is_given_up or held.order.is_given_up:
            self._forgotten.append(message.trigger_id)
        self._has_stopped(held)

    def _has_stopped(self, held: HeldTrigger) -> None:
        del self._running[held.order.id]
        # One that watches and ended by itself is still wanted, by whoever takes it next, and so is one that was halted
        # because the lease was about to end, which was renewed after all.
        self._may_hold_unknown = self._may_hold_unknown or bool(held.order.asset) or not held.is_stopping
        self._busy_at = time.monotonic()
        self._must_look.set()
        if held.successor is not None:
            self._run_trigger(held.successor)

    # ---- leases ----------------------------------------------------------------------------------------------------

    def _register(self) -> None:
        began_at = time.monotonic()
        self.id = self._store.transact(self._announce)
        self._lease.begin(began_at)
        if self._renews_by_itself:
            self._lease.start(self.wake)

    def _announce(self, tx: Transaction) -> int:
        return register(
            tx,
            kind="triggerer",
            name=self.name,
            place=place(),
            pid=os.getpid(),
            slots=self._options.capacity,
            queues=(),
            now=self._now(),
            lease_micros=round(self._options.lease_seconds * 1_000_000),
        )

    def renew(self) -> None:
        """Renew the lease once."""
        self._lease.renew()
        self._loop.wake()

    def _extend(self) -> bool:
        own_id, lease = self.id, round(self._options.lease_seconds * 1_000_000)
        is_held = self._store.transact(lambda tx: extend_lease(tx, own_id, self._now(), lease, self._stopping_at))
        # It may have begun anew meanwhile.
        return is_held or own_id != self.id

    def _tell_stopping(self) -> None:
        """Others must not count on a triggerer whose triggers only clean up. One that runs none resigns at once."""
        self._stopping_at = self._now()
        if self._running:
            try:
                self._lease.renew()
            except StoreError as error:
                # The next renewal tells it.
                self._store.outage.met(error)

    def _halt(self, number: signal.Signals) -> int:
        """End the process of triggers, whatever the thread that owns it is waiting for. How many triggers it runs."""
        is_halted = self._child.halt(number)
        self._loop.wake()
        return len(self._running) if is_halted else 0

    def _begin_anew(self) -> None:
        """The others gave this triggerer up and run its triggers: it stops them and starts as a new one."""
        if not self._store.outage.is_on:
            running = len(self._running)
            _log.warning("triggerer `%s` lost its lease: its %d triggers go on elsewhere", self.name, running)
        self._stop_everything()
        try:
            # First, as what may have been recorded without an answer is known by the number and the old lease.
            self._commit()
            self._register()
            self._must_look.set()
        except StoreError as error:
            self._stop.wait(self._store.outage.met(error, self._options.retry_seconds))

    def _stop_everything(self) -> None:
        """What the store still says is held here is let go of when it can be reached."""
        if self._running or self._child.is_running:
            self._child.stop(self._lease.grace_seconds)
            self._running.clear()
            self._may_hold_unknown = True

    def _resign(self, tx: Transaction) -> None:
        let_go_of_triggers(tx, self.id)
        resign(tx, self.id, self._now())
        tx.tell()

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except HeadraceError as error:
            _log.warning("could not end in good order: %s", error.message)

    def _now(self) -> int:
        return to_micros(self._clock.now())
