"""Orders and sums over a DAG's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.authoring.dag.node import TaskNode

_INT32 = 2**31 - 1


def topological_order(tasks: Mapping[str, TaskNode]) -> list[str]:
    """Ids so that each comes after everything it waits for; tasks in a cycle are left out."""
    waiting = {task_id: len(task.upstream_task_ids) for task_id, task in tasks.items()}
    order = [task_id for task_id, count in waiting.items() if count == 0]
    for task_id in order:
        for downstream in sorted(tasks[task_id].downstream_task_ids):
            waiting[downstream] -= 1
            if waiting[downstream] == 0:
                order.append(downstream)
    return order


def effective_weights(
    tasks: Mapping[str, TaskNode], own: Mapping[str, int], rules: Mapping[str, object]
) -> dict[str, int]:
    """Each task's weight, plus those of all tasks after or before it if its weight rule says so; within 32 bits."""
    weights = dict(own)
    order = topological_order(tasks)
    for rule, upstream in (("downstream", False), ("upstream", True)):
        # With a cycle there is no order; the graph check will refuse the workflow anyway.
        if rule in rules.values() and len(order) == len(tasks):
            totals = _totals(tasks, own, order if upstream else order[::-1], upstream)
            weights.update({task_id: total for task_id, total in totals.items() if rules[task_id] == rule})
    return {task_id: clamped(weight) for task_id, weight in weights.items()}


def clamped(weight: int) -> int:
    """The weight, within 32 bits."""
    return max(-_INT32 - 1, min(_INT32, int(weight)))


def _totals(tasks: Mapping[str, TaskNode], own: Mapping[str, int], order: list[str], upstream: bool) -> dict[str, int]:
    """Own weight plus the weights of all distinct relatives. Sets of relatives are bits of an int: one OR per edge."""
    position = {task_id: index for index, task_id in enumerate(order)}
    of_weight: dict[int, int] = {}
    for weight in set(own.values()):
        of_weight[weight] = _bits(position[task_id] for task_id in order if own[task_id] == weight)
    users_left = {task_id: len(tasks[task_id].get_direct_relative_ids(not upstream)) for task_id in order}
    relatives: dict[str, int] = {}
    totals: dict[str, int] = {}
    for task_id in order:
        found = 0
        for relative in tasks[task_id].get_direct_relative_ids(upstream):
            found |= relatives[relative] | (1 << position[relative])
            users_left[relative] -= 1
            if users_left[relative] == 0:
                del relatives[relative]
        if users_left[task_id]:
            relatives[task_id] = found
        totals[task_id] = own[task_id] + sum(weight * (found & mask).bit_count() for weight, mask in of_weight.items())
    return totals


def _bits(positions: Iterable[int]) -> int:
    text = bytearray()
    for position in positions:
        needed = position // 8 + 1
        if len(text) < needed:
            text.extend(bytes(needed - len(text)))
        text[position // 8] |= 1 << (position % 8)
    return int.from_bytes(text, "little")
