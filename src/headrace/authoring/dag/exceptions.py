"""The exceptions that DAG files raise and catch, with Airflow's names and Airflow's place in the exception tree."""

from __future__ import annotations

from datetime import datetime


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
