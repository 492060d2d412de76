"""The process of triggers in simulated time: what triggers tell, and when, is a matter of luck."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from headrace.clock import Clock
from headrace.executor.loop import Loop
from headrace.handoff import Fired, FromTriggers, RunTrigger, Stopped, StopTrigger, TaskError, ToTriggers


@dataclass
class Told:
    """What all triggers of a cluster have told so far."""

    fired: set[int] = field(default_factory=set)
    """Those that a task waited for and that had something to tell."""
    killed: set[int] = field(default_factory=set)
    """Those whose work outside was ended."""
    payloads: int = 0
    """How many events watchers have told; each has its number as payload."""
    is_calm: bool = False
    """Nothing is updated any more, so that everything comes to its end."""


@dataclass
class _Trigger:
    order: RunTrigger
    acts_at: datetime
    is_asked_to_stop: bool = False
    is_given_up: bool = False


class SimulatedTriggers:
    """Stands for `TriggerChild`. Whoever moves the clock calls `speak`."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        told: Told,
        loop: Loop,
        on_message: Callable[[FromTriggers], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._clock = clock
        self._random = random
        self._told = told
        self._on_message = on_message
        self._on_exit = on_exit
        self.loop = loop
        """Of the triggerer: open until somebody closes it."""
        self.present: dict[int, _Trigger] = {}
        self.is_running = False

    @property
    def pid(self) -> int | None:
        return None

    @property
    def pause_seconds(self) -> float:
        return 0.0

    def start(self) -> None:
        self.is_running = True

    def send(self, message: ToTriggers) -> None:
        if isinstance(message, RunTrigger):
            self.present[message.id] = _Trigger(message, self._later(), is_given_up=message.is_given_up)
        elif isinstance(message, StopTrigger) and message.id in self.present:
            asked = self.present[message.id]
            asked.is_asked_to_stop, asked.is_given_up = True, message.is_given_up

    def halt(self, number: signal.Signals) -> bool:
        """The thread that would call it is not simulated."""
        return False

    def stop(self, grace_seconds: float) -> None:
        """It cleans up and leaves, and is heard until then."""
        self.is_running = False
        for trigger_id in list(self.present):
            self._leave(trigger_id)

    def die(self) -> None:
        """It is killed; its triggerer notices."""
        if self.is_running:
            self.is_running = False
            self.present.clear()
            self._on_exit(-signal.SIGKILL)

    def speak(self) -> None:
        """Whatever has happened until now is told."""
        for trigger_id, one in list(self.present.items()):
            if one.is_asked_to_stop or one.order.is_given_up:
                self._leave(trigger_id)
            elif one.order.asset:
                self._watch(one)
            elif one.acts_at <= self._clock.now():
                self._told.fired.add(trigger_id)
                self._on_message(self._event(trigger_id))
                # What it has to clean up may take a while.
                one.is_asked_to_stop = True
                if self._random.random() < 0.5:
                    self._leave(trigger_id)

    def next_at(self) -> datetime | None:
        """When the next trigger that somebody waits for has something to tell."""
        return min((one.acts_at for one in self.present.values() if not one.order.asset), default=None)

    def _watch(self, one: _Trigger) -> None:
        if one.acts_at > self._clock.now() or self._told.is_calm:
            return
        one.acts_at = self._later()
        if self._random.random() < 0.1:
            error = TaskError(type="ValueError", message="by luck")
            self._on_message(Fired(trigger_id=one.order.id, error=error))
            self._leave(one.order.id)
            return
        self._told.payloads += 1
        self._on_message(Fired(trigger_id=one.order.id, event=self._told.payloads))

    def _leave(self, trigger_id: int) -> None:
        if self.present.pop(trigger_id).is_given_up:
            self._told.killed.add(trigger_id)
        self._on_message(Stopped(trigger_id=trigger_id))

    def _event(self, trigger_id: int) -> Fired:
        choice = self._random.random()
        if choice < 0.15:
            return Fired(trigger_id=trigger_id, error=TaskError(type="ValueError", message="by luck"))
        if choice < 0.4:
            return Fired(trigger_id=trigger_id, outcome=self._random.choice(("success", "failed", "skipped")))
        return Fired(trigger_id=trigger_id, event=trigger_id)

    def _later(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self._random.choice((0.0, 0.0, 1.0, 5.0, 20.0)))
