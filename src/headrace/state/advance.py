"""What follows from what: opening, growing, closing, retrying, skipping, cancelling.

`Advance` applies one or more outcomes to tasks and then settles: it follows every consequence until nothing more can be
decided without new information. It does no I/O itself: it reads and writes through a `Graph`, which the store
implements on a transaction and a test on a dictionary, so the same decisions run everywhere.

The work is proportional to what changed: a task that ends touches its direct downstream tasks and its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from headrace.definition import NOOP, Node
from headrace.handoff import Fired, TaskError, TaskResult
from headrace.state import clearing, deferring, marking, stopping
from headrace.state.agenda import NOT_TAKEN, TIMED_OUT, Agenda
from headrace.state.asking import RetryQuestions
from headrace.state.counting import count_children, tally_of
from headrace.state.graph import Graph
from headrace.state.lockstep import are_in_step, counting_instances, lockstep_of
from headrace.state.mapping import expand
from headrace.state.needing import verdict_about_needs
from headrace.state.retry import has_try_left, retry_delay_seconds
from headrace.state.rules import VERDICT_STATE, Verdict, decide
from headrace.state.task import FAILURES, FINISHED, HELD, TIMED, Actor, Attempt, Event, State, Task

_json = msgspec.json.Encoder()


class Advance:
    """Apply outcomes, then `settle()`. One instance serves one transaction."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._agenda = Agenda(graph)
        self._questions = RetryQuestions(self._agenda)
        self.scheduled: list[Task] = self._agenda.scheduled
        """What became claimable, for whoever has free slots. Complete and exact once settled."""
        self.ended: list[Attempt] = self._agenda.ended
        """The attempts that ended."""

    # ---- outcomes ----------------------------------------------------------------------------------------------

    def start(self, attempt: Attempt, root: Task, resumed: Iterable[Task] = ()) -> None:
        """Open the root of a new attempt. `resumed` tasks were inserted as ended and count as such."""
        before, attempt.state = attempt.state, "running"
        attempt.started_at, attempt.is_changed = self._graph.now, True
        self._graph.record(Event(attempt.id, None, before, "running", Actor.ADVANCE, 0, self._graph.now))
        self._open(root)
        self._resume(list(resumed))

    def hold(self, attempt: Attempt) -> None:
        """A run that was opened again waits for its turn: nothing of it opens until `begin_again`."""
        before, attempt.state = attempt.state, "queued"
        attempt.started_at, attempt.is_changed = None, True
        self._graph.record(Event(attempt.id, None, before, "queued", Actor.USER, 0, self._graph.now))

    def begin_again(self, attempt: Attempt) -> None:
        """The turn of a run has come that was opened again."""
        before, attempt.state = attempt.state, "running"
        attempt.started_at, attempt.is_changed = self._graph.now, True
        self._graph.record(Event(attempt.id, None, before, "running", Actor.ADVANCE, 0, self._graph.now))
        self.reconsider(attempt)

    def complete(self, task: Task, result: TaskResult) -> None:
        """A try ended and its agent still held it."""
        if result.outcome in ("success", "failed") and not result.has_died:
            # Its next try begins anew. After one that only died, it goes on with what that one has begun.
            task.poll_state = None
        if task.state is State.RESTARTING:
            clearing.restart(self._agenda, task, Actor.AGENT)
        elif self._agenda.is_cancelled(task):
            self._agenda.finish(task, State.CANCELED, Actor.AGENT)
        elif result.outcome == "success":
            self._succeed(task, result)
        elif result.outcome == "failed":
            self.fail(
                task,
                result.error,
                Actor.AGENT,
                result.is_retryable,
                result.retry_after_seconds,
                has_died=result.has_died,
            )
        elif result.outcome == "skipped":
            self._agenda.finish(task, State.SKIPPED, Actor.AGENT)
        elif result.outcome == "again":
            self._call_again(task, result)
        elif result.deferral is not None:
            deferring.defer(self._agenda, task, result.deferral, Actor.AGENT)
        else:
            self.hand_back(task, Actor.AGENT)

    def fail(
        self,
        task: Task,
        error: TaskError | None,
        actor: Actor,
        is_retryable: bool = True,
        retry_after_seconds: float | None = None,
        *,
        has_died: bool = False,
    ) -> None:
        """A try (or a group) failed: try again, run the failure's handlers, or end as failed."""
        node = self._graph.node(task)
        if task.state is State.RESTARTING:
            clearing.restart(self._agenda, task, actor)
            return
        if error is not None:
            task.error = _json.encode(error).decode()
        has_another = is_retryable and has_try_left(task.try_number, task.max_tries)
        if has_died and not self._agenda.is_cancelled(task):
            self._agenda.call_back(task, "retry" if has_another else "failed", error)
        if self._agenda.is_cancelled(task):
            self._agenda.finish(task, State.CANCELED, actor)
        elif has_another:
            self._retry_later(task, node, actor, retry_after_seconds)
        elif node.on_failure and task.kind != "mapped":
            # The instances of a mapped task have had their handlers, one by one.
            self._run_handlers(task, node.on_failure, actor)
        else:
            self._agenda.finish(task, State.FAILED, actor)
            if task.kind == "task" and self._graph.workflow(task.attempt_id).fails_fast:
                stopping.stop_the_rest(self._agenda, task)

    def hand_back(self, task: Task, actor: Actor) -> None:
        """Its agent will not run it; whoever is next takes it, in the same try."""
        if task.state is State.RESTARTING:
            clearing.restart(self._agenda, task, actor)
        elif self._agenda.is_cancelled(task):
            self._agenda.finish(task, State.CANCELED, actor)
        else:
            task.agent_id, task.due_at = None, None
            if task.resume is None:
                task.started_at = None
            self._agenda.schedule(task, actor, is_new_try=False)

    def fire(self, task: Task, fired: Fired, actor: Actor = Actor.TRIGGERER) -> None:
        """Its trigger has fired, failed or ended the task, or a person has answered. Nothing if it waits no longer."""
        if task.state is not State.DEFERRED:
            return
        if not deferring.is_ended_by(task, fired):
            deferring.go_on(self._agenda, task, actor, fired)
        elif fired.outcome == "failed":
            self.fail(task, fired.error, Actor.TRIGGERER)
        else:
            ended = State.SUCCESS if fired.outcome == "success" else State.SKIPPED
            self._agenda.finish(task, ended, Actor.TRIGGERER)

    def wake(self, task: Task) -> None:
        """Its due time has come."""
        if task.state not in TIMED:
            return
        if self._agenda.is_cancelled(task):
            self._agenda.finish(task, State.CANCELED, Actor.TIMER)
        elif task.state is State.DEFERRED:
            deferring.time_out(self._agenda, task)
        elif task.state is not State.UP_FOR_RETRY:
            self._agenda.schedule(task, Actor.TIMER, is_new_try=False)
        elif task.kind == "group":
            task.try_number, task.due_at = task.try_number + 1, None
            self._agenda.move(task, State.PLANNED, Actor.TIMER)
            self._agenda.regenerate(task, Actor.TIMER)
            self._agenda.open_children(task)
        else:
            self._agenda.drop_children(task, Actor.TIMER)
            self._begin_try(task, Actor.TIMER)

    def cancel(self, attempt: Attempt) -> None:
        """Stop as soon as possible: what runs is stopped by its agent, everything else ends now."""
        attempt.is_cancel_requested, attempt.is_changed = True, True
        for task in self._graph.unfinished(attempt.id):
            if task.state is State.PLANNED:
                self._agenda.closable[task.id] = task
            elif task.state not in HELD and task.state not in FINISHED:
                self._agenda.finish(task, State.CANCELED, Actor.USER)

    def time_out(self, attempt: Attempt, unfinished_become: State) -> None:
        """The run took too long: it fails, and whatever is not finished ends with it. Its alert is sent before.

        When that takes too long as well, a second call ends everything.
        """
        (root,) = self._graph.tasks([attempt.root_id or 0])
        may_alert = attempt.reason != TIMED_OUT and not attempt.is_cancel_requested
        attempt.reason, attempt.is_changed = TIMED_OUT, True
        is_alerting = stopping.end_below(
            self._agenda, root, unfinished_become, TIMED_OUT, spares_alerts=may_alert and root.is_failing
        )
        alerts = [node for node in self._graph.node(root).on_failure if node.cleans_up]
        if alerts and may_alert and not root.is_failing:
            root.error = _json.encode(TaskError(type="RunTimeout", message="the run took too long")).decode()
            self._run_handlers(root, alerts, Actor.TIMER)
        elif not is_alerting:
            self._agenda.finish(root, State.FAILED, Actor.TIMER, TIMED_OUT)

    def add_to_run(self, attempt: Attempt, nodes: Sequence[Node]) -> None:
        """Add tasks to a run that goes on, beside those that it has directly below its root."""
        (root,) = self._graph.tasks([attempt.root_id or 0])
        self._agenda.grow(root, nodes, grown_by=root.id)
        self._agenda.open_children(root)

    def reconsider(self, attempt: Attempt) -> None:
        """Look again at everything that is not finished, in case that somebody left a consequence undone."""
        for task in self._graph.unfinished(attempt.id):
            if task.state is State.PLANNED:
                self._agenda.open_children(task)
            elif task.state is State.NONE:
                self._agenda.touched[task.id] = task

    def look_again(self, tasks: Iterable[Task]) -> None:
        """What these wait for in another run may have happened."""
        for task in tasks:
            if task.state is State.NONE:
                self._agenda.touched[task.id] = task
            elif task.state is State.PLANNED:
                self._agenda.open_children(task)

    def fail_deadlocked(self, attempt: Attempt) -> None:
        """Nothing can run any more and yet something is left: the run fails and the tasks keep their states."""
        attempt.reason, attempt.is_changed = "deadlocked", True
        (root,) = self._graph.tasks([attempt.root_id or 0])
        self._agenda.finish(root, State.FAILED, Actor.TIMER, "no task can run any more")

    def clear(self, tasks: Sequence[Task]) -> None:
        """Give tasks of the same attempt a new series of tries; a group or a mapped task with all that is below."""
        clearing.clear(self._agenda, tasks)

    def mark(self, tasks: Sequence[Task], state: State) -> None:
        """Somebody says how tasks ended: success, failed or skipped."""
        marking.mark(self._agenda, tasks, state)

    def mark_run(self, attempt: Attempt, state: State) -> None:
        """Somebody says how a run ended, success or failed; what runs ends, and only what cleans up goes on."""
        marking.mark_run(self._agenda, attempt, state)

    def expire(self, task: Task) -> None:
        """A running try is over its time limit and its agent did not end it."""
        seconds = f"{task.timeout_seconds:g}" if task.timeout_seconds is not None else "?"
        self.fail(task, TaskError(type="TaskTimeout", message=f"took longer than {seconds} s"), Actor.TIMER)

    # ---- settling ----------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Follow every consequence of what was applied."""
        while self._agenda.has_open_ends:
            self._agenda.credit_finished()
            # Ends before beginnings: a task that maps over a mapped task finds that one closed when it opens.
            if self._agenda.closable:
                self._close_parents()
            else:
                self._consider_children()
                self._consider_touched()
        claimable = {task.id: task for task in self.scheduled if task.state is State.SCHEDULED}
        self.scheduled[:] = claimable.values()

    def _close_parents(self) -> None:
        closable, self._agenda.closable = self._agenda.closable, {}
        for task in closable.values():
            if task.state is State.PLANNED and task.children_open == 0 and not task.is_superseded:
                self._close(task)

    def _close(self, task: Task) -> None:
        marked_as = self._graph.attempt(task.attempt_id).marked_as if task.parent_id is None else None
        if marked_as is not None:
            self._agenda.finish(task, State(marked_as), Actor.USER)
        elif self._agenda.is_cancelled(task):
            self._agenda.finish(task, State.CANCELED, Actor.ADVANCE)
        elif task.is_failing:
            self._agenda.finish(task, State.FAILED, Actor.ADVANCE)
        elif task.children_failed:
            if not self._questions.ask(task):
                self.fail(task, None, Actor.ADVANCE, retry_after_seconds=self._questions.wait_seconds(task))
        else:
            task.error = None
            all_skipped = task.kind == "mapped" and task.children_skipped == task.children
            self._agenda.finish(task, State.SKIPPED if all_skipped else State.SUCCESS, Actor.ADVANCE)

    def _consider_children(self) -> None:
        opened, self._agenda.opened = self._agenda.opened, []
        if opened:
            for child in self._graph.children({task.id for task in opened}):
                self._agenda.touched[child.id] = child

    def _consider_touched(self) -> None:
        touched, self._agenda.touched = self._agenda.touched, {}
        waiting = [
            task
            for task in touched.values()
            if task.state is State.NONE and task.parent_id is not None and not task.is_superseded
        ]
        parents = {p.id: p for p in self._graph.tasks({task.parent_id or 0 for task in waiting})}
        # Run by run: how one ends must not depend on which others share the transaction.
        for task in sorted(waiting, key=lambda one: one.attempt_id):
            # An earlier one of this round may have skipped a later one.
            if task.state is State.NONE and parents[task.parent_id or 0].state is State.PLANNED:
                # What waits for its turn opens nothing; it is looked at again when its turn comes.
                if self._graph.attempt(task.attempt_id).state != "queued":
                    self._consider(task)

    def _consider(self, task: Task) -> None:
        if self._agenda.is_cancelled(task):
            self._agenda.finish(task, State.CANCELED, Actor.ADVANCE)
            return
        if lockstep_of(self._graph, task) and task.kind == "mapped":
            expand(self._agenda, task)  # its instances have the rule, each for its own index
            return
        verdict = self._verdict(task)
        if verdict is Verdict.WAIT or self._graph.waits_for_past(task, is_skipping=verdict is not Verdict.RUN):
            return
        if verdict is Verdict.RUN:
            self._open(task)
        else:
            self._agenda.finish(task, VERDICT_STATE[verdict], Actor.ADVANCE)

    def _verdict(self, task: Task) -> Verdict:
        needs = verdict_about_needs(self._graph, task)
        if needs in VERDICT_STATE:
            return needs
        verdict = decide(task.trigger_rule, tally_of(task))
        return needs if verdict is Verdict.RUN else verdict

    def _open(self, task: Task) -> None:
        if task.kind == "mapped":
            expand(self._agenda, task)
        elif task.kind == "group":
            task.try_number += 1
            task.started_at = self._graph.now
            self._agenda.move(task, State.PLANNED, Actor.ADVANCE)
            self._agenda.open_children(task)
        elif task.operator == NOOP and not task.is_instance:
            task.try_number += 1
            task.started_at = self._graph.now
            self._agenda.finish(task, State.SUCCESS, Actor.ADVANCE)
        else:
            self._begin_try(task, Actor.ADVANCE)

    def _begin_try(self, task: Task, actor: Actor) -> None:
        deferral = None if task.is_instance else self._graph.node(task).deferral
        if deferral is None:
            self._agenda.schedule(task, actor, is_new_try=True)
        else:
            deferring.begin_deferred(self._agenda, task, deferral, actor)

    def _resume(self, resumed: Sequence[Task]) -> None:
        """Count tasks that were inserted as ended, and what was inserted below tasks that are still to open."""
        done = [task for task in resumed if task.state in FINISHED]
        self._agenda.finished += done
        for task in done:
            if task.children:
                self._agenda.abandon(task, State.SKIPPED, Actor.ADVANCE)
        self._agenda.credit_finished()
        count_children(self._graph, [task for task in resumed if task.children])
        # Instances are among them: in lockstep they count what they wait for, and whoever waits for them counts them.
        mapped = [task for task in resumed if task.kind == "mapped"]
        behind = [link.far for link in self._graph.downstream([task.id for task in mapped])]
        self._agenda.count_upstream([*mapped, *behind])
        for task in done:
            if task.decision is not None:
                self._decide(task, **msgspec.json.decode(task.decision))

    def _carry_over(self, task: Task, grown: Sequence[Task]) -> None:
        """What grows again as it did in the attempt that is resumed need not run again. In a retry it must."""
        if self._graph.attempt(task.attempt_id).resumes_attempt_id is not None and self._is_first_pass(task):
            self._resume(self._graph.carry_over(grown))

    def _is_first_pass(self, task: Task) -> bool:
        while task.try_number <= 1:
            if task.parent_id is None:
                return True
            (task,) = self._graph.tasks([task.parent_id])
        return False

    # ---- ending a try ------------------------------------------------------------------------------------------

    def _succeed(self, task: Task, result: TaskResult) -> None:
        task.error = None
        if result.growth:
            grown = self._agenda.grow(task, result.growth, grown_by=task.id)
            task.agent_id = None
            self._agenda.move(task, State.PLANNED, Actor.AGENT)
            self._carry_over(task, grown)
            self._agenda.open_children(task)
            return
        self._agenda.finish(task, State.SUCCESS, Actor.AGENT)
        if result.retry is not None:
            self._questions.answer(task, result.retry)
        self._decide(task, result.followed, result.skipped)

    def _decide(self, task: Task, followed: Sequence[str] | None = None, skipped: Sequence[str] = ()) -> None:
        """A branch was taken, or a short circuit made."""
        if followed is not None:
            self._follow(task, followed)
        elif skipped:
            task.decision = _json.encode({"skipped": skipped}).decode()
            for other in self._graph.by_key(task.attempt_id, skipped):
                self._skip(task, other)

    def _follow(self, task: Task, followed: Sequence[str]) -> None:
        """A branch: its direct downstream tasks that were not chosen are skipped at once."""
        task.decision = _json.encode({"followed": followed}).decode()
        for link in self._graph.downstream([task.origin_id]):
            if link.far.key not in followed:
                self._skip(task, link.far)

    def _skip(self, branch: Task, task: Task) -> None:
        """A branch decided against a task; an instance of a branch does so for its own index only."""
        if branch.is_instance:
            skipped = self._in_step(branch, task)
        else:
            skipped = [task, *counting_instances(self._graph, task)]
        for one in skipped:
            if one.state in (State.NONE, State.SCHEDULED):
                self._agenda.finish(one, State.SKIPPED, Actor.ADVANCE, NOT_TAKEN)
            elif one.state is State.UPSTREAM_FAILED and not one.children:
                self._agenda.change_end(one, State.SKIPPED, Actor.ADVANCE, NOT_TAKEN)

    def _in_step(self, branch: Task, task: Task) -> list[Task]:
        if not are_in_step(self._graph, branch, task):
            return []
        (parent,) = self._graph.tasks([task.parent_id or 0])
        if task.state is State.NONE and parent.state is State.PLANNED:
            expand(self._agenda, task)  # one of them has its instances, so the length is known
        return self._graph.instances([task.id], [branch.map_index])

    def _call_again(self, task: Task, result: TaskResult) -> None:
        task.poll_state = _json.encode(result.poll_state).decode() if result.poll_state else None
        task.resume = None
        self._wait(task, State.UP_FOR_RESCHEDULE, Actor.AGENT, result.again_after_seconds)

    def _retry_later(self, task: Task, node: Node, actor: Actor, after_seconds: float | None) -> None:
        seed = f"{self._graph.attempt(task.attempt_id).run_id}#{task.name}"
        seconds = retry_delay_seconds(node.retry, task.try_number, seed) if after_seconds is None else after_seconds
        self._wait(task, State.UP_FOR_RETRY, actor, seconds)

    def _wait(self, task: Task, state: State, actor: Actor, seconds: float) -> None:
        task.agent_id = None
        task.due_at = self._graph.now + round(seconds * 1_000_000)
        self._agenda.move(task, state, actor)
        if task.due_at <= self._graph.now:
            self.wake(task)

    def _run_handlers(self, task: Task, nodes: Sequence[Node], actor: Actor) -> None:
        """Its failure is final, but what the user wrote for this case runs first."""
        if task.children_failed:
            task.error = self._error_below(task)
        error = msgspec.json.decode(task.error) if task.error else {}
        told = {"error": {"message": error.get("message", ""), "stacktrace": error.get("traceback", "")}}
        handlers = [
            msgspec.structs.replace(handler, export={**handler.export, **told}) if handler.parent is None else handler
            for handler in nodes
        ]
        self._agenda.grow(task, handlers, grown_by=task.id)
        task.is_failing, task.agent_id = True, None
        task.started_at = task.started_at or self._graph.now
        if task.state is not State.PLANNED:
            self._agenda.move(task, State.PLANNED, actor)
        self._agenda.open_children(task)

    def _error_below(self, task: Task) -> str | None:
        """Of all the failures below, the last one of the file gives the reason, whenever each of them ended."""
        for child in sorted(self._graph.children([task.id]), key=lambda child: -child.id):
            if child.state in FAILURES and child.decides:
                error = self._error_below(child)
                if error is not None:
                    return error
        return task.error
