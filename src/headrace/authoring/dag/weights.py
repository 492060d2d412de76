"""Weight rules: how a task's priority follows from its own weight and from the tasks around it."""

from __future__ import annotations

import importlib
from typing import Any

from headrace.authoring.dag.rules import WeightRule


class PriorityWeightStrategy:
    """A rule of one's own. It is asked once, when the file is loaded, with what is known of the task by then."""

    def get_weight(self, ti: Any) -> int:
        """The priority of a task; of `ti` there are `task`, the ids, `priority_weight`, `map_index`, `try_number`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_weight()")


class PlannedTask:
    """What a strategy is asked about: a task before it runs."""

    map_index = -1
    try_number = 1

    def __init__(self, task: Any) -> None:
        self.task = task
        self.task_id: str = task.task_id
        self.dag_id: str = task.dag_id
        self.priority_weight: int = task.settings.priority_weight


def weight_rule_of(value: Any) -> WeightRule | PriorityWeightStrategy:
    """A rule by its name, a strategy's class or object, or the dotted path of its class."""
    if isinstance(value, str) and value in set(WeightRule):
        return WeightRule(value)
    strategy = _imported(value) if isinstance(value, str) else value
    if isinstance(strategy, type) and issubclass(strategy, PriorityWeightStrategy):
        strategy = strategy()
    if not isinstance(strategy, PriorityWeightStrategy):
        known = ", ".join(WeightRule)
        raise ValueError(f"expected `weight_rule` to be one of {known} or a PriorityWeightStrategy, got: {value!r}")
    return strategy


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return path
