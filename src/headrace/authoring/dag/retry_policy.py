"""Retry policies: what a task does about an exception, by its kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

_LONGEST_REASON = 500


class RetryAction(StrEnum):
    FAIL = "fail"
    """The failure is final, whatever tries are left."""
    RETRY = "retry"
    """Another try, if one is left; with a delay of its own if the decision has one."""
    DEFAULT = "default"
    """As the task's other settings say."""


@dataclass(frozen=True)
class RetryDecision:
    """What a policy makes of a failure."""

    action: RetryAction = RetryAction.DEFAULT
    retry_delay: timedelta | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", RetryAction(self.action))
        object.__setattr__(self, "reason", (self.reason or "")[:_LONGEST_REASON] or None)

    @classmethod
    def fail(cls, reason: str | None = None) -> RetryDecision:
        return cls(RetryAction.FAIL, reason=reason)

    @classmethod
    def retry(cls, delay: timedelta | None = None, reason: str | None = None) -> RetryDecision:
        return cls(RetryAction.RETRY, delay, reason)

    @classmethod
    def default(cls) -> RetryDecision:
        return cls()


class RetryPolicy:
    """Subclasses decide in `evaluate`, in the task's process, after a try has failed."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """What is to be done about this exception."""
        raise NotImplementedError(f"{type(self).__name__} has no evaluate()")


@dataclass(frozen=True)
class RetryRule:
    """What to do about certain exceptions: a class, several, or their dotted paths."""

    exception: type[BaseException] | str | Sequence[type[BaseException] | str]
    action: RetryAction = RetryAction.RETRY
    retry_delay: timedelta | None = None
    reason: str | None = None
    match_subclasses: bool = True

    def matches(self, error: BaseException) -> bool:
        """Whether the rule is about this exception."""
        wanted = self.exception if isinstance(self.exception, list | tuple | set) else [self.exception]
        classes = type(error).__mro__ if self.match_subclasses else (type(error),)
        names = {f"{cls.__module__}.{cls.__qualname__}" for cls in classes} | {cls.__qualname__ for cls in classes}
        return any(one in names if isinstance(one, str) else one in classes for one in wanted)


class ExceptionRetryPolicy(RetryPolicy):
    """The first rule that matches decides."""

    def __init__(self, rules: Iterable[RetryRule], default: RetryAction = RetryAction.DEFAULT) -> None:
        self.rules = list(rules)
        self.default = RetryAction(default)

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        for rule in self.rules:
            if rule.matches(exception):
                return RetryDecision(rule.action, rule.retry_delay, rule.reason)
        return RetryDecision(self.default)
