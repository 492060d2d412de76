"""The processes of a simulated cluster: agents, schedulers and triggerers, each with a store and a clock of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from headrace.agent import Agent, AgentOptions, Broker, Processors
from headrace.clock import Clock
from headrace.executor import InlineExecutor
from headrace.executor.loop import Loop
from headrace.handoff import FromTriggers
from headrace.scheduler import Beat, SchedulerOptions, beats_of
from headrace.store import Outlook
from headrace.testing.simulated_faults import Decide, Execution, NodeStore, SimulatedExecutor, SkewedClock
from headrace.testing.simulated_triggers import SimulatedTriggers, Told
from headrace.triggerer import Triggerer, TriggererOptions

START = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
LEASE_SECONDS = 15.0
Hear = Callable[[FromTriggers], None]
_LOGS = Path(tempfile.gettempdir())


@dataclass(eq=False)
class Node:
    """One process."""

    name: str
    store: NodeStore
    clock: SkewedClock
    agent: Agent | None = None
    executor: SimulatedExecutor | None = None
    beats: list[Beat] = field(default_factory=list)
    triggerer: Triggerer | None = None
    triggers: SimulatedTriggers | None = None
    untold: Outlook | None = None
    """What a scheduler has made for schedulers in its present turn and told none of them."""
    renewed_at: datetime = START
    sleeps_until: datetime = START
    """Frozen until then: neither works nor renews its lease."""
    is_started: bool = False


def equip_agent(
    node: Node,
    slots: int,
    clock: Clock,
    decide: Decide,
    executions: dict[tuple[int, int], Execution],
    processors: Processors,
) -> None:
    """Make a node an agent. Tries take true time, whatever the node's own clock says."""
    node.executor = SimulatedExecutor(clock, decide, slots, executions)
    # What is waited for on this machine's clock would make another story of a seed on a busy one.
    options = AgentOptions(
        slots=slots, lease_seconds=LEASE_SECONDS, name=node.name, retry_seconds=0.0, gather_seconds=0.0
    )
    inline = InlineExecutor(Broker(node.store))
    node.agent = Agent(node.store, node.clock, node.executor, inline, _LOGS, options, processors)


def equip_scheduler(node: Node) -> None:
    """Make a node a scheduler, with everything that a real one does for runs."""
    node.beats = beats_of(node.store, SchedulerOptions())


def equip_triggerer(node: Node, clock: Clock, random: Random, told: Told) -> None:
    """Make a node a triggerer. Triggers take true time, too."""

    def make_child(loop: Loop, hear: Hear, hear_of_end: Callable[[int], None], _: float) -> SimulatedTriggers:
        node.triggers = SimulatedTriggers(clock, random, told, loop, hear, hear_of_end)
        return node.triggers

    options = TriggererOptions(lease_seconds=LEASE_SECONDS, name=node.name, gather_seconds=0.0, retry_seconds=0.0)
    node.triggerer = Triggerer(node.store, node.clock, Broker(node.store), _LOGS, options, make_child)
