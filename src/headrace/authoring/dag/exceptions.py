"""The exceptions that DAG files raise and catch, with Airflow's names and Airflow's place in the exception tree."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any


class AirflowException(Exception):
    """The common parent of what an operator raises when it fails."""


class AirflowSkipException(AirflowException):
    """Ends the task as skipped."""


class AirflowFailException(AirflowException):
    """Fails the task for good, whatever tries are left."""


class AirflowSensorTimeout(AirflowException):
    """A sensor waited too long; fails the task for good."""


class AirflowRescheduleException(AirflowException):
    """Asks to be called again at a given time, in the same try."""

    def __init__(self, reschedule_date: datetime) -> None:
        super().__init__(f"call again at {reschedule_date.isoformat()}")
        self.reschedule_date = reschedule_date


class AirflowNotFoundException(AirflowException):
    """Something that was looked up by name does not exist."""


class AirflowBadRequest(AirflowException):
    pass


class AirflowConfigException(AirflowException):
    pass


class AirflowDagCycleException(AirflowException):
    pass


class AirflowDagDuplicatedIdException(AirflowException):
    pass


class AirflowClusterPolicyViolation(AirflowException):
    pass


class AirflowTimetableInvalid(AirflowException):
    pass


class FailFastDagInvalidTriggerRule(AirflowException):
    pass


class DagNotFound(AirflowNotFoundException):
    pass


class DagRunNotFound(AirflowNotFoundException):
    pass


class DagRunAlreadyExists(AirflowBadRequest):
    pass


class TaskNotFound(AirflowNotFoundException):
    pass


class TaskInstanceNotFound(AirflowNotFoundException):
    pass


class PoolNotFound(AirflowNotFoundException):
    pass


class DuplicateTaskIdFound(AirflowException):
    """Two tasks or groups of one DAG want the same id."""


class TaskAlreadyInTaskGroup(AirflowException):
    pass


class ParamValidationError(AirflowException):
    pass


class XComNotFound(AirflowException):
    """A task needs a value that no other task has pushed."""


class XComForMappingNotPushed(AirflowException):
    """A task that others are mapped over returned nothing."""


class UnmappableXComTypePushed(AirflowException):
    """A task that others are mapped over returned something that has no elements."""


class SerializationError(AirflowException):
    """A result cannot be stored as JSON."""


class TaskDeferralError(AirflowException):
    """The trigger that a task waited for failed or ended without an event."""


class TaskDeferralTimeout(TaskDeferralError):
    """The trigger that a task waited for did not fire in time."""


class TaskDeferred(BaseException):
    """Asks to wait for a trigger without a process, and to go on with a method then.

    Not an Exception, so that a broad `except` does not swallow it.
    """

    def __init__(
        self,
        *,
        trigger: Any,
        method_name: str | None,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | float | None = None,
    ) -> None:
        super().__init__()
        self.trigger = trigger
        self.method_name = method_name
        self.kwargs = kwargs
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"<TaskDeferred trigger={self.trigger} method={self.method_name}>"


class AirflowTaskTimeout(BaseException):
    """The try ran longer than `execution_timeout`. Not an Exception, so that a broad `except` does not swallow it."""


class AirflowTaskTerminated(BaseException):
    """The task's process was asked to stop."""


class RemovedInAirflow3Warning(DeprecationWarning):
    pass


class RemovedInAirflow4Warning(DeprecationWarning):
    pass


class AirflowProviderDeprecationWarning(DeprecationWarning):
    pass
