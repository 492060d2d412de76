"""Operators that start a job elsewhere and find it again after a crash."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headrace.authoring.dag import Context


class ResumableJobMixin(ABC):
    """Keeps the id of the job it has started under `external_id_key`, so that the next try goes on with the same job.

    `execute_resumable` is what an operator calls in its `execute`.
    """

    external_id_key: str = "remote_job_id"
    log: Any

    def __init__(self, *, durable: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.durable = durable

    def execute_resumable(self, context: Context) -> Any:
        """Start the job, or find the one of an earlier try; wait for its end and give its result."""
        store = context.get("task_state_store") if self.durable else None
        job = store.get(self.external_id_key) if store is not None else None
        if job:
            status = self.get_job_status(job, context)
            if self.is_job_active(status):
                self.log.info("going on with the job `%s` of an earlier try", job)
                return self.poll_until_complete(job, context)
            if self.is_job_succeeded(status):
                self.log.info("the job `%s` of an earlier try has succeeded", job)
                return self.get_job_result(job, context)
        job = self.submit_job(context)
        if store is not None and job is not None:
            store.set(self.external_id_key, job)
        self.poll_until_complete(job, context)
        return self.get_job_result(job, context)

    @abstractmethod
    def submit_job(self, context: Context) -> Any:
        """Start the job and give its id."""

    @abstractmethod
    def get_job_status(self, external_id: Any, context: Context) -> str:
        """What the other system says about the job."""

    @abstractmethod
    def is_job_active(self, status: str) -> bool:
        """Whether a job of this status still runs."""

    @abstractmethod
    def is_job_succeeded(self, status: str) -> bool:
        """Whether a job of this status has succeeded."""

    @abstractmethod
    def poll_until_complete(self, external_id: Any, context: Context) -> None:
        """Wait for the job's end; raises if it failed."""

    @abstractmethod
    def get_job_result(self, external_id: Any, context: Context) -> Any:
        """What the task returns."""
