"""The exceptions that DAG files raise and catch, with Airflow's names and Airflow's place in the exception tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class DownstreamTasksSkipped(AirflowException):
    """Ends the task as succeeded and has tasks after it skipped."""

    def __init__(self, *, tasks: Iterable[str | tuple[str, int]]) -> None:
        super().__init__()
        self.tasks = list(tasks)


class DagRunTriggerException(AirflowException):
    """Asks to start a run of another DAG, and perhaps to wait for its end, in place of what `execute` returns."""

    def __init__(
        self,
        *,
        trigger_dag_id: str,
        dag_run_id: str | None = None,
        conf: dict[str, Any] | None = None,
        logical_date: datetime | None = None,
        run_after: datetime | None = None,
        reset_dag_run: bool = False,
        skip_when_already_exists: bool = False,
        wait_for_completion: bool = False,
        allowed_states: Sequence[str] = ("success",),
        failed_states: Sequence[str] = ("failed",),
        poke_interval: float = 60,
        deferrable: bool = False,
        note: str | None = None,
    ) -> None:
        super().__init__(f"start a run of `{trigger_dag_id}`")
        self.trigger_dag_id = trigger_dag_id
        self.dag_run_id = dag_run_id
        self.conf = conf
        self.logical_date = logical_date
        self.run_after = run_after
        self.reset_dag_run = reset_dag_run
        self.skip_when_already_exists = skip_when_already_exists
        self.wait_for_completion = wait_for_completion
        self.allowed_states = allowed_states
        self.failed_states = failed_states
        self.poke_interval = poke_interval
        self.deferrable = deferrable
        self.note = note
        self.is_for_now = False
        """Its logical date is the moment at which it is made; otherwise the one that is given, or none."""


class AirflowNotFoundException(AirflowException):
    """Something that was looked up by name does not exist."""


class AirflowBadRequest(AirflowException):
    pass


class AirflowConfigException(AirflowException):
    pass


class AirflowOptionalProviderFeatureException(AirflowException):
    """Something of a provider needs a package that is not installed."""


class DeserializingResultError(ValueError):
    """What a function in another Python returned cannot be read here."""


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


class UnmappableXComLengthPushed(AirflowException):
    """A task that others are mapped over returned more elements than are allowed."""


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


class TaskAwaitingInput(TaskDeferred):
    """Asks a person something and waits for the answer without a process, to go on with a method then."""

    def __init__(
        self,
        *,
        question: Any,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | float | None = None,
    ) -> None:
        super().__init__(trigger=None, method_name=method_name, kwargs=kwargs, timeout=timeout)
        self.question = question


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
