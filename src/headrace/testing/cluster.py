"""A cluster in one thread: real agents, triggerers and services on a real store, and a seed decides who acts when.

Every transaction boundary of every node is a place where that node may die, lose its database, or be overtaken by
others. Between faults the checker compares what the store says with what may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from headrace.agent import Agent
from headrace.clock import ManualClock, to_micros
from headrace.handoff import errand_id, is_errand
from headrace.scheduler import Beat
from headrace.state import State
from headrace.store import (
    Database,
    Report,
    RunGraph,
    Transaction,
    end_errand,
    look_ahead,
    record_results,
    tell_of,
)
from headrace.store.sql import Sql
from headrace.testing.asset_check import AssetCheck
from headrace.testing.endings import Endings
from headrace.testing.invariants import Checker, SeenEvent
from headrace.testing.nodes import LEASE_SECONDS, START, Node, equip_agent, equip_scheduler, equip_triggerer
from headrace.testing.quiet_check import QuietCheck
from headrace.testing.random_workflows import POOLS
from headrace.testing.recounting import Violation
from headrace.testing.simulated_faults import (
    Away,
    Crash,
    Execution,
    Moment,
    NodeStore,
    SimulatedProcessors,
    SkewedClock,
)
from headrace.testing.simulated_triggers import Told
from headrace.testing.trigger_check import TriggerCheck
from headrace.testing.wake_check import WakeCheck
from headrace.triggerer import Triggerer

RENEW_SECONDS = 5.0
SKEW_SECONDS = 2.0
QUIET_CHECKS = 0.2
TRIGGERER_TURNS = 0.15


@dataclass
class Faults:
    """How likely what goes wrong is, at each boundary of a transaction."""

    crash: float = 0.006
    away: float = 0.01
    overtaken: float = 0.08


class Cluster:
    """`act` again and again, then `heal` and `drain`."""

    def __init__(self, random: Random, open_database: Callable[[], Database], note: Callable[[str], None]) -> None:
        self.random = random
        self.clock = ManualClock(START)
        self.faults: Faults | None = Faults()
        self.executions: dict[tuple[int, int], Execution] = {}
        self.undead: list[Execution] = []
        """What dead agents left behind: it runs on and may report late."""
        self.note = note
        self._open_database = open_database
        self._names = 0
        self._busy: list[Node] = []
        self._violation: Violation | None = None
        self._endings = Endings(random)
        self.user = self._node("user")
        database = self._open_database()
        self.checker = Checker(database, {**POOLS, "default_pool": 128})
        self.checker.is_reported = self._is_reported
        self._quiet = QuietCheck(NodeStore(database, lambda moment: None))
        self._wakes = WakeCheck(database)
        self._assets = AssetCheck(database)
        self._told = Told()
        self._triggers = TriggerCheck(database, self._told)
        self._dice = Random(random.getrandbits(32))
        self.agents = [self._agent() for _ in range(random.randint(1, 3))]
        self.schedulers = [self._scheduler() for _ in range(random.randint(1, 2))]
        self.triggerers = [self._triggerer() for _ in range(random.randint(1, 2))]

    @property
    def now(self) -> int:
        return to_micros(self.clock.now())

    # ---- nodes -------------------------------------------------------------------------------------------------

    def _node(self, kind: str) -> Node:
        self._names += 1
        offset = timedelta(seconds=self.random.uniform(-SKEW_SECONDS, SKEW_SECONDS)) if kind != "user" else timedelta(0)
        store = NodeStore(self._open_database(), lambda moment: self._boundary(node, moment))
        node = Node(f"{kind}-{self._names}", store, SkewedClock(self.clock, offset), renewed_at=self.clock.now())
        if kind == "user" and store.is_shared:
            store.around = self._let_agents_claim_inside
        return node

    def _agent(self) -> Node:
        node = self._node("agent")
        processors = SimulatedProcessors(Random(self.random.getrandbits(32)))
        equip_agent(node, self.random.randint(1, 4), self.clock, self._endings, self.executions, processors)
        return node

    def _scheduler(self) -> Node:
        node = self._node("scheduler")
        equip_scheduler(node)
        return node

    def _triggerer(self) -> Node:
        node = self._node("triggerer")
        equip_triggerer(node, self.clock, self.random, self._told)
        return node

    # ---- one thing happens ---------------------------------------------------------------------------------------

    def act(self) -> None:
        """One node does one thing, or time passes, or something breaks."""
        if self.random.random() < TRIGGERER_TURNS:
            self._act_on_triggers(self.random.choice(self.triggerers))
            return
        choice = self.random.random()
        if choice < 0.40:
            self.step_agent(self.random.choice(self.agents))
        elif choice < 0.62:
            self.step_scheduler(self.random.choice(self.schedulers))
        elif choice < 0.84:
            self.pass_time(self.random.choice((0.1, 1.0, 1.0, 3.0, 8.0)))
        elif choice < 0.90:
            self.tell_late()
        elif choice < 0.94:
            self._fall_asleep(self.random.choice(self.agents))
        elif choice < 0.98:
            self.step_agent(self.random.choice(self.agents), is_woken=True)
        else:
            self._die(self.random.choice([*self.agents, *self.schedulers]))

    def _act_on_triggers(self, node: Node) -> None:
        """The same for a triggerer: it does something, or it or the process of its triggers breaks."""
        choice = self.random.random()
        if choice < 0.84:
            self.step_triggerer(node)
        elif choice < 0.90:
            self._fall_asleep(node)
        elif choice < 0.95:
            self._kill_triggers(node)
        else:
            self._die(node)

    def check_quiet(self) -> None:
        """What no scheduler sees is not there. Looked at now and then, as it costs as much as what it looks at."""
        if self._dice.random() < QUIET_CHECKS:
            self._quiet.check(self._wakes.seen, self.clock.now(), self.checker.workflows)
            self.check_assets()

    def check_assets(self) -> None:
        """Each event of an asset is where it should be, and what watchers told has come once."""
        self._assets.check(self.checker.workflows, self.now)
        often = {payload: count for payload, count in self._assets.payloads.items() if count > 1}
        if often or max(self._assets.payloads, default=0) > self._told.payloads:
            raise Violation(f"watchers have told {self._told.payloads} events, and some came too often: {often}")

    def check_watchers(self) -> None:
        """While nothing is paused, every asset is watched as its workflows want it."""
        self._assets.check_watchers(self.checker.workflows)

    def step_agent(self, node: Node, *, is_woken: bool = False) -> None:
        """An agent starts, or renews its lease if that is due, and makes a step."""
        agent = node.agent
        if agent is None or node in self._busy or node.sleeps_until > self.clock.now():
            return
        with self._working(node):
            if not node.is_started:
                agent.start(renews_by_itself=False)
                node.is_started = True
            if is_woken:
                agent.wake()
            # After a long sleep it is a matter of luck which of its two threads comes first.
            if self.random.random() < 0.8:
                self._renew(node, agent)
            agent.step(0.0)

    def _renew(self, node: Node, holder: Agent | Triggerer) -> None:
        if self.clock.now() - node.renewed_at >= timedelta(seconds=RENEW_SECONDS):
            node.renewed_at = self.clock.now()
            holder.renew()
            holder.wake()

    def step_triggerer(self, node: Node) -> None:
        """A triggerer starts, or renews its lease if that is due, hears what triggers tell, and makes a step."""
        triggerer = node.triggerer
        if triggerer is None or node in self._busy or node.sleeps_until > self.clock.now():
            return
        with self._working(node):
            if not node.is_started:
                triggerer.start(is_announced=True, renews_by_itself=False)
                node.is_started = True
            if self.random.random() < 0.8:
                self._renew(node, triggerer)
            if node.triggers is not None:
                node.triggers.speak()
            triggerer.step(0.0)

    def _kill_triggers(self, node: Node) -> None:
        if node.triggers is not None and node not in self._busy:
            self.note(f"the process of triggers of {node.name} is killed")
            node.triggers.die()

    def step_scheduler(self, node: Node) -> None:
        """A scheduler looks what there is to do, and serves that, as its loop does."""
        if node in self._busy:
            return
        with self._working(node):
            now, done, node.untold = node.clock.now(), 0, None
            with node.store.read() as tx:
                outlook = look_ahead(tx, to_micros(now))
            for beat in node.beats:
                if beat.is_due(outlook, now):
                    done += self._serve(beat, now)
            if not done:
                self._wakes.expect_none(node.untold, node.name)  # it goes to sleep

    def _serve(self, beat: Beat, now: datetime) -> int:
        done = beat.service.tick(now)
        beat.rest(now, done)
        if done and beat.service.name == "reviver":
            raise Violation("a run had come to a standstill, and only the reviver got it going")
        return done

    def pass_time(self, seconds: float) -> None:
        if not self._busy:
            self.clock.advance(timedelta(seconds=seconds))

    def tell_late(self) -> None:
        """A try of a dead agent reports after all, or somebody reports a second time."""
        ended = [one for one in self.executions.values() if one.ends_at <= self.clock.now()]
        late = [one for one in self.undead if one.ends_at <= self.clock.now()]
        told = [one for one in ended if one.is_delivered]
        if late and self.random.random() < 0.7:
            execution = self.random.choice(late)
            self.undead.remove(execution)
        elif told:
            execution = self.random.choice(told)
        else:
            return
        execution.is_delivered = True
        self.note(f"a late report of claim {execution.claim}: {execution.result.outcome}")
        report = Report(execution.request.run.attempt_id, execution.result)
        self.ask(lambda tx: self._record(tx, report))

    def _record(self, tx: Transaction, report: Report) -> None:
        if is_errand(report.result.task_id):
            end_errand(tx, errand_id(report.result.task_id), report.result, None, self.now)
            return
        graph = RunGraph(tx, self.now)
        committed = record_results(tx, graph, [report])
        tell_of(tx, graph, [committed])
        graph.flush_events()

    def ask(self, work: Callable[[Transaction], object]) -> None:
        """Somebody outside of the cluster changes something."""
        if self.user not in self._busy:
            with self._working(self.user):
                self.user.store.transact(work)

    # ---- what goes wrong -------------------------------------------------------------------------------------------

    def _boundary(self, node: Node, moment: Moment) -> None:
        if moment == "after" and self.checker.has_news():
            self._look(node)
        if self.faults is None or node is self.user:
            return
        choice = self.random.random()
        if moment != "read" and choice < self.faults.crash:
            raise Crash(moment)
        if moment != "read" and choice < self.faults.crash + self.faults.away:
            self.note(f"{node.name} loses the database {moment} a transaction")
            raise Away("simulated")
        if moment != "inside" and len(self._busy) < 3 and choice > 1 - self.faults.overtaken:
            self._overtake(node)

    def _overtake(self, node: Node) -> None:
        """Others get a turn between two transactions of this node."""
        others = [one for one in (*self.agents, *self.schedulers, *self.triggerers) if one not in self._busy]
        if not others:
            return
        other = self.random.choice(others)
        self.note(f"{other.name} overtakes {node.name}")
        if other.agent is not None:
            self.step_agent(other)
        elif other.triggerer is not None:
            self.step_triggerer(other)
        else:
            self.step_scheduler(other)

    def _let_agents_claim_inside(self, tx: Transaction) -> None:
        """On PostgreSQL agents claim while another transaction, which has read the tasks, is about to write them."""
        write = tx.write_each

        def overtaken(statement: Sql, rows: Sequence[object]) -> None:
            idle = [node for node in self.agents if self._only_claims(node)]
            if self.faults is not None and idle and self.random.random() < 0.5:
                faults, self.faults = self.faults, None
                self.step_agent(self.random.choice(idle))
                self.faults = faults
            write(statement, rows)

        object.__setattr__(tx, "write_each", overtaken)

    def _only_claims(self, node: Node) -> bool:
        """Whether its next step takes no lock that a transaction under way may hold."""
        has_results = node.executor is None or any(
            e.ends_at <= self.clock.now() for e in node.executor.present.values()
        )
        return node.is_started and node.agent is not None and not node.agent.is_busy and not has_results

    def _working(self, node: Node) -> _Working:
        return _Working(self, node)

    def finish(self, node: Node, error: BaseException | None) -> bool:
        """A node's turn is over. True: its error belongs to the simulation."""
        self._busy.remove(node)
        if self._violation is not None:
            raise self._violation
        if isinstance(error, Crash):
            self.note(f"{node.name} dies ({error})")
            self._bury(node)
        elif node.store.mistakes:
            raise Violation(f"{node.name} met an error: {node.store.mistakes[0]!r}") from node.store.mistakes[0]
        elif error is not None and not isinstance(error, Away):
            return False
        return True

    def begin(self, node: Node) -> None:
        self._busy.append(node)

    def _look(self, node: Node) -> None:
        try:
            events = self.checker.check()
            self._listen(node, events)
        except Violation as error:
            # Raised into the code under test, which may well go on after it.
            self._violation = self._violation or error
            raise
        for event in events:
            self.note(f"  event {event.id}: task {event.task_id} {event.before} → {event.after} by {event.actor}")

    def _listen(self, node: Node, events: Sequence[SeenEvent]) -> None:
        """What a commit has made for others is told to them, unless a scheduler made it for itself and looks again."""
        news = node.store.wakeups.take()
        untold = self._wakes.untold(news, self.now, to_micros(node.clock.now()))
        if node in self.schedulers:
            node.untold = node.untold or untold
        else:
            self._wakes.expect_none(untold, node.name)
        self._triggers.check(events, news, 0 if node.triggerer is None else node.triggerer.id, node.name)
        self._assets.follow(self.checker.workflows)
        last = {event.task_id: event.after for event in events if event.task_id is not None}
        scheduled = [task_id for task_id, state in last.items() if state == State.SCHEDULED]
        if scheduled:
            others = [one.agent.id for one in self.agents if one is not node and one.agent and one.is_started]
            self._wakes.expect_no_work(news, scheduled, others, self.now, node.name)

    def _die(self, node: Node) -> None:
        if node not in self._busy:
            self.note(f"{node.name} is killed")
            self._bury(node)

    def _bury(self, node: Node) -> None:
        """Nothing is left of a dead process but the tries that it ran; another process takes its place."""
        if node in self.schedulers:
            self.schedulers[self.schedulers.index(node)] = self._scheduler()
        elif node in self.agents:
            if node.executor is not None:
                self.undead += node.executor.present.values()
            self.agents[self.agents.index(node)] = self._agent()
        elif node in self.triggerers:
            _close(node)
            self.triggerers[self.triggerers.index(node)] = self._triggerer()

    def _fall_asleep(self, node: Node) -> None:
        if node not in self._busy and node.sleeps_until <= self.clock.now():
            seconds = self.random.choice((4.0, 12.0, LEASE_SECONDS * 2))
            self.note(f"{node.name} sleeps for {seconds:g} s")
            node.sleeps_until = self.clock.now() + timedelta(seconds=seconds)

    def _is_reported(self, task_id: int, fence: int) -> bool:
        execution = self.executions.get((task_id, fence))
        # Without an execution the claim's answer was lost, and its agent hands back what it never ran.
        return execution is None or execution.is_delivered

    # ---- the end -------------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self.faults = None
        self._endings.is_calm = self._told.is_calm = True
        for node in (*self.agents, *self.triggerers):
            node.sleeps_until = self.clock.now()

    def round(self, *, is_thorough: bool) -> bool:
        """Everybody gets a turn; in a thorough round also what has its own times. False: nothing moved."""
        before = self.checker.events
        if is_thorough:
            for beat in self.schedulers[0].beats:
                beat.due_at = START
        self.step_scheduler(self.schedulers[0])
        for node in self.triggerers:
            self.step_triggerer(node)
        for node in self.agents:
            self.step_agent(node, is_woken=True)
        return self.checker.events > before

    def wait(self, seconds: float) -> None:
        """Time passes, and everybody renews the lease before anybody can think that its holder is gone."""
        self.pass_time(seconds)
        for node in (*self.agents, *self.triggerers):
            holder = node.agent or node.triggerer
            if holder is not None and node.is_started:
                with self._working(node):
                    holder.renew()

    def next_end(self) -> datetime | None:
        """When the next try under way ends, or the next trigger has something to tell."""
        ends = [e.ends_at for node in self.agents if node.executor for e in node.executor.present.values()]
        ends += [at for node in self.triggerers if node.triggers and (at := node.triggers.next_at())]
        return min(ends, default=None)

    def running_triggers(self) -> set[int]:
        """What runs in the processes of living triggerers."""
        return {trigger_id for node in self.triggerers if node.triggers for trigger_id in node.triggers.present}

    def close(self) -> None:
        for node in self.triggerers:
            _close(node)


def _close(node: Node) -> None:
    """The process of a triggerer is gone, and with it what it had open."""
    if node.triggers is not None:
        node.triggers.loop.close()


@dataclass
class _Working:
    """A node's turn: what it raises is sorted out by the cluster."""

    cluster: Cluster
    node: Node

    def __enter__(self) -> None:
        self.cluster.begin(self.node)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Violation):
            return False
        return self.cluster.finish(self.node, error)
