"""Names that DAG files compare with: trigger rules, weight rules and states."""

from __future__ import annotations

from enum import StrEnum


class TriggerRule(StrEnum):
    """When a task may start, given how its upstream tasks ended."""

    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ALL_DONE_MIN_ONE_SUCCESS = "all_done_min_one_success"
    ALL_DONE_SETUP_SUCCESS = "all_done_setup_success"
    ALL_SKIPPED = "all_skipped"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_FAILED_OR_SKIPPED = "none_failed_or_skipped"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    NONE_SKIPPED = "none_skipped"
    ALWAYS = "always"
    DUMMY = "dummy"


_RENAMED = {
    TriggerRule.NONE_FAILED_OR_SKIPPED: TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
    TriggerRule.DUMMY: TriggerRule.ALWAYS,
}


def trigger_rule_of(value: str) -> TriggerRule:
    """The rule of that name, with names of old versions replaced by today's; ValueError if there is none."""
    try:
        rule = TriggerRule(value)
    except ValueError:
        known = ", ".join(sorted(set(TriggerRule) - set(_RENAMED)))
        raise ValueError(f"expected the trigger rule to be one of {known}, got: `{value}`") from None
    return _RENAMED.get(rule, rule)


class WeightRule(StrEnum):
    """How a task's priority takes the tasks around it into account."""

    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    ABSOLUTE = "absolute"


class TaskInstanceState(StrEnum):
    NONE = "none"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    RESTARTING = "restarting"
    FAILED = "failed"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    UPSTREAM_FAILED = "upstream_failed"
    SKIPPED = "skipped"
    REMOVED = "removed"
    DEFERRED = "deferred"


class DagRunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class State:
    """All states in one place, as older DAG files spell them."""

    NONE = None
    SCHEDULED = TaskInstanceState.SCHEDULED
    QUEUED = TaskInstanceState.QUEUED
    RUNNING = TaskInstanceState.RUNNING
    SUCCESS = TaskInstanceState.SUCCESS
    RESTARTING = TaskInstanceState.RESTARTING
    FAILED = TaskInstanceState.FAILED
    UP_FOR_RETRY = TaskInstanceState.UP_FOR_RETRY
    UP_FOR_RESCHEDULE = TaskInstanceState.UP_FOR_RESCHEDULE
    UPSTREAM_FAILED = TaskInstanceState.UPSTREAM_FAILED
    SKIPPED = TaskInstanceState.SKIPPED
    REMOVED = TaskInstanceState.REMOVED
    DEFERRED = TaskInstanceState.DEFERRED
