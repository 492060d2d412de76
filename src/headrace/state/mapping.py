"""From a mapped task to its instances, the first time and again after a clear."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from headrace.state.agenda import Agenda
from headrace.state.counting import count_children, forget_upstream, tally_of
from headrace.state.expansion import instance_count, source_keys
from headrace.state.graph import Link
from headrace.state.growth import new_task
from headrace.state.lockstep import are_in_step, counting_instances, lockstep_of
from headrace.state.rules import VERDICT_STATE, decide
from headrace.state.task import Actor, State, Task


def expand(agenda: Agenda, task: Task) -> None:
    """Give a mapped task as many instances as its sources say, all scheduled; in lockstep each waits for its turn."""
    graph = agenda.graph
    length = graph.node(task).expand
    assert length is not None, "checked when the workflow was compiled"
    keys = set(source_keys(length))
    count = instance_count(length, graph.map_sources(task.attempt_id, keys) if keys else {})
    if count is State.NONE:
        return  # a source still runs, as some rules do not wait for all; its end leads here again
    # Some may have been carried over from an earlier attempt, before the first expansion in this one.
    existing = graph.children([task.id]) if task.try_number or task.children else []
    if isinstance(count, State):
        _give_up(agenda, task, existing, _fate(agenda, task, keys, count), "the result to map over is missing")
    elif count == 0:
        _give_up(agenda, task, existing, State.SKIPPED, "there is nothing to map over")
    else:
        task.try_number += 1
        task.started_at = graph.now
        agenda.move(task, State.PLANNED, Actor.ADVANCE)
        _set_instances(agenda, task, existing, count)
        if task.children_open == 0:
            agenda.closable[task.id] = task


def _fate(agenda: Agenda, task: Task, sources: set[str], state: State) -> State:
    """How it ends without anything to map over: as its rule says about the source and those that it waits for besides.

    In lockstep nobody has asked the rule of the first ones yet, and the others share their fate.
    """
    if sources.isdisjoint(agenda.graph.node(task).upstream):
        return state
    return VERDICT_STATE.get(decide(task.trigger_rule, tally_of(task)), state)


def _give_up(agenda: Agenda, task: Task, existing: Sequence[Task], state: State, reason: str) -> None:
    if existing:
        _set_instances(agenda, task, existing, 0)
    agenda.finish(task, state, Actor.ADVANCE, reason)


def _set_instances(agenda: Agenda, task: Task, existing: Sequence[Task], count: int) -> None:
    """Make it have exactly `count` instances that are not removed."""
    opening = [one for one in sorted(existing, key=lambda one: one.map_index) if _adjust(agenda, task, one, count)]
    opening += _add_instances(agenda, task, range(len(existing), count))
    downstream = agenda.graph.downstream([task.id])
    if existing:
        count_children(agenda.graph, [task])
        agenda.count_upstream([link.far for link in downstream])
    else:
        task.children = task.children_open = len(opening)
        _expect_more(agenda, task, downstream, count)
    if lockstep_of(agenda.graph, task):
        agenda.count_upstream([task])
        # What those behind it are mapped over is known as well: whoever looks at a run finds all of them expanded.
        for link in downstream:
            if are_in_step(agenda.graph, task, link.far):
                agenda.touch(link.far)
        return
    for instance in opening:
        agenda.schedule(instance, Actor.ADVANCE, is_new_try=True)


def _expect_more(agenda: Agenda, task: Task, downstream: Sequence[Link], count: int) -> None:
    """Whoever waited for one task waits for its instances now; in lockstep still for a single one."""
    for link in downstream:
        waiting = [link.far]
        if not are_in_step(agenda.graph, task, link.far):
            waiting += counting_instances(agenda.graph, link.far)
        for one in waiting:
            one.expected += count - 1
            one.setups += (count - 1) * link.is_setup
            agenda.graph.touch(one)


def _adjust(agenda: Agenda, task: Task, instance: Task, count: int) -> bool:
    """Bring an instance of an earlier expansion into the present one. True: it has to be opened."""
    if instance.map_index >= count:
        if instance.state is not State.REMOVED:
            instance.agent_id = None
            forget_upstream(instance)
            agenda.move(instance, State.REMOVED, Actor.ADVANCE)
        return False
    if instance.state is State.REMOVED:
        instance.max_tries = instance.try_number + agenda.graph.node(task).retry.limit
        agenda.move(instance, State.NONE, Actor.ADVANCE)
    return instance.state is State.NONE


def _add_instances(agenda: Agenda, task: Task, indexes: range) -> list[Task]:
    """New instances. One without code to run still goes through the queue: no transaction ends 100,000 tasks."""
    template = _template(agenda, task)
    ids = agenda.graph.new_ids(len(indexes))
    added = [_instance(template, task_id, index) for task_id, index in zip(ids, indexes, strict=True)]
    agenda.graph.add(added, ())
    return added


def _template(agenda: Agenda, task: Task) -> Task:
    node = agenda.graph.node(task)
    template = new_task(
        node,
        task.id,
        attempt_id=task.attempt_id,
        parent_id=task.id,
        generation=task.generation,
        grown_by=task.grown_by,
        body=task.body,
    )
    template.kind, template.decides, template.max_tries = "task", True, node.retry.limit
    return template


def _instance(template: Task, task_id: int, index: int) -> Task:
    instance = copy.copy(template)
    instance.id, instance.map_index = task_id, index
    return instance
