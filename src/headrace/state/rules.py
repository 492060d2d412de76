"""The thirteen trigger rules: from how many upstream tasks ended how, to what happens with the task that waits."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from headrace.state.task import State

NEVER = "never"
"""Stands in for the rule of a task that is not for the time which its run is about."""


class Verdict(Enum):
    WAIT = "wait"
    RUN = "run"
    SKIP = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    REMOVE = "removed"


class Tally(NamedTuple):
    """How many direct upstream tasks there are, and how those that ended have ended."""

    expected: int
    succeeded: int = 0
    skipped: int = 0
    failed: int = 0
    upstream_failed: int = 0
    removed: int = 0
    setups: int = 0
    setups_succeeded: int = 0
    setups_skipped: int = 0
    map_index: int = -1

    @property
    def ended(self) -> int:
        return self.succeeded + self.skipped + self.failed + self.upstream_failed + self.removed

    @property
    def is_done(self) -> bool:
        return self.ended >= self.expected

    @property
    def unsuccessful(self) -> int:
        return self.failed + self.upstream_failed


def _all_success(t: Tally) -> Verdict:
    if t.unsuccessful:
        return Verdict.UPSTREAM_FAILED
    if t.skipped:
        return Verdict.SKIP
    if t.removed and t.succeeded and t.map_index >= t.succeeded:
        return Verdict.REMOVE
    return _run_if(t.expected - t.succeeded - t.removed <= 0)


def _all_failed(t: Tally) -> Verdict:
    if t.succeeded or t.skipped:
        return Verdict.SKIP
    return _run_if(t.expected - t.unsuccessful - t.removed <= 0)


def _all_done(t: Tally) -> Verdict:
    return _run_if(t.is_done)


def _all_done_min_one_success(t: Tally) -> Verdict:
    if t.skipped:
        return Verdict.SKIP
    if t.is_done and not t.succeeded:
        return Verdict.UPSTREAM_FAILED
    return _run_if(t.succeeded + t.unsuccessful >= t.expected - t.removed and t.succeeded > 0)


def _all_skipped(t: Tally) -> Verdict:
    if t.succeeded or t.unsuccessful:
        return Verdict.SKIP
    return _run_if(t.skipped == t.expected)


def _one_success(t: Tally) -> Verdict:
    if t.succeeded:
        return Verdict.RUN
    if t.is_done:
        return Verdict.SKIP if t.skipped == t.ended else Verdict.UPSTREAM_FAILED
    return Verdict.WAIT


def _one_failed(t: Tally) -> Verdict:
    if t.unsuccessful:
        return Verdict.RUN
    return Verdict.SKIP if t.is_done else Verdict.WAIT


def _one_done(t: Tally) -> Verdict:
    if t.succeeded or t.failed:
        return Verdict.RUN
    return Verdict.SKIP if t.is_done else Verdict.WAIT


def _none_failed(t: Tally) -> Verdict:
    if t.unsuccessful:
        return Verdict.UPSTREAM_FAILED
    return _run_if(t.expected - t.succeeded - t.skipped - t.removed <= 0)


def _none_failed_min_one_success(t: Tally) -> Verdict:
    if t.unsuccessful:
        return Verdict.UPSTREAM_FAILED
    if t.skipped == t.expected:
        return Verdict.SKIP
    if t.is_done and not t.succeeded:
        return Verdict.UPSTREAM_FAILED
    return _run_if(t.expected - t.succeeded - t.skipped - t.removed <= 0 and t.succeeded > 0)


def _none_skipped(t: Tally) -> Verdict:
    if t.skipped:
        return Verdict.SKIP
    return _run_if(t.is_done)


def _always(t: Tally) -> Verdict:
    return Verdict.RUN


def _all_done_setup_success(t: Tally) -> Verdict:
    if not t.is_done:
        return Verdict.WAIT
    if t.setups and t.setups_skipped == t.setups:
        return Verdict.SKIP
    if t.setups and not t.setups_succeeded:
        return Verdict.UPSTREAM_FAILED
    return Verdict.RUN


def _run_if(condition: bool) -> Verdict:
    return Verdict.RUN if condition else Verdict.WAIT


RULES: dict[str, Callable[[Tally], Verdict]] = {
    "all_success": _all_success,
    "all_failed": _all_failed,
    "all_done": _all_done,
    "all_done_min_one_success": _all_done_min_one_success,
    "all_skipped": _all_skipped,
    "one_success": _one_success,
    "one_failed": _one_failed,
    "one_done": _one_done,
    "none_failed": _none_failed,
    "none_failed_min_one_success": _none_failed_min_one_success,
    "none_skipped": _none_skipped,
    "always": _always,
    "all_done_setup_success": _all_done_setup_success,
}


def decide(rule: str, tally: Tally) -> Verdict:
    """What a rule says about a task that waits. A task without upstream tasks runs."""
    if rule == NEVER:
        return Verdict.WAIT
    if tally.expected == 0:
        return Verdict.RUN
    return RULES[rule](tally)


VERDICT_STATE = {
    Verdict.SKIP: State.SKIPPED,
    Verdict.UPSTREAM_FAILED: State.UPSTREAM_FAILED,
    Verdict.REMOVE: State.REMOVED,
}
